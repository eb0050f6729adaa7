"""Rows that ask for the clean-up after a delete: written with the delete, carried out by an executor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sweephand import ids
from sweephand.domain.instants import epoch_s
from sweephand.domain.job import Job
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import OVER, Lane, Schedule, ScheduleState
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op
from sweephand.store.dynamo.expressions import assign
from sweephand.store.dynamo.table import CleanUpItem, raw
from sweephand.store.jobs import jobs

with lazy():
    from sweephand.store.dynamo import compression

FIRST_LOOK = timedelta(seconds=30)

WHOLE_JOB = "job"
"""The name of the clean-up row of a whole job; of schedules it is the first one's id."""

SCHEDULES_AT_ONCE = 40
"""Schedules that one transaction deletes beside the job's own."""


@dataclass(frozen=True)
class Place:
    """Where schedules were: a job that may be gone."""

    tenant: str
    job_id: str
    collection: str | None

    @classmethod
    def of(cls, job: Job) -> Place:
        return cls(job.tenant, job.id, job.collection)


def of_job_op(
    world: World,
    job: Job,
    schedules: Sequence[Schedule],
    deleted_at: datetime,
    *,
    with_rows: Sequence[Schedule],
    runs_too: bool = False,
) -> Op:
    """For a deleted job: its own runs, and those of all its schedules. runs_too: their rows go as well.

    with_rows: the schedules that go in the same transaction.
    """
    owners = [job.id, *(schedule.id for schedule in schedules)]
    item = _item(world, Place.of(job), owners, deleted_at, name=WHOLE_JOB)
    item.whole = True
    item.runs_too = True if runs_too else None
    item.schedules = None if runs_too else _packed(with_rows, deleted_at)
    return world.table.put_op("clean-up", item)


def of_schedules_ops(world: World, where: Place, gone: Sequence[Schedule], deleted_at: datetime) -> list[Op]:
    """For schedules that were deleted from a job that stays, or that went before them."""
    item = _item(world, where, [schedule.id for schedule in gone], deleted_at, name=gone[0].id)
    item.schedules = _packed(gone, deleted_at)
    return [world.table.put_op("clean-up", item)]


def _item(world: World, where: Place, owners: Sequence[str], deleted_at: datetime, *, name: str) -> CleanUpItem:
    return CleanUpItem(
        pk=keys.job(where.tenant, where.job_id),
        sk=keys.clean_up(name),
        shard=ids.shard_of(where.job_id, world.settings.shards),
        next_run_at=epoch_s(deleted_at + FIRST_LOOK),
        sweep=str(SweepText(Waits.CLEAN_UP, Lane.FAST)),
        owners=json.dumps(owners),
        whole=False,
        collection=where.collection,
        deleted_at=epoch_s(deleted_at),
    )


def _packed(schedules: Iterable[Schedule], deleted_at: datetime) -> str | None:
    """Packs the rows of those that may have something due and not begun; None if there are none."""
    bare = [
        replace(each, timing={}, policies={}, attributes={}, payload_version=None)
        for each in schedules
        if _may_have_backlog(each, deleted_at)
    ]
    return compression.pack([raw(jobs.schedule_item(each, 1)) for each in bare]) if bare else None


def _may_have_backlog(schedule: Schedule, now: datetime) -> bool:
    """Says whether anything of it can have been due and not begun. A schedule that is over ended all its runs."""
    if schedule.state in OVER:
        return False
    untouched = schedule.state is ScheduleState.ACTIVE and not schedule.ended_at and not schedule.planned_total
    return not (untouched and schedule.unsent_from is not None and schedule.unsent_from > now)


def note_delay(world: World, where: Place, deleted_at: datetime, name: str = WHOLE_JOB) -> None:
    """Moves `deleted_at` on if the next second began before the delete stood: what fell due with it was before it."""
    stood_at = epoch_s(world.clock.now())
    if stood_at > epoch_s(deleted_at):
        key = keys.job(where.tenant, where.job_id), keys.clean_up(name)
        world.table.update(*key, [assign(CleanUpItem.deleted_at, stood_at)], CleanUpItem.pk.exists())


def delete_schedules(
    world: World, where: Place, schedules: Sequence[Schedule], deleted_at: datetime, *, with_rows: bool
) -> None:
    """Deletes schedules of a job that is gone, some in a transaction, with a clean-up row for the backlog of each
    such part. Harmless to repeat.
    """
    pk = keys.job(where.tenant, where.job_id)
    for begin in range(0, len(schedules), SCHEDULES_AT_ONCE):
        part = schedules[begin : begin + SCHEDULES_AT_ONCE]
        rest = of_schedules_ops(world, where, part, deleted_at) if with_rows else []
        gone = [world.table.delete_op(f"schedule {each.id}", pk, keys.schedule(each.id)) for each in part]
        world.table.transact([*rest, *gone])
