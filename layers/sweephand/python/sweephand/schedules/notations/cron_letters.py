"""`cron` with letters: `L`, `LW`, `5L` and `2#2`, as cronsim reads them. Source: decision 0069."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from sweephand.errors import InvalidRequest
from sweephand.schedules.grids.days import OfMonths, month_table
from sweephand.schedules.notations.fields import Field, shown
from sweephand.schedules.text import english

_ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
_ALL_WEEKDAYS = 0x7F
_ALL_DATES = (2 << 31) - 2


class Dates(NamedTuple):
    """The day of the month. mask: bit n is day n. last, last_weekday: L and LW."""

    mask: int
    last: bool
    last_weekday: bool

    def pick(self, length: int, first: int) -> int:
        """Returns the days of a month. first: weekday of its first day, 0 is Monday."""
        final = (first + length - 1) % 7
        working = length - max(0, final - 4)
        return self.mask | self.last << length | self.last_weekday << working

    def words(self) -> str:
        parts = [english.dates(self.mask).removeprefix("on ").removesuffix(" of the month")] if self.mask else []
        parts += ["the last day"] if self.last else []
        parts += ["the last weekday (Monday to Friday)"] if self.last_weekday else []
        return f"on {english.listed(parts)} of the month" if parts and self.mask != _ALL_DATES else ""


class Weekdays(NamedTuple):
    """The weekday. mask: bit 0 is Sunday. nth: (weekday, which): 1 to 5, or -1 for the last."""

    mask: int
    nth: tuple[tuple[int, int], ...]

    def pick(self, length: int, first: int) -> int:
        """Returns the same as `Dates.pick`, by weekday."""
        found = 0
        for day in range(1, length + 1):
            weekday = (first + day) % 7
            which = (day + 6) // 7
            wanted = self.mask >> weekday & 1 or (weekday, which) in self.nth
            found |= (wanted or (day > length - 7 and (weekday, -1) in self.nth)) << day
        return found

    def words(self) -> str:
        parts = [english.weekdays(self.mask)] if self.mask not in (0, _ALL_WEEKDAYS) else []
        for weekday, which in self.nth:
            parts.append(f"on the {'last' if which < 0 else _ORDINALS[which]} {english.WEEKDAYS[weekday]} of the month")
        return " and ".join(parts)


class Days(NamedTuple):
    """days: those of the two fields together. on: in words, "" for every day."""

    days: OfMonths
    on: str


def read(fields: tuple[Field, Field], day: tuple[int, str], weekday: tuple[int, str], months: int) -> Days:
    """Reads the two day fields. fields: day of the month and weekday. day, weekday: position and string of each.

    Raises InvalidRequest.
    """
    dates, weekdays = _dates(fields[0], *day), _weekdays(fields[1], *weekday)
    both = day[1][0] == "*" or weekday[1][0] == "*"
    table = month_table(partial(_pick, dates, weekdays, both))
    words = [each for each in (dates.words(), weekdays.words()) if each]
    return Days(OfMonths(table, months), (" if it is also " if both else " or ").join(words))


def _pick(dates: Dates, weekdays: Weekdays, both: bool, length: int, first: int) -> int:
    by_date, by_weekday = dates.pick(length, first), weekdays.pick(length, first)
    return by_date & by_weekday if both else by_date | by_weekday


def _dates(field: Field, position: int, text: str) -> Dates:
    mask, last, last_weekday = 0, False, False
    for item in text.split(","):
        letters = item.upper()
        if letters == "L":
            last = True
        elif letters == "LW":
            last_weekday = True
        elif letters.endswith("W") or letters.startswith("L"):
            raise InvalidRequest(
                field.member, f"{field.name}: {shown(item)} {_INSTEAD[letters[-1] == 'W']}", position=position
            )
        else:
            mask |= field.item(item, position)
        position += len(item) + 1
    return Dates(mask, last, last_weekday)


_INSTEAD = {
    True: "is not read in five fields, only in eventBridge",
    False: 'is not read here, nor in eventBridge; count from the end by "rrule": "FREQ=MONTHLY;BYMONTHDAY=-3"',
}


def _weekdays(field: Field, position: int, text: str) -> Weekdays:
    mask, nth = 0, []
    for item in text.split(","):
        name, hash_, which = item.partition("#")
        if hash_:
            if which not in ("1", "2", "3", "4", "5"):
                reason = f"{field.name}: {shown(which)} after # is outside 1..5"
                raise InvalidRequest(field.member, reason, position=position + len(name) + 1)
            nth.append((field.value(name, position) % 7, int(which)))
        elif item[-1:] in ("L", "l") and len(item) > 1:
            nth.append((field.value(item[:-1], position) % 7, -1))
        elif item in ("L", "l"):
            reason = f"{field.name}: L needs its weekday, as in 5L for the last Friday; 6 is Saturday"
            raise InvalidRequest(field.member, reason, position=position)
        else:
            mask |= field.item(item, position)
        position += len(item) + 1
    return Weekdays((mask | mask >> 7) & _ALL_WEEKDAYS, tuple(dict.fromkeys(nth)))
