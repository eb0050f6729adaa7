"""Calendars of a schedule: which of its occurrences they let through, and where the others roll to.

A calendar is a set of times. A schedule names up to five. A calendar that it excludes stops the occurrences inside; a
calendar that it includes stops those outside. An occurrence that any calendar stops is left out. However, if all
calendars that stop it roll, it moves to the nearest day, before or after, that lets its time of the day through. Two
occurrences that move to the same instant are one.

The content of a reference never changes. Once read, it is kept (`keep`), and a series is built from that alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import field
from datetime import date
from enum import StrEnum
from functools import partial
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import Unavailable
from sweephand.base.records import dataclass
from sweephand.schedules.calendars.reach import NOWHERE, Asked, reach
from sweephand.schedules.calendars.rolling import MOST_ROLLED_DAYS, Filter, Rolled, Stop, rolled_days
from sweephand.schedules.grids import day_masks
from sweephand.schedules.grids.coverage import DAY_S, Dates, On, Spans, Stretches, Together, Weekly, spans
from sweephand.schedules.grids.days import EPOCH_DAY, FIRST_YEAR, LAST_YEAR
from sweephand.schedules.grids.weeks import ANY_TIME, times_of_week
from sweephand.schedules.rule import ByCalendars, Series, Window, spend
from sweephand.schedules.zones.localtime import FIRST_SECOND, LAST_SECOND, Zone, zone

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["MOST_ROLLED_DAYS", "Calendar", "Filtered", "Mode", "Roll", "Rolled", "Use", "applied", "keep", "left_out"]

MOST = 5
"""The largest number of calendars that one schedule may name."""
MOST_ROLLED_A_DAY = 24
"""The largest number of occurrences a day for a rule that rolls, because each day that is not free is searched."""
MARK = '"cal":['
"""Appears in the packed string of each schedule with calendars, and in no other."""
_REFERENCES = re.compile(r'"cal":\[([^\]]*)\]', re.ASCII)


class Mode(StrEnum):
    EXCLUDE = "exclude"
    INCLUDE = "include"


class Roll(StrEnum):
    NONE = "none"
    PREVIOUS = "previous"
    NEXT = "next"


_STEPS = {Roll.PREVIOUS: -1, Roll.NEXT: 1}
_SIGNS = {"-": Roll.NONE, "<": Roll.PREVIOUS, ">": Roll.NEXT}
_SIGN_OF = {roll: sign for sign, roll in _SIGNS.items()}
_MODES = {mode[0]: mode for mode in Mode}


# Content


@dataclass(frozen=True, slots=True)
class Calendar:
    """The content of one version. zone: None to use the clock of the schedule that names it.

    walls: wall times of that clock. fixed: Unix seconds. Only references are compared, because each has one content.
    """

    reference: str
    zone: Zone | None = field(compare=False)
    walls: tuple[Stretches, ...] = field(compare=False)
    fixed: Dates = field(compare=False)

    def covered(self, by: Zone) -> Stretches:
        """Returns its times as a schedule in the zone `by` sees them, in Unix seconds."""
        parts: list[Stretches] = [On(walls, self.zone or by) for walls in self.walls]
        if self.fixed.begins:
            parts.append(self.fixed)
        return parts[0] if len(parts) == 1 else Together(tuple(parts))


def calendar(reference: str, facts: Mapping[str, Any]) -> Calendar:
    """Builds a calendar from its facts.

    "days": [first, last] of numbered days; "yearly": [month, day]; "walls", "fixed" and "week": [from, to) in seconds;
    "zone". Raises LookupError, TypeError or ValueError for others.
    """
    days = ((first * DAY_S, (last + 1) * DAY_S) for first, last in facts.get("days", ()))
    yearly = chain.from_iterable(_each_year(month, day) for month, day in facts.get("yearly", ()))
    walls: list[Stretches] = []
    listed = spans(chain(days, yearly, ((begin, end) for begin, end in facts.get("walls", ()))))
    if listed.begins:
        walls.append(_dated(listed))
    if facts.get("week"):
        walls.append(Weekly(spans((begin, end) for begin, end in facts["week"])))
    name = facts.get("zone")
    fixed = spans((begin, end) for begin, end in facts.get("fixed", ()))
    return Calendar(reference, None if name is None else zone(name), tuple(walls), _dated(fixed))


def _dated(listed: Spans) -> Dates:
    return Dates(listed.begins, listed.ends, day_masks.touched(listed), day_masks.whole(listed))


def _each_year(month: int, day: int) -> Iterator[tuple[int, int]]:
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        if (month, day) != (2, 29) or (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)):
            begin = (date(year, month, day).toordinal() - EPOCH_DAY) * DAY_S
            yield begin, begin + DAY_S


MOST_KEPT = 4_096
_kept: dict[str, Calendar | None] = {}
_lock = Lock()


def known(reference: str) -> bool:
    return reference in _kept


def keep(reference: str, facts: Mapping[str, Any] | None) -> None:
    """Keeps the content of a reference until the process ends or MOST_KEPT others have been read.

    facts: None if the calendar was deleted. Content never changes, so it does not matter who read it first.
    """
    kept_calendar = None if facts is None else calendar(reference, facts)
    with _lock:
        while len(_kept) >= MOST_KEPT:
            del _kept[next(iter(_kept))]
        _kept[reference] = kept_calendar


def kept(reference: str) -> Calendar:
    """Returns a kept calendar. Raises Unavailable if nobody has read it, ValueError if it was deleted."""
    try:
        kept_calendar = _kept[reference]
    except KeyError:
        raise Unavailable("a calendar has not been read") from None
    if kept_calendar is None:
        raise ValueError(f"the calendar {reference} is gone")
    return kept_calendar


# How a schedule names calendars


@dataclass(frozen=True, slots=True)
class Use:
    """One calendar of a schedule, by the reference of its version."""

    reference: str
    mode: Mode = Mode.EXCLUDE
    roll: Roll = Roll.NONE

    def __str__(self) -> str:
        """Returns the packed form: mode and roll as one character each, then the reference."""
        return f"{self.mode[0]}{_SIGN_OF[self.roll]}{self.reference}"

    @classmethod
    def read(cls, text: str) -> Use:
        """Reads the packed form. Raises ValueError for anything else."""
        try:
            return cls(text[2:], _MODES[text[0]], _SIGNS[text[1]])
        except LookupError:
            raise ValueError(f"unknown use of a calendar {text!r}") from None


def references(packed: str) -> list[str]:
    """Returns the references in a string that contains the packed timing of a schedule."""
    match = _REFERENCES.search(packed)
    return [] if match is None else [Use.read(text).reference for text in json.loads(f"[{match[1]}]")]


# The series


@dataclass(frozen=True, slots=True)
class Filtered(ByCalendars):
    """The occurrences of `series` that the calendars let through."""

    series: Series
    filter: Filter

    def after(self, second: int) -> int | None:
        candidate = self.series.after(second)
        while candidate is not None:
            spend(3)
            free = self.filter.near(candidate, 1)
            if free is None or free == candidate:
                return free
            candidate = self.series.after(free - 1)
        return None

    def until(self, second: int) -> int | None:
        candidate = self.series.until(second)
        while candidate is not None:
            spend(3)
            free = self.filter.near(candidate, -1)
            if free is None or free == candidate:
                return free
            candidate = self.series.until(free)
        return None

    def comes(self, second: int) -> int | None:
        return second if self.filter.lets(second) else None

    def stopped_by(self, second: int) -> int | None:
        return self.filter.first(second)

    def alike_until(self, second: int) -> int:
        stopped = self.filter.stopped(second)
        return LAST_SECOND if stopped is None else stopped - 1

    def count(self, after: int, until: int, limit: int) -> int:
        """Counts one free stretch at a time, not one occurrence at a time."""
        counted = 0
        while counted < limit and (first := self.after(after)) is not None and first <= until:
            spend(20)
            after = min(self.alike_until(first), until)
            counted += self.series.count(first - 1, after, limit - counted)
        return counted


def applied(series: Series, packed: Sequence[str], by: Zone) -> Series:
    """Returns the series after a schedule's calendars are applied. by: the schedule's own zone.

    An occurrence that rolls may leave the window of the series. Raises ValueError for a string that was not packed or a
    calendar that was deleted; Unavailable for calendars that have not been read.
    """
    uses = [Use.read(text) for text in packed]
    stops = tuple(
        Stop(kept(use.reference).covered(by), use.mode is Mode.INCLUDE, use.roll is not Roll.NONE) for use in uses
    )
    step = next((_STEPS[use.roll] for use in uses if use.roll is not Roll.NONE), 0)
    step = step if step and _some_roll(series, stops, by) else 0
    times = times_of_week(series, by, any_day=step != 0)
    since = series.first if isinstance(series, Window) and not step else FIRST_SECOND
    covered = [(each.times, each.include) for each in stops]
    within = reach(Asked(times, by, since, partial(rolled_days, series, by, step)), covered)
    anything = Asked([ANY_TIME], by, FIRST_SECOND, lambda: day_masks.ALL)
    through = Filter(stops, NOWHERE if within is NOWHERE else reach(anything, covered), within)
    return Rolled(series, through, by, step) if step else Filtered(series, through)


def _some_roll(series: Series, stops: Sequence[Stop], by: Zone) -> bool:
    """Returns False if certainly no occurrence is stopped only by calendars that roll; True if one may be."""
    asked = Asked(times_of_week(series, by), by, FIRST_SECOND, partial(rolled_days, series, by, 0))
    firm = [(each.times, each.include) for each in stops if not each.rolls]
    return any(reach(asked, [*firm, (each.times, not each.include)]) is not NOWHERE for each in stops if each.rolls)


def left_out(series: Series, after: int, until: int) -> Iterator[tuple[int, int]]:
    """Yields the occurrences in (after, until] that calendars stop and that do not roll, in order.

    Each comes with the index of the first calendar that stops it. Raises Undecided.
    """
    filtered = of_calendars(series)
    if filtered is None:
        return
    second = filtered.series.after(after)
    while second is not None and second <= until:
        spend(3)
        stopped = filtered.filter.stopped(second)
        if stopped is None:
            return
        if stopped > second:
            second = filtered.series.after(stopped - 1)
            continue
        first = filtered.filter.first(second)
        if filtered.comes(second) is None and first is not None:
            yield second, first
        second = filtered.series.after(second)


def of_calendars(series: Series) -> Filtered | Rolled | None:
    """Returns the part of a series that applies its calendars, without its window and its jitter."""
    inner: Series | None = series
    while inner is not None and not isinstance(inner, Filtered | Rolled):
        inner = getattr(inner, "series", None)
    return inner
