"""Newer data for a zone between planning an occurrence and running it: each wall time runs once, by the new data."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sweephand.domain.event import EventType
from sweephand.domain.instants import from_s
from sweephand.domain.job import Pause
from sweephand.domain.run import State
from sweephand.domain.schedule import ScheduleState
from sweephand.schedules.rule import between
from sweephand.schedules.timing import load
from sweephand.schedules.zones.localtime import ALWAYS
from sweephand.server.flow.calendars import calendars
from sweephand.server.flow.sweep import newer_zones
from sweephand.server.store.index import next_run_index, suspended
from sweephand.server.store.index.newer_zones import Look
from tests.support.stage import Stage
from tests.support.zone_data import zone_data
from tests.unit.server.flow.calendars.test_calendars import draft
from tests.unit.server.flow.common import HOUR, MINUTE, NOON, SECOND, exact
from tests.unit.server.flow.jobs.test_seam import disabled

ZONE = "Africa/Casablanca"
EAST, UTC_S = 3_600, 0
DEPLOYED = NOON + 6 * HOUR
CHANGES = NOON + 8 * HOUR + 30 * MINUTE
"""The new data differ from here on."""
END = NOON + 60 * HOUR
DAILY = {"cron": "0 9 * * *", "timezone": ZONE}
BOTH_WAYS = pytest.mark.parametrize(("before", "after"), [(EAST, UTC_S), (UTC_S, EAST)])

TIMINGS: dict[str, Mapping[str, Any]] = {
    "at": {"at": "2027-03-03T09:00:00"},
    "time": {"time": "2027-03-03T09:00:00"},
    "cron": {"cron": "0 9 * * *"},
    "yearly cron": {"cron": "0 9 3 3 *"},
    "every two hours": {"cron": "0 */2 * * *"},
    "each hour of a window": {"cron": "0 8-17 * * *"},
    "three times a day": {"cron": "30 7,9,23 * * *"},
    "near midnight": {"cron": "15 0,23 * * *"},
    "rrule": {"rrule": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"},
    "recurrence": {"recurrence": {"frequency": "day", "interval": 1, "schedule": {"hours": [9], "minutes": [0]}}},
    "sapCron": {"sapCron": "* * * * 9 0 0"},
    "repeatAt": {"repeatAt": "9:00"},
    "EventBridge": {"eventBridge": "cron(0 9 * * ? *)"},
    "count": {"cron": "0 9 * * *", "count": 2},
    "end": {"cron": "0 9 * * *", "endTime": "2027-03-03T20:00:00"},
    "calendar": {"cron": "0 9 * * *", "calendars": [{"name": "holidays", "mode": "exclude", "roll": "next"}]},
}


def whole(offset: int) -> Any:
    return zone_data(ZONE, (ALWAYS, offset))


def newer(before: int, after: int) -> Any:
    return zone_data(ZONE, (ALWAYS, before), (int(CHANGES.timestamp()), after))


def going_on(stage: Stage, until: datetime) -> None:
    """Lets time go by, and skips the minutes in which nothing waits."""
    while stage.clock.now() < until:
        waiting = [from_s(at) for at in stage.waiting().values()]
        at = min([until, *(each - 3 * MINUTE for each in waiting if each > stage.clock.now())])
        if at > stage.clock.now():
            stage.pass_time((at - stage.clock.now()).total_seconds())
        stage.run(240, tick_in_s=0)


def walls(instants: list[datetime], offset: int) -> list[datetime]:
    return [each + timedelta(seconds=offset) for each in instants]


def make(stage: Stage, timing: Mapping[str, Any], **members: Any) -> Any:
    calendars.create(stage.world, draft("holidays", dates=["03-02"]), None)
    return stage.create({"timezone": ZONE, **timing}, **members)


def expected(packed: str, offset: int) -> list[datetime]:
    return walls(between(load(packed).rule, NOON, END + 2 * HOUR, 1_000), offset)


def called(stage: Stage, before: int, after: int) -> list[datetime]:
    """Returns the wall times that were called, by the data that were right then."""
    planned = stage.endpoint.planned
    return [each + timedelta(seconds=before if each < CHANGES else after) for each in planned]


@BOTH_WAYS
@pytest.mark.parametrize("name", TIMINGS)
def test_each_wall_time_runs_once_at_its_new_instant(stage: Stage, name: str, before: int, after: int) -> None:
    with whole(before):
        planned = make(stage, TIMINGS[name])
        wanted = expected(stage.stored(planned).packed, before)
        going_on(stage, DEPLOYED)

    with newer(before, after):
        stage.audit()
        going_on(stage, END)
        stage.audit()
        going_on(stage, END + HOUR)

        found = called(stage, before, after)
        assert found == [each for each in wanted if each <= found[-1]]
        assert found[-1] > NOON + 44 * HOUR
        assert {run.state for run in stage.runs(planned)} == {State.SUCCESS}
        late = [each for each in stage.endpoint.received if each.at > each.call.planned_at + 2 * MINUTE]
        assert not [(each.at, each.call.planned_at) for each in late]


@BOTH_WAYS
def test_a_delay_stays_within_its_limits(stage: Stage, before: int, after: int) -> None:
    with whole(before):
        make(stage, {**DAILY, "jitterSeconds": 7_200})
        going_on(stage, DEPLOYED)

    with newer(before, after):
        stage.audit()
        going_on(stage, END)

        found = called(stage, before, after)
        assert [each.day for each in found] == [2, 3]
        assert all(9 <= each.hour < 11 for each in found)


def test_a_move_is_noticed_at_the_latest_before_the_row_is_sent(stage: Stage) -> None:
    """Without an audit: the old instant comes first."""
    with whole(EAST):
        planned = make(stage, TIMINGS["at"])

    with newer(EAST, UTC_S):
        going_on(stage, END)

        assert stage.endpoint.planned == [datetime(2027, 3, 3, 9, tzinfo=UTC)]
        assert stage.stored(planned).state is ScheduleState.COMPLETED
        exact(stage, planned)


def test_what_was_sent_ahead_runs_and_does_not_run_again(stage: Stage) -> None:
    with whole(EAST):
        planned = make(stage, DAILY)
        stage.pass_time((NOON + 20 * HOUR - MINUTE - stage.clock.now()).total_seconds())
        stage.tick()
        assert stage.stored(planned).planned_total == 1

    with newer(EAST, UTC_S):
        stage.run(300)
        going_on(stage, END)
        stage.audit()
        stage.run(60)

        assert stage.endpoint.planned == [NOON + 20 * HOUR, NOON + 45 * HOUR]


def test_the_audit_sends_no_occurrence_again_that_ran_by_earlier_data(stage: Stage) -> None:
    """The data came after the change of the clock: what ran since ran at other instants than the rule has now."""
    with whole(EAST):
        planned = make(stage, DAILY)
        going_on(stage, NOON + 20 * HOUR + 15 * MINUTE)
        stage.audit()
        going_on(stage, NOON + 20 * HOUR + 30 * MINUTE)

    with newer(EAST, UTC_S):
        for _ in range(4):
            going_on(stage, stage.clock.now() + 3 * HOUR)
            assert stage.audit().lost == 0

        assert stage.endpoint.planned == [NOON + 20 * HOUR]
        assert stage.stored(planned).next_run_at == NOON + 45 * HOUR


@BOTH_WAYS
def test_missed_occurrences_are_caught_up_once_each(stage: Stage, before: int, after: int) -> None:
    with whole(before):
        planned = make(stage, DAILY, policies={"misfire": {"type": "all", "ratePerMinute": 1}})
        stage.pass_time(5 * 86_400)
        stage.tick()

    with newer(before, after):
        stage.run(900, tick_in_s=0)

        assert [each.day for each in sorted(called(stage, before, after))] == [2, 3, 4, 5, 6]
        assert stage.stored(planned).planned_total == 5


@BOTH_WAYS
@pytest.mark.parametrize("off", ["pause", "collection", "tenant"])
def test_a_schedule_that_was_off_meanwhile_goes_on_by_the_new_data(
    stage: Stage, off: str, before: int, after: int
) -> None:
    with whole(before):
        planned = make(stage, DAILY)
        if off == "pause":
            stage.set_state(planned, pause=Pause(stage.clock.now()))
        else:
            disabled(stage, off, on=False)
        stage.pass_time(18 * 3_600)
        stage.tick()

    with newer(before, after):
        stage.run(120, tick_in_s=0)
        if off == "pause":
            stage.set_state(planned, pause=None)
        else:
            disabled(stage, off, on=True)
        going_on(stage, END)

        found = called(stage, before, after)
        assert [(each.day, each.hour) for each in found] == [(2, 9), (3, 9)]


@BOTH_WAYS
@pytest.mark.parametrize("name", ["at", "cron", "yearly cron", "rrule", "sapCron", "recurrence"])
def test_data_that_come_after_the_change_of_the_clock_double_nothing(
    stage: Stage, name: str, before: int, after: int
) -> None:
    """Daily ones run on each day, whatever the clock was thought to be."""
    with whole(before):
        make(stage, TIMINGS[name])
        going_on(stage, NOON + 21 * HOUR + 30 * MINUTE)

    with newer(before, after):
        stage.audit()
        going_on(stage, END)
        stage.audit()
        stage.run(60)

        days = [each.day for each in stage.endpoint.planned]
        assert days == ([3] if len(days) == 1 else [2, 3])
        assert stage.endpoint.planned[-1] == datetime(2027, 3, 3, 9, tzinfo=UTC) - timedelta(seconds=after)


@BOTH_WAYS
def test_an_hourly_rhythm_stays_hourly(stage: Stage, before: int, after: int) -> None:
    with whole(before):
        make(stage, {"cron": "0 * * * *"})
        going_on(stage, NOON + 21 * HOUR + 30 * MINUTE)

    with newer(before, after):
        stage.audit()
        going_on(stage, END)
        stage.audit()
        stage.run(60)

        assert stage.endpoint.planned == [NOON + n * HOUR for n in range(1, 61)]


@BOTH_WAYS
def test_the_plan_after_a_pause_with_an_end_follows_the_new_data(stage: Stage, before: int, after: int) -> None:
    with whole(before):
        planned = make(stage, DAILY)
        stage.set_state(planned, pause=Pause(stage.clock.now(), until=NOON + 30 * HOUR))

    with newer(before, after):
        going_on(stage, END)

        assert [(each.day, each.hour) for each in called(stage, before, after)] == [(3, 9)]


@BOTH_WAYS
def test_a_change_plans_by_the_new_data(stage: Stage, before: int, after: int) -> None:
    with whole(before):
        planned = make(stage, DAILY)

    with newer(before, after):
        stage.change(planned, timings=[DAILY], policies={"misfire": {"type": "latest"}})
        going_on(stage, END)

        found = called(stage, before, after)
        assert [(each.day, each.hour) for each in found] == [(2, 9), (3, 9)]


@pytest.mark.parametrize("audited", [False, True])
def test_a_moved_occurrence_is_published_once_with_both_instants(stage: Stage, audited: bool) -> None:
    with whole(EAST):
        make(stage, TIMINGS["at"])

    with newer(EAST, UTC_S):
        if audited:
            stage.audit()
        going_on(stage, END)

        told = stage.bus.only(EventType.SCHEDULE_MOVED)
        assert (told["from"], told["to"]) == ("2027-03-03T08:00:00.000Z", "2027-03-03T09:00:00.000Z")


def test_a_row_whose_data_stayed_is_not_read(stage: Stage) -> None:
    with whole(EAST):
        make(stage, {"cron": "* * * * *"})
        stage.tick()
        stage.clock.advance(60)
        stage.taps.passed.clear()

        stage.tick()

        assert "dynamodb.GetItem" not in stage.taps.names()


# The first ticks under the new data, without any audit


@BOTH_WAYS
@pytest.mark.parametrize("name", TIMINGS)
def test_the_first_tick_finds_what_new_data_move_so_that_it_runs_on_its_second(
    stage: Stage, name: str, before: int, after: int
) -> None:
    """The new data arrive two hours before the earlier of the two instants."""
    with whole(before):
        make(stage, TIMINGS[name])
        going_on(stage, NOON + 42 * HOUR)

    with newer(before, after):
        stage.tick()
        going_on(stage, END)

        late = [each for each in stage.endpoint.received if each.at > each.call.planned_at + SECOND]
        assert stage.endpoint.received
        assert not [(each.at, each.call.planned_at) for each in late]
        moved = called(stage, before, after)
        assert len(moved) == len(set(moved))


def daily(stage: Stage, minute: int) -> Any:
    return stage.create({"cron": f"{minute} 9 * * *", "timezone": ZONE})


def test_a_look_that_a_tick_cannot_end_goes_on_in_the_next(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_run_index, "PAGE", 2)
    with whole(UTC_S):
        made = [daily(stage, minute) for minute in range(10)]

    with newer(UTC_S, EAST):
        world, shards, now, rounds = stage.world, range(int(stage.world.shards)), stage.clock.now(), 0
        look = newer_zones.begin("new", 1, now, {0: Look("old", 1, now)})
        while look.step is not None:
            newer_zones.go_on(world, 0, look, shards, deadline=-1.0)
            look, rounds = suspended.read(world.table).looks[0], rounds + 1

        assert 5 <= rounds <= 10
        assert [stage.stored(each).next_run_at for each in made] == [
            datetime(2027, 3, 2, 8, minute, tzinfo=UTC) for minute in range(10)
        ]


def test_newer_data_are_looked_at_once(stage: Stage) -> None:
    with whole(UTC_S):
        daily(stage, 0)
        stage.tick()

    with newer(UTC_S, EAST):
        calls = []
        for _ in range(3):
            stage.taps.passed.clear()
            stage.tick()
            calls.append(stage.taps.count("dynamodb.Query"))

    assert calls[0] > calls[1] == calls[2] == 1 + int(stage.world.shards)
