"""After a delete: a clean-up row ends the runs that are still open, then clears what is left of the job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from sweephand.messaging.run_queue import Delivery
from sweephand.store import keys, ledger
from sweephand.store.conditional import Op, Refused
from sweephand.store.expressions import assign
from sweephand.store.table import CleanUpItem, ScheduleItem
from sweephand.store.views import runs as views

FIRST_LOOK = timedelta(seconds=30)
PAGE = 100
MOST_ROWS = 1_000
"""That one look takes up: within the time of its function, whatever the job left."""


def of_job_op(world: World, job: Job, schedules: Sequence[Schedule], *, runs_too: bool = False) -> Op:
    """For a deleted job: its own runs, and those of all its schedules. runs_too: their rows go as well."""
    owners = [job.id, *(schedule.id for schedule in schedules)]
    return _op(world, job, owners, name="job", whole=True, runs_too=runs_too)


def of_schedules_ops(world: World, job: Job, gone: Sequence[Schedule]) -> list[Op]:
    """For schedules that were deleted from a job that stays."""
    return [_op(world, job, [schedule.id for schedule in gone], name=gone[0].id, whole=False)]


def _op(world: World, job: Job, owners: Sequence[str], *, name: str, whole: bool, runs_too: bool = False) -> Op:
    item = CleanUpItem(
        pk=keys.job(job.tenant, job.id),
        sk=keys.clean_up(name),
        shard=ids.shard_of(job.id, world.settings.shards),
        next_run_at=epoch_s(world.clock.now() + FIRST_LOOK),
        sweep=str(SweepText(Waits.CLEAN_UP, Lane.FAST)),
        owners=json.dumps(owners),
        whole=whole,
        collection=job.collection,
        runs_too=True if runs_too else None,
    )
    return world.table.put_op("clean-up", item)


@dataclass(frozen=True)
class Progress:
    """How far a look came. owner: of the ledger partitions; uuid: the last run looked at there. held: an open run was
    still held by an executor, so that all of it must be looked at again.
    """

    owner: int = 0
    uuid: str = ""
    held: bool = False

    def __str__(self) -> str:
        return f"{self.owner} {self.uuid} {self.held:d}"

    @classmethod
    def read(cls, text: str | None) -> Progress:
        if text is None:
            return cls()
        owner, uuid, held = text.split(" ")
        return cls(int(owner), uuid, held == "1")


def clean(world: World, pointer: Pointer) -> None:
    """One look: runs that nobody holds end as CANCELLED/OWNER_GONE; when none is open any more, the rest goes.

    A look takes up a bounded number of rows, then the next one is asked for at once; its row wakes it in any case.
    """
    pk, sk = keys.job(pointer.tenant, pointer.job), keys.clean_up(pointer.run)
    item = world.table.get(CleanUpItem, pk, sk)
    if item is None:
        return
    owners = json.loads(item.owners)
    if item.whole:
        _drop_schedules(world, pk)
    before = Progress.read(item.progress)
    after = _end_runs(world, pointer.tenant, owners, before)
    if after.owner == len(owners) and not after.held:
        ledger_too = bool(item.runs_too)
        if _clear(world, pk, owners, whole=item.whole) and (not ledger_too or _forget_runs(world, pointer, owners)):
            world.table.delete(pk, sk)
            return
    elif after.owner == len(owners):
        world.table.update(pk, sk, [assign(CleanUpItem.progress, None)], CleanUpItem.pk.exists())
        return  # its row wakes the next look: by then the lease of those that were held is over
    world.table.update(pk, sk, [assign(CleanUpItem.progress, str(after))], CleanUpItem.pk.exists())
    world.queue.send_one(Delivery(pointer, world.clock.now(), Lane.FAST))


def _end_runs(world: World, tenant: str, owners: Sequence[str], before: Progress) -> Progress:
    """Looks at up to MOST_ROWS runs behind `before`."""
    here, looked = before, 0
    for n in range(before.owner, len(owners)):
        mark = (before.uuid, owners[n]) if n == before.owner and before.uuid else None
        for run in views.runs_of(world.table, tenant, owners[n], mark, PAGE):
            if looked == MOST_ROWS:
                return here
            looked += 1
            held = not run.finished and not _ended(world, run)
            here = Progress(n, run.uuid, here.held or held)
        here = Progress(n + 1, "", here.held)
    return here


def _clear(world: World, pk: str, owners: Sequence[str], *, whole: bool) -> bool:
    """True if nothing of it is left."""
    gone = 0
    for row in world.table.query_all(pk, consistent=True):
        if _goes(row["sk"]["S"], owners, whole=whole):
            if gone == MOST_ROWS:
                return False
            world.table.delete(pk, row["sk"]["S"])
            gone += 1
    return True


def _forget_runs(world: World, pointer: Pointer, owners: Sequence[str]) -> bool:
    """True if the ledger has nothing of them any more. A message of theirs that is still about finds no schedule."""
    gone = 0
    for owner in owners:
        pk = keys.runs(pointer.tenant, owner)
        for row in world.table.query_all(pk, consistent=True):
            if gone == MOST_ROWS:
                return False
            world.table.delete(pk, row["sk"]["S"])
            gone += 1
    return True


def _drop_schedules(world: World, pk: str) -> None:
    """Those that were too many for the delete's transaction: at once, so that no sweep goes on with them."""
    for row in world.table.query_all(pk, ScheduleItem.sk.startswith("SCH#"), consistent=True):
        world.table.delete(pk, row["sk"]["S"])


def _goes(sk: str, owners: Sequence[str], *, whole: bool) -> bool:
    """With a whole job all but the clean-up rows of schedules that went before it; else its schedules' counts, slots.

    Their payloads belong to the job's change log, and stay as long as that.
    """
    kind, *rest = keys.parts(sk)
    return kind != "CLEAN" if whole else kind in {"STATS", "SLOT", "GEN"} and rest[0] in owners


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
