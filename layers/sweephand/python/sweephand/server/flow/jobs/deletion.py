"""Deletes a job with everything that belongs to it."""

from __future__ import annotations

from datetime import datetime
from enum import Enum, auto
from typing import TYPE_CHECKING

from sweephand.base.lazy import lazy
from sweephand.domain.collection import Events, Usage
from sweephand.domain.job import IN_JOBS_TRANSACTION
from sweephand.server.flow.concurrency import Moved, require_revision, until_unmoved
from sweephand.server.flow.job_parts import clean_up_rows, quotas
from sweephand.server.flow.job_parts.change_log import BY_SERVICE, By
from sweephand.server.flow.jobs.lookup import Planned, find
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Op
from sweephand.server.store.jobs import directory, jobs

if TYPE_CHECKING:
    from sweephand.domain.job_set import Member

with lazy():
    from sweephand.server.flow import events
    from sweephand.server.flow.job_parts import membership, named_calendars
    from sweephand.server.flow.jobs import change


class Cause(Enum):
    """The reason why a job is deleted."""

    REQUEST = auto()
    ENDED = auto()
    """The service deletes the job after its end. Its job set does not create it again."""
    PURGE = auto()
    """Its tenant is deleted, so the job's runs are deleted from the ledger as well."""


def delete_job(
    world: World,
    tenant: str,
    job_id: str,
    if_match: int | None,
    cause: Cause | Member = Cause.REQUEST,
    *,
    by: By = BY_SERVICE,
) -> None:
    """Deletes a job, its schedules and its directory rows at once. A clean-up ends open runs and deletes the rest.

    cause: why it is deleted, or its member of the job set that deletes it. by: for its event and for the rows of runs
    that the clean-up ends.
    """
    planned, deleted_at = _delete(world, tenant, job_id, if_match, cause, by)
    job = planned.job
    where = clean_up_rows.Place.of(job, by.words)
    clean_up_rows.note_delay(world, where, deleted_at)
    rest = planned.schedules[IN_JOBS_TRANSACTION:]
    clean_up_rows.delete_schedules(world, where, rest, deleted_at, with_rows=cause is not Cause.PURGE)
    directory.drop_if_empty(world.table, job)
    if world.terms.of(tenant, job.collection).events is Events.ALL:
        events.job_deleted(world, job, by.actor, by.reason)


@until_unmoved("changes to this job", wait_s=0.02)
def _delete(
    world: World, tenant: str, job_id: str, if_match: int | None, cause: Cause | Member, by: By
) -> tuple[Planned, datetime]:
    deleted_at = world.clock.now()
    of_set, runs_too = None if isinstance(cause, Cause) else cause, cause is Cause.PURGE
    planned = find(world, tenant, job_id)
    job = planned.job
    require_revision(if_match, job.revision)
    if cause is not Cause.PURGE and change.has_rest(world, job):
        revision = change.carry_out_rest(world, tenant, job_id).job.revision
        return _delete(world, tenant, job_id, None if if_match is None else revision, cause, by)
    first = planned.schedules[:IN_JOBS_TRANSACTION]
    ops = [
        world.table.delete_op("job", keys.job(tenant, job_id), keys.JOB, jobs.revision_is(job.revision)),
        *(
            world.table.delete_op(f"schedule {schedule.id}", keys.job(tenant, job_id), keys.schedule(schedule.id))
            for schedule in first
        ),
        *directory.delete_ops(world.table, job),
        *quotas.count_ops(world, job, None, None, Usage()),
        clean_up_rows.of_job_op(
            world, job, planned.schedules, deleted_at, with_rows=first, runs_too=runs_too, why=by.words
        ),
        *_leave_calendars(world, planned),
        *tenancy.flow_key_ops(world, tenant, job.policies.get("flowKey"), None, job.number),
        *(membership.delete_ops(world, job, of_set) if job.job_set is not None and cause is not Cause.ENDED else []),
    ]
    done = world.table.transact(ops)
    if isinstance(done, Cancelled) and jobs.read_job(world.table, tenant, job_id) is not None:
        if of_set is not None and job.job_set is not None:
            membership.check(done, job.job_set, of_set.key)
        raise Moved
    return planned, deleted_at


def _leave_calendars(world: World, planned: Planned) -> list[Op]:
    if not any("calendars" in schedule.timing for schedule in planned.schedules):
        return []
    return named_calendars.leave_ops(world, planned.job, planned.schedules)
