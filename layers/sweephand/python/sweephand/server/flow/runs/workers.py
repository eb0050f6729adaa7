"""Claims and settles the runs of workers, with the steps of the executor. Between the two, a worker acts under a lease.

A worker gets the pointer of a run from its application's queue and claims the run through the API. Like an executor, it
deletes the message only when the outcome is settled with all effects. After a crash in between, the message comes back.
Any other decision of the gate is passed on to the executors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from sweephand.base.errors import Conflict, InvalidRequest, NotFound
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain import application
from sweephand.domain.job import ActionSpec, Payload
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.run import FAILED, Outcome, Reason, Run, State, Verdict, claim_mark
from sweephand.domain.runs.admission import RunContext
from sweephand.domain.runs.run_action import OpenAttempt, action_of, lane_now, lane_of
from sweephand.domain.schedule import Lane
from sweephand.server.flow import verdict
from sweephand.server.flow.runs import effects, execute, gate_rows, perform, settle
from sweephand.server.flow.runs.conclusion import conclude
from sweephand.server.flow.tenants import absence, tenancy
from sweephand.server.flow.verdict import Delivered, RunMessage
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.security import marks
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Written
from sweephand.server.store.runs import ledger
from sweephand.server.store.tenants import applications

if TYPE_CHECKING:
    from sweephand.server.flow.runs.follow_ups import FollowUp

with lazy():
    from sweephand.server.flow import events
    from sweephand.server.flow.flow_keys import calls
    from sweephand.server.flow.runs import follow_ups

LEASE_LOST = "LEASE_LOST"
RESULT_CONFLICT = "RESULT_CONFLICT"


@dataclass(frozen=True)
class Claim:
    """A worker's claim. owner: names the worker and this message; it is the same whenever the claim is repeated.

    name, version: of its application.
    """

    pointer: Pointer
    owner: str
    name: str
    version: str | None = None
    lease_s: int = application.LEASE_S
    sent_at: datetime | None = None

    @property
    def lane(self) -> Lane:
        return application.lane_of(self.pointer.tenant, self.name, self.version)


@dataclass(frozen=True)
class Task:
    """The task of a claimed run, for its worker. payload: the job's, or the one that this run sends in its place."""

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
    context = gate_rows.context_of(world, pointer)
    if not _is_ours(world, pointer, context.run, now):
        raise InvalidRequest("message", "is not a message of this service: send the body exactly as received")
    delivered = Delivered(pointer.run, wanted.owner, "", received_at=now, sent_at=wanted.sent_at)
    message = RunMessage(delivered, pointer, context, _lane(wanted, context), wanted.owner, wanted.lease_s)
    if _holds(context.run, wanted.owner) and context.run is not None and (context.run.lease_until or now) > now:
        return _task(world, message.attempt(context.run))
    if keys.application(wanted.name, wanted.version) in context.terms.watched:
        until = now + timedelta(seconds=wanted.lease_s)
        absence.came(world, pointer.tenant, wanted.name, wanted.version, until)
    tasks: list[Task] = []

    def prepare(world: World, attempt: OpenAttempt) -> verdict.Verdict:
        with execute.unclaimed_if_unavailable(world, attempt):
            tasks.append(_task(world, attempt))
        return verdict.Verdict(acknowledged=False, attempted=attempt.run)

    decided = execute.take(world, message, prepare)
    if not tasks:
        return decided
    verdict.measure(world, [decided])
    return tasks[0]


def _lane(wanted: Claim, context: RunContext) -> Lane:
    """Returns the queue of the message. The queue of a version also carries runs that any version may take."""
    common = replace(wanted, version=None).lane
    return common if lane_now(context.job, wanted.pointer.kind, wanted.lane) == common else wanted.lane


def _is_ours(world: World, pointer: Pointer, run: Run | None, now: datetime) -> bool:
    """Returns whether the service sent this pointer: it agrees with the row, or has the service's mark.

    If the run has a row, that row decides what happens. Without one, the pointer decides what the new row contains.
    """
    if run is None:
        return marks.is_ours(pointer, world.pointer_keys.current(), now)
    as_row = (run.job_id, run.schedule_id, run.kind)
    return (pointer.job, pointer.schedule, pointer.kind) == as_row and pointer.attempt <= run.attempt


def _task(world: World, attempt: OpenAttempt) -> Task:
    action, payload = perform.to_send(world, attempt)
    return Task(attempt.run, action, payload, attempt.job.resource_id, attempt.job.tags)


def _holds(run: Run | None, owner: str) -> bool:
    return run is not None and run.state is State.TRIGGERED and run.lease_owner == owner


def extend(world: World, tenant: str, owner_id: str, uuid: str, owner: str, lease_s: int) -> datetime:
    """Extends the lease of a run that this worker holds, and its place under a flow key. Returns when the lease ends.

    Raises NotFound, Conflict(LEASE_LOST).
    """
    until = world.clock.now() + timedelta(seconds=lease_s)
    done = ledger.extend(world.table, (tenant, owner_id, uuid), owner, until)
    if isinstance(done, Refused):
        current = ledger.run_in(done)
        if current is None:
            raise NotFound("no such run")
        why = f"this worker does not hold the run and must stop the task: {current.state_in_words}"
        raise Conflict(why, code=LEASE_LOST)
    run = ledger.read(world.table, tenant, owner_id, uuid)
    if run is not None and _holds(run, owner):
        absence.holds(world, tenant, run.job_id, run.kind, until)
        if run.flow_key is not None:
            calls.stay(world, tenant, run.flow_key, uuid, until)
    return until


class Ended(StrEnum):
    """The end of a task, as its worker reports it."""

    SUCCESS = "success"
    FAILURE = "failure"
    BAD_PAYLOAD = "bad_payload"
    """The arguments do not fit the task. No attempt follows."""
    UNKNOWN_TASK = "unknown_task"
    """This worker does not know the task. The run waits for one that does."""
    DISCARDED = "discarded"
    """The worker's policy ends the run, and the message says why."""


@dataclass(frozen=True)
class Report:
    """A worker's report. attempt: the one that it claimed. exception: its type, which begins the message.

    details: such as a stack trace, kept as the attempt's answer. retry: if False, no attempt follows. delay_s: the
    shortest wait before the next attempt. follow_up: after a success, when the job runs again.
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


def report(world: World, tenant: str, owner_id: str, uuid: str, sent: Report) -> Run:
    """Settles the attempt of a worker with its effects. Returns the run as it is now. May be repeated.

    Success counts even from a worker that has lost its lease, as long as its attempt is the current one and has not
    ended. Raises NotFound; Conflict(LEASE_LOST) for another outcome without the lease, and for a worker that has not
    claimed the attempt; Conflict(RESULT_CONFLICT) if the run ended otherwise; InvalidRequest for a follow-up that is
    not possible. The follow-up of the report that ends the run counts.
    """
    run = tenancy.find_run(world, tenant, owner_id, uuid)
    context = gate_rows.context_of(world, ledger.pointer_to(run))
    run = context.run or run
    if context.job is None:
        raise NotFound("the job of this run was deleted")
    lane = lane_of(action_of(context.job, run.kind), tenant)
    attempt = OpenAttempt(run, context.job, context.schedule, context.terms, lane)
    if not (_holds(run, sent.owner) and run.attempt == sent.attempt):
        return _without_lease(world, attempt, sent)
    attempt = replace(attempt, run=replace(run, reported_by=sent.owner))
    match sent.ended:
        case Ended.UNKNOWN_TASK:
            return _unknown(world, attempt, sent)
        case Ended.DISCARDED:
            return _discarded(world, attempt, sent)
    return _settled(world, attempt, sent)


def _outcome(sent: Report) -> Outcome:
    match sent.ended:
        case Ended.SUCCESS:
            return Outcome(Verdict.SUCCEEDED, message=sent.text)
        case Ended.BAD_PAYLOAD:
            return Outcome(Verdict.FAILED, Reason.BAD_PAYLOAD, answer=sent.details, message=sent.text, final=True)
    return Outcome(
        Verdict.FAILED,
        Reason.TARGET_ERROR,
        answer=sent.details,
        message=sent.text,
        retryable=True,
        retry_after_s=sent.delay_s,
        final=not sent.retry,
    )


def _settled(world: World, attempt: OpenAttempt, sent: Report) -> Run:
    """Settles the reported outcome. The next run of a chain is written together with the end or not at all."""
    if sent.follow_up is None:
        return _concluded(world, attempt, _outcome(sent))
    follow_ups.check(sent.follow_up, attempt.job, world.clock.now())
    follows = follow_ups.run_after(attempt.run, attempt.job, sent.follow_up)
    also = follow_ups.ops(world, follows, attempt.job, sent.follow_up)
    ended = _concluded(world, attempt, _outcome(sent), also)
    if ended.state is State.SUCCESS:
        follow_ups.send_soon(world, follows, attempt.job)
    return ended


def _concluded(world: World, attempt: OpenAttempt, outcome: Outcome, also: Sequence[Op] = ()) -> Run:
    concluded = conclude(world, attempt, outcome, also)
    if concluded.ended is None:
        raise Conflict("this worker does not hold the run any more", code=LEASE_LOST)
    verdict.measure(world, [replace(concluded, attempted=None, job=attempt.job)])
    return concluded.ended


def _without_lease(world: World, attempt: OpenAttempt, sent: Report) -> Run:
    """Decides about the report of a worker that does not hold this attempt: it lost it, or has reported it before."""
    run = attempt.run
    if claim_mark(sent.owner, sent.attempt) not in run.claims:
        raise Conflict(
            f"this worker has not claimed attempt {sent.attempt} of the run: {run.state_in_words}",
            code=RESULT_CONFLICT if run.finished else LEASE_LOST,
        )
    if sent.ended is Ended.SUCCESS and run.state is State.TRIGGERED and run.attempt == sent.attempt:
        late = replace(run, lease_owner=sent.owner, reported_by=sent.owner)
        return _settled(world, replace(attempt, run=late), sent)
    if _agrees(run, sent):
        _send_again(world, attempt)
        return run
    if not run.finished:
        raise Conflict(f"this worker does not hold the run any more: {run.state_in_words}", code=LEASE_LOST)
    ledger.note(world.table, run, f"report after the end: {sent.ended}")
    raise Conflict(f"the run has ended as {run.state}", code=RESULT_CONFLICT)


def _agrees(run: Run, sent: Report) -> bool:
    """Returns whether the run is as this report has left it."""
    if run.state is State.RETRY_WAIT:
        left = {Ended.UNKNOWN_TASK: sent.attempt, Ended.FAILURE: sent.attempt + 1}
        return run.attempt == left.get(sent.ended)
    if sent.ended is Ended.SUCCESS:
        return run.state is State.SUCCESS
    if sent.ended is Ended.DISCARDED:
        return run.state is State.CANCELLED
    return run.state in FAILED and run.attempt == sent.attempt


def _send_again(world: World, attempt: OpenAttempt) -> None:
    """Sends the pointer of a run again, for its next attempt (with its event) or for the effects of its end."""
    run = attempt.run
    if run.finished:
        world.queue.send_one(Delivery(ledger.pointer_to(run), world.clock.now(), attempt.lane.executors))
    else:
        if run.state is State.RETRY_WAIT:
            events.run_retrying(world, run, attempt.job)
        settle.send_pointer(world, attempt.lane, run)


def _unknown(world: World, attempt: OpenAttempt, sent: Report) -> Run:
    """Lets the run wait for a worker that knows its task: row first, then message. Fails it after too many workers.

    If workers of a version know the task, its queue gets the message at once. The common queue gets one too, in case
    none of them is left.
    """
    run, action, times = attempt.run, attempt.action, attempt.run.unknown + 1
    now = world.clock.now()
    again_at = now + timedelta(seconds=application.unknown_again_s(times))
    most_s = action.retry.get("maxAgeSeconds")
    over = most_s is not None and again_at > run.planned_at + timedelta(seconds=most_s)
    task = action.params["task"]
    why = f'the worker that took it does not know the task "{task}"'
    if times >= application.MOST_UNKNOWN or over:
        failed = Outcome(
            Verdict.FAILED, Reason.UNKNOWN_TASK, message=f'none of {times} workers knows the task "{task}"', final=True
        )
        return _concluded(world, attempt, failed)
    knowing = applications.knowing(world.table, run.tenant, action.params["application"], task)
    waits = replace(
        run,
        state=State.RETRY_WAIT,
        reason=Reason.UNKNOWN_TASK,
        message=why,
        unknown=times,
        not_before=again_at if knowing is None else now,
        lease_owner=None,
        lease_until=None,
    )
    done = ledger.give_back(world.table, waits, sent.owner)
    if isinstance(done, Written):
        if run.flow_key is not None:
            calls.leave(world, run, own=True)
        if knowing is not None:
            settle.send_pointer(world, knowing.lane, waits)
        settle.send_pointer(world, attempt.lane, replace(waits, not_before=again_at))
        return waits
    return _reread(world, attempt, done, sent)


def _discarded(world: World, attempt: OpenAttempt, sent: Report) -> Run:
    run, job = attempt.run, attempt.job
    why = f"discarded by the worker: {sent.text}" if sent.text else "discarded by the worker"
    ended = settle.end_unacted(
        world, attempt.lane, ledger.pointer_to(run), run, State.CANCELLED, Reason.BY_USER, why, job.collection
    )
    if isinstance(ended, Refused):
        return _reread(world, attempt, ended, sent)
    effects.after(world, ended, job, attempt.schedule)
    return ended


def _reread(world: World, attempt: OpenAttempt, refused: Refused, sent: Report) -> Run:
    current = ledger.run_in(refused)
    if current is None:
        raise NotFound("no such run")
    return _without_lease(world, replace(attempt, run=current), sent)
