"""Background work: in a thread, or in a task of the event loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any, TypeVar

from sweephand.base.errors import SweephandError

T = TypeVar("T")


class Heartbeat:
    """A thread that calls a function at an interval. A failed call is repeated at the next turn."""

    def __init__(self, beat: Callable[[], None], every_s: float) -> None:
        self._beat, self._every_s, self._over = beat, every_s, Event()
        self._thread = Thread(target=self._go, name="sweephand-heartbeat", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def _go(self) -> None:
        while not self._over.wait(self._every_s):
            with suppress(SweephandError):
                self._beat()

    def close(self) -> None:
        """Ends the thread, and waits for a call in progress."""
        self._over.set()
        self._thread.join()


class AsyncHeartbeat:
    """The same as Heartbeat, as a task of the running event loop."""

    def __init__(self, beat: Callable[[], Awaitable[None]], every_s: float) -> None:
        self._beat, self._every_s = beat, every_s
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._go())

    async def _go(self) -> None:
        while not self._over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), self._every_s)
                return
            with suppress(SweephandError):
                await self._beat()

    async def aclose(self) -> None:
        """Ends the task, and waits for a call in progress."""
        self._over.set()
        if self._task is not None:
            await self._task


STOPS = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """A wait for SIGTERM or SIGINT; a second signal acts as before. Outside the main thread, only `tell` ends it."""

    def __init__(self) -> None:
        self._told = Event()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        with suppress(ValueError):  # not the main thread
            for number in STOPS:
                self._before[number] = signal.signal(number, lambda *_: self.tell())

    def __exit__(self, *_: object) -> None:
        for number in [*self._before]:
            signal.signal(number, self._before.pop(number))

    def tell(self) -> None:
        self.__exit__()
        self._told.set()

    def wait(self) -> None:
        self._told.wait()


class AsyncStop:
    """The same for the running event loop."""

    def __init__(self) -> None:
        self._told = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        with suppress(ValueError, RuntimeError, NotImplementedError):  # not the main thread, or Windows
            for number in STOPS:
                self._loop.add_signal_handler(number, self.tell)

    def __exit__(self, *_: object) -> None:
        with suppress(ValueError, RuntimeError, NotImplementedError):
            for number in STOPS:
                self._loop.remove_signal_handler(number)

    def tell(self) -> None:
        self.__exit__()
        self._loop.call_soon_threadsafe(self._told.set)

    async def wait(self) -> None:
        await self._told.wait()


class Blocking:
    """Calls of blocking code, such as botocore's."""

    @staticmethod
    def call(work: Callable[..., T], *arguments: Any, **more: Any) -> T:
        return work(*arguments, **more)


class AsyncBlocking:
    """The same in a thread, so that the event loop is not blocked."""

    @staticmethod
    async def call(work: Callable[..., T], *arguments: Any, **more: Any) -> T:
        return await asyncio.to_thread(work, *arguments, **more)
