"""Sets of days and times of the day against a look at every single one."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sweephand.schedules.grids.calendar_masks import ALL_DATES, ALL_WEEKDAYS
from sweephand.schedules.grids.clock import Clock
from sweephand.schedules.grids.days import (
    ALL_MONTHS,
    EPOCH_DAY,
    FIRST_DAY,
    FIRST_YEAR,
    LAST_DAY,
    DayFields,
    EachNth,
    OfMonths,
    OfPeriods,
    OfWeeks,
    OnDays,
    OrNextDay,
    month_table,
)
from sweephand.schedules.notations.cron import _days as parsed_days
from tests.support.examples import examples

SPAN = 800
begins = st.integers(date(1970, 1, 1).toordinal(), date(2198, 1, 1).toordinal()).map(date.fromordinal)
masks = st.integers(1, (1 << 28) - 1)


def number(day: date) -> int:
    return day.toordinal() - EPOCH_DAY


def agrees(days, has, begin: date) -> None:
    """Checks that next, previous and count on each day of a span after `begin` are what looking at each day gives."""
    span = [begin + timedelta(days=n) for n in range(SPAN)]
    wanted = [number(day) for day in span if has(day)]
    at, walked = days.next(number(begin)), []
    while at is not None and at <= number(span[-1]):
        walked.append(at)
        at = days.next(at + 1)
    assert walked == wanted
    assert all(days.next(day) == day == days.previous(day) for day in wanted)
    at, back = days.previous(number(span[-1])), []
    while at is not None and at >= number(begin):
        back.append(at)
        at = days.previous(at - 1)
    assert back == wanted[::-1]
    assert days.count(number(begin), number(span[-1])) == len(wanted)
    assert days.count(number(begin) + 40, number(begin) + 45) == sum(40 <= day - number(begin) <= 45 for day in wanted)
    assert days.count(number(begin) + 1, number(begin)) == 0
    assert days.shortest_gap() == walked_gap(days)


def walked_gap(days) -> int:
    """Returns the smallest distance of two days of the whole horizon, one after the other."""
    shortest, at = LAST_DAY - FIRST_DAY, days.next(FIRST_DAY)
    while at is not None and shortest > 1:
        upcoming = days.next(at + 1)
        shortest = shortest if upcoming is None else min(shortest, upcoming - at)
        at = upcoming
    return shortest


@given(
    st.integers(2, (1 << 32) - 1), masks, st.integers(1, (1 << 12) - 1), st.integers(1, 30), st.integers(0, 40), begins
)
def test_days_of_months_match_their_kind(days, weekdays, months, every, anchor, begin):
    table = month_table(lambda length, first: days if weekdays >> first & 1 else days & 1 << length)
    anchor += begin.year * 12

    def has(day: date) -> bool:
        first = day.replace(day=1).weekday()
        length = (day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
        kind = days >> day.day & 1 and (weekdays >> first & 1 or day.day == length.day)
        in_turn = (day.year * 12 + day.month - 1 - anchor) % every == 0
        return bool(kind and months >> day.month - 1 & 1 and in_turn)

    agrees(OfMonths(table, months << 1, every=every, anchor=anchor), has, begin)


@given(st.sets(st.integers(1970, 2199), min_size=1, max_size=5), begins)
def test_days_of_chosen_years_are_in_those_years_only(years, begin):
    chosen = OfMonths(month_table(lambda *_: 1 << 31), years=sum(1 << year - FIRST_YEAR for year in years))

    agrees(chosen, lambda day: day.day == 31 and day.year in years, begin)


@given(st.integers(1, 127), st.integers(-50_000, 50_000), st.integers(1, 78), begins)
def test_weekdays_of_each_nth_week(weekdays, week, every, begin):
    monday = -3 + 7 * week

    def has(day: date) -> bool:
        weeks = (number(day) - day.weekday() - monday) // 7
        return bool(weekdays >> day.weekday() & 1) and weeks % every == 0

    agrees(OfWeeks(weekdays, monday, every), has, begin)


@given(st.integers(1, 1_000), st.integers(-50_000, 50_000), begins)
def test_each_nth_day(every, anchor, begin):
    agrees(EachNth(every, anchor), lambda day: (number(day) - anchor) % every == 0, begin)


def test_a_set_without_a_day_is_known_for_one():
    assert not OfMonths(month_table(lambda *_: 1 << 30), months=1 << 2).ever()
    assert OfMonths(month_table(lambda *_: 1 << 29), months=1 << 2).ever()
    assert not OfMonths(month_table(lambda *_: 1 << 29), months=1 << 2, years=1 << 2100 - FIRST_YEAR).ever()
    assert not OfMonths(month_table(lambda *_: 1 << 30), every=12, anchor=2026 * 12 + 1).ever()


def test_nothing_lies_beyond_the_horizon():
    leap = OfMonths(month_table(lambda *_: 1 << 29), months=1 << 2)

    assert leap.next(number(date(2196, 3, 1))) is None
    assert leap.previous(number(date(1972, 2, 28))) is None
    assert EachNth(7, 0).next(number(date(2200, 12, 31)) + 1) is None
    assert OfWeeks(1).previous(number(date(1969, 1, 1)) - 3) is None


@given(st.integers(1, (1 << 24) - 1), st.integers(1, (1 << 60) - 1), st.integers(1, (1 << 60) - 1), st.data())
def test_a_clock_knows_its_times(hours, minutes, seconds, data):
    hours &= data.draw(st.sampled_from([(1 << 24) - 1, 0b1001, 1 << 23, 1])) or hours
    minutes &= data.draw(st.sampled_from([0b11, 1 << 59 | 1, 0xF0F])) or minutes
    clock = Clock(hours or 1, minutes or 1, (seconds & 0b111) | 1 << data.draw(st.integers(0, 59)))
    times = [
        time
        for time in range(86_400)
        if clock.hours >> time // 3600 & 1 and clock.minutes >> time // 60 % 60 & 1 and clock.seconds >> time % 60 & 1
    ]
    at = data.draw(st.sampled_from(times) | st.integers(0, 86_399))
    until = data.draw(st.integers(0, 86_399))

    assert (clock.first, clock.last, clock.times()) == (times[0], times[-1], len(times))
    assert clock.after(at) == next((time for time in times if time > at), None)
    assert clock.until(at) == next((time for time in reversed(times) if time <= at), None)
    assert clock.count(at, until) == sum(at <= time <= until for time in times)
    assert clock.shortest_gap_s() == min(later - time for time, later in pairwise([*times, times[0] + 86_400]))


@given(st.integers(1, 40), st.integers(0, 10**9), st.integers(0, 10**7), st.integers(0, 400))
def test_times_on_days_are_counted_as_they_are_listed(every, after, span, limit):
    series = OnDays(EachNth(every, 3), Clock(0b1001 << 6, 0b101, 1))

    assert series.count(after, after + span, limit) == min(limit, len(list(series.seconds(after, after + span))))


def test_the_gap_of_a_day_in_the_week_is_a_week():
    assert OnDays(OfWeeks(1), Clock(1 << 9)).shortest_gap_s() == 7 * 86_400
    assert OnDays(OfWeeks(0b1000001, every=2), Clock(1 | 1 << 23)).shortest_gap_s() == 23 * 3600
    assert OnDays(OfWeeks(0b11), Clock(1 | 1 << 23)).shortest_gap_s() == 3600
    assert OnDays(EachNth(3), Clock(1 | 1 << 23)).shortest_gap_s() == 23 * 3600


@examples(12)
@given(st.integers(29, 31), st.integers(1, 18), st.integers(0, 17), st.integers(0, 1), begins)
def test_a_day_that_a_month_lacks_falls_on_the_first_of_the_next(wanted, every, anchor, first_too, begin):
    anchor += begin.year * 12
    named = 1 << wanted | first_too << 1

    def in_turn(day: date) -> bool:
        return (day.year * 12 + day.month - 1 - anchor) % every == 0

    def has(day: date) -> bool:
        before = day - timedelta(days=1)
        return bool(in_turn(day) and named >> day.day & 1) or (day.day == 1 and in_turn(before) and before.day < wanted)

    there = OfMonths(month_table(lambda *_: named), every=every, anchor=anchor)
    short = OfMonths(month_table(lambda length, _: 1 << length if length < wanted else 0), every=every, anchor=anchor)

    agrees(OrNextDay(there, short), has, begin)


@given(
    st.integers(FIRST_DAY - 40, LAST_DAY + 3) | st.sampled_from([FIRST_DAY, LAST_DAY - 6, LAST_DAY]),
    st.sampled_from([ALL_DATES, 1 << 13, 1 << 31]),
    st.integers(1, ALL_WEEKDAYS),
    st.sampled_from([ALL_MONTHS, 1 << 2, 1 << 1 | 1 << 12]),
    st.booleans(),
)
def test_the_search_for_the_fields_of_a_cron_finds_what_the_general_one_finds(day, dates, weekdays, months, either):
    days = parsed_days(DayFields(dates, weekdays, either), months)

    assert days.next(day) == OfPeriods.next(days, day)
