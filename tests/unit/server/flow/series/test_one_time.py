"""One-time schedules in every notation: what lies in the past, what a change leaves alone, what no start binds."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.base.errors import InvalidRequest
from sweephand.domain.instants import text, up_to_second
from sweephand.domain.schedule import ScheduleState
from sweephand.testing.sources import START
from tests.support.stage import Stage
from tests.unit.server.flow.common import DAY, HOUR, MINUTE, NOON, SECOND, exact

CREATED = up_to_second(START)
PAST = NOON - HOUR
PAST_TIMINGS = {
    "at": {"at": text(PAST)},
    "time": {"time": text(PAST)},
    "time in a format": {"time": {"date": f"{PAST:%d.%m.%Y %H:%M}", "format": "DD.MM.YYYY HH:mm"}},
    "eventBridge": {"eventBridge": f"at({PAST:%Y-%m-%dT%H:%M:%S})"},
}
past = pytest.mark.parametrize("timing", PAST_TIMINGS.values(), ids=PAST_TIMINGS)


@past
def test_a_past_instant_is_refused_by_its_field(stage: Stage, timing: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="more than 60 seconds in the past") as refused:
        stage.create(timing)

    assert refused.value.field == f"schedules[0].{next(iter(timing))}"


@past
def test_a_past_instant_runs_now_and_only_once_if_the_policy_says_so(stage: Stage, timing: dict[str, Any]) -> None:
    planned = stage.create(timing, policies={"onPastStart": "run_now"})
    stage.run(7)
    stage.change(planned, end_at=NOON + 50 * HOUR, policies={"onPastStart": "run_now"})
    stage.run(1_200)

    assert len(stage.endpoint.received) == 1
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert stage.stored(planned).timing == timing
    exact(stage, planned)


@pytest.mark.parametrize(
    ("timing", "planned_at"),
    [
        ({"time": "in 10 minutes"}, CREATED + 10 * MINUTE),
        ({"time": "in 1 day"}, CREATED + DAY),
        ({"time": "in 10 minutes", "jitterSeconds": 3_600}, None),
        ({"at": text(NOON + 10 * MINUTE), "jitterSeconds": 3_600}, None),
    ],
)
def test_a_change_of_other_members_keeps_the_instant(stage: Stage, timing: dict[str, Any], planned_at: object) -> None:
    planned = stage.create(timing)
    first = planned.schedules[0].next_run_at
    stage.run(30)

    for hours in (50, 60):
        changed = stage.change(planned, end_at=NOON + hours * HOUR).schedules[0]
        assert changed.next_run_at == first

    assert planned_at in (None, first)


def test_changed_words_are_read_again(stage: Stage) -> None:
    planned = stage.create({"time": "in 10 minutes"})
    stage.run(30)

    changed = stage.change(planned, timings=[{"time": "in 20 minutes"}]).schedules[0]

    assert changed.next_run_at is not None
    assert NOON + 20 * MINUTE + 30 * SECOND <= changed.next_run_at <= NOON + 20 * MINUTE + 40 * SECOND


def test_now_runs_now(stage: Stage) -> None:
    planned = stage.create({"time": "now"})

    stage.run(10)

    assert len(stage.endpoint.received) == 1
    assert stage.stored(planned).state is ScheduleState.COMPLETED


def test_the_start_time_of_a_job_does_not_delay_a_one_time_instant(stage: Stage) -> None:
    planned = stage.create({"time": "in 2 minutes"}, start_at=NOON + DAY)

    stage.run(30)
    stage.change(planned, start_at=NOON + 2 * DAY)
    stage.run(300)

    assert stage.endpoint.planned == [CREATED + 2 * MINUTE]


def test_seconds_of_a_sap_cron_run_on_their_second(stage: Stage) -> None:
    end = text(NOON + 2 * MINUTE)
    planned = stage.create({"sapCron": "* * * * * * 10,50", "endTime": end})

    stage.run(1_500)

    assert stage.endpoint.planned == [NOON + n * SECOND for n in (10, 50, 70, 110)]
    exact(stage, planned)
