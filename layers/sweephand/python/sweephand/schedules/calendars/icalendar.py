"""Reads the events of an iCalendar file (RFC 5545) into the members of a calendar: dates, ranges and hours of the week.

Reading is strict, and its time grows only with the length of the file. Each VEVENT is read for DTSTART, DTEND or
DURATION, RRULE, RDATE, EXDATE, RECURRENCE-ID, UID and STATUS. It does not matter whether an event is shown as busy,
because public holidays seldom are. Events of whole days and times without a zone are wall times; times in a zone become
instants. A time zone must be an IANA name.

A recurrence needs COUNT or UNTIL and is followed for 20 years. Without them, it must be a day of each year or hours of
each week, without exceptions, and it must have begun, because a calendar cannot express any other. Anything else is
refused.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields
from sweephand.schedules.calendars import calendar_content
from sweephand.schedules.calendars.icalendar_text import (
    EPOCH,
    FIELD,
    Event,
    Moment,
    Recurrence,
    events,
    read_duration,
    read_moment,
    recurrence,
    refused,
)
from sweephand.schedules.notations.rrule_parts import WEEKLY, YEARLY

LONGEST = 200_000
MOST_EVENTS, MOST_RECURRING = 2_000, 50
MOST_MOMENTS = 7_500
"""The most occurrences of all events together, and the most values of RDATE and EXDATE."""
_DAY = timedelta(days=1)
_OF_SERIES = ("RRULE", "RDATE", "EXDATE")

Members = dict[str, list[Any]]
_Found = dict[str, dict[str, Any]]
"""The members so far, each once, by their text."""
Key = tuple[str, int]
"""An occurrence: the kind of its moment, and its second."""


class _Detached(NamedTuple):
    """An event that replaces one occurrence of another event. line: the line of its RECURRENCE-ID."""

    line: int
    event: Event


def read(value: object, today: date) -> Members:
    """Returns dates, ranges and weekly hours of all events. Raises InvalidRequest with the number of the line.

    today: the date in UTC, from which endless recurrences count.
    """
    if not isinstance(value, str):
        raise fields.must_be(FIELD, "the text of an iCalendar file", value)
    if len(value) > LONGEST:
        raise InvalidRequest(FIELD, f"must have at most {LONGEST:,} characters, not {len(value):,}", position=LONGEST)
    listed = list(events(value))
    if not 1 <= len(listed) <= MOST_EVENTS:
        raise InvalidRequest(FIELD, f"has more than {MOST_EVENTS:,} events" if listed else "has no event")
    if sum("RRULE" in event.properties for event in listed if not _is_cancelled(event)) > MOST_RECURRING:
        raise InvalidRequest(FIELD, f"has more than {MOST_RECURRING} events that recur")
    if sum(_listed(event, "RDATE") + _listed(event, "EXDATE") for event in listed) > MOST_MOMENTS:
        raise InvalidRequest(FIELD, f"has more than {MOST_MOMENTS:,} values of RDATE and EXDATE")
    detached = _detached(listed)
    facts: _Found = {"dates": {}, "ranges": {}, "weekly": {}}
    occurring: dict[str, set[Key]] = {}
    followed = 0
    for event in listed:
        its = detached.get(_uid(event), {})
        if "RECURRENCE-ID" not in event.properties:
            keys = _add(facts, event, its, today)
            occurring.setdefault(_uid(event), set()).update(keys)
            followed += len(keys)
            if followed > MOST_MOMENTS:
                raise refused(event.line, f"with this event the file has more than {MOST_MOMENTS:,} occurrences")
        elif not _is_cancelled(event):
            _add_stretch(facts, event, *_extent(event))
    _check_detached(detached, occurring)
    return {name: list(each.values()) for name, each in facts.items()}


def _listed(event: Event, name: str) -> int:
    """Returns how many values a property has."""
    return sum(value.count(",") + 1 for _, _, value in event.properties.get(name, ()))


def _is_cancelled(event: Event) -> bool:
    return any(value.upper() == "CANCELLED" for _, _, value in event.properties.get("STATUS", ()))


def _one(event: Event, name: str) -> tuple[int, dict[str, str], str] | None:
    lines = event.properties.get(name, [])
    if len(lines) > 1:
        raise refused(lines[1][0], f"a second {name}; write one")
    return lines[0] if lines else None


def _uid(event: Event) -> str:
    line = _one(event, "UID")
    return "" if line is None else line[2]


# Occurrences that are events of their own


def _detached(listed: list[Event]) -> dict[str, dict[Key, _Detached]]:
    """Returns the occurrences that are cancelled or differ from the rest, by UID."""
    by_uid: dict[str, dict[Key, _Detached]] = {}
    for event in listed:
        stands_for = _one(event, "RECURRENCE-ID")
        if stands_for is None:
            continue
        line, parameters, value = stands_for
        if not _uid(event):
            raise refused(line, "RECURRENCE-ID needs a UID")
        if "RANGE" in parameters:
            raise refused(line, "RANGE is not supported: write the later occurrences as an event with its own UID")
        for name in _OF_SERIES:
            if name in event.properties:
                raise refused(event.properties[name][0][0], f"{name} must not be combined with RECURRENCE-ID")
        of_uid = by_uid.setdefault(_uid(event), {})
        key = _key(read_moment(line, parameters, value))
        if key in of_uid:
            raise refused(line, "a second event for this occurrence")
        of_uid[key] = _Detached(line, event)
    return by_uid


def _check_detached(detached: dict[str, dict[Key, _Detached]], occurring: dict[str, set[Key]]) -> None:
    """Raises InvalidRequest for an event that replaces no occurrence of its main event, if the file has that event.

    A cancelled main event has no occurrences; cancelling one of them again is accepted.
    """
    for uid, by_key in detached.items():
        occurring_keys = occurring.get(uid)
        for key, (line, event) in by_key.items():
            if (
                occurring_keys is not None
                and key not in occurring_keys
                and (occurring_keys or not _is_cancelled(event))
            ):
                reason = "RECURRENCE-ID must be an occurrence of the event with this UID, written like its DTSTART"
                raise refused(line, reason)


def _key(moment: Moment) -> Key:
    return moment.kind, moment.second


# Events


def _add(facts: _Found, event: Event, detached: dict[Key, _Detached], today: date) -> set[Key]:
    """Adds the occurrences of an event, except those that are left out or detached. Returns the keys of all."""
    if _is_cancelled(event):
        return set()
    if "EXRULE" in event.properties:
        raise refused(event.properties["EXRULE"][0][0], "EXRULE is not supported; write EXDATE")
    start, length = _extent(event)
    rule = _recurrence(event, start)
    if rule is not None and rule.endless:
        _check_endless(event, detached)
        if length:
            _add_endless(facts, event, start, length, rule, today)
        return set()
    starts = [start, *(moment for line, moment in _moments(event, "RDATE") if _same_kind(line, "RDATE", moment, start))]
    if rule is not None:
        starts += [_at(start, day) for day in rule.days(start.wall.date(), lambda day: _at(start, day).second)]
    by_key = {_key(moment): moment for moment in starts}
    left_out = _left_out(event, start)
    for key, moment in by_key.items():
        if key not in detached and not left_out.has(moment.second):
            _add_stretch(facts, event, moment, length)
    return set(by_key)


def _extent(event: Event) -> tuple[Moment, timedelta]:
    """Returns its beginning and length."""
    line = _one(event, "DTSTART")
    if line is None:
        raise refused(event.line, "the event has no DTSTART")
    start = read_moment(*line)
    return start, _length(event, start)


def _recurrence(event: Event, start: Moment) -> Recurrence | None:
    line = _one(event, "RRULE")
    if line is None:
        return None
    number, _, value = line

    def last_second(until: str) -> int:
        moment = read_moment(number, {}, until)
        if moment.day_only:  # covers the whole day, by the clock of the event
            return Moment(moment.wall + _DAY, day_only=False, zone=start.zone).second - 1
        _same_kind(number, "UNTIL", moment, start)
        return moment.second

    try:
        return recurrence(value, last_second)
    except ValueError as wrong:
        raise refused(number, str(wrong)) from wrong


def _moments(event: Event, name: str) -> Iterator[tuple[int, Moment]]:
    """Yields each moment with its line."""
    for line, parameters, value in event.properties.get(name, ()):
        for each in value.split(","):
            yield line, read_moment(line, parameters, each)


def _same_kind(line: int, name: str, moment: Moment, start: Moment) -> bool:
    if moment.kind != start.kind:
        raise refused(line, f"{name} must be {start.kind}, as DTSTART is")
    return True


class _LeftOut(NamedTuple):
    """Times that EXDATE takes out. days: the first and last second of each day, in order."""

    seconds: set[int]
    days: list[tuple[int, int]]

    def has(self, second: int) -> bool:
        upto = bisect_right(self.days, second, key=lambda day: day[0])
        return second in self.seconds or (upto > 0 and second <= self.days[upto - 1][1])


def _left_out(event: Event, start: Moment) -> _LeftOut:
    """Returns the times of EXDATE. A date covers its whole day, as in UNTIL."""
    left_out = _LeftOut(set(), [])
    for line, moment in _moments(event, "EXDATE"):
        if moment.day_only and not start.day_only:
            ends = [Moment(wall, day_only=False, zone=start.zone) for wall in (moment.wall, moment.wall + _DAY)]
            left_out.days.append((ends[0].second, ends[1].second - 1))
        elif _same_kind(line, "EXDATE", moment, start):
            left_out.seconds.add(moment.second)
    left_out.days.sort()
    return left_out


def _at(start: Moment, day: date) -> Moment:
    return Moment(datetime.combine(day, start.wall.time()), start.day_only, start.zone)


def _add_stretch(facts: _Found, event: Event, start: Moment, length: timedelta) -> None:
    if not length:
        return  # a moment without an extent covers nothing
    if start.zone is not None:
        start = Moment(EPOCH + timedelta(seconds=start.second), day_only=False, zone=start.zone)
    end = start.wall + length
    last = end - (_DAY if start.day_only else timedelta(0))
    if not 1970 <= start.wall.year <= last.year <= 2199:
        raise refused(event.line, "must be in the years 1970 to 2199")
    if start.day_only and length == _DAY:
        _keep(facts, event, "dates", str(start.wall.date()))
    elif start.day_only:
        _keep(facts, event, "ranges", {"from": str(start.wall.date()), "to": str(last.date())})
    else:
        suffix = "" if start.zone is None else "Z"
        _keep(facts, event, "ranges", {"from": f"{start.wall.isoformat()}{suffix}", "to": f"{end.isoformat()}{suffix}"})


def _keep(facts: _Found, event: Event, name: str, member: object) -> None:
    kept, most = facts[name], calendar_content.MOST[name]
    key = repr(member)
    if key in kept:
        return
    if len(kept) == most:
        raise refused(event.line, f"with this event the file has more than {most:,} {name}")
    kept[key] = member


def _length(event: Event, start: Moment) -> timedelta:
    end, duration = _one(event, "DTEND"), _one(event, "DURATION")
    if end is not None and duration is not None:
        raise refused(duration[0], "DURATION must not be combined with DTEND")
    if end is not None:
        moment = read_moment(*end)
        if moment.kind != start.kind:
            raise refused(end[0], "DTEND must be of the same kind as DTSTART")
        length = timedelta(seconds=moment.second - start.second)
    elif duration is not None:
        length = read_duration(duration[0], duration[2])
    else:
        length = timedelta(days=1 if start.day_only else 0)
    if length < timedelta(0) or length > timedelta(days=366) or (start.day_only and length % _DAY):
        raise refused(event.line, "the event must end after it begins, at most 366 days later")
    return length


# Endless recurrences


def _check_endless(event: Event, detached: dict[Key, _Detached]) -> None:
    """Raises InvalidRequest if an endless recurrence has exceptions, which a calendar cannot express."""
    line = event.properties["RRULE"][0][0]
    for name in ("EXDATE", "RDATE"):
        if name in event.properties:
            raise refused(line, f"needs COUNT or UNTIL, because of {name}")
    for other in detached.values():
        raise refused(line, f"needs COUNT or UNTIL, because of RECURRENCE-ID in line {other.line}")


def _add_endless(facts: _Found, event: Event, start: Moment, length: timedelta, rule: Recurrence, today: date) -> None:
    """Adds a day of each year, or hours of each week."""
    line = event.properties["RRULE"][0][0]
    first = start.wall.date()
    if rule.each(YEARLY) and start.day_only:
        days = _year_days(line, first, length)
        before = [day for day in _days(today, first) if f"{day:%m-%d}" in days]
        for day in sorted(days):
            _keep(facts, event, "dates", day)
    elif rule.each(WEEKLY) and start.zone is None and length <= _DAY:
        weekdays = rule.weekdays or {first.weekday()}
        if first.weekday() not in weekdays:
            raise refused(line, "needs COUNT or UNTIL, because DTSTART is on none of its weekdays")
        hours: dict[str, Any] = {"days": [calendar_content.WEEKDAYS[day] for day in sorted(weekdays)]}
        if not start.day_only:
            hours |= {"from": f"{start.wall:%H:%M:%S}", "to": f"{start.wall + length:%H:%M:%S}"}
        before = [day for day in _days(today, first) if day.weekday() in weekdays]
        _keep(facts, event, "weekly", hours)
    else:
        raise refused(line, "needs COUNT or UNTIL: only a day of each year or wall times of each week can be endless")
    if before:
        raise refused(line, f"needs COUNT or UNTIL: endless recurrences begin today, so {before[0]} would count too")


def _days(today: date, first: date) -> Iterator[date]:
    """Yields the days from today until the event begins, for at most 8 years, which contain a leap day."""
    return (today + timedelta(days=n) for n in range(min((first - today).days, 8 * 366)))


def _year_days(line: int, first: date, length: timedelta) -> set[str]:
    """Returns the days that the event covers each year, such as "12-25"."""
    if length > timedelta(days=31):
        raise refused(line, "needs COUNT or UNTIL, because the event has more than 31 days")
    if (first.month, first.day) == (2, 29):
        leap, common = {"02-29"}, set[str]() if length > _DAY else {"02-29"}
    else:
        begins = (first.replace(year=2028), first.replace(year=2027))
        leap, common = ({f"{day + timedelta(days=n):%m-%d}" for n in range(length.days)} for day in begins)
    if leap != common:
        raise refused(line, "needs COUNT or UNTIL, because the event has other days in leap years")
    return leap
