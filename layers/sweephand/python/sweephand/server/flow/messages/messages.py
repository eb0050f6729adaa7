"""Accepts messages, and revokes those that have not begun. A message is a run whose row waits for its instant.

Order of the writes: the record of the Idempotency-Key, which has the instant of acceptance; that of the dedupe key; the
note of the day; the body, if it is long; the row; the queue's message, if the instant is near. The ids follow from key
and instant, so a repetition after a crash finds what is there and writes the rest. If the queue's message is lost, the
row's wake sends it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base.errors import Conflict, InvalidRequest, NotFound, SweephandError, Unavailable
from sweephand.base.records import dataclass
from sweephand.domain import application
from sweephand.domain import messages as domain
from sweephand.domain.instants import epoch_ms, epoch_s, from_ms, text, up_to_second
from sweephand.domain.job import ActionSpec, Inline
from sweephand.domain.messages import LATEST, NEAR, Dedupe, MessageDraft
from sweephand.domain.posted import Posted
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.runs.run_action import OpenAttempt, lane_of, new_run
from sweephand.domain.runs.settlement import FALLBACK
from sweephand.domain.schedule import PAST_GRACE
from sweephand.server import actions
from sweephand.server.flow.concurrency import Moved, until_unmoved
from sweephand.server.flow.idempotency import Once, earlier, earlier_answer, is_used, once_op
from sweephand.server.flow.retention import run_expiry
from sweephand.server.flow.runs import results, settle
from sweephand.server.flow.tenants import applications, tenancy
from sweephand.server.flow.world import Remembered, World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo.conditional import Refused
from sweephand.server.store.dynamo.table import IdempotencyItem
from sweephand.server.store.runs import gate, ledger, messages
from sweephand.server.threads import at_once

MOST = 25
"""The most messages in one request."""
THREADS = 8
HELD_FOR = timedelta(days=90)
"""How long the body of a message is kept, in addition to its longest run, for a collection that is disabled."""


@dataclass(frozen=True)
class Request:
    """The request that messages come in. once: its Idempotency-Key. actor: the client id of the caller.

    hop: how many runs came before, if a run's call makes the request. accepted_at: now or, for a repetition, when the
    first request with this key was accepted.
    """

    tenant: str
    once: Once | None
    actor: str
    accepted_at: datetime
    hop: int = 0


@dataclass(frozen=True)
class Accepted:
    """A message that was accepted. deduplicated: whether another request had sent it before, under its dedupe key."""

    run: Run
    deduplicated: bool = False


Result = Accepted | SweephandError


def request_of(world: World, tenant: str, once: Once | None, actor: str, hop: int = 0) -> Request:
    """Returns the request. Raises InvalidRequest if its key belongs to another one."""
    known = None if once is None else earlier(world, tenant, once)
    return Request(tenant, once, actor, world.clock.now() if known is None else from_ms(int(known)), hop)


def accept(world: World, asked: Request, drafts: Sequence[MessageDraft | SweephandError]) -> list[Result]:
    """Accepts each of several messages separately. Returns the runs, or why one was refused.

    A repetition returns the same runs. drafts: those that could not be read are errors already. Raises Unavailable
    before the first write.
    """
    opened: dict[str, InvalidRequest | None] = {}
    checked = [
        each if isinstance(each, SweephandError) else _check(world, asked, each, n, opened)
        for n, each in enumerate(drafts)
    ]
    if not any(isinstance(each, MessageDraft) for each in checked):
        return [each for each in checked if isinstance(each, SweephandError)]
    begun = _begin(world, asked)
    key = begun.once.key if begun.once is not None else world.chance.new_id(begun.accepted_at)
    made = [
        each if isinstance(each, SweephandError) else _made(world, begun, each, f"{key} {n}")
        for n, each in enumerate(checked)
    ]
    _note_days(world, [each.run for each in made if isinstance(each, Accepted)])
    done = at_once(lambda each: each if isinstance(each, SweephandError) else _written(world, each), made, THREADS)
    _send(world, [each.run for each in done if isinstance(each, Accepted)])
    return done


def _check(
    world: World, asked: Request, draft: MessageDraft, n: int, opened: dict[str, InvalidRequest | None]
) -> MessageDraft | SweephandError:
    """Returns the draft, or why it is refused. n: its place. opened: the collections that were looked at."""
    try:
        if draft.collection not in opened:
            opened[draft.collection] = None
            tenancy.open_with_quotas(world, asked.tenant, draft.collection)
        if (refused := opened[draft.collection]) is not None:
            raise refused
        actions.check(draft.action, "action", world.clock.now())
        if named := application.named_by({"action": draft.action}):
            applications.check(world, asked.tenant, named)
        _check_instant(draft, asked.accepted_at)
    except InvalidRequest as wrong:
        if wrong.field == "collection":
            opened[draft.collection] = wrong
        return wrong
    if draft.dedupe is not None and draft.dedupe.refuse:
        own = _own_key(draft.collection, draft.dedupe, "" if asked.once is None else f"{asked.once.key} {n}")
        if is_used(world, asked.tenant, own):
            return _used(draft.dedupe)
    return draft


def _own_key(collection: str, dedupe: Dedupe, asked: str) -> Once:
    """Returns the record of a caller's own key. asked: identifies the request that sends the message."""
    whole = f"messages\x00{collection}\x00{dedupe.key}"
    return Once(hashlib.sha256(whole.encode()).hexdigest(), hashlib.sha256(asked.encode()).hexdigest())


def _used(dedupe: Dedupe) -> Conflict:
    return Conflict(f'a message with the dedupeKey "{dedupe.key}" was sent before')


def _check_instant(draft: MessageDraft, now: datetime) -> None:
    if draft.at is not None and not draft.run_past and now - draft.at > PAST_GRACE:
        reason = f'{text(draft.at)} is more than 60 seconds in the past: write "onPastStart": "run_now" to send it now'
        raise InvalidRequest("at", reason)
    if draft.planned(now) > LATEST:
        raise InvalidRequest("delaySeconds", "leads beyond the year 2199")


def _begin(world: World, asked: Request) -> Request:
    """Writes the record of the key. Returns the request as the first one with this key was accepted."""
    if asked.once is None:
        return asked
    op = once_op(world, asked.tenant, asked.once, str(epoch_ms(asked.accepted_at)))
    done = world.table.carry_out(op)
    if isinstance(done, Refused):
        return replace(asked, accepted_at=from_ms(int(earlier_answer(done, asked.once))))
    return replace(asked, accepted_at=from_ms(epoch_ms(asked.accepted_at)))


def _made(world: World, asked: Request, draft: MessageDraft, key: str) -> Result:
    """Returns the new message, or the one that another request sends under the same dedupe key."""
    if draft.dedupe is None:
        return Accepted(_new(world, asked, draft, key))
    own = _own_key(draft.collection, draft.dedupe, key)
    accepted_ms, planned_ms = epoch_ms(asked.accepted_at), epoch_ms(draft.planned(asked.accepted_at))
    kept = timedelta(seconds=draft.dedupe.seconds)
    done = world.table.carry_out(once_op(world, asked.tenant, own, f"{accepted_ms} {planned_ms}", kept))
    first = done.read(IdempotencyItem) if isinstance(done, Refused) else None
    if first is not None:
        accepted_ms, planned_ms = (int(each) for each in first.answer.split())
    again = first is not None and first.digest != own.digest
    if again and draft.dedupe.refuse:
        return _used(draft.dedupe)
    asked = replace(asked, accepted_at=from_ms(accepted_ms))
    draft = replace(draft, at=from_ms(planned_ms), delay_s=None)
    return Accepted(_new(world, asked, draft, f"{own.key} {accepted_ms}"), deduplicated=again)


def _new(world: World, asked: Request, draft: MessageDraft, key: str) -> Run:
    """Returns the new message, as its row will contain it."""
    planned_at = draft.planned(asked.accepted_at)
    owner, uuid = domain.place_of(asked.tenant, draft.collection, planned_at, key)
    run_id = f"{owner}_{uuid}"
    sealed = {
        name: world.secrets.encrypt(asked.tenant, run_id, name, value) for name, value in draft.action.secrets.items()
    }
    inline = Inline(run_id, draft.action.payload, sealed)
    action = ActionSpec(draft.action.kind, draft.action.params, draft.action.retry, inline=inline)
    posted = Posted(
        collection=draft.collection,
        created_at=asked.accepted_at,
        action=domain.packed(action),
        target=domain.target_of(action),
        name=draft.name,
        resource_id=draft.resource_id,
        tags=draft.tags,
        policies=draft.policies,
        max_lateness_s=draft.max_lateness_s,
        by=asked.actor,
        dedupe_key=None if draft.dedupe is None else draft.dedupe.key,
    ).placed()
    far = planned_at - world.clock.now() > NEAR
    return replace(
        new_run(
            domain.job_with(asked.tenant, owner, posted, action), Kind.MESSAGE, None, uuid, State.SCHEDULED, planned_at
        ),
        enqueued_at=asked.accepted_at,
        not_before=planned_at,
        hop=asked.hop,
        wake_at=planned_at if far else up_to_second(max(planned_at, world.clock.now()) + FALLBACK),
        posted=posted,
    )


class NotedDays(Remembered[tuple[str, datetime | None, str, int], None]):
    """The days that are noted to have messages, each with the tenant, its beginning and the collection."""


def _note_days(world: World, runs: Sequence[Run]) -> None:
    """Notes the days of the messages, each once in the life of a process and of the tenant."""
    known = world.memory.of(NotedDays)
    for run in runs:
        assert run.posted is not None
        since = world.terms.of(run.tenant, run.posted.collection).tenant_since
        day = (run.tenant, since, run.posted.collection, epoch_s(run.planned_at) // 86_400)
        if day not in known:
            messages.note_day(world.table, run, world.shards)
            known[day] = None


def _written(world: World, accepted: Accepted) -> Result:
    """Writes a message. Returns its row as it is now, because an earlier request may have written it."""
    run = accepted.run
    try:
        stored = ledger.read(world.table, run.tenant, run.job_id, run.uuid) if accepted.deduplicated else None
        stored = stored or _write(world, run)
        return accepted if stored is None else replace(accepted, run=messages.whole(world.table, [stored])[0])
    except Unavailable as away:
        return away


def _write(world: World, run: Run) -> Run | None:
    """Writes a message. Returns its row if it was there. Raises Unavailable."""
    job = gate.job_of(world.table, run)
    assert run.posted is not None
    assert job is not None
    lane = lane_of(job.action, run.tenant)
    if run.posted.apart:
        first = OpenAttempt(run, job, None, world.terms.of(run.tenant, job.collection), lane)
        kept_until = settle.attempt_expiry(world, first, run.planned_at) + HELD_FOR
        world.table.carry_out(messages.body_op(world.table, run, kept_until))
    done = ledger.claim_first(world.table, run, shards=world.shards, lane=lane)
    return ledger.run_in(done) if isinstance(done, Refused) else None


def _send(world: World, runs: Sequence[Run]) -> None:
    """Sends the near messages. If the queue does not take one, its wake sends it."""
    now = world.clock.now()
    near = [run for run in runs if run.state is State.SCHEDULED and run.planned_at - now <= NEAR]
    deliveries = []
    for run in near:
        job = domain.job_of(run)
        if job is not None:
            deliveries.append(Delivery(ledger.pointer_to(run), run.planned_at, lane_of(job.action, run.tenant)))
    unsent = world.queue.send(deliveries)
    if unsent:
        world.journal.warning("messages will be sent later, by their wakes", left=len(unsent))


def find(world: World, tenant: str, owner: str, uuid: str) -> Run:
    """Returns a message with its action. Raises NotFound."""
    run = tenancy.find_run(world, tenant, owner, uuid)
    if run.posted is None:
        raise NotFound("no such message")
    return messages.whole(world.table, [run])[0]


@until_unmoved("changes of this message")
def revoke(world: World, tenant: str, owner: str, uuid: str, why: str) -> None:
    """Ends a message that has not begun. May be repeated. why: who revokes it, and the reason.

    Raises NotFound; Conflict if it has begun.
    """
    run = find(world, tenant, owner, uuid)
    if (run.state, run.reason) == (State.CANCELLED, Reason.BY_USER):
        return
    if run.state is State.QUEUED and run.first_started_at is None:
        results.cancel(world, tenant, owner, uuid, why)
        return
    if run.state is not State.SCHEDULED:
        raise begun(run)
    assert run.posted is not None
    now = world.clock.now()
    ended = replace(
        run,
        state=State.CANCELLED,
        reason=Reason.BY_USER,
        finished_at=now,
        message=f"revoked by {why}",
        expires_at=run_expiry(world, tenant, run.posted.collection, now),
    )
    if isinstance(messages.revoke(world.table, ended), Refused):
        raise Moved


def begun(run: Run) -> Conflict:
    """Returns the error for a change of a message that has begun. It says where the message is."""
    return Conflict(f"the message has begun: {run.state_in_words}", current=run.state.value)
