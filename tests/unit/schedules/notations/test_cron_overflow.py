"""Dates of a cron that a month lacks, against a walk over all months; and where there is no such rule."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.explain.preview_warnings import cautions
from sweephand.schedules.rule import between
from sweephand.schedules.timing import load, parse
from sweephand.schedules.zones.localtime import to_instant

NOW = datetime(2027, 1, 1, tzinfo=UTC)
ON_THE_31ST = {"recurrence": {"frequency": "month", "schedule": {"monthDays": [31]}}}
SUNDAY_FIRST = [6, 0, 1, 2, 3, 4, 5]


def days_of(dates: set[int], months: set[int], weekdays: set[int], overflow: str) -> list[date]:
    """Returns the days of 2027 and 2028. weekdays: as of cron, 0 is Sunday; none: any. With both, either is enough."""
    found = set()
    for month in [(year, month) for year in (2026, 2027, 2028) for month in range(1, 13) if month in months]:
        length = monthrange(*month)[1]
        for day in dates:
            if day <= length:
                found.add(date(*month, day))
            elif overflow == "clamp":
                found.add(date(*month, length))
            elif overflow == "next":
                found.add(date(*month, length) + timedelta(days=1))
        found |= {
            date(*month, day)
            for day in range(1, length + 1)
            if date(*month, day).weekday() in {SUNDAY_FIRST[each] for each in weekdays}
        }
    return sorted(day for day in found if date(2027, 1, 1) < day <= date(2028, 12, 31))


@given(
    st.sets(st.sampled_from([1, 15, 28, 29, 30, 31]), min_size=1, max_size=3),
    st.sets(st.integers(1, 12), min_size=1, max_size=12),
    st.sets(st.integers(0, 6), max_size=2),
    st.sampled_from(["skip", "clamp", "next"]),
)
def test_dates_that_a_month_lacks_move_as_the_schedule_says(
    dates: set[int], months: set[int], weekdays: set[int], overflow: str
) -> None:
    words = [",".join(map(str, sorted(each))) or "*" for each in (dates, months, weekdays)]
    fields = {"cron": f"0 9 {words[0]} {words[1]} {words[2]}", "monthOverflow": overflow}
    wanted = days_of(dates, months, weekdays, overflow)
    if overflow == "skip" and not wanted and max(dates) > 28:
        return  # it may never fire

    timing = parse(fields, now=NOW)

    found = between(timing.rule, NOW + timedelta(days=1), datetime(2029, 1, 1, tzinfo=UTC), 10_000)
    assert [each.date() for each in found if each.date() > date(2027, 1, 1)] == wanted
    assert load(timing.packed).rule == timing.rule


@pytest.mark.parametrize(
    ("cron", "overflow", "wanted"),
    [
        ("0 9 31 * *", "clamp", ["01-31", "02-28", "03-31", "04-30"]),
        ("0 9 31 * *", "next", ["01-31", "03-01", "03-31", "05-01"]),
        ("0 9 31 * *", "skip", ["01-31", "03-31", "05-31", "07-31"]),
        ("0 9 30 2 *", "clamp", ["02-28", "02-29", "02-28", "02-28"]),
        ("0 9 29-31 2 *", "next", ["03-01", "02-29", "03-01", "03-01"]),
        ("0 9 31 * */2", "next", ["01-31", "05-01", "07-01", "07-31"]),
        ("0 9 30 2 1", "clamp", ["02-01", "02-08", "02-15", "02-22"]),
        ("0 9 * 2 *", "next", ["02-01", "02-02", "02-03", "02-04"]),
        ("0 9 * 2 1", "next", ["02-01", "02-08", "02-15", "02-22"]),
        ("@monthly", "clamp", ["02-01", "03-01", "04-01", "05-01"]),
    ],
)
def test_the_first_four_occurrences_follow_the_overflow_rule(cron: str, overflow: str, wanted: list[str]) -> None:
    timing = parse({"cron": cron, "monthOverflow": overflow}, now=NOW)

    assert [f"{each:%m-%d}" for each in between(timing.rule, NOW, to_instant(2_500_000_000), 4)] == wanted


def test_the_summary_names_the_overflow_rule_and_no_missing_day() -> None:
    clamped = parse({"cron": "0 9 31 * *", "monthOverflow": "clamp"}, now=NOW)
    moved = parse({"cron": "0 9 31 * *", "monthOverflow": "next"}, now=NOW)
    skipped = parse({"cron": "0 9 31 * *", "monthOverflow": "skip"}, now=NOW)

    assert clamped.summary == "at 09:00 on day 31 of the month; a month without such a day has its last one"
    assert moved.summary == "at 09:00 on day 31 of the month; for a month without such a day, the first of the next"
    assert skipped.summary == "at 09:00 on day 31 of the month"
    assert [each.code for each in cautions(clamped, NOW)] == []
    assert [each.code for each in cautions(skipped, NOW)] == ["SOME_MONTHS_LACK_THE_DAY"]
    assert clamped.interval_s == 28 * 86_400


@pytest.mark.parametrize("overflow", ["clamp", "next"])
@pytest.mark.parametrize(
    "cron", ["0 9 * * *", "0 9 * * 1", "0 9 1 * *", "0 9 31 1,3 *", "0 9 31 * 0-6", "0 9 1-31 * *", "@monthly"]
)
def test_the_summary_mentions_missing_days_only_if_there_are_any(cron: str, overflow: str) -> None:
    timing = parse({"cron": cron, "monthOverflow": overflow}, now=NOW)

    assert timing.summary == parse({"cron": cron}, now=NOW).summary


LAST, FIRST, NONE = (
    "; a month without such a day has its last one",
    "; for a month without such a day, the first of the next",
    "; a month without such a day has none",
)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"cron": "0 9 30 2 *", "monthOverflow": "clamp"}, f"at 09:00 on day 30 of the month in February{LAST}"),
        (
            {"cron": "0 9 31 4 1", "monthOverflow": "next"},
            f"at 09:00 on day 31 of the month or on Monday in April{FIRST}",
        ),
        ({"every": "P1M"}, f"every month from 2027-01-31T09:00:00, UTC{LAST}"),
        ({"every": "P1M", "monthOverflow": "next"}, f"every month from 2027-01-31T09:00:00, UTC{FIRST}"),
        ({"every": "P1M", "monthOverflow": "skip"}, f"every month from 2027-01-31T09:00:00, UTC{NONE}"),
        ({"every": "P1Y", "monthOverflow": "skip"}, "every year from 2027-01-31T09:00:00, UTC"),
        (
            {"every": "R3/2027-01-31T09:00:00Z/P1M"},
            f"every month from 2027-01-31T09:00:00Z until 2027-03-31T09:00:00Z{LAST}",
        ),
        ({"recurrence": {"frequency": "month"}}, f"every month from 2027-01-31T09:00:00, UTC{LAST}"),
        ({"recurrence": {"frequency": "year"}}, "every year from 2027-01-31T09:00:00, UTC"),
        ({"recurrence": {"frequency": "week"}}, "every week from 2027-01-31T09:00:00, UTC"),
        ({"recurrence": {"frequency": "month", "interval": 12}}, "every 12 months from 2027-01-31T09:00:00, UTC"),
        (ON_THE_31ST, f"at 09:00 on day 31 of the month{NONE}"),
        ({**ON_THE_31ST, "monthOverflow": "clamp"}, f"at 09:00 on day 31 of the month{LAST}"),
        ({**ON_THE_31ST, "monthOverflow": "next"}, f"at 09:00 on day 31 of the month{FIRST}"),
        (
            {"recurrence": {"frequency": "month", "schedule": {"monthDays": [28, -1]}}, "monthOverflow": "next"},
            "at 09:00 on day 28 and the last day of the month",
        ),
    ],
)
def test_a_summary_says_what_becomes_of_a_missing_day(fields: dict[str, object], wanted: str) -> None:
    start = (
        {}
        if "cron" in fields or str(fields.get("every", "")).startswith("R")
        else {"startTime": "2027-01-31T09:00:00Z"}
    )

    assert parse({**start, **fields}, now=NOW).summary == wanted


@pytest.mark.parametrize("overflow", ["clamp", "next"])
@pytest.mark.parametrize(
    "fields",
    [
        {"cron": "0 9 */2 * *"},
        {"eventBridge": "cron(0 9 31 * ? *)"},
        {"eventBridge": "rate(1 hour)"},
        {"sapCron": "* * 31 * 9 0 0"},
        {"rrule": "FREQ=MONTHLY;BYMONTHDAY=31"},
        {"repeatAt": "18.40"},
        {"at": "2027-01-31T09:00:00Z"},
        {"time": "tomorrow at 4pm"},
    ],
    ids=str,
)
def test_an_overflow_rule_without_effect_is_refused(fields: dict[str, str], overflow: str) -> None:
    with pytest.raises(InvalidRequest, match=r"acts on") as refused:
        parse({**fields, "monthOverflow": overflow}, now=NOW)

    assert refused.value.field == "monthOverflow"
    assert parse({**fields, "monthOverflow": "skip"}, now=NOW).packed
