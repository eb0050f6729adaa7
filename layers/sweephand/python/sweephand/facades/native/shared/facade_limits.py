"""Refuses changes that the facade of a job or a collection could not show."""

from __future__ import annotations

from sweephand.domain.collection import Collection
from sweephand.domain.job import Job
from sweephand.errors import Conflict

CLOSED = frozenset({"azure"})
"""Facades whose resources have members of one form only. Their jobs can be switched on and off, run and deleted."""


def check_job(job: Job) -> None:
    """Raises Conflict(FACADE_LIMIT) for a change of the members of such a job or of its schedules."""
    if job.facade in CLOSED:
        raise _limit("the job", job.facade)


def check_collection(before: Collection, after: Collection) -> None:
    """Raises Conflict(FACADE_LIMIT) for another quota or retention, or other defaults, of such a collection."""
    if before.facade not in CLOSED:
        return
    for member in ("quota", "retention", "defaults"):
        if getattr(before, member) != getattr(after, member):
            raise _limit(f"the {member} of the collection", before.facade)


def _limit(what: str, facade: str) -> Conflict:
    reason = f"{what} is managed by the facade {facade}, which cannot show this change: make it there"
    return Conflict(reason, code="FACADE_LIMIT")
