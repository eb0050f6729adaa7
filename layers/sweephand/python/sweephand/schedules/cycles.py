"""Wall seconds by steps that do not fit the clock: every 7 hours, every 90 minutes from 9 to 17, only on Mondays.

Cycle         the same seconds of each period, for ever
SteppedClock  equal steps, at times of a clock only
Expanded      several seconds for each of a series
Within        a series, on certain days only
Apart         several series that have no second in common
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from itertools import count, pairwise, product
from math import gcd

from sweephand.schedules.calendar_masks import bits
from sweephand.schedules.clock import DAY_S, Clock
from sweephand.schedules.days import FIRST_DAY, LAST_DAY, Days
from sweephand.schedules.rule import Series, Steps
from sweephand.values import value

_LAST_WALL = (LAST_DAY + 1) * DAY_S - 1
_FEW = 8
"""Looks before the next meeting is computed."""
_FEW_STEPS = 100
"""So many are sooner looked at than counted."""
_MOST_WINDOWS = 48


@value
class Cycle(Series):
    """k * period + r for every whole k and each r of `residues`: rising, from 0, below the period; at least one."""

    period: int
    residues: tuple[int, ...]

    def after(self, second: int) -> int | None:
        turn, into = divmod(second, self.period)
        following = bisect_right(self.residues, into)
        if following < len(self.residues):
            return second - into + self.residues[following]
        return (turn + 1) * self.period + self.residues[0]

    def until(self, second: int) -> int | None:
        turn, into = divmod(second, self.period)
        following = bisect_right(self.residues, into)
        if following:
            return second - into + self.residues[following - 1]
        return (turn - 1) * self.period + self.residues[-1]

    def count(self, after: int, until: int, limit: int) -> int:
        return max(0, min(self._before(until) - self._before(after), limit))

    def shortest_gap_s(self) -> int:
        around = (*self.residues, self.residues[0] + self.period)
        return min(later - earlier for earlier, later in pairwise(around))

    def _before(self, second: int) -> int:
        turn, into = divmod(second, self.period)
        return turn * len(self.residues) + bisect_right(self.residues, into)


def meeting(step: int, anchor: int, day: int, times: Iterable[int]) -> tuple[int, tuple[int, ...]]:
    """(period, residues) of the numbers anchor + k * step that lie at one of `times` of a day, `day` numbers long.

    By the Chinese remainder theorem each time is met on one day of step / gcd(step, day), or never.
    """
    common = gcd(step, day)
    turns = step // common
    inverse = pow(day // common, -1, turns)
    met = []
    for time in times:
        away, rest = divmod(anchor - time, common)
        if not rest:
            met.append(away * inverse % turns * day + time)
    return turns * day, tuple(sorted(met))


@value
class SteppedClock(Series):
    """The seconds of `steps` that are times of `clock`: for clocks with so many times that the two soon meet.

    Where they do not, as with steps of almost a day, the next one is computed, if the clock is open in few stretches.
    """

    steps: Steps
    clock: Clock

    def after(self, second: int) -> int | None:
        for looked in count():
            if second > _LAST_WALL:
                return None
            found = second + self.steps.step_s - (second - self.steps.anchor) % self.steps.step_s
            day, time = divmod(found, DAY_S)
            if self.clock.until(time) == time:
                return found
            if looked == _FEW and (windows := open_at(self.clock)):
                return self._meeting(found, [(begin - time, end - time) for begin, end in windows], 1)
            at = self.clock.after(time)
            second = (day + 1) * DAY_S - 1 if at is None else day * DAY_S + at - 1
        raise AssertionError

    def until(self, second: int) -> int | None:
        for looked in count():
            if second < FIRST_DAY * DAY_S:
                return None
            found = second - (second - self.steps.anchor) % self.steps.step_s
            day, time = divmod(found, DAY_S)
            at = self.clock.until(time)
            if at == time:
                return found
            if looked == _FEW and (windows := open_at(self.clock)):
                return self._meeting(found, [(time - end, time - begin) for begin, end in windows], -1)
            second = day * DAY_S + (-1 if at is None else at)
        raise AssertionError

    def count(self, after: int, until: int, limit: int) -> int:
        step_s = self.steps.step_s
        first = after + step_s - (after - self.steps.anchor) % step_s
        steps = (until - first) // step_s + 1
        windows = open_at(self.clock)
        if steps <= _FEW_STEPS or not windows:
            return Series.count(self, after, until, limit)
        met = sum(
            floor_sum(steps, DAY_S, step_s, first - begin) - floor_sum(steps, DAY_S, step_s, first - end - 1)
            for begin, end in windows
        )
        return max(0, min(met, limit))

    def _meeting(self, second: int, windows: list[tuple[int, int]], way: int) -> int | None:
        """The first of the steps from `second` on that is a time of the clock. windows: how far it is into them."""
        ways = [first_multiple(self.steps.step_s, DAY_S, low % DAY_S, high % DAY_S) for low, high in windows]
        least = min((each for each in ways if each is not None), default=None)
        if least is None:
            return None
        found = second + way * least * self.steps.step_s
        return found if FIRST_DAY * DAY_S <= found <= _LAST_WALL else None

    def shortest_gap_s(self) -> int:
        """The smallest distance that is certain."""
        return max(self.steps.step_s, self.clock.shortest_gap_s())


@value
class Expanded(Series):
    """Each second of `units` and `offsets` later; rising, the last of them before the next of `units`."""

    units: Cycle
    offsets: tuple[int, ...]

    def after(self, second: int) -> int | None:
        begun = self.units.until(second)
        if begun is not None:
            following = bisect_right(self.offsets, second - begun)
            if following < len(self.offsets):
                return begun + self.offsets[following]
        upcoming = self.units.after(second)
        return None if upcoming is None else upcoming + self.offsets[0]

    def until(self, second: int) -> int | None:
        begun = self.units.until(second)
        if begun is None:
            return None
        following = bisect_right(self.offsets, second - begun)
        if following:
            return begun + self.offsets[following - 1]
        earlier = self.units.until(begun - 1)
        return None if earlier is None else earlier + self.offsets[-1]

    def count(self, after: int, until: int, limit: int) -> int:
        return max(0, min(self._before(until) - self._before(after), limit))

    def shortest_gap_s(self) -> int:
        around = (*self.offsets, self.offsets[0] + self.units.shortest_gap_s())
        return min(later - earlier for earlier, later in pairwise(around))

    def _before(self, second: int) -> int:
        """How many up to `second`, counted from a fixed point."""
        begun = self.units.until(second)
        if begun is None:
            return 0
        return (self.units._before(begun) - 1) * len(self.offsets) + bisect_right(self.offsets, second - begun)  # noqa: SLF001 - of this module


@value
class Within(Series):
    """The seconds of `series` that lie on one of `days`."""

    series: Cycle | SteppedClock | Expanded
    days: Days

    def after(self, second: int) -> int | None:
        while True:
            found = self.series.after(second)
            if found is None:
                return None
            on = self.days.next(found // DAY_S)
            if on is None or on == found // DAY_S:
                return None if on is None else found
            second = on * DAY_S - 1

    def until(self, second: int) -> int | None:
        while True:
            found = self.series.until(second)
            if found is None:
                return None
            on = self.days.previous(found // DAY_S)
            if on is None or on == found // DAY_S:
                return None if on is None else found
            second = (on + 1) * DAY_S - 1

    def count(self, after: int, until: int, limit: int) -> int:
        """Looks at each day of `days` on which the series has a second."""
        found = 0
        upcoming = self.after(after)
        while upcoming is not None and upcoming <= until and found < limit:
            end = min((upcoming // DAY_S + 1) * DAY_S - 1, until)
            found += self.series.count(upcoming - 1, end, limit)
            upcoming = self.after(end)
        return min(found, max(0, limit))

    def shortest_gap_s(self) -> int:
        """The smallest distance that is certain."""
        return self.series.shortest_gap_s()


@value
class Apart(Series):
    """Several series that have no second in common."""

    parts: tuple[Series, ...]

    def after(self, second: int) -> int | None:
        return min((found for part in self.parts if (found := part.after(second)) is not None), default=None)

    def until(self, second: int) -> int | None:
        return max((found for part in self.parts if (found := part.until(second)) is not None), default=None)

    def count(self, after: int, until: int, limit: int) -> int:
        return min(sum(part.count(after, until, limit) for part in self.parts), max(0, limit))


@lru_cache(maxsize=256)
def open_at(clock: Clock) -> tuple[tuple[int, int], ...]:
    """The stretches (first, last second) of a day that are times of the clock; none where they are many."""
    found: list[tuple[int, int]] = []
    for hour, minute in product(bits(clock.hours), bits(clock.minutes)):
        for second in bits(clock.seconds):
            at = hour * 3600 + minute * 60 + second
            if found and found[-1][1] == at - 1:
                found[-1] = (found[-1][0], at)
            elif len(found) == _MOST_WINDOWS:
                return ()
            else:
                found.append((at, at))
    return tuple(found)


def first_multiple(step: int, modulus: int, low: int, high: int) -> int | None:
    """The least k from 0 on with low <= k * step % modulus <= high, where 0 <= low <= high < modulus.

    As Euclid's algorithm: where no multiple lies there before the first turn, the question is one of fewer turns.
    """
    step %= modulus
    if low == 0:
        return 0
    if step == 0:
        return None
    least = -(-low // step)
    if least * step <= high:
        return least
    turns = first_multiple(modulus % step, step, -high % step, -low % step)
    return None if turns is None else -(-(low + modulus * turns) // step)


def floor_sum(terms: int, modulus: int, step: int, first: int) -> int:
    """The sum of (first + k * step) // modulus for each k from 0 below `terms`, in the rounds of Euclid's algorithm."""
    total = 0
    while True:
        whole, step = divmod(step, modulus)
        total += terms * (terms - 1) // 2 * whole
        whole, first = divmod(first, modulus)
        total += terms * whole
        last = step * terms + first
        if last < modulus:
            return total
        terms, first = divmod(last, modulus)
        modulus, step = step, modulus
