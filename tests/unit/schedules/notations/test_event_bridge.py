"""Expressions of EventBridge Scheduler against an oracle that looks at every minute."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.rule import between
from sweephand.schedules.timing import parse
from tests.unit.schedules import given as some
from tests.unit.schedules.oracle import MONTHS, WEEKDAYS, numbers

NOW = some.NOW
MINUTE = timedelta(minutes=1)


def instants(expression: str, count: int = 3, zone: str = "UTC", after: datetime = NOW, **more: object) -> list[str]:
    timing = parse({"eventBridge": expression, "timezone": zone, **more}, now=NOW)
    found = between(timing.rule, after, datetime(2199, 12, 31, tzinfo=UTC), count)
    return [instant.strftime("%Y-%m-%d %H:%M") for instant in found]


def reads(text: str, wall: datetime) -> bool:
    """Tells whether the six fields admit what a clock reads; each rule spelled out."""
    minutes, hours, day, months, weekday, years = text.split()
    if wall.minute not in numbers(minutes, 0, 59, []) or wall.hour not in numbers(hours, 0, 23, []):
        return False
    if wall.month not in numbers(months, 1, 12, MONTHS) or wall.year not in numbers(years, 1970, 2199, []):
        return False
    return by_date(day, wall.date()) if weekday == "?" else by_weekday(weekday, wall.date())


def by_date(text: str, day: date) -> bool:
    length = calendar.monthrange(day.year, day.month)[1]
    if text == "L":
        return day.day == length
    if text.endswith("W"):
        wanted = length if text == "LW" else int(text[:-1])
        if wanted > length:
            return False
        candidates = [day.replace(day=n) for n in range(1, length + 1) if day.replace(day=n).weekday() < 5]
        return day == min(candidates, key=lambda each: abs(each.day - wanted))
    return day.day in numbers(text, 1, 31, [])


def by_weekday(text: str, day: date) -> bool:
    names = ["", *WEEKDAYS]
    own = day.isoweekday() % 7 + 1
    if text == "L":
        return own == 7
    if text.endswith("L"):
        return own in numbers(text[:-1], 1, 7, names) and (day + timedelta(days=7)).month != day.month
    if "#" in text:
        name, which = text.split("#")
        return own in numbers(name, 1, 7, names) and (day.day + 6) // 7 == int(which)
    text = re.sub(
        r"(^|,)([0-9A-Za-z]+)/", r"\1\2-7/", text.replace("*", "1-7")
    )  # a step ends with Saturday, which is 7
    return own in numbers(text, 1, 7, names)


@given(some.event_bridge_crons, st.integers(0, 200 * 365))
def test_the_next_wall_times_are_those_that_the_fields_admit(text, day):
    begin = datetime(1971, 1, 1, tzinfo=UTC) + timedelta(days=day)
    end = begin + timedelta(days=2)
    wanted = [at for n in range(1, 2 * 1440 + 1) if reads(text, (at := begin + n * MINUTE).replace(tzinfo=None))]

    assert found(text, begin, end) == wanted


def found(text: str, begin: datetime, end: datetime) -> list[datetime]:
    """Returns nothing for a rule that is refused because it never fires."""
    try:
        timing = parse({"eventBridge": f"cron({text})"}, now=NOW)
    except InvalidRequest as refused:
        if refused.code != "NEVER_FIRES":
            raise
        return []
    return between(timing.rule, begin, end, 3_000)


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("cron(0 9 L * ? *)", ["2026-03-31 09:00", "2026-04-30 09:00", "2026-05-31 09:00"]),
        ("cron(0 9 LW * ? *)", ["2026-03-31 09:00", "2026-04-30 09:00", "2026-05-29 09:00"]),
        ("cron(0 9 1W * ? *)", ["2026-04-01 09:00", "2026-05-01 09:00", "2026-06-01 09:00"]),
        ("cron(0 9 31W * ? 2026)", ["2026-03-31 09:00", "2026-05-29 09:00", "2026-07-31 09:00"]),
        ("cron(0/30 22 ? * 6#3 *)", ["2026-03-20 22:00", "2026-03-20 22:30", "2026-04-17 22:00"]),
        ("cron(15 10 ? * 6L 2026-2027)", ["2026-03-27 10:15", "2026-04-24 10:15", "2026-05-29 10:15"]),
        ("cron(0 0 ? * L *)", ["2026-03-14 00:00", "2026-03-21 00:00", "2026-03-28 00:00"]),
        ("cron(0 0 29 2 ? *)", ["2028-02-29 00:00", "2032-02-29 00:00", "2036-02-29 00:00"]),
        ("rate(5 minutes)", ["2026-03-07 12:05", "2026-03-07 12:10", "2026-03-07 12:15"]),
        ("rate(1 minutes)", ["2026-03-07 12:01", "2026-03-07 12:02", "2026-03-07 12:03"]),
        ("rate(1 hours)", ["2026-03-07 13:00", "2026-03-07 14:00", "2026-03-07 15:00"]),
        ("rate(1 days)", ["2026-03-08 12:00", "2026-03-09 12:00", "2026-03-10 12:00"]),
        ("rate(5 minute)", ["2026-03-07 12:05", "2026-03-07 12:10", "2026-03-07 12:15"]),
        ("rate(1 day)", ["2026-03-08 12:00", "2026-03-09 12:00", "2026-03-10 12:00"]),
        ("at(2027-01-01T09:00:00)", ["2027-01-01 09:00"]),
    ],
)  # fmt: skip
def test_examples(expression, first):
    assert instants(expression) == first


def test_a_gap_is_skipped_and_an_overlap_runs_the_first_time_by_default():
    expression, zone = "cron(30 2 * * ? *)", "Europe/Berlin"
    before_gap, before_overlap = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)

    assert instants(expression, 1, zone, before_gap) == ["2026-03-30 00:30"]
    assert instants(expression, 1, zone, before_gap, dstGap="next_valid") == ["2026-03-29 01:00"]
    assert instants(expression, 2, zone, before_overlap) == ["2026-10-25 00:30", "2026-10-26 01:30"]
    assert instants(expression, 2, zone, before_overlap, dstOverlap="second") == [
        "2026-10-25 01:30",
        "2026-10-26 01:30",
    ]


@pytest.mark.parametrize("hours", ["*/2", "0/2", "0,2,4", "2", "0-23/2"])
def test_stepped_hours_skip_a_gap_as_listed_hours_do(hours):
    berlin = "Europe/Berlin"
    before_gap, before_overlap = datetime(2027, 3, 28, tzinfo=UTC), datetime(2027, 10, 30, 23, 30, tzinfo=UTC)
    hour = timedelta(hours=1)

    def between_hours(zone, after, **more):
        timing = parse({"eventBridge": f"cron(0 {hours} * * ? *)", "timezone": zone, **more}, now=NOW)
        return [f"{at:%H:%M}" for at in between(timing.rule, after, after + 2 * hour - MINUTE, 9)]

    assert between_hours(berlin, before_gap) == []
    assert between_hours(berlin, before_gap, dstGap="next_valid") == ["01:00"]
    assert between_hours(berlin, before_overlap) == ["00:00"]
    assert between_hours(berlin, before_overlap, dstOverlap="both") == ["00:00", "01:00"]
    assert between_hours(berlin, before_overlap, dstOverlap="second") == ["01:00"]


def test_a_minute_step_of_stepped_hours_skips_a_gap_too():
    found = instants("cron(*/20 */2 * * ? *)", 2, "Europe/Berlin", datetime(2027, 3, 28, 0, 50, tzinfo=UTC))

    assert found == ["2027-03-28 02:00", "2027-03-28 02:20"]


def test_the_copies_of_every_hour_run_unless_the_caller_says_otherwise():
    after = datetime(2027, 10, 30, 23, 30, tzinfo=UTC)

    assert instants("cron(0 * * * ? *)", 3, "Europe/Berlin", after)[:2] == ["2027-10-31 00:00", "2027-10-31 01:00"]
    assert instants("cron(0 * * * ? *)", 2, "Europe/Berlin", after, dstOverlap="first") == [
        "2027-10-31 00:00",
        "2027-10-31 02:00",
    ]


def test_every_half_hour_loses_and_duplicates_nothing():
    for day in (datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)):
        halves = instants("cron(*/30 * * * ? *)", 48, "Europe/Berlin", day)
        assert halves == [(day + n * 30 * MINUTE).strftime("%Y-%m-%d %H:%M") for n in range(1, 49)]


@pytest.mark.parametrize(
    ("expression", "reason", "position"),
    [
        ("cron(30 2 * * * *)", 'must be "?"', 14),
        ("cron(30 2 ? * ? *)", 'must be "?"', 14),
        ("cron(30 2 ? * 8 *)", 'day of the week must be 1 to 7, not "8"', 14),
        ("cron(30 2 ? * 0 *)", 'day of the week must be 1 to 7, not "0"', 14),
        ("cron(60 2 ? * 1 *)", 'minutes must be 0 to 59, not "60"', 5),
        ("cron(0 0 * * ?)", "must have 6 fields (minutes, hours, day of the month, month,", 14),
        ("cron(0 9 ? * 2#1,4#2 *)", "# stands alone, as in 2#1, not in a list", 16),
        ("cron(0 9 ? * 2,4#2 *)", "# stands alone", 14),
        ("cron(0 0 ? * 6#6 *)", 'the number after # must be 1 to 5, not "6"', 15),
        ("cron(0 0 ? * 6L,2 *)", "day of the week must be *, a number from 1 to 7 or sun, mon,", 13),
        ("cron(0 0 32W * ? *)", 'day of the month must be 1 to 31, not "32"', 9),
        ("cron(0 0 1 * ? 2200)", 'year must be 1970 to 2199, not "2200"', 15),
        ("rate(5 weeks)", 'must be a number of minutes, hours or days, as in "rate(5', 5),
        ("rate(0 minutes)", "must be 1 second to 36,500 days, not 0 seconds", 5),
        ("at(2027-13-01T09:00:00)", 'month must be 1 to 12, not "13"', 8),
        ("at(2027-01-01T09:00:00Z)", 'must be a wall time, as in "at(2027-01-01T09:00:00)", not', 3),
        ("cron(0 9 ? * SAT-MON *)", "runs backwards; write sat,sun,mon", 13),
        ("cron(0 22-2 * * ? *)", "runs backwards; write 22-23,0-2 for both parts of it", 7),
        ("30 2 * * *", 'must be an expression such as "cron(30 2 ? * MON-FRI *)",', 0),
        ("cron(30 2 \u0663 * ? *)", "U+0663", 10),
    ],
)
def test_an_invalid_expression_is_refused_with_its_position(expression, reason, position):
    with pytest.raises(InvalidRequest) as refused:
        parse({"eventBridge": expression}, now=NOW)

    assert (refused.value.field, refused.value.position) == ("eventBridge", position)
    assert reason in refused.value.reason


@pytest.mark.parametrize("expression", ["cron(0 0 30 2 ? *)", "cron(0 0 31W 2 ? *)", "cron(0 0 29 2 ? 2027)"])
def test_an_expression_that_never_fires_is_refused(expression):
    with pytest.raises(InvalidRequest) as refused:
        parse({"eventBridge": expression}, now=NOW)

    assert refused.value.code == "NEVER_FIRES"


def test_a_one_time_instant_in_a_gap_names_both_instants():
    with pytest.raises(InvalidRequest, match=r"2026-03-29T01:00:00Z.*2026-03-29T01:30:00Z"):
        parse({"eventBridge": "at(2026-03-29T02:30:00)", "timezone": "Europe/Berlin"}, now=NOW)


def test_summaries():
    said = {
        text: parse({"eventBridge": text, "timezone": "Europe/Berlin"}, now=NOW).summary
        for text in ("cron(0/15 8-17 ? JAN,JUN 6#3 *)", "cron(0 9 15W * ? 2027-2030)", "cron(0 9 ? * MON-FRI *)")
    }

    assert list(said.values()) == [
        "every 15 minutes from 08:00 to 17:59 on the third Friday of the month in January and June, Europe/Berlin",
        "at 09:00 on the weekday nearest to day 15 from 2027 to 2030, Europe/Berlin",
        "at 09:00 from Monday to Friday, Europe/Berlin",
    ]
