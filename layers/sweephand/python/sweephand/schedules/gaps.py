"""The smallest and the largest distance between two occurrences of a stretch of time.

Steps and wall times of a calendar are measured by their shape, day by day, however dense they are; what calendars let
through of them, free stretch by free stretch. Anything else, what jitter puts off and what rolls is walked through.
Looks are counted, so that no answer takes long: it says how far it was measured.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from sweephand.schedules.calendar_masks import CalendarMasks, bits
from sweephand.schedules.clock import Clock
from sweephand.schedules.days import OnDays
from sweephand.schedules.localtime import Gap
from sweephand.schedules.rule import ByCalendars, Steps, Window
from sweephand.schedules.wallclock import OnWallClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sweephand.schedules.rule import Series

MOST_LOOKS = 2_000
"""Occurrences walked through; a free stretch of calendars counts as LOOKS_OF_STRETCH of them."""
LOOKS_OF_STRETCH = 5
_DAY_S = 86_400
_UNITS_S = (3600, 60, 1)


class Stretch(NamedTuple):
    """The occurrences of a stretch: the first, the last, the distances between neighbours (None for a single one).

    until: the second up to which it was measured.
    """

    first: int
    last: int
    smallest_s: int | None
    largest_s: int | None
    until: int


class _Looks:
    """How many are left of those that one answer may take."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


def measure(series: Series, after: int, until: int, most: int = MOST_LOOKS) -> Stretch | None:
    """The occurrences in (after, until]; None if there are none. most: looks at most."""
    return _measure(series, after, until, _Looks(most))


def walk(series: Series, after: int, until: int, most: int) -> Stretch | None:
    """The same of any series, one by one, and of its first `most` occurrences only."""
    return _walk(series, after, until, _Looks(most))


def _measure(series: Series, after: int, until: int, looks: _Looks) -> Stretch | None:
    if isinstance(series, Window):
        after, until = max(after, series.first - 1), min(until, series.last)
        return _measure(series.series, after, until, looks) if after < until else None
    if isinstance(series, Steps):
        return _steps(series, after, until)
    if isinstance(series, OnWallClock) and isinstance(series.pattern, CalendarMasks | OnDays):
        return _joined(_by_pieces(series, after, until, looks))
    if isinstance(series, ByCalendars):
        return _joined(_by_stretches(series, after, until, looks))
    return _walk(series, after, until, looks)


def _steps(steps: Steps, after: int, until: int) -> Stretch | None:
    first, last = steps.after(after), steps.until(until)
    if first is None or last is None or first > last:
        return None
    step_s = None if first == last else steps.step_s
    return Stretch(first, last, step_s, step_s, until)


def _walk(series: Series, after: int, until: int, looks: _Looks) -> Stretch | None:
    found: Stretch | None = None
    for second in series.seconds(after, until):
        here = Stretch(second, second, None, None, second)
        found = here if found is None else _join(found, here)
        looks.left -= 1
        if looks.left <= 0:
            return found
    return None if found is None else found._replace(until=until)


def _by_stretches(series: ByCalendars, after: int, until: int, looks: _Looks) -> Iterator[Stretch]:
    """Of calendars: where they let all through the series beneath is measured, elsewhere it is walked."""
    at = series.after(after)
    while at is not None and at <= until:
        end = min(series.alike_until(at), until)
        here = None if end <= at else _measure(series.series, at - 1, end, looks)
        here = here or Stretch(at, at, None, None, at)
        looks.left -= LOOKS_OF_STRETCH
        at = series.after(here.until)
        if looks.left <= 0 or at is None or at > until:
            yield here if looks.left <= 0 and at is not None else here._replace(until=until)
            return
        yield here


def _by_pieces(series: OnWallClock, after: int, until: int, looks: _Looks) -> Iterator[Stretch]:
    """The stretches between the changes of the clock, and those behind a gap, where what it moved is mixed in."""
    zone = series.zone
    for piece in range(zone.piece(after + 1), zone.piece(until) + 1):
        begin, end = series.bounds(piece)
        jump = zone.jump(piece)
        if jump > 0:
            mixed_until = min(until, begin + (jump if series.gap is Gap.SHIFT else 1) - 1)
            mixed = _walk(series, max(after, begin - 1), mixed_until, looks)
            if mixed is not None:
                yield mixed
                if mixed.until < mixed_until:
                    return
            begin = mixed_until + 1
        offset = zone.offsets[piece]
        assert isinstance(series.pattern, CalendarMasks | OnDays)
        calm = _wall_times(series.pattern, max(after, begin - 1) + offset, min(until, end - 1) + offset)
        if calm is not None:
            yield Stretch(calm.first - offset, calm.last - offset, calm.smallest_s, calm.largest_s, calm.until - offset)


def _wall_times(pattern: CalendarMasks | OnDays, after: int, until: int) -> Stretch | None:
    """Of a calendar: each of its days has the same times, so one day between two others stands for all."""
    first, last = pattern.after(after), pattern.until(until)
    if first is None or last is None or first > last:
        return None
    clock = _clock_of(pattern)
    (day, begun), (last_day, ended) = divmod(first, _DAY_S), divmod(last, _DAY_S)
    if day == last_day:
        distances = within_day(clock, begun, ended)
    else:
        distances = within_day(clock, begun, clock.last) | within_day(clock, clock.first, ended)
        between = set()
        while day < last_day:
            following = pattern.after((day + 1) * _DAY_S - 1)
            assert following is not None
            between.add(following - day * _DAY_S - clock.last)
            day = following // _DAY_S
            if day < last_day:
                distances |= within_day(clock, clock.first, clock.last)
        distances |= between
    return Stretch(first, last, min(distances, default=None), max(distances, default=None), until)


@lru_cache(maxsize=1024)
def within_day(clock: Clock, first: int, last: int) -> frozenset[int]:
    """The distances between neighbours from `first` to `last`, both of them times of the clock."""
    masks = (clock.hours, clock.minutes, clock.seconds)
    return frozenset(_distances(tuple(zip(masks, _UNITS_S, strict=True)), first, last))


def _distances(units: tuple[tuple[int, int], ...], first: int, last: int) -> set[int]:
    """By hours, and within an hour by minutes: one whole hour between two others stands for all of them."""
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
    found = {(later - number) * unit_s - (highest - lowest) for number, later in pairwise(chosen)}
    found |= _distances(below, into, highest) | _distances(below, lowest, rest)
    return found | _distances(below, lowest, highest) if len(chosen) > 2 else found


def _clock_of(pattern: CalendarMasks | OnDays) -> Clock:
    return Clock(pattern.hours, pattern.minutes) if isinstance(pattern, CalendarMasks) else pattern.clock


def _joined(stretches: Iterator[Stretch]) -> Stretch | None:
    found: Stretch | None = None
    for each in stretches:
        found = each if found is None else _join(found, each)
    return found


def _join(earlier: Stretch, later: Stretch) -> Stretch:
    gap_s = later.first - earlier.last
    smallest = min(each for each in (gap_s, earlier.smallest_s, later.smallest_s) if each is not None)
    largest = max(each for each in (gap_s, earlier.largest_s, later.largest_s) if each is not None)
    return Stretch(earlier.first, later.last, smallest, largest, later.until)
