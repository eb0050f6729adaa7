"""The state of a job, from its owner's switches and its schedules."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.domain.job import Job, JobState
from sweephand.domain.schedule import OVER, Schedule, ScheduleState, StateReason


def ended_state(schedules: Sequence[Schedule]) -> JobState | None:
    """Returns COMPLETED or, if a schedule is FAULTED, FAULTED for a job whose schedules are all over; else None."""
    if not schedules or any(each.state not in OVER for each in schedules):
        return None
    return JobState.FAULTED if any(each.state is ScheduleState.FAULTED for each in schedules) else JobState.COMPLETED


def is_final(job: Job, schedules: Sequence[Schedule]) -> bool:
    """Returns True if the job has ended for good: it can be read and deleted, but not changed or run.

    Its facade or its owner chooses this with the policy `afterEnd`.
    """
    return job.policies.get("afterEnd") == "final" and ended_state(schedules) is not None


def state_of(*, active: bool, paused: bool, ended: JobState | None) -> JobState:
    """Returns the state of a job. ended: see ended_state. Without schedules, the owner's switches decide."""
    if ended is not None:
        return ended
    if not active:
        return JobState.INACTIVE
    return JobState.PAUSED if paused else JobState.ACTIVE


def wanted_state(job: Job, active: bool) -> tuple[ScheduleState, StateReason | None]:
    """Returns the state of a schedule with future occurrences, from its switches and its job's."""
    if not active:
        return ScheduleState.INACTIVE, StateReason.BY_USER
    if not job.active:
        return ScheduleState.INACTIVE, StateReason.JOB_INACTIVE
    if job.pause is not None:
        return ScheduleState.PAUSED, StateReason.BY_USER
    return ScheduleState.ACTIVE, None
