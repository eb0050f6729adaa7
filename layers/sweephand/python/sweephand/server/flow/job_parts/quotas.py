"""The counts of jobs and schedules that the transactions of jobs change, and the quotas that limit them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweephand.base.errors import QuotaExceeded
from sweephand.base.lazy import lazy
from sweephand.domain.collection import Collection, Usage
from sweephand.domain.job import Job
from sweephand.server.flow.concurrency import Moved
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import Op
from sweephand.server.store.tenants import tenants

if TYPE_CHECKING:
    from sweephand.server.store.tenants.counts import NoRoom

with lazy():
    from sweephand.server.store.tenants import counts, usage


def count_ops(
    world: World, before: Job | None, after: Job | None, collection: Collection | None, quotas: Usage
) -> list[Op]:
    """Returns the operations that count the jobs and schedules added or removed by a change of a job.

    before: None if the job is created. after: None if it is deleted; no quota applies then. collection: of `after`.
    quotas: of the tenant. Raises QuotaExceeded if there is no room, Moved after a concurrent change.
    """
    newest = after or before
    assert newest is not None
    schedules = (after.schedule_count if after else 0) - (before.schedule_count if before else 0)
    need = counts.Need((after is not None) - (before is not None), schedules)
    ops = []
    if need != counts.Need():
        of_tenant = usage.counted(newest.tenant, quotas)
        stripe = counts.take_room(world.table, of_tenant, newest.number, need)
        if stripe in {counts.NoRoom.JOBS, counts.NoRoom.SCHEDULES}:
            raise _exceeded(stripe, quotas)
        ops.append(counts.count_op(world.table, usage.PART, of_tenant, _unmoved(stripe), need))
    if before is not None and (after is None or before.collection != after.collection):
        left = tenants.counted(Collection(newest.tenant, before.collection))
        ops.append(counts.count_op(world.table, "old collection", left, before.number, counts.Need(-1)))
    if after is not None and collection is not None and (before is None or before.collection != after.collection):
        entered = tenants.counted(collection)
        stripe = counts.take_room(world.table, entered, after.number, counts.Need(1))
        if stripe is counts.NoRoom.JOBS:
            raise _full(world, collection)
        ops.append(counts.count_op(world.table, "collection", entered, _unmoved(stripe), counts.Need(1)))
    return ops


def limits(collection: Collection, quotas: Usage) -> bool:
    """Returns whether a quota of the tenant or the collection limits how many jobs and schedules there are."""
    return (quotas.most_jobs, quotas.most_schedules, collection.quota.max_jobs) != (None, None, None)


def _unmoved(stripe: int | NoRoom) -> int:
    if isinstance(stripe, counts.NoRoom):
        raise Moved
    return stripe


def _exceeded(room: object, quotas: Usage) -> QuotaExceeded:
    if room is counts.NoRoom.JOBS:
        limit = f"{quotas.most_jobs} jobs at most (quota.maxJobs of the tenant)"
    else:
        limit = f"{quotas.most_schedules} schedules at most (quota.maxSchedules of the tenant)"
    return QuotaExceeded(f"the provider allows this tenant {limit}: delete some, or ask the provider for more")


def _full(world: World, collection: Collection) -> QuotaExceeded:
    """Returns the error for a collection that accepts no more jobs."""
    (used,) = counts.totals(world.table, [tenants.counted(collection)])
    jobs = "1 job" if used.jobs == 1 else f"{used.jobs:,} jobs"
    reason = f"the collection {collection.name} has {jobs}, and its quota maxJobs allows {collection.quota.max_jobs:,}"
    return QuotaExceeded(f"{reason}: delete jobs, or raise the quota")
