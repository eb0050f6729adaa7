"""Occurrences that are left out: those of a ledger range, and those that fall due while their schedule is off. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from sweephand.base.records import dataclass
from sweephand.domain.instants import from_s
from sweephand.domain.job import Job
from sweephand.domain.jobs.job_state import OFF
from sweephand.domain.occurrences import generations, off_times
from sweephand.domain.occurrences.suspension import runs_when_enabled
from sweephand.domain.run import Reason, Run
from sweephand.domain.runs.run_action import policies_of
from sweephand.domain.schedule import LIVE, Schedule, ScheduleState
from sweephand.schedules.rule import Undecided
from sweephand.schedules.timing import Timing

SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class SwitchedOff:
    """A time in which occurrences are skipped: since < instant < until; until is None if its end is not known.

    first: the first occurrence, for a series that follows its actual starts; the others follow its rule.
    """

    reason: Reason
    since: datetime
    until: datetime | None = None
    first: datetime | None = None

    def covers(self, instant: datetime) -> bool:
        """Returns True if an occurrence at this instant is skipped."""
        return self.since < instant and (self.until is None or instant < self.until)

    def instants(self, timing: Timing, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yields the occurrences with after < instant <= until that are skipped, in order."""
        last = until if self.until is None else min(until, self.until - SECOND)
        first = self.first if timing.actual_start_interval_s is not None else None
        if first is not None and after < first <= last:
            yield first
        yield from by_rule(timing, max(after, self.since, first or after), last)

    def has(self, timing: Timing, instant: datetime) -> bool:
        """Returns whether an occurrence at this instant is skipped."""
        return next(self.instants(timing, instant - SECOND, instant), None) == instant


def times_off(job: Job, schedule: Schedule) -> list[SwitchedOff]:
    """Returns the times for which the generation in force is off, as a response shows it.

    An occurrence that was sent before the schedule was held, and has not begun, is skipped too.
    A schedule that was created inactive leaves nothing out: its first plan has not begun.
    """
    off: list[SwitchedOff] = []
    since = schedule.ended_at.get(schedule.generation - 1)
    if schedule.state in OFF and since is not None:
        off.append(SwitchedOff(OFF[schedule.state], from_s(since), schedule.resumes_at))
    if waits_until_enabled(job, schedule):
        return off
    if schedule.held_from is not None and schedule.state in LIVE:
        last = schedule.last_planned_at if schedule.state is ScheduleState.ENDING else None
        until = schedule.resumes_at if last is None else last + SECOND
        off.append(SwitchedOff(Reason.DISABLED, generations.began(schedule), until, schedule.held_from))
    elif schedule.held_from is not None and schedule.resumes_at is not None:
        off.append(SwitchedOff(Reason.DISABLED, schedule.resumes_at - SECOND))
    return off


def reason_of_pending(job: Job, schedule: Schedule, instant: datetime, generation: int) -> Reason | None:
    """Returns why an occurrence of an earlier plan that has no row is skipped as things stand; None if it runs.

    It is skipped while the schedule is off, and if it fell due in a time when it was off.
    """
    lasts = schedule.resumes_at is None or instant < schedule.resumes_at
    if schedule.state in OFF and lasts:
        return OFF[schedule.state]
    if schedule.held_from is not None and lasts and not waits_until_enabled(job, schedule):
        return Reason.DISABLED
    return off_times.reason_at(schedule.off_times, instant, generation)


def waits_until_enabled(job: Job, schedule: Schedule) -> bool:
    """Returns whether the schedule is held and its occurrence runs late, once its collection and tenant are enabled."""
    return schedule.held_from is not None and runs_when_enabled(policies_of(job, schedule), schedule.packed)


def by_rule(timing: Timing, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yields the instants of a rule with after < instant <= until. Ends early if the next takes too long to find."""
    with suppress(Undecided):
        upcoming = timing.rule.next_after(after)
        while upcoming is not None and upcoming <= until:
            yield upcoming
            upcoming = timing.rule.next_after(upcoming)


def of_range(row: Run, timing: Timing | None, after: datetime) -> Iterator[datetime]:
    """Yields the instants after `after` that a ledger range stands for; the first only if its timing is not known."""
    if after < row.planned_at:
        yield row.planned_at
        after = row.planned_at
    if timing is None or row.range_until is None:
        return
    step = _step(row, timing)
    if step is None:
        yield from by_rule(timing, after, row.range_until)
        return
    upcoming = row.planned_at + ((after - row.planned_at) // step + 1) * step
    while upcoming <= row.range_until:
        yield upcoming
        upcoming += step


def _step(row: Run, timing: Timing) -> timedelta | None:
    """Returns the distance between the occurrences of a range if they follow each other, not the rule.

    They do in a series that follows its actual starts, unless it was held and only the first one did.
    """
    if timing.actual_start_interval_s is None or row.range_until is None:
        return None
    step = timedelta(seconds=timing.actual_start_interval_s)
    return step if (row.range_until - row.planned_at) % step == timedelta(0) else None


def stands_for(row: Run, timing: Timing | None, instant: datetime) -> bool:
    """Returns whether a ledger range stands for an occurrence at this instant.

    If that cannot be decided, every instant within the range counts.
    """
    if row.range_until is None or not row.planned_at <= instant <= row.range_until:
        return False
    if timing is None or instant == row.planned_at:
        return True
    step = _step(row, timing)
    if step is not None:
        return (instant - row.planned_at) % step == timedelta(0)
    try:
        return timing.rule.last_until(instant) == instant
    except Undecided:
        return True
