"""One schedule's step of a change: its row before, and as it shall be after."""

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
    """before: the row as the step finds it; None: it is new. after: with the caller's wishes; None: it is deleted.

    at: the instant of a new one-time timing. payload, hooks: to be written under the versions that `after`
    names.
    """

    before: Schedule | None
    after: Schedule | None
    at: datetime | None = None
    payload: Payload | None = None
    hooks: ByName | None = None
