"""`sapCron`: the seven fields of SAP Job Scheduling Service: Year Month Day DayOfWeek Hour Minute Second.

A field is a list of `*`, `*/n` (the values that n divides), `a`, `a:b` and `a:b/n` (a, a + n, ...). Days below 0 count
from the end of the month: -1 is its last day. A range applies to each month separately (3:-2). Weekdays are mon to sun,
in any case, and `sat:mon` includes Sunday. `2.fri` is the second Friday of the month, `-1.fri` the last, and `5.fri`
exists only in months with five. A day must match both Day and DayOfWeek. Decision 0025 settles what SAP's documents
leave open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from math import gcd
from typing import NamedTuple

from sweephand.base import json_schema
from sweephand.base.errors import InvalidRequest, never_fires
from sweephand.base.members import fields
from sweephand.schedules.grids.clock import Clock
from sweephand.schedules.grids.days import ALL_YEARS, FIRST_YEAR, OfMonths, OnDays, month_table
from sweephand.schedules.grids.wallclock import certain_gap
from sweephand.schedules.notations.fields import steps_over_all_hours
from sweephand.schedules.notations.shapes import (
    ON_THE_CLOCK,
    Beginning,
    Compiled,
    Facts,
    Rules,
    at_hours,
    check_no_overflow,
)
from sweephand.schedules.text import english

FIELD = "sapCron"
DEFAULTS = ON_THE_CLOCK
SCHEMA = json_schema.text(
    1,
    fields.LONGEST_TEXT,
    description="Seven fields, as SAP writes them: year, month, day, weekday, hour, minute, second.",
)
EXPECTED = 'seven fields "Year Month Day DayOfWeek Hour Minute Second", such as "* * * mon:fri 2 30 0"'
_WORD = re.compile(r"[^ \t]+")
_NUMBERS = re.compile(r"\*(?:/([0-9]+))?|(-?[0-9]+)(?::(-?[0-9]+)(?:/([0-9]+))?)?", re.ASCII)
_NAMES = re.compile(r"\*(?:/([0-9]+))?|([a-z]{3})(?::([a-z]{3})(?:/([0-9]+))?)?", re.ASCII | re.IGNORECASE)
_NTH = re.compile(r"(-?[0-9]+)\.([a-z]{3})", re.ASCII | re.IGNORECASE)
_LENGTHS = (28, 29, 30, 31)
_FIVE_WEEKS = sum(1 << 7 * week for week in range(5))


class Span(NamedTuple):
    """The values first, first + step, ... up to last.

    Days below 0 count from the end of the month; weekdays: 1 to 7.
    """

    first: int
    last: int
    step: int = 1


class Nth(NamedTuple):
    """The n-th weekday of a month. which: 1 to 5 from its beginning, -1 to -5 from its end. weekday: 1 is Monday."""

    which: int
    weekday: int


class Field(NamedTuple):
    """A field: numbers from low to high, or names for them. below: whether numbers below 0 are allowed, as in Day."""

    name: str
    low: int
    high: int
    below: bool = False
    names: tuple[str, ...] = ()

    @property
    def least(self) -> int:
        return -self.high if self.below else self.low

    def spans(self, text: str, position: int) -> list[Span]:
        """Reads each item of the list. Raises InvalidRequest with the position of a wrong item."""
        return [self.span(item, at) for at, item in _items(text, position)]

    def mask(self, text: str, position: int) -> int:
        """Returns bit n for value n."""
        mask = 0
        for first, last, step in self.spans(text, position):
            numbers = (2 << last) - (1 << first) if step == 1 else sum(1 << n for n in range(first, last + 1, step))
            mask |= numbers
        return mask

    def span(self, item: str, at: int) -> Span:
        match = (_NAMES if self.names else _NUMBERS).fullmatch(item)
        if match is None:
            numbers = f"a number from {self.least} to {self.high}, a:b or a:b/n"
            names = f"one of {', '.join(self.names)}, a:b, a:b/n or n.weekday such as -1.sun"
            wanted = f"*, */n, {names if self.names else numbers}"
            raise fields.must_be(FIELD, wanted, item, part=self.name, position=at)
        if match[2] is None:
            return _whole(match, self, at)
        first = self.value(match[2], at + match.start(2))
        if match[3] is None:
            return Span(first, first)
        last = self.value(match[3], at + match.start(3))
        last += 7 if self.names and last < first else 0  # sat:mon
        if not any(resolved(first, length) <= resolved(last, length) for length in _LENGTHS):
            raise InvalidRequest(FIELD, f"{self.name}: the range {fields.shown(item)} runs backwards", position=at)
        return Span(first, last, _step(self.name, match[4], at + match.start(4)))

    def value(self, text: str, at: int) -> int:
        """Returns a number, or that of a name in any case."""
        if self.names:
            if text.lower() not in self.names:
                raise fields.must_be(FIELD, f"one of {', '.join(self.names)}", text, part=self.name, position=at)
            return self.names.index(text.lower()) + 1
        value = int(text)
        if not self.least <= value <= self.high or (self.below and value == 0):
            bounds = f"{self.least} to -1, or 1 to {self.high}" if self.below else f"{self.low} to {self.high}"
            raise fields.must_be(FIELD, bounds, text, part=self.name, position=at)
        return value


_YEAR, _MONTH, _DAY = Field("year", 1970, 2199), Field("month", 1, 12), Field("day", 1, 31, below=True)
_WEEKDAY = Field("dayOfWeek", 1, 7, names=("mon", "tue", "wed", "thu", "fri", "sat", "sun"))
_HOUR, _MINUTE, _SECOND = Field("hour", 0, 23), Field("minute", 0, 59), Field("second", 0, 59)


def read(value: object, rules: Rules, beginning: Beginning) -> Facts:  # noqa: ARG001 - a calendar needs no anchor
    """Returns the string in lower case with tidied blanks. Raises NEVER_FIRES for 30 February and the like."""
    check_no_overflow(rules, "SAP leaves such days out, and -1 is the last of a month")
    text = fields.notation(value, FIELD, EXPECTED)
    if not parse(text).days.ever():
        raise never_fires(FIELD, "none of its years and months has a day that it names")
    return " ".join(text.lower().split())


def compile_(facts: Facts, rules: Rules) -> Compiled:
    parsed = parse(facts)
    pattern = OnDays(parsed.days, parsed.clock)
    series = at_hours(pattern, parsed.clock.hours, rules, stepped=parsed.stepped_hours)
    common_s = gcd(parsed.clock.common_s(), parsed.clock.first if series.marked else 0)
    return Compiled(
        series,
        summary=partial(_summary, facts, rules.zone.name),
        interval=lambda on_clock: certain_gap(series, pattern.shortest_gap_s(), common_s, on_clock=on_clock),
    )


class Parsed(NamedTuple):
    """The parsed fields. dates, weekdays: the items of the two day fields, for the summary.

    stepped_hours: whether the hours are a step over the whole day.
    """

    days: OfMonths
    clock: Clock
    dates: list[Span]
    weekdays: list[Span | Nth]
    stepped_hours: bool


@lru_cache(maxsize=2048)
def parse(text: str) -> Parsed:
    """Parses the seven fields. Raises InvalidRequest with the position of the mistake."""
    words = [(match.start(), match[0]) for match in _WORD.finditer(text)]
    if len(words) != 7:
        raise InvalidRequest(FIELD, _not_seven(text, len(words)), position=words[7][0] if len(words) > 7 else len(text))
    (year_at, year), (month_at, month), (day_at, day), (weekday_at, weekday), *clock = words
    years = ALL_YEARS if year == "*" else _YEAR.mask(year, year_at) >> FIRST_YEAR
    months = _MONTH.mask(month, month_at)
    dates, weekdays = _DAY.spans(day, day_at), [_weekday(item, at) for at, item in _items(weekday, weekday_at)]
    hours, minutes, seconds = (
        field.mask(word, at) for field, (at, word) in zip((_HOUR, _MINUTE, _SECOND), clock, strict=True)
    )
    of_length = {length: _of_dates(dates, length) for length in _LENGTHS}
    table = month_table(lambda length, first: of_length[length] & _of_weekdays(weekdays, length, first))
    return Parsed(
        OfMonths(table, months, years),
        Clock(hours, minutes, seconds),
        dates,
        weekdays,
        steps_over_all_hours(clock[0][1], hours),
    )


def resolved(day: int, length: int) -> int:
    """Returns a day of a month of `length` days. A day below 0 counts from the end. It may lie outside the month."""
    return day if day >= 0 else length + 1 + day


def _items(text: str, position: int) -> Iterator[tuple[int, str]]:
    for item in text.split(","):
        yield position, item
        position += len(item) + 1


def _step(name: str, digits: str | None, position: int) -> int:
    """Returns the step; 1 if none is written. Raises InvalidRequest for a step of 0."""
    width = 1 if digits is None else int(digits)
    if width < 1:
        raise fields.must_be(FIELD, "1 or more", digits, part=f"the step of {name}", position=position)
    return width


def _whole(match: re.Match[str], field: Field, at: int) -> Span:
    """Returns the values of `*` and `*/n`: those that n divides."""
    width = _step(field.name, match[1], at + 2)
    first = -(-field.low // width) * width
    if first > field.high:
        raise fields.must_be(
            FIELD, f"at most {field.high}", match[1], part=f"the step of {field.name}", position=at + 2
        )
    return Span(first, field.high, width)


def _weekday(item: str, at: int) -> Span | Nth:
    nth = _NTH.fullmatch(item)
    if nth is None:
        return _WEEKDAY.span(item, at)
    which = int(nth[1])
    if not 1 <= abs(which) <= 5:
        wanted = "1 to 5, or -5 to -1"
        raise fields.must_be(FIELD, wanted, nth[1], part=f"the number before {nth[2]}", position=at)
    return Nth(which, _WEEKDAY.value(nth[2], at + nth.start(2)))


def _of_dates(spans: list[Span], length: int) -> int:
    """Returns the days of a month of that length: bit n is day n."""
    mask = 0
    for first, last, step in spans:
        for day in range(resolved(first, length), resolved(last, length) + 1, step):
            mask |= 1 << day if day >= 1 else 0
    return mask & (2 << length) - 2


def _of_weekdays(items: list[Span | Nth], length: int, first: int) -> int:
    """Returns the days of a month of that length whose first day is the weekday `first` (0 is Monday)."""
    mask = 0
    for item in items:
        if isinstance(item, Nth):
            begin = 7 * item.which - 6 if item.which > 0 else length + 1 + 7 * item.which
            day = begin + (item.weekday - first - begin) % 7
            mask |= 1 << day if 1 <= day <= length else 0
        else:
            days = sum(1 << (number - 1) % 7 for number in range(item.first, item.last + 1, item.step))
            mask |= ((days | days << 7) >> first & 0x7F) * _FIVE_WEEKS << 1
    return mask & (2 << length) - 2


def _not_seven(text: str, count: int) -> str:
    """Suggests seven fields for six.

    SAP's documents once showed six: one form lacked the Day of Week, another (since corrected) the Second. Both are
    possible.
    """
    reason = f"must be {EXPECTED}, not {count} field{'' if count == 1 else 's'}"
    if count != 6:
        return reason
    six = " ".join(text.split())
    meant = [f'"{whole}"' for whole in (f"{six} 0", f"* {six}") if len(whole) <= 100 and _is_read(whole)]
    return f"{reason}: did you mean {' or '.join(meant)}?" if meant else reason


def _is_read(text: str) -> bool:
    try:
        parse(text)
    except InvalidRequest:
        return False
    return True


def _summary(text: str, zone: str) -> str:
    parsed = parse(text)
    days, clock = parsed.days, parsed.clock
    by_date, weekdays = _dates_words(parsed.dates), _weekday_names(parsed.weekdays)
    if by_date and weekdays:
        a = "" if weekdays.startswith("the ") else "a "
        on = f"{by_date} if it is {a}{_weekday_names(parsed.weekdays, 'or')}"
    else:
        on = by_date or english.placed("on", weekdays)
    return english.in_zone(zone, english.clock_times(clock), on, english.months(days.months), english.years(days.years))


def _dates_words(spans: list[Span]) -> str:
    """Returns "on day 15 of the month", "on day 3 to the second-to-last day of the month"; "" for every day."""
    if all(span.first > 0 and span.last > 0 for span in spans):
        return english.dates(_of_dates(spans, 31))
    if all(_of_dates(spans, length) == (2 << length) - 2 for length in _LENGTHS):
        return ""
    return f"on {english.listed([_date_words(span) for span in spans])} of the month"


def _date_words(span: Span) -> str:
    first, last = (f"day {day}" if day > 0 else f"the {english.from_end(-day)} day" for day in span[:2])
    if span.first == span.last:
        return first
    return f"{first} to {last}" if span.step == 1 else f"every {english.ordinal(span.step)} day from {first} to {last}"


def _weekday_names(items: list[Span | Nth], last: str = "and") -> str:
    """Returns "Monday to Friday", "the last Sunday of the month"; "" for every day. last: before the last one."""
    plain = _of_weekdays([item for item in items if isinstance(item, Span)], 7, 6) >> 1
    names = english.weekday_names(plain, last) if plain else ""
    if plain and not names:
        return ""
    nth = [_nth_words(item) for item in items if isinstance(item, Nth)]
    listed = english.listed([names, *nth] if names else nth, last)
    return f"{listed} of the month" if nth else listed


def _nth_words(item: Nth) -> str:
    last = "" if item.which > 0 else " last"
    place = "last" if item.which == -1 else f"{english.ordinal(abs(item.which))}{last}"
    return f"the {place} {english.WEEKDAYS[item.weekday % 7]}"
