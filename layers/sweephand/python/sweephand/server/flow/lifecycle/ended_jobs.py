"""Deletes ended jobs, whose schedules are all COMPLETED, after the time that their collection sets.

A schedule that completes stays in the next-run index, at the instant at which its job may be deleted. When the row of
the last schedule to complete wakes, the job has ended; the earlier rows have left the index by then. One-time schedules
of SAP's API are deleted one by one, 30 days after they ran or should have run. A schedule that was switched off has no
instant in the index, so switching it off writes a separate row that wakes the check. Source: SAP's documentation of
one-time schedules.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sweephand.base.lazy import lazy
from sweephand.domain.collection import Retention
from sweephand.domain.instants import epoch_s
from sweephand.domain.job import Job
from sweephand.domain.schedule import OVER, Schedule
from sweephand.server.flow.job_parts.change_log import By, Operation
from sweephand.server.flow.job_parts.expiry import concerns, goes_at, over_goes_at, single_goes_at
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.expressions import assign
from sweephand.server.store.dynamo.table import ScheduleItem, WakeItem
from sweephand.server.store.jobs import jobs

if TYPE_CHECKING:
    from sweephand.server.flow.jobs.lookup import Planned

from sweephand.base.errors import NotFound, PreconditionFailed
from sweephand.domain.message import Pointer

with lazy():
    from sweephand.server.flow.jobs import change, deletion, requested

SOON_S = 86_400
"""The row that woke the check is due about now; a row written by a later change is due in 30 days."""


def wake_up(world: World, pointer: Pointer) -> None:
    """Acts on the row of a COMPLETED schedule, or on the row that waits for a schedule that is off.

    The collection's current settings apply.
    """
    job = jobs.read_job(world.table, pointer.tenant, pointer.job)
    if job is None:
        return
    schedules = jobs.read_schedules(world.table, pointer.tenant, pointer.job)
    asking = next((each for each in schedules if each.id == pointer.run), None)
    if asking is None:
        drop_row(world, pointer.tenant, pointer.job, pointer.run)
        return
    retention = world.terms.of(job.tenant, job.collection).retention
    if concerns(job, asking) and not (retention.ended_job_days and asking.completed_at):
        check_unused(world, job, asking, retention)
        return
    if asking.completed_at is None:
        return
    if not _is_last(asking, schedules):
        _stay(world, asking, None)
        return
    at = goes_at(asking, retention, job)
    if at is None or at > world.clock.now():
        _stay(world, asking, at)
        return
    _remove(world, job)


def _is_last(asking: Schedule, schedules: list[Schedule]) -> bool:
    """Returns whether all schedules are COMPLETED, none later than this one. In the same second, all count as last."""
    return all(
        each.completed_at is not None and asking.completed_at is not None and each.completed_at <= asking.completed_at
        for each in schedules
    )


def _stay(world: World, schedule: Schedule, at: datetime | None) -> None:
    """Sets the next check, or removes it, unless the schedule was changed."""
    key = keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)
    then = assign(ScheduleItem.next_run_at, None if at is None else epoch_s(at))
    world.table.update(*key, [then], jobs.as_read(schedule))


def _remove(world: World, job: Job) -> None:
    """Deletes the job unless it was changed meanwhile. If it was, the row wakes the check again."""
    try:
        deletion.delete_job(world, job.tenant, job.id, job.revision, deletion.Cause.ENDED)
    except (NotFound, PreconditionFailed):
        return
    world.journal.info("an ended job was removed", tenant=job.tenant, job=job.id)


def check_unused(world: World, job: Job, schedule: Schedule, retention: Retention) -> None:
    """Acts on the row of a schedule that is over, or on the separate row of a schedule that is off."""
    at = single_goes_at(schedule)
    if at is None or schedule.state in OVER:
        drop_row(world, job.tenant, job.id, schedule.id)
    if schedule.state in OVER:
        at = over_goes_at(schedule, retention, job)
    if at is None:
        return
    if at <= world.clock.now():
        _remove_unused(world, job, schedule)
    elif schedule.state in OVER:
        _stay(world, schedule, at)
    else:
        then = assign(WakeItem.next_run_at, epoch_s(at))
        world.table.update(keys.job(job.tenant, job.id), keys.unused(schedule.id), [then], WakeItem.pk.exists())


def drop_row(world: World, tenant: str, job_id: str, schedule_id: str) -> None:
    """Deletes the separate row if it is due, so that a row written by a later change stays."""
    soon = epoch_s(world.clock.now()) + SOON_S
    world.table.delete(keys.job(tenant, job_id), keys.unused(schedule_id), WakeItem.next_run_at < soon)


def _remove_unused(world: World, job: Job, schedule: Schedule) -> None:
    """Deletes the schedule as its owner would, if it is still unused at that moment. Then deletes its separate row."""

    def request(planned: Planned) -> list[requested.ScheduleRequest]:
        same = [each for each in planned.schedules if each.id == schedule.id]
        gone = [each for each in same if (at := single_goes_at(each)) is not None and at <= world.clock.now()]
        return [requested.ScheduleRequest(each, None, delete=True) for each in gone]

    after = change.change_schedules(world, job.tenant, job.id, request, None, By(Operation.DELETE_SCHEDULE))
    if all(each.id != schedule.id for each in after.schedules):
        drop_row(world, job.tenant, job.id, schedule.id)
        world.journal.info("an unused schedule was removed", tenant=job.tenant, job=job.id, schedule=schedule.id)
