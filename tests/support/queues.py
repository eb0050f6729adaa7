"""SQS by the virtual clock: delays, visibility, receive counts and the way to the dead letters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from botocore.exceptions import ClientError

from tests.support.sources import VirtualClock
from tests.support.taps import Passing, Taps


@dataclass
class Message:
    id: str
    body: str
    sent_at: datetime
    visible_at: datetime
    receive_count: int = 0
    receipt: str = ""


@dataclass
class Queue:
    """visibility_s and most_receives as the template has them; dead: for what was received as often."""

    visibility_s: int
    most_receives: int | None = None
    dead: Queue | None = None
    messages: list[Message] = field(default_factory=list)


class VirtualSqs:
    """What the service uses of botocore's SQS client, and the receiving side for tests.

    A standard queue at its least friendly: an old receipt deletes nothing.
    """

    def __init__(self, clock: VirtualClock, taps: Taps, queues: dict[str, Queue]) -> None:
        self._clock = clock
        self._taps = taps
        self._queues = queues
        self._numbers = count(1)

    # As the service calls it

    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        return self._tapped("SendMessageBatch", request, self._send_batch)

    def send_message(self, **request: Any) -> dict[str, Any]:
        return self._tapped("SendMessage", request, self._send)

    def get_queue_attributes(self, **request: Any) -> dict[str, Any]:
        return self._tapped("GetQueueAttributes", request, self._attributes)

    def change_message_visibility_batch(self, **request: Any) -> dict[str, Any]:
        return self._tapped("ChangeMessageVisibilityBatch", request, self._change_visibility)

    def _tapped(self, operation: str, request: dict[str, Any], act: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._taps(Passing("sqs", operation, request), lambda: act(request))
        return answer

    def _send_batch(self, request: dict[str, Any]) -> dict[str, Any]:
        entries = request["Entries"]
        self._check(entries, "SendMessageBatch")
        for entry in entries:
            self._put(request["QueueUrl"], entry["MessageBody"], entry.get("DelaySeconds", 0))
        return {"Successful": [{"Id": entry["Id"]} for entry in entries]}

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        self._put(request["QueueUrl"], request["MessageBody"], request.get("DelaySeconds", 0))
        return {"MessageId": "1"}

    def _change_visibility(self, request: dict[str, Any]) -> dict[str, Any]:
        self._check(request["Entries"], "ChangeMessageVisibilityBatch")
        by_receipt = {message.receipt: message for message in self._queues[request["QueueUrl"]].messages}
        for entry in request["Entries"]:
            seconds = entry["VisibilityTimeout"]
            assert isinstance(seconds, int)
            assert 0 <= seconds <= 43_200
            message = by_receipt.get(entry["ReceiptHandle"])
            if message is not None:
                message.visible_at = self._clock.now() + timedelta(seconds=seconds)
        return {"Successful": []}

    def _attributes(self, request: dict[str, Any]) -> dict[str, Any]:
        now, messages = self._clock.now(), self._queues[request["QueueUrl"]].messages
        hidden = [message for message in messages if message.visible_at > now]
        delayed = sum(1 for message in hidden if message.receive_count == 0)
        counts = {
            "ApproximateNumberOfMessages": len(messages) - len(hidden),
            "ApproximateNumberOfMessagesDelayed": delayed,
            "ApproximateNumberOfMessagesNotVisible": len(hidden) - delayed,
        }
        return {"Attributes": {name: str(counts[name]) for name in request["AttributeNames"]}}

    def _check(self, entries: list[dict[str, Any]], operation: str) -> None:
        ids = [entry["Id"] for entry in entries]
        if not entries or len(entries) > 10 or len(set(ids)) != len(ids):
            raise ClientError({"Error": {"Code": "AWS.SimpleQueueService.BadBatch", "Message": ""}}, operation)

    def _put(self, url: str, body: str, delay_s: int) -> None:
        assert isinstance(delay_s, int)
        if not 0 <= delay_s <= 900:
            raise ClientError({"Error": {"Code": "InvalidParameterValue", "Message": "DelaySeconds"}}, "SendMessage")
        now = self._clock.now()
        message = Message(f"m{next(self._numbers)}", body, now, now + timedelta(seconds=delay_s))
        self._queues[url].messages.append(message)

    # As a test sees it

    def receive(self, url: str, most: int = 10) -> list[Message]:
        """Those that are visible now, the longest visible first; one received too often goes to the dead letters."""
        now, queue = self._clock.now(), self._queues[url]
        taken: list[Message] = []
        for message in sorted(queue.messages, key=lambda message: message.visible_at):
            if message.visible_at > now or len(taken) == most:
                break
            if queue.most_receives is not None and message.receive_count >= queue.most_receives:
                assert queue.dead is not None
                queue.messages.remove(message)
                queue.dead.messages.append(
                    Message(message.id, message.body, message.sent_at, now, 0),
                )
                continue
            message.receive_count += 1
            message.receipt = f"receipt-{message.id}-{next(self._numbers)}"
            message.visible_at = now + timedelta(seconds=queue.visibility_s)
            taken.append(message)
        return taken

    def delete(self, url: str, receipt: str) -> None:
        queue = self._queues[url]
        queue.messages[:] = [message for message in queue.messages if message.receipt != receipt]

    def duplicate(self, url: str) -> None:
        """Each message comes twice."""
        queue = self._queues[url]
        for message in list(queue.messages):
            copy = Message(f"m{next(self._numbers)}", message.body, message.sent_at, message.visible_at)
            queue.messages.append(copy)

    def purge(self, url: str) -> None:
        self._queues[url].messages.clear()

    def bodies(self, url: str) -> list[str]:
        return [message.body for message in self._queues[url].messages]

    def next_visible_at(self, urls: Iterable[str]) -> datetime | None:
        """When the next message of these queues can be received."""
        return min((message.visible_at for url in urls for message in self._queues[url].messages), default=None)
