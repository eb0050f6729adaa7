"""The limit of plain Python: five cron fields as bit masks and the shortest loop that finds a next instant.

It refuses numbers out of bounds, as whoever stores the text must, and no more: no rule for clock changes, no position
in a refusal, no window, no summary, no previous.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_MONTHS = {
    name: n
    for n, name in enumerate(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1)
}
_DAYS = {name: n for n, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_BOUNDS = ((0, 59, {}), (0, 23, {}), (1, 31, {}), (1, 12, _MONTHS), (0, 7, _DAYS))
_WEEKS = sum(1 << 7 * week for week in range(6))
_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
Masks = tuple[int, int, int, int, int, bool]


def parse(text: str) -> Masks:
    words = text.split()
    masks = []
    for word, (low, high, names) in zip(words, _BOUNDS, strict=True):
        mask = 0
        for item in word.split(","):
            span, _, step = item.partition("/")
            if span == "*":
                first, last = low, high
            else:
                begin, dash, end = span.partition("-")
                first = int(begin) if begin.isdigit() else names[begin.lower()]
                last = (int(end) if end.isdigit() else names[end.lower()]) if dash else high if step else first
                if not low <= first <= last <= high:
                    raise ValueError(item)
            if step:
                for value in range(first, last + 1, int(step)):
                    mask |= 1 << value
            else:
                mask |= (2 << last) - (1 << first)
        masks.append(mask)
    minutes, hours, days, months, weekdays = masks
    either = words[2][0] != "*" and words[4][0] != "*"
    return minutes, hours, days, months, ((weekdays | weekdays >> 7) & 127) * _WEEKS << 1, either


def next_after(masks: Masks, instant: datetime, zone: ZoneInfo) -> datetime:
    minutes, hours, days, months, weeks, either = masks
    local = instant.astimezone(zone)
    year, month, day, hour, minute = local.year, local.month, local.day, local.hour, local.minute
    while True:
        if months >> month & 1:
            here = weeks >> date(year, month, 1).toordinal() % 7
            length = 29 if month == 2 and year % 4 == 0 and (year % 100 or year % 400 == 0) else _LENGTHS[month]
            left = (days | here if either else days & here) & (2 << length) - 2
            if day and left >> day & 1:
                if hours >> hour & 1 and (later := minutes >> minute + 1):
                    minute += (later & -later).bit_length()
                    return datetime(year, month, day, hour, minute, tzinfo=zone).astimezone(UTC)
                if later := hours >> hour + 1:
                    hour += (later & -later).bit_length()
                    minute = (minutes & -minutes).bit_length() - 1
                    return datetime(year, month, day, hour, minute, tzinfo=zone).astimezone(UTC)
            left = left >> day + 1 << day + 1
            if left:
                day = (left & -left).bit_length() - 1
                hour, minute = (hours & -hours).bit_length() - 1, (minutes & -minutes).bit_length() - 1
                return datetime(year, month, day, hour, minute, tzinfo=zone).astimezone(UTC)
        year, month, day = year + month // 12, month % 12 + 1, 0
