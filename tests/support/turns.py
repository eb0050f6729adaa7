"""Many callers at once in virtual time: one runs at a time, and where it waits the one whose time is next goes on.

So who meets whom depends on the seed alone, and a second of waiting takes none.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Semaphore, Thread
from typing import Any
from unittest import mock

from sweephand.server import shared_reads
from sweephand.testing.taps import Act, Passing
from tests.support.stage import Stage
from tests.support.taps import conflict

CALL_S, TRANSACTION_S = 0.004, 0.015
"""How long a call and a transaction take: an ordinary day of DynamoDB."""


class Turns:
    def __init__(self, stage: Stage) -> None:
        self._clock = stage.clock
        self._waiting: list[tuple[float, int, Semaphore]] = []
        self._count = 0

    def wait(self, seconds: float) -> None:
        mine = self._enter(seconds)
        self._go_on()
        mine.acquire()

    def run(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """Runs all of them at once. Returns what each returned or raised."""
        results: list[Any] = [None] * len(works)

        def turn(n: int, begin: Semaphore) -> None:
            begin.acquire()
            try:
                results[n] = works[n]()
            except Exception as raised:  # noqa: BLE001 - the test looks at it
                results[n] = raised
            self._go_on()

        threads = [Thread(target=turn, args=(n, self._enter(0))) for n in range(len(works))]
        for thread in threads:
            thread.start()
        self._go_on()
        for thread in threads:
            thread.join()
        return results

    def _enter(self, seconds: float) -> Semaphore:
        self._count += 1
        mine = Semaphore(0)
        heapq.heappush(self._waiting, (self._clock.monotonic() + seconds, self._count, mine))
        return mine

    def _go_on(self) -> None:
        if self._waiting:
            at, _, whose = heapq.heappop(self._waiting)
            self._clock.advance(max(0.0, at - self._clock.monotonic()))
            whose.release()


@contextmanager
def at_once(stage: Stage) -> Iterator[Callable[[Sequence[Callable[[], Any]]], list[Any]]]:
    """Yields Turns.run. While it lasts, a transaction holds its items, and another one that wants them is refused.

    A fault that is at the taps already stays: it is met where the call's time is over.
    """
    turns, held, before = Turns(stage), set[tuple[str, str]](), stage.taps.fault

    def take_time(passing: Passing, carry_out: Act) -> Any:
        act = carry_out if before is None else lambda: before(passing, carry_out)
        if passing.operation != "TransactWriteItems":
            turns.wait(CALL_S)
            return act()
        turns.wait(CALL_S)
        wanted = {_key(*part.values()) for part in passing.request["TransactItems"]}
        if wanted & held:
            return conflict(passing, act)
        held.update(wanted)
        turns.wait(TRANSACTION_S)
        try:
            return act()
        finally:
            held.difference_update(wanted)

    def awaited(answer: Future[Any]) -> Any:
        """Lets others go on until somebody's read has ended: waiting for it otherwise would stop them all."""
        while not answer.done():
            turns.wait(CALL_S)
        return answer.result()

    sleep, stage.clock.sleep = stage.clock.sleep, turns.wait  # type: ignore[method-assign]
    stage.taps.fault = take_time
    try:
        with mock.patch.object(shared_reads, "awaited", awaited):
            yield turns.run
    finally:
        stage.taps.fault = before
        stage.clock.sleep = sleep  # type: ignore[method-assign]


def _key(part: dict[str, Any]) -> tuple[str, str]:
    key = part.get("Key", part.get("Item", {}))
    return key["pk"]["S"], key["sk"]["S"]
