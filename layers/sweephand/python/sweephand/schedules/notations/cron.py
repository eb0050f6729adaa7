"""`cron`: five fields by the rules of Vixie cron: minute, hour, day of the month, month, weekday.

A day matches if either day field has it when both are restricted; a field that starts with `*` is not restricted.
Names of months and weekdays in any case, 0 and 7 for Sunday, lists, ranges, steps, `@daily` and the like. Quartz's
letters `L`, `LW`, `5L` and `2#2` (cron_letters.py). No @reboot, no seconds, no 15W, no ?.
"""

from __future__ import annotations

from functools import lru_cache, partial

from sweephand import json_schema
from sweephand.errors import InvalidRequest
from sweephand.lazy import lazy
from sweephand.schedules.grids.calendar_masks import MONTHS_SHORT, WEEKDAYS_SHORT, CalendarMasks
from sweephand.schedules.grids.clock import Clock
from sweephand.schedules.grids.days import OfMonths, OnDays
from sweephand.schedules.grids.wallclock import certain_gap
from sweephand.schedules.notations.fields import Field, split, steps_over_all_hours
from sweephand.schedules.notations.shapes import ON_THE_CLOCK, Beginning, Compiled, Facts, Rules, at_hours
from sweephand.schedules.text import members
from sweephand.schedules.zones.localtime import MonthOverflow
from sweephand.values import value

with lazy():
    from sweephand.schedules.notations import cron_letters, cron_overflow
    from sweephand.schedules.text import english

FIELD = "cron"
DEFAULTS = ON_THE_CLOCK
SCHEMA = json_schema.text(1, members.LONGEST_TEXT, description="Five fields, or `@daily` and its kin.")
EXPECTED = 'five fields such as "30 2 * * 1-5"'
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_FIELDS = (
    Field(FIELD, "minute", 0, 59, 59, {}),
    Field(FIELD, "hour", 0, 23, 23, {}),
    Field(FIELD, "day of the month", 1, 31, 31, {}, letters=True),
    Field(FIELD, "month", 1, 12, 12, {name: number for number, name in enumerate(MONTHS_SHORT, 1)}),
    Field(FIELD, "weekday", 0, 6, 7, {name: number for number, name in enumerate(WEEKDAYS_SHORT)}),
)


_NUMBERS = range(len(_FIELDS))
_PLAIN = (_FIELDS[0], _FIELDS[1], _FIELDS[3])
_ALL_DATES, _ALL_WEEKDAYS = (2 << 31) - 2, 0x7F
_MOVING = (MonthOverflow.CLAMP, MonthOverflow.NEXT)


@value
class Parsed:
    """stepped_hours: the hour field is a step over the whole day, so it does not fix the hour.

    days, on: of a text with letters, what its day fields pick together, and in words; `masks` then has all days.
    """

    masks: CalendarMasks
    stepped_hours: bool
    days: OfMonths | None = None
    on: str = ""


def read(value: object, rules: Rules, beginning: Beginning) -> Facts:  # noqa: ARG001 - a calendar needs no anchor
    """Returns the string with tidied blanks. Raises NEVER_FIRES for 30 February, unless monthOverflow moves it."""
    text = " ".join(members.text(value, FIELD, EXPECTED).split())
    parsed = parse(text)
    masks = parsed.masks
    if parsed.days is not None and rules.month_overflow is not None:
        raise InvalidRequest("monthOverflow", f"{rules.month_overflow} has no effect on L and #; leave it out")
    if rules.month_overflow in _MOVING:
        cron_overflow.check(text)
    elif not (masks.ever() if parsed.days is None else parsed.days.ever()):
        raise members.never_fires(FIELD, "none of its months has a day that it names")
    return text


def counted_from(facts: Facts) -> int | None:  # noqa: ARG001 - it takes nothing from the clock
    return None


def compile_(facts: Facts, rules: Rules) -> Compiled:
    parsed = parse(facts)
    if rules.month_overflow in _MOVING:
        return _overflowing(parsed, rules)
    masks = parsed.masks
    if parsed.days is not None:
        return _lettered(parsed, parsed.days, rules)
    series = at_hours(masks, masks.hours, rules, stepped=parsed.stepped_hours)
    return Compiled(
        series,
        lambda: _summary(masks, rules.zone.name),
        lambda: certain_gap(series, masks.shortest_gap_s(), masks.common_s()),
    )


def _lettered(parsed: Parsed, days: OfMonths, rules: Rules) -> Compiled:
    clock = Clock(parsed.masks.hours, parsed.masks.minutes)
    pattern = OnDays(days, clock)
    series = at_hours(pattern, clock.hours, rules, stepped=parsed.stepped_hours)
    return Compiled(
        series,
        lambda: _words(parsed, rules.zone.name),
        lambda: certain_gap(series, pattern.shortest_gap_s(), clock.common_s()),
    )


def _words(parsed: Parsed, zone: str) -> str:
    masks = parsed.masks
    parts = (english.times(masks.hours, masks.minutes), parsed.on, english.months(masks.months))
    sentence = " ".join(part for part in parts if part)
    return sentence if zone == "UTC" else f"{sentence}, {zone}"


def _overflowing(parsed: Parsed, rules: Rules) -> Compiled:
    assert rules.month_overflow is not None
    masks = parsed.masks
    pattern = cron_overflow.pattern(masks, rules.month_overflow)
    series = at_hours(pattern, masks.hours, rules, stepped=parsed.stepped_hours)
    words = partial(cron_overflow.words, masks, rules.month_overflow)
    return Compiled(
        series,
        lambda: f"{_summary(masks, rules.zone.name)}{words()}",
        lambda: certain_gap(series, pattern.shortest_gap_s(), masks.common_s()),
    )


@lru_cache(maxsize=2048)
def parse(text: str) -> Parsed:
    """Returns the masks of a cron. Raises InvalidRequest with the position of the mistake.

    Cached by text: most schedules of a stack share a few (hourly, daily).
    """
    if text[:1] == "@":
        return parse(_macro(text))
    words = text.split()
    if len(words) == len(_FIELDS) and _may_have_letters(words[2], words[4]):
        return _with_letters(text)
    minutes, hours, days, months, weekdays = _masks(text, words)
    hour_text, day_text, weekday_text = words[1], words[2], words[4]
    either = day_text[0] != "*" and weekday_text[0] != "*"
    calendar = CalendarMasks(minutes, hours, days, months, (weekdays | weekdays >> 7) & 0x7F, either)
    return Parsed(calendar, "/" in hour_text and steps_over_all_hours(hour_text, hours))


def _may_have_letters(day: str, weekday: str) -> bool:
    """Names of weekdays have neither."""
    return any(each in "LWlw" for each in day) or any(each in "Ll#" for each in weekday)


def _with_letters(text: str) -> Parsed:
    fields = split(text, _FIELDS)
    plain = [field.mask(word, at) for field, (at, word) in zip(_FIELDS, fields, strict=True) if field in _PLAIN]
    minutes, hours, months = plain
    found = cron_letters.read((_FIELDS[2], _FIELDS[4]), fields[2], fields[4], months)
    masks = CalendarMasks(minutes, hours, _ALL_DATES, months, _ALL_WEEKDAYS, False)
    stepped = "/" in fields[1][1] and steps_over_all_hours(fields[1][1], hours)
    return Parsed(masks, stepped, found.days, found.on)


def _masks(text: str, words: list[str]) -> list[int]:
    """Returns the mask of each field. words: of `text`; their positions are found again only to refuse one."""
    try:
        if len(words) == 5:
            return [*map(_mask, _NUMBERS, words)]
    except InvalidRequest:
        pass
    return [field.mask(word, at) for field, (at, word) in zip(_FIELDS, split(text, _FIELDS), strict=True)]


@lru_cache(maxsize=1024)
def _mask(number: int, word: str) -> int:
    """Returns the mask of one word. Cached, because crons have few different words, and reading them costs most."""
    return _FIELDS[number].mask(word, 0)


def _macro(text: str) -> str:
    fields = _MACROS.get(text.lower())
    if fields is not None:
        return fields
    if text.lower() == "@reboot":
        raise InvalidRequest(FIELD, "@reboot names an event, not a time", position=0)
    raise InvalidRequest(FIELD, f"expected one of {', '.join(_MACROS)}", position=0)


def _summary(masks: CalendarMasks, zone: str) -> str:
    return english.calendar(masks, zone)
