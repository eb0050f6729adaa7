"""When a schedule fires: reads the caller's JSON members into a Timing, packs it for the table, and loads it again.

A schedule is parsed once and loaded at every tick. So `packed` contains everything that `load` needs, and both build
the series with `_build`.
"""

from __future__ import annotations

import json
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import InvalidRequest, never_fires
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.base.records import dataclass
from sweephand.schedules import notations
from sweephand.schedules.grids.wallclock import OnWallClock
from sweephand.schedules.notations import NOTATIONS, as_rfc_3339, zone_named
from sweephand.schedules.notations.shapes import Compiled, Rules
from sweephand.schedules.rule import (
    REASON,
    Jittered,
    Never,
    Once,
    Series,
    Steps,
    Undecided,
    Window,
    limited,
)
from sweephand.schedules.zones import localtime
from sweephand.schedules.zones.localtime import (
    FIRST_SECOND,
    LAST_SECOND,
    Gap,
    MonthOverflow,
    Overlap,
    Zone,
    instant_text,
    to_instant,
    to_second,
    to_second_up,
    zone,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

with lazy():
    from sweephand.schedules import asked, clock_rules
    from sweephand.schedules.calendars import calendar_uses
    from sweephand.schedules.grids import weeks
    from sweephand.schedules.text import instants

_NAMES = frozenset(NOTATIONS)
TIMING_MEMBERS = frozenset(
    {
        *_NAMES,
        "align",
        "timezone",
        "dstGap",
        "dstOverlap",
        "monthOverflow",
        "startTime",
        "endTime",
        "count",
        "jitterSeconds",
        "calendars",
    }
)
"""The JSON members that this module owns."""

_BEATS_START = frozenset({"time"})
"""Notations that ignore startTime: SAP's service runs a one-time schedule at its `time`."""

MOST_COUNT = 2**31 - 1
MOST_JITTER_S = 86_400

_PACKED_MEMBERS = frozenset(
    {*_NAMES, "zone", "gap", "overlap", "month", "first", "last", "count", "jitter", "salt", "cal", "asked"}
)
_UTC = "UTC"
UNREADABLE = "unreadable"
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    InvalidRequest,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors that facts of another version can raise: a missing member, another type, a zone that IANA dropped."""


@dataclass(frozen=True)
class Timing:
    """The timing of a schedule. Window (startTime, endTime inclusive) and jitter are part of `rule`; `count` is not.

    actual_start_interval_s: only with align actual_start: the interval by which the caller advances. has_end: whether
    an endTime limits it, its own or the job's. packed: a JSON string with everything that `load` needs, under 400 bytes
    unless the notation's own value is long. calendars: how it uses each calendar, packed (calendars.Use).
    """

    notation: str
    rule: Series
    recurring: bool
    count: int | None
    jitter_s: int
    actual_start_interval_s: int | None
    has_end: bool
    zone: Zone
    packed: str
    _compiled: Compiled = field(repr=False, compare=False)
    calendars: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Returns a sentence in plain English: "at 02:30 from Monday to Friday, Europe/Berlin"."""
        if not self.calendars:
            return self._compiled.summary()
        which = "its calendar allows" if len(self.calendars) == 1 else f"its {len(self.calendars)} calendars allow"
        return f"{self._compiled.summary()}, as {which}"

    @property
    def once_at(self) -> datetime | None:
        """Returns the planned instant of a one-time schedule, before its jitter; None for any other."""
        planned = self.rule.series if isinstance(self.rule, Jittered) else self.rule
        second = None if self.recurring else planned.until(LAST_SECOND)
        return None if second is None else to_instant(second)

    @property
    def written_at(self) -> datetime | None:
        """Returns the instant that a one-time schedule names, before window, calendars and jitter; None for others."""
        second = None if self.recurring else self._compiled.series.until(LAST_SECOND)
        return None if second is None else to_instant(second)

    @property
    def written_wall(self) -> int | None:
        """Returns the wall time that a one-time schedule names, in seconds; None for an instant and for others."""
        series = self._compiled.series
        once = isinstance(series, OnWallClock) and isinstance(series.pattern, Once)
        return series.pattern.second if once else None  # type: ignore[attr-defined]  # as just asked

    @property
    def ends_at(self) -> datetime:
        """Returns its own end or that of its job, included; without one, the latest possible instant."""
        return to_instant(self.rule.last if isinstance(self.rule, Window | Jittered) else LAST_SECOND)

    @property
    def readable(self) -> bool:
        """Returns False if `load_or_never` could not read the packed string."""
        return self.notation != UNREADABLE

    def check_computable(self, now: datetime) -> None:
        """Raises Undecided if one of the next two occurrences takes too long to find.

        The sweep that sends the first one looks for the second. Later ones are not checked.
        """
        try:
            upcoming = self.rule.next_after(now)
            if upcoming is not None and self.count != 1:
                self.rule.next_after(upcoming)
        except Undecided as hard:
            raise hard.changed(field="calendars" if self.calendars else self.notation) from hard

    @property
    def elapsed_step_s(self) -> int | None:
        """Returns the seconds of a step that no clock change alters; None for times on a clock, and actual starts."""
        series = self._compiled.series
        while isinstance(series, Window):
            series = series.series
        return series.step_s if isinstance(series, Steps) and self.actual_start_interval_s is None else None

    @property
    def interval_s(self) -> int | None:
        """Returns the guaranteed minimum gap between two occurrences, without jitter; None for a single instant.

        Occurrences that roll onto one day may come as close as their times of the day.
        """
        return self._interval_s(on_clock=False)

    @property
    def clock_interval_s(self) -> int | None:
        """Returns the same on the clock of its zone, on which each day has 24 hours; for elapsed steps, no other."""
        return self._interval_s(on_clock=True)

    def _interval_s(self, *, on_clock: bool) -> int | None:
        if self._compiled.interval is None:
            return None
        interval_s = self._compiled.interval(on_clock)
        if all(text[1] == "-" for text in self.calendars):
            return interval_s
        return min(interval_s, weeks.rolled_gap_s(self._compiled.series, self.zone, on_clock=on_clock))


def parse(
    members: Mapping[str, object],
    *,
    now: datetime,
    job_start: datetime | None = None,
    job_end: datetime | None = None,
    salt: str = "",
    book: Mapping[str, str] | None = None,
    may_be_over: bool = False,
    may_be_empty: bool = False,
) -> Timing:
    """Returns the timing that a caller requests. Its occurrences may all be in the past.

    members: the members of TIMING_MEMBERS as in the caller's JSON, of any JSON type. Null counts as absent, and other
    members are ignored. now: the moment of creation, the anchor of `every` without startTime. job_start, job_end: the
    job's own window, which also limits the schedule. salt: the schedule's id; the jitter is a hash of it. book: the
    reference of each calendar that the members name, whose content must be kept (schedules/calendars/calendars.py).
    may_be_over: accepts an end before the first occurrence, but not a rule that never fires. may_be_empty: accepts
    both.

    Raises only InvalidRequest: INVALID_FIELD, or NEVER_FIRES if nothing lies in the window. INVALID_FIELD also refuses
    rules whose first occurrence would take too long to find.
    """
    notation = _notation_of(members)
    try:
        with limited():
            return _parse(members, notation, now, job_start, job_end, salt, book, may_be_over, may_be_empty)
    except Undecided:
        raise InvalidRequest(notation if members.get("calendars") is None else "calendars", REASON) from None


def _parse(
    members: Mapping[str, object],
    notation: str,
    now: datetime,
    job_start: datetime | None,
    job_end: datetime | None,
    salt: str,
    book: Mapping[str, str] | None,
    may_be_over: bool,
    may_be_empty: bool,
) -> Timing:
    rules = Rules(
        zone=_zone_member(members, notation),
        gap=_choice_member(members, "dstGap", Gap),
        overlap=_choice_member(members, "dstOverlap", Overlap),
        month_overflow=_choice_member(members, "monthOverflow", MonthOverflow),
    )
    align = members.get("align")
    if align is not None and notation != "every":
        raise InvalidRequest("align", "has an effect on `every` only; leave it out")
    limits = _limits(members, notation, job_start, job_end)
    start, end = limits.resolved(rules, strict=True)
    if start is not None and end is not None and start > end and not may_be_empty:
        raise InvalidRequest("endTime", "is before startTime")
    if notation in _BEATS_START:
        limits, start = asked.Limits(None, limits.end, None, limits.closes), None
    first, last = limits.window(start, end)
    packed = {
        notation: NOTATIONS[notation].read(
            members[notation], rules, limits.beginning(start, rules, to_second_up(now), align)
        ),
        "zone": None if rules.zone.name == _UTC else rules.zone.name,
        "gap": rules.gap,
        "overlap": rules.overlap,
        "month": rules.month_overflow,
        "first": None if first == FIRST_SECOND else first,
        "last": None if last == LAST_SECOND else last,
        "count": _whole_member(members, "count", 1, MOST_COUNT),
        "jitter": _whole_member(members, "jitterSeconds", 0, MOST_JITTER_S) or None,
    }
    if packed["jitter"]:
        packed["salt"] = salt
    packed |= asked.packed(notation, packed[notation], members[notation], limits, rules)
    timing = _build({short: value for short, value in packed.items() if value is not None})
    if not limits.read_clocks and (rules.gap is not None or rules.overlap is not None):
        clock_rules.check(notation, members[notation], rules, timing.rule)
    if not may_be_empty and timing.rule.after(first - 1) is None and not (may_be_over and _fires_later(timing, first)):
        raise never_fires(notation, _why_never(timing, first, last))
    uses = members.get("calendars")
    return timing if uses is None else _by_calendars(uses, timing, book or {}, first)


def _fires_later(timing: Timing, first: int) -> bool:
    """Returns whether only its end leaves it without an occurrence."""
    endless = {name: value for name, value in json.loads(timing.packed).items() if name != "last"}
    return _build(endless).rule.after(first - 1) is not None


def _by_calendars(uses: object, timing: Timing, book: Mapping[str, str], first: int) -> Timing:
    """Returns the timing after its calendars are applied. Raises InvalidRequest."""
    named = calendar_uses.read(uses)
    packed = calendar_uses.packed(named, book)
    if not packed:
        return timing
    if timing.actual_start_interval_s is not None:
        raise InvalidRequest("calendars", "cannot be combined with align actual_start")
    calendar_uses.check_rolling(named, timing.rule, first)
    timing = _build({**json.loads(timing.packed), "cal": packed})
    if timing.rule.after(first - 1) is None:
        raise never_fires("calendars", "leave it without an occurrence")
    return timing


@lru_cache(maxsize=4096)
def load(packed: str) -> Timing:
    """Loads the timing of a string that `parse` packed.

    Raises only ValueError, if it cannot be read any more, and Unavailable, if a calendar that it names has not been
    read yet.
    """
    try:
        read = json.loads(packed)
        return _build(read, packed)
    except _UNREADABLE as error:
        raise ValueError(
            f"cannot be read as a timing with time-zone data {localtime.IANA_VERSION}: {packed[:200]!r}"
        ) from error


def with_count(timing: Timing, count: int | None) -> Timing:
    """Returns the same timing with another count. count: None for no count."""
    facts = {name: value for name, value in json.loads(timing.packed).items() if name != "count"}
    return _build(facts if count is None else {**facts, "count": count})


def packed_with_calendars(timing: Timing, references: Sequence[str]) -> str:
    """Returns the packed timing with other versions of its calendars, in their order.

    It is not built, because lists ask for each schedule whether it has to follow a change.
    """
    from dataclasses import replace  # noqa: PLC0415 - as above

    from sweephand.schedules.calendars.calendars import Use  # noqa: PLC0415

    uses = [replace(Use.read(text), reference=new) for text, new in zip(timing.calendars, references, strict=True)]
    return json.dumps({**json.loads(timing.packed), "cal": [str(use) for use in uses]}, separators=(",", ":"))


def counted_from(packed: str) -> datetime | None:
    """Returns the `now` that anchors a series without startTime. Parsing again with it keeps the grid."""
    try:
        facts = json.loads(packed)
        (notation,) = facts.keys() & _NAMES
        begun = notations.counted_from(notation, facts[notation])
    except _UNREADABLE:
        return None
    return None if begun is None else to_instant(begun)


def begun_as(timing: Timing, packed: str) -> Timing:
    """Returns a newly parsed interval that follows actual starts, with the first occurrence of the packed series.

    So a running interval keeps its rhythm. Other timings are returned unchanged.
    """
    facts, before = json.loads(timing.packed), json.loads(packed)
    if timing.actual_start_interval_s is None or "anchor" not in before.get("every", {}):
        return timing
    return _build({**facts, "every": {**facts["every"], "anchor": before["every"]["anchor"]}})


def load_or_never(packed: str) -> Timing:
    """Loads as `load` does. An unreadable string gives a timing without occurrences, for responses and changes."""
    try:
        return load(packed)
    except ValueError:
        compiled = Compiled(Never(), lambda: "cannot be read", recurring=True)
        return Timing(UNREADABLE, compiled.series, True, None, 0, None, False, zone(_UTC), packed, compiled)


def _build(packed: Mapping[str, Any], text: str | None = None) -> Timing:
    """Builds a Timing from facts. text: the string that the facts were read from."""
    unknown = packed.keys() - _PACKED_MEMBERS
    if unknown:
        raise ValueError(f"unknown members {sorted(unknown)}")
    (notation,) = packed.keys() & _NAMES
    rules = Rules(
        zone=zone(packed.get("zone", _UTC)),
        gap=Gap(packed["gap"]) if "gap" in packed else None,
        overlap=Overlap(packed["overlap"]) if "overlap" in packed else None,
        month_overflow=MonthOverflow(packed["month"]) if "month" in packed else None,
    )
    if "asked" in packed and packed["asked"]["data"] != localtime.IANA_VERSION:
        packed = asked.renewed(packed, notation, rules)
    compiled = NOTATIONS[notation].compile_(packed[notation], rules)
    first, last = int(packed.get("first", FIRST_SECOND)), int(packed.get("last", LAST_SECOND))
    window = Window(compiled.series, max(first, compiled.earliest), last)
    series: Series = window
    uses = tuple(packed.get("cal", ()))
    if uses:
        from sweephand.schedules.calendars.calendars import applied  # noqa: PLC0415 - for a sweeper that meets one

        series = Window(applied(window, uses, rules.zone), window.first, window.last)
    jitter_s = int(packed.get("jitter", 0))
    if jitter_s:
        series = Jittered(series, jitter_s, str(packed.get("salt", "")), last)
    return Timing(
        notation=notation,
        rule=series,
        recurring=compiled.recurring,
        count=int(packed["count"]) if "count" in packed else None,
        jitter_s=jitter_s,
        actual_start_interval_s=compiled.actual_start_interval_s,
        has_end="last" in packed,
        zone=rules.zone,
        packed=json.dumps(packed, separators=(",", ":")) if text is None else text,
        _compiled=compiled,
        calendars=uses,
    )


def _notation_of(members: Mapping[str, object]) -> str:
    named = [name for name in members.keys() & _NAMES if members[name] is not None]
    if not named:
        first, *others = NOTATIONS
        raise InvalidRequest(first, f'is required, or one of {", ".join(others)}, such as "every": "PT1H"')
    if len(named) > 1:
        named = [name for name in NOTATIONS if name in named]
        raise InvalidRequest(named[1], f"only one of {', '.join(NOTATIONS)} may be given; {named[0]} is given too")
    return named[0]


def _zone_member(members: Mapping[str, object], notation: str) -> Zone:
    text = members.get("timezone")
    if text is None:
        text = zone_named(notation, members[notation])
    if text is None:
        return zone(_UTC)
    return instants.read_zone(text)


def _choice_member(members: Mapping[str, object], name: str, choices: type[fields.Choice]) -> fields.Choice | None:
    value = members.get(name)
    return None if value is None else fields.chosen(value, name, choices)


def _whole_member(members: Mapping[str, object], name: str, least: int, most: int) -> int | None:
    value = members.get(name)
    return None if value is None else fields.whole(value, name, least, most)


def _limits(
    members: Mapping[str, object], notation: str, job_start: datetime | None, job_end: datetime | None
) -> asked.Limits:
    """Returns the limits of a schedule, as written, and of its job."""
    start, end = (
        None if members.get(name) is None else instants.read(as_rfc_3339(notation, members[name]), name)
        for name in ("startTime", "endTime")
    )
    opens = None if job_start is None else to_second_up(job_start)
    return asked.Limits(start, end, opens, None if job_end is None else to_second(job_end))


def _why_never(timing: Timing, first: int, last: int) -> str:
    at = timing.written_at
    if at is not None and first <= last:
        side = f"after the end, {instant_text(last)}" if at > to_instant(last) else f"before {instant_text(first)}"
        return f"{instant_text(to_second(at))} lies {side}"
    if first > last:
        return "no instant is left between startTime and endTime, within the job's own window"
    if first == FIRST_SECOND and last == LAST_SECOND:
        return "has no occurrence in the years 1970 to 2199"
    if first == FIRST_SECOND:
        return f"has no occurrence until {instant_text(last)}"
    if last == LAST_SECOND:
        return f"has no occurrence from {instant_text(first)} on"
    return f"has no occurrence from {instant_text(first)} to {instant_text(last)}"
