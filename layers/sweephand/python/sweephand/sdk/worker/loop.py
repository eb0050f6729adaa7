"""The event loop of a worker's async tasks: one for the process, so that the tasks can share clients and locks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from threading import Event, Lock, Thread
from typing import Any

CLOSES_WITHIN_S = 5


class Loop:
    """An event loop that runs coroutines for any thread. Its own thread starts with the first coroutine.

    thread: starts a thread for a function, and handles the errors that the function raises.
    """

    def __init__(self, thread: Callable[[Callable[[], None]], Thread]) -> None:
        self._begin = thread
        self._lock = Lock()
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Blocks the calling thread until the coroutine ends. Returns or raises its result."""
        loop = self._running()
        done, ended = asyncio.run_coroutine_threadsafe(_kept(coroutine), loop).result()
        if ended is not None:
            raise ended
        return done

    def close(self) -> None:
        """Cancels everything that is left on the loop, and ends its thread. A later `run` starts a new one."""
        with self._lock:
            thread, loop = self._thread, self._loop
            self._thread = self._loop = None
        if thread is None or loop is None or not thread.is_alive():
            return
        loop.call_soon_threadsafe(self._end.set)
        thread.join(timeout=CLOSES_WITHIN_S)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._loop, began = None, Event()
                self._end = asyncio.Event()
                self._thread = self._begin(partial(self._serve, began))
                began.wait()
            if self._loop is None:
                raise RuntimeError("the event loop of async tasks did not start")
            return self._loop

    def _serve(self, began: Event) -> None:
        try:
            asyncio.run(self._until_the_end(began))
        finally:
            began.set()

    async def _until_the_end(self, began: Event) -> None:
        self._loop = asyncio.get_running_loop()
        began.set()
        await self._end.wait()


async def _kept(coroutine: Coroutine[Any, Any, Any]) -> tuple[Any, BaseException | None]:
    """Returns SystemExit and KeyboardInterrupt instead of raising them, which would end the loop."""
    try:
        return await coroutine, None
    except (SystemExit, KeyboardInterrupt) as ended:
        return None, ended
