"""A revision of a job, as its change log keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sweephand.domain.job import Job
from sweephand.domain.schedule import Schedule


@dataclass(frozen=True)
class Entry:
    """One revision. revision: the number that the job had afterwards. actor: client id; None: the service itself.

    before None: the job was created. schedules: before and after, of those that the caller changed, added (before None)
    or deleted (after None). omitted: how many more there were than an item holds.
    """

    revision: int
    at: datetime
    actor: str | None
    operation: str
    before: Job | None
    after: Job
    schedules: tuple[tuple[Schedule | None, Schedule | None], ...] = ()
    omitted: int = 0
