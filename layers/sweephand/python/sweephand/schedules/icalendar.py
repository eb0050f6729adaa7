"""The events of an iCalendar text (RFC 5545) as the members of a calendar: dates, ranges and hours of the week.

Read strictly, in time that grows with the text alone. Of each VEVENT: DTSTART, DTEND or DURATION, RRULE, RDATE, EXDATE,
RECURRENCE-ID, UID and STATUS; whether it is shown as busy does not matter, because public holidays seldom are. An event
of whole days is wall time, like one without a zone; one in a zone becomes instants. A time zone must be an IANA name.

A recurrence needs COUNT or UNTIL and is followed for 20 years; without them it must be each year's day, or each week's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from sweephand.errors import InvalidRequest
from sweephand.schedules import members
from sweephand.schedules.calendar_content import WEEKDAYS
from sweephand.schedules.icalendar_rules import Recurrence, recurrence
from sweephand.schedules.localtime import Zone, zone

FIELD = "iCalendar"
LONGEST = 200_000
MOST_EVENTS, MOST_RECURRING, MOST_STRETCHES = 2_000, 50, 3_000
_LINE = re.compile(r"([A-Za-z0-9-]+)((?:;[A-Za-z0-9-]+=(?:\"[^\"\x00-\x08]*\"|[^\";:,\x00-\x08]*))*):(.*)", re.ASCII)
_PARAMETER = re.compile(r";([A-Za-z0-9-]+)=(?:\"([^\"]*)\"|([^\";:,]*))", re.ASCII)
_MOMENT = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:T([0-9]{2})([0-9]{2})([0-9]{2})(Z)?)?", re.ASCII)
_DURATION = re.compile(
    r"\+?P(?:([0-9]{1,4})W|(?:([0-9]{1,5})D)?(?:T(?:([0-9]{1,5})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,8})S)?)?)", re.ASCII
)
_IN_EVENT = ["VCALENDAR", "VEVENT"]
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall time has no zone


@dataclass(frozen=True)
class Moment:
    """What a date property says. day_only: a date. zone: None for wall time."""

    wall: datetime
    day_only: bool
    zone: Zone | None = None

    @property
    def second(self) -> int:
        """Unix seconds; of wall time without a zone as if it were UTC."""
        wall = (self.wall - _EPOCH) // timedelta(seconds=1)
        if self.zone is None:
            return wall
        found = self.zone.instants(wall)
        return found[0] if found else self.zone.around_gap(wall)[0]


@dataclass
class _Event:
    """line: where it begins, for a refusal."""

    line: int
    properties: dict[str, list[tuple[int, dict[str, str], str]]] = field(default_factory=dict)


def read(value: object) -> dict[str, list[Any]]:
    """dates, ranges and weekly of all events. Raises InvalidRequest with the line (its position in the text)."""
    if not isinstance(value, str):
        raise InvalidRequest(FIELD, f"expected the text of an iCalendar file, not {members.kind_of(value)}")
    if len(value) > LONGEST:
        raise InvalidRequest(FIELD, f"{len(value):,} characters are more than {LONGEST:,}", position=LONGEST)
    found: dict[str, list[Any]] = {"dates": [], "ranges": [], "weekly": []}
    events = list(_events(value))
    if not 1 <= len(events) <= MOST_EVENTS:
        raise InvalidRequest(FIELD, f"has more than {MOST_EVENTS:,} events" if events else "has no event")
    events = [event for event in events if not _is_cancelled(event)]
    if sum("RRULE" in event.properties for event in events) > MOST_RECURRING:
        raise InvalidRequest(FIELD, f"has more than {MOST_RECURRING} events that recur")
    replaced = {key for event in events if (key := _replaces(event)) is not None}
    for event in events:
        _add(found, event, replaced)
        if sum(len(each) for each in found.values()) > MOST_STRETCHES:
            raise _refused(event.line, f"with this event there are more than {MOST_STRETCHES:,} dates")
    return found


# Lines


def _events(text: str) -> Iterator[_Event]:
    """Components other than VEVENT are passed over; what is inside of a VEVENT too."""
    open_names: list[str] = []
    event: _Event | None = None
    for number, name, parameters, value in _properties(text):
        if not open_names and (name, value.upper()) != ("BEGIN", "VCALENDAR"):
            raise _refused(number, "expected BEGIN:VCALENDAR")
        if name == "BEGIN":
            open_names.append(value.upper())
            event = _Event(number) if open_names == _IN_EVENT else event
        elif name == "END":
            if open_names.pop() != value.upper():
                raise _refused(number, "ends what is not open")
            if event is not None and open_names == _IN_EVENT[:1]:
                yield event
                event = None
        elif event is not None and open_names == _IN_EVENT:
            event.properties.setdefault(name, []).append((number, parameters, value))
    if open_names:
        raise InvalidRequest(FIELD, f"{open_names[-1][:60]} is not ended")


def _properties(text: str) -> Iterator[tuple[int, str, dict[str, str], str]]:
    """(line, name, parameters, value) of each."""
    for number, line in _unfolded(text):
        parsed = _LINE.fullmatch(line)
        if parsed is None:
            raise _refused(number, "expected a line NAME:value")
        parameters = {p[1].upper(): p[2] if p[2] is not None else p[3] for p in _PARAMETER.finditer(parsed[2])}
        yield number, parsed[1].upper(), parameters, parsed[3]


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """(number, line) with what a line break and a blank went on with; empty lines are passed over."""
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


def _refused(line: int, reason: str) -> InvalidRequest:
    return InvalidRequest(FIELD, f"line {line}: {reason}")


# Events


def _is_cancelled(event: _Event) -> bool:
    return any(value.upper() == "CANCELLED" for _, _, value in event.properties.get("STATUS", ()))


def _one(event: _Event, name: str) -> tuple[int, dict[str, str], str] | None:
    given = event.properties.get(name, [])
    if len(given) > 1:
        raise _refused(given[1][0], f"a second {name}")
    return given[0] if given else None


def _uid(event: _Event) -> str:
    given = _one(event, "UID")
    return "" if given is None else given[2]


def _replaces(event: _Event) -> tuple[str, int] | None:
    """Which occurrence of another event this one stands for."""
    given = _one(event, "RECURRENCE-ID")
    return None if given is None else (_uid(event), _moment(*given).second)


def _add(found: dict[str, list[Any]], event: _Event, replaced: set[tuple[str, int]]) -> None:
    given = _one(event, "DTSTART")
    if given is None:
        raise _refused(event.line, "the event has no DTSTART")
    start = _moment(*given)
    length = _length(event, start)
    if not length:
        return  # a moment without an extent covers nothing
    rule = _recurrence(event)
    if rule is not None and rule.endless:
        _add_endless(found, event, start, length, rule)
        return
    recurs = _replaces(event) is None
    left_out = {moment.second for moment in _moments(event, "EXDATE")} if recurs else set()
    starts = [start, *_moments(event, "RDATE")]
    if rule is not None:
        days = rule.days(start.wall.date(), lambda day: _at(start, day).second)
        starts += [_at(start, day) for day in days]
    for second, moment in {moment.second: moment for moment in starts}.items():
        if second not in left_out and not (recurs and (_uid(event), second) in replaced and _uid(event)):
            _add_stretch(found, moment, length)


def _recurrence(event: _Event) -> Recurrence | None:
    given = _one(event, "RRULE")
    if given is None:
        return None
    number, _, value = given
    try:
        return recurrence(value, lambda text: _moment(number, {}, text).second)
    except ValueError as wrong:
        raise _refused(number, str(wrong)) from wrong


def _at(start: Moment, day: date) -> Moment:
    return Moment(datetime.combine(day, start.wall.time()), start.day_only, start.zone)


def _add_stretch(found: dict[str, list[Any]], start: Moment, length: timedelta) -> None:
    if start.day_only:
        first, last = start.wall.date(), (start.wall + length).date() - timedelta(days=1)
        if first == last:
            found["dates"].append(str(first))
        else:
            found["ranges"].append({"from": str(first), "to": str(last)})
        return
    if start.zone is None:
        ends = [each.isoformat() for each in (start.wall, start.wall + length)]
    else:
        seconds = (start.second, start.second + length // timedelta(seconds=1))
        ends = [f"{(_EPOCH + timedelta(seconds=second)).isoformat()}Z" for second in seconds]
    found["ranges"].append({"from": ends[0], "to": ends[1]})


def _add_endless(
    found: dict[str, list[Any]], event: _Event, start: Moment, length: timedelta, rule: Recurrence
) -> None:
    """For ever: a day of each year, or hours of each week."""
    line = event.properties["RRULE"][0][0]
    if "EXDATE" in event.properties:
        raise _refused(line, "needs COUNT or UNTIL, because of EXDATE")
    if rule.each_year and start.day_only:
        days = [start.wall.date() + timedelta(days=n) for n in range(length.days)]
        if len(days) > 31:
            raise _refused(line, "needs COUNT or UNTIL, because the event has more than 31 days")
        found["dates"] += [f"{day:%m-%d}" for day in days]
    elif rule.each_week and start.zone is None and length <= timedelta(days=1):
        days_of_week = sorted(rule.weekdays or {start.wall.weekday()})
        hours: dict[str, Any] = {"days": [WEEKDAYS[day] for day in days_of_week]}
        if not start.day_only:
            hours |= {"from": f"{start.wall:%H:%M:%S}", "to": f"{start.wall + length:%H:%M:%S}"}
        found["weekly"].append(hours)
    else:
        raise _refused(line, "needs COUNT or UNTIL: only a day of each year, or each week's wall times go on for ever")


def _length(event: _Event, start: Moment) -> timedelta:
    end, duration = _one(event, "DTEND"), _one(event, "DURATION")
    if end is not None and duration is not None:
        raise _refused(duration[0], "DURATION beside DTEND")
    if end is not None:
        moment = _moment(*end)
        if moment.day_only is not start.day_only or (moment.zone is None) is not (start.zone is None):
            raise _refused(end[0], "DTEND must be written as DTSTART is")
        length = timedelta(seconds=moment.second - start.second)
    elif duration is not None:
        length = _duration(duration[0], duration[2])
    else:
        length = timedelta(days=1 if start.day_only else 0)
    if length < timedelta(0) or length > timedelta(days=366) or (start.day_only and length % timedelta(days=1)):
        raise _refused(event.line, "the event must end after its beginning, at most 366 days later")
    return length


def _duration(line: int, value: str) -> timedelta:
    found = _DURATION.fullmatch(value)
    if found is None or value[-1] in "PT":
        raise _refused(line, "expected a DURATION such as P1D or PT2H30M")
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def _moments(event: _Event, name: str) -> Iterator[Moment]:
    for line, parameters, value in event.properties.get(name, ()):
        for each in value.split(","):
            yield _moment(line, parameters, each)


def _moment(line: int, parameters: dict[str, str], value: str) -> Moment:
    found = _MOMENT.fullmatch(value)
    if found is None:
        raise _refused(line, "expected a date such as 20261225, or a time such as 20261224T180000Z")
    day_only = found[4] is None
    if parameters.get("VALUE", "DATE" if day_only else "DATE-TIME").upper() != ("DATE" if day_only else "DATE-TIME"):
        raise _refused(line, "the value is not of the kind that VALUE says")
    try:
        wall = datetime(*(int(part or 0) for part in found.groups()[:6]))  # type: ignore[arg-type] # noqa: DTZ001
    except ValueError:
        raise _refused(line, f"{value} does not exist") from None
    if not 1970 <= wall.year <= 2199:
        raise _refused(line, f"year {found[1]} is outside 1970..2199")
    if found[7]:
        return Moment(wall, day_only, zone("UTC"))
    name = parameters.get("TZID")
    if name is None or day_only:
        return Moment(wall, day_only)
    try:
        return Moment(wall, day_only, zone(name))
    except KeyError:
        raise _refused(line, f'TZID {name[:60]!r} is no IANA zone such as "Europe/Berlin"') from None
