"""SQS by the virtual clock: delays, visibility, receive counts and the way to the dead letters."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from botocore.exceptions import ClientError

from sweephand.domain.instants import epoch_ms
from sweephand.testing.sources import VirtualClock
from sweephand.testing.taps import Passing, Taps

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}", re.ASCII)
_GROUP = re.compile(r"[!-~]{1,128}", re.ASCII)
"""The characters that SQS takes as MessageGroupId."""
NOISY_FROM, NOISY_SHARE = 30, 0.1


@dataclass
class Message:
    """group: MessageGroupId, on a standard queue whose message it is for fairness, and nothing else."""

    id: str
    body: str
    sent_at: datetime
    visible_at: datetime
    group: str | None = None
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
    """The methods of botocore's SQS client that the service uses, and the receiving side for tests.

    A standard queue at its least friendly: an old receipt deletes nothing. AWS calls a group of a fair queue noisy if
    it has 30 messages in flight and over a tenth of all: who receives gets those of quiet groups first, then those of
    the noisy group that has the fewest in flight, and each message without a group is quiet. The other measure, a tenth
    of the time that all readers spent of late, is left out. The real thresholds are no more exact than that. Source:
    "How Amazon SQS fair queues work" in the developer guide of SQS.
    """

    def __init__(self, clock: VirtualClock, taps: Taps, queues: dict[str, Queue]) -> None:
        self._clock = clock
        self._taps = taps
        self._queues = queues
        self._place = next(iter(queues)).rpartition("/")[0]
        self._dead = next((queue.dead for queue in queues.values() if queue.dead), None)
        self.created: dict[str, dict[str, str]] = {}
        self._numbers = count(1)

    # For the service

    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        return self._tapped("SendMessageBatch", request, self._send_batch)

    def send_message(self, **request: Any) -> dict[str, Any]:
        return self._tapped("SendMessage", request, self._send)

    def get_queue_attributes(self, **request: Any) -> dict[str, Any]:
        return self._tapped("GetQueueAttributes", request, self._attributes)

    def change_message_visibility_batch(self, **request: Any) -> dict[str, Any]:
        return self._tapped("ChangeMessageVisibilityBatch", request, self._change_visibility)

    def receive_message(self, **request: Any) -> dict[str, Any]:
        return self._tapped("ReceiveMessage", request, self._received)

    def delete_message_batch(self, **request: Any) -> dict[str, Any]:
        return self._tapped("DeleteMessageBatch", request, self._deleted)

    def create_queue(self, **request: Any) -> dict[str, Any]:
        return self._tapped("CreateQueue", request, self._create)

    def set_queue_attributes(self, **request: Any) -> dict[str, Any]:
        return self._tapped("SetQueueAttributes", request, self._set)

    def delete_queue(self, **request: Any) -> dict[str, Any]:
        return self._tapped("DeleteQueue", request, self._delete_queue)

    def change_message_visibility(self, **request: Any) -> dict[str, Any]:
        return self._tapped("ChangeMessageVisibility", request, self._change_one)

    def delete_message(self, **request: Any) -> dict[str, Any]:
        return self._tapped("DeleteMessage", request, self._delete_one)

    def _tapped(self, operation: str, request: dict[str, Any], act: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._taps(Passing("sqs", operation, request), lambda: act(request))
        return answer

    def _create(self, request: dict[str, Any]) -> dict[str, Any]:
        name, attributes = request["QueueName"], request["Attributes"]
        assert _NAME.fullmatch(name)
        url = f"{self._place}/{name}"
        if url in self.created and self.created[url] != attributes:
            raise ClientError({"Error": {"Code": "QueueAlreadyExists", "Message": ""}}, "CreateQueue")
        if url not in self._queues:
            receives = json.loads(attributes["RedrivePolicy"])["maxReceiveCount"]
            self._queues[url] = Queue(int(attributes["VisibilityTimeout"]), receives, self._dead)
        self.created[url] = attributes
        return {"QueueUrl": url}

    def _set(self, request: dict[str, Any]) -> dict[str, Any]:
        self.created[request["QueueUrl"]] = request["Attributes"]
        return {}

    def _delete_queue(self, request: dict[str, Any]) -> dict[str, Any]:
        url = request["QueueUrl"]
        self.created.pop(url, None)
        if self._queues.pop(url, None) is None:
            raise ClientError({"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue", "Message": ""}}, "Delete")
        return {}

    def _change_one(self, request: dict[str, Any]) -> dict[str, Any]:
        self._change_visibility({"QueueUrl": request["QueueUrl"], "Entries": [{"Id": "0", **request}]})
        return {}

    def _delete_one(self, request: dict[str, Any]) -> dict[str, Any]:
        self.delete(request["QueueUrl"], request["ReceiptHandle"])
        return {}

    def _send_batch(self, request: dict[str, Any]) -> dict[str, Any]:
        entries = request["Entries"]
        self._check(entries, "SendMessageBatch")
        for entry in entries:
            self._put(request["QueueUrl"], entry)
        return {"Successful": [{"Id": entry["Id"]} for entry in entries]}

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        self._put(request["QueueUrl"], request)
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

    def _received(self, request: dict[str, Any]) -> dict[str, Any]:
        assert {"SentTimestamp"} <= set(request["MessageSystemAttributeNames"])
        messages = [
            {
                "MessageId": message.id,
                "ReceiptHandle": message.receipt,
                "Body": message.body,
                "Attributes": {
                    "SentTimestamp": str(epoch_ms(message.sent_at)),
                    "ApproximateReceiveCount": str(message.receive_count),
                },
            }
            for message in self.receive(
                request["QueueUrl"], request["MaxNumberOfMessages"], request.get("VisibilityTimeout")
            )
        ]
        return {"Messages": messages} if messages else {}

    def _deleted(self, request: dict[str, Any]) -> dict[str, Any]:
        self._check(request["Entries"], "DeleteMessageBatch")
        for entry in request["Entries"]:
            self.delete(request["QueueUrl"], entry["ReceiptHandle"])
        return {"Successful": [{"Id": entry["Id"]} for entry in request["Entries"]]}

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

    def _put(self, url: str, sent: dict[str, Any]) -> None:
        if url not in self._queues:
            raise ClientError({"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue", "Message": ""}}, "Send")
        delay_s, group = sent.get("DelaySeconds", 0), sent.get("MessageGroupId")
        assert isinstance(delay_s, int)
        assert group is None or _GROUP.fullmatch(group)
        if not 0 <= delay_s <= 900:
            raise ClientError({"Error": {"Code": "InvalidParameterValue", "Message": "DelaySeconds"}}, "SendMessage")
        now = self._clock.now()
        visible_at = now + timedelta(seconds=delay_s)
        message = Message(f"m{next(self._numbers)}", sent["MessageBody"], now, visible_at, group)
        self._queues[url].messages.append(message)

    # For tests

    def receive(self, url: str, most: int = 10, hidden_s: int | None = None) -> list[Message]:
        """Returns the messages that are visible now, the longest visible first except for fairness; one received too
        often goes to the dead letters. hidden_s: in the place of the queue's own time.
        """
        now, queue = self._clock.now(), self._queues[url]
        noisy = _noisy(queue.messages, now)
        visible = [message for message in queue.messages if message.visible_at <= now]
        taken: list[Message] = []
        for message in sorted(visible, key=lambda message: (noisy.get(message.group, 0), message.visible_at)):
            if len(taken) == most:
                break
            if queue.most_receives is not None and message.receive_count >= queue.most_receives:
                assert queue.dead is not None
                queue.messages.remove(message)
                queue.dead.messages.append(Message(message.id, message.body, message.sent_at, now, message.group))
                continue
            message.receive_count += 1
            message.receipt = f"receipt-{message.id}-{next(self._numbers)}"
            message.visible_at = now + timedelta(seconds=queue.visibility_s if hidden_s is None else hidden_s)
            taken.append(message)
        return taken

    def delete(self, url: str, receipt: str) -> None:
        queue = self._queues[url]
        queue.messages[:] = [message for message in queue.messages if message.receipt != receipt]

    def duplicate(self, url: str) -> None:
        """Makes each message come twice."""
        queue = self._queues[url]
        for message in list(queue.messages):
            copy = Message(f"m{next(self._numbers)}", message.body, message.sent_at, message.visible_at, message.group)
            queue.messages.append(copy)

    def purge(self, url: str) -> None:
        self._queues[url].messages.clear()

    def bodies(self, url: str) -> list[str]:
        return [message.body for message in self._queues[url].messages]

    def groups(self, url: str) -> list[str | None]:
        return [message.group for message in self._queues[url].messages]

    def next_visible_at(self, urls: Iterable[str]) -> datetime | None:
        """Returns when the next message of these queues can be received."""
        return min((message.visible_at for url in urls for message in self._queues[url].messages), default=None)


def _noisy(messages: Iterable[Message], now: datetime) -> dict[str | None, int]:
    """Returns noisy group -> how many of its messages are in flight."""
    in_flight = Counter(each.group for each in messages if each.receive_count and each.visible_at > now)
    least = max(NOISY_FROM, NOISY_SHARE * in_flight.total())
    return {group: count for group, count in in_flight.items() if group is not None and count >= least}
