"""Operations: one row each, which is the source of truth. It is in the next-run index while the operation runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import SupportsInt

from sweephand.base.ids import shard_of
from sweephand.domain.instants import epoch_s, up_to_second
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.operation import OVER, Operation, OperationKind, OperationState
from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Table, Written, if_any
from sweephand.server.store.dynamo.expressions import Condition, changes, every
from sweephand.server.store.dynamo.flat_models import (
    JSON,
    SECONDS,
    Codec,
    Column,
    Integer,
    UnicodeAttribute,
    named,
    of_key,
    one_of,
)
from sweephand.server.store.dynamo.table import Item

PROVIDER = "provider"
"""The tenant's name in pointers to the provider's own operations. No tenant may have this name."""
WAKE = timedelta(minutes=5)
"""A lost message is sent again this long after its instant: longer than the sweep looks ahead."""


class OperationItem(Item):
    """An operation.

    params, cursor, result: JSON. generation: its step. shard, next_run_at, sweep: set while it runs.
    """

    kind = UnicodeAttribute()
    state = UnicodeAttribute()
    params = UnicodeAttribute()
    cursor = UnicodeAttribute()
    generation = Integer()
    done = Integer(default=0)
    failed = Integer(default=0)
    total = Integer(null=True)
    due_at = Integer(null=True)
    started_at = Integer()
    ended_at = Integer(null=True)
    cause = UnicodeAttribute(null=True)
    result = UnicodeAttribute(null=True)
    actor = UnicodeAttribute(null=True)
    by = UnicodeAttribute(null=True)
    shard = Integer(null=True)
    next_run_at = Integer(null=True)
    sweep = UnicodeAttribute(null=True)


class OperationPlaceItem(Item):
    """A place for an operation of a kind. operation: the last that took it. The place is free once that has ended."""

    operation = UnicodeAttribute()


_OPERATIONS = Codec(
    Operation,
    OperationItem,
    {
        "tenant": Column(lambda pk: None if pk.startswith("STACK#") else keys.parts(pk)[1], None, "pk"),
        "id": of_key("sk", 1),
        "kind": one_of(OperationKind),
        "state": one_of(OperationState),
        "params": JSON,
        "cursor": JSON,
        "step": named("generation"),
        "result": JSON,
        "expires_at": SECONDS,
    },
    but="leaves",
)


def operation_of(item: OperationItem) -> Operation:
    leaves = item.state == OperationState.CANCELLED.value and item.next_run_at is not None
    return _OPERATIONS.read(item, leaves=leaves)


def _item_of(operation: Operation, now: datetime, shards: SupportsInt) -> OperationItem:
    """Returns the row, with a wake only if the operation runs or has rows or files to remove."""
    key = keys.operations(operation.tenant), keys.operation(operation.id)
    item = _OPERATIONS.item(key, operation)
    if operation.state is OperationState.RUNNING or operation.leaves:
        item.shard = shard_of(operation.id, shards)
        item.next_run_at = _wake_s(operation, now)
        item.sweep = _SWEEP
    return item


def begin_op(table: Table, operation: Operation, shards: SupportsInt) -> Op:
    """Returns the part that creates an operation, if absent. Its wake carries it out even if its message is lost."""
    item = _item_of(operation, operation.started_at, shards)
    return table.put_op("operation", item, OperationItem.pk.does_not_exist())


def read(table: Table, tenant: str | None, operation_id: str) -> Operation | None:
    return if_any(operation_of, table.get(OperationItem, keys.operations(tenant), keys.operation(operation_id)))


def move_on(table: Table, before: Operation, after: Operation, now: datetime, shards: SupportsInt) -> Written | Refused:
    """Writes the result of a page, if the operation runs and is at the step at which the page began."""
    item = _item_of(after, now, shards)
    as_read = every(_as_it_is(before), OperationItem.generation == before.step)
    return _write(table, item, f"cursor generation done failed total due_at result by {_STANDING}", as_read)


def turn(table: Table, before: Operation, after: Operation, now: datetime, shards: SupportsInt) -> Written | Refused:
    """Writes another state, if the state is still that of `before`. The step and the cursor stay."""
    return _write(table, _item_of(after, now, shards), _STANDING, _as_it_is(before))


def operation_in(refused: Refused) -> Operation | None:
    """Returns the operation as a refused write found it."""
    return if_any(operation_of, refused.read(OperationItem))


def pointer_to(operation: Operation, at: datetime) -> Pointer:
    """Returns the message of the operation's next page."""
    whose = operation.tenant or PROVIDER
    return Pointer(whose, "", None, operation.id, at, generation=operation.step, subject=Subject.OPERATION)


def by_pointer(table: Table, pointer: Pointer) -> Operation | None:
    return read(table, None if pointer.tenant == PROVIDER else pointer.tenant, pointer.run)


# Limits per kind: places, which nobody has to release


def place_op(table: Table, operation: Operation, most: int) -> Op | None:
    """Returns the part that takes one of the kind's `most` places for a new operation; None if all are taken.

    The place must still be as read. It is free once the operation that took it last has ended or no longer exists, so a
    crash never blocks a place.
    """
    pk = keys.operations(operation.tenant)
    for number in range(most):
        sk = keys.operation_place(operation.kind, number)
        place = table.get(OperationPlaceItem, pk, sk)
        holder = None if place is None else read(table, operation.tenant, place.operation)
        if holder is None or holder.state in OVER:
            item, free = (
                OperationPlaceItem(pk=pk, sk=sk, operation=operation.id),
                OperationPlaceItem.pk.does_not_exist(),
            )
            same = free if place is None else OperationPlaceItem.operation == place.operation
            return table.put_op("place", item, same)
    return None


_SWEEP = str(SweepText(Waits.OPERATION, Lane.OPERATIONS))
_STANDING = "state cause ended_at expires_at shard next_run_at sweep"


def _as_it_is(before: Operation) -> Condition:
    state: Condition = OperationItem.state == before.state.value
    return state


def _write(table: Table, item: OperationItem, names: str, condition: Condition) -> Written | Refused:
    return table.update(item.pk, item.sk, changes(item, names), condition)


def _wake_s(operation: Operation, now: datetime) -> int:
    due_at = operation.cleared_at if operation.leaves else operation.due_at
    return epoch_s(up_to_second(max(now, due_at or now) + WAKE))
