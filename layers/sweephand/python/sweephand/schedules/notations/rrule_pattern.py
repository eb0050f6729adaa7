"""Turns the parts of a recurrence rule and its beginning into wall times.

Each part limits or widens its period as the table of RFC 5545 says. If the rule does not state the month, the day or
the time, that of its beginning applies.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from math import gcd, lcm
from typing import NamedTuple

from sweephand.schedules.grids.calendar_masks import bits
from sweephand.schedules.grids.clock import DAY_S, Clock
from sweephand.schedules.grids.cycles import Apart, Cycle, Expanded, SteppedClock, Within, meeting
from sweephand.schedules.grids.days import (
    ALL_MONTHS,
    ALL_YEARS,
    EPOCH_DAY,
    FIRST_YEAR,
    LAST_YEAR,
    Days,
    EachNth,
    OfMonths,
    OfWeeks,
    OnDays,
    month_table,
)
from sweephand.schedules.grids.rrule_days import Both, DayRule, OfYears, PickedOfWeeks, at_positions, of_month
from sweephand.schedules.notations.rrule_parts import DAILY, HOURLY, MINUTELY, MONTHLY, SECONDLY, WEEKLY, Recur, never
from sweephand.schedules.rule import Series, Steps

_ALL_HOURS = (1 << 24) - 1
_ALL_SIXTY = (1 << 60) - 1
_WEEKDAYS = (1 << 7) - 1
_UNIT_S = {SECONDLY: 1, MINUTELY: 60, HOURLY: 3600}
_MANY_TIMES = 1_440
_WEEK_S = 7 * DAY_S


class Pattern(NamedTuple):
    """A series of wall seconds, even before the beginning.

    step_s: the step of a rule whose steps determine the hours; 0 for a rule that fixes the hour.
    """

    series: Series
    step_s: int


@lru_cache(maxsize=64)  # a text is built right after it is read, and a stack has few different texts
def pattern(recur: Recur, anchor: int) -> Pattern:
    """Builds the pattern. anchor: the beginning in wall seconds. Raises NEVER_FIRES if the parts exclude each other."""
    day, time = divmod(anchor, DAY_S)
    if recur.frequency < DAILY:
        return Pattern(_within_days(recur, anchor), 0 if recur.hours else recur.interval * _UNIT_S[recur.frequency])
    clock = Clock(
        recur.hours or 1 << time // 3600, recur.minutes or 1 << time // 60 % 60, recur.seconds or 1 << time % 60
    )
    step_s = 3600 if clock.hours == _ALL_HOURS and not recur.positions else 0
    return Pattern(_picked(recur, day, clock) if recur.positions else OnDays(_days(recur, day, ()), clock), step_s)


def gap_s(series: Series) -> int:
    """Returns the guaranteed minimum distance between two seconds of a pattern's series."""
    if isinstance(series, Apart):
        times = sorted(part.clock.first for part in series.parts if isinstance(part, OnDays))
        return min(later - time for time, later in zip(times, (*times[1:], times[0] + DAY_S), strict=True))
    return series.shortest_gap_s() if isinstance(series, OnDays | Cycle | Expanded | SteppedClock | Within) else 1


def _picked(recur: Recur, day: int, clock: Clock) -> Series:
    """Applies BYSETPOS: picks the days and times of a period at one of the positions.

    Position p of days with n times each is a position among the days, and one of the times.
    """
    times = clock.times()
    of_times: dict[int, list[int]] = {}
    for position in recur.positions:
        days, of_day = divmod(position - 1 if position > 0 else position, times)
        of_times.setdefault(of_day, []).append(days + 1 if position > 0 else days)
    if recur.frequency == DAILY:
        picked = sorted(_time(clock, of_day) for of_day, days in of_times.items() if {1, -1} & set(days))
        if not picked:
            raise never(f"a day has {times} of its times, and BYSETPOS asks for another")
        return Within(Cycle(DAY_S, tuple(picked)), _days(recur, day, ()))
    parts = []
    for of_day, positions in of_times.items():
        at = Clock.at(_time(clock, of_day))
        days_at = _days_or_none(recur, day, tuple(positions))
        if days_at is not None:
            parts.append(OnDays(days_at, at))
    if not parts:
        raise never("none of its periods has as many instants as BYSETPOS asks for")
    return parts[0] if len(parts) == 1 else Apart(tuple(parts))


def _time(clock: Clock, which: int) -> int:
    """Returns the time of the day at that place, from 0."""
    hours, minutes, seconds = bits(clock.hours), bits(clock.minutes), bits(clock.seconds)
    rest, second = divmod(which, len(seconds))
    hour, minute = divmod(rest, len(minutes))
    return hours[hour] * 3600 + minutes[minute] * 60 + seconds[second]


# ---- Days ------------------------------------------------------------------------------------------------------------


def _days(recur: Recur, day: int, positions: tuple[int, ...]) -> Days:
    """Returns the days of a rule of days or longer that begins on `day`. Raises NEVER_FIRES."""
    days = _days_or_none(recur, day, positions)
    if days is None:
        raise never("none of its days, weeks, months or years has a day that it names")
    return days


def _days_or_none(recur: Recur, day: int, positions: tuple[int, ...]) -> Days | None:
    if recur.frequency == DAILY:
        return _stepped(recur, day)
    if recur.frequency == WEEKLY:
        return _of_weeks(recur, day, positions)
    days = _of_months(recur, day, positions) if recur.frequency == MONTHLY else _of_years(recur, day, positions)
    return days if days.ever() else None


def _stepped(recur: Recur, day: int) -> Days | None:
    rule = recur.days
    if recur.interval % 7 == 0 and rule.weekdays:
        if not rule.weekdays >> (day + 3) % 7 & 1:
            return None
        rule = rule._replace(weekdays=0)
    limit = _limit(rule)
    if recur.interval == 1 and limit is not None:
        return limit if _ever(limit) else None
    steps = EachNth(recur.interval, day)
    if limit is None:
        return steps
    return Both(steps, limit) if _ever(limit) else None


def _ever(days: Days) -> bool:
    return not isinstance(days, OfMonths | OfYears) or days.ever()


def _limit(rule: DayRule) -> Days | None:
    """Returns the days that a rule of days or shorter periods admits; None for all of them."""
    if rule.year_days:
        return OfYears(rule)
    if rule.months or rule.month_days:
        return OfMonths(_month_table(rule._replace(months=0)), rule.months or ALL_MONTHS)
    return OfWeeks(rule.weekdays) if rule.weekdays else None


def _of_weeks(recur: Recur, day: int, positions: tuple[int, ...]) -> Days | None:
    rule = recur.days
    weekday = (day + 3) % 7
    begins = day - (weekday - rule.week_start) % 7
    weekdays = rule.weekdays or 1 << weekday
    turned = (weekdays | weekdays << 7) >> rule.week_start & _WEEKDAYS
    picked = at_positions(turned, positions)
    if not picked:
        return None
    if rule.months and positions:
        return PickedOfWeeks(turned, rule.months, positions, begins, recur.interval)
    weeks = OfWeeks(picked, begins, recur.interval)
    if not rule.months:
        return weeks
    return Both(weeks, OfMonths(_month_table(DayRule()), rule.months))


def _of_months(recur: Recur, day: int, positions: tuple[int, ...]) -> OfMonths:
    rule = recur.days
    on = date.fromordinal(day + EPOCH_DAY)
    if not (rule.month_days or rule.weekdays or rule.ordinals):
        rule = rule._replace(month_days=(on.day,))
    table = _month_table(rule._replace(months=0, positions=positions))
    every = recur.interval
    common = gcd(every, 12)  # only these months are ever met
    months = sum(1 << month for month in range(1, 13) if (month - on.month) % common == 0)
    months &= rule.months or ALL_MONTHS
    if every % 12 == 0:
        return OfMonths(table, months, _years(every // 12, on.year)) if months else OfMonths((0,) * 28)
    return (
        OfMonths(table, months or ALL_MONTHS, every=every, anchor=on.year * 12 + on.month - 1)
        if months
        else OfMonths((0,) * 28)
    )


def _of_years(recur: Recur, day: int, positions: tuple[int, ...]) -> OfMonths | OfYears:
    rule = recur.days
    on = date.fromordinal(day + EPOCH_DAY)
    if not (rule.week_numbers or rule.year_days or rule.month_days or rule.weekdays or rule.ordinals):
        rule = rule._replace(months=rule.months or 1 << on.month, month_days=(on.day,))
    years = _years(recur.interval, on.year)
    if positions or rule.week_numbers or rule.year_days or (rule.ordinals and not rule.months):
        return OfYears(rule._replace(positions=positions), years)
    table = _month_table(rule._replace(months=0))
    return OfMonths(table, rule.months or ALL_MONTHS, years)


@lru_cache(maxsize=1024)
def _month_table(rule: DayRule) -> tuple[int, ...]:
    return month_table(lambda length, first: of_month(rule, length, first))


def _years(every: int, year: int) -> int:
    """Returns the mask of each k-th year: bit n is the year 1969 + n."""
    if every == 1:
        return ALL_YEARS
    return sum(1 << each - FIRST_YEAR for each in range(FIRST_YEAR + (year - FIRST_YEAR) % every, LAST_YEAR + 1, every))


# ---- Hours, minutes, seconds -----------------------------------------------------------------------------------------


def _within_days(recur: Recur, anchor: int) -> Series:
    """Returns steps of hours, minutes or seconds, limited to times of the day and to days."""
    limit = _limit(recur.days)
    if limit is not None and not _ever(limit):
        raise never("no year has a day that it names")
    clock = _fitting(recur, anchor)
    if clock is not None:
        return OnDays(limit or EachNth(), clock)
    series = _stepping(recur, anchor)
    if recur.days.weekdays and isinstance(series, Cycle | Expanded):
        units = series if isinstance(series, Cycle) else series.units
        chosen = _on_weekdays(units, recur.days.weekdays)
        limit = None if chosen is not units and isinstance(limit, OfWeeks) else limit
        series = chosen if isinstance(series, Cycle) else Expanded(chosen, series.offsets)
    return series if limit is None else Within(series, limit)


def _on_weekdays(cycle: Cycle, weekdays: int) -> Cycle:
    """Returns the seconds of a cycle on some weekdays; the cycle itself if that makes a long list.

    Raises NEVER_FIRES.
    """
    period = lcm(cycle.period, _WEEK_S)
    turns = period // cycle.period
    if turns * len(cycle.residues) > _MANY_TIMES * 7:
        return cycle
    seconds = [turn * cycle.period + at for turn in range(turns) for at in cycle.residues]
    return _cycle(period, [at for at in seconds if weekdays >> (at // DAY_S + 3) % 7 & 1])


def _fitting(recur: Recur, anchor: int) -> Clock | None:
    """Returns the times of each day if the steps divide the hours of a day, the minutes of an hour, and so on."""
    frequency, every = recur.frequency, recur.interval
    if recur.positions or (24 if frequency == HOURLY else 60) % every:
        return None
    steps = sum(1 << number for number in range(anchor // _UNIT_S[frequency] % every, 60, every))
    hours, minutes, seconds = _masks(recur, anchor)
    if frequency == HOURLY:
        hours &= steps
    elif frequency == MINUTELY:
        minutes &= steps
    else:
        seconds &= steps
    if not (hours and minutes and seconds):
        raise never("its steps never meet a time that it names")
    return Clock(hours, minutes, seconds)


def _masks(recur: Recur, anchor: int) -> tuple[int, int, int]:
    """Returns (hours, minutes, seconds) that a rule admits; units below its frequency are those of its beginning."""
    return (
        recur.hours or _ALL_HOURS,
        recur.minutes or (1 << anchor // 60 % 60 if recur.frequency == HOURLY else _ALL_SIXTY),
        recur.seconds or (_ALL_SIXTY if recur.frequency == SECONDLY else 1 << anchor % 60),
    )


def _stepping(recur: Recur, anchor: int) -> Cycle | Expanded | SteppedClock:
    """Returns steps that do not fit the clock: first the hours, minutes or seconds, then the times within each."""
    unit_s, every = _UNIT_S[recur.frequency], recur.interval
    hours, minutes, seconds = _masks(recur, anchor)
    if recur.frequency == HOURLY:
        units = Clock(hours, 1, 1)
        free = hours == _ALL_HOURS
        offsets = [minute * 60 + second for minute in bits(minutes) for second in bits(seconds)]
    elif recur.frequency == MINUTELY:
        units = Clock(hours, minutes, 1)
        free = (hours, minutes) == (_ALL_HOURS, _ALL_SIXTY)
        offsets = bits(seconds)
    else:
        units = Clock(hours, minutes, seconds)
        free = (hours, minutes, seconds) == (_ALL_HOURS, _ALL_SIXTY, _ALL_SIXTY)
        offsets = [0]
    offsets = _at_places(offsets, recur.positions)
    if free:
        period, hits = meeting(every, anchor // unit_s, 1, [0])
    elif units.times() > _MANY_TIMES:
        return _stepped_clock(every, anchor, units)
    else:
        times = (time // unit_s for time in _times(units))
        period, hits = meeting(every, anchor // unit_s, DAY_S // unit_s, times)
    if len(offsets) == 1:
        return _cycle(period * unit_s, [at * unit_s + offsets[0] for at in hits])
    return Expanded(_cycle(period * unit_s, [at * unit_s for at in hits]), tuple(offsets))


def _at_places(offsets: list[int], positions: tuple[int, ...]) -> list[int]:
    if not positions:
        return offsets
    places = bits(at_positions((1 << len(offsets)) - 1, positions))
    if not places:
        raise never(f"a period has {len(offsets)} of its instants, and BYSETPOS asks for another")
    return [offsets[place] for place in places]


def _cycle(period: int, residues: list[int]) -> Cycle:
    if not residues:
        raise never("its steps never meet a time or a weekday that it names")
    return Cycle(period, tuple(residues))


def _stepped_clock(every: int, anchor: int, clock: Clock) -> SteppedClock:
    """Returns the steps at times of the clock. Raises NEVER_FIRES if no step meets one."""
    common = gcd(every, DAY_S)
    seconds = {second % common for second in bits(clock.seconds)}
    begun = Clock(clock.hours, clock.minutes, 1)
    if not any((anchor - time) % common in seconds for time in _times(begun)):
        raise never("its steps never meet a time that it names")
    return SteppedClock(Steps(anchor, every), clock)


def _times(clock: Clock) -> Iterator[int]:
    minutes, seconds = bits(clock.minutes), bits(clock.seconds)
    return (
        hour * 3600 + minute * 60 + second for hour in bits(clock.hours) for minute in minutes for second in seconds
    )
