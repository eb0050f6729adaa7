"""Refuses a stated dstGap or dstOverlap that has no effect on the schedule."""

from __future__ import annotations

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.grids.sets import Also
from sweephand.schedules.grids.wallclock import OnWallClock
from sweephand.schedules.notations import NOTATIONS
from sweephand.schedules.notations.shapes import Rules
from sweephand.schedules.rule import Once, Over, Series
from sweephand.schedules.zones.localtime import Overlap

_LEAVE_OUT = "leave it out: the schedule runs through clock changes, loses nothing and doubles nothing"


def check(notation: str, value: object, rules: Rules, series: Series) -> None:
    """Raises InvalidRequest for a rule without effect. A repeated default is accepted, because responses show it.

    value: the value of the notation. `time` accepts any rule, because its words may name an instant or a wall time. So
    do rules that name single dates (RDATE, repeating intervals).
    """
    if notation == "time" or (notation == "every" and isinstance(value, str) and "/" in value):
        return
    while isinstance(series, Over):
        if isinstance(series, Also):
            return
        series = series.series
    if isinstance(series, OnWallClock) and isinstance(series.pattern, Once):
        return
    usual = NOTATIONS[notation].DEFAULTS
    stated = (("dstGap", rules.gap, usual.get("dstGap")), ("dstOverlap", rules.overlap, Overlap.FIRST))
    for name, rule, own in stated:
        if rule is None or (rule == own and notation != "at"):
            continue
        if not isinstance(series, OnWallClock):
            what = "a time with an offset" if notation == "at" else "steps of elapsed time"
            raise InvalidRequest(name, f"{rule.value} has no effect on {what}; leave it out")
        if not series.marked or rule not in (series.gap, series.overlap):
            raise InvalidRequest(name, f"{rule.value} has no effect on hours that are all or a step; {_LEAVE_OUT}")
