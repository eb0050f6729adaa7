"""The executor: takes each pointer through gate, claim, act, settle and effects. Workers use the same steps.

A message is acknowledged only if its run has ended with all effects, or if another message or a wake row replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

from sweephand.base.errors import Unavailable
from sweephand.base.lazy import lazy
from sweephand.domain.job import Job
from sweephand.domain.message import Pointer
from sweephand.domain.run import Kind, LostCall, Reason, Run, State, claim_mark
from sweephand.domain.runs import admission, run_action
from sweephand.domain.runs.admission import Admission
from sweephand.domain.runs.run_action import OpenAttempt
from sweephand.domain.schedule import Lane, follows_starts
from sweephand.server.flow.runs import effects, gate_rows, settle
from sweephand.server.flow.runs.conclusion import conclude
from sweephand.server.flow.runs.perform import act
from sweephand.server.flow.verdict import AGAIN, DONE, Delivered, RunMessage, Verdict, later
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo.conditional import Refused, Written
from sweephand.server.store.runs import gate, ledger

with lazy():
    from sweephand.domain import silence
    from sweephand.domain.runs import overlap as slot
    from sweephand.server.flow import events, rates
    from sweephand.server.flow.flow_keys import calls
    from sweephand.server.flow.runs import held_runs, overlap
    from sweephand.server.flow.series import holding, late_starts
    from sweephand.server.flow.tenants import silences
    from sweephand.server.store.jobs import clean_ups

CLAIM_MARGIN_S = 5
SHORT_WAIT = timedelta(seconds=2)
MOST_READS = 3


def carry_out(
    world: World, lane: Lane, request_id: str, message: Delivered, pointer: Pointer, rows: gate.Rows
) -> Verdict:
    """Takes one run from its message through gate, claim, action and settlement. rows: read for the whole batch."""
    if timedelta(0) < pointer.instant - world.clock.now() <= SHORT_WAIT:
        world.clock.sleep((pointer.instant - world.clock.now()).total_seconds())
    context = gate_rows.context_of(world, pointer, rows)
    owner = f"{request_id}/{message.receipt[-24:]}"
    return take(world, RunMessage(message, pointer, context, lane, owner, world.settings.lease_s), _act_and_settle)


Work = Callable[[World, OpenAttempt], Verdict]
"""Takes a claimed attempt that may begin. An executor acts and settles; a worker's claim ends here."""


def take(world: World, received: RunMessage, work: Work) -> Verdict:
    """Carries out the gate's decision on a run; hands a claimed attempt to `work`. received: with its queue's lane."""
    here, job = received.lane, received.context.job
    message = replace(received, lane=run_action.lane_now(job, received.pointer.kind, here))
    sent_at = message.first_sent_at
    if message.lane is Lane.FAST and job is not None and message.context.terms.silences:
        message = _with_silence(world, message, job)
    for _ in range(MOST_READS):
        admitted = admission.admit(message.pointer, message.context, world.clock.now(), sent_at)
        if _passed_on(world, here, message, admitted):
            return DONE
        with _one_of_few(world, message, admitted) as decision:
            verdict = _apply(world, message, decision, work)
        if isinstance(verdict, Verdict):
            return replace(verdict, job=job) if verdict.attempted or verdict.ended else verdict
        message = message.reread(verdict)
    return Verdict(acknowledged=False, back_in_s=world.chance.uniform(1, 5))


def _with_silence(world: World, message: RunMessage, job: Job) -> RunMessage:
    """Adds the target of the run if it hangs. Then the run belongs into the slow queue."""
    context, pointer = message.context, message.pointer
    silent = silences.hanging(world, run_action.action_of(job, pointer.kind), context.terms.silences)
    if silent is None:
        return message
    pointer = replace(pointer, sent_at=message.first_sent_at)
    return replace(message, lane=Lane.SLOW, pointer=pointer, context=replace(context, silent=silent))


def settle_unclaimed(world: World, message: RunMessage, admitted: Admission) -> Verdict:
    """Carries out a decision of the gate that claims nothing. Returns AGAIN if another write came first."""
    assert not isinstance(admitted, admission.Claim | admission.TakeOver)
    done = _apply(world, message, admitted, _act_and_settle)
    return done if isinstance(done, Verdict) else AGAIN


def _passed_on(world: World, here: Lane, message: RunMessage, admitted: Admission) -> bool:
    """Moves the message to the queue whose readers may do what the gate decides. Returns whether it did.

    Nothing is claimed before the move, so a second copy there meets the claim of the first. Raises Unavailable if the
    message is not sent. Then it comes back here.
    """
    target = _queue_for(here, message.lane, admitted)
    if target == here:
        return False
    world.queue.send_one(Delivery(message.pointer, world.clock.now(), target))
    world.journal.info("passed on to another queue", run=message.pointer.run)
    return True


def _queue_for(here: Lane, home: Lane, admitted: Admission) -> Lane:
    """Returns the queue where a decision is carried out.

    Claims are made where the run's action belongs, or by an executor that may wait longer than needed. Everything else
    is done by executors: a worker, or the API on its behalf, may not do everything that the end of a run requires.
    """
    match admitted:
        case admission.Claim() | admission.TakeOver():
            return here if here is Lane.SLOW and home is Lane.FAST else home
        case admission.Drop() | admission.Acknowledge() | admission.Later() | admission.Defer():
            return here
    return here.executors


def _apply(  # noqa: C901, PLR0911, PLR0912 - one line for each answer of the gate
    world: World, message: RunMessage, admitted: Admission, work: Work
) -> Verdict | Run | None:
    """Carries out the gate's decision. Returns a verdict or, if another write came first, the row as it is now."""
    pointer, context = message.pointer, message.context
    match admitted:
        case admission.Drop(why) | admission.Acknowledge(why):
            _publish_retry(world, message)
            world.journal.info("dropped" if context.run is None else "acknowledged", run=pointer.run, reason=why)
            return DONE
        case admission.Later(at):
            return later(world, at)
        case admission.Defer(at):
            world.queue.send_one(Delivery(pointer, at, message.lane))
            return DONE
        case admission.SendPointer():
            assert context.run is not None
            _publish_retry(world, message)
            settle.send_pointer(world, message.lane, context.run)
            return DONE
        case admission.Effects():
            assert context.run is not None
            effects.after(world, context.run, context.job, context.schedule)
            # A reported result ended the run outside any executor. Its wake shows that no executor has seen that yet.
            reported = context.run.result_digest is not None and context.run.wake_at is not None
            return replace(DONE, ended=context.run if reported else None)
        case admission.End(state, reason, why):
            return _end(world, message, state, reason, why)
        case admission.PutBack():
            assert context.schedule is not None
            return DONE if holding.put_back(world, context.schedule, pointer.instant) else AGAIN
        case admission.Hold(consumer):
            held = held_runs.hold(world, message, consumer)
            return DONE if isinstance(held, Written) else ledger.run_in(held)
        case admission.EndLost():
            return _end(world, message, State.UNKNOWN, Reason.EXECUTOR_LOST)
        case admission.FailAttempt():
            return _fail_attempt(world, message, admitted)
        case admission.EndUnanswered(state):
            return _end(world, message, state, Reason.DEADLINE)
        case admission.Claim():
            claim = partial(_claim_and_begin, world, message, admitted, work)
            limited = context.terms.pace.runs_per_minute is not None or (
                context.run is not None and context.run.root is not None
            )
            return _within_quotas(world, message, claim) if limited else claim()
        case admission.TakeOver():
            return _claim_and_begin(world, message, admitted, work)


def _one_of_few(world: World, message: RunMessage, admitted: Admission) -> AbstractContextManager[Admission]:
    """Defers a claim if enough calls to its silent target are under way in this process."""
    silent = message.context.silent
    if silent is None or not isinstance(admitted, admission.Claim | admission.TakeOver):
        return nullcontext(admitted)
    return silences.one_of_few(world, message.pointer, silent, admitted)


def _publish_retry(world: World, message: RunMessage) -> None:
    """Publishes once more that an attempt failed, for a message of that attempt that has come back."""
    run, job = message.context.run, message.context.job
    if run is not None and run.state is State.RETRY_WAIT and message.pointer.attempt < run.attempt and job is not None:
        events.run_retrying(world, run, job)


def _within_quotas(
    world: World, message: RunMessage, claim: Callable[[], Verdict | Run | None]
) -> Verdict | Run | None:
    """Claims and acts if the provider's quotas let the run begin; otherwise ends it as SKIPPED. A message waits."""
    pointer, run, pace = message.pointer, message.context.run, message.context.terms.pace
    why = rates.refusal(world, pointer, run, pace)
    if why is not None and run is not None and run.state is State.SCHEDULED:
        world.queue.send_one(Delivery(pointer, rates.next_minute(world), message.lane))
        return DONE
    if why is not None:
        return _end(world, message, State.SKIPPED, Reason.QUOTA, why)
    verdict = claim()
    if not isinstance(verdict, Verdict):
        rates.give_back(world, pointer, run, pace)
    return verdict


def _end(
    world: World, message: RunMessage, state: State, reason: Reason, why: str | None = None
) -> Verdict | Run | None:
    pointer, context = message.pointer, message.context
    collection = context.job.collection if context.job else None
    if reason is Reason.OWNER_GONE:
        why = clean_ups.message_of(world.table, pointer.tenant, pointer.job, pointer.owner)
    ended = settle.end_unacted(world, message.lane, pointer, context.run, state, reason, why, collection)
    if isinstance(ended, Refused):
        return ledger.run_in(ended)
    effects.after(world, ended, context.job, context.schedule)
    return replace(DONE, ended=ended)


def _fail_attempt(world: World, message: RunMessage, how: admission.FailAttempt) -> Verdict | Run | None:
    """Fails an attempt that no executor holds any more. The retry policy decides what follows."""
    assert message.context.run is not None
    attempt = message.attempt(message.context.run)
    failed = settle.fail_attempt(world, attempt, how)
    if isinstance(failed, Refused):
        return ledger.run_in(failed)
    if failed.finished:
        effects.after(world, failed, attempt.job, attempt.schedule)
        return replace(DONE, ended=failed)
    if attempt.run.flow_key is not None:
        calls.leave(world, attempt.run, own=False)
    return DONE


def _claim_and_begin(
    world: World, message: RunMessage, admitted: admission.Claim | admission.TakeOver, work: Work
) -> Verdict | Run | None:
    if _too_late_to_claim(world, message):
        return AGAIN
    attempt = message.attempt(_claimed_row(world, message, admitted))
    if isinstance(admitted, admission.Claim) and admitted.contested:
        return _take_turn_and_begin(world, message, attempt, work)
    return _begin(world, message, attempt, _claim(world, attempt, admitted), work)


def _take_turn_and_begin(world: World, message: RunMessage, attempt: OpenAttempt, work: Work) -> Verdict | Run | None:
    """Claims the attempt of a schedule whose runs exclude each other, and lets it begin."""
    attempt = replace(attempt, run=replace(attempt.run, slotted=True))
    turn = overlap.take_turn(world, attempt)
    match turn:
        case overlap.Turn.WAITS:
            world.journal.info("queued", run=message.pointer.run)
            return DONE
        case overlap.Turn.MOVED:
            return attempt.before
        case slot.Busy(active):
            return _end(world, message, State.SKIPPED, Reason.OVERLAP, f"the run {active.id} was active")
    return _begin(world, message, attempt, turn, work)


def _too_late_to_claim(world: World, message: RunMessage) -> bool:
    """Returns whether other executors can already see the message or soon will."""
    margin = timedelta(seconds=world.settings.visibility_s - CLAIM_MARGIN_S)
    return world.clock.now() > message.delivered.received_at + margin


def _begin(
    world: World, message: RunMessage, attempt: OpenAttempt, claimed: Written | Refused, work: Work
) -> Verdict | Run | None:
    """Hands a claimed attempt to `work`, unless its flow key stops it. attempt: with the row as the claim left it.

    A claim may be refused because this executor has already made it and lost the answer.
    """
    if isinstance(claimed, Refused):
        current = ledger.run_in(claimed)
        if current is None or current.lease_owner != attempt.run.lease_owner:
            return current
        attempt = replace(attempt, run=current)
    if attempt.run.flow_key is not None:
        with unclaimed_if_unavailable(world, attempt):
            stopped = calls.stopped(world, attempt)
        if isinstance(stopped, admission.End):
            ended = _end(world, message.reread(attempt.run), stopped.state, stopped.reason, stopped.message)
            return ended if isinstance(ended, Verdict) else AGAIN
        if stopped is not None:
            return stopped
    begins = attempt.run.attempt == 1 and (attempt.before is None or attempt.before.in_line)
    if begins and attempt.schedule is not None and follows_starts(attempt.schedule.packed):
        late_starts.follow(world, attempt.run, attempt.schedule)
    return work(world, attempt)


def _act_and_settle(world: World, attempt: OpenAttempt) -> Verdict:
    with unclaimed_if_unavailable(world, attempt):
        outcome = act(world, attempt)
    return conclude(world, attempt, outcome)


@contextmanager
def unclaimed_if_unavailable(world: World, attempt: OpenAttempt) -> Iterator[None]:
    """Takes back the claim if the block, which must not have begun the call, raises Unavailable.

    So an outage uses up no attempt and no lost executor, and the misfire policy still applies once it is over. If the
    table does not answer either, the claim is that of a lost executor.
    """
    try:
        yield
    except Unavailable:
        with suppress(Unavailable):
            if isinstance(ledger.unclaim(world.table, attempt.run, attempt.before), Written):
                rates.take_back(world, ledger.pointer_to(attempt.run), attempt.before, attempt.terms.pace)
        raise


def _claimed_row(world: World, message: RunMessage, admitted: admission.Claim | admission.TakeOver) -> Run:
    """Returns the row as the claim will leave it."""
    now, context, owner = world.clock.now(), message.context, message.owner
    waiting = context.run or _first_row(message)
    number = admitted.attempt if isinstance(admitted, admission.Claim) else None
    if number is not None and number > 1:
        enqueued_at = waiting.attempt_enqueued_at or message.delivered.sent_at
        waiting = replace(waiting, attempt_planned_at=waiting.not_before, attempt_enqueued_at=enqueued_at)
    return replace(
        waiting,
        state=State.TRIGGERED,
        reason=None,
        lease_owner=owner,
        lease_until=now + timedelta(seconds=message.lease_s),
        started_at=now,
        first_started_at=waiting.first_started_at or now,
        not_before=None,
        wake_at=None if waiting.state is State.SCHEDULED else waiting.wake_at,
        lost_calls=(*waiting.lost_calls, LostCall.of(waiting)) if number is None else waiting.lost_calls,
        flow_key=admission.flow_key_of(waiting.kind, context),
        claims=waiting.claims | {claim_mark(owner, waiting.attempt)} if message.lane.of_application else waiting.claims,
    )


def _first_row(message: RunMessage) -> Run:
    pointer, context = message.pointer, message.context
    assert context.job is not None
    run: Run = replace(
        run_action.new_run(
            context.job, Kind.SCHEDULED, pointer.schedule, pointer.run, State.TRIGGERED, pointer.instant
        ),
        enqueued_at=message.delivered.sent_at,
        generation=pointer.generation,
        notes=() if context.silent is None else (silence.note(context.silent),),
    )
    return run


def _claim(world: World, attempt: OpenAttempt, admitted: admission.Claim | admission.TakeOver) -> Written | Refused:
    if attempt.before is None:
        return ledger.claim_first(world.table, attempt.run, shards=world.shards, lane=attempt.lane)
    lease = ledger.Lease.of(attempt.run)
    if isinstance(admitted, admission.TakeOver):
        return ledger.take_over(world.table, attempt.before, lease)
    return ledger.claim_again(world.table, attempt.before, lease, admitted.attempt)
