"""A slow and obvious recurrence: whether a minute of the clock on the wall belongs to it, each rule spelled out."""

from __future__ import annotations

import calendar
from datetime import datetime, timedelta
from typing import Any

WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def admits(given: dict[str, Any], anchor: datetime, wall: datetime, overflow: str | None) -> bool:
    """Tells whether the recurrence admits the wall time. given: the recurrence, with a schedule if its frequency is
    minute or hour. anchor, wall: naive whole minutes.
    """
    unit, interval, schedule = given["frequency"].lower(), given["interval"], given.get("schedule", {})
    minutes, hours = schedule.get("minutes"), schedule.get("hours")
    if unit == "minute":
        on_grid = (wall - anchor) // MINUTE % interval == 0
        return on_grid and (not hours or wall.hour in hours) and (not minutes or wall.minute in minutes)
    if unit == "hour":
        on_grid = (wall.replace(minute=0) - anchor.replace(minute=0)) // HOUR % interval == 0
        return on_grid and (not hours or wall.hour in hours) and wall.minute in (minutes or [anchor.minute])
    if wall.minute not in (minutes or [anchor.minute]):
        return False
    if wall.hour not in (hours or (range(24) if minutes else [anchor.hour])):
        return False
    if unit == "day":
        return (wall.date() - anchor.date()).days % interval == 0
    if unit == "week":
        weeks = (monday(wall) - monday(anchor)).days // 7
        named = [name.lower() for name in schedule.get("weekDays", [])] or [WEEKDAYS[anchor.weekday()]]
        return weeks % interval == 0 and WEEKDAYS[wall.weekday()] in named
    return in_month(schedule, anchor, wall, interval * (12 if unit == "year" else 1), overflow)


def monday(day: datetime) -> datetime:
    return day.replace(hour=0, minute=0) - timedelta(days=day.weekday())


def in_month(schedule: dict[str, Any], anchor: datetime, wall: datetime, every: int, overflow: str | None) -> bool:
    length = calendar.monthrange(wall.year, wall.month)[1]
    in_turn = months_between(anchor, wall) % every == 0
    if schedule.get("monthlyOccurrences"):
        return in_turn and any(is_nth(each, wall, length) for each in schedule["monthlyOccurrences"])
    dates = schedule.get("monthDays") or [anchor.day]
    overflow = overflow or ("skip" if schedule.get("monthDays") else "clamp")
    if in_turn and (wall.day in dates or wall.day - length - 1 in dates):
        return True
    if overflow == "clamp":
        return in_turn and wall.day == length and max(dates) > length
    if overflow == "next" and wall.day == 1:
        before = wall - timedelta(days=1)
        return months_between(anchor, before) % every == 0 and max(dates) > before.day
    return False


def months_between(anchor: datetime, wall: datetime) -> int:
    return (wall.year - anchor.year) * 12 + wall.month - anchor.month


def is_nth(each: dict[str, Any], wall: datetime, length: int) -> bool:
    if WEEKDAYS[wall.weekday()] != each["day"].lower():
        return False
    from_start, from_end = (wall.day - 1) // 7 + 1, -((length - wall.day) // 7 + 1)
    return each.get("occurrence") in (None, from_start, from_end)


def clock_rules(given: dict[str, Any], gap: str, overlap: str) -> tuple[str, str]:
    """Returns (gap, overlap) that act: the caller's where the hour is fixed; what is a grid loses and doubles
    nothing.
    """
    unit, schedule = given["frequency"].lower(), given.get("schedule", {})
    hours = set(schedule.get("hours") or range(24)) if schedule.get("hours") or schedule.get("minutes") else set()
    every_hour = hours == set(range(24)) or (not hours and unit in ("minute", "hour"))
    if not every_hour:
        return gap, overlap
    wide = given["interval"] > (60 if unit == "minute" else 1)
    return ("next_valid", "first") if unit in ("minute", "hour") and wide else ("skip", "both")
