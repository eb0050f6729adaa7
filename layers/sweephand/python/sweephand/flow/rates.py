"""Limits of requests and of runs a minute, which every process counts by itself and reports to the table in batches."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from sweephand.domain.instants import epoch_s
from sweephand.errors import RateLimited, Unavailable
from sweephand.flow.world import World
from sweephand.store.tenants import rates

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
        """After so many requests the count is reported."""
        return max(1, min(filter(None, (self.slow_from, self.most)), default=1) // PARTS)


@dataclass
class _Counter:
    """Count of one minute. known: as the table said last, own ones included; untold: own ones since then."""

    minute: int
    known: int = 0
    untold: int = 0
    told_at: float = 0.0


class Counters:
    """Counts of the present minute by tenant. Safe for threads. counted: as for store.dynamo.keys.rate.

    lazily: a process reports after `step` only, not at its first in a minute nor after some seconds. What is counted
    seldom then costs no write at all.
    """

    def __init__(self, counted: str, *, lazily: bool = False) -> None:
        self._counted = counted
        self._lazily = lazily
        self._counters: dict[str | None, _Counter] = {}
        self._lock = Lock()

    def count(self, world: World, tenant: str | None, step: int) -> int:
        """Counts one more and returns how many there are in this minute, as far as this process knows.

        A table that does not answer limits nobody: 0.
        """
        minute = epoch_s(world.clock.now()) // 60
        with self._lock:
            counter = self._counters.get(tenant)
            if counter is None or counter.minute != minute:
                counter = self._counters[tenant] = _Counter(minute)
            counter.untold += 1
            now = world.clock.monotonic()
            overdue = not self._lazily and (counter.known == 0 or now - counter.told_at >= TOLD_AFTER_S)
            if counter.untold >= step or overdue:
                try:
                    counter.known = rates.count(world.table, tenant, minute, counter.untold, self._counted)
                except Unavailable:
                    return 0
                counter.untold, counter.told_at = 0, now
            return counter.known + counter.untold

    def give_back(self, tenant: str) -> None:
        """Counts one less: it was counted a moment ago, and not for this process."""
        with self._lock:
            counter = self._counters.get(tenant)
            if counter is not None:
                counter.untold -= 1


class RateMeter:
    """Limits of requests a minute: near one a request waits, over it it is refused.

    A request costs no write of its own. The count of all instances together is exact for limits below 400, and for
    larger ones to half a percent of the limit for each instance.
    """

    def __init__(self, world: World, absolute: Limit, client: Limit, *, counted: str = "") -> None:
        """absolute: of all callers together; client: of each tenant; counted: as for store.dynamo.keys.rate."""
        self._world = world
        self._absolute = absolute
        self._client = client
        self._counters = Counters(counted)

    def let_in(self, tenant: str) -> int:
        """Returns how many milliseconds the request has to wait.

        Raises RateLimited over the tenant's limit, Unavailable over that of all.
        """
        until_next_s = 60 - epoch_s(self._world.clock.now()) % 60
        own = self._count(tenant, self._client)
        if self._client.most and own > self._client.most:
            raise RateLimited(
                f"too many requests in this minute: {self._client.most} are allowed; "
                f"send the next one in {until_next_s} seconds",
                retry_after_s=until_next_s,
            )
        everybody = self._count(None, self._absolute)
        if self._absolute.most and everybody > self._absolute.most:
            raise Unavailable("the service has too many requests in this minute", retry_after_s=until_next_s)
        waits = ((self._client, own), (self._absolute, everybody))
        return sum(limit.slow_ms for limit, seen in waits if limit.slow_from and seen > limit.slow_from)

    def _count(self, tenant: str | None, limit: Limit) -> int:
        """This request counted: how many there are in this minute."""
        return self._counters.count(self._world, tenant, limit.step) if limit.slow_from or limit.most else 0
