"""Threads that are kept: to begin one takes more CPU than most of what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Threads:
    """As many as were busy at once, so that one that hangs holds up nobody.

    Daemons: none holds up the end of its process. Safe for threads.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[SimpleQueue[Callable[[], None]]] = []

    def begin(self, work: Callable[[], None]) -> None:
        """work: raises nothing."""
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            Thread(target=self._serve, args=(inbox,), name=self._name, daemon=True).start()
        inbox.put(work)

    def map(self, act: Callable[[T], R], pieces: Sequence[T]) -> list[R]:
        """All at once, the last by the caller's own thread. Ends when all have ended; raises what the first raised."""
        ended: SimpleQueue[tuple[int, R | None, BaseException | None]] = SimpleQueue()

        def one(n: int) -> None:
            try:
                ended.put((n, act(pieces[n]), None))
            except BaseException as raised:  # noqa: BLE001 - the caller raises it
                ended.put((n, None, raised))

        for n in range(len(pieces) - 1):
            self.begin(partial(one, n))
        if pieces:
            one(len(pieces) - 1)
        answers = sorted((ended.get() for _ in pieces), key=lambda answer: answer[0])
        for _, _, raised in answers:
            if raised is not None:
                raise raised
        return [answer for _, answer, _ in answers]  # type: ignore[misc]

    def _serve(self, inbox: SimpleQueue[Callable[[], None]]) -> None:
        while True:
            inbox.get()()
            self._idle.append(inbox)
