"""Parses an iCalendar text (RFC 5545): its events, their properties with the line of each, dates and durations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sweephand.errors import InvalidRequest
from sweephand.schedules.zones.localtime import Zone, zone

FIELD = "iCalendar"
_LINE = re.compile(r"([A-Za-z0-9-]+)((?:;[A-Za-z0-9-]+=(?:\"[^\"\x00-\x08]*\"|[^\";:,\x00-\x08]*))*):(.*)", re.ASCII)
_PARAMETER = re.compile(r";([A-Za-z0-9-]+)=(?:\"([^\"]*)\"|([^\";:,]*))", re.ASCII)
_MOMENT = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:T([0-9]{2})([0-9]{2})([0-9]{2})(Z)?)?", re.ASCII)
_DURATION = re.compile(
    r"\+?P(?:([0-9]{1,4})W|(?:([0-9]{1,5})D)?(?:T(?:([0-9]{1,5})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,8})S)?)?)", re.ASCII
)
_IN_EVENT = ["VCALENDAR", "VEVENT"]
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall time has no zone


@dataclass(frozen=True)
class Moment:
    """The value of a date property. day_only: a date without a time. zone: None for wall time."""

    wall: datetime
    day_only: bool
    zone: Zone | None = None

    @property
    def kind(self) -> str:
        """Names its kind for people. Only moments of one kind can be equal."""
        if self.day_only:
            return "a date"
        return "a time without a zone" if self.zone is None else "a time in a zone (with TZID or Z)"

    @property
    def second(self) -> int:
        """Returns Unix seconds; wall time without a zone counts as UTC."""
        wall = (self.wall - EPOCH) // timedelta(seconds=1)
        if self.zone is None:
            return wall
        found = self.zone.instants(wall)
        return found[0] if found else self.zone.around_gap(wall)[0]


@dataclass
class Event:
    """An event of the file. line: where it begins, for error messages."""

    line: int
    properties: dict[str, list[tuple[int, dict[str, str], str]]] = field(default_factory=dict)


def refused(line: int, reason: str) -> InvalidRequest:
    return InvalidRequest(FIELD, f"line {line}: {reason}")


# Lines


def events(text: str) -> Iterator[Event]:
    """Yields the events. Skips other components, and those inside a VEVENT."""
    open_names: list[str] = []
    event: Event | None = None
    for number, name, parameters, value in _properties(text):
        if not open_names and (name, value.upper()) != ("BEGIN", "VCALENDAR"):
            raise refused(number, "expected BEGIN:VCALENDAR")
        if name == "BEGIN":
            open_names.append(value.upper())
            event = Event(number) if open_names == _IN_EVENT else event
        elif name == "END":
            if open_names.pop() != value.upper():
                raise refused(number, "ends a component that is not open")
            if event is not None and open_names == _IN_EVENT[:1]:
                yield event
                event = None
        elif event is not None and open_names == _IN_EVENT:
            event.properties.setdefault(name, []).append((number, parameters, value))
    if open_names:
        raise InvalidRequest(FIELD, f"{open_names[-1][:60]} has no END")


def _properties(text: str) -> Iterator[tuple[int, str, dict[str, str], str]]:
    """Yields (line, name, parameters, value) of each property."""
    for number, line in _unfolded(text):
        parsed = _LINE.fullmatch(line)
        if parsed is None:
            raise refused(number, "expected a line NAME:value")
        parameters = {p[1].upper(): p[2] if p[2] is not None else p[3] for p in _PARAMETER.finditer(parsed[2])}
        yield number, parsed[1].upper(), parameters, parsed[3]


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """Yields (number, line), with continuation lines joined to it. Skips empty lines."""
    begun, parts = 0, list[str]()
    for number, line in enumerate(text.replace("\r\n", "\n").removeprefix("\ufeff").split("\n"), 1):
        if line[:1] in (" ", "\t") and parts:
            parts.append(line[1:])
            continue
        if parts:
            yield begun, "".join(parts)
        begun, parts = number, [line] if line else []
    if parts:
        yield begun, "".join(parts)


# Dates


def read_moment(line: int, parameters: dict[str, str], value: str) -> Moment:
    found = _MOMENT.fullmatch(value)
    if found is None:
        raise refused(line, "expected a date such as 20261225, or a time such as 20261224T180000Z")
    day_only = found[4] is None
    if parameters.get("VALUE", "DATE" if day_only else "DATE-TIME").upper() != ("DATE" if day_only else "DATE-TIME"):
        raise refused(line, "the value does not match VALUE")
    try:
        wall = datetime(*(int(part or 0) for part in found.groups()[:6]))  # type: ignore[arg-type] # noqa: DTZ001
    except ValueError:
        raise refused(line, f"{value} does not exist") from None
    if not 1970 <= wall.year <= 2199:
        raise refused(line, f"year {found[1]} is outside 1970..2199")
    if found[7]:
        return Moment(wall, day_only, zone("UTC"))
    name = parameters.get("TZID")
    if name is None or day_only:
        return Moment(wall, day_only)
    try:
        return Moment(wall, day_only, zone(name))
    except KeyError:
        raise refused(line, f'TZID {name[:60]!r} is not an IANA zone such as "Europe/Berlin"') from None


def read_duration(line: int, value: str) -> timedelta:
    found = _DURATION.fullmatch(value)
    if found is None or value[-1] in "PT":
        raise refused(line, "expected a DURATION such as P1D or PT2H30M")
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
