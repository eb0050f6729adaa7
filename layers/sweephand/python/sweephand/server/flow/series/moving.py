"""Moves the next occurrence of schedules whose zone has newer data (domain.occurrences.moved). (Decision 0173.)

The sweep does so before it sends a row, a release and a change before they plan, and the audit long before the row is
due. Occurrences that were sent with the old data, up to 150 seconds ahead, run at their old instants.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.base.lazy import lazy
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.occurrences import moved
from sweephand.domain.occurrences.index_row import SweepText
from sweephand.domain.schedule import Lane, Schedule, ScheduleState, names_zone
from sweephand.schedules.rule import Undecided
from sweephand.schedules.timing import Timing, load, load_or_never
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Refused
from sweephand.server.store.index.next_run_index import WaitingRow
from sweephand.server.store.jobs import jobs

with lazy():
    from sweephand.server.flow import events

SENT_AHEAD = timedelta(minutes=5)
"""Longer than any function sends an occurrence ahead."""


def unsent_now(world: World, row: WaitingRow, sweep: SweepText, timing: Timing) -> datetime:
    """Returns the earliest unsent instant of a row by the loaded zone data. Reads the row only if it has moved."""
    unsent = sweep.since or row.next_run_at
    if not moved.is_moved(timing, unsent):
        return unsent
    schedule = jobs.read_schedule(world.table, row.tenant, row.owner, row.own_id)
    if schedule is None or (schedule.generation, schedule.unsent_from) != (row.generation, unsent):
        return unsent  # somebody has changed it since, so that nothing is written
    return _now(schedule, timing, world.clock.now()) or unsent


def is_moved(schedule: Schedule, now: datetime) -> bool:
    """Returns whether newer zone data has moved the next occurrence of a schedule."""
    if schedule.state is not ScheduleState.ACTIVE or not names_zone(schedule.packed):
        return False
    try:
        return _now(schedule, load_or_never(schedule.packed), now) != schedule.unsent_from
    except Undecided:
        return False  # the sweep takes it out of service


def follow(world: World, schedule: Schedule) -> bool:
    """Moves the next occurrence of a schedule if newer zone data has moved it [as read].

    Returns whether it had moved. The row of a held schedule keeps its instant until it is released.
    """
    now = world.clock.now()
    if schedule.held_from is not None or not is_moved(schedule, now):
        return False
    assert schedule.next_run_at is not None
    upcoming = _now(schedule, load(schedule.packed), now) or schedule.next_run_at
    key = keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)
    actions = jobs.next_at_actions(schedule.packed, upcoming)
    if not isinstance(world.table.update(*key, actions, jobs.as_read(schedule)), Refused):
        row = WaitingRow.of(schedule, jobs.sweep_text(schedule))
        world.queue.send([word_of(row, upcoming, schedule.lane, now)])
    return True


def word_of(row: WaitingRow, upcoming: datetime, lane: Lane, now: datetime) -> Delivery:
    """Returns the message for the event that an occurrence has moved from the row's instant to `upcoming`."""
    old = str(epoch_s(row.next_run_at))
    pointer = Pointer(row.tenant, row.owner, row.own_id, old, upcoming, subject=Subject.MOVED)
    return Delivery(pointer, now, lane.executors)


def publish(world: World, asked: Pointer) -> None:
    """Publishes that an occurrence has moved. May be repeated."""
    assert asked.schedule is not None
    job = jobs.read_job(world.table, asked.tenant, asked.job)
    schedule = jobs.read_schedule(world.table, asked.tenant, asked.job, asked.schedule)
    if job is not None and schedule is not None:
        events.schedule_moved(world, schedule, job, from_s(int(asked.run)), asked.instant)


def _now(schedule: Schedule, timing: Timing, now: datetime) -> datetime | None:
    """Returns the earliest unsent instant by the loaded data. An instant that nothing stands for stays.

    An earlier instant comes first only if it cannot have been sent: if the rule contains the old instant as well, or if
    nothing was sent and the data let an instant into a window whose limits have offsets.
    """
    unsent, is_new = schedule.unsent_from, schedule.planned_total == 0
    if unsent is None or unsent == schedule.first_at:
        return unsent
    if timing.actual_start_interval_s is not None and not is_new:
        return unsent  # it follows the actual start before it
    is_gone = moved.is_moved(timing, unsent)
    if not is_gone and schedule.offset_s in {None, moved.offset_of(schedule.packed, unsent)}:
        return unsent
    stands = moved.moved_to(timing, unsent, schedule.offset_s)
    upcoming = stands if stands is not None and (is_gone or now + SENT_AHEAD < stands < unsent) else unsent
    entered = timing.rule.next_after(now + SENT_AHEAD) if is_new else None
    return upcoming if entered is None else min(upcoming, entered)
