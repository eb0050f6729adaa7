"""Where a series and its calendars can meet at all: proven by the week, before anything is searched.

Dates are finite. Outside of them only the weekly hours of calendars remain, and those meet the times of a series in
every week alike, or never. So the hours that all calendars leave are cut out of one week, for each difference between
the clocks that take part, and the series is asked once for each of them (weeks.py). Where they do not meet, only the
dates of calendars that include can bring an occurrence: of one of them, or of several together. Which days that may be,
and which the calendars shut out as a whole, is told by sets of days (day_masks.py): 31 December is never Christmas.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

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
    agreed,
    nearest,
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
"""Days that are worth a list of their own."""


@dataclass(frozen=True, slots=True)
class Asked:
    """times: of a week, when a series may have occurrences on the clock of `by` (weeks.times_of_week). since: the first
    second that matters. days: the days on which it may have any; asked for only where calendars have dates.
    """

    times: Sequence[Series]
    by: Zone
    since: int
    days: Callable[[], int]


@dataclass(frozen=True, slots=True)
class InAll:
    """Covered where each of the parts is."""

    parts: tuple[Stretches, ...]

    def find(self, second: int, covered: bool, step: int) -> int | None:
        if covered:
            return agreed([(part, True) for part in self.parts], second, step)
        return nearest((part.find(second, False, step) for part in self.parts), step)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A calendar as a schedule uses it: its hours of each week on the clock of a zone, and all else that it covers.

    dates: the times of a week on which all else lies. touched, whole: the days that all else touches, and those that
    it covers as a whole, on the schedule's own clock.
    """

    include: bool
    week: Spans
    zone: Zone
    listed: Stretches | None = None
    dates: Spans = NOWHERE
    touched: int = 0
    whole: int = 0

    def by_dates(self) -> _Parts:
        """As if it had no hours, but its dates came each week."""
        return _Parts(self.include, self.dates, self.zone)


def reach(asked: Asked, calendars: Iterable[tuple[Stretches, bool]]) -> Stretches | None:
    """The stretches outside of which no occurrence lies; None: it may lie anywhere.

    calendars: what each covers, and whether it includes.
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
        return None  # there are no hours that would mislead a search
    return Together(tuple(_all_listed([parts[n] for n in chosen]) for chosen in enough))


def _all_listed(parts: Sequence[_Parts]) -> Stretches:
    listed = tuple(each.listed for each in parts if each.listed is not None)
    return listed[0] if len(listed) == 1 else InAll(listed)


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
    """The times of a week that the dates of a calendar have together: 2,000 Saturdays are one."""
    if isinstance(walls, Dates) and walls.touched == walls.whole:
        weekdays = bits(day_masks.weekdays_of(walls.touched))
        return week_spans((weekday * DAY_S, (weekday + 1) * DAY_S) for weekday in weekdays)
    kinds = {((begin - MONDAY) % WEEK_S, end - begin) for begin, end in zip(walls.begins, walls.ends, strict=True)}
    return WHOLE if any(length_s >= WEEK_S for _, length_s in kinds) else week_spans((at, at + n) for at, n in kinds)


def _weekdays(parts: Sequence[_Parts], asked: Asked) -> int:
    """The weekdays that the hours of all these leave, in any week, if the series has a time there: bit 0 is Monday."""
    zones = tuple(each.zone for each in parts)
    found = 0
    for ahead in _differences(zones, asked.by, asked.since):
        free = WHOLE
        for each, ahead_s in zip(parts, ahead, strict=True):
            week = _moved(each.week, -ahead_s)
            free = _common(free, week if each.include else _other(week))
        stretches = [*zip(free.begins, free.ends, strict=True)]
        if any(meets(asked.times, begin, end) for begin, end in stretches):
            for begin, end in stretches:
                found |= (2 << (end - 1) // DAY_S) - (1 << begin // DAY_S)
    return found


def _differences(zones: tuple[Zone, ...], by: Zone, since: int) -> list[tuple[int, ...]]:
    """By how much the clocks of the zones are ahead of that of `by`, together, at any time behind `since`."""
    if all(zone == by for zone in zones):
        return [(0,) * len(zones)]
    return [ahead for ahead, end in _all_differences(zones, by) if end > since]


@lru_cache(maxsize=128)
def _all_differences(zones: tuple[Zone, ...], by: Zone) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Each with the end of the last stretch of time in which it holds."""
    starts = sorted({start for zone in (*zones, by) for start in zone.starts})
    found = {}
    for begin, end in pairwise([*starts, 1 << 40]):
        mine = by.offsets[by.piece(begin)]
        found[tuple(zone.offsets[zone.piece(begin)] - mine for zone in zones)] = end
    return tuple(found.items())


# Hours of a week: seconds since Monday's midnight


def _moved(week: Spans, by_s: int) -> Spans:
    if not by_s:
        return week
    moved = ((begin + by_s, end - begin) for begin, end in zip(week.begins, week.ends, strict=True))
    return week_spans((begin % WEEK_S, begin % WEEK_S + length_s) for begin, length_s in moved)


def _other(week: Spans) -> Spans:
    """The rest of the week."""
    begins, ends = (0, *week.ends), (*week.begins, WEEK_S)
    kept = [(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end]
    return Spans(tuple(begin for begin, _ in kept), tuple(end for _, end in kept))


def _common(one: Spans, other: Spans) -> Spans:
    begins, ends = [], []
    first = second = 0
    while first < len(one.begins) and second < len(other.begins):
        begin = max(one.begins[first], other.begins[second])
        end = min(one.ends[first], other.ends[second])
        if begin < end:
            begins.append(begin)
            ends.append(end)
        if one.ends[first] == end:
            first += 1
        else:
            second += 1
    return Spans(tuple(begins), tuple(ends))
