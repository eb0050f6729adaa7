"""The action `sns`: a message to a topic, standard or FIFO.

A repetition publishes a second message with the same attribute Sweephand-Run-Id. A FIFO topic drops it if it comes
within five minutes, because the run's id is its deduplication id.
"""

from __future__ import annotations

from typing import Any, final

from sweephand.base.errors import InvalidRequest
from sweephand.base.records import dataclass
from sweephand.domain.job import Payload
from sweephand.server.actions.aws.service import Sent, sent_from
from sweephand.server.actions.aws.sqs import Message, message_group
from sweephand.server.actions.call import Call
from sweephand.server.actions.kind import string
from sweephand.server.actions.payloads import message
from sweephand.server.security.aws_targets import Arn


@final
@dataclass(frozen=True)
class Sns(Message):
    """A message to a topic of SNS. subject: the subject of e-mails."""

    subject: str | None = string(
        "subject",
        1,
        100,
        like=(r"[!-~](?:[ -~]*[!-~])?", "must be visible ASCII, without spaces at its ends"),
        more={"pattern": "^[ -~]*$"},
        default=None,
    )
    group: str | None = message_group()

    kind = "sns"

    def check_payload(self, payload: Payload, field: str) -> None:
        super().check_payload(payload, field)
        if not payload.text:
            raise InvalidRequest(field, "SNS accepts no empty string")

    def send(self, call: Call, client: Any, target: Arn) -> Sent:
        answer = client.publish(
            TopicArn=target.text,
            Message=message(call),
            MessageAttributes=self.facts(call),
            **({} if self.subject is None else {"Subject": self.subject}),
            **self.in_order(self.group, call, target),
        )
        return sent_from(answer, "MessageId")
