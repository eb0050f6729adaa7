"""The action `sns`: a message to a topic, standard or FIFO.

A repeat publishes a second message with the same attribute Sweephand-Run-Id; a FIFO topic drops it if it comes within
five minutes, because the run's id is its deduplication id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, final

from sweephand.actions.aws.service import Sent, told
from sweephand.actions.aws.sqs import Message, message_group
from sweephand.actions.call import Call
from sweephand.actions.kind import Reading, member
from sweephand.actions.payloads import message
from sweephand.domain.job import Payload
from sweephand.domain.members import fields as read
from sweephand.errors import InvalidRequest
from sweephand.json_schema import text
from sweephand.security.aws_targets import Arn

MAX_SUBJECT = 100
_SUBJECT = re.compile(r"[!-~](?:[ -~]*[!-~])?", re.ASCII)


def _subject(value: Any, path: str, _: Reading) -> str:
    subject = read.text(value, path, 1, MAX_SUBJECT)
    if not _SUBJECT.fullmatch(subject):
        raise InvalidRequest(path, "must be visible ASCII, without blanks at its ends")
    return subject


@final
@dataclass(frozen=True)
class Sns(Message):
    """A message to a topic of SNS. subject: of e-mails."""

    subject: str | None = member(
        "subject", text(1, MAX_SUBJECT, pattern="^[ -~]*$"), _subject, nullable=True, default=None
    )
    group: str | None = message_group()

    kind = "sns"

    def check_payload(self, payload: Payload, field: str) -> None:
        """Raises InvalidRequest for what SNS does not take."""
        super().check_payload(payload, field)
        if not payload.text:
            raise InvalidRequest(field, "SNS takes no empty text")

    def send(self, call: Call, client: Any, target: Arn) -> Sent:
        """Publishes the message."""
        answer = client.publish(
            TopicArn=target.text,
            Message=message(call),
            MessageAttributes=self.facts(call),
            **({} if self.subject is None else {"Subject": self.subject}),
            **self.in_order(self.group, call, target),
        )
        return told(answer, "MessageId")
