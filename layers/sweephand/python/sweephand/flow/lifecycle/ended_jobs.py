"""Deletes ended jobs, whose schedules are all COMPLETED, after the time that their collection sets.

A schedule that completes stays in the next-run index, at the instant at which its job may be deleted. The row of the
last schedule to complete finds the job ended; the rows before it then leave the index. One-time schedules of SAP's API
are deleted one by one (flow/lifecycle/unused_schedules.py).
"""

from __future__ import annotations

from datetime import datetime

from sweephand.domain.instants import epoch_s
from sweephand.domain.job import Job
from sweephand.domain.message import Pointer
from sweephand.domain.schedule import Schedule
from sweephand.errors import NotFound, PreconditionFailed
from sweephand.flow.job_parts import expiry
from sweephand.flow.lifecycle import unused_schedules
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.expressions import assign
from sweephand.store.dynamo.table import ScheduleItem
from sweephand.store.jobs import jobs

with lazy():
    from sweephand.flow.jobs import deletion


def look(world: World, pointer: Pointer) -> None:
    """Acts on the row of a COMPLETED schedule, or on the row that waits for a schedule that is off.

    The collection's current settings apply.
    """
    job = jobs.read_job(world.table, pointer.tenant, pointer.job)
    if job is None:
        return
    schedules = jobs.read_schedules(world.table, pointer.tenant, pointer.job)
    asking = next((each for each in schedules if each.id == pointer.run), None)
    if asking is None:
        unused_schedules.drop_row(world, pointer.tenant, pointer.job, pointer.run)
        return
    retention = world.standing.of(job.tenant, job.collection).retention
    if expiry.concerns(job, asking) and not (retention.ended_job_days and asking.completed_at):
        unused_schedules.look(world, job, asking, retention)
        return
    if asking.completed_at is None:
        return
    if not _is_last(asking, schedules):
        _stay(world, asking, None)
        return
    at = expiry.goes_at(asking, retention, job)
    if at is None or at > world.clock.now():
        _stay(world, asking, at)
        return
    _remove(world, job)


def _is_last(asking: Schedule, schedules: list[Schedule]) -> bool:
    """Says whether all schedules are COMPLETED and none after this one; in the same second, each counts as last."""
    return all(
        each.completed_at is not None and asking.completed_at is not None and each.completed_at <= asking.completed_at
        for each in schedules
    )


def _stay(world: World, schedule: Schedule, at: datetime | None) -> None:
    """Sets the next check, or none, unless the schedule was changed."""
    key = keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)
    then = assign(ScheduleItem.next_run_at, None if at is None else epoch_s(at))
    world.table.update(*key, [then], jobs.as_read(schedule))


def _remove(world: World, job: Job) -> None:
    """Deletes the job, unless it was changed meanwhile; the row then asks again."""
    try:
        deletion.delete_job(world, job.tenant, job.id, job.revision)
    except (NotFound, PreconditionFailed):
        return
    world.journal.info("an ended job was removed", tenant=job.tenant, job=job.id)
