"""Wall seconds by steps that do not fit the clock: every 7 hours, every 90 minutes from 9 to 17, only on Mondays.

Cycle         the same seconds of each period, forever
Slots         minutes of equal steps of whole minutes or hours, in parts of the day only
SteppedClock  equal steps, at times of a clock only
Expanded      several seconds for each of a series
Within        a series, on certain days only
Apart         several series that have no second in common
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import accumulate, pairwise
from math import gcd, lcm

from sweephand.base.records import dataclass
from sweephand.schedules.grids.calendar_masks import bits
from sweephand.schedules.grids.clock import DAY_S, Clock
from sweephand.schedules.grids.days import FIRST_DAY, LAST_DAY, Days
from sweephand.schedules.rule import Never, Series, Steps, spend

_LAST_WALL = (LAST_DAY + 1) * DAY_S - 1
_FEW = 8
"""Steps tried before the list of a turn is made."""


@dataclass(frozen=True)
class Cycle(Series):
    """The seconds k * period + r for every whole k and each r of `residues`, in ascending order, 0 <= r < period."""

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
    """Returns (period, residues) of the numbers anchor + k * step at one of `times` of a day, `day` numbers long.

    The Chinese remainder theorem gives the days: each time is met on one day of step / gcd(step, day), or never.
    """
    common = gcd(step, day)
    turns = step // common
    inverse = pow(day // common, -1, turns)
    slots = []
    for time in times:
        away, rest = divmod(anchor - time, common)
        if not rest:
            slots.append(away * inverse % turns * day + time)
    return turns * day, tuple(sorted(slots))


@dataclass(frozen=True, slots=True)
class Slots(Series):
    """Wall seconds: certain minutes in each `every`-th slot since slot `anchor` that `chosen` admits.

    size_s: of a slot, 60 or 3600. anchor: in slots since 1970-01-01T00:00:00. chosen: bit n is the n-th slot of a day.
    minutes: bit n is minute n of the slot. times: the same as a Cycle of at most 1,440 seconds, or Never.
    """

    size_s: int
    every: int
    anchor: int
    chosen: int
    minutes: int = 1
    times: Cycle | Never = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        period, slots = meeting(self.every, self.anchor, DAY_S // self.size_s, bits(self.chosen))
        minutes = bits(self.minutes)
        residues = tuple(slot * self.size_s + minute * 60 for slot in slots for minute in minutes)
        object.__setattr__(self, "times", Cycle(period * self.size_s, residues) if residues else Never())

    def after(self, second: int) -> int | None:
        return self.times.after(second)

    def until(self, second: int) -> int | None:
        return self.times.until(second)

    def count(self, after: int, until: int, limit: int) -> int:
        return self.times.count(after, until, limit)

    def shortest_gap_s(self) -> int:
        """Returns the exact smallest distance between two wall times; a period if there is at most one."""
        return self.times.shortest_gap_s() if isinstance(self.times, Cycle) else lcm(self.every * self.size_s, DAY_S)


@dataclass(frozen=True)
class SteppedClock(Series):
    """The seconds of `steps` that are times of `clock`, for clocks with so many times that the two soon meet.

    If they do not meet, as with steps of almost a day, the next one is looked up in a list of one turn (`_turn`).
    """

    steps: Steps
    clock: Clock

    def after(self, second: int) -> int | None:
        for _ in range(_FEW):
            if second > _LAST_WALL:
                return None
            instant = second + self.steps.step_s - (second - self.steps.anchor) % self.steps.step_s
            day, time = divmod(instant, DAY_S)
            if self.clock.until(time) == time:
                return instant
            at = self.clock.after(time)
            second = (day + 1) * DAY_S - 1 if at is None else day * DAY_S + at - 1
        hits, turn, step = self._place((second - self.steps.anchor) // self.steps.step_s + 1)
        following = bisect_right(hits, hits[step])
        if following == len(hits):
            turn, following = turn + 1, bisect_right(hits, 0)
        return self._instant(hits, turn, following - 1)

    def until(self, second: int) -> int | None:
        for _ in range(_FEW):
            if second < FIRST_DAY * DAY_S:
                return None
            instant = second - (second - self.steps.anchor) % self.steps.step_s
            day, time = divmod(instant, DAY_S)
            at = self.clock.until(time)
            if at == time:
                return instant
            second = day * DAY_S + (-1 if at is None else at)
        hits, turn, step = self._place((second - self.steps.anchor) // self.steps.step_s)
        counted = hits[step + 1]
        if not counted:
            turn, counted = turn - 1, hits[-1]
        return self._instant(hits, turn, bisect_left(hits, counted) - 1)

    def count(self, after: int, until: int, limit: int) -> int:
        anchor, step_s = self.steps.anchor, self.steps.step_s
        before = []
        for second in (after, until):
            hits, turn, step = self._place((second - anchor) // step_s + 1)
            before.append(turn * hits[-1] + hits[step])
        return max(0, min(before[1] - before[0], limit))

    def _place(self, which: int) -> tuple[Sequence[int], int, int]:
        """Returns (the list of a turn, the turn, the step within it) for a step counted from the anchor."""
        hits = _turn(self.steps.step_s % DAY_S, self.steps.anchor % DAY_S, self.clock)
        return hits, *divmod(which, len(hits) - 1)

    def _instant(self, hits: Sequence[int], turn: int, step: int) -> int | None:
        if not hits[-1]:
            return None
        instant = self.steps.anchor + (turn * (len(hits) - 1) + step) * self.steps.step_s
        return instant if FIRST_DAY * DAY_S <= instant <= _LAST_WALL else None

    def shortest_gap_s(self) -> int:
        """Returns the guaranteed minimum distance."""
        return max(self.steps.step_s, self.clock.shortest_gap_s())


@lru_cache(maxsize=16)
def _turn(step: int, begin: int, clock: Clock) -> Sequence[int]:
    """Lists how many of the first n steps from the time `begin` on are times of the clock, for each n of one turn.

    A turn has DAY_S / gcd(step, DAY_S) steps; after that, the same times of the day come again.
    """
    steps = DAY_S // gcd(step, DAY_S)
    spend(steps // 15)
    seconds = bytes(clock.seconds >> n & 1 for n in range(60))
    hour = b"".join(seconds if clock.minutes >> n & 1 else bytes(60) for n in range(60))
    day = b"".join(hour if clock.hours >> n & 1 else bytes(3600) for n in range(24))
    if step > DAY_S // 2:  # so many steps forward are fewer backward
        day, begin, step = day[::-1], DAY_S - 1 - begin, DAY_S - step
    laps, left = [], steps
    while left > 0:
        lap = day[begin :: step or DAY_S]
        laps.append(lap)
        left -= len(lap)
        begin += len(lap) * step - DAY_S
    return array("I", accumulate(b"".join(laps)[:steps], initial=0))


@dataclass(frozen=True)
class Expanded(Series):
    """The seconds of `units`, each delayed by each of `offsets`, which ascend and end before the next of `units`."""

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
        """Returns how many seconds it has up to `second`, counted from a fixed point."""
        begun = self.units.until(second)
        if begun is None:
            return 0
        return (self.units._before(begun) - 1) * len(self.offsets) + bisect_right(self.offsets, second - begun)  # noqa: SLF001 - of this module


@dataclass(frozen=True)
class Within(Series):
    """The seconds of `series` that lie on one of `days`."""

    series: Cycle | SteppedClock | Expanded
    days: Days

    def after(self, second: int) -> int | None:
        while True:
            spend(2)
            instant = self.series.after(second)
            if instant is None:
                return None
            on = self.days.next(instant // DAY_S)
            if on is None or on == instant // DAY_S:
                return None if on is None else instant
            second = on * DAY_S - 1

    def until(self, second: int) -> int | None:
        while True:
            spend(2)
            instant = self.series.until(second)
            if instant is None:
                return None
            on = self.days.previous(instant // DAY_S)
            if on is None or on == instant // DAY_S:
                return None if on is None else instant
            second = (on + 1) * DAY_S - 1

    def count(self, after: int, until: int, limit: int) -> int:
        """Counts day by day: each of `days` on which the series has a second."""
        number = 0
        upcoming = self.after(after)
        while upcoming is not None and upcoming <= until and number < limit:
            spend(2)
            end = min((upcoming // DAY_S + 1) * DAY_S - 1, until)
            number += self.series.count(upcoming - 1, end, limit)
            upcoming = self.after(end)
        return min(number, max(0, limit))

    def shortest_gap_s(self) -> int:
        """Returns the guaranteed minimum distance."""
        return self.series.shortest_gap_s()


@dataclass(frozen=True)
class Apart(Series):
    """Several series that have no second in common."""

    parts: tuple[Series, ...]

    def after(self, second: int) -> int | None:
        return min((instant for part in self.parts if (instant := part.after(second)) is not None), default=None)

    def until(self, second: int) -> int | None:
        return max((instant for part in self.parts if (instant := part.until(second)) is not None), default=None)

    def count(self, after: int, until: int, limit: int) -> int:
        return min(sum(part.count(after, until, limit) for part in self.parts), max(0, limit))
