"""Pools of threads: one that lasts, because starting a thread takes more CPU than most of its work, and short ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Threads:
    """A pool with as many threads as were ever busy at once, so that a hanging one delays nobody.

    They are daemons, which do not delay the end of the process. Safe for threads.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[SimpleQueue[Callable[[], None]]] = []

    def begin(self, work: Callable[[], None]) -> None:
        """Starts work in a thread. work: must not raise."""
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            Thread(target=self._serve, args=(inbox,), name=self._name, daemon=True).start()
        inbox.put(work)

    def map(self, act: Callable[[T], R], pieces: Sequence[T]) -> list[R]:
        """Applies `act` to all pieces at once, to the last in the caller's thread. Raises the first piece's error."""
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


def at_once(act: Callable[[T], R], pieces: Sequence[T], most: int = 8) -> list[R]:
    """Applies `act` to all pieces, to at most `most` at a time. Returns the answers in order."""
    if len(pieces) < 2:
        return [act(piece) for piece in pieces]
    with ThreadPoolExecutor(max_workers=min(most, len(pieces))) as pool:
        return list(pool.map(act, pieces))
