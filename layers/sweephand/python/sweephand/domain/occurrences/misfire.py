"""What becomes of occurrences that were found late. Sweeper and executor ask the same, by the policy of lateness.py."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sweephand.domain.occurrences.lateness import FRESH, Misfire, Policy
from sweephand.domain.occurrences.series import count_within
from sweephand.domain.run import Reason, State
from sweephand.schedules.timing import Timing

SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Span:
    """`count` occurrences in a row: the first and the last instant."""

    first: datetime
    last: datetime
    count: int

    def has(self, instant: datetime) -> bool:
        return self.first <= instant <= self.last


@dataclass(frozen=True)
class LeftOut:
    """Occurrences that the policy does not run, and why."""

    span: Span
    state: State
    reason: Reason


@dataclass(frozen=True)
class Missed:
    """The verdict on the missed occurrences of a schedule, from the first to the last.

    left_out: in order, before what runs. caught_up: those that all run, paced. latest: the only one that runs.
    """

    span: Span
    left_out: tuple[LeftOut, ...] = ()
    caught_up: Span | None = None
    latest: datetime | None = None


def missed(timing: Timing, policy: Policy, next_at: datetime, now: datetime, planned_total: int) -> Missed | None:
    """What a sweep at `now` finds missed; None unless more than one occurrence is older than two minutes.

    planned_total: of its count, how many are sent. The last missed occurrence is computed, never stepped to.
    """
    if timing.actual_start_interval_s is not None:
        return None  # the next occurrence follows from the start of this one: never more than one is missed
    last = timing.rule.last_until(now - FRESH)
    if last is None or last <= next_at:
        return None
    verdict = _judged(timing, policy, _span(timing, next_at, last), now)
    left = None if timing.count is None else timing.count - planned_total
    if left is not None and verdict.caught_up is not None and verdict.caught_up.count > left:
        return None  # the count ends the series within the range: what is left of it is simply sent
    return verdict


def _judged(timing: Timing, policy: Policy, whole: Span, now: datetime) -> Missed:
    left_out: list[LeftOut] = []
    first: datetime | None = whole.first
    expired = _last_expired(timing, policy, whole, now)
    if expired is not None:
        left_out.append(LeftOut(_span(timing, whole.first, expired), State.EXPIRED, Reason.MAX_LATENESS))
        first = timing.rule.next_after(expired) if expired < whole.last else None
    if first is None:
        return Missed(whole, tuple(left_out))
    if policy.runs_all(now - whole.first):
        return Missed(whole, tuple(left_out), caught_up=_span(timing, first, whole.last))
    latest = None if policy.type is Misfire.SKIP else whole.last
    dropped = whole.last if latest is None else timing.rule.last_until(whole.last - SECOND)
    if dropped is not None and dropped >= first:
        left_out.append(LeftOut(_span(timing, first, dropped), State.MISSED, Reason.SERVICE_OUTAGE))
    return Missed(whole, tuple(left_out), latest=latest)


def _last_expired(timing: Timing, policy: Policy, whole: Span, now: datetime) -> datetime | None:
    """The last of them that is later than the policy lets any run be."""
    if policy.max_lateness_s is None or not policy.expires(now - whole.first):
        return None
    limit = now - timedelta(seconds=policy.max_lateness_s)
    last = timing.rule.last_until(limit - timedelta(microseconds=1))
    return whole.first if last is None else min(max(last, whole.first), whole.last)


def _span(timing: Timing, first: datetime, last: datetime) -> Span:
    """`first` need not be of the rule: a run at once is not."""
    return Span(first, last, 1 + (count_within(timing, first + SECOND, last) if last > first else 0))


def comes_too_late(
    timing: Timing,
    policy: Policy,
    instant: datetime,
    now: datetime,
    *,
    sent_at: datetime | None = None,
    through: datetime | None = None,
) -> tuple[State, Reason] | None:
    """How a message that reaches the executor late ends, None if it runs.

    Beyond the policy's limit it is expired; missed, if the policy runs only the last and a later one is already due, or
    runs none that was missed. timing: of the plan that sent it; through: that plan's last occurrence, where it has come
    to its end. sent_at: when the queue took the message: a sweep that sent it late has found that it runs, so only what
    came after that is judged.
    """
    if policy.expires(now - instant):
        return State.EXPIRED, Reason.MAX_LATENESS
    accepted_at = instant if sent_at is None else max(instant, sent_at)
    lateness = now - (instant if policy.type is Misfire.SKIP else accepted_at)
    if lateness < FRESH or policy.runs_all(lateness):
        return None
    following = _following(timing, instant, accepted_at)
    is_last = following is None or following > now or (through is not None and following > through)
    return None if is_last and policy.type is not Misfire.SKIP else (State.MISSED, Reason.SERVICE_OUTAGE)


def _following(timing: Timing, instant: datetime, accepted_at: datetime) -> datetime | None:
    """The occurrence after this one; of a series that follows its actual starts, an interval after it was sent."""
    if timing.actual_start_interval_s is not None:
        return accepted_at + timedelta(seconds=timing.actual_start_interval_s)
    return timing.rule.next_after(instant)
