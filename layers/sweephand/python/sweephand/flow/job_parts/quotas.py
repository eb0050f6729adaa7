"""A tenant's quotas of schedules and jobs: counted in the transactions that create and delete them."""

from __future__ import annotations

from sweephand.domain.collection import Usage
from sweephand.domain.job import Job
from sweephand.errors import QuotaExceeded
from sweephand.flow.world import World
from sweephand.store.dynamo.conditional import Cancelled, Op
from sweephand.store.dynamo.table import UsageItem
from sweephand.store.tenants import usage


def count_ops(world: World, before: Job | None, after: Job | None, seen: Usage) -> list[Op]:
    """Returns the operation that counts the jobs and schedules added or removed by a change of a job.

    before, after None: the job is created or deleted. seen: the quotas as read, to judge a refusal by; a delete
    ignores them.
    """
    there = before or after
    assert there is not None
    schedules = (after.schedule_count if after else 0) - (before.schedule_count if before else 0)
    jobs = (after is not None) - (before is not None)
    return [usage.count_op(world.table, there.tenant, schedules, jobs, seen)] if schedules or jobs else []


def is_exceeded(refused: Cancelled, seen: Usage) -> bool:
    """Returns whether the quotas as read refused the transaction; False as well if they have changed since."""
    mine = refused.refused.get(usage.PART)
    there = mine.read(UsageItem) if mine is not None else None
    if there is None or (there.most_schedules, there.most_jobs) != (seen.most_schedules, seen.most_jobs):
        return False
    return seen.most_schedules is not None or seen.most_jobs is not None


def exceeded(seen: Usage, refused: Cancelled) -> QuotaExceeded:
    """Returns the error for the quota that was exceeded, of jobs or of schedules."""
    mine = refused.refused.get(usage.PART)
    there = mine.read(UsageItem) if mine is not None else None
    if there is not None and seen.most_jobs is not None and there.jobs >= seen.most_jobs:
        return QuotaExceeded(_refusal("jobs", "maxJobs", seen.most_jobs))
    return QuotaExceeded(_refusal("schedules", "maxSchedules", seen.most_schedules))


def _refusal(what: str, name: str, most: int | None) -> str:
    return (
        f"the provider allows this tenant {most} {what} at most (quota.{name} of the tenant): "
        "delete some, or ask the provider for more"
    )
