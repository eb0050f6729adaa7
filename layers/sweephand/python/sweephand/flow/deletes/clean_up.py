"""Cleans up after a delete: ends occurrences that were due and runs that are open, then deletes the other rows.

The clean-up row keeps the deleted schedules as they were. So each occurrence that was due and had not begun gets its
row in the ledger (not_begun.py), however late the executors are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from sweephand.domain.instants import from_s
from sweephand.domain.job import Job
from sweephand.domain.message import Pointer
from sweephand.domain.run import FAILED, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.flow.job_parts.clean_up_rows import Place, delete_schedules
from sweephand.flow.runs import effects, settle
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.messaging.run_queue import Delivery
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Refused
from sweephand.store.dynamo.expressions import assign
from sweephand.store.dynamo.table import CleanUpItem, ScheduleItem
from sweephand.store.jobs import jobs
from sweephand.store.runs import ledger
from sweephand.store.views import runs as views

with lazy():
    from sweephand.domain import failure
    from sweephand.flow.deletes import not_begun
    from sweephand.flow.errors import failures
    from sweephand.store.dynamo import compression

LOOK_AGAIN = timedelta(seconds=20)
PAGE = 100
MOST_ROWS = 1_000
"""Rows that one step covers, so that it ends within the time of its function."""


@dataclass(frozen=True)
class Progress:
    """The progress of a clean-up.

    owner: the index of the ledger partition; uuid: the last run examined there. held: an executor still held an open
    run, so all partitions must be read again.
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
    """Does one step: writes the rows of the backlog, ends runs that nobody holds; deletes the rest once none is open.

    A step covers a limited number of rows and sends a message for the next one; the row's wake replaces a lost one.
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
            # By then they no longer need the rows deleted here.
            world.queue.send_one(Delivery(pointer, world.clock.now() + LOOK_AGAIN, Lane.FAST))
            return
        ledger_too = bool(item.runs_too)
        if _clear(world, pk, owners, whole=item.whole) and (not ledger_too or _forget_runs(world, pointer, owners)):
            world.table.delete(pk, sk)
            return
    elif after.owner == len(owners):
        world.table.update(pk, sk, [assign(CleanUpItem.progress, None)], CleanUpItem.pk.exists())
        return  # the row wakes the next step, after the leases of the held runs are over
    world.table.update(pk, sk, [assign(CleanUpItem.progress, str(after))], CleanUpItem.pk.exists())
    world.queue.send_one(Delivery(pointer, world.clock.now(), Lane.FAST))


def _others(world: World, item: CleanUpItem) -> bool:
    """Says whether schedules deleted before the job still need their statistics and plans to write their rows."""
    found = world.table.query_all(item.pk, CleanUpItem.sk.startswith(keys.clean_up("")), consistent=True)
    return any(row["sk"]["S"] != item.sk and "schedules" in row for row in found)


def _end_unbegun(world: World, item: CleanUpItem, job: Job | None) -> str | None:
    """Writes the rows of due occurrences. Returns the schedules left for the next step, packed."""
    assert item.schedules is not None
    rows = compression.unpack(item.schedules)
    at = from_s(item.deleted_at or 0)
    written = 0
    for n, row in enumerate(rows):
        if written >= not_begun.ROWS_AT_ONCE:
            return compression.pack(rows[n:])
        (schedule,) = jobs.schedules_of(world.table, [ScheduleItem.from_raw_data(row)])
        written += not_begun.end(world, not_begun.Deleted(schedule, at, job, item.collection))
    return None


def _end_runs(world: World, tenant: str, owners: Sequence[str], before: Progress, job: Job | None) -> Progress:
    """Ends up to MOST_ROWS open runs after `before`, and archives the errors of a job that is gone."""
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
                failed.add(failure.signature_of(run).id)
        here = Progress(n + 1, "", here.held)
    _close_errors(world, tenant, failed)
    return here


def _close_errors(world: World, tenant: str, groups: Iterable[str]) -> None:
    for group in sorted(groups):
        failures.close_of_deleted(world, tenant, group)


def _clear(world: World, pk: str, owners: Sequence[str], *, whole: bool) -> bool:
    """Deletes the rows of the job or its schedules. Returns True if none is left."""
    gone = 0
    for row in world.table.query_all(pk, consistent=True):
        if _goes(row["sk"]["S"], owners, whole=whole):
            if gone == MOST_ROWS:
                return False
            world.table.delete(pk, row["sk"]["S"])
            gone += 1
    return True


def _forget_runs(world: World, pointer: Pointer, owners: Sequence[str]) -> bool:
    """Deletes the runs. Returns True if none is left; a message still in the queue then finds no schedule."""
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
    """Deletes the schedules beyond the limit of the delete's transaction, first, so that no sweep continues them."""
    sort = ScheduleItem.sk.startswith("SCH#")
    rows = [ScheduleItem.from_raw_data(row) for row in world.table.query_all(item.pk, sort, consistent=True)]
    at = world.clock.now() if item.deleted_at is None else from_s(item.deleted_at)
    where = Place(pointer.tenant, pointer.job, item.collection)
    delete_schedules(world, where, jobs.schedules_of(world.table, rows), at, with_rows=not item.runs_too)


def _goes(sk: str, owners: Sequence[str], *, whole: bool) -> bool:
    """Says whether a row is deleted: for a whole job, all but clean-up rows; else the schedules' counts, slots, plans.

    Payloads of schedules belong to the job's change log and stay as long as it does.
    """
    kind, *rest = keys.parts(sk)
    return kind != "CLEAN" if whole else kind in {"STATS", "SLOT", "GEN"} and rest[0] in owners


def _ended(world: World, run: Run, job: Job | None) -> bool:
    """Ends the run; returns False while an executor holds it, because its result within the lease still counts."""
    now = world.clock.now()
    if run.state is State.TRIGGERED and run.lease_until is not None and run.lease_until > now:
        return False
    pointer = replace(ledger.pointer_to(run), instant=run.planned_at)
    ended = settle.end_unacted(world, Lane.FAST, pointer, run, State.CANCELLED, Reason.OWNER_GONE)
    if isinstance(ended, Refused):
        return False
    effects.after(world, ended, job, None)
    return True
