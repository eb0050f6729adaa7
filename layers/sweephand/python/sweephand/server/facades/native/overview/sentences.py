"""Sentences that explain the state of jobs and runs in an overview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sweephand.domain.application import QUEUE
from sweephand.domain.consumer import consumer_of
from sweephand.domain.instants import text
from sweephand.domain.job import Job, JobState
from sweephand.domain.jobs.job_state import Held, HeldBy
from sweephand.domain.run import Run, State
from sweephand.domain.runs.reasons import MEANINGS
from sweephand.domain.schedule import Schedule, ScheduleState, StateReason
from sweephand.server.facades.native.members.job_members import job_state, job_state_reason

ENDED: Mapping[str, str] = {
    StateReason.ONE_TIME_DONE: "its only time is over",
    StateReason.NO_FUTURE_DATES: "it has no future dates",
    StateReason.END_REACHED: "its end is reached",
    StateReason.COUNT_REACHED: "it ran as often as it was to",
    StateReason.QUOTA_REACHED: "a quota is used up",
    StateReason.UNREACHABLE: "its target could not be reached for 10 days",
    StateReason.UNREADABLE: "its schedule cannot be read",
    StateReason.JOB_INACTIVE: "the job is switched off",
    StateReason.BY_USER: "somebody switched it off",
}
HOLDERS: Mapping[HeldBy, str] = {
    HeldBy.TENANT: "the tenant {name} is disabled",
    HeldBy.COLLECTION: "the collection {name} is disabled",
    HeldBy.FLOW_KEY: "the flow key {name} is paused",
}
WAITS: Mapping[State, str] = {
    State.TRIGGERED: "The target is being called.",
    State.ACK_RECVD: "The target took it and has not reported yet.",
    State.ACK_NOT_RECVD: "The target gave no answer in time, and its report is awaited.",
    State.QUEUED: "It waits for its turn.",
}


def of_job(job: Job, schedules: Sequence[Schedule], held: Held | None) -> str | None:
    """Returns why a job does not run, or not as its schedules say; None if it runs normally."""
    state = job_state(job, schedules)
    if state is JobState.ACTIVE:
        return _of_active(schedules, held)
    if state is JobState.PAUSED and job.pause is not None:
        until = f" until {text(job.pause.until)}" if job.pause.until is not None else ""
        return f"Paused since {text(job.pause.since)}{until}{f': {job.pause.note}' if job.pause.note else '.'}"
    if state is JobState.FAULTED:
        return "Over: its last run failed."
    because = ENDED.get(job_state_reason(job, schedules) or "")
    return f"{'Switched off' if state is JobState.INACTIVE else 'Over'}{f': {because}' if because else ''}."


def _of_active(schedules: Sequence[Schedule], held: Held | None) -> str | None:
    if held is not None:
        effect = "what falls due is skipped" if held.skips else "its runs wait"
        return f"Held since {text(held.since)}: {HOLDERS[held.by].format(name=held.name)}, {effect}."
    if any(each.state is ScheduleState.BROKEN for each in schedules):
        return "A schedule of it cannot be computed any more."
    return None if schedules else "It has no schedule, and runs when somebody starts it."


def of_due(job: Job, since: datetime) -> str:
    """Returns why what is due has not begun, as far as the job shows it."""
    at = text(since)
    if job.action.kind == QUEUE:
        return f"No worker of {job.action.params['application']} has taken what is due since {at}."
    if (consumer := consumer_of(job)) is not None:
        return f"The consumer {consumer} has not received what is due since {at}."
    return f"What is due since {at} has not begun."


def duration(time: timedelta) -> str:
    """Returns a duration in its largest whole unit, such as `4 min`."""
    seconds = int(time.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7_200:
        return f"{seconds // 60} min"
    return f"{seconds // 3_600} h" if seconds < 172_800 else f"{seconds // 86_400} days"


def of_run(run: Run) -> str:
    """Returns the reason for a run's state."""
    words = run.message or (MEANINGS[run.reason] if run.reason is not None else WAITS.get(run.state, ""))
    words = f"{words[:1].upper()}{words[1:].rstrip('.')}." if words else ""
    if run.state is State.RETRY_WAIT and run.not_before is not None:
        return f"{words} The next attempt is due at {text(run.not_before)}."
    return words
