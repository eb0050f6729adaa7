"""The action `sns`: a message to a topic, standard or FIFO.

A repeat publishes a second message with the same attribute Sweephand-Run-Id; a FIFO topic drops it if it comes within
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
from sweephand.actions.payloads import check_size
from sweephand.actions.rules import kept_secrets
from sweephand.actions.sqs import attributes, group_id, in_order
from sweephand.domain.job import Payload
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.run import Outcome
from sweephand.errors import InvalidRequest
from sweephand.security.aws_targets import Arn
from sweephand.security.guard import GuardSettings, Outbound

__all__ = ["check_payload", "from_json", "kept_secrets", "parse", "perform", "to_json"]

MAX_SUBJECT = 100
_SUBJECT = re.compile(r"[!-~](?:[ -~]*[!-~])?", re.ASCII)


def parse(fields: object, *, field: str, guard: GuardSettings) -> AwsParams:
    """subject: of e-mails. messageGroupId: as of sqs."""
    own = {"subject": _subject, "messageGroupId": group_id}
    given, params = aws.parse(fields, field=field, guard=guard, service="sns", own=own)
    check_payload(params, params.payload, aws.payload_field(given, field))
    return params


def _subject(given: Mapping[str, Any], _: object, field: str) -> str | None:
    path = below(field, "subject")
    if "subject" not in given:
        return None
    subject = read.text(given["subject"], path, 1, MAX_SUBJECT)
    if not _SUBJECT.fullmatch(subject):
        raise InvalidRequest(path, "must be visible ASCII, without blanks at its ends")
    return subject


def check_payload(params: AwsParams, payload: Payload | None, field: str) -> None:  # noqa: ARG001 - one interface for all kinds
    if payload is None:
        return
    check_size(payload, field)
    if not payload.text:
        raise InvalidRequest(field, "SNS takes no empty text")


def perform(params: AwsParams, call: Call, outbound: Outbound) -> Outcome:
    return aws.attempt(params, call, outbound, "sns", partial(_send, params, call))


def _send(params: AwsParams, call: Call, client: Any, target: Arn) -> aws.Sent:
    subject = params.options["subject"]
    answer = client.publish(
        TopicArn=target.text,
        Message=aws.message(call),
        MessageAttributes=attributes(params, call),
        **({} if subject is None else {"Subject": subject}),
        **in_order(params, call, target),
    )
    return aws.told(answer, "MessageId")
