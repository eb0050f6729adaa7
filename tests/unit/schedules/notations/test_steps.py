"""The cost of a question, in Python calls: a few, however old the anchor, however sparse or dense the series."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.calendars import calendar_content, calendars
from sweephand.schedules.explain.explain import left_out
from sweephand.schedules.explain.gaps import measure
from sweephand.schedules.explain.preview_warnings import YEAR_S
from sweephand.schedules.timing import load, parse
from sweephand.schedules.zones.localtime import zone
from tests.unit.schedules.calendars.test_reach import NEVER, fields_of
from tests.unit.schedules.test_inputs_that_break import calls

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NEW_YORK = "America/New_York"
MOST = 400
MOST_BY_CALENDARS = 4_000
MOST_UNTIL_REFUSED = 2_000


@pytest.mark.parametrize("name", ["UTC", NEW_YORK])
@pytest.mark.parametrize(
    "fields",
    [
        {"cron": "* * * * *"},
        {"cron": "0 0 29 2 *"},
        {"cron": "0 0 31 12 *"},
        {"cron": "30 2 * * *"},
        {"eventBridge": "cron(0 0 29 2 ? *)"},
        {"eventBridge": "cron(0 9 ? 2 2#5 *)"},
        {"eventBridge": "cron(0 9 ? 1 1 2199)"},
        {"sapCron": "* 2 29 mon 0 0 0"},
        {"sapCron": "* * * * * * *"},
        {"every": "PT1S"},
        {"every": "P18M"},
        {"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO"},
        {"rrule": "FREQ=SECONDLY"},
    ],
    ids=str,
)
def test_next_and_last_take_few_calls(fields: dict[str, Any], name: str) -> None:
    """29 February on a Monday is 28 years away at most: candidate years, not days, are looked at."""
    rule = load(parse({**fields, "timezone": name}, now=NOW).packed).rule
    zone(name)

    for instant in (NOW, datetime(2096, 3, 1, tzinfo=UTC), datetime(2198, 12, 31, tzinfo=UTC)):
        assert calls(lambda at=instant: rule.next_after(at)) <= MOST
        assert calls(lambda at=instant: rule.last_until(at)) <= MOST


@pytest.mark.parametrize(
    ("fields", "begins"),
    [
        ({"every": "PT10S"}, "startTime"),
        ({"every": "7 hours"}, "startTime"),
        ({"every": "P1M"}, "startTime"),
        ({"rrule": "FREQ=MINUTELY;INTERVAL=5"}, "startTime"),
        ({"rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE,FR"}, "startTime"),
        ({"rrule": "FREQ=MONTHLY;BYMONTHDAY=31"}, "startTime"),
    ],
    ids=str,
)
def test_an_old_anchor_costs_nothing(fields: dict[str, Any], begins: str) -> None:
    def cost(years: int) -> int:
        start = f"{2026 - years}-01-31T00:00:00Z"
        rule = parse({**fields, begins: start}, now=NOW).rule
        rule.next_after(NOW)  # what is kept of a year is made once
        return max(calls(lambda: rule.next_after(NOW)), calls(lambda: rule.last_until(NOW)))

    young, older, oldest = cost(1), cost(5), cost(50)

    assert max(young, older, oldest) <= 1.15 * min(young, older, oldest)


WEEKDAYS = {"weekly": [{"days": ["MON", "TUE", "WED", "THU", "FRI"]}]}
HOURS = {
    "weekly": [
        {"days": ["SAT", "SUN"]},
        {"days": [*["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]], "from": "17:00", "to": "09:00"},
    ]
}
MANY = {"dates": [(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=7 * n)).date().isoformat() for n in range(2_000)]}


@pytest.mark.parametrize("name", ["UTC", NEW_YORK])
@pytest.mark.parametrize(
    ("text", "roll", "contents"),
    [
        ("0 0,9,20 * * *", "next", {"exclude": HOURS}),
        ("0 0,9,20 * * *", "previous", {"exclude": HOURS}),
        ("0 * * * *", "next", {"include": {"dates": ["2029-06-01"]}}),
        ("0 */2 * * *", "previous", {"include": {"dates": ["2029-06-01"]}}),
        ("0 9 * * *", "next", {"include": {"dates": ["2199-12-30"]}}),
        ("0 * * * *", "next", {"include": WEEKDAYS, "exclude": MANY}),
        ("* * * * *", "none", {"include": WEEKDAYS, "exclude": MANY}),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_calendars_take_calls_in_proportion_to_the_days_they_exclude_together(
    text: str, roll: str, contents: dict[str, Any], name: str
) -> None:
    """Neither by the occurrences nor by the years before the next free day."""
    for mode, content in contents.items():
        calendars.keep(f"steps-{mode}", calendar_content.read(content))
    uses = [{"name": mode, "mode": mode, "roll": roll} for mode in contents]
    book = {mode: f"steps-{mode}" for mode in contents}
    rule = parse({"cron": text, "calendars": uses, "timezone": name}, now=NOW, book=book).rule

    at = NOW
    for _ in range(30):
        assert calls(lambda at=at: rule.next_after(at)) <= MOST_BY_CALENDARS
        found = rule.next_after(at)
        if found is None:
            break
        assert calls(lambda at=found: rule.last_until(at)) <= MOST_BY_CALENDARS
        at = found
    assert at > NOW


@pytest.mark.parametrize("name", ["UTC", NEW_YORK])
@pytest.mark.parametrize(("rule", "names"), NEVER, ids=str)
def test_a_schedule_emptied_by_calendars_is_refused_in_few_calls(
    rule: dict[str, Any], names: list[str], name: str
) -> None:
    """A search by weeks finds it: neither the dates nor the occurrences before the horizon are looked at."""
    fields, book = fields_of(rule, names, name)

    def refused() -> None:
        with pytest.raises(InvalidRequest, match="leave it without an occurrence"):
            parse(fields, now=NOW, book=book)

    refused()  # what is kept of a zone is made once
    assert calls(refused) <= MOST_UNTIL_REFUSED


@pytest.mark.parametrize("names", [["+weekends", "+an evening"], ["+weekends>", "+an evening>"]], ids=str)
def test_omitted_dates_after_the_last_date_take_few_calls(names: list[str]) -> None:
    """The hours of the calendars never agree, and only a date brought an occurrence."""
    fields, book = fields_of({"cron": "0 19 * * *"}, names)
    timing = parse(fields, now=NOW, book=book)
    found = timing.rule.next_after(NOW)
    assert found == datetime(2027, 1, 2, 19, tzinfo=UTC)

    assert calls(lambda: list(islice(left_out(timing, found, datetime(2199, 1, 1, tzinfo=UTC)), 100))) <= 300_000


@pytest.mark.parametrize(
    ("text", "names", "whole"),
    [
        ("0 * * * *", ["+office>"], False),
        ("0 * * * *", ["-weekends<"], False),
        ("0 * * * *", ["+fridays>"], False),
        ("0,20,40 2 * * *", ["+sunday night<"], True),
        ("0 9 * * *", ["+office>"], True),
    ],
)
def test_the_gaps_of_rolling_schedules_are_measured_in_few_calls(text: str, names: list[str], whole: bool) -> None:
    """The calls per occurrence are counted; the answer says how far."""
    fields, book = fields_of({"cron": text}, names, NEW_YORK)
    rule = parse(fields, now=NOW, book=book).rule
    begin = int(NOW.timestamp())
    found: list[Any] = []

    taken = calls(lambda: found.append(measure(rule, begin, begin + YEAR_S)))

    assert taken <= 100_000
    assert found[0] is not None
    assert (found[0].until == begin + YEAR_S) is whole


@pytest.mark.parametrize(
    "text", ["0 9 1 * *", "0 9 1-28/2 * *", "0 9 28 * 1", "0 9 31 1 *", "0 9 31 * *", "0 9 30 2 *"]
)
@pytest.mark.parametrize("overflow", ["clamp", "next"])
def test_dates_that_move_into_other_months_take_few_calls(text: str, overflow: str) -> None:
    """Also where no month lacks one: nothing is looked for up to the horizon."""
    timing = parse({"cron": text, "monthOverflow": overflow}, now=NOW)
    rule = timing.rule

    assert calls(lambda: rule.next_after(NOW)) <= MOST
    assert calls(lambda: rule.last_until(NOW)) <= MOST
    assert calls(lambda: timing.interval_s) <= 120_000


@pytest.mark.parametrize("text", ["* * * * *", "30 2 * * 1-5", "0 0 13 * 5"])
def test_230_years_are_counted_in_few_calls(text: str) -> None:
    rule = parse({"cron": text, "timezone": NEW_YORK}, now=NOW).rule
    begin, end = datetime(1970, 1, 2, tzinfo=UTC), datetime(2199, 12, 31, tzinfo=UTC)

    counted = []
    taken = calls(lambda: counted.append(rule.count(int(begin.timestamp()), int(end.timestamp()), 10**12)))

    assert counted[0] > 10_000
    assert taken <= 60_000  # of the 230 years' months, each looked at once or twice


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=11",
        "FREQ=SECONDLY;INTERVAL=86399;BYDAY=WE;BYHOUR=11",
        "FREQ=SECONDLY;INTERVAL=86401;BYMONTH=2;BYMONTHDAY=29;BYHOUR=11",
    ],
)
def test_steps_of_almost_a_day_meet_their_hour_in_few_calls(text: str) -> None:
    start = "DTSTART;TZID=America/New_York:20200101T235959"
    rule = parse({"rrule": f"{start}\nRRULE:{text}"}, now=NOW).rule
    found = rule.next_after(NOW)
    assert found is not None

    assert calls(lambda: rule.next_after(NOW)) <= 4_000
    assert calls(lambda: rule.last_until(found)) <= 4_000


@pytest.mark.parametrize(
    "text",
    [
        "DTSTART:20260101T000000Z\nRRULE:FREQ=SECONDLY;INTERVAL=7;BYHOUR=9,10,11,12,13,14,15,16,17;COUNT=10000000",
        "DTSTART:20260101T000000Z\nRRULE:FREQ=MINUTELY\nRDATE:20270101T090001Z",
        "DTSTART:20260101T000000Z\nRRULE:FREQ=SECONDLY;BYHOUR=9,11\nEXDATE:20270101T090001Z\nRDATE:20270101T080001Z",
    ],
)
def test_millions_of_instants_are_counted_in_few_calls(text: str) -> None:
    """Arithmetic counts them, whatever COUNT, dates and hours do to them."""
    assert calls(lambda: parse({"rrule": text}, now=NOW)) <= 20_000
    rule = parse({"rrule": text}, now=NOW).rule

    assert calls(lambda: rule.count(0, 2_500_000_000, 2**31)) <= 20_000
