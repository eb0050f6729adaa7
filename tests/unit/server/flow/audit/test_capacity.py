"""The schedules that an audit can compare in a day, from counted calls (docs/operate/look-after.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sweephand.server.flow.audit import audit
from tests.support.stage import Stage
from tests.unit.server.flow.common import DAY

PROCESSOR_MS = 0.6
"""The time of a whole processor for one call: botocore takes 0.42 to 0.7 ms (decision 0095)."""
COMPARING_MS = 0.4
"""The same for everything else about one schedule."""
LATENCY_MS = 8.0
LONGEST_SEARCH_S = 30.0
"""Searching one of 16 shards of ten million schedules takes 0.03 ms for each."""
DAILY = {"cron": "5 12 * * *"}
SCHEDULES = 100


def calls(stage: Stage, work: Callable[[], Any]) -> int:
    before = len(stage.taps.passed)
    work()
    return len([each for each in stage.taps.passed[before:] if each.service == "dynamodb"])


@pytest.mark.extended
def test_a_day_has_time_for_more_than_ten_million_daily_schedules(stage: Stage) -> None:
    """Rows are settled each fifth day, which takes three more calls."""
    for n in range(SCHEDULES):
        stage.create(DAILY, name=f"job {n}")
    counted = []
    for _ in range(10):
        stage.run(400)
        stage.clock.advance(1_200)
        counted.append(calls(stage, lambda: stage.audit(everything=False)) / SCHEDULES)
        tomorrow = (stage.clock.now() + DAY).replace(hour=12, minute=0, second=0)
        stage.pass_time((tomorrow - stage.clock.now()).total_seconds())
    each_day = sum(counted) / len(counted)

    assert each_day < 1.8
    seconds_a_day = 24 * (audit.DEADLINE_S - audit.SEARCHES_S - LONGEST_SEARCH_S)
    by_processor = seconds_a_day / (each_day * PROCESSOR_MS + COMPARING_MS) * 1_000
    by_waiting = seconds_a_day / (each_day * LATENCY_MS / audit.MOST_THREADS) * 1_000
    assert min(by_processor, by_waiting) > 10_000_000
