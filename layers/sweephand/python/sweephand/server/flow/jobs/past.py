"""The past of a schedule, for explanations: its row in the ledger, the plan that applied, and who switched it off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from sweephand.base.records import dataclass
from sweephand.domain.job import Job, Pause
from sweephand.domain.jobs import switched_off
from sweephand.domain.jobs.job_state import Entry
from sweephand.domain.occurrences.generations import Generation
from sweephand.domain.run import Kind, Reason, Run
from sweephand.domain.schedule import Schedule
from sweephand.schedules.timing import Timing, load_or_never
from sweephand.server.flow.world import World
from sweephand.server.store.jobs import generations, jobs
from sweephand.server.store.views import resources, runs

MOST_PLANS = 100
MOST_CHANGES = 100
"""The most entries of the change log that are read to find out who switched a schedule off."""
FURTHEST_AHEAD = timedelta(minutes=1)
"""The range of a pause is written some seconds before its set end."""
PAGE = 25
BEFORE_IT = timedelta(seconds=1)


def row_of(world: World, schedule: Schedule, instant: datetime) -> Run | None:
    """Returns the row of the ledger for an occurrence at an instant: its own run, or the range that covers it.

    Reads nothing for an instant further ahead than any row.
    """
    now = world.clock.now()
    if instant > now + FURTHEST_AHEAD:
        return None
    at_instant = [run for run in runs.at(world.table, schedule.tenant, schedule.id, instant) if not run.is_gone(now)]
    own = (run for run in at_instant if run.range_until is None and run.kind is Kind.SCHEDULED)
    covering = (run for run in at_instant if switched_off.stands_for(run, timing_of(world, schedule, run), instant))
    return next(own, None) or next(covering, None)


def timing_of(world: World, schedule: Schedule, row: Run) -> Timing | None:
    """Returns the timing of the occurrences that a ledger range stands for; None if it is not known."""
    packed = row.range_packed
    if packed is None and row.generation == schedule.generation:
        packed = schedule.packed
    if packed is None:
        plan = generations.find(world.table, schedule, row.generation)
        packed = None if plan is None else plan.packed
    if packed is None:
        return None
    jobs.know_calendars(world.table, [(row.tenant, packed)])
    timing = load_or_never(packed)
    return timing if timing.readable else None


def plans_since(world: World, schedule: Schedule, instant: datetime) -> list[Generation]:
    """Returns the ended plans that cover instants after `instant`, newest first, at most MOST_PLANS.

    None is kept for a time in which the schedule was off.
    """
    return list(islice(generations.left_since(world.table, schedule, instant), MOST_PLANS))


def plan_at(world: World, schedule: Schedule, instant: datetime) -> Generation | None:
    """Returns the ended plan that covered an instant; None if it is not known, or if the schedule was off then."""
    plans = plans_since(world, schedule, instant - BEFORE_IT)
    return next((each for each in plans if each.has(instant) or each.first == instant), None)


@dataclass(frozen=True)
class Switch:
    """A time in which somebody had switched off a schedule or its job.

    since: None if the change log does not reach so far. until: the end that was set, or when it was switched on. by: a
    client id; None for the service, or if it is not known. note: that of the pause, or the reason of the change.
    """

    reason: Reason
    since: datetime | None = None
    until: datetime | None = None
    by: str | None = None
    note: str | None = None


def switch_at(world: World, job: Job, schedule: Schedule, instant: datetime) -> Switch | None:
    """Returns who had switched the schedule off at an instant; None if nobody had.

    Cost: the changes since then, at most MOST_CHANGES.
    """
    switch: Switch | None = None
    until = None
    changes = resources.changes(world.table, job.tenant, job.id, None, PAGE)
    for entry, before, after in _reasons(islice(changes, MOST_CHANGES), schedule):
        if entry.at > instant:
            until = until if before is after else entry
            continue
        if switch is None:
            if after is None:
                return None
            switch = _switch(entry.after.pause if after is Reason.PAUSED else None, after, until)
        if before is not switch.reason:
            return replace(switch, since=entry.at, by=entry.actor, note=switch.note or entry.reason)
    return switch


def _switch(pause: Pause | None, reason: Reason, until: Entry | None) -> Switch:
    """Returns what is known without its beginning. until: the change that ended it."""
    ended = None if until is None else until.at
    if pause is None:
        return Switch(reason, until=ended)
    by_itself = pause.until is not None and (until is None or until.actor is None)
    return Switch(reason, until=pause.until if by_itself else ended, note=pause.note)


def _reasons(changes: Iterator[Entry], schedule: Schedule) -> Iterator[tuple[Entry, Reason | None, Reason | None]]:
    """Yields each change, newest first, with why the schedule was off before and after it; None if it was on."""
    active = schedule.active
    for entry in changes:
        pair = next((pair for pair in entry.schedules if schedule.id in {each.id for each in pair if each}), None)
        if pair is not None and pair[1] is not None:
            active = pair[1].active
        after = _reason(entry.after, active=active)
        if pair is not None:
            active = pair[0] is not None and pair[0].active
        yield entry, None if entry.before is None else _reason(entry.before, active=active), after


def _reason(job: Job, *, active: bool) -> Reason | None:
    if not (active and job.active):
        return Reason.DISABLED
    return Reason.PAUSED if job.pause is not None else None
