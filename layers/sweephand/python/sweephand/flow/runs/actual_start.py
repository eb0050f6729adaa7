"""Moves the next occurrence of an interval from the actual start after a run that started late."""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.domain.instants import epoch_s
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.errors import Unavailable
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.expressions import assign
from sweephand.store.dynamo.table import ScheduleItem
from sweephand.store.jobs import jobs

with lazy():
    from sweephand.domain.occurrences import series
    from sweephand.flow.series import ranges
    from sweephand.schedules import timing as timings

ALIGN = '"actual_start"'
"""The name in a packed timing. A timing without it needs nothing, and need not be loaded."""
LATE = timedelta(seconds=60)
CLOCKS = timedelta(seconds=5)
"""The most by which the clocks of two functions may differ."""


def concerns(run: Run, schedule: Schedule | None) -> bool:
    """Returns whether the schedule is such an interval and its run started more than a minute after its instant."""
    if schedule is None or run.started_at is None or ALIGN not in schedule.packed:
        return False
    return run.started_at - run.planned_at > LATE


def follow(world: World, run: Run, schedule: Schedule) -> None:
    """Moves the next occurrence to an interval after this start [generation and next_run_at as read].

    A line of the ledger records the announced occurrences that this replaces. Occurrences that a tick may already have
    sent stay, because they are on their way under their ids. If a tick is faster or the table does not answer, the
    series goes on in the old rhythm.
    """
    assert run.started_at is not None
    old, newest = schedule.next_run_at, schedule.generation
    if schedule.state is not ScheduleState.ACTIVE or schedule.held_from or run.generation != newest or old is None:
        return
    timing = timings.load(schedule.packed)
    upcoming = series.following(timing, run.planned_at, run.started_at)
    sent_to = world.clock.now() + timedelta(seconds=world.settings.look_ahead_s) + CLOCKS
    if upcoming is None or upcoming <= old or old <= sent_to:
        return
    key = keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)
    step = timedelta(seconds=timing.actual_start_interval_s or 0)
    line = _line(schedule, old, -((old - upcoming) // step), step, world.clock.now())
    moved = [assign(ScheduleItem.next_run_at, epoch_s(upcoming))]
    try:
        world.queue.send_one(ranges.word_of(line, world.clock.now(), schedule.lane))
        ops = [world.table.update_op("schedule", *key, moved, jobs.as_read(schedule))]
        world.table.transact([*ops, *ranges.missed_ops(world, [line], schedule.collection)])
    except Unavailable as unavailable:
        world.journal.warning("the series keeps its old rhythm", schedule=schedule.id, reason=unavailable.reason)


def _line(schedule: Schedule, first: datetime, count: int, step: timedelta, now: datetime) -> Run:
    return ranges.line(
        schedule.tenant,
        schedule.job_id,
        schedule.id,
        state=State.MISSED,
        reason=Reason.SERVICE_OUTAGE,
        first=first,
        last=first + (count - 1) * step,
        count=count,
        generation=schedule.generation,
        now=now,
        message="the run before it started late, and the interval is counted from that start",
    )
