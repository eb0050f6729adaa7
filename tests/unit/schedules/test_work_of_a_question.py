"""No question about a schedule takes long, whatever the input: it is answered within MOST units of work, or refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.calendars import calendar_content, calendars
from sweephand.schedules.explain import gaps, preview_warnings
from sweephand.schedules.explain.explain import left_out, preview
from sweephand.schedules.rule import MOST, Undecided, count_between, left, limited, spend
from sweephand.schedules.timing import Timing, load, packed_with_calendars, parse
from sweephand.schedules.zones.localtime import to_second
from tests.support.examples import examples
from tests.support.work import few_calls

NOW = datetime(2027, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=366)
DAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]


def kept(name: str, content: dict[str, Any]) -> str:
    reference = f"effort-{name}"
    calendars.keep(reference, calendar_content.read(content))
    return reference


def weekly(*days: str) -> dict[str, Any]:
    return {"weekly": [{"days": list(days)}]}


COUNTED = [
    "FREQ=SECONDLY;INTERVAL=7;BYSECOND=0,2,4;COUNT=5000000",
    "FREQ=SECONDLY;INTERVAL=7;BYSECOND=0,2,4;COUNT=2147483647",
    "FREQ=SECONDLY;INTERVAL=7;BYMINUTE=0,3,9;COUNT=2147483647",
    "DTSTART:20390326T102513\nRRULE:FREQ=SECONDLY;INTERVAL=997;BYSECOND=13,2,18;COUNT=1000000",
    "FREQ=SECONDLY;INTERVAL=86399;BYSECOND=0,2,4,6,8,10;COUNT=70000",
    "FREQ=MINUTELY;INTERVAL=7;BYHOUR=0,2,4,6,8;COUNT=2147483647",
    "FREQ=MINUTELY;INTERVAL=7;BYMONTHDAY=1;COUNT=1000000",
    "FREQ=SECONDLY;INTERVAL=11;BYSECOND=0,2,4;BYYEARDAY=-1,5,9;COUNT=2000000000",
    "FREQ=HOURLY;INTERVAL=7;BYDAY=MO,TU,WE;COUNT=2147483647",
]


@pytest.mark.parametrize("text", COUNTED)
def test_a_rule_with_a_large_count_is_counted_by_arithmetic(text: str) -> None:
    with few_calls():
        timing = parse({"rrule": text}, now=NOW)
        first = timing.rule.next_after(NOW)
        last = timing.rule.last_until(NOW + 100_000 * timedelta(days=1))

    assert first is not None
    assert last is not None
    assert last >= first


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=SECONDLY;INTERVAL=7;BYSECOND=0,2,4;COUNT=3000",
        "DTSTART:20390326T102513\nRRULE:FREQ=SECONDLY;INTERVAL=997;BYSECOND=13,2,18;COUNT=500",
    ],
)
def test_the_last_of_a_count_is_the_one_that_a_walk_comes_to(text: str) -> None:
    counted = parse({"rrule": text}, now=NOW)
    endless = parse({"rrule": text.partition(";COUNT")[0]}, now=NOW)
    which = int(text.rpartition("=")[2])

    walked = next(islice(endless.rule.seconds(to_second(NOW), 2**40), which - 1, None))

    assert counted.rule.until(2**40) == walked


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("R999999999/PT1S/2190-01-01T00:00:00Z", 6_942_585_600 - 999_999_999),
        ("R2147483647/PT7S/2190-01-01T00:00:00Z", 6_942_585_600 % 7),
        ("R1000000/P1M/1975-01-01T00:00:00Z", 0),
        ("R3/P1M/2027-03-31T00:00:00Z", 1_798_675_200),
    ],
)
def test_an_interval_counted_back_from_its_end_needs_no_search(text: str, first: int) -> None:
    with few_calls():
        timing = parse({"every": text}, now=NOW, may_be_over=True)

    assert timing.rule.after(-1) == first


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=SECONDLY;INTERVAL=12010;BYMONTH=1,2,3;COUNT=2147483647",
        "FREQ=MINUTELY;INTERVAL=7;BYMONTH=1,2,3,4,5,6,7,8,9;BYDAY=MO,TU,WE,TH,FR;COUNT=2147483647",
    ],
)
def test_a_count_that_no_arithmetic_answers_is_refused_with_a_reason(text: str) -> None:
    with few_calls(), pytest.raises(InvalidRequest) as refused:
        parse({"rrule": text}, now=NOW)

    assert (refused.value.field, refused.value.code) == ("rrule", "INVALID_FIELD")
    assert f"COUNT={text.rpartition('=')[2]}" in refused.value.reason
    assert "UNTIL" in refused.value.reason


def test_steps_that_never_meet_their_weekdays_are_refused_immediately() -> None:
    with few_calls(20_000), pytest.raises(InvalidRequest) as refused:
        parse({"rrule": "DTSTART:20270101T000000\nRRULE:FREQ=HOURLY;INTERVAL=84;BYDAY=TH,SA"}, now=NOW)

    assert refused.value.code == "NEVER_FIRES"


def test_rolling_calendars_that_exclude_no_occurrence_need_no_search() -> None:
    book = {
        "sat": kept("sat", weekly("SAT")),
        "weekend": kept("weekend", weekly("SAT", "SUN")),
        "weekdays": kept("weekdays", weekly(*DAYS[:5])),
    }
    uses = [{"name": "sat"}, {"name": "weekend", "mode": "include", "roll": "next"}, {"name": "weekdays"}]
    christmas = kept("Christmas", {"dates": ["12-25"]})

    with few_calls(), pytest.raises(InvalidRequest) as refused:
        parse({"cron": "0 4 * * 6", "calendars": uses}, now=NOW, book=book)
    with few_calls():
        monthly = parse({"cron": "0 4 1 * *", "calendars": uses}, now=NOW, book=book)
        following = [each.instant for each in preview(monthly, NOW, 3)]
        good = parse({"cron": "0 4 * * 6", "calendars": uses}, now=NOW, book={**book, "sat": christmas})
        changed = load(packed_with_calendars(good, list(book.values())))
        ends = changed.rule.next_after(NOW), changed.rule.last_until(NOW)

    assert (refused.value.code, refused.value.field) == ("NEVER_FIRES", "calendars")
    assert [each.isoformat() for each in following] == [
        "2027-08-01T04:00:00+00:00",
        "2028-10-01T04:00:00+00:00",
        "2029-04-01T04:00:00+00:00",
    ]
    assert ends == (None, None)


def hostile() -> tuple[dict[str, Any], dict[str, str]]:
    """Makes dates that each lie a day away from what the next calendar lets through, so that only a search can tell."""
    odd = [f"{NOW + n * timedelta(days=28):%Y-%m-%d}" for n in range(900)]
    even = [f"{NOW + timedelta(days=1) + n * timedelta(days=28):%Y-%m-%d}" for n in range(900)]
    night = {"weekly": [{"days": DAYS, "from": "18:00", "to": "08:00"}]}
    book = {"odd": kept("odd", {"dates": odd}), "even": kept("even", {"dates": even}), "night": kept("night", night)}
    uses = [
        {"name": "odd", "mode": "include", "roll": "previous"},
        {"name": "even", "mode": "exclude", "roll": "previous"},
        {"name": "night", "roll": "previous"},
    ]
    return {"cron": "*/61 * * * *", "calendars": uses}, book


def questions(timing: Timing, at: datetime) -> list[Callable[[], object]]:
    """Yields questions that one request may ask."""
    return [
        lambda: timing.rule.next_after(at),
        lambda: timing.rule.last_until(at),
        lambda: count_between(timing.rule, at, at + YEAR, 2**31 - 1),
        lambda: preview(timing, at, 1_000),
        lambda: gaps.measure(timing.rule, to_second(at), to_second(at + YEAR)),
        lambda: preview_warnings.cautions(timing, at),
        lambda: list(islice(left_out(timing, at, at + YEAR), 100)),
    ]


def test_calendars_that_need_a_search_block_no_caller() -> None:
    fields, book = hostile()

    with few_calls():
        timing = parse(fields, now=NOW, book=book)
    for question in questions(timing, NOW + 200 * YEAR // 3):
        with few_calls(), suppress(Undecided):
            question()


_hours = st.sampled_from([{}, {"from": "09:00", "to": "17:00"}, {"from": "18:30", "to": "07:00"}])
_weekly = st.builds(
    lambda days, hours: {"days": sorted(days), **hours}, st.sets(st.sampled_from(DAYS), min_size=1), _hours
)
_dates = st.builds(
    lambda step, begin, many: [f"{NOW + timedelta(days=begin + step * n):%Y-%m-%d}" for n in range(many)],
    st.sampled_from([1, 2, 7, 13, 28]),
    st.integers(0, 400),
    st.sampled_from([1, 40, 700]),
)
_contents = st.one_of(
    st.builds(lambda weekly: {"weekly": weekly}, st.lists(_weekly, min_size=1, max_size=2)),
    st.builds(lambda dates: {"dates": dates}, _dates),
    st.builds(lambda weekly, dates: {"weekly": [weekly], "dates": dates}, _weekly, _dates),
)
_rules = st.sampled_from(
    [
        {"cron": "0 4 * * 6"},
        {"cron": "30 2 1 * *", "timezone": "Europe/Berlin"},
        {"cron": "0 */2 31 * 5", "timezone": "America/New_York"},
        {"every": "PT7H"},
        {"every": "P1M", "startTime": "2027-01-31T09:00:00Z"},
        {"rrule": "FREQ=YEARLY;BYWEEKNO=53;BYDAY=SU"},
        {"rrule": "FREQ=MINUTELY;INTERVAL=1441"},
        {"recurrence": {"frequency": "hour", "interval": 25}},
    ]
)


@examples(60)
@given(
    _rules,
    st.lists(st.tuples(_contents, st.sampled_from(["include", "exclude"]), st.booleans()), min_size=1, max_size=5),
    st.sampled_from(["next", "previous"]),
    st.integers(-500, 40_000),
)
def test_no_question_about_any_calendars_takes_long(
    rule: dict[str, Any], drawn: list[tuple[dict[str, Any], str, bool]], roll: str, days: int
) -> None:
    book = {f"c{n}": kept(f"{n}", content) for n, (content, _, _) in enumerate(drawn)}
    uses = [
        {"name": f"c{n}", "mode": mode, "roll": roll if rolls else "none"} for n, (_, mode, rolls) in enumerate(drawn)
    ]
    plain = [{**use, "mode": "exclude"} for use in uses]
    nothing = {name: kept("nothing", {"dates": ["2027-01-01"]}) for name in book}

    with few_calls():
        try:
            timing = parse({**rule, "calendars": uses}, now=NOW, book=book)
        except InvalidRequest:
            excluded = parse({**rule, "calendars": plain}, now=NOW, book=nothing)
            timing = load(packed_with_calendars(excluded, list(book.values())))

    for question in questions(timing, NOW + timedelta(days=days)):
        with few_calls(), suppress(Undecided):
            question()


def test_nested_work_counts_against_the_outer_budget() -> None:
    with limited(10):
        with limited(4):
            spend(3)
            with pytest.raises(Undecided):
                spend(3)
        assert left() == 7
        with limited(50), pytest.raises(Undecided):
            spend(8)

    assert left() == MOST
    spend(MOST + 1)
