"""A memory of what was read, in which threads that need the same thing at once share one read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock, get_ident
from typing import Generic, TypeVar

from sweephand.base.records import dataclass
from sweephand.base.sources import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def awaited(answer: Future[V]) -> V:
    """Waits for a read and returns its answer. Tests in which one thread runs at a time wait in another way."""
    return answer.result()


@dataclass(frozen=True)
class _Read(Generic[V]):
    """A read that has succeeded or is under way. since_s: its beginning, in monotonic seconds. thread: the reader."""

    since_s: float
    answer: Future[V]
    thread: int


class SharedReads(Generic[K, V]):
    """Values by key. Safe for threads. A failure reaches all threads that wait for it, and is not remembered.

    A thread that asks again in the middle of its own read makes another one, because it would wait for itself.

    most: how many values are remembered; those that were not used for the longest time go first.
    """

    def __init__(self, read: Callable[[K], V], clock: Clock, most: int) -> None:
        self._read = read
        self._clock = clock
        self._most = most
        self._kept: OrderedDict[K, _Read[V]] = OrderedDict()
        self._under_way: dict[K, _Read[V]] = {}
        self._lock = Lock()

    def get(self, key: K, kept_s: float) -> V:
        """Returns the value, from a read that began less than `kept_s` ago. Raises what the read raises."""
        now_s = self._clock.monotonic()
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and now_s - kept.since_s < kept_s:
                self._kept.move_to_end(key)
                return awaited(kept.answer)
            shared = self._under_way.get(key)
            if shared is None or now_s - shared.since_s >= kept_s or shared.thread == get_ident():
                shared = None
            read = shared or _Read(now_s, Future(), get_ident())
            self._under_way[key] = read
        if read is not shared:
            self._carry_out(key, read)
        return awaited(read.answer)

    def forget(self, concerns: Callable[[K], bool]) -> None:
        """Forgets the values of these keys. Reads under way answer only the threads that wait for them already."""
        with self._lock:
            for reads in (self._kept, self._under_way):
                for key in [key for key in reads if concerns(key)]:
                    del reads[key]

    def _carry_out(self, key: K, read: _Read[V]) -> None:
        try:
            read.answer.set_result(self._read(key))
        except BaseException as wrong:  # noqa: BLE001 - raised again, in each thread that waits
            read.answer.set_exception(wrong)
        with self._lock:
            if self._under_way.get(key) is not read:
                return
            del self._under_way[key]
            if read.answer.exception() is None:
                self._kept[key] = read
                self._kept.move_to_end(key)
                if len(self._kept) > self._most:
                    self._kept.popitem(last=False)
