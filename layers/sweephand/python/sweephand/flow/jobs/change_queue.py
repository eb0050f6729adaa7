"""Serialises concurrent changes of one job after the first conflict (decision 0052).

A change without a conflict takes no turn and pays nothing. A change that has lost a try waits for its turn (two write
units): of fifty at once, one works and the others poll, instead of all working in vain. A turn expires, so a process
that dies in its turn delays the others only until then.
"""

from __future__ import annotations

from datetime import timedelta
from types import TracebackType
from typing import Self

from sweephand.errors import Unavailable
from sweephand.flow.world import World
from sweephand.store.jobs import turns

LASTS = timedelta(seconds=3)
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.02, 0.5


class Turns:
    """The turn of one change, as a context manager: gives it back at the end."""

    def __init__(self, world: World, tenant: str, job_id: str) -> None:
        self._world = world
        self._job = tenant, job_id
        self._owner: str | None = None
        self._waits = 0

    def wait(self, until: float) -> None:
        """Waits, after a conflict, until it is this change's turn or `until` (monotonic) has come.

        Waits only shortly if it has the turn already: then a change without a turn, or the sweeper, came in between.
        """
        if self._owner is not None:
            self._pause()
            return
        owner = self._world.chance.new_id(self._world.clock.now())
        while self._world.clock.monotonic() < until:
            if turns.take(self._world.table, *self._job, owner, self._world.clock.now(), LASTS):
                self._owner, self._waits = owner, 0
                return
            self._pause()

    def _pause(self) -> None:
        """Sleeps with jitter, longer each time, so that waiting changes do not crowd out the one that works."""
        longest = min(LONGEST_WAIT_S, SHORTEST_WAIT_S * 2**self._waits)
        self._waits += 1
        self._world.clock.sleep(self._world.chance.uniform(0.0, longest))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _raised: object, _trace: TracebackType | None) -> None:
        """Gives the turn back, unless the process is being stopped: then the turn expires."""
        if self._owner is None or (kind is not None and not issubclass(kind, Exception)):
            return
        try:
            turns.give_back(self._world.table, *self._job, self._owner)
        except Unavailable as unavailable:
            reason = unavailable.reason
            self._world.journal.warning("a turn was not given back; it will expire", job=self._job[1], reason=reason)
