"""Durations as callers write them: "10 seconds", "PT10S", "P1Y6M". Linear time, whole numbers only."""

from __future__ import annotations

import re
from typing import NamedTuple

from sweephand.errors import InvalidRequest
from sweephand.schedules import members

EXPECTED = 'a duration such as "10 seconds" or "PT10S"'
INTERVAL = 'a number of seconds, minutes, hours, days, weeks, months or years, such as "2 hours"'
LONGEST_WORDS = 100
_WORDS = re.compile(r"([0-9]+) +([a-z]+)", re.ASCII | re.IGNORECASE)
_UNIT_S = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_DATE_PART = {"Y": ("months", 12), "M": ("months", 1), "W": ("seconds", 604_800), "D": ("seconds", 86_400)}
_TIME_PART = {"H": ("seconds", 3600), "M": ("seconds", 60), "S": ("seconds", 1)}
_NUMBER = re.compile(r"[0-9]+", re.ASCII)


class Duration(NamedTuple):
    """Elapsed seconds, calendar months, or both (which only the caller can judge)."""

    seconds: int
    months: int


def read(value: object, field: str) -> Duration:
    """ISO 8601 (a day has 24 hours; months and years are calendar units) or a number and a unit up to weeks.

    Raises InvalidRequest with the position at which the text leaves the grammar.
    """
    text = members.text(value, field, EXPECTED)
    return _iso(text, field) if text[0] == "P" else _words(text, field)


def read_interval(value: object, field: str) -> int:
    """Seconds of SAP's repeatInterval: a number and a unit, where a month is 30 days and a year 365 days.

    `every` with the align `actual_start` does what SAP's service does with it: write the result as PT<seconds>S.
    Raises InvalidRequest for zero, what is negative, numbers in words and any other unit.
    """
    text = members.text(value, field, INTERVAL, longest=LONGEST_WORDS)
    found = _WORDS.fullmatch(text.strip())
    if found is None:
        raise InvalidRequest(field, f"expected {INTERVAL}", position=0)
    unit_s = {**_UNIT_S, "month": 2_592_000, "year": 31_536_000}.get(found[2].lower().removesuffix("s"))
    if unit_s is None or int(found[1]) == 0:
        wrong = 2 if unit_s is None else 1
        reason = f"expected {INTERVAL}" if unit_s is None else "expected 1 or more"
        lead = len(text) - len(text.lstrip())
        raise InvalidRequest(field, reason, position=lead + found.start(wrong))
    return int(found[1]) * unit_s


def _words(text: str, field: str) -> Duration:
    found = _WORDS.fullmatch(text)
    if found is None:
        number = _NUMBER.match(text)
        raise InvalidRequest(field, f"expected {EXPECTED}", position=number.end() if number else 0)
    unit = found[2].lower().removesuffix("s")
    if unit in ("month", "year"):
        iso = f"P{found[1]}{unit[0].upper()}" if len(found[1]) < 5 else f"P1{unit[0].upper()}"
        raise InvalidRequest(
            field, f"a {unit} has no fixed length; for calendar {unit}s write {iso}", position=found.start(2)
        )
    if unit not in _UNIT_S:
        raise InvalidRequest(field, "expected seconds, minutes, hours, days or weeks", position=found.start(2))
    return Duration(int(found[1]) * _UNIT_S[unit], 0)


def _iso(text: str, field: str) -> Duration:
    sums = {"seconds": 0, "months": 0}
    position, units, left = 1, _DATE_PART, "YMWD"
    while position < len(text) or position == 1:
        if text[position : position + 1] == "T" and units is _DATE_PART:
            position, units, left = position + 1, _TIME_PART, "HMS"
        if not left:
            raise InvalidRequest(field, "expected the end of the text", position=position)
        number = _NUMBER.match(text, position)
        if number is None:
            raise InvalidRequest(field, f"expected a whole number and one of {', '.join(left)}", position=position)
        letter = text[number.end() : number.end() + 1]
        if not letter or letter not in left:
            raise InvalidRequest(field, f"expected one of {', '.join(left)}", position=number.end())
        kind, size = units[letter]
        sums[kind] += int(number[0]) * size
        left = left[left.index(letter) + 1 :]
        position = number.end() + 1
    return Duration(sums["seconds"], sums["months"])
