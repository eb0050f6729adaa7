"""Picks the days of a month or year by a rule of RFC 5545, as bit masks: bit n is day n, the first is 1.

Weekdays are numbers from 0 for Monday. Positions and ordinals count from 1, below 0 from the end.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from sweephand.schedules.grids.calendar_masks import bits, month_length

_SEVENS = sum(1 << 7 * week for week in range(54))
_WEEK = 0x7F


class DayRule(NamedTuple):
    """The limits on the days of a month or year; empty members limit nothing.

    months: mask, bit n is month n. weekdays: mask, bit 0 is Monday. ordinals: (which, weekday) in each chosen month, or
    in the year if no month is chosen. week_start: the weekday that begins a week. positions: which of the days that all
    other members leave.
    """

    months: int = 0
    month_days: tuple[int, ...] = ()
    year_days: tuple[int, ...] = ()
    week_numbers: tuple[int, ...] = ()
    weekdays: int = 0
    ordinals: tuple[tuple[int, int], ...] = ()
    week_start: int = 0
    positions: tuple[int, ...] = ()


def of_month(rule: DayRule, length: int, first: int) -> int:
    """Returns the days of a month by month_days, weekdays, ordinals and positions. first: weekday of its first day."""
    mask = (2 << length) - 2
    if rule.month_days:
        mask &= _numbered(rule.month_days, length)
    if rule.weekdays or rule.ordinals:
        mask &= _on_weekdays(rule, length, first)
    return at_positions(mask, rule.positions)


@lru_cache(maxsize=1024)  # a year is one of 28 kinds for each rule
def of_year(rule: DayRule, length: int, first: int, before: int, following: int) -> int:
    """Returns the days of a year by the whole rule. before, following: lengths of the neighbouring years."""
    mask = (2 << length) - 2
    if rule.months:
        mask &= _in_months(rule, length, first)
    else:
        if rule.month_days:
            mask &= _in_months(DayRule(months=(2 << 12) - 2, month_days=rule.month_days), length, first)
        if rule.weekdays or rule.ordinals:
            mask &= _on_weekdays(rule, length, first)
    if rule.year_days:
        mask &= _numbered(rule.year_days, length)
    if rule.week_numbers:
        mask &= _in_weeks(rule, length, first, before, following)
    return at_positions(mask, rule.positions)


def at_positions(mask: int, positions: tuple[int, ...]) -> int:
    """Returns the bits of a mask that stand at one of the positions; all of them if none is given."""
    if not positions:
        return mask
    days = bits(mask)
    picked = 0
    for position in positions:
        if 0 < abs(position) <= len(days):
            picked |= 1 << days[position - 1 if position > 0 else position]
    return picked


def _numbered(numbers: tuple[int, ...], length: int) -> int:
    """Returns days by number, negative from the end; leaves out those that the month or year lacks."""
    mask = 0
    for number in numbers:
        day = number if number > 0 else length + 1 + number
        if 0 < day <= length:
            mask |= 1 << day
    return mask


def _on_weekdays(rule: DayRule, length: int, first: int) -> int:
    turned = (rule.weekdays | rule.weekdays << 7) >> first & _WEEK  # bit 0 is now the weekday of the first day
    mask = (turned * _SEVENS << 1) & (2 << length) - 2
    for which, weekday in rule.ordinals:
        if which > 0:
            day = 1 + (weekday - first) % 7 + 7 * (which - 1)
        else:
            day = length - (first + length - 1 - weekday) % 7 + 7 * (which + 1)
        if 0 < day <= length:
            mask |= 1 << day
    return mask


def _in_months(rule: DayRule, length: int, first: int) -> int:
    """Returns the days of a year that its chosen months have by `of_month`."""
    of_each = rule._replace(positions=())
    mask = begun = 0
    for month in range(1, 13):
        days = month_length(2000 if length == 366 else 2001, month)
        if rule.months >> month & 1:
            mask |= of_month(of_each, days, (first + begun) % 7) << begun
        begun += days
    return mask


def _in_weeks(rule: DayRule, length: int, first: int, before: int, following: int) -> int:
    """Returns the days of a year that lie in one of the numbered weeks, also of the neighbouring years."""
    start = rule.week_start
    firsts = ((first - before) % 7, first, (first + length) % 7, (first + length + following) % 7)
    begins = (-before, 0, length, length + following)
    weeks = [begin + _first_week(weekday, start) for begin, weekday in zip(begins, firsts, strict=True)]
    mask = 0
    for begin, end in pairwise(weeks):
        for number in rule.week_numbers:
            day = begin + 7 * (number - 1) if number > 0 else end + 7 * number
            if begin <= day < end and -6 <= day <= length:
                mask |= _WEEK << day if day >= 0 else _WEEK >> -day
    return mask & (2 << length) - 2


def _first_week(first: int, week_start: int) -> int:
    """Returns the day on which the first week of a year with at least four of its days begins: -2 to 4."""
    into_week = (first - week_start) % 7
    return 1 - into_week if into_week <= 3 else 8 - into_week
