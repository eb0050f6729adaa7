"""Names the missing day of the month that an occurrence stands for (monthOverflow)."""

from __future__ import annotations

from datetime import date, timedelta

from sweephand.schedules.rule import MovedBy
from sweephand.schedules.zones.localtime import EPOCH, wall_text

_EPOCH_DAY = EPOCH.toordinal()


def moved(wall: int, dates: int) -> MovedBy:
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
