"""Describes a schedule in plain English for the preview, and warns about its oddities.

Warnings are found by inspecting the rule and its next year.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.schedules.explain.explain_instant import on_clock
from sweephand.schedules.grids.calendar_masks import LONGEST_MONTHS, bits
from sweephand.schedules.grids.clock import DAY_S
from sweephand.schedules.grids.days import LAST_YEAR, OfMonths, OnDays
from sweephand.schedules.rule import Jittered, Once, Undecided, limited
from sweephand.schedules.text import english
from sweephand.schedules.zones.localtime import (
    EPOCH,
    Gap,
    Overlap,
    instant_text,
    to_second,
    wall_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sweephand.schedules.grids.clock import Clock
    from sweephand.schedules.grids.wallclock import OnWallClock
    from sweephand.schedules.rule import MovedBy, Series
    from sweephand.schedules.timing import Timing

with lazy():
    from sweephand.schedules.notations import sap_cron
    from sweephand.schedules.zones import zone_names

CAUTIONS = {
    "NOTHING_LEFT": "all of its occurrences are in the past",
    "FAR_AWAY": "its next occurrence is more than a year away",
    "MANY_IN_AN_HOUR": "it has 60 or more occurrences within an hour, counted from the next one or from the "
    "first after that hour",
    "SOME_MONTHS_LACK_THE_DAY": "it names a date that some of its months do not have, such as 31",
    "LEAP_DAY": "it runs on 29 February, in leap years only",
    "EITHER_DAY": "the cron has a day of the month and a weekday, and runs on days that match either of them",
    "UNEVEN_STEP": "the steps do not divide the minute, hour or day evenly, so the last one is shorter",
    "JITTER_CUT_SHORT": "`jitterSeconds` is at least as long as the shortest gap",
    "FIXED_OFFSET": "the time zone is an abbreviation with one offset all year",
    "HARD_TO_COMPUTE": "some occurrences take too long to compute: `items`, `gaps` and `warnings` may end early",
    "CLOCK_CHANGE": "a clock change within the next year moves, doubles or leaves out an occurrence, or moves days of"
    " elapsed time to another time of day",
}
"""The closed list of codes with their meanings."""

YEAR_S = 366 * 86_400
MANY_IN_AN_HOUR = 60
_LAST_COUNT = 2**31
_FEW_DAYS = 5
_MOST_YEARS = 12
_MOST_LOOKED_AT = 400


@dataclass(frozen=True)
class Caution:
    """A warning: one of the codes of CAUTIONS, and a sentence."""

    code: str
    text: str


def cautions(timing: Timing, after: datetime) -> list[Caution]:
    """Returns all warnings about what the schedule does after an instant; most schedules have none."""
    second = to_second(after)
    listed: list[Caution] = []
    try:
        with limited():
            listed.extend(_cautions(timing, second))
    except Undecided:
        listed.append(Caution("HARD_TO_COMPUTE", "some of its occurrences take too long to compute"))
    return listed


def _cautions(timing: Timing, second: int) -> Iterator[Caution]:
    first = timing.rule.after(second)
    if first is None:
        yield Caution("NOTHING_LEFT", f"no occurrence is left after {instant_text(second)}")
        return
    yield from _zone(timing)
    yield from _density(timing, first)
    if first > second + YEAR_S:
        yield Caution("FAR_AWAY", f"the next occurrence is {instant_text(first)}, more than a year away")
    clock = on_clock(timing.rule)
    series = timing.rule.series if isinstance(timing.rule, Jittered) else timing.rule
    ahead = _Ahead(series, second, second + YEAR_S, timing.count)
    if clock is not None:
        yield from _of_pattern(clock.pattern, _to_the_end(timing), clock.zone.wall(second))
        yield from _of_changes(clock, ahead)
    elif (step_s := timing.elapsed_step_s) is not None and step_s % DAY_S == 0:
        yield from _of_elapsed_days(timing, step_s, ahead)


def _zone(timing: Timing) -> Iterator[Caution]:
    """Warns about a zone that somebody may mistake for one with clock changes."""
    name = timing.zone.name
    if name in zone_names.FIXED:
        offset, meant = zone_names.FIXED[name]
        text = f"{name} is {offset} all year, without daylight saving time; where the clock changes, write {meant}"
        yield Caution("FIXED_OFFSET", text)


def _density(timing: Timing, first: int) -> Iterator[Caution]:
    left, begin = timing.count or _LAST_COUNT, first
    for _ in range(2):  # the first hour may have begun before the question; the next one is complete
        often = timing.rule.count(begin - 1, begin + 3599, min(3601, left))
        if often >= MANY_IN_AN_HOUR:
            yield Caution("MANY_IN_AN_HOUR", f"runs {often:,} times in the hour from {instant_text(begin)}")
            break
        later = timing.rule.after(begin + 3599)
        left -= often
        if later is None or left < MANY_IN_AN_HOUR:
            break
        begin = later
    shortest = timing.interval_s
    if shortest is not None and timing.jitter_s >= shortest:
        text = f"jitterSeconds {timing.jitter_s} reaches past the next occurrence, so each is delayed by less"
        yield Caution("JITTER_CUT_SHORT", text)


def _of_pattern(pattern: Series, to_the_end: int, wall: int) -> Iterator[Caution]:
    """Warns about a pattern. to_the_end: days that the rule reaches but does not name. wall: the current wall time."""
    if isinstance(pattern, OnDays):
        days = pattern.days if pattern.unmoved is None else pattern.unmoved.series.days
        fields = days.fields if isinstance(days, OfMonths) else None
        if fields and fields.either and english.dates(fields.dates) and english.weekdays(fields.weekdays):
            yield Caution("EITHER_DAY", "day of the month and weekday are both given, and either is enough")
        if fields and pattern.unmoved is None and isinstance(pattern.days, OfMonths):
            yield from _missing_days(fields.dates, pattern.days.months, never_only=fields.either)
        elif isinstance(pattern.days, OfMonths):
            named = [*_missing_days(_fixed_days(pattern.days) & ~to_the_end, pattern.days.visited())]
            named += _missing_days(_days_from_end(pattern.days), pattern.days.visited(), "-to-last day")
            yield from named or _empty_months(pattern.days, wall)
        yield from _uneven(pattern.clock)


def _fixed_days(days: OfMonths) -> int:
    """Returns the dates of each month of the set that is long enough, without last days and weekdays."""
    longest = days.table[-7:]
    if any(mask != longest[0] for mask in longest) or any(mask & ~longest[0] for mask in days.table):
        return 0  # it depends on the weekday, or shorter months have another day instead
    return longest[0]


def _days_from_end(days: OfMonths) -> int:
    """Returns the days that each month of the set has counted from its end, if long enough: bit 1 is the last day."""
    tables = [days.table[7 * kind : 7 * kind + 7] for kind in range(4)]
    counted = sum(1 << 32 - day for day in bits(tables[3][0]))
    for length, masks in enumerate(tables, 28):
        here = sum(1 << length + 1 - number for number in bits(counted) if number <= length)
        if any(mask != here for mask in masks):
            return 0
    return counted


def _to_the_end(timing: Timing) -> int:
    """Returns all but the first day of ranges that go to the end of the month (sapCron 29:-1)."""
    if timing.notation != "sapCron":
        return 0
    spans = sap_cron.parse(json.loads(timing.packed)["sapCron"]).dates
    named = {span.first for span in spans}
    open_spans = [range(span.first, 32) for span in spans if span.first > 0 and span.last == -1]
    return sum(1 << day for day in {day for days in open_spans for day in days} - named)


def _empty_months(days: OfMonths, wall: int) -> Iterator[Caution]:
    """Warns if some of its next 12 months lack a day that depends on the weekday, such as the fifth Friday."""
    on = EPOCH + timedelta(seconds=wall)
    months = ((on.year * 12 + on.month - 1 + n) for n in range(12 * _MOST_YEARS))
    chosen = ((month // 12, month % 12 + 1) for month in months if month // 12 < LAST_YEAR)
    visited = [each for each in chosen if days.has_month(*each)][:12]
    empty = [1 for year, month in visited if not days.days_of(year, month)]
    if empty:
        text = f"{len(empty)} of the next {len(visited)} of its months have no such day"
        yield Caution("SOME_MONTHS_LACK_THE_DAY", text)


def _missing_days(days: int, months: int, counted: str = "", *, never_only: bool = False) -> Iterator[Caution]:
    """Warns about dates that some months lack. If many days are chosen, the last ones do not matter to the user.

    counted: how days are counted, if not from the first. never_only: only dates that none of the months has.
    """
    if days.bit_count() > _FEW_DAYS:
        return
    chosen = bits(months)
    for day in (29, 30, 31):
        if not days >> day & 1:
            continue
        lacking = [month for month in chosen if LONGEST_MONTHS[month] < day]
        name = (f"{day}st" if day == 31 else f"{day}th") + counted
        if never_only:
            if len(lacking) == len(chosen):
                text = f"{name}: none of its months has one, so only the weekday counts"
                yield Caution("SOME_MONTHS_LACK_THE_DAY", text)
        elif lacking:
            text = "1 month a year has none" if len(lacking) == 1 else f"{len(lacking)} months a year have none"
            yield Caution("SOME_MONTHS_LACK_THE_DAY", f"{name}: {text}")
        elif day == 29 and 2 in chosen:
            yield Caution("LEAP_DAY", f"{name}: February has one in leap years only")


def _uneven(clock: Clock) -> Iterator[Caution]:
    """Warns about steps that do not divide the minute, hour or day: the last one is shorter."""
    for mask, size, unit, circle in (
        (clock.seconds, 60, "seconds", "minute"),
        (clock.minutes, 60, "minutes", "hour"),
        (clock.hours, 24, "hours", "day"),
    ):
        numbers = bits(mask)
        steps = {later - number for number, later in pairwise(numbers)}
        if len(numbers) < 3 or len(steps) != 1:
            continue
        step, last = steps.pop(), numbers[0] + size - numbers[-1]
        if step > 1 and last < step:
            text = f"steps of {step} {unit} do not divide the {circle}: the last of each {circle} is {last}"
            yield Caution("UNEVEN_STEP", text)


class _Ahead(NamedTuple):
    """The occurrences of a schedule in (after, until], as windows and calendars leave them, without jitter.

    most: how many occurrences `count` still allows after `after`; None for all.
    """

    series: Series
    after: int
    until: int
    most: int | None

    def lets(self, second: int) -> bool:
        """Returns whether an occurrence at `second` would still come."""
        if not self.after < second <= self.until:
            return False
        return self.most is None or self.series.count(self.after, second - 1, self.most) < self.most

    def first_marked(self, start: int, jump: int) -> tuple[int, MovedBy] | None:
        """Returns the first occurrence that a time rule decides at a clock change, or a wall time that is left out."""
        after = max(self.after, start + min(0, jump) - 1)
        until = min(self.until, start + abs(jump) - 1)
        for marked in self.series.dropped(after, until):
            if marked[1].zone is None:
                return marked
        for second in islice(self.series.seconds(after, until), _MOST_LOOKED_AT):
            moved_by = self.series.moved_by(second)
            if moved_by is not None and moved_by.zone is None and moved_by.rule in {"dstGap", "dstOverlap"}:
                return second, moved_by
        return None


def _of_changes(clock: OnWallClock, ahead: _Ahead) -> Iterator[Caution]:
    """Warns about each clock change that moves, doubles or leaves out a coming occurrence."""
    zone = clock.zone
    if not clock.marked:
        return
    for piece in range(zone.piece(ahead.after - DAY_S) + 1, zone.piece(ahead.until + DAY_S) + 1):  # none jumps by more
        start, jump = zone.starts[piece], zone.jump(piece)
        marked = ahead.first_marked(start, jump)
        if marked is None or not ahead.lets(marked[0]):
            continue
        second, moved_by = marked
        if jump > 0:
            shifted = wall_text(second + zone.offsets[piece - 1]) == moved_by.local_time
            gap = Gap.SKIP if moved_by.effect == "skipped" else clock.gap if shifted else Gap.NEXT_VALID
            what = "does not run" if moved_by.effect == "skipped" else f"runs at {instant_text(second)}"
            text = f"the clock in {zone.name} jumps over {moved_by.local_time}: it {what} (dstGap {gap})"
        else:
            again = second - jump
            both = second < start and ahead.series.until(again) == again and ahead.lets(again)
            when = "both times" if both else "the first time" if second < start else "the second time"
            text = f"the clock in {zone.name} reads {moved_by.local_time} twice: it runs {when}"
        yield Caution("CLOCK_CHANGE", text)


def _of_elapsed_days(timing: Timing, step_s: int, ahead: _Ahead) -> Iterator[Caution]:
    """Warns about the first clock change that moves steps of whole days to another time of day."""
    zone, first = timing.zone, ahead.series.after(ahead.after)
    if first is None:
        return
    before = zone.wall(first) % DAY_S
    for piece in range(zone.piece(first) + 1, zone.piece(ahead.until) + 1):
        moved = ahead.series.after(zone.starts[piece] - 1)
        if moved is None or not ahead.lets(moved) or zone.wall(moved) % DAY_S == before:
            continue
        text = (
            f"its days are 24 hours of elapsed time: from {instant_text(moved)} on, the clock in {zone.name} reads "
            f"{wall_text(zone.wall(moved))[11:]} instead of {wall_text(before)[11:]}"
        )
        facts = json.loads(timing.packed).get("every", {})
        if facts.get("align") == "start" and "until" not in facts:
            recurrence = json.dumps({"frequency": "day", "interval": step_s // DAY_S})
            text += f'; to keep the time of day, write "recurrence": {recurrence}'
        yield Caution("CLOCK_CHANGE", text)
        return


_FROM = re.compile(r"from [0-9]{4}-")

_IN_GAP = {
    Gap.SKIP: "does not run",
    Gap.NEXT_VALID: "runs at the first instant after it",
    Gap.SHIFT: "runs later by as much as the clock jumps",
}

_TWICE = {Overlap.FIRST: "runs the first time", Overlap.SECOND: "runs the second time", Overlap.BOTH: "runs both times"}


def describe(timing: Timing, after: datetime) -> str:
    """Describes a timing: its summary, with everything that limits or changes it after an instant.

    "At 02:30, Europe/Berlin, until 2027-12-31T00:00:00Z. A time that a clock change skips runs at the first ..."
    """
    facts = json.loads(timing.packed)
    parts = [timing.summary[:1].upper() + timing.summary[1:]]
    begins = [facts["first"]] if "first" in facts and not _FROM.search(timing.summary) else []
    begins += _own_beginning(facts)
    if begins:
        parts.append(f"from {instant_text(max(begins))}")
    if "last" in facts:
        parts.append(f"until {instant_text(facts['last'])}")
    if timing.count is not None:
        parts.append("at most once" if timing.count == 1 else f"at most {timing.count:,} times")
    if timing.jitter_s:
        parts.append(f"each delayed by up to {timing.jitter_s:,} s")
    sentences = [", ".join(parts)]
    clock = on_clock(timing.rule)
    if clock is not None and _bent(clock, to_second(after)):
        gap, twice = _IN_GAP[clock.gap], _TWICE[clock.overlap]
        sentences.append(f"A time that a clock change skips {gap}; a repeated time {twice}")
    return ". ".join(sentences) + "."


def _bent(clock: OnWallClock, after: int) -> bool:
    """Returns whether a coming clock change touches one of its times; for a single instant, whether any does."""
    if isinstance(clock.pattern, Once):
        return len(clock.zone.instants(clock.pattern.second)) != 1
    zone = clock.zone
    return clock.marked and any(
        _touched(clock, zone.starts[piece] + zone.offsets[piece - 1], zone.jump(piece))
        for piece in range(zone.piece(after) + 1, len(zone.starts))
    )


def _touched(clock: OnWallClock, wall: int, jump: int) -> bool:
    """Returns whether a time of the pattern lies where the clock jumps by `jump` seconds from `wall`."""
    begin, end = sorted((wall, wall + jump))
    instant = clock.pattern.after(begin - 1)
    return instant is not None and instant < end


def _own_beginning(facts: dict[str, Any]) -> list[int]:
    """Returns DTSTART of a rule or, without one and if its interval is longer than one, the creation."""
    rule = facts.get("rrule", {})
    if "now" in rule:
        return [int(rule["now"])] if "INTERVAL=" in rule.get("rule", "") else []
    return [int(rule["first"])] if "first" in rule else []
