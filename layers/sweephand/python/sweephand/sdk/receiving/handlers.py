"""The user's functions that receive events, called in a thread or on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from inspect import isawaitable, iscoroutine, iscoroutinefunction, signature
from typing import Any, TypeVar

from sweephand.sdk.errors import InvalidArgument

E = TypeVar("E")
Handler = Callable[[E], None]
AsyncHandler = Callable[[E], Awaitable[None] | None]
"""A function that receives an event. The asyncio client awaits its result if it is awaitable."""
NOT_AWAITED = "is async, and JobScheduler would not await it: use AsyncJobScheduler, or a plain function"


class Handlers:
    """Plain functions, which return once they are done with the event."""

    @staticmethod
    def check(handler: Callable[..., Any]) -> None:
        """Raises InvalidArgument for a function that cannot take an event, and for an async one."""
        _check_takes_one(handler)
        if iscoroutinefunction(handler):
            raise InvalidArgument("handler", NOT_AWAITED)

    @staticmethod
    def give(handler: Callable[[E], object], event: E) -> None:
        """Calls the function. Raises InvalidArgument if it returns an awaitable, which nothing would await."""
        done = handler(event)
        if iscoroutine(done):
            done.close()
        if isawaitable(done):
            raise InvalidArgument("handler", NOT_AWAITED)


class AsyncHandlers:
    """Async functions, which are awaited. Plain ones are called in a thread, so that the event loop is not blocked."""

    @staticmethod
    def check(handler: Callable[..., Any]) -> None:
        """Raises InvalidArgument for a function that cannot take an event."""
        _check_takes_one(handler)

    @staticmethod
    async def give(handler: AsyncHandler[E], event: E) -> None:
        """Calls the function and waits until it is done with the event."""
        done = handler(event) if iscoroutinefunction(handler) else await asyncio.to_thread(handler, event)
        if isawaitable(done):
            await done


def _check_takes_one(handler: object) -> None:
    """Raises InvalidArgument unless the object can be called with an event."""
    if not callable(handler):
        raise InvalidArgument("handler", f"must be a function, not {handler!r}")
    with suppress(ValueError):  # some functions written in C have no signature
        try:
            signature(handler).bind(None)
        except TypeError as wrong:
            raise InvalidArgument("handler", f"must take one argument, the event: {wrong}") from wrong
