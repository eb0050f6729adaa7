"""Notes whether a schedule's target can be reached, and switches the schedule off after ten days of failures.

Most attempts never load this module. The streak of failures is in the schedule's row, which the gate reads anyway, so
a success without a stored streak needs no read or write. Two concurrent attempts of a schedule may each miss the note
of the other; the streak is then wrong by at most the length of a call.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sweephand.domain.job import Job
from sweephand.domain.run import REACTIONS, Outcome, Run
from sweephand.domain.runs import deactivation
from sweephand.domain.runs.deactivation import OnUnreachable
from sweephand.domain.runs.run_action import policies_of
from sweephand.domain.schedule import Schedule, ScheduleState, StateReason
from sweephand.errors import NotFound, Unavailable
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Written
from sweephand.store.dynamo.expressions import assign, every
from sweephand.store.dynamo.table import ScheduleItem
from sweephand.store.jobs import jobs

with lazy():
    from sweephand.flow import events
    from sweephand.flow.job_parts import change_log
    from sweephand.flow.jobs import change, drafts, lookup, requested


def follow(world: World, run: Run, outcome: Outcome, job: Job, schedule: Schedule) -> Schedule:
    """Notes a first failure or a first contact before the outcome is settled, because it is true however the run ends.

    Returns the schedule with the note. A note that cannot be written fails no run: the next failure notes it again, and
    the effects of the run's end repeat the note of a contact.
    """
    if run.kind in REACTIONS:
        return schedule  # another target
    streak = deactivation.follow(schedule.unreachable, job.action, outcome, world.clock.now())
    if streak == schedule.unreachable:
        return schedule
    try:
        written = _note(world, schedule, streak)
    except Unavailable:
        world.journal.warning("a later run will note whether the target can be reached", schedule=schedule.id)
        return schedule
    return replace(schedule, unreachable=streak) if written else schedule


def _note(world: World, schedule: Schedule, streak: str | None) -> bool:
    """Writes the streak, if the generation and the streak are still as read."""
    key = keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)
    same = every(ScheduleItem.generation == schedule.generation, jobs.reach_as_read(schedule))
    return isinstance(world.table.update(*key, [assign(ScheduleItem.unreachable, streak)], same), Written)


def judge(world: World, run: Run, job: Job, schedule: Schedule) -> None:
    """Switches a schedule off after an attempt if its streak has lasted for ten days.

    May happen twice: for a schedule that is already off, only the same event is sent again. Raises Unavailable.
    """
    if run.kind in REACTIONS or run.finished_at is None or schedule.unreachable is None:
        return
    if deactivation.was_contact(run, schedule.unreachable):
        _note(world, schedule, None)
    elif deactivation.is_out_of_reach(run):
        _switch_off_if_due(world, run.finished_at, job, schedule)


def _switch_off_if_due(world: World, failed_at: datetime, job: Job, schedule: Schedule) -> None:
    if policies_of(job, schedule).get("onUnreachable") == OnUnreachable.CONTINUE:
        return
    if not deactivation.is_due(schedule.unreachable, job.action, failed_at):
        return
    off = _switch_off(world, failed_at, schedule)
    if off is not None:
        events.schedule_deactivated(world, off, job)


def _switch_off(world: World, failed_at: datetime, schedule: Schedule) -> Schedule | None:
    """Decides by the current rows. Returns the schedule if it is off for this reason, now or since an earlier call."""

    def wish(planned: lookup.Planned) -> list[requested.Wish]:
        there = _of(planned.schedules, schedule.id)
        if there is None or there.state is not ScheduleState.ACTIVE:
            return []
        if not deactivation.is_due(there.unreachable, planned.job.action, failed_at):
            return []
        payload = lookup.payloads_of(world, lookup.Planned(planned.job, (there,))).get(there.id)
        draft = drafts.as_stored(there, payload)
        return [requested.Wish(there, replace(draft, active=False, because=StateReason.UNREACHABLE))]

    by = change_log.By(change_log.Operation.DEACTIVATE_UNREACHABLE)
    try:
        planned = change.change_schedules(world, schedule.tenant, schedule.job_id, wish, None, by)
    except NotFound:
        return None  # the job went meanwhile
    there = _of(planned.schedules, schedule.id)
    return there if there is not None and not there.active and there.state_reason == StateReason.UNREACHABLE else None


def _of(schedules: tuple[Schedule, ...], schedule_id: str) -> Schedule | None:
    return next((each for each in schedules if each.id == schedule_id), None)
