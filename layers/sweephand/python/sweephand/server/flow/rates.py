"""Limits on requests and runs per minute. Each process counts for itself and reports to the table in batches."""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Lock

from sweephand.base.errors import RateLimited, Unavailable
from sweephand.base.records import dataclass
from sweephand.domain.collection import Pace
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.message import Pointer
from sweephand.domain.run import Run
from sweephand.server.flow.world import World
from sweephand.server.store.tenants import rates

PARTS = 200
REPORTED_AFTER_S = 5.0


@dataclass(frozen=True)
class Limit:
    """A limit per minute: a request above `slow_from` waits `slow_ms`; one above `most` is refused. 0 sets no limit."""

    slow_from: int = 0
    most: int = 0
    slow_ms: int = 0

    @property
    def step(self) -> int:
        """Returns the number of requests after which the count is reported."""
        return max(1, min(filter(None, (self.slow_from, self.most)), default=1) // PARTS)


@dataclass
class _Counted:
    """A run that was counted. total: of its minute, with this run. copies: messages of this run that are under way."""

    total: int
    copies: int = 1


@dataclass
class _Counter:
    """The count of one minute.

    runs: by their ids. known: the total in the table, as of the last report. unreported: what this process has counted
    since.
    """

    minute: int
    runs: dict[str, _Counted]
    known: int = 0
    unreported: int = 0
    reported_at: float = 0.0


class Counters:
    """Counts of the current minute by tenant. Thread-safe. counted: as for store.dynamo.keys.rate.

    lazily: whether a process reports only after `step` counts, and neither at its first count in a minute nor after
    some seconds. Then rare counts cost no write at all.
    """

    def __init__(self, counted: str, *, lazily: bool = False) -> None:
        self._counted = counted
        self._lazily = lazily
        self._counters: dict[str | None, _Counter] = {}
        self._lock = Lock()

    def count(self, world: World, tenant: str | None, step: int, run: str | None = None) -> int:
        """Adds one and returns the total of this minute, as far as this process knows.

        run: a run that counts once, however many copies of its message come; each copy gets the same total. Returns 0
        if the table does not answer, so that an outage limits nobody.
        """
        minute = epoch_s(world.clock.now()) // 60
        with self._lock:
            counter = self._counters.get(tenant)
            if counter is None or counter.minute != minute:
                counter = self._counters[tenant] = _Counter(minute, {})
            if run is None:
                return self._add(world, tenant, counter, step)
            counted = counter.runs.get(run)
            if counted is None:
                counted = counter.runs[run] = _Counted(self._add(world, tenant, counter, step))
            else:
                counted.copies += 1
            return counted.total

    def _add(self, world: World, tenant: str | None, counter: _Counter, step: int) -> int:
        counter.unreported += 1
        now = world.clock.monotonic()
        overdue = not self._lazily and (counter.known == 0 or now - counter.reported_at >= REPORTED_AFTER_S)
        if counter.unreported >= step or overdue:
            try:
                counter.known = rates.count(world.table, tenant, counter.minute, counter.unreported, self._counted)
            except Unavailable:
                return 0
            counter.unreported, counter.reported_at = 0, now
        return counter.known + counter.unreported

    def give_back(self, tenant: str, run: str) -> None:
        """Takes back a run that counted in this minute, unless another copy of its message is under way here."""
        with self._lock:
            counter = self._counters.get(tenant)
            counted = counter.runs.get(run) if counter is not None else None
            if counter is None or counted is None:
                return
            counted.copies -= 1
            if counted.copies == 0:
                del counter.runs[run]
                counter.unreported -= 1


class RateMeter:
    """Limits on requests per minute: a request near the limit waits, one above it is refused.

    A request costs no write of its own. The total of all instances is exact for limits below 400. For larger limits,
    each instance may be off by half a percent of the limit.
    """

    def __init__(self, world: World, absolute: Limit, client: Limit, *, counted: str = "") -> None:
        """Takes the limits. absolute: for all callers together; client: for each tenant; counted: as in Counters."""
        self._world = world
        self._absolute = absolute
        self._client = client
        self._counters = Counters(counted)

    def let_in(self, tenant: str) -> int:
        """Returns how many milliseconds the request has to wait.

        Raises RateLimited above the tenant's limit, Unavailable above the limit for all callers.
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
            raise Unavailable("the service gets too many requests in this minute", retry_after_s=until_next_s)
        waits = ((self._client, own), (self._absolute, everybody))
        return sum(limit.slow_ms for limit, counted in waits if limit.slow_from and counted > limit.slow_from)

    def _count(self, tenant: str | None, limit: Limit) -> int:
        """Counts this request and returns the total of this minute; 0 without a limit."""
        return self._counters.count(self._world, tenant, limit.step) if limit.slow_from or limit.most else 0


class _Meters(dict[str, RateMeter]):
    """The meters of requests, by what they count."""


def let_in(world: World, tenant: str | None, *, by_target: bool = False) -> None:
    """Counts a request of an identified caller, whichever facade it calls. Raises RateLimited above the tenant's limit.

    tenant: None for the provider, who has no limit. by_target: whether a target sent it with the token of a run. Such
    requests have a count of their own, so neither a tenant nor its targets can use up the other's limit.
    """
    most = world.settings.tenant_rate_most
    if tenant is None or not most:
        return
    counted = "targets" if by_target else "requests"
    meters = world.memory.of(_Meters)
    meter = meters.get(counted) or meters.setdefault(
        counted, RateMeter(world, Limit(), Limit(most=most), counted=counted)
    )
    meter.let_in(tenant)


class _Runs(Counters):
    """The runs begun in this minute, by tenant."""

    def __init__(self) -> None:
        super().__init__("runs", lazily=True)


RUNS_STEP = 10
"""Runs after which a process reports its count: a tenth of a write unit per run, for tenants with this quota only."""


def refusal(world: World, pointer: Pointer, run: Run | None, pace: Pace) -> str | None:
    """Counts a run that begins. Returns why it may not begin; None if it may. run: its row, if any. Raises Unavailable.

    A duplicate message may count a descendant twice; every descendant counts at least once.
    """
    if run is not None and not run.begins:
        return None
    most = pace.runs_per_minute
    if most is not None:
        counted = world.memory.of(_Runs).count(world, pointer.tenant, max(RUNS_STEP, most // PARTS), pointer.run)
        if counted > most:
            return f"the provider allows this tenant {most} runs a minute (quota.runsPerMinute)"
    if run is None or run.root is None or run.parent_uuid is None:
        return None
    if rates.count_descendant(world.table, pointer.tenant, run.root, pace.descendants, world.clock.now()):
        return None
    return (
        f"the provider allows {pace.descendants} runs to follow from one run (quota.maxDescendants), "
        f"and as many have followed from {run.root}"
    )


def next_minute(world: World) -> datetime:
    """Returns an instant of the next minute, at which a message that was over the limit is looked at again."""
    now = world.clock.now()
    return from_s((epoch_s(now) // 60 + 1) * 60) + timedelta(seconds=world.chance.uniform(0, 50))


def give_back(world: World, pointer: Pointer, run: Run | None, pace: Pace) -> None:
    """Takes back the count of a run that another process has begun by another copy of its message."""
    if pace.runs_per_minute is not None and (run is None or run.begins):
        world.memory.of(_Runs).give_back(pointer.tenant, pointer.run)


def take_back(world: World, pointer: Pointer, run: Run | None, pace: Pace) -> None:
    """Takes back the count of a run that could not begin. Raises Unavailable."""
    give_back(world, pointer, run, pace)
    if run is not None and run.begins and run.root is not None and run.parent_uuid is not None:
        rates.uncount_descendant(world.table, pointer.tenant, run.root)
