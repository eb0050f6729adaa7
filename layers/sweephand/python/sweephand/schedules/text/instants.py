"""Instants as callers write them: RFC 3339 with an offset, or without one as wall time in a zone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from sweephand.base.errors import InvalidRequest, never_fires
from sweephand.base.members import fields
from sweephand.schedules.zones import localtime
from sweephand.schedules.zones.localtime import (
    FIRST_SECOND,
    IANA_VERSION,
    LAST_SECOND,
    Gap,
    Overlap,
    Zone,
    instant_text,
    to_instant,
    wall_text,
)

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

SCHEMA: Mapping[str, Any] = {
    "type": "string",
    "maxLength": fields.LONGEST_TEXT,
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})?$",
    "description": "RFC 3339, years 1970 to 2199. Without an offset, it is wall time in `timezone`. "
    "Fractions are rounded up.",
}
"""Written out, because every function that starts loads this module."""
A_ZONE = 'an IANA zone such as "Europe/Berlin"'
EXAMPLE = "an RFC 3339 instant such as 2027-01-01T09:00:00Z"
_GRAMMAR = (
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))?"
)
"""Compiled when first used: a sweeper reads no such text."""

_TAIL = r"(?:\.[0-9]+)?[Zz]?"
_SHAPE = "dddd-dd-ddTdd:dd:dd"
_BOUNDS = (
    (0, "year", 1970, 2199),
    (5, "month", 1, 12),
    (11, "hour", 0, 23),
    (14, "minute", 0, 59),
    (17, "second", 0, 59),
)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall time has no zone


class Written(NamedTuple):
    """An instant as read: `second` if it had an offset, else `wall`. Fractions are already rounded up.

    rounded_up: whether there was a fraction. exact: False for words without a time of the day, whose wall time is that
    of the moment at which they were read.
    """

    second: int | None
    wall: int
    rounded_up: bool = False
    exact: bool = True

    def cut_off(self) -> Written:
        """Returns the instant with its fraction cut off instead of rounded up."""
        if not self.rounded_up:
            return self
        return Written(None if self.second is None else self.second - 1, self.wall - 1)

    def unread(self, where: Zone) -> int | None:
        """Returns the wall time if the clock jumps over it."""
        return None if self.second is not None or where.instants(self.wall) else self.wall


def parse_instant(value: object, field: str, zone: ZoneInfo | None = None) -> datetime:
    """Returns the instant of an RFC 3339 string, aware UTC. Fractions of a second are rounded up, never down.

    zone: the zone of a string without an offset; None for UTC. Raises InvalidRequest for any other value, for years
    outside 1970..2199, and for a wall time that `zone` does not have or has twice; names both instants.
    """
    where = localtime.zone("UTC" if zone is None else zone.key)
    return to_instant(resolve(read(value, field), field, where))


def read(value: object, field: str) -> Written:
    """Reads RFC 3339 strictly. The offset may be missing. Raises InvalidRequest."""
    text = fields.notation(value, field, EXAMPLE)
    match = re.fullmatch(_GRAMMAR, text, re.ASCII)
    if match is None:
        raise fields.must_be(field, EXAMPLE, text, position=_first_odd(text))
    for position, name, least, most in _BOUNDS:
        digits = text[position : position + (4 if name == "year" else 2)]
        if not least <= int(digits) <= most:
            raise fields.must_be(field, f"{least} to {most}", digits, part=name, position=position)
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    try:
        written = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - wall time
    except ValueError:
        raise InvalidRequest(field, f"month {year}-{month:02d} has no day {day}", position=8) from None
    elapsed = written - _EPOCH
    wall = elapsed.days * 86_400 + elapsed.seconds + (1 if match[7] and match[7].strip(".0") else 0)
    if match[8] is None:
        return Written(wall if text[-1] in "Zz" else None, wall)
    return Written(wall - _offset(match, field), wall)


def read_zone(value: object, field: str = "timezone") -> Zone:
    """Reads the name of an IANA zone. Raises InvalidRequest."""
    name = fields.notation(value, field, A_ZONE)
    try:
        return localtime.zone(name)
    except KeyError:
        raise fields.must_be(field, f"{A_ZONE} (data {IANA_VERSION})", name, position=0) from None


def resolve(written: Written, field: str, where: Zone, gap: Gap | None = None, overlap: Overlap | None = None) -> int:
    """Returns the second of a written instant.

    gap, overlap: the caller's rules. Without them, ambiguous times are refused. Overlap.BOTH counts as the first.
    Raises InvalidRequest; with the code NEVER_FIRES for a gap with Gap.SKIP.
    """
    second = written.second if written.second is not None else _on_clock(written.wall, field, where, gap, overlap)
    if not FIRST_SECOND <= second <= LAST_SECOND:
        raise InvalidRequest(field, "must be in the years 1970 to 2199 in UTC", position=0)
    return second


def _on_clock(wall: int, field: str, where: Zone, gap: Gap | None, overlap: Overlap | None) -> int:
    instants = where.instants(wall)
    if len(instants) == 1:
        return instants[0]
    if len(instants) > 1:
        if overlap is None:
            raise InvalidRequest(
                field,
                f"the clock in {where.name} reads {wall_text(wall)} twice: at {instant_text(instants[0])} and at "
                f"{instant_text(instants[-1])}; "
                'write one of these instants, "dstOverlap": "first" or "dstOverlap": "second"',
                position=0,
            )
        return instants[-1] if overlap is Overlap.SECOND else instants[0]
    next_valid, shifted = where.around_gap(wall)
    if gap is None:
        raise InvalidRequest(
            field,
            f"the clock in {where.name} never reads {wall_text(wall)}: it is moved forward at "
            f"{instant_text(next_valid)}, and without this change the time would be {instant_text(shifted)}; "
            'write one of these instants, "dstGap": "next_valid" or "dstGap": "shift"',
            position=0,
        )
    if gap is Gap.SKIP:
        raise never_fires(field, f"the clock in {where.name} never reads {wall_text(wall)}, and dstGap is skip")
    return shifted if gap is Gap.SHIFT else next_valid


def _offset(match: re.Match[str], field: str) -> int:
    """Returns seconds east of UTC of `+hh:mm`; RFC 3339 allows up to 23:59."""
    hours, minutes = int(match[9]), int(match[10])
    if hours > 23 or minutes > 59:
        written = f"{match[8]}{match[9]}:{match[10]}"
        raise fields.must_be(field, "at most 23:59", written, part="offset", position=match.start(8))
    return (-1 if match[8] == "-" else 1) * (hours * 3600 + minutes * 60)


def _first_odd(text: str) -> int:
    """Returns the position of the first character that does not fit."""
    for position, (expected, character) in enumerate(zip(_SHAPE, text, strict=False)):
        if character not in ("0123456789" if expected == "d" else "Tt" if expected == "T" else expected):
            return position
    if len(text) <= len(_SHAPE):
        return len(text)
    rest = re.match(_TAIL, text[len(_SHAPE) :], re.ASCII)
    return len(_SHAPE) + (0 if rest is None else rest.end())
