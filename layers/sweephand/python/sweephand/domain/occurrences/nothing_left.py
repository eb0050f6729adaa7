"""The rule for changes that leave a schedule no date, for callers whose `active` is the same as the service's.

| before                  | `active` | new time, or new window of its job  | then                                      |
| ----------------------- | -------- | ----------------------------------- | ----------------------------------------- |
| on                      | -, true  | its own; with a date                | is planned again                          |
| on                      | -, true  | its own; without                    | REFUSED                                   |
| on                      | -, true  | its job's; without                  | is over: ran out                          |
| over: ran out           | -        | with a date                         | goes on                                   |
| over: ran out           | -        | without                             | stays over                                |
| over: past its end      | -        | any                                 | stays off until it is switched on         |
| over, or switched off   | true     | any, or none; with a date           | is on                                     |
| over, or switched off   | true     | any, or none; without               | REFUSED                                   |
| switched off            | -        | any                                 | stays off with the new time, date or not  |
| any                     | false    | any                                 | is off with the new time, date or not     |
| new                     | any      | its own; without                    | is stored and over                        |
| part of its job's body  | -, true  | its own; without                    | is stored and over                        |

"Ran out": it has no further date, although its end lies ahead. "Past its end": its own end or its job's had come before
the change. "-": not sent. The last two lines take precedence, so that an ended schedule never blocks a change of its
job. For other callers the policy onNothingLeft applies. Sources: decisions 0055 and 0083.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import Enum, auto

from sweephand.domain.job import Asked
from sweephand.domain.schedule import OVER, Schedule, ScheduleState


class Stands(Enum):
    ON = auto()
    RAN_OUT = auto()
    END_CAME = auto()
    OFF = auto()


class NothingLeft(Enum):
    """The verdict on a change that leaves no date. POLICY: onNothingLeft decides. KEPT: the change is made anyway."""

    POLICY = auto()
    REFUSED = auto()
    KEPT = auto()


def stands(schedule: Schedule, ends: Iterable[datetime | None], now: datetime) -> Stands:
    """Returns how the schedule stands before the change. ends: its own and its job's, None without one."""
    if not schedule.active:
        return Stands.OFF
    if schedule.state not in OVER | {ScheduleState.BROKEN}:
        return Stands.ON
    return Stands.END_CAME if any(end is not None and end < now for end in ends) else Stands.RAN_OUT


def after_change(how: Stands, asked: Asked, *, own: bool, window: bool) -> tuple[bool, NothingLeft]:
    """Returns whether it will be on, and the verdict if it has no date. own: its timing changes; window: its job's."""
    on = asked.active
    if on is None:
        on = how in {Stands.ON, Stands.RAN_OUT} or (how is Stands.END_CAME and not (own or window))
    if not on:
        return False, NothingLeft.KEPT
    refused = (own if how is Stands.ON else asked.active) and not asked.within_job
    return True, NothingLeft.REFUSED if refused else NothingLeft.KEPT


def after_change_of_single(
    schedule: Schedule, asked: Asked, *, on: bool, another: bool, has_instant: bool
) -> NothingLeft:
    """Returns the verdict on a schedule of one instant that will be on or off.

    another: the caller asks for a new instant. has_instant: its window contains the stored one. A change that would
    take its instant from a schedule that waits is refused; one that is off, has run or was made without an instant
    is not.
    """
    if asked.within_job or not (another or has_instant):
        return NothingLeft.KEPT
    waits = schedule.state in {ScheduleState.ACTIVE, ScheduleState.PAUSED, ScheduleState.INACTIVE}
    return NothingLeft.POLICY if on and (another or waits) else NothingLeft.KEPT
