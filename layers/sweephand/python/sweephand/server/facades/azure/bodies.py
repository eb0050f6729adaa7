"""Converts jobs of the domain to Azure's JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from sweephand.domain.collection import Collection, CollectionState
from sweephand.domain.instants import text
from sweephand.domain.job import ActionSpec, Job, JobState
from sweephand.domain.jobs.job_state import ended_state
from sweephand.domain.occurrences import upcoming
from sweephand.domain.schedule import Schedule
from sweephand.formats.azure import actions
from sweephand.formats.azure.collection_fields import FREE, id_of, plan_name
from sweephand.formats.azure.collection_fields import TYPE as COLLECTION_TYPE
from sweephand.formats.azure.free_plan import LEAST_RETRY_S
from sweephand.formats.azure.members import TARGETS
from sweephand.formats.azure.shapes import seconds_of
from sweephand.schedules.timing import load_or_never
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.store.views.totals import Progress

TYPE = f"{COLLECTION_TYPE}/jobs"
FINAL = {JobState.COMPLETED: "Completed", JobState.FAULTED: "Faulted"}


class Client(Enum):
    """The generations of clients, which read durations in two forms: ISO 8601 and hh:mm:ss."""

    ISO = "iso"
    ISO_IN_LISTS = "iso in lists"
    TIME_SPAN = "time span"

    @classmethod
    def of(cls, agent: str) -> Client:
        """Returns the generation of the client with this User-Agent."""
        if "Microsoft.Azure.Management.Scheduler" in agent:
            return cls.TIME_SPAN
        old = ("azure-mgmt-scheduler/1.", "azure-mgmt-scheduler/2.", "schedulermanagementclient/")
        if "azsdk-python-mgmt-scheduler/" not in agent and any(each in agent for each in old):
            return cls.ISO_IN_LISTS
        return cls.ISO

    def durations(self, *, in_list: bool) -> Callable[[int], str]:
        """Returns the function that formats durations for the client."""
        iso = self is Client.ISO or (in_list and self is Client.ISO_IN_LISTS)
        return iso_duration if iso else time_span


def iso_duration(seconds: int) -> str:
    """Returns a duration such as P1DT2H3M4S."""
    days, rest = divmod(seconds, 86_400)
    parts = zip((rest // 3_600, rest // 60 % 60, rest % 60), "HMS", strict=True)
    time = "".join(f"{number}{unit}" for number, unit in parts if number)
    return f"P{days}D" * bool(days) + (("" if days else "P") + f"T{time}") * bool(time)


def time_span(seconds: int) -> str:
    """Returns a duration such as 1.02:03:04, or 02:03:04 if it is less than a day."""
    days, rest = divmod(seconds, 86_400)
    return f"{days}." * bool(days) + f"{rest // 3_600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def job_id(collection: Collection, job: Job) -> str:
    return f"{id_of(collection)}/jobs/{job.attributes['name']}"


def job_name(collection: Collection, job: Job) -> str:
    return f"{collection.attributes['name']}/{job.attributes['name']}"


def state_of(planned: Planned) -> str:
    ended = ended_state(planned.schedules)
    if ended is not None:
        return FINAL[ended]
    return "Enabled" if planned.job.active else "Disabled"


def job_body(
    collection: Collection,
    planned: Planned,
    progress: Mapping[str, Progress],
    now: datetime,
    durations: Callable[[int], str],
) -> dict[str, Any]:
    """Returns a job. progress: of its schedule, by id. durations: formats durations for the client."""
    job = planned.job
    shown = dict(job.attributes["properties"])
    usual_s = LEAST_RETRY_S if plan_name(collection) == FREE else actions.RETRY_S
    shown["action"] = _action(job, shown["action"], usual_s, durations)
    if "recurrence" in shown:
        shown["recurrence"] = _recurrence(shown["recurrence"])
    shown["state"] = state_of(planned)
    progress_of_job = progress[planned.schedules[0].id] if planned.schedules else Progress()
    shown["status"] = _status(collection, planned, progress_of_job, now)
    return {
        "id": job_id(collection, job),
        "type": TYPE,
        "name": job_name(collection, job),
        "properties": shown,
    }


def _status(collection: Collection, planned: Planned, progress: Progress, now: datetime) -> dict[str, Any]:
    totals = progress.totals
    shown: dict[str, Any] = {
        "executionCount": totals.executions,
        "failureCount": totals.failed_attempts,
        "faultedCount": totals.failed,
    }
    if progress.started_at is not None:
        shown["lastExecutionTime"] = precise(progress.started_at)
    ahead = _next_run(planned.schedules[0], now) if planned.schedules and state_of(planned) == "Enabled" else None
    if ahead is not None and collection.state is CollectionState.ENABLED:
        shown["nextExecutionTime"] = text(ahead)
    return shown


def _next_run(schedule: Schedule, now: datetime) -> datetime | None:
    return upcoming.next_runs(schedule, load_or_never(schedule.packed), now, 1).first


def precise(instant: datetime) -> str:
    """Returns an instant with microseconds, as Azure does."""
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def _recurrence(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a recurrence with its interval, and with monthly occurrences under both of their names."""
    shown = {"interval": 1, **stored}
    if "monthlyOccurrences" in stored.get("schedule", {}):
        days = [_both_names(each) for each in stored["schedule"]["monthlyOccurrences"]]
        shown["schedule"] = {**stored["schedule"], "monthlyOccurrences": days}
    return shown


def _both_names(recurrence: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a monthly occurrence with the member names of the documentation and of the Python client."""
    return {**recurrence, "Occurrence": recurrence["occurrence"]} if "occurrence" in recurrence else dict(recurrence)


def _action(job: Job, stored: Mapping[str, Any], usual_s: int, durations: Callable[[int], str]) -> dict[str, Any]:
    shown = _target(stored, job.action, usual_s, durations)
    if "errorAction" in stored and job.error_action is not None:
        shown["errorAction"] = _target(stored["errorAction"], job.error_action, usual_s, durations)
    return shown


def _target(
    stored: Mapping[str, Any], spec: ActionSpec, usual_s: int, durations: Callable[[int], str]
) -> dict[str, Any]:
    member = TARGETS[stored["type"]]
    target = dict(stored[member])
    if member == "request" and "authentication" in target:
        target["authentication"] = _authentication(target["authentication"], spec)
    properties = target.get("brokeredMessageProperties", {})
    if "timeToLive" in properties:
        lives = durations(seconds_of(properties["timeToLive"]))
        target["brokeredMessageProperties"] = {**properties, "timeToLive": lives}
    shown = {"type": stored["type"], member: target}
    if "retryPolicy" in stored:
        shown["retryPolicy"] = _retry_policy(stored["retryPolicy"], spec.retry.get("delaySeconds", usual_s), durations)
    return shown


def _retry_policy(stored: Mapping[str, Any], usual_s: int, durations: Callable[[int], str]) -> dict[str, Any]:
    if stored.get("retryType") == "None":
        return {"retryType": "None"}
    interval_s = seconds_of(stored["retryInterval"]) if "retryInterval" in stored else usual_s
    retries = stored.get("retryCount", actions.RETRIES)
    return {"retryType": "Fixed", "retryInterval": durations(interval_s), "retryCount": retries}


def _authentication(stored: Mapping[str, Any], spec: ActionSpec) -> dict[str, Any]:
    """Returns the authentication. A certificate is described, not returned."""
    if stored["type"] != "ClientCertificate":
        return dict(stored)
    certificate = spec.params["authentication"]["certificate"]
    return {
        "type": "ClientCertificate",
        "certificateThumbprint": certificate["thumbprint"],
        "certificateSubjectName": certificate["subject"],
        "certificateExpirationDate": certificate["notAfter"],
        "certificateExpiration": certificate["notAfter"],
    }
