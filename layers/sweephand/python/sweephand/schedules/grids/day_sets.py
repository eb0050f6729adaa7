"""Sets of days made of others (days.py)."""

from __future__ import annotations

from datetime import date

from sweephand.schedules.grids.days import EPOCH_DAY, FIRST_DAY, LAST_DAY, Days
from sweephand.schedules.grids.rrule_days import at_positions
from sweephand.values import value


def _counted(days: Days, first: int, last: int) -> int:
    """Counts one by one, for sets whose days follow no arithmetic."""
    found = 0
    day = days.next(first)
    while day is not None and day <= last:
        found += 1
        day = days.next(day + 1)
    return found


@value
class Both:
    """The days that are in `first` and in `second`. A search looks at no more days than the smaller set has."""

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
        return _counted(self, first, last)

    def shortest_gap(self) -> int:
        """Returns a certain gap, not always the smallest."""
        return max(self.first.shortest_gap(), self.second.shortest_gap())


@value
class PickedOfWeeks:
    """Days of each k-th week, in chosen months and on chosen weekdays, that stand at one of `positions`.

    weekdays: bit 0 is the first day of the week. months: bit n is month n. begins: a day on which a week of the set
    begins.
    """

    weekdays: int
    months: int
    positions: tuple[int, ...]
    begins: int
    every: int = 1

    def next(self, day: int) -> int | None:
        week = (day - self.begins) // 7
        week += -week % self.every
        while (begun := self.begins + week * 7) <= LAST_DAY:
            left = self._days_of(begun) >> max(day - begun, 0)
            if left:
                found = max(day, begun) + (left & -left).bit_length() - 1
                return found if found <= LAST_DAY else None
            week += self.every
        return None

    def previous(self, day: int) -> int | None:
        week = (day - self.begins) // 7
        week -= week % self.every
        while (begun := self.begins + week * 7) > FIRST_DAY - 7:
            left = self._days_of(begun) & (2 << min(day - begun, 6)) - 1
            if left:
                found = begun + left.bit_length() - 1
                return found if found >= FIRST_DAY else None
            week -= self.every
        return None

    def count(self, first: int, last: int) -> int:
        return _counted(self, first, last)

    def shortest_gap(self) -> int:
        """Returns a certain gap, not always the smallest."""
        return 1

    def _days_of(self, begun: int) -> int:
        mask = 0
        for into in range(7):
            if self.weekdays >> into & 1:
                on = date.fromordinal(begun + into + EPOCH_DAY)
                mask |= (self.months >> on.month & 1) << into
        return at_positions(mask, self.positions)
