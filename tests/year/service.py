"""The functions of the service as processes of their own: with clocks, memories, outages and deaths of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random  # noqa: TID251 - a life is played again by its seed
from typing import Any
from urllib.parse import urlencode

from sweephand.base.errors import SweephandError
from sweephand.domain.schedule import Lane
from sweephand.server.facades.azure.routes import AzureApi
from sweephand.server.facades.native.api import NativeApi
from sweephand.server.facades.sap.routes import SapApi
from sweephand.server.flow.tenants import access
from sweephand.server.flow.world import FlowMemory, World
from sweephand.server.security.caller import TENANT_SCOPES, Door
from sweephand.server.security.tokens import derive_keys
from sweephand.server.store.tenants import credentials
from sweephand.server.store.tenants.tenants import CollectionTerms
from sweephand.testing.memory import Dynamo, Memory, _hash
from sweephand.testing.queues import Message
from sweephand.testing.service import DEAD, URLS
from sweephand.testing.sources import VirtualClock
from sweephand.testing.taps import Taps
from tests.contract.calls import Facade, Reply, basic, event
from tests.faults.workers import Hand
from tests.support.acting import GUARD
from tests.support.stage import STACK_SECRET, TENANT, Stage, stage
from tests.support.taps import Crash, in_memory
from tests.year.faults import Faults
from tests.year.watch import Watch

TICK = timedelta(minutes=1)
MOST_AHEAD_S = 2.0
ONE_SHARD = ("next-run", _hash({"N": "0"}))
"""The partition of the index that has all waiting rows here."""
FACADES: Mapping[str, Callable[..., Facade]] = {"native": NativeApi, "sap": SapApi, "azure": AzureApi}
MOST_TRIES, REST = 40, timedelta(seconds=10)
FUNCTIONS = ("sweeper", "executor", "api", "auditor")
"""The functions that an outage can take away. All queues have the same executor here."""


@dataclass(frozen=True)
class ClockOfItsOwn:
    """The clock of one machine. ahead_s: of the true time."""

    true: VirtualClock
    ahead_s: float

    def now(self) -> datetime:
        return self.true.now() + timedelta(seconds=self.ahead_s)

    def monotonic(self) -> float:
        return self.true.monotonic()

    def sleep(self, seconds: float) -> None:
        self.true.sleep(seconds)


@dataclass
class Service:
    """copies: the share of messages that SQS delivers once more, up to days later. out: function -> until when."""

    scene: Stage
    dynamo: Dynamo
    chance: Random
    faults: Faults
    watch: Watch
    copies: float = 0.0
    ahead_s: Mapping[str, float] = field(default_factory=dict)
    out: dict[str, datetime] = field(default_factory=dict)
    authorization: Mapping[str, str] = field(default_factory=dict)
    worker: Hand | None = None
    next_tick: datetime = field(init=False)
    _worlds: dict[str, World] = field(default_factory=dict)
    _requests: int = 0

    def __post_init__(self) -> None:
        self.next_tick = self.now
        self._first = self.scene.world
        self._door = Door(
            derive_keys("test", STACK_SECRET, None),
            STACK_SECRET,
            lambda tenant, name: credentials.find_credential(self._first.table, tenant, name),
            callback_key=self._first.callback_keys.current,
        )
        issued = access.create_credential(self._first, TENANT, None, TENANT_SCOPES)
        self.authorization = {
            TENANT: basic(issued.credential.client_id, issued.secret),
            "provider": basic("provider.admin", STACK_SECRET),
        }

    @property
    def now(self) -> datetime:
        return self.scene.clock.now()

    def is_out(self, function: str) -> bool:
        return self.out.get(function, self.now) > self.now

    # Processes

    def world(self, function: str) -> World:
        """Returns the collaborators of the function's process, which starts if there is none."""
        if function not in self._worlds:
            clock = ClockOfItsOwn(self.scene.clock, self.ahead_s.get(function, 0.0))
            queue = copy(self._first.queue)
            queue._clock = clock
            terms = CollectionTerms(self._first.table, clock)
            self._worlds[function] = replace(self._first, clock=clock, queue=queue, terms=terms, memory=FlowMemory())
        return self._worlds[function]

    def start_again(self, function: str) -> None:
        self._worlds.pop(function, None)

    def _in(self, function: str, work: Callable[[World], Any]) -> Any:
        """Runs a function in its process. Returns None if it died or gave up; the next one starts afresh."""
        before, self.scene.world = self.scene.world, self.world(function)
        try:
            return work(self.scene.world)
        except (Crash, SweephandError):
            self.start_again(function)
            return None
        finally:
            self.scene.world = before

    # The work of the functions

    def tick(self) -> None:
        self._in("sweeper", self.scene.tick)
        self.next_tick = max(self.next_tick + TICK, self.now)

    def audit(self) -> None:
        self._in("auditor", lambda _world: self.scene.audit(everything=False))

    def deliver(self) -> None:
        """Delivers all that is visible, a batch at a time. A function that died had one."""
        while self._waits(URLS.values()):
            for lane in Lane:
                self._copy_some(URLS[lane])
                self._in("executor", lambda _world, lane=lane: self.scene.deliver(lane))

    def work(self) -> None:
        """Lets the worker take what is visible. One that the service does not answer rests for a while."""
        for _ in range(MOST_TRIES):
            if self.worker is None or self.is_out("worker") or self.is_out("api") or not self._waits([self.worker.url]):
                return
            self._in("worker", lambda _world, worker=self.worker: worker.work())
        self.out["worker"] = self.now + REST

    def deliver_dead(self) -> None:
        self._in("executor", lambda _world: self.scene.deliver_dead())

    def _waits(self, urls: Iterable[str]) -> bool:
        upcoming = self.scene.sqs.next_visible_at(urls)
        return upcoming is not None and upcoming <= self.now

    def _copy_some(self, url: str) -> None:
        """Gives some messages a second copy, and lets some wait for those that came after them."""
        queue = self.scene.sqs._queues[url]
        for message in [each for each in queue.messages if each.visible_at <= self.now] if self.copies else []:
            if self.chance.random() < self.copies:
                later = timedelta(seconds=self.chance.choice([0, 1, 30, 200, 4_000, 90_000, 13 * 86_400]))
                copied = Message(f"{message.id}-again", message.body, message.sent_at, self.now + later, message.group)
                queue.messages.append(copied)
            if self.chance.random() < self.copies:
                message.visible_at = self.now + timedelta(seconds=self.chance.randint(1, 20))

    def meet_twice(self) -> None:
        """Lets a second executor receive, in the middle of a call, copies of what the first one holds."""
        if self.faults.calm or self.chance.random() >= self.copies:
            return
        for lane in Lane:
            queue = self.scene.sqs._queues[URLS[lane]]
            for message in [each for each in queue.messages if each.receive_count]:
                queue.messages.append(Message(f"{message.id}-twice", message.body, message.sent_at, self.now))
            self._in("second executor", lambda _world, lane=lane: self.scene.deliver(lane))

    def next_event(self) -> datetime | None:
        """Returns when the service has something to do: a message to deliver, or a tick that would find a row."""
        candidates = []
        if not self.is_out("executor"):
            candidates.append(self.scene.sqs.next_visible_at(URLS.values()))
        if not self.is_out("sweeper"):
            candidates.append(self._useful_tick())
        if self.worker is not None:
            away = [self.out[each] for each in ("worker", "api") if self.is_out(each)]
            candidates.append(max(away, default=self.scene.sqs.next_visible_at([self.worker.url])))
        return min((each for each in candidates if each is not None), default=None)

    def _useful_tick(self) -> datetime | None:
        """Returns the first tick that finds a row within its look-ahead, or a dead letter; idle ones are left out."""
        rows = self.dynamo._partitions.get(ONE_SHARD, {}).values()
        due_s = min((int(row["next_run_at"]["N"]) for row in rows), default=None)
        dead = self.scene.sqs.next_visible_at([DEAD])
        if due_s is None and dead is None:
            return None
        found_at = [] if dead is None else [dead]
        if due_s is not None:
            look = self._first.settings.look_ahead_s + self.ahead_s.get("sweeper", 0.0)
            found_at.append(datetime.fromtimestamp(due_s - look, self.now.tzinfo))
        late = min(found_at) - self.next_tick
        return self.next_tick if late <= timedelta() else self.next_tick - (-late // TICK) * TICK

    def begin_tick(self, moment: datetime) -> None:
        """Lets the idle ticks before this moment pass."""
        self.next_tick = max(self.next_tick, moment)

    # Requests

    def request(
        self, facade: str, method: str, path: str, body: object = None, *, caller: str = TENANT, **more: Any
    ) -> Reply | None:
        """Sends a request. Returns None without an answer, or if the answer says to try again later."""
        if self.is_out("api"):
            return None
        self._requests += 1
        headers = {"authorization": self.authorization[caller], **more.get("headers", {})}
        raw = None if body is None else json.dumps(body)
        headers |= {} if raw is None else {"content-type": "application/json"}
        sent = event(method, path, urlencode(more.get("query", {})), headers, raw)
        answer = self._in("api", lambda world: self._facade(facade, world).handle(sent, f"request-{self._requests}"))
        if answer is None:
            return None
        reply = Reply(answer["statusCode"], answer["headers"], answer["body"])
        return None if reply.status >= 500 or reply.status == 429 else reply

    def _facade(self, name: str, world: World) -> Facade:
        return FACADES[name](world, GUARD, lambda: self._door)


@contextmanager
def service(seed: int) -> Iterator[Service]:
    """Makes a fresh service with a tenant."""
    memories: list[Memory] = []

    @contextmanager
    def backend(tap: Taps) -> Iterator[None]:
        with in_memory(tap) as memory:
            memories.append(memory)
            yield

    with stage(shards=1, seed=seed, backend=backend) as scene:
        dynamo = memories[0].dynamo
        assert dynamo is not None
        chance, watch = Random(f"service {seed}"), Watch(dynamo, scene.clock)
        made = Service(scene, dynamo, chance, Faults(Random(f"faults {seed}"), scene.clock, dynamo), watch)
        made.ahead_s = {function: chance.uniform(-MOST_AHEAD_S, MOST_AHEAD_S) for function in FUNCTIONS}
        scene.taps.fault = made.faults
        yield made
