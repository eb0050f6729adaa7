"""RRULE of an imported event: FREQ from DAILY to YEARLY, its days tested one by one for 20 years."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from sweephand.schedules.grids.calendar_masks import month_length

YEARS = 20
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_BY_DAY = re.compile(r"([+-]?[1-5])?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_PARTS = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYMONTH", "BYMONTHDAY")
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
MOST = 9_999


@dataclass(frozen=True)
class Recurrence:
    """A parsed RRULE. by_day: (which in the month or None, weekday; Monday is 0). until: the last second of a start."""

    frequency: str
    interval: int = 1
    count: int | None = None
    until: int | None = None
    week_begins: int = 0
    by_day: tuple[tuple[int | None, int], ...] = ()
    months: frozenset[int] = frozenset()
    month_days: frozenset[int] = frozenset()

    @property
    def endless(self) -> bool:
        return self.count is None and self.until is None

    @property
    def weekdays(self) -> set[int]:
        return {weekday for _, weekday in self.by_day}

    @property
    def each_year(self) -> bool:
        """Returns whether it is the day of its start, each year."""
        return self == Recurrence("YEARLY", week_begins=self.week_begins)

    @property
    def each_week(self) -> bool:
        plain = Recurrence("WEEKLY", week_begins=self.week_begins, by_day=self.by_day)
        return self == plain and all(which is None for which, _ in self.by_day)

    def days(self, start: date, second_of: Callable[[date], int]) -> list[date]:
        """Returns its days in 20 years from `start`, within COUNT and UNTIL. second_of: when a day's starts."""
        found: list[date] = []
        for n in range(YEARS * 366):
            day = start + timedelta(days=n)
            if day.year > 2199 or (self.until is not None and second_of(day) > self.until):
                break
            if self._has(day, start):
                found.append(day)
                if len(found) == self.count:
                    break
        return found

    def _has(self, day: date, start: date) -> bool:
        if self.months and day.month not in self.months:
            return False
        if self.month_days and not self.month_days & {day.day, day.day - month_length(day.year, day.month) - 1}:
            return False
        if self.by_day and not any(_is(which, weekday, day) for which, weekday in self.by_day):
            return False
        return self._in_turn(day, start) and (self._says_day or self._as_start(day, start))

    @property
    def _says_day(self) -> bool:
        return self.frequency == "DAILY" or bool(self.by_day) or bool(self.month_days)

    def _as_start(self, day: date, start: date) -> bool:
        """Returns whether a day is that of the start, which counts if the rule names no days."""
        if self.frequency == "WEEKLY":
            return day.weekday() == start.weekday()
        return day.day == start.day and (self.frequency == "MONTHLY" or bool(self.months) or day.month == start.month)

    def _in_turn(self, day: date, start: date) -> bool:
        if self.frequency == "DAILY":
            passed = (day - start).days
        elif self.frequency == "WEEKLY":
            passed = (_week(day, self.week_begins) - _week(start, self.week_begins)).days // 7
        elif self.frequency == "MONTHLY":
            passed = (day.year - start.year) * 12 + day.month - start.month
        else:
            passed = day.year - start.year
        return passed % self.interval == 0


def _week(day: date, begins: int) -> date:
    return day - timedelta(days=(day.weekday() - begins) % 7)


def _is(which: int | None, weekday: int, day: date) -> bool:
    if day.weekday() != weekday:
        return False
    if which is None:
        return True
    from_end = (month_length(day.year, day.month) - day.day) // 7 + 1
    return which == ((day.day - 1) // 7 + 1 if which > 0 else -from_end)


def recurrence(text: str, second: Callable[[str], int]) -> Recurrence:
    """Parses RRULE. second: returns the last second that UNTIL lets in. Raises ValueError with a reason for people."""
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
    found = Recurrence(
        frequency=frequency,
        interval=_number(parts.get("INTERVAL", "1"), "INTERVAL", MOST),
        count=_number(parts["COUNT"], "COUNT", MOST) if "COUNT" in parts else None,
        until=until,
        week_begins=_DAYS.index(_weekday(parts.get("WKST", "MO"))),
        by_day=tuple(_by_day(each) for each in parts["BYDAY"].split(",")) if "BYDAY" in parts else (),
        months=_numbers(parts, "BYMONTH", 12, negative=False),
        month_days=_numbers(parts, "BYMONTHDAY", 31, negative=True),
    )
    within_months = frequency == "MONTHLY" or (frequency == "YEARLY" and found.months)
    if not within_months and any(which is not None for which, _ in found.by_day):
        raise ValueError("RRULE: a numbered BYDAY needs FREQ=MONTHLY, or FREQ=YEARLY with BYMONTH")
    if frequency == "WEEKLY" and found.month_days:
        raise ValueError("RRULE: BYMONTHDAY must not be combined with FREQ=WEEKLY")
    return found


def _number(text: str, name: str, most: int) -> int:
    if not re.fullmatch("[0-9]{1,4}", text, re.ASCII) or not 1 <= int(text) <= most:
        raise ValueError(f"RRULE: {name} must be within 1..{most:,}")
    return int(text)


def _numbers(parts: dict[str, str], name: str, most: int, *, negative: bool) -> frozenset[int]:
    if name not in parts:
        return frozenset()
    found = set()
    for text in parts[name].split(","):
        if not re.fullmatch("[+-]?[0-9]{1,2}", text, re.ASCII):
            raise ValueError(f"RRULE: {name} must be numbers separated by commas")
        number = int(text)
        if not 1 <= abs(number) <= most or (number < 0 and not negative):
            raise ValueError(f"RRULE: {name} {number} is outside {-most if negative else 1}..{most}")
        found.add(number)
    return frozenset(found)


def _weekday(text: str) -> str:
    if text not in _DAYS:
        raise ValueError(f"RRULE: {text[:10]!r} is not a day such as MO")
    return text


def _by_day(text: str) -> tuple[int | None, int]:
    found = _BY_DAY.fullmatch(text)
    if found is None:
        raise ValueError(f"RRULE: {text[:10]!r} is not a day such as MO, 1MO or -1SU")
    return (int(found[1]) if found[1] else None), _DAYS.index(found[2])
