"""The action `sns`: a message to a topic, standard or FIFO.

A repetition publishes a second message with the same attribute Sweephand-Run-Id. A FIFO topic drops it if it comes
within five minutes, because the run's id is its deduplication id.
"""

from __future__ import annotations

from typing import Any, final

from sweephand.actions.aws.service import Sent, sent_from
from sweephand.actions.aws.sqs import Message, message_group
from sweephand.actions.call import Call
from sweephand.actions.kind import string
from sweephand.actions.payloads import message
from sweephand.domain.job import Payload
from sweephand.errors import InvalidRequest
from sweephand.records import dataclass
from sweephand.security.aws_targets import Arn


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
