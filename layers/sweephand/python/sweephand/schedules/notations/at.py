"""`at`: one instant, RFC 3339. Without an offset it is wall time, and the zone's own changes are taken into account."""

from __future__ import annotations

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.grids.wallclock import OnWallClock
from sweephand.schedules.notations.shapes import Beginning, Compiled, Defaults, Facts, Rules, check_no_overflow
from sweephand.schedules.rule import Once
from sweephand.schedules.text import instants
from sweephand.schedules.zones.localtime import Gap, Overlap, instant_text, wall_text

FIELD = "at"
DEFAULTS: Defaults = {}
"""There are no defaults: a wall time in a gap or an overlap is refused unless the caller states a rule."""
SCHEMA = {**instants.SCHEMA, "description": f"Once, at this instant. {instants.SCHEMA['description']}"}


def read(value: object, rules: Rules, beginning: Beginning) -> Facts:  # noqa: ARG001 - an instant needs no anchor
    """Returns {"second"} for a string with an offset, {"wall"} for one without.

    A wall time in a gap or an overlap is refused with both instants named, unless the caller states the rule for it.
    """
    return facts_of(instants.read(value, FIELD), FIELD, rules)


def facts_of(written: instants.Written, field: str, rules: Rules) -> Facts:
    """Returns the facts of an instant that was read from any grammar."""
    check_no_overflow(rules, "it is one instant")
    second = instants.resolve(written, field, rules.zone, rules.gap, rules.overlap)
    if written.second is not None:
        return {"second": second}
    both = rules.zone.instants(written.wall)
    if rules.overlap is Overlap.BOTH and len(both) > 1:
        first, again = (instant_text(copy) for copy in (both[0], both[-1]))
        raise InvalidRequest(field, f"is one instant, but dstOverlap asks for both {first} and {again}", position=0)
    return {"wall": written.wall}


def is_one_time(value: object) -> bool:  # noqa: ARG001 - every value is one instant
    return True


def compile_(facts: Facts, rules: Rules) -> Compiled:
    if "second" in facts:
        second = int(facts["second"])
        return Compiled(Once(second), lambda: f"once at {instant_text(second)}", recurring=False)
    wall = int(facts["wall"])
    overlap = Overlap.SECOND if rules.overlap is Overlap.SECOND else Overlap.FIRST
    series = OnWallClock(Once(wall), rules.zone, rules.gap or Gap.NEXT_VALID, overlap)
    return Compiled(series, lambda: f"once at {wall_text(wall)}, {rules.zone.name}", recurring=False)
