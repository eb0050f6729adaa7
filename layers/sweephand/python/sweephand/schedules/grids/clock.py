"""Times of the day, picked by hour, minute and second."""

from __future__ import annotations

from itertools import pairwise
from math import gcd

from sweephand.base.records import dataclass
from sweephand.schedules.grids.calendar_masks import bits, lowest

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Clock:
    """Times of a day. Bit n of `hours` is hour n, and so on; no mask is empty. Times: wall seconds since midnight."""

    hours: int
    minutes: int = 1
    seconds: int = 1

    @classmethod
    def at(cls, time: int) -> Clock:
        """Returns the clock of a single time."""
        return cls(1 << time // 3600, 1 << time // 60 % 60, 1 << time % 60)

    @property
    def first(self) -> int:
        hour, minute = (self.hours & -self.hours).bit_length() - 1, (self.minutes & -self.minutes).bit_length() - 1
        return hour * 3600 + minute * 60 + (self.seconds & -self.seconds).bit_length() - 1

    @property
    def last(self) -> int:
        return (
            (self.hours.bit_length() - 1) * 3600 + (self.minutes.bit_length() - 1) * 60 + self.seconds.bit_length() - 1
        )

    def after(self, time: int) -> int | None:
        """Returns the first time strictly after `time` on the same day."""
        rest, second = divmod(time, 60)
        hour, minute = divmod(rest, 60)
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1 and (left := self.seconds >> second + 1):
                return time + (left & -left).bit_length()
            if left := self.minutes >> minute + 1:
                first = (self.seconds & -self.seconds).bit_length() - 1
                return hour * 3600 + (minute + (left & -left).bit_length()) * 60 + first
        if left := self.hours >> hour + 1:
            return (hour + (left & -left).bit_length()) * 3600 + self.first % 3600
        return None

    def until(self, time: int) -> int | None:
        """Returns the last time at or before `time` on the same day."""
        rest, second = divmod(time, 60)
        hour, minute = divmod(rest, 60)
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1 and (left := self.seconds & (2 << second) - 1):
                return hour * 3600 + minute * 60 + left.bit_length() - 1
            if left := self.minutes & (1 << minute) - 1:
                return hour * 3600 + (left.bit_length() - 1) * 60 + self.seconds.bit_length() - 1
        if left := self.hours & (1 << hour) - 1:
            return (left.bit_length() - 1) * 3600 + (self.minutes.bit_length() - 1) * 60 + self.seconds.bit_length() - 1
        return None

    def times(self) -> int:
        """Returns how many times a day has."""
        return self.hours.bit_count() * self.minutes.bit_count() * self.seconds.bit_count()

    def count(self, first: int, last: int) -> int:
        """Returns how many times lie from `first` to `last`, both included."""
        return self._count_until(last) - self._count_until(first - 1) if first <= last else 0

    def shortest_gap_s(self, days: int = 1) -> int:
        """Returns the smallest distance between two times, counting the first one of the next day, `days` later."""
        gaps = []
        for mask, unit in ((self.seconds, 1), (self.minutes, 60), (self.hours, 3600)):
            numbers = bits(mask)
            gaps.append(min((later - number for number, later in pairwise(numbers)), default=0) * unit)
        span_s = self.seconds.bit_length() - 1 - lowest(self.seconds)
        span_m = (self.minutes.bit_length() - 1 - lowest(self.minutes)) * 60 + span_s
        within = [gaps[0], gaps[1] and gaps[1] - span_s, gaps[2] and gaps[2] - span_m]
        return min(gap for gap in (*within, DAY_S * days - (self.last - self.first)) if gap)

    def common_s(self) -> int:
        """Returns a number of seconds that divides the distance between any two times, of whichever days."""
        common = DAY_S
        for mask, unit in ((self.seconds, 1), (self.minutes, 60), (self.hours, 3600)):
            common = gcd(common, *((number - lowest(mask)) * unit for number in bits(mask)))
        return common

    def _count_until(self, time: int) -> int:
        if time < 0:
            return 0
        rest, second = divmod(time, 60)
        hour, minute = divmod(rest, 60)
        in_minute = (self.seconds & (2 << second) - 1).bit_count() if self.minutes >> minute & 1 else 0
        before_minute = (self.minutes & (1 << minute) - 1).bit_count() * self.seconds.bit_count()
        in_hour = in_minute + before_minute if self.hours >> hour & 1 else 0
        whole_hours = (self.hours & (1 << hour) - 1).bit_count()
        return whole_hours * self.minutes.bit_count() * self.seconds.bit_count() + in_hour
