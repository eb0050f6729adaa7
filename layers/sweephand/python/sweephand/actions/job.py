"""The action `job`: a run of another job of the tenant is started, as if by hand. It succeeds once that run is written.

A repeat is harmless: the id of the new run follows from the run that starts it. That is how an error action does more
than one thing: it runs a job, whose schedules, retries and error action are its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sweephand.actions.call import Call
from sweephand.actions.payloads import parse_payload
from sweephand.actions.rules import failed, kept_secrets
from sweephand.domain.job import Payload
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.errors import InvalidRequest, Mistakes
from sweephand.ids import is_uuid
from sweephand.security.guard import GuardSettings, Outbound

__all__ = ["check_payload", "from_json", "kept_secrets", "parse", "perform", "to_json"]

MOST_HOPS = 10
"""Runs in a chain of jobs that run jobs: two that run each other come to an end."""
_MEMBERS = ("type", "jobId", "payload", "body", "retry")


@dataclass(frozen=True)
class JobParams:
    job_id: str
    payload: Payload | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)


def parse(fields: object, *, field: str, guard: GuardSettings) -> JobParams:  # noqa: ARG001 - one interface for all kinds
    """Whether there is such a job, its run will tell: two jobs that name each other cannot be made otherwise."""
    wrong = Mistakes()
    given = read.members(fields, field, _MEMBERS, wrong)
    params = JobParams(wrong.of(_job_id, given, field))
    brought = wrong.of(parse_payload, given, field)
    if brought is not None:
        wrong.of(check_payload, params, brought[1], brought[0])
    wrong.check()
    return params


def _job_id(given: Mapping[str, Any], field: str) -> str:
    path = below(field, "jobId")
    if "jobId" not in given:
        raise InvalidRequest(path, "is required")
    found = read.text(given["jobId"], path, 1, 64)
    if not is_uuid(found):
        raise InvalidRequest(path, f"is not the id of a job: {read.shown(found)}")
    return found


def check_payload(params: JobParams, payload: Payload | None, field: str) -> None:  # noqa: ARG001 - one interface for all kinds
    if payload is not None:
        raise InvalidRequest(field, "does not act here: the other job sends its own payload")


def to_json(params: JobParams) -> dict[str, Any]:
    return {"type": "job", "jobId": params.job_id}


def from_json(stored: Mapping[str, Any]) -> JobParams:
    return JobParams(stored["jobId"])


def perform(params: JobParams, call: Call, outbound: Outbound) -> Outcome:  # noqa: ARG001 - one interface for all kinds
    assert call.start_job is not None
    if call.hop > MOST_HOPS:
        return failed(Reason.GUARD, f"{MOST_HOPS} jobs in a row have run each other already", retryable=False)
    if call.closes_circle:
        return failed(Reason.GUARD, "its job had a run in this chain before: a circle goes round once", retryable=False)
    started = call.start_job(params.job_id)
    if started is None:
        return failed(Reason.NO_TARGET, f"there is no job {params.job_id}", retryable=False)
    return Outcome(Verdict.SUCCEEDED, answer=started)
