"""Deletes a job with everything that belongs to it."""

from __future__ import annotations

from sweephand.domain.collection import Events, Usage
from sweephand.domain.job import IN_JOBS_TRANSACTION
from sweephand.errors import PreconditionFailed, Unavailable
from sweephand.flow.job_parts import clean_up_rows, quotas
from sweephand.flow.jobs.lookup import Planned, find
from sweephand.flow.tenants import tenancy
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Written
from sweephand.store.jobs import directory, jobs

with lazy():
    from sweephand.flow import events
    from sweephand.flow.job_parts import named_calendars

TRIES = 5


def delete_job(world: World, tenant: str, job_id: str, if_match: int | None, *, runs_too: bool = False) -> None:
    """Deletes a job, its schedules and its directory rows at once; a clean-up row ends open runs and clears the rest.

    runs_too: deletes its runs from the ledger as well.
    """
    for tries in range(TRIES):
        deleted_at = world.clock.now()
        planned = find(world, tenant, job_id)
        if if_match is not None and planned.job.revision != if_match:
            raise PreconditionFailed(f"the job is at revision {planned.job.revision}")
        job = planned.job
        first = planned.schedules[:IN_JOBS_TRANSACTION]
        ops = [
            world.table.delete_op("job", keys.job(tenant, job_id), keys.JOB, jobs.revision_is(job.revision)),
            *(
                world.table.delete_op(f"schedule {schedule.id}", keys.job(tenant, job_id), keys.schedule(schedule.id))
                for schedule in first
            ),
            *directory.delete_ops(world.table, job),
            tenancy.count_job_op(world, tenancy.named(tenant, job.collection), -1),
            *quotas.count_ops(world, job, None, Usage()),
            clean_up_rows.of_job_op(world, job, planned.schedules, deleted_at, with_rows=first, runs_too=runs_too),
            *_leave_calendars(world, planned),
            *tenancy.flow_key_ops(world, tenant, job.policies.get("flowKey"), None),
        ]
        done = world.table.transact(ops)
        if isinstance(done, Written) or jobs.read_job(world.table, tenant, job_id) is None:
            break
        world.clock.sleep(world.chance.uniform(0.0, 0.02 * 2**tries))
    else:
        raise Unavailable("too many concurrent changes to this job; try again")
    where = clean_up_rows.Place.of(planned.job)
    clean_up_rows.note_delay(world, where, deleted_at)
    rest = planned.schedules[IN_JOBS_TRANSACTION:]
    clean_up_rows.delete_schedules(world, where, rest, deleted_at, with_rows=not runs_too)
    directory.drop_if_empty(world.table, job)
    if world.standing.of(tenant, planned.job.collection).events is Events.ALL:
        events.job_deleted(world, planned.job)


def _leave_calendars(world: World, planned: Planned) -> list[Op]:
    if not any("calendars" in schedule.timing for schedule in planned.schedules):
        return []
    return named_calendars.leave_ops(world, planned.job.tenant, planned.job.id, planned.schedules)
