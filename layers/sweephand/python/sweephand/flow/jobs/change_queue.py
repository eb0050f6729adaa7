"""Many changes of one job at once take turns, once the first of them has come between (decision 0052).

A change that nobody disturbs knows nothing of it. Who has lost a try waits for a turn (two write units), so that of
fifty at once one works and the others look now and then, instead of all working in vain. A turn ends by itself: who
dies within one holds the others up for that long.
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
    """Of one change, as a context: what was taken is given back at its end."""

    def __init__(self, world: World, tenant: str, job_id: str) -> None:
        self._world = world
        self._job = tenant, job_id
        self._owner: str | None = None
        self._waits = 0

    def wait(self, until: float) -> None:
        """Another change came between: comes back when it is this one's turn, or at `until` (monotonic).

        Whoever has it and is disturbed still, by one that knows of no turns or by the sweeper, tries again soon.
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
        """With jitter, longer each time: many that wait shall not crowd out the one that works."""
        longest = min(LONGEST_WAIT_S, SHORTEST_WAIT_S * 2**self._waits)
        self._waits += 1
        self._world.clock.sleep(self._world.chance.uniform(0.0, longest))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _raised: object, _trace: TracebackType | None) -> None:
        """A process that dies gives nothing back."""
        if self._owner is None or (kind is not None and not issubclass(kind, Exception)):
            return
        try:
            turns.give_back(self._world.table, *self._job, self._owner)
        except Unavailable as unavailable:
            reason = unavailable.reason
            self._world.journal.warning("a turn was not given back: it ends by itself", job=self._job[1], reason=reason)
