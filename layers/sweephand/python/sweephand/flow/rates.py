"""Limits of requests a minute: near one a request waits, over it it is refused.

Each instance counts by itself and tells the table now and then: a request costs no write of its own. What all instances
count together is exact for limits below 200, and for larger ones to half a percent of the limit for each instance.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from sweephand.domain.instants import epoch_s
from sweephand.errors import RateLimited, Unavailable
from sweephand.flow.world import World
from sweephand.store import rates

PARTS = 200
TOLD_AFTER_S = 5.0


@dataclass(frozen=True)
class Limit:
    """Requests a minute: from `slow_from` on one waits `slow_ms`, beyond `most` it is refused. 0: never."""

    slow_from: int = 0
    most: int = 0
    slow_ms: int = 0

    @property
    def step(self) -> int:
        """After so many requests the others are told."""
        return max(1, min(filter(None, (self.slow_from, self.most)), default=1) // PARTS)


@dataclass
class _Counter:
    """Of one minute. known: what the table said last, own requests included; untold: own ones since."""

    minute: int
    known: int = 0
    untold: int = 0
    told_at: float = 0.0


class RateMeter:
    """Safe for threads. A table that does not answer limits nobody."""

    def __init__(self, world: World, absolute: Limit, client: Limit) -> None:
        """absolute: of all callers together; client: of each tenant."""
        self._world = world
        self._absolute = absolute
        self._client = client
        self._counters: dict[str | None, _Counter] = {}
        self._lock = Lock()

    def let_in(self, tenant: str) -> int:
        """How many milliseconds the request has to wait.

        Raises RateLimited over the tenant's limit, Unavailable over that of all.
        """
        now_s = epoch_s(self._world.clock.now())
        until_next_s = 60 - now_s % 60
        own = self._count(tenant, self._client, now_s // 60)
        if self._client.most and own > self._client.most:
            raise RateLimited("too many requests in this minute", retry_after_s=until_next_s)
        everybody = self._count(None, self._absolute, now_s // 60)
        if self._absolute.most and everybody > self._absolute.most:
            raise Unavailable("the service has too many requests in this minute", retry_after_s=until_next_s)
        waits = ((self._client, own), (self._absolute, everybody))
        return sum(limit.slow_ms for limit, seen in waits if limit.slow_from and seen > limit.slow_from)

    def _count(self, tenant: str | None, limit: Limit, minute: int) -> int:
        """This request counted: how many there are in this minute."""
        if not (limit.slow_from or limit.most):
            return 0
        with self._lock:
            counter = self._counters.get(tenant)
            if counter is None or counter.minute != minute:
                counter = self._counters[tenant] = _Counter(minute, untold=0)
            counter.untold += 1
            now = self._world.clock.monotonic()
            if counter.untold >= limit.step or counter.known == 0 or now - counter.told_at >= TOLD_AFTER_S:
                try:
                    counter.known = rates.count(self._world.table, tenant, minute, counter.untold)
                except Unavailable:
                    return 0
                counter.untold, counter.told_at = 0, now
            return counter.known + counter.untold
