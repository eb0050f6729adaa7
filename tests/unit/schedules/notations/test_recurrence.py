"""Recurrences against an oracle that looks at every minute, against dateutil, and example by example."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any

import pytest
from dateutil import rrule
from hypothesis import assume, given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.explain.explain_instant import explain
from sweephand.schedules.explain.preview_warnings import cautions
from sweephand.schedules.rule import between
from sweephand.schedules.timing import Timing, counted_from, parse
from sweephand.schedules.zones.localtime import LAST_SECOND, to_instant
from tests.support.azure_schedules import EXAMPLES, nth
from tests.support.examples import examples
from tests.unit.schedules import given as some
from tests.unit.schedules.oracle import walk_clock, zone_info
from tests.unit.schedules.recurrence_oracle import WEEKDAYS, admits, clock_rules

END = to_instant(LAST_SECOND)
DAY = timedelta(days=1)
Given = dict[str, Any]
WEEK: Given = {"frequency": "week"}


def timing(recurrence: object, now: datetime = some.NOW, **fields: object) -> Timing:
    return parse({"recurrence": recurrence, **fields}, now=now)


def instants(recurrence: Given, start: str, first: int, now: str | None = None, **fields: object) -> list[str]:
    """Returns the first so many, as year-month-day hour:minute:second; without the second if it is 0."""
    at = datetime.fromisoformat(now or start)
    found = timing(recurrence, at, startTime=start, **fields).rule.seconds(int(at.timestamp()) - 1, LAST_SECOND)
    return [f"{to_instant(second):%Y-%m-%d %H:%M:%S}".removesuffix(":00") for second in islice(found, first)]


@examples(150)
@given(given=some.recurrences(), name=some.zones, gap=some.gaps, overlap=some.overlaps, data=st.data())
def test_a_walk_over_every_minute_finds_the_same_instants(
    given: Given, name: str, gap: str, overlap: str, data: st.DataObject
) -> None:
    assume("schedule" in given or given["frequency"].lower() not in ("minute", "hour"))
    info = zone_info(name)
    begin = to_instant(data.draw(some.seconds(name, 10**8, LAST_SECOND - 10**6)) // 60 * 60)
    start = begin - data.draw(st.sampled_from([1, 7, 31, 365, 366 * 30])) * DAY * data.draw(st.integers(0, 3))
    assume(start.year >= 1970)
    month_overflow = data.draw(st.none() | some.overflows)
    fields = {"timezone": name, "dstGap": gap, "dstOverlap": overlap, "monthOverflow": month_overflow}
    anchor = start.astimezone(info).replace(tzinfo=None)

    fields["startTime"] = some.text_of(int(start.timestamp()))
    if data.draw(st.booleans()):
        begin = next(iter(firing(given, begin, END - 3 * DAY, 1, **fields)), begin) - DAY  # where there is something

    assert firing(given, begin, begin + 2 * DAY, **fields) == walk_clock(
        lambda wall: admits(given, anchor, wall, month_overflow),
        name,
        *clock_rules(given, gap, overlap),
        max(begin, start),
        begin + 2 * DAY,
    )


def firing(recurrence: Given, begin: datetime, end: datetime, most: int = 100_000, **fields: object) -> list[datetime]:
    """Returns the first occurrences from begin to end, or none for a rule that is refused because it never fires."""
    try:
        rule = some.parse_acting({"recurrence": recurrence, **fields}).rule
    except InvalidRequest as refused:
        if refused.code != "NEVER_FIRES":
            raise
        return []
    return between(rule, begin - timedelta(seconds=1), end, most)


_UNITS = {"minute": 5, "hour": 4, "day": 3, "week": 2, "month": 1}
"""The units as dateutil numbers them; years are its months."""


@examples(200)
@given(given=some.recurrences(), start=st.integers(10**8, 4 * 10**9), ahead=st.integers(0, 10**7))
def test_dateutil_finds_the_same_instants_in_utc(given: Given, start: int, ahead: int) -> None:
    """Its rules are richer: each of these is one of them, but for a day of the anchor that a month lacks."""
    unit, schedule = given["frequency"].lower(), given.get("schedule", {})
    begin = to_instant(start // 60 * 60 if schedule else start)
    by_day = [
        getattr(rrule, name[:2].upper())(which) if which else getattr(rrule, name[:2].upper())
        for name, which in [(name, None) for name in schedule.get("weekDays", [])]
        + [(each["day"], each.get("occurrence")) for each in schedule.get("monthlyOccurrences", [])]
    ]
    which = {each.get("occurrence") is None for each in schedule.get("monthlyOccurrences", [])}
    assume(len(which) < 2)  # of "every Monday and the second Friday" dateutil finds only what is both
    assume(unit not in ("month", "year") or by_day or schedule.get("monthDays") or begin.day <= 28)
    hours = schedule.get("hours") or (range(24) if schedule.get("minutes") and unit not in ("minute", "hour") else None)
    until = begin + timedelta(seconds=ahead)
    try:
        theirs = rrule.rrule(
            _UNITS.get(unit, 0),
            begin.replace(tzinfo=None),
            given["interval"],
            byweekday=by_day or None,
            bymonthday=schedule.get("monthDays") or None,
            byhour=hours,
            byminute=schedule.get("minutes") or None,
            until=until.replace(tzinfo=None),
        )
        expected = [at.replace(tzinfo=UTC) for at in theirs]
    except ValueError:
        expected = []  # "generates an empty set"

    found = firing(given, begin, until, len(expected) + 1, startTime=some.text_of(int(begin.timestamp())))
    assert found == expected


@pytest.mark.parametrize(
    ("recurrence", "start", "now", "expected"),
    [
        pytest.param(
            {"frequency": "Week", "interval": 2, "schedule": {"weekDays": ["tuesday", "saturday", "sunday"]}},
            "2024-05-16T12:00:00Z",
            None,
            ["05-18 12:00", "05-19 12:00", "05-28 12:00", "06-01 12:00", "06-02 12:00", "06-11 12:00"],
            id="weeks begin on Monday",
        ),
        pytest.param(
            {"frequency": "Month", "schedule": {"monthDays": [30, -1]}},
            "2024-01-15T06:00:00Z",
            None,
            ["01-30 06:00", "01-31 06:00", "02-29 06:00", "03-30 06:00", "03-31 06:00"],
            id="two rules that meet run once",
        ),
        pytest.param(
            {"frequency": "Month", "interval": 3},
            "2023-08-31T08:00:00Z",
            "2024-01-10T00:00:00Z",
            ["02-29 08:00", "05-31 08:00", "08-31 08:00", "11-30 08:00"],
            id="the day of the anchor is clamped and does not drift",
        ),
        pytest.param(
            {"frequency": "Hour", "interval": 3, "schedule": {"minutes": [5, 50]}},
            "2024-05-16T10:40:00Z",
            None,
            ["05-16 10:50", "05-16 13:05", "05-16 13:50", "05-16 16:05"],
            id="minutes expand the hours of the grid",
        ),
        pytest.param(
            {"frequency": "Hour", "interval": 3, "schedule": {"hours": [13, 14, 19]}},
            "2024-05-16T10:40:00Z",
            None,
            ["05-16 13:40", "05-16 19:40", "05-17 13:40"],
            id="hours filter the hours of the grid",
        ),
        pytest.param(
            {"frequency": "Minute", "interval": 20, "schedule": {"hours": [6]}},
            "2024-05-16T05:50:00Z",
            None,
            ["05-16 06:10", "05-16 06:30", "05-16 06:50", "05-17 06:10"],
            id="hours filter the minutes of the grid",
        ),
        pytest.param(
            {"frequency": "Week", "schedule": {"minutes": [30]}},
            "2024-05-16T22:10:00Z",
            None,
            ["05-16 22:30", "05-16 23:30", "05-23 00:30", "05-23 01:30"],
            id="minutes without hours are those of every hour of the day",
        ),
        pytest.param(
            {"frequency": "Day", "schedule": {"hours": [22]}},
            "2024-05-16T22:30:00-05:00",
            None,
            ["05-17 22:30", "05-18 22:30"],
            id="hours are those of the zone, the minute is the start's",
        ),
        pytest.param(
            {
                "frequency": "Month",
                "interval": 2,
                "schedule": {
                    "monthlyOccurrences": [{"day": "monday", "occurrence": 5}, {"day": "monday", "occurrence": -1}]
                },
            },
            "2024-01-01T07:00:00Z",
            None,
            ["01-29 07:00", "03-25 07:00", "05-27 07:00", "07-29 07:00"],
            id="the fifth or the last, one run each",
        ),
        pytest.param(
            {"frequency": "Day", "schedule": {"hours": [8, 20]}},
            "2024-05-16T08:15:20Z",
            None,
            ["05-16 20:15", "05-17 08:15"],
            id="whole minutes, none before the start",
        ),
        pytest.param(
            {"frequency": "Month"},
            "2023-11-30T00:00:00Z",
            None,
            ["11-30 00:00", "12-30 00:00", "01-30 00:00", "02-29 00:00", "03-30 00:00"],
            id="a month from the 30th",
        ),
    ],
)
def test_an_example_of_the_contract(recurrence: Given, start: str, now: str | None, expected: list[str]) -> None:
    found = instants(recurrence, start, len(expected), now or "1999-01-01T00:00:00+00:00")

    assert [each[5:] for each in found] == expected


@pytest.mark.parametrize(("frequency", "schedule", "expected"), EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_of_the_requirements_from_wednesday_4_march_at_0825(
    frequency: str, schedule: Given, expected: list[str]
) -> None:
    found = instants({"frequency": frequency, "schedule": schedule}, "2026-03-04T08:25:00Z", len(expected))

    assert [each[5:] for each in found] == expected


def test_an_hourly_grid_is_the_same_as_all_hours_of_a_day() -> None:
    hours = {"frequency": "day", "schedule": {"hours": list(range(24))}}
    start = "2026-03-04T12:25:00Z"

    assert instants(hours, start, 60) == instants({"frequency": "hour"}, start, 60)
    on_the_hour = {"frequency": "day", "schedule": {"minutes": [0]}}
    assert instants(on_the_hour, start, 60) == instants({"frequency": "hour"}, "2026-03-04T13:00:00Z", 60)


def test_the_basic_schedule_of_the_requirements() -> None:
    """Monday, Wednesday and Friday at 10 and 22, from 4 August 2012 at 00:00, ten times."""
    three_days = {**WEEK, "interval": 1, "schedule": {"weekDays": ["Monday", "Wednesday", "Friday"], "hours": [10, 22]}}

    fields = {"count": 10, "endTime": "2012-11-04T00:00:00Z"}
    whole = timing(three_days, startTime="2012-08-04T00:00:00Z", **fields)

    assert whole.count == 10
    assert instants(three_days, "2012-08-04T00:00:00Z", 3, **fields) == [
        "2012-08-06 10:00",
        "2012-08-06 22:00",
        "2012-08-08 10:00",
    ]
    assert whole.rule.last_until(END) == datetime(2012, 11, 2, 22, tzinfo=UTC)


def test_a_daily_job_with_count_seven_ends_on_sunday_if_it_starts_on_monday() -> None:
    assert instants({"frequency": "Day"}, "2026-03-02T09:00:00Z", 7)[-1] == "2026-03-08 09:00"


@pytest.mark.parametrize("start", ["2015-04-07T14:00:00Z", "2015-04-05T14:00:00Z", "2015-04-01T14:00:00Z"])
def test_a_recurrence_every_two_days_keeps_the_grid_of_its_past_start(start: str) -> None:
    found = instants({"frequency": "Day", "interval": 2}, start, 4, "2015-04-08T13:00:00+00:00")

    assert found == ["2015-04-09 14:00", "2015-04-11 14:00", "2015-04-13 14:00", "2015-04-15 14:00"]


@pytest.mark.parametrize(
    ("recurrence", "expected"),
    [
        ({"frequency": "minute", "interval": 1000}, ["03-04 08:25:07", "03-05 01:05:07"]),
        ({"frequency": "hour", "interval": 1000}, ["03-04 08:25:07", "04-15 00:25:07"]),
        ({"frequency": "day", "interval": 548}, ["2026-03-04 08:25:07", "2027-09-03 08:25:07"]),
        ({"frequency": "week", "interval": 78}, ["2026-03-04 08:25:07", "2027-09-01 08:25:07"]),
        ({"frequency": "month", "interval": 18}, ["2026-03-04 08:25:07", "2027-09-04 08:25:07"]),
        ({"frequency": "year"}, ["2026-03-04 08:25:07", "2027-03-04 08:25:07"]),
    ],
)
def test_the_longest_interval_of_each_frequency_keeps_the_seconds(recurrence: Given, expected: list[str]) -> None:
    found = instants(recurrence, "2026-03-04T08:25:07Z", 2)

    assert [each[-len(wanted) :] for each, wanted in zip(found, expected, strict=True)] == expected


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ({"frequency": "day"}, ["2026-01-31", "2026-02-01", "2026-02-02"]),
        ({"frequency": "week"}, ["2026-01-31", "2026-02-07", "2026-02-14"]),
        ({"frequency": "month"}, ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"]),
        ({"frequency": "year"}, ["2026-01-31", "2027-01-31", "2028-01-31"]),
    ],
    ids=["Daily", "Weekly", "Monthly", "Yearly"],
)
def test_a_job_interval_of_root(interval: Given, expected: list[str]) -> None:
    assert [each[:10] for each in instants(interval, "2026-01-31T09:00:00Z", len(expected))] == expected


def test_a_daily_safety_net_of_root_is_bound_by_its_start_and_end() -> None:
    whole = timing({"frequency": "day"}, startTime="2026-03-10T04:00:00Z", endTime="2026-03-12T04:00:00Z")

    assert [at.day for at in between(whole.rule, some.NOW, END, 9)] == [10, 11, 12]


def test_a_one_time_job_of_root_is_an_instant() -> None:
    raid = parse({"at": "2026-04-01T19:30:00Z"}, now=some.NOW)

    assert (raid.recurring, between(raid.rule, some.NOW, END, 2)) == (False, [datetime(2026, 4, 1, 19, 30, tzinfo=UTC)])


def test_a_year_from_29_february_is_clamped_and_comes_back() -> None:
    found = instants({"frequency": "year"}, "2024-02-29T06:00:00Z", 5)

    assert [each[:10] for each in found] == ["2024-02-29", "2025-02-28", "2026-02-28", "2027-02-28", "2028-02-29"]
    twelve = {"frequency": "month", "interval": 12}
    assert instants(twelve, "2024-02-29T06:00:00Z", 5) == found


@pytest.mark.parametrize(
    ("schedule", "overflow", "expected"),
    [
        ({}, None, ["01-31", "02-28", "03-31", "04-30"]),
        ({}, "skip", ["01-31", "03-31", "05-31"]),
        ({}, "next", ["01-31", "03-01", "03-31", "05-01"]),
        ({"hours": [9]}, None, ["01-31", "02-28", "03-31", "04-30"]),
        ({"hours": [9]}, "next", ["01-31", "03-01", "03-31", "05-01"]),
        ({"monthDays": [31]}, None, ["01-31", "03-31", "05-31"]),
        ({"monthDays": [31]}, "clamp", ["01-31", "02-28", "03-31", "04-30"]),
        ({"monthDays": [1, 31]}, "next", ["01-31", "02-01", "03-01", "03-31", "04-01", "05-01"]),
        ({"monthDays": [-31]}, "clamp", ["03-01", "05-01"]),
    ],
)
def test_a_day_that_the_month_lacks(schedule: Given, overflow: str | None, expected: list[str]) -> None:
    fields = {} if overflow is None else {"monthOverflow": overflow}
    found = instants({"frequency": "month", "schedule": schedule}, "2026-01-31T09:00:00Z", len(expected), **fields)

    assert [each[5:10] for each in found] == expected


def test_a_day_follows_the_clock_and_an_hour_is_elapsed_time() -> None:
    """Across the night of 29 March, whose 02:30 does not exist in Berlin."""
    berlin = {"timezone": "Europe/Berlin"}
    at_half_past_two = "2026-03-28T02:30:00+01:00"

    days = instants({"frequency": "day"}, at_half_past_two, 3, **berlin)
    hours = instants({"frequency": "hour", "interval": 24}, at_half_past_two, 3, **berlin)

    assert days == ["2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"]
    assert hours == ["2026-03-28 01:30", "2026-03-29 01:30", "2026-03-30 01:30"]
    skipped = instants({"frequency": "day"}, at_half_past_two, 2, **berlin, dstGap="skip")
    assert skipped == ["2026-03-28 01:30", "2026-03-30 00:30"]


@pytest.mark.parametrize("recurrence", [{"frequency": "hour", "schedule": {"minutes": [0, 30]}},
                                        {"frequency": "minute", "interval": 30, "schedule": {"minutes": [0, 30]}},
                                        {"frequency": "day", "schedule": {"minutes": [0, 30]}}])  # fmt: skip
@pytest.mark.parametrize("night", ["2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z"])
def test_every_half_hour_runs_through_a_clock_change(recurrence: Given, night: str) -> None:
    rules = {"timezone": "Europe/Berlin"}
    begin = datetime.fromisoformat(night)

    found = instants(recurrence, night, 48, **rules)

    assert found == [f"{begin + n * timedelta(minutes=30):%Y-%m-%d %H:%M}" for n in range(48)]


def test_a_grid_of_three_hours_has_each_time_once_on_the_nights_of_clock_changes() -> None:
    third = {"frequency": "hour", "interval": 3, "schedule": {"minutes": [0]}}
    berlin = zone_info("Europe/Berlin")

    for start, day in (("2026-03-28T02:00:00+01:00", 29), ("2026-10-24T02:00:00+02:00", 25)):
        whole = timing(third, startTime=start, timezone="Europe/Berlin")
        local = [at.astimezone(berlin) for at in between(whole.rule, some.NOW, END, 20)]
        assert [at.hour for at in local if at.day == day] == [3 if day == 29 else 2, 5, 8, 11, 14, 17, 20, 23]


@pytest.mark.parametrize(
    ("recurrence", "first"),
    [
        ({"frequency": "day"}, "2026-03-08 12:00:01"),
        ({"frequency": "minute", "interval": 90}, "2026-03-07 13:30:01"),
        ({"frequency": "month"}, "2026-04-07 12:00:01"),
        ({"frequency": "day", "schedule": {"hours": [9]}}, "2026-03-08 09:00:00"),
        ({"frequency": "week", "schedule": {"weekDays": ["monday"]}}, "2026-03-09 12:00:00"),
        ({"frequency": "hour", "schedule": {"minutes": [10]}}, "2026-03-07 12:10:00"),
    ],
)
def test_the_moment_of_creation_is_the_anchor_without_a_start_time(recurrence: Given, first: str) -> None:
    now = some.NOW + timedelta(milliseconds=500)

    made = timing(recurrence, now)

    (upcoming,) = between(made.rule, to_instant(0), END, 1)
    assert f"{upcoming:%Y-%m-%d %H:%M:%S}" == first
    assert counted_from(made.packed) == some.NOW + timedelta(seconds=1)
    again = timing(recurrence, some.NOW + timedelta(seconds=1))
    assert again.packed == made.packed
    assert counted_from(timing(recurrence, startTime="2026-03-07T12:00:00Z").packed) is None


@pytest.mark.parametrize(
    ("recurrence", "gap_s"),
    [
        ({"frequency": "minute", "interval": 7}, 420),
        ({"frequency": "day"}, 86_400),
        ({"frequency": "day", "schedule": {"minutes": [0, 30]}}, 1_800),
        ({"frequency": "day", "interval": 2, "schedule": {"hours": [0, 23]}}, 23 * 3_600),
        ({"frequency": "day", "schedule": {"hours": [0, 23]}}, 3_600),
        ({"frequency": "week", "schedule": {"weekDays": ["monday"]}}, 7 * 86_400),
        ({"frequency": "week", "schedule": {"weekDays": ["monday", "sunday"]}}, 86_400),
        ({"frequency": "week", "interval": 2, "schedule": {"weekDays": ["monday", "sunday"]}}, 6 * 86_400),
        ({"frequency": "month"}, 28 * 86_400),
        ({"frequency": "month", "interval": 2}, 59 * 86_400),
        ({"frequency": "month", "schedule": {"monthDays": [30, -1]}}, 86_400),
        ({"frequency": "month", "schedule": {"monthDays": [1, 15]}}, 14 * 86_400),
        ({"frequency": "month", "schedule": {"monthlyOccurrences": [{"day": "friday", "occurrence": 5}]}}, 63 * 86_400),
        ({"frequency": "year"}, 365 * 86_400),
        ({"frequency": "hour", "interval": 3, "schedule": {"minutes": [5, 50]}}, 45 * 60),
        ({"frequency": "hour", "interval": 3, "schedule": {"hours": [13, 14, 19]}}, 6 * 3_600),
        ({"frequency": "minute", "interval": 20, "schedule": {"hours": [6]}}, 1_200),
        ({"frequency": "minute", "interval": 45, "schedule": {"minutes": [10]}}, 3 * 3_600),
    ],
)
def test_the_shortest_gap_is_exact(recurrence: Given, gap_s: int) -> None:
    """From 4 January 2026 at 10:40. Where the collection limits how often, this is what counts."""
    whole = timing(recurrence, startTime="2026-01-04T10:40:00Z")
    found = between(whole.rule, some.NOW, END, 400)

    assert whole.interval_s == gap_s
    assert min(later - at for at, later in pairwise(found)) == timedelta(seconds=gap_s)


@pytest.mark.parametrize(
    ("recurrence", "field", "says"),
    [
        ("daily", "recurrence", 'must be an object such as {"frequency": "week", "interval": 2,'),
        ([], "recurrence", "not a list"),
        ({}, "recurrence.frequency", "is required: one of minute, hour, day, week, month, year"),
        ({"interval": 1}, "recurrence.frequency", "is required"),
        ({"frequency": "Second"}, "recurrence.frequency", "must be one of minute, hour, day, week, month, year, not"),
        ({"frequency": 1}, "recurrence.frequency", "must be one of minute, hour, day, week, month, year, not 1"),
        ({"frequency": "d\u00e4y"}, "recurrence.frequency", "must be one of minute, hour, day, week, month, year, not"),
        (
            {"frequency": "Minute", "interval": 1001},
            "recurrence.interval",
            "must be a whole number from 1 to 1,000, not ",
        ),
        (
            {"frequency": "Hour", "interval": 1001},
            "recurrence.interval",
            "must be a whole number from 1 to 1,000, not ",
        ),
        ({"frequency": "Day", "interval": 549}, "recurrence.interval", "must be a whole number from 1 to 548, not "),
        ({"frequency": "Week", "interval": 79}, "recurrence.interval", "must be a whole number from 1 to 78, not 79"),
        ({"frequency": "Month", "interval": 19}, "recurrence.interval", "must be a whole number from 1 to 18, not 19"),
        ({"frequency": "Year", "interval": 2}, "recurrence.interval", "must be 1, not 2"),
        ({"frequency": "Year", "interval": "2"}, "recurrence.interval", 'must be 1, not "2"'),
        ({"frequency": "Day", "interval": 0}, "recurrence.interval", "must be a whole number from 1 to 548, not "),
        ({"frequency": "Day", "interval": "2"}, "recurrence.interval", 'must be a whole number from 1 to 548, not "2"'),
        ({"frequency": "Day", "interval": 1.5}, "recurrence.interval", "must be a whole number from 1 to 548, not 1.5"),
        (
            {"frequency": "Day", "interval": True},
            "recurrence.interval",
            "must be a whole number from 1 to 548, not true",
        ),
        ({"frequency": "Day", "schedule": []}, "recurrence.schedule", "not a list"),
        (
            {"frequency": "Day", "schedule": {"minutes": [60]}},
            "recurrence.schedule.minutes[0]",
            "must be a whole number from 0 to 59, not 60",
        ),
        (
            {"frequency": "Day", "schedule": {"hours": [1, 24]}},
            "recurrence.schedule.hours[1]",
            "must be a whole number from 0 to 23, not ",
        ),
        (
            {"frequency": "Day", "schedule": {"hours": 24}},
            "recurrence.schedule.hours[0]",
            "must be a whole number from 0 to 23, not ",
        ),
        (
            {"frequency": "Day", "schedule": {"hours": "5"}},
            "recurrence.schedule.hours",
            'must be a list, not "5"',
        ),
        (
            {"frequency": "Day", "schedule": {"hours": [5.0]}},
            "recurrence.schedule.hours[0]",
            "must be a whole number from 0 to 23, not 5.0",
        ),
        ({"frequency": "Day", "schedule": {"hours": [None]}}, "recurrence.schedule.hours[0]", "not null"),
        (
            {"frequency": "Day", "schedule": {"hours": [0] * 25}},
            "recurrence.schedule.hours",
            "must have at most 24 members, not 25",
        ),
        (
            {"frequency": "Week", "schedule": {"weekDays": ["Mon"]}},
            "recurrence.schedule.weekDays[0]",
            "must be one of monday, tuesday, wednesday, thursday, friday,",
        ),
        (
            {"frequency": "Week", "schedule": {"weekDays": ["monday"] * 8}},
            "recurrence.schedule.weekDays",
            "must have at most 7 members, not 8",
        ),
        (
            {"frequency": "Day", "schedule": {"weekDays": ["monday"]}},
            "recurrence.schedule.weekDays",
            "is only allowed with the frequency week",
        ),
        (
            {"frequency": "Week", "schedule": {"monthDays": [1]}},
            "recurrence.schedule.monthDays",
            "is only allowed with the frequency month",
        ),
        (
            {"frequency": "Year", "schedule": {"monthlyOccurrences": [{"day": "friday"}]}},
            "recurrence.schedule.monthlyOccurrences",
            "is only allowed with the frequency month",
        ),
        (
            {"frequency": "Month", "schedule": {"monthDays": [1, 0]}},
            "recurrence.schedule.monthDays[1]",
            "must be 1 to 31, or -1 (the last) to -31, not 0",
        ),
        ({"frequency": "Month", "schedule": {"monthDays": [32]}}, "recurrence.schedule.monthDays[0]", "-31 to 31"),
        (
            {"frequency": "Month", "schedule": {"monthDays": [1], "monthlyOccurrences": [{"day": "friday"}]}},
            "recurrence.schedule.monthlyOccurrences",
            "must not be combined with monthDays",
        ),
        (
            {"frequency": "Month", "schedule": {"monthlyOccurrences": [{"occurrence": 1}]}},
            "recurrence.schedule.monthlyOccurrences[0].day",
            "is required",
        ),
        (
            {"frequency": "Month", "schedule": {"monthlyOccurrences": nth(("friday", 0))}},
            "recurrence.schedule.monthlyOccurrences[0].occurrence",
            "must be 1 to 5, or -1 (the last) to -5, not 0",
        ),
        (
            {"frequency": "Month", "schedule": {"monthlyOccurrences": nth(("friday", 1), ("friday", -6))}},
            "recurrence.schedule.monthlyOccurrences[1].occurrence",
            "must be a whole number from -5 to 5, not -6",
        ),
        (
            {"frequency": "Month", "schedule": {"monthlyOccurrences": ["friday"]}},
            "recurrence.schedule.monthlyOccurrences[0]",
            'must be an object such as {"day": "friday"}, not "friday"',
        ),
    ],
)
def test_a_member_that_breaks_a_rule_is_named(recurrence: object, field: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        timing(recurrence)

    assert (refused.value.field, refused.value.code) == (field, "INVALID_FIELD")
    assert says in refused.value.reason


@pytest.mark.parametrize(
    ("recurrence", "field", "says"),
    [
        ({**WEEK, "count": 3}, "recurrence.count", "next to `recurrence`"),
        ({**WEEK, "endTime": "2027-01-01"}, "recurrence.endTime", "next to `recurrence`"),
        ({**WEEK, "Interval": 2}, "recurrence.Interval", "is not a known member; did you mean `interval`?"),
        (
            {**WEEK, "schedule": {"days": [1]}},
            "recurrence.schedule.days",
            "is not a known member; known are hours, minutes, monthDays,",
        ),
        (
            {**WEEK, "\u202e" * 90: 2},
            "recurrence." + "\u202e" * 90,
            "is not a known member; known are frequency, interval, schedule",
        ),
    ],
)
def test_a_member_that_is_unknown_is_refused(recurrence: object, field: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        timing(recurrence)

    assert (refused.value.field, refused.value.code) == (field, "UNKNOWN_MEMBER")
    assert says in refused.value.reason


@pytest.mark.parametrize(
    ("recurrence", "start"),
    [
        ({"frequency": "month", "interval": 12, "schedule": {"monthDays": [30]}}, "2024-02-05T00:00:00Z"),
        ({"frequency": "month", "interval": 12, "schedule": {"monthDays": [31]}}, "2024-06-05T00:00:00Z"),
        ({"frequency": "hour", "interval": 24, "schedule": {"hours": [5]}}, "2024-02-05T04:00:00Z"),
        ({"frequency": "minute", "interval": 40, "schedule": {"minutes": [1]}}, "2024-02-05T04:00:00Z"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_recurrence_that_never_fires_is_refused(recurrence: Given, start: str, zone: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        timing(recurrence, startTime=start, timezone=zone)

    assert (refused.value.field, refused.value.code) == ("recurrence", "NEVER_FIRES")


def test_empty_lists_and_nulls_are_absent_and_a_number_is_a_list_of_one() -> None:
    plain = timing({"frequency": "day"}).packed
    empty: Given = {"minutes": [], "hours": None, "weekDays": [], "monthDays": [], "monthlyOccurrences": None}

    assert timing({"frequency": "Day", "interval": None, "schedule": None}).packed == plain
    assert timing({"frequency": "DAY", "schedule": empty}).packed == plain
    assert (
        timing({"frequency": "day", "schedule": {"hours": 5}}).packed
        == timing({"frequency": "day", "schedule": {"hours": [5, 5]}}).packed
    )


def test_the_fullest_recurrence_packs_into_400_bytes() -> None:
    all_of_them = [{"day": day, "occurrence": n} for day in WEEKDAYS for n in (1, 2, 3, 4, 5, -1, -2, -3, -4, -5)]
    full = timing(
        {
            "frequency": "month",
            "interval": 18,
            "schedule": {
                "minutes": list(range(60)),
                "hours": list(range(23)),
                "monthlyOccurrences": all_of_them + [{"day": day} for day in WEEKDAYS],
            },
        },
        timezone="America/Argentina/ComodRivadavia",
        dstGap="next_valid",
        dstOverlap="second",
        startTime="2026-03-04T08:25:00Z",
        endTime="2199-03-04T08:25:00Z",
    )

    assert len(full.packed) <= 400


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"unit": "week"},
        {"unit": "second", "interval": 1},
        {"unit": "week", "interval": 0},
        {"unit": "year", "interval": 2},
        {"unit": "week", "interval": 1, "other": 1},
        {"unit": "week", "interval": 1, "hours": "x"},
    ],
)
def test_invalid_packed_facts_cannot_be_loaded(facts: Given) -> None:
    import json  # noqa: PLC0415

    from sweephand.schedules.timing import load  # noqa: PLC0415

    with pytest.raises(ValueError, match="cannot be read as a timing"):
        load(json.dumps({"recurrence": facts}))


@pytest.mark.parametrize(
    ("recurrence", "summary"),
    [
        ({"frequency": "day", "interval": 2}, "every 2 days from 2026-03-04T08:25:07, UTC"),
        ({"frequency": "hour"}, "every hour from 2026-03-04T08:25:07Z"),
        ({"frequency": "day", "schedule": {"hours": [5, 17]}}, "at 05:25 and 17:25"),
        (
            {"frequency": "week", "interval": 2, "schedule": {"weekDays": ["monday", "sunday"], "minutes": [0]}},
            "every hour on Monday and Sunday, every 2 weeks from 2026-03-04",
        ),
        ({"frequency": "week", "schedule": {"hours": [9]}}, "at 09:25 on Wednesday"),
        ({"frequency": "month", "schedule": {"hours": [9]}}, "at 09:25 on day 4 of the month"),
        (
            {"frequency": "month", "schedule": {"hours": 9, "minutes": 0, "monthDays": [1, 15, -1, -3]}},
            "at 09:00 on day 1 and 15, the last day and the third-to-last day of the month",
        ),
        (
            {
                "frequency": "month",
                "schedule": {"monthlyOccurrences": [*nth(("friday", 1), ("friday", -2)), {"day": "sunday"}]},
            },
            "at 08:25 on the first Friday, the second-to-last Friday and every Sunday of the month",
        ),
        ({"frequency": "year", "schedule": {"hours": [9]}}, "at 09:25 on 4 March"),
        (
            {"frequency": "hour", "interval": 3, "schedule": {"minutes": [5, 50], "hours": [1, 2, 3, 20]}},
            "every 3 hours from 2026-03-04T08:25, at minutes 5 and 50, in the hours 1 to 3 and 20",
        ),
        (
            {"frequency": "minute", "interval": 20, "schedule": {"hours": [6]}},
            "every 20 minutes from 2026-03-04T08:25, in the hour 6",
        ),
    ],
)
def test_summaries(recurrence: Given, summary: str) -> None:
    assert timing(recurrence, startTime="2026-03-04T08:25:07Z").summary == summary


@pytest.mark.parametrize(
    ("recurrence", "instant", "fields"),
    [
        ({"frequency": "hour", "interval": 3, "schedule": {"minutes": [5]}}, "2026-03-04T12:05:00Z", ["hour"]),
        (
            {"frequency": "hour", "schedule": {"hours": [9], "minutes": [5]}},
            "2026-03-04T12:06:07Z",
            ["hour", "minute", "second"],
        ),
        ({"frequency": "minute", "interval": 7, "schedule": {"hours": [6]}}, "2026-03-05T06:01:00Z", ["minute"]),
        ({"frequency": "minute", "schedule": {"minutes": [3]}}, "2026-03-05T06:04:00Z", ["minute"]),
        ({"frequency": "month", "schedule": {"monthDays": [31]}}, "2026-04-05T08:25:00Z", ["day"]),
        ({"frequency": "week", "interval": 2}, "2026-03-12T08:25:00Z", ["week", "weekday"]),
    ],
)
def test_an_instant_outside_the_recurrence_is_explained(recurrence: Given, instant: str, fields: list[str]) -> None:
    explained = explain(timing(recurrence, startTime="2026-03-04T08:25:00Z"), datetime.fromisoformat(instant))

    assert not explained.occurs
    assert [reason.field for reason in explained.reasons] == fields


def test_only_months_whose_turn_comes_are_said_to_lack_a_day() -> None:
    at_turns = {"frequency": "month", "interval": 3, "schedule": {"monthDays": [31]}}
    january, march = (timing(at_turns, startTime=f"2026-{month}-01T00:00:00Z") for month in ("01", "03"))

    assert [each.text for each in cautions(january, some.NOW)] == ["31st: 1 month a year has none"]
    assert [each.text for each in cautions(march, some.NOW)] == ["31st: 2 months a year have none"]
    assert [
        each.text for each in cautions(timing({"frequency": "month"}, startTime="2026-01-31T00:00:00Z"), some.NOW)
    ] == []


@pytest.mark.parametrize(
    ("start", "first"),
    [
        ("2012-08-04T00:00Z", "2026-03-08 00:00"),
        ("2015-04-07T14:00Z", "2026-03-07 14:00"),
        ("2015-04-07T14:00+02:00", "2026-03-07 12:00"),
        ("2015-04-07T14:00", "2026-03-07 14:00"),
        ("2015-04-07", "2026-03-08 00:00"),
        ("2015-04-07T14:00:00Z", "2026-03-07 14:00"),
    ],
)
def test_the_dates_in_azures_documentation_are_read(start: str, first: str) -> None:
    found = timing({"frequency": "Day", "interval": 1}, startTime=start, endTime="2199-01-01T00:00Z").rule

    following = found.next_after(datetime(2026, 3, 7, 11, 59, tzinfo=UTC))

    assert f"{following:%Y-%m-%d %H:%M}" == first


@pytest.mark.parametrize(
    "start", ["2012-08-04T00Z", "20120804", "2012-W31-6", "04 Aug 2012 00:00 GMT", "2012-08-04 00:00Z"]
)
def test_other_dates_are_refused(start: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        timing({"frequency": "Day"}, startTime=start)

    assert refused.value.field == "startTime"


def test_other_notations_refuse_instants_without_seconds() -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse({"cron": "0 9 * * *", "startTime": "2012-08-04T00:00Z"}, now=some.NOW)

    assert refused.value.field == "startTime"


def test_occurrence_in_upper_case_from_azures_python_client_is_read() -> None:
    theirs = {"frequency": "Month", "schedule": {"monthlyOccurrences": [{"Day": "Monday", "Occurrence": 1}]}}
    ours = {"frequency": "Month", "schedule": {"monthlyOccurrences": [{"day": "monday", "occurrence": 1}]}}

    assert timing(theirs).rule == timing(ours).rule
