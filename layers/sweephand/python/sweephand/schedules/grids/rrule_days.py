"""Picks the days of a month or year by a rule of RFC 5545, as bit masks: bit n is day n, the first is 1.

OfYears        sets of days (days.py) by rules that see the year as a whole: weeks by number, the 20th Monday
PickedOfWeeks  days of weeks by their position among the chosen ones
Both           the days of two sets

Weekdays are numbers from 0 for Monday. Positions and ordinals count from 1, below 0 from the end.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from sweephand.base.records import dataclass
from sweephand.schedules.grids.calendar_masks import bits, month_length
from sweephand.schedules.grids.days import (
    ALL_YEARS,
    EPOCH_DAY,
    FIRST_DAY,
    FIRST_YEAR,
    LAST_DAY,
    LAST_YEAR,
    Days,
    OfPeriods,
)

_SEVENS = sum(1 << 7 * week for week in range(54))
_WEEK = 0x7F


class DayRule(NamedTuple):
    """The limits on the days of a month or year. Empty members limit nothing.

    months: mask, bit n is month n. weekdays: mask, bit 0 is Monday. ordinals: (which, weekday) in each chosen month, or
    in the year if no month is chosen. week_start: the weekday that begins a week. positions: which of the days that the
    other members leave are chosen.
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
    """Returns the bits of a mask at one of the positions; all of them if no position is given."""
    if not positions:
        return mask
    days = bits(mask)
    picked = 0
    for position in positions:
        if 0 < abs(position) <= len(days):
            picked |= 1 << days[position - 1 if position > 0 else position]
    return picked


def _numbered(numbers: tuple[int, ...], length: int) -> int:
    """Returns days by number, negative from the end. Leaves out those that the month or year lacks."""
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
    """Returns the days of a year that lie in one of the numbered weeks, including those of the neighbouring years."""
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


@dataclass(frozen=True)
class OfYears(OfPeriods):
    """Days (days.py) of years by a rule. years: bit n is the year 1969 + n."""

    rule: DayRule
    years: int = ALL_YEARS

    def ever(self) -> bool:
        """Returns whether any day is in the set. Looks at each year at most; a year is one of 28 kinds."""
        return any(self.mask(year) for year in range(FIRST_YEAR + 1, LAST_YEAR))

    def period(self, day: int) -> int:
        return date.fromordinal(day + EPOCH_DAY).year

    def eve(self, period: int) -> int:
        return _eve(period) - EPOCH_DAY

    def neighbour(self, period: int, way: int) -> int | None:
        left = self.years >> period + 1 - FIRST_YEAR if way > 0 else self.years & (1 << period - FIRST_YEAR) - 1
        if not left:
            return None
        return period + (left & -left).bit_length() if way > 0 else left.bit_length() - 1 + FIRST_YEAR

    def mask(self, year: int) -> int:
        if not self.years >> year - FIRST_YEAR & 1:
            return 0
        eves = [_eve(each) for each in range(year - 1, year + 3)]
        before, length, following = (later - eve for eve, later in pairwise(eves))
        return of_year(self.rule, length, eves[1] % 7, before, following)


def _eve(year: int) -> int:
    """Returns the ordinal of the day before a year."""
    year -= 1
    return year * 365 + year // 4 - year // 100 + year // 400


@dataclass(frozen=True)
class Both:
    """The days that are in both `first` and `second`. A search looks at no more days than the smaller set has."""

    first: Days
    second: Days

    def next(self, day: int) -> int | None:
        while True:
            one = self.first.next(day)
            other = None if one is None else self.second.next(one)
            if other is None or other == one:
                return other
            day = other

    def previous(self, day: int) -> int | None:
        while True:
            one = self.first.previous(day)
            other = None if one is None else self.second.previous(one)
            if other is None or other == one:
                return other
            day = other

    def count(self, first: int, last: int) -> int:
        """Counts one by one, because its days follow no arithmetic."""
        number = 0
        day = self.next(first)
        while day is not None and day <= last:
            number += 1
            day = self.next(day + 1)
        return number

    def shortest_gap(self) -> int:
        """Returns a guaranteed minimum, not always the exact one."""
        return max(self.first.shortest_gap(), self.second.shortest_gap())


@dataclass(frozen=True)
class PickedOfWeeks(OfPeriods):
    """Days of each k-th week, in chosen months and on chosen weekdays, at one of `positions`.

    weekdays: bit 0 is the first day of the week. months: bit n is month n. begins: a day on which a week of the set
    begins.
    """

    weekdays: int
    months: int
    positions: tuple[int, ...]
    begins: int
    every: int = 1

    def period(self, day: int) -> int:
        return (day - self.begins) // 7

    def eve(self, period: int) -> int:
        return self.begins + period * 7 - 1

    def neighbour(self, period: int, way: int) -> int | None:
        neighbour = period + way * (self.every - period * way % self.every)
        return neighbour if FIRST_DAY - 7 < self.begins + neighbour * 7 <= LAST_DAY else None

    def shortest_gap(self) -> int:
        """Returns a guaranteed minimum, not always the exact one."""
        return 1

    def mask(self, period: int) -> int:
        mask = 0
        for into in range(7 if period % self.every == 0 else 0):
            if self.weekdays >> into & 1:
                on = date.fromordinal(self.begins + period * 7 + into + EPOCH_DAY)
                mask |= (self.months >> on.month & 1) << into
        return at_positions(mask, self.positions) << 1
