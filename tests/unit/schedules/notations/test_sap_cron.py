"""SAP's seven fields against a walk over every minute and second, and example by example."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.notations.sap_cron import parse as parse_text
from sweephand.schedules.rule import between
from sweephand.schedules.timing import Timing, parse
from sweephand.schedules.zones.localtime import LAST_SECOND, to_instant
from tests.support.examples import examples
from tests.unit.schedules import given as some
from tests.unit.schedules.sap_oracle import reads_day, walk

END = to_instant(LAST_SECOND)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
EVERY_HOUR = "* * * * * 0 0"


def sap(text: str, **members: object) -> Timing:
    return parse({"sapCron": text, **members}, now=some.NOW)


def first(text: str, count: int, after: datetime = some.NOW, **members: object) -> list[str]:
    return [f"{at:%Y-%m-%d %H:%M:%S}" for at in between(sap(text, **members).rule, after, END, count)]


def refusal(text: str) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as refused:
        sap(text)
    assert refused.value.field == "sapCron"
    return refused.value


@examples(250)
@given(text=some.sap_crons, name=some.zones, gap=some.gaps, overlap=some.overlaps, data=st.data())
def test_a_walk_over_every_minute_and_its_seconds_finds_the_same_instants(text, name, gap, overlap, data):
    begin = to_instant(data.draw(some.seconds(name, 10**8, LAST_SECOND - 10**6)) // 60 * 60)
    end = begin + DAY / 2
    assume(parse_text(text).days.ever())
    rule = some.parse_acting({"sapCron": text, "timezone": name, "dstGap": gap, "dstOverlap": overlap}).rule

    expected = walk(text, name, gap, overlap, begin, end)

    assert between(rule, begin - SECOND, end, 50_000) == expected
    assert rule.last_until(end) in (expected[-1:] or [rule.last_until(begin - SECOND)])


@examples(150)
@given(st.one_of(some.sap_crons.map(lambda text: text.split()[2:4])), st.integers(0, 229 * 365))
def test_the_days_of_a_year_are_those_that_both_fields_admit(fields, day):
    begin = datetime(1970, 1, 1, tzinfo=UTC) + day * DAY
    text = f"* * {fields[0]} {fields[1]} 0 0 0"
    assume(parse_text(text).days.ever())

    expected = [at for n in range(1, 366) if reads_day(*fields, at := begin + n * DAY)]

    assert between(sap(text).rule, begin, begin + 365 * DAY, 400) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # SAP's documentation, table of examples
        ("* * * * 10:12 */30 0", ["2026-03-07 12:30:00", "2026-03-08 10:00:00", "2026-03-08 10:30:00"]),
        ("* * 3:-2 * 12:14 0 0", ["2026-03-07 13:00:00", "2026-03-07 14:00:00", "2026-03-08 12:00:00"]),
        ("* * * -1.sun 9 0 0", ["2026-03-29 09:00:00", "2026-04-26 09:00:00", "2026-05-31 09:00:00"]),
        ("* */3 10 * 9 0 0", ["2026-03-10 09:00:00", "2026-06-10 09:00:00", "2026-09-10 09:00:00"]),
        ("* 3,6,9,12 10 * 9 0 0", ["2026-03-10 09:00:00", "2026-06-10 09:00:00", "2026-09-10 09:00:00"]),
        # the requirements
        ("* * * * 9 0 0", ["2026-03-08 09:00:00", "2026-03-09 09:00:00"]),
        ("* * * mon 10 0 0", ["2026-03-09 10:00:00", "2026-03-16 10:00:00"]),
        ("* * * * */2 0 0", ["2026-03-07 14:00:00", "2026-03-07 16:00:00"]),
        ("* * * * 10:12 0 0", ["2026-03-08 10:00:00", "2026-03-08 11:00:00", "2026-03-08 12:00:00"]),
        ("* * * * 10:12/2 0 0", ["2026-03-08 10:00:00", "2026-03-08 12:00:00", "2026-03-09 10:00:00"]),
        ("* * * mon,wed,fri 9 0 0", ["2026-03-09 09:00:00", "2026-03-11 09:00:00", "2026-03-13 09:00:00"]),
        ("* 1,4,7,10 1 * 0 0 0", ["2026-04-01 00:00:00", "2026-07-01 00:00:00", "2026-10-01 00:00:00"]),
        ("* * * * 9 30 0", ["2026-03-08 09:30:00", "2026-03-09 09:30:00"]),
        ("* * 15 * 18 0 0", ["2026-03-15 18:00:00", "2026-04-15 18:00:00"]),
        # steps: */n is what n divides, a:b/n counts from a
        ("* * */10 * 0 0 0", ["2026-03-10 00:00:00", "2026-03-20 00:00:00", "2026-03-30 00:00:00"]),
        ("* * 1:31/10 * 0 0 0", ["2026-03-11 00:00:00", "2026-03-21 00:00:00", "2026-03-31 00:00:00"]),
        ("*/4 2 29 * 0 0 0", ["2028-02-29 00:00:00", "2032-02-29 00:00:00"]),
        ("2027:2031/2 1 1 * 0 0 0", ["2027-01-01 00:00:00", "2029-01-01 00:00:00", "2031-01-01 00:00:00"]),
        ("* * * */2 0 0 0", ["2026-03-10 00:00:00", "2026-03-12 00:00:00", "2026-03-14 00:00:00"]),
        ("* * * * * * */20", ["2026-03-07 12:00:20", "2026-03-07 12:00:40", "2026-03-07 12:01:00"]),
        ("* * * * * */90 7", ["2026-03-07 12:00:07", "2026-03-07 13:00:07"]),
        # days from the end of the month
        ("* * -1 * 0 0 0", ["2026-03-31 00:00:00", "2026-04-30 00:00:00", "2026-05-31 00:00:00"]),
        ("* * -31 * 0 0 0", ["2026-05-01 00:00:00", "2026-07-01 00:00:00", "2026-08-01 00:00:00"]),
        ("* 2 15:-14 * 0 0 0", ["2027-02-15 00:00:00", "2028-02-15 00:00:00", "2028-02-16 00:00:00"]),
        ("2027 2 3:-2 * 0 0 0", [f"2027-02-{day:02d} 00:00:00" for day in range(3, 28)]),
        ("* * -10:-1/4 * 0 0 0", ["2026-03-22 00:00:00", "2026-03-26 00:00:00", "2026-03-30 00:00:00"]),
        # weekdays
        ("* * * sat:mon 0 0 0", ["2026-03-08 00:00:00", "2026-03-09 00:00:00", "2026-03-14 00:00:00"]),
        ("* * * fri:tue/2 0 0 0", ["2026-03-08 00:00:00", "2026-03-10 00:00:00", "2026-03-13 00:00:00"]),
        ("* * * 5.fri 0 0 0", ["2026-05-29 00:00:00", "2026-07-31 00:00:00", "2026-10-30 00:00:00"]),
        ("* * * -5.mon 0 0 0", ["2026-03-02 00:00:00", "2026-06-01 00:00:00"][1:]),
        ("* * * 1.mon,-1.FRI,Wed 0 0 0", ["2026-03-11 00:00:00", "2026-03-18 00:00:00", "2026-03-25 00:00:00"]),
        ("* * 13 fri 0 0 0", ["2026-03-13 00:00:00", "2026-11-13 00:00:00", "2027-08-13 00:00:00"]),
        ("* 2 29 mon 0 0 0", ["2044-02-29 00:00:00", "2072-02-29 00:00:00"]),
        # forms
        ("  *  *\t* * 09 05 00 ", ["2026-03-08 09:05:00"]),
        ("* * * * 9,9,9:9 0 0,0", ["2026-03-08 09:00:00", "2026-03-09 09:00:00"]),
    ],
)
def test_an_expression_fires_when_it_says(text, expected):
    assert first(text, len(expected)) == expected


def test_every_friday_of_2015_at_noon():
    friday, december = datetime(2014, 12, 1, tzinfo=UTC), datetime(2015, 12, 20, tzinfo=UTC)

    assert first("2015 * * fri 12 0 0", 2, friday) == ["2015-01-02 12:00:00", "2015-01-09 12:00:00"]
    assert first("2015 * * fri 12 0 0", 2, december) == ["2015-12-25 12:00:00"]


def test_the_line_of_six_fields_is_refused_and_shown_with_seven():
    refused = refusal("* * * 10:12 */30 0")

    assert refused.position == 18
    assert "Year Month Day DayOfWeek Hour Minute Second" in refused.reason
    assert 'did you mean "* * * * 10:12 */30 0"?' in refused.reason


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("* * 32 * 0 0 0", 4, 'day must be -31 to -1, or 1 to 31, not "32"'),
        ("* * -32 * 0 0 0", 4, 'day must be -31 to -1, or 1 to 31, not "-32"'),
        ("* * 0 * 0 0 0", 4, 'day must be -31 to -1, or 1 to 31, not "0"'),
        ("* 13 * * 0 0 0", 2, 'month must be 1 to 12, not "13"'),
        ("* -1 * * 0 0 0", 2, 'month must be 1 to 12, not "-1"'),
        ("* * * * 24 0 0", 8, 'hour must be 0 to 23, not "24"'),
        ("* * * * 0 60 0", 10, 'minute must be 0 to 59, not "60"'),
        ("* * * * 0 0 1,2,60", 16, 'second must be 0 to 59, not "60"'),
        ("1969 * * * 0 0 0", 0, 'year must be 1970 to 2199, not "1969"'),
        ("99999999999999999999 * * * 0 0 0", 0, 'year must be 1970 to 2199, not "99999999999999999999"'),
        ("* * * * 5:99 0 0", 10, 'hour must be 0 to 23, not "99"'),
        ("* * * * 12:10 0 0", 8, 'hour: the range "12:10" runs backwards'),
        ("* * 20:10 * 0 0 0", 4, 'day: the range "20:10" runs backwards'),
        ("* * -1:-5 * 0 0 0", 4, 'day: the range "-1:-5" runs backwards'),
        ("* * -3:2 * 0 0 0", 4, 'day: the range "-3:2" runs backwards'),
        ("* * * * */0 0 0", 10, 'the step of hour must be 1 or more, not "0"'),
        ("* * * * 0:9/0 0 0", 12, 'the step of hour must be 1 or more, not "0"'),
        ("* */13 * * 0 0 0", 4, 'the step of month must be at most 12, not "13"'),
        ("* * * */8 0 0 0", 8, 'the step of dayOfWeek must be at most 7, not "8"'),
        ("* * * 6.fri 0 0 0", 6, 'the number before fri must be 1 to 5, or -5 to -1, not "6"'),
        ("* * * mon,0.fri 0 0 0", 10, 'the number before fri must be 1 to 5, or -5 to -1, not "0"'),
        ("* * * 1.foo 0 0 0", 8, "dayOfWeek must be one of mon, tue, wed, thu, fri, sat, sun, not"),
        ("* * * mon:foo 0 0 0", 10, "dayOfWeek must be one of mon, tue, wed, thu, fri, sat, sun, not"),
        ("* * * 1 0 0 0", 6, "dayOfWeek must be *, */n, one of mon, tue, wed, thu, fri, sat,"),
        ("* * * mon-fri 0 0 0", 6, "dayOfWeek must be *, */n, one of mon, tue, wed, thu, fri, sat,"),
        ("* * * monday 0 0 0", 6, "dayOfWeek must be *, */n, one of mon, tue, wed, thu, fri, sat,"),
        ("* * 1-5 * 0 0 0", 4, "day must be *, */n, a number from -31 to 31, a:b or a:b/n, not"),
        ("* jan * * 0 0 0", 2, "month must be *, */n, a number from 1 to 12, a:b or a:b/n, not"),
        ("* * L * 0 0 0", 4, "day must be *, */n, a number from -31 to 31, a:b or a:b/n, not"),
        ("* * 15W * 0 0 0", 4, "day must be *, */n, a number from -31 to 31, a:b or a:b/n, not"),
        ("* * * 6#3 0 0 0", 6, "dayOfWeek must be *, */n, one of mon, tue, wed, thu, fri, sat,"),
        ("* * * ? 0 0 0", 6, "dayOfWeek must be *, */n, one of mon, tue, wed, thu, fri, sat,"),
        ("* * 1.fri * 0 0 0", 4, "day must be *, */n, a number from -31 to 31, a:b or a:b/n, not"),
        ("* * * * 8/2 0 0", 8, "hour must be *, */n, a number from 0 to 23, a:b or a:b/n, not"),
        ("* * * * *:5 0 0", 8, "hour must be *, */n, a number from 0 to 23, a:b or a:b/n, not"),
        ("* * * * ,5 0 0", 8, 'hour must be *, */n, a number from 0 to 23, a:b or a:b/n, not ""'),
        ("* * * * 5, 0 0", 10, 'hour must be *, */n, a number from 0 to 23, a:b or a:b/n, not ""'),
        ("* * * * 0 0", 11, 'did you mean "* * * * 0 0 0" or "* * * * * 0 0"?'),
        ("* * * * 10:12 */30", 18, 'did you mean "* * * * 10:12 */30 0" or "* * * * * 10:12 */30"?'),
        ("* * * mon 25 0", 14, 'must be seven fields "Year Month Day DayOfWeek Hour Minute'),
        ("0 0 12 * * ?", 12, 'must be seven fields "Year Month Day DayOfWeek Hour Minute'),
        ("* * * * 4", 9, 'must be seven fields "Year Month Day DayOfWeek Hour Minute'),
        ("@daily", 6, 'must be seven fields "Year Month Day DayOfWeek Hour Minute'),
        ("* * * * 0 0 0 0", 14, 'must be seven fields "Year Month Day DayOfWeek Hour Minute'),
        ("* * * * \u0663 0 0", 8, "U+0663"),
    ],
)
def test_text_outside_the_grammar_is_refused_with_its_position(text, position, says):
    refused = refusal(text)

    assert (refused.code, refused.position) == ("INVALID_FIELD", position)
    assert says in refused.reason
    assert len(refused.reason) < 400


@pytest.mark.parametrize(
    "text",
    ["* 2 30 * 0 0 0", "* 4,6,9,11 31 * 0 0 0", "2027 2 29 * 0 0 0", "* 2 1:7 5.fri 0 0 0", "2100 2 -29 * 0 0 0"],
)
def test_an_expression_that_never_fires_is_refused(text):
    assert refusal(text).code == "NEVER_FIRES"


def test_a_text_of_50_000_characters_is_refused_for_its_length():
    assert "at most 1,000" in refusal("* " * 25_000).reason


def test_berlin_loses_and_duplicates_no_day_unless_the_schedule_says_so():
    text, zone = "* * * * 2 30 15", {"timezone": "Europe/Berlin"}
    spring, autumn = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)

    assert first(text, 1, spring, **zone) == ["2026-03-29 01:00:00"]
    assert first(text, 1, spring, **zone, dstGap="shift") == ["2026-03-29 01:30:15"]
    assert first(text, 1, spring, **zone, dstGap="skip") == ["2026-03-30 00:30:15"]
    assert first(text, 2, autumn, **zone) == ["2026-10-25 00:30:15", "2026-10-26 01:30:15"]
    both = ["2026-10-25 00:30:15", "2026-10-25 01:30:15"]
    assert first(text, 2, autumn, **zone, dstOverlap="both") == both


@pytest.mark.parametrize("text", ["* * * * * */30 0", "* * * * */1 0:59/30 0"])
def test_a_series_of_half_hours_runs_through_both_changes(text):
    for day in (datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)):
        halves = [f"{day + n * timedelta(minutes=30):%Y-%m-%d %H:%M:%S}" for n in range(1, 49)]
        assert first(text, 48, day, timezone="Europe/Berlin") == halves


def test_an_occurrence_after_a_gap_can_follow_within_a_second():
    timing = sap("* * * * 2:3 0 1", timezone="Europe/Berlin")

    found = between(timing.rule, datetime(2026, 3, 28, 12, tzinfo=UTC), END, 2)

    assert [f"{at:%H:%M:%S}" for at in found] == ["01:00:00", "01:00:01"]
    assert timing.interval_s == 1


@pytest.mark.parametrize(
    "half_hours",
    [
        {"sapCron": "* * * * * 30,45,55 0"},
        {"cron": "30,45,55 * * * *"},
        {"eventBridge": "cron(30,45,55 * * * ? *)"},
    ],
)
def test_a_clock_that_goes_back_by_half_an_hour_brings_readings_closer_together(half_hours):
    timing = parse({**half_hours, "timezone": "Australia/Lord_Howe"}, now=some.NOW)
    day = between(timing.rule, datetime(2026, 4, 4, tzinfo=UTC), datetime(2026, 4, 5, tzinfo=UTC), 200)

    assert min(later - at for at, later in pairwise(day)) == timedelta(seconds=timing.interval_s)
    assert timing.interval_s == 300


def test_the_packed_form_is_the_text():
    assert sap(" * * *  -1.SUN 9 0 0").packed == '{"sapCron":"* * * -1.sun 9 0 0"}'


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("* * * * 9 0 0", "at 09:00, {}"),
        ("* * * -1.sun 9 0 30", "at 09:00:30 on the last Sunday of the month, {}"),
        ("2027:2029 * 3:-2 * 12 0 0", "at 12:00 on day 3 to the second-to-last day of the month from 2027 to 2029, {}"),
        (
            "* */6 10 * * 0,30 */10",
            "every 10 seconds of minutes 0 and 30 on day 10 of the month in June and December, {}",
        ),
        ("* * 13 fri 8:17 * *", "every second from 08:00 to 17:59 on day 13 of the month if it is a Friday, {}"),
        (
            "* * -7:-1 -1.mon 0 0 0",
            "at 00:00 on the 7th-to-last day to the last day of the month if it is the last Monday of the month, {}",
        ),
        ("* * 1:-1 * 0 0 0", "at 00:00, {}"),
        (
            "* * * mon:fri,1.sat * * 5",
            "at second 5 of every minute on Monday to Friday and the first Saturday of the month, {}",
        ),
        (
            "* * -21:-1/2 * 0 0 0",
            "at 00:00 on every second day from the 21st-to-last day to the last day of the month, {}",
        ),
    ],
)
def test_a_summary_says_what_fires(text, summary):
    assert sap(text, timezone="Europe/Berlin").summary == summary.format("Europe/Berlin")
