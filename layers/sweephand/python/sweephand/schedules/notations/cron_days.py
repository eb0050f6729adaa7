"""Days of a `cron` beyond plain fields: `L`, `LW`, `5L` and `2#2`, as cronsim reads them, and monthOverflow.

With monthOverflow, a date that a month lacks falls on the month's last day, or on the first of the next month. Plain
cron leaves such a date out. Only dates that the text names move; weekdays never do. Sources: decisions 0069, 0035.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.base.members.fields import must_be, shown
from sweephand.schedules.grids.calendar_masks import ALL_DATES, ALL_WEEKDAYS
from sweephand.schedules.grids.days import (
    ALL_YEARS,
    DayFields,
    Days,
    OfMonths,
    OfWeeks,
    OnDays,
    OrNextDay,
    Unmoved,
    month_table,
)
from sweephand.schedules.grids.rrule_days import Both
from sweephand.schedules.notations.fields import Field
from sweephand.schedules.text import english
from sweephand.schedules.zones.localtime import MonthOverflow

_SHORT_OF = {29: 1 << 2, 30: 1 << 2, 31: 1 << 2 | 1 << 4 | 1 << 6 | 1 << 9 | 1 << 11}
"""The months that lack each date, at least in some years; bit n is month n."""


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
        dates = english.dates(self.mask) if self.mask else ""
        last = ["the last day"] if self.last else []
        last += ["the last weekday (Monday to Friday)"] if self.last_weekday else []
        if not last or self.mask == ALL_DATES:
            return dates
        parts = [dates.removeprefix("on ").replace(" of the month", "")] if dates else []
        return f"on {english.listed([*parts, *last])} of the month"


class Weekdays(NamedTuple):
    """The weekday. mask: bit 0 is Sunday. nth: (weekday, which): 1 to 5, or -1 for the last."""

    mask: int
    nth: tuple[tuple[int, int], ...]

    def pick(self, length: int, first: int) -> int:
        """Returns the same as `Dates.pick`, by weekday."""
        days = 0
        for day in range(1, length + 1):
            weekday = (first + day) % 7
            which = (day + 6) // 7
            wanted = self.mask >> weekday & 1 or (weekday, which) in self.nth
            days |= (wanted or (day > length - 7 and (weekday, -1) in self.nth)) << day
        return days

    def words(self) -> str:
        parts = [english.weekdays(self.mask)] if self.mask not in (0, ALL_WEEKDAYS) else []
        for weekday, which in self.nth:
            place = "last" if which < 0 else english.ORDINALS[which]
            parts.append(f"on the {place} {english.WEEKDAYS[weekday]} of the month")
        return " and ".join(parts)


def with_letters(
    fields: tuple[Field, Field], day: tuple[int, str], weekday: tuple[int, str], months: int
) -> tuple[OfMonths, str]:
    """Reads the two day fields. Returns their days, and the fields in words; "" for every day.

    fields: day of the month and weekday. day, weekday: position and string of each. Raises InvalidRequest.
    """
    dates, weekdays = _dates(fields[0], *day), _weekdays(fields[1], *weekday)
    both = day[1][0] == "*" or weekday[1][0] == "*"
    table = month_table(partial(_pick, dates, weekdays, both))
    words = [each for each in (dates.words(), weekdays.words()) if each]
    return OfMonths(table, months), (" if it is also " if both else " or ").join(words)


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
    True: "is not supported in five fields, only in eventBridge",
    False: 'is not supported here, or in eventBridge; count from the end by "rrule": "FREQ=MONTHLY;BYMONTHDAY=-3"',
}


def _weekdays(field: Field, position: int, text: str) -> Weekdays:
    mask, nth = 0, []
    for item in text.split(","):
        name, hash_, which = item.partition("#")
        if hash_:
            if which not in ("1", "2", "3", "4", "5"):
                position += len(name) + 1
                raise must_be(field.member, "1 to 5", which, part="the number after #", position=position)
            nth.append((field.value(name, position) % 7, int(which)))
        elif item[-1:] in ("L", "l") and len(item) > 1:
            nth.append((field.value(item[:-1], position) % 7, -1))
        elif item in ("L", "l"):
            reason = f"{field.name}: L needs its weekday, as in 5L for the last Friday; 6 is Saturday"
            raise InvalidRequest(field.member, reason, position=position)
        else:
            mask |= field.item(item, position)
        position += len(item) + 1
    return Weekdays((mask | mask >> 7) & ALL_WEEKDAYS, tuple(dict.fromkeys(nth)))


def check_named(text: str) -> None:
    """Raises InvalidRequest for days that are counted, not named: */2 does not say which day a month lacks."""
    words = text.split()
    if len(words) == 5 and words[2][:2] == "*/":
        raise InvalidRequest("monthOverflow", f"acts on days that cron names, such as 31, not on {words[2][:20]}")


def overflowing(plain: OnDays, named: OfMonths, fields: DayFields, overflow: MonthOverflow) -> OnDays:
    """Returns the wall times of a cron whose dates move to the end of shorter months, or after it."""

    def pick(length: int, first: int) -> int:
        lacks = overflow is MonthOverflow.CLAMP and fields.dates >> length + 1
        return (fields._replace(dates=fields.dates | 1 << length) if lacks else fields).pick(length, first)

    ever = overflow is MonthOverflow.CLAMP or named.ever()
    days: Days = OfMonths(month_table(pick), named.months, ALL_YEARS if ever else 0)
    if overflow is MonthOverflow.NEXT and (short := _short_months(fields.dates) & named.months):
        ends = month_table(lambda length, _: 1 << length if fields.dates >> length + 1 else 0)
        days = OrNextDay(days, OfMonths(ends, short))
        if not fields.either and fields.weekdays != ALL_WEEKDAYS:
            days = Both(days, OfWeeks(fields.monday_first))
    return OnDays(days, plain.clock, Unmoved(plain, fields.dates))


def _short_months(dates: int) -> int:
    """Returns the months that lack one of the dates. A search in other months would find no day up to the horizon."""
    lacking = 0
    for day, months in _SHORT_OF.items():
        lacking |= months if dates >> day & 1 and dates != ALL_DATES else 0
    return lacking
