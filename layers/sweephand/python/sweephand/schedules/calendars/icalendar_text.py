"""Parses an iCalendar text (RFC 5545): its events, their properties with the line of each, dates, durations, RRULE.

RRULE: FREQ from DAILY to YEARLY, without positions, days of the year or numbered weeks. The notation `rrule` computes
its days.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import field
from datetime import date, datetime, timedelta
from typing import NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields
from sweephand.base.records import dataclass
from sweephand.schedules.grids.calendar_masks import bits
from sweephand.schedules.grids.clock import DAY_S
from sweephand.schedules.grids.days import EPOCH_DAY
from sweephand.schedules.grids.rrule_days import DayRule
from sweephand.schedules.notations.rrule_parts import FREQUENCIES, WEEKDAYS, WEEKLY, Recur
from sweephand.schedules.notations.rrule_pattern import pattern
from sweephand.schedules.text.instants import A_ZONE
from sweephand.schedules.zones.localtime import Zone, zone

FIELD = "iCalendar"
YEARS = 20
_BY_DAY = re.compile(r"([+-]?[1-5])?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_PARTS = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYMONTH", "BYMONTHDAY")
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
MOST = 9_999
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
        """Returns the name of its kind, for people. Only moments of the same kind can be equal."""
        if self.day_only:
            return "a date"
        return "a time without a zone" if self.zone is None else "a time in a zone (with TZID or Z)"

    @property
    def second(self) -> int:
        """Returns Unix seconds; wall time without a zone counts as UTC."""
        wall = (self.wall - EPOCH) // timedelta(seconds=1)
        if self.zone is None:
            return wall
        instants = self.zone.instants(wall)
        return instants[0] if instants else self.zone.around_gap(wall)[0]


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
            raise refused(number, f"must be BEGIN:VCALENDAR, not {fields.shown(f'{name}:{value}')}")
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
    """Yields (line, name, parameters, value) for each property."""
    for number, line in _unfolded(text):
        parsed = _LINE.fullmatch(line)
        if parsed is None:
            raise refused(number, f"must be NAME:value, not {fields.shown(line)}")
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
    match = _MOMENT.fullmatch(value)
    if match is None:
        raise refused(
            line, f"must be a date such as 20261225, or a time such as 20261224T180000Z, not {fields.shown(value)}"
        )
    day_only = match[4] is None
    if parameters.get("VALUE", "DATE" if day_only else "DATE-TIME").upper() != ("DATE" if day_only else "DATE-TIME"):
        raise refused(line, "the value does not match VALUE")
    try:
        wall = datetime(*(int(part or 0) for part in match.groups()[:6]))  # type: ignore[arg-type] # noqa: DTZ001
    except ValueError:
        raise refused(line, f"{value} does not exist") from None
    if not 1970 <= wall.year <= 2199:
        raise refused(line, f"year must be 1970 to 2199, not {fields.shown(match[1])}")
    if match[7]:
        return Moment(wall, day_only, zone("UTC"))
    name = parameters.get("TZID")
    if name is None or day_only:
        return Moment(wall, day_only)
    try:
        return Moment(wall, day_only, zone(name))
    except KeyError:
        raise refused(line, f"TZID must be {A_ZONE}, not {fields.shown(name)}") from None


def read_duration(line: int, value: str) -> timedelta:
    match = _DURATION.fullmatch(value)
    if match is None or value[-1] in "PT":
        raise refused(line, f"DURATION must be as in P1D or PT2H30M, not {fields.shown(value)}")
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


# Recurrences


class Recurrence(NamedTuple):
    """A parsed RRULE. until: the last second at which an occurrence may start."""

    rule: Recur
    until: int | None

    @property
    def endless(self) -> bool:
        return self.rule.times is None and self.until is None

    @property
    def weekdays(self) -> set[int]:
        return set(bits(self.rule.days.weekdays))

    def each(self, frequency: int) -> bool:
        """Returns whether the rule is the day of its start each year, or some weekdays of each week."""
        plain = DayRule(week_start=self.rule.days.week_start)
        if frequency == WEEKLY:
            plain = plain._replace(weekdays=self.rule.days.weekdays)
        return self.rule.frequency == frequency and self.rule.interval == 1 and self.rule.days == plain

    def days(self, start: date, second_of: Callable[[date], int]) -> list[date]:
        """Returns the days in 20 years from `start`, within COUNT and UNTIL.

        second_of: when the event of a day starts.
        """
        chosen: list[date] = []
        begin = (start.toordinal() - EPOCH_DAY) * DAY_S
        try:
            series = pattern(self.rule, begin).series
        except InvalidRequest:
            return chosen  # its parts exclude each other
        for second in series.seconds(begin - 1, begin + (YEARS * 366 - 1) * DAY_S):
            day = date.fromordinal(second // DAY_S + EPOCH_DAY)
            if day.year > 2199 or (self.until is not None and second_of(day) > self.until):
                break
            chosen.append(day)
            if len(chosen) == self.rule.times:
                break
        return chosen


def recurrence(text: str, second: Callable[[str], int]) -> Recurrence:
    """Parses RRULE. second: returns the last second that UNTIL includes. Raises ValueError with a reason for people."""
    parts: dict[str, str] = {}
    for part in text.upper().split(";"):
        name, equals, value = part.partition("=")
        if not equals or name not in _PARTS or name in parts:
            raise ValueError(f"RRULE: {part[:40]!r} is unknown or repeated")
        parts[name] = value
    frequency = parts.get("FREQ")
    if frequency not in _FREQUENCIES:
        raise ValueError(f"RRULE: FREQ must be one of {', '.join(_FREQUENCIES)}")
    if "COUNT" in parts and "UNTIL" in parts:
        raise ValueError("RRULE: COUNT must not be combined with UNTIL")
    until = second(parts["UNTIL"]) if "UNTIL" in parts else None
    named = [_by_day(each) for each in parts["BYDAY"].split(",")] if "BYDAY" in parts else []
    days = DayRule(
        months=sum(1 << month for month in _numbers(parts, "BYMONTH", 12, negative=False)),
        month_days=tuple(sorted(_numbers(parts, "BYMONTHDAY", 31, negative=True))),
        weekdays=sum({1 << weekday for which, weekday in named if not which}),
        ordinals=tuple(sorted({(which, weekday) for which, weekday in named if which})),
        week_start=WEEKDAYS.index(_weekday(parts.get("WKST", "MO"))),
    )
    if days.ordinals and not (frequency == "MONTHLY" or (frequency == "YEARLY" and days.months)):
        raise ValueError("RRULE: a numbered BYDAY needs FREQ=MONTHLY, or FREQ=YEARLY with BYMONTH")
    if frequency == "WEEKLY" and days.month_days:
        raise ValueError("RRULE: BYMONTHDAY must not be combined with FREQ=WEEKLY")
    times = _number(parts["COUNT"], "COUNT", MOST) if "COUNT" in parts else None
    interval = _number(parts.get("INTERVAL", "1"), "INTERVAL", MOST)
    return Recurrence(Recur(FREQUENCIES.index(frequency), interval, times, days=days), until)


def _number(text: str, name: str, most: int) -> int:
    if not re.fullmatch("[0-9]{1,4}", text, re.ASCII) or not 1 <= int(text) <= most:
        raise ValueError(f"RRULE: {name} must be 1 to {most:,}, not {fields.shown(text)}")
    return int(text)


def _numbers(parts: dict[str, str], name: str, most: int, *, negative: bool) -> frozenset[int]:
    if name not in parts:
        return frozenset()
    numbers = set()
    for text in parts[name].split(","):
        if not re.fullmatch("[+-]?[0-9]{1,2}", text, re.ASCII):
            raise ValueError(f"RRULE: {name} must be numbers separated by commas")
        number = int(text)
        if not 1 <= abs(number) <= most or (number < 0 and not negative):
            bounds = f"1 to {most}, or {-most} to -1" if negative else f"1 to {most}"
            raise ValueError(f"RRULE: {name} must be {bounds}, not {fields.shown(text)}")
        numbers.add(number)
    return frozenset(numbers)


def _weekday(text: str) -> str:
    if text not in WEEKDAYS:
        raise ValueError(f"RRULE: {text[:10]!r} is not a day such as MO")
    return text


def _by_day(text: str) -> tuple[int, int]:
    """Returns (which in the month, 0 for each; weekday)."""
    match = _BY_DAY.fullmatch(text)
    if match is None:
        raise ValueError(f"RRULE: {text[:10]!r} is not a day such as MO, 1MO or -1SU")
    return int(match[1] or 0), WEEKDAYS.index(match[2])
