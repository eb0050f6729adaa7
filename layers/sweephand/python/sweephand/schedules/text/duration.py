"""Durations as callers write them: "5m", "10 seconds", "PT10S", "P1Y6M", "1.02:03:04". Linear time.

Fractions of a second, in forms that allow them, round up. A duration of less than a second is refused.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields

EXPECTED = 'a duration such as "5m", "10 seconds" or "PT10S"'
INTERVAL = 'a number of seconds, minutes, hours, days, weeks, months or years, such as "2 hours"'
_ONE_SECOND: int = 10**fields.LONGEST_WORDS  # so that every decimal is whole
_WORDS = re.compile(r"([0-9]+) +([a-z]+)", re.ASCII | re.IGNORECASE)
_PART = re.compile(r"([0-9]+)(?:\.([0-9]+))? +([a-z]+)", re.ASCII | re.IGNORECASE)
_SUM = re.compile(rf"{_PART.pattern}(?:(?:, *| +and +){_PART.pattern})*", re.ASCII | re.IGNORECASE)
_SHORT = re.compile(r"([0-9]+)([smhdw])", re.ASCII)
_UNIT_S = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_SHORT_S = {unit[0]: seconds for unit, seconds in _UNIT_S.items()}
_INTERVAL_S = {**_UNIT_S, "month": 2_592_000, "year": 31_536_000}
_DATE_PART = {"Y": ("months", 12), "M": ("months", 1), "W": ("seconds", 604_800), "D": ("seconds", 86_400)}
_TIME_PART = {"H": ("seconds", 3600), "M": ("seconds", 60), "S": ("seconds", 1)}
_TIME_SPAN = re.compile(r"(?:([0-9]{1,9})\.)?([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,7})?", re.ASCII)
_TIME_SPAN_BEGUN = re.compile(r"(?:[0-9]{1,9}\.)?[0-9]{0,2}(?:(?<=[0-9]{2}):[0-9]{0,2}){0,2}", re.ASCII)
_FRACTION = re.compile(r"[.,]([0-9]+)", re.ASCII)
_NUMBER = re.compile(r"[0-9]+", re.ASCII)


class Duration(NamedTuple):
    """Elapsed seconds, calendar months, or both; the caller decides whether both are allowed."""

    seconds: int
    months: int


def read(value: object, field: str) -> Duration:
    """Reads ISO 8601, a number and a unit up to weeks (`5m` is five minutes), or .NET's TimeSpan as it is printed.

    In ISO 8601, a day has 24 hours; months and years are calendar units.
    Raises InvalidRequest with the position of the first character that does not fit.
    """
    text = fields.notation(value, field, EXPECTED)
    if text[0] == "P":
        return _iso(text, field)
    return _time_span(text, field) if ":" in text else _words(text, field)


def _time_span(text: str, field: str) -> Duration:
    """Reads [days.]hh:mm:ss[.fraction], .NET's constant form. Refuses "5:00", which .NET reads as five hours."""
    match = _TIME_SPAN.fullmatch(text)
    if match is None:
        begun = _TIME_SPAN_BEGUN.match(text)
        wanted = "[days.]hh:mm:ss, such as 00:05:00 or 1.02:03:04"
        raise fields.must_be(field, wanted, text, position=begun.end() if begun else 0)
    for group, name, highest in ((2, "hours", 23), (3, "minutes", 59), (4, "seconds", 59)):
        if int(match[group]) > highest:
            position = match.start(group)
            raise fields.must_be(field, f"0 to {highest}", match[group], part=name, position=position)
    days, hours, minutes, seconds = (int(match[group] or 0) for group in range(1, 5))
    whole = days * 86_400 + hours * 3600 + minutes * 60 + seconds
    return Duration(_up(whole, part=bool(match[5] and match[5].strip(".0"))), 0)


def _up(whole: int, *, part: bool) -> int:
    return whole + 1 if part and whole else whole


def read_interval(value: object, field: str) -> int:
    """Returns the seconds of SAP's repeatInterval: a number and a unit, where a month is 30 days and a year 365 days.

    `every` with the align `actual_start` then acts as SAP's service does: write the result as PT<seconds>S. Decimals
    and sums are accepted: "1.5 hours", "1 hour and 30 minutes". Raises InvalidRequest for less than a second, negative
    values, numbers in words and any other unit.
    """
    text = fields.notation(value, field, INTERVAL, longest=fields.LONGEST_WORDS)
    lead = len(text) - len(text.lstrip())
    match = _SUM.fullmatch(text.strip())
    if match is None:
        raise fields.must_be(field, INTERVAL, text, position=0)
    total = 0
    for part in _PART.finditer(text):
        unit_s = _INTERVAL_S.get(part[3].lower().removesuffix("s"))
        if unit_s is None:
            raise fields.must_be(field, INTERVAL, text, position=part.start(3))
        total += int(part[1] + (part[2] or "").ljust(fields.LONGEST_WORDS, "0")) * unit_s
    if total < _ONE_SECOND:
        raise fields.must_be(field, "1 second or more", text, position=lead)
    return -(-total // _ONE_SECOND)


def _words(text: str, field: str) -> Duration:
    if short := _SHORT.fullmatch(text):
        return Duration(int(short[1]) * _SHORT_S[short[2]], 0)
    match = _WORDS.fullmatch(text)
    if match is None:
        number = _NUMBER.match(text)
        raise fields.must_be(field, EXPECTED, text, position=number.end() if number else 0)
    unit = match[2].lower().removesuffix("s")
    if unit in ("month", "year"):
        iso = f"P{match[1]}{unit[0].upper()}" if len(match[1]) < 5 else f"P1{unit[0].upper()}"
        raise InvalidRequest(
            field, f"a {unit} has no fixed length; for calendar {unit}s write {iso}", position=match.start(2)
        )
    if unit not in _UNIT_S:
        wanted = "seconds, minutes, hours, days or weeks"
        raise fields.must_be(field, wanted, match[2], part="the unit", position=match.start(2))
    return Duration(int(match[1]) * _UNIT_S[unit], 0)


def _iso(text: str, field: str) -> Duration:
    """Reads ISO 8601. Only the last part may have a fraction, and only if its unit has a fixed length."""
    sums = {"seconds": 0, "months": 0}
    part = False
    position, units, left = 1, _DATE_PART, "YMWD"
    while position < len(text) or position == 1:
        if text[position : position + 1] == "T" and units is _DATE_PART:
            position, units, left = position + 1, _TIME_PART, "HMS"
        if not left:
            raise fields.must_end(field, text, position)
        number = _NUMBER.match(text, position)
        if number is None:
            raise fields.must_continue(field, f"a whole number and one of {', '.join(left)}", text, position)
        fraction = _FRACTION.match(text, number.end())
        end = number.end() if fraction is None else fraction.end()
        letter = text[end : end + 1]
        if not letter or letter not in left:
            raise fields.must_continue(field, f"one of {', '.join(left)}", text, end)
        kind, size = units[letter]
        sums[kind] += int(number[0]) * size
        left = left[left.index(letter) + 1 :]
        position = end + 1
        if fraction is None:
            continue
        if kind == "months":
            reason = "months and years have no fraction, because they have no fixed length"
            raise InvalidRequest(field, reason, position=number.end())
        if position < len(text):
            raise fields.must_end(field, text, position, "only the last part has a fraction")
        seconds, rest = divmod(int(fraction[1]) * size, 10 ** len(fraction[1]))
        sums["seconds"] += seconds
        part = rest > 0
    return Duration(_up(sums["seconds"], part=part), sums["months"])
