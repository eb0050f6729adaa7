"""`eventBridge`: the expressions of Amazon EventBridge Scheduler: `at(...)`, `rate(...)` and `cron(...)` of six fields.

cron(minutes hours day-of-month month day-of-week year): one of the two day fields is `?`. Weekdays are 1 to 7 or SUN to
SAT. In the day of the month, L is the last day, LW the last weekday, and 15W the weekday nearest to the 15th of that
month. In the day of the week, L is Saturday, 6L the last Friday of the month, and 6#3 the third Friday.

Unless the schedule states its rules, wall times in a gap are skipped, and those that come twice run the first time. A
cron of all 24 hours runs both copies.
Source: the service's user guide, "Schedule types".
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import NamedTuple

from sweephand.base import json_schema
from sweephand.base.errors import InvalidRequest, never_fires
from sweephand.base.members.fields import LONGEST_TEXT, must_be, notation
from sweephand.schedules.grids.calendar_masks import MONTHS_SHORT, WEEKDAYS_SHORT
from sweephand.schedules.grids.clock import Clock
from sweephand.schedules.grids.days import ALL_YEARS, FIRST_YEAR, OfMonths, OnDays, month_table
from sweephand.schedules.grids.wallclock import OnWallClock, certain_gap
from sweephand.schedules.notations import at, every
from sweephand.schedules.notations.fields import Field, split
from sweephand.schedules.notations.shapes import (
    ALL_HOURS,
    ON_THE_CLOCK,
    Beginning,
    Compiled,
    Defaults,
    Facts,
    Rules,
    check_no_overflow,
)
from sweephand.schedules.text import english
from sweephand.schedules.zones.localtime import Gap, Overlap

FIELD = "eventBridge"
DEFAULTS: Defaults = {**ON_THE_CLOCK, "dstGap": "skip"}
SCHEMA = json_schema.text(
    1,
    LONGEST_TEXT,
    description="An expression of EventBridge Scheduler: `cron(30 2 ? * MON-FRI *)`, `rate(5 minutes)` or `at(...)`.",
)
EXPECTED = 'an expression such as "cron(30 2 ? * MON-FRI *)", "rate(5 minutes)" or "at(2027-01-01T09:00:00)"'
_SHAPE = re.compile(r"(at|rate|cron)\((.*)\)", re.ASCII)
_RATE = re.compile(r"([0-9]{1,9})[ ]+(minutes?|hours?|days?)", re.ASCII)
_AT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}", re.ASCII)
_NAMES = {name: number for number, name in enumerate(WEEKDAYS_SHORT, 1)}
_FIELDS = (
    Field(FIELD, "minutes", 0, 59, 59, {}),
    Field(FIELD, "hours", 0, 23, 23, {}),
    Field(FIELD, "day of the month", 1, 31, 31, {}),
    Field(FIELD, "month", 1, 12, 12, {name: number for number, name in enumerate(MONTHS_SHORT, 1)}),
    Field(FIELD, "day of the week", 1, 7, 7, _NAMES),
    Field(FIELD, "year", 1970, 2199, 2199, {}),
)
_MINUTES, _HOURS, _DAY, _MONTH, _WEEKDAY, _YEAR = range(6)


def read(value: object, rules: Rules, beginning: Beginning) -> Facts:
    """Returns {"cron": string}, or "at" or "rate" with the facts of the equivalent notation."""
    check_no_overflow(rules, "EventBridge leaves such days out, and L is the last of a month")
    text = notation(value, FIELD, EXPECTED)
    match = _SHAPE.fullmatch(text.strip())
    if match is None:
        raise must_be(FIELD, EXPECTED, text, position=0)
    kind, inner = match[1], match[2]
    try:
        if kind == "cron":
            return {"cron": _cron(inner)}
        return {"rate": _rate(inner, rules, beginning)} if kind == "rate" else {"at": _at(inner, rules, beginning)}
    except InvalidRequest as refused:
        position = None if refused.position is None else refused.position + text.index("(") + 1
        raise refused.changed(field=FIELD, position=position) from refused


def is_one_time(value: object) -> bool:
    """Returns whether the expression is an `at(...)`, from its beginning alone."""
    return str(value).lstrip().startswith("at(")


def defaults_of(value: object) -> Defaults:
    """Returns the defaults of the notation that the expression stands for."""
    return at.DEFAULTS if is_one_time(value) else DEFAULTS


def counted_from(facts: Facts) -> int | None:
    return every.counted_from(facts["rate"]) if "rate" in facts else None


def reads_clock(facts: Facts) -> bool:  # noqa: ARG001 - a rate has whole days at most, which are elapsed time
    return False


def compile_(facts: Facts, rules: Rules) -> Compiled:
    if "rate" in facts:
        return every.compile_(facts["rate"], rules)
    if "at" in facts:
        return at.compile_(facts["at"], rules)
    parsed = parse(facts["cron"])
    pattern = OnDays(parsed.days, parsed.clock)
    series = _on_wall_clock(pattern, rules)
    return Compiled(
        series,
        summary=partial(_summary, parsed, rules.zone.name),
        interval=lambda on_clock: certain_gap(
            series, pattern.shortest_gap_s(), parsed.clock.common_s(), on_clock=on_clock
        ),
    )


def _on_wall_clock(pattern: OnDays, rules: Rules) -> OnWallClock:
    """Applies the service's rules (decision 0068): skips times in a gap, runs repeated ones the first time.

    With all 24 hours, each real hour has its occurrences, unless the schedule states another rule.
    """
    if pattern.clock.hours == ALL_HOURS and rules.overlap is None:
        return OnWallClock(pattern, rules.zone, rules.gap or Gap.SKIP, Overlap.BOTH, marked=rules.gap is not None)
    return OnWallClock(pattern, rules.zone, rules.gap or Gap.SKIP, rules.overlap or Overlap.FIRST)


class Parsed(NamedTuple):
    """A parsed cron(). on: the day field in words; "" for every day."""

    days: OfMonths
    clock: Clock
    on: str


@lru_cache(maxsize=2048)
def parse(text: str) -> Parsed:
    """Parses the content of cron(). Raises InvalidRequest with the position in that content."""
    fields = split(text, _FIELDS)
    (_, day), (weekday_at, weekday) = fields[_DAY], fields[_WEEKDAY]
    if (day == "?") is (weekday == "?"):
        raise InvalidRequest(
            FIELD,
            'one of day of the month and day of the week must be "?", as in "cron(0 9 1 * ? *)"',
            position=weekday_at,
        )
    masks = {
        number: _FIELDS[number].mask(word, position)
        for number, (position, word) in enumerate(fields)
        if number not in (_DAY, _WEEKDAY)
    }
    table, on = _of_weekdays(weekday, weekday_at) if day == "?" else _of_dates(day, fields[_DAY][0])
    return Parsed(
        OfMonths(table, masks[_MONTH], ALL_YEARS if fields[_YEAR][1] == "*" else masks[_YEAR] >> FIRST_YEAR),
        Clock(masks[_HOURS], masks[_MINUTES]),
        on,
    )


def _cron(text: str) -> str:
    if not parse(text).days.ever():
        raise never_fires(FIELD, "none of its years and months has a day that it names")
    return " ".join(text.split())


def _rate(text: str, rules: Rules, beginning: Beginning) -> Facts:
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise must_be(FIELD, 'a number of minutes, hours or days, as in "rate(5 minutes)"', text, position=0)
    number, unit = int(match[1]), match[2].rstrip("s")
    return every.read(f"1 {unit}" if number == 1 else f"{number} {unit}s", rules, beginning)


def _at(text: str, rules: Rules, beginning: Beginning) -> Facts:
    if not _AT.fullmatch(text):
        raise must_be(FIELD, 'a wall time, as in "at(2027-01-01T09:00:00)"', text, position=0)
    return at.read(text, rules, beginning)


def _of_dates(text: str, position: int) -> tuple[tuple[int, ...], str]:
    """Returns (table, words) of a day of the month."""
    field = _FIELDS[_DAY]
    if text in ("L", "LW") or (text[-1:] == "W" and "," not in text):
        nearest = 0 if text[0] == "L" else field.value(text[:-1], position)
        if text == "L":
            return month_table(lambda length, _: 1 << length), "on the last day of the month"
        words = (
            f"on the weekday nearest to day {nearest}"
            if nearest
            else "on the last weekday (Monday to Friday) of the month"
        )
        return month_table(partial(_nearest_weekday, nearest)), words
    mask = field.mask(text, position)
    return month_table(lambda *_: mask), english.dates(mask)


def _of_weekdays(text: str, position: int) -> tuple[tuple[int, ...], str]:
    """Returns (table, words) of a day of the week."""
    field = _FIELDS[_WEEKDAY]
    if text == "L":
        text = "7"
    if text[-1:] == "L" and "," not in text:
        weekday = _monday_first(field.value(text[:-1], position))
        words = f"on the last {english.WEEKDAYS[(weekday + 1) % 7]} of the month"
        return month_table(lambda length, first: _of_week(length, first, weekday) & -1 << length - 6), words
    before, hash_, which = text.partition("#")
    if hash_ and "," in text:
        reason = "day of the week: # stands alone, as in 2#1, not in a list"
        raise InvalidRequest(FIELD, reason, position=position + text.index(","))
    if hash_:
        weekday = _monday_first(field.value(before, position))
        if which not in ("1", "2", "3", "4", "5"):
            position += len(before) + 1
            raise must_be(FIELD, "1 to 5", which, part="the number after #", position=position)
        weeks = 0x7F << 7 * int(which) - 6
        words = f"on the {english.ORDINALS[int(which)]} {english.WEEKDAYS[(weekday + 1) % 7]} of the month"
        return month_table(lambda length, first: _of_week(length, first, weekday) & weeks), words
    mask = field.mask(text, position)
    chosen = [_monday_first(number) for number in range(1, 8) if mask >> number & 1]
    table = month_table(lambda length, first: sum(_of_week(length, first, weekday) for weekday in chosen))
    return table, english.weekdays(mask >> 1)


def _monday_first(number: int) -> int:
    """Returns the weekday from 0 for Monday, given 1 for Sunday."""
    return (number + 5) % 7


def _of_week(length: int, first: int, weekday: int) -> int:
    """Returns the mask of all days of a month on a weekday. first: weekday of day 1; 0 is Monday."""
    return sum(1 << day for day in range(1 + (weekday - first) % 7, length + 1, 7))


def _nearest_weekday(day: int, length: int, first: int) -> int:
    """Returns the weekday from Monday to Friday that is nearest to a day, never in another month.

    day: 0 for the last day. Returns 0 if this month lacks the day.
    """
    day = day or length
    if day > length:
        return 0
    weekday = (first + day - 1) % 7
    if weekday == 5:
        day += -1 if day > 1 else 2
    elif weekday == 6:
        day += 1 if day < length else -2
    return 1 << day


def _summary(parsed: Parsed, zone: str) -> str:
    days, clock = parsed.days, parsed.clock
    times, years = english.times(clock.hours, clock.minutes), english.years(days.years)
    return english.in_zone(zone, times, parsed.on, english.months(days.months), years)
