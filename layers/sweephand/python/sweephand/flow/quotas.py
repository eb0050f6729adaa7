"""A tenant's quota of schedules: counted in the transactions that make and delete them."""

from __future__ import annotations

from sweephand.domain.collection import Usage
from sweephand.domain.job import Job
from sweephand.errors import QuotaExceeded
from sweephand.flow.world import World
from sweephand.store import usage
from sweephand.store.conditional import Cancelled, Op
from sweephand.store.table import UsageItem


def count_ops(world: World, before: Job | None, after: Job | None, seen: Usage) -> list[Op]:
    """Part of the job's transaction: how many schedules it has more or less. None: there is no job.

    seen: the quota that a refusal is judged by; for a delete any.
    """
    there = before or after
    assert there is not None
    step = (after.schedule_count if after else 0) - (before.schedule_count if before else 0)
    return [usage.count_op(world.table, there.tenant, step, seen)] if step else []


def seen_for(world: World, before: Job, after: Job) -> Usage:
    """What a change must know: nothing, unless it adds schedules."""
    more = after.schedule_count > before.schedule_count
    return usage.read(world.table, before.tenant) if more else Usage()


def is_exceeded(refused: Cancelled, seen: Usage) -> bool:
    """True if the quota that was seen refused the transaction; False if it did not, or is another one by now."""
    mine = refused.refused.get(usage.PART)
    there = mine.read(UsageItem) if mine is not None else None
    return there is not None and there.most_schedules is not None and there.most_schedules == seen.most_schedules


def exceeded(seen: Usage) -> QuotaExceeded:
    return QuotaExceeded(f"the tenant may have {seen.most_schedules} schedules at most")
