"""Moves a series whose interval follows actual starts, if a run starts long after its planned instant."""

from __future__ import annotations

from datetime import timedelta

from sweephand.domain.instants import epoch_s
from sweephand.domain.occurrences import series
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.schedules import timing as timings
from sweephand.server.flow.concurrency import tolerated
from sweephand.server.flow.series import ranges
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.expressions import assign
from sweephand.server.store.dynamo.table import ScheduleItem
from sweephand.server.store.jobs import jobs

LATE = timedelta(seconds=60)
"""How long after its instant a run must start to move its series."""
CLOCKS = timedelta(seconds=5)
"""The most by which the clocks of two functions may differ."""
REPLACED = (
    State.MISSED,
    Reason.SERVICE_OUTAGE,
    "the run before it started late, and the interval is counted from that start",
)


def follow(world: World, run: Run, schedule: Schedule) -> None:
    """Moves the next occurrence to one interval after a late start [generation and next_run_at as read].

    A range in the ledger records the planned occurrences that this replaces. Occurrences that a tick may already have
    sent stay, because their messages are on their way. If a tick is faster or the table does not answer, the series
    keeps its old rhythm.
    """
    assert run.started_at is not None
    if run.started_at - run.planned_at <= LATE:
        return
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
    count = -((old - upcoming) // step)
    owner, span = (schedule.tenant, schedule.job_id, schedule.id), (old, old + (count - 1) * step, count)
    line = ranges.line(owner, REPLACED, span, schedule.generation, world.clock.now(), schedule.packed)
    moved = [
        assign(ScheduleItem.next_run_at, epoch_s(upcoming)),
        assign(ScheduleItem.missed_from, epoch_s(span[0])),
        assign(ScheduleItem.missed_to, epoch_s(span[1])),
    ]
    with tolerated(world, "the series keeps its old rhythm", schedule=schedule.id):
        world.queue.send_one(ranges.word_of(line, world.clock.now(), schedule.lane))
        ops = [world.table.update_op("schedule", *key, moved, jobs.as_read(schedule))]
        world.table.transact([*ops, *ranges.missed_ops(world, [line], schedule.collection)])
