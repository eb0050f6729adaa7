"""A recurrence rule as a sentence in plain English."""

from __future__ import annotations

from typing import Any

from sweephand.schedules.grids.calendar_masks import bits
from sweephand.schedules.grids.clock import Clock
from sweephand.schedules.grids.rrule_days import DayRule
from sweephand.schedules.notations.rrule_parts import DAILY, HOURLY, MINUTELY, MONTHLY, SECONDLY, WEEKLY, YEARLY, Recur
from sweephand.schedules.text import english
from sweephand.schedules.zones.localtime import instant_text, wall_text

_UNITS = ("second", "minute", "hour", "day", "week", "month", "year")


def summary(recur: Recur | None, facts: Any, zone: str) -> str:
    """Returns "every 2 weeks on Monday and Friday at 09:00, Europe/Berlin, 10 times"; without a rule, its dates."""
    if recur is None:
        return _dates(facts)
    unit, start = _UNITS[recur.frequency], int(facts["start"])
    parts = [f"every {unit}" if recur.interval == 1 else f"every {recur.interval:,} {unit}s"]
    parts += _days(recur, start)
    parts += _times(recur, start)
    said = " ".join(parts)
    if recur.positions:
        which = english.listed([_ordinal(position) for position in sorted(recur.positions, key=lambda p: (p < 0, p))])
        said += f"; of these the {which} of each {unit if recur.interval == 1 else 'such ' + unit}"
    if zone != "UTC":
        said += f", {zone}"
    if recur.times:
        said += f", {recur.times:,} times" if recur.times > 1 else ", once"
    if recur.until:
        said += f", until {instant_text(int(facts['last']))}"
    if "also" in facts:
        said += f", and at {_number(len(facts['also']), 'instant')} of its own"
    return said + _exceptions(facts)


def _dates(facts: Any) -> str:
    """Describes dates without a rule: "at 3 dates, the first 2027-01-01T09:00:00Z, the last 2027-01-31T09:00:00Z"."""
    first, last = facts["also"][0], facts["also"][-1]
    said = f"at {instant_text(first)}"
    if first < last:
        said = f"at {len(facts['also'])} dates, the first {instant_text(first)}, the last {instant_text(last)}"
    return said + _exceptions(facts)


def _exceptions(facts: Any) -> str:
    named = int(facts.get("exceptions", len(facts.get("except", ()))))
    return f", {_number(named, 'exception')}" if named else ""


def _days(recur: Recur, start: int) -> list[str]:
    rule, frequency = recur.days, recur.frequency
    weekdays = rule.weekdays << 1 & 0x7F | rule.weekdays >> 6  # bit 0 is Sunday
    month, day, weekday = wall_text(start)[5:7], int(wall_text(start)[8:10]), (start // 86_400 + 4) % 7
    open_ = not (rule.month_days or rule.year_days or rule.week_numbers or rule.weekdays or rule.ordinals)
    if open_ and frequency == WEEKLY:
        weekdays = 1 << weekday
    if open_ and frequency in (MONTHLY, YEARLY):
        rule = rule._replace(month_days=(day,))
        if frequency == YEARLY and not rule.months:
            rule = rule._replace(months=1 << int(month))
    phrases = [f"on {english.WEEKDAYS[number]}" for number in bits(weekdays) if weekdays.bit_count() == 1]
    if not phrases and weekdays:
        phrases = [english.weekdays(weekdays) or "on all weekdays"]
    if rule.ordinals:
        period = "month" if rule.months or frequency == MONTHLY else "year"
        days = [f"{_ordinal(which)} {english.WEEKDAYS[(day + 1) % 7]}" for which, day in rule.ordinals]
        phrases = [" or ".join([*phrases, f"on the {english.listed(days)} of the {period}"])]
    phrases += _numbered(rule)
    if rule.months:
        phrases.append(english.months(rule.months))
    return [each for each in phrases if each]


def _numbered(rule: DayRule) -> list[str]:
    phrases = []
    if rule.month_days:
        phrases.append(f"on {_numbers('day', rule.month_days)} of the month")
    if rule.year_days:
        phrases.append(f"on {_numbers('day', rule.year_days)} of the year")
    if rule.week_numbers:
        phrases.append(f"in {_numbers('week', rule.week_numbers)}")
    return phrases


def _times(recur: Recur, start: int) -> list[str]:
    """Returns the times of the day; for hours and shorter, only those in the rule."""
    frequency = recur.frequency
    if frequency < DAILY:
        said = []
        if recur.hours:
            said.append(f"in the hour{'s' if recur.hours.bit_count() > 1 else ''} {_spans(recur.hours)}")
        if recur.minutes or frequency == HOURLY:
            said.append(f"at minute {_spans(recur.minutes or 1 << start // 60 % 60)}")
        if recur.seconds or (frequency in (MINUTELY, HOURLY) and start % 60):
            said.append(f"at second {_spans(recur.seconds or 1 << start % 60)}")
        return said if frequency > SECONDLY or said else []
    hours, minutes = recur.hours or 1 << start // 3600 % 24, recur.minutes or 1 << start // 60 % 60
    return [english.clock_times(Clock(hours, minutes, recur.seconds or 1 << start % 60))]


def _spans(mask: int) -> str:
    return english.numbers(bits(mask))


def _numbers(name: str, numbers: tuple[int, ...]) -> str:
    """Returns "day 1, 15 and the last day"."""
    counted = [number for number in numbers if number > 0]
    parts = [f"{name} {english.numbers(counted)}"] if counted else []
    parts += [f"the {_ordinal(number)} {name}" for number in reversed(numbers) if number < 0]
    return english.listed(parts)


def _ordinal(number: int) -> str:
    """Returns "first", "21st", "last", "second-to-last"."""
    return english.ordinal(number) if number > 0 else english.from_end(-number)


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
