"""`rrule`: recurrence rules of RFC 5545, alone, with lines DTSTART, RDATE and EXDATE, or dates alone.

A rule alone begins at the schedule's startTime, else at its creation. COUNT counts instants of the rule before EXDATE
takes any away. The beginning counts only if it matches the rule; without a rule, it is the first of the dates. A date
in UNTIL or EXDATE means its whole day. Unless the schedule states its rules, wall times in a gap are shifted, and those
that come twice run the first time. Steps that fix no hour run through clock changes (decision 0027). A wall time in
EXDATE takes out the instants that the rule gives for it.

Source: RFC 5545, 3.3.10, 3.8.2.4, 3.8.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from sweephand.base import json_schema
from sweephand.base.errors import InvalidRequest
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.schedules.grids.clock import DAY_S
from sweephand.schedules.grids.sets import Also, Without, joined, nth_after
from sweephand.schedules.grids.wallclock import OnWallClock, certain_gap
from sweephand.schedules.notations import rrule_parts
from sweephand.schedules.notations.rrule_parts import DAILY, FIELD, Recur
from sweephand.schedules.notations.rrule_pattern import Pattern, gap_s, pattern
from sweephand.schedules.notations.shapes import (
    ON_THE_CLOCK,
    Beginning,
    Compiled,
    Defaults,
    Facts,
    Rules,
    check_no_overflow,
)
from sweephand.schedules.rule import MovedBy, Never, Series, Undecided, Window
from sweephand.schedules.text.instants import A_ZONE
from sweephand.schedules.zones.localtime import (
    FIRST_SECOND,
    LAST_SECOND,
    Gap,
    Overlap,
    Zone,
    instant_text,
    wall_text,
    zone,
)

with lazy():
    from sweephand.schedules.notations import rrule_words

DEFAULTS: Defaults = {**ON_THE_CLOCK, "dstGap": "shift"}
SCHEMA = json_schema.text(
    1,
    fields.LONGEST_TEXT,
    description="A recurrence rule of RFC 5545, such as `FREQ=WEEKLY;BYDAY=MO,FR`, "
    "or lines with DTSTART, RRULE, RDATE and EXDATE.",
)
EXPECTED = (
    'a rule such as "FREQ=WEEKLY;BYDAY=MO,FR", or lines DTSTART, RRULE, RDATE and EXDATE, with a rule or an RDATE'
)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall time has no zone
_LINE = re.compile(r"[^\r\n]+")
_FOLD = re.compile(r"\r?\n[ \t]")
_DATES = re.compile(r"[ \t]*(?:DTSTART|RDATE|EXDATE)[;:]", re.IGNORECASE)
_QUOTED = re.compile(r'^"([^"]*)"$')
_MARKS = {"moved": "dstGap", "skipped": "dstGap", "doubled": "dstOverlap", "once": "dstOverlap"}
_TIME = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:T([0-9]{2})([0-9]{2})([0-9]{2})(Z?))?", re.ASCII)


class Line(NamedTuple):
    """A line of the text: its name, its TZID if any, its value, and the position of the value."""

    name: str
    zone: Zone | None
    value: str
    at: int


class Stamp(NamedTuple):
    """A date or time as written. day: whether it has no time."""

    wall: int
    utc: bool
    day: bool


def read(value: object, rules: Rules, beginning: Beginning) -> Facts:
    """Returns {"rule", "start", "first"}: the rule in upper case, its beginning in wall seconds and in Unix seconds.

    None of these if there are only dates. If they apply, also "last" (UNTIL, COUNT), "also" and "except" (RDATE,
    EXDATE: seconds, or pairs of first and last), "exceptions" (how many times EXDATE names, if "except" has both copies
    of one), "marked" (dates that a clock change touches, from `_marks`), and "now" if the beginning is the creation.
    """
    check_no_overflow(rules, "RFC 5545 leaves such days out, and BYMONTHDAY=-1 is the last of a month")
    text = fields.notation(value, FIELD, EXPECTED, lines=True)
    folds = [(match.start(), match[0]) for match in _FOLD.finditer(text)]
    try:
        return _read(_lines(_FOLD.sub("", text)), rules, beginning)
    except InvalidRequest as refused:
        if refused.position is None or not folds:
            raise
        position = refused.position
        for start, fold in folds:
            position += len(fold) if start <= position else 0
        raise refused.changed(position=position) from refused


def kept(value: object) -> str | None:
    """Returns the lines with dates, without the rule, which is among the facts."""
    lines = _FOLD.sub("", str(value)).splitlines()
    return "\n".join(line.strip() for line in lines if _DATES.match(line)) or None


def read_again(facts: Facts, dates: object, rules: Rules, beginning: Beginning) -> Facts:
    rule = [f"RRULE:{facts['rule']}"] if "rule" in facts else []
    return _read(_lines("\n".join([*rule, str(dates or "")])), rules, beginning)


def _read(lines: list[Line], rules: Rules, beginning: Beginning) -> Facts:
    rule, begin = _one("RRULE", lines), _one("DTSTART", lines)
    also: set[int] = set()
    for line in lines:
        for stamp in _stamps(line) if line.name == "RDATE" else ():  # for a period, its beginning
            also.update(_instants(stamp, line.zone or rules.zone, rules))
    facts: dict[str, Any] = {}
    clock = rules
    if rule is not None:
        facts, clock = _of_rule(rule, begin, rules, beginning)
    elif begin is not None and also:  # dates alone, of which the beginning is the first
        also.update(_instants(_first_stamp(begin, rules), rules.zone, rules))
    else:
        names = ", ".join(dict.fromkeys(line.name for line in lines))
        reason = f"must have an RRULE, or DTSTART with RDATE; it has only {names}"
        raise InvalidRequest(FIELD, reason, position=0)
    until_at = facts.pop("until_at", None)
    if not also and until_at is not None and facts["last"] < facts["first"]:
        reason = f"UNTIL: lies before the beginning, {instant_text(facts['first'])}"
        raise InvalidRequest(FIELD, reason, position=until_at, code="NEVER_FIRES")
    named = [spans for line in lines if line.name == "EXDATE" for spans in _excluded(line, clock) if spans]
    spans, exceptions = joined([span for each in named for span in each]), len(joined([each[0] for each in named]))
    dates = [line for line in lines if line.name == "RDATE" or (line.name == "DTSTART" and rule is None)]
    facts["also"] = sorted(also) or None
    facts["marked"] = [list(mark) for mark in sorted({mark for line in dates for mark in _marks(line, rules)})] or None
    facts["except"] = [list(span) if span[0] < span[1] else span[0] for span in spans] or None
    facts["exceptions"] = exceptions if exceptions < len(spans) else None
    return {name: fact for name, fact in facts.items() if fact is not None}


def _of_rule(rule: Line, begin: Line | None, rules: Rules, beginning: Beginning) -> tuple[dict[str, Any], Rules]:
    """Returns {"rule", "start", "first"}, sometimes {"last"} and {"now"} (see `read`), and rules for clock changes."""
    recur = rrule_parts.parse(rule.value, rule.at)
    facts = {"rule": rule.value, **_begin(recur, begin, rules, beginning)}
    on_clock = _on_clock(pattern(recur, facts["start"]), rules, facts["start"])
    if recur.until is not None:
        facts["last"] = _until(recur, rules.zone)
        facts["until_at"] = recur.until_at
    elif recur.times is not None:
        facts["last"] = _last_of_count(on_clock, facts["first"], recur.times, rule.at)
    return facts, Rules(rules.zone, on_clock.gap, on_clock.overlap, rules.month_overflow)


def _last_of_count(series: OnWallClock, first: int, times: int, position: int) -> int | None:
    try:
        return nth_after(series, first - 1, times, LAST_SECOND)
    except Undecided:
        reason = f"COUNT={times}: the last occurrence takes too long to compute; write UNTIL instead"
        raise InvalidRequest(FIELD, reason, position=position) from None


def counted_from(facts: Facts) -> int | None:
    return int(facts["now"]) if isinstance(facts, dict) and "now" in facts else None


def reads_clock(facts: Facts) -> bool:  # noqa: ARG001 - each rule begins at a wall time
    return True


def zone_named(value: object) -> str | None:
    """Returns the zone that the rule itself names, UTC if DTSTART ends in Z; None if it names none."""
    try:
        text = fields.notation(value, FIELD, EXPECTED, lines=True)
        begin = _one("DTSTART", _lines(_FOLD.sub("", text)))
    except InvalidRequest:
        return None
    if begin is None:
        return None
    return "UTC" if begin.value.endswith("Z") else None if begin.zone is None else begin.zone.name


def compile_(facts: Facts, rules: Rules) -> Compiled:
    recur = rrule_parts.parse(facts["rule"]) if "rule" in facts else None
    base: OnWallClock | Never = Never()
    series: Series = base
    if recur is not None:
        base = _on_clock(pattern(recur, int(facts["start"])), rules, int(facts["start"]))
        series = Window(base, int(facts["first"]), int(facts.get("last", LAST_SECOND)))
    if "also" in facts or "marked" in facts:
        marks = tuple(
            (second, MovedBy(_MARKS[effect], wall_text(wall), effect, *where))
            for second, wall, effect, *where in facts.get("marked", ())
        )
        series = Also(series, tuple(int(second) for second in facts.get("also", ())), marks)
    if "except" in facts:
        spans = (span if isinstance(span, list) else (span, span) for span in facts["except"])
        series = Without(series, tuple((int(first), int(last)) for first, last in spans))
    return Compiled(
        series,
        summary=lambda: rrule_words.summary(recur, facts, rules.zone.name),
        interval=partial(_interval, base, series),
    )


def _on_clock(made: Pattern, rules: Rules, start: int) -> OnWallClock:
    """Returns the instants of a pattern. Its hours decide how clock changes affect it (decision 0027).

    start: the wall time at which the rule begins.
    """
    if 0 < made.step_s <= 3600:
        return OnWallClock(made.series, rules.zone, Gap.SKIP, Overlap.BOTH, marked=False)
    if made.step_s:
        return OnWallClock(made.series, rules.zone, Gap.SHIFT, Overlap.FIRST, since=start)
    return OnWallClock(made.series, rules.zone, rules.gap or Gap.SHIFT, rules.overlap or Overlap.FIRST, since=start)


def _interval(base: OnWallClock | Never, series: Series, on_clock: bool) -> int:
    shortest = LAST_SECOND if isinstance(base, Never) else certain_gap(base, gap_s(base.pattern), on_clock=on_clock)
    while isinstance(series, Without):
        series = series.series
    if not isinstance(series, Also):
        return shortest
    for second in series.extras:
        before, following = series.until(second - 1), series.after(second)
        shortest = min([shortest, *(abs(second - near) for near in (before, following) if near is not None)])
    return shortest


# ---- Lines -----------------------------------------------------------------------------------------------------------


def _lines(text: str) -> list[Line]:
    """Returns the lines. Raises InvalidRequest for one that does not belong to this notation."""
    return [_line(match[0].rstrip(), match.start()) for match in _LINE.finditer(text) if match[0].strip()]


def _line(text: str, begin: int) -> Line:
    indent = len(text) - len(text.lstrip())
    head, colon, value = text.partition(":")
    if not colon:
        return Line("RRULE", None, text[indent:].upper(), begin + indent)
    name, *parameters = head[indent:].split(";")
    name, blank = name.upper(), len(value) - len(value.lstrip())
    if name not in ("DTSTART", "RRULE", "RDATE", "EXDATE"):
        raise fields.must_be(FIELD, EXPECTED, text, position=begin + indent)
    where, position = None, begin + indent + len(name) + 1
    for parameter in parameters:
        key, _, written = parameter.partition("=")
        setting = _QUOTED.sub(r"\1", written)
        if name != "RRULE" and key.upper() == "TZID":
            where = _known_zone(setting, position + len(key) + 1)
        elif name == "RRULE" or key.upper() != "VALUE" or setting.upper() not in ("DATE", "DATE-TIME", "PERIOD"):
            raise InvalidRequest(FIELD, f"{name}: {fields.shown(parameter)} is not supported here", position=position)
        position += len(parameter) + 1
    return Line(name, where, value[blank:].upper(), begin + len(head) + 1 + blank)


def _known_zone(name: str, position: int) -> Zone:
    try:
        return zone(name)
    except KeyError:
        raise fields.must_be(FIELD, A_ZONE, name, part="TZID", position=position) from None


def _one(name: str, lines: list[Line]) -> Line | None:
    named = [line for line in lines if line.name == name]
    if len(named) > 1:
        raise InvalidRequest(FIELD, f"must have one {name}, not {len(named)}", position=named[1].at)
    return named[0] if named else None


# ---- Dates and times -------------------------------------------------------------------------------------------------


def _begin(recur: Recur, line: Line | None, rules: Rules, beginning: Beginning) -> dict[str, Any]:
    """Returns {"start"}, sometimes {"first"} and {"now"}: see `read`."""
    if line is None:
        if beginning.start is not None:
            fixed = recur.frequency >= DAILY or bool(recur.hours)
            return {"start": beginning.wall(rules.zone, fixed=fixed), "first": beginning.start}
        return {"start": rules.zone.wall(beginning.now), "first": beginning.now + 1, "now": beginning.now}
    stamp = _first_stamp(line, rules)
    copies = rules.zone.instants(stamp.wall)[:: -1 if rules.overlap is Overlap.SECOND else 1]
    first = copies[0] if copies else rules.zone.around_gap(stamp.wall)[0]
    return {"start": stamp.wall, "first": max(FIRST_SECOND, first)}


def _first_stamp(line: Line, rules: Rules) -> Stamp:
    """Returns DTSTART. Raises InvalidRequest if it is in a zone other than the schedule's."""
    stamp = _stamp("DTSTART", line.value, line.at)
    named = "UTC" if stamp.utc else rules.zone.name if line.zone is None else line.zone.name
    if named != rules.zone.name:
        raise InvalidRequest(
            "timezone", f"{rules.zone.name}, but DTSTART of {FIELD} is in {named}; leave one of them out"
        )
    return stamp


def _stamp(name: str, text: str, position: int) -> Stamp:
    match = _TIME.fullmatch(text)
    if match is None:
        wanted = "a date or time such as 20270101 or 20270101T090000Z"
        raise fields.must_be(FIELD, wanted, text, part=name, position=position)
    year, month, day, hour, minute, second = (int(number or 0) for number in match.groups()[:6])
    if not 1970 <= year <= 2199:
        raise fields.must_be(FIELD, "1970 to 2199", year, part=f"the year of {name}", position=position)
    try:
        written = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - a wall time has no zone
    except ValueError:
        raise InvalidRequest(FIELD, f"{name}: the calendar has no {fields.shown(text)}", position=position) from None
    elapsed = written - _EPOCH
    return Stamp(elapsed.days * DAY_S + elapsed.seconds, match[7] == "Z", match[4] is None)


def _until(recur: Recur, where: Zone) -> int:
    """Returns the last second: that of the later copy of a repeated wall time, or of a whole date."""
    stamp = _stamp("UNTIL", recur.until or "", recur.until_at)
    if stamp.utc:
        return stamp.wall
    if stamp.day:
        return _first_of(stamp.wall + DAY_S, where) - 1
    return where.instants(stamp.wall)[-1] if where.instants(stamp.wall) else where.around_gap(stamp.wall)[1]


def _stamps(line: Line) -> Iterator[Stamp]:
    position = line.at
    for text in line.value.split(","):
        yield _stamp(line.name, text.partition("/")[0] if line.name == "RDATE" else text, position)
        position += len(text) + 1


def _instants(stamp: Stamp, where: Zone, rules: Rules) -> Sequence[int]:
    """Returns the instants of a date or time under the schedule's rules for clock changes: none, one or both copies."""
    if stamp.utc:
        return (stamp.wall,)
    copies = where.instants(stamp.wall)
    if len(copies) > 1 and rules.overlap is not Overlap.BOTH:
        return copies[-1:] if rules.overlap is Overlap.SECOND else copies[:1]
    if not copies and rules.gap is not Gap.SKIP:
        return where.around_gap(stamp.wall)[rules.gap is not Gap.NEXT_VALID :][:1]
    return copies


def _marks(line: Line, rules: Rules) -> Iterator[tuple[int, int, str] | tuple[int, int, str, str]]:
    """Yields the instant, the wall second and the effect for each time that a clock change touches.

    If the time is left out, yields the instant of the change. Adds the zone of the line if it is not the schedule's.
    """
    where = line.zone or rules.zone
    other = () if where == rules.zone else (where.name,)
    for stamp in _stamps(line):
        copies = where.instants(stamp.wall)
        if stamp.utc or len(copies) == 1:
            continue
        named = _instants(stamp, where, rules)
        effects = ("", "once", "doubled") if copies else ("skipped", "moved")
        for second in named or where.around_gap(stamp.wall)[:1]:
            yield second, stamp.wall, effects[len(named)], *other


def _excluded(line: Line, rules: Rules) -> Iterator[list[tuple[int, int]]]:
    """Yields the seconds that each date or time of an EXDATE takes out: its whole day, or none, one or both copies."""
    where = line.zone or rules.zone
    for stamp in _stamps(line):
        if stamp.day:
            yield [(_first_of(stamp.wall, where), _first_of(stamp.wall + DAY_S, where) - 1)]
        else:
            yield [(second, second) for second in _instants(stamp, where, rules)]


def _first_of(wall: int, where: Zone) -> int:
    """Returns the first instant at which the clock reads a wall time, or has jumped over it."""
    copies = where.instants(wall)
    return copies[0] if copies else where.around_gap(wall)[0]
