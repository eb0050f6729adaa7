"""After a delete: a clean-up row ends the runs that are still open, then clears what is left of the job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from sweephand import ids
from sweephand.domain.instants import epoch_s
from sweephand.domain.job import Job
from sweephand.domain.message import Pointer
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.schedule import Lane, Schedule
from sweephand.domain.waiting import SweepText, Waits
from sweephand.flow import effects, settle
from sweephand.flow.world import World
from sweephand.store import keys, ledger
from sweephand.store.conditional import Op, Refused
from sweephand.store.table import CleanUpItem, ScheduleItem
from sweephand.store.views import runs as views

FIRST_LOOK = timedelta(seconds=30)
PAGE = 100


def of_job_op(world: World, job: Job, schedules: Sequence[Schedule]) -> Op:
    """For a deleted job: its own runs, and those of all its schedules."""
    return _op(world, job, [job.id, *(schedule.id for schedule in schedules)], name="job", whole=True)


def of_schedules_ops(world: World, job: Job, gone: Sequence[Schedule]) -> list[Op]:
    """For schedules that were deleted from a job that stays."""
    return [_op(world, job, [schedule.id for schedule in gone], name=gone[0].id, whole=False)]


def _op(world: World, job: Job, owners: Sequence[str], *, name: str, whole: bool) -> Op:
    item = CleanUpItem(
        pk=keys.job(job.tenant, job.id),
        sk=keys.clean_up(name),
        shard=ids.shard_of(job.id, world.settings.shards),
        next_run_at=epoch_s(world.clock.now() + FIRST_LOOK),
        sweep=str(SweepText(Waits.CLEAN_UP, Lane.FAST)),
        owners=json.dumps(owners),
        whole=whole,
        collection=job.collection,
    )
    return world.table.put_op("clean-up", item)


def clean(world: World, pointer: Pointer) -> None:
    """One look: runs that nobody holds end as CANCELLED/OWNER_GONE; when none is open any more, the rest goes."""
    pk, sk = keys.job(pointer.tenant, pointer.job), keys.clean_up(pointer.run)
    item = world.table.get(CleanUpItem, pk, sk)
    if item is None:
        return
    owners = json.loads(item.owners)
    if item.whole:
        _drop_schedules(world, pk)
    open_runs = 0
    for owner in owners:
        for run in views.runs_of(world.table, pointer.tenant, owner, None, PAGE):
            if not run.finished and not _ended(world, run):
                open_runs += 1
    if open_runs:
        return
    for row in world.table.query_all(pk, consistent=True):
        if _goes(row["sk"]["S"], owners, whole=item.whole):
            world.table.delete(pk, row["sk"]["S"])
    world.table.delete(pk, sk)


def _drop_schedules(world: World, pk: str) -> None:
    """Those that were too many for the delete's transaction: at once, so that no sweep goes on with them."""
    for row in world.table.query_all(pk, ScheduleItem.sk.startswith("SCH#"), consistent=True):
        world.table.delete(pk, row["sk"]["S"])


def _goes(sk: str, owners: Sequence[str], *, whole: bool) -> bool:
    """With a whole job all but the clean-up rows of schedules that went before it; else its schedules' counts, slots.

    Their payloads belong to the job's change log, and stay as long as that.
    """
    kind, *rest = keys.parts(sk)
    return kind != "CLEAN" if whole else kind in {"STATS", "SLOT"} and rest[0] in owners


def _ended(world: World, run: Run) -> bool:
    """False while an executor holds it: what it reports within its lease still counts."""
    now = world.clock.now()
    if run.state is State.TRIGGERED and run.lease_until is not None and run.lease_until > now:
        return False
    pointer = replace(ledger.pointer_to(run), instant=run.planned_at)
    ended = settle.end_unacted(world, Lane.FAST, pointer, run, State.CANCELLED, Reason.OWNER_GONE)
    if isinstance(ended, Refused):
        return False
    effects.after(world, ended, None, None)
    return True
