"""The action `lambda`: a function is invoked, and its answer awaited (`sync`) or not (`async`).

A repeat invokes it again, with the same run id: `sync` tells it in `context.client_context.custom`; both tell it in the
event itself where the job has no payload, or asks for an envelope.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import Any

from sweephand.actions import aws
from sweephand.actions.aws import AwsParams, from_json, to_json
from sweephand.actions.call import Call, run_as_payload
from sweephand.actions.dialects import facts
from sweephand.actions.rules import kept_secrets
from sweephand.domain.job import Payload
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.members.json_text import dumps, loads
from sweephand.domain.run import Outcome
from sweephand.security.aws_targets import Arn
from sweephand.security.guard import GuardSettings, Outbound

__all__ = ["check_payload", "from_json", "kept_secrets", "parse", "perform", "to_json"]

INVOCATIONS = {"sync": "RequestResponse", "async": "Event"}


def parse(fields: object, *, field: str, guard: GuardSettings) -> AwsParams:
    """envelope: the function gets the run, and the payload as its member `payload`."""
    own = {"invocation": _invocation, "envelope": _envelope}
    given, params = aws.parse(fields, field=field, guard=guard, service="lambda", own=own)
    check_payload(params, params.payload, aws.payload_field(given, field))
    return params


def _invocation(given: Mapping[str, Any], _: object, field: str) -> str:
    return read.one_of(given.get("invocation", "sync"), below(field, "invocation"), tuple(INVOCATIONS))


def _envelope(given: Mapping[str, Any], _: object, field: str) -> bool:
    return read.flag(given.get("envelope", False), below(field, "envelope"))


def check_payload(params: AwsParams, payload: Payload | None, field: str) -> None:  # noqa: ARG001 - one interface for all kinds
    aws.check_json(payload, field)


def perform(params: AwsParams, call: Call, outbound: Outbound) -> Outcome:
    return aws.attempt(params, call, outbound, "lambda", partial(_send, params, call))


def _send(params: AwsParams, call: Call, client: Any, target: Arn) -> aws.Sent:
    context = json.dumps({"custom": facts(call)}).encode()
    answer = client.invoke(
        FunctionName=target.text,
        InvocationType=INVOCATIONS[params.options["invocation"]],
        ClientContext=base64.b64encode(context).decode(),
        Payload=_event(params, call).encode(),
    )
    with closing(answer["Payload"]) as body:
        text = body.read(aws.MAX_ANSWER).decode(errors="ignore") or None
    if "FunctionError" in answer:
        raise aws.TargetFailedError(_error_of(text), answer=text)
    return aws.Sent(text, answer["StatusCode"])


def _event(params: AwsParams, call: Call) -> str:
    text = aws.json_message(call)
    if not params.options["envelope"] or call.payload is None:
        return text
    return dumps({**run_as_payload(call), "payload": loads(text)})


def _error_of(text: str | None) -> str:
    """What the function said of its error: `type: message`."""
    try:
        said = json.loads(text or "")
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, Mapping):
        return "the function failed"
    parts = [str(said[name]) for name in ("errorType", "errorMessage") if said.get(name)]
    return (": ".join(parts) or "the function failed")[: aws.MAX_MESSAGE]
