"""Settles every outcome: writes the row and its counts, then sends the next attempt's message.

A crash may come between any two of these steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sweephand.base.lazy import lazy
from sweephand.domain.instants import up_to_second
from sweephand.domain.job import Job
from sweephand.domain.message import Pointer
from sweephand.domain.run import FAILED, WAITS, Kind, LostCall, Outcome, Reason, Run, State, Verdict
from sweephand.domain.runs import retry, settlement
from sweephand.domain.runs.run_action import OpenAttempt
from sweephand.domain.schedule import Lane
from sweephand.server.flow.concurrency import tolerated
from sweephand.server.flow.retention import run_expiry
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo.conditional import Op, Refused, Written
from sweephand.server.store.dynamo.expressions import Condition
from sweephand.server.store.dynamo.table import AttemptItem
from sweephand.server.store.runs import ledger

if TYPE_CHECKING:
    from sweephand.domain.runs.admission import FailAttempt

with lazy():
    from sweephand.server.flow import events
    from sweephand.server.store.runs import attempts as attempt_rows

ANSWER_BYTES = 16_384
BEGINNING = "beginning"
"""The value of `keepAnswer` with which a success needs no other row for its answer."""
LONGEST_IN_QUEUES = timedelta(days=15)
"""The longest delay that messages add between the attempts of a run: no queue keeps a message for longer."""


def settle(world: World, attempt: OpenAttempt, outcome: Outcome, also: Sequence[Op] = ()) -> Run | None:
    """Writes the outcome of an attempt. Returns the row as it is now; None if this executor had lost its lease.

    also: operations for the transaction that writes a success. For a retry within 15 minutes, the row comes first, then
    its message, then (by the caller) the acknowledgement.
    """
    now, run, job = world.clock.now(), attempt.run, attempt.job
    waits_s = _callback_timeout_s(world, job) if outcome.verdict in WAITS else 0
    settled = settlement.settle(run, outcome, attempt.action, now, world.chance.uniform, waits_s)
    after = settled.run
    if after.finished:
        after = replace(after, expires_at=run_expiry(world, job.tenant, job.collection, now))
    keep = _keep_answer(attempt)
    attempts = _attempts(run, after, outcome, keep, now, lambda: attempt_expiry(world, attempt, now))
    if keep == BEGINNING and not attempts:
        after = replace(after, answer=settlement.excerpt(outcome.answer, settlement.BEGINNING_BYTES))
    result = _write(world, attempt, after, _counts(attempt, settled), attempts, also)
    if isinstance(result, Refused):
        current = ledger.run_in(result)
        if current is None or not _is_mine(current, after):
            return _ended_elsewhere(world, current, after)
        after = current
    if after.state is State.RETRY_WAIT:
        events.run_retrying(world, after, job)
    if settled.message_at is not None:
        send = send_pointer if after.state is State.RETRY_WAIT else _send_deadline
        send(world, attempt.lane, after)
    return after


def fail_attempt(world: World, attempt: OpenAttempt, how: FailAttempt) -> Run | Refused:
    """Fails an attempt that no executor holds [as read]: its executor was lost, or its result did not come.

    The retry policy decides what follows, as after any failure.
    """
    now, run, job, lost = world.clock.now(), attempt.run, attempt.job, how.reason is Reason.EXECUTOR_LOST
    message = "the executor stopped before reporting a result" if lost else "no result came in time"
    outcome = Outcome(
        Verdict.FAILED, how.reason, run.http_status, run.answer, message, retryable=True, ends_as=how.state
    )
    settled = settlement.settle(run, outcome, attempt.action, now, world.chance.uniform, 0)
    after = replace(settled.run, deadline_at=None)
    if after.wake_at is not None and settled.message_at is not None:
        # The wake was set for the deadline. From now on it replaces a lost message of the next attempt.
        after = replace(after, wake_at=up_to_second(settled.message_at) + settlement.FALLBACK)
    counts = _counts(attempt, settled)
    attempts: list[AttemptItem] = []
    if lost:
        after = replace(after, lost_calls=(*run.lost_calls, LostCall.of(run)))
    else:
        keep = _keep_answer(attempt)
        attempts = _attempts(run, after, outcome, keep, now, lambda: attempt_expiry(world, attempt, now))
    condition = ledger.lease_as_read(run) if run.state is State.TRIGGERED else ledger.state_as_read(run)
    if after.finished:
        after = replace(after, expires_at=run_expiry(world, job.tenant, job.collection, now))
        result = ledger.finish(world.table, after, condition, counts, attempts)
    else:
        result = ledger.wait(
            world.table,
            after,
            shards=world.shards,
            lane=attempt.lane,
            condition=condition,
            counts=counts,
            attempts=attempts,
            lost=after.lost_calls[-1] if lost else None,
        )
    if isinstance(result, Refused):
        current = ledger.run_in(result)
        if current is None or not _is_mine(current, after):
            return result
    if after.state is State.RETRY_WAIT:
        events.run_retrying(world, after, job)
    if settled.message_at is not None:
        send_pointer(world, attempt.lane, after)
    return after


def _keep_answer(attempt: OpenAttempt) -> str:
    return str(attempt.policies.get("keepAnswer", "failures"))


def _counts(attempt: OpenAttempt, settled: settlement.Settlement) -> dict[str, int]:
    """Returns the increments of the statistics; manual runs count if the policy `totals` says so."""
    run = settled.run
    if run.kind is Kind.MANUAL and attempt.policies.get("totals") == "all":
        return settlement.manual_counts(run)
    return settled.counts


def _write(
    world: World,
    attempt: OpenAttempt,
    after: Run,
    counts: dict[str, int],
    attempts: list[AttemptItem],
    also: Sequence[Op],
) -> Written | Refused:
    assert attempt.run.lease_owner is not None
    if after.state is State.SUCCESS and not (attempts or counts or also):
        return ledger.succeed(world.table, after)
    mine = ledger.own_lease(attempt.run.lease_owner)
    if after.finished:
        condition: Condition = ledger.NOT_TERMINAL if after.state is State.SUCCESS else mine
        return ledger.finish(world.table, after, condition, counts, attempts, also)
    return ledger.wait(
        world.table, after, shards=world.shards, lane=attempt.lane, condition=mine, counts=counts, attempts=attempts
    )


def _is_mine(current: Run, wanted: Run) -> bool:
    """Returns whether this executor already made the refused write: the row is as wanted, and the answer was lost."""
    return (current.state, current.attempt, current.started_at, current.finished_at) == (
        wanted.state,
        wanted.attempt,
        wanted.started_at,
        wanted.finished_at,
    )


def _ended_elsewhere(world: World, current: Run | None, late: Run) -> Run | None:
    """Returns the run if a callback or a cancel ended it first, and notes the outcome of the call; None otherwise.

    The caller then carries out the effects.
    """
    if current is None or not current.finished:
        return None
    ledger.note(world.table, current, f"the call ended later: {late.state} {late.http_status or ''}".rstrip())
    # The effects stop a task that this call has just started.
    return replace(current, task=late.task or current.task)


def end_unacted(
    world: World,
    lane: Lane,
    pointer: Pointer,
    run: Run | None,
    state: State,
    reason: Reason,
    message: str | None = None,
    collection: str | None = None,
    *,
    counted: bool = True,
) -> Run | Refused:
    """Ends a run without an attempt, in a new row if it has none. The same transaction counts it.

    message: None keeps that of the row. collection: the job's; None if the job was deleted. counted: False for a new
    row of a deleted schedule, whose statistics are deleted as well.
    """
    now = world.clock.now()
    expires_at = run_expiry(world, pointer.tenant, collection, now)
    if run is None:
        ended = Run(
            tenant=pointer.tenant,
            job_id=pointer.job,
            schedule_id=pointer.schedule,
            uuid=pointer.run,
            kind=pointer.kind,
            state=state,
            reason=reason,
            planned_at=pointer.instant,
            finished_at=now,
            generation=pointer.generation,
            message=message,
            expires_at=expires_at,
        )
        result = ledger.finish_without_attempt(
            world.table,
            ended,
            shards=world.shards,
            lane=lane,
            counts=counts_of(ended) if counted else None,
        )
    else:
        ended = replace(
            run,
            state=state,
            reason=reason,
            message=message or run.message,
            finished_at=run.ended_at(now),
            lease_owner=None,
            lease_until=None,
            expires_at=expires_at,
        )
        condition = ledger.lease_as_read(run) if run.state is State.TRIGGERED else ledger.state_as_read(run)
        result = ledger.finish(world.table, ended, condition, counts_of(ended), ())
    return result if isinstance(result, Refused) else ended


def send_pointer(world: World, lane: Lane, run: Run) -> None:
    """Sends the message of a run that waits for its next attempt. Raises Unavailable if it was not sent."""
    world.queue.send_one(Delivery(ledger.pointer_to(run), run.not_before or world.clock.now(), lane))


def _send_deadline(world: World, lane: Lane, run: Run) -> None:
    """Sends a deadline that may pass before a sweep sees it. If that fails, the run's wake keeps it."""
    assert run.deadline_at is not None
    with tolerated(world, "the run's deadline will be kept by its wake", run=run.uuid):
        world.queue.send_one(Delivery(ledger.pointer_to(run), run.deadline_at, lane))


def _callback_timeout_s(world: World, job: Job) -> int:
    """Returns the callback timeout for actions that set none."""
    return world.terms.of(job.tenant, job.collection).callback_timeout_s or world.settings.callback_timeout_s


def result_due_at(world: World, attempt: OpenAttempt, outcome: Outcome) -> datetime:
    """Returns the instant until which a run with this outcome waits for its result."""
    waits_s = _callback_timeout_s(world, attempt.job)
    now = world.clock.now()
    settled = settlement.settle(attempt.run, outcome, attempt.action, now, world.chance.uniform, waits_s)
    return settled.run.deadline_at or now


def counts_of(run: Run) -> dict[str, int]:
    if run.state is State.SUCCESS:
        return {}
    if run.state in FAILED:
        return settlement.counted(run, "failed", "failed_attempts")
    return settlement.counted(run, "missed_sent" if run.state in (State.MISSED, State.EXPIRED) else "skipped")


def attempt_expiry(world: World, attempt: OpenAttempt, now: datetime) -> datetime:
    """Returns when the row of an attempt of an open run expires, based on the latest time at which the run can end."""
    job, number = attempt.job, attempt.run.attempt
    policy = retry.load(attempt.action.retry)
    result_s = settlement.waits_s(attempt.action) or _callback_timeout_s(world, job)
    open_s = retry.longest_s(policy, number) + (policy.max_attempts - number + 1) * result_s
    return run_expiry(world, job.tenant, job.collection, now + timedelta(seconds=open_s) + LONGEST_IN_QUEUES)


def _attempts(
    run: Run, after: Run, outcome: Outcome, keep: str, now: datetime, expiry: Callable[[], datetime]
) -> list[AttemptItem]:
    """Returns a row for the attempt if it was not the only one, or if its answer is too long for the run's row.

    expiry: when the row expires if the run continues.
    """
    failed = after.state is not State.SUCCESS
    answer = outcome.answer if keep in {"all", BEGINNING} or (keep == "failures" and failed) else None
    longer = answer is not None and answer != settlement.excerpt(answer) and keep != BEGINNING
    if not longer and after.state is not State.RETRY_WAIT and not (failed and run.attempt > 1):
        return []
    made = replace(
        run,
        finished_at=run.ended_at(now),
        http_status=outcome.http_status,
        message=outcome.message,
        answer_headers=outcome.answer_headers,
        expires_at=after.expires_at if after.finished else expiry(),
    )
    cut = settlement.excerpt(answer, settlement.BEGINNING_BYTES if keep == BEGINNING else ANSWER_BYTES)
    return [attempt_rows.attempt_item(made, reason=outcome.reason, answer=cut, state=outcome.ends_as)]
