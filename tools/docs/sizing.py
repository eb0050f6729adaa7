"""Makes the tables of docs/operate/sizing.md: how many runs a stack of a size carries out, and how late a burst is.

The model follows the messages of a burst from the sweep to the executors in steps of a twentieth of a second.
tests/unit/test_sizing.py holds it against executors that work by a virtual clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sweephand.base.ids import SHARDS
from sweephand.server.flow.delivery.dispatch import IN_HAND
from sweephand.server.messaging.run_queue import BATCH_MOST
from sweephand.server.settings import Settings
from sweephand.server.store.runs.spread import WAYS
from sweephand.server.threads import ASK_EACH_S

BATCH_S, RUN_S = 0.05, 0.008
"""The time that a batch takes in addition to its calls: for the table and the queue, and for each run the CPU."""
BEGINS_S = 0.6
"""The time from the planned second to the first call of an idle stack: SQS's whole seconds, and a poll."""
AT_FIRST, EACH_S = 5, 5
"""How many executors Lambda starts at once for a queue, and how many more each second (300 a minute)."""
NEW_TABLE = 4_000
"""Write units a second of a new table. An advance takes two of the index, a run two of the table."""
SWEEPER = 7_000
SHARD = 500
"""How many rows a second a worker of the sweep advances, and how many one shard of the index takes."""
SWEEPERS_MOST = 5
"""A rule starts at most five targets."""
SEEN_S, TICK_S, SWEEPS_S = 90, 60, 50
"""When a tick sees an occurrence at the latest before it is due, and for how long a tick sweeps in each minute."""
ASYNCHRONOUS, CREATED, AUDITED = SHARD * WAYS, 500, 12_000_000
"""Limits that a burst does not reach: two entries of the index `attention` for each asynchronous run, new jobs of a
tenant (decision 0195), and daily schedules that an auditor compares (docs/operate/look-after.md)."""
STEP_S = 0.05


@dataclass(frozen=True)
class Size:
    """A stack. units: the write units a second that its table bears."""

    name: str
    fast: int
    units: int = NEW_TABLE
    workers: int = 1


SIZES = (
    Size("default, for an account with 10 executions", 3),
    Size("`FastConcurrency=50`, for an account with 1,000 executions", 50),
    Size("`FastConcurrency=500 WarmUnits=40000 SweepWorkers=5`", 500, 40_000, 5),
)
BURSTS = (1, 1_000, 10_000, 50_000, 200_000)
FASTS, TARGETS_S = (3, 10, 50, 200, 1_000), (0.12, 0.5, 2.0, 5.0, 15.0)


def runs_a_second(target_s: float) -> float:
    """Returns how many runs an executor carries out a second, if there is always one to do.

    A batch ends with its slowest call. After a second, the executor receives ten more each second, up to 60 in hand;
    it does so for a minute, and then ends with its last call.
    """
    return min(_received_a_second(target_s), IN_HAND / target_s) * _receives(target_s)


def _received_a_second(target_s: float) -> float:
    """Returns how many runs an executor receives a second while it has room for more."""
    if target_s < ASK_EACH_S:
        return BATCH_MOST / (BATCH_S + BATCH_MOST * RUN_S + target_s)
    return BATCH_MOST / ASK_EACH_S


def _receives(target_s: float) -> float:
    """Returns the share of its time in which an executor receives."""
    return 1.0 if target_s < ASK_EACH_S else Settings.relief_s / (Settings.relief_s + target_s)


@dataclass(frozen=True)
class Lateness:
    """The lateness of a burst in seconds, and what it waited for."""

    p50: float
    p99: float
    limit: str


EXECUTORS, START, TABLE, SWEEP, NONE = "executors", "their start", "table", "sweep", "none"


def burst(size: Size, number: int, target_s: float) -> Lateness:
    """Returns how late the runs of a burst begin that are all due in the same second."""
    rate, table = _received_a_second(target_s), size.units / 2
    swept = min(table, SWEEPER * size.workers, SHARD * SHARDS)
    begun, at, reached, limits = 0.0, 0.0, dict[float, float](), list[str]()
    history, takes = [0.0], round(target_s / STEP_S)
    for share in (0.5, 0.99):
        while begun < number * share:
            executors = min(size.fast, AT_FIRST + EACH_S * at)
            in_ticks = _swept_s(SEEN_S + at) * swept
            limit = EXECUTORS if executors == size.fast else START
            ended = history[max(0, len(history) - 1 - takes)]
            receives = 1.0 if at < Settings.relief_s else _receives(target_s)
            step = min(executors * rate * receives * STEP_S, executors * IN_HAND - (begun - ended))
            if table * STEP_S < step:
                limit, step = TABLE, table * STEP_S
            if in_ticks - begun < step and in_ticks < number:
                limit, step = SWEEP, max(0.0, in_ticks - begun)
            limits.append(limit)
            history.append(begun + step)
            begun, at = begun + step, at + STEP_S
        reached[share] = at
    waited = max(set(limits), key=limits.count) if reached[0.99] > 1 else NONE
    return Lateness(BEGINS_S + reached[0.5], BEGINS_S + reached[0.99], waited)


def _swept_s(seconds: float) -> float:
    """Returns for how long ticks have swept in the time since the first of them saw the burst."""
    whole, rest = divmod(seconds, TICK_S)
    return whole * SWEEPS_S + min(rest, SWEEPS_S)


def for_ever(workers: int, shards: int) -> float:
    """Returns how many rows a second are advanced without end, if the table bears them."""
    return min(SWEEPER * workers * SWEEPS_S / TICK_S, SHARD * shards)


def rates() -> list[tuple[str, ...]]:
    return [(f"{fast:,}", *(_figure(fast * runs_a_second(target_s)) for target_s in TARGETS_S)) for fast in FASTS]


def bursts() -> list[tuple[str, ...]]:
    found = []
    for size in SIZES:
        for number in BURSTS:
            short, long = burst(size, number, 0.12), burst(size, number, 1.0)
            times = [_figure(each) for each in (short.p50, short.p99, long.p50, long.p99)]
            found.append((size.name, f"{number:,}", *times, short.limit))
    return found


def _figure(value: float) -> str:
    """Returns two significant digits."""
    places = 10 ** max(0, len(str(int(value))) - 2)
    return f"{round(value / places) * places:,}" if value >= 10 else f"{value:.1f}"


FOR_EVER = f"{_figure(for_ever(SWEEPERS_MOST, SHARDS))} by all for ever; {SHARD} for each shard"
LIMITS: tuple[tuple[str, str, str, str], ...] = (
    (
        EXECUTORS,
        f"{runs_a_second(0.12):.0f} runs a second for each of `FastConcurrency`, if targets take 0.12 s",
        "`FastConcurrency`, up to the account's executions; in step with it, a quota of Lambda",
        "`Lateness`; `ApproximateAgeOfOldestMessage` of the run queue; `ConcurrentExecutions`",
    ),
    (
        "hanging calls",
        f"{IN_HAND} in hand for each executor: 15 s each, {IN_HAND * 4} a minute for each of `FastConcurrency`",
        "nothing for one host, whose calls go to the slow queue; otherwise `FastConcurrency`, or a shorter time-out",
        "`Lateness`; the item `target` of `/v1/attention`",
    ),
    (
        START,
        f"{AT_FIRST} executors at once and {EACH_S} more each second; Lambda's own",
        "spread the schedules over some seconds",
        "`ConcurrentExecutions`",
    ),
    (
        TABLE,
        f"{NEW_TABLE:,} write units a second of a new table: {NEW_TABLE // 2:,} runs and {NEW_TABLE // 2:,} advances",
        "`WarmUnits`, before the peak",
        "`WriteThrottleEvents` of the table and of its index `next-run`",
    ),
    (
        SWEEP,
        f"{SWEEPER:,} advances a second for each of at most {SWEEPERS_MOST} `SweepWorkers`, {FOR_EVER}",
        "`SweepWorkers`, then `Shards` against throttles; beyond that, a second stack",
        "`OldestDue`",
    ),
    (
        "asynchronous runs",
        f"{ASYNCHRONOUS:,} a second in one tenant; failures twice that; a new table [begins with 2,000](load.md)",
        "`WarmUnits`, before the peak; then more tenants",
        "`WriteThrottleEvents` of the index `attention`",
    ),
    (
        "new jobs",
        f"{CREATED} a second in one tenant; 16 write units each",
        "`ApiRateLimit`, `TenantRateMost`, `WarmUnits`; job sets hold many jobs each",
        "answers with status 429; `WriteThrottleEvents` of the table",
    ),
    (
        "audit",
        f"{AUDITED:,} daily schedules for each of `SweepWorkers`",
        "`SweepWorkers`",
        "`Unaudited`",
    ),
)


def limits() -> list[tuple[str, ...]]:
    return [*LIMITS]


TABLES: Mapping[str, tuple[tuple[str, ...], Callable[[], list[tuple[str, ...]]]]] = {
    "sizing-rates": (
        ("`FastConcurrency`", *(f"targets that take {target_s:g} s" for target_s in TARGETS_S)),
        rates,
    ),
    "sizing-bursts": (
        ("Size", "due in one second", "p50, target 0.12 s", "p99", "p50, target 1 s", "p99", "first limit"),
        bursts,
    ),
    "sizing-limits": (("Limit", "How much", "Set", "Metric that shows it"), limits),
}
