"""The action `sqs`: a message to a queue, standard or FIFO.

A repeat sends a second message with the same attribute Sweephand-Run-Id; a FIFO queue drops it if it comes within
five minutes, because the run's id is its deduplication id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from sweephand.actions import aws
from sweephand.actions.aws import AwsParams, from_json, to_json
from sweephand.actions.call import Call
from sweephand.actions.dialects import facts
from sweephand.actions.payloads import STRANGE, check_size
from sweephand.actions.rules import kept_secrets
from sweephand.domain.job import Payload
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.run import Outcome
from sweephand.errors import InvalidRequest
from sweephand.security.aws_targets import Arn
from sweephand.security.guard import GuardSettings, Outbound

__all__ = ["check_payload", "from_json", "kept_secrets", "parse", "perform", "to_json"]

GROUP = re.compile(r"[!-~]{1,128}", re.ASCII)


def parse(fields: object, *, field: str, guard: GuardSettings) -> AwsParams:
    """messageGroupId: of a FIFO queue; without one the job's id, so that the runs of a job come in their order."""
    own = {"messageGroupId": group_id}
    given, params = aws.parse(fields, field=field, guard=guard, service="sqs", own=own)
    check_payload(params, params.payload, aws.payload_field(given, field))
    return params


def group_id(given: Mapping[str, Any], target: Arn | None, field: str) -> str | None:
    path = below(field, "messageGroupId")
    if "messageGroupId" not in given:
        return None
    if target is not None and not target.fifo:
        raise read.inactive(field, "messageGroupId", "it belongs to targets whose name ends in .fifo")
    group = read.text(given["messageGroupId"], path, 1, 128)
    if not GROUP.fullmatch(group):
        raise InvalidRequest(path, "must be visible ASCII without blanks")
    return group


def check_payload(params: AwsParams, payload: Payload | None, field: str) -> None:  # noqa: ARG001 - one interface for all kinds
    if payload is None:
        return
    check_size(payload, field)
    strange = STRANGE.search(payload.text)
    if strange or not payload.text:
        reason = "SQS takes no empty text" if not strange else "holds a control character, which SQS does not take"
        raise InvalidRequest(field, reason, position=strange.start() if strange else None)


def perform(params: AwsParams, call: Call, outbound: Outbound) -> Outcome:
    return aws.attempt(params, call, outbound, "sqs", partial(_send, params, call))


def _send(params: AwsParams, call: Call, client: Any, target: Arn) -> aws.Sent:
    answer = client.send_message(
        # As SQS itself would give it, without the right to ask for it.
        QueueUrl=f"{client.meta.endpoint_url}/{target.account}/{target.resource}",
        MessageBody=aws.message(call),
        MessageAttributes=attributes(params, call),
        **in_order(params, call, target),
    )
    return aws.told(answer, "MessageId")


def attributes(params: AwsParams, call: Call) -> dict[str, dict[str, str]]:
    """What the run is, and what a redirected message brings along."""
    told = {**params.options.get("attributes", {}), **facts(call)}
    return {name: {"DataType": "String", "StringValue": value} for name, value in told.items()}


def in_order(params: AwsParams, call: Call, target: Arn) -> dict[str, str]:
    """Of a FIFO queue or topic."""
    if not target.fifo:
        return {}
    group = params.options["messageGroupId"] or call.job_id
    return {"MessageGroupId": group, "MessageDeduplicationId": call.run_id}
