"""Protects jobs in a final state (policy `afterEnd: final`) from changes and runs."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.domain.job import Job
from sweephand.domain.jobs.job_state import ended_state, is_final
from sweephand.domain.schedule import Schedule
from sweephand.errors import Conflict
from sweephand.flow.world import World
from sweephand.store.jobs import jobs


def check(job: Job, schedules: Sequence[Schedule]) -> None:
    """Raises Conflict(STATE_CONFLICT) if the job is in a final state."""
    if is_final(job, schedules):
        state = ended_state(schedules)
        raise Conflict(f"the job is {state}, which is final (policy afterEnd): it can only be read or deleted")


def check_run(world: World, job: Job) -> None:
    """Raises as `check`, before a manual run of a job with the policy `afterEnd: final`."""
    check(job, jobs.read_schedules(world.table, job.tenant, job.id))
