"""Instants that newer time-zone data moves. Pure.

A row holds its earliest unsent instant, which was computed with the data of that day. If the rule does not contain it
any more, its wall time comes at another instant now. The row knows the offset that the zone had for it, so the wall
time is known, and no occurrence comes twice or not at all.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from sweephand.domain.schedule import names_zone
from sweephand.schedules.rule import Jittered
from sweephand.schedules.timing import Timing, load_or_never
from sweephand.schedules.zones.localtime import Zone, to_instant, to_second, wall_of, zone

SECOND = timedelta(seconds=1)
FURTHEST = timedelta(days=1)
"""The furthest that new data moves an instant: a country that crosses the date line."""


def offset_of(packed: str, instant: datetime | None) -> int | None:
    """Returns the seconds from a planned instant to the wall time that it stands for; None without a zone or instant.

    This is the offset of the zone, except for an instant that stands for a wall time in a gap.
    """
    if instant is None or not names_zone(packed):
        return None
    try:
        its_zone = zone(json.loads(packed)["zone"])
    except (LookupError, TypeError, ValueError):
        return None
    second = to_second(instant)
    piece = its_zone.piece(second)
    if second - its_zone.starts[piece] < its_zone.jump(piece):
        mark = load_or_never(packed).rule.moved_by(second)
        if mark is not None and (mark.rule, mark.zone) == ("dstGap", None):
            return wall_of(mark.local_time) - second
    return its_zone.offsets[piece]


def is_moved(timing: Timing, instant: datetime) -> bool:
    """Returns whether a planned instant of a zone is not one of its rule. Raises Undecided.

    The first instant of a plan may differ from its rule without having been moved. A chain of actual starts has moved
    only if it would begin too early.
    """
    if not names_zone(timing.packed):
        return False
    if timing.actual_start_interval_s is not None:
        return timing.rule.last_until(instant) is None
    return timing.rule.next_after(instant - SECOND) != instant


def moved_to(timing: Timing, instant: datetime, offset_s: int | None) -> datetime | None:
    """Returns the instant at which the wall time of a moved instant comes now; None if the rule has none.

    offset_s: the offset that the wall time was computed with; None in older rows. Without it, for elapsed steps, and if
    the zone still has it there, the nearest instant is taken: another zone, or the anchor, has moved. Raises Undecided.
    """
    if offset_s is None or timing.elapsed_step_s is not None or offset_s == offset_of(timing.packed, instant):
        return nearest(timing, instant)
    begin = _first_at(timing.zone, to_second(instant) + offset_s)
    if isinstance(timing.rule, Jittered):
        begin = timing.rule.series.until(begin) or begin  # a delay never reaches the next occurrence
    return timing.rule.next_after(to_instant(begin - 1))


def nearest(timing: Timing, instant: datetime) -> datetime | None:
    """Returns the instant of the rule that is nearest, the later one of two; None if none is within a day."""
    neighbours = [timing.rule.last_until(instant), timing.rule.next_after(instant)]
    near = [each for each in neighbours if each is not None and abs(each - instant) <= FURTHEST]
    return min(reversed(near), key=lambda each: abs(each - instant), default=None)


def _first_at(its_zone: Zone, wall: int) -> int:
    """Returns the first second at which the clock reads a wall time; the end of the gap if it never does."""
    return next(iter(its_zone.instants(wall)), None) or its_zone.around_gap(wall)[0]
