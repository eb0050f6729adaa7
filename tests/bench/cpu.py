"""CPU of the sweeper for each due occurrence, and of the executor for each run, on AWS that answers at once (stub.py).

Process time of all threads, without the stub's own. One process at a time, rounds in turn: medians.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

from sweephand.domain.instants import epoch_ms
from sweephand.domain.job import ActionSpec, Job
from sweephand.domain.message import encode, occurrence
from sweephand.domain.run import Outcome, Verdict
from sweephand.domain.schedule import Lane, Schedule
from sweephand.flow import execute, sweep
from sweephand.flow.world import World
from sweephand.ids import shard_of, uuid7
from sweephand.schedules.timing import parse
from sweephand.settings import from_environment
from sweephand.sources import SystemChance, SystemClock
from sweephand.store import jobs, waiting
from sweephand.wiring import build
from tests.bench.cold_start import ENVIRONMENT
from tests.bench.stub import Stub, advanced, pages, sent, stubbed

MINUTE = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
DUE, RUNS, ROUNDS = 10_000, 1_000, 5
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
EACH_MINUTE, EVERY_5_S = "sweep, an occurrence of a minute's cron", "sweep, an occurrence of every 5 seconds"
EACH_5_S = {"every": "PT5S", "align": "clock"}
OF_THE_INDEX = frozenset({"pk", "sk", "shard", "next_run_at", "sweep", "generation", "planned_total"})


@dataclass(frozen=True)
class Cpu:
    """us: CPU microseconds of one piece of work: median of the rounds, least and most."""

    name: str
    us: float
    least: float
    most: float
    done: int


class StillClock(SystemClock):
    """It is always the same second: so every round sweeps the same rows. The deadline's clock runs."""

    def now(self) -> datetime:
        return MINUTE


class Silent:
    """A journal that writes nothing."""

    def info(self, message: str, /, **members: object) -> None: ...
    def warning(self, message: str, /, **members: object) -> None:
        raise AssertionError(message)

    error = warning

    def count(self, metric: str, amount: float = 1) -> None: ...
    def measure(self, **values: object) -> None: ...


def measure() -> list[Cpu]:
    with mock.patch.dict("os.environ", ENVIRONMENT):
        world = replace(build(from_environment(), clock=StillClock(), chance=SystemChance()), journal=Silent())
        return [
            _sweep(world, EACH_MINUTE, {"cron": "* * * * *"}, 120, DUE),
            _sweep(
                world, "sweep, an occurrence of every 5 seconds", {"every": "PT5S", "align": "clock"}, 95, DUE // 12
            ),
            _execute(world),
        ]


def _sweep(world: World, name: str, timing: dict[str, Any], due_in_s: int, count: int) -> Cpu:
    """As the tick meets them each minute: due behind the horizon of the tick before, two and a half minutes ahead."""
    rows: list[list[dict[str, Any]]] = [[] for _ in range(world.settings.shards)]
    for n in range(count):
        schedule = _schedule(n, {**timing, "timezone": ZONES[n % len(ZONES)]} if "cron" in timing else timing)
        schedule = replace(schedule, next_run_at=MINUTE + timedelta(seconds=due_in_s), planned_total=1_000 + n)
        item = jobs.schedule_item(schedule, len(rows)).serialize()
        rows[shard_of(schedule.id, len(rows))].append({key: item[key] for key in OF_THE_INDEX})
    answers = [pages(some, waiting.PAGE) for some in rows]
    nothing = pages([], 1)[0]

    def query(body: bytes) -> str:
        asked = json.loads(body)
        if "IndexName" not in asked:
            return nothing  # of what is suspended
        shard, first, _ = (int(value["N"]) for value in asked["ExpressionAttributeValues"].values())
        if first == 0:
            return nothing
        start = asked.get("ExclusiveStartKey")
        return answers[shard][int(start["sk"]["S"]) if start else 0]

    def work() -> int:
        tally = sweep.tick(world, range(len(rows)))
        assert (tally.advanced, tally.rows, tally.cut_short) == (count, count, False), tally
        return tally.sent

    with stubbed({"Query": query, "SendMessageBatch": sent, "BatchExecuteStatement": advanced}) as stub:
        return _timed(name, work, stub)


def _execute(world: World) -> Cpu:
    """Batches of ten, each a run of its own that succeeds at once; the call to the target is not counted."""
    action = ActionSpec(
        "http", {"method": "POST", "url": "https://x.org", "headers": {}, "outcome": {}}, {"type": "none"}
    )
    schedule = _schedule(0, {"every": "PT1M"})
    job = Job(schedule.tenant, schedule.job_id, "default", "bench", action, MINUTE, MINUTE)
    rows = [jobs.job_item(job).serialize(), jobs.schedule_item(schedule, world.settings.shards).serialize()]
    found = json.dumps({"Responses": {"bench": rows}, "UnprocessedKeys": {}})
    none = json.dumps({"Responses": {"bench": []}, "UnprocessedKeys": {}})
    world = replace(world, perform=lambda *_: Outcome(Verdict.SUCCEEDED, http_status=200, answer="ok"))
    bodies = [encode(_pointer(schedule, MINUTE - timedelta(milliseconds=n))) for n in range(RUNS)]
    messages = [execute.Delivered(str(n), str(n), body, MINUTE, MINUTE) for n, body in enumerate(bodies)]

    def work() -> int:
        for begin in range(0, RUNS, 10):
            assert not execute.batch(world, Lane.FAST, "bench", messages[begin : begin + 10])
        return RUNS

    answers = {
        "BatchGetItem": lambda body: found if b"RUN#" in body else none,
        "PutItem": lambda _: "{}",
        "UpdateItem": lambda _: "{}",
        "ChangeMessageVisibilityBatch": lambda _: '{"Successful": [], "Failed": []}',
    }
    with stubbed(answers) as stub:
        return _timed("executor, a run that succeeds, without its call", work, stub)


def _pointer(schedule: Schedule, at: datetime) -> Any:
    return occurrence(schedule.tenant, schedule.job_id, schedule.id, at, schedule.generation)


def _schedule(n: int, timing: dict[str, Any]) -> Schedule:
    created_at = MINUTE - timedelta(days=30)
    return Schedule(
        tenant="bench",
        job_id=uuid7(epoch_ms(created_at), n.to_bytes(10, "big")),
        id=uuid7(epoch_ms(created_at), (n + 2**40).to_bytes(10, "big")),
        name="bench",
        timing=timing,
        packed=parse(timing, now=created_at).packed,
        lane=Lane.FAST,
        created_at=created_at,
        modified_at=created_at,
    )


def _timed(name: str, work: Callable[[], int], stub: Stub) -> Cpu:
    """The first round makes clients and fills caches: it is not counted."""
    done = work()
    taken = []
    for _ in range(ROUNDS):
        began, stub.own_s = time.process_time(), 0.0
        done = work()
        taken.append((time.process_time() - began - stub.own_s) / done * 1_000_000)
    return Cpu(name, statistics.median(taken), min(taken), max(taken), done)
