"""Clocks that wait without blocking the event loop. sources.py has the others."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from sweephand.base.sources import SystemClock


class AsyncClock(Protocol):
    """A clock like the one in sources.py, except that `sleep` is awaited."""

    def now(self) -> datetime: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class AsyncSystemClock:
    """The clock of this machine."""

    def __init__(self) -> None:
        self._clock = SystemClock()

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio  # noqa: PLC0415 - whoever awaits has it; whoever only imports this module need not

        await asyncio.sleep(seconds)
