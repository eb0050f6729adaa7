"""Cleans up after a delete: ends occurrences that were due and runs that are open, then deletes the other rows.

The clean-up row keeps the deleted schedules as they were. So each occurrence that was due and had not begun gets its
row in the ledger, however late the executors are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import from_s
from sweephand.domain.job import Job
from sweephand.domain.message import Pointer, occurrence
from sweephand.domain.occurrences.account import Account
from sweephand.domain.occurrences.generations import Owed
from sweephand.domain.run import FAILED, Reason, Run, State
from sweephand.domain.schedule import Lane, Schedule, ScheduleState
from sweephand.schedules.timing import load_or_never
from sweephand.server.flow.audit import reconcile
from sweephand.server.flow.job_parts.clean_up_rows import Place, delete_schedules
from sweephand.server.flow.runs import effects, settle
from sweephand.server.flow.series import ranges, replan
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Refused
from sweephand.server.store.dynamo.expressions import assign
from sweephand.server.store.dynamo.table import CatchUpItem, CleanUpItem, ScheduleItem
from sweephand.server.store.jobs import clean_ups, jobs
from sweephand.server.store.runs import ledger, stats
from sweephand.server.store.views import runs as views

with lazy():
    from sweephand.domain import failure
    from sweephand.server.flow.errors import failures
    from sweephand.server.store.dynamo import flat_models

RECHECK_AFTER = timedelta(seconds=20)
PAGE = 100
MOST_ROWS = 1_000
"""Rows that one step covers, so that it ends within the time of its function."""


@dataclass(frozen=True)
class Progress:
    """The progress of a clean-up.

    owner: the index of the ledger partition. uuid: the last run examined there. held: whether an executor still held an
    open run, so that all partitions must be read again.
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
    """Writes the rows of the backlog, ends runs that no executor holds, and deletes the rest once no run is open.

    A step covers a limited number of rows and sends a message for the next step. If that is lost, the row's wake sends
    another.
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
    after = _end_runs(world, pointer.tenant, owners, before, job, clean_ups.message(item))
    if after.owner == len(owners) and not after.held:
        if item.whole and _others(world, item):
            # The other clean-ups will have ended before that, and need the rows that are deleted here.
            world.queue.send_one(Delivery(pointer, world.clock.now() + RECHECK_AFTER, Lane.FAST))
            return
        # Runs may be deleted although a message for one is still queued: it will find no schedule.
        runs = [keys.runs(pointer.tenant, owner) for owner in owners] if item.runs_too else []
        if _drop(world, [pk], lambda sk: _must_delete(sk, owners, whole=item.whole)) and _drop(
            world, runs, lambda _: True
        ):
            world.table.delete(pk, sk)
            return
    elif after.owner == len(owners):
        world.table.update(pk, sk, [assign(CleanUpItem.progress, None)], CleanUpItem.pk.exists())
        return  # the row wakes the next step, after the leases of the held runs are over
    world.table.update(pk, sk, [assign(CleanUpItem.progress, str(after))], CleanUpItem.pk.exists())
    world.queue.send_one(Delivery(pointer, world.clock.now(), Lane.FAST))


def _others(world: World, item: CleanUpItem) -> bool:
    """Returns whether schedules deleted before the job still need their statistics and plans to write their rows."""
    rows = world.table.query_all(item.pk, CleanUpItem.sk.startswith(keys.clean_up("")), consistent=True)
    return any(row["sk"]["S"] != item.sk and "schedules" in row for row in rows)


def _end_unbegun(world: World, item: CleanUpItem, job: Job | None) -> str | None:
    """Writes the rows of due occurrences. Returns the schedules left for the next step, packed."""
    assert item.schedules is not None
    rows = flat_models.unpack(item.schedules)
    at = from_s(item.deleted_at or 0)
    written = 0
    for n, row in enumerate(rows):
        if written >= ROWS_AT_ONCE:
            return flat_models.pack(rows[n:])
        (schedule,) = jobs.schedules_of(world.table, [ScheduleItem.from_raw_data(row)])
        written += end(world, Deleted(schedule, at, job, item.collection, item.why))
    return None


def _end_runs(
    world: World, tenant: str, owners: Sequence[str], before: Progress, job: Job | None, ended_by: str | None
) -> Progress:
    """Ends up to MOST_ROWS open runs after `before`, and archives the errors of a deleted job.

    ended_by: the message of the ended runs; None keeps theirs.
    """
    here, looked = before, 0
    failed: set[str] = set()
    for n in range(before.owner, len(owners)):
        mark = (before.uuid, owners[n]) if n == before.owner and before.uuid else None
        for run in views.runs_of(world.table, tenant, owners[n], mark, PAGE):
            if looked == MOST_ROWS:
                _close_errors(world, tenant, failed)
                return here
            looked += 1
            held = not run.finished and not _ended(world, run, job, ended_by)
            here = Progress(n, run.uuid, here.held or held)
            if job is None and run.state in FAILED and not run.is_gone(world.clock.now()):
                failed.add(failure.signature_of(run).id)
        here = Progress(n + 1, "", here.held)
    _close_errors(world, tenant, failed)
    return here


def _close_errors(world: World, tenant: str, groups: Iterable[str]) -> None:
    for group in sorted(groups):
        failures.close_of_deleted(world, tenant, group)


def _drop(world: World, partitions: Iterable[str], goes: Callable[[str], bool]) -> bool:
    """Deletes up to MOST_ROWS rows whose sort key `goes` accepts. Returns True if none is left."""
    rows = ((pk, row["sk"]["S"]) for pk in partitions for row in world.table.query_all(pk, consistent=True))
    for gone, key in enumerate(key for key in rows if goes(key[1])):
        if gone == MOST_ROWS:
            return False
        world.table.delete(*key)
    return True


def _drop_schedules(world: World, pointer: Pointer, item: CleanUpItem) -> None:
    """Deletes the schedules that exceeded the limit of the delete's transaction.

    This comes first, so that no sweep continues them.
    """
    sort = ScheduleItem.sk.startswith("SCH#")
    rows = [ScheduleItem.from_raw_data(row) for row in world.table.query_all(item.pk, sort, consistent=True)]
    at = world.clock.now() if item.deleted_at is None else from_s(item.deleted_at)
    where = Place(pointer.tenant, pointer.job, item.collection, item.why)
    delete_schedules(world, where, jobs.schedules_of(world.table, rows), at, with_rows=not item.runs_too)


def _must_delete(sk: str, owners: Sequence[str], *, whole: bool) -> bool:
    """Returns whether a row must be deleted.

    With a whole job, all rows but those of clean-ups are deleted; else only counts, slots and plans of the schedules.
    Payloads of schedules belong to the job's change log and stay as long as it does.
    """
    kind, *rest = keys.parts(sk)
    return kind != "CLEAN" if whole else kind in {"STATS", "SLOT", "GEN"} and rest[0] in owners


def _ended(world: World, run: Run, job: Job | None, ended_by: str | None) -> bool:
    """Ends the run. Returns False while an executor holds it, because a result within the lease still counts."""
    now = world.clock.now()
    if run.state is State.TRIGGERED and run.lease_until is not None and run.lease_until > now:
        return False
    pointer = replace(ledger.pointer_to(run), instant=run.planned_at)
    ended = settle.end_unacted(world, Lane.FAST, pointer, run, State.CANCELLED, Reason.OWNER_GONE, ended_by)
    if isinstance(ended, Refused):
        return False
    effects.after(world, ended, job, None)
    return True


ROWS_MOST = 100
"""Occurrences of one schedule that get a row each."""

ROWS_AT_ONCE = 1_000
"""A step of the clean-up begins no further schedule once it has written this many rows."""

INSTANTS_AT_ONCE = 100_000

HELD = State.SKIPPED, Reason.DISABLED, "its collection or its tenant was disabled"


@dataclass(frozen=True)
class Deleted:
    """A schedule as it was when it was deleted. at: the last instant that counts as before the delete.

    job: None if the job is deleted as well. collection: the job's collection. why: who deleted it, and the reason.
    """

    schedule: Schedule
    at: datetime
    job: Job | None
    collection: str | None
    why: str | None = None

    @property
    def cancelled(self) -> tuple[State, Reason, str]:
        by = "" if self.why is None else f", by {self.why}"
        return State.CANCELLED, Reason.OWNER_GONE, f"the schedule was deleted before it began{by}"


def end(world: World, deleted: Deleted) -> int:
    """Writes the rows of one schedule. Returns how many it wrote. May be repeated."""
    schedule = deleted.schedule
    written = 0
    if schedule.state is not ScheduleState.BROKEN:
        silence = replan.silence(schedule, load_or_never(schedule.packed), deleted.at, deleted.at)
        written += 0 if silence is None else _write_line(world, deleted, silence)
    if schedule.missed_to is not None:
        pk = keys.runs(schedule.tenant, schedule.id)
        for row in world.table.query_all(pk, CatchUpItem.sk.startswith(keys.catch_up("")), consistent=True):
            world.table.delete(pk, row["sk"]["S"])
    recorded = reconcile.account(world, schedule, stats.read(world.table, schedule))
    if recorded.next_at is not None:  # nothing from here on was sent, so it has no row that could have expired
        recorded = replace(
            recorded, remembered_from=min(recorded.remembered_from, recorded.next_at - timedelta(seconds=1))
        )
    until = deleted.at if recorded.whole else min(deleted.at, recorded.newest)
    while True:
        owed = recorded.owed(until, INSTANTS_AT_ONCE)
        due = _within_count([*owed, *_links_without_run(recorded, schedule, until)], schedule)
        written += _write(world, deleted, recorded.without_row(due))
        if len(owed) < INSTANTS_AT_ONCE:
            return written
        recorded = replace(recorded, since=owed[-1].instant)


def _links_without_run(recorded: Account, schedule: Schedule, until: datetime) -> list[Owed]:
    """Returns the last due occurrences of a series whose intervals follow actual starts.

    No later run proves that they were due.
    """
    force = recorded.generations[-1]
    if force.interval is None or recorded.next_at is None or schedule.state is not ScheduleState.ACTIVE:
        return []
    runs = [run for run in recorded.rows.values() if force.has(run.planned_at)]
    links = [recorded.next_at]
    while not runs and links[-1] - force.interval > force.began:
        links.append(links[-1] - force.interval)
    due = (instant for instant in reversed(links) if recorded.remembered_from < instant <= until)
    return [Owed(instant, schedule.generation) for instant in due]


def _within_count(owed: Sequence[Owed], schedule: Schedule) -> list[Owed]:
    """Leaves out instants beyond the schedule's count that no tick had reached.

    Instants with a row use up the count as well: the creation of a schedule sends what is due soon, before any tick.
    """
    count, unsent_from = load_or_never(schedule.packed).count, schedule.unsent_from
    in_order = sorted({each.instant: each for each in owed}.values(), key=lambda each: each.instant)
    if count is None or unsent_from is None or schedule.state is not ScheduleState.ACTIVE:
        return in_order
    sent = [each for each in in_order if each.instant < unsent_from]
    unsent = [each for each in in_order if each.instant >= unsent_from]
    return sent + unsent[: max(0, count - schedule.planned_total)]


def _write(world: World, deleted: Deleted, unbegun: Sequence[Owed]) -> int:
    held_from = deleted.schedule.held_from
    held = [each for each in unbegun if held_from is not None and each.instant >= held_from]
    sent = [each for each in unbegun if each not in held]
    written = _write_line(world, deleted, _line(world, deleted, held, HELD)) if held else 0
    if len(sent) > ROWS_MOST:
        return written + _write_line(world, deleted, _line(world, deleted, sent, deleted.cancelled))
    return written + sum(_write_row(world, deleted, each) for each in sent)


def _line(world: World, deleted: Deleted, owed: Sequence[Owed], end: tuple[State, Reason, str]) -> Run:
    schedule = deleted.schedule
    owner, span = (schedule.tenant, schedule.job_id, schedule.id), (owed[0].instant, owed[-1].instant, len(owed))
    return ranges.line(owner, end, span, owed[-1].generation, world.clock.now())


def _write_line(world: World, deleted: Deleted, line: Run) -> int:
    world.table.carry_out(ranges.op(world, line, deleted.collection))
    effects.after(world, line, deleted.job, None)
    return 1


def _write_row(world: World, deleted: Deleted, owed: Owed) -> int:
    """Writes the row if there is none. A run that began after all keeps its own end."""
    schedule = deleted.schedule
    pointer = occurrence(schedule.tenant, schedule.job_id, schedule.id, owed.instant, owed.generation)
    end, collection = deleted.cancelled, deleted.collection
    run = settle.end_unacted(world, schedule.lane, pointer, None, *end, collection=collection, counted=False)
    if isinstance(run, Refused):
        return 0
    effects.after(world, run, deleted.job, None)
    return 1
