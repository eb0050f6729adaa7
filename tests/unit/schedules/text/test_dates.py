"""Dates of ISO 8601, of RFC 2822 and in formats of their own; moment_js.json has what moment.js 2.30.1 answers."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.text.dates import read_second
from sweephand.schedules.zones.localtime import Gap, zone

THEIRS = json.loads((Path(__file__).parents[1] / "moment_js.json").read_text())
NOW = int(datetime.fromisoformat(THEIRS["now"]).timestamp())  # Wednesday, 2026-03-11T12:34:56Z


def second(value: object, where: str = "UTC", gap: Gap | None = None) -> int:
    return read_second(value, "startTime", NOW, zone(where), gap)


def said(value: object, where: str = "UTC") -> str:
    return datetime.fromtimestamp(second(value, where), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def refusal(value: object) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as refused:
        second(value)
    assert refused.value.code == "INVALID_FIELD"
    return refused.value


def whole(instant: str) -> int:
    """Rounds up: never early."""
    return ceil(datetime.fromisoformat(instant).timestamp())


@pytest.mark.parametrize(("format_", "text", "instant"), THEIRS["tokens"])
def test_a_format_means_what_it_means_in_moment_js(format_, text, instant):
    assert second({"date": text, "format": format_}) == whole(instant)


@pytest.mark.parametrize(("text", "instant"), THEIRS["iso"] + THEIRS["rfc"])
def test_both_standards_are_read_as_moment_js_reads_them(text, instant):
    assert second(text) == second({"date": text}) == whole(instant)


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        # SAP's documentation and the requirements
        ("1994-11-05T08:15:30-05:00", "1994-11-05T13:15:30Z"),
        ("Sat, 05 Nov 1994 08:15:30 GMT", "1994-11-05T08:15:30Z"),
        ({"date": "2015-10-20 04:30 +0000", "format": "YYYY-MM-DD HH:mm Z"}, "2015-10-20T04:30:00Z"),
        ({"date": "2025-10-20 04:30 +0000", "format": "YYYY-MM-DD HH:mm Z"}, "2025-10-20T04:30:00Z"),
        ({"date": "2015-W06-5"}, "2015-02-06T00:00:00Z"),
        ({"date": "1410715640.579", "format": "X"}, "2014-09-14T17:27:21Z"),
        ({"date": "1410715640579", "format": "x"}, "2014-09-14T17:27:21Z"),
        ("Mon,08 Feb 2027 09:30:00 GMT", "2027-02-08T09:30:00Z"),
        ("Mon, 08 (the eighth) Feb 2027 09:30(half past)+0100 (CET (winter))", "2027-02-08T08:30:00Z"),
        ("(date) Mon, 08 Feb 2027 09:30:00 GMT", "2027-02-08T09:30:00Z"),
        ("2013-02-08", "2013-02-08T00:00:00Z"),
        ("2013-W06-5", "2013-02-08T00:00:00Z"),
        ("2013-039", "2013-02-08T00:00:00Z"),
        ("2013-02-08 09+07:00", "2013-02-08T02:00:00Z"),
        # corners
        ("2013-02-08T24:00:00", "2013-02-09T00:00:00Z"),
        ("2013-02-08t09:30:26,123z", "2013-02-08T09:30:27Z"),
        ("  2013-02-08 09:30 +07 ", "2013-02-08T02:30:00Z"),
        ("2020-W53-7", "2021-01-03T00:00:00Z"),
        ("2024-366", "2024-12-31T00:00:00Z"),
        ("5 nov 94 8:15 GMT".replace("8:15", "08:15"), "1994-11-05T08:15:00Z"),
        ("01 Jan 49 00:00:00 PST (Pacific)", "2049-01-01T08:00:00Z"),
        ({"date": "12:05 AM", "format": "h:mm A"}, "2026-03-11T00:05:00Z"),
        ({"date": "21 o'clock", "format": "H [o'clock]"}, "2026-03-11T21:00:00Z"),
        ({"date": "february 29 2028", "format": "MMM D YYYY"}, "2028-02-29T00:00:00Z"),
    ],
)
def test_examples(value, instant):
    assert said(value) == instant


def test_a_date_without_an_offset_is_read_in_the_zone():
    assert said("2027-07-01 09:00", "Europe/Berlin") == "2027-07-01T07:00:00Z"
    assert said("2027-07-01 09:00+00:00", "Europe/Berlin") == "2027-07-01T09:00:00Z"
    assert said({"date": "23:30", "format": "HH:mm"}, "Pacific/Kiritimati") == "2026-03-12T09:30:00Z"


@pytest.mark.parametrize(
    ("format_", "text", "day"),
    [
        ("w e", "1 5", "2027-01-01"),
        ("e", "5", "2027-01-01"),
        ("w e", "2 0", "2027-01-03"),
        ("w", "10", "2027-02-28"),
        ("W", "1", "2025-12-29"),
        ("E", "4", "2026-01-01"),
        ("DDD", "365", "2026-12-31"),
    ],
)
def test_the_sunday_week_of_the_last_days_of_2026_belongs_to_2027(format_, text, day):
    """Weeks are numbered like in moment.js."""
    now = int(datetime(2026, 12, 30, 12, tzinfo=UTC).timestamp())

    assert read_second({"date": text, "format": format_}, "time", now, zone("UTC")) == whole(f"{day}T00:00:00+00:00")


def test_a_time_in_a_gap_needs_a_rule():
    with pytest.raises(InvalidRequest, match=r"2027-03-28T01:00:00Z.*2027-03-28T01:30:00Z"):
        second("2027-03-28 02:30", "Europe/Berlin")

    assert second("2027-03-28 02:30", "Europe/Berlin", Gap.SHIFT) == whole("2027-03-28T01:30:00Z")


@pytest.mark.parametrize(
    ("value", "field", "position", "says"),
    [
        ("2013-02-30", "", 8, "month 2013-02 has no day 30"),
        ("2013-13-01", "", 5, 'month must be 1 to 12, not "13"'),
        ("2013-W54-1", "", 6, 'week must be 1 to 53, not "54"'),
        ("2013-W53-1", "", 6, "2013 has no week 53"),
        ("2013-W06-8", "", 9, 'weekday must be 1 to 7, not "8"'),
        ("2013-366", "", 5, 'day of the year must be 1 to 365, not "366"'),
        ("1969-01-01", "", 0, 'year must be 1970 to 2199, not "1969"'),
        ("9999-12-31T23:59:59-14:00", "", 0, 'year must be 1970 to 2199, not "9999"'),
        ("2199-12-31T23:59:59-14:00", "", 0, "must be in the years 1970 to 2199 in UTC"),
        ("1970-W01-1", "", 0, "must be in the years 1970 to 2199 in UTC"),
        ("2013-02-08T25:00", "", 11, 'hour must be 0 to 24, not "25"'),
        ("2013-02-08T24:01", "", 11, "24:00:00 is the last time of a day"),
        ("2013-02-08T09:60", "", 14, 'minute must be 0 to 59, not "60"'),
        ("2013-02-08T09:30+25:00", "", 16, 'offset hour must be 0 to 23, not "25"'),
        ("2013-02-08T09:30 x", "", 16, "must continue with an offset such as Z, +07:00, +0700 or +07"),
        ("2013-02 09:30", "", 7, "must continue with a day before the time of day after"),
        ("2013", "", 0, "must be a date of ISO 8601 such as 2027-02-08T09:30:00Z or of"),
        ("2013-02-08x", "", 10, "must be a date of ISO 8601 such as 2027-02-08T09:30:00Z or of"),
        ("12", "", 0, "must be a date of ISO 8601 such as 2027-02-08T09:30:00Z or of"),
        ("2025-1-1", "", 0, "must be a date of ISO 8601 such as 2027-02-08T09:30:00Z or of"),
        ("-0001-01-01", "", 0, "must be a date of ISO 8601 such as 2027-02-08T09:30:00Z or of"),
        ("9" * 70, "", 8, "must be a date"),
        ("Sun, 05 Nov 1994 08:15:30 GMT", "", 0, "1994-11-05 is a Sat, not a Sun"),
        ("Sat, 05 Foo 1994 08:15:30 GMT", "", 8, "month must be one of Jan, Feb, Mar, Apr, May, Jun, Jul, Aug,"),
        ("01 Jan 50 00:00:00 GMT", "", 7, 'year must be 1970 to 2199, not "1950"'),
        ("05 Nov 1994 08:15:30 CEST", "", 0, "must be a date of ISO 8601 such as 2027-02-08T09:30:00Z or of"),
        ("05 Nov 1994 08:15:30 CET", "", 21, "offset must be one of UT, GMT, UTC, Z, EDT, EST, CDT, CST, MDT,"),
        ("31 Nov 1994 08:15:30 GMT", "", 0, "has no day 31"),
        ("\u0662\u0660\u0661\u0663-02-08", "", 0, "U+0662"),
        ("2" * 101, "", 100, "must have at most 100 characters, not 101"),
        (5, "", None, "not 5"),
        ({"date": "x"}, ".date", 0, "must be a date"),
        ({"date": "2013", "format": 5}, ".format", None, "must be tokens such as YYYY-MM-DD, not 5"),
        ({"date": 2013, "format": "YYYY"}, ".date", None, "must be a date, not 2013"),
        ({}, ".date", None, "is required"),
        ({"date": "Mon", "format": "ddd"}, ".format", 0, "d does not begin a known token"),
        ({"date": "2013", "format": "y"}, ".format", 0, "y does not begin a known token"),
        ({"date": "2013", "format": "--"}, ".date", 0, 'must begin with "-", not "2013"'),
        ({"date": "--", "format": "--"}, ".format", 0, 'must be tokens such as YYYY-MM-DD, not "--"'),
        ({"date": "2013 2014", "format": "YYYY YYYY"}, ".format", None, "the year is given twice"),
        ({"date": "2013-3", "format": "YYYY-MM-DD"}, ".date", 6, 'must continue with "-" after "2013-3"'),
        ({"date": "2013-3-1 x", "format": "YYYY-MM-DD"}, ".date", 8, 'must end before " x": the format ends there'),
        ({"date": "2013-xx", "format": "YYYY-MM"}, ".date", 5, 'must continue with the month (MM) after "2013-"'),
        ({"date": "13pm", "format": "ha"}, ".date", 0, 'hour must be 1 to 12, not "13"'),
        ({"date": "7", "format": "e"}, ".date", 0, 'weekday must be 0 to 6, not "7"'),
        ({"date": "2013 366", "format": "YYYY DDD"}, ".date", None, "2013 has no day 366"),
        ({"date": "2013-02-30", "format": "YYYY-MM-DD"}, ".date", 0, "has no day 30"),
        ({"date": "2013 53", "format": "GGGG W"}, ".date", None, "2013 has no week 53"),
        ({"date": "24:01", "format": "H:m"}, ".date", None, "24:00:00 is the last"),
        ({"date": "9" * 12, "format": "X"}, "", 0, "must be in the years 1970 to 2199 in UTC"),
    ],
)  # fmt: skip
def test_an_invalid_date_is_refused_with_its_position(value, field, position, says):
    refused = refusal(value)

    assert (refused.field, refused.position) == (f"startTime{field}", position)
    assert says in refused.reason


def test_an_unknown_member_of_a_date_is_refused():
    with pytest.raises(InvalidRequest, match="is not a known member; known are date, format") as refused:
        second({"date": "2013", "more": 1})

    assert (refused.value.field, refused.value.code) == ("startTime.more", "UNKNOWN_MEMBER")


@given(st.dates(date(1971, 1, 1), date(2198, 12, 31)), st.times(), st.integers(-23 * 60, 23 * 60))
def test_dates_printed_by_python_are_read_back(day, time, offset_min):
    time = time.replace(microsecond=0)
    instant = datetime.combine(day, time, tzinfo=UTC)
    wall = instant.timestamp()
    sign, (hours, minutes) = "-" if offset_min < 0 else "+", divmod(abs(offset_min), 60)
    year, week, weekday = day.isocalendar()
    days = (f"{day:%Y-%m-%d}", f"{day:%Y%m%d}", f"{day:%Y-%j}", f"{day:%Y%j}", f"{year}-W{week:02d}-{weekday}")
    texts = [f"{each}T{time:%H:%M:%S}{sign}{hours:02d}:{minutes:02d}" for each in days]
    texts.append(f"{day:%a}, {day.day} {day:%b} {day:%Y} {time:%H:%M:%S} {sign}{hours:02d}{minutes:02d}")

    assert {second(text) for text in texts} == {wall - offset_min * 60}


@given(st.dates(date(1971, 1, 1), date(2198, 12, 31)))
def test_weeks_of_the_sunday_calendar_hold_the_first_of_january(day):
    """Week 1 is the one with 1 January; Sunday is day 0: walked from there."""
    week, at = 1, date.fromordinal(date(day.year, 1, 1).toordinal() - date(day.year, 1, 1).isoweekday() % 7)
    while (day - at).days >= 7:
        week, at = week + 1, date.fromordinal(at.toordinal() + 7)
    text = f"{day.year} {week} {(day - at).days}"

    assert second({"date": text, "format": "gggg w e"}) == datetime.combine(day, datetime.min.time(), UTC).timestamp()


@given(st.text(max_size=30), st.text(max_size=30) | st.none())
def test_any_text_is_read_or_refused(text, format_):
    try:
        second({"date": text, "format": format_})
    except InvalidRequest as refused:
        named = refused.field
    else:
        return

    assert named in ("startTime", "startTime.date", "startTime.format")


@given(st.text("YMDdhHmsSaAZXxgGwWeEQoT-/: [].", max_size=20), st.text("0123456789-:/ apmZT+.", max_size=20))
def test_any_format_is_read_or_refused(format_, text):
    try:
        second({"date": text, "format": format_})
    except InvalidRequest as refused:
        named = refused.field
    else:
        return

    assert named in ("startTime", "startTime.date", "startTime.format")
