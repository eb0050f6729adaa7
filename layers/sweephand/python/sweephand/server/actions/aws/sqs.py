"""The action `sqs`: a message to a queue, standard or FIFO.

A repetition sends a second message with the same attribute Sweephand-Run-Id. A FIFO queue drops it if it comes within
five minutes, because the run's id is its deduplication id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, final

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_schema import text
from sweephand.base.members import fields as read
from sweephand.base.records import dataclass
from sweephand.domain.job import Payload
from sweephand.server.actions.aws.service import AwsAction, Sent, sent_from
from sweephand.server.actions.call import Call
from sweephand.server.actions.kind import Reading, member
from sweephand.server.actions.payloads import STRANGE, message
from sweephand.server.actions.run_headers import facts, traceparent
from sweephand.server.security.aws_targets import Arn

GROUP = re.compile(r"[!-~]{1,128}", re.ASCII)


def _group(value: Any, path: str, reading: Reading) -> str:
    target = reading.values.get("target")
    if target is not None and not target.endswith(".fifo"):
        field, _, name = path.rpartition(".")
        raise read.inactive(field, name, "it belongs to targets whose name ends in .fifo")
    group = read.text(value, path, 1, 128)
    if not GROUP.fullmatch(group):
        raise InvalidRequest(path, "must be visible ASCII without spaces")
    return group


def message_group() -> Any:
    """Declares the group of a FIFO target. The default is the job's id, so that the runs of a job arrive in order."""
    described = text(1, 128, pattern="^[!-~]+$", description="Only for a FIFO target; by default the job's id.")
    return member("messageGroupId", described, _group, default=None)


@dataclass(frozen=True)
class Message(AwsAction):
    """A message to a queue or topic, which may be FIFO. attributes: those of a redirected message."""

    attributes: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def facts(self, call: Call) -> dict[str, dict[str, str]]:
        """Returns the attributes of the message: those that identify the run, and its own or else the run's trace.

        A message has ten attributes at most, and its own may need all that the run leaves.
        """
        named = {**(self.attributes or {"traceparent": traceparent(call)}), **facts(call)}
        return {name: {"DataType": "String", "StringValue": value} for name, value in named.items()}

    @staticmethod
    def in_order(group: str | None, call: Call, target: Arn) -> dict[str, str]:
        """Returns the group and the deduplication id that a FIFO target needs."""
        if not target.fifo:
            return {}
        return {"MessageGroupId": group or call.job_id or call.run_id, "MessageDeduplicationId": call.run_id}


@final
@dataclass(frozen=True)
class Sqs(Message):
    """A message to a queue of SQS."""

    group: str | None = message_group()

    kind = "sqs"

    def check_payload(self, payload: Payload, field: str) -> None:
        super().check_payload(payload, field)
        strange = STRANGE.search(payload.text)
        if strange or not payload.text:
            reason = (
                "SQS accepts no empty string"
                if not strange
                else "contains a control character, which SQS does not accept"
            )
            raise InvalidRequest(field, reason, position=strange.start() if strange else None)

    def send(self, call: Call, client: Any, target: Arn) -> Sent:
        """Sends the message. Builds the URL in the form that SQS uses, so it needs no permission to look it up."""
        answer = client.send_message(
            QueueUrl=f"{client.meta.endpoint_url}/{target.account}/{target.resource}",
            MessageBody=message(call),
            MessageAttributes=self.facts(call),
            **self.in_order(self.group, call, target),
        )
        return sent_from(answer, "MessageId")
