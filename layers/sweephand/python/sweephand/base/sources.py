"""The only sources of time, ids and random numbers.

All other code receives them as arguments, so that any history can be replayed.
"""

from __future__ import annotations

import os
import random
import time
from datetime import UTC, datetime
from typing import Protocol

from sweephand.base.ids import uuid7


class Clock(Protocol):
    """Wall time for decisions, a monotonic count of seconds for durations, and a way to wait.

    now: aware UTC in whole milliseconds, as the table stores them, so that values read equal values written.
    """

    def now(self) -> datetime: ...
    def monotonic(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...


class Chance(Protocol):
    """New ids and random numbers."""

    def new_id(self, now: datetime) -> str: ...
    def uniform(self, low: float, high: float) -> float: ...
    def token(self, size: int) -> bytes: ...


class SystemClock:
    def now(self) -> datetime:
        now = datetime.now(UTC)
        return now.replace(microsecond=now.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class SystemChance:
    def new_id(self, now: datetime) -> str:
        return uuid7(int(now.timestamp() * 1000), os.urandom(10))

    def uniform(self, low: float, high: float) -> float:
        return random.uniform(low, high)

    def token(self, size: int) -> bytes:
        return os.urandom(size)
