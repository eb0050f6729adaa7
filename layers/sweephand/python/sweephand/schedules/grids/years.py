"""Days of chosen years, by rules that see the year as a whole: weeks by number, days of the year, the 20th Monday."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

from sweephand.schedules.grids.calendar_masks import bits
from sweephand.schedules.grids.days import ALL_YEARS, EPOCH_DAY, FIRST_DAY, FIRST_YEAR, LAST_DAY, LAST_YEAR
from sweephand.schedules.grids.rrule_days import DayRule, of_year
from sweephand.values import value


@value
class OfYears:
    """Days (days.py) of years by a rule. years: bit n is the year 1969 + n."""

    rule: DayRule
    years: int = ALL_YEARS

    def ever(self) -> bool:
        """Returns whether any day is in the set. Looks at each year at most; a year is one of 28 kinds."""
        return any(self._days_of(year) for year in range(FIRST_YEAR + 1, LAST_YEAR))

    def next(self, day: int) -> int | None:
        if day > LAST_DAY:
            return None
        ordinal = max(day, FIRST_DAY) + EPOCH_DAY
        year = date.fromordinal(ordinal).year
        into = ordinal - _eve(year)
        days = self._days_of(year) >> into << into
        while not days:
            left = self.years >> year + 1 - FIRST_YEAR
            if not left:
                return None
            year += (left & -left).bit_length()
            days = self._days_of(year)
        return _eve(year) + (days & -days).bit_length() - 1 - EPOCH_DAY

    def previous(self, day: int) -> int | None:
        if day < FIRST_DAY:
            return None
        ordinal = min(day, LAST_DAY) + EPOCH_DAY
        year = date.fromordinal(ordinal).year
        days = self._days_of(year) & (2 << ordinal - _eve(year)) - 1
        while not days:
            left = self.years & (1 << year - FIRST_YEAR) - 1
            if not left:
                return None
            year = left.bit_length() - 1 + FIRST_YEAR
            days = self._days_of(year)
        return _eve(year) + days.bit_length() - 1 - EPOCH_DAY

    def count(self, first: int, last: int) -> int:
        found = 0
        if first > last:
            return found
        for year in range(_year_of(first), _year_of(last) + 1):
            days = self._days_of(year)
            eve = _eve(year) - EPOCH_DAY
            found += (days & (2 << min(last - eve, 366)) - (1 << max(first - eve, 0))).bit_count()
        return found

    def shortest_gap(self) -> int:
        shortest, before = LAST_DAY - FIRST_DAY, FIRST_DAY - LAST_DAY
        kinds: dict[int, int] = {}
        for year in range(FIRST_YEAR, LAST_YEAR + 1):
            days = self._days_of(year)
            if not days:
                continue
            if days not in kinds:
                numbers = bits(days)
                kinds[days] = min((b - a for a, b in pairwise(numbers)), default=shortest)
            eve = _eve(year) - EPOCH_DAY
            shortest = min(shortest, kinds[days], eve + (days & -days).bit_length() - 1 - before)
            before = eve + days.bit_length() - 1
        return shortest

    def _days_of(self, year: int) -> int:
        """Returns the mask of a year's days, 0 if the year is not chosen."""
        if not self.years >> year - FIRST_YEAR & 1:
            return 0
        eves = [_eve(each) for each in range(year - 1, year + 3)]
        before, length, following = (later - eve for eve, later in pairwise(eves))
        return of_year(self.rule, length, eves[1] % 7, before, following)


def _eve(year: int) -> int:
    """Returns the ordinal of the day before a year."""
    year -= 1
    return year * 365 + year // 4 - year // 100 + year // 400


def _year_of(day: int) -> int:
    return date.fromordinal(day + EPOCH_DAY).year
