"""Time and chance that a test commands."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from threading import Lock

from sweephand.base.ids import uuid7

START = datetime(2027, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
"""A Monday, a quarter of a second past noon: whatever mixes up seconds and milliseconds shows."""


class VirtualClock:
    """Moves when a test moves it, and when somebody sleeps. Whole milliseconds, as sources.Clock gives them."""

    def __init__(self, now: datetime = START) -> None:
        self._began = self._now = now
        self._lock = Lock()
        self.slept_s = 0.0

    def now(self) -> datetime:
        return self._now.replace(microsecond=self._now.microsecond // 1000 * 1000)

    @property
    def now_exactly(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._began).total_seconds()

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        assert seconds >= 0, "time does not go back"
        with self._lock:
            self._now += timedelta(seconds=seconds)

    def move_to(self, instant: datetime) -> None:
        """Moves to `instant`, or not at all if that is past."""
        with self._lock:
            self._now = max(self._now, instant)


class SeededChance:
    """The same seed gives the same ids and numbers, one after the other."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._count = 0
        self._lock = Lock()

    def new_id(self, now: datetime) -> str:
        return uuid7(int(now.timestamp() * 1000), self.token(10))

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * int.from_bytes(self.token(6), "big") / 2**48

    def token(self, size: int) -> bytes:
        with self._lock:
            self._count += 1
            return hashlib.shake_256(f"{self._seed}/{self._count}".encode()).digest(size)
