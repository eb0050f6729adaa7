"""The end of a series: an ENDING schedule is COMPLETED once every occurrence that was sent has ended."""

from __future__ import annotations

import math

from sweephand.domain.collection import Events
from sweephand.domain.job import Job
from sweephand.domain.message import Pointer
from sweephand.domain.schedule import Schedule, ScheduleState, StateReason
from sweephand.flow.world import World
from sweephand.store import jobs, keys
from sweephand.store.conditional import Refused, assign
from sweephand.store.standing import KEPT_S
from sweephand.store.table import ScheduleItem
from sweephand.store.views import runs as views


def look(world: World, pointer: Pointer) -> None:
    """What the wake row of an ENDING schedule asks for."""
    assert pointer.schedule is not None
    schedule = jobs.read_schedule(world.table, pointer.tenant, pointer.job, pointer.schedule)
    if schedule is not None and schedule.state is ScheduleState.ENDING:
        complete_if_over(world, schedule)
    elif schedule is not None and schedule.state is ScheduleState.COMPLETED:
        tell(world, schedule)


def complete_if_over(world: World, schedule: Schedule, job: Job | None = None) -> None:
    """COMPLETED [ENDING, planned_total as read] once terminal counted rows = planned_total; then its event.

    Found COMPLETED already, the event goes out again under its own id: who wrote that may have died before it.
    """
    totals = views.totals_of(world.table, schedule)
    if totals.ended < schedule.planned_total:
        return
    still = (ScheduleItem.state == ScheduleState.ENDING.value) & (ScheduleItem.planned_total == schedule.planned_total)
    actions = [
        assign(ScheduleItem.state, ScheduleState.COMPLETED.value),
        assign(ScheduleItem.state_reason, completion_reason(schedule).value),
        assign(ScheduleItem.next_run_at, None),
        assign(ScheduleItem.schedule_id, None),
    ]
    result = world.table.update(keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id), actions, still)
    if not isinstance(result, Refused):
        world.journal.info("completed", tenant=schedule.tenant, job=schedule.job_id, schedule=schedule.id)
    elif not _completed(result):
        return
    tell(world, schedule, job)


def _completed(refused: Refused) -> bool:
    there = refused.read(ScheduleItem)
    return there is not None and there.state == ScheduleState.COMPLETED.value


def tell(world: World, schedule: Schedule, job: Job | None = None) -> None:
    """The event of a completed schedule, where its collection has all told.

    job: as this delivery's gate read it together with its collection, so that neither is read again.
    """
    kept_s = KEPT_S if job is None else math.inf
    job = job or jobs.read_job(world.table, schedule.tenant, schedule.job_id)
    if job is None or world.standing.of(job.tenant, job.collection, kept_s=kept_s).events is not Events.ALL:
        return
    from sweephand.flow import announce  # noqa: PLC0415 - most collections tell failures only

    announce.schedule_completed(world, schedule, completion_reason(schedule), job)


def completion_reason(schedule: Schedule) -> StateReason:
    from sweephand.schedules.timing import load  # noqa: PLC0415 - an executor needs no schedule but here

    timing = load(schedule.packed)
    if not timing.recurring:
        return StateReason.ONE_TIME_DONE
    if timing.count is not None and schedule.planned_total >= timing.count:
        return StateReason.COUNT_REACHED
    if timing.has_end:
        return StateReason.END_REACHED
    return StateReason.NO_FUTURE_DATES
