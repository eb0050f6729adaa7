"""`time` in words, `repeatAt` and the texts of SAP's repeatInterval."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.rule import between
from sweephand.schedules.text.duration import read_interval
from sweephand.schedules.timing import load, parse
from sweephand.schedules.zones.localtime import LAST_SECOND, to_instant
from tests.unit.schedules import given as some
from tests.unit.schedules.oracle import zone_info

NOW = datetime(2026, 3, 11, 12, 34, 56, tzinfo=UTC)  # a Wednesday
END = to_instant(LAST_SECOND)
PACKAGE = str(Path(__file__).parents[4] / "layers" / "sweephand" / "python")
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def once(text: object, now: datetime = NOW, **members: object) -> str:
    timing = parse({"time": text, **members}, now=now)
    at = timing.rule.last_until(END)
    assert at is not None
    assert not timing.recurring
    return at.strftime("%Y-%m-%d %H:%M:%S")


def refusal(field: str, value: object, now: datetime = NOW, **members: object) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as refused:
        parse({field: value, **members}, now=now)
    return refused.value


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # SAP's documentation and the requirements
        ("10 hours from now", "2026-03-11 22:34:56"),
        ("20 minutes from now", "2026-03-11 12:54:56"),
        ("in 2 hours", "2026-03-11 14:34:56"),
        ("tomorrow at 4pm", "2026-03-12 16:00:00"),
        ("tomorrow at 2am", "2026-03-12 02:00:00"),
        ("next week monday at 5am", "2026-03-16 05:00:00"),
        ("Friday at 2am", "2026-03-13 02:00:00"),
        ("9pm tonight", "2026-03-11 21:00:00"),
        ("3.30pm", "2026-03-11 15:30:00"),
        ("now", "2026-03-11 12:34:56"),
        ("next week", "2026-03-18 12:34:56"),
        # amounts
        ("in 1 second", "2026-03-11 12:34:57"),
        ("5 mins from now", "2026-03-11 12:39:56"),
        ("in 5 min", "2026-03-11 12:39:56"),
        ("in 1 hr 30min", "2026-03-11 14:04:56"),
        ("2 hrs and 10 secs from now", "2026-03-11 14:35:06"),
        ("in an hour", "2026-03-11 13:34:56"),
        ("In A Minute", "2026-03-11 12:35:56"),
        ("a minute from now", "2026-03-11 12:35:56"),
        ("an hour and 5 mins from now", "2026-03-11 13:39:56"),
        ("in a week at 4pm", "2026-03-18 16:00:00"),
        ("in 3 days", "2026-03-14 12:34:56"),
        ("2 weeks from now", "2026-03-25 12:34:56"),
        ("1 month from now", "2026-04-11 12:34:56"),
        ("in 1 year", "2027-03-11 12:34:56"),
        ("in 2 hours and 5 minutes", "2026-03-11 14:39:56"),
        ("1 day 2 hours from now", "2026-03-12 14:34:56"),
        ("in 2 days at 4pm", "2026-03-13 16:00:00"),
        ("2015 seconds from now", "2026-03-11 13:08:31"),
        ("12345 seconds from now", "2026-03-11 16:00:41"),
        # days and times
        ("tomorrow", "2026-03-12 12:34:56"),
        ("today at 16:30", "2026-03-11 16:30:00"),
        ("today at 9am", "2026-03-11 09:00:00"),
        ("tonight at 20.15", "2026-03-11 20:15:00"),
        ("noon", "2026-03-12 12:00:00"),
        ("tomorrow at midnight", "2026-03-12 00:00:00"),
        ("11.30am", "2026-03-12 11:30:00"),
        ("12:34:56", "2026-03-11 12:34:56"),
        ("wednesday at 2am", "2026-03-18 02:00:00"),
        ("wednesday at 5pm", "2026-03-11 17:00:00"),
        ("wednesday", "2026-03-18 12:34:56"),
        ("next wednesday at 5pm", "2026-03-18 17:00:00"),
        ("next friday", "2026-03-13 12:34:56"),
        ("5pm on FRI", "2026-03-13 17:00:00"),
        ("this sun at 5 p.m.", "2026-03-15 17:00:00"),
        ("monday next week at 5am", "2026-03-16 05:00:00"),
        ("next week on sunday at 5am", "2026-03-22 05:00:00"),
        ("next month at 8:00", "2026-04-11 08:00:00"),
        ("next year", "2027-03-11 12:34:56"),
        ("  Tomorrow   AT\t4PM  ", "2026-03-12 16:00:00"),
    ],
)
def test_words_name_an_instant(words, expected):
    assert once(words) == expected


def test_a_month_that_is_too_short_gives_its_last_day():
    assert once("1 month from now", datetime(2027, 1, 31, 9, tzinfo=UTC)) == "2027-02-28 09:00:00"
    assert once("next year", datetime(2028, 2, 29, 9, tzinfo=UTC)) == "2029-02-28 09:00:00"


def test_words_are_read_by_the_clock_of_the_zone():
    assert once("tomorrow at 4pm", timezone="America/New_York") == "2026-03-12 20:00:00"
    late = datetime(2026, 3, 11, 23, 30, tzinfo=UTC)
    assert once("tomorrow at 4pm", late, timezone="Europe/Berlin") == "2026-03-13 15:00:00"
    assert once("in 2 hours", datetime(2026, 3, 29, 0, 30, tzinfo=UTC), timezone="Europe/Berlin") == (
        "2026-03-29 02:30:00"
    )


def test_a_day_that_is_longer_or_shorter_keeps_the_time_of_day():
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)

    assert once("tomorrow", before, timezone="Europe/Berlin") == "2026-03-29 11:00:00"
    assert once("in 24 hours", before, timezone="Europe/Berlin") == "2026-03-29 12:00:00"


def test_a_wall_time_in_a_gap_is_refused_with_both_instants_unless_a_rule_is_stated():
    saturday = datetime(2026, 3, 28, 12, tzinfo=UTC)
    refused = refusal("time", "tomorrow at 2.30am", saturday, timezone="Europe/Berlin")

    assert refused.field == "time"
    assert "2026-03-29T01:00:00Z" in refused.reason
    assert "2026-03-29T01:30:00Z" in refused.reason
    berlin = {"timezone": "Europe/Berlin", "dstGap": "shift"}
    assert once("tomorrow at 2.30am", saturday, **berlin) == "2026-03-29 01:30:00"


def test_a_repeated_wall_time_is_refused_with_both_instants_unless_a_rule_is_stated():
    saturday = datetime(2026, 10, 24, 12, tzinfo=UTC)
    refused = refusal("time", "tomorrow at 2.30am", saturday, timezone="Europe/Berlin")

    assert "2026-10-25T00:30:00Z" in refused.reason
    assert "2026-10-25T01:30:00Z" in refused.reason
    assert once("tomorrow at 2.30am", saturday, timezone="Europe/Berlin", dstOverlap="second") == "2026-10-25 01:30:00"
    both = refusal("time", "tomorrow at 2.30am", saturday, timezone="Europe/Berlin", dstOverlap="both")
    assert "one instant" in both.reason


@pytest.mark.parametrize(
    ("overlap", "now", "words", "expected"),
    [
        ("second", "00:45", "2.30am", "2026-10-25 01:30:00"),  # it is the first 02:45
        ("second", "00:45", "sunday at 2.30am", "2026-10-25 01:30:00"),
        ("second", "01:30", "2.30am", "2026-10-25 01:30:00"),
        ("second", "01:31", "2.30am", "2026-10-26 01:30:00"),
        ("first", "00:45", "2.30am", "2026-10-26 01:30:00"),
        ("first", "01:15", "2.30am", "2026-10-26 01:30:00"),  # the second 02:15: the first 02:30 is over
        ("first", "01:15", "sunday at 2.30am", "2026-11-01 01:30:00"),
        ("first", "00:15", "2.30am", "2026-10-25 00:30:00"),
    ],
)
def test_a_repeated_time_is_in_the_future_while_the_chosen_copy_is(overlap, now, words, expected):
    instant = datetime.fromisoformat(f"2026-10-25T{now}:00+00:00")

    assert once(words, instant, timezone="Europe/Berlin", dstOverlap=overlap) == expected


def test_a_repeated_time_with_one_copy_in_the_future_is_refused_without_a_rule():
    within = datetime(2026, 10, 25, 0, 45, tzinfo=UTC)

    refused = refusal("time", "2.30am", within, timezone="Europe/Berlin")

    assert "2026-10-25T00:30:00Z and at 2026-10-25T01:30:00Z" in refused.reason


@pytest.mark.parametrize(
    ("words", "position", "says"),
    [
        ("soon", 0, 'must be words such as "in 2 hours", "tomorrow at 4pm", "next'),
        ("in two hours", 3, 'must continue with a number in digits after "in", not "two'),
        ("in 2 fortnights", 5, "must continue with one of seconds, minutes, hours, days, weeks,"),
        ("in -2 hours", 3, 'must continue with a number in digits after "in", not "-2'),
        ("2 hours", 7, 'must continue with "from now" after "2 hours"'),
        ("an hour", 7, 'must continue with "from now" after "an hour"'),
        ("in a", 4, "must continue with one of seconds, minutes, hours, days, weeks,"),
        ("in 5 m", 5, "must continue with one of seconds, minutes, hours, days, weeks,"),
        ("a friday", 0, 'must be words such as "in 2 hours", "tomorrow at 4pm", "next'),
        ("2 hours ago", 8, 'must continue with "from now" after "2 hours", not "ago"'),
        ("in 2 hours at 4pm", 11, "a time of day needs whole days"),
        ("in 2 days at noonish", 13, "must continue with a time of day such as 4.40pm, 18:40 or"),
        ("in 99999999999999999999 seconds", 3, "lies after the year 2199"),
        ("in 301 years", 3, "lies after the year 2199"),
        ("in 300 years", 0, "must be in the years 1970 to 2199 in UTC"),
        ("tomorrow at 4", 12, "must continue with a time of day such as 4.40pm, 18:40 or"),
        ("tomorrow at", 11, "must continue with a time of day such as 4.40pm, 18:40 or"),
        ("tomorrow at 16pm", 12, 'hour must be 1 to 12, not "16"'),
        ("tomorrow at 0am", 12, 'hour must be 1 to 12, not "0"'),
        ("tomorrow at 4.60pm", 14, 'minute must be 0 to 59, not "60"'),
        ("tomorrow at 24:00", 12, 'hour must be 0 to 23, not "24"'),
        ("tomorrow at 4pm sharp", 16, "must continue with a time of day such as 4.40pm, 18:40 or"),
        ("tomorrow friday", 9, "must continue with a time of day such as 4.40pm, 18:40 or"),
        ("4pm 5pm", 4, 'must continue with a day such as tomorrow after "4pm", not'),
        ("tonight", 0, '"9pm tonight"'),
        ("2am tonight", 0, '"9pm tonight"'),
        ("midnight tonight", 0, '"tomorrow at 12am"'),
        ("12am tonight", 0, '"tomorrow at 12am"'),
        ("today", 0, '"today at 9pm"'),
        ("next", 4, 'must continue with week, month, year or a weekday after "next"'),
        ("next blue moon", 5, 'must continue with week, month, year or a weekday after "next'),
        ("on tomorrow", 3, 'must continue with a weekday after "on", not "tomorrow"'),
        ("monday next month", 12, 'must continue with "week" after "monday next", not "month"'),
        ("now or never", 4, 'must end before "or never"'),
        ("yesterday", 0, 'must be words such as "in 2 hours", "tomorrow at 4pm", "next'),
        ("5 o'clock", 0, 'must be words such as "in 2 hours", "tomorrow at 4pm", "next'),
        ("x" * 101, 100, "at most 100"),
        ("tomorrow at \u0664pm", 12, "U+0664"),
    ],
)
def test_unknown_words_are_refused_with_their_position(words, position, says):
    refused = refusal("time", words)

    assert (refused.field, refused.code, refused.position) == ("time", "INVALID_FIELD", position)
    assert says in refused.reason


@given(st.sampled_from(WEEKDAYS), st.integers(0, 23), st.integers(0, 59), some.zones, st.data())
def test_a_weekday_is_the_first_one_ahead(weekday, hour, minute, name, data):
    """Walked hour by hour and minute by minute of the clock on the wall; of two copies of an hour the first counts."""
    now = to_instant(data.draw(some.seconds(name, 10**9, 4 * 10**9)))
    here = now.astimezone(zone_info(name)).replace(tzinfo=None)
    wanted = here.replace(second=0) + timedelta(minutes=1 if here.second else 0)

    def at() -> datetime:
        return wanted.replace(tzinfo=zone_info(name)).astimezone(UTC)

    while (WEEKDAYS[wanted.weekday()], wanted.hour, wanted.minute) != (weekday, hour, minute) or at() < now:
        same_minute = wanted.minute == minute
        wanted += timedelta(hours=1) if same_minute else timedelta(minutes=1)
    expected = at()

    members = {"timezone": name, "dstGap": "shift", "dstOverlap": "first"}
    assert once(f"{weekday} at {hour}:{minute:02d}", now, **members) == f"{expected:%Y-%m-%d %H:%M:%S}"


@given(st.text("0123456789 abcdefghimnoprtuwxy.:", max_size=60))
def test_any_words_are_read_or_refused(text):
    try:
        parse({"time": text}, now=NOW)
    except InvalidRequest as refused:
        named = refused.field
    else:
        return

    assert named == "time"


def test_a_start_time_does_not_limit_a_time():
    window = {"startTime": "2026-05-01T00:00:00Z", "endTime": "2026-06-01T00:00:00Z"}

    timing = parse({"time": "tomorrow at 4pm", **window}, now=NOW, job_start=datetime(2026, 5, 2, tzinfo=UTC))

    assert timing.rule.next_after(NOW) == datetime(2026, 3, 12, 16, tzinfo=UTC)


def test_an_end_time_limits_a_time():
    refused = refusal("time", "tomorrow at 4pm", endTime="2026-03-12T00:00:00Z")

    assert (refused.field, refused.code) == ("time", "NEVER_FIRES")


def test_words_are_packed_as_the_instant_they_named():
    assert parse({"time": "in 2 hours"}, now=NOW).packed == '{"time":{"second":1773239696}}'
    assert parse({"time": "tomorrow at 4pm"}, now=NOW).packed == '{"time":{"wall":1773331200}}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4.40pm", "16:40:00"),
        ("18.40", "18:40:00"),
        ("6.20am", "06:20:00"),
        ("17.20:30", "17:20:30"),
        ("18:40", "18:40:00"),
        ("12am", "00:00:00"),
        ("12:01 PM", "12:01:00"),
        (" noon ", "12:00:00"),
        ("1994-11-05T08:15:30-05:00", "13:15:30"),
        ("Sat, 05 Nov 1994 08:15:30 GMT", "08:15:30"),
        ("2013-02-08", "00:00:00"),
    ],
)
def test_repeat_at_is_daily(text, expected):
    found = between(parse({"repeatAt": text}, now=NOW).rule, NOW, END, 3)

    assert {f"{at:%H:%M:%S}" for at in found} == {expected}
    assert found[1] - found[0] == found[2] - found[1] == timedelta(days=1)
    assert timedelta() < found[0] - NOW <= timedelta(days=1)


@given(st.integers(0, 86_399), some.zones, some.gaps, some.overlaps, st.data())
def test_repeat_at_is_the_cron_of_that_time(time, name, gap, overlap, data):
    """Another notation as oracle, which is held against a walk over every minute."""
    text = f"{time // 3600}.{time // 60 % 60:02d}"
    after = to_instant(data.draw(some.seconds(name)))
    rules = {"timezone": name, "dstGap": gap, "dstOverlap": overlap}
    daily = parse({"repeatAt": text, **rules}, now=NOW).rule
    cron = parse({"cron": f"{time // 60 % 60} {time // 3600} * * *", **rules}, now=NOW).rule

    assert between(daily, after, END, 5) == between(cron, after, END, 5)
    assert daily.last_until(after) == cron.last_until(after)


def test_a_date_with_an_offset_is_the_time_of_the_clock_in_the_zone():
    berlin = parse({"repeatAt": "2026-07-01T08:00:00Z", "timezone": "Europe/Berlin"}, now=NOW)

    assert berlin.summary == "at 10:00, Europe/Berlin"
    assert berlin.interval_s == 86_400 - 3_600
    assert berlin.packed == '{"repeatAt":36000,"zone":"Europe/Berlin"}'


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("4", 0, "must be a time of day such as 4.40pm, 18:40 or 17.20:30, or a"),
        ("tomorrow at 4pm", 0, "must be a time of day such as 4.40pm, 18:40 or 17.20:30, or a"),
        ("4.40pm daily", 6, "must be a time of day such as 4.40pm, 18:40 or 17.20:30, or a"),
        ("25:00", 0, 'hour must be 0 to 23, not "25"'),
        ("13pm", 0, 'hour must be 1 to 12, not "13"'),
        ("18.60", 3, 'minute must be 0 to 59, not "60"'),
        ("18.40.60", 6, 'second must be 0 to 59, not "60"'),
        ("18.4", 0, "must be a time of day such as 4.40pm, 18:40 or 17.20:30, or a"),
        ("2013-02-30", 8, "has no day 30"),
        ("-1:00", 0, "must be a time of day such as 4.40pm, 18:40 or 17.20:30, or a"),
        ("\u0661\u0668.40", 0, "U+0661"),
        ("1" * 101, 100, "at most 100"),
    ],
)
def test_an_invalid_time_of_day_is_refused_with_its_position(text, position, says):
    refused = refusal("repeatAt", text)

    assert (refused.field, refused.code, refused.position) == ("repeatAt", "INVALID_FIELD", position)
    assert says in refused.reason


@pytest.mark.parametrize("packed", ["86400", "-1", "1.5", "true", '"0"', "[]", "null"])
def test_an_invalid_packed_time_of_day_is_not_read(packed):
    from sweephand.schedules.timing import load  # noqa: PLC0415 - the name is free elsewhere

    with pytest.raises(ValueError, match="cannot be read"):
        load(f'{{"repeatAt":{packed}}}')


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5 minutes", 300),
        ("2 hours", 7_200),
        ("1 day", 86_400),
        ("2 weeks", 1_209_600),
        ("10 hours", 36_000),
        ("2 days", 172_800),
        ("3 weeks", 1_814_400),
        ("1 month", 2_592_000),
        ("1 year", 31_536_000),
        ("20 minutes", 1_200),
        ("10 seconds", 10),
        ("1 SECOND", 1),
        ("1.5 hours", 5_400),
        ("0.1 minutes", 6),
        ("0.3 months", 777_600),
        ("1.01 seconds", 2),
        ("1 hour and 30 minutes", 5_400),
        ("1 day, 2 hours and 0.5 minutes", 93_630),
    ],
)
def test_the_interval_of_sap_counts_months_of_30_days_and_years_of_365(text, seconds):
    assert read_interval(text, "repeatInterval") == seconds
    timing = parse({"every": f"PT{seconds}S", "align": "actual_start"}, now=NOW)
    assert timing.actual_start_interval_s == seconds


@pytest.mark.parametrize(
    "text", ["5 minutes", "2 hours", "1 day", "2 weeks", "10 hours", "2 days", "3 weeks", "20 minutes", "10 seconds"]
)
def test_every_accepts_the_same_text_except_months_and_years(text):
    timing = parse({"every": text, "align": "actual_start"}, now=NOW)

    assert timing.actual_start_interval_s == read_interval(text, "repeatInterval")


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("0 minutes", 0, 'must be 1 second or more, not "0 minutes"'),
        ("-5 minutes", 0, "must be a number of seconds, minutes, hours, days, weeks,"),
        ("twenty minutes", 0, "must be a number of seconds, minutes, hours, days, weeks,"),
        ("5 mins", 2, "must be a number of seconds, minutes, hours, days, weeks,"),
        ("90", 0, "must be a number of seconds, minutes, hours, days, weeks,"),
        ("0.9 seconds", 0, 'must be 1 second or more, not "0.9 seconds"'),
        (" 0.0 hours and 0 minutes", 1, 'must be 1 second or more, not " 0.0 hours and 0 minutes"'),
        ("1 hour and 30 mins", 14, "must be a number of seconds, minutes, hours, days, weeks,"),
        ("1 hour and", 0, "must be a number of seconds, minutes, hours, days, weeks,"),
        ("1 hour 30 minutes", 0, "must be a number of seconds, minutes, hours, days, weeks,"),
        ("1. hours", 0, "must be a number of seconds, minutes, hours, days, weeks,"),
        ("1,5 hours", 0, "must be a number of seconds, minutes, hours, days, weeks,"),
        (".5 hours", 0, "must be a number of seconds, minutes, hours, days, weeks,"),
        ("PT5M", 0, "must be a number of seconds, minutes, hours, days, weeks,"),
        ("\u0665 minutes", 0, "U+0665"),
        ("5 " + "m" * 99, 100, "at most 100"),
    ],
)
def test_an_invalid_sap_interval_is_refused(text, position, says):
    with pytest.raises(InvalidRequest) as refused:
        read_interval(text, "repeatInterval")

    assert (refused.value.field, refused.value.position) == ("repeatInterval", position)
    assert says in refused.value.reason


@pytest.mark.parametrize("packed", ['{"time":{"second":1773239696}}', '{"repeatAt":60000}'])
def test_loading_a_schedule_loads_no_grammar(packed):
    """A sweeper's cold start, in an interpreter of its own."""
    grammars = ["dates", "iso_dates", "date_formats", "relative_dates"]
    program = (
        "import sys; from sweephand.schedules.timing import load; "
        f"load({packed!r}); print([name for name in {grammars} if f'sweephand.schedules.text.{{name}}' in sys.modules])"
    )

    ran = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": PACKAGE}, capture_output=True, check=True)

    assert ran.stdout.decode().strip() == "[]"


@pytest.mark.parametrize(
    ("words", "now", "found"),
    [
        ("in 1 day", "2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z"),
        ("in a day", "2027-03-27T02:00:00+01:00", "2027-03-28T01:00:00Z"),
        ("tomorrow", "2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z"),
        ("next sunday", "2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z"),
        ("next week", "2027-03-21T01:30:00Z", "2027-03-28T01:00:00Z"),
        ("in 1 month", "2027-02-28T01:30:00Z", "2027-03-28T01:00:00Z"),
        ("1 week from now", "2027-03-21T01:30:00Z", "2027-03-28T01:00:00Z"),
        ("tomorrow", "2027-10-30T00:30:00Z", "2027-10-31T00:30:00Z"),
        ("in 1 day", "2027-10-30T00:30:00Z", "2027-10-31T00:30:00Z"),
    ],
)
def test_words_without_a_time_of_the_day_work_in_every_hour_before_a_clock_change(words, now, found):
    timing = parse({"time": words, "timezone": "Europe/Berlin"}, now=datetime.fromisoformat(now))

    assert timing.once_at == datetime.fromisoformat(found)
    assert load(timing.packed).once_at == timing.once_at


def test_words_without_a_time_of_the_day_obey_the_rules_of_the_caller():
    before_gap, before_overlap = (datetime.fromisoformat(at) for at in ("2027-03-27T01:30:00Z", "2027-10-30T00:30:00Z"))
    berlin = {"time": "tomorrow", "timezone": "Europe/Berlin"}

    shifted = parse({**berlin, "dstGap": "shift"}, now=before_gap).once_at
    second = parse({**berlin, "dstOverlap": "second"}, now=before_overlap).once_at

    assert shifted == datetime.fromisoformat("2027-03-28T01:30:00Z")
    assert second == datetime.fromisoformat("2027-10-31T01:30:00Z")
