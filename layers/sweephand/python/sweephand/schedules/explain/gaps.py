"""Measures the smallest and the largest distance between two occurrences in a stretch of time.

Steps, wall times of a calendar and wall times by steps are measured by their shape, day by day, however dense they are.
With calendars, they are measured one free stretch at a time. Everything else, including occurrences that jitter delays
or calendars roll, is measured one by one. A budget limits the work, so that no answer takes long. The answer says how
far it was measured.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from sweephand.schedules.grids.calendar_masks import bits
from sweephand.schedules.grids.clock import Clock
from sweephand.schedules.grids.cycles import Cycle, Expanded, Slots, SteppedClock, Within
from sweephand.schedules.grids.days import OnDays
from sweephand.schedules.grids.wallclock import OnWallClock
from sweephand.schedules.rule import MOST, ByCalendars, Steps, Undecided, Window, limited
from sweephand.schedules.zones.localtime import Gap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sweephand.schedules.rule import Series

MOST_MEASURED = 2_000
"""The most occurrences that are measured one by one. A free stretch of calendars counts as COST_OF_STRETCH of them.

The budget of a question (rule.py) may end the answer earlier.
"""
COST_OF_STRETCH = 5
_MOST_EFFORT = MOST * 3 // 4
_LISTED_FOR_ONE = 20
"""Times listed together that count as one. This matters for calendars only."""
_DAY_S = 86_400
_UNITS_S = (3600, 60, 1)
_ALL_SIXTY = (1 << 60) - 1
_OfDay = OnDays | Cycle | Expanded | SteppedClock
_SHAPED = (OnDays, Cycle, Expanded, Slots, SteppedClock, Steps, Within)


class Stretch(NamedTuple):
    """The occurrences of a stretch: the first, the last, and the distances between neighbours (None for a single one).

    until: the second up to which it was measured.
    """

    first: int
    last: int
    smallest_s: int | None
    largest_s: int | None
    until: int


class _Budget:
    """The measurements that are left for one answer. known: the distances found on days that come again."""

    __slots__ = ("known", "left")

    def __init__(self, left: int) -> None:
        self.left = left
        self.known: dict[tuple[int, int, int], set[int]] = {}


def measure(series: Series, after: int, until: int, most: int = MOST_MEASURED) -> Stretch | None:
    """Measures the occurrences in (after, until]; None if there are none. most: the budget. Raises Undecided."""
    with limited(_MOST_EFFORT):
        return _measure(series, after, until, _Budget(most))


def walk(series: Series, after: int, until: int, most: int) -> Stretch | None:
    """Measures any series one by one, but only its first `most` occurrences."""
    with limited(_MOST_EFFORT):
        return _walk(series, after, until, _Budget(most))


def _measure(series: Series, after: int, until: int, budget: _Budget) -> Stretch | None:
    if isinstance(series, Window):
        after, until = max(after, series.first - 1), min(until, series.last)
        return _measure(series.series, after, until, budget) if after < until else None
    if isinstance(series, Steps):
        return _steps(series, after, until)
    if isinstance(series, OnWallClock) and isinstance(series.pattern, _SHAPED):
        stretch = _joined(_by_pieces(series, after, until, budget))
        return stretch if stretch is None or budget.left <= 0 else stretch._replace(until=until)
    if isinstance(series, ByCalendars):
        return _joined(_by_stretches(series, after, until, budget))
    return _walk(series, after, until, budget)


def _steps(steps: Steps, after: int, until: int) -> Stretch | None:
    first, last = steps.after(after), steps.until(until)
    if first is None or last is None or first > last:
        return None
    step_s = None if first == last else steps.step_s
    return Stretch(first, last, step_s, step_s, until)


def _walk(series: Series, after: int, until: int, budget: _Budget) -> Stretch | None:
    stretch: Stretch | None = None
    try:
        for second in series.seconds(after, until):
            here = Stretch(second, second, None, None, second)
            stretch = here if stretch is None else _join(stretch, here)
            budget.left -= 1
            if budget.left <= 0:
                return stretch
    except Undecided:
        if stretch is None:
            raise
        budget.left = 0
        return stretch
    return None if stretch is None else stretch._replace(until=until)


def _by_stretches(series: ByCalendars, after: int, until: int, budget: _Budget) -> Iterator[Stretch]:
    """Yields stretches with calendars.

    Where the calendars let everything through, measures the series; elsewhere, each occurrence.
    """
    at = series.after(after)
    while at is not None and at <= until:
        end = min(series.alike_until(at), until)
        here = None if end <= at else _measure(series.series, at - 1, end, budget)
        here = here or Stretch(at, at, None, None, at)
        budget.left -= COST_OF_STRETCH
        try:
            at = series.after(here.until)
        except Undecided:
            yield here
            return
        if budget.left <= 0 or at is None or at > until:
            yield here if budget.left <= 0 and at is not None else here._replace(until=until)
            return
        yield here


def _by_pieces(series: OnWallClock, after: int, until: int, budget: _Budget) -> Iterator[Stretch]:
    """Yields the stretches between clock changes, and those after a gap, which contain the times that it moved."""
    zone = series.zone
    for piece in range(zone.piece(after + 1), zone.piece(until) + 1):
        begin, end = series.bounds(piece)
        jump = zone.jump(piece)
        if jump > 0:
            mixed_until = min(until, begin + (jump if series.gap is Gap.SHIFT else 1) - 1)
            mixed = _walk(series, max(after, begin - 1), mixed_until, budget)
            if mixed is not None:
                yield mixed
                if mixed.until < mixed_until:
                    return
            begin = mixed_until + 1
        offset = zone.offsets[piece]
        calm_until = min(until, end - 1) + offset
        calm = _calm(series.pattern, max(after, begin - 1) + offset, calm_until, budget)
        if calm is not None:
            yield Stretch(calm.first - offset, calm.last - offset, calm.smallest_s, calm.largest_s, calm.until - offset)
            if calm.until < calm_until:
                return


def _calm(pattern: Series, after: int, until: int, budget: _Budget) -> Stretch | None:
    """Measures a pattern without its zone, in wall seconds."""
    if isinstance(pattern, Steps):
        return _steps(pattern, after, until)
    listed = pattern.times if isinstance(pattern, Slots) else None
    pattern = listed or pattern
    first, last = pattern.after(after), pattern.until(until)
    if first is None or last is None or first > last:
        return None
    assert isinstance(pattern, OnDays | Cycle | Expanded | SteppedClock | Within)
    if isinstance(pattern, Cycle | Expanded):
        distances = (
            _of_cycle(listed, first, last) if isinstance(listed, Cycle) else _by_shape(pattern, first, last, budget)
        )
        return Stretch(first, last, min(distances, default=None), max(distances, default=None), until)
    stretch = _day_by_day(pattern, first, last, budget)
    return stretch._replace(until=until) if stretch.last == last else stretch


def _day_by_day(pattern: OnDays | SteppedClock | Within, first: int, last: int, budget: _Budget) -> Stretch:
    """Measures from occurrence `first` to `last`. Days on which the steps fall alike are measured once."""
    times = pattern.series if isinstance(pattern, Within) else pattern
    distances: set[int] = set()
    begun = first
    while True:
        end = (begun // _DAY_S + 1) * _DAY_S - 1
        latest = times.until(end)
        assert latest is not None
        ended = min(last, latest)
        key = (begun % _DAY_S, ended % _DAY_S, _phase(times, begun // _DAY_S))
        if key not in budget.known:
            of_day, reached = _on_day(times, begun, ended, budget)
            if reached < ended:
                distances |= of_day
                return Stretch(first, reached, min(distances, default=None), max(distances, default=None), reached)
            budget.known[key] = of_day
        distances |= budget.known[key]
        following = None if ended == last else pattern.after(end)
        if following is None:
            return Stretch(first, ended, min(distances, default=None), max(distances, default=None), ended)
        distances.add(following - ended)
        begun = following


def _phase(times: _OfDay, day: int) -> int:
    """Returns the phase of a day: days of the same phase have the same times."""
    if isinstance(times, OnDays):
        return 0
    if isinstance(times, SteppedClock):
        return (day * _DAY_S - times.steps.anchor) % times.steps.step_s
    return day * _DAY_S % (times.units if isinstance(times, Expanded) else times).period


def _on_day(times: _OfDay, first: int, last: int, budget: _Budget) -> tuple[set[int], int]:
    """Returns (distances between neighbours, how far measured): from `first` to `last`, unless the budget runs out."""
    if isinstance(times, OnDays):
        return set(within_day(times.clock, first % _DAY_S, last % _DAY_S)), last
    if isinstance(times, Cycle | Expanded):
        return _by_shape(times, first, last, budget), last
    distances: set[int] = set()
    while True:
        budget.left -= 1
        end = min(last, first + _open_s(times.clock, first % _DAY_S))
        reached = end - (end - first) % times.steps.step_s
        if reached > first:
            distances.add(times.steps.step_s)
        following = None if reached >= last else times.after(reached)
        if following is None or budget.left <= 0:
            return distances, reached
        distances.add(following - reached)
        first = following


def _by_shape(times: Cycle | Expanded, first: int, last: int, budget: _Budget) -> set[int]:
    budget.left -= len(times.residues if isinstance(times, Cycle) else times.offsets) // _LISTED_FOR_ONE
    return _of_cycle(times, first, last) if isinstance(times, Cycle) else _expanded(times, first, last)


def _open_s(clock: Clock, time: int) -> int:
    """Returns how many consecutive seconds after `time`, itself a time of the clock, are also its times."""
    hour, minute, second = time // 3600, time // 60 % 60, time % 60
    seconds = _run(clock.seconds, second)
    if second + seconds < 59 or clock.seconds & 1 == 0:
        return seconds
    minutes = _run(clock.minutes, minute) if clock.seconds == _ALL_SIXTY else 0
    if minute + minutes < 59 or clock.minutes != _ALL_SIXTY:
        return seconds + 60 * minutes
    return seconds + 60 * minutes + 3600 * _run(clock.hours, hour)


def _run(mask: int, bit: int) -> int:
    """Returns how many consecutive bits directly above `bit` are set."""
    above = mask >> bit + 1
    return (~above & above + 1).bit_length() - 1


def _of_cycle(cycle: Cycle, first: int, last: int) -> set[int]:
    """Returns the distances between two of its seconds; a whole period stands for all."""
    residues = cycle.residues
    if last - first >= cycle.period:
        return {later - one for one, later in pairwise((*residues, residues[0] + cycle.period))}
    begin, end = bisect_left(residues, first % cycle.period), bisect_left(residues, last % cycle.period)
    if first // cycle.period == last // cycle.period:
        return {later - one for one, later in pairwise(residues[begin : end + 1])}
    turned = (each + cycle.period for each in residues[: end + 1])
    return {later - one for one, later in pairwise((*residues[begin:], *turned))}


def _expanded(expanded: Expanded, first: int, last: int) -> set[int]:
    """Returns the distances between two of its seconds, by units: one whole inner unit stands for all."""
    units, offsets = expanded.units, expanded.offsets
    begun, ended = units.until(first), units.until(last)
    assert begun is not None
    assert ended is not None
    begin, end = bisect_left(offsets, first - begun), bisect_right(offsets, last - ended)
    if begun == ended:
        return {later - one for one, later in pairwise(offsets[begin:end])}
    distances = {each - (offsets[-1] - offsets[0]) for each in _of_cycle(units, begun, ended)}
    whole = units.after(begun) != ended
    parts = (offsets,) if whole else (offsets[begin:], offsets[:end])
    return distances | {later - one for part in parts for one, later in pairwise(part)}


@lru_cache(maxsize=1024)
def within_day(clock: Clock, first: int, last: int) -> frozenset[int]:
    """Returns the distances between neighbours from `first` to `last`, both of them times of the clock."""
    masks = (clock.hours, clock.minutes, clock.seconds)
    return frozenset(_distances(tuple(zip(masks, _UNITS_S, strict=True)), first, last))


def _distances(units: tuple[tuple[int, int], ...], first: int, last: int) -> set[int]:
    """Returns the distances by hours, and within an hour by minutes: one whole inner hour stands for all."""
    if not units:
        return set()
    (mask, unit_s), *finer = units
    (begin, into), (end, rest) = divmod(first, unit_s), divmod(last, unit_s)
    below = tuple(finer)
    if begin == end:
        return _distances(below, into, rest)
    chosen = [number for number in bits(mask) if begin <= number <= end]
    lowest = sum(((each & -each).bit_length() - 1) * each_s for each, each_s in below)
    highest = sum((each.bit_length() - 1) * each_s for each, each_s in below)
    distances = {(later - number) * unit_s - (highest - lowest) for number, later in pairwise(chosen)}
    distances |= _distances(below, into, highest) | _distances(below, lowest, rest)
    return distances | _distances(below, lowest, highest) if len(chosen) > 2 else distances


def _joined(stretches: Iterator[Stretch]) -> Stretch | None:
    stretch: Stretch | None = None
    for each in stretches:
        stretch = each if stretch is None else _join(stretch, each)
    return stretch


def _join(earlier: Stretch, later: Stretch) -> Stretch:
    gap_s = later.first - earlier.last
    smallest = min(each for each in (gap_s, earlier.smallest_s, later.smallest_s) if each is not None)
    largest = max(each for each in (gap_s, earlier.largest_s, later.largest_s) if each is not None)
    return Stretch(earlier.first, later.last, smallest, largest, later.until)
