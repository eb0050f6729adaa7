"""Reads dates in the caller's own format: {"date": "2027-10-20 04:30 +0000", "format": "YYYY-MM-DD HH:mm Z"}.

The tokens are those of SAP's table, with their meaning in moment.js. Other letters are refused, except T; text in
[brackets] is literal. Missing parts are filled from the left with today's year, month and day, and from the right with
the first month, the first day and midnight.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields
from sweephand.schedules.grids.calendar_masks import MONTHS_SHORT
from sweephand.schedules.text.english import MONTHS
from sweephand.schedules.text.instants import Written
from sweephand.schedules.text.iso_dates import (
    FIRST_YEAR,
    LAST_YEAR,
    day_of,
    day_on,
    number_of,
    offset_s,
    wall_of,
    within,
)

_FORMAT = re.compile(
    r"\[[^\]]*\]|YYYY|YY|Q|MMMM|MMM|MM|M|Do|DDDD|DDD|DD|D|X|x|gggg|gg|ww|w|e|GGGG|GG|WW|W|E|HH|H|hh|h|a|A|mm|m|ss|s"
    r"|SSS|SS|S|ZZ|Z|T|[ \t]+|[^A-Za-z]",
    re.ASCII,
)
_MONTH_NUMBERS = {name: number for number, name in enumerate(MONTHS_SHORT, 1)}
_MONTH_NUMBERS |= {name.lower(): number for number, name in enumerate(MONTHS, 1)}


class _Kind(NamedTuple):
    """A kind of token.

    name: that of its value. shape: its pattern. value: reads it, or refuses it with its position.
    """

    name: str
    shape: re.Pattern[str]
    value: Callable[[re.Match[str], str], int]


def _shape(text: str) -> re.Pattern[str]:
    return re.compile(text, re.ASCII | re.IGNORECASE)


def _number(name: str, digits: str, least: int, most: int, suffix: str = "") -> _Kind:
    def value(match: re.Match[str], field: str) -> int:
        return within(name, match[1], least, most, field, match.start())

    return _Kind(name, _shape(f"([0-9]{{{digits}}}){suffix}"), value)


def _short_year(name: str) -> _Kind:
    """Returns the kind of a two-digit year: 69 to 99 belong to the last century."""

    def value(match: re.Match[str], field: str) -> int:
        year = int(match[0]) + (1900 if int(match[0]) > 68 else 2000)
        return within(name, str(year), *_YEARS, field, match.start())

    return _Kind(name, _shape("[0-9]{2}"), value)


def _offset_value(match: re.Match[str], field: str) -> int:
    return offset_s(match[1], match[2], match[3], field, match.start()) if match[1] else 0


def _nanoseconds(match: re.Match[str], _: str) -> int:
    return int(match[1]) * 10**9 + int((match[2] or ".")[1:].ljust(9, "0"))


_YEARS = (FIRST_YEAR, LAST_YEAR)
_NAMES = "|".join(sorted(_MONTH_NUMBERS, key=len, reverse=True))
_KINDS: Mapping[str, _Kind] = {
    "YYYY": _number("year", "4", *_YEARS),
    "YY": _short_year("year"),
    "Q": _number("quarter", "1", 1, 4),
    "M": _number("month", "1,2", 1, 12),
    "MMM": _Kind("month", _shape(_NAMES), lambda match, _: _MONTH_NUMBERS[match[0].lower()]),
    "D": _number("day", "1,2", 1, 31),
    "Do": _number("day", "1,2", 1, 31, "(?:st|nd|rd|th)"),
    "DDD": _number("day of the year", "1,3", 1, 366),
    "X": _Kind("seconds", _shape(r"([0-9]{1,12})(\.[0-9]{1,9})?"), _nanoseconds),
    "x": _Kind("milliseconds", _shape("[0-9]{1,15}"), lambda match, _: int(match[0])),
    "gggg": _number("week year", "4", *_YEARS),
    "gg": _short_year("week year"),
    "w": _number("week", "1,2", 1, 53),
    "e": _number("weekday", "1", 0, 6),
    "GGGG": _number("ISO week year", "4", *_YEARS),
    "GG": _short_year("ISO week year"),
    "W": _number("ISO week", "1,2", 1, 53),
    "E": _number("ISO weekday", "1", 1, 7),
    "H": _number("hour", "1,2", 0, 24),
    "h": _number("hour", "1,2", 1, 12),
    "a": _Kind("half of the day", _shape(r"[ap]\.?m\.?"), lambda match, _: 12 if match[0][0] in "pP" else 0),
    "m": _number("minute", "1,2", 0, 59),
    "s": _number("second", "1,2", 0, 59),
    "S": _Kind("fraction", _shape("[0-9]{1,9}"), lambda match, _: 1 if int(match[0]) else 0),
    "Z": _Kind("offset", _shape("Z|([+-])([0-9]{2})(?::?([0-9]{2}))?"), _offset_value),
}
_SAME = {"MM": "M", "MMMM": "MMM", "DD": "D", "DDDD": "DDD", "ww": "w", "WW": "W", "HH": "H", "hh": "h", "A": "a"}
_SAME |= {"mm": "m", "ss": "s", "SS": "S", "SSS": "S", "ZZ": "Z"}
_BLANKS = re.compile(r"[ \t]+", re.ASCII)

Parts = dict[str, int]
"""Values of the tokens by the name of their kind: `seconds` in nanoseconds, a `fraction` as 1 if there is any."""


def read(text: str, format_: str, field: str, now_wall: int) -> Written:
    """Returns the date in the text, read by the format. now_wall: the current wall time.

    Raises InvalidRequest for `field`.date or `field`.format, with the position in that member.
    """
    whole = text.strip()
    parts: Parts = {}
    position = len(text) - len(text.lstrip())
    end = position + len(whole)
    for token in _tokens(format_.strip(), f"{field}.format"):
        kind = _KINDS.get(_SAME.get(token, token))
        if kind is None:
            position = _literal(text, position, token, f"{field}.date")
            continue
        match = kind.shape.match(text, position, end)
        if match is None:
            raise fields.must_continue(f"{field}.date", f"the {kind.name} ({token})", text, position)
        if kind.name in parts:
            raise InvalidRequest(f"{field}.format", f"{token}: the {kind.name} is given twice")
        parts[kind.name] = kind.value(match, f"{field}.date")
        position = match.end()
    if position != end:
        raise fields.must_end(f"{field}.date", text, position, "the format ends there")
    if not parts:
        raise fields.must_be(f"{field}.format", "tokens such as YYYY-MM-DD", format_, position=0)
    return _written(parts, f"{field}.date", now_wall)


def _tokens(format_: str, field: str) -> list[str]:
    tokens, position = [], 0
    while position < len(format_):
        match = _FORMAT.match(format_, position)
        if match is None:
            letter = format_[position]
            reason = f"{letter} does not begin a known token; write literal text in [brackets]"
            raise InvalidRequest(field, reason, position=position)
        tokens.append(match[0])
        position = match.end()
    return tokens


def _literal(text: str, position: int, token: str, field: str) -> int:
    """Skips literal characters. Any number of blanks matches any number of blanks."""
    if token.isspace():
        blanks = _BLANKS.match(text, position)
        if blanks is None:
            raise fields.must_continue(field, "a space", text, position)
        return blanks.end()
    wanted = token[1:-1] if token[0] == "[" and len(token) > 1 else token
    if not text.startswith(wanted, position):
        raise fields.must_continue(field, f'"{wanted}"', text, position)
    return position + len(wanted)


def _written(parts: Parts, field: str, now_wall: int) -> Written:
    for name, in_a_second in (("seconds", 10**9), ("milliseconds", 10**3)):
        if name in parts:
            second = -(-parts[name] // in_a_second)
            return Written(second, second, parts[name] % in_a_second > 0)
    day = _day(parts, field, day_on(now_wall // 86_400))
    hour = parts.get("hour", 0)
    if "half of the day" in parts and hour <= 12:
        hour = hour % 12 + parts["half of the day"]
    if hour == 24 and any(parts.get(name) for name in ("minute", "second", "fraction")):
        raise InvalidRequest(field, "24:00:00 is the last time of a day")
    wall = wall_of(day, hour, parts.get("minute", 0), parts.get("second", 0)) + parts.get("fraction", 0)
    return Written(wall - parts["offset"] if "offset" in parts else None, wall, parts.get("fraction", 0) > 0)


def _day(parts: Parts, field: str, today: date) -> date:
    month = parts.get("month")
    if month is None and "quarter" in parts:
        month = parts["quarter"] * 3 - 2
    if month is None and "day" not in parts:
        by_week = _by_iso_week(parts, field, today) or _by_week(parts, today)
        if by_week:
            return by_week
    year = parts.get("year", today.year)
    if "day of the year" in parts:
        day = day_on(number_of(date(year, 1, 1)) + parts["day of the year"] - 1)
        if day.year != year:
            raise InvalidRequest(field, f"{year} has no day {parts['day of the year']}")
        return day
    if "year" in parts:
        return day_of(year, month or 1, parts.get("day", 1), field, 0)
    if month is not None:
        return day_of(year, month, parts.get("day", 1), field, 0)
    return day_of(year, today.month, parts.get("day", today.day), field, 0)


def _by_iso_week(parts: Parts, field: str, today: date) -> date | None:
    """Returns the day by ISO week: week 1 has the year's first Thursday; weeks begin on Monday."""
    if not parts.keys() & {"ISO week year", "ISO week", "ISO weekday"}:
        return None
    year = parts.get("ISO week year", parts.get("year", today.isocalendar().year))
    week = parts.get("ISO week", 1)
    try:
        return date.fromisocalendar(year, week, parts.get("ISO weekday", 1))
    except ValueError:
        raise InvalidRequest(field, f"{year} has no week {week}") from None


def _by_week(parts: Parts, today: date) -> date | None:
    """Returns the day by week: week 1 has the first of January; weeks begin on Sunday, which is weekday 0."""
    if not parts.keys() & {"week year", "week", "weekday"}:
        return None
    sunday = _sunday(today)
    current = day_on(sunday + 6).year  # the year of the week's Saturday is that of the week
    year = parts.get("week year", parts.get("year", current))
    week = parts.get("week", (sunday - _sunday(date(current, 1, 1))) // 7 + 1)
    return day_on(_sunday(date(year, 1, 1)) + (week - 1) * 7 + parts.get("weekday", 0))


def _sunday(day: date) -> int:
    """Returns the first day of its week, counted from 1970-01-01."""
    return number_of(day) - day.isoweekday() % 7
