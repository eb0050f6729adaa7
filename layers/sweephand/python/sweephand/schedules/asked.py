"""Keeps the members of a schedule whose meaning depends on zone data, and reads them again with newer data.

A startTime, endTime, anchor, exclusion or addition without an offset is a wall time. The facts of a schedule hold the
instants that it meant when it was read. If other data are loaded now, these facts are computed again from the members.
What has an offset means the same instant with all data. (Decision 0212.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.records import dataclass
from sweephand.schedules import notations
from sweephand.schedules.notations.shapes import Beginning, Rules
from sweephand.schedules.rule import limited
from sweephand.schedules.text import instants
from sweephand.schedules.text.instants import Written
from sweephand.schedules.zones import localtime
from sweephand.schedules.zones.localtime import FIRST_SECOND, LAST_SECOND, Gap, Overlap, wall_of, wall_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sweephand.schedules.notations.shapes import Facts

_UTC = "UTC"
_FOLLOWS_STARTS = "actual_start"


@dataclass(frozen=True)
class Limits:
    """The limits of a schedule as written. opens, closes: the window of its job, in Unix seconds."""

    start: Written | None
    end: Written | None
    opens: int | None
    closes: int | None

    @property
    def read_clocks(self) -> bool:
        """Returns whether one of them is a wall time."""
        return any(each is not None and each.second is None for each in (self.start, self.end))

    def resolved(self, rules: Rules, *, strict: bool) -> tuple[int | None, int | None]:
        """Returns startTime and endTime in Unix seconds. With `both`, the window is the wider one.

        strict: refuses a wall time that needs a rule for a clock change which the caller does not state. Otherwise the
        next valid instant is taken, or the wider window. Raises InvalidRequest.
        """
        gap = Gap.NEXT_VALID if rules.gap is Gap.SKIP or not (strict or rules.gap) else rules.gap
        seconds = []
        for name, written, widest in (("startTime", self.start, Overlap.FIRST), ("endTime", self.end, Overlap.SECOND)):
            overlap = widest if rules.overlap is Overlap.BOTH or not (strict or rules.overlap) else rules.overlap
            seconds.append(None if written is None else instants.resolve(written, name, rules.zone, gap, overlap))
        return seconds[0], seconds[1]

    def window(self, start: int | None, end: int | None) -> tuple[int, int]:
        """Returns the first and the last second. start, end: as resolved."""
        first = max(limit for limit in (start, self.opens, FIRST_SECOND) if limit is not None)
        return first, min(limit for limit in (end, self.closes, LAST_SECOND) if limit is not None)

    def beginning(self, start: int | None, rules: Rules, now: int, align: object) -> Beginning:
        """Returns what a series may take its anchor from. start: as resolved."""
        begins = self.opens if start is None else start
        if align == _FOLLOWS_STARTS and begins is not None and self.opens is not None:
            begins = max(begins, self.opens)  # it has no grid before its first run, which is where both windows open
        return Beginning(now, begins, align, None if self.start is None else self.start.unread(rules.zone))


def packed(notation: str, facts: Facts, member: object, limits: Limits, rules: Rules) -> dict[str, Any]:
    """Returns what must be kept to read a schedule again, with the version of the data; nothing if it reads no clock.

    member: the value of its notation.
    """
    zone = rules.zone.name
    if zone == _UTC and not (notation == "rrule" and "TZID=" in str(member).upper()):
        return {}
    if not (limits.read_clocks or notations.reads_clock(notation, facts)):
        return {}
    kept: dict[str, Any] = {"data": localtime.IANA_VERSION, "start": _kept(limits.start)}
    if notations.is_anchored(notation):
        kept["value"] = notations.kept(notation, member)
    if limits.read_clocks:
        kept |= {"end": _kept(limits.end), "opens": limits.opens, "closes": limits.closes}
    elif limits.start is None:
        kept["start"] = limits.opens
    return {"zone": zone, "asked": {name: each for name, each in kept.items() if each is not None}}


def renewed(stored: Mapping[str, Any], notation: str, rules: Rules) -> Mapping[str, Any]:
    """Returns the facts of a packed timing by the loaded data; as they are stored if these data would refuse them."""
    asked, facts = stored["asked"], stored[notation]
    limits = Limits(_written(asked.get("start")), _written(asked.get("end")), asked.get("opens"), asked.get("closes"))
    made = {**stored, "asked": {**asked, "data": localtime.IANA_VERSION}}
    try:
        with limited():
            start, end = limits.resolved(rules, strict=False)
            if notations.is_anchored(notation):
                now = notations.counted_from(notation, facts) or FIRST_SECOND
                beginning = limits.beginning(start, rules, now, facts.get("align") if notation == "every" else None)
                made[notation] = notations.read_again(notation, facts, asked.get("value"), rules, beginning)
            if limits.read_clocks:
                first, last = limits.window(start, end)
                made |= {"first": first} if first > FIRST_SECOND else {}
                made |= {"last": last} if last < LAST_SECOND else {}
    except InvalidRequest:
        return stored
    return made


def _kept(written: Written | None) -> int | str | None:
    """Returns an instant as its second, and a wall time as text."""
    return None if written is None else wall_text(written.wall) if written.second is None else written.second


def _written(kept: int | str | None) -> Written | None:
    if kept is None:
        return None
    return Written(None, wall_of(kept)) if isinstance(kept, str) else Written(kept, kept)
