"""The free threads of a worker, and the signals that stop it."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sweephand.base.sources import Clock

log = logging.getLogger("sweephand.worker")
SAME_SIGNAL_S = 1.0
"""Signals closer together count as one: `timeout`, make and terminals signal both a process and its group."""


class Slots:
    """The free threads of a worker. No more messages are received than can be processed at once."""

    def __init__(self, most: int) -> None:
        self._most = self._free = most
        self._changed = threading.Condition()

    def take(self, sharers: int) -> int:
        """Takes up to ten slots, and at most a fair share among the queues. Returns how many it took, perhaps none."""
        with self._changed:
            taken = min(10, self._free, max(1, self._most // sharers))
            self._free -= taken
            return taken

    def give_back(self, number: int) -> None:
        with self._changed:
            self._free += number
            self._changed.notify_all()

    @property
    def all_free(self) -> bool:
        """True while no task runs and no message is being received."""
        with self._changed:
            return self._free == self._most

    def wait(self, seconds: float) -> None:
        """Waits until a slot becomes free, at most `seconds`."""
        with self._changed:
            self._changed.wait(seconds)


class Signals:
    """Signal handlers: SIGTERM and SIGINT stop the worker, a later one ends the process. Only in the main thread."""

    def __init__(self, stop: Callable[[], None], clock: Clock, end: Callable[[int], None] = os._exit) -> None:
        self._stop, self._clock, self._end = stop, clock, end
        self._before: dict[int, Any] = {}
        self._told_at: float | None = None

    def _hear(self, number: int, _frame: object) -> None:
        if self._told_at is not None:
            if self._clock.monotonic() - self._told_at >= SAME_SIGNAL_S:
                log.warning("a second signal: the worker ends now; other workers take its runs after their lease")
                self._end(128 + number)
            return
        self._told_at = self._clock.monotonic()
        log.info("the worker finishes its running tasks and takes no more")
        self._stop()

    def __enter__(self) -> None:
        with suppress(ValueError):  # not the main thread: whoever owns it stops the worker
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._hear)

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
