"""Equal steps of whole minutes or hours on the wall clock, restricted to parts of the day."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd

from sweephand.schedules.grids.calendar_masks import bits, lowest
from sweephand.schedules.grids.clock import DAY_S
from sweephand.schedules.rule import Series


@dataclass(frozen=True, slots=True)
class Slots(Series):
    """Wall seconds: in each `every`-th slot since slot `anchor`, of those that `chosen` admits, these minutes.

    size_s: of a slot, 60 or 3600. anchor: slots since 1970-01-01T00:00:00. chosen: bit n is the n-th slot of a day.
    minutes: bit n is minute n of the slot. The grid meets the day in the same way again after `_period` days, at most
    `every`: no search looks at more.
    """

    size_s: int
    every: int
    anchor: int
    chosen: int
    minutes: int = 1
    _a_day: int = field(init=False, repr=False, compare=False)
    _period: int = field(init=False, repr=False, compare=False)
    _grid: int = field(init=False, repr=False, compare=False)
    _meeting: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        a_day = DAY_S // self.size_s
        folded = 0
        for moved in range(0, a_day, self.every):
            folded |= self.chosen >> moved
        object.__setattr__(self, "_a_day", a_day)
        object.__setattr__(self, "_period", self.every // gcd(self.every, a_day))
        object.__setattr__(self, "_grid", sum(1 << slot for slot in range(0, a_day, self.every)))
        object.__setattr__(self, "_meeting", folded & (1 << self.every) - 1)

    def after(self, second: int) -> int | None:
        day, time = divmod(second, DAY_S)
        slot, within = divmod(time, self.size_s)
        slots = self._slots_of(day)
        if slots >> slot & 1 and (left := self.minutes >> within // 60 + 1):
            return day * DAY_S + slot * self.size_s + (within // 60 + 1 + lowest(left)) * 60
        later = slots >> slot + 1 << slot + 1
        if not later:
            found = self._day_from(day + 1, 1)
            if found is None:
                return None
            day, later = found, self._slots_of(found)
        return day * DAY_S + lowest(later) * self.size_s + lowest(self.minutes) * 60

    def until(self, second: int) -> int | None:
        day, time = divmod(second, DAY_S)
        slot, within = divmod(time, self.size_s)
        slots = self._slots_of(day)
        if slots >> slot & 1 and (left := self.minutes & (2 << within // 60) - 1):
            return day * DAY_S + slot * self.size_s + (left.bit_length() - 1) * 60
        earlier = slots & (1 << slot) - 1
        if not earlier:
            found = self._day_from(day - 1, -1)
            if found is None:
                return None
            day, earlier = found, self._slots_of(found)
        return day * DAY_S + (earlier.bit_length() - 1) * self.size_s + (self.minutes.bit_length() - 1) * 60

    def count(self, after: int, until: int, limit: int) -> int:
        return max(0, min(self._count_until(until) - self._count_until(after), limit)) if after < until else 0

    def phase(self, day: int) -> int:
        """Returns the phase of a day: days of the same phase have the same times."""
        return day % self._period

    def on_day(self, first: int, last: int) -> list[int]:
        """Returns the occurrences from `first` to `last`, rising; both lie on one day."""
        day = first // DAY_S
        minutes = [minute * 60 for minute in bits(self.minutes)]
        slots = self._slots_of(day) & (2 << last % DAY_S // self.size_s) - 1
        into = first % DAY_S // self.size_s
        begins = (day * DAY_S + slot * self.size_s for slot in bits(slots >> into << into))
        return [second for begin in begins for minute in minutes if first <= (second := begin + minute) <= last]

    def shortest_gap_s(self) -> int:
        """Returns the exact smallest distance between two wall times; a period if there is at most one."""
        shortest = period_s = self._period * DAY_S
        latest = self.after(-1)
        end = None if latest is None else latest + period_s
        while latest is not None and end is not None and latest < end:
            upcoming = self.after(latest)
            assert upcoming is not None
            shortest, latest = min(shortest, upcoming - latest), upcoming
        return shortest

    def _slots_of(self, day: int) -> int:
        return self._grid << (self.anchor - day * self._a_day) % self.every & self.chosen

    def _day_from(self, day: int, step: int) -> int | None:
        """Returns the first day from `day` on, forwards or backwards, that has a slot."""
        place = (self.anchor - day * self._a_day) % self.every
        for later in range(self._period):
            if self._meeting >> place & 1:
                return day + later * step
            place = (place - step * self._a_day) % self.every
        return None

    def _count_until(self, second: int) -> int:
        """Counts from 1970; negative before."""
        day, time = divmod(second, DAY_S)
        periods, days = divmod(day, self._period)
        slot, within = divmod(time, self.size_s)
        slots = self._slots_of(day)
        whole = sum(self._slots_of(each).bit_count() for each in range(days)) + (slots & (1 << slot) - 1).bit_count()
        if periods:
            whole += periods * sum(self._slots_of(each).bit_count() for each in range(self._period))
        begun = (self.minutes & (2 << within // 60) - 1).bit_count() if slots >> slot & 1 else 0
        return whole * self.minutes.bit_count() + begun
