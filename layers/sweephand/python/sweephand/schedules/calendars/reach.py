"""Finds where a series and its calendars can meet at all, week by week, before anything is searched.

Dates are finite. Outside them, only the weekly hours of calendars remain, and those meet the times of a series in
every week or never. So the hours that all calendars leave free are computed for one week, for each difference between
the clocks involved, and compared with the times of the series (weeks.py). Where they do not meet, only the dates of
calendars that include can bring an occurrence: dates of one calendar, or of several together. Sets of days
(day_masks.py) show which days those may be, and which days the calendars exclude as a whole.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from sweephand.base.records import dataclass
from sweephand.schedules.grids import day_masks
from sweephand.schedules.grids.calendar_masks import bits
from sweephand.schedules.grids.coverage import (
    DAY_S,
    MONDAY,
    WEEK_S,
    Dates,
    On,
    Spans,
    Stretches,
    Together,
    Weekly,
    spans,
    week_spans,
)
from sweephand.schedules.grids.weeks import meets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sweephand.schedules.rule import Series
    from sweephand.schedules.zones.localtime import Zone

NOWHERE = Spans((), ())
WHOLE = Spans((0,), (WEEK_S,))
MOST_LISTED = 500
"""The most days that are listed one by one."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The members of a series that its reach needs.

    times: the times of a week at which it may have occurrences, on the clock of `by` (weeks.times_of_week). since: the
    first second that matters. days: returns the days on which it may have any; called only if calendars have dates.
    """

    times: Sequence[Series]
    by: Zone
    since: int
    days: Callable[[], int]


@dataclass(frozen=True, slots=True)
class _Parts:
    """A calendar as a schedule uses it: its hours of each week on the clock of a zone, and its dates (`listed`).

    dates: the times of a week that its dates take. touched, whole: the days that its dates touch, and the days that
    they cover as a whole, on the schedule's own clock.
    """

    include: bool
    week: Spans
    zone: Zone
    listed: Stretches | None = None
    dates: Spans = NOWHERE
    touched: int = 0
    whole: int = 0

    def by_dates(self) -> _Parts:
        """Returns the calendar without its hours, as if its dates came each week."""
        return _Parts(self.include, self.dates, self.zone)


def reach(asked: Asked, calendars: Iterable[tuple[Stretches, bool]]) -> Stretches | None:
    """Returns stretches that contain every occurrence; None if occurrences may lie anywhere.

    calendars: the stretches that each covers, and whether the schedule includes it.
    """
    parts = [_parts(covered, include, asked.by) for covered, include in calendars]
    dated = [n for n, each in enumerate(parts) if each.include and each.listed is not None]
    without_hours = tuple(n for n in dated if not parts[n].week.begins)
    others = [n for n in dated if n not in without_hours]
    days = asked.days() if any(each.touched for each in parts) else day_masks.ALL
    for each in parts:
        days &= day_masks.ALL if each.include else ~each.whole
    enough: list[tuple[int, ...]] = []
    possible = 0
    for chosen in (without_hours + each for size in range(len(others) + 1) for each in combinations(others, size)):
        left = days
        for n in chosen:
            left &= parts[n].touched
        if not left:
            continue
        weekdays = _weekdays([each.by_dates() if n in chosen else each for n, each in enumerate(parts)], asked)
        left &= day_masks.of_weekdays(weekdays)
        if left:
            possible |= left
            enough.append(chosen)
            if not chosen and left.bit_count() > MOST_LISTED:
                return None
    if not possible:
        return NOWHERE
    if possible.bit_count() <= MOST_LISTED:
        return On(day_masks.spans_of(possible), asked.by)
    enough = [each for each in enough if not any(set(fewer) < set(each) for fewer in enough)]
    if len(enough) == 1 and not any(parts[n].week.begins for n in enough[0]):
        return None  # there are no hours that a search would follow in vain
    listed = (tuple(at for n in chosen if (at := parts[n].listed) is not None) for chosen in enough)
    return Together(tuple(each[0] if len(each) == 1 else Together(each, where_all=True) for each in listed))


def _parts(covered: Stretches, include: bool, by: Zone) -> _Parts:
    week, zone, listed = NOWHERE, by, []
    dates, touched, whole = NOWHERE, 0, 0
    for each in covered.parts if isinstance(covered, Together) else (covered,):
        if isinstance(each, On):
            zone = each.zone
            if isinstance(each.walls, Weekly):
                week = each.walls.week
                continue
        listed.append(each)
        walls = each.walls if isinstance(each, On) else each
        assert isinstance(walls, Dates)
        exact = isinstance(each, On) and zone == by
        touched |= walls.touched if exact else day_masks.widened(walls.touched, 1, 1)
        whole |= walls.whole if exact else day_masks.narrowed(walls.whole)
        dates = _of_dates(walls) if include and isinstance(each, On) else WHOLE
    if len(listed) > 1:
        return _Parts(include, week, zone, Together(tuple(listed)), WHOLE, touched, whole)
    return _Parts(include, week, zone, listed[0] if listed else None, dates, touched, whole)


@lru_cache(maxsize=256)
def _of_dates(walls: Spans) -> Spans:
    """Returns the times of a week that the dates of a calendar cover together: 2,000 Saturdays are one Saturday."""
    if isinstance(walls, Dates) and walls.touched == walls.whole:
        weekdays = bits(day_masks.weekdays_of(walls.touched))
        return week_spans((weekday * DAY_S, (weekday + 1) * DAY_S) for weekday in weekdays)
    kinds = {((begin - MONDAY) % WEEK_S, end - begin) for begin, end in zip(walls.begins, walls.ends, strict=True)}
    return WHOLE if any(length_s >= WEEK_S for _, length_s in kinds) else week_spans((at, at + n) for at, n in kinds)


def _weekdays(parts: Sequence[_Parts], asked: Asked) -> int:
    """Returns the weekdays on which times of the series lie in hours that the calendars leave free: bit 0 is Monday."""
    zones = tuple(each.zone for each in parts)
    weekdays = 0
    for ahead in _differences(zones, asked.by, asked.since):
        shut: list[tuple[int, int]] = []
        for each, ahead_s in zip(parts, ahead, strict=True):
            week = _moved(each.week, -ahead_s)
            shut += _other(week) if each.include else zip(week.begins, week.ends, strict=True)
        stretches = _other(spans(shut))
        if any(meets(asked.times, begin, end) for begin, end in stretches):
            for begin, end in stretches:
                weekdays |= (2 << (end - 1) // DAY_S) - (1 << begin // DAY_S)
    return weekdays


def _differences(zones: tuple[Zone, ...], by: Zone, since: int) -> list[tuple[int, ...]]:
    """Returns how far the zones' clocks are ahead of that of `by`, in each combination that occurs after `since`."""
    if all(zone == by for zone in zones):
        return [(0,) * len(zones)]
    return [ahead for ahead, end in _all_differences(zones, by) if end > since]


@lru_cache(maxsize=128)
def _all_differences(zones: tuple[Zone, ...], by: Zone) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Returns each combination with the end of the last stretch of time in which it holds."""
    starts = sorted({start for zone in (*zones, by) for start in zone.starts})
    ends = {}
    for begin, end in pairwise([*starts, 1 << 40]):
        mine = by.offsets[by.piece(begin)]
        ends[tuple(zone.offsets[zone.piece(begin)] - mine for zone in zones)] = end
    return tuple(ends.items())


# Hours of a week: seconds since Monday's midnight


def _moved(week: Spans, by_s: int) -> Spans:
    if not by_s:
        return week
    moved = ((begin + by_s, end - begin) for begin, end in zip(week.begins, week.ends, strict=True))
    return week_spans((begin % WEEK_S, begin % WEEK_S + length_s) for begin, length_s in moved)


def _other(week: Spans) -> list[tuple[int, int]]:
    """Returns the rest of the week."""
    begins, ends = (0, *week.ends), (*week.begins, WEEK_S)
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end]
