"""Daylight saving, golden: what other schedulers answer can be had by choosing rules, and open series lose nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from sweephand.schedules.explain.explain import dropped, preview
from sweephand.schedules.rule import between
from sweephand.schedules.timing import Timing, parse
from tests.unit.schedules.given import parse_acting
from tests.unit.schedules.oracle import walk, zone_info

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def local(name: str, fields: dict[str, object], begin: str, end: str) -> list[str]:
    """Returns the occurrences from begin to end (UTC), as day, local time and offset."""
    timing = parse({**fields, "timezone": name}, now=NOW)
    found = between(timing.rule, at(begin) - timedelta(seconds=1), at(end), 1_000)
    return [f"{instant.astimezone(zone_info(name)):%d %H:%M%z}" for instant in found]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


NEW_YORK_GAP = ("2026-03-08 05:00", "2026-03-09 03:59")  # the local 8 March
NEW_YORK_OVERLAP = ("2026-11-01 04:00", "2026-11-02 04:59")


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        ("next_valid", ["08 03:00-0400"]),  # croniter, cronsim, croner
        ("shift", ["08 03:30-0400"]),  # cron-parser, APScheduler, Celery
        ("skip", []),  # Quartz, EventBridge Scheduler
    ],
)
def test_new_york_runs_half_past_two_on_the_day_without_it(gap: str, expected: list[str]) -> None:
    assert local("America/New_York", {"cron": "30 2 * * *", "dstGap": gap}, *NEW_YORK_GAP) == expected


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("first", ["01 01:30-0400"]),  # cronsim, croner, cron-parser, Celery
        ("second", ["01 01:30-0500"]),  # Quartz
        ("both", ["01 01:30-0400", "01 01:30-0500"]),  # croniter, APScheduler
    ],
)
def test_new_york_runs_half_past_one_on_the_day_with_two_of_them(overlap: str, expected: list[str]) -> None:
    assert local("America/New_York", {"cron": "30 1 * * *", "dstOverlap": overlap}, *NEW_YORK_OVERLAP) == expected


def test_the_defaults_are_next_valid_and_first() -> None:
    assert local("America/New_York", {"cron": "30 2 * * *"}, *NEW_YORK_GAP) == ["08 03:00-0400"]
    assert local("America/New_York", {"cron": "30 1 * * *"}, *NEW_YORK_OVERLAP) == ["01 01:30-0400"]


OPEN = [
    ({"cron": "0 * * * *"}, 3600),
    ({"cron": "*/30 * * * *"}, 1800),
    ({"cron": "7 * * * *"}, 3600),
    ({"cron": "@hourly"}, 3600),
    ({"every": "1 hour", "align": "clock"}, 3600),
    ({"every": "15 minutes", "align": "clock"}, 900),
    ({"every": "PT10S"}, 10),
    ({"every": "7 hours", "align": "epoch"}, 25_200),
    ({"every": "1 day"}, 86_400),
]


@pytest.mark.parametrize("rules", [{}, {"dstGap": "next_valid", "dstOverlap": "first"}])
@pytest.mark.parametrize(("fields", "step_s"), OPEN)
@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("America/New_York", "2026-03-08 00:00"),
        ("America/New_York", "2026-11-01 00:00"),
        ("Europe/London", "2026-03-28 12:00"),
        ("Europe/London", "2026-10-24 12:00"),
        ("America/Santiago", "2026-04-04 12:00"),
        ("America/Santiago", "2026-09-05 12:00"),
        ("Africa/Cairo", "2026-04-23 12:00"),
        ("Africa/Cairo", "2026-10-29 12:00"),
        ("Asia/Kolkata", "2026-03-28 12:00"),
        ("Pacific/Apia", "2011-12-29 12:00"),
    ],
)
def test_a_series_that_fixes_no_hour_runs_through_every_change_in_equal_steps_of_real_time(
    name: str, begin: str, fields: dict[str, object], step_s: int, rules: dict[str, object]
) -> None:
    now = at(begin) - timedelta(days=3)
    timing = parse({**fields, **rules, "timezone": name}, now=now)
    found = between(timing.rule, at(begin), at(begin) + timedelta(days=2), 100_000)

    gaps = {(later - earlier).total_seconds() for earlier, later in pairwise(found)}

    assert gaps <= {step_s}
    assert len(found) in (2 * 86_400 // step_s, 2 * 86_400 // step_s + 1)


def test_a_change_of_half_an_hour_is_read_from_the_clock_by_an_hourly_series() -> None:
    gap = local("Australia/Lord_Howe", {"cron": "15 * * * *"}, "2026-10-03 13:00", "2026-10-03 17:00")
    overlap = local("Australia/Lord_Howe", {"cron": "45 * * * *"}, "2026-04-04 13:00", "2026-04-04 17:00")

    assert gap == ["04 00:15+1030", "04 01:15+1030", "04 03:15+1100"]
    assert overlap == ["05 00:45+1100", "05 01:45+1100", "05 01:45+1030", "05 02:45+1030"]


def test_half_hours_run_through_a_change_of_half_an_hour_without_a_break() -> None:
    timing = parse({"cron": "*/30 * * * *", "timezone": "Australia/Lord_Howe"}, now=NOW)
    for begin in ("2026-10-03 12:00", "2026-04-04 12:00"):
        found = between(timing.rule, at(begin), at(begin) + timedelta(hours=8), 100)
        assert [later - earlier for earlier, later in pairwise(found)] == [timedelta(minutes=30)] * 15


@pytest.mark.parametrize("fields", [{"cron": "0 */2 * * *"}, {"every": "2 hours", "align": "clock"}])
@pytest.mark.parametrize("rules", [{}, {"dstGap": "next_valid", "dstOverlap": "first"}])
def test_a_step_of_hours_has_each_of_its_wall_times_once(fields: dict[str, object], rules: dict[str, object]) -> None:
    """Other rules are refused: the two act on rules that fix the hour."""
    gap = local("America/New_York", {**fields, **rules}, "2026-03-08 05:00", "2026-03-08 10:00")
    overlap = local("Atlantic/Azores", {**fields, **rules}, "2026-10-24 22:00", "2026-10-25 04:00")

    assert gap == ["08 00:00-0500", "08 03:00-0400", "08 04:00-0400", "08 06:00-0400"]
    assert overlap == ["24 22:00+0000", "25 00:00+0000", "25 02:00-0100"]


def test_two_wall_times_on_one_instant_are_one_occurrence() -> None:
    assert local("America/New_York", {"cron": "0,30 2,3 * * *"}, *NEW_YORK_GAP) == ["08 03:00-0400", "08 03:30-0400"]
    shifted = {"cron": "0,30 2,3 * * *", "dstGap": "shift"}
    assert local("America/New_York", shifted, *NEW_YORK_GAP) == ["08 03:00-0400", "08 03:30-0400"]


def test_a_shifted_time_can_come_after_a_later_wall_time() -> None:
    shifted = {"cron": "45 2,3 * * *", "dstGap": "shift"}
    assert local("America/New_York", shifted, *NEW_YORK_GAP) == ["08 03:45-0400"]
    assert local("America/New_York", {"cron": "*/50 2,3 * * *", "dstGap": "shift"}, *NEW_YORK_GAP) == [
        "08 03:00-0400",
        "08 03:50-0400",
    ]


def test_midnight_that_does_not_exist_runs_at_one_in_santiago_and_cairo() -> None:
    assert local("America/Santiago", {"cron": "@daily"}, "2026-09-06 03:00", "2026-09-07 02:59") == ["06 01:00-0300"]
    assert local("Africa/Cairo", {"cron": "@daily"}, "2026-04-23 21:00", "2026-04-24 20:59") == ["24 01:00+0300"]
    clock = {"every": "1 day", "align": "clock"}
    assert local("Africa/Cairo", clock, "2026-04-23 21:00", "2026-04-25 21:00") == [
        "24 01:00+0300",
        "25 00:00+0300",
        "26 00:00+0300",
    ]


def test_the_hour_before_midnight_repeats_in_santiago_and_cairo() -> None:
    both = {"cron": "30 23 * * *", "dstOverlap": "both"}
    assert local("America/Santiago", both, "2026-04-05 02:00", "2026-04-05 04:00") == ["04 23:30-0300", "04 23:30-0400"]
    assert local("Africa/Cairo", both, "2026-10-29 20:00", "2026-10-29 22:00") == ["29 23:30+0300", "29 23:30+0200"]


def test_london_in_both_directions() -> None:
    assert local("Europe/London", {"cron": "30 1 * * *"}, "2026-03-29 00:00", "2026-03-29 23:00") == ["29 02:00+0100"]
    assert local("Europe/London", {"cron": "30 1 * * *"}, "2026-10-24 23:00", "2026-10-25 23:00") == ["25 01:30+0100"]


def test_kolkata_has_no_clock_change() -> None:
    assert local("Asia/Kolkata", {"cron": "30 2 * * *"}, "2026-03-27 21:00", "2026-03-29 20:59") == [
        "28 02:30+0530",
        "29 02:30+0530",
    ]


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        ("next_valid", ["29 09:00-1000", "31 00:00+1400", "31 09:00+1400"]),
        ("shift", ["29 09:00-1000", "31 09:00+1400"]),
        ("skip", ["29 09:00-1000", "31 09:00+1400"]),
    ],
)
def test_the_day_that_apia_skipped_has_no_occurrence(gap: str, expected: list[str]) -> None:
    daily = {"cron": "0 9 * * *", "dstGap": gap}
    assert local("Pacific/Apia", daily, "2011-12-29 11:00", "2011-12-31 09:00") == expected


def test_a_month_step_keeps_its_hour_through_summer_time() -> None:
    monthly = {"every": "P1M", "startTime": "2026-01-31T02:30:00", "timezone": "America/New_York"}
    timing = parse(monthly, now=NOW)
    found = between(timing.rule, NOW, at("2026-07-01 00:00"), 9)

    assert [f"{instant.astimezone(zone_info('America/New_York')):%m-%d %H:%M%z}" for instant in found] == [
        "01-31 02:30-0500",
        "02-28 02:30-0500",
        "03-31 02:30-0400",
        "04-30 02:30-0400",
        "05-31 02:30-0400",
        "06-30 02:30-0400",
    ]


def marks(timing: Timing, after: str, limit: int) -> list[tuple[str, str, str] | tuple[str]]:
    shown = preview(timing, at(after), limit)
    return [
        (f"{one.instant:%d %H:%M}", one.moved_by.rule, one.moved_by.local_time)
        if one.moved_by
        else (f"{one.instant:%d %H:%M}",)
        for one in shown
    ]


def new_york(**fields: object) -> Timing:
    return parse({**fields, "timezone": "America/New_York"}, now=NOW)


def test_a_preview_marks_occurrences_moved_by_a_gap() -> None:
    assert marks(new_york(cron="30 2 * * *"), "2026-03-07 00:00", 3) == [
        ("07 07:30",),
        ("08 07:00", "dstGap", "2026-03-08T02:30:00"),
        ("09 06:30",),
    ]
    assert marks(new_york(cron="30 2 * * *", dstGap="shift"), "2026-03-08 00:00", 1) == [
        ("08 07:30", "dstGap", "2026-03-08T02:30:00")
    ]


def test_an_instant_that_also_occurs_without_the_gap_is_not_marked() -> None:
    assert marks(new_york(cron="0 2,3 * * *"), "2026-03-08 00:00", 2) == [("08 07:00",), ("09 06:00",)]


def test_a_preview_marks_each_copy_of_a_repeated_wall_time() -> None:
    assert marks(new_york(cron="30 1 * * *", dstOverlap="both"), "2026-10-31 06:00", 3) == [
        ("01 05:30", "dstOverlap", "2026-11-01T01:30:00"),
        ("01 06:30", "dstOverlap", "2026-11-01T01:30:00"),
        ("02 06:30",),
    ]
    assert marks(new_york(cron="30 1 * * *", dstOverlap="second"), "2026-11-01 00:00", 1) == [
        ("01 06:30", "dstOverlap", "2026-11-01T01:30:00")
    ]


def test_an_open_hour_is_not_marked() -> None:
    assert marks(new_york(cron="30 * * * *"), "2026-11-01 05:00", 2) == [("01 05:30",), ("01 06:30",)]


def test_jitter_keeps_the_mark() -> None:
    timing = parse({"cron": "30 2 * * *", "timezone": "America/New_York", "jitterSeconds": 600}, now=NOW, salt="a")
    (shown,) = preview(timing, at("2026-03-08 00:00"), 1)

    assert timedelta(0) < shown.instant - at("2026-03-08 07:00") <= timedelta(minutes=10)
    assert shown.moved_by is not None
    assert shown.moved_by.local_time == "2026-03-08T02:30:00"


def test_occurrences_omitted_by_dst_gap_skip_can_be_listed() -> None:
    timing = new_york(cron="0,30 2 * * *", dstGap="skip", jitterSeconds=5)

    lost = dropped(timing, at("2026-01-01 00:00"), at("2028-01-01 00:00"), 3)

    assert [(f"{one.at:%Y-%m-%d %H:%M}", one.moved_by.local_time) for one in lost] == [
        ("2026-03-08 07:00", "2026-03-08T02:00:00"),
        ("2026-03-08 07:00", "2026-03-08T02:30:00"),
        ("2027-03-14 07:00", "2027-03-14T02:00:00"),
    ]
    for kept in (new_york(cron="0,30 2 * * *"), new_york(cron="30 * * * *"), new_york(every="PT10M")):
        assert dropped(kept, at("2026-01-01 00:00"), at("2028-01-01 00:00"), 3) == []


def test_a_repeated_yearly_time_is_found_from_both_sides() -> None:
    """The next wall time is a year away, so the search would like to pass over the second copy."""
    rule = new_york(cron="30 1 1 11 *", dstOverlap="both").rule
    first, second = at("2026-11-01 05:30"), at("2026-11-01 06:30")

    assert rule.next_after(first) == second
    assert rule.next_after(at("2026-11-01 06:00")) == second
    assert rule.last_until(second - timedelta(seconds=1)) == first
    assert rule.last_until(at("2026-11-01 06:00")) == first
    assert rule.last_until(at("2027-06-01 00:00")) == second
    assert rule.next_after(at("2026-01-01 00:00")) == first
    assert rule.next_after(at("2025-12-01 00:00")) == first


CHANGES = [
    ("America/New_York", "2026-03-08 07:00"),
    ("America/New_York", "2026-11-01 06:00"),
    ("Australia/Lord_Howe", "2026-10-03 15:30"),
    ("Australia/Lord_Howe", "2026-04-04 15:00"),
    ("Africa/Cairo", "2026-04-23 22:00"),
    ("Africa/Cairo", "2026-10-29 21:00"),
    ("Antarctica/Troll", "2026-03-29 01:00"),
    ("Pacific/Apia", "2011-12-30 10:00"),
]


@pytest.mark.parametrize(("gap", "overlap"), [("skip", "second"), ("next_valid", "first"), ("shift", "both")])
@pytest.mark.parametrize(("name", "change"), CHANGES)
@pytest.mark.parametrize(
    "text", ["15,35 1,2,23 * * *", "45 0,2 * * *", "0 */2 * * *", "20,50 * * * *", "30 1 1 4,11 *"]
)
def test_next_and_last_agree_with_the_walk_from_every_few_minutes_around_a_change(
    name: str, change: str, gap: str, overlap: str, text: str
) -> None:
    day = timedelta(days=1)
    rule = parse_acting({"cron": text, "timezone": name, "dstGap": gap, "dstOverlap": overlap}, NOW).rule
    walked = walk(text, name, gap, overlap, at(change) - 2 * day, at(change) + day)

    instant = at(change) - timedelta(hours=6)
    while instant < at(change) + timedelta(hours=6):
        later = [found for found in walked if found > instant]
        before = [found for found in walked if found <= instant]
        upcoming, latest = rule.next_after(instant), rule.last_until(instant)
        assert upcoming == later[0] if later else upcoming is None or upcoming > at(change) + day
        assert latest == before[-1] if before else latest is None or latest < at(change) - 2 * day
        instant += timedelta(minutes=7.5)


LATE = {"startTime": "2026-03-29T02:30:00"}


@pytest.mark.parametrize(
    "fields",
    [
        {"every": "P1M", **LATE},
        {"every": "R3/2026-03-29T02:30:00/P1M"},
        {"recurrence": {"frequency": "day"}, **LATE},
        {"recurrence": {"frequency": "week"}, **LATE},
        {"recurrence": {"frequency": "hour", "schedule": {"hours": [2]}}, **LATE},
        {"rrule": "FREQ=WEEKLY;COUNT=3", **LATE},
    ],
)
@pytest.mark.parametrize(("gap", "begun"), [("shift", "03:30"), ("next_valid", "03:00")])
def test_a_start_in_a_gap_still_sets_the_time_of_the_rule(fields: dict[str, object], gap: str, begun: str) -> None:
    timing = parse({**fields, "timezone": "Europe/Berlin", "dstGap": gap}, now=NOW)

    items = preview(timing, at("2026-03-01"), 3)

    assert [f"{item.instant.astimezone(zone_info('Europe/Berlin')):%H:%M}" for item in items] == [begun, *["02:30"] * 2]
    marks = [item.moved_by and (item.moved_by.local_time, item.moved_by.effect) for item in items]
    assert marks == [("2026-03-29T02:30:00", "moved"), None, None]


def test_a_start_in_a_gap_is_omitted_if_the_rule_says_so() -> None:
    timing = parse({"every": "P1M", **LATE, "timezone": "Europe/Berlin", "dstGap": "skip"}, now=NOW)

    assert timing.rule.next_after(NOW) == at("2026-04-29 00:30")
    assert [mark.moved_by.local_time for mark in dropped(timing, NOW, at("2026-05-01"), 9)] == ["2026-03-29T02:30:00"]


@pytest.mark.parametrize("fields", [{"every": "PT7M"}, {"rrule": "FREQ=MINUTELY;INTERVAL=7"}])
def test_a_grid_that_runs_through_clock_changes_begins_where_its_start_comes_to(fields: dict[str, object]) -> None:
    start = {"startTime": "2026-03-29T02:30:00", "dstGap": "next_valid"}

    assert local("Europe/Berlin", {**fields, **start}, "2026-03-28 00:00", "2026-03-29 01:10") == [
        "29 03:00+0200",
        "29 03:07+0200",
    ]
