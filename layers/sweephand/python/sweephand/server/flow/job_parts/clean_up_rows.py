"""Rows that request the clean-up after a delete. They are written with the delete; an executor carries them out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base import ids
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_s
from sweephand.domain.job import Job
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import OVER, Lane, Schedule, ScheduleState
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op
from sweephand.server.store.dynamo.expressions import assign
from sweephand.server.store.dynamo.table import CleanUpItem
from sweephand.server.store.jobs import jobs

with lazy():
    from sweephand.server.store.dynamo import flat_models

FIRST_CHECK = timedelta(seconds=30)

WHOLE_JOB = "job"
"""The name of a whole job's clean-up row. The row of deleted schedules is named by the first one's id."""

SCHEDULES_AT_ONCE = 40
"""Schedules that each further transaction deletes, after the job's own transaction."""


@dataclass(frozen=True)
class Place:
    """The job that deleted schedules belonged to. It may be deleted itself. why: who deleted them, and the reason."""

    tenant: str
    job_id: str
    collection: str | None
    why: str | None = None

    @classmethod
    def of(cls, job: Job, why: str | None = None) -> Place:
        return cls(job.tenant, job.id, job.collection, why)


def of_job_op(
    world: World,
    job: Job,
    schedules: Sequence[Schedule],
    deleted_at: datetime,
    *,
    with_rows: Sequence[Schedule],
    runs_too: bool = False,
    why: str | None = None,
) -> Op:
    """Returns the operation that requests the clean-up of a deleted job's runs, including those of its schedules.

    with_rows: the schedules that the same transaction deletes. runs_too: deletes the runs from the ledger as well.
    """
    owners = [job.id, *(schedule.id for schedule in schedules)]
    item = _item(world, Place.of(job, why), owners, deleted_at, name=WHOLE_JOB)
    item.whole = True
    item.runs_too = True if runs_too else None
    item.schedules = None if runs_too else _packed(with_rows, deleted_at)
    return world.table.put_op("clean-up", item)


def of_schedules_ops(world: World, where: Place, gone: Sequence[Schedule], deleted_at: datetime) -> list[Op]:
    """Returns the operation that requests the clean-up of deleted schedules. Their job stays, or was deleted before."""
    item = _item(world, where, [schedule.id for schedule in gone], deleted_at, name=gone[0].id)
    item.schedules = _packed(gone, deleted_at)
    return [world.table.put_op("clean-up", item)]


def _item(world: World, where: Place, owners: Sequence[str], deleted_at: datetime, *, name: str) -> CleanUpItem:
    return CleanUpItem(
        pk=keys.job(where.tenant, where.job_id),
        sk=keys.clean_up(name),
        shard=ids.shard_of(where.job_id, world.shards),
        next_run_at=epoch_s(deleted_at + FIRST_CHECK),
        sweep=str(SweepText(Waits.CLEAN_UP, Lane.FAST)),
        owners=json.dumps(owners),
        whole=False,
        collection=where.collection,
        deleted_at=epoch_s(deleted_at),
        why=where.why,
    )


def _packed(schedules: Iterable[Schedule], deleted_at: datetime) -> str | None:
    """Returns the packed rows of the schedules that may have occurrences due but not begun; None if there are none."""
    bare = [
        replace(each, timing={}, policies={}, attributes={}, payload_version=None)
        for each in schedules
        if _may_have_backlog(each, deleted_at)
    ]
    return flat_models.pack([jobs.schedule_item(each, 1).serialize() for each in bare]) if bare else None


def _may_have_backlog(schedule: Schedule, now: datetime) -> bool:
    """Returns whether a schedule may have occurrences due but not begun.

    A schedule that is over has none, because all its runs have ended.
    """
    if schedule.state in OVER:
        return False
    untouched = schedule.state is ScheduleState.ACTIVE and not schedule.ended_at and not schedule.planned_total
    return not (untouched and schedule.unsent_from is not None and schedule.unsent_from > now)


def note_delay(world: World, where: Place, deleted_at: datetime, name: str = WHOLE_JOB) -> None:
    """Moves `deleted_at` forward if the delete was written in a later second. Runs that fell due by then came first."""
    stood_at = epoch_s(world.clock.now())
    if stood_at > epoch_s(deleted_at):
        key = keys.job(where.tenant, where.job_id), keys.clean_up(name)
        world.table.update(*key, [assign(CleanUpItem.deleted_at, stood_at)], CleanUpItem.pk.exists())


def delete_schedules(
    world: World, where: Place, schedules: Sequence[Schedule], deleted_at: datetime, *, with_rows: bool
) -> None:
    """Deletes the remaining schedules of a deleted job, several per transaction. May be repeated.

    with_rows: whether to write a clean-up row for the backlog of each transaction.
    """
    pk = keys.job(where.tenant, where.job_id)
    for begin in range(0, len(schedules), SCHEDULES_AT_ONCE):
        part = schedules[begin : begin + SCHEDULES_AT_ONCE]
        rest = of_schedules_ops(world, where, part, deleted_at) if with_rows else []
        gone = [world.table.delete_op(f"schedule {each.id}", pk, keys.schedule(each.id)) for each in part]
        world.table.transact([*rest, *gone])
