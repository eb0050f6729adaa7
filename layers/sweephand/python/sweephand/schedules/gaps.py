"""The smallest and the largest distance between two occurrences of a stretch of time.

Steps and wall times of a calendar are measured by their shape, day by day, however dense they are. Anything else, what
jitter puts off and what calendars thin out is walked through, as far as MOST_WALKED occurrences reach.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from sweephand.schedules.calendar_masks import CalendarMasks, bits
from sweephand.schedules.clock import Clock
from sweephand.schedules.days import OnDays
from sweephand.schedules.localtime import Gap
from sweephand.schedules.rule import Steps, Window
from sweephand.schedules.wallclock import OnWallClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sweephand.schedules.rule import Series

MOST_WALKED = 20_000
_DAY_S = 86_400


class Stretch(NamedTuple):
    """The occurrences of a stretch: the first, the last, the distances between neighbours (None for a single one).

    until: the second up to which it was measured.
    """

    first: int
    last: int
    smallest_s: int | None
    largest_s: int | None
    until: int


def measure(series: Series, after: int, until: int, most: int = MOST_WALKED) -> Stretch | None:
    """The occurrences in (after, until]; None if there are none. most: how many are walked through at most."""
    if isinstance(series, Window):
        after, until = max(after, series.first - 1), min(until, series.last)
        return measure(series.series, after, until, most) if after < until else None
    if isinstance(series, Steps):
        return _steps(series, after, until)
    if isinstance(series, OnWallClock) and isinstance(series.pattern, CalendarMasks | OnDays):
        return _joined(_by_pieces(series, after, until, most))
    return walk(series, after, until, most)


def _steps(steps: Steps, after: int, until: int) -> Stretch | None:
    first, last = steps.after(after), steps.until(until)
    if first is None or last is None or first > last:
        return None
    step_s = None if first == last else steps.step_s
    return Stretch(first, last, step_s, step_s, until)


def walk(series: Series, after: int, until: int, most: int) -> Stretch | None:
    """The same of any series, one by one, and of its first `most` occurrences only."""
    found: Stretch | None = None
    for number, second in enumerate(series.seconds(after, until), 1):
        here = Stretch(second, second, None, None, second)
        found = here if found is None else _join(found, here)
        if number == most:
            return found
    return None if found is None else found._replace(until=until)


def _by_pieces(series: OnWallClock, after: int, until: int, most: int) -> Iterator[Stretch]:
    """The stretches between the changes of the clock, and those behind a gap, where what it moved is mixed in."""
    zone = series.zone
    for piece in range(zone.piece(after + 1), zone.piece(until) + 1):
        begin, end = series.bounds(piece)
        jump = zone.jump(piece)
        if jump > 0:
            mixed_until = min(until, begin + (jump if series.gap is Gap.SHIFT else 1) - 1)
            mixed = walk(series, max(after, begin - 1), mixed_until, most)
            if mixed is not None:
                yield mixed
            begin = mixed_until + 1
        offset = zone.offsets[piece]
        calm = _wall_times(series.pattern, max(after, begin - 1) + offset, min(until, end - 1) + offset)
        if calm is not None:
            yield Stretch(calm.first - offset, calm.last - offset, calm.smallest_s, calm.largest_s, calm.until - offset)


def _wall_times(pattern: Series, after: int, until: int) -> Stretch | None:
    """Of a calendar: each of its days has the same times, so one day between two others stands for all."""
    first = pattern.after(after)
    last = pattern.until(until)
    if first is None or last is None or first > last:
        return None
    day, last_day = first // _DAY_S, last // _DAY_S
    if last_day - day < 2:
        return walk(pattern, after, until, _DAY_S * 2)
    within = _within_day(pattern)
    between = []
    whole_days = 0
    while day < last_day:
        end_of_day = pattern.until(day * _DAY_S + _DAY_S - 1)
        begin_of_next = pattern.after(day * _DAY_S + _DAY_S - 1)
        if end_of_day is None or begin_of_next is None:
            break
        between.append(begin_of_next - end_of_day)
        day = begin_of_next // _DAY_S
        whole_days += day < last_day
    if not whole_days:
        return walk(pattern, after, until, _DAY_S * 2)
    return Stretch(first, last, min(between + within), max(between + within), until)


def _within_day(pattern: Series) -> list[int]:
    """The distances between neighbours that one day holds, each at least once; none if it has one time only."""
    clock = pattern.clock if isinstance(pattern, OnDays) else _clock_of(pattern)
    if clock is None:
        return []
    seconds, minutes, hours = bits(clock.seconds), bits(clock.minutes), bits(clock.hours)
    in_minute = seconds[-1] - seconds[0]
    in_hour = (minutes[-1] - minutes[0]) * 60 + in_minute
    return [
        *(later - second for second, later in pairwise(seconds)),
        *((later - minute) * 60 - in_minute for minute, later in pairwise(minutes)),
        *((later - hour) * 3600 - in_hour for hour, later in pairwise(hours)),
    ]


def _clock_of(pattern: Series) -> Clock | None:
    return Clock(pattern.hours, pattern.minutes) if isinstance(pattern, CalendarMasks) else None


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
