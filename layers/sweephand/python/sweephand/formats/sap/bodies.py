"""Converts the domain to SAP's JSON. Every documented member is always present, null if there is nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sweephand.domain.job import Job, Payload
from sweephand.domain.occurrences import upcoming
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.schedule import LIVE, Schedule, ScheduleState
from sweephand.formats.sap.fields import ENDPOINT, MODES, shown_target, user_of
from sweephand.formats.sap.times import shown
from sweephand.schedules.text.instants import parse_instant
from sweephand.schedules.timing import load_or_never

UNDER_WAY = {
    State.TRIGGERED: "TRIGGERED",
    State.RETRY_WAIT: "TRIGGERED",
    State.HELD: "TRIGGERED",
    State.QUEUED: "TRIGGERED",
    State.ACK_RECVD: "ACK_RECVD",
    State.ACK_NOT_RECVD: "ACK_NOT_RECVD",
}
ENDED = {each: each.value for each in (State.SUCCESS, State.ERROR, State.REQUEST_ERROR, State.UNKNOWN, State.TIMEOUT)}
"""Runs in other final states were skipped, missed or cancelled. SAP's service has no log lines for them."""


# Jobs


def job_fields(job: Job) -> dict[str, Any]:
    """Returns the members that answers to POST and GET share."""
    return {
        "_id": job.integer_id,
        "name": job.name,
        "description": job.description or "",
        **shown_target(job),
        "active": job.active,
        "startTime": shown(job.start_at),
        "endTime": shown(job.end_at),
        "signatureVersion": 0,
    }


def job_body(job: Job) -> dict[str, Any]:
    return job_fields(job) | {
        "user": user_of(job),
        "ansConfig": {"onSuccess": False, "onError": False} | job.attributes.get("ansConfig", {}),
        "calmConfig": job.attributes.get("calmConfig", {"enabled": False}),
    }


def listed_body(job: Job, schedules: Sequence[Schedule], tenant_name: str) -> dict[str, Any]:
    active = sum(1 for schedule in schedules if is_active(schedule))
    return job_body(job) | {
        "jobId": job.integer_id,
        "jobType": ENDPOINT,
        "subDomain": tenant_name,
        "createdAt": shown(job.created_at),
        "ACTIVECOUNT": active,
        "INACTIVECOUNT": len(schedules) - active,
    }


# Schedules


def is_active(schedule: Schedule) -> bool:
    """Returns whether the schedule is active and has not ended. SAP's service deactivates schedules that have ended."""
    if schedule.state is ScheduleState.ENDING and not schedule.planned_total:
        return False  # it was created without a future date, and its completion is about to be written
    return schedule.active and schedule.state in LIVE | {ScheduleState.PAUSED, ScheduleState.INACTIVE}


def schedule_body(schedule: Schedule, payload: Payload | None, now: datetime) -> dict[str, Any]:
    timing = load_or_never(schedule.packed)
    next_run = upcoming.next_runs(schedule, timing, now, 1).first
    attributes: Mapping[str, Any] = schedule.attributes
    return {
        "scheduleId": schedule.id,
        "description": attributes.get("description", ""),
        "data": payload.text if payload else None,
        "type": "recurring" if timing.recurring else "one-time",
        **dict.fromkeys(MODES),
        **{mode: attributes[mode] for mode in MODES if mode in attributes},
        "active": is_active(schedule),
        "startTime": shown(instant_of(schedule, "startTime")),
        "endTime": shown(instant_of(schedule, "endTime")),
        "nextRunAt": shown(next_run) if next_run else None,
        "modifiedAt": shown(schedule.modified_at),
    }


def instant_of(schedule: Schedule, name: str) -> datetime | None:
    text = schedule.timing.get(name)
    return None if text is None else parse_instant(text, name)


# Runs


def sap_status(state: State) -> tuple[str, str] | None:
    """Returns (runStatus, runState); None for a run that the service would not have."""
    if state in UNDER_WAY:
        return "RUNNING", UNDER_WAY[state]
    return ("COMPLETED", ENDED[state]) if state in ENDED else None


def run_body(run: Run) -> dict[str, Any]:
    """Returns a line of the run log. The run must have a status in SAP's API."""
    status = sap_status(run.state)
    assert status is not None
    return {
        "runId": run.uuid,
        "runText": _text_of(run),
        "httpStatus": run.http_status,
        "executionTimestamp": shown(run.first_started_at or run.started_at),
        "scheduleTimestamp": shown(run.planned_at),
        "completionTimestamp": shown(run.finished_at) if run.finished else None,
        "runStatus": status[0],
        "runState": status[1],
    }


def _text_of(run: Run) -> str:
    """Returns the text that the job reported, or else the target's answer; for a failed call, the answer first."""
    if run.state is State.UNKNOWN and run.reason is Reason.DEADLINE:
        answered = f"; the endpoint had answered: {run.answer}" if run.answer else ""
        return f"no result was reported within ASYNC_EXEC_TIMEOUT{answered}"
    refused = run.http_status is not None and run.http_status >= 400
    return (run.answer if refused else None) or run.message or run.answer or ""


def planned_body(uuid: str, at: datetime) -> dict[str, Any]:
    """Returns the line of a planned run, which is already part of the log."""
    return {
        "runId": uuid,
        "runText": "",
        "httpStatus": None,
        "executionTimestamp": None,
        "scheduleTimestamp": shown(at),
        "completionTimestamp": None,
        "runStatus": "SCHEDULED",
        "runState": "SCHEDULED",
    }
