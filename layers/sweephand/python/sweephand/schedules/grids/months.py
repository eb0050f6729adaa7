"""Dates in each k-th month, with a rule for dates that a month lacks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from sweephand.schedules.grids.clock import Clock
from sweephand.schedules.grids.days import Days, OfMonths, OnDays, OrNextDay, Unmoved, month_table
from sweephand.schedules.zones.localtime import EPOCH, MonthOverflow


def of_months(every: int, day: int) -> Callable[[tuple[int, ...]], OfMonths]:
    """Returns a function that makes the days of a table in each `every`-th month, counted from the month of `day`."""
    if every < 1:
        raise ValueError("a step must be at least one month")
    on = EPOCH + timedelta(days=day)
    return partial(OfMonths, every=every, anchor=on.year * 12 + on.month - 1)


def on_dates(
    made: Callable[[tuple[int, ...]], OfMonths], dates: int, from_end: int, clock: Clock, overflow: MonthOverflow
) -> OnDays:
    """Returns the wall times. dates: bit n is day n. from_end: bit n is the n-th last day. overflow: for missing dates.

    made: from of_months.
    """
    unmoved = None
    if overflow is not MonthOverflow.SKIP and dates >> 29:
        unmoved = Unmoved(OnDays(_of_dates(made, dates, from_end, MonthOverflow.SKIP), clock), dates)
    return OnDays(_of_dates(made, dates, from_end, overflow), clock, unmoved)


def _of_dates(made: Callable[[tuple[int, ...]], OfMonths], dates: int, from_end: int, overflow: MonthOverflow) -> Days:
    def existing(length: int, _: int) -> int:
        last = 1 << length if overflow is MonthOverflow.CLAMP and dates >> length + 1 else 0
        return dates | last | sum(1 << length + 1 - n for n in range(1, length + 1) if from_end >> n & 1)

    days = made(month_table(existing))
    if overflow is not MonthOverflow.NEXT or not dates >> 29:
        return days
    return OrNextDay(days, made(month_table(lambda length, _: 1 << length if dates >> length + 1 else 0)))
