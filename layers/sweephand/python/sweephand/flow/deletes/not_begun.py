"""Writes the ledger rows of occurrences that were due and had not begun when their schedule was deleted.

The clean-up compares the schedule, as it was deleted, with its ledger, as the audit does. An occurrence gets a row
under its own run id, written only if there is none. An executor that was frozen since before the delete meets that row
and calls nobody. More than `ROWS_MOST` occurrences of a schedule share one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sweephand.domain.job import Job
from sweephand.domain.message import occurrence
from sweephand.domain.occurrences.account import Account
from sweephand.domain.occurrences.generations import Owed
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.flow.audit import reconcile
from sweephand.flow.runs import effects, settle
from sweephand.flow.series import ranges, replan
from sweephand.flow.world import World
from sweephand.schedules.timing import load_or_never
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Refused
from sweephand.store.dynamo.table import CatchUpItem
from sweephand.store.runs import stats

ROWS_MOST = 100
"""Occurrences of one schedule that get a row each."""
ROWS_AT_ONCE = 1_000
"""A step of the clean-up begins no further schedule once it has written this many rows."""
INSTANTS_AT_ONCE = 100_000
CANCELLED = State.CANCELLED, Reason.OWNER_GONE, "the schedule was deleted before it began"
HELD = State.SKIPPED, Reason.DISABLED, "its collection or its tenant was disabled"


@dataclass(frozen=True)
class Deleted:
    """A schedule as it was deleted. at: the last instant that counts as before the delete.

    job: None if it is deleted as well. collection: the job's.
    """

    schedule: Schedule
    at: datetime
    job: Job | None
    collection: str | None


def end(world: World, deleted: Deleted) -> int:
    """Writes the rows of one schedule; may be repeated. Returns how many it wrote."""
    schedule = deleted.schedule
    written = 0
    if schedule.state is not ScheduleState.BROKEN:
        silence = replan.silence(schedule, load_or_never(schedule.packed), deleted.at, deleted.at)
        written += 0 if silence is None else _write_line(world, deleted, silence)
    if schedule.missed_to is not None:
        _drop_catch_ups(world, schedule)
    there = reconcile.account(world, schedule, stats.read(world.table, schedule))
    until = deleted.at if there.whole else min(deleted.at, there.newest)
    while True:
        owed = there.owed(until, INSTANTS_AT_ONCE)
        due = _within_count([*owed, *_links_without_run(there, schedule, until)], schedule)
        written += _write(world, deleted, there.without_row(due))
        if len(owed) < INSTANTS_AT_ONCE:
            return written
        there = replace(there, since=owed[-1].instant)


def _links_without_run(there: Account, schedule: Schedule, until: datetime) -> list[Owed]:
    """Returns the last due occurrences of a series that follows its actual starts; no later run proves them due."""
    force = there.generations[-1]
    if force.interval is None or there.next_at is None:
        return []
    runs = [run for run in there.rows.values() if force.has(run.planned_at)]
    links = [there.next_at]
    while not runs and links[-1] - force.interval > force.began:
        links.append(links[-1] - force.interval)
    return [Owed(instant, schedule.generation) for instant in reversed(links) if instant <= until]


def _within_count(owed: Sequence[Owed], schedule: Schedule) -> list[Owed]:
    """Leaves out instants beyond the schedule's count that no tick had reached.

    Instants with a row use up the count as well: creating a schedule sends what is due soon, before any tick.
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
        return written + _write_line(world, deleted, _line(world, deleted, sent, CANCELLED))
    return written + sum(_write_row(world, deleted, each) for each in sent)


def _line(world: World, deleted: Deleted, owed: Sequence[Owed], end: tuple[State, Reason, str]) -> Run:
    schedule = deleted.schedule
    state, reason, message = end
    return ranges.line(
        schedule.tenant,
        schedule.job_id,
        schedule.id,
        state=state,
        reason=reason,
        first=owed[0].instant,
        last=owed[-1].instant,
        count=len(owed),
        generation=owed[-1].generation,
        now=world.clock.now(),
        message=message,
    )


def _write_line(world: World, deleted: Deleted, line: Run) -> int:
    world.table.carry_out(ranges.op(world, line, deleted.collection))
    effects.after(world, line, deleted.job, None)
    return 1


def _write_row(world: World, deleted: Deleted, owed: Owed) -> int:
    """Writes the row if there is none: a run that began after all keeps its own end."""
    schedule = deleted.schedule
    pointer = occurrence(schedule.tenant, schedule.job_id, schedule.id, owed.instant, owed.generation)
    end, collection = CANCELLED, deleted.collection
    run = settle.end_unacted(world, schedule.lane, pointer, None, *end, collection=collection, counted=False)
    if isinstance(run, Refused):
        return 0
    effects.after(world, run, deleted.job, None)
    return 1


def _drop_catch_ups(world: World, schedule: Schedule) -> None:
    """Deletes the rows that would send its missed occurrences."""
    pk = keys.runs(schedule.tenant, schedule.id)
    for row in world.table.query_all(pk, CatchUpItem.sk.startswith(keys.catch_up("")), consistent=True):
        world.table.delete(pk, row["sk"]["S"])
