"""Plain English for a `recurrence`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sweephand.schedules.grids.calendar_masks import bits
from sweephand.schedules.grids.clock import DAY_S
from sweephand.schedules.text import english
from sweephand.schedules.zones.localtime import EPOCH, instant_text, wall_text

if TYPE_CHECKING:
    from sweephand.schedules.notations.recurrence_fields import Spec

_ORDINALS = ("every", "first", "second", "third", "fourth", "fifth")
_ALL_HOURS = (1 << 24) - 1


def summary(spec: Spec, zone: str) -> str:
    """Returns "every 2 days from 2015-04-07T14:00:00, UTC", "at 06:00 on the last day of the month"."""
    if not spec.scheduled:
        elapsed = spec.unit in ("minute", "hour")
        since = instant_text(spec.anchor) if elapsed else f"{wall_text(spec.anchor)}, {zone}"
        return f"{_every(spec)} from {since}"
    if spec.unit in ("minute", "hour"):
        sentence = f"{_every(spec)} from {wall_text(spec.anchor)[:16]}{_cut(spec)}"
    else:
        grid = f", {_every(spec)} from {wall_text(spec.anchor)[:10]}" if spec.interval > 1 else ""
        sentence = " ".join(part for part in (_times(spec), _days(spec)) if part) + grid
    return sentence if zone == "UTC" else f"{sentence}, {zone}"


def _every(spec: Spec) -> str:
    return f"every {spec.unit}" if spec.interval == 1 else f"every {spec.interval:,} {spec.unit}s"


def _cut(spec: Spec) -> str:
    minutes, hours = bits(spec.minutes), bits(spec.hours)
    parts = []
    if minutes:
        parts.append(f"at minute{'s' if len(minutes) > 1 else ''} {english.numbers(minutes)}")
    if hours:
        parts.append(f"in the hour{'s' if len(hours) > 1 else ''} {english.numbers(hours)}")
    return "".join(f", {part}" for part in parts)


def _times(spec: Spec) -> str:
    minutes = spec.minutes or 1 << spec.anchor // 60 % 60
    return english.times(spec.hours or (_ALL_HOURS if spec.minutes else 1 << spec.anchor // 3600 % 24), minutes)


def _days(spec: Spec) -> str:
    on = EPOCH + timedelta(days=spec.anchor // DAY_S)
    if spec.unit == "week":
        sunday_first = (spec.week_days << 1 | spec.week_days >> 6) & 0x7F
        return english.weekdays(sunday_first or 1 << on.isoweekday() % 7)
    if spec.unit == "month":
        return f"on {_nth(spec.nth) if spec.nth else _month_days(spec, on.day)} of the month"
    return f"on {on.day} {english.MONTHS[on.month - 1]}" if spec.unit == "year" else ""


def _month_days(spec: Spec, anchor: int) -> str:
    dates = bits(spec.month_days if spec.month_days or spec.from_end else 1 << anchor)
    named = [f"day {english.numbers(dates)}"] if dates else []
    ends = ["the last day" if n == 1 else f"day {n} from the end" for n in bits(spec.from_end)]
    return english.listed(named + ends)


def _nth(mask: int) -> str:
    parts = []
    for bit in bits(mask):
        weekday, which = english.WEEKDAYS[(bit // 11 + 1) % 7], bit % 11
        if which <= 5:
            parts.append(f"every {weekday}" if which == 0 else f"the {_ORDINALS[which]} {weekday}")
        else:
            from_end = "" if which == 6 else f"{_ORDINALS[which - 5]} "
            parts.append(f"the {from_end}last {weekday}")
    return english.listed(parts)
