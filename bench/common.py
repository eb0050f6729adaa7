"""The common part of the CPU benchmarks: rounds in turn, the stub's own time taken out, and the schedule they run."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unittest import mock

from botocore.client import BaseClient

from bench.stub import Stub
from sweephand.base.ids import uuid7
from sweephand.base.sources import SystemClock
from sweephand.domain.instants import epoch_ms
from sweephand.domain.schedule import Lane, Schedule
from sweephand.schedules.timing import parse

MINUTE = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
ROUNDS = 5


@dataclass(frozen=True)
class Cpu:
    """us: CPU microseconds of one piece of work: median of the rounds, least and most.

    ratio: to the same calls of AWS made by botocore alone, median of pairs; machines differ by half, and this does not.
    """

    name: str
    us: float
    least: float
    most: float
    ratio: float
    done: int


class StillClock(SystemClock):
    """It is always the same second: so every round sweeps the same rows. The deadline's clock runs."""

    def now(self) -> datetime:
        return MINUTE


def schedule_of(n: int, timing: dict[str, Any]) -> Schedule:
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


def timed(name: str, work: Callable[[], int], stub: Stub) -> Cpu:
    """Times the work after one round that makes clients and fills caches: it is not counted. Its calls are those that
    botocore repeats.
    """
    calls: list[Callable[[], Any]] = []
    make = BaseClient._make_api_call

    def noted(client: BaseClient, operation: str, arguments: dict[str, Any]) -> Any:
        calls.append(partial(make, client, operation, copy.deepcopy(arguments)))
        return make(client, operation, arguments)

    work()
    with mock.patch.object(BaseClient, "_make_api_call", noted):
        done = work()

    def alone() -> int:
        for call in calls:
            call()
        return done

    taken = [(_cpu_us(work, stub), _cpu_us(alone, stub)) for _ in range(ROUNDS)]
    whole = [each for each, _ in taken]
    ratio = statistics.median(each / floor for each, floor in taken)
    return Cpu(name, statistics.median(whole), min(whole), max(whole), ratio, done)


def _cpu_us(work: Callable[[], int], stub: Stub) -> float:
    """Returns the CPU time of all threads for one piece of the work, without that of the stub."""
    began, stub.own_s = time.process_time(), 0.0
    done = work()
    return (time.process_time() - began - stub.own_s) / done * 1_000_000
