"""The executor: takes each pointer through gate, claim, act, settle and effects. Workers use the same steps.

A message is acknowledged only if its run has ended with all effects, or if another message or a wake row replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from sweephand.domain.instants import epoch_s
from sweephand.domain.job import Job
from sweephand.domain.message import Pointer
from sweephand.domain.run import AWAITING_RESULT, UNREACHABLE, Kind, LostCall, Outcome, Reason, Run, State, claim_mark
from sweephand.domain.run import Verdict as OutcomeVerdict
from sweephand.domain.runs import admission, run_action
from sweephand.domain.runs.admission import Admission, RunContext
from sweephand.domain.schedule import Lane, Schedule, ScheduleState
from sweephand.errors import Unavailable
from sweephand.flow.concurrency import tolerated
from sweephand.flow.runs import effects, gate_rows, settle
from sweephand.flow.runs.perform import act
from sweephand.flow.verdict import AGAIN, DONE, Delivered, Verdict, later
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.messaging.run_queue import Delivery
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Refused, Written
from sweephand.store.dynamo.expressions import assign
from sweephand.store.dynamo.table import ScheduleItem
from sweephand.store.jobs import jobs
from sweephand.store.runs import gate, ledger

with lazy():
    from sweephand.domain import silence
    from sweephand.domain.occurrences import series
    from sweephand.domain.runs import overlap as slot
    from sweephand.flow import events, rates
    from sweephand.flow.flow_keys import calls
    from sweephand.flow.lifecycle import unreachable
    from sweephand.flow.runs import held_runs, overlap, replay, silences
    from sweephand.flow.series import holding, ranges
    from sweephand.schedules import timing as timings
    from sweephand.store.jobs import clean_ups

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
    return take(world, lane, owner, message, pointer, context, _act_and_settle)


Work = Callable[[World, Lane, Run, RunContext], Verdict]
"""Takes a claimed attempt that may begin. An executor acts and settles; a worker's claim ends here."""


def take(
    world: World, here: Lane, owner: str, message: Delivered, pointer: Pointer, context: RunContext, work: Work
) -> Verdict:
    """Carries out the gate's decision on a run; hands a claimed attempt to `work`. here: the message's queue."""
    home = run_action.lane_now(context.job, pointer.kind, here)
    sent_at = first_sent_at(message, pointer, home)
    if home is Lane.FAST and context.job is not None and context.terms.silences:
        context = _with_silence(world, pointer, context)
        if context.silent is not None:
            home, pointer = Lane.SLOW, replace(pointer, sent_at=sent_at)
    for _ in range(MOST_READS):
        admitted = admission.admit(pointer, context, world.clock.now(), sent_at)
        if _passed_on(world, here, home, pointer, admitted):
            return DONE
        with _one_of_few(world, pointer, context, admitted) as decision:
            verdict = _attempt(world, home, owner, message, pointer, context, decision, work)
        if isinstance(verdict, Verdict):
            return replace(verdict, job=context.job) if verdict.attempted or verdict.ended else verdict
        context = replace(context, run=verdict)
    return Verdict(acknowledged=False, back_in_s=world.chance.uniform(1, 5))


def _with_silence(world: World, pointer: Pointer, context: RunContext) -> RunContext:
    """Adds the target of the run if it hangs. Then the run belongs into the slow queue."""
    assert context.job is not None
    action = run_action.action_of(context.job, pointer.kind)
    return replace(context, silent=silences.hanging(world, action, context.terms.silences))


def first_sent_at(message: Delivered, pointer: Pointer, home: Lane) -> datetime | None:
    """Returns when the queue accepted the first message of this pointer; None for a worker's run.

    The lateness of a worker's message counts from the planned instant. If it counted from when the message was sent, an
    executor would consider a message that was just passed on to be fresh, and would send it back.
    """
    return None if home.of_application else pointer.sent_at or message.sent_at


def settle_unclaimed(
    world: World, lane: Lane, message: Delivered, pointer: Pointer, context: RunContext, admitted: Admission
) -> Verdict:
    """Carries out a decision of the gate that claims nothing. Returns AGAIN if another write came first."""
    assert not isinstance(admitted, admission.Claim | admission.TakeOver)
    done = _attempt(world, lane, "", message, pointer, context, admitted, _act_and_settle)
    return done if isinstance(done, Verdict) else AGAIN


def _passed_on(world: World, here: Lane, home: Lane, pointer: Pointer, admitted: Admission) -> bool:
    """Moves the message to the queue whose readers may do what the gate decides. Returns whether it did.

    Nothing is claimed before the move, so a second copy there meets the claim of the first. Raises Unavailable if the
    message is not sent. Then it comes back here.
    """
    there = _place(here, home, admitted)
    if there == here:
        return False
    world.queue.send_one(Delivery(pointer, world.clock.now(), there))
    world.journal.info("passed on to another queue", run=pointer.run)
    return True


def _place(here: Lane, home: Lane, admitted: Admission) -> Lane:
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


def _attempt(  # noqa: C901, PLR0911, PLR0912 - one line for each answer of the gate
    world: World,
    lane: Lane,
    owner: str,
    message: Delivered,
    pointer: Pointer,
    context: RunContext,
    admitted: Admission,
    work: Work,
) -> Verdict | Run | None:
    """Carries out the gate's decision. Returns a verdict or, if another write came first, the row as it is now."""
    match admitted:
        case admission.Drop(why) | admission.Acknowledge(why):
            _publish_retry(world, pointer, context)
            world.journal.info("dropped" if context.run is None else "acknowledged", run=pointer.run, reason=why)
            return DONE
        case admission.Later(at):
            return later(world, at)
        case admission.Defer(at):
            world.queue.send_one(Delivery(pointer, at, lane))
            return DONE
        case admission.SendPointer():
            assert context.run is not None
            _publish_retry(world, pointer, context)
            settle.send_pointer(world, lane, context.run)
            return DONE
        case admission.Effects():
            assert context.run is not None
            effects.after(world, context.run, context.job, context.schedule)
            # A reported result ended the run outside any executor. Its wake shows that no executor has seen that yet.
            reported = context.run.result_digest is not None and context.run.wake_at is not None
            return replace(DONE, ended=context.run if reported else None)
        case admission.End(state, reason, why):
            return _end(world, lane, pointer, context, state, reason, why)
        case admission.PutBack():
            assert context.schedule is not None
            return DONE if holding.put_back(world, context.schedule, pointer.instant) else AGAIN
        case admission.Hold(consumer):
            held = held_runs.hold(world, lane, message, pointer, context, consumer)
            return DONE if isinstance(held, Written) else _read(held)
        case admission.EndLost():
            return _end(world, lane, pointer, context, State.UNKNOWN, Reason.EXECUTOR_LOST)
        case admission.FailAttempt():
            return fail_attempt(world, lane, context, admitted)
        case admission.EndUnanswered(state):
            return _end(world, lane, pointer, context, state, Reason.DEADLINE)
        case admission.Claim(attempt, contested):
            way = _take_turn_and_act if contested else _claim_and_act
            claim = partial(way, world, lane, owner, message, pointer, context, work, attempt=attempt)
            limited = context.terms.pace.runs_per_minute is not None or (
                context.run is not None and context.run.root is not None
            )
            return _within_quotas(world, lane, pointer, context, claim) if limited else claim()
        case admission.TakeOver():
            return _claim_and_act(world, lane, owner, message, pointer, context, work, attempt=None)


def _one_of_few(
    world: World, pointer: Pointer, context: RunContext, admitted: Admission
) -> AbstractContextManager[Admission]:
    """Defers a claim if enough calls to its silent target are under way in this process."""
    if context.silent is None or not isinstance(admitted, admission.Claim | admission.TakeOver):
        return nullcontext(admitted)
    return silences.one_of_few(world, pointer, context.silent, admitted)


def _publish_retry(world: World, pointer: Pointer, context: RunContext) -> None:
    """Publishes once more that an attempt failed, for a message of that attempt that has come back."""
    run = context.run
    if run is not None and run.state is State.RETRY_WAIT and pointer.attempt < run.attempt and context.job is not None:
        events.run_retrying(world, run, context.job)


def _within_quotas(
    world: World, lane: Lane, pointer: Pointer, context: RunContext, claim: Callable[[], Verdict | Run | None]
) -> Verdict | Run | None:
    """Claims and acts if the provider's quotas let the run begin; otherwise ends the run as SKIPPED."""
    why = rates.refusal(world, pointer, context.run, context.terms.pace)
    if why is not None:
        return _end(world, lane, pointer, context, State.SKIPPED, Reason.QUOTA, why)
    verdict = claim()
    if not isinstance(verdict, Verdict):
        rates.give_back(world, pointer, context.run, context.terms.pace)
    return verdict


def _end(
    world: World,
    lane: Lane,
    pointer: Pointer,
    context: RunContext,
    state: State,
    reason: Reason,
    message: str | None = None,
) -> Verdict | Run | None:
    collection = context.job.collection if context.job else None
    if reason is Reason.OWNER_GONE:
        message = clean_ups.message_of(world.table, pointer.tenant, pointer.job, pointer.owner)
    ended = settle.end_unacted(world, lane, pointer, context.run, state, reason, message, collection)
    if isinstance(ended, Refused):
        return _read(ended)
    effects.after(world, ended, context.job, context.schedule)
    return replace(DONE, ended=ended)


def fail_attempt(world: World, lane: Lane, context: RunContext, how: admission.FailAttempt) -> Verdict | Run | None:
    """Fails an attempt that no executor holds any more. The retry policy decides what follows."""
    assert context.run is not None
    assert context.job is not None
    failed = settle.fail_attempt(world, lane, context.run, how, context.job, context.schedule)
    if isinstance(failed, Refused):
        return _read(failed)
    if failed.finished:
        effects.after(world, failed, context.job, context.schedule)
        return replace(DONE, ended=failed)
    if context.run.flow_key is not None:
        calls.leave(world, context.run, own=False)
    return DONE


def _claim_and_act(
    world: World,
    lane: Lane,
    owner: str,
    message: Delivered,
    pointer: Pointer,
    context: RunContext,
    work: Work,
    *,
    attempt: int | None,
) -> Verdict | Run | None:
    if _too_late_to_claim(world, message):
        return AGAIN
    mine = _mine(world, lane, owner, message, pointer, context, attempt=attempt)
    return _begin(world, lane, mine, context, _claim(world, lane, mine, context.run, attempt=attempt), work)


def _take_turn_and_act(
    world: World,
    lane: Lane,
    owner: str,
    message: Delivered,
    pointer: Pointer,
    context: RunContext,
    work: Work,
    *,
    attempt: int,
) -> Verdict | Run | None:
    """Claims and acts as _claim_and_act does, for a schedule whose runs exclude each other."""
    if _too_late_to_claim(world, message):
        return AGAIN
    assert context.job is not None
    mine = replace(_mine(world, lane, owner, message, pointer, context, attempt=attempt), slotted=True)
    turn = overlap.take_turn(world, lane, mine, context.run, context.job, context.schedule)
    match turn:
        case overlap.Turn.WAITS:
            world.journal.info("queued", run=pointer.run)
            return DONE
        case overlap.Turn.MOVED:
            return context.run
        case slot.Busy(active):
            why = f"the run {active.id} was active"
            return _end(world, lane, pointer, context, State.SKIPPED, Reason.OVERLAP, why)
    return _begin(world, lane, mine, context, turn, work)


def _too_late_to_claim(world: World, message: Delivered) -> bool:
    """Returns whether other executors can already see the message or soon will."""
    margin = timedelta(seconds=world.settings.visibility_s - CLAIM_MARGIN_S)
    return world.clock.now() > message.received_at + margin


def _begin(
    world: World, lane: Lane, mine: Run, context: RunContext, claimed: Written | Refused, work: Work
) -> Verdict | Run | None:
    """Hands a claimed attempt to `work`, unless its flow key stops it. mine: as the claim left the row.

    A claim may be refused because this executor has already made it and lost the answer.
    """
    assert context.job is not None
    if isinstance(claimed, Refused):
        there = _read(claimed)
        if there is None or there.lease_owner != mine.lease_owner:
            return there
        mine = there
    if mine.flow_key is not None:
        with unclaimed_if_unavailable(world, mine, context):
            stopped = calls.stopped(world, lane, mine, context)
        if isinstance(stopped, admission.End):
            ended = _end(
                world,
                lane,
                ledger.pointer_to(mine),
                replace(context, run=mine),
                stopped.state,
                stopped.reason,
                stopped.message,
            )
            return ended if isinstance(ended, Verdict) else AGAIN
        if stopped is not None:
            return stopped
    begins = mine.attempt == 1 and (context.run is None or context.run.in_line)
    if begins and context.schedule is not None and _started_late(mine, context.schedule):
        _follow_start(world, mine, context.schedule)
    return work(world, lane, mine, context)


def _act_and_settle(world: World, lane: Lane, mine: Run, context: RunContext) -> Verdict:
    assert context.job is not None
    with unclaimed_if_unavailable(world, mine, context):
        outcome = act(world, mine, context.job, context.schedule)
    return conclude(world, lane, mine, outcome, context)


@contextmanager
def unclaimed_if_unavailable(world: World, mine: Run, context: RunContext) -> Iterator[None]:
    """Takes back the claim if the block, which must not have begun the call, raises Unavailable.

    So an outage uses up no attempt and no lost executor, and the misfire policy still applies once it is over. If the
    table does not answer either, the claim is that of a lost executor. context: as it was before the claim.
    """
    try:
        yield
    except Unavailable:
        with suppress(Unavailable):
            if isinstance(ledger.unclaim(world.table, mine, context.run), Written):
                rates.take_back(world, ledger.pointer_to(mine), context.run, context.terms.pace)
        raise


def conclude(
    world: World, lane: Lane, mine: Run, outcome: Outcome, context: RunContext, also: Sequence[Op] = ()
) -> Verdict:
    """Settles the outcome of an attempt that this executor holds, with its effects, its flow key and its schedule.

    also: operations for the transaction that writes a success.
    """
    assert context.job is not None
    turned = None
    if mine.flow_key is not None:
        due_at = partial(settle.result_due_at, world, mine, outcome, context.job)
        turned = calls.answered(world, mine, outcome, context.job, due_at)
    _note_answer(world, lane, mine, outcome, context)
    schedule = _reach_noted(world, mine, outcome, context.job, context.schedule)
    verdict = _settle(world, lane, mine, outcome, context.job, schedule, also)
    if turned is not None:
        calls.publish_circuit(world, turned, mine, context.job)
    return verdict


def _note_answer(world: World, lane: Lane, mine: Run, outcome: Outcome, context: RunContext) -> None:
    """Notes whether the target of an attempt, or the issuer of its token, answers, if that is new."""
    assert context.job is not None
    action = run_action.action_of(context.job, mine.kind)
    answered = outcome.http_status is not None or outcome.reason is Reason.TARGET_ERROR
    if outcome.apart and not outcome.issuer:
        return
    if answered:
        targets = () if outcome.apart else run_action.targets_of(action)
        issuers = run_action.issuers_of(action) if outcome.issuer else ()
        world.memory.answered(mine.tenant, (*targets, *issuers), world.clock.now())
    if context.terms.silences or not (answered or outcome.verdict is OutcomeVerdict.SUCCEEDED):
        silences.follow(world, mine, action, outcome, lane, context.terms.silences)


def _reach_noted(world: World, mine: Run, outcome: Outcome, job: Job, schedule: Schedule | None) -> Schedule | None:
    """Returns the schedule, updated with whether the attempt reached its target."""
    if schedule is None or (outcome.reason not in UNREACHABLE and schedule.unreachable is None):
        return schedule
    return unreachable.follow(world, mine, outcome, job, schedule)


def _settle(
    world: World, lane: Lane, mine: Run, outcome: Outcome, job: Job, schedule: Schedule | None, also: Sequence[Op]
) -> Verdict:
    settled = settle.settle(world, lane, mine, outcome, job, schedule, also)
    if settled is None:
        world.journal.warning("the lease was lost before the outcome was written", run=mine.id)
        return AGAIN
    if mine.flow_key is not None and settled.state not in AWAITING_RESULT:
        calls.leave(world, mine, own=True)
    if settled.finished:
        effects.after(world, settled, job, schedule)
    elif settled.state is State.RETRY_WAIT:
        effects.of_attempt(world, settled, job, schedule)
    if settled.consumer is not None:
        replay.pass_on(world, settled)
    _log(world, settled)
    return replace(DONE, attempted=mine, ended=settled)


def _mine(
    world: World,
    lane: Lane,
    owner: str,
    message: Delivered,
    pointer: Pointer,
    context: RunContext,
    *,
    attempt: int | None,
) -> Run:
    """Returns the row as the claim will leave it."""
    now = world.clock.now()
    lease_until = now + timedelta(seconds=world.settings.lease_s)
    waiting = context.run
    if waiting is None:
        assert context.job is not None
        waiting = replace(
            run_action.new_run(
                context.job, Kind.SCHEDULED, pointer.schedule, pointer.run, State.TRIGGERED, pointer.instant
            ),
            enqueued_at=message.sent_at,
            generation=pointer.generation,
            notes=() if context.silent is None else (silence.note(context.silent),),
        )
    if attempt is not None and attempt > 1:
        enqueued_at = waiting.attempt_enqueued_at or message.sent_at
        waiting = replace(waiting, attempt_planned_at=waiting.not_before, attempt_enqueued_at=enqueued_at)
    return replace(
        waiting,
        state=State.TRIGGERED,
        reason=None,
        lease_owner=owner,
        lease_until=lease_until,
        started_at=now,
        first_started_at=waiting.first_started_at or now,
        not_before=None,
        lost_calls=(*waiting.lost_calls, LostCall.of(waiting)) if attempt is None else waiting.lost_calls,
        flow_key=admission.flow_key_of(waiting.kind, context),
        claims=waiting.claims | {claim_mark(owner, waiting.attempt)} if lane.of_application else waiting.claims,
    )


def _claim(world: World, lane: Lane, mine: Run, there: Run | None, *, attempt: int | None) -> Written | Refused:
    if there is None:
        return ledger.claim_first(world.table, mine, shards=world.shards, lane=lane)
    if attempt is None:
        return ledger.take_over(world.table, there, ledger.Lease.of(mine))
    return ledger.claim_again(world.table, there, ledger.Lease.of(mine), attempt)


def _read(refused: Refused) -> Run | None:
    return ledger.run_in(refused)


def _log(world: World, run: Run) -> None:
    """Logs one line per run."""
    world.journal.info(
        "run",
        tenant=run.tenant,
        job=run.job_id,
        schedule=run.schedule_id,
        run=run.uuid,
        state=run.state,
        reason=run.reason,
        status=run.http_status,
        attempt=run.attempt,
        lateness_ms=run.lateness_ms,
    )


ALIGN = '"actual_start"'
"""The text in a packed timing whose interval follows actual starts. A timing without it need not be loaded."""

LATE = timedelta(seconds=60)

CLOCKS = timedelta(seconds=5)
"""The most by which the clocks of two functions may differ."""
BY_LATE_START = "the run before it started late, and the interval is counted from that start"
REPLACED = State.MISSED, Reason.SERVICE_OUTAGE, BY_LATE_START


def _started_late(run: Run, schedule: Schedule) -> bool:
    """Returns whether the interval follows actual starts and the run started more than a minute after its instant."""
    return ALIGN in schedule.packed and run.started_at is not None and run.started_at - run.planned_at > LATE


def _follow_start(world: World, run: Run, schedule: Schedule) -> None:
    """Moves the next occurrence to one interval after this start [generation and next_run_at as read].

    A range in the ledger records the planned occurrences that this replaces. Occurrences that a tick may already have
    sent stay, because their messages are on their way. If a tick is faster or the table does not answer, the series
    keeps its old rhythm.
    """
    assert run.started_at is not None
    old, newest = schedule.next_run_at, schedule.generation
    if schedule.state is not ScheduleState.ACTIVE or schedule.held_from or run.generation != newest or old is None:
        return
    timing = timings.load(schedule.packed)
    upcoming = series.following(timing, run.planned_at, run.started_at)
    sent_to = world.clock.now() + timedelta(seconds=world.settings.look_ahead_s) + CLOCKS
    if upcoming is None or upcoming <= old or old <= sent_to:
        return
    key = keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)
    step = timedelta(seconds=timing.actual_start_interval_s or 0)
    count = -((old - upcoming) // step)
    owner, span = (schedule.tenant, schedule.job_id, schedule.id), (old, old + (count - 1) * step, count)
    line = ranges.line(owner, REPLACED, span, schedule.generation, world.clock.now(), schedule.packed)
    moved = [
        assign(ScheduleItem.next_run_at, epoch_s(upcoming)),
        assign(ScheduleItem.missed_from, epoch_s(span[0])),
        assign(ScheduleItem.missed_to, epoch_s(span[1])),
    ]
    with tolerated(world, "the series keeps its old rhythm", schedule=schedule.id):
        world.queue.send_one(ranges.word_of(line, world.clock.now(), schedule.lane))
        ops = [world.table.update_op("schedule", *key, moved, jobs.as_read(schedule))]
        world.table.transact([*ops, *ranges.missed_ops(world, [line], schedule.collection)])
