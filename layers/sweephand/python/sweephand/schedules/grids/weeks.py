"""The times of a week at which a series may have an occurrence: possibly too many, never too few.

Each is a series of wall seconds that is the same in every week, so one week represents all. Times that depend on the
date (a day of the month, each third week) count for every date. Calendars (reach.py) use only `meets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise, product
from math import gcd
from typing import Any

from sweephand.base.records import dataclass
from sweephand.schedules.grids.coverage import DAY_S, MONDAY, WEEK_S, Weekly, week_spans
from sweephand.schedules.grids.cycles import Apart, Cycle, Expanded, Slots, SteppedClock, Within
from sweephand.schedules.grids.days import Days, EachNth, OfMonths, OfWeeks, OnDays
from sweephand.schedules.grids.rrule_days import Both, OfYears, PickedOfWeeks
from sweephand.schedules.grids.sets import Also, Without
from sweephand.schedules.grids.wallclock import OnWallClock
from sweephand.schedules.rule import Never, Once, Series, Steps, Window
from sweephand.schedules.zones.localtime import FIRST_SECOND, Gap, Overlap, Zone

ALL_DAYS = 0x7F
ANY_TIME = Steps(0, 1)
_A_MONDAY = MONDAY + 2_000 * WEEK_S
_NEAR = 70 * DAY_S
"""More than any calendar rolls back from the first second of a window."""
_MOST_GAPS = 20
"""The most gaps in a row that are tried without finding one of the times."""
_MOST_TIMES = 6_000
"""The most times of a series that are listed one by one. If there are more, any time counts as possible."""
_MOST_LISTED = 1_440


def meets(times: Iterable[Series], begin: int, end: int) -> bool:
    """Returns whether a series has a second in [begin, end) of a week, in seconds since Monday's midnight."""
    for each in times:
        instant = each.after(_A_MONDAY + begin - 1)
        if instant is not None and instant < _A_MONDAY + end:
            return True
    return False


def times_of_week(
    series: Series, zone: Zone, *, any_day: bool = False, since: int = FIRST_SECOND, gaps: bool = True
) -> list[Series]:
    """Returns the times that the clock of `zone` may read at an occurrence. any_day: as if each came on every weekday.

    since: the first Unix second that matters. Earlier clock changes are ignored. gaps: whether times in a gap move.
    """
    while isinstance(series, Window | Without):
        since = max(since, series.first - _NEAR) if isinstance(series, Window) else since
        series = series.series
    if isinstance(series, Never):
        return []
    if isinstance(series, Once | Also):
        named = (series.second,) if isinstance(series, Once) else series.extras
        inner = series.series if isinstance(series, Also) else Never()
        others = times_of_week(inner, zone, any_day=any_day, since=since, gaps=gaps)
        return [_cycle(DAY_S if any_day else WEEK_S, map(zone.wall, named)), *others] if named else others
    if isinstance(series, Steps):
        common = gcd(series.step_s, DAY_S if any_day else WEEK_S)
        return [Steps(anchor, common) for anchor in {(series.anchor + each) % common for each in offsets(zone, since)}]
    if isinstance(series, OnWallClock) and series.zone == zone:
        times = _of_pattern(series.pattern, any_day=any_day)
        if not gaps or (series.gap is Gap.SKIP and not any_day):
            return times
        return [*times, *_after_gaps(times, series, since, any_day=any_day)]
    return [ANY_TIME]


def rolled_gap_s(series: Series, zone: Zone, *, on_clock: bool = False) -> int:
    """Returns the guaranteed minimum distance in seconds between two occurrences of a series that rolls, at least 1.

    Rolling may bring any two of its times of the day together on one day or on neighbouring days. on_clock: returns
    the distance on the clock, as if it never changed.
    """
    listed = _times_of_day(series, zone, gaps=not on_clock)
    if not listed:
        return 1
    if on_clock:
        return min(later - time for time, later in pairwise([*listed, listed[0] + DAY_S]))
    jumps = [abs(zone.jump(piece)) for piece in range(1, len(zone.starts)) if zone.starts[piece] >= 0]
    shortest = min(later - time for time, later in pairwise([*listed, listed[0] + DAY_S]))
    if shortest <= max(jumps, default=0):  # also where one of them lies in a gap, whose end is listed too
        return min(gcd(DAY_S, *listed, *jumps), 60)
    nearest = shortest - max(jumps, default=0)
    while isinstance(series, Window | Without):
        series = series.series
    once = isinstance(series, OnWallClock) and series.overlap is Overlap.FIRST
    return nearest if once else min(nearest, *jumps, nearest)


def _times_of_day(series: Series, zone: Zone, *, gaps: bool) -> list[int]:
    """Returns the times that the clock may read at an occurrence, from midnight; none if there are too many.

    gaps: whether times in a gap of the clock move.
    """
    times: set[int] = set()
    for each in times_of_week(series, zone, any_day=True, gaps=gaps):
        listed = list(islice(each.seconds(_A_MONDAY - 1, _A_MONDAY + DAY_S - 1), _MOST_LISTED + 1))
        if len(listed) > _MOST_LISTED:
            return []
        times.update(second - _A_MONDAY for second in listed)
    return sorted(times)


# Patterns of wall times


def _of_pattern(pattern: Series, *, any_day: bool) -> list[Series]:
    if isinstance(pattern, Apart):
        return [each for part in pattern.parts for each in _of_pattern(part, any_day=any_day)]
    if isinstance(pattern, Within):
        times = _of_pattern(pattern.series, any_day=any_day)
        weekdays = ALL_DAYS if any_day else weekdays_of(pattern.days)
        within: Callable[[Any, Days], Series] = Within
        return [within(each, OfWeeks(weekdays)) for each in times] if weekdays != ALL_DAYS else times
    if not isinstance(pattern, OnDays | SteppedClock):
        return [_of_grid(pattern, DAY_S if any_day else WEEK_S)]
    weekdays = weekdays_of(pattern.days) if isinstance(pattern, OnDays) and not any_day else ALL_DAYS
    return [OnDays(OfWeeks(weekdays), pattern.clock)]


def _of_grid(pattern: Series, period: int) -> Series:
    """Returns the times of steps on the clock. period: a day or a week."""
    if isinstance(pattern, Slots):
        pattern = pattern.times
    if isinstance(pattern, Steps):
        return Steps(pattern.anchor, gcd(pattern.step_s, period))
    if isinstance(pattern, Cycle):
        return _cycle(gcd(pattern.period, period), pattern.residues)
    if isinstance(pattern, Expanded) and len(pattern.units.residues) * len(pattern.offsets) <= _MOST_TIMES:
        pairs = product(pattern.units.residues, pattern.offsets)
        return _cycle(gcd(pattern.units.period, period), (unit + offset for unit, offset in pairs))
    return pattern if isinstance(pattern, Never) else ANY_TIME


def _cycle(period: int, seconds: Iterable[int]) -> Series:
    residues = {second % period for second in seconds}
    if not residues:
        return Never()
    return Cycle(period, tuple(sorted(residues))) if len(residues) <= _MOST_TIMES else ANY_TIME


def weekdays_of(days: Days) -> int:
    """Returns the weekdays on which days of a set may fall: bit 0 is Monday."""
    if isinstance(days, OfWeeks | PickedOfWeeks):
        return _turned(days.weekdays, (days.begins + 3) % 7)
    if isinstance(days, EachNth):
        return ALL_DAYS if days.every % 7 else 1 << (days.anchor + 3) % 7
    if isinstance(days, Both):
        return weekdays_of(days.first) & weekdays_of(days.second)
    if isinstance(days, OfMonths):
        weekdays = 0
        for kind, mask in enumerate(days.table):
            weeks = mask >> 1
            weekdays |= _turned((weeks | weeks >> 7 | weeks >> 14 | weeks >> 21 | weeks >> 28) & ALL_DAYS, kind % 7)
        return weekdays
    if isinstance(days, OfYears):
        named = days.rule.weekdays | sum({1 << weekday for _, weekday in days.rule.ordinals})
        return named or ALL_DAYS
    return ALL_DAYS


def _turned(mask: int, by: int) -> int:
    """Rotates seven bits: bit n becomes bit n + by."""
    return (mask << by | mask >> 7 - by) & ALL_DAYS


# Changes of the clock


@dataclass(frozen=True)
class _Hours(Series):
    """Each second of some hours of each week."""

    hours: Weekly

    def after(self, second: int) -> int | None:
        return self.hours.find(second + 1, True, 1)


@dataclass(frozen=True)
class _Shifted(Series):
    """The seconds of `times` in `gap` (hours of the week), moved ahead by `jump_s`, in each week."""

    times: tuple[Series, ...]
    gap: Weekly
    jump_s: int

    def after(self, second: int) -> int | None:
        at: int | None = second + 1 - self.jump_s
        for _ in range(_MOST_GAPS):
            at = None if at is None else self.gap.find(at, True, 1)
            instant = min(
                (own for each in self.times if at is not None and (own := each.after(at - 1)) is not None), default=None
            )
            if instant is None or self.gap.find(instant, True, 1) == instant:
                return None if instant is None else instant + self.jump_s
            at = instant
        return None


def _after_gaps(times: Sequence[Series], series: OnWallClock, since: int, *, any_day: bool) -> list[Series]:
    """Returns the times that gaps of the clock move: to the end of the gap, or by as much as the clock jumps.

    An occurrence that rolls may also come to the end of a gap, even one that a gap moved before. So the search
    continues until it meets no further gap.
    """
    moved: list[Series] = []
    left = gaps_of(series.zone, since)
    days = range(7) if any_day else range(1)
    while touched := [each for each in left if any(_meets(times, moved, each, n) for n in days)]:
        left = [each for each in left if each not in touched]
        before = (*times, *moved)
        if series.gap is Gap.SHIFT:
            for begin, jump in touched:
                moved.append(_Shifted(before, _hours((begin, begin + jump) for begin in _each_day(begin, days)), jump))
        if any_day or series.gap is not Gap.SHIFT:
            ends = (begin + jump for begin, jump in touched)
            moved.append(_Hours(_hours((at, at + 1) for end in ends for at in _each_day(end, days))))
        if not any_day:
            break
    return moved


def _each_day(second: int, days: Iterable[int]) -> Iterator[int]:
    return ((second + n * DAY_S) % WEEK_S for n in days)


def _hours(stretches: Iterable[tuple[int, int]]) -> Weekly:
    return Weekly(week_spans(stretches))


def _meets(times: Sequence[Series], moved: Sequence[Series], gap: tuple[int, int], days: int) -> bool:
    begin, jump = gap
    begin = (begin + days * DAY_S) % WEEK_S
    return meets(times, begin, begin + jump) or meets(moved, begin, begin + jump)


def gaps_of(zone: Zone, since: int) -> list[tuple[int, int]]:
    """Returns where in a week the clock jumps, and by how much, for each kind of gap at or after `since`."""
    return [kind for kind, start in _kinds_of_gaps(zone) if start >= since]


def offsets(zone: Zone, since: int) -> list[int]:
    """Returns the offsets that hold at or after `since`."""
    return [offset for offset, end in _kinds_of_offsets(zone) if end > since]


@lru_cache(maxsize=256)
def _kinds_of_gaps(zone: Zone) -> tuple[tuple[tuple[int, int], int], ...]:
    """Returns each kind of gap with the start of the last one."""
    kinds = {}
    for piece in range(1, len(zone.starts)):
        jump = zone.jump(piece)
        if jump > 0:
            start = zone.starts[piece]
            kinds[(start + zone.offsets[piece - 1] - MONDAY) % WEEK_S, jump] = start
    return tuple(kinds.items())


@lru_cache(maxsize=256)
def _kinds_of_offsets(zone: Zone) -> tuple[tuple[int, int], ...]:
    """Returns each offset with the end of its last piece."""
    return tuple(dict(zip(zone.offsets, zone.ends, strict=True)).items())
