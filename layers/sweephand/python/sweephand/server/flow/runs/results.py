"""Ends runs from outside: by a result that the target reports, or by a user's cancel. The first valid end wins.

The writer holds no lease, so the write sets a wake, and an executor carries out the effects. A reported message may
repeat a secret, and the API may not decrypt secrets. So the message stays hidden in the run's row until an executor has
redacted it.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from sweephand.base.errors import Conflict, NotFound
from sweephand.base.lazy import lazy
from sweephand.domain import application
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.job import HOOKS, Job
from sweephand.domain.occurrences.index_row import WAKE
from sweephand.domain.run import AWAITING_RESULT, REACTIONS, Reason, Run, State, success_reason
from sweephand.domain.runs.run_action import action_of, lane_of, policies_of
from sweephand.domain.schedule import Schedule
from sweephand.server.flow.concurrency import Moved, tolerated, until_unmoved
from sweephand.server.flow.retention import run_expiry
from sweephand.server.flow.runs import settle
from sweephand.server.flow.series import ranges
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo.conditional import Op, Refused
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import ledger

if TYPE_CHECKING:
    from sweephand.server.flow.runs.follow_ups import FollowUp

with lazy():
    from sweephand.server.actions import redaction
    from sweephand.server.actions.auth import authenticate
    from sweephand.server.flow.runs import follow_ups, perform
    from sweephand.server.store.runs import gate

LONGEST_NOTE = 1_000
"""The longest message in a note, in characters: the API accepts no longer one, and twenty of these fit into a row."""
NOT_KEPT = "(its message is not kept: it may repeat a secret)"


@until_unmoved("changes of this run")
def record(
    world: World,
    tenant: str,
    owner: str,
    uuid: str,
    *,
    success: bool,
    message: str | None,
    message_counts: bool = True,
    token: str | None = None,
    by: str | None = None,
    follow_up: FollowUp | None = None,
) -> Run:
    """Records the result that a target reports, even before its 202 was recorded. Repeating it changes nothing.

    owner: the schedule's id, or the job's for a run without a schedule. message_counts: if True, another message makes
    another result; otherwise any end of the same kind is the same result. token: the callback token used, if any. by:
    the client id of the caller. follow_up: when the job runs again; that run is written together with the result or
    not at all. Raises NotFound; Conflict(RESULT_CONFLICT) if the run has ended otherwise, and keeps the late result
    with its message as a note; Conflict if no attempt of the run can report, or for a line for many occurrences.

    A message that may repeat a secret is hidden until the executor has redacted it. A note leaves it out.
    """
    run = _single_run(world, tenant, owner, uuid)
    reporting = run if run.finished else _reporting(world, run)
    counted = (message or "") if message_counts else ""
    more = f"\x00{follow_up.asked}" if follow_up else ""
    digest = hashlib.sha256(f"{success}\x00{counted}{more}".encode()).hexdigest()[:32]
    if message and token:
        message = redaction.hidden(message, [token])
    now = world.clock.now()
    state, reason = (State.SUCCESS, success_reason(run)) if success else (State.ERROR, Reason.CALLBACK)
    ended = replace(reporting, state=state, reason=reason, message=message, result_digest=digest, reported_by=by)
    current = end_from_outside(world, ended, now, None if run.finished else follow_up, reported=run)
    if not current.finished:
        raise Moved
    same = current.result_digest == digest or not message_counts
    if not same or not _agrees(current.state, state, message_counts=message_counts):
        ledger.note(world.table, current, _late(world, current, message, success=success))
        raise Conflict(f"the run has ended as {current.state}", code="RESULT_CONFLICT")
    return current


UNANSWERED = frozenset({Reason.DEADLINE, Reason.NO_ANSWER, Reason.EXECUTOR_LOST})
"""Reasons for a further attempt although the target may still carry out the last one, and report its result late."""


def _reporting(world: World, run: Run) -> Run:
    """Returns the open run at the attempt whose result is reported. Raises Conflict if no attempt can have a result.

    A run that has not begun may have one: then no attempt is made.
    """
    job = gate.job_of(world.table, run)
    if job is not None and action_of(job, run.kind).kind == application.QUEUE:
        raise Conflict(f"its worker reports by `settle`, and nobody else can: {run.state_in_words}")
    if run.state in AWAITING_RESULT or run.state is State.TRIGGERED or run.first_started_at is None:
        return run
    if run.state is State.RETRY_WAIT and run.reason in UNANSWERED:
        return replace(run, attempt=run.attempt - 1)
    raise Conflict(f"no attempt of the run waits for a result: {run.state_in_words}")


def _agrees(state: State, reported: State, *, message_counts: bool) -> bool:
    """Returns whether the run ended as reported. A reported failure without a message matches a refused request too."""
    return state is reported or (not message_counts and reported is State.ERROR and state is State.REQUEST_ERROR)


def _late(world: World, run: Run, message: str | None, *, success: bool) -> str:
    said = f"result after the end: {'success' if success else 'failure'}"
    if not message:
        return said
    job = gate.job_of(world.table, run)
    kept = NOT_KEPT if may_repeat_a_secret(world, run, job) else message[:LONGEST_NOTE]
    return f"{said}: {kept}"


@until_unmoved("changes of this run")
def give_back(world: World, tenant: str, owner: str, uuid: str, attempt: int) -> Run:
    """Ends an attempt that will not report a result, so that the next attempt need not wait for the deadline.

    Returns the run, unchanged if it is past this attempt already. Raises NotFound; Conflict for a run that has ended,
    does not wait for a result, or ends at its deadline instead of being tried again.
    """
    run = _single_run(world, tenant, owner, uuid)
    if run.finished:
        raise Conflict(f"the run has ended as {run.state}", code="RESULT_CONFLICT")
    if attempt < run.attempt:
        return run
    if run.state not in AWAITING_RESULT or attempt > run.attempt:
        raise Conflict(f"attempt {attempt} does not wait for a result: {run.state_in_words}")
    job = gate.job_of(world.table, run)
    schedule = None
    if job is not None and run.schedule_id is not None:
        schedule = jobs.read_schedule(world.table, tenant, job.id, run.schedule_id)
    if job is None or policies_of(job, schedule).get("onNoResult") != "retry":
        raise Conflict(
            "its job is not tried again without a result: report `success`: false, or set `onNoResult`: `retry`"
        )
    now, lane = from_s(epoch_s(world.clock.now())), lane_of(action_of(job, run.kind), tenant)
    if isinstance(ledger.end_wait(world.table, run, now, shards=world.shards, lane=lane), Refused):
        raise Moved
    with tolerated(world, "the next attempt will follow later, by the run's wake", run=run.uuid):
        world.queue.send_one(Delivery(ledger.pointer_to(run), now, lane))
    return run


def cancel(world: World, tenant: str, owner: str, uuid: str, why: str | None = None) -> Run:
    """Ends an open run at once. A call that has begun cannot be recalled: its late answer becomes a note.

    why: who cancels it, and the reason. Raises NotFound, Conflict.
    """
    run = _single_run(world, tenant, owner, uuid)
    wanted = replace(run, state=State.CANCELLED, reason=Reason.BY_USER)
    wanted = wanted if why is None else replace(wanted, message=f"cancelled by {why}")
    current = end_from_outside(world, wanted, world.clock.now())
    if current.state is not State.CANCELLED:
        raise Conflict(f"the run has ended as {current.state}")
    return current


def _single_run(world: World, tenant: str, owner: str, uuid: str) -> Run:
    run = tenancy.find_run(world, tenant, owner, uuid)
    ranges.check_is_none(run)
    return run


def end_from_outside(
    world: World,
    wanted: Run,
    now: datetime,
    follow_up: FollowUp | None = None,
    reported: Run | None = None,
) -> Run:
    """Writes the end [not ended] with its wake, and sends the pointer. Returns the row as it is now.

    reported: the run as it was read, if the end is the result of its attempt; that attempt must not have failed since.

    Raises Conflict if the job that should run again was deleted, NotFound if the run no longer exists.
    """
    job = gate.job_of(world.table, wanted)
    follows: Run | None = None
    also: list[Op] = []
    if follow_up is not None:
        if job is None:
            raise Conflict("the job was deleted: it cannot run again")
        follow_ups.check(follow_up, job, now)
        follows = follow_ups.run_after(wanted, job, follow_up)
        also = follow_ups.ops(world, follows, job, follow_up)
    ended = replace(
        wanted,
        finished_at=wanted.ended_at(now),
        expires_at=run_expiry(world, wanted.tenant, job.collection if job else None, now),
        lease_owner=None,
        lease_until=None,
        wake_at=now + WAKE,
    )
    if ended.message and ended.result_digest is not None and may_repeat_a_secret(world, ended, job):
        ended = replace(ended, message=None, reported=ended.message)
    lane = lane_of(action_of(job, ended.kind), job.tenant).executors if job else world.settings.lane
    result = ledger.finish_from_outside(
        world.table,
        ended,
        shards=world.shards,
        lane=lane,
        counts=settle.counts_of(ended),
        reported=reported,
        also=also,
    )
    if isinstance(result, Refused):
        current = ledger.run_in(result)
        if current is None:
            raise NotFound("no such run")
        ended = current
    if job is not None and follows is not None and ended.result_digest == wanted.result_digest:
        follow_ups.send_soon(world, follows, job)
    with tolerated(world, "the run's effects will follow later, by its wake", run=ended.uuid):
        world.queue.send_one(Delivery(ledger.pointer_to(ended), now, lane))
    return ended


def may_repeat_a_secret(world: World, run: Run, job: Job | None) -> bool:
    """Returns whether the run's target may have received secrets.

    Assumes so if the job was deleted, and for hooks, which may belong to the schedule.
    """
    if job is None or job.secret_version is not None or (run.kind in HOOKS and run.schedule_id is not None):
        return True
    return bool(world.terms.of(job.tenant, job.collection).signing)


def read_over(world: World, run: Run, job: Job | None, schedule: Schedule | None) -> Run:
    """Returns the run with its reported message, redacted by the job's current secrets. May be repeated.

    Raises Unavailable, as an attempt does.
    """
    assert run.reported is not None
    if job is None or (run.kind in REACTIONS and job.reaction(run.kind) is None):
        return replace(run, message=NOT_KEPT)
    return replace(run, message=redaction.hidden(run.reported, _sent_secrets(world, run, job, schedule)))


def _sent_secrets(world: World, run: Run, job: Job, schedule: Schedule | None) -> list[str]:
    action = action_of(job, run.kind)
    secrets = perform.secrets_of(world, run, job, action)
    sent = [*secrets.values(), *perform.signing_secrets(world, job)]
    if isinstance(authentication := action.params.get("authentication"), dict):
        sent += authenticate.derived_secrets(authentication, secrets)
    if policies_of(job, schedule).get("callbackToken") is True:
        sent.append(perform.token_of(world, run))
    return sent
