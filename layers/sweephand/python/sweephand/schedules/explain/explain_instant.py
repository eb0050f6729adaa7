"""Explains to people why an instant is or is not an occurrence of a schedule.

Only people need reasons, so a sweep does not load this module. A kind of series that _WHY_NOT does not name has one
reason: the instant is not in the series.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any

from sweephand.base.records import dataclass
from sweephand.schedules.explain.explain import local_text
from sweephand.schedules.grids.calendar_masks import bits, month_length
from sweephand.schedules.grids.cycles import Slots
from sweephand.schedules.grids.days import ALL_MONTHS, FIRST_YEAR, EachNth, OfMonths, OfWeeks, OnDays
from sweephand.schedules.grids.sets import Also
from sweephand.schedules.grids.wallclock import OnWallClock
from sweephand.schedules.rule import Amended, ByCalendars, Jittered, Over, Series, Steps, Window, limited
from sweephand.schedules.text import english
from sweephand.schedules.zones.localtime import (
    EPOCH,
    Gap,
    Overlap,
    instant_text,
    to_instant,
    to_second,
    wall_text,
    zone,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from sweephand.schedules.grids.clock import Clock
    from sweephand.schedules.grids.days import DayFields, Days
    from sweephand.schedules.rule import MovedBy
    from sweephand.schedules.text.instants import Written
    from sweephand.schedules.timing import Timing


@dataclass(frozen=True)
class Counted:
    """The rest of a schedule's `count`: at most `left` occurrences after `since` are still sent."""

    since: datetime
    left: int


@dataclass(frozen=True)
class Explanation:
    """An answer: whether an instant (aware UTC, whole seconds) is an occurrence, and at least one reason why.

    previous, following: the occurrences strictly before and after it, whatever `count` says.
    """

    instant: datetime
    occurs: bool
    reasons: tuple[Reason, ...]
    moved_by: MovedBy | None
    previous: datetime | None
    following: datetime | None


def explain(timing: Timing, instant: datetime, counted: Counted | None = None) -> Explanation:
    """Explains whether `instant` (aware; fractions are cut off) is an occurrence of a schedule. Raises Undecided."""
    with limited():
        return _explain(timing, to_second(instant), counted)


def _explain(timing: Timing, second: int, counted: Counted | None) -> Explanation:
    rule = timing.rule
    previous, following = rule.until(second - 1), rule.after(second)
    occurs = rule.until(second) == second
    moved_by = rule.moved_by(second) if occurs else None
    reasons = _why(timing, second, moved_by) if occurs else list(why_not(rule, second))
    since = second if counted is None else to_second(counted.since)
    if occurs and counted is not None and second > since and rule.count(since, second, counted.left + 1) > counted.left:
        occurs, reasons = False, [Reason("COUNT_REACHED", f"all {timing.count} occurrences of count come earlier")]
    return Explanation(
        to_instant(second),
        occurs,
        tuple(reasons),
        moved_by,
        None if previous is None else to_instant(previous),
        None if following is None else to_instant(following),
    )


def explain_written(timing: Timing, written: Written, counted: Counted | None = None) -> Explanation:
    """Explains a written instant. Without an offset, it is wall time in the schedule's own zone.

    A wall time in a gap is explained by the instant that stands for it; one that comes twice, by the copy that runs.
    """
    if written.second is not None:
        return explain(timing, to_instant(written.second), counted)
    zone = timing.zone
    instants = zone.instants(written.wall)
    if not instants:
        return _in_gap(timing, written.wall, counted)
    occurring = [second for second in instants if timing.rule.until(second) == second]
    chosen = (occurring or instants)[0]
    explained = explain(timing, to_instant(chosen), counted)
    if len(instants) == 1:
        return explained
    others = " and at ".join(instant_text(second) for second in instants)
    twice = Reason(
        "COMES_TWICE", f"the clock in {zone.name} reads it twice: at {others}; this is {instant_text(chosen)}"
    )
    return replace(explained, reasons=(twice, *explained.reasons))


def too_hard(timing: Timing, written: Written) -> Explanation:
    """Returns the explanation of a written instant if the rule takes too long to compute there."""
    second = written.second
    if second is None:
        second = (timing.zone.instants(written.wall) or timing.zone.around_gap(written.wall)[1:])[0]
    reason = Reason("TOO_HARD", "its rule takes too long to compute at this instant")
    return Explanation(to_instant(second), False, (reason,), None, None, None)


def _in_gap(timing: Timing, wall: int, counted: Counted | None) -> Explanation:
    zone, clock, named = timing.zone, on_clock(timing.rule), _named_in_gap(timing.rule, wall)
    next_valid, shifted = zone.around_gap(wall)
    gap = Reason("IN_GAP", f"the clock in {zone.name} jumps over {wall_text(wall)} at {instant_text(next_valid)}")
    if named is not None:
        second, moved_by = named
        explained = explain(timing, to_instant(second), counted)
        if moved_by.effect != "skipped":
            return replace(explained, reasons=(gap, *explained.reasons))
        left_out = Reason("LEFT_OUT_BY_GAP", LEFT_OUT_BY_GAP.format(moved_by.local_time))
        return replace(explained, occurs=False, moved_by=None, reasons=(gap, left_out))
    if clock is None:
        explained = explain(timing, to_instant(shifted), counted)
        return replace(explained, reasons=(gap, *explained.reasons))
    if clock.pattern.until(wall) != wall:
        explained = explain(timing, to_instant(next_valid), counted)
        return replace(explained, occurs=False, moved_by=None, reasons=(gap, *why_not(clock.pattern, wall)))
    stands_for = shifted if clock.gap is Gap.SHIFT else next_valid
    explained = explain(timing, to_instant(stands_for), counted)
    return replace(explained, reasons=(gap, *explained.reasons))


def _named_in_gap(series: Series, wall: int) -> tuple[int, MovedBy] | None:
    """Returns the instant, or the clock change, for a wall time in a gap that the rule itself names (RDATE)."""
    while isinstance(series, Over):
        if isinstance(series, Also):
            marks = (each for each in series.marks if each[1].rule == "dstGap" and each[1].zone is None)
            return next((each for each in marks if each[1].local_time == wall_text(wall)), None)
        series = series.series
    return None


def _why(timing: Timing, second: int, moved_by: MovedBy | None) -> list[Reason]:
    """Returns the reasons for an occurrence."""
    planned = second
    where = timing.zone if moved_by is None or moved_by.zone is None else zone(moved_by.zone)
    reasons: list[Reason] = []
    if isinstance(timing.rule, Jittered):
        planned = timing.rule.series.until(second) or second
        if planned != second:
            text = f"planned for {instant_text(planned)}; jitterSeconds delays it by {second - planned} s"
            reasons.append(Reason("PUT_OFF_BY_JITTER", text))
    if moved_by is None:
        reasons.append(Reason("MATCHES", f"{local_text(planned, timing.zone)} is one of its instants"))
    elif moved_by.rule == "calendar":
        text = f"comes from {moved_by.local_time}, which its calendars do not allow"
        reasons.append(Reason("COMES_FROM_CALENDAR", text))
    elif moved_by.rule == "monthOverflow":
        reasons.append(Reason("MOVED_BY_MONTH", _missing(moved_by.local_time)))
    elif moved_by.rule == "dstGap":
        text = f"stands for {moved_by.local_time}, which the clock in {where.name} jumps over"
        reasons.append(Reason("MOVED_BY_GAP", text))
    else:
        first = where.instants(where.wall(planned))[0]
        overlap = "both" if moved_by.effect == "doubled" else "first" if planned == first else "second"
        text = f"the clock in {where.name} reads {moved_by.local_time} twice, and dstOverlap is {overlap}"
        reasons.append(Reason("CHOSEN_BY_OVERLAP", text))
    return reasons


def _missing(local_time: str) -> str:
    """Returns in words which day a month lacks, given 2027-02-31T09:00:00."""
    year, month, day = (int(each) for each in local_time[:10].split("-"))
    return f"stands for the {english.ordinal(day)}, which {english.MONTHS[month - 1]} {year} does not have"


_EPOCH_DAY = EPOCH.toordinal()

REASON_CODES = {
    "MATCHES": "it is an occurrence, exactly as the rule says",
    "MOVED_BY_GAP": "it is an occurrence, in place of a wall time that the clock skips",
    "CHOSEN_BY_OVERLAP": "it is an occurrence, at a wall time that the clock shows twice",
    "MOVED_BY_MONTH": "it is an occurrence, in place of a day that its month does not have (`monthOverflow`)",
    "PUT_OFF_BY_JITTER": "an occurrence was planned at this instant or earlier, and is delayed by `jitterSeconds`",
    "DOES_NOT_MATCH": "a part of the wall time (`field`) does not match",
    "BETWEEN_STEPS": "it is between two equal steps",
    "NOT_IN_SERIES": "it is not an instant of the series",
    "TAKEN_OUT": "it is an instant of the series, but the rule removes it (EXDATE)",
    "BEFORE_START": "it is before `startTime`, or before the first step",
    "AFTER_END": "it is after `endTime`",
    "COUNT_REACHED": "it is after the last occurrence of `count`",
    "IN_GAP": "the requested wall time does not exist on that day",
    "LEFT_OUT_BY_GAP": "the clock jumps over a wall time to this instant, and `dstGap` is `skip`",
    "COMES_TWICE": "the requested wall time comes twice; `message` says which one is explained",
    "OTHER_COPY": "the wall time comes twice, and `dstOverlap` chooses the other instant",
    "LEFT_OUT_BY_CALENDAR": "it is an instant of the series, but a calendar excludes it",
    "MOVED_BY_CALENDAR": "it is an instant of the series, but a calendar moves it to another day",
    "COMES_FROM_CALENDAR": "it is an occurrence that a calendar moved here from another day",
    "TOO_HARD": "the rule takes too long to compute at this instant",
    "IN_LEDGER": "the ledger has a row for it: `state`, `reason` and `runId` are those of the row",
    "NO_ROW": "it is an occurrence without a row: it is due and nothing has begun it yet, or its row has expired",
    "BEGINS_PLAN": "its plan begins with it although the rule does not have it: it runs at once, or late",
    "PLANNED_BEFORE": "it was an occurrence before the last change of the schedule",
    "CHANGED_SINCE": "the schedule was created or changed later, and its earlier rule, if known, did not have it",
    "NOT_ACTIVE": "the schedule is switched off, paused or held at this instant, or has ended",
    "FOLLOWS_CALENDAR": "a calendar has just changed; the answer is certain once the schedule follows it",
}
"""The closed list of codes with their meanings; the last eight are for stored schedules only."""

LEFT_OUT_BY_GAP = "the clock jumps over {} to this instant, and dstGap is skip"


@dataclass(frozen=True)
class Reason:
    """A reason: one of REASON_CODES, and a sentence. field: for DOES_NOT_MATCH, the field of the clock.

    calendar: for LEFT_OUT_BY_CALENDAR, the index of the calendar that stops it. The schedule knows its name.
    """

    code: str
    text: str
    field: str | None = None
    calendar: int | None = None


def why_not(series: Series, second: int) -> Iterator[Reason]:
    """Yields the reasons, outermost limit first; at least one if `second` (Unix or wall) is not an occurrence."""
    for kind, why in _WHY_NOT.items():
        if isinstance(series, kind):
            yield from why(series, second)
            return
    yield Reason("NOT_IN_SERIES", "it is not an instant of the series")


def on_clock(series: Series) -> OnWallClock | None:
    """Returns the wall times without window, calendars and jitter; None for elapsed time."""
    while isinstance(series, Over):
        series = series.series
    return series if isinstance(series, OnWallClock) else None


def _window(window: Window, second: int) -> Iterator[Reason]:
    if second < window.first:
        yield Reason("BEFORE_START", f"the schedule begins at {instant_text(window.first)}")
    if second > window.last:
        yield Reason("AFTER_END", f"the schedule ends at {instant_text(window.last)}")
    if window.series.until(second) != second:
        yield from why_not(window.series, second)


def _amended(series: Amended, second: int) -> Iterator[Reason]:
    if series.takes_out(second) and series.series.until(second) == second:
        yield Reason("TAKEN_OUT", "the rule names it as an exception (EXDATE)")
    else:
        yield from why_not(series.series, second)


def _steps(steps: Steps, second: int) -> Iterator[Reason]:
    early = (second - steps.anchor) % steps.step_s
    text = f"{early} s after one step of {steps.step_s} s and {steps.step_s - early} s before the next"
    yield Reason("BETWEEN_STEPS", text)


def _jittered(jittered: Jittered, second: int) -> Iterator[Reason]:
    planned = jittered.series.until(second)
    if planned == second:
        put_off = jittered.after(second - 1)
        text = "jitterSeconds delays it" + ("" if put_off is None else f" to {instant_text(put_off)}")
        yield Reason("PUT_OFF_BY_JITTER", text)
    else:
        yield from why_not(jittered.series, second)


def _calendars(series: ByCalendars, second: int) -> Iterator[Reason]:
    if series.series.until(second) != second:
        yield from why_not(series.series, second)
        return
    comes = series.comes(second)
    if comes is not None:
        yield Reason("MOVED_BY_CALENDAR", f"its calendars do not allow it: it comes at {instant_text(comes)}")
        return
    place = series.stopped_by(second)
    which = "its calendars" if place is None else f"the times of calendar {place + 1} of its list"
    yield Reason("LEFT_OUT_BY_CALENDAR", f"{which} do not allow it", calendar=place)


def _on_wall_clock(series: OnWallClock, second: int) -> Iterator[Reason]:
    wall = series.zone.wall(second)
    left_out = [moved_by.local_time for _, moved_by in islice(series.dropped(second - 1, second), 1)]
    if left_out:
        yield Reason("LEFT_OUT_BY_GAP", LEFT_OUT_BY_GAP.format(left_out[0]))
        return
    if series.pattern.until(wall) != wall:
        yield from why_not(series.pattern, wall)
        return
    first, *_, last = series.zone.instants(wall)
    runs, which = (last, "second") if series.overlap is Overlap.SECOND else (first, "first")
    text = f"the clock reads {wall_text(wall)} twice, and dstOverlap is {which}: it runs at {instant_text(runs)}"
    yield Reason("OTHER_COPY", text)


def _on_days(series: OnDays, wall: int) -> Iterator[Reason]:
    day, time = divmod(wall, 86_400)
    yield from _clock(series.clock, time)
    if series.days.next(day) != day:
        yield from _days(series.days, day)


def _slots(slots: Slots, wall: int) -> Iterator[Reason]:
    unit, at = ("hour" if slots.size_s == 3600 else "minute"), wall_text(wall)[11:16]
    slot, within = divmod(wall, slots.size_s)
    if (slot - slots.anchor) % slots.every:
        text = f"{at} is in none of its {unit}s: they come every {slots.every:,} {unit}s"
        yield Reason("DOES_NOT_MATCH", text, unit)
    of_day = slot % (86_400 // slots.size_s)
    if not slots.chosen >> of_day & 1:
        if unit == "hour":
            yield _differs(unit, str(of_day), english.numbers(bits(slots.chosen)))
        else:
            yield Reason("DOES_NOT_MATCH", f"{at} is not one of its times of the day", unit)
    if unit == "hour" and not slots.minutes >> within // 60 & 1:
        yield _differs("minute", str(within // 60), english.numbers(bits(slots.minutes)))
    if wall % 60:
        yield _differs("second", str(wall % 60), "0")


def _days(days: Days, day: int) -> Iterator[Reason]:
    """Yields the reasons why a day is not in the set."""
    on = date.fromordinal(day + _EPOCH_DAY)
    weekday = english.WEEKDAYS[on.isoweekday() % 7]
    if isinstance(days, OfMonths) and days.fields is not None:
        yield from _month(days.months, on)
        yield from _day_fields(days.fields, on)
    elif isinstance(days, OfMonths):
        if not days.years >> on.year - FIRST_YEAR & 1:
            yield Reason("DOES_NOT_MATCH", f"the year {on.year} is not one of its years", "year")
        yield from _month(days.months, on)
        if days.every > 1 and (on.year * 12 + on.month - 1 - days.anchor) % days.every:
            month = f"{english.MONTHS[on.month - 1]} {on.year}"
            text = f"{month} is not one of its months: they come every {days.every} months"
            yield Reason("DOES_NOT_MATCH", text, "month")
        if not days.days_of(on.year, on.month) >> on.day & 1:
            yield from _day_of_month(days, on)
    elif isinstance(days, OfWeeks):
        week, number = divmod(day - days.begins, 7)
        if week % days.every:
            text = f"{on} is in none of its weeks: they come every {days.every} weeks"
            yield Reason("DOES_NOT_MATCH", text, "week")
        if not days.weekdays >> number & 1:
            yield Reason("DOES_NOT_MATCH", f"{weekday} is not one of its weekdays", "weekday")
    elif isinstance(days, EachNth):
        text = f"{on} is not one of its days: they come every {days.every} days"
        yield Reason("DOES_NOT_MATCH", text, "day")
    else:
        yield Reason("DOES_NOT_MATCH", f"{weekday}, {on} is not one of its days", "day")


def _day_fields(fields: DayFields, on: date) -> Iterator[Reason]:
    """Yields the reasons for the two day fields of a cron."""
    by_date, by_weekday = fields.dates >> on.day & 1, fields.weekdays >> on.isoweekday() % 7 & 1
    if fields.either and (by_date or by_weekday):
        return
    if not by_date:
        yield _differs("day of the month", str(on.day), english.numbers(bits(fields.dates)))
    if not by_weekday:
        chosen = english.weekday_names(fields.weekdays)
        yield _differs("weekday", english.WEEKDAYS[on.isoweekday() % 7], chosen)


def _day_of_month(days: OfMonths, on: date) -> Iterator[Reason]:
    """Yields the reason: the set never has the weekday, or it lacks the date, or the two do not meet here."""
    chosen = sum(1 << number for number in range(7) if _has_weekday(days, number))
    of_length = days.table[(month_length(on.year, on.month) - 28) * 7 :][:7]
    wrong_weekday = chosen and not chosen >> on.isoweekday() % 7 & 1
    if wrong_weekday:
        names = english.weekday_names(chosen)
        yield _differs("weekday", english.WEEKDAYS[on.isoweekday() % 7], names)
    if not wrong_weekday or not any(mask >> on.day & 1 for mask in of_length):
        weekday = english.WEEKDAYS[on.isoweekday() % 7]
        yield Reason("DOES_NOT_MATCH", f"{weekday}, {on} is not one of its days of the month", "day")


def _has_weekday(days: OfMonths, number: int) -> bool:
    """Returns whether a month of any length and beginning has a day of the set on that weekday; 0 is Sunday."""
    first_weeks = (sum(1 << day for day in range(1 + (number - 1 - kind) % 7, 32, 7)) for kind in range(28))
    return any(mask & on for mask, on in zip(days.table, first_weeks, strict=True))


def _month(mask: int, on: date) -> Iterator[Reason]:
    if mask != ALL_MONTHS and not mask >> on.month & 1:
        yield _differs("month", english.MONTHS[on.month - 1], english.month_names(mask))


def _clock(clock: Clock, time: int) -> Iterator[Reason]:
    hour, minute, second = time // 3600, time // 60 % 60, time % 60
    for name, value, mask in (
        ("hour", hour, clock.hours),
        ("minute", minute, clock.minutes),
        ("second", second, clock.seconds),
    ):
        if not mask >> value & 1:
            yield _differs(name, str(value), english.numbers(bits(mask)))


def _differs(field: str, actual: str, wanted: str) -> Reason:
    return Reason("DOES_NOT_MATCH", f"{field}: {actual} is not {wanted}", field)


_WHY_NOT: dict[type[Series], Callable[[Any, int], Iterator[Reason]]] = {
    Window: _window,
    Jittered: _jittered,
    OnWallClock: _on_wall_clock,
    OnDays: _on_days,
    Slots: _slots,
    ByCalendars: _calendars,
    Amended: _amended,
    Steps: _steps,
}
