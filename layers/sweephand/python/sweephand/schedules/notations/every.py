"""`every`: equal steps, of elapsed time (seconds to weeks; a day is 24 hours) or of calendar months and years.

align sets where the grid of the steps lies (decision 0011):
  start         on startTime, which is itself an occurrence; without one, on the moment of creation plus one step
  actual_start  like start; the sweeper continues from the instant at which a late occurrence really began
  epoch         on 1970-01-01T00:00:00Z
  clock         on the wall clock of `timezone`: steps that divide a day lie on the multiples of the step since local
                midnight (2 hours: 00:00, 02:00, ...), months on the first of the month at 00:00; no other steps
A repeating interval of ISO 8601 (repeating.py) has its own start.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from functools import partial

from sweephand.base import json_schema
from sweephand.base.errors import InvalidRequest
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.schedules.grids.wallclock import OnWallClock, certain_gap
from sweephand.schedules.notations.shapes import ON_THE_CLOCK, Beginning, Compiled, Defaults, Facts, Rules
from sweephand.schedules.rule import Series, Steps, Window
from sweephand.schedules.text import duration
from sweephand.schedules.zones.localtime import (
    EPOCH,
    FIRST_SECOND,
    LAST_SECOND,
    Gap,
    MonthOverflow,
    Overlap,
    Zone,
    instant_text,
    wall_text,
    zone,
)

with lazy():
    from sweephand.schedules.grids import clock, months, sets
    from sweephand.schedules.notations import repeating
    from sweephand.schedules.text import english

FIELD = "every"
DEFAULTS: Defaults = {"align": "start", **ON_THE_CLOCK, "monthOverflow": "clamp"}
SCHEMA = json_schema.text(
    1,
    fields.LONGEST_TEXT,
    description="Equal steps, such as `5m`, `PT10S`, `10 seconds`, `P1M` or `R5/2027-01-01T00:00Z/PT1H`; "
    "up to 36,500 days or 1,200 months.",
)
LONGEST_DAYS, LONGEST_MONTHS = 36_500, 1_200
"""A hundred years, as SAP counts them (365 days) and as the calendar does."""
_DAY_S = 86_400
_UNITS = (("day", _DAY_S), ("hour", 3600), ("minute", 60), ("second", 1))
_MOST_OF_A_UNIT = 1_000
"""Up to this number, hours, minutes and seconds are not converted to larger units: 90 minutes, 600 seconds."""
_UTC = "UTC"


class Align(StrEnum):
    START = "start"
    CLOCK = "clock"
    EPOCH = "epoch"
    ACTUAL_START = "actual_start"


def read(value: object, rules: Rules, beginning: Beginning) -> Facts:
    """Returns {"seconds" or "months", "align"}, with "anchor" if the grid lies on a start, "earliest" for a fresh one.

    A repeating interval also has "until", its last second.
    """
    align = Align.START if beginning.align is None else fields.chosen(beginning.align, "align", Align)
    if isinstance(value, str) and (value[:1] == "R" or ("/" in value and " " not in value)):  # not a cron string
        if align is not Align.START:
            raise InvalidRequest("align", "cannot be combined with a repeating interval, which has its own start")
        return _read_repeating(value, rules, beginning)
    return _read_step(duration.read(value, FIELD), align, rules, beginning)


def _read_repeating(value: str, rules: Rules, beginning: Beginning) -> Facts:
    interval = repeating.read(fields.notation(value, FIELD, repeating.EXPECTED), FIELD, rules)
    own = beginning if interval.at is None else Beginning(beginning.now, interval.at, beginning.align, interval.unread)
    try:
        facts = _read_step(interval.step, Align.START, rules, own)
    except InvalidRequest as refused:
        raise refused.changed(position=interval.step_at) from refused
    series = compile_(facts, rules)
    if interval.at is None or not interval.backwards:
        begun = series.earliest if interval.at is None else interval.at
        last = None if interval.times is None else sets.nth_after(series.series, begun - 1, interval.times, LAST_SECOND)
        return {**facts, "earliest": begun, **({} if last is None else {"until": last})}
    begun = _steps_back(series.series, interval.at, interval.times) if interval.times else FIRST_SECOND
    return {**facts, "earliest": begun, "until": interval.at - 1}


def _steps_back(series: Series, end: int, times: int) -> int:
    """Returns the occurrence `times` steps before `end`, itself a step, or the first since 1970 if that is later."""
    if isinstance(series, Steps):
        return end - min(times, (end - FIRST_SECOND) // series.step_s) * series.step_s
    begun = end
    for _ in range(times):
        earlier = series.until(begun - 1)
        if earlier is None or earlier < FIRST_SECOND:
            break
        begun = earlier
    return begun


def _read_step(step: duration.Duration, align: Align, rules: Rules, beginning: Beginning) -> Facts:
    if step.months:
        return _read_months(step, align, rules.zone, beginning)
    if not 1 <= step.seconds <= LONGEST_DAYS * _DAY_S:
        raise InvalidRequest(
            FIELD, f"must be 1 second to {LONGEST_DAYS:,} days, not {step.seconds:,} seconds", position=0
        )
    if align is Align.CLOCK and _DAY_S % step.seconds:
        reason = f"clock has no effect on {_words(step.seconds)}, which does not divide a day; write epoch or start"
        raise InvalidRequest("align", reason)
    facts: dict[str, int | str] = {"seconds": step.seconds, "align": align.value}
    if align in (Align.START, Align.ACTUAL_START):
        facts["anchor"] = beginning.now + step.seconds if beginning.start is None else beginning.start
    return facts


def _read_months(step: duration.Duration, align: Align, where: Zone, beginning: Beginning) -> Facts:
    if step.seconds:
        raise InvalidRequest(FIELD, "months and years cannot be mixed with weeks, days or times", position=0)
    if step.months > LONGEST_MONTHS:
        raise InvalidRequest(FIELD, f"must be 1 to {LONGEST_MONTHS:,} months, not {step.months:,}", position=0)
    if align is Align.ACTUAL_START:
        raise InvalidRequest("align", "actual_start needs a step of fixed length, not of months", position=0)
    facts: dict[str, int | str] = {"months": step.months, "align": align.value}
    if align is Align.START:
        facts["anchor"] = beginning.wall(where)
        if beginning.start is None:
            facts["earliest"] = beginning.now + 1
    return facts


def counted_from(facts: Facts) -> int | None:
    """Returns the `now` of a grid on its start. Without startTime, the grid began one step before its anchor."""
    if not isinstance(facts, dict) or "anchor" not in facts:
        return None
    if "months" in facts:  # its anchor is a wall time
        return int(facts["earliest"]) - 1 if "earliest" in facts else None
    return int(facts["anchor"]) - int(facts["seconds"])


def reads_clock(facts: Facts) -> bool:
    """Returns whether an anchor or limit is a wall time, as those of months and of repeating intervals may be."""
    return "earliest" in facts or ("months" in facts and "anchor" in facts)


def read_again(_: Facts, kept: object, rules: Rules, beginning: Beginning) -> Facts:
    """Returns the facts by the loaded zone data. Nothing is refused that needs a rule only with these data."""
    chosen = Rules(rules.zone, rules.gap or Gap.NEXT_VALID, rules.overlap or Overlap.FIRST, rules.month_overflow)
    return read(kept, chosen, beginning)


def compile_(facts: Facts, rules: Rules) -> Compiled:
    compiled = _compile(facts, rules)
    if "until" not in facts:
        return compiled
    window = Window(compiled.series, compiled.earliest, int(facts["until"]))
    summary = partial(_bounded_words, compiled, window)
    return Compiled(window, summary, compiled.interval, compiled.recurring, compiled.earliest)


def _bounded_words(compiled: Compiled, window: Window) -> str:
    ends = (window.after(window.first - 1), window.until(window.last))
    first, last = ("never" if end is None else instant_text(end) for end in ends)
    step, _, rest = compiled.summary().partition(" from ")
    return f"{step} from {first} until {last}{''.join(rest.partition('; ')[1:])}"


def _compile(facts: Facts, rules: Rules) -> Compiled:
    align = Align(facts["align"])
    if "months" in facts:
        return _compile_months(int(facts["months"]), align, facts, rules)
    step_s = int(facts["seconds"])
    if align is Align.CLOCK and _DAY_S % step_s == 0:
        series = on_the_clock(step_s, rules.zone)
        summary = partial("{} by the clock, {}".format, _words(step_s), rules.zone.name)
        return Compiled(series, summary, interval=lambda on_clock: certain_gap(series, step_s, on_clock=on_clock))
    if align in (Align.CLOCK, Align.EPOCH):
        return Compiled(
            Steps(0, step_s), partial("{} since 1970, UTC".format, _words(step_s)), interval=lambda _: step_s
        )
    anchor = int(facts["anchor"])
    late = ", counted from each actual start" if align is Align.ACTUAL_START else ""
    if not late and step_s % _DAY_S == 0 and rules.zone.piece(anchor) + 1 < len(rules.zone.starts):
        late = f", in elapsed time, not by the clock of {rules.zone.name}"
    return Compiled(
        Steps(anchor, step_s),
        lambda: f"{_words(step_s)} from {instant_text(anchor)}{late}",
        earliest=int(facts.get("earliest", anchor)),
        interval=lambda _: step_s,
        actual_start_interval_s=step_s if align is Align.ACTUAL_START else None,
    )


def on_the_clock(step_s: int, where: Zone) -> OnWallClock:
    """Returns the multiples of a step since local midnight. No clock change loses or doubles one, whatever the rules.

    For steps of up to an hour, each reading of the clock counts, even the second one of an overlap. A longer step has
    each of its wall times once: a time in a gap at the first instant after it, one that comes twice the first time.
    """
    if step_s <= 3600:
        return OnWallClock(Steps(0, step_s), where, Gap.SKIP, Overlap.BOTH, marked=False)
    return OnWallClock(Steps(0, step_s), where, Gap.NEXT_VALID, Overlap.FIRST)


def _compile_months(step: int, align: Align, facts: Facts, rules: Rules) -> Compiled:
    where = zone(_UTC) if align is Align.EPOCH else rules.zone
    anchor = int(facts["anchor"]) if align is Align.START else 0
    overflow = rules.month_overflow or MonthOverflow.CLAMP
    day, time = divmod(anchor, _DAY_S)
    made, dates = months.of_months(step, day), 1 << (EPOCH + timedelta(days=day)).day
    pattern = months.on_dates(made, dates, 0, clock.Clock.at(time), overflow)
    series = OnWallClock(pattern, where, rules.gap or Gap.NEXT_VALID, rules.overlap or Overlap.FIRST)

    def summary() -> str:
        lacking = english.lacking(dates, made(()).visited(), overflow)
        return f"{_months_words(step)} from {wall_text(anchor)}, {where.name}{lacking}"

    return Compiled(
        series,
        summary,
        earliest=int(facts.get("earliest", 0)),
        # Elapsed: a day for a second change on the way.
        interval=lambda on_clock: certain_gap(series, (step * 28 - (not on_clock)) * _DAY_S, on_clock=on_clock),
    )


def _words(step_s: int) -> str:
    for unit, size in (("week", 604_800), *_UNITS):
        if step_s % size == 0 and (step_s < size * _MOST_OF_A_UNIT or size == _DAY_S):
            number = step_s // size
            return f"every {unit}" if number == 1 else f"every {number:,} {unit}s"
    parts = []
    for unit, size in _UNITS:
        number, step_s = divmod(step_s, size)
        if number:
            parts.append(f"{number:,} {unit}" if number == 1 else f"{number:,} {unit}s")
    return f"every {english.listed(parts)}"


def _months_words(step: int) -> str:
    number, unit = (step // 12, "year") if step % 12 == 0 else (step, "month")
    return f"every {unit}" if number == 1 else f"every {number} {unit}s"
