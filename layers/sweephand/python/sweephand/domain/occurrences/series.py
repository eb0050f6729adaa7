"""The series of a schedule: the occurrences due in a window, and the one after them. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.base.records import dataclass
from sweephand.domain.occurrences.lateness import FRESH
from sweephand.schedules.rule import Undecided, count_between
from sweephand.schedules.timing import Timing

MOST_AT_ONCE = 1_000
"""The most occurrences of one schedule in one sweep. The rest follow in the next one."""


@dataclass(frozen=True)
class Stretch:
    """The occurrences due in a window, in order.

    next_at: the first that is not due yet; None if the series is over or its count is reached.
    """

    instants: tuple[datetime, ...]
    next_at: datetime | None

    @property
    def over(self) -> bool:
        return self.next_at is None


def due(timing: Timing, next_at: datetime, until: datetime, planned_total: int, sent_at: datetime) -> Stretch:
    """Returns the occurrences from `next_at` up to and including `until`, within the remaining count.

    next_at: the earliest occurrence not yet sent. sent_at: the instant of the sweep. After a late occurrence, an
    interval with align `actual_start` continues from there (SAP's repeatInterval). An occurrence that is less than two
    minutes old is not late: if it was planned since the last tick, it was sent in time. Otherwise the executor that
    starts it late moves the next one (server/flow/series/late_starts.py).
    """
    left = MOST_AT_ONCE if timing.count is None else min(MOST_AT_ONCE, timing.count - planned_total)
    instants: list[datetime] = []
    upcoming: datetime | None = next_at
    while upcoming is not None and upcoming <= until and len(instants) < left:
        instants.append(upcoming)
        upcoming = following(timing, upcoming, upcoming if sent_at - upcoming <= FRESH else sent_at)
    if timing.count is not None and planned_total + len(instants) >= timing.count:
        upcoming = None
    return Stretch(tuple(instants), upcoming)


def following(timing: Timing, occurrence: datetime, sent_at: datetime) -> datetime | None:
    """Returns the next occurrence; None after the last.

    A one-time schedule has one, even if newer zone data names another instant for it.
    """
    if not timing.recurring:
        return None
    if timing.actual_start_interval_s is None:
        return timing.rule.next_after(occurrence)
    upcoming = max(occurrence, sent_at.replace(microsecond=0)) + timedelta(seconds=timing.actual_start_interval_s)
    return upcoming if timing.rule.next_after(upcoming - timedelta(seconds=1)) is not None else None


MOST_COUNTED = 2**31 - 1
WEEK = timedelta(days=7)


def count_within(timing: Timing, first_at: datetime, last_at: datetime, most: int = MOST_COUNTED) -> int:
    """Counts the occurrences from `first_at` to `last_at`, both included, up to `most` of them. Raises Undecided.

    Counts week by week if counting everything at once takes too long.
    """
    after = first_at - timedelta(seconds=1)
    try:
        return count_between(timing.rule, after, last_at, most)
    except Undecided:
        counted = 0
        while after < last_at and counted < most:
            until = min(after + WEEK, last_at)
            counted += count_between(timing.rule, after, until, most - counted)
            after = until
        return counted


def first(timing: Timing, now: datetime) -> datetime | None:
    """Returns the first occurrence of a new or changed series, at or after `now`."""
    return timing.rule.next_after(before_first(now))


def before_first(now: datetime) -> datetime:
    """Returns the whole second after which a series that begins at `now` has its first occurrence."""
    whole = now.replace(microsecond=0)
    return whole if whole < now else whole - timedelta(seconds=1)
