"""Executors by the virtual clock: calls that take their time, and batches that end with their slowest call.

Each invocation and each call is a thread, of which one runs at a time: it hands the turn on when it waits. So a minute
of hanging calls takes no time, and comes out the same each time.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from queue import Empty
from typing import Any
from unittest import mock

from sweephand.domain.schedule import Lane
from sweephand.server.flow.delivery import dispatch
from sweephand.server.flow.world import FlowMemory, World
from sweephand.server.store.tenants.tenants import CollectionTerms
from sweephand.server.threads import Threads
from sweephand.testing.service import TICK_S, URLS
from sweephand.testing.sources import VirtualClock
from tests.support.stage import Stage

BATCH_S, RUN_S, POLL_S = 0.05, 0.008, 0.02
"""The time that a batch and each run of it take in addition to the call, and how soon a poller asks again."""
LEAST_S = 0.001
"""The least that a reader waits: less than the clock's microseconds would never pass."""


@dataclass
class Turn:
    """A thread that waits for its turn. over: whether it has nothing more to do."""

    work: Callable[[], None]
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    over: bool = False


class Time:
    """Gives each thread its turn at its instant, in the order in which they began to wait."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self._waiting: list[tuple[datetime, int, Turn, int]] = []
        self._numbers = count()
        self._waits: dict[int, int] = {}
        self._back = threading.Semaphore(0)
        self._mine: Turn | None = None

    def begin(self, work: Callable[[], None]) -> None:
        turn = Turn(work)
        threading.Thread(target=self._serve, args=(turn,), daemon=True).start()
        self.wake(turn, 0)

    def _serve(self, turn: Turn) -> None:
        turn.go.acquire()
        try:
            turn.work()
        finally:
            turn.over = True
            self._back.release()

    def wake(self, turn: Turn, seconds: float) -> None:
        """Gives the thread its turn after these seconds, and not at any instant that was set before."""
        number = self._waits[id(turn)] = next(self._numbers)
        heapq.heappush(self._waiting, (self.clock.now_exactly + timedelta(seconds=seconds), number, turn, number))

    def sleep(self, seconds: float) -> None:
        turn = self.mine
        self.wake(turn, seconds)
        self._back.release()
        turn.go.acquire()

    @property
    def mine(self) -> Turn:
        assert self._mine is not None, "only threads of this time may wait"
        return self._mine

    def run_until(self, end: datetime) -> None:
        while self._waiting and self._waiting[0][0] <= end:
            at, _, turn, number = heapq.heappop(self._waiting)
            if self._waits[id(turn)] != number:
                continue
            self.clock.move_to(at)
            self._mine = turn
            turn.go.release()
            self._back.acquire()
        self._mine = None
        self.clock.move_to(end)


class Queue:
    """A stand-in for queue.SimpleQueue in virtual time, with one reader."""

    def __init__(self, time: Time) -> None:
        self._time = time
        self._items: list[Any] = []
        self._reader: Turn | None = None

    def put(self, item: Any) -> None:
        self._items.append(item)
        if self._reader is not None:
            self._time.wake(self._reader, 0)

    def get(self, timeout: float = 3_600.0) -> Any:
        if not self._items:
            self._reader = self._time.mine
            self._time.sleep(max(timeout, LEAST_S))
            self._reader = None
        if not self._items:
            raise Empty
        return self._items.pop(0)


@dataclass
class Executors:
    """The executors of a lane. most: FastConcurrency or SlowConcurrency."""

    stage: Stage
    time: Time
    lane: Lane
    most: int

    def begin(self) -> None:
        for number in range(self.most):
            self.time.begin(lambda number=number: self._process(number))  # type: ignore[misc]

    def _process(self, number: int) -> None:
        shared = self.stage.world
        terms = CollectionTerms(shared.table, shared.clock)
        world = replace(shared, terms=terms, memory=FlowMemory(), settings=replace(shared.settings, lane=self.lane))
        for invocation in count():
            self._invocation(world, f"{self.lane}-{number}-{invocation}")

    def _invocation(self, world: World, request: str) -> None:
        url, sqs = URLS[self.lane], self.stage.sqs
        received = sqs.receive(url, 10)
        if not received:
            upcoming = sqs.next_visible_at([url])
            ahead_s = 1.0 if upcoming is None else (upcoming - self.stage.clock.now()).total_seconds()
            self.time.sleep(min(1.0, max(POLL_S, ahead_s)))
            return
        self.time.sleep(BATCH_S + RUN_S * len(received))
        failed = dispatch.batch(world, self.lane, request, [self.stage._delivered(each) for each in received])
        for message in received:
            if message.id not in failed:
                sqs.delete(url, message.receipt)


@dataclass
class Simulation:
    stage: Stage
    time: Time

    def run(self, seconds: float) -> None:
        """Lets that much time go by, with a tick a minute."""
        clock = self.stage.clock
        end = clock.now() + timedelta(seconds=seconds)
        while clock.now() < end:
            self.stage.tick()
            self.time.run_until(min(end, clock.now() + timedelta(seconds=TICK_S)))


@contextmanager
def executors(stage: Stage, fast: int = 3, slow: int = 2) -> Iterator[Simulation]:
    """Makes the executors of the template's default size work, each call for as long as its answer sleeps."""
    time = Time(stage.clock)
    threads = Threads("virtual")
    threads.begin = time.begin  # type: ignore[method-assign]
    threads.queue = lambda: Queue(time)
    for lane, most in ((Lane.FAST, fast), (Lane.SLOW, slow)):
        Executors(stage, time, lane, most).begin()
    with mock.patch.multiple(dispatch, _at_once=threads.map, _with_more=threads.work):
        yield Simulation(stage, time)
