"""The action `event`: an event on the stack's own bus, for whoever has a rule there.

A repeat puts a second event with the same `id`: the run's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sweephand.actions import rules as outcome_rules
from sweephand.actions.call import Call
from sweephand.actions.payloads import check_size, parse_payload
from sweephand.actions.rules import Rules, failed, kept_secrets, taken
from sweephand.domain.instants import text, text_ms
from sweephand.domain.job import Payload
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.members.json_text import dumps, loads
from sweephand.domain.run import Outcome, Reason
from sweephand.errors import Mistakes
from sweephand.security.guard import GuardSettings, Outbound

__all__ = ["check_payload", "from_json", "kept_secrets", "parse", "perform", "to_json"]

USUAL_TYPE = "job"
MAX_DETAIL_TYPE = 128
_MEMBERS = ("type", "detailType", "payload", "body", "outcome", "retry")


@dataclass(frozen=True)
class EventParams:
    """payload: only there after `parse`."""

    detail_type: str = USUAL_TYPE
    rules: Rules = field(default_factory=Rules)
    payload: Payload | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)


def parse(fields: object, *, field: str, guard: GuardSettings) -> EventParams:  # noqa: ARG001 - one interface for all kinds
    wrong = Mistakes()
    given = read.members(fields, field, _MEMBERS, wrong)
    brought = wrong.of(parse_payload, given, field)
    kind = given.get("detailType", USUAL_TYPE)
    detail_type = wrong.of(read.text, kind, below(field, "detailType"), 1, MAX_DETAIL_TYPE)
    rules = wrong.of(outcome_rules.parse, given.get("outcome", {}), below(field, "outcome"))
    wrong.check()
    path, payload = brought
    params = EventParams(detail_type, rules, payload)
    check_payload(params, payload, path)
    return params


def check_payload(params: EventParams, payload: Payload | None, field: str) -> None:  # noqa: ARG001 - one interface for all kinds
    if payload is not None:
        check_size(payload, field)


def to_json(params: EventParams) -> dict[str, Any]:
    return {"type": "event", "detailType": params.detail_type, "outcome": outcome_rules.to_json(params.rules)}


def from_json(stored: Mapping[str, Any]) -> EventParams:
    return EventParams(stored["detailType"], outcome_rules.from_json(stored["outcome"]))


def perform(params: EventParams, call: Call, outbound: Outbound) -> Outcome:  # noqa: ARG001 - one interface for all kinds
    assert call.put_event is not None
    refused = call.put_event(params.detail_type, dumps(_detail(call)))
    if refused is not None:
        return failed(Reason.TARGET_ERROR, f"the event bus did not take the event: {refused}", retryable=True)
    return taken(params.rules, call, None, told=False)


def _detail(call: Call) -> dict[str, Any]:
    """As events/schemas/job.json has it.

    Source: the events of Root JobScheduler, whose names are kept (`jobScheduleId`, `tag`, `jobTime`). Its
    `jobScheduleId` is the id that create returned and that edit and delete take: here the job's, of every run.
    """
    payload = None
    if call.payload is not None:
        payload = loads(call.payload) if call.payload_is_json else call.payload
    return {
        "id": call.run_id,
        "tenant": call.tenant,
        "jobId": call.job_id,
        "jobScheduleId": call.job_id,
        "scheduleId": call.schedule_id,
        "resourceId": call.resource_id,
        "tag": call.tags[0] if call.tags else None,
        "tags": list(call.tags),
        "jobTime": text(call.planned_at),
        "firedAt": text_ms(call.clock.now()),
        "attempt": call.attempt,
        "payload": payload,
        "traceparent": traceparent(call),
    }


def traceparent(call: Call) -> str:
    """Of the W3C's Trace Context: all attempts of a run are one trace, each is a span. Not sampled: we record none."""
    trace = call.run_id.rpartition("_")[2].replace("-", "")
    span = hashlib.sha256(f"{call.run_id} {call.attempt}".encode()).hexdigest()[:16]
    return f"00-{trace}-{span}-00"
