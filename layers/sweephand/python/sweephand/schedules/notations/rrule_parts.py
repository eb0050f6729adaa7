"""The grammar of one recurrence rule: FREQ=MONTHLY;INTERVAL=2;BYDAY=MO,-1FR;COUNT=10. Source: RFC 5545, 3.3.10."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from sweephand.base.errors import InvalidRequest, never_fires
from sweephand.base.members.fields import must_be, must_continue
from sweephand.schedules.grids.rrule_days import DayRule

FIELD = "rrule"
SECONDLY, MINUTELY, HOURLY, DAILY, WEEKLY, MONTHLY, YEARLY = range(7)
FREQUENCIES = ("SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY")
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_MOST = 2**31 - 1
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
_DAY = re.compile(r"([+-]?[0-9]{1,10})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_LISTS = {
    "BYSECOND": (0, 60),
    "BYMINUTE": (0, 59),
    "BYHOUR": (0, 23),
    "BYMONTHDAY": (-31, 31),
    "BYYEARDAY": (-366, 366),
    "BYWEEKNO": (-53, 53),
    "BYMONTH": (1, 12),
    "BYSETPOS": (-366, 366),
}
_OTHER = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "WKST")
_NOT_WITH = {
    "BYWEEKNO": frozenset(range(YEARLY)),
    "BYYEARDAY": frozenset({DAILY, WEEKLY, MONTHLY}),
    "BYMONTHDAY": frozenset({WEEKLY}),
}
"""The table of RFC 5545: parts that a frequency excludes."""


class Recur(NamedTuple):
    """A rule as written. times: the value of COUNT. until: the text of UNTIL, at `until_at`. Both: None if not given.

    hours, minutes, seconds: masks; 0 if not given. days: without positions, which apply to the whole period.
    """

    frequency: int
    interval: int = 1
    times: int | None = None
    until: str | None = None
    until_at: int = 0
    hours: int = 0
    minutes: int = 0
    seconds: int = 0
    days: DayRule = DayRule()
    positions: tuple[int, ...] = ()


@lru_cache(maxsize=2048)
def parse(text: str, begin: int = 0) -> Recur:
    """Parses a rule in upper case. begin: its position in the caller's string, for error messages.

    Raises InvalidRequest. Cached by text: most schedules of a stack share a few.
    """
    parts = _parts(text, begin)
    if "FREQ" not in parts:
        raise must_be(FIELD, 'a rule with FREQ, such as "FREQ=WEEKLY;BYDAY=MO"', text, position=begin)
    value, at = parts["FREQ"]
    if value not in FREQUENCIES:
        raise must_be(FIELD, f"one of {', '.join(FREQUENCIES)}", value, part="FREQ", position=at)
    frequency = FREQUENCIES.index(value)
    lists = {name: _numbers(name, *parts[name]) if name in parts else () for name in _LISTS}
    weekdays, ordinals = _weekdays(*parts["BYDAY"]) if "BYDAY" in parts else (0, ())
    _check(frequency, parts, bool(ordinals))
    until, until_at = parts.get("UNTIL", (None, begin))
    return Recur(
        frequency,
        _whole("INTERVAL", parts) or 1,
        _whole("COUNT", parts),
        until,
        until_at,
        hours=_mask(lists["BYHOUR"]),
        minutes=_mask(lists["BYMINUTE"]),
        seconds=_mask(lists["BYSECOND"]),
        days=DayRule(
            _mask(lists["BYMONTH"]),
            lists["BYMONTHDAY"],
            lists["BYYEARDAY"],
            lists["BYWEEKNO"],
            weekdays,
            ordinals,
            _weekday("WKST", *parts["WKST"]) if "WKST" in parts else 0,
        ),
        positions=lists["BYSETPOS"],
    )


def _parts(text: str, begin: int) -> dict[str, tuple[str, int]]:
    """Returns the value and the position of each part, by name."""
    parts: dict[str, tuple[str, int]] = {}
    position = begin
    for part in text.removesuffix(";").split(";"):
        name, equals, value = part.partition("=")
        if name not in _LISTS and name not in _OTHER:
            known = ", ".join((*_OTHER, *_LISTS))
            raise must_be(FIELD, f"one of {known}", name, part="each part", position=position)
        if not equals or not value:
            raise must_continue(FIELD, f"= and a value after {name}", text, position - begin + len(name)).changed(
                position=position + len(name)
            )
        if name in parts:
            raise InvalidRequest(FIELD, f"{name} is given twice; leave one out", position=position)
        parts[name] = (value, position + len(name) + 1)
        position += len(part) + 1
    return parts


def _check(frequency: int, parts: dict[str, tuple[str, int]], ordinals: bool) -> None:
    """Raises InvalidRequest for parts that RFC 5545 does not allow together."""
    for name, frequencies in _NOT_WITH.items():
        if name in parts and frequency in frequencies:
            reason = f"{name} cannot be combined with FREQ={FREQUENCIES[frequency]}"
            raise InvalidRequest(FIELD, reason, position=parts[name][1])
    if ordinals and frequency not in (MONTHLY, YEARLY):
        reason = f"BYDAY: a number before the weekday cannot be combined with FREQ={FREQUENCIES[frequency]}"
        raise InvalidRequest(FIELD, reason, position=parts["BYDAY"][1])
    if ordinals and "BYWEEKNO" in parts:
        reason = "BYDAY: a number before the weekday cannot be combined with BYWEEKNO"
        raise InvalidRequest(FIELD, reason, position=parts["BYDAY"][1])
    if "BYSETPOS" in parts and not any(name.startswith("BY") and name != "BYSETPOS" for name in parts):
        raise InvalidRequest(FIELD, "BYSETPOS needs another BY... to pick from", position=parts["BYSETPOS"][1])
    if "COUNT" in parts and "UNTIL" in parts:
        raise InvalidRequest(
            FIELD, "COUNT and UNTIL cannot be combined", position=max(parts[name][1] for name in ("COUNT", "UNTIL"))
        )


def _whole(name: str, parts: dict[str, tuple[str, int]]) -> int | None:
    if name not in parts:
        return None
    value, position = parts[name]
    number = int(value) if value.isascii() and value.isdigit() and len(value) <= 10 else 0
    if not 1 <= number <= _MOST:
        raise must_be(FIELD, f"a number from 1 to {_MOST:,}", value, part=name, position=position)
    return number


def _numbers(name: str, text: str, position: int) -> tuple[int, ...]:
    """Returns a list of numbers within the bounds of the part, in ascending order, each once."""
    low, high = _LISTS[name]
    bounds = f"{low} to {high}" if low >= 0 else f"1 to {high}, or {low} to -1"
    numbers = set()
    for item in text.split(","):
        is_number = _NUMBER.fullmatch(item) and not (low >= 0 and item[0] in "+-")
        number = int(item) if is_number else low - 1
        if not low <= number <= high or (number == 0 and low < 0):
            raise must_be(FIELD, bounds, item, part=name, position=position)
        if number == 60 and name == "BYSECOND":
            raise InvalidRequest(FIELD, "BYSECOND: 60 is a leap second, which no clock here reads", position=position)
        numbers.add(number)
        position += len(item) + 1
    return tuple(sorted(numbers))


def _weekdays(text: str, position: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Returns (mask of the weekdays without a number, those with one)."""
    mask, ordinals = 0, set()
    for item in text.split(","):
        match = _DAY.fullmatch(item)
        if match is None:
            wanted = f"one of {', '.join(WEEKDAYS)}, or as in 2MO or -1FR"
            raise must_be(FIELD, wanted, item, part="BYDAY", position=position)
        weekday = WEEKDAYS.index(match[2])
        if match[1]:
            which = int(match[1])
            if not 1 <= abs(which) <= 53:
                wanted = "1 to 53, or -53 to -1"
                raise must_be(FIELD, wanted, match[1], part=f"the number before {match[2]}", position=position)
            ordinals.add((which, weekday))
        else:
            mask |= 1 << weekday
        position += len(item) + 1
    return mask, tuple(sorted(ordinals))


def _weekday(name: str, text: str, position: int) -> int:
    if text not in WEEKDAYS:
        raise must_be(FIELD, f"one of {', '.join(WEEKDAYS)}", text, part=name, position=position)
    return WEEKDAYS.index(text)


def _mask(numbers: tuple[int, ...]) -> int:
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


def never(reason: str) -> InvalidRequest:
    return never_fires(FIELD, reason)
