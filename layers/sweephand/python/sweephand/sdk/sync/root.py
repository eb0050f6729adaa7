# Generated from aio/root.py by `make sdk`. Do not edit.
"""Root's JobScheduler: its methods and events, on the native API. Source: the types of @rootsdk/server-bot 0.17.0."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from socket import gethostname
from typing import TYPE_CHECKING, Any, TypeVar

from sweephand.base.errors import SweephandError
from sweephand.base.lazy import lazy
from sweephand.base.sources import SystemChance
from sweephand.sdk import models
from sweephand.sdk.api_errors import ConsumerTaken, CountMismatch, InvalidField, InvalidQuery, NameTaken, NotFound
from sweephand.sdk.bodies import event
from sweephand.sdk.errors import ApiError, InvalidArgument, TransportError
from sweephand.sdk.receiving.handlers import Handler, Handlers
from sweephand.sdk.records import (
    DROPPED,
    MISSED,
    Dropped,
    JobData,
    JobInterval,
    JobRecord,
    Result,
    data_of,
    dropped_of,
    members_of,
    record_of,
    resource_of,
    tag_of,
)
from sweephand.sdk.sync import leases
from sweephand.sdk.sync.client import Sweephand
from sweephand.sdk.transport.request import Json

if TYPE_CHECKING:
    from sweephand.sdk.receiving.queues import Message, Queue

with lazy():
    from sweephand.sdk.receiving import heartbeats, queues

log = logging.getLogger("sweephand.scheduler")
T = TypeVar("T")
LEASE_S, BEATS, START_S, POLL_S = 90, 3, 600.0, 1.0
"""How long the lease holds, its number of heartbeats, how long a start may take, how often its state is read."""
AWAY, LIVE = "AWAY", "LIVE"
MARGIN_S, AGAIN_S, WAIT_S, PAUSE_S = 30, 120, 5, 5
"""How much longer than the lease an event stays hidden; how long an event stays hidden after its function failed; how
long a receive waits; the pause after a failed receive."""
MOST_RECEIVED = 10
TRIES = 5
"""How often counting and deleting are tried while other processes create and delete such jobs."""


class JobScheduler:
    """The jobs of one collection, with the methods of Root's JobScheduler for the jobs of one community.

    Each job publishes the event `job` with Root's members on the stack's bus at its instant. Each method has a
    counterpart `try_...`, which returns a Result instead of raising.

    collection: created with the first job. It should contain these jobs only, because a delete by tag or resource
    deletes all jobs that match. consumer: the name under which this program receives events; they are held while no
    process has started with it. holder: the name of this process, by default a new one at each start; with a fixed
    name, a restarted process takes its own lease again at once. receive: True to also send the jobs' events to a queue
    of the consumer, which this process reads once it has started. queue: for tests.
    """

    def __init__(
        self,
        client: Sweephand,
        *,
        collection: str = "root",
        consumer: str | None = None,
        holder: str | None = None,
        receive: bool = False,
        queue: Queue | None = None,
    ) -> None:
        self._client, self._collection, self._consumer = client, collection, consumer
        self._holder = holder or f"{gethostname()[:80]}-{os.getpid()}-{SystemChance().token(4).hex()}"
        if receive and consumer is None:
            raise InvalidArgument("consumer", "is needed to receive: its queue has the same name")
        self._receives, self._queue, self.url = receive, queue, ""
        self._action = {
            **event(),
            **({} if consumer is None else {"consumer": consumer}),
            **({"application": consumer} if receive else {}),
        }
        self._in_hand: list[Message] = []
        self._closing = False
        self._stop: heartbeats.Stop | None = None
        self._receiver: heartbeats.Heartbeat | None = None
        self._lease_s = LEASE_S
        self._heartbeat: heartbeats.Heartbeat | None = None
        self._on_job: Handler[JobData] | None = None
        self._on_missed: Handler[JobData] | None = None
        self._on_dropped: Handler[Dropped] | None = None

    # Events

    def on_job(self, handler: Handler[JobData]) -> Handler[JobData]:
        """Sets the function that receives each job at its instant."""
        Handlers.check(handler)
        self._on_job = handler
        return handler

    def on_missed(self, handler: Handler[JobData]) -> Handler[JobData]:
        """Sets the function that receives jobs that fell due while no process had started with this consumer."""
        Handlers.check(handler)
        self._on_missed = handler
        return handler

    def on_dropped(self, handler: Handler[Dropped]) -> Handler[Dropped]:
        """Sets the function that receives notices of missed occurrences that will not be delivered."""
        Handlers.check(handler)
        self._on_dropped = handler
        return handler

    def handle(self, event: Mapping[str, Any]) -> None:
        """Passes an event of the stack's bus to its function. event: as a rule's target gets it, with `detail-type`."""
        kind, detail = event["detail-type"], event["detail"]
        if kind == DROPPED:
            if self._on_dropped is not None:
                Handlers.give(self._on_dropped, dropped_of(detail))
            return
        handler = self._on_missed if kind.endswith(MISSED) else self._on_job
        if handler is not None:
            Handlers.give(handler, data_of(detail))

    def start(
        self,
        *,
        job_set: str | None = None,
        jobs: Sequence[Json] = (),
        allow_deletes: int | None = None,
        lease_s: int = LEASE_S,
        timeout_s: float = START_S,
        wait: bool = True,
        background: bool = True,
    ) -> models.JobSetPlan | None:
        """Becomes the consumer, applies the job set if one is named, and waits until all missed events have been sent.

        Afterwards, heartbeats in the background keep the lease. Returns the changes of the job set; its `failed` lists
        refused jobs. allow_deletes: how many jobs the set may lose; needed if they are more than 10 and more than a
        fifth of the set. wait: True to wait for the end of a lease that a killed process still holds; the log says so.
        background: False if the caller calls `beat` and `receive` itself, as a test with a moved clock does.
        Raises ConsumerTaken if another process is the consumer and extends its lease, or at once without `wait`;
        TransportError if missed events are still to be sent after `timeout_s`.
        """
        if self._consumer is None:
            raise InvalidArgument("consumer", "is needed to start: JobScheduler(..., consumer=...)")
        self.close()
        self._lease_s = lease_s
        leases.take(self._client, self._consumer, self._holder, lease_s, wait=wait)
        self._register()
        done = None if job_set is None else self._apply(job_set, jobs, allow_deletes)
        self._closing = False
        if self._receives and background:
            self._receiver = heartbeats.Heartbeat(self._receive_on, 0)
            self._receiver.begin()
        self._become_live(self._consumer, timeout_s)
        if background:
            self._heartbeat = heartbeats.Heartbeat(self.beat, lease_s / BEATS)
            self._heartbeat.begin()
        return done

    def run(
        self,
        *,
        job_set: str | None = None,
        jobs: Sequence[Json] = (),
        allow_deletes: int | None = None,
        lease_s: int = LEASE_S,
        timeout_s: float = START_S,
    ) -> None:
        """Receives events until SIGTERM, SIGINT or `stop`, and then releases the lease.

        The arguments and errors are those of `start`. A refused job of the set is logged.
        """
        self._stop = heartbeats.Stop()
        try:
            with self._stop:
                done = self.start(
                    job_set=job_set, jobs=jobs, allow_deletes=allow_deletes, lease_s=lease_s, timeout_s=timeout_s
                )
                for refused in (done and done.failed) or ():
                    log.error('the job "%s" was refused: %s', refused.key, refused.reason)
                log.info("the consumer %s receives events", self._consumer)
                self._stop.wait()
        finally:
            self.close()

    def stop(self) -> None:
        """Ends `run` from another thread or task, as SIGTERM does."""
        if self._stop is not None:
            self._stop.tell()

    def attach(self, queue: Queue) -> None:
        """Uses this queue from now on, as a test needs for a scheduler that its program made."""
        self._queue = queue

    def close(self) -> None:
        """Ends the heartbeats and releases the lease. Events are held from then on.

        A function that is processing an event finishes first; further received events return to the queue.
        """
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            self._closing = True
            receiver.close()
        heartbeat, self._heartbeat = self._heartbeat, None
        if heartbeat is None or self._consumer is None:
            return
        heartbeat.close()
        try:
            self._client.consumers.release_lease(self._consumer, holder=self._holder)
        except ConsumerTaken:
            return

    def beat(self) -> None:
        """Extends the lease. If it had ended, takes it again and starts the consumer."""
        assert self._consumer is not None
        consumer = self._client.consumers.take_lease(self._consumer, holder=self._holder, seconds=self._lease_s)
        if consumer.state == AWAY:
            self._client.consumers.start(self._consumer, holder=self._holder)
        for message in list(self._in_hand):
            heartbeats.Blocking.call(self._sqs().hide, message, self._lease_s + MARGIN_S)

    # The queue

    def _register(self) -> None:
        """Registers the consumer's queue once, if this process receives. It must exist before jobs can name it."""
        if not self._receives or self.url or self._consumer is None:
            return
        application = self._client.applications.register(self._consumer)
        self._queue = self._queue or queues.SqsQueue(application.region, endpoint=self._client.aws_endpoint)
        self.url = application.queue_url

    def _sqs(self) -> Queue:
        assert self._queue is not None
        return self._queue

    def receive(self, *, wait_s: int = WAIT_S) -> int:
        """Takes up to ten events from the queue and passes each to its function. Returns how many it took.

        An event is deleted after its function has returned. If the function raises, the event is delivered again with
        the same id. `start` calls this in the background. Raises TransportError.
        """
        call = heartbeats.Blocking.call
        self._register()
        self._in_hand = list(
            call(self._sqs().receive, self.url, MOST_RECEIVED, hidden_s=self._lease_s + MARGIN_S, wait_s=wait_s)
        )
        taken = len(self._in_hand)
        while self._in_hand:
            message = self._in_hand[0]
            if self._closing:
                call(self._sqs().hide, message, 0)
            elif self._handled(message):
                call(self._sqs().delete, message)
            else:
                call(self._sqs().hide, message, AGAIN_S)
            self._in_hand.pop(0)
        return taken

    def _handled(self, message: Message) -> bool:
        try:
            self.handle(json.loads(message.body))
        except Exception:
            log.exception("the function of an event failed; the event will be delivered again")
            return False
        return True

    def _receive_on(self) -> None:
        try:
            self.receive()
        except SweephandError as fault:
            log.warning("no event was received: %s", fault)
            self._client.clock.sleep(PAUSE_S)

    def _apply(self, job_set: str, jobs: Sequence[Json], allow_deletes: int | None) -> models.JobSetPlan:
        while True:
            done = self._client.job_sets.put(job_set, jobs=jobs, allow_deletes=allow_deletes)
            if done.failed or not done.remaining:
                return done
            self.beat()

    def _become_live(self, consumer: str, timeout_s: float) -> None:
        clock = self._client.clock
        current = self._client.consumers.start(consumer, holder=self._holder)
        began = beaten = clock.monotonic()
        while current.state != LIVE:
            now = clock.monotonic()
            if now - began > timeout_s:
                state = f"is still {current.state} after {timeout_s:g} s: {current.held} events wait"
                raise TransportError(f"the consumer {consumer} {state}", timed_out=True)
            clock.sleep(POLL_S)
            if now - beaten > self._lease_s / BEATS:
                beaten = now
                self.beat()
            current = self._client.consumers.get(consumer)

    # Jobs

    def create(
        self,
        *,
        resource_id: str,
        start: datetime,
        job_interval: JobInterval | int,
        tag: str | None = None,
        end: datetime | None = None,
    ) -> JobRecord:
        """Creates a job. Raises ApiError, and InvalidArgument, for example for an interval outside 1 to 5."""
        members = members_of(resource_id, tag, start, end, job_interval)
        self._register()
        try:
            job = self._client.jobs.create(None, self._action, collection=self._collection, **members)
        except InvalidField as refused:
            if not self._is_unknown(refused):
                raise
            self._make_collection()
            job = self._client.jobs.create(None, self._action, collection=self._collection, **members)
        return JobRecord(job.id, resource_id, start, JobInterval(job_interval), tag, end)

    def get(self, job_schedule_id: str) -> JobRecord | None:
        """Returns a job; None if the collection has no such job."""
        try:
            job = self._client.jobs.get(job_schedule_id, include="schedules")
        except NotFound:
            return None
        return record_of(job) if job.collection == self._collection else None

    def edit(self, record: JobRecord) -> None:
        """Replaces a job with this record. Raises NotFound if the collection has no such job."""
        if not isinstance(record, JobRecord):
            raise InvalidArgument("record", f"must be a JobRecord, not {record!r}")
        members = members_of(record.resource_id, record.tag, record.start, record.end, record.job_interval)
        if self.get(record.job_schedule_id) is None:
            raise NotFound(
                method="PUT",
                path=f"/v1/jobs/{record.job_schedule_id}",
                status=404,
                code=NotFound.code,
                detail=f"the collection {self._collection} has no job {record.job_schedule_id}",
            )
        self._register()
        self._client.jobs.put(record.job_schedule_id, action=self._action, collection=self._collection, **members)

    def delete(self, job_schedule_id: str) -> None:
        """Deletes a job. Does nothing if the collection has no such job."""
        if self.get(job_schedule_id) is None:
            return
        try:
            self._client.jobs.delete(job_schedule_id)
        except NotFound:
            return

    def delete_by_resource_id(self, resource_id: str) -> int:
        """Deletes the jobs of a resource. Returns how many. A lost answer raises TransportError, without a retry."""
        return self._delete(resource_id=resource_of(resource_id))

    def delete_by_tag(self, tag: str | None) -> int:
        """Deletes the jobs with a tag; with None, those without one. Otherwise like `delete_by_resource_id`."""
        return self._delete(tag=tag_of(tag))

    def list(self) -> tuple[JobRecord, ...]:
        """Returns all jobs."""
        return self._list()

    def list_by_resource_id(self, resource_id: str) -> tuple[JobRecord, ...]:
        """Returns the jobs of a resource."""
        return self._list(resource_id=resource_of(resource_id))

    def list_by_tag(self, tag: str | None) -> tuple[JobRecord, ...]:
        """Returns the jobs with a tag; with None, those without one."""
        return self._list(tag=tag_of(tag))

    # Without raising

    def try_create(
        self,
        *,
        resource_id: str,
        start: datetime,
        job_interval: JobInterval | int,
        tag: str | None = None,
        end: datetime | None = None,
    ) -> Result[JobRecord]:
        return _tried(
            lambda: self.create(resource_id=resource_id, start=start, job_interval=job_interval, tag=tag, end=end)
        )

    def try_get(self, job_schedule_id: str) -> Result[JobRecord | None]:
        return _tried(lambda: self.get(job_schedule_id))

    def try_edit(self, record: JobRecord) -> Result[None]:
        return _tried(lambda: self.edit(record))

    def try_delete(self, job_schedule_id: str) -> Result[None]:
        return _tried(lambda: self.delete(job_schedule_id))

    def try_delete_by_resource_id(self, resource_id: str) -> Result[int]:
        return _tried(lambda: self.delete_by_resource_id(resource_id))

    def try_delete_by_tag(self, tag: str | None) -> Result[int]:
        return _tried(lambda: self.delete_by_tag(tag))

    def try_list(self) -> Result[tuple[JobRecord, ...]]:
        return _tried(self.list)

    def try_list_by_resource_id(self, resource_id: str) -> Result[tuple[JobRecord, ...]]:
        return _tried(lambda: self.list_by_resource_id(resource_id))

    def try_list_by_tag(self, tag: str | None) -> Result[tuple[JobRecord, ...]]:
        return _tried(lambda: self.list_by_tag(tag))

    def try_start(
        self,
        *,
        job_set: str | None = None,
        jobs: Sequence[Json] = (),
        allow_deletes: int | None = None,
        lease_s: int = LEASE_S,
        timeout_s: float = START_S,
        wait: bool = True,
        background: bool = True,
    ) -> Result[models.JobSetPlan | None]:
        return _tried(
            lambda: self.start(
                job_set=job_set,
                jobs=jobs,
                allow_deletes=allow_deletes,
                lease_s=lease_s,
                timeout_s=timeout_s,
                wait=wait,
                background=background,
            )
        )

    def _list(self, *, resource_id: str | None = None, tag: str | None = None) -> tuple[JobRecord, ...]:
        records: tuple[JobRecord, ...] = ()
        jobs = self._client.jobs.list(
            collection=self._collection, resource_id=resource_id, tag=tag, include="schedules", page_size=200
        )
        try:
            for job in jobs:
                record = record_of(job)
                records += () if record is None else (record,)
        except InvalidQuery as refused:
            if not self._is_unknown(refused):
                raise
        return records

    def _delete(self, *, resource_id: str | None = None, tag: str | None = None) -> int:
        """Counts the jobs and deletes that many; repeats this if other processes changed the count meanwhile.

        Returns how many were deleted: a job that is changed after the count stays.
        """
        jobs = self._client.jobs
        for left in reversed(range(TRIES)):
            try:
                count = (
                    jobs.delete_matching(collection=self._collection, resource_id=resource_id, tag=tag, dry_run=True)
                ).count
                if not count:
                    return 0
                begun = jobs.delete_matching(
                    collection=self._collection, resource_id=resource_id, tag=tag, expected_count=count
                )
                rest = self._client.operations.wait(begun)
            except CountMismatch:
                if not left:
                    raise
            except InvalidQuery as refused:
                if not self._is_unknown(refused):
                    raise
                return 0
            else:
                return begun.deleted + (rest.progress.done if rest else 0)
        raise AssertionError("the last try returns or raises")

    def _is_unknown(self, refused: ApiError) -> bool:
        """Returns whether a refusal says that the collection does not exist yet: the first job creates it."""
        return [each.field for each in refused.errors] == ["collection"]

    def _make_collection(self) -> None:
        try:
            self._client.collections.create(name=self._collection)
        except NameTaken:
            return


def _tried(call: Callable[[], T]) -> Result[T]:
    try:
        return Result(value=call())
    except SweephandError as error:
        return Result(error=error)
