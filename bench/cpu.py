"""CPU of the sweeper for each due occurrence, on AWS that answers at once (stub.py); then the executor's (runs.py).

Process time of all threads, without the stub's own. One process at a time, rounds in turn: medians.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest import mock

from bench import runs
from bench.cold_start import ENVIRONMENT
from bench.common import MINUTE, Cpu, StillClock, schedule_of, timed
from bench.stub import advanced, pages, sent, stubbed
from sweephand.base.ids import shard_of
from sweephand.base.sources import SystemChance
from sweephand.schedules.zones import localtime
from sweephand.server.flow.sweep import sweep
from sweephand.server.flow.world import World
from sweephand.server.settings import from_environment
from sweephand.server.store.dynamo import keys
from sweephand.server.store.index import newer_zones, next_run_index
from sweephand.server.store.jobs import jobs
from sweephand.server.wiring import build

DUE = 10_000
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
EACH_MINUTE, EVERY_5_S = "sweep, an occurrence of a minute's cron", "sweep, an occurrence of every 5 seconds"
EACH_5_S = {"every": "PT5S", "align": "clock"}
OF_THE_INDEX = frozenset({"pk", "sk", "shard", "next_run_at", "sweep", "generation", "planned_total"})


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
            *runs.measure(),
        ]


def _sweep(world: World, name: str, timing: dict[str, Any], due_in_s: int, count: int) -> Cpu:
    """Makes rows as the tick meets them each minute: due after the horizon of the tick before, two and a half minutes
    ahead.
    """
    rows: list[list[dict[str, Any]]] = [[] for _ in range(world.settings.shards)]
    for n in range(count):
        schedule = schedule_of(n, {**timing, "timezone": ZONES[n % len(ZONES)]} if "cron" in timing else timing)
        schedule = replace(schedule, next_run_at=MINUTE + timedelta(seconds=due_in_s), planned_total=1_000 + n)
        item = jobs.schedule_item(schedule, len(rows)).serialize()
        rows[shard_of(schedule.id, len(rows))].append({key: item[key] for key in OF_THE_INDEX})
    answers = [pages(some, next_run_index.PAGE) for some in rows]
    kept = {"pk": {"S": keys.STACK_SWEEP}, "sk": {"S": keys.SHARDS}, "shards": {"N": str(len(rows))}}
    looked = newer_zones.LookItem(
        pk=keys.STACK_SWEEP, sk=keys.look(0), data=localtime.IANA_VERSION, workers=1, began_at=int(MINUTE.timestamp())
    )
    stack = pages([kept, looked.serialize()], 2)[0]

    def query(body: bytes) -> str:
        asked = json.loads(body)
        if "IndexName" not in asked:
            return stack
        shard = int(next(iter(asked["ExpressionAttributeValues"].values()))["N"])
        start = asked.get("ExclusiveStartKey")
        return answers[shard][int(start["sk"]["S"]) if start else 0]

    def work() -> int:
        tally = sweep.tick(world)
        assert (tally.advanced, tally.rows, tally.cut_short) == (count, count, False), tally
        return tally.sent

    with stubbed({"Query": query, "SendMessageBatch": sent, "BatchExecuteStatement": advanced}) as stub:
        return timed(name, work, stub)
