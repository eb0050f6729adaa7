"""Decides what an executor does with a delivered pointer, from the current rows. Pure; the executor carries it out.

If the run has a row, the row decides. Otherwise the schedule's state, its generations and the lateness decide.
"""

from __future__ import annotations

from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.application import QUEUE
from sweephand.domain.collection import Terms
from sweephand.domain.instants import from_s
from sweephand.domain.job import TASK_KINDS, Job
from sweephand.domain.message import Pointer
from sweephand.domain.occurrences.index_row import WAKE_AGAIN
from sweephand.domain.occurrences.lateness import FRESH, Policy
from sweephand.domain.run import APART, AWAITING_RESULT, CLAIMABLE, REACTIONS, Kind, Reason, Run, State
from sweephand.domain.runs.run_action import policies_of
from sweephand.domain.schedule import LIVE, Schedule, ScheduleState

if TYPE_CHECKING:
    from sweephand.domain.occurrences.generations import Generation

with lazy():
    from sweephand.domain.occurrences import generations, misfire, off_times, suspension
    from sweephand.domain.runs import retry
    from sweephand.schedules import timing

MAX_AGE = timedelta(days=4)
"""A run whose message is this late ends without a call. Queues keep messages for 14 days."""
FOLLOWS = timedelta(seconds=20)
"""When an occurrence is looked at again whose schedule has still to follow a change of its job."""
SOON = timedelta(seconds=1)
HELD_LEAST, HELD_MOST = timedelta(seconds=5), timedelta(minutes=5)
"""How soon a message is looked at again whose collection or tenant is disabled: after half of its lateness so far."""
MAX_LOST = 1
"""How many executors may be lost in an attempt before it counts as failed, if another attempt may follow."""
MAX_LOST_LAST = 7
"""How many executors may be lost in the last attempt. Its message comes ten times, so some are left to end the run."""


@dataclass(frozen=True)
class Drop:
    """Acknowledge without writing a row, because the occurrence no longer has an owner or belongs to another plan."""

    why: str


@dataclass(frozen=True)
class End:
    """End the run without a call: write a new row, or change an unfinished one.

    message: for people; no rule depends on it.
    """

    state: State
    reason: Reason
    message: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class PutBack:
    """Write no row.

    The schedule is held with this occurrence unsent; it runs once tenant and collection are enabled.
    """


@dataclass(frozen=True)
class Hold:
    """Write a row that waits for its consumer, which is away."""

    consumer: str


@dataclass(frozen=True)
class Claim:
    """Claim this attempt. contested: whether to claim it only if the schedule's slot is free."""

    attempt: int
    contested: bool = False


@dataclass(frozen=True)
class TakeOver:
    """Claim the same attempt again, because its executor's lease has expired."""


@dataclass(frozen=True)
class EndLost:
    """End the run, because too many executors were lost in this attempt."""


@dataclass(frozen=True)
class EndUnanswered:
    """End the run, because the callback or the end of its task did not come in time."""

    state: State


@dataclass(frozen=True)
class FailAttempt:
    """Count the attempt as failed, so that the retry policy decides. state: the run's state if no attempt follows."""

    state: State
    reason: Reason


@dataclass(frozen=True)
class Effects:
    """Repeat the effects of the end of the finished run, then acknowledge."""


@dataclass(frozen=True)
class Later:
    """Do not acknowledge; let the message come back at `at`."""

    at: datetime


@dataclass(frozen=True)
class Defer:
    """Send the message again for `at`, then acknowledge it.

    The schedule has still to follow a change of its job, enough calls to a silent target are under way, or the
    collection of a message is disabled.
    """

    at: datetime


@dataclass(frozen=True)
class Acknowledge:
    """Acknowledge, because another message will come."""

    why: str


@dataclass(frozen=True)
class SendPointer:
    """Send the retry's pointer, which may be lost, then acknowledge."""


Admission = (
    Drop
    | End
    | PutBack
    | Hold
    | Claim
    | TakeOver
    | EndLost
    | EndUnanswered
    | FailAttempt
    | Effects
    | Later
    | Defer
    | Acknowledge
    | SendPointer
)


@dataclass(frozen=True)
class RunContext:
    """The rows on which the decision depends. terms: of the job's collection and tenant.

    left: the plan that sent the message, if a change has replaced that plan and the message is late, or its schedule
    does not list the plan any more. line: the ledger range that the message's instant belongs to, if any. away: the
    consumer of the job's events, if it is not live. silent: the host or address that the run calls, if it hangs.
    """

    job: Job | None
    schedule: Schedule | None
    run: Run | None
    terms: Terms = field(default_factory=Terms)
    left: Generation | None = None
    line: Run | None = None
    away: str | None = None
    silent: str | None = None


def flow_key_of(kind: Kind, context: RunContext) -> str | None:
    """Returns the flow key of a run: that of its job, else that of its collection.

    Error actions and hooks have none.
    """
    if kind in REACTIONS or context.job is None:
        return None
    own: str | None = context.job.policies.get("flowKey")
    return own or context.terms.flow_key


def admit(pointer: Pointer, context: RunContext, now: datetime, sent_at: datetime | None = None) -> Admission:
    """Decides what to do with a pointer. sent_at: when the queue accepted the message."""
    finished = context.run is not None and context.run.finished
    if pointer.not_after is not None and now > pointer.not_after and not finished:
        return Drop("the audit sent it too long ago; the next audit decides")
    if context.run is not None:
        return _with_row(pointer, context, context.run, now)
    return _without_row(pointer, context, now, sent_at)


def needs_left(pointer: Pointer, context: RunContext, now: datetime) -> bool:
    """Returns True if the sending plan is needed: for a late message whose schedule was changed since.

    Also for any message of a plan that so many changes have replaced that the schedule does not list it.
    """
    schedule = context.schedule
    if context.run is not None or pointer.kind is not Kind.SCHEDULED:
        return False
    if schedule is None or pointer.generation >= schedule.generation:
        return False
    late = _late_without_row(pointer, context, now) is not None and not pointer.decided
    return late or pointer.generation not in schedule.ended_at


def needs_line(pointer: Pointer, context: RunContext, now: datetime) -> bool:
    """Returns True if a ledger range may decide: for a late message from before the span that was left out last."""
    schedule = _late_without_row(pointer, context, now)
    if schedule is None or schedule.missed_from is None:
        return False
    if pointer.decided and schedule.left_out_to is None:
        return False  # probably from a catch-up, where a read for each message would be too many
    return pointer.instant < schedule.missed_from


def _late_without_row(pointer: Pointer, context: RunContext, now: datetime) -> Schedule | None:
    """Returns the schedule of a planned occurrence that is late and has no row yet; None for all others."""
    if context.run is not None or pointer.kind is not Kind.SCHEDULED or now - pointer.instant < FRESH:
        return None
    return context.schedule


def _without_row(pointer: Pointer, context: RunContext, now: datetime, sent_at: datetime | None) -> Admission:
    """Decides in the protocol's order: owner, time, plan, off times, lateness, permission to run."""
    if pointer.kind is not Kind.SCHEDULED or pointer.attempt > 1 or pointer.recorded:
        return Drop("its run is written before its message, and its row may have expired")
    if context.job is None or context.schedule is None:
        return Drop("its schedule is gone")
    if pointer.instant > now:
        return Later(pointer.instant)
    if _has_to_follow(pointer, context.job, context.schedule):
        return Defer(now + FOLLOWS)
    if context.line is not None:
        return Drop("a range of the ledger includes it")
    return (
        _superseded(pointer, context.schedule, context.left)
        or _was_off(pointer, context.job, context.schedule, context.terms)
        or _too_late(pointer, context, now, sent_at)
        or _forbidden(pointer, context.job, context.schedule, enabled=context.terms.enabled)
        or (Hold(context.away) if context.away is not None else None)
        or Claim(1, contested=contested(context.job, context.schedule))
    )


def _has_to_follow(pointer: Pointer, job: Job, schedule: Schedule) -> bool:
    """Returns True if an open change of the job will decide about the instant: its schedule may have another plan."""
    if job.open_change is None or schedule.modified_at >= job.modified_at:
        return False
    return pointer.instant > generations.takes_effect(job.modified_at)


def _superseded(pointer: Pointer, schedule: Schedule, left: Generation | None) -> Drop | None:
    """Drops an instant that another plan covers."""
    if pointer.generation < schedule.generation:
        ended_at = schedule.ended_at.get(pointer.generation)
        through = from_s(ended_at) if ended_at is not None else left.through if left is not None else None
        if through is None:
            return Drop("planned by a generation that is no longer kept")
        if pointer.instant > through:
            return Drop("a change has planned this instant again")
    if not _left_out(pointer.instant, schedule):
        return None
    if not pointer.decided:
        return Drop("the catch-up decides about it")
    if schedule.left_out_to is not None and pointer.instant <= schedule.left_out_to:
        return Drop("an interrupted sweep sent it, and a later one left it out")
    return None


def _was_off(pointer: Pointer, job: Job, schedule: Schedule, terms: Terms) -> End | None:
    """Skips an occurrence that fell due while it was switched off, if its message came late."""
    if schedule.off_times is None and terms.off_times is None:
        return None
    reason = off_times.reason_at(schedule.off_times, pointer.instant, pointer.generation)
    if reason is None and not _planned_late(pointer, schedule):
        reason = off_times.reason_at(terms.off_times, pointer.instant, pointer.generation)
        if reason is not None and suspension.runs_when_enabled(policies_of(job, schedule), schedule.packed):
            return None
    return None if reason is None else End(State.SKIPPED, reason)


def _planned_late(pointer: Pointer, schedule: Schedule) -> bool:
    """Returns True if a request planned it for a moment ago, to run at once even if the collection was off then."""
    if pointer.instant != schedule.first_at or pointer.generation != schedule.generation:
        return False
    return pointer.instant < schedule.modified_at and _planned_from(schedule) >= pointer.instant


def _planned_from(schedule: Schedule) -> datetime:
    """Returns about when the generation in force was planned: at most seconds after that, never before."""
    ended = schedule.ended_at.get(schedule.generation - 1)
    return schedule.created_at if ended is None else from_s(ended)


def _left_out(instant: datetime, schedule: Schedule) -> bool:
    """Returns True within the span that a catch-up or a release left out. Messages for earlier instants are valid."""
    if schedule.missed_to is None or instant > schedule.missed_to:
        return False
    return schedule.missed_from is None or instant >= schedule.missed_from


def _too_late(pointer: Pointer, context: RunContext, now: datetime, sent_at: datetime | None) -> End | None:
    """Applies the misfire policy to a late message: executors were down, or their queue could not be reached.

    The lateness of a worker counts from the planned instant, and its run is missed because the worker was away.
    """
    assert context.job is not None
    assert context.schedule is not None
    schedule, left = context.schedule, context.left
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
        return None  # the sweep takes such a schedule out of service; what it sent before runs anyway
    if too_late is None:
        return None
    (state, reason), late_s = too_late, f"{(now - pointer.instant).total_seconds():.0f}"
    said = f"an executor received it {late_s} s after its planned instant"
    if context.job.action.kind == QUEUE:
        reason = Reason.CONSUMER_AWAY if reason is Reason.SERVICE_OUTAGE else reason
        said = f"no worker had taken it {late_s} s after its planned instant"
    elif context.silent is not None:
        reason = Reason.CIRCUIT_OPEN if reason is Reason.SERVICE_OUTAGE else reason
        said = f"{context.silent} did not answer other calls, so it waited for {late_s} s"
    return End(state, reason, said)


def _forbidden(pointer: Pointer, job: Job, schedule: Schedule, *, enabled: bool) -> End | PutBack | None:
    """Skips a run that must not run now. Checks both rows: the schedules of a large job follow its change later."""
    waits = not enabled and _waits(pointer, job, schedule)
    if not (enabled or waits) or not job.active or schedule.state in {ScheduleState.INACTIVE, ScheduleState.BROKEN}:
        return End(State.SKIPPED, Reason.DISABLED)
    if job.pause is not None or schedule.state is ScheduleState.PAUSED:
        return End(State.SKIPPED, Reason.PAUSED)
    return PutBack() if waits else None


def _waits(pointer: Pointer, job: Job, schedule: Schedule) -> bool:
    """Returns True for an occurrence of the plan in force that waits until its collection and tenant are enabled."""
    if pointer.generation != schedule.generation or schedule.state not in LIVE:
        return False
    return suspension.runs_when_enabled(policies_of(job, schedule), schedule.packed)


def _with_row(pointer: Pointer, context: RunContext, run: Run, now: datetime) -> Admission:  # noqa: C901, PLR0911 - as above
    job, schedule = context.job, context.schedule
    if run.finished:
        return Effects()
    if run.state is State.TRIGGERED and run.lease_until is not None and run.lease_until > now:
        return Later(run.lease_until)  # the result of its executor counts even if its job was deleted
    if job is None or (run.schedule_id is not None and schedule is None):
        return End(State.CANCELLED, Reason.OWNER_GONE)
    if run.kind in REACTIONS and job.reaction(run.kind) is None and run.state in CLAIMABLE:
        return End(State.CANCELLED, Reason.OWNER_GONE)
    if run.state is State.HELD:
        return _held(pointer, context, run, job, now)
    if run.state is State.TRIGGERED:
        return _after_lost(job, schedule, run, now)
    if run.state in AWAITING_RESULT:
        if run.deadline_at is not None and run.deadline_at <= now:
            return _unanswered(job, schedule, run, now)
        return _still_ahead(run, run.deadline_at)
    if run.state is State.SCHEDULED:
        return _waiting(context, run, now)
    if pointer.attempt < run.attempt:
        return SendPointer() if run.wake_at is None else Acknowledge("its row in the index wakes it")
    if run.not_before is not None and run.not_before > now:
        return _still_ahead(run, run.not_before)
    begins = run.state is State.QUEUED and run.kind not in APART
    return Claim(run.attempt, contested=begins and (run.slotted or contested(job, schedule)))


def _waiting(context: RunContext, run: Run, now: datetime) -> Admission:
    """Decides about a message that has not begun. It is data: what is disabled holds it, and does not skip it."""
    assert run.posted is not None
    if run.not_before is not None and run.not_before > now:
        return _still_ahead(run, run.not_before)
    late, most_s = now - run.planned_at, run.posted.max_lateness_s
    if most_s is not None and late > timedelta(seconds=most_s):
        said = f"it could begin {late.total_seconds():.0f} s after its planned instant at the earliest"
        return End(State.EXPIRED, Reason.MAX_LATENESS, said)
    if context.terms.enabled:
        return Claim(run.attempt)
    if late > WAKE_AGAIN and run.wake_at is not None:
        return Acknowledge("its row in the index wakes it")
    return Defer(now + min(HELD_MOST, max(HELD_LEAST, late / 2)))


def _held(pointer: Pointer, context: RunContext, run: Run, job: Job, now: datetime) -> End | Acknowledge | Claim:
    """Decides about a held run. One that no worker has taken is judged as if it had no row, until a worker takes it."""
    if run.consumer is not None or context.schedule is None:
        return Acknowledge("it is sent on once its consumer starts")
    forbidden = _forbidden(pointer, job, context.schedule, enabled=context.terms.enabled)
    return (
        _too_late(replace(pointer, decided=False), context, now, None)
        or (forbidden if isinstance(forbidden, End) else None)
        or Claim(run.attempt, contested=contested(job, context.schedule))
    )


def judged_again_at(pointer: Pointer, schedule: Schedule) -> datetime:
    """Returns when a run that no worker has taken will be too late if none takes it until then."""
    latest = pointer.instant + MAX_AGE + SOON
    try:
        policy = Policy.read(schedule.misfire)
        too_late = misfire.too_late_at(
            timing.load(schedule.packed), policy, pointer.instant, through=schedule.last_planned_at
        )
    except ValueError:
        return latest
    return latest if too_late is None else min(latest, too_late)


def _after_lost(job: Job, schedule: Schedule | None, run: Run, now: datetime) -> TakeOver | FailAttempt | EndLost:
    """Decides about an attempt whose executor was lost.

    At-least-once delivery means that another try is made as long as one is possible: the call may never have begun.
    No other try is made days later.
    """
    if policies_of(job, schedule).get("delivery") == "at_most_once":
        return EndLost()
    if _long_ago(run.lease_until, now):
        return EndLost()
    if run.lost_in_attempt < MAX_LOST:
        return TakeOver()
    if _attempts_left(job, run):
        return FailAttempt(State.UNKNOWN, Reason.EXECUTOR_LOST)
    return TakeOver() if run.lost_in_attempt < MAX_LOST_LAST else EndLost()


def _long_ago(at: datetime | None, now: datetime) -> bool:
    """Returns True if a call was to end so long ago that it is not repeated, because it may have succeeded."""
    return at is not None and now - at > MAX_AGE


def _unanswered(job: Job, schedule: Schedule | None, run: Run, now: datetime) -> FailAttempt | EndUnanswered:
    """Decides about a run whose result did not come in time. An ECS task is stopped then, so its run ends."""
    if _is_task(job, run):
        return EndUnanswered(State.TIMEOUT)
    retries = policies_of(job, schedule).get("onNoResult") == "retry" and not _long_ago(run.deadline_at, now)
    if retries and _attempts_left(job, run):
        return FailAttempt(State.UNKNOWN, Reason.DEADLINE)
    return EndUnanswered(State.UNKNOWN)


def _attempts_left(job: Job, run: Run) -> bool:
    """Returns True if the current retry policy of its action allows another attempt."""
    action = (job.reaction(run.kind) if run.kind in REACTIONS else None) or job.action
    return run.attempt < retry.parse(action.retry, "retry").max_attempts


def _is_task(job: Job, run: Run) -> bool:
    """Returns True for a run of an ECS task, which is stopped at its deadline."""
    action = job.reaction(run.kind) if run.kind in REACTIONS else job.action
    return run.task is not None or (action is not None and action.kind in TASK_KINDS)


def contested(job: Job, schedule: Schedule | None) -> bool:
    """Returns True if runs of the schedule exclude each other. Runs of the job itself never do."""
    return schedule is not None and policies_of(job, schedule).get("overlap", "allow") != "allow"


def _still_ahead(run: Run, at: datetime | None) -> Later | Acknowledge:
    """Decides about a run that waits for `at`.

    If its wake-up lies after `at`, this message is the wake-up itself, slightly early by this clock. Acknowledging it
    would delay the run until the next wake-up.
    """
    if at is not None and (run.wake_at is None or run.wake_at > at):
        return Later(at)
    return Acknowledge("its row in the index wakes it")
