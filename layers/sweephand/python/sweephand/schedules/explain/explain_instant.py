"""Explains to people why an instant is or is not an occurrence of a schedule: what became of half past two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sweephand.schedules.explain.explain import local_text
from sweephand.schedules.explain.instant_reasons import LEFT_OUT_BY_GAP, Reason, on_clock, why_not
from sweephand.schedules.grids.sets import Also
from sweephand.schedules.rule import Amended, ByCalendars, Jittered, Window, limited
from sweephand.schedules.text import english
from sweephand.schedules.zones.localtime import Gap, instant_text, to_instant, to_second, wall_text, zone

if TYPE_CHECKING:
    from datetime import datetime

    from sweephand.schedules.rule import MovedBy, Series
    from sweephand.schedules.text.instants import Written
    from sweephand.schedules.timing import Timing


@dataclass(frozen=True)
class Counted:
    """The rest of a schedule's `count`: at most `left` occurrences after `since` are still sent."""

    since: datetime
    left: int


@dataclass(frozen=True)
class Explanation:
    """An answer: whether an instant (aware UTC, whole seconds) is an occurrence, and why: at least one reason.

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
    if occurs and counted is not None and _used_up(rule, second, counted):
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
    """Explains a written instant; without an offset it is wall time in the schedule's own zone.

    A wall time in a gap is explained by the instant that stands for it, one that comes twice by the copy that runs.
    """
    if written.second is not None:
        return explain(timing, to_instant(written.second), counted)
    zone = timing.zone
    found = zone.instants(written.wall)
    if not found:
        return _in_gap(timing, written.wall, counted)
    occurring = [second for second in found if timing.rule.until(second) == second]
    chosen = (occurring or found)[0]
    explained = explain(timing, to_instant(chosen), counted)
    if len(found) == 1:
        return explained
    others = " and at ".join(instant_text(second) for second in found)
    twice = Reason(
        "COMES_TWICE", f"the clock in {zone.name} reads it twice: at {others}; this is {instant_text(chosen)}"
    )
    return replace(explained, reasons=(twice, *explained.reasons))


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
    """Returns the instant, or the clock change, for a wall time in a gap that the rule names itself (RDATE)."""
    while isinstance(series, Window | Jittered | ByCalendars | Amended):
        if isinstance(series, Also):
            marks = (each for each in series.marks if each[1].rule == "dstGap" and each[1].zone is None)
            return next((each for each in marks if each[1].local_time == wall_text(wall)), None)
        series = series.series
    return None


def _used_up(rule: Series, second: int, counted: Counted) -> bool:
    since = to_second(counted.since)
    return second > since and rule.count(since, second, counted.left + 1) > counted.left


def _why(timing: Timing, second: int, moved_by: MovedBy | None) -> list[Reason]:
    """Returns the reasons for an occurrence."""
    planned = second
    where = timing.zone if moved_by is None or moved_by.zone is None else zone(moved_by.zone)
    found: list[Reason] = []
    if isinstance(timing.rule, Jittered):
        planned = timing.rule.series.until(second) or second
        if planned != second:
            text = f"planned for {instant_text(planned)}; jitterSeconds delays it by {second - planned} s"
            found.append(Reason("PUT_OFF_BY_JITTER", text))
    if moved_by is None:
        found.append(Reason("MATCHES", f"{local_text(planned, timing.zone)} is one of its instants"))
    elif moved_by.rule == "calendar":
        text = f"comes from {moved_by.local_time}, which its calendars do not allow"
        found.append(Reason("COMES_FROM_CALENDAR", text))
    elif moved_by.rule == "monthOverflow":
        found.append(Reason("MOVED_BY_MONTH", _missing(moved_by.local_time)))
    elif moved_by.rule == "dstGap":
        text = f"stands for {moved_by.local_time}, which the clock in {where.name} jumps over"
        found.append(Reason("MOVED_BY_GAP", text))
    else:
        first = where.instants(where.wall(planned))[0]
        overlap = "both" if moved_by.effect == "doubled" else "first" if planned == first else "second"
        text = f"the clock in {where.name} reads {moved_by.local_time} twice, and dstOverlap is {overlap}"
        found.append(Reason("CHOSEN_BY_OVERLAP", text))
    return found


def _missing(local_time: str) -> str:
    """Says which day a month lacks, given 2027-02-31T09:00:00."""
    year, month, day = (int(each) for each in local_time[:10].split("-"))
    return f"stands for the {english.ordinal(day)}, which {english.MONTHS[month - 1]} {year} does not have"
