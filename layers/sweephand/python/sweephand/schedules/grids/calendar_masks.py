"""Bit masks of the calendar: bit n of a mask of days is day n. Also the names and lengths of months."""

from __future__ import annotations

MONTHS_SHORT = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS_SHORT = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
ALL_DATES, ALL_WEEKDAYS = (2 << 31) - 2, 0x7F
LONGEST_MONTHS = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def month_length(year: int, month: int) -> int:
    """Returns how many days a month has; month 1 is January."""
    return 28 if month == 2 and (year % 4 or (year % 100 == 0 and year % 400)) else LONGEST_MONTHS[month]


def bits(mask: int) -> list[int]:
    """Returns the numbers of the set bits, in ascending order."""
    return [number for number in range(mask.bit_length()) if mask >> number & 1]


def lowest(mask: int) -> int:
    """Returns the number of the lowest set bit."""
    return (mask & -mask).bit_length() - 1
