"""Looks after the runs of workers: an executor checks a minute after each message whether a worker has taken the run.

If none has, the run gets its row: it is held, or it ends by the policy of its schedule. So its ledger, totals and hooks
are right even if no worker ever comes back.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base.errors import Unavailable
from sweephand.domain.application import LONG_LEASE, QUEUE, UNCLAIMED_AFTER
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.run import CLAIMABLE, Kind, Reason, Run, State
from sweephand.domain.runs import admission, run_action
from sweephand.domain.runs.admission import MAX_AGE, Claim, Drop, End, RunContext
from sweephand.domain.schedule import Lane
from sweephand.server.flow.runs import gate_rows, run_lists
from sweephand.server.flow.tenants import absence
from sweephand.server.flow.verdict import Delivered
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import gate, ledger
from sweephand.server.store.views.runs import Span

SLACK = timedelta(seconds=5)
"""The most by which the message that asks for a check comes late in normal operation."""
WAITING = CLAIMABLE | {State.HELD, State.SCHEDULED, State.TRIGGERED}
NOT_TAKEN = frozenset({State.MISSED, State.EXPIRED})


def look(world: World, message: Delivered, pointer: Pointer) -> None:
    """Checks whether a worker has taken a run. A run in progress is checked again after its lease. Raises Unavailable.

    message: the one that asks for the check.
    """
    pointer = replace(pointer, subject=Subject.RUN)
    run = ledger.read(world.table, pointer.tenant, pointer.owner, pointer.run)
    if run is None:
        _without_row(world, message, pointer)
        return
    if run.attempt > pointer.attempt or run.state not in WAITING:
        return
    busy_until = run.lease_until if run.state is State.TRIGGERED else run.not_before
    if busy_until is not None and busy_until > world.clock.now():
        if run.state is State.TRIGGERED and busy_until > world.clock.now() + LONG_LEASE:
            _note_busy(world, run, busy_until)
        again = replace(pointer, subject=Subject.UNCLAIMED)
        world.queue.send_one(Delivery(again, busy_until + UNCLAIMED_AFTER, Lane.FAST))
    else:
        _watch(world, pointer, gate_rows.context_of(world, pointer))


def _note_busy(world: World, run: Run, until: datetime) -> None:
    """Notes a long lease, whose worker need not send a heartbeat when its application is judged."""
    job = gate.job_of(world.table, run)
    action = None if job is None else run_action.action_of(job, run.kind)
    if action is not None and action.kind == QUEUE:
        absence.busy(world, run.tenant, action.params, until)


def _without_row(world: World, message: Delivered, pointer: Pointer) -> None:
    """Holds a run that a worker may still take. Lets an executor carry out any other decision of the gate."""
    context = gate_rows.context_of(world, pointer)
    admitted = admission.admit(pointer, context, world.clock.now())
    if isinstance(admitted, Drop):
        return
    waits = isinstance(admitted, Claim) and _is_for_workers(context, pointer.kind)
    if waits or (isinstance(admitted, End) and admitted.state in NOT_TAKEN):
        _watch(world, pointer, context)
    if waits:
        held = _held(message, pointer, context)
        ledger.claim_first(world.table, held, shards=world.shards, lane=Lane.FAST)
    else:
        world.queue.send_one(Delivery(pointer, world.clock.now(), Lane.FAST))


def _held(message: Delivered, pointer: Pointer, context: RunContext) -> Run:
    """Returns the row of a run that no worker has taken. Its wake comes when its policy will have ended it."""
    assert context.job is not None
    assert context.schedule is not None
    return replace(
        run_action.new_run(context.job, Kind.SCHEDULED, pointer.schedule, pointer.run, State.HELD, pointer.instant),
        reason=Reason.CONSUMER_AWAY,
        enqueued_at=message.sent_at,
        generation=pointer.generation,
        wake_at=admission.judged_again_at(pointer, context.schedule),
    )


def send_on(world: World, asked: Pointer) -> None:
    """Sends runs that no worker has taken to executors, who pass them on to where the job's actions are carried out.

    These are also manual runs, retries and hooks. May be repeated: a run that has begun does not wait any more. Raises
    Unavailable.
    """
    job, now = jobs.read_job(world.table, asked.tenant, asked.job), world.clock.now()
    if job is None:
        return
    owners = {job.id, *(each.id for each in jobs.read_schedules(world.table, job.tenant, job.id))}
    recent = run_lists.recent(world, job.tenant, Span(now - MAX_AGE, now), now, owners, reaching=False)
    waiting = [run for run in recent if isinstance(run, Run) and _waits_for_workers(run)]
    for run in waiting:
        if run.wake_at is not None:
            ledger.wake_elsewhere(world.table, run, shards=world.shards, lane=Lane.FAST)
    if world.queue.send(
        [Delivery(ledger.pointer_to(run), max(now, run.not_before or now), Lane.FAST) for run in waiting]
    ):
        raise Unavailable("some of the runs could not be sent on")


def _waits_for_workers(run: Run) -> bool:
    """Returns whether a run may wait in the queue of an application, not for a consumer or under a flow key."""
    return run.state in CLAIMABLE | {State.HELD} and run.consumer is None and not run.in_line


def _watch(world: World, pointer: Pointer, context: RunContext) -> None:
    if context.job is not None and _is_for_workers(context, pointer.kind):
        params = run_action.action_of(context.job, pointer.kind).params
        arrived_at = max(pointer.instant, world.clock.now() - UNCLAIMED_AFTER - SLACK)
        absence.begin(world, pointer, params, arrived_at)


def _is_for_workers(context: RunContext, kind: Kind) -> bool:
    return context.job is not None and run_action.action_of(context.job, kind).kind == QUEUE
