"""A tenant's quotas of schedules and jobs: counted in the transactions that create and delete them."""

from __future__ import annotations

from sweephand.domain.collection import Usage
from sweephand.domain.job import Job
from sweephand.errors import QuotaExceeded
from sweephand.flow.world import World
from sweephand.store.dynamo.conditional import Cancelled, Op
from sweephand.store.dynamo.table import UsageItem
from sweephand.store.tenants import usage


def count_ops(world: World, before: Job | None, after: Job | None, tenant_usage: Usage) -> list[Op]:
    """Returns the operation that counts the jobs and schedules added or removed by a change of a job.

    before: None if the job is created. after: None if it is deleted. tenant_usage: as read, with the quotas.
    A delete ignores them.
    """
    there = before or after
    assert there is not None
    schedules = (after.schedule_count if after else 0) - (before.schedule_count if before else 0)
    jobs = (after is not None) - (before is not None)
    return [usage.count_op(world.table, there.tenant, schedules, jobs, tenant_usage)] if schedules or jobs else []


def exceeded(refused: Cancelled, tenant_usage: Usage) -> QuotaExceeded | None:
    """Returns the error if the quotas as read refused the transaction; None otherwise, such as after a change."""
    mine = refused.refused.get(usage.PART)
    there = mine.read(UsageItem) if mine is not None else None
    if there is None or (there.most_schedules, there.most_jobs) != (
        tenant_usage.most_schedules,
        tenant_usage.most_jobs,
    ):
        return None
    if tenant_usage.most_jobs is not None and there.jobs >= tenant_usage.most_jobs:
        limit = f"{tenant_usage.most_jobs} jobs at most (quota.maxJobs of the tenant)"
    elif tenant_usage.most_schedules is not None:
        limit = f"{tenant_usage.most_schedules} schedules at most (quota.maxSchedules of the tenant)"
    else:
        return None
    return QuotaExceeded(f"the provider allows this tenant {limit}: delete some, or ask the provider for more")
