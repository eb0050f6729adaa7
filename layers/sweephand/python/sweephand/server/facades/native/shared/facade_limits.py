"""Refuses changes that the facade of a job or a collection could not show."""

from __future__ import annotations

from sweephand.base.errors import Conflict
from sweephand.domain.collection import Collection
from sweephand.domain.job import CLOSED_FACADES, Job


def check_job(job: Job) -> None:
    """Raises Conflict(FACADE_LIMIT) if the job's facade could not show a change of its members or schedules."""
    if job.facade in CLOSED_FACADES:
        raise _limit("the job", job.facade)


def check_collection(before: Collection, after: Collection) -> None:
    """Raises Conflict(FACADE_LIMIT) for a change of quota, retention or defaults that the facade could not show."""
    if before.facade not in CLOSED_FACADES:
        return
    for member in ("quota", "retention", "defaults"):
        if getattr(before, member) != getattr(after, member):
            raise _limit(f"the {member} of the collection", before.facade)


def _limit(what: str, facade: str) -> Conflict:
    reason = f"{what} is managed by the facade {facade}, which cannot show this change: make it there"
    return Conflict(reason, code="FACADE_LIMIT")
