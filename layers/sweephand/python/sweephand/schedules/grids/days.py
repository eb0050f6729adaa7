"""Sets of calendar days, which find the next and the previous day, and the wall times that lie on them.

A day is its number since 1970-01-01 by the wall clock; day 0 was a Thursday.

Days          the interface: next and previous
├── OfMonths  days of a month by its length and first weekday; of chosen months and years, or each k-th month
├── OfWeeks   weekdays of each k-th week
├── EachNth   each k-th day
└── OrNextDay two sets: the days of one, and the day after each day of the other
OnDays        the wall seconds of these days at the times of a Clock (clock.py)
"""

from __future__ import annotations

from dataclasses import field
from datetime import date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sweephand.base.records import dataclass
from sweephand.schedules.grids.calendar_masks import ALL_DATES, ALL_WEEKDAYS, LONGEST_MONTHS, bits, lowest, month_length
from sweephand.schedules.rule import MovedBy, Series
from sweephand.schedules.zones.localtime import wall_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from sweephand.schedules.grids.clock import Clock

EPOCH_DAY = date(1970, 1, 1).toordinal()
FIRST_YEAR, LAST_YEAR = 1969, 2200
"""One year beyond the horizon on each side, because local time differs from UTC."""
FIRST_DAY = date(FIRST_YEAR, 1, 1).toordinal() - EPOCH_DAY
LAST_DAY = date(LAST_YEAR, 12, 31).toordinal() - EPOCH_DAY
_HORIZON = LAST_DAY - FIRST_DAY
ALL_MONTHS = (2 << 12) - 2
ALL_YEARS = (2 << LAST_YEAR - FIRST_YEAR) - 1
_LENGTHS = (28, 29, 30, 31)
_MONDAY_BEFORE_EPOCH = -3
_TWO_WEEKS = 1 << 7 | 1
_FIVE_WEEKS = sum(1 << 7 * week for week in range(5))


class Days(Protocol):
    """A set of days. Hashable."""

    def next(self, day: int) -> int | None:
        """Returns the first day of the set at or after `day`, up to the year 2200."""

    def previous(self, day: int) -> int | None:
        """Returns the last day of the set at or before `day`, from the year 1969 on."""

    def count(self, first: int, last: int) -> int:
        """Returns how many days of the set lie from `first` to `last`, both included and within 1969 to 2200."""

    def shortest_gap(self) -> int:
        """Returns the guaranteed minimum distance between two days, usually exact; the horizon for at most one day."""


def month_table(pick: Callable[[int, int], int]) -> tuple[int, ...]:
    """Builds the table of OfMonths from a rule that knows only how long a month is and how it begins.

    pick(length, first): the mask of the month's days (bit n is day n). first: the weekday of its first day, 0 is
    Monday.
    """
    table = [pick(length, first) & (2 << length) - 2 for length in _LENGTHS for first in range(7)]
    return tuple(table)


class DayFields(NamedTuple):
    """The two day fields of a cron. dates: bit n is day n. weekdays: bit 0 is Sunday.

    either: whether a day counts if one of the two has it (Vixie cron's rule if both are restricted); else both must.
    """

    dates: int
    weekdays: int
    either: bool

    @property
    def monday_first(self) -> int:
        return self.weekdays >> 1 | (self.weekdays & 1) << 6

    @property
    def weekly(self) -> int:
        """Returns the weekdays of two weeks, from Monday on, if they alone choose the days; else 0."""
        return self.monday_first * _TWO_WEEKS if self.dates == ALL_DATES and not self.either else 0

    def pick(self, length: int, first: int) -> int:
        """Returns the days of a month, as month_table asks for them."""
        in_weeks = (self.weekdays * _TWO_WEEKS >> first + 1 & ALL_WEEKDAYS) * _FIVE_WEEKS << 1
        return (self.dates | in_weeks if self.either else self.dates & in_weeks) & (2 << length) - 2


class OfPeriods:
    """Days of months, weeks or years. Each period is a mask whose bit n is its n-th day, from 1.

    Subclasses number the periods and find the next chosen one.
    """

    __slots__ = ()

    def period(self, day: int) -> int:
        """Returns the period that contains a day."""
        raise NotImplementedError

    def eve(self, period: int) -> int:
        """Returns the day before a period."""
        raise NotImplementedError

    def place(self, day: int) -> tuple[int, int]:
        """Returns the period that contains a day, and the day before that period."""
        period = self.period(day)
        return period, self.eve(period)

    def mask(self, period: int) -> int:
        """Returns the days of a period; none if it is not chosen."""
        raise NotImplementedError

    def neighbour(self, period: int, way: int) -> int | None:
        """Returns the next period (with way -1, the previous one) that may be chosen; None if there is none."""
        raise NotImplementedError

    def next(self, day: int) -> int | None:
        if day > LAST_DAY:
            return None
        day = max(day, FIRST_DAY)
        period, eve = self.place(day)
        days = self.mask(period) >> day - eve
        if days and (candidate := day + (days & -days).bit_length() - 1) <= LAST_DAY:
            return candidate
        while not days:
            if (later := self.neighbour(period, 1)) is None:
                return None
            period, days = later, self.mask(later)
        candidate = self.eve(period) + (days & -days).bit_length() - 1
        return candidate if candidate <= LAST_DAY else None

    def previous(self, day: int) -> int | None:
        if day < FIRST_DAY:
            return None
        day = min(day, LAST_DAY)
        period, eve = self.place(day)
        days = self.mask(period) & (2 << day - eve) - 1
        if days and eve >= FIRST_DAY:
            return eve + days.bit_length() - 1
        while not days:
            if (earlier := self.neighbour(period, -1)) is None:
                return None
            period, days = earlier, self.mask(earlier)
        candidate = self.eve(period) + days.bit_length() - 1
        return candidate if candidate >= FIRST_DAY else None

    def count(self, first: int, last: int) -> int:
        number = 0
        for period in range(self.period(first), self.period(last) + 1) if first <= last else ():
            eve = self.eve(period)
            number += (self.mask(period) & (2 << min(last - eve, 366)) - (1 << max(first - eve, 0))).bit_count()
        return number

    def shortest_gap(self) -> int:
        shortest, before = _HORIZON, -_HORIZON
        within: dict[int, int] = {}
        for period in range(self.period(FIRST_DAY), self.period(LAST_DAY) + 1):
            days = self.mask(period)
            if not days:
                continue
            if days not in within:
                within[days] = min((later - day for day, later in pairwise(bits(days))), default=_HORIZON)
            eve = self.eve(period)
            shortest = min(shortest, eve + lowest(days) - before, within[days])
            if shortest == 1:
                return 1
            before = eve + days.bit_length() - 1
        return shortest


@dataclass(frozen=True, slots=True)
class OfMonths(OfPeriods):
    """Days of months. table: from month_table. months: bit n is month n. years: bit n is the year 1969 + n.

    every, anchor: only the months at a whole number of `every` months from month `anchor` (year * 12 + month - 1).
    fields: the fields of a cron, if the table is made from them alone. weekly: DayFields.weekly, if all months have it.
    """

    table: tuple[int, ...] = field(repr=False)
    months: int = ALL_MONTHS
    years: int = ALL_YEARS
    every: int = 1
    anchor: int = 0
    fields: DayFields | None = None
    weekly: int = 0

    def ever(self) -> bool:
        """Returns whether any day is in the set. Looks at each year at most; a month is one of 28 kinds."""
        possible = [month for month in range(1, 13) if self.months >> month & 1 and self._possible(month)]
        years = range(FIRST_YEAR + 1, LAST_YEAR)
        return any(self.mask(year * 12 + month - 1) for year in years for month in possible)

    def next(self, day: int) -> int | None:
        """Returns the same as the general search, in one function, because each sweep asks this."""
        if day > LAST_DAY:
            return None
        day = max(day, FIRST_DAY)
        if self.weekly:
            left = self.weekly >> (day - _MONDAY_BEFORE_EPOCH) % 7
            candidate = day + (left & -left).bit_length() - 1
            return candidate if candidate <= LAST_DAY else None
        on = date.fromordinal(day + EPOCH_DAY)
        year, month, passed, eve = on.year, on.month, on.day, day - on.day
        months, every = self.months, self.every
        while True:
            length = LONGEST_MONTHS[month] if month != 2 else month_length(year, 2)
            chosen = months >> month & 1 and self.years >> year - FIRST_YEAR & 1
            if chosen and (every == 1 or not (year * 12 + month - 1 - self.anchor) % every):
                days = self.table[(length - 28) * 7 + (eve + 4) % 7] >> passed
                if days:
                    candidate = eve + passed + (days & -days).bit_length() - 1
                    return candidate if candidate <= LAST_DAY else None
            passed = 0
            if months >> month + 1 & 1:
                month, eve = month + 1, eve + length
            elif (later := self.neighbour(year * 12 + month - 1, 1)) is None:
                return None
            else:
                year, month, eve = later // 12, later % 12 + 1, self.eve(later)

    def period(self, day: int) -> int:
        on = date.fromordinal(day + EPOCH_DAY)
        return on.year * 12 + on.month - 1

    def place(self, day: int) -> tuple[int, int]:
        on = date.fromordinal(day + EPOCH_DAY)
        return on.year * 12 + on.month - 1, day - on.day

    def eve(self, period: int) -> int:
        return date(period // 12, period % 12 + 1, 1).toordinal() - EPOCH_DAY - 1

    def mask(self, period: int) -> int:
        year, month = divmod(period, 12)
        chosen = self.months >> month + 1 & 1 and self.years >> year - FIRST_YEAR & 1
        if not chosen or (period - self.anchor) % self.every:
            return 0
        first = (date(year, month + 1, 1).toordinal() - 1) % 7  # as in days_of: each call counts here
        length = month_length(year, 2) if month == 1 else LONGEST_MONTHS[month + 1]
        return self.table[(length - 28) * 7 + first]

    def neighbour(self, period: int, way: int) -> int | None:
        year, month = divmod(period, 12)
        left = self.months >> month + 2 if way > 0 else self.months & (2 << month) - 1
        if left:
            return period + (left & -left).bit_length() if way > 0 else year * 12 + left.bit_length() - 2
        years = self.years >> year + 1 - FIRST_YEAR if way > 0 else self.years & (1 << year - FIRST_YEAR) - 1
        if not years:
            return None
        if way > 0:
            return (year + (years & -years).bit_length()) * 12 + (self.months & -self.months).bit_length() - 2
        return (years.bit_length() - 1 + FIRST_YEAR) * 12 + self.months.bit_length() - 2

    def visited(self) -> int:
        """Returns those of `months` that the steps ever reach."""
        return self.months & sum(1 << month + 1 for month in {(self.anchor + n * self.every) % 12 for n in range(12)})

    def days_of(self, year: int, month: int) -> int:
        """Returns the mask of a month's days, whether the month is chosen or not."""
        first = (date(year, month, 1).toordinal() - 1) % 7
        return self.table[(month_length(year, month) - 28) * 7 + first]

    def has_month(self, year: int, month: int) -> bool:
        """Returns whether a month is chosen and the steps reach it."""
        chosen = self.months >> month & 1 and self.years >> year - FIRST_YEAR & 1
        return bool(chosen) and (self.every == 1 or (year * 12 + month - 1 - self.anchor) % self.every == 0)

    def _possible(self, month: int) -> bool:
        lengths = (28, 29) if month == 2 else (month_length(2001, month),)
        return any(any(self.table[(length - 28) * 7 : (length - 27) * 7]) for length in lengths)


@dataclass(frozen=True, slots=True)
class OfWeeks:
    """Weekdays of each k-th week; bit 0 is the first day of the week. begins: a day on which such a week begins."""

    weekdays: int
    begins: int = _MONDAY_BEFORE_EPOCH
    every: int = 1

    def next(self, day: int) -> int | None:
        week, weekday = divmod(day - self.begins, 7)
        left = self.weekdays >> weekday if week % self.every == 0 else 0
        if left:
            day += (left & -left).bit_length() - 1
        else:
            week += self.every - week % self.every
            day = self.begins + week * 7 + (self.weekdays & -self.weekdays).bit_length() - 1
        return day if day <= LAST_DAY else None

    def previous(self, day: int) -> int | None:
        week, weekday = divmod(day - self.begins, 7)
        left = self.weekdays & (2 << weekday) - 1 if week % self.every == 0 else 0
        if left:
            day += left.bit_length() - 1 - weekday
        else:
            week -= week % self.every or self.every
            day = self.begins + week * 7 + self.weekdays.bit_length() - 1
        return day if day >= FIRST_DAY else None

    def count(self, first: int, last: int) -> int:
        return self._before(last + 1) - self._before(first) if first <= last else 0

    def shortest_gap(self) -> int:
        around = 7 * self.every - (self.weekdays.bit_length() - 1 - lowest(self.weekdays))
        return min(around, _least_distance(self.weekdays))

    def _before(self, day: int) -> int:
        """Counts the days of the set from `begins` up to but not including `day`; negative before `begins`."""
        weeks, rest = divmod(day - self.begins, 7 * self.every)
        return weeks * self.weekdays.bit_count() + (self.weekdays & (1 << min(rest, 7)) - 1).bit_count()


@dataclass(frozen=True, slots=True)
class EachNth:
    """The days at a whole number of `every` days from `anchor`."""

    every: int = 1
    anchor: int = 0

    def next(self, day: int) -> int | None:
        day += (self.anchor - day) % self.every
        return day if day <= LAST_DAY else None

    def previous(self, day: int) -> int | None:
        day -= (day - self.anchor) % self.every
        return day if day >= FIRST_DAY else None

    def count(self, first: int, last: int) -> int:
        return max(0, (last - self.anchor) // self.every - (first - 1 - self.anchor) // self.every)

    def shortest_gap(self) -> int:
        return self.every


@dataclass(frozen=True, slots=True)
class OrNextDay:
    """The days of `days`, and the day after each day of `short`, so that a missing day moves to the next month."""

    days: Days
    short: Days

    def next(self, day: int) -> int | None:
        moved = self.short.next(day - 1)
        candidates = (self.days.next(day), None if moved is None else moved + 1)
        return min((each for each in candidates if each is not None), default=None)

    def previous(self, day: int) -> int | None:
        moved = self.short.previous(day - 1)
        candidates = (self.days.previous(day), None if moved is None else moved + 1)
        return max((each for each in candidates if each is not None), default=None)

    def count(self, first: int, last: int) -> int:
        number = self.days.count(first, last) + self.short.count(first - 1, last - 1)
        moved = self.short.next(first - 1)
        while moved is not None and moved < last:
            number -= self.days.next(moved + 1) == moved + 1
            moved = self.short.next(moved + 1)
        return number

    def shortest_gap(self) -> int:
        shortest, day = _HORIZON, self.next(FIRST_DAY)
        while day is not None and shortest > 1:
            later = self.next(day + 1)
            shortest = shortest if later is None else min(shortest, later - day)
            day = later
        return shortest


@dataclass(frozen=True, slots=True)
class Unmoved:
    """A pattern before missing dates move. series: the pattern without them. dates: bit n is day n of the month."""

    series: OnDays
    dates: int


@dataclass(frozen=True, slots=True)
class OnDays(Series):
    """Wall seconds: each day of `days` at each time of `clock`. unmoved: set if dates that a month lacks move."""

    days: Days
    clock: Clock
    unmoved: Unmoved | None = None

    def after(self, second: int) -> int | None:
        day, time = divmod(second, 86_400)
        later = self.clock.after(time)
        candidate = self.days.next(day + (later is None))
        if later is not None and candidate == day:
            return day * 86_400 + later
        return None if candidate is None else candidate * 86_400 + self.clock.first

    def until(self, second: int) -> int | None:
        day, time = divmod(second, 86_400)
        earlier = self.clock.until(time)
        candidate = self.days.previous(day - (earlier is None))
        if earlier is not None and candidate == day:
            return day * 86_400 + earlier
        return None if candidate is None else candidate * 86_400 + self.clock.last

    def moved_by(self, second: int) -> MovedBy | None:
        if self.unmoved is None or self.unmoved.series.until(second) == second or self.until(second) != second:
            return None
        return _missing_day(second, self.unmoved.dates)

    def count(self, after: int, until: int, limit: int) -> int:
        after, until = max(after, FIRST_DAY * 86_400 - 1), min(until, (LAST_DAY + 1) * 86_400 - 1)
        if after >= until:
            return 0
        (first, begun), (last, ended) = divmod(after + 1, 86_400), divmod(until, 86_400)
        if first == last:
            number = self.clock.count(begun, ended) if self.days.next(first) == first else 0
        else:
            number = self.days.count(first + 1, last - 1) * self.clock.times()
            number += self.clock.count(begun, 86_399) if self.days.next(first) == first else 0
            number += self.clock.count(0, ended) if self.days.next(last) == last else 0
        return max(0, min(number, limit))

    def shortest_gap_s(self) -> int:
        """Returns the guaranteed minimum distance between two wall times; exact if that between days is."""
        return self.clock.shortest_gap_s(self.days.shortest_gap())


def _least_distance(mask: int) -> int:
    """Returns the smallest distance between two bits."""
    return min((later - number for number, later in pairwise(bits(mask))), default=_HORIZON)


def _missing_day(wall: int, dates: int) -> MovedBy:
    """Marks an occurrence on the last day of a month that lacks one of `dates`, or on the day after it.

    wall: wall seconds. dates: bit n is day n of the month. The mark names the first missing day: 2027-02-31T09:00:00.
    """
    day, time = divmod(wall, 86_400)
    on = date.fromordinal(day + EPOCH_DAY)
    if on.day == 1:
        on -= timedelta(days=1)
    lacking = dates >> on.day + 1
    first = on.day + (lacking & -lacking).bit_length()
    return MovedBy("monthOverflow", f"{on:%Y-%m}-{first}{wall_text(time)[10:]}", "moved")
