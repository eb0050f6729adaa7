"""One-time schedules of SAP's API that are of no use any more go 30 days after they ran, or should have.

One that ran stands in the next-run index by its own row, as every schedule that is over and whose end has consequences.
One that was switched off has no instant there: a row beside it is put where it goes off, and asks in its place. Whoever
is asked decides by the schedule as it is then. Source: SAP's documentation of one-time schedules.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sweephand.domain.collection import Retention
from sweephand.domain.instants import epoch_s
from sweephand.domain.job import Job
from sweephand.domain.schedule import OVER, Schedule, ScheduleState
from sweephand.domain.waiting import Waits
from sweephand.flow.history import By, Operation
from sweephand.flow.world import World
from sweephand.schedules.timing import load_or_never
from sweephand.store import jobs, keys, parts
from sweephand.store.conditional import Op
from sweephand.store.expressions import Action, assign
from sweephand.store.table import JobWakeItem, ScheduleItem

if TYPE_CHECKING:
    from sweephand.flow.plan import Planned
    from sweephand.flow.wishes import Wish

FACADE = "sap"
KEPT_S = 30 * 86_400
SOON_S = 86_400
"""A row that asks is due about now; one that a change has put since is due in 30 days."""


def concerns(job: Job, schedule: Schedule) -> bool:
    return job.facade == FACADE and not load_or_never(schedule.packed).recurring


def goes_at(schedule: Schedule) -> datetime | None:
    """When a one-time schedule goes, as it stands; None while it is on.

    One that is off is kept at least so long after its last change.
    """
    if schedule.state in OVER:
        return None if schedule.completed_at is None else schedule.completed_at + timedelta(seconds=KEPT_S)
    at = load_or_never(schedule.packed).written_at
    if schedule.state is not ScheduleState.INACTIVE or at is None:
        return None
    return max(at, schedule.modified_at) + timedelta(seconds=KEPT_S)


def over_goes_at(schedule: Schedule, retention: Retention, job: Job) -> datetime | None:
    """Of one that is over. Where its collection lets whole jobs go, it goes with its job."""
    if retention.ended_job_days or not concerns(job, schedule):
        return None
    return goes_at(schedule)


def row_ops(world: World, job: Job, schedule: Schedule) -> list[Op]:
    """Beside a schedule that is switched off. It stays when that is switched on again, and finds out."""
    if schedule.state is not ScheduleState.INACTIVE or not concerns(job, schedule):
        return []
    at = goes_at(schedule)
    if at is None:
        return []
    row = parts.wake_op(world.table, job, keys.unused(schedule.id), Waits.ENDED, at, world.settings.shards)
    return [replace(row, name=f"unused {schedule.id}")]


def writes(job: Job) -> int:
    """How many a change of one schedule may have of this, at most."""
    return 1 if job.facade == FACADE else 0


def look(world: World, job: Job, schedule: Schedule, retention: Retention) -> None:
    """What the row of a schedule that is over asks for, or the one beside a schedule that is off."""
    at = goes_at(schedule)
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
    """[it is due, so no later change has put it]"""
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
    """As its owner would delete it, if it still is of no use in that moment; then its row."""
    from sweephand.flow import change  # noqa: PLC0415 - an executor seldom changes a job
    from sweephand.flow.wishes import Wish  # noqa: PLC0415

    def wish(there: Planned) -> list[Wish]:
        found = [each for each in there.schedules if each.id == schedule.id]
        gone = [each for each in found if (at := goes_at(each)) is not None and at <= world.clock.now()]
        return [Wish(each, None, delete=True) for each in gone]

    after = change.change_schedules(world, job.tenant, job.id, wish, None, By(Operation.DELETE_SCHEDULE))
    if all(each.id != schedule.id for each in after.schedules):
        drop_row(world, job.tenant, job.id, schedule.id)
        world.journal.info("an unused schedule was removed", tenant=job.tenant, job=job.id, schedule=schedule.id)
