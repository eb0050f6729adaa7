"""The queues of an application."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from sweephand.base.records import dataclass
from sweephand.sdk import aws
from sweephand.sdk.errors import TransportError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_RECEIVED = 10
LONGEST_HIDDEN_S = 43_200


@dataclass(frozen=True)
class Message:
    """A received message. receipt: identifies this delivery. sent_at: when the queue accepted it. url: its queue."""

    body: str
    receipt: str
    sent_at: datetime
    url: str


class Queue(Protocol):
    """The queues of a worker. Its methods raise TransportError if a queue does not answer."""

    def receive(self, url: str, most: int, *, hidden_s: int, wait_s: int) -> Sequence[Message]: ...
    def hide(self, message: Message, seconds: float) -> None: ...
    def delete(self, message: Message) -> None: ...
    def send(self, url: str, body: str) -> None: ...


class SqsQueue:
    """A queue of Amazon SQS. client: a botocore client; by default one with the credentials of this machine.

    endpoint: of a local stack.
    """

    def __init__(self, region: str | None = None, client: Any = None, endpoint: str | None = None) -> None:
        self._client = client or aws.client_of("sqs", region, endpoint)

    def receive(self, url: str, most: int, *, hidden_s: int, wait_s: int) -> list[Message]:
        answer = self._asked(
            "receive_message",
            QueueUrl=url,
            MaxNumberOfMessages=min(most, MOST_RECEIVED),
            VisibilityTimeout=hidden_s,
            WaitTimeSeconds=wait_s,
            MessageSystemAttributeNames=["SentTimestamp"],
        )
        return [
            Message(
                each["Body"],
                each["ReceiptHandle"],
                EPOCH + timedelta(milliseconds=int(each["Attributes"]["SentTimestamp"])),
                url,
            )
            for each in answer.get("Messages", [])
        ]

    def hide(self, message: Message, seconds: float) -> None:
        """Sets how long the message stays hidden. Best effort: if it fails, the message reappears earlier or later."""
        wanted = max(0, min(LONGEST_HIDDEN_S, round(seconds)))
        with suppress(TransportError):
            self._asked(
                "change_message_visibility",
                QueueUrl=message.url,
                ReceiptHandle=message.receipt,
                VisibilityTimeout=wanted,
            )

    def delete(self, message: Message) -> None:
        """Deletes the message. Best effort: if it fails, the message reappears, and its run is already settled."""
        with suppress(TransportError):
            self._asked("delete_message", QueueUrl=message.url, ReceiptHandle=message.receipt)

    def send(self, url: str, body: str) -> None:
        self._asked("send_message", QueueUrl=url, MessageBody=body)

    def _asked(self, operation: str, **arguments: Any) -> dict[str, Any]:
        return aws.asked(self._client, operation, arguments["QueueUrl"], **arguments)
