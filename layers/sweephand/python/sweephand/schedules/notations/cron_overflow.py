"""`cron` with a monthOverflow: a date that a month lacks falls on its last day, or on the first of the next month.

Plain cron leaves such a date out. Only dates that the text names move; weekdays never do. Source: decision 0035.
"""

from __future__ import annotations

from functools import partial

from sweephand.errors import InvalidRequest
from sweephand.lazy import lazy
from sweephand.schedules.grids.calendar_masks import CalendarMasks
from sweephand.schedules.grids.clock import Clock
from sweephand.schedules.grids.day_sets import Both
from sweephand.schedules.grids.days import ALL_YEARS, Days, OfMonths, OfWeeks, OnDays, OrNextDay, Unmoved, month_table
from sweephand.schedules.zones.localtime import MonthOverflow

with lazy():
    from sweephand.schedules.text import english

_ALL_WEEKDAYS = 0x7F
_ALL_DATES = (2 << 31) - 2
_SHORT_OF = {29: 1 << 2, 30: 1 << 2, 31: 1 << 2 | 1 << 4 | 1 << 6 | 1 << 9 | 1 << 11}
"""Date -> the months that lack it, in some year at least; bit n is month n."""


def check(text: str) -> None:
    """Raises InvalidRequest for days that are counted, not named: of */2 nothing says which one a month lacks."""
    words = text.split()
    if len(words) == 5 and words[2][:2] == "*/":
        raise InvalidRequest("monthOverflow", f"acts on days that cron names, such as 31, not on {words[2][:20]}")


def pattern(masks: CalendarMasks, overflow: MonthOverflow) -> OnDays:
    """Returns the wall times of a cron whose dates move to the end of shorter months, or after it."""
    weekdays = masks.weekdays >> 1 & 0x3F | (masks.weekdays & 1) << 6  # there, bit 0 is Sunday
    table = month_table(partial(_pick, masks, weekdays, overflow))
    days: Days = OfMonths(table, masks.months, ALL_YEARS if overflow is MonthOverflow.CLAMP or masks.ever() else 0)
    if overflow is MonthOverflow.NEXT and (short := _short_months(masks)):
        ends = month_table(lambda length, _: 1 << length if masks.days >> length + 1 else 0)
        days = OrNextDay(days, OfMonths(ends, short))
        if not masks.either and weekdays != _ALL_WEEKDAYS:
            days = Both(days, OfWeeks(weekdays))
    return OnDays(days, Clock(masks.hours, masks.minutes), Unmoved(masks, masks.days))


def words(masks: CalendarMasks, overflow: MonthOverflow) -> str:
    """Says how dates that a month lacks move; "" if no month lacks them, or all its days are chosen anyway."""
    every_day = masks.either and masks.weekdays == _ALL_WEEKDAYS
    return english.lacking(_ALL_DATES if every_day else masks.days, masks.months, overflow)


def _short_months(masks: CalendarMasks) -> int:
    """Returns its months that lack one of its dates. A search in other months would find no day up to the horizon."""
    if masks.days == _ALL_DATES:
        return 0
    lacking = 0
    for day, months in _SHORT_OF.items():
        lacking |= months if masks.days >> day & 1 else 0
    return masks.months & lacking


def _pick(masks: CalendarMasks, weekdays: int, overflow: MonthOverflow, length: int, first: int) -> int:
    """Returns the days of a month. first: weekday of its first day, 0 is Monday."""
    dates = masks.days
    if overflow is MonthOverflow.CLAMP and dates >> length + 1:
        dates |= 1 << length
    on = sum(1 << day for day in range(1, length + 1) if weekdays >> (first + day - 1) % 7 & 1)
    return dates | on if masks.either else dates & on
