"""The provider's quotas for a tenant's runs: how many per minute, and how many may follow from one run.

They are checked once per run, when an executor first takes it up. A run above a quota ends as SKIPPED with the reason
QUOTA, and starts neither hook nor error action. (Decision 0075.)
"""

from __future__ import annotations

from sweephand.domain.collection import Pace
from sweephand.domain.message import Pointer
from sweephand.domain.run import Run
from sweephand.flow.rates import PARTS, Counters
from sweephand.flow.world import World
from sweephand.store.tenants import rates

RUNS_STEP = 10
"""Runs after which a process reports its count: a tenth of a write unit per run, only for tenants with the quota."""


def refusal(world: World, pointer: Pointer, run: Run | None, pace: Pace) -> str | None:
    """Counts a run that begins. Returns why it may not begin; None if it may. run: its row, if any. Raises Unavailable.

    A duplicate message may count a descendant twice; every descendant counts at least once.
    """
    if run is not None and not run.begins:
        return None
    most = pace.runs_per_minute
    if most is not None and _runs(world).count(world, pointer.tenant, max(RUNS_STEP, most // PARTS)) > most:
        return f"the provider allows this tenant {most} runs a minute (quota.runsPerMinute)"
    if run is None or run.root is None or run.parent_uuid is None:
        return None
    if rates.count_descendant(world.table, pointer.tenant, run.root, pace.descendants, world.clock.now()):
        return None
    return (
        f"the provider allows {pace.descendants} runs to follow from one run (quota.maxDescendants), "
        f"and as many have followed from {run.root}"
    )


def give_back(world: World, pointer: Pointer, run: Run | None, pace: Pace) -> None:
    """Takes back the count of a run that a duplicate of its message has begun in this minute."""
    if pace.runs_per_minute is not None and (run is None or run.begins):
        _runs(world).give_back(pointer.tenant)


def _runs(world: World) -> Counters:
    with world.memory.lock:
        if world.memory.runs is None:
            world.memory.runs = Counters("runs", lazily=True)
        return world.memory.runs
