"""Equal steps of calendar months on the wall clock."""

from __future__ import annotations

from datetime import date, timedelta

from sweephand.schedules.grids.calendar_masks import month_length
from sweephand.schedules.rule import MovedBy, Series
from sweephand.schedules.zones.localtime import LAST_SECOND, MonthOverflow, wall_text
from sweephand.values import value

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_WALL = -2 * 86_400
_LAST_WALL = LAST_SECOND + 2 * 86_400


@value
class Months(Series):
    """The wall times anchor + k * step months for every whole k, each counted from the anchor, so that nothing drifts.

    anchor: wall seconds. step: 1 or more. From 1970 to 2199.
    """

    anchor: int
    step: int
    overflow: MonthOverflow

    def __post_init__(self) -> None:
        if self.step < 1:
            raise ValueError("a step must be at least one month")

    def after(self, second: int) -> int | None:
        k = (_month_of(second) - _month_of(self.anchor)) // self.step - 1  # MonthOverflow.NEXT lies a month later
        while True:
            wall, nominal = self._wall(k)
            if wall is not None and wall > second:
                return wall if wall <= _LAST_WALL else None
            if nominal > _LAST_WALL:
                return None
            k += 1

    def until(self, second: int) -> int | None:
        k = (_month_of(second) - _month_of(self.anchor)) // self.step
        while True:
            wall, nominal = self._wall(k)
            if wall is not None and wall <= second:
                return wall
            if nominal < _FIRST_WALL:
                return None
            k -= 1

    def moved_by(self, second: int) -> MovedBy | None:
        day = date.fromordinal(self.anchor // 86_400 + _EPOCH_DAY).day
        if date.fromordinal(second // 86_400 + _EPOCH_DAY).day == day or self.until(second) != second:
            return None
        return missing_day(second, 1 << day)

    def day_and_months(self) -> tuple[int, list[int]]:
        """Returns (day of the month of the anchor, the months (1 to 12) that the steps come to)."""
        begun = date.fromordinal(self.anchor // 86_400 + _EPOCH_DAY)
        return begun.day, sorted({(begun.month - 1 + k * self.step) % 12 + 1 for k in range(12)})

    def _wall(self, k: int) -> tuple[int | None, int]:
        """Returns (the k-th wall time, None if its month lacks the day; the first of that month)."""
        day, clock = divmod(self.anchor, 86_400)
        begun = date.fromordinal(day + _EPOCH_DAY)
        months = begun.year * 12 + begun.month - 1 + k * self.step
        year, month = divmod(months, 12)
        first = (date(year, month + 1, 1).toordinal() - _EPOCH_DAY) * 86_400
        longest = month_length(year, month + 1)
        if begun.day <= longest:
            return first + (begun.day - 1) * 86_400 + clock, first
        if self.overflow is MonthOverflow.SKIP:
            return None, first
        return first + (longest - (self.overflow is MonthOverflow.CLAMP)) * 86_400 + clock, first


def _month_of(wall: int) -> int:
    on = date.fromordinal(wall // 86_400 + _EPOCH_DAY)
    return on.year * 12 + on.month - 1


def missing_day(wall: int, dates: int) -> MovedBy:
    """Marks an occurrence on the last day of a month that lacks one of `dates`, or on the day after it.

    wall: wall seconds. dates: bit n is day n of the month. The mark names the first missing day: 2027-02-31T09:00:00.
    """
    day, time = divmod(wall, 86_400)
    on = date.fromordinal(day + _EPOCH_DAY)
    if on.day == 1:
        on -= timedelta(days=1)
    lacking = dates >> on.day + 1
    first = on.day + (lacking & -lacking).bit_length()
    return MovedBy("monthOverflow", f"{on:%Y-%m}-{first}{wall_text(time)[10:]}", "moved")
