"""The run queues, which deliver pointers on time, to the second."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from sweephand.base.errors import NotFound, Unavailable
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.base.sources import Clock
from sweephand.domain.application import UNCLAIMED_AFTER
from sweephand.domain.message import Pointer, Subject, encode
from sweephand.domain.schedule import Lane

with lazy():
    from sweephand.server.security import marks

BATCH_MOST = 10
DELAY_MOST_S = 900
OTHER_FORM = {"QueueAlreadyExists", "QueueNameExists"}
GONE = {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"}
"""The codes of SQS for a queue that does not exist, in its query protocol and its JSON protocol."""


@dataclass(frozen=True)
class Delivery:
    """A pointer and the instant before which it must not arrive."""

    pointer: Pointer
    at: datetime
    lane: Lane


@dataclass(frozen=True)
class Backlog:
    """SQS's estimate of the messages in a run queue: ready, delayed until their instant, or in flight."""

    ready: int
    delayed: int
    in_flight: int


@dataclass(frozen=True)
class Letter:
    """A message as it was received. sent_ms: when its message was sent (epoch ms)."""

    message_id: str
    receipt: str
    body: str
    sent_ms: int
    receive_count: int


def _letter(message: Mapping[str, Any]) -> Letter:
    attributes = message["Attributes"]
    return Letter(
        message["MessageId"],
        message["ReceiptHandle"],
        message["Body"],
        int(attributes["SentTimestamp"]),
        int(attributes["ApproximateReceiveCount"]),
    )


_ESTIMATES = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
)


class RunQueue:
    """The run queues. client: a botocore SQS client; urls: by lane.

    dead_letter_url: the queue of messages that could not be settled; archive_url: the queue that keeps their copies.
    applications: the prefix of the names of applications' queues; the lane follows. key: returns the key that marks
    their messages, or raises Unavailable.

    Each message has its tenant as its message group, so that SQS keeps a tenant's backlog from delaying others. In a
    standard queue, a group has no order, and any number of its messages may be in flight. Source: decision 0054.
    """

    def __init__(
        self,
        client: Any,
        urls: Mapping[Lane, str],
        clock: Clock,
        *,
        key: Callable[[], bytes],
        dead_letter_url: str = "",
        archive_url: str = "",
        applications: str = "",
    ) -> None:
        self._client = client
        self._urls = urls
        self._applications = applications
        self._clock = clock
        self._key = key
        self._dead_letter_url = dead_letter_url
        self._archive_url = archive_url

    def url(self, lane: Lane) -> str:
        """Returns the address of a lane's queue. Queues of applications are next to the stack's own."""
        if not lane.of_application:
            return self._urls[lane]
        return f"{self._urls[Lane.FAST].rpartition('/')[0]}/{self._name(lane)}"

    def _name(self, lane: Lane) -> str:
        return f"{self._applications}-{lane}"

    def provide(self, lane: Lane, attributes: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Creates the queue of an application, or updates the attributes of an existing one. Raises Unavailable."""
        wanted = {"QueueName": self._name(lane), "Attributes": dict(attributes), "tags": dict(tags)}
        try:
            self._client.create_queue(**wanted)
        except (ClientError, BotoCoreError) as refused:
            if not isinstance(refused, ClientError) or refused.response["Error"]["Code"] not in OTHER_FORM:
                raise Unavailable("the queue could not be created; try again in a minute") from refused
            changed = {"QueueUrl": self.url(lane), "Attributes": dict(attributes)}
            self._asked("the queue could not be changed", "set_queue_attributes", **changed)

    def remove(self, lane: Lane) -> None:
        """Deletes the queue of an application if it exists. Raises Unavailable."""
        try:
            self._client.delete_queue(QueueUrl=self.url(lane))
        except (ClientError, BotoCoreError) as refused:
            if not isinstance(refused, ClientError) or refused.response["Error"]["Code"] not in GONE:
                raise Unavailable("the queue could not be deleted") from refused

    def send(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Sends all, ten per call; repeats a call's failures once. Returns those not sent, without raising an error.

        A message for an instant more than 15 minutes ahead gets the longest delay of SQS; the executor then waits for
        the rest. A run for workers is sent together with a second message, which lets an executor check a minute later
        whether a worker has taken it.
        """
        unsent = self._send(deliveries)
        checks = {_check_of(each, self._clock.now()): each for each in deliveries if each.lane.of_application}
        return unsent + [checks[each] for each in self._send([*checks]) if checks[each] not in unsent]

    def _send(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        unsent: list[Delivery] = []
        by_lane: dict[Lane, list[Delivery]] = {}
        for delivery in deliveries:
            by_lane.setdefault(delivery.lane, []).append(delivery)
        for lane, mine in by_lane.items():
            for begin in range(0, len(mine), BATCH_MOST):
                batch = mine[begin : begin + BATCH_MOST]
                failed = self._send_batch(lane, batch)
                unsent += self._send_batch(lane, failed) if failed else []
        return unsent

    def send_one(self, delivery: Delivery) -> None:
        """Sends one message. Raises Unavailable if that fails."""
        if self.send([delivery]):
            raise Unavailable("the run queue did not take the message")

    def postpone(self, lane: Lane, receipts: Mapping[str, float]) -> None:
        """Sets for how many seconds each received message stays invisible. Best effort: it only moves a retry."""
        self._postpone(self.url(lane), receipts)

    def postpone_dead(self, receipts: Mapping[str, float]) -> None:
        """Sets the same for dead letters."""
        self._postpone(self._dead_letter_url, receipts)

    def _postpone(self, url: str, receipts: Mapping[str, float]) -> None:
        entries = [
            {"Id": str(n), "ReceiptHandle": receipt, "VisibilityTimeout": max(0, min(43_200, round(seconds)))}
            for n, (receipt, seconds) in enumerate(receipts.items())
        ]
        for begin in range(0, len(entries), BATCH_MOST):
            try:
                self._client.change_message_visibility_batch(QueueUrl=url, Entries=entries[begin : begin + BATCH_MOST])
            except (ClientError, BotoCoreError):
                continue

    def receive(self, lane: Lane) -> list[Letter]:
        """Returns up to ten messages of a lane that nobody has received. Short polling may miss some.

        Raises Unavailable if the queue does not answer.
        """
        return self._receive(self.url(lane))

    def delete(self, lane: Lane, receipts: Sequence[str]) -> None:
        """Deletes settled messages of a lane. Best effort: a message that stays is settled again."""
        self._delete(self.url(lane), receipts)

    def receive_dead(self) -> list[Letter]:
        """Returns up to ten dead letters, likewise."""
        return self._receive(self._dead_letter_url)

    def delete_dead(self, receipts: Sequence[str]) -> None:
        """Deletes settled dead letters, likewise."""
        self._delete(self._dead_letter_url, receipts)

    def _receive(self, url: str) -> list[Letter]:
        answer = self._asked(
            "the queue does not answer",
            "receive_message",
            QueueUrl=url,
            MaxNumberOfMessages=BATCH_MOST,
            MessageSystemAttributeNames=["SentTimestamp", "ApproximateReceiveCount"],
        )
        return [_letter(message) for message in answer.get("Messages", [])]

    def _delete(self, url: str, receipts: Sequence[str]) -> None:
        entries = [{"Id": str(n), "ReceiptHandle": receipt} for n, receipt in enumerate(receipts)]
        for begin in range(0, len(entries), BATCH_MOST):
            with suppress(ClientError, BotoCoreError):
                self._client.delete_message_batch(QueueUrl=url, Entries=entries[begin : begin + BATCH_MOST])

    def archive(self, body: str) -> None:
        """Keeps a copy of a dead letter for 14 days. Raises Unavailable if that fails."""
        refusal = "the archive queue did not take the message"
        self._asked(refusal, "send_message", QueueUrl=self._archive_url, MessageBody=body)

    def send_event(self, lane: Lane, tenant: str, event: str) -> None:
        """Sends an event to the queue of an application.

        Raises NotFound if the queue was deleted, Unavailable if it does not take the event.
        """
        wanted = {"QueueUrl": self.url(lane), "MessageBody": event, "MessageGroupId": tenant}
        try:
            self._asked("the queue of the application did not take it", "send_message", **wanted)
        except Unavailable as away:
            refused = away.__cause__
            if isinstance(refused, ClientError) and refused.response["Error"]["Code"] in GONE:
                raise NotFound("the application has no queue any more") from refused
            raise

    def can_be_reached(self, lane: Lane) -> bool:
        """Returns whether the lane's queue gives any answer, even a refusal."""
        try:
            self._client.get_queue_attributes(QueueUrl=self.url(lane), AttributeNames=[_ESTIMATES[0]])
        except ClientError:
            return True
        except BotoCoreError:
            return False
        return True

    def backlog(self) -> dict[Lane, Backlog]:
        """Returns the backlog of each of the stack's queues. Raises Unavailable if a queue does not answer."""
        return {lane: self.backlog_of(lane) for lane in self._urls}

    def backlog_of(self, lane: Lane) -> Backlog:
        """Returns the backlog of a queue. Raises Unavailable if it does not answer."""
        refusal, names = "a run queue did not report its backlog", list(_ESTIMATES)
        answer = self._asked(refusal, "get_queue_attributes", QueueUrl=self.url(lane), AttributeNames=names)
        return Backlog(*(int(answer["Attributes"][name]) for name in names))

    def _asked(self, refusal: str, operation: str, **arguments: Any) -> dict[str, Any]:
        """Calls SQS. Raises Unavailable with this refusal if that fails."""
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**arguments)
        except (ClientError, BotoCoreError) as refused:
            raise Unavailable(refusal) from refused
        return answer

    def _send_batch(self, lane: Lane, batch: Sequence[Delivery]) -> list[Delivery]:
        now = self._clock.now()
        try:
            entries = [{"Id": str(n), **self._entry(delivery, now)} for n, delivery in enumerate(batch)]
            answer = self._client.send_message_batch(QueueUrl=self.url(lane), Entries=entries)
        except (ClientError, BotoCoreError, Unavailable):
            return list(batch)
        return [batch[int(failed["Id"])] for failed in answer.get("Failed", [])]

    def _entry(self, delivery: Delivery, now: datetime) -> dict[str, Any]:
        pointer = delivery.pointer
        if delivery.lane.of_application:
            pointer = marks.marked(pointer, self._key(), now)
        return {
            "MessageBody": encode(pointer),
            "DelaySeconds": delay_s(delivery.at, now),
            "MessageGroupId": delivery.pointer.tenant,
        }


def _check_of(delivery: Delivery, now: datetime) -> Delivery:
    """Returns the message that checks whether a worker has taken the run."""
    pointer = replace(delivery.pointer, subject=Subject.UNCLAIMED)
    return Delivery(pointer, max(delivery.at, now) + UNCLAIMED_AFTER, delivery.lane.executors)


def delay_s(at: datetime, now: datetime) -> int:
    """Returns the delay in whole seconds, 0 to 900, rounded up so that nothing arrives early."""
    return max(0, min(DELAY_MOST_S, -((now - at) // timedelta(seconds=1))))
