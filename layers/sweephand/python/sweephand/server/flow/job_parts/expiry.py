"""Dates at which ended jobs and schedules are deleted."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.domain.collection import Retention
from sweephand.domain.job import Job
from sweephand.domain.occurrences.index_row import Waits
from sweephand.domain.schedule import OVER, Schedule, ScheduleState
from sweephand.schedules.timing import load_or_never
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op
from sweephand.server.store.jobs import change_parts

FACADE = "sap"

KEPT_S = 30 * 86_400


def goes_at(schedule: Schedule, retention: Retention, job: Job | None) -> datetime | None:
    """Returns when a schedule that is over is deleted, alone or with its job; None if never.

    job: None if it was deleted.
    """
    assert schedule.completed_at is not None
    if retention.ended_job_days:
        return schedule.completed_at + timedelta(days=retention.ended_job_days)
    return None if job is None else over_goes_at(schedule, retention, job)


def concerns(job: Job, schedule: Schedule) -> bool:
    return job.facade == FACADE and not load_or_never(schedule.packed).recurring


def single_goes_at(schedule: Schedule) -> datetime | None:
    """Returns when a one-time schedule is deleted in its current state; None while it is on.

    A schedule that is off is kept for at least KEPT_S after its last change.
    """
    if schedule.state in OVER:
        return None if schedule.completed_at is None else schedule.completed_at + timedelta(seconds=KEPT_S)
    at = load_or_never(schedule.packed).written_at
    if schedule.state is not ScheduleState.INACTIVE or at is None:
        return None
    return max(at, schedule.modified_at) + timedelta(seconds=KEPT_S)


def over_goes_at(schedule: Schedule, retention: Retention, job: Job) -> datetime | None:
    """Returns when a schedule that is over is deleted alone; None if it is not: with `endedJobDays`, its job is."""
    if retention.ended_job_days or not concerns(job, schedule):
        return None
    return single_goes_at(schedule)


def row_ops(world: World, job: Job, schedule: Schedule) -> list[Op]:
    """Returns the wake row that deletes a schedule that is off. The row stays if the schedule is switched on again."""
    if schedule.state is not ScheduleState.INACTIVE or not concerns(job, schedule):
        return []
    at = single_goes_at(schedule)
    if at is None:
        return []
    row = change_parts.wake_op(world.table, job, keys.unused(schedule.id), Waits.ENDED, at, world.shards)
    return [replace(row, name=f"unused {schedule.id}")]


def writes(job: Job) -> int:
    """Returns how many writes `row_ops` needs at most for the change of one schedule."""
    return 1 if job.facade == FACADE else 0
