"""Functions of a user that get events: of a thread, or of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from typing import Any, TypeVar

from sweephand.sdk.errors import InvalidArgument

E = TypeVar("E")
Handler = Callable[[E], None]
AsyncHandler = Callable[[E], Awaitable[None] | None]
"""A function that gets an event; by asyncio it is awaited if it can be."""
NOT_AWAITED = "is async, and JobScheduler would not await it: use AsyncJobScheduler, or a plain function"


class Handlers:
    """Functions that return once the event is done."""

    @staticmethod
    def check(handler: Callable[..., Any]) -> None:
        """Raises InvalidArgument for an async function."""
        if iscoroutinefunction(handler):
            raise InvalidArgument("handler", NOT_AWAITED)

    @staticmethod
    def give(handler: Callable[[E], object], event: E) -> None:
        """Calls the function. Raises InvalidArgument if it has only begun to await something."""
        done = handler(event)
        if iscoroutine(done):
            done.close()
        if isawaitable(done):
            raise InvalidArgument("handler", NOT_AWAITED)


class AsyncHandlers:
    """Functions that are awaited. Others are called in a thread, so that the event loop goes on."""

    @staticmethod
    def check(handler: Callable[..., Any]) -> None:
        """Lets all functions through."""

    @staticmethod
    async def give(handler: AsyncHandler[E], event: E) -> None:
        """Calls the function, and returns once the event is done."""
        done = handler(event) if iscoroutinefunction(handler) else await asyncio.to_thread(handler, event)
        if isawaitable(done):
            await done
