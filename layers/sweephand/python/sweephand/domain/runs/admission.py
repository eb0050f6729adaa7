"""The gate: what a delivered pointer may do, from what is there now. Pure; the executor carries it out.

For a run without a row the schedule's state, its generations and the lateness decide; for one with a row, the row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sweephand.domain.collection import Terms
from sweephand.domain.instants import from_s
from sweephand.domain.job import TASK_KINDS, Job
from sweephand.domain.message import Pointer
from sweephand.domain.occurrences.lateness import FRESH, Policy
from sweephand.domain.run import AWAITING_RESULT, CLAIMABLE, REACTIONS, Kind, Reason, Run, State
from sweephand.domain.runs.run_action import policies_of
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.lazy import lazy

if TYPE_CHECKING:
    from sweephand.domain.occurrences.generations import Generation

with lazy():
    from sweephand.domain.occurrences import misfire, off_times
    from sweephand.domain.runs import retry
    from sweephand.schedules import timing

MAX_AGE = timedelta(days=4)
"""Queues keep messages for 14 days; one this late is ended, not acted on."""
MAX_LOST = 1
"""Executors that may be lost with an attempt that another attempt may follow."""
MAX_LOST_LAST = 7
"""Executors that may be lost with the last attempt. Its message comes ten times: one more is left to end the run."""


@dataclass(frozen=True)
class Drop:
    """Acknowledge and leave no row: the occurrence belongs to nobody, or to another plan."""

    why: str


@dataclass(frozen=True)
class End:
    """End it without acting: as a new row, or [not terminal] where there is one.

    message: for people; it decides nothing.
    """

    state: State
    reason: Reason
    message: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Claim:
    """Take this attempt; with `run`, of a row that waits. contested: if the schedule's slot is free for it."""

    attempt: int
    contested: bool = False


@dataclass(frozen=True)
class TakeOver:
    """The holder's lease is over: the same attempt again."""


@dataclass(frozen=True)
class EndLost:
    """Too many executors were lost with this attempt."""


@dataclass(frozen=True)
class EndUnanswered:
    """The callback, or the end of its task, did not come in time."""

    state: State


@dataclass(frozen=True)
class FailAttempt:
    """Counts the attempt as failed, so that its retry policy decides. state: of the run if none follows."""

    state: State
    reason: Reason


@dataclass(frozen=True)
class Effects:
    """It is finished: repeat what follows from its end, acknowledge."""


@dataclass(frozen=True)
class Later:
    """Not now: come back at `at`, do not acknowledge."""

    at: datetime


@dataclass(frozen=True)
class Acknowledge:
    """Something else answers for it."""

    why: str


@dataclass(frozen=True)
class SendPointer:
    """The retry's own pointer may be lost: send it, then acknowledge."""


Admission = (
    Drop | End | Claim | TakeOver | EndLost | EndUnanswered | FailAttempt | Effects | Later | Acknowledge | SendPointer
)


@dataclass(frozen=True)
class Seen:
    """What is there as the gate looks. terms: of the job's collection and tenant.

    left: the plan that sent the message, where a change has left it behind and the message comes late.
    line: of the ledger, that tells of the message's instant and many others.
    """

    job: Job | None
    schedule: Schedule | None
    run: Run | None
    terms: Terms = field(default_factory=Terms)
    left: Generation | None = None
    line: Run | None = None


def flow_key_of(kind: Kind, seen: Seen) -> str | None:
    """The flow key that a run passes: its job's, else its collection's. An error action or a hook passes none."""
    if kind in REACTIONS or seen.job is None:
        return None
    own: str | None = seen.job.policies.get("flowKey")
    return own or seen.terms.flow_key


def admit(pointer: Pointer, seen: Seen, now: datetime, sent_at: datetime | None = None) -> Admission:
    """sent_at: when the queue took the message."""
    if seen.run is not None:
        return _with_row(pointer, seen.job, seen.schedule, seen.run, now)
    return _without_row(pointer, seen, now, sent_at)


def needs_left(pointer: Pointer, seen: Seen, now: datetime) -> bool:
    """Is the plan that sent the message needed to judge it? Only of a late one whose schedule was changed since."""
    schedule = _late_without_row(pointer, seen, now)
    return schedule is not None and not pointer.decided and pointer.generation < schedule.generation


def needs_line(pointer: Pointer, seen: Seen, now: datetime) -> bool:
    """May more than what was left out last decide on it? Only on a late one from before that."""
    schedule = _late_without_row(pointer, seen, now)
    if schedule is None or schedule.missed_from is None:
        return False
    if pointer.decided and schedule.left_out_to is None:
        return False  # of a catch-up, most likely: one read for each would be many
    return pointer.instant < schedule.missed_from


def _late_without_row(pointer: Pointer, seen: Seen, now: datetime) -> Schedule | None:
    """The schedule of a planned occurrence that comes late and has no row yet; None for all others."""
    if seen.run is not None or pointer.kind is not Kind.SCHEDULED or now - pointer.instant < FRESH:
        return None
    return seen.schedule


def _without_row(pointer: Pointer, seen: Seen, now: datetime, sent_at: datetime | None) -> Admission:
    """In the protocol's order: does it belong to anybody, is it time, is it this plan's, was it off, may it run."""
    if pointer.kind is not Kind.SCHEDULED or pointer.attempt > 1:
        return Drop("a run that was to be written before its message")
    if seen.job is None or seen.schedule is None:
        return Drop("its schedule is gone")
    if pointer.instant > now:
        return Later(pointer.instant)
    if seen.line is not None:
        return Drop("a line of the ledger tells of it")
    return (
        _superseded(pointer, seen.schedule)
        or _was_off(pointer, seen.schedule, seen.terms)
        or _too_late(pointer, seen.schedule, seen.left, now, sent_at)
        or _forbidden(seen.job, seen.schedule, enabled=seen.terms.enabled)
        or Claim(1, contested=contested(seen.job, seen.schedule))
    )


def _superseded(pointer: Pointer, schedule: Schedule) -> Drop | None:
    """An instant that another plan answers for."""
    if pointer.generation < schedule.generation:
        ended_at = schedule.ended_at.get(pointer.generation)
        if ended_at is None:
            return Drop("planned by a generation that is no longer listed")
        if pointer.instant.timestamp() > ended_at:
            return Drop("a change planned this instant anew")
    if not _left_out(pointer.instant, schedule):
        return None
    if not pointer.decided:
        return Drop("the catch-up decides on it")
    if schedule.left_out_to is not None and pointer.instant <= schedule.left_out_to:
        return Drop("a look that was cut off sent it, and a later one left it out")
    return None


def _was_off(pointer: Pointer, schedule: Schedule, terms: Terms) -> End | None:
    """It fell due while it was switched off, and its message comes after that: executors were away meanwhile."""
    if schedule.off_times is None and terms.off_times is None:
        return None
    reason = off_times.reason_at(schedule.off_times, pointer.instant, pointer.generation)
    if reason is None and not _planned_late(pointer, schedule):
        reason = off_times.reason_at(terms.off_times, pointer.instant, pointer.generation)
    return None if reason is None else End(State.SKIPPED, reason)


def _planned_late(pointer: Pointer, schedule: Schedule) -> bool:
    """Was it planned for a moment before the request, to run at once? That its collection was off then is no matter."""
    if pointer.instant != schedule.first_at or pointer.generation != schedule.generation:
        return False
    return pointer.instant < schedule.modified_at and _planned_from(schedule) >= pointer.instant


def _planned_from(schedule: Schedule) -> datetime:
    """About when the generation in force was planned: not before that, and seconds after it at most."""
    ended = schedule.ended_at.get(schedule.generation - 1)
    return schedule.created_at if ended is None else from_s(ended)


def _left_out(instant: datetime, schedule: Schedule) -> bool:
    """Within what a catch-up or a time of being disabled decided on. Before it, what was sent still counts."""
    if schedule.missed_to is None or instant > schedule.missed_to:
        return False
    return schedule.missed_from is None or instant >= schedule.missed_from


def _too_late(
    pointer: Pointer, schedule: Schedule, left: Generation | None, now: datetime, sent_at: datetime | None
) -> End | None:
    """The sweep's misfire policy, for a message that comes late: executors were down, or their queue was cut off."""
    if now - max(pointer.instant, sent_at or pointer.instant) > MAX_AGE:
        return End(State.EXPIRED, Reason.MAX_AGE)
    if pointer.decided:
        return None
    try:
        policy = Policy.read(schedule.misfire)
        if now - pointer.instant < FRESH and not policy.expires(now - pointer.instant):
            return None
        packed, through = (left.packed, left.through) if left else (schedule.packed, schedule.last_planned_at)
        too_late = misfire.comes_too_late(
            timing.load(packed), policy, pointer.instant, now, sent_at=sent_at, through=through
        )
    except ValueError:
        return None  # the sweep takes such a schedule out of service; what it sent before runs all the same
    if too_late is None:
        return None
    return End(
        *too_late, f"an executor met its message {(now - pointer.instant).total_seconds():.0f} s after its instant"
    )


def _forbidden(job: Job, schedule: Schedule, *, enabled: bool) -> End | None:
    """Why it may not run now. Job and schedule are both asked: of a large job, the schedules follow a moment later."""
    if not enabled or not job.active or schedule.state in {ScheduleState.INACTIVE, ScheduleState.BROKEN}:
        return End(State.SKIPPED, Reason.DISABLED)
    if job.pause is not None or schedule.state is ScheduleState.PAUSED:
        return End(State.SKIPPED, Reason.PAUSED)
    return None


def _with_row(pointer: Pointer, job: Job | None, schedule: Schedule | None, run: Run, now: datetime) -> Admission:  # noqa: PLR0911 - as above
    if run.finished:
        return Effects()
    if run.state is State.TRIGGERED and run.lease_until is not None and run.lease_until > now:
        return Later(run.lease_until)  # what its holder reports counts, though its job may be gone
    if job is None or (run.schedule_id is not None and schedule is None):
        return End(State.CANCELLED, Reason.OWNER_GONE)
    if run.kind in REACTIONS and job.reaction(run.kind) is None and run.state in CLAIMABLE:
        return End(State.CANCELLED, Reason.OWNER_GONE)
    if run.state is State.TRIGGERED:
        return _after_lost(job, schedule, run)
    if run.state in AWAITING_RESULT:
        if run.deadline_at is not None and run.deadline_at <= now:
            return _unanswered(job, schedule, run)
        return _still_ahead(run, run.deadline_at)
    if pointer.attempt < run.attempt:
        return SendPointer() if run.wake_at is None else Acknowledge("its wake row answers for it")
    if run.not_before is not None and run.not_before > now:
        return _still_ahead(run, run.not_before)
    begins = run.state is State.QUEUED and run.kind not in REACTIONS
    return Claim(run.attempt, contested=begins and (run.slotted or contested(job, schedule)))


def _after_lost(job: Job, schedule: Schedule | None, run: Run) -> TakeOver | FailAttempt | EndLost:
    """Decides on an attempt whose executor was lost. At least once means: as long as another try is possible, it is
    made, because the call may never have begun.
    """
    if policies_of(job, schedule).get("delivery") == "at_most_once":
        return EndLost()
    if run.lost_in_attempt < MAX_LOST:
        return TakeOver()
    if _attempts_left(job, run):
        return FailAttempt(State.UNKNOWN, Reason.EXECUTOR_LOST)
    return TakeOver() if run.lost_in_attempt < MAX_LOST_LAST else EndLost()


def _unanswered(job: Job, schedule: Schedule | None, run: Run) -> FailAttempt | EndUnanswered:
    """Decides on a run whose result did not come in time. A task is over then, because it is stopped."""
    if _is_task(job, run):
        return EndUnanswered(State.TIMEOUT)
    if policies_of(job, schedule).get("onNoResult") == "retry" and _attempts_left(job, run):
        return FailAttempt(State.UNKNOWN, Reason.DEADLINE)
    return EndUnanswered(State.UNKNOWN)


def _attempts_left(job: Job, run: Run) -> bool:
    """Says whether the retry policy of its action, as it is now, has a further attempt."""
    action = (job.reaction(run.kind) if run.kind in REACTIONS else None) or job.action
    return run.attempt < retry.parse(action.retry, "retry").max_attempts


def _is_task(job: Job, run: Run) -> bool:
    """A task is stopped when its time is over, so it is known what became of it."""
    action = job.reaction(run.kind) if run.kind in REACTIONS else job.action
    return run.task is not None or (action is not None and action.kind in TASK_KINDS)


def contested(job: Job, schedule: Schedule | None) -> bool:
    """Do runs of the schedule exclude each other? A run of the job itself excludes none."""
    return schedule is not None and policies_of(job, schedule).get("overlap", "allow") != "allow"


def _still_ahead(run: Run, at: datetime | None) -> Later | Acknowledge:
    """It waits for `at`. A wake row moved beyond that has spoken already: this is its pointer, come a moment early by
    this clock, and to acknowledge it would put the run off until the wake row speaks again.
    """
    if at is not None and (run.wake_at is None or run.wake_at > at):
        return Later(at)
    return Acknowledge("its wake row answers for it")
