"""Sets of days as whole numbers: bit n is the n-th day from FIRST_DAY on, by the wall clock, up to the horizon.

It takes only microseconds to find out whether two sets meet, however many days they have. The set of a series may have
too many days, but never too few: it contains each day on which the series may have an occurrence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import lru_cache
from typing import Any

from sweephand.schedules.grids.calendar_masks import bits, month_length
from sweephand.schedules.grids.coverage import DAY_S, Spans
from sweephand.schedules.grids.cycles import Apart, Cycle, Within
from sweephand.schedules.grids.days import (
    ALL_YEARS,
    FIRST_DAY,
    FIRST_YEAR,
    LAST_DAY,
    LAST_YEAR,
    Days,
    EachNth,
    OfMonths,
    OfWeeks,
    OnDays,
    OrNextDay,
)
from sweephand.schedules.grids.rrule_days import Both, OfYears, PickedOfWeeks, of_year
from sweephand.schedules.grids.sets import Also, Without
from sweephand.schedules.grids.wallclock import OnWallClock
from sweephand.schedules.grids.weeks import offsets
from sweephand.schedules.rule import Never, Once, Series, Steps, Window
from sweephand.schedules.zones.localtime import FIRST_SECOND, Gap, Zone

_SIZE = LAST_DAY - FIRST_DAY + 1
ALL = (1 << _SIZE) - 1
_FIRST_WEEKDAY = (FIRST_DAY + 3) % 7
_Kind = tuple[int, int, int, int]
_LENGTHS = [365 + (month_length(year, 2) - 28) for year in range(FIRST_YEAR - 1, LAST_YEAR + 2)]
_FIRSTS = [(date(year, 1, 1).toordinal() - 1) % 7 for year in range(FIRST_YEAR, LAST_YEAR + 1)]
_YEARS: list[_Kind] = list(zip(_LENGTHS[1:], _FIRSTS, _LENGTHS, _LENGTHS[2:], strict=False))
"""(days, weekday of the first, days of the year before, of the year after) for each year; 28 kinds exist."""


def of_days(stretches: Iterable[tuple[int, int]]) -> int:
    """Returns the days from the first to the last of each pair, both included."""
    flags = bytearray(b"0") * _SIZE
    for first, last in stretches:
        begin, end = max(first, FIRST_DAY) - FIRST_DAY, min(last, LAST_DAY) - FIRST_DAY + 1
        if begin < end:
            flags[begin:end] = b"1" * (end - begin)
    return int(flags[::-1], 2)


def touched(spans: Spans) -> int:
    """Returns the days with at least one wall second of the spans."""
    return of_days((begin // DAY_S, (end - 1) // DAY_S) for begin, end in zip(spans.begins, spans.ends, strict=True))


def whole(spans: Spans) -> int:
    """Returns the days that the spans cover as a whole."""
    return of_days((-(-begin // DAY_S), end // DAY_S - 1) for begin, end in zip(spans.begins, spans.ends, strict=True))


def spans_of(days: int) -> Spans:
    """Returns the wall seconds of the days."""
    flags = f"{days:b}"[::-1]
    begins, ends = [], []
    at = flags.find("1")
    while at >= 0:
        end = flags.find("0", at)
        end = len(flags) if end < 0 else end
        begins.append((at + FIRST_DAY) * DAY_S)
        ends.append((end + FIRST_DAY) * DAY_S)
        at = flags.find("1", end)
    return Spans(tuple(begins), tuple(ends))


def widened(days: int, back: int, ahead: int) -> int:
    """Returns the set with this many days added before and after each of its days."""
    for most, sign in ((back, -1), (ahead, 1)):
        reached = 0
        while reached < most:
            step = min(reached + 1, most - reached)
            days |= days << step if sign > 0 else days >> step
            reached += step
    return days & ALL


def narrowed(days: int) -> int:
    """Returns the days whose neighbours are in the set too."""
    return days & days << 1 & days >> 1


@lru_cache(maxsize=128)
def of_weekdays(weekdays: int) -> int:
    """Returns all days on some weekdays; bit 0 is Monday."""
    return _repeated(bits(weekdays), 7, -_FIRST_WEEKDAY)


def weekdays_of(days: int) -> int:
    """Returns the weekdays on which days of the set lie: bit 0 is Monday."""
    return sum(1 << weekday for weekday in range(7) if days & of_weekdays(1 << weekday))


def of_series(series: Series, by: Zone) -> int:
    """Returns the days that the clock of `by` may show at an occurrence."""
    days = ALL
    if isinstance(series, Window):
        first, last = (max(by.wall(second) // DAY_S - FIRST_DAY, 0) for second in (series.first, series.last))
        days = of_series(series.series, by) & (2 << last + 1) - (1 << max(first - 1, 0))
    elif isinstance(series, Without):
        days = of_series(series.series, by)
    elif isinstance(series, Never):
        days = 0
    elif isinstance(series, Once):
        days = _of_seconds([series.second], by)
    elif isinstance(series, Also):
        days = of_series(series.series, by) | _of_seconds(series.extras, by)
    elif isinstance(series, Steps):
        days = 0
        for offset in offsets(by, FIRST_SECOND):
            days |= _of_steps(series.anchor + offset, series.step_s)
    elif isinstance(series, OnWallClock):
        days = _of_pattern(series.pattern)
        if series.gap is not Gap.SKIP:
            days |= days << 1 & _past_midnight(series.zone)
        days = days if series.zone == by else widened(days, 1, 1)
    return days


def _of_seconds(seconds: Sequence[int], by: Zone) -> int:
    days = [by.wall(second) // DAY_S for second in seconds]
    return of_days((day, day) for day in days)


@lru_cache(maxsize=256)
def _past_midnight(zone: Zone) -> int:
    """Returns the days on which a gap ends that began on the day before."""
    ends = []
    for piece in range(1, len(zone.starts)):
        begin, end = (zone.starts[piece] + zone.offsets[each] for each in (piece - 1, piece))
        if begin // DAY_S < end // DAY_S:
            ends.append(end // DAY_S)
    return of_days((day, day) for day in ends)


# Patterns of wall times


@lru_cache(maxsize=128)
def _of_pattern(pattern: Series) -> int:
    return next((of(pattern) for kind, of in _OF_PATTERN.items() if isinstance(pattern, kind)), ALL)


def _of_apart(apart: Apart) -> int:
    days = 0
    for part in apart.parts:
        days |= _of_pattern(part)
    return days


def _of_cycle(cycle: Cycle) -> int:
    if cycle.period % DAY_S:
        return ALL
    return _repeated((second // DAY_S for second in cycle.residues), cycle.period // DAY_S, -FIRST_DAY)


def _of_days(days: Days) -> int:
    return next((of(days) for kind, of in _OF_DAYS.items() if isinstance(days, kind)), ALL)


def _of_steps(anchor: int, step_s: int) -> int:
    return ALL if step_s % DAY_S else _repeated([0], step_s // DAY_S, anchor // DAY_S - FIRST_DAY)


def _of_months(
    months: int, days_of: Callable[[int, int], int], years: int = ALL_YEARS, every: int = 1, anchor: int = 0
) -> int:
    """Returns days by months. days_of(year, month): bit n is day n; it depends only on the length and first weekday.

    The other arguments are as in OfMonths.
    """

    def of(kind: _Kind, year: int) -> int:
        days = begun = 0
        for month in range(1, 13):
            if months >> month & 1 and (year * 12 + month - 1 - anchor) % every == 0:
                days |= days_of(year, month) >> 1 << begun
            begun += month_length(year, month)
        return days & (1 << kind[0]) - 1

    return _of_years(of, lambda kind, year: (*kind[:2], (year * 12 - anchor) % every), years)


def _of_years(days_of: Callable[[_Kind, int], int], like: Callable[[_Kind, int], object], years: int) -> int:
    """Returns days by years. days_of: the days of a year, bit 0 is the first; called once for years alike by `like`."""
    days_by_shape: dict[object, int] = {}
    parts = []
    for year, kind in enumerate(_YEARS, FIRST_YEAR):
        days = 0
        if years >> year - FIRST_YEAR & 1:
            alike = like(kind, year)
            if alike not in days_by_shape:
                days_by_shape[alike] = days_of(kind, year)
            days = days_by_shape[alike]
        parts.append((days, kind[0]))
    while len(parts) > 1:  # in pairs, so that few numbers are long
        pairs = zip(parts[::2], parts[1::2], strict=False)
        odd = parts[len(parts) & ~1 :]
        parts = [(one | other << size, size + more) for (one, size), (other, more) in pairs] + odd
    return parts[0][0]


def _repeated(days: Iterable[int], every: int, begin: int) -> int:
    """Returns the days begin + each of `days` + k * every for all whole k."""
    mask = 0
    for day in {(begin + each) % every for each in days}:
        mask |= 1 << day
    size = every
    while size < _SIZE:
        mask |= mask << size
        size *= 2
    return mask & ALL


_OF_DAYS: dict[type, Callable[[Any], int]] = {
    OfMonths: lambda days: _of_months(days.months, days.days_of, days.years, days.every, days.anchor),
    OfYears: lambda days: _of_years(lambda kind, _: of_year(days.rule, *kind) >> 1, lambda kind, _: kind, days.years),
    OfWeeks: lambda days: _repeated(bits(days.weekdays), 7 * days.every, days.begins - FIRST_DAY),
    PickedOfWeeks: lambda days: _repeated(bits(days.weekdays), 7 * days.every, days.begins - FIRST_DAY),
    EachNth: lambda days: _repeated([0], days.every, days.anchor - FIRST_DAY),
    Both: lambda days: _of_days(days.first) & _of_days(days.second),
    OrNextDay: lambda days: (_of_days(days.days) | _of_days(days.short) << 1) & ALL,
}
_OF_PATTERN: dict[type, Callable[[Any], int]] = {
    OnDays: lambda pattern: _of_days(pattern.days),
    Within: lambda pattern: _of_days(pattern.days),
    Apart: _of_apart,
    Steps: lambda steps: _of_steps(steps.anchor, steps.step_s),
    Cycle: _of_cycle,
}
"""Other kinds may have times on any day."""
