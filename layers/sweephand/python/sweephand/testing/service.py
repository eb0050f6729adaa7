"""The functions of the service, driven by a test: tick, delivery, audit, and time that passes between them.

Table, queues, bus, bucket and keys are in memory; everything else is the code that the layers carry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sweephand.base.sources import Chance
from sweephand.domain.schedule import Lane
from sweephand.server import threads
from sweephand.server.flow.audit import audit
from sweephand.server.flow.bulk import carry_on
from sweephand.server.flow.delivery import dead_letters, dispatch
from sweephand.server.flow.sweep import sweep
from sweephand.server.flow.verdict import Delivered
from sweephand.server.flow.world import Journal, World
from sweephand.server.messaging.event_bus import EventBus
from sweephand.server.messaging.run_queue import RunQueue
from sweephand.server.security.guard import Outbound
from sweephand.server.security.key_service import KeyService
from sweephand.server.settings import Settings
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.index.shards import Shards
from sweephand.server.store.operations.files import Files
from sweephand.server.store.tenants.callback_keys import CallbackKeys
from sweephand.server.store.tenants.pointer_keys import PointerKeys
from sweephand.server.store.tenants.secret_box import SecretBox
from sweephand.server.store.tenants.tenants import CollectionTerms
from sweephand.testing import bucket as buckets
from sweephand.testing.bucket import VirtualBucket
from sweephand.testing.bus import VirtualBus
from sweephand.testing.queues import Message, Queue, VirtualSqs
from sweephand.testing.sources import VirtualClock
from sweephand.testing.taps import Taps

TICK_S = 60
DEAD, ARCHIVE = "https://queue/dead", "https://queue/archive"
BUS = "sweephand-test"
URLS = {
    Lane.FAST: "https://queue/fast",
    Lane.SLOW: "https://queue/slow",
    Lane.OPERATIONS: "https://queue/operations",
}
VISIBILITY_S = {Lane.FAST: (180, 10), Lane.SLOW: (540, 10), Lane.OPERATIONS: (720, 30)}
"""For each lane how long a message is hidden, and how often it is received, as the template has it."""
REGION = "eu-central-1"
BASE_URL = "https://sweephand.example"


def queues() -> dict[str, Queue]:
    """Returns the queues by URL."""
    dead = Queue(visibility_s=180)
    lanes = {URLS[lane]: Queue(hidden_s, receives, dead) for lane, (hidden_s, receives) in VISIBILITY_S.items()}
    return {DEAD: dead, ARCHIVE: Queue(visibility_s=30), **lanes}


def settings_of(stack: str, table: str, key_id: str, shards: int) -> Settings:
    return Settings(
        stack_name=stack,
        table_name=table,
        region=REGION,
        shards=shards,
        queue_urls=URLS,
        dead_letter_queue_url=DEAD,
        archive_queue_url=ARCHIVE,
        event_bus_name=BUS,
        key_id=key_id,
        public_base_url=BASE_URL,
    )


@dataclass
class Aws:
    """AWS in memory, apart from the table and the keys."""

    sqs: VirtualSqs
    bus: VirtualBus
    bucket: VirtualBucket

    @classmethod
    def made(cls, clock: VirtualClock, tap: Taps, bus: VirtualBus | None = None) -> Aws:
        return cls(VirtualSqs(clock, tap, queues()), bus or VirtualBus(tap, BUS), VirtualBucket(tap))


def world_of(
    settings: Settings,
    clock: VirtualClock,
    chance: Chance,
    table: Table,
    kms: Any,
    aws: Aws,
    outbound: Outbound,
    journal: Journal,
    perform: Callable[..., Any],
) -> World:
    """Returns the collaborators of all functions. kms: a client of botocore, or one in memory."""
    key = KeyService(kms, settings.key_id)
    pointers = PointerKeys(table, clock, chance)
    return World(
        settings=settings,
        clock=clock,
        chance=chance,
        table=table,
        terms=CollectionTerms(table, clock),
        bus=EventBus(aws.bus, settings.event_bus_name, clock, chance),
        queue=RunQueue(
            aws.sqs,
            settings.queue_urls,
            clock,
            key=pointers.current,
            dead_letter_url=settings.dead_letter_queue_url,
            archive_url=settings.archive_queue_url,
            applications=settings.application_queues,
        ),
        secrets=SecretBox(table, key, clock, chance),
        files=Files(aws.bucket, buckets.NAME),
        outbound=outbound,
        perform=perform,
        callback_keys=CallbackKeys(table, key, clock, chance),
        pointer_keys=pointers,
        shards=Shards(table, settings.shards),
        journal=journal,
    )


@dataclass
class Lines:
    """Log lines as (level, message, members), metrics line by line, and their sums. of_parts: with their dimension."""

    lines: list[tuple[str, str, dict[str, object]]] = field(default_factory=list)
    measures: list[dict[str, float | Sequence[float]]] = field(default_factory=list)
    of_parts: list[tuple[dict[str, str], dict[str, float | Sequence[float]]]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def info(self, message: str, /, **members: object) -> None:
        self.write("info", message, members)

    def warning(self, message: str, /, **members: object) -> None:
        self.write("warning", message, members)

    def error(self, message: str, /, **members: object) -> None:
        self.write("error", message, members)

    def count(self, metric: str, amount: float = 1) -> None:
        self.measure(**{metric: amount})

    def measure(self, part: Mapping[str, str] | None = None, /, **values: float | Sequence[float]) -> None:
        if part is not None:
            self.of_parts.append((dict(part), values))
            return
        self.measures.append(values)
        for name, value in values.items():
            self.counts[name] += int(value if isinstance(value, int | float) else sum(value))

    def write(self, level: str, message: str, members: dict[str, object]) -> None:
        self.lines.append((level, message, members))

    def at(self, level: str) -> list[str]:
        return [message for line_level, message, _ in self.lines if line_level == level]


@dataclass
class Service:
    """The functions of the service. Nothing happens on its own: a test lets time pass, and the functions work.

    Each works in the caller's thread, one piece after the other, so that seeded ids come in the same order each time.
    """

    world: World
    clock: VirtualClock
    sqs: VirtualSqs
    bus: VirtualBus
    bucket: VirtualBucket
    taps: Taps
    journal: Lines
    _requests: int = field(default=0, kw_only=True)
    _next_tick: datetime | None = field(default=None, kw_only=True)

    def tick(self, world: World | None = None) -> sweep.Tally:
        """Sweeps all shards. world: of another version of the sweeper."""
        with threads.in_turn():
            return sweep.tick(world or self.world)

    def audit(self, *, everything: bool = True, rest: str | None = None) -> audit.Findings:
        with threads.in_turn():
            return audit.audit(self.world, everything=everything, rest=rest)

    def deliver(self, lane: Lane = Lane.FAST, most: int = 10) -> int:
        """Delivers one batch of the visible messages, as Lambda's poller does. Returns how many messages there were."""
        if lane is Lane.OPERATIONS:
            return self._batch(URLS[lane], 1, lambda request, batch: carry_on.batch(self.world, request, batch))
        return self._batch(URLS[lane], most, lambda request, batch: self._execute(lane, request, batch))

    def deliver_dead(self) -> int:
        """Takes the dead letters as their rule does, once some wait. Returns how many there were."""
        waits_until = self.sqs.next_visible_at([DEAD])
        if waits_until is None or waits_until > self.clock.now():
            return 0
        with threads.in_turn():
            return dead_letters.take(self.world)

    def _execute(self, lane: Lane, request: str, batch: list[Delivered]) -> list[str]:
        return dispatch.batch(self.world, lane, request, batch)

    def _batch(self, url: str, most: int, work: Callable[[str, list[Delivered]], list[str]]) -> int:
        received = self.sqs.receive(url, most)
        if not received:
            return 0
        self._requests += 1
        batch = [self._delivered(message) for message in received]
        receipts = {message.id: message.receipt for message in received}
        with threads.in_turn():
            failed = work(f"request-{self._requests}", batch)
        for message_id in receipts.keys() - set(failed):
            self.sqs.delete(url, receipts[message_id])
        return len(received)

    def _delivered(self, message: Message) -> Delivered:
        return Delivered(
            message_id=message.id,
            receipt=message.receipt,
            body=message.body,
            received_at=self.clock.now(),
            sent_at=message.sent_at,
            receive_count=message.receive_count,
        )

    def deliver_all(self, most: int = 10) -> int:
        """Delivers all that is visible now, in all lanes and among the dead letters."""
        total = 0
        while True:
            done = sum(self.deliver(lane, most) for lane in Lane) + self.deliver_dead()
            total += done
            if not done:
                return total

    def run(self, seconds: float, *, most: int = 10, tick_in_s: float | None = None) -> None:
        """Lets that much time go by, with a tick a minute, and each message delivered as it becomes visible.

        tick_in_s: until the next tick, where that is not settled by what ran before.
        """
        end = self.clock.now() + timedelta(seconds=seconds)
        if self._next_tick is None or tick_in_s is not None:
            self._next_tick = self.clock.now() + timedelta(seconds=tick_in_s or 0)
        while True:
            self.deliver_all(most)
            upcoming = self.sqs.next_visible_at([*URLS.values(), DEAD])
            if upcoming is not None and upcoming <= self.clock.now():
                upcoming = None  # the queue of the dead letters does not answer: the next minute asks again
            moment = self._next_tick if upcoming is None else min(self._next_tick, upcoming)
            if moment > end:
                break
            self.clock.move_to(moment)
            if self.clock.now() >= self._next_tick:
                self._next_tick += timedelta(seconds=TICK_S)
                self.tick()
        self.clock.move_to(end)
        self.deliver_all(most)

    def pass_time(self, seconds: float) -> None:
        """Lets time go by while nothing works."""
        self.clock.advance(seconds)
        if self._next_tick is not None:
            self._next_tick = max(self._next_tick, self.clock.now())
