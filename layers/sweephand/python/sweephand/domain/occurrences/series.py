"""The chain of a schedule's occurrences: what is due in a window, and how the series goes on. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sweephand.domain.occurrences.lateness import FRESH
from sweephand.schedules.rule import Undecided
from sweephand.schedules.timing import Timing, count_between

MOST_AT_ONCE = 1_000
"""Occurrences of one schedule that one look takes up: what is left follows at the next."""


@dataclass(frozen=True)
class Stretch:
    """instants: due, in order.

    next_at: the first that is not, None when the series is over (or its count is reached).
    """

    instants: tuple[datetime, ...]
    next_at: datetime | None

    @property
    def over(self) -> bool:
        return self.next_at is None


def due(timing: Timing, next_at: datetime, until: datetime, planned_total: int, sent_at: datetime) -> Stretch:
    """The occurrences from `next_at` up to and including `until`, within the count that is left.

    next_at: the earliest occurrence not yet sent. sent_at: the sweep's own instant, from which an interval with
    align `actual_start` goes on when the occurrence is late (SAP's repeatInterval). One that is fresh is not: who
    planned it since the last tick sent it on its second, and its rhythm. Where nobody did, the executor that starts
    it late moves what follows (flow/runs/actual_start.py).
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
    """The occurrence after this one."""
    if timing.actual_start_interval_s is None:
        return timing.rule.next_after(occurrence)
    upcoming = max(occurrence, sent_at.replace(microsecond=0)) + timedelta(seconds=timing.actual_start_interval_s)
    return upcoming if timing.rule.next_after(upcoming - timedelta(seconds=1)) is not None else None


MOST_COUNTED = 2**31 - 1
WEEK = timedelta(days=7)


def count_within(timing: Timing, first_at: datetime, last_at: datetime) -> int:
    """How many occurrences lie from `first_at` to `last_at`, both included. Raises Undecided.

    What takes too long to count at once is counted week by week.
    """
    after = first_at - timedelta(seconds=1)
    try:
        return count_between(timing.rule, after, last_at, MOST_COUNTED)
    except Undecided:
        counted = 0
        while after < last_at:
            until = min(after + WEEK, last_at)
            counted += count_between(timing.rule, after, until, MOST_COUNTED)
            after = until
        return counted


def first(timing: Timing, now: datetime) -> datetime | None:
    """The first occurrence of a new or re-planned series: not before `now`, an instant of `now` itself included."""
    return timing.rule.next_after(before_first(now))


def before_first(now: datetime) -> datetime:
    """The whole second behind which a series that begins at `now` has its first occurrence."""
    whole = now.replace(microsecond=0)
    return whole if whole < now else whole - timedelta(seconds=1)
