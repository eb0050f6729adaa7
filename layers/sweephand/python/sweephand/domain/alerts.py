"""The alerts that a job of the SAP facade requests with ansConfig and calmConfig. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sweephand.domain.event import Event, EventType, event_of, job_members
from sweephand.domain.instants import text_ms
from sweephand.domain.job import Job
from sweephand.domain.run import APART, FAILED, Run, State
from sweephand.domain.schedule import Schedule

DELAYED = timedelta(minutes=20)
"""SAP's service promises that no run begins later than this."""
JOB_EXECUTION = "JobSchedulerJobExecution"


def requested(run: Run, job: Job, schedule: Schedule | None) -> list[Event]:
    """Returns the alert that `ansConfig` requests for a finished run, and the status that `calmConfig` requests.

    There are none for states that SAP's log does not have (skipped, missed, cancelled), for error actions and for
    tests. Like a collection's events, alerts are about runs, not about attempts.
    """
    if run.state not in FAILED | {State.SUCCESS} or run.kind in APART or run.range_count is not None:
        return []
    alerts_of_run = []
    occasions = _occasions(run, job.attributes.get("ansConfig", {}))
    if occasions:
        alert = {"occasions": occasions, "alert": _alert(run, job, schedule)}
        alerts_of_run.append(_of_alert(EventType.ALERT_RAISED, run, job, alert))
    if job.attributes.get("calmConfig", {}).get("enabled"):
        status = {"executionStatus": run.state.status.value, "applicationStatus": run.state.value}
        alerts_of_run.append(_of_alert(EventType.ALERT_STATUS, run, job, status))
    return alerts_of_run


def _occasions(run: Run, config: Mapping[str, bool]) -> list[str]:
    """Returns the members of ansConfig that apply to this run."""
    of_run = {
        "onSuccess": run.state is State.SUCCESS,
        "onError": run.state in FAILED,
        "onDelay": run.lateness_ms is not None and run.lateness_ms > DELAYED / timedelta(milliseconds=1),
    }
    return [name for name, holds in of_run.items() if holds and config.get(name)]


def _alert(run: Run, job: Job, schedule: Schedule | None) -> dict[str, Any]:
    """Returns the alert in the format of SAP Alert Notification."""
    failed = run.state in FAILED
    outcome = "failed" if failed else "succeeded"
    return {
        "eventType": JOB_EXECUTION,
        "severity": "ERROR" if failed else "INFO",
        "category": "ALERT" if failed else "NOTIFICATION",
        "subject": f"Job {job.name}: {run.state}",
        "body": f"The run {run.uuid} of the job {job.name}, planned at {text_ms(run.planned_at)}, {outcome}.",
        "resource": {"resourceName": job.name, "resourceType": "job"},
        "tags": {
            "runStatus": run.state.status.value,
            "runState": run.state.value,
            "scheduleDescription": "" if schedule is None else str(schedule.attributes.get("description", "")),
        },
    }


def _of_alert(kind: EventType, run: Run, job: Job, members: Mapping[str, Any]) -> Event:
    ids = {"runId": run.id, "scheduleId": run.schedule_id, "integerJobId": job.integer_id}
    times = {"plannedAt": text_ms(run.planned_at), "latenessMs": run.lateness_ms}
    at = run.finished_at or run.planned_at
    return event_of(kind, run.id, at, run.tenant, job.collection, {**job_members(job), **ids, **times, **members})
