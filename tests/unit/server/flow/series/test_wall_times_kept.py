"""Lives of schedules whose limits, anchors and dates are wall times, through a deployment with newer zone data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from sweephand.domain.event import EventType
from sweephand.domain.run import State
from sweephand.domain.schedule import ScheduleState
from sweephand.schedules.rule import between
from sweephand.schedules.timing import parse
from tests.support.stage import Stage
from tests.support.zone_data import zone_data
from tests.unit.schedules.test_newer_data import CALLED, DATA, RULES, members
from tests.unit.server.flow.common import HOUR, MINUTE, NOON, exact
from tests.unit.server.flow.series.test_moving import BOTH_WAYS, DEPLOYED, EAST, UTC_S, ZONE, going_on, newer, whole

OVER = NOON + 140 * HOUR
LASTS: dict[str, dict[str, Any]] = {
    name: {"endTime": "2027-03-05T20:00:00"}
    for name in CALLED
    if name != "months, creation" and name.endswith(("start", "creation", "DTSTART", "actual start"))
}


@pytest.mark.parametrize("change", DATA)
@pytest.mark.parametrize("name", [name for name in CALLED if "actual start" not in name])
def test_what_is_not_yet_past_runs_as_the_new_data_alone_give_it(stage: Stage, name: str, change: str) -> None:
    old, new = DATA[change]
    timing = {**members(name, RULES), **LASTS.get(name, {})}
    with zone_data(ZONE, *old):
        planned = stage.create(timing)
        created = stage.stored(planned).created_at
        going_on(stage, DEPLOYED)

    with zone_data(ZONE, *new):
        alone = parse(timing, now=created)
        stage.audit()
        going_on(stage, OVER)
        stage.audit()
        going_on(stage, OVER + HOUR)

        assert sorted(stage.endpoint.planned) == between(alone.rule, created, OVER + HOUR, 10_000)
        assert {run.state for run in stage.runs(planned)} <= {State.SUCCESS}
        assert not [each for each in stage.endpoint.received if each.at < each.call.planned_at]
        exact(stage, planned)


@pytest.mark.parametrize("change", ["earlier", "later", "gap disappears"])
@pytest.mark.parametrize("name", CALLED)
def test_data_that_come_while_the_series_runs_double_and_lose_nothing(stage: Stage, name: str, change: str) -> None:
    """An instant that the data let in after it has passed is found by the audit, which calls it late or records it."""
    old, new = DATA[change]
    timing = {**members(name, RULES), **LASTS.get(name, {})}
    with zone_data(ZONE, *old):
        planned = stage.create(timing)
        going_on(stage, NOON + 46 * HOUR + MINUTE)

    with zone_data(ZONE, *new):
        let_in = stage.audit().lost
        going_on(stage, OVER)
        assert stage.audit().lost == 0
        going_on(stage, OVER + HOUR)

        called = stage.endpoint.planned
        assert len(called) == len(set(called))
        states = [run.state for run in stage.runs(planned)]
        assert let_in <= 1
        assert states.count(State.SUCCESS) == len(called)
        assert states.count(State.EXPIRED) == len(states) - len(called) <= let_in
        gaps = [after - before for before, after in pairwise(sorted(called))]
        alone = parse(timing, now=stage.stored(planned).created_at)
        assert all(gap >= timedelta(seconds=alone.interval_s or 0) * 0.75 for gap in gaps)
        exact(stage, planned)


@BOTH_WAYS
def test_a_chain_of_actual_starts_begins_at_its_wall_time_and_then_follows_no_clock(
    stage: Stage, before: int, after: int
) -> None:
    with whole(before):
        stage.create({"every": "PT7H", "align": "actual_start", "timezone": ZONE, "startTime": "2027-03-02T09:00:00"})
        going_on(stage, DEPLOYED)

    with newer(before, after):
        stage.audit()
        going_on(stage, OVER)

    first = datetime(2027, 3, 2, 9, tzinfo=UTC) - timedelta(seconds=after)
    called = stage.endpoint.planned
    assert called[0] == first
    assert all(later - earlier == 7 * HOUR for earlier, later in pairwise(called))


def test_a_chain_that_has_begun_is_not_moved(stage: Stage) -> None:
    with whole(UTC_S):
        stage.create({"every": "PT7H", "align": "actual_start", "timezone": ZONE})
        going_on(stage, NOON + 8 * HOUR)

    with newer(UTC_S, EAST):
        stage.audit()
        going_on(stage, OVER)

    assert all(later - earlier == 7 * HOUR for earlier, later in pairwise(stage.endpoint.planned))


@pytest.mark.parametrize("notation", ["at", "time"])
def test_a_change_of_the_window_keeps_the_wall_time_of_a_single_instant(stage: Stage, notation: str) -> None:
    once = {notation: "2027-03-03T09:00:00", "timezone": ZONE}
    with whole(EAST):
        planned = stage.create(once)
        stage.change(planned, timings=[{**once, "endTime": "2027-03-04T09:00:00"}])

    with newer(EAST, UTC_S):
        going_on(stage, OVER)

        assert stage.endpoint.planned == [datetime(2027, 3, 3, 9, tzinfo=UTC)]
        assert stage.stored(planned).state is ScheduleState.COMPLETED


def test_a_date_of_another_zone_moves_with_that_zone(stage: Stage) -> None:
    with whole(EAST):
        stage.create({"rrule": f"DTSTART:20270301T130000Z\nRDATE;TZID={ZONE}:20270302T090000,20270303T090000"})

    with newer(EAST, UTC_S):
        going_on(stage, OVER)

        assert stage.endpoint.planned[1:] == [datetime(2027, 3, day, 9, tzinfo=UTC) for day in (2, 3)]


def test_a_time_in_a_gap_that_never_came_runs_at_its_wall_time(stage: Stage) -> None:
    """The old instant stood for 09:00, although the clock read 09:30."""
    old, new = DATA["gap disappears"]
    with zone_data(ZONE, *old):
        stage.create({"cron": "0 9 * * *", "timezone": ZONE})
        going_on(stage, DEPLOYED)

    with zone_data(ZONE, *new):
        stage.audit()
        going_on(stage, OVER)

        assert stage.endpoint.planned[0] == datetime(2027, 3, 2, 9, tzinfo=UTC)
        moved = stage.bus.only(EventType.SCHEDULE_MOVED)
        assert (moved["from"], moved["to"]) == ("2027-03-02T08:30:00.000Z", "2027-03-02T09:00:00.000Z")
