"""A revision of a job in its change log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sweephand.domain.job import Job
from sweephand.domain.schedule import Schedule


@dataclass(frozen=True)
class Entry:
    """One revision. revision: the job's number after the change. actor: a client id, None for the service itself.

    before: None if the job was created. schedules: pairs of before and after for those that the caller changed, added
    (before is None) or deleted (after is None). omitted: how many more changes did not fit into the item.
    """

    revision: int
    at: datetime
    actor: str | None
    operation: str
    before: Job | None
    after: Job
    schedules: tuple[tuple[Schedule | None, Schedule | None], ...] = ()
    omitted: int = 0
