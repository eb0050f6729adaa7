"""Plain English for calendar masks."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from sweephand.schedules.grids.calendar_masks import LONGEST_MONTHS, bits
from sweephand.schedules.grids.days import ALL_YEARS, FIRST_YEAR
from sweephand.schedules.zones.localtime import MonthOverflow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sweephand.schedules.grids.clock import Clock
    from sweephand.schedules.grids.days import DayFields

MONTHS = tuple(
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
_MOST_TIMES = 6
_LACKING = {
    MonthOverflow.SKIP: "; a month without such a day has none",
    MonthOverflow.CLAMP: "; a month without such a day has its last one",
    MonthOverflow.NEXT: "; for a month without such a day, the first of the next",
}


def in_zone(zone: str, *parts: str) -> str:
    """Returns the parts that are not empty as a sentence with the zone, which is left out if it is UTC.

    Only the first of several spans has "from": "every hour from 09:00 to 17:59, Monday to Friday, June to August".
    """
    sentence = ""
    for part in filter(None, parts):
        again = part.startswith("from ") and " from " in sentence
        sentence += f", {part.removeprefix('from ')}" if again else f" {part}"
    sentence = sentence.removeprefix(" ")
    return sentence if zone == "UTC" else f"{sentence}, {zone}"


def listed(parts: Sequence[str], last: str = "and") -> str:
    """Returns "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def times(hour_mask: int, minute_mask: int) -> str:
    """Returns "at 02:30", "every 5 minutes from 09:00 to 16:59"."""
    minutes, hours = bits(minute_mask), bits(hour_mask)
    if len(minutes) * len(hours) <= _MOST_TIMES and len(hours) < 24:
        return f"at {listed([f'{hour:02d}:{minute:02d}' for hour in hours for minute in minutes])}"
    hour_step = _step(hours, 24) if hours[0] == 0 else 0
    if minutes == [0]:
        if hour_step:
            return "every hour" if hour_step == 1 else f"every {hour_step} hours from 00:00"
        return f"every hour {_hours(hours)}"
    minute_step = _step(minutes, 60)
    if minute_step == 1:
        often, each_hour = "every minute", ""
    elif minute_step and minutes[0] == 0:
        often, each_hour = f"every {minute_step} minutes", ""
    else:
        often, each_hour = f"at minute{'' if len(minutes) == 1 else 's'} {numbers(minutes)}", " of every hour"
    if hour_step == 1:
        return often + each_hour
    if hour_step:
        return f"{often} of every {ordinal(hour_step)} hour from 00:00"
    return f"{often}{each_hour} {_hours(hours)}"


def clock_times(clock: Clock) -> str:
    """Returns `times` with seconds, unless they are only 0: "every 10 seconds of minute 0 from 10:00 to 12:59"."""
    if clock.seconds == 1:
        return times(clock.hours, clock.minutes)
    hours, minutes, seconds = bits(clock.hours), bits(clock.minutes), bits(clock.seconds)
    if clock.times() <= _MOST_TIMES:
        phrases = [f"{hour:02d}:{minute:02d}:{each:02d}" for hour in hours for minute in minutes for each in seconds]
        return f"at {listed(phrases)}"
    step = _step(seconds, 60) if seconds[0] == 0 else 0
    often = f"at second{'' if len(seconds) == 1 else 's'} {numbers(seconds)}"
    if step:
        often = "every second" if step == 1 else f"every {step} seconds"
    of_minutes = f" of minute{'' if len(minutes) == 1 else 's'} {numbers(minutes)}" if len(minutes) < 60 else ""
    if not step and not of_minutes:
        of_minutes = " of every minute"
    return often + of_minutes + (f" {_hours(hours)}" if len(hours) < 24 else "")


def _hours(hours: Sequence[int]) -> str:
    (low, high), *others = _runs(hours)
    return f"in the hours {numbers(hours)}" if others else f"from {low:02d}:00 to {high:02d}:59"


def dates(mask: int) -> str:
    """Returns "on day 1 and 15 of the month"; "" for all of them."""
    if _full(mask, 1, 31):
        return ""
    days = bits(mask)
    steps = {later - day for day, later in pairwise(days)}
    if len(days) > 3 and len(steps) == 1 and steps != {1} and days[-1] + max(steps) > 31:
        return f"on every {ordinal(steps.pop())} day of the month from day {days[0]}"
    return f"on day {numbers(days)} of the month"


def weekdays(mask: int) -> str:
    """Returns "from Monday to Friday", "on Monday and Friday"; "" for all of them. Bit 0 is Sunday."""
    return placed("on", weekday_names(mask))


def weekday_names(mask: int, last: str = "and") -> str:
    """Returns "Monday to Friday", "Monday and Friday"; "" for all of them. last: before the last of several."""
    monday_first = (mask >> 1) | (mask & 1) << 6  # so that a weekend is one span
    return "" if _full(mask, 0, 6) else _named(bits(monday_first), (*WEEKDAYS[1:], WEEKDAYS[0]), 0, last)


def placed(preposition: str, names: str) -> str:
    """Returns "on Monday", but "from Monday to Friday" for a single span; "" for no names."""
    is_span = " to " in names and names.count(" ") == 2
    return f"{'from' if is_span else preposition} {names}" if names else ""


def months(mask: int) -> str:
    """Returns "from June to August", "in June and August"; "" for all of them."""
    return placed("in", month_names(mask))


def month_names(mask: int) -> str:
    """Returns "June to August"; "" for all of them."""
    return "" if _full(mask, 1, 12) else _named(bits(mask), MONTHS, 1)


def lacking(days: int, months: int, overflow: MonthOverflow) -> str:
    """Returns a clause saying that some of these months lack dates; "" if that makes no difference."""
    for month in bits(months):
        for length in (28, 29) if month == 2 else (LONGEST_MONTHS[month],):
            if not days >> length + 1:
                continue
            if overflow is MonthOverflow.NEXT:
                existing = days >> 1 & months >> month % 12 + 1 & 1
            elif overflow is MonthOverflow.CLAMP:
                existing = days >> length & 1
            else:
                existing = _full(days, 1, 31)
            if not existing:
                return _LACKING[overflow]
    return ""


def years(mask: int) -> str:
    """Returns "from 2027 to 2030", "in every second year from 2027 to 2199"; "" for all. Bit n is the year 1969 + n."""
    if mask == ALL_YEARS:
        return ""
    listed_years = bits(mask << FIRST_YEAR)
    steps = {later - year for year, later in pairwise(listed_years)}
    if len(listed_years) > 3 and len(steps) == 1 and steps != {1}:
        return f"in every {ordinal(steps.pop())} year from {listed_years[0]} to {listed_years[-1]}"
    return placed("in", numbers(listed_years))


def day_fields(fields: DayFields) -> str:
    """Returns "on day 1 of the month or on Monday"; "" for every day."""
    by_date, by_weekday = dates(fields.dates), weekdays(fields.weekdays)
    if by_date and by_weekday:
        if fields.either:
            return f"{by_date} or {by_weekday}"
        return f"{by_date} if it is a {weekday_names(fields.weekdays, 'or')}"
    if fields.either:
        return ""  # one of the two lists names every day, and either is enough
    return by_date or by_weekday


def _named(numbers: Sequence[int], names: Sequence[str], base: int, last: str = "and") -> str:
    parts = []
    for low, high in _runs(numbers):
        if high > low + 1:
            parts.append(f"{names[low - base]} to {names[high - base]}")
        else:
            parts.extend(names[number - base] for number in sorted({low, high}))
    return listed(parts, last)


def numbers(values: Sequence[int]) -> str:
    """Returns numbers in order: "5, 7 to 9 and 40"."""
    parts = []
    for low, high in _runs(values):
        parts.extend([f"{low} to {high}"] if high > low + 1 else [str(number) for number in sorted({low, high})])
    return listed(parts)


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the numbers as unbroken runs (first, last)."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _step(numbers: Sequence[int], size: int) -> int:
    """Returns the step if the numbers are equal steps around the whole clock, else 0. One number is not a step."""
    gaps = {later - number for number, later in zip(numbers, [*numbers[1:], numbers[0] + size], strict=True)}
    return gaps.pop() if len(gaps) == 1 and len(numbers) > 1 else 0


def ordinal(number: int) -> str:
    """Returns "first", "third", "11th", "22nd"."""
    words = {1: "first", 2: "second", 3: "third"}
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return words.get(number) or f"{number}{ending}"


def from_end(number: int) -> str:
    """Returns "last" for 1, "second-to-last" for 2: the one word for everything that is counted from an end."""
    return "last" if number == 1 else f"{ordinal(number)}-to-last"


def _full(mask: int, low: int, high: int) -> bool:
    return mask == (2 << high) - (1 << low)
