"""The future occurrences of a schedule, by its rule, its count and its state. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import NamedTuple

from sweephand.domain.instants import epoch_s
from sweephand.domain.occurrences import generations, series
from sweephand.domain.schedule import LIVE, Schedule, ScheduleState
from sweephand.schedules.explain.explain import Occurrence, preview
from sweephand.schedules.rule import Undecided, for_one, limited
from sweephand.schedules.timing import Timing, load_or_never

SENT_AHEAD_MOST = timedelta(minutes=5)
"""Longer than any sweep looks ahead."""
LOOKED_AT_FOR_EACH = 4
"""Instants to compute in each version for each instant that both versions contain."""


class NextRuns(NamedTuple):
    """The next instants, including those that were sent but are not due yet.

    exact: False if some are missing because they take too long to compute. The first is then the next one to be sent,
    if that is known.
    """

    instants: list[datetime]
    exact: bool

    @property
    def first(self) -> datetime | None:
        return self.instants[0] if self.instants else None


NO_RUNS = NextRuns([], exact=True)


def next_runs(schedule: Schedule, timing: Timing, now: datetime, limit: int) -> NextRuns:
    """Returns the next instants. Hard schedules of one answer share its limit."""
    with for_one() as asked:
        occurrences = ahead(schedule, timing, now, limit)
    return NextRuns([each.instant for each in occurrences], asked.whole)


def next_of_job(schedules: Iterable[Schedule], now: datetime) -> tuple[NextRuns, Schedule | None]:
    """Returns the next instant of a job, and its schedule. exact: whether those of all schedules are."""
    exact, instants = True, list[tuple[datetime, Schedule]]()
    for each in schedules:
        own = next_runs(each, load_or_never(each.packed), now, 1)
        exact = exact and own.exact
        instants += [(at, each) for at in own.instants]
    at, owner = min(instants, key=lambda pair: pair[0], default=(None, None))
    return NextRuns([] if at is None else [at], exact), owner


def ahead(schedule: Schedule, timing: Timing, after: datetime, limit: int) -> list[Occurrence]:
    """Returns the next occurrences after an instant, within the count; none while the schedule is off or held.

    If its row says when it goes on (resumes_at), returns those from then on.

    In the seconds after a change, includes those that the old plan still has due. Before the schedule follows a change
    of its calendars, returns only those that run in either version, which may be fewer.
    """
    if schedule.newer_packed is not None:
        newer = load_or_never(schedule.newer_packed)
        return _certain(replace(schedule, newer_packed=None), timing, newer, after, limit)
    schedule = resumed(schedule, timing)
    if schedule.state not in LIVE or schedule.held_from is not None:
        return []
    own = _own(schedule, timing, max(after, generations.began(schedule)), limit)
    before = [Occurrence(each, None) for each in schedule.still_due if each > after]
    own = [each for each in own if each.instant not in schedule.still_due]
    return sorted([*before, *own], key=lambda each: each.instant)[:limit] if before else own


def resumed(schedule: Schedule, timing: Timing) -> Schedule:
    """Returns a schedule as it goes on at `resumes_at`. Returns any other schedule unchanged."""
    if schedule.resumes_at is None:
        return schedule
    since = schedule.resumes_at - generations.SECOND
    upcoming = None
    with suppress(Undecided):
        upcoming = timing.rule.next_after(since)
    return replace(
        schedule,
        state=ScheduleState.ACTIVE,
        generation=schedule.generation + 1,
        ended_at={**schedule.ended_at, schedule.generation: epoch_s(since)},
        next_run_at=upcoming,
        still_due=tuple(each for each in schedule.still_due if each > since),
        held_from=schedule.held_from if schedule.state is ScheduleState.PAUSED else None,
        resumes_at=None,
    )


def _certain(schedule: Schedule, timing: Timing, newer: Timing, after: datetime, limit: int) -> list[Occurrence]:
    """Returns the instants that both versions contain, within the count, which the instants of either version use up.

    The schedule uses the older version until it follows the change, and the newer one from then on. Instants that are
    still due from before run anyway.
    """
    looked_at = LOOKED_AT_FOR_EACH * limit
    occurrences = ahead(schedule, timing, after, looked_at)
    older = {each.instant for each in occurrences}.difference(schedule.still_due)
    both = set[datetime]()
    with suppress(Undecided):
        newer_ones = {each.instant for each in preview(newer, after, looked_at)}.difference(schedule.still_due)
        both = older & newer_ones
        if timing.count is not None:
            sent = sum(each < (schedule.next_run_at or after) for each in older)
            left = sent + left_after(schedule, timing, after)
            both.intersection_update(sorted(older | newer_ones)[:left])
    return [each for each in occurrences if each.instant in both or each.instant in schedule.still_due][:limit]


def _own(schedule: Schedule, timing: Timing, after: datetime, limit: int) -> list[Occurrence]:
    """Returns the next occurrences of the generation in force."""
    try:
        occurrences = _planned(schedule, timing, after, limit)
    except Undecided:  # the sweep will take the schedule out of service when it reaches this point
        at = schedule.next_run_at
        occurrences = [] if at is None or at <= after else [Occurrence(at, None)]
    if schedule.state is ScheduleState.ENDING:
        return [each for each in occurrences if _was_sent(schedule, timing, each.instant)]
    if timing.count is None or schedule.next_run_at is None:
        return occurrences
    sent = [each for each in occurrences if each.instant < schedule.next_run_at]
    return (sent + occurrences[len(sent) : len(sent) + left_after(schedule, timing, after)])[:limit]


def _was_sent(schedule: Schedule, timing: Timing, instant: datetime) -> bool:
    """Returns whether an ending schedule has sent this instant of its rule.

    Its last ones follow each other, if they follow actual starts. Earlier ones were then at other instants.
    """
    last, step_s = schedule.last_planned_at, timing.actual_start_interval_s
    if last is None or instant > last:
        return False
    return step_s is None or (last - instant) % timedelta(seconds=step_s) == timedelta()


def _planned(schedule: Schedule, timing: Timing, after: datetime, limit: int) -> list[Occurrence]:
    """Returns occurrences by the rule, or by the row if the series follows its actual starts or began late."""
    if timing.actual_start_interval_s is not None:
        at = _unsent_step(schedule, timedelta(seconds=timing.actual_start_interval_s))
        return preview(timing, after, limit) if at is None else _steps(schedule, timing, at, after, limit)
    first = schedule.first_at
    if schedule.state is not ScheduleState.ACTIVE or schedule.next_run_at is None or first is None or after >= first:
        return preview(timing, after, limit)
    if timing.rule.last_until(first) != first:
        return [Occurrence(first, None), *preview(timing, first, limit - 1)]
    return preview(timing, after, limit)


def _unsent_step(schedule: Schedule, step: timedelta) -> datetime | None:
    """Returns the first occurrence that is not sent, in the rhythm of those before it; None if the row has no rhythm.

    An ending schedule has sent its last one, so nothing runs at the returned instant.
    """
    if schedule.state is ScheduleState.ENDING and schedule.last_planned_at is not None:
        return schedule.last_planned_at + step
    return schedule.next_run_at if schedule.state is ScheduleState.ACTIVE else None


def _steps(schedule: Schedule, timing: Timing, at: datetime, after: datetime, limit: int) -> list[Occurrence]:
    """Returns occurrences in the rhythm of the row. at: the first that is not sent.

    Some that lie ahead were already sent, but none from before the first of this generation, and none within the span
    of another rhythm, which a late start has replaced.
    """
    step = timedelta(seconds=timing.actual_start_interval_s or 0)
    if after >= at:
        nearest = at + ((after - at) // step + 1) * step
    else:
        began = schedule.first_at or timing.rule.next_after(generations.began(schedule)) or at
        since = max(after, at - SENT_AHEAD_MOST, began - timedelta(seconds=1), schedule.missed_to or after)
        nearest = at - max(0, -((since - at) // step) - 1) * step
    instants = (nearest + n * step for n in range(limit))
    return [Occurrence(each, None) for each in takewhile(lambda each: each <= timing.ends_at, instants)]


def left_after(schedule: Schedule, timing: Timing, after: datetime) -> int:
    """Returns how many occurrences after an instant the count leaves; 0 if that takes too long to compute.

    The count includes instants up to `after` that no sweep has counted yet: of a new plan, the API has sent them.
    """
    assert timing.count is not None
    left, begin = timing.count - schedule.planned_total, schedule.next_run_at
    if begin is None or begin > after or left <= 0:
        return max(0, left)
    try:
        with limited():
            return left - series.count_within(timing, begin, after, left)
    except Undecided:
        return 0
