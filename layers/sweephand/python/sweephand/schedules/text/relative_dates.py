"""Reads an instant in words: "in 2 hours", "tomorrow at 4pm", "next week monday at 5am", "9pm tonight".

A cursor reads the text once from left to right. Seconds to hours are elapsed time. Days and longer units count by the
calendar, at the same time of day unless one is given. Decision 0025 defines the words.
"""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields
from sweephand.schedules.grids.calendar_masks import month_length
from sweephand.schedules.text import iso_dates
from sweephand.schedules.text.english import WEEKDAYS
from sweephand.schedules.text.instants import Written
from sweephand.schedules.zones.localtime import Overlap, Zone

EXPECTED = 'words such as "in 2 hours", "tomorrow at 4pm", "next week monday at 5am", "9pm tonight" or "now"'
A_TIME = "a time of day such as 4.40pm, 18:40 or 17.20:30"
_NAMED_S = {"noon": 43_200, "midnight": 0}
_CLOCK = re.compile(
    r"([0-9]{1,2})(?:[.:]([0-9]{2})(?:[.:]([0-9]{2}))?)?(?: ?([ap])\.?m\.?)?(?![0-9a-z.:])|(noon|midnight)(?![a-z])",
    re.ASCII | re.IGNORECASE,
)
_WORD = re.compile(r"[a-z]+", re.ASCII)
_NUMBER = re.compile(r"[0-9]+", re.ASCII)
_BLANKS = re.compile(r"[ \t]*", re.ASCII)
_ELAPSED_S = {"second": 1, "minute": 60, "hour": 3600}
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12}
_UNITS = (*_ELAPSED_S, *_DAYS, *_MONTHS)
_SHORT = {"sec": "second", "min": "minute", "hr": "hour"}
_ONE = {"a", "an"}
_LONGEST = {"second": 10**10, "minute": 10**8, "hour": 10**7, "day": 10**5, "week": 10**4, "month": 3_000, "year": 300}
"""More than the time that is left up to 2199, so that no sum grows without bound."""
_DAY_S = 86_400
_NOON_S = 43_200
_WEEKDAYS = {name.lower(): number for number, name in enumerate((*WEEKDAYS[1:], WEEKDAYS[0]))}
_WEEKDAYS |= {name[:3]: number for name, number in _WEEKDAYS.items()}


def read(text: str, field: str, now: int, where: Zone, overlap: Overlap | None = None) -> Written:
    """Returns the instant that the words name. text: checked, at most 100 characters. now: Unix seconds.

    Raises InvalidRequest with the position of the first word that is not understood.
    """
    words = _Cursor(text.lower(), field)
    if words.take("now"):
        words.end()
        return Written(now, where.wall(now))
    counted = words.take("in")
    if counted or words.counts():
        return _from_now(words, now, where, counted)
    return _on_a_day(words, _Now(now, where, overlap))


def _unit(word: str) -> str:
    """Returns the unit in the singular and in full."""
    unit = word.removesuffix("s")
    return _SHORT.get(unit, unit)


class _Now(NamedTuple):
    """Now, and the clock that it is read from."""

    second: int
    zone: Zone
    overlap: Overlap | None

    def is_over(self, wall: int) -> bool:
        """Returns whether a wall time is past. If it comes twice, the caller's rule chooses the copy."""
        copies = self.zone.instants(wall)
        if not copies:
            return wall < self.zone.wall(self.second)
        return copies[0 if self.overlap in (Overlap.FIRST, Overlap.BOTH) else -1] < self.second


class _Cursor:
    """A place in a string, after the blanks."""

    def __init__(self, text: str, field: str) -> None:
        self.text = text.rstrip()
        self.field = field
        self.position = 0
        self._over_blanks(0)

    def _over_blanks(self, position: int) -> None:
        match = _BLANKS.match(self.text, position)
        self.position = match.end() if match else position

    def word(self) -> str:
        """Returns the word that begins here; "" if none does."""
        match = _WORD.match(self.text, self.position)
        return match[0] if match else ""

    def take(self, *words: str) -> str:
        """Takes the word here if it is one of these, and returns it; "" if it is not."""
        word = self.word()
        if word not in words:
            return ""
        self._over_blanks(self.position + len(word))
        return word

    def counts(self) -> bool:
        """Returns whether a number and a unit begin here."""
        number = _NUMBER.match(self.text, self.position)
        end = number.end() if number else self.position + len(self._one())
        if end == self.position:
            return False
        blanks = _BLANKS.match(self.text, end)
        unit = _WORD.match(self.text, blanks.end() if blanks else end)
        return unit is not None and _unit(unit[0]) in _UNITS

    def _one(self) -> str:
        """Returns "a" or "an", which stand for 1; "" for anything else."""
        word = self.word()
        return word if word in _ONE else ""

    def amount(self) -> tuple[int, str]:
        """Returns a number and its unit in the singular."""
        number = _NUMBER.match(self.text, self.position)
        if number is None and not self._one():
            raise self.refusal("a number in digits")
        begun = self.position
        said = number[0] if number else "1"
        self._over_blanks(number.end() if number else begun + len(self._one()))
        unit = _unit(self.word())
        if unit not in _UNITS:
            raise self.refusal(f"one of {', '.join(f'{name}s' for name in _UNITS)}")
        self._over_blanks(self.position + len(self.word()))
        if len(said) > 11 or int(said) > _LONGEST[unit]:
            raise InvalidRequest(self.field, "lies after the year 2199", position=begun)
        return int(said), unit

    def time(self) -> int | None:
        """Returns a time of day in seconds; None if none begins here."""
        clock_time = time_at(self.text, self.position, self.field)
        if clock_time is None:
            return None
        self._over_blanks(clock_time.end)
        return clock_time.second

    def more(self) -> bool:
        return self.position < len(self.text)

    def end(self) -> None:
        if self.more():
            raise fields.must_end(self.field, self.text, self.position)

    def refusal(self, wanted: str) -> InvalidRequest:
        return fields.must_continue(self.field, wanted, self.text, self.position)


def _from_now(words: _Cursor, now: int, where: Zone, counted: str) -> Written:
    """Reads "in 2 hours", "20 minutes from now", "in 2 days at 4pm"; amounts may be joined by "and"."""
    elapsed = days = months = 0
    while True:
        number, unit = words.amount()
        elapsed += number * _ELAPSED_S.get(unit, 0)
        days += number * _DAYS.get(unit, 0)
        months += number * _MONTHS.get(unit, 0)
        if not (words.take("and") or words.counts()):
            break
    if not counted and not (words.take("from") and words.take("now")):
        raise words.refusal('"from now"')
    time = None
    if words.more():
        at = words.position
        words.take("at")
        time = words.time()
        if time is None:
            raise words.refusal(A_TIME)
        if elapsed:
            raise fields.must_end(words.field, words.text, at, "a time of day needs whole days before it")
    words.end()
    if not days and not months:
        return Written(now + elapsed, where.wall(now + elapsed))
    day, begun = divmod(where.wall(now), _DAY_S)
    day = _months_on(day, months) + days
    return Written(None, day * _DAY_S + (begun + elapsed if time is None else time), exact=time is not None)


def _months_on(day: int, months: int) -> int:
    """Returns the same day some months later, or the last day of a shorter month.

    Beyond 2199, returns the year 2200.
    """
    on = iso_dates.day_on(day)
    year, month = divmod(on.year * 12 + on.month - 1 + months, 12)
    year = min(year, iso_dates.LAST_YEAR + 1)
    return iso_dates.number_of(date(year, month + 1, min(on.day, month_length(year, month + 1))))


def _on_a_day(words: _Cursor, now: _Now) -> Written:
    """Reads a day and a time in either order; one of them may be missing."""
    today = now.zone.wall(now.second) // _DAY_S
    named: _Named | None = None
    time: int | None = None
    while words.more():
        at = words.position
        named_here = _day(words, today) if named is None else None
        if named_here is not None:
            named = named_here
            continue
        said = words.take("at")
        here = words.time() if time is None else None
        if here is None:
            words.position = words.position if said else at
            if not words.position:
                raise fields.must_be(words.field, EXPECTED, words.text, position=0)
            raise words.refusal(A_TIME if said or named else "a day such as tomorrow")
        time = here
    return Written(None, _wall(words, named, time, now), exact=time is not None)


class _Named(NamedTuple):
    """A named day.

    day: since 1970-01-01 by the calendar. weekly: whether it may be today if its time is still ahead.
    """

    day: int
    weekly: bool = False
    needs_time: str = ""


def _day(words: _Cursor, today: int) -> _Named | None:
    """Returns the day that begins here; None if none does."""
    word = words.take("today", "tonight", "tomorrow", "next", "this", "on", *_WEEKDAYS)
    if word in ("today", "tonight"):
        return _Named(today, needs_time=word)
    if word == "tomorrow":
        return _Named(today + 1)
    if word == "next":
        return _next(words, today)
    if not word:
        return None
    if word in ("on", "this"):
        word = words.take(*_WEEKDAYS)
        if not word:
            raise words.refusal("a weekday")
    weekday = _WEEKDAYS[word]
    if words.take("next"):
        if not words.take("week"):
            raise words.refusal('"week"')
        return _Named(_monday(today) + 7 + weekday)
    return _Named(today + (weekday - _weekday(today)) % 7, weekly=True)


def _next(words: _Cursor, today: int) -> _Named:
    word = words.take("week", "month", "year", *_WEEKDAYS)
    if word in ("month", "year"):
        return _Named(_months_on(today, _MONTHS[word]))
    if word == "week":
        words.take("on")
        weekday = words.take(*_WEEKDAYS)
        return _Named(_monday(today) + 7 + _WEEKDAYS[weekday]) if weekday else _Named(today + 7)
    if not word:
        raise words.refusal("week, month, year or a weekday")
    return _Named(today + ((_WEEKDAYS[word] - _weekday(today)) % 7 or 7))


def _wall(words: _Cursor, named: _Named | None, time: int | None, now: _Now) -> int:
    today, begun = divmod(now.zone.wall(now.second), _DAY_S)
    if named is None:
        assert time is not None  # a text without day and time was refused before
        return (today + now.is_over(today * _DAY_S + time)) * _DAY_S + time
    if named.needs_time == "tonight" and (time is None or time < _NOON_S):
        if time == 0:
            reason = 'midnight is the first instant of a day: write "tomorrow at 12am" for the end of today'
            raise InvalidRequest(words.field, reason, position=0)
        raise fields.must_be(words.field, 'with a time after noon, as in "9pm tonight"', words.text, position=0)
    if named.needs_time and time is None:
        raise fields.must_be(words.field, 'with a time, as in "today at 9pm"', words.text, position=0)
    day = named.day
    if named.weekly and day == today and (time is None or now.is_over(today * _DAY_S + time)):
        day += 7
    return day * _DAY_S + (begun if time is None else time)


def _weekday(day: int) -> int:
    """Returns 0 for Monday; 1970-01-01 was a Thursday."""
    return (day + 3) % 7


def _monday(day: int) -> int:
    return day - _weekday(day)


# Times of a day: 4pm, 4.40pm, 18.40, 17.20:30, noon


class TimeFound(NamedTuple):
    """A time of day. second: since midnight by the wall clock. end: where the time ends in its string."""

    second: int
    end: int


def time_at(text: str, position: int, field: str) -> TimeFound | None:
    """Returns the time that begins there, or None. A bare number is not a time. Raises InvalidRequest for 25:00."""
    match = _CLOCK.match(text, position)
    if match is None:
        return None
    if match[5]:
        return TimeFound(_NAMED_S[match[5].lower()], match.end())
    if not match[2] and not match[4]:
        return None
    hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    least, most = (1, 12) if match[4] else (0, 23)
    for name, number, low, high, group in (
        ("hour", hour, least, most, 1),
        ("minute", minute, 0, 59, 2),
        ("second", second, 0, 59, 3),
    ):
        if not low <= number <= high:
            position = match.start(group)
            raise fields.must_be(field, f"{low} to {high}", match[group], part=name, position=position)
    if match[4]:
        hour = hour % 12 + (12 if match[4] in "pP" else 0)
    return TimeFound(hour * 3600 + minute * 60 + second, match.end())
