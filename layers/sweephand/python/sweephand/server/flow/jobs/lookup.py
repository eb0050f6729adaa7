"""Reads jobs with their schedules and payloads."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.base.errors import Conflict, NotFound
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.job import Job, Payload, by_owner
from sweephand.domain.jobs.job_state import ended_state, is_final
from sweephand.domain.schedule import Schedule, names_calendars
from sweephand.server.flow.world import World
from sweephand.server.store.jobs import directory, jobs

with lazy():
    from sweephand.server.flow.job_parts import named_calendars


@dataclass(frozen=True)
class Planned:
    """A job with its schedules."""

    job: Job
    schedules: tuple[Schedule, ...]


def find_job(world: World, tenant: str, job_id: str) -> Job:
    """Returns the job. Raises NotFound if it is unknown or belongs to another tenant."""
    job = jobs.read_job(world.table, tenant, job_id)
    if job is None:
        raise NotFound("no such job")
    return job


def find(world: World, tenant: str, job_id: str) -> Planned:
    """Returns the job with its schedules. Raises NotFound."""
    job = find_job(world, tenant, job_id)
    return Planned(job, tuple(jobs.read_schedules(world.table, tenant, job_id)))


def named(world: World, tenant: str, collection: str, name: str) -> str | None:
    """Returns the id of the job with this name; None if no job has it."""
    return directory.named(world.table, tenant, [(collection, name)]).get((collection, name))


def find_schedule(planned: Planned, schedule_id: str) -> Schedule:
    for schedule in planned.schedules:
        if schedule.id == schedule_id:
            return schedule
    raise NotFound("no such schedule")


def payloads_of(world: World, planned: Planned) -> dict[str, Payload]:
    """Returns the payloads of a job and its schedules, in one batched read.

    They are keyed by owner: `action`, `errorAction`, the hook's owner, or the schedule's id.
    """
    job = planned.job
    versions = {
        owner: spec.payload_version for owner, spec in by_owner(job.action, job.error_action, job.hooks).items()
    }
    versions |= {schedule.id: schedule.payload_version for schedule in planned.schedules}
    wanted = {owner: version for owner, version in versions.items() if version is not None}
    return jobs.read_payloads(world.table, job.tenant, job.id, wanted)


def by_creation(schedules: Sequence[Schedule]) -> tuple[Schedule, ...]:
    return tuple(sorted(schedules, key=lambda schedule: schedule.id))


def with_current_calendars(world: World, schedules: Sequence[Schedule]) -> Sequence[Schedule]:
    """Returns a tenant's schedules as responses show them.

    A schedule that has yet to follow a change of its calendars gets the timing that it will have. Costs one read if
    any schedule names a calendar.
    """
    if not any(names_calendars(schedule.packed) for schedule in schedules):
        return schedules
    return named_calendars.with_current_calendars(world, schedules)


def check(job: Job, schedules: Sequence[Schedule]) -> None:
    """Raises Conflict(STATE_CONFLICT) if the job is in a final state."""
    if is_final(job, schedules):
        state = ended_state(schedules)
        raise Conflict(f"the job is {state}, which is final (policy afterEnd): it can only be read or deleted")


def check_run(world: World, job: Job) -> None:
    """Raises as `check`, before a manual run of a job with the policy `afterEnd: final`."""
    check(job, jobs.read_schedules(world.table, job.tenant, job.id))
