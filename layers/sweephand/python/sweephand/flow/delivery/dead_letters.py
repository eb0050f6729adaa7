"""Reads the dead-letter queue: a run whose message could not be settled ends as UNDELIVERED.

A rule starts the reader each minute, because an event source would poll an empty queue all month (decision 0079).
"""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.domain.instants import from_ms
from sweephand.domain.message import Pointer, Subject, Unreadable, decode
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.runs import admission
from sweephand.domain.runs.admission import Admission, End, RunContext
from sweephand.domain.schedule import Lane
from sweephand.errors import Unavailable
from sweephand.flow.runs import effects, execute, gate_rows, settle
from sweephand.flow.verdict import AGAIN, DONE, Delivered, Verdict, later
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.messaging.run_queue import Letter
from sweephand.store.dynamo.conditional import Refused
from sweephand.telemetry import where

with lazy():
    from sweephand.flow.bulk import carry_on
    from sweephand.flow.runs import ecs_tasks

TAKEN_FOR_S = 15.0
"""After this long, half of the function's time, no further letters are taken; the next minute takes the rest."""


def take(world: World) -> int:
    """Settles the waiting dead letters, ten at a time. Returns how many it took.

    A letter that cannot be settled now stays in the queue and is tried again, until it is 14 days old.
    """
    deadline = world.clock.monotonic() + TAKEN_FOR_S
    taken = 0
    while world.clock.monotonic() < deadline:
        try:
            letters = world.queue.receive_dead()
        except Unavailable as unavailable:
            world.journal.warning("dead letters wait for the queue", reason=unavailable.reason)
            break
        if not letters:
            break
        failed = set(batch(world, [_delivered(world, letter) for letter in letters]))
        settled = [letter.receipt for letter in letters if letter.message_id not in failed]
        if settled:
            world.queue.delete_dead(settled)
        taken += len(letters)
    return taken


def _delivered(world: World, letter: Letter) -> Delivered:
    return Delivered(
        message_id=letter.message_id,
        receipt=letter.receipt,
        body=letter.body,
        received_at=world.clock.now(),
        sent_at=from_ms(letter.sent_ms),
        receive_count=letter.receive_count,
    )


def batch(world: World, messages: Sequence[Delivered]) -> list[str]:
    """Ends what can be ended and keeps a copy in the archive. Returns the ids of messages that must come back."""
    failed = []
    held: dict[str, float] = {}
    for message in messages:
        try:
            verdict = _settled(world, message)
            if verdict.acknowledged:
                world.queue.archive(message.body)
        except Unavailable as unavailable:
            world.journal.warning("a dead letter waits for the table or the queue", reason=unavailable.reason)
            verdict = AGAIN
        except Exception as unexpected:  # noqa: BLE001 - one letter must not hold up the others
            world.journal.error("a dead letter failed", error=type(unexpected).__name__, where=where(unexpected))
            verdict = AGAIN
        if not verdict.acknowledged:
            failed.append(message.message_id)
        if verdict.back_in_s is not None:
            held[message.receipt] = verdict.back_in_s
    if held:
        world.queue.postpone_dead(held)
    world.journal.count("DeadLetters", len(messages))
    return failed


def _settled(world: World, message: Delivered) -> Verdict:
    try:
        pointer = decode(message.body)
    except Unreadable as unreadable:
        if not ecs_tasks.heard(world, message.body):
            world.journal.error("a dead letter cannot be read", reason=str(unreadable))
        return DONE
    if pointer.subject is Subject.OPERATION:
        carry_on.dead(world, pointer)
        return DONE
    if pointer.subject is not Subject.RUN:
        return DONE  # its row stays in the index and asks again
    return _end(world, pointer, gate_rows.context_of(world, pointer))


def _end(world: World, pointer: Pointer, context: RunContext) -> Verdict:
    """Ends the run if the executor's gate would act on it; else does what the gate decides."""
    admitted = admission.admit(pointer, context, world.clock.now())
    if isinstance(admitted, admission.FailAttempt):
        failed = execute.fail_attempt(world, _lane(context), context, admitted)
        return failed if isinstance(failed, Verdict) else AGAIN
    end = _ending(admitted, context.run)
    if end is None:
        return _left_open(world, admitted, context)
    collection = context.job.collection if context.job else None
    lane, how = _lane(context), (end.state, end.reason, end.message)
    ended = settle.end_unacted(world, lane, pointer, context.run, *how, collection=collection)
    if isinstance(ended, Refused):
        return AGAIN
    effects.after(world, ended, context.job, context.schedule)
    world.journal.error(
        "undelivered", tenant=ended.tenant, job=ended.job_id, schedule=ended.schedule_id, run=ended.uuid
    )
    return DONE


def _ending(admitted: Admission, run: Run | None) -> End | None:
    """Returns how the run ends if it has no row, or if its lease is over and it has no wake row; None otherwise."""
    if run is not None and run.wake_at is not None and not isinstance(admitted, End):
        return None
    match admitted:
        case End():
            return admitted
        case admission.EndUnanswered(state):
            return End(state, Reason.DEADLINE)
        case admission.TakeOver() | admission.EndLost():
            return End(State.ERROR, Reason.UNDELIVERED)
        case admission.Claim() if run is None:
            return End(State.ERROR, Reason.UNDELIVERED)
    return None


def _left_open(world: World, admitted: Admission, context: RunContext) -> Verdict:
    match admitted:
        case admission.Later(at) | admission.Defer(at):
            return later(world, at)
        case admission.Effects():
            assert context.run is not None
            effects.after(world, context.run, context.job, context.schedule)
        case admission.SendPointer() | admission.Claim():
            assert context.run is not None
            settle.send_pointer(world, _lane(context), context.run)
    return DONE


def _lane(context: RunContext) -> Lane:
    return context.schedule.lane if context.schedule is not None else Lane.FAST
