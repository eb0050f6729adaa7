"""Keeps jobs that have ended for good as they are: what their facade calls a final state."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.domain.job import Job
from sweephand.domain.jobs.job_state import ended_state, is_final
from sweephand.domain.schedule import Schedule
from sweephand.errors import Conflict
from sweephand.flow.world import World
from sweephand.store.jobs import jobs


def check(job: Job, schedules: Sequence[Schedule]) -> None:
    """Raises Conflict(STATE_CONFLICT)."""
    if is_final(job, schedules):
        state = ended_state(schedules)
        raise Conflict(f"the job is {state}, which is final (policy afterEnd): it can be read and deleted")


def check_run(world: World, job: Job) -> None:
    """As `check`, before a run of a job with the policy `afterEnd: final` is started by hand."""
    check(job, jobs.read_schedules(world.table, job.tenant, job.id))
