"""Completes series: an ENDING schedule becomes COMPLETED or FAULTED once every occurrence that was sent has ended."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

from sweephand.base import ids
from sweephand.base.errors import Unavailable
from sweephand.base.lazy import lazy
from sweephand.domain.collection import Events
from sweephand.domain.instants import EPOCH, FAR, epoch_ms, epoch_s, from_ms, from_s
from sweephand.domain.job import Job
from sweephand.domain.message import Pointer
from sweephand.domain.occurrences.index_row import WAKE_AGAIN
from sweephand.domain.run import FAILED, Kind, Run
from sweephand.domain.schedule import LIVE, OVER, Schedule, ScheduleState, StateReason
from sweephand.server.flow import retention
from sweephand.server.flow.concurrency import TRIES, Moved, until_unmoved
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Refused
from sweephand.server.store.dynamo.expressions import assign
from sweephand.server.store.dynamo.table import ScheduleItem
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import stats
from sweephand.server.store.tenants.tenants import TERMS_KEPT_S
from sweephand.server.store.views import runs as views

with lazy():
    from sweephand.domain.jobs import job_state
    from sweephand.domain.occurrences import series
    from sweephand.schedules import timing as timings
    from sweephand.server.flow import events
    from sweephand.server.flow.job_parts import expiry
    from sweephand.server.store.index import next_run_index
    from sweephand.server.store.jobs import directory

SECOND = timedelta(seconds=1)


def wake_up(world: World, pointer: Pointer) -> None:
    """Carries out the wake row of an ENDING schedule: completes it if all its runs have ended."""
    assert pointer.schedule is not None
    schedule = jobs.read_schedule(world.table, pointer.tenant, pointer.job, pointer.schedule)
    if schedule is not None and schedule.state is ScheduleState.ENDING:
        complete_if_over(world, schedule)  # if it is not over, the row wakes it again
    elif schedule is not None and schedule.state in OVER:
        publish_completion(world, schedule)


def after_run(world: World, run: Run, schedule_read: Schedule, job: Job | None) -> None:
    """Completes the series of a run that has ended, if no other run of the series is open.

    schedule_read: the schedule as the run's gate read it. It is read again, because it may have been advanced or
    changed during the run.
    """
    for _ in range(TRIES):
        schedule = jobs.read_schedule(world.table, schedule_read.tenant, schedule_read.job_id, schedule_read.id)
        if schedule is None or schedule.state not in LIVE | OVER:
            return
        if schedule.state in OVER:
            if run.kind is Kind.SCHEDULED:
                publish_completion(world, schedule, job)
            return
        if schedule.state is ScheduleState.ACTIVE and not _ends_with(world, run, schedule):
            return
        if schedule.state is ScheduleState.ENDING and complete_if_over(world, schedule, job):
            return


def _ends_with(world: World, run: Run, schedule: Schedule) -> bool:
    """Moves a schedule to ENDING if all its remaining occurrences have runs before any tick has reached it.

    A creation or a change may have sent them at once. Returns False if the series continues, or if an occurrence was
    not sent: the next tick sends that one.
    """
    at, now = schedule.next_run_at, world.clock.now()
    if at is None or schedule.held_from is not None or at > run.planned_at:
        return False
    timing = timings.load_or_never(schedule.packed)
    stretch = series.due(timing, at, run.planned_at, schedule.planned_total, now)
    if not timing.readable or stretch.next_at is not None or not stretch.instants:
        return False
    last = stretch.instants[-1]
    rows = views.planned_between(world.table, schedule.tenant, schedule.id, at - SECOND, last)
    if not {run.planned_at for run in rows}.issuperset(stretch.instants):
        return False
    row = next_run_index.WaitingRow.of(schedule, jobs.sweep_text(schedule))
    planned_total = schedule.planned_total + len(stretch.instants)
    step = next_run_index.Advance(row, max(last, now) + WAKE_AGAIN, planned_total, ending=True, last_at=last)
    if next_run_index.advance(world.table, [step], world.shards).again:
        raise Unavailable("the end of a series could not be written")
    return True


def complete_if_over(world: World, schedule: Schedule, job: Job | None = None) -> bool:
    """Writes COMPLETED or FAULTED [ENDING, planned_total as read] once planned_total runs have ended; sends the event.

    Returns False if something came in between: then the schedule must be read again. If the schedule was already over,
    sends the event again under the same id, because the writer may have died before sending it. The totals are settled
    first, because the audit no longer covers a schedule that is over, and its rows will expire.
    """
    before = stats.read(world.table, schedule)
    since = EPOCH if before.settled_to is None else from_ms(before.settled_to)
    rows = views.planned_between(world.table, schedule.tenant, schedule.id, since, FAR)
    runs = [run for run in rows if run.range_count is None]
    ended = sum(run.finished for run in runs)
    if before.settled_total + ended < schedule.planned_total:
        return True
    faulted = before.failed > 0 and _faulted(world, schedule)
    state = ScheduleState.FAULTED if faulted else ScheduleState.COMPLETED
    if runs and ended == len(runs):
        last = max(run.planned_at for run in runs)
        settled = stats.settle(world.table, before, last, ended=ended, planned=ended)
        if isinstance(settled, Refused):
            return False  # another process settled the totals at the same time
    still = (ScheduleItem.state == ScheduleState.ENDING.value) & (ScheduleItem.planned_total == schedule.planned_total)
    over = replace(schedule, state=state, completed_at=from_s(epoch_s(world.clock.now())))
    job = job or jobs.read_job(world.table, schedule.tenant, schedule.job_id)
    goes_at = expiry.goes_at(over, retention.retention_of(world, schedule.tenant, schedule.collection), job)
    actions = [
        assign(ScheduleItem.state, state.value),
        assign(ScheduleItem.state_reason, completion_reason(schedule).value),
        assign(ScheduleItem.sweep, jobs.sweep_text(over)),
        assign(ScheduleItem.next_run_at, None if goes_at is None else epoch_s(goes_at)),
        assign(ScheduleItem.schedule_id, None),
    ]
    marked = mark_job(world, schedule.tenant, schedule.job_id, replace(schedule, state=state))
    result = world.table.update(keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id), actions, still)
    if not isinstance(result, Refused):
        world.journal.info("completed", tenant=schedule.tenant, job=schedule.job_id, schedule=schedule.id)
    else:
        current = result.read(ScheduleItem)
        if current is None or ScheduleState(current.state) not in OVER:
            return False
    if not marked:
        mark_job(world, schedule.tenant, schedule.job_id)
    publish_completion(world, over, job)
    return True


@until_unmoved("changes to this job")
def mark_job(world: World, tenant: str, job_id: str, ending: Schedule | None = None) -> bool:
    """Marks a job as ended in the directory if all its schedules are over. Returns whether it did.

    Call it before the last schedule is written as over (ending: that schedule, as it will be), so that the schedule's
    wake row repairs a crash in between. Call it afterwards as well, because two schedules that end at once see each
    other as ENDING. A concurrent change raises the job's revision; then the schedules are read again.
    """
    job = jobs.read_job(world.table, tenant, job_id)
    if job is None:
        return False
    schedules = jobs.read_schedules(world.table, tenant, job_id)
    if ending is not None:
        schedules = [
            ending if (each.id, each.state) == (ending.id, ScheduleState.ENDING) else each for each in schedules
        ]
    ended = job_state.ended_state(schedules)
    if ended is None:
        return False
    if not directory.mark_ended(world.table, job, ended):
        raise Moved
    return True


def publish_completion(world: World, schedule: Schedule, job: Job | None = None) -> None:
    """Publishes that a schedule is over, if its collection publishes all events.

    job: as the gate of this delivery read it, together with its collection. Then neither is read again.
    """
    kept_s = TERMS_KEPT_S if job is None else math.inf
    job = job or jobs.read_job(world.table, schedule.tenant, schedule.job_id)
    if job is None or world.terms.of(job.tenant, job.collection, kept_s=kept_s).events is not Events.ALL:
        return
    events.schedule_completed(world, schedule, completion_reason(schedule), job)


def _faulted(world: World, schedule: Schedule) -> bool:
    """Returns whether a one-time schedule's run failed. A recurring schedule completes even if runs failed."""
    if timings.load(schedule.packed).recurring or schedule.last_planned_at is None:
        return False
    planned_at = epoch_ms(schedule.last_planned_at)
    uuid = ids.run_uuid(schedule.tenant, schedule.id, planned_at, Kind.SCHEDULED.value)
    run = views.read(world.table, schedule.tenant, schedule.id, uuid)
    return run is None or run.state in FAILED  # a failure was counted, and its row may have expired


def completion_reason(schedule: Schedule) -> StateReason:
    timing = timings.load(schedule.packed)
    if not timing.recurring:
        return StateReason.ONE_TIME_DONE if schedule.planned_total else StateReason.NO_FUTURE_DATES
    if timing.count is not None and schedule.planned_total >= timing.count:
        return StateReason.COUNT_REACHED if "count" in schedule.timing else StateReason.QUOTA_REACHED
    if timing.has_end:
        return StateReason.END_REACHED
    return StateReason.NO_FUTURE_DATES
