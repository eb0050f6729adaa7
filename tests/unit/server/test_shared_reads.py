"""A memory of what was read: one read for many threads, no failure kept, nothing older than asked for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier, Event

import pytest

from sweephand.server.shared_reads import SharedReads
from sweephand.testing.sources import VirtualClock


class Source:
    """Counts its reads. before: runs within each read, with the number of the read."""

    def __init__(self, before: Callable[[int], None] = lambda _: None) -> None:
        self.reads: list[str] = []
        self._before = before

    def read(self, key: str) -> str:
        self.reads.append(key)
        number = len(self.reads)
        self._before(number)
        return f"{key} {number}"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2027, 1, 1, tzinfo=UTC))


def test_a_value_is_read_again_only_once_it_is_older_than_asked_for(clock: VirtualClock) -> None:
    source = Source()
    reads = SharedReads(source.read, clock, 10)

    first = reads.get("a", 2)
    clock.advance(1)
    again, younger = reads.get("a", 2), reads.get("a", 1)
    clock.advance(2)
    later = reads.get("a", 2)

    assert [first, again, younger, later] == ["a 1", "a 1", "a 2", "a 3"]


def test_threads_that_ask_at_once_share_one_read(clock: VirtualClock) -> None:
    asking, first_reads = Barrier(8), Event()
    source = Source(lambda _: first_reads.wait(60) and None)
    reads = SharedReads(source.read, clock, 10)

    def ask(number: int) -> str:
        asking.wait(60)
        if number:
            return reads.get("a", 2)
        first_reads.set()
        return reads.get("a", 2)

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(ask, range(8))) == {"a 1"}

    assert source.reads == ["a"]


def test_a_value_stays_for_whoever_takes_an_older_one_while_and_after_it_is_read_again(clock: VirtualClock) -> None:
    meanwhile = []

    def fails_later(number: int) -> None:
        if number > 1:
            meanwhile.append(reads.get("a", 60))
            raise OSError("away")

    reads = SharedReads(Source(fails_later).read, clock, 10)
    reads.get("a", 2)
    clock.advance(3)

    with pytest.raises(OSError, match="away"):
        reads.get("a", 2)

    assert [*meanwhile, reads.get("a", 60)] == ["a 1", "a 1"]


def test_a_failure_is_not_remembered(clock: VirtualClock) -> None:
    def fails_first(number: int) -> None:
        if number == 1:
            raise OSError("away")

    reads = SharedReads(Source(fails_first).read, clock, 10)

    with pytest.raises(OSError, match="away"):
        reads.get("a", 2)
    assert reads.get("a", 2) == "a 2"


def test_a_read_that_began_before_a_change_is_not_remembered_after_it(clock: VirtualClock) -> None:
    """The change is written, and its process forgets, while another thread still reads."""
    reads: SharedReads[str, str]

    def changed_meanwhile(number: int) -> None:
        if number == 1:
            reads.forget(lambda key: key == "a")

    source = Source(changed_meanwhile)
    reads = SharedReads(source.read, clock, 10)

    assert [reads.get("a", 2), reads.get("a", 2)] == ["a 1", "a 2"]


def test_the_values_that_were_not_used_for_the_longest_time_go_first(clock: VirtualClock) -> None:
    source = Source()
    reads = SharedReads(source.read, clock, 2)

    for key in ("a", "b", "a", "c", "a", "b"):
        reads.get(key, 2)

    assert source.reads == ["a", "b", "c", "b"]


def test_a_thread_that_asks_in_the_middle_of_its_own_read_does_not_wait_for_itself(clock: VirtualClock) -> None:
    reads: SharedReads[str, str]

    def inner(number: int) -> None:
        if number == 1:
            assert reads.get("a", 60) == "a 2"

    source = Source(inner)
    reads = SharedReads(source.read, clock, 10)

    assert reads.get("a", 60) in {"a 1", "a 2"}
    assert reads.get("a", 60) == "a 2"
