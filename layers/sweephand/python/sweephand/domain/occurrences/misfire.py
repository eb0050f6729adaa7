"""Decides which late occurrences run, by the policy of lateness.py, for the sweeper and for the executor."""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.base.records import dataclass
from sweephand.domain.collection import REMEMBERED
from sweephand.domain.occurrences.lateness import ALL_UNDER, FRESH, Misfire, Policy
from sweephand.domain.occurrences.series import count_within
from sweephand.domain.run import Reason, State
from sweephand.schedules.timing import Timing

SECOND = timedelta(seconds=1)
NONE_AHEAD = timedelta(0)


@dataclass(frozen=True)
class Span:
    """A number of successive occurrences, from the first to the last instant."""

    first: datetime
    last: datetime
    count: int

    def has(self, instant: datetime) -> bool:
        return self.first <= instant <= self.last


@dataclass(frozen=True)
class LeftOut:
    """A span of occurrences that the policy does not run, and why."""

    span: Span
    state: State
    reason: Reason


@dataclass(frozen=True)
class Missed:
    """The verdict on the missed occurrences of a schedule, from the first to the last.

    left_out: in order, before those that run. caught_up: a span that runs at a limited rate. latest: the only run.
    """

    span: Span
    left_out: tuple[LeftOut, ...] = ()
    caught_up: Span | None = None
    latest: datetime | None = None


def missed(
    timing: Timing, policy: Policy, next_at: datetime, now: datetime, planned_total: int, ahead: timedelta = NONE_AHEAD
) -> Missed | None:
    """Returns the verdict on the occurrences that a sweep at `now` finds missed.

    Returns None unless more than one is over two minutes old. planned_total: how many occurrences of its count were
    sent. ahead: how far beyond `next_at` messages may have been sent before. The last missed occurrence is computed,
    not reached step by step.
    """
    if timing.actual_start_interval_s is not None:
        return None  # the next occurrence depends on the start of this one: at most one can be missed
    last = timing.rule.last_until(now - FRESH)
    if last is None or last <= next_at:
        return None
    verdict = _judged(timing, policy, _span(timing, next_at, last), now, ahead)
    left = None if timing.count is None else timing.count - planned_total
    if left is not None and verdict.caught_up is not None and verdict.caught_up.count > left:
        return None  # the count ends the series within the span: the rest of it is simply sent
    return verdict


def _judged(timing: Timing, policy: Policy, whole: Span, now: datetime, ahead: timedelta) -> Missed:
    left_out: list[LeftOut] = []
    first: datetime | None = whole.first
    for last, reason in (
        (_last_uncertain(timing, whole, now, ahead), Reason.MAX_AGE),
        (_last_expired(timing, policy, whole, now), Reason.MAX_LATENESS),
    ):
        if first is not None and last is not None and last >= first:
            left_out.append(LeftOut(_span(timing, first, last), State.EXPIRED, reason))
            first = timing.rule.next_after(last) if last < whole.last else None
    if first is None:
        return Missed(whole, tuple(left_out))
    if policy.runs_all(now - whole.first):
        return Missed(whole, tuple(left_out), caught_up=_span(timing, first, whole.last))
    latest = None if policy.type is Misfire.SKIP else whole.last
    dropped = whole.last if latest is None else timing.rule.last_until(whole.last - SECOND)
    if dropped is not None and dropped >= first:
        left_out.append(LeftOut(_span(timing, first, dropped), State.MISSED, Reason.SERVICE_OUTAGE))
    return Missed(whole, tuple(left_out), latest=latest)


def _last_uncertain(timing: Timing, whole: Span, now: datetime, ahead: timedelta) -> datetime | None:
    """Returns the last occurrence that may have run and lost its row since: an interrupted sweep may have sent it."""
    if now - whole.first <= REMEMBERED:
        return None
    last = timing.rule.last_until(min(whole.first + ahead, whole.last))
    return whole.first if last is None else max(last, whole.first)


def _last_expired(timing: Timing, policy: Policy, whole: Span, now: datetime) -> datetime | None:
    """Returns the last occurrence that exceeds the policy's max_lateness_s; None if there is none."""
    if policy.max_lateness_s is None or not policy.expires(now - whole.first):
        return None
    limit = now - timedelta(seconds=policy.max_lateness_s)
    last = timing.rule.last_until(limit - timedelta(microseconds=1))
    return whole.first if last is None else min(max(last, whole.first), whole.last)


def _span(timing: Timing, first: datetime, last: datetime) -> Span:
    """Returns the span from `first` to `last`. The rule need not contain `first` (a run at once)."""
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
    """Returns the state and the reason of an occurrence whose message reaches the executor late; None if it runs.

    It is expired if it exceeds the policy's limit. It is missed if the policy runs no missed occurrence, or if it runs
    only the last and a later one is already due. timing: the plan that sent it. through: that plan's last occurrence,
    if the plan has ended. sent_at: when the queue accepted the message. Except with the type `skip`, a sweep that sent
    it late had decided that it runs, so only the time after that counts.
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


def too_late_at(timing: Timing, policy: Policy, instant: datetime, *, through: datetime | None) -> datetime | None:
    """Returns when `comes_too_late` begins to hold for an occurrence; None if it never does."""
    limits = [] if policy.max_lateness_s is None else [instant + timedelta(seconds=policy.max_lateness_s) + SECOND]
    if policy.type is Misfire.SKIP:
        limits.append(instant + FRESH)
    elif policy.type is not Misfire.ALL:
        following = _following(timing, instant, instant)
        if following is not None and (through is None or following <= through):
            limits.append(max(following, instant + (ALL_UNDER if policy.type is Misfire.SAP else FRESH)))
    return min(limits, default=None)


def _following(timing: Timing, instant: datetime, accepted_at: datetime) -> datetime | None:
    """Returns the next occurrence. In a series that follows its actual starts, it is one interval after acceptance."""
    if timing.actual_start_interval_s is not None:
        return accepted_at + timedelta(seconds=timing.actual_start_interval_s)
    return timing.rule.next_after(instant)
