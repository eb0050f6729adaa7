"""Recurrences as jobs: what startTime, and its absence, make of the first run."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from sweephand.domain.instants import text
from tests.support.stage import Stage
from tests.unit.server.flow.common import HOUR, MINUTE, NOON, SECOND

GRID: dict[str, Any] = {"frequency": "Minute", "interval": 10}
BY_THE_CLOCK: dict[str, Any] = {"frequency": "Hour", "schedule": {"minutes": [5, 20]}}
AT_ONCE = {"onCreate": "run_now", "onPastStart": "run_now"}
NOW = NOON + SECOND
"""The whole second in which the stage, a little past noon, runs what is due at once."""


def ran(stage: Stage, timing: dict[str, Any], policies: dict[str, Any], seconds: int = 1_750) -> list[datetime]:
    planned = stage.create(timing, policies=policies)
    stage.run(seconds)
    return [run.planned_at for run in stage.runs(planned)]


PAST, AHEAD = NOON - 7 * MINUTE, NOON + 4 * MINUTE


@pytest.mark.parametrize(
    ("timing", "expected"),
    [
        pytest.param({"at": text(NOW)}, [NOW], id="no start, no recurrence"),
        pytest.param(
            {"recurrence": GRID}, [NOW, NOW + 10 * MINUTE, NOW + 20 * MINUTE], id="no start, recurrence, no schedule"
        ),
        pytest.param(
            {"recurrence": BY_THE_CLOCK},
            [NOW, NOON + 5 * MINUTE, NOON + 20 * MINUTE],
            id="no start, recurrence with schedule",
        ),
        pytest.param({"at": text(PAST)}, [NOW], id="past start, no recurrence"),
        pytest.param({"at": text(AHEAD)}, [AHEAD], id="future start, no recurrence"),
    ],
)
def test_the_table_of_immediate_and_one_time_starts(
    stage: Stage, timing: dict[str, Any], expected: list[datetime]
) -> None:
    assert ran(stage, timing, AT_ONCE) == expected


@pytest.mark.parametrize(
    ("timing", "expected"),
    [
        pytest.param(
            {"recurrence": GRID, "startTime": text(PAST)},
            [NOON + n * MINUTE for n in (3, 13, 23)],
            id="past start, recurrence, no schedule",
        ),
        pytest.param(
            {"recurrence": BY_THE_CLOCK, "startTime": text(PAST)},
            [NOON + n * MINUTE for n in (5, 20)],
            id="past start, recurrence with schedule",
        ),
        pytest.param(
            {"recurrence": GRID, "startTime": text(AHEAD)},
            [NOON + n * MINUTE for n in (4, 14, 24)],
            id="future start, recurrence, no schedule",
        ),
        pytest.param(
            {"recurrence": BY_THE_CLOCK, "startTime": text(NOON + 6 * MINUTE)},
            [NOON + 20 * MINUTE],
            id="future start, recurrence with schedule",
        ),
        pytest.param(
            {"recurrence": GRID, "startTime": text(NOW)},
            [NOW, NOW + 10 * MINUTE, NOW + 20 * MINUTE],
            id="start now, recurrence, no schedule",
        ),
    ],
)
def test_the_table_of_recurring_starts(stage: Stage, timing: dict[str, Any], expected: list[datetime]) -> None:
    assert ran(stage, timing, {}) == expected


def test_the_immediate_run_counts_and_is_not_repeated_if_it_is_on_the_schedule(stage: Stage) -> None:
    stage.clock.advance(5 * 60 - 1)

    at_once = ran(stage, {"recurrence": BY_THE_CLOCK, "count": 2}, AT_ONCE, 7_200)

    assert at_once == [NOON + 5 * MINUTE, NOON + 20 * MINUTE]


@pytest.mark.parametrize("more", [{"count": 100}, {"endTime": text(NOON + 50 * HOUR)}])
@pytest.mark.parametrize("recurrence", [GRID, {"frequency": "Hour", "interval": 2, "schedule": {"minutes": [7]}}])
def test_a_change_of_the_bounds_keeps_the_anchor(
    stage: Stage, recurrence: dict[str, Any], more: dict[str, Any]
) -> None:
    planned = stage.create({"recurrence": recurrence})
    stage.run(700)
    before = stage.stored(planned).next_run_at

    changed = stage.change(planned, timings=[{"recurrence": recurrence, **more}]).schedules[0]

    assert changed.next_run_at == before


def test_a_new_interval_begins_at_its_change(stage: Stage) -> None:
    planned = stage.create({"recurrence": GRID})
    stage.run(700)

    changed = stage.change(planned, timings=[{"recurrence": {**GRID, "interval": 20}}]).schedules[0]

    assert changed.next_run_at is not None
    assert changed.next_run_at - stage.clock.now() > timedelta(minutes=19)
