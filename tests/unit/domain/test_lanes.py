"""The instants of a schedule around now: few of each side, the others counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sweephand.domain.instants import epoch_s
from sweephand.domain.occurrences import lanes, upcoming
from sweephand.domain.schedule import Lane, Schedule, ScheduleState
from sweephand.schedules.timing import load, parse

CREATED = datetime(2027, 3, 1, tzinfo=UTC)
NOW = datetime(2027, 3, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def schedule(timing: dict[str, object], **members: object) -> Schedule:
    """Returns one that was created a day and a half ago, and is sent up to now."""
    packed = parse(timing, now=CREATED).packed
    made = Schedule(
        *("acme", "J", "S", "s", timing, packed, Lane.FAST, CREATED, CREATED),
        next_run_at=load(packed).rule.next_after(NOW),
    )
    return replace(made, **members)  # type: ignore[arg-type]


def both(each: Schedule) -> tuple[lanes.Some, lanes.Some]:
    timing = load(each.packed)
    return lanes.past(each, timing, NOW - DAY, NOW), lanes.planned(each, timing, NOW, NOW + DAY)


@pytest.mark.parametrize(
    ("timing", "a_day"),
    [
        ({"cron": "0 * * * *"}, 24),
        ({"cron": "0 3 * * *", "timezone": "Europe/Berlin"}, 1),
        ({"every": "PT30M"}, 48),
        ({"every": "PT29M"}, 49),
        ({"cron": "*/5 * * * *"}, 288),
        ({"every": "PT10S"}, 8_640),
        ({"every": "PT1H", "jitterSeconds": 600}, 24),
    ],
)
def test_shown_and_counted_instants_add_up_to_all(timing: dict[str, object], a_day: int) -> None:
    past, planned = both(schedule(timing))

    for some in (past, planned):
        assert abs(len(some.seconds) + some.left_out - min(a_day, lanes.MOST + lanes.COUNTED_MOST)) <= 1
        assert len(some.seconds) <= lanes.MOST
        assert some.seconds == sorted(set(some.seconds))
    assert all(epoch_s(NOW - DAY) < each <= epoch_s(NOW) for each in past.seconds)
    assert all(epoch_s(NOW) < each <= epoch_s(NOW + DAY) for each in planned.seconds)


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"state": ScheduleState.PAUSED, "next_run_at": None},
        {"held_from": NOW},
        {"still_due": (NOW + timedelta(seconds=90),)},
        {"first_at": NOW + timedelta(minutes=7)},
        {"newer_packed": parse({"cron": "30 * * * *"}, now=CREATED).packed},
        {"state": ScheduleState.ENDING, "last_planned_at": NOW + timedelta(hours=1)},
    ],
    ids=str,
)
@pytest.mark.parametrize("timing", [{"cron": "0 * * * *"}, {"cron": "0 * * * *", "count": 40}], ids=str)
def test_planned_marks_are_the_instants_that_the_api_announces(
    members: dict[str, object], timing: dict[str, object]
) -> None:
    each = schedule(timing, planned_total=36, **members)
    announced = upcoming.next_runs(each, load(each.packed), NOW, 999).instants

    _, planned = both(each)

    assert planned == lanes.Some([epoch_s(at) for at in announced if at <= NOW + DAY], 0)


@pytest.mark.parametrize(
    ("members", "last"),
    [
        ({}, NOW),
        ({"next_run_at": NOW - timedelta(hours=3)}, NOW - timedelta(hours=4)),
        ({"state": ScheduleState.COMPLETED, "last_planned_at": NOW - timedelta(hours=5)}, NOW - timedelta(hours=5)),
    ],
    ids=["up to now", "not what is due and unsent", "not after its end"],
)
def test_the_past_ends_with_the_sent_occurrences(members: dict[str, object], last: datetime) -> None:
    past, _ = both(schedule({"cron": "0 * * * *"}, **members))

    assert past.seconds[-1] == epoch_s(last)


def test_the_rule_alone_shows_neither_the_time_before_a_change_nor_actual_starts() -> None:
    changed = schedule({"cron": "0 * * * *"}, generation=2, ended_at={1: epoch_s(NOW) - 7_200})
    chained = schedule({"every": "PT1H", "align": "actual_start"})

    assert both(changed)[0].seconds == [epoch_s(NOW) - 3_600, epoch_s(NOW)]
    assert lanes.known_since(changed, load(changed.packed), NOW - DAY, NOW) == NOW - timedelta(hours=2)
    assert both(chained)[0] == lanes.NONE
    assert lanes.known_since(chained, load(chained.packed), NOW - DAY, NOW) == NOW
    assert both(schedule({"cron": "0 * * * *"}, state=ScheduleState.PAUSED, next_run_at=None))[0] == lanes.NONE


def test_several_schedules_are_one_lane() -> None:
    first, second = lanes.Some(list(range(0, 80, 2)), 3), lanes.Some(list(range(1, 80, 2)), 4)

    assert lanes.merged([first, second], latest=False) == lanes.Some(list(range(48)), 7 + 32)
    assert lanes.merged([first, second], latest=True) == lanes.Some(list(range(32, 80)), 7 + 32)
    assert lanes.merged([lanes.Some([1], 999), second], latest=False).left_out == 999
