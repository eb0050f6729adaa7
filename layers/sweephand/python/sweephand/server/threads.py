"""Pools of threads: one that lasts, because starting a thread takes more CPU than most of its work, and short ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

ASK_EACH_S = 1.0
_in_turn: ContextVar[bool] = ContextVar("in_turn", default=False)


@contextmanager
def in_turn() -> Iterator[None]:
    """Makes all pools of this module work in the caller's thread, one piece after the other: a test is repeatable."""
    before = _in_turn.set(True)
    try:
        yield
    finally:
        _in_turn.reset(before)


class Threads:
    """A pool with as many threads as were ever busy at once, so that a hanging one delays nobody.

    They are daemons, which do not delay the end of the process. Safe for threads. queue: what it waits with.
    """

    queue: Callable[[], Any] = SimpleQueue

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
        if _in_turn.get():
            return [act(piece) for piece in pieces]
        ended: Any = self.queue()

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
        return [answer for _, answer, _ in answers]

    def work(
        self, act: Callable[[T], None], pieces: Sequence[T], more: Callable[[], Sequence[T]], now: Callable[[], float]
    ) -> None:
        """Applies `act` to all pieces at once, and to those that `more` returns. Raises an error once all have ended.

        While some piece is at work, `more` is called in the caller's thread: a second after the last call, or as soon
        as everything that it returned has ended. now: returns the monotonic seconds.
        """
        if _in_turn.get():
            for piece in pieces:
                act(piece)
            return
        ended: Any = self.queue()
        at_work: set[int] = set()
        errors: list[BaseException] = []
        begun = 0

        def one(n: int, piece: T) -> None:
            try:
                act(piece)
            except BaseException as raised:  # noqa: BLE001 - the caller raises it
                errors.append(raised)
            ended.put(n)

        while pieces or at_work:
            newest = set(range(begun, begun + len(pieces)))
            at_work |= newest
            for n, piece in enumerate(pieces, begun):
                self.begin(partial(one, n, piece))
            begun, ask_at = begun + len(pieces), now() + ASK_EACH_S
            waits = True
            while at_work and waits:
                with suppress(Empty):
                    at_work.discard(ended.get(timeout=max(0.0, ask_at - now())))
                waits = now() < ask_at and (not newest or bool(newest & at_work))
            pieces = more() if at_work and not errors else ()
        if errors:
            raise errors[0]

    def _serve(self, inbox: SimpleQueue[Callable[[], None]]) -> None:
        while True:
            inbox.get()()
            self._idle.append(inbox)


def at_once(act: Callable[[T], R], pieces: Sequence[T], most: int = 8) -> list[R]:
    """Applies `act` to all pieces, to at most `most` at a time. Returns the answers in order."""
    if len(pieces) < 2 or _in_turn.get():
        return [act(piece) for piece in pieces]
    with ThreadPoolExecutor(max_workers=min(most, len(pieces))) as pool:
        return list(pool.map(act, pieces))
