"""The action `events`: an event to another EventBridge bus.

A repeat puts a second event with the same `resources` and `time`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from sweephand.actions import aws
from sweephand.actions.aws import AwsParams, from_json, to_json
from sweephand.actions.call import Call
from sweephand.actions.rules import kept_secrets
from sweephand.domain.job import Payload
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.run import Outcome
from sweephand.errors import InvalidRequest
from sweephand.security.aws_targets import Arn
from sweephand.security.guard import GuardSettings, Outbound

__all__ = ["check_payload", "from_json", "kept_secrets", "parse", "perform", "to_json"]

MAX_SOURCE, MAX_DETAIL_TYPE = 256, 128
_VISIBLE = re.compile(r"[!-~]+", re.ASCII)
_PASSING = aws.PASSING | {"InternalFailure", "InternalException", "ServiceUnavailable"}


def parse(fields: object, *, field: str, guard: GuardSettings) -> AwsParams:
    """source, detailType: of the event; its detail is the payload."""
    own = {"source": _source, "detailType": detail_type}
    given, params = aws.parse(fields, field=field, guard=guard, service="events", own=own)
    check_payload(params, params.payload, aws.payload_field(given, field))
    return params


def _source(given: Mapping[str, Any], _: object, field: str) -> str:
    path = below(field, "source")
    if "source" not in given:
        raise InvalidRequest(path, "is required")
    source = read.text(given["source"], path, 1, MAX_SOURCE)
    if not _VISIBLE.fullmatch(source):
        raise InvalidRequest(path, "must be visible ASCII without blanks")
    if source.startswith("aws."):
        raise InvalidRequest(path, "begins with aws., which AWS keeps for itself")
    return source


def detail_type(given: Mapping[str, Any], _: object, field: str) -> str:
    path = below(field, "detailType")
    if "detailType" not in given:
        raise InvalidRequest(path, "is required")
    return read.text(given["detailType"], path, 1, MAX_DETAIL_TYPE)


def check_payload(params: AwsParams, payload: Payload | None, field: str) -> None:  # noqa: ARG001 - one interface for all kinds
    aws.check_object(payload, field)


def perform(params: AwsParams, call: Call, outbound: Outbound) -> Outcome:
    return aws.attempt(params, call, outbound, "events", partial(_send, params, call))


def _send(params: AwsParams, call: Call, client: Any, target: Arn) -> aws.Sent:
    entry = {
        "EventBusName": target.text,
        "Source": params.options["source"],
        "DetailType": params.options["detailType"],
        "Detail": aws.json_message(call),
        "Time": call.planned_at,
        "Resources": [call.run_id],
    }
    answer = client.put_events(Entries=[entry])
    (said,) = answer["Entries"]
    if "ErrorCode" in said:
        code = str(said["ErrorCode"])
        message = f"{code}: {said.get('ErrorMessage', '')}"[: aws.MAX_MESSAGE]
        raise aws.TargetFailedError(message, retryable=code in _PASSING)
    return aws.Sent(said["EventId"], answer.get("ResponseMetadata", {}).get("HTTPStatusCode"))
