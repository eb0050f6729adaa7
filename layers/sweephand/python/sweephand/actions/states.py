"""The action `states`: an execution of a Step Functions state machine is started under the run's id.

A repeat is harmless with standard workflows: a name starts one execution in 90 days. Express workflows start another,
of the same name.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from sweephand.actions import aws
from sweephand.actions.aws import AwsParams, from_json, to_json
from sweephand.actions.call import Call
from sweephand.actions.rules import kept_secrets
from sweephand.domain.job import Payload
from sweephand.domain.run import Outcome
from sweephand.security.aws_targets import Arn
from sweephand.security.guard import GuardSettings, Outbound

__all__ = ["check_payload", "from_json", "kept_secrets", "parse", "perform", "to_json"]


def parse(fields: object, *, field: str, guard: GuardSettings) -> AwsParams:
    given, params = aws.parse(fields, field=field, guard=guard, service="states")
    check_payload(params, params.payload, aws.payload_field(given, field))
    return params


def check_payload(params: AwsParams, payload: Payload | None, field: str) -> None:  # noqa: ARG001 - one interface for all kinds
    aws.check_json(payload, field)


def perform(params: AwsParams, call: Call, outbound: Outbound) -> Outcome:
    return aws.attempt(params, call, outbound, "states", partial(_send, call))


def _send(call: Call, client: Any, target: Arn) -> aws.Sent:
    try:
        answer = client.start_execution(stateMachineArn=target.text, name=call.run_id, input=aws.json_message(call))
    except ClientError as refused:
        if refused.response["Error"]["Code"] == "ExecutionAlreadyExists":
            return aws.Sent(f"the execution {call.run_id} was started before", None)
        raise
    return aws.told(answer, "executionArn")
