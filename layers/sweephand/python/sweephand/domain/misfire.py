"""The misfire policy: what becomes of occurrences that were found late. Sweeper and executor ask the same."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sweephand.domain.series import count_within
from sweephand.schedules.timing import Timing

FRESH = timedelta(minutes=2)
"""An occurrence this young is not missed: two ticks have not passed since."""
ALL_UNDER = timedelta(seconds=1_200)
"""SAP: under 20 minutes everything that was missed runs, from 20 minutes on only the last."""


class Misfire(StrEnum):
    SAP = "sap"
    LATEST = "latest"


RATE_PER_MINUTE = 60


@dataclass(frozen=True)
class Policy:
    """rate_per_minute: how fast missed occurrences are sent after an outage."""

    type: Misfire = Misfire.SAP
    rate_per_minute: int = RATE_PER_MINUTE

    def __str__(self) -> str:
        rate = "" if self.rate_per_minute == RATE_PER_MINUTE else f"/{self.rate_per_minute}"
        return f"{self.type}{rate}"

    @classmethod
    def read(cls, text: str) -> Policy:
        """Raises ValueError for a text that nobody wrote."""
        kind, _, rate = text.partition("/")
        return cls(Misfire(kind), int(rate) if rate else RATE_PER_MINUTE)


@dataclass(frozen=True)
class Missed:
    """The missed occurrences of a schedule: the first and last instant, how many, and whether all shall run."""

    first: datetime
    last: datetime
    count: int
    all_run: bool

    @property
    def dropped(self) -> int:
        """How many the policy leaves out: all but the last."""
        return 0 if self.all_run else self.count - 1


def runs_all(policy: Policy, age: timedelta) -> bool:
    """age: of the oldest occurrence that was not sent, when the row was first found overdue."""
    return policy.type is Misfire.SAP and age < ALL_UNDER


def missed(timing: Timing, policy: Policy, next_at: datetime, now: datetime, left: int | None) -> Missed | None:
    """What a sweep at `now` finds missed; None unless more than one occurrence is older than two minutes.

    left: of the schedule's count; None without one. The last missed occurrence is computed, never stepped to.
    """
    if timing.actual_start_interval_s is not None:
        return None  # the next occurrence follows from the start of this one: never more than one is missed
    limit = now - FRESH
    last = timing.rule.last_until(limit)
    if last is None or last <= next_at:
        return None
    all_run = runs_all(policy, now - next_at)
    count = count_within(timing, next_at, last)
    if left is not None and all_run and count > left:
        return None  # the count ends the series within the range: what is left of it is simply sent
    return Missed(next_at, last, count, all_run)


def comes_too_late(timing: Timing, policy: Policy, instant: datetime, now: datetime) -> bool:
    """A message that reaches the executor late: beyond the policy, and a later occurrence already due."""
    lateness = now - instant
    if lateness < FRESH or runs_all(policy, lateness):
        return False
    following = timing.rule.next_after(instant)
    return following is not None and following <= now
