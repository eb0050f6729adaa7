"""One schedule's step of a change: its row before and after."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sweephand.domain.job import Payload
from sweephand.domain.schedule import Schedule

if TYPE_CHECKING:
    from sweephand.store.jobs.own_hooks import ByName


@dataclass(frozen=True)
class Step:
    """A schedule's change. before: the row as read; None: it is new. after: as requested; None: it is deleted.

    at: the instant of a new one-time timing. payload, hooks: written under the versions that `after` names.
    """

    before: Schedule | None
    after: Schedule | None
    at: datetime | None = None
    payload: Payload | None = None
    hooks: ByName | None = None
