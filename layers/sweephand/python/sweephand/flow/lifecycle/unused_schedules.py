"""Deletes one-time schedules of SAP's API 30 days after they ran, or should have run.

A schedule that ran has its own row in the next-run index, like every schedule whose end has consequences. A schedule
that was switched off has no instant there, so switching it off writes a separate row that wakes the check. The check
decides by the schedule as it is then. Source: SAP's documentation of one-time schedules.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sweephand.domain.collection import Retention
from sweephand.domain.instants import epoch_s
from sweephand.domain.job import Job
from sweephand.domain.schedule import OVER, Schedule
from sweephand.flow.job_parts.change_log import By, Operation
from sweephand.flow.job_parts.expiry import over_goes_at, single_goes_at
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.expressions import Action, assign
from sweephand.store.dynamo.table import JobWakeItem, ScheduleItem
from sweephand.store.jobs import jobs

if TYPE_CHECKING:
    from sweephand.flow.jobs.lookup import Planned

with lazy():
    from sweephand.flow.jobs import change, requested

SOON_S = 86_400
"""The row that woke the check is due about now; a row written by a later change is due in 30 days."""


def look(world: World, job: Job, schedule: Schedule, retention: Retention) -> None:
    """Acts on the row of a schedule that is over, or on the separate row of a schedule that is off."""
    at = single_goes_at(schedule)
    if at is None or schedule.state in OVER:
        drop_row(world, job.tenant, job.id, schedule.id)
    if schedule.state in OVER:
        at = over_goes_at(schedule, retention, job)
    if at is None:
        return
    if at > world.clock.now():
        _ask_again(world, job, schedule, at)
    else:
        _remove(world, job, schedule)


def drop_row(world: World, tenant: str, job_id: str, schedule_id: str) -> None:
    """Deletes the separate row if it is due, so that a row written by a later change stays."""
    soon = epoch_s(world.clock.now()) + SOON_S
    world.table.delete(keys.job(tenant, job_id), keys.unused(schedule_id), JobWakeItem.next_run_at < soon)


def _ask_again(world: World, job: Job, schedule: Schedule, at: datetime) -> None:
    pk = keys.job(job.tenant, job.id)
    if schedule.state in OVER:
        world.table.update(pk, keys.schedule(schedule.id), _at(at), jobs.as_read(schedule))
    else:
        world.table.update(pk, keys.unused(schedule.id), _at(at), JobWakeItem.pk.exists())


def _at(at: datetime) -> list[Action]:
    return [assign(ScheduleItem.next_run_at, epoch_s(at))]


def _remove(world: World, job: Job, schedule: Schedule) -> None:
    """Deletes the schedule as its owner would, if it is still unused at that moment; then its separate row."""

    def wish(there: Planned) -> list[requested.Wish]:
        found = [each for each in there.schedules if each.id == schedule.id]
        gone = [each for each in found if (at := single_goes_at(each)) is not None and at <= world.clock.now()]
        return [requested.Wish(each, None, delete=True) for each in gone]

    after = change.change_schedules(world, job.tenant, job.id, wish, None, By(Operation.DELETE_SCHEDULE))
    if all(each.id != schedule.id for each in after.schedules):
        drop_row(world, job.tenant, job.id, schedule.id)
        world.journal.info("an unused schedule was removed", tenant=job.tenant, job=job.id, schedule=schedule.id)
