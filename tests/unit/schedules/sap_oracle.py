"""A slow and obvious reader of SAP's seven fields: every minute of real time, and in it every second that is named.

Shares nothing with the package: each field is a question asked of one value, months come from the calendar module, the
clock from zoneinfo.
"""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta
from functools import cache

from tests.unit.schedules.oracle import zone_info

MINUTE = timedelta(minutes=1)
WEEKDAYS = ["", "mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def walk(text: str, zone: str, gap: str, overlap: str, begin: datetime, end: datetime) -> list[datetime]:
    """Yields the occurrences from begin to end, both included and on whole minutes (UTC)."""
    seconds = [second for second in range(60) if admits(text.split()[6], second)]
    hours = text.split()[4]
    admitted = [hour for hour in range(24) if admits(hours, hour)]
    if len(admitted) == 24:
        gap, overlap = "skip", "both"
    elif "/" in hours and "," not in hours and len(admitted) > 1 and admitted == list(range(0, 24, admitted[1])):
        gap, overlap = ("next_valid", "first") if admitted[0] == 0 else (gap, overlap)
    info = zone_info(zone)
    found: set[datetime] = set()
    instant = begin - timedelta(days=2)
    before = (instant - MINUTE).astimezone(info)
    while instant <= end:
        here = instant.astimezone(info)
        wall = here.replace(tzinfo=None)
        if reads_minute(text, wall):
            twice = here.replace(fold=0).utcoffset() != here.replace(fold=1).utcoffset()
            if not twice or overlap == "both" or overlap == ("second" if here.fold else "first"):
                found |= {instant + timedelta(seconds=second) for second in seconds}
        missing = before.replace(tzinfo=None) + MINUTE
        while missing < wall:
            if reads_minute(text, missing) and gap != "skip":
                shifted = missing.replace(tzinfo=UTC) - before.utcoffset()
                found |= {instant} if gap == "next_valid" else {shifted + timedelta(seconds=n) for n in seconds}
            missing += MINUTE
        before = here
        instant += MINUTE
    return sorted(instant for instant in found if begin <= instant <= end)


def reads_minute(text: str, wall: datetime) -> bool:
    """Tells whether a clock that shows this minute is within the first six fields."""
    years, months, days, weekdays, hours, minutes, _ = text.split()
    asked = [(minutes, wall.minute), (hours, wall.hour), (months, wall.month), (years, wall.year)]
    return all(admits(field, value) for field, value in asked) and reads_day(days, weekdays, wall)


def reads_day(days: str, weekdays: str, wall: datetime) -> bool:
    length = calendar.monthrange(wall.year, wall.month)[1]
    by_date = any(admits_day(item, wall.day, length) for item in days.split(","))
    return by_date and any(admits_weekday(item.lower(), wall, length) for item in weekdays.split(","))


@cache
def admits(field: str, value: int) -> bool:
    return any(admits_item(item, value) for item in field.split(","))


def admits_item(item: str, value: int) -> bool:
    if item == "*":
        return True
    if item.startswith("*/"):
        return value % int(item[2:]) == 0
    span, _, step = item.partition("/")
    first, _, last = span.partition(":")
    return int(first) <= value <= int(last or first) and (value - int(first)) % int(step or 1) == 0


def admits_day(item: str, day: int, length: int) -> bool:
    """Days below 0 are first turned into what they are in this month."""
    if item[0] == "*":
        return admits_item(item, day)
    span, slash, step = item.partition("/")
    ends = [end if not end.startswith("-") else str(length + 1 - int(end[1:])) for end in span.split(":")]
    return admits_item(":".join(ends) + slash + step, day)


def admits_weekday(item: str, wall: datetime, length: int) -> bool:
    own = wall.isoweekday()
    if "." in item:
        which, name = item.split(".")
        same = [day for day in range(1, length + 1) if (day - wall.day) % 7 == 0]
        index = int(which) - 1 if int(which) > 0 else len(same) + int(which)
        return WEEKDAYS[own] == name and 0 <= index < len(same) and same[index] == wall.day
    if item[0] == "*":
        return admits_item(item, own)
    span, _, step = item.partition("/")
    first, _, last = span.partition(":")
    at, walked = WEEKDAYS.index(first), 0
    while True:
        if WEEKDAYS[at] == WEEKDAYS[own] and walked % int(step or 1) == 0:
            return True
        if WEEKDAYS[at] == (last or first):
            return False
        at, walked = at % 7 + 1, walked + 1
