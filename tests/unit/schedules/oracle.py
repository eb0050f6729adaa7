"""A slow and obvious cron: it walks every minute of real time and looks at what zoneinfo says the clock reads.

Built to share nothing with the package: sets of numbers instead of masks, zoneinfo instead of tables, no search.
"""

from __future__ import annotations

import importlib.resources
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Callable

MINUTE = timedelta(minutes=1)
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
MONTHS = ["", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


@cache
def zone_info(name: str) -> ZoneInfo:
    """Returns the zone from the tzdata package, whatever the host has."""
    path = importlib.resources.files("tzdata") / "zoneinfo" / name
    with path.open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def walk(text: str, zone: str, gap: str, overlap: str, begin: datetime, end: datetime) -> list[datetime]:
    """Yields the occurrences from begin to end, both included and on whole minutes (UTC)."""
    hours = text.split()[1]
    spelled = numbers(hours, 0, 23, [])
    if spelled == set(range(24)):
        gap, overlap = "skip", "both"
    elif "/" in hours and "," not in hours and hours.split("/")[0] in ("*", "0-23", "0") and len(spelled) > 1:
        gap, overlap = "next_valid", "first"
    return walk_clock(reader(text), zone, gap, overlap, begin, end)


def walk_clock(
    reads: Callable[[datetime], bool], zone: str, gap: str, overlap: str, begin: datetime, end: datetime
) -> list[datetime]:
    """Walks like `walk`, for any function that tells which whole minutes of the clock on the wall it admits."""
    info = zone_info(zone)
    found = set()
    instant = begin - timedelta(days=2)
    before = (instant - MINUTE).astimezone(info)
    while instant <= end:
        here = instant.astimezone(info)
        wall = here.replace(tzinfo=None)
        if reads(wall):
            twice = here.replace(fold=0).utcoffset() != here.replace(fold=1).utcoffset()
            if not twice or overlap == "both" or overlap == ("second" if here.fold else "first"):
                found.add(instant)
        missing = before.replace(tzinfo=None) + MINUTE
        while missing < wall:
            if reads(missing) and gap != "skip":
                found.add(instant if gap == "next_valid" else missing.replace(tzinfo=UTC) - before.utcoffset())
            missing += MINUTE
        before = here
        instant += MINUTE
    return sorted(instant for instant in found if begin <= instant <= end)


def reader(text: str) -> Callable[[datetime], bool]:
    """Tells whether a cron text admits what a clock reads."""
    minutes, hours, days, months, weekdays = text.split()
    wanted_minutes, wanted_hours = numbers(minutes, 0, 59, []), numbers(hours, 0, 23, [])
    wanted_months, wanted_days = numbers(months, 1, 12, MONTHS), numbers(days, 1, 31, [])
    wanted_weekdays = {n % 7 for n in numbers(weekdays, 0, 7, WEEKDAYS)}

    def reads(wall: datetime) -> bool:
        if wall.minute not in wanted_minutes or wall.hour not in wanted_hours or wall.month not in wanted_months:
            return False
        by_date, by_weekday = wall.day in wanted_days, wall.isoweekday() % 7 in wanted_weekdays
        if days.startswith("*") or weekdays.startswith("*"):
            return by_date and by_weekday
        return by_date or by_weekday

    return reads


def numbers(text: str, low: int, high: int, names: list[str]) -> set[int]:
    """Returns what one field admits, item after item."""
    admitted = set()
    for item in text.lower().split(","):
        span, _, step = item.partition("/")
        if span == "*":
            first, last = low, 6 if high == 7 else high
        elif "-" in span:
            first, last = (number(end, names) for end in span.split("-"))
        else:
            first = number(span, names)
            last = max(first, 6 if high == 7 else high) if step else first
        admitted |= {n for n in range(low, high + 1) if first <= n <= last and (n - first) % int(step or 1) == 0}
    return admitted


def number(text: str, names: list[str]) -> int:
    return names.index(text) if text in names else int(text)
