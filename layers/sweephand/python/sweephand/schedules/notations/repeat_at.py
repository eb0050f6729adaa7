"""`repeatAt`: daily at a time of day: "4.40pm", "18.40", "17.20:30", or a date whose time counts."""

from __future__ import annotations

from sweephand.base import json_schema
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.schedules.grids.clock import DAY_S, Clock
from sweephand.schedules.grids.days import EachNth, OnDays
from sweephand.schedules.grids.wallclock import OnWallClock, certain_gap
from sweephand.schedules.notations.shapes import ON_THE_CLOCK, Beginning, Compiled, Facts, Rules, check_no_overflow
from sweephand.schedules.text import english
from sweephand.schedules.zones.localtime import Gap, Overlap

with lazy():
    from sweephand.schedules.text import iso_dates, relative_dates

FIELD = "repeatAt"
EXPECTED = "a time of day such as 4.40pm, 18:40 or 17.20:30, or a date of ISO 8601 or RFC 2822"
DEFAULTS = ON_THE_CLOCK
SCHEMA = json_schema.text(
    1, fields.LONGEST_WORDS, description="Daily at a time, such as `4.40pm`, `18.40` or `17.20:30`."
)


def read(value: object, rules: Rules, beginning: Beginning) -> Facts:  # noqa: ARG001 - every day has its time
    """Returns wall seconds since midnight. Raises InvalidRequest for a value that is neither a time nor a date."""
    check_no_overflow(rules, "it runs each day")
    text = fields.notation(value, FIELD, EXPECTED, longest=fields.LONGEST_WORDS)
    if iso_dates.looks_like_one(text):
        written = iso_dates.read(text, FIELD)
        return (written.wall if written.second is None else rules.zone.wall(written.second)) % DAY_S
    lead = len(text) - len(text.lstrip())
    time = relative_dates.time_at(text, lead, FIELD)
    if time is None or text[time.end :].strip():
        raise fields.must_be(FIELD, EXPECTED, text, position=lead if time is None else time.end)
    return time.second


def compile_(facts: Facts, rules: Rules) -> Compiled:
    if isinstance(facts, bool) or not isinstance(facts, int) or not 0 <= facts < DAY_S:
        raise ValueError(facts)
    clock = Clock(1 << facts // 3600, 1 << facts // 60 % 60, 1 << facts % 60)
    series = OnWallClock(
        OnDays(EachNth(), clock), rules.zone, rules.gap or Gap.NEXT_VALID, rules.overlap or Overlap.FIRST
    )
    return Compiled(
        series,
        summary=lambda: english.in_zone(rules.zone.name, english.clock_times(clock)),
        interval=lambda on_clock: certain_gap(series, DAY_S, clock.first, on_clock=on_clock),
    )
