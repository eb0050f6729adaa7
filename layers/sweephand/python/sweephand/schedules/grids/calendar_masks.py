"""Wall times picked by minute, hour, day, month and weekday, each a bit mask: bit n of `hours` is hour n."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from math import gcd

from sweephand.schedules.rule import Series
from sweephand.values import value

MONTHS_SHORT = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS_SHORT = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_YEAR, _LAST_YEAR = 1969, 2200  # one beyond the horizon on each side, for zones off UTC
_FIRST_WALL = (date(_FIRST_YEAR, 1, 1).toordinal() - _EPOCH_DAY) * 86_400
_LAST_WALL = (date(_LAST_YEAR, 12, 31).toordinal() - _EPOCH_DAY) * 86_400 + 86_399
_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LONGEST = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SIX_WEEKS = sum(1 << 7 * week for week in range(6))


@value
class CalendarMasks(Series):
    """A series of wall seconds, all on whole minutes.

    weekdays: bit 0 is Sunday. either: a day counts if `days` or `weekdays` has it (Vixie cron's rule when both are
    restricted), else both must. No search looks at more than the months of 231 years.
    """

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    either: bool

    def ever(self) -> bool:
        """Returns whether any day of the calendar matches. Every date falls on every weekday within the horizon."""
        if self.either and self.weekdays:
            return bool(self.months)
        return any(self.months >> month & 1 and self.days & (2 << _LONGEST[month]) - 2 for month in range(1, 13))

    def after(self, second: int) -> int | None:
        day, clock = divmod(second, 86_400)
        on = date.fromordinal(day + _EPOCH_DAY)
        year, month = on.year, on.month
        if self.months >> month & 1:
            left = self._days_of(year, month) >> on.day
            if left & 1:
                time = self._clock_after(clock // 60)
                if time is not None:
                    return day * 86_400 + time
            left &= -2
            if left:
                day += (left & -left).bit_length() - 1
                return day * 86_400 + self._first_time()
        while True:
            later = self.months >> month + 1
            if later:
                month += (later & -later).bit_length()
            else:
                year, month = year + 1, (self.months & -self.months).bit_length() - 1
                if year > _LAST_YEAR:
                    return None
            days = self._days_of(year, month)
            if days:
                first = date(year, month, 1).toordinal() - _EPOCH_DAY
                return (first + (days & -days).bit_length() - 2) * 86_400 + self._first_time()

    def until(self, second: int) -> int | None:
        day, clock = divmod(second, 86_400)
        on = date.fromordinal(day + _EPOCH_DAY)
        year, month = on.year, on.month
        days = self._days_of(year, month) & (2 << on.day) - 1 if self.months >> month & 1 else 0
        if days >> on.day & 1:
            time = self._clock_until(clock // 60)
            if time is not None:
                return day * 86_400 + time
            days ^= 1 << on.day
        while not days:
            earlier = self.months & (1 << month) - 1
            if not earlier:
                year, earlier = year - 1, self.months
                if year < _FIRST_YEAR:
                    return None
            month = earlier.bit_length() - 1
            days = self._days_of(year, month)
        return (date(year, month, days.bit_length() - 1).toordinal() - _EPOCH_DAY) * 86_400 + self._last_time()

    def count(self, after: int, until: int, limit: int) -> int:
        """Counts by months; the times of a day are counted by its masks."""
        after, until = max(after, _FIRST_WALL), min(until, _LAST_WALL)
        if after >= until:
            return 0
        (first, begun), (last, ended) = divmod(after, 86_400), divmod(until, 86_400)
        found = self._count_days(first, last - 1) * self.hours.bit_count() * self.minutes.bit_count()
        found += self._count_days(last, last) * self._times_until(ended // 60)
        found -= self._count_days(first, first) * self._times_until(begun // 60)
        return max(0, min(found, limit))

    def shortest_gap_s(self) -> int:
        """Returns the smallest distance between two wall times, as if every day matched."""
        minutes, hours = bits(self.minutes), bits(self.hours)
        hour_gap = min(later - hour for hour, later in zip(hours, [*hours[1:], hours[0] + 24], strict=True))
        within = [later - minute for minute, later in pairwise(minutes)]
        return 60 * min([hour_gap * 60 - (minutes[-1] - minutes[0]), *within])

    def common_s(self) -> int:
        """Returns a number of seconds that divides the distance between any two wall times, of whichever days."""
        minutes, hours = bits(self.minutes), bits(self.hours)
        steps = [*((hour - hours[0]) * 3600 for hour in hours), *((minute - minutes[0]) * 60 for minute in minutes)]
        return gcd(86_400, *steps)

    def _days_of(self, year: int, month: int) -> int:
        """Returns the matching days of a month: bit n is day n."""
        length = _LENGTHS[month] if month != 2 else month_length(year, 2)
        in_weeks = self.weekdays * _SIX_WEEKS << 1 >> date(year, month, 1).toordinal() % 7
        return (self.days | in_weeks if self.either else self.days & in_weeks) & (2 << length) - 2

    def _count_days(self, first: int, last: int) -> int:
        """Returns how many matching days lie from day `first` to day `last`."""
        found = 0
        while first <= last:
            on = date.fromordinal(first + _EPOCH_DAY)
            rest = month_length(on.year, on.month) - on.day
            if self.months >> on.month & 1:
                here = self._days_of(on.year, on.month) >> on.day
                found += (here & (2 << min(rest, last - first)) - 1).bit_count()
            first += rest + 1
        return found

    def _times_until(self, minute: int) -> int:
        """Returns how many times of a day lie at or before that minute of it."""
        hour, minute = divmod(minute, 60)
        within = (self.minutes & (2 << minute) - 1).bit_count() if self.hours >> hour & 1 else 0
        return (self.hours & (1 << hour) - 1).bit_count() * self.minutes.bit_count() + within

    def _clock_after(self, minute: int) -> int | None:
        """Returns the second of the day of the first time after that minute of the day."""
        hour, minute = divmod(minute, 60)
        if self.hours >> hour & 1:
            left = self.minutes >> minute + 1
            if left:
                return hour * 3600 + (minute + (left & -left).bit_length()) * 60
        later = self.hours >> hour + 1
        if not later:
            return None
        return (hour + (later & -later).bit_length()) * 3600 + ((self.minutes & -self.minutes).bit_length() - 1) * 60

    def _clock_until(self, minute: int) -> int | None:
        """Returns the second of the day of the last time at or before that minute of the day."""
        hour, minute = divmod(minute, 60)
        if self.hours >> hour & 1:
            left = self.minutes & (2 << minute) - 1
            if left:
                return hour * 3600 + (left.bit_length() - 1) * 60
        earlier = self.hours & (1 << hour) - 1
        if not earlier:
            return None
        return (earlier.bit_length() - 1) * 3600 + (self.minutes.bit_length() - 1) * 60

    def _first_time(self) -> int:
        return ((self.hours & -self.hours).bit_length() - 1) * 3600 + (
            (self.minutes & -self.minutes).bit_length() - 1
        ) * 60

    def _last_time(self) -> int:
        return (self.hours.bit_length() - 1) * 3600 + (self.minutes.bit_length() - 1) * 60


def month_length(year: int, month: int) -> int:
    """Returns how many days a month has; month 1 is January."""
    return 29 if month == 2 and year % 4 == 0 and (year % 100 or year % 400 == 0) else _LENGTHS[month]


def bits(mask: int) -> list[int]:
    """Returns the numbers of the set bits, rising."""
    return [number for number in range(mask.bit_length()) if mask >> number & 1]
