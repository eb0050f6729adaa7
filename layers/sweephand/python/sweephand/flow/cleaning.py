"""After a delete: a clean-up row ends what was due and the runs that are still open, then clears what is left.

The row keeps the deleted schedules as they were, so that each occurrence that was due and had not begun gets its row in
the ledger (unbegun.py), however long executors are away.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sweephand import ids
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.job import Job
from sweephand.domain.message import Pointer
from sweephand.domain.run import FAILED, Reason, Run, State
from sweephand.domain.schedule import OVER, Lane, Schedule, ScheduleState
from sweephand.domain.waiting import SweepText, Waits
from sweephand.flow import effects, settle
from sweephand.flow.world import World
from sweephand.messaging.run_queue import Delivery
from sweephand.store import jobs, keys, ledger
from sweephand.store.conditional import Op, Refused
from sweephand.store.expressions import assign
from sweephand.store.table import CleanUpItem, ScheduleItem, raw
from sweephand.store.views import runs as views

FIRST_LOOK = timedelta(seconds=30)
LOOK_AGAIN = timedelta(seconds=20)
PAGE = 100
WHOLE_JOB = "job"
"""The name of the clean-up row of a whole job; of schedules it is the first one's id."""
SCHEDULES_AT_ONCE = 40
"""Schedules that one transaction deletes beside the job's own."""
MOST_ROWS = 1_000
"""That one look takes up: within the time of its function, whatever the job left."""


@dataclass(frozen=True)
class Place:
    """Where schedules were: a job that may be gone."""

    tenant: str
    job_id: str
    collection: str | None

    @classmethod
    def of(cls, job: Job) -> Place:
        return cls(job.tenant, job.id, job.collection)


def of_job_op(
    world: World,
    job: Job,
    schedules: Sequence[Schedule],
    deleted_at: datetime,
    *,
    with_rows: Sequence[Schedule],
    runs_too: bool = False,
) -> Op:
    """For a deleted job: its own runs, and those of all its schedules. runs_too: their rows go as well.

    with_rows: the schedules that go in the same transaction.
    """
    owners = [job.id, *(schedule.id for schedule in schedules)]
    item = _item(world, Place.of(job), owners, deleted_at, name=WHOLE_JOB)
    item.whole = True
    item.runs_too = True if runs_too else None
    item.schedules = None if runs_too else _packed(with_rows, deleted_at)
    return world.table.put_op("clean-up", item)


def of_schedules_ops(world: World, where: Place, gone: Sequence[Schedule], deleted_at: datetime) -> list[Op]:
    """For schedules that were deleted from a job that stays, or that went before them."""
    item = _item(world, where, [schedule.id for schedule in gone], deleted_at, name=gone[0].id)
    item.schedules = _packed(gone, deleted_at)
    return [world.table.put_op("clean-up", item)]


def _item(world: World, where: Place, owners: Sequence[str], deleted_at: datetime, *, name: str) -> CleanUpItem:
    return CleanUpItem(
        pk=keys.job(where.tenant, where.job_id),
        sk=keys.clean_up(name),
        shard=ids.shard_of(where.job_id, world.settings.shards),
        next_run_at=epoch_s(deleted_at + FIRST_LOOK),
        sweep=str(SweepText(Waits.CLEAN_UP, Lane.FAST)),
        owners=json.dumps(owners),
        whole=False,
        collection=where.collection,
        deleted_at=epoch_s(deleted_at),
    )


def _packed(schedules: Iterable[Schedule], deleted_at: datetime) -> str | None:
    """Packs the rows of those that may have something due and not begun; None if there are none."""
    bare = [
        replace(each, timing={}, policies={}, attributes={}, payload_version=None)
        for each in schedules
        if _may_have_backlog(each, deleted_at)
    ]
    from sweephand.store.packed import pack  # noqa: PLC0415 - most requests delete nothing

    return pack([raw(jobs.schedule_item(each, 1)) for each in bare]) if bare else None


def _may_have_backlog(schedule: Schedule, now: datetime) -> bool:
    """Says whether anything of it can have been due and not begun. A schedule that is over ended all its runs."""
    if schedule.state in OVER:
        return False
    untouched = schedule.state is ScheduleState.ACTIVE and not schedule.ended_at and not schedule.planned_total
    return not (untouched and schedule.unsent_from is not None and schedule.unsent_from > now)


def note_delay(world: World, where: Place, deleted_at: datetime, name: str = WHOLE_JOB) -> None:
    """Moves `deleted_at` on if the next second began before the delete stood: what fell due with it was before it."""
    stood_at = epoch_s(world.clock.now())
    if stood_at > epoch_s(deleted_at):
        key = keys.job(where.tenant, where.job_id), keys.clean_up(name)
        world.table.update(*key, [assign(CleanUpItem.deleted_at, stood_at)], CleanUpItem.pk.exists())


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
    """One look: backlog gets its rows, runs that nobody holds end; when none is open any more, the rest goes.

    A look takes up a bounded number of rows, then the next one is asked for at once; its row wakes it in any case.
    """
    pk, sk = keys.job(pointer.tenant, pointer.job), keys.clean_up(pointer.run)
    item = world.table.get(CleanUpItem, pk, sk)
    if item is None:
        return
    if item.whole:
        _drop_schedules(world, pointer, item)
    job = None if item.whole else jobs.read_job(world.table, pointer.tenant, pointer.job)
    if item.schedules is not None:
        left = _end_unbegun(world, item, job)
        world.table.update(pk, sk, [assign(CleanUpItem.schedules, left)], CleanUpItem.pk.exists())
        if left is not None:
            world.queue.send_one(Delivery(pointer, world.clock.now(), Lane.FAST))
            return
    _end_and_clear(world, pointer, item, job)


def _end_and_clear(world: World, pointer: Pointer, item: CleanUpItem, job: Job | None) -> None:
    pk, sk, owners = item.pk, item.sk, json.loads(item.owners)
    before = Progress.read(item.progress)
    after = _end_runs(world, pointer.tenant, owners, before, job)
    if after.owner == len(owners) and not after.held:
        if item.whole and _others(world, item):
            # By then they are through with what it clears.
            world.queue.send_one(Delivery(pointer, world.clock.now() + LOOK_AGAIN, Lane.FAST))
            return
        ledger_too = bool(item.runs_too)
        if _clear(world, pk, owners, whole=item.whole) and (not ledger_too or _forget_runs(world, pointer, owners)):
            world.table.delete(pk, sk)
            return
    elif after.owner == len(owners):
        world.table.update(pk, sk, [assign(CleanUpItem.progress, None)], CleanUpItem.pk.exists())
        return  # its row wakes the next look: by then the lease of those that were held is over
    world.table.update(pk, sk, [assign(CleanUpItem.progress, str(after))], CleanUpItem.pk.exists())
    world.queue.send_one(Delivery(pointer, world.clock.now(), Lane.FAST))


def _others(world: World, item: CleanUpItem) -> bool:
    """Says whether schedules that were deleted by themselves still need their statistics and plans for their rows."""
    found = world.table.query_all(item.pk, CleanUpItem.sk.startswith(keys.clean_up("")), consistent=True)
    return any(row["sk"]["S"] != item.sk and "schedules" in row for row in found)


def _end_unbegun(world: World, item: CleanUpItem, job: Job | None) -> str | None:
    """Returns the schedules that are left for the next look, packed."""
    from sweephand.flow import unbegun  # noqa: PLC0415 - the API, which only writes the row, needs none of it
    from sweephand.store.packed import pack, unpack  # noqa: PLC0415 - as above

    assert item.schedules is not None
    rows = unpack(item.schedules)
    at = from_s(item.deleted_at or 0)
    written = 0
    for n, row in enumerate(rows):
        if written >= unbegun.ROWS_AT_ONCE:
            return pack(rows[n:])
        (schedule,) = jobs.schedules_of(world.table, [ScheduleItem.from_raw_data(row)])
        written += unbegun.end(world, unbegun.Deleted(schedule, at, job, item.collection))
    return None


def _end_runs(world: World, tenant: str, owners: Sequence[str], before: Progress, job: Job | None) -> Progress:
    """Looks at up to MOST_ROWS runs after `before`, and closes the errors of a job that is gone."""
    from sweephand.domain.failure import signature_of  # noqa: PLC0415 - the API needs none of it

    here, looked = before, 0
    failed: set[str] = set()
    for n in range(before.owner, len(owners)):
        mark = (before.uuid, owners[n]) if n == before.owner and before.uuid else None
        for run in views.runs_of(world.table, tenant, owners[n], mark, PAGE):
            if looked == MOST_ROWS:
                _close_errors(world, tenant, failed)
                return here
            looked += 1
            held = not run.finished and not _ended(world, run, job)
            here = Progress(n, run.uuid, here.held or held)
            if job is None and run.state in FAILED and not run.is_gone(world.clock.now()):
                failed.add(signature_of(run).id)
        here = Progress(n + 1, "", here.held)
    _close_errors(world, tenant, failed)
    return here


def _close_errors(world: World, tenant: str, groups: Iterable[str]) -> None:
    from sweephand.flow import failures  # noqa: PLC0415 - the API, which only writes the row, needs none of it

    for group in sorted(groups):
        failures.close_of_deleted(world, tenant, group)


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


def _drop_schedules(world: World, pointer: Pointer, item: CleanUpItem) -> None:
    """Takes out those that were too many for the delete's transaction: at once, so that no sweep goes on with them."""
    sort = ScheduleItem.sk.startswith("SCH#")
    rows = [ScheduleItem.from_raw_data(row) for row in world.table.query_all(item.pk, sort, consistent=True)]
    at = world.clock.now() if item.deleted_at is None else from_s(item.deleted_at)
    where = Place(pointer.tenant, pointer.job, item.collection)
    delete_schedules(world, where, jobs.schedules_of(world.table, rows), at, with_rows=not item.runs_too)


def delete_schedules(
    world: World, where: Place, schedules: Sequence[Schedule], deleted_at: datetime, *, with_rows: bool
) -> None:
    """Deletes schedules of a job that is gone, some in a transaction, with a clean-up row for the backlog of each
    such part. Harmless to repeat.
    """
    pk = keys.job(where.tenant, where.job_id)
    for begin in range(0, len(schedules), SCHEDULES_AT_ONCE):
        part = schedules[begin : begin + SCHEDULES_AT_ONCE]
        rest = of_schedules_ops(world, where, part, deleted_at) if with_rows else []
        gone = [world.table.delete_op(f"schedule {each.id}", pk, keys.schedule(each.id)) for each in part]
        world.table.transact([*rest, *gone])


def _goes(sk: str, owners: Sequence[str], *, whole: bool) -> bool:
    """With a whole job all but the clean-up rows of schedules that went before it; else its schedules' counts, slots.

    Their payloads belong to the job's change log, and stay as long as that.
    """
    kind, *rest = keys.parts(sk)
    return kind != "CLEAN" if whole else kind in {"STATS", "SLOT", "GEN"} and rest[0] in owners


def _ended(world: World, run: Run, job: Job | None) -> bool:
    """False while an executor holds it: what it reports within its lease still counts."""
    now = world.clock.now()
    if run.state is State.TRIGGERED and run.lease_until is not None and run.lease_until > now:
        return False
    pointer = replace(ledger.pointer_to(run), instant=run.planned_at)
    ended = settle.end_unacted(world, Lane.FAST, pointer, run, State.CANCELLED, Reason.OWNER_GONE)
    if isinstance(ended, Refused):
        return False
    effects.after(world, ended, job, None)
    return True
