"""Claims and settles the runs of workers, by the steps of the executor: a worker acts between the two, with its lease.

A worker gets the pointer of a run from its application's queue and claims the run by the API. It deletes the message
only when its outcome is settled with all effects, as an executor acknowledges its own: after a crash in between, the
message comes back. Any other decision of the gate is passed on to the executors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from sweephand.domain import application
from sweephand.domain.job import ActionSpec, Payload
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.run import FAILED, Outcome, Reason, Run, State, Verdict
from sweephand.domain.runs.admission import Seen
from sweephand.domain.runs.run_action import action_of, lane_of
from sweephand.domain.schedule import Lane
from sweephand.errors import Conflict, InvalidRequest, NotFound
from sweephand.flow import verdict
from sweephand.flow.runs import effects, execute, gate_rows, perform, settle
from sweephand.flow.tenants import tenancy
from sweephand.flow.verdict import Delivered
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.messaging.run_queue import Delivery
from sweephand.records import dataclass
from sweephand.security import marks
from sweephand.store.dynamo.conditional import Op, Refused, Written
from sweephand.store.runs import ledger

if TYPE_CHECKING:
    from sweephand.flow.runs.follow_ups import FollowUp

with lazy():
    from sweephand.flow.flow_keys import calls
    from sweephand.flow.runs import follow_ups

LEASE_LOST = "LEASE_LOST"
RESULT_CONFLICT = "RESULT_CONFLICT"


@dataclass(frozen=True)
class Claim:
    """A worker's claim. owner: names the worker and this message, the same whenever the claim is repeated."""

    pointer: Pointer
    owner: str
    lane: Lane
    lease_s: int = application.LEASE_S
    sent_at: datetime | None = None


@dataclass(frozen=True)
class Task:
    """The task of a claimed run, for its worker. payload: what the job sends, or what this run sends in its place."""

    run: Run
    action: ActionSpec
    payload: Payload | None
    resource_id: str | None
    tags: tuple[str, ...]


def claim(world: World, wanted: Claim) -> Task | verdict.Verdict:
    """Claims a run for a worker. Returns its task, or the verdict on the message: delete it, or let it come back.

    A repeated claim returns the same task. Raises InvalidRequest for a pointer that the service did not send.
    """
    pointer, now = wanted.pointer, world.clock.now()
    if pointer.subject is not Subject.RUN:
        raise InvalidRequest("message", "is not the pointer of a run")
    seen = gate_rows.seen_of(world, pointer)
    if not _is_ours(world, pointer, seen.run, now):
        raise InvalidRequest("message", "is not a message of this service: send the body as the queue gave it")
    if _holds(seen.run, wanted.owner) and seen.run is not None and (seen.run.lease_until or now) > now:
        return _task(world, seen.run, seen)
    message = Delivered(pointer.run, wanted.owner, "", received_at=now, sent_at=wanted.sent_at)
    leased = replace(world, settings=replace(world.settings, lease_s=float(wanted.lease_s)))
    said = execute.take(leased, wanted.lane, wanted.owner, message, pointer, seen, _held)
    mine = said.attempted
    if mine is None or said.acknowledged:
        return said
    verdict.measure(world, [said])
    return _task(world, mine, seen)


def _held(world: World, lane: Lane, mine: Run, seen: Seen) -> verdict.Verdict:  # noqa: ARG001 - as an executor's
    return verdict.Verdict(acknowledged=False, attempted=mine)


def _is_ours(world: World, pointer: Pointer, run: Run | None, now: datetime) -> bool:
    """Returns whether the service sent this pointer: it says what the row says, or has the service's mark.

    The row of a run decides on it, whoever asks; a pointer whose run has no row decides on what becomes a row.
    """
    if run is None:
        return marks.is_ours(pointer, world.pointer_keys.current(), now)
    as_row = (run.job_id, run.schedule_id, run.kind)
    return (pointer.job, pointer.schedule, pointer.kind) == as_row and pointer.attempt <= run.attempt


def _task(world: World, run: Run, seen: Seen) -> Task:
    assert seen.job is not None
    action, payload = perform.to_send(world, run, seen.job, seen.schedule)
    return Task(run, action, payload, seen.job.resource_id, seen.job.tags)


def _holds(run: Run | None, owner: str) -> bool:
    return run is not None and run.state is State.TRIGGERED and run.lease_owner == owner


def extend(world: World, tenant: str, owner_id: str, uuid: str, owner: str, lease_s: int) -> datetime:
    """Extends the lease of a run that this worker holds, and its place under a flow key. Returns the end of the lease.

    Raises NotFound, Conflict(LEASE_LOST).
    """
    until = world.clock.now() + timedelta(seconds=lease_s)
    done = ledger.extend(world.table, (tenant, owner_id, uuid), owner, until)
    if isinstance(done, Refused):
        if ledger.run_in(done) is None:
            raise NotFound("no such run")
        raise Conflict("this worker does not hold the run any more: it must stop the task", code=LEASE_LOST)
    run = ledger.read(world.table, tenant, owner_id, uuid)
    if run is not None and run.flow_key is not None and _holds(run, owner):
        calls.stay(world, tenant, run.flow_key, uuid, until)
    return until


class Ended(StrEnum):
    """How a task ended for its worker."""

    SUCCESS = "success"
    FAILURE = "failure"
    BAD_PAYLOAD = "bad_payload"
    """Its arguments do not fit the task. No attempt follows."""
    UNKNOWN_TASK = "unknown_task"
    """This worker does not know the task. The run waits for one that does."""
    DISCARDED = "discarded"
    """The worker's policy ends the run, and the message says why."""


@dataclass(frozen=True)
class Report:
    """A worker's report. attempt: the one that it claimed. exception: its type, which begins the message.

    details: such as a stack trace, kept as the attempt's answer. retry False: no attempt follows. delay_s: the next one
    waits at least so long. follow_up: of a success: when the job runs again.
    """

    owner: str
    attempt: int
    ended: Ended
    message: str | None = None
    exception: str | None = None
    details: str | None = None
    retry: bool = True
    delay_s: int | None = None
    follow_up: FollowUp | None = None

    @property
    def text(self) -> str | None:
        return ": ".join(filter(None, (self.exception, self.message))) or None


def report(world: World, tenant: str, owner_id: str, uuid: str, told: Report) -> Run:
    """Settles the attempt of a worker with its effects. Returns the run as it is now. May be repeated.

    Success counts even from a worker that has lost its lease, as long as the run has not ended. Raises NotFound,
    Conflict(LEASE_LOST) for another outcome without the lease, Conflict(RESULT_CONFLICT) if the run ended otherwise,
    InvalidRequest for a follow-up that cannot be. Whichever report ends the run, its follow-up counts.
    """
    run = tenancy.find_run(world, tenant, owner_id, uuid)
    seen = gate_rows.seen_of(world, ledger.pointer_to(run))
    run = seen.run or run
    if seen.job is None:
        raise NotFound("the job of this run was deleted")
    lane = lane_of(action_of(seen.job, run.kind), tenant)
    if not (_holds(run, told.owner) and run.attempt == told.attempt):
        return _without_lease(world, lane, run, told, seen)
    match told.ended:
        case Ended.UNKNOWN_TASK:
            return _unknown(world, lane, run, told, seen)
        case Ended.DISCARDED:
            return _discarded(world, lane, run, told, seen)
    return _settled(world, lane, run, told, seen)


def _outcome(told: Report) -> Outcome:
    match told.ended:
        case Ended.SUCCESS:
            return Outcome(Verdict.SUCCEEDED, message=told.text)
        case Ended.BAD_PAYLOAD:
            return Outcome(Verdict.FAILED, Reason.BAD_PAYLOAD, answer=told.details, message=told.text, final=True)
    return Outcome(
        Verdict.FAILED,
        Reason.TARGET_ERROR,
        answer=told.details,
        message=told.text,
        retryable=True,
        retry_after_s=told.delay_s,
        final=not told.retry,
    )


def _settled(world: World, lane: Lane, run: Run, told: Report, seen: Seen) -> Run:
    """Settles what was reported. The next run of a chain is written with the end, or not at all."""
    if told.follow_up is None:
        return _concluded(world, lane, run, _outcome(told), seen)
    assert seen.job is not None
    follow_ups.check(told.follow_up, seen.job, world.clock.now())
    follows = follow_ups.run_after(run, seen.job, told.follow_up)
    also = follow_ups.ops(world, follows, seen.job, told.follow_up)
    ended = _concluded(world, lane, run, _outcome(told), seen, also)
    if ended.state is State.SUCCESS:
        follow_ups.send_soon(world, follows, seen.job)
    return ended


def _concluded(world: World, lane: Lane, run: Run, outcome: Outcome, seen: Seen, also: Sequence[Op] = ()) -> Run:
    said = execute.conclude(world, lane, run, outcome, seen, also)
    if said.ended is None:
        raise Conflict("this worker does not hold the run any more", code=LEASE_LOST)
    verdict.measure(world, [replace(said, attempted=None)])
    return said.ended


def _without_lease(world: World, lane: Lane, run: Run, told: Report, seen: Seen) -> Run:
    """Decides on a report of a worker that does not hold this attempt: it lost it, or has reported it before."""
    if told.ended is Ended.SUCCESS and not run.finished:
        return _settled(world, lane, replace(run, lease_owner=told.owner), told, seen)
    if _agrees(run, told):
        _send_again(world, lane, run)
        return run
    if not run.finished:
        raise Conflict("this worker does not hold the run any more", code=LEASE_LOST)
    ledger.note(world.table, run, f"report after the end: {told.ended}")
    raise Conflict(f"the run has ended as {run.state}", code=RESULT_CONFLICT)


def _agrees(run: Run, told: Report) -> bool:
    """Returns whether the run is as this report has left it."""
    if run.state is State.RETRY_WAIT:
        same = told.attempt if told.ended is Ended.UNKNOWN_TASK else told.attempt + 1
        return told.ended is not Ended.SUCCESS and run.attempt == same
    if told.ended is Ended.SUCCESS:
        return run.state is State.SUCCESS
    if told.ended is Ended.DISCARDED:
        return run.state is State.CANCELLED
    return run.state in FAILED and run.attempt == told.attempt


def _send_again(world: World, lane: Lane, run: Run) -> None:
    """Sends the pointer of a run again: of its next attempt, or for the effects of its end."""
    if run.finished:
        world.queue.send_one(Delivery(ledger.pointer_to(run), world.clock.now(), lane.executors))
    else:
        settle.send_pointer(world, lane, run)


def _unknown(world: World, lane: Lane, run: Run, told: Report, seen: Seen) -> Run:
    """Lets the run wait for a worker that knows its task: row first, then its message. Too often, and it has failed."""
    assert seen.job is not None
    action, times = action_of(seen.job, run.kind), run.unknown + 1
    now = world.clock.now()
    again_at = now + timedelta(seconds=application.unknown_again_s(times))
    most_s = action.retry.get("maxAgeSeconds")
    over = most_s is not None and again_at > run.planned_at + timedelta(seconds=most_s)
    why = f'no worker of the application knows the task "{action.params["task"]}"'
    if times >= application.MOST_UNKNOWN or over:
        failed = Outcome(Verdict.FAILED, Reason.UNKNOWN_TASK, message=f"{why}; workers asked: {times}", final=True)
        return _concluded(world, lane, run, failed, seen)
    waits = replace(
        run,
        state=State.RETRY_WAIT,
        reason=Reason.UNKNOWN_TASK,
        message=why,
        unknown=times,
        not_before=again_at,
        lease_owner=None,
        lease_until=None,
    )
    done = ledger.give_back(world.table, waits, told.owner)
    if isinstance(done, Written):
        if run.flow_key is not None:
            calls.leave(world, run, own=True)
        settle.send_pointer(world, lane, waits)
        return waits
    return _reread(world, lane, done, told, seen)


def _discarded(world: World, lane: Lane, run: Run, told: Report, seen: Seen) -> Run:
    assert seen.job is not None
    why = f"discarded by the worker: {told.text}" if told.text else "discarded by the worker"
    ended = settle.end_unacted(
        world, lane, ledger.pointer_to(run), run, State.CANCELLED, Reason.BY_USER, why, seen.job.collection
    )
    if isinstance(ended, Refused):
        return _reread(world, lane, ended, told, seen)
    effects.after(world, ended, seen.job, seen.schedule)
    return ended


def _reread(world: World, lane: Lane, refused: Refused, told: Report, seen: Seen) -> Run:
    there = ledger.run_in(refused)
    if there is None:
        raise NotFound("no such run")
    return _without_lease(world, lane, there, told, seen)
