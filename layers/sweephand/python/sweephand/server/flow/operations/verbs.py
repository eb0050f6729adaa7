"""The verbs of operations: begin, pause, resume, cancel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sweephand.base.errors import Conflict, NotFound
from sweephand.base.records import dataclass
from sweephand.domain.operation import KEPT, Operation, OperationKind, OperationState
from sweephand.domain.schedule import Lane
from sweephand.server.flow import events
from sweephand.server.flow.concurrency import TRIES, tolerated, too_many
from sweephand.server.flow.idempotency import Once, earlier, earlier_answer, once_op
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo.conditional import Cancelled, Op, Refused
from sweephand.server.store.operations import operations as store


def begin(
    world: World,
    tenant: str | None,
    kind: OperationKind,
    params: Mapping[str, Any],
    *,
    actor: str | None,
    total: int | None = None,
    once: Once | None = None,
) -> Operation:
    """Begins an operation, or returns the one that an earlier request with the same key began.

    tenant: None for an operation of the provider. Raises Unavailable; then nothing was begun.
    """
    now = world.clock.now()
    operation = Operation(tenant, world.chance.new_id(now), kind, params, now, total=total, actor=actor)
    begun = begin_with(world, operation, once)
    assert begun is not None
    return begun


def begun_before(world: World, tenant: str, once: Once | None) -> Operation | None:
    """Returns the operation that an earlier request with the same key began, if any."""
    operation_id = None if once is None else earlier(world, tenant, once)
    return None if operation_id is None else find(world, tenant, operation_id)


def begin_with(world: World, operation: Operation, once: Once | None, more: Sequence[Op] = ()) -> Operation | None:
    """Begins the given operation, or returns that of an earlier request; None if one of `more` was refused.

    more: further parts of the transaction. Raises Unavailable; then nothing was begun.
    """
    assert operation.tenant is not None or once is None, "idempotency keys belong to a tenant"
    ops = [store.begin_op(world.table, operation, world.shards), *more]
    if once is not None and operation.tenant is not None:
        if (begun_earlier := begun_before(world, operation.tenant, once)) is not None:
            return begun_earlier
        ops.append(once_op(world, operation.tenant, once, operation.id))
    done = world.table.transact(ops)
    if isinstance(done, Cancelled) and "operation" not in done.refused:
        if once is None or "once" not in done.refused:
            return None
        return find(world, operation.tenant, earlier_answer(done.refused["once"], once))
    send(world, operation)
    return operation


def find(world: World, tenant: str | None, operation_id: str) -> Operation:
    """Returns the operation. Raises NotFound if it does not exist or has expired."""
    operation = store.read(world.table, tenant, operation_id)
    if operation is None or (operation.expires_at is not None and operation.expires_at <= world.clock.now()):
        raise NotFound("no such operation")
    return operation


def pause(world: World, operation: Operation) -> Operation:
    """Pauses an operation after its current page. Raises Conflict if it has ended."""
    return _turn(world, operation, OperationState.PAUSED, frozenset({OperationState.RUNNING}))


def resume(world: World, operation: Operation) -> Operation:
    """Resumes a paused or failed operation where it stopped. Raises Conflict if it is done or cancelled."""
    resumed = _turn(world, operation, OperationState.RUNNING, frozenset({OperationState.PAUSED, OperationState.FAILED}))
    send(world, resumed)
    return resumed


def cancel(world: World, operation: Operation) -> Operation:
    """Cancels an operation; its finished part stays. Raises Conflict if it is done or its kind cannot be cancelled.

    Rows and files of its own are removed once no page can still be running.
    """
    if KINDS[operation.kind].for_good:
        raise Conflict("it cannot be cancelled, because its finished part cannot be undone: pause it instead")
    open_ = frozenset({OperationState.RUNNING, OperationState.PAUSED, OperationState.FAILED})
    cancelled = _turn(world, operation, OperationState.CANCELLED, open_)
    if cancelled.leaves:
        send(world, cancelled)
    return cancelled


def give_up(world: World, operation: Operation, cause: str) -> Operation | None:
    """Fails the operation and publishes that. cause: in words. Returns None if it no longer runs."""
    now = world.clock.now()
    failed = replace(operation, state=OperationState.FAILED, cause=cause, ended_at=now, expires_at=now + KEPT)
    written = store.turn(world.table, operation, failed, now, world.shards)
    # A refusal may follow from this same write, whose answer was lost; or a page may have got further than was read.
    if isinstance(written, Refused):
        current = store.operation_in(written)
    else:
        current = store.read(world.table, operation.tenant, operation.id)
    if current is None or current.state is not OperationState.FAILED:
        return None
    world.journal.error("an operation failed", tenant=operation.tenant, operation=operation.id, reason=cause)
    events.operation_failed(world, current)
    return current


def send(world: World, operation: Operation) -> None:
    """Sends the message of the next page, to arrive when it is due. If that fails, the row's wake sends it."""
    at = operation.cleared_at if operation.leaves else operation.due_at or world.clock.now()
    with tolerated(world, "an operation's message was not sent: its wake will send it", operation=operation.id):
        world.queue.send_one(Delivery(store.pointer_to(operation, at), at, Lane.OPERATIONS))


def _turn(world: World, operation: Operation, wanted: OperationState, begun: frozenset[OperationState]) -> Operation:
    """Moves the operation from one of the states `begun` to `wanted`. Returns it unchanged if it already is there."""
    current: Operation | None = find(world, operation.tenant, operation.id)
    for _ in range(TRIES):
        if current is None:
            raise NotFound("no such operation")
        if current.state is wanted:
            return current
        if current.state not in begun:
            raise Conflict(f"the operation is {current.state}")
        after = _turned(world, current, wanted)
        written = store.turn(world.table, current, after, world.clock.now(), world.shards)
        if not isinstance(written, Refused):
            return after
        current = store.operation_in(written)
    raise too_many("changes to this operation")


def _turned(world: World, operation: Operation, wanted: OperationState) -> Operation:
    if wanted is not OperationState.CANCELLED:
        return replace(operation, state=wanted, cause=None, ended_at=None, expires_at=None)
    now = world.clock.now()
    return replace(operation, state=wanted, ended_at=now, expires_at=now + KEPT, leaves=KINDS[operation.kind].leaves)


@dataclass(frozen=True)
class Kind:
    """The rules of one kind.

    scope: needed to begin, pause, resume and cancel it. for_good: whether it cannot be cancelled, because half of it
    would be neither the old state nor the new one. leaves: whether what it wrote is removed when it is cancelled.
    """

    scope: str
    for_good: bool = False
    leaves: bool = False


KINDS: Mapping[OperationKind, Kind] = {
    OperationKind.REDRIVE: Kind("errors:edit"),
    OperationKind.DELETE_JOBS: Kind("jobs:write"),
    OperationKind.SWITCH_JOBS: Kind("jobs:write"),
    OperationKind.DELETE_COLLECTION: Kind("jobs:write", for_good=True),
    OperationKind.PURGE_TENANT: Kind("provider:admin", for_good=True),
    OperationKind.EXPORT_RUNS: Kind("jobs:read", leaves=True),
}
