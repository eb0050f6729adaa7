"""`cron`: five fields by the rules of Vixie cron: minute, hour, day of the month, month, weekday.

If both day fields are restricted, a day matches if either has it; a field that starts with `*` is not restricted.
Supports names of months and weekdays in any case, 0 and 7 for Sunday, lists, ranges, steps, `@daily` and similar names,
and Quartz's letters `L`, `LW`, `5L` and `2#2` (cron_days.py). Rejects @reboot, seconds, 15W and ?.
"""

from __future__ import annotations

from functools import lru_cache, partial

from sweephand.base import json_schema
from sweephand.base.errors import InvalidRequest, never_fires
from sweephand.base.lazy import lazy
from sweephand.base.members.fields import LONGEST_TEXT, must_be, notation
from sweephand.base.records import dataclass
from sweephand.schedules.grids.calendar_masks import ALL_DATES, ALL_WEEKDAYS, MONTHS_SHORT, WEEKDAYS_SHORT
from sweephand.schedules.grids.clock import Clock
from sweephand.schedules.grids.days import ALL_MONTHS, DayFields, OfMonths, OnDays, month_table
from sweephand.schedules.grids.wallclock import certain_gap
from sweephand.schedules.notations.fields import Field, split, steps_over_all_hours
from sweephand.schedules.notations.shapes import ON_THE_CLOCK, Beginning, Compiled, Facts, Rules, at_hours
from sweephand.schedules.zones.localtime import MonthOverflow

with lazy():
    from sweephand.schedules.notations import cron_days
    from sweephand.schedules.text import english

FIELD = "cron"
DEFAULTS = ON_THE_CLOCK
SCHEMA = json_schema.text(1, LONGEST_TEXT, description="Five fields, or a name such as `@daily`.")
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
_IN_DATES, _IN_WEEKDAYS = frozenset("LWlw"), frozenset("Ll#")
"""Letters of these two fields; names of weekdays contain none of them."""
_MOVING = (MonthOverflow.CLAMP, MonthOverflow.NEXT)


@dataclass(frozen=True)
class Parsed:
    """A parsed cron. stepped_hours: whether the hour field is a step over the whole day, so that no hour is fixed.

    on: the day fields in words, if they have letters.
    """

    days: OfMonths
    clock: Clock
    stepped_hours: bool
    on: str = ""


def read(value: object, rules: Rules, beginning: Beginning) -> Facts:  # noqa: ARG001 - a calendar needs no anchor
    """Returns the string with single spaces. Raises NEVER_FIRES for 30 February, unless monthOverflow moves it."""
    text = " ".join(notation(value, FIELD, EXPECTED).split())
    days = parse(text).days
    if days.fields is None and rules.month_overflow is not None:
        raise InvalidRequest("monthOverflow", f"{rules.month_overflow} has no effect on L and #; leave it out")
    if rules.month_overflow in _MOVING:
        cron_days.check_named(text)
    elif not days.ever():
        raise never_fires(FIELD, "never fires: none of its months has the day that it names")
    return text


def compile_(facts: Facts, rules: Rules) -> Compiled:
    parsed = parse(facts)
    clock, overflow = parsed.clock, rules.month_overflow
    pattern, fields = OnDays(parsed.days, clock), parsed.days.fields
    if fields and overflow is not None and overflow in _MOVING:
        pattern = cron_days.overflowing(pattern, parsed.days, fields, overflow)
    series = at_hours(pattern, clock.hours, rules, stepped=parsed.stepped_hours)

    def interval(on_clock: bool) -> int:
        return certain_gap(series, pattern.shortest_gap_s(), clock.common_s(), on_clock=on_clock)

    return Compiled(series, partial(_summary, parsed, rules), interval)


def _summary(parsed: Parsed, rules: Rules) -> str:
    """Returns "at 02:30 from Monday to Friday, Europe/Berlin"."""
    fields, months = parsed.days.fields, parsed.days.months
    on = parsed.on if fields is None else english.day_fields(fields)
    times = english.times(parsed.clock.hours, parsed.clock.minutes)
    sentence = english.in_zone(rules.zone.name, times, on, english.months(months))
    if fields is None or rules.month_overflow is None or rules.month_overflow is MonthOverflow.SKIP:
        return sentence
    every_day = fields.either and fields.weekdays == ALL_WEEKDAYS
    return sentence + english.lacking(ALL_DATES if every_day else fields.dates, months, rules.month_overflow)


@lru_cache(maxsize=2048)
def parse(text: str) -> Parsed:
    """Parses a cron. Raises InvalidRequest with the position of the mistake.

    Cached by text: most schedules of a stack share a few (hourly, daily).
    """
    if text[:1] == "@":
        return parse(_macro(text))
    words = text.split()
    if len(words) == len(_FIELDS) and not (_IN_DATES.isdisjoint(words[2]) and _IN_WEEKDAYS.isdisjoint(words[4])):
        return _with_letters(text)
    minutes, hours, dates, months, weekdays = _masks(text, words)
    either = words[2][0] != "*" and words[4][0] != "*"
    days = _days(DayFields(dates, (weekdays | weekdays >> 7) & ALL_WEEKDAYS, either), months)
    return Parsed(days, Clock(hours, minutes), steps_over_all_hours(words[1], hours))


@lru_cache(maxsize=1024)
def _days(fields: DayFields, months: int) -> OfMonths:
    weekly = fields.weekly if months == ALL_MONTHS else 0
    return OfMonths(month_table(fields.pick), months, fields=fields, weekly=weekly)


def _with_letters(text: str) -> Parsed:
    fields = split(text, _FIELDS)
    minutes, hours, months = (_FIELDS[number].mask(fields[number][1], fields[number][0]) for number in (0, 1, 3))
    days, on = cron_days.with_letters((_FIELDS[2], _FIELDS[4]), fields[2], fields[4], months)
    return Parsed(days, Clock(hours, minutes), steps_over_all_hours(fields[1][1], hours), on)


def _masks(text: str, words: list[str]) -> list[int]:
    """Returns the mask of each field. words: those of `text`. Their positions are computed only for an error."""
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
    raise must_be(FIELD, f"one of {', '.join(_MACROS)}", text, position=0)
