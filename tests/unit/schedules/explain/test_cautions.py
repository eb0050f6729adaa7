"""Warnings about a schedule, and its description."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from sweephand.schedules.explain.preview_warnings import CAUTIONS, cautions, describe
from sweephand.schedules.rule import between
from sweephand.schedules.timing import Timing, parse
from tests.unit.schedules.test_shared_properties import timings_and_instants

NOW = datetime(2026, 11, 21, tzinfo=UTC)
BERLIN = {"timezone": "Europe/Berlin"}


def odd(fields: dict[str, object], after: datetime = NOW) -> list[str]:
    return [f"{each.code} {each.text}" for each in cautions(parse(fields, now=NOW, salt="a"), after)]


@given(timings_and_instants())
def test_every_schedule_has_cautions_of_the_closed_list_and_a_description(case: tuple[Timing, datetime]) -> None:
    timing, instant = case

    assert {each.code for each in cautions(timing, instant)} <= CAUTIONS.keys()
    described = describe(timing, instant)
    assert timing.summary[1:] in described
    assert described.endswith(".")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"cron": "0 9 * * 1-5"}, []),
        ({"cron": "0 9 * * 1-5", **BERLIN}, []),
        ({"cron": "* 9 * * *"}, ["MANY_IN_AN_HOUR runs 60 times in the hour from 2026-11-21T09:00:00Z"]),
        ({"every": "PT10S"}, ["MANY_IN_AN_HOUR runs 360 times in the hour from 2026-11-21T00:00:10Z"]),
        ({"every": "PT2M"}, []),
        ({"cron": "0 0 31 * *"}, ["SOME_MONTHS_LACK_THE_DAY 31st: 5 months a year have none"]),
        ({"sapCron": "* * -31 * 0 0 0"}, ["SOME_MONTHS_LACK_THE_DAY 31st-to-last day: 5 months a year have none"]),
        ({"sapCron": "* * -30,-1 * 0 0 0"}, ["SOME_MONTHS_LACK_THE_DAY 30th-to-last day: 1 month a year has none"]),
        ({"sapCron": "* * -29 * 0 0 0"}, ["LEAP_DAY 29th-to-last day: February has one in leap years only"]),
        ({"sapCron": "* 1 -31 * 0 0 0"}, []),
        ({"sapCron": "* * -28 * 0 0 0"}, []),
        ({"sapCron": "* * 29:-1 * 0 0 0"}, ["LEAP_DAY 29th: February has one in leap years only"]),
        ({"sapCron": "* * 30:-1 * 0 0 0"}, ["SOME_MONTHS_LACK_THE_DAY 30th: 1 month a year has none"]),
        ({"sapCron": "* * 28:-1 * 0 0 0"}, []),
        (
            {"sapCron": "* * 29:-1,31 * 0 0 0"},
            [
                "LEAP_DAY 29th: February has one in leap years only",
                "SOME_MONTHS_LACK_THE_DAY 31st: 5 months a year have none",
            ],
        ),
        ({"cron": "0 0 15,30 * *"}, ["SOME_MONTHS_LACK_THE_DAY 30th: 1 month a year has none"]),
        ({"cron": "0 0 31 1,3 *"}, []),
        ({"cron": "0 0 */2 * *"}, []),
        ({"cron": "0 0 29 * *"}, ["LEAP_DAY 29th: February has one in leap years only"]),
        ({"eventBridge": "cron(0 9 31 4-6 ? *)"}, ["SOME_MONTHS_LACK_THE_DAY 31st: 2 months a year have none"]),
        ({"eventBridge": "cron(0 9 L * ? *)"}, []),
        (
            {"eventBridge": "cron(0 9 ? * 6#5 *)"},
            ["SOME_MONTHS_LACK_THE_DAY 8 of the next 12 of its months have no such day"],
        ),
        (
            {"sapCron": "* * * 5.fri 0 0 0"},
            ["SOME_MONTHS_LACK_THE_DAY 8 of the next 12 of its months have no such day"],
        ),
        (
            {
                "recurrence": {
                    "frequency": "month",
                    "schedule": {"monthlyOccurrences": [{"day": "friday", "occurrence": 5}]},
                }
            },
            ["SOME_MONTHS_LACK_THE_DAY 8 of the next 12 of its months have no such day"],
        ),
        ({"sapCron": "* * * 4.fri 0 0 0"}, []),
        (
            {"eventBridge": "cron(0 9 31W * ? *)"},
            ["SOME_MONTHS_LACK_THE_DAY 5 of the next 12 of its months have no such day"],
        ),
        (
            {"cron": "0 0 31 4,6,9,11 1"},
            [
                "EITHER_DAY day of the month and weekday are both given, and either is enough",
                "SOME_MONTHS_LACK_THE_DAY 31st: none of its months has one, so only the weekday counts",
            ],
        ),
        ({"cron": "0 0 31 * 1"}, ["EITHER_DAY day of the month and weekday are both given, and either is enough"]),
        (
            {"every": "P1M", "startTime": "2026-12-31T00:00:00Z", "monthOverflow": "skip"},
            ["SOME_MONTHS_LACK_THE_DAY 31st: 5 months a year have none"],
        ),
        ({"every": "P1M", "startTime": "2026-12-31T00:00:00Z"}, []),
        ({"every": "P1Y", "startTime": "2026-12-31T00:00:00Z", "monthOverflow": "skip"}, []),
        (
            {"cron": "0 0 29 2 *"},
            [
                "FAR_AWAY the next occurrence is 2028-02-29T00:00:00Z, more than a year away",
                "LEAP_DAY 29th: February has one in leap years only",
            ],
        ),
        ({"cron": "0 9 13 * 5"}, ["EITHER_DAY day of the month and weekday are both given, and either is enough"]),
        (
            {"cron": "0 9 31 2,3 1", "monthOverflow": "clamp"},
            ["EITHER_DAY day of the month and weekday are both given, and either is enough"],
        ),
        (
            {"cron": "0 9 31 2,3 1", "monthOverflow": "next"},
            ["EITHER_DAY day of the month and weekday are both given, and either is enough"],
        ),
        ({"cron": "0 9 31 2,3 *", "monthOverflow": "clamp"}, []),
        (
            {"cron": "*/7 * * * *"},
            ["UNEVEN_STEP steps of 7 minutes do not divide the hour: the last of each hour is 4"],
        ),
        ({"cron": "0 */5 * * *"}, ["UNEVEN_STEP steps of 5 hours do not divide the day: the last of each day is 4"]),
        ({"cron": "*/15 */6 * * *"}, []),
        ({"cron": "0 9-17/2 * * *"}, []),
        (
            {"cron": "0 * * * *", "jitterSeconds": 3_600},
            ["JITTER_CUT_SHORT jitterSeconds 3600 reaches past the next occurrence, so each is delayed by less"],
        ),
        ({"at": "2020-01-01T00:00:00Z"}, ["NOTHING_LEFT no occurrence is left after 2026-11-21T00:00:00Z"]),
        ({"cron": "30 * * * *", **BERLIN}, []),
        ({"cron": "30 2 * * *", "timezone": "Asia/Kolkata"}, []),
    ],
)
def test_only_unusual_facts_are_cautioned_about(fields: dict[str, object], expected: list[str]) -> None:
    assert odd(fields) == expected


@pytest.mark.parametrize("minute", [0, 1, 30, 58])
def test_a_dense_hour_is_reported_even_from_within_it(minute: int) -> None:
    within = datetime(2026, 11, 21, 9, minute, tzinfo=UTC)
    told = ["MANY_IN_AN_HOUR runs 60 times in the hour from 2026-11-22T09:00:00Z"]

    assert odd({"cron": "* 9 * * *"}, within) == told
    assert odd({"cron": "* 9 * * *", "endTime": "2026-11-21T23:00:00Z"}, within) == []
    assert odd({"cron": "* 9 * * *", "count": 60}, within) == []
    assert odd({"cron": "* 9 * * *", "count": 119}, within) == told


@pytest.mark.parametrize(
    ("gap", "overlap", "spring", "autumn"),
    [
        ("next_valid", "first", "it runs at 2027-03-28T01:00:00Z (dstGap next_valid)", "it runs the first time"),
        ("shift", "second", "it runs at 2027-03-28T01:30:00Z (dstGap shift)", "it runs the second time"),
        ("skip", "both", "it does not run (dstGap skip)", "it runs both times"),
    ],
)
def test_an_hour_affected_by_a_clock_change_is_reported(gap: str, overlap: str, spring: str, autumn: str) -> None:
    assert odd({"cron": "30 2 * * *", "dstGap": gap, "dstOverlap": overlap, **BERLIN}) == [
        f"CLOCK_CHANGE the clock in Europe/Berlin jumps over 2027-03-28T02:30:00: {spring}",
        f"CLOCK_CHANGE the clock in Europe/Berlin reads 2027-10-31T02:30:00 twice: {autumn}",
    ]


NIGHTLY = {"cron": "30 2 * * *", **BERLIN}
RULE = "DTSTART;TZID=Europe/Berlin:20270301T023000\nRRULE:FREQ=DAILY"
SPRING = "CLOCK_CHANGE the clock in Europe/Berlin jumps over 2027-03-28T02:30:00: it "
AUTUMN = "CLOCK_CHANGE the clock in Europe/Berlin reads 2027-10-31T02:30:00 twice: it runs "
NEXT_VALID, SHIFTED = "runs at 2027-03-28T01:00:00Z (dstGap next_valid)", "runs at 2027-03-28T01:30:00Z (dstGap shift)"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({**NIGHTLY, "endTime": "2027-03-28T00:59:59Z"}, []),
        ({**NIGHTLY, "endTime": "2027-03-28T01:00:00Z"}, [SPRING + NEXT_VALID]),
        ({**NIGHTLY, "count": 2}, []),
        ({**NIGHTLY, "count": 3}, [SPRING + NEXT_VALID]),
        ({**NIGHTLY, "count": 2, "dstGap": "skip"}, []),
        ({**NIGHTLY, "count": 3, "dstGap": "skip"}, [SPRING + "does not run (dstGap skip)"]),
        ({"rrule": RULE + ";COUNT=27"}, []),
        ({"rrule": RULE + ";COUNT=28"}, [SPRING + SHIFTED]),
        ({"rrule": RULE + ";UNTIL=20270328T012959Z"}, []),
        ({"rrule": RULE + ";UNTIL=20270501\nEXDATE:20270328T013000Z"}, []),
        ({**NIGHTLY, "startTime": "2027-04-01T00:00:00Z"}, [AUTUMN + "the first time"]),
    ],
)
def test_a_clock_change_is_reported_only_if_the_schedule_runs_then(fields, expected):
    assert odd(fields, datetime(2027, 3, 26, tzinfo=UTC)) == expected


@pytest.mark.parametrize(("gap", "told"), [("shift", SHIFTED), ("skip", "does not run (dstGap skip)")])
def test_a_first_occurrence_affected_by_a_clock_change_is_reported(gap, told):
    rule = "DTSTART;TZID=Europe/Berlin:20270328T023000\nRRULE:FREQ=DAILY"

    assert odd({"rrule": rule, "dstGap": gap}) == [SPRING + told, AUTUMN + "the first time"]


@pytest.mark.parametrize(
    ("after", "end", "count", "told"),
    [
        ((0, 0), "01:30:00", None, "both times"),
        ((0, 0), "01:30:00", 2, "both times"),
        ((0, 0), "01:30:00", 1, "the first time"),
        ((0, 0), "01:29:59", None, "the first time"),
        ((0, 45), "01:30:00", None, "the second time"),
        ((1, 15), "01:30:00", 1, "the second time"),
    ],
)
def test_only_coming_repeated_hours_are_reported(after, end, count, told):
    fields = {**NIGHTLY, "dstOverlap": "both", "endTime": f"2027-10-31T{end}Z", "count": count}

    assert odd(fields, datetime(2027, 10, 31, *after, tzinfo=UTC)) == [AUTUMN + told]


def test_an_occurrence_that_comes_once_more_is_not_many_in_an_hour():
    assert odd({"cron": "* 9 * * *", "count": 59}) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"cron": "0 9 * * *"}, "At 09:00."),
        (
            {"cron": "0 9 * * *", "startTime": "2027-01-01T00:00:00Z", "endTime": "2029-01-01T00:00:00Z"},
            "At 09:00, from 2027-01-01T00:00:00Z, until 2029-01-01T00:00:00Z.",
        ),
        ({"cron": "0 9 * * *", "count": 1_000}, "At 09:00, at most 1,000 times."),
        (
            {"cron": "0 2 * * *", "dstGap": "shift", "dstOverlap": "second", **BERLIN},
            ("At 02:00, Europe/Berlin. "
             "A time that a clock change skips runs later by as much as the clock jumps; a repeated time "
             "runs the second time."),
        ),
        (
            {"every": "1 hour", "count": 1, "jitterSeconds": 30},
            "Every hour from 2026-11-21T01:00:00Z, at most once, each delayed by up to 30 s.",
        ),
        ({"cron": "0 9 * * *", "timezone": "Asia/Kolkata"}, "At 09:00, Asia/Kolkata."),
        ({"cron": "0 * * * *", **BERLIN}, "Every hour, Europe/Berlin."),
        ({"cron": "0 9 * * *", **BERLIN}, "At 09:00, Europe/Berlin."),
        ({"cron": "0 3 * * *", **BERLIN}, "At 03:00, Europe/Berlin."),
        ({"cron": "30 2 1 6 *", **BERLIN}, "At 02:30 on day 1 of the month in June, Europe/Berlin."),
        ({"every": "1.02:03:04"}, "Every 1 day, 2 hours, 3 minutes and 4 seconds from 2026-11-22T02:03:04Z."),
        ({"every": "PT90M"}, "Every 90 minutes from 2026-11-21T01:30:00Z."),
        ({"rrule": "DTSTART:20270101T090000Z\nRRULE:FREQ=MINUTELY;BYHOUR=2"},
         "Every minute in the hour 2, from 2027-01-01T09:00:00Z."),
        (
            {"cron": "59 2 * * *", "dstGap": "skip", "dstOverlap": "both", **BERLIN},
            ("At 02:59, Europe/Berlin. A time that a clock change skips does not run; "
             "a repeated time runs both times."),
        ),
        ({"at": "2027-01-01T00:00:00Z"}, "Once at 2027-01-01T00:00:00Z."),
        ({"at": "2027-01-01T02:30:00", **BERLIN}, "Once at 2027-01-01T02:30:00, Europe/Berlin."),
        (
            {"at": "2027-03-28T02:30:00", "dstGap": "shift", **BERLIN},
            ("Once at 2027-03-28T02:30:00, Europe/Berlin. A time that a clock change skips runs later by as much as "
             "the clock jumps; a repeated time runs the first time."),
        ),
        (
            {"rrule": "DTSTART:20290101T090000Z\nRRULE:FREQ=WEEKLY;INTERVAL=2"},
            "Every 2 weeks on Monday at 09:00, from 2029-01-01T09:00:00Z.",
        ),
        (
            {"rrule": "DTSTART:20290101T090000Z\nRRULE:FREQ=DAILY", "startTime": "2030-01-01T00:00:00Z"},
            "Every day at 09:00, from 2030-01-01T00:00:00Z.",
        ),
        (
            {"rrule": "DTSTART:20290101T090000Z\nRRULE:FREQ=DAILY", "startTime": "2027-01-01T00:00:00Z"},
            "Every day at 09:00, from 2029-01-01T09:00:00Z.",
        ),
        (
            {"rrule": "FREQ=WEEKLY;INTERVAL=2", "startTime": "2029-01-01T09:00:00Z"},
            "Every 2 weeks on Monday at 09:00, from 2029-01-01T09:00:00Z.",
        ),
        (
            {"rrule": "FREQ=DAILY;INTERVAL=2;BYHOUR=9;BYMINUTE=0;BYSECOND=0"},
            "Every 2 days at 09:00, from 2026-11-21T00:00:00Z.",
        ),
        ({"rrule": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"}, "Every day at 09:00."),
        (
            {"rrule": "DTSTART:20290101T090000Z\nRDATE:20290102T090000Z"},
            "At 2 dates, the first 2029-01-01T09:00:00Z, the last 2029-01-02T09:00:00Z.",
        ),
    ],
)  # fmt: skip
def test_a_description_is_the_summary_with_all_limits_and_modifiers(fields: dict[str, object], expected: str) -> None:
    assert describe(parse(fields, now=NOW, salt="a"), NOW) == expected


IN_MARCH = datetime(2027, 3, 1, 9, tzinfo=UTC)


def in_march(fields: dict[str, object]) -> list[str]:
    return [f"{each.code} {each.text}" for each in cautions(parse(fields, now=IN_MARCH, salt="a"), IN_MARCH)]


NEW_YORK = {"timezone": "America/New_York"}


@pytest.mark.parametrize(
    ("fields", "moved", "clock", "days"),
    [
        ({"every": "P1D"}, "2027-03-14T09:00:00Z", "05:00:00 instead of 04:00:00", 1),
        ({"every": "PT24H"}, "2027-03-14T09:00:00Z", "05:00:00 instead of 04:00:00", 1),
        (
            {"every": "P2D", "startTime": "2027-03-01T09:00:00"},
            "2027-03-15T14:00:00Z",
            "10:00:00 instead of 09:00:00",
            2,
        ),
        ({"every": "P1W"}, "2027-03-15T09:00:00Z", "05:00:00 instead of 04:00:00", 7),
        ({"every": "P1D", "jitterSeconds": 60}, "2027-03-14T09:00:00Z", "05:00:00 instead of 04:00:00", 1),
        ({"every": "P1D", "align": "epoch"}, "2027-03-15T00:00:00Z", "20:00:00 instead of 19:00:00", None),
        ({"every": "R9/2027-03-12T09:00:00/P1D"}, "2027-03-14T14:00:00Z", "10:00:00 instead of 09:00:00", None),
        ({"eventBridge": "rate(1 day)"}, "2027-03-14T09:00:00Z", "05:00:00 instead of 04:00:00", None),
        ({"recurrence": {"frequency": "hour", "interval": 48}}, "2027-03-15T09:00:00Z", "05:00:00 instead", None),
    ],
)
def test_days_of_elapsed_time_say_when_their_time_of_day_changes(fields, moved, clock, days):
    (told,) = in_march({**fields, **NEW_YORK})

    since = f"CLOCK_CHANGE its days are 24 hours of elapsed time: from {moved} on"
    assert told.startswith(f"{since}, the clock in America/New_York reads {clock}")
    if days is None:
        assert "write" not in told
        return
    better = json.loads("{" + told.partition("write ")[2] + "}")
    assert better == {"recurrence": {"frequency": "day", "interval": days}}
    kept = {name: each for name, each in fields.items() if name != "every"}
    before, after = (parse({**each, **NEW_YORK}, now=IN_MARCH, salt="a").rule for each in (fields, {**kept, **better}))
    change = datetime(2027, 3, 14, 7, tzinfo=UTC)
    assert between(before, IN_MARCH, change, 20) == between(after, IN_MARCH, change, 20)
    assert after.next_after(change) != before.next_after(change)


@pytest.mark.parametrize(
    "fields",
    [
        {"every": "P1D"},
        {"every": "P1D", "timezone": "Asia/Kolkata"},
        {"every": "P1D", "align": "clock", **NEW_YORK},
        {"every": "P1D", "align": "actual_start", **NEW_YORK},
        {"every": "PT12H", **NEW_YORK},
        {"every": "P1D", "count": 3, **NEW_YORK},
        {"every": "P1D", "endTime": "2027-03-10T00:00:00Z", **NEW_YORK},
        {"every": "P1M", **NEW_YORK},
        {"recurrence": {"frequency": "day"}, **NEW_YORK},
    ],
)
def test_days_that_keep_their_time_or_end_before_are_not_reported(fields):
    assert in_march(fields) == []


def test_answers_say_that_days_are_elapsed_time_where_the_clock_changes():
    def summary(**fields: Any) -> str:
        return parse({"every": "P1D", **fields}, now=IN_MARCH).summary

    assert (
        summary(**NEW_YORK)
        == "every day from 2027-03-02T09:00:00Z, in elapsed time, not by the clock of America/New_York"
    )
    assert summary() == summary(timezone="Asia/Kolkata") == "every day from 2027-03-02T09:00:00Z"
