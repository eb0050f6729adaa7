"""Notes whether a schedule's target can be reached, and switches the schedule off after ten days of failures.

Most attempts never load this module. The streak of failures is in the schedule's row, which the gate reads anyway, so
a success without a stored streak needs no read or write. Each of two concurrent attempts of a schedule may miss the
note of the other. The streak is then wrong by at most the length of a call.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum

from sweephand.base.errors import NotFound, Unavailable
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.domain.job import ActionSpec, Job
from sweephand.domain.run import APART, UNREACHABLE, Outcome, Reason, Run, State
from sweephand.domain.runs.run_action import policies_of
from sweephand.domain.schedule import Schedule, ScheduleState, StateReason
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Written
from sweephand.server.store.dynamo.expressions import assign, every
from sweephand.server.store.dynamo.table import ScheduleItem
from sweephand.server.store.jobs import jobs

with lazy():
    from sweephand.server.flow import events
    from sweephand.server.flow.job_parts import change_log
    from sweephand.server.flow.jobs import change, drafts, lookup, requested


def follow(world: World, run: Run, outcome: Outcome, job: Job, schedule: Schedule) -> Schedule:
    """Notes a first failure or a first contact. Call it before the outcome is settled: the note is true in any case.

    Returns the schedule with the note. If the note cannot be written, the run continues: the next failure notes it
    again, and the effects of the run's end repeat the note of a contact.
    """
    if run.kind in APART:
        return schedule  # another target, or a test
    streak = streak_after(schedule.unreachable, job.action, outcome, world.clock.now())
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

    May be repeated: for a schedule that is already off, only sends the same event again. Raises Unavailable.
    """
    if run.kind in APART or run.finished_at is None or schedule.unreachable is None:
        return
    if was_contact(run, schedule.unreachable):
        _note(world, schedule, None)
    elif is_out_of_reach(run):
        _switch_off_if_due(world, run.finished_at, job, schedule)


def _switch_off_if_due(world: World, failed_at: datetime, job: Job, schedule: Schedule) -> None:
    if policies_of(job, schedule).get("onUnreachable") == OnUnreachable.CONTINUE:
        return
    if not is_due(schedule.unreachable, job.action, failed_at):
        return
    off = _switch_off(world, failed_at, schedule)
    if off is not None:
        events.schedule_deactivated(world, off, job)


def _switch_off(world: World, failed_at: datetime, schedule: Schedule) -> Schedule | None:
    """Decides by the current rows. Returns the schedule if it is off for this reason, now or since an earlier call."""

    def request(planned: lookup.Planned) -> list[requested.ScheduleRequest]:
        current = _of(planned.schedules, schedule.id)
        if current is None or current.state is not ScheduleState.ACTIVE:
            return []
        if not is_due(current.unreachable, planned.job.action, failed_at):
            return []
        payload = lookup.payloads_of(world, lookup.Planned(planned.job, (current,))).get(current.id)
        draft = drafts.as_stored(current, payload)
        return [requested.ScheduleRequest(current, replace(draft, active=False, because=StateReason.UNREACHABLE))]

    by = change_log.By(change_log.Operation.DEACTIVATE_UNREACHABLE)
    try:
        planned = change.change_schedules(world, schedule.tenant, schedule.job_id, request, None, by)
    except NotFound:
        return None  # the job was deleted meanwhile
    current = _of(planned.schedules, schedule.id)
    return (
        current
        if current is not None and not current.active and current.state_reason == StateReason.UNREACHABLE
        else None
    )


def _of(schedules: tuple[Schedule, ...], schedule_id: str) -> Schedule | None:
    return next((each for each in schedules if each.id == schedule_id), None)


LIMIT = timedelta(days=10)

UNSENT = frozenset({Reason.GUARD, Reason.BAD_PAYLOAD, Reason.DEADLINE})
"""Reasons of attempts that failed before a call."""

DIGEST_CHARACTERS = 16


class OnUnreachable(StrEnum):
    """The policy `onUnreachable`."""

    DEACTIVATE = "deactivate"
    CONTINUE = "continue"


@dataclass(frozen=True)
class Streak:
    """Consecutive failures of one target, stored in the schedule's row as `<epoch ms>,<digest>`.

    since: the end of the first failure. target: a digest of the action, so that a new action starts a new streak.
    """

    since: datetime
    target: str

    def __str__(self) -> str:
        return f"{epoch_ms(self.since)},{self.target}"

    @classmethod
    def read(cls, text: str) -> Streak:
        since, target = text.split(",")
        return cls(from_ms(int(since)), target)


def target_of(action: ActionSpec) -> str:
    """Returns a digest of the action's kind and parameters, without payload and secrets."""
    said = json.dumps([action.kind, action.params], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:DIGEST_CHARACTERS]


def streak_after(stored: str | None, action: ActionSpec, outcome: Outcome, now: datetime) -> str | None:
    """Returns the stored form of the streak after an attempt, None without one. now: the attempt's end."""
    if outcome.reason in UNSENT:
        return stored
    if outcome.reason not in UNREACHABLE:
        return None
    target = target_of(action)
    if stored is not None and Streak.read(stored).target == target:
        return stored
    return str(Streak(now, target))


def is_out_of_reach(run: Run) -> bool:
    """Returns True if the run's last attempt got no connection. With MAX_AGE, the missing HTTP status shows that."""
    return run.reason in UNREACHABLE or (run.reason is Reason.MAX_AGE and run.http_status is None)


def was_contact(run: Run, stored: str) -> bool:
    """Returns True if the target answered the last attempt after the streak began. A reported result does not count."""
    if run.finished_at is None or run.result_digest is not None or run.finished_at <= Streak.read(stored).since:
        return False
    return run.state is State.SUCCESS or run.http_status is not None or run.reason is Reason.NO_ANSWER


def is_due(stored: str | None, action: ActionSpec, failed_at: datetime) -> bool:
    """Returns True if this streak of failures has lasted for ten days of 24 hours."""
    if stored is None:
        return False
    streak = Streak.read(stored)
    return streak.target == target_of(action) and failed_at - streak.since >= LIMIT
