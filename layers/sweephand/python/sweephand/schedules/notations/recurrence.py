"""`recurrence`: every so many minutes, hours, days, weeks, months or years, and a schedule within them.

{"frequency", "interval", "schedule": {"minutes", "hours", "weekDays", "monthDays", "monthlyOccurrences"}}, as Azure
Scheduler wrote it. An interval of 1 without a schedule is one of Root's job intervals. The anchor is startTime, else
the moment of creation. It supplies everything that the caller does not state: the day, the hour, the minute. Without a
schedule:

  minute, hour        equal steps of elapsed time from the anchor
  day to year         the anchor's time by the clock in `timezone`, every so many days, weeks, months or years

With a schedule, on whole minutes (see `_days` and `_clock`):

  day, week, month    the times `hours` x `minutes` on the days that the schedule names, else on the anchor's day
  hour, minute        the grid of whole hours or minutes on the clock since the anchor, limited to `hours` and `minutes`

Weeks begin on Monday. Hours that the schedule fixes follow dstGap and dstOverlap (next_valid, first). A grid runs
through a clock change and neither loses nor doubles an occurrence. Source: decision 0026.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from sweephand.base.errors import never_fires
from sweephand.schedules.grids import months
from sweephand.schedules.grids.calendar_masks import bits
from sweephand.schedules.grids.clock import DAY_S, Clock
from sweephand.schedules.grids.cycles import Slots
from sweephand.schedules.grids.days import Days, EachNth, OfMonths, OfWeeks, OnDays, month_table
from sweephand.schedules.grids.wallclock import OnWallClock, certain_gap
from sweephand.schedules.notations.recurrence_fields import FIELD, LONGEST, SCHEMA, Spec, read_spec
from sweephand.schedules.notations.shapes import (
    ALL_HOURS,
    ON_THE_CLOCK,
    Beginning,
    Compiled,
    Defaults,
    Facts,
    Rules,
    at_hours,
)
from sweephand.schedules.rule import Steps
from sweephand.schedules.text import english
from sweephand.schedules.zones.localtime import EPOCH, Gap, MonthOverflow, Overlap, instant_text, wall_text

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DEFAULTS", "SCHEMA", "as_rfc_3339", "compile_", "counted_from", "defaults_of", "read"]

DEFAULTS: Defaults = {**ON_THE_CLOCK, "monthOverflow": "clamp"}
_ALL_MINUTES = (1 << 60) - 1
_SLOT_S = {"minute": 60, "hour": 3600}
_AZURE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:T([0-9]{2}:[0-9]{2})([Zz]|[+-][0-9]{2}:[0-9]{2})?)?", re.ASCII)
_MONDAY = 3
"""The weekday of 1970-01-01 is Thursday, which is this many days after Monday."""


def read(value: object, rules: Rules, beginning: Beginning) -> Facts:
    """Returns the members of Spec that are set, and "earliest" if the anchor is the moment of creation."""
    return _anchored(read_spec(value), rules, beginning)


def kept(value: object) -> None:  # noqa: ARG001 - only the anchor depends on zone data
    return None


def read_again(facts: Facts, _: object, rules: Rules, beginning: Beginning) -> Facts:
    """Returns the facts with the anchor that the loaded zone data give them."""
    return _anchored(_spec(facts), rules, beginning)


def reads_clock(facts: Facts) -> bool:
    return not _is_elapsed(_spec(facts))


def _anchored(spec: Spec, rules: Rules, beginning: Beginning) -> Facts:
    elapsed = _is_elapsed(spec)
    second = beginning.now if beginning.start is None else beginning.start
    spec = spec._replace(anchor=second if elapsed else beginning.wall(rules.zone, fixed=_fixes_hour(spec)))
    facts = {name: each for name, each in spec._asdict().items() if each}
    if beginning.start is None:
        facts["earliest"] = beginning.now + 1
    if not elapsed and _pattern(spec, rules).after(-2 * DAY_S) is None:
        raise never_fires(FIELD, "none of the times of its schedule lies on its grid")
    return facts


def defaults_of(value: object) -> Defaults:
    """Returns the defaults of a recurrence. The day of its anchor is clamped; a day that it names is not."""
    schedule = value.get("schedule") if isinstance(value, dict) else None
    names_days = isinstance(schedule, dict) and bool(schedule.get("monthDays"))
    return {**DEFAULTS, "monthOverflow": "skip"} if names_days else DEFAULTS


def as_rfc_3339(value: object) -> object:
    """Completes a startTime or endTime of Azure Scheduler's JSON (2015-04-07T14:00Z, 2015-04-07) to RFC 3339.

    A date means its midnight. Anything else is returned unchanged.
    """
    match = _AZURE.fullmatch(value) if isinstance(value, str) else None
    return value if match is None else f"{match[1]}T{match[2] or '00:00'}:00{match[3] or ''}"


def counted_from(facts: Facts) -> int | None:
    return int(facts["earliest"]) - 1 if "earliest" in facts else None


def compile_(facts: Facts, rules: Rules) -> Compiled:
    spec = _spec(facts)
    if not 1 <= spec.interval <= LONGEST[spec.unit]:
        raise ValueError(f"an interval of {spec.interval}")
    earliest = int(facts.get("earliest", 0))
    words = partial(_summary, spec, rules)
    if _is_elapsed(spec):
        step_s = spec.interval * _SLOT_S[spec.unit]
        return Compiled(Steps(spec.anchor, step_s), words, earliest=earliest, interval=lambda _: step_s)
    pattern = _pattern(spec, rules)
    series = _on_wall_clock(spec, pattern, rules)
    return Compiled(
        series,
        words,
        earliest=earliest,
        interval=lambda on_clock: certain_gap(series, pattern.shortest_gap_s(), on_clock=on_clock),
    )


def _spec(facts: Facts) -> Spec:
    masks = {name: int(each) for name, each in facts.items() if name not in ("unit", "earliest")}
    return Spec(unit=facts["unit"], **masks)


def _is_elapsed(spec: Spec) -> bool:
    """Returns whether the steps are elapsed time, which no clock change affects."""
    return spec.unit in _SLOT_S and not spec.scheduled


def _fixes_hour(spec: Spec) -> bool:
    return spec.unit not in _SLOT_S or spec.hours not in (0, ALL_HOURS)


def _pattern(spec: Spec, rules: Rules) -> OnDays | Slots:
    if spec.unit not in _SLOT_S:
        clock = _clock(spec)
        if spec.unit in ("month", "year") and not spec.nth:
            overflow = _overflow(spec, rules.month_overflow)
            return months.on_dates(_of_months(spec), _dates(spec), spec.from_end, clock, overflow)
        return OnDays(_days(spec), clock)
    anchor = spec.anchor // _SLOT_S[spec.unit]
    hours = spec.hours or ALL_HOURS
    if spec.unit == "hour":
        return Slots(3600, spec.interval, anchor, hours, spec.minutes or 1 << spec.anchor // 60 % 60)
    minutes = spec.minutes or _ALL_MINUTES
    return Slots(60, spec.interval, anchor, sum(minutes << 60 * hour for hour in range(24) if hours >> hour & 1))


def _on_wall_clock(spec: Spec, pattern: OnDays | Slots, rules: Rules) -> OnWallClock:
    """Returns a series. A grid of up to an hour counts each real hour; a wider one has each wall time once."""
    if isinstance(pattern, OnDays):
        return at_hours(pattern, pattern.clock.hours, rules, stepped=False)
    if _fixes_hour(spec):
        return at_hours(pattern, spec.hours, rules, stepped=False)
    if pattern.size_s * pattern.every <= 3600:
        return OnWallClock(pattern, rules.zone, Gap.SKIP, Overlap.BOTH, marked=False)
    return OnWallClock(pattern, rules.zone, Gap.NEXT_VALID, Overlap.FIRST)


def _clock(spec: Spec) -> Clock:
    """Returns the times of a day. Minutes without hours apply to every hour; the anchor supplies missing values."""
    anchors = Clock.at(spec.anchor % DAY_S)
    if not spec.scheduled:
        return anchors
    hours = spec.hours or (ALL_HOURS if spec.minutes else anchors.hours)
    return Clock(hours, spec.minutes or anchors.minutes)


def _days(spec: Spec) -> Days:
    """Returns the days of a recurrence that names none by their date."""
    day = spec.anchor // DAY_S
    if spec.unit == "day":
        return EachNth(spec.interval, day)
    if spec.unit == "week":
        weekday = (day + _MONDAY) % 7
        return OfWeeks(spec.week_days or 1 << weekday, day - weekday, spec.interval)
    return _of_months(spec)(month_table(partial(_of_nth, spec.nth)))


def _of_months(spec: Spec) -> Callable[[tuple[int, ...]], OfMonths]:
    """Returns a function that makes the days of a table in the months that the recurrence reaches."""
    return months.of_months(spec.interval * (12 if spec.unit == "year" else 1), spec.anchor // DAY_S)


def _dates(spec: Spec) -> int:
    """Returns the dates that the recurrence names, else that of the anchor: bit n is day n of the month."""
    if spec.month_days or spec.from_end:
        return spec.month_days
    return 1 << (EPOCH + timedelta(days=spec.anchor // DAY_S)).day


def _overflow(spec: Spec, overflow: MonthOverflow | None) -> MonthOverflow:
    if overflow is not None:
        return overflow
    return MonthOverflow.SKIP if spec.month_days or spec.from_end else MonthOverflow.CLAMP


def _summary(spec: Spec, rules: Rules) -> str:
    """Returns the summary, including how dates that a month lacks move."""
    words = _sentence(spec, rules.zone.name)
    if spec.unit not in ("month", "year") or spec.nth:
        return words
    visited = _of_months(spec)(()).visited()
    return words + english.lacking(_dates(spec), visited, _overflow(spec, rules.month_overflow))


def _of_nth(nth: int, length: int, first: int) -> int:
    """Returns the mask of a month's days of the weekdays in `nth` (see Spec). first: weekday of day 1; 0 is Monday."""
    days = 0
    for day in range(1, length + 1):
        wanted = nth >> 11 * ((first + day - 1) % 7)
        from_start, from_end = (day + 6) // 7, (length - day) // 7 + 1
        if wanted & (1 | 1 << from_start | 1 << 5 + from_end):
            days |= 1 << day
    return days


# Plain English


def _sentence(spec: Spec, zone: str) -> str:
    """Returns "every 2 days from 2015-04-07T14:00:00, UTC", "at 06:00 on the last day of the month"."""
    if not spec.scheduled:
        elapsed = spec.unit in ("minute", "hour")
        since = instant_text(spec.anchor) if elapsed else f"{wall_text(spec.anchor)}, {zone}"
        return f"{_every_words(spec)} from {since}"
    if spec.unit in ("minute", "hour"):
        sentence = f"{_every_words(spec)} from {wall_text(spec.anchor)[:16]}{_within(spec)}"
    else:
        grid = f", {_every_words(spec)} from {wall_text(spec.anchor)[:10]}" if spec.interval > 1 else ""
        clock = _clock(spec)
        times = english.times(clock.hours, clock.minutes)
        sentence = " ".join(part for part in (times, _on_days(spec)) if part) + grid
    return sentence if zone == "UTC" else f"{sentence}, {zone}"


def _every_words(spec: Spec) -> str:
    return f"every {spec.unit}" if spec.interval == 1 else f"every {spec.interval:,} {spec.unit}s"


def _within(spec: Spec) -> str:
    minutes, hours = bits(spec.minutes), bits(spec.hours)
    parts = []
    if minutes:
        parts.append(f"at minute{'s' if len(minutes) > 1 else ''} {english.numbers(minutes)}")
    if hours:
        parts.append(f"in the hour{'s' if len(hours) > 1 else ''} {english.numbers(hours)}")
    return "".join(f", {part}" for part in parts)


def _on_days(spec: Spec) -> str:
    on = EPOCH + timedelta(days=spec.anchor // DAY_S)
    if spec.unit == "week":
        sunday_first = (spec.week_days << 1 | spec.week_days >> 6) & 0x7F
        return english.weekdays(sunday_first or 1 << on.isoweekday() % 7)
    if spec.unit == "month":
        return f"on {_nth_words(spec.nth) if spec.nth else _month_days(spec, on.day)} of the month"
    return f"on {on.day} {english.MONTHS[on.month - 1]}" if spec.unit == "year" else ""


def _month_days(spec: Spec, anchor: int) -> str:
    dates = bits(spec.month_days if spec.month_days or spec.from_end else 1 << anchor)
    named = [f"day {english.numbers(dates)}"] if dates else []
    ends = [f"the {english.from_end(n)} day" for n in bits(spec.from_end)]
    return english.listed(named + ends)


def _nth_words(mask: int) -> str:
    parts = []
    for bit in bits(mask):
        weekday, which = english.WEEKDAYS[(bit // 11 + 1) % 7], bit % 11
        if which <= 5:
            parts.append(f"every {weekday}" if which == 0 else f"the {english.ORDINALS[which]} {weekday}")
        else:
            parts.append(f"the {english.from_end(which - 5)} {weekday}")
    return english.listed(parts)
