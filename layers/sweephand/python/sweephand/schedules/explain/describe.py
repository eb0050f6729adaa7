"""A schedule in plain English: what it does, its window, how often at most, and what clock changes do to it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from sweephand.schedules.explain.explain_instant import on_clock
from sweephand.schedules.rule import Once
from sweephand.schedules.zones.localtime import Gap, Overlap, instant_text, to_second

if TYPE_CHECKING:
    from datetime import datetime

    from sweephand.schedules.grids.wallclock import OnWallClock
    from sweephand.schedules.timing import Timing

_FROM = re.compile(r"from [0-9]{4}-")
_IN_GAP = {
    Gap.SKIP: "does not run",
    Gap.NEXT_VALID: "runs at the first instant after it",
    Gap.SHIFT: "runs later by as much as the clock jumps",
}
_TWICE = {Overlap.FIRST: "runs the first time", Overlap.SECOND: "runs the second time", Overlap.BOTH: "runs both times"}


def describe(timing: Timing, after: datetime) -> str:
    """Describes a timing: its summary, with everything that limits or changes it after an instant.

    "At 02:30, Europe/Berlin, until 2027-12-31T00:00:00Z. A time that the clock jumps over runs at the first ..."
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
        sentences.append(f"A time that the clock jumps over {gap}; one that it reads twice {twice}")
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
    found = clock.pattern.after(begin - 1)
    return found is not None and found < end


def _own_beginning(facts: dict[str, Any]) -> list[int]:
    """Returns DTSTART of a rule; without one, the creation, if its interval is longer than one."""
    rule = facts.get("rrule", {})
    if "now" in rule:
        return [int(rule["now"])] if "INTERVAL=" in rule.get("rule", "") else []
    return [int(rule["first"])] if "first" in rule else []
