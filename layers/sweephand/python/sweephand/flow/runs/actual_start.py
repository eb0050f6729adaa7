"""An interval from the actual start: a run that starts late moves the occurrence after it."""

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
"""As a packed timing names it: to know without loading it that the others need nothing."""
LATE = timedelta(seconds=60)
CLOCKS = timedelta(seconds=5)
"""By how much the clocks of two functions may differ."""


def concerns(run: Run, schedule: Schedule | None) -> bool:
    """Did a run of such a schedule start more than a minute after its instant?"""
    if schedule is None or run.started_at is None or ALIGN not in schedule.packed:
        return False
    return run.started_at - run.planned_at > LATE


def follow(world: World, run: Run, schedule: Schedule) -> None:
    """The next occurrence lies an interval after this start [generation and next_run_at as read]. What it takes the
    place of was announced: a line of the ledger tells of it.

    What a tick may have sent already stays: it is on its way under its id. To lose the race against a tick changes
    nothing, nor does a table without time: the series then goes on in the old rhythm.
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
        world.journal.warning("a rhythm was not moved", schedule=schedule.id, reason=unavailable.reason)


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
        message="the run before started late, and the interval goes on from its start",
    )
