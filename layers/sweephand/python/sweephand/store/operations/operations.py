"""Operations: one row each, which is the source of truth and in the next-run index while the operation runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sweephand.domain.instants import (
    epoch_ms,
    epoch_s,
    from_ms,
    from_ms_if_any,
    from_s_if_any,
    ms_if_any,
    s_if_any,
    up_to_second,
)
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.operation import OVER, Operation, OperationKind, OperationState
from sweephand.domain.schedule import Lane
from sweephand.ids import shard_of
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Refused, Table, Written
from sweephand.store.dynamo.expressions import Action, Condition, assign, every
from sweephand.store.operations.operation_items import OperationItem, OperationPlaceItem

PROVIDER = "provider"
"""The tenant's name in pointers to the provider's own operations; no tenant may have it."""
WAKE = timedelta(minutes=5)
"""A lost message is sent again this long after its instant: longer than the sweep looks ahead."""


def operation_of(item: OperationItem) -> Operation:
    whose = keys.parts(item.pk)
    return Operation(
        tenant=None if whose[0] == "STACK" else whose[1],
        id=keys.parts(item.sk)[1],
        kind=OperationKind(item.kind),
        params=json.loads(item.params),
        started_at=from_ms(item.started_at),
        state=OperationState(item.state),
        cursor=json.loads(item.cursor),
        step=item.generation,
        done=item.done,
        failed=item.failed,
        total=item.total,
        due_at=from_ms_if_any(item.due_at),
        ended_at=from_ms_if_any(item.ended_at),
        cause=item.cause,
        result=None if item.result is None else json.loads(item.result),
        actor=item.actor,
        by=item.by,
        expires_at=from_s_if_any(item.expires_at),
        leaves=item.state == OperationState.CANCELLED.value and item.next_run_at is not None,
    )


def begin_op(table: Table, operation: Operation, shards: int) -> Op:
    """Creates an operation, if absent, with its wake, which carries it out even if its message is lost."""
    item = OperationItem(
        pk=keys.operations(operation.tenant),
        sk=keys.operation(operation.id),
        kind=operation.kind.value,
        state=operation.state.value,
        params=_text(operation.params),
        cursor=_text(operation.cursor),
        generation=operation.step,
        done=operation.done,
        failed=operation.failed,
        total=operation.total,
        started_at=epoch_ms(operation.started_at),
        actor=operation.actor,
        shard=shard_of(operation.id, shards),
        next_run_at=_wake_s(operation, operation.started_at),
        sweep=_SWEEP,
    )
    return table.put_op("operation", item, OperationItem.pk.does_not_exist())


def read(table: Table, tenant: str | None, operation_id: str) -> Operation | None:
    item = table.get(OperationItem, keys.operations(tenant), keys.operation(operation_id))
    return None if item is None else operation_of(item)


def move_on(table: Table, before: Operation, after: Operation, now: datetime, shards: int) -> Written | Refused:
    """Writes the result of a page, if the operation runs and is at the step at which the page began."""
    actions = [
        assign(OperationItem.cursor, _text(after.cursor)),
        assign(OperationItem.generation, after.step),
        assign(OperationItem.done, after.done),
        assign(OperationItem.failed, after.failed),
        assign(OperationItem.total, after.total),
        assign(OperationItem.due_at, ms_if_any(after.due_at)),
        assign(OperationItem.result, None if after.result is None else _text(after.result)),
        assign(OperationItem.by, after.by),
        *_standing(after, now, shards),
    ]
    return _write(table, before, actions, every(_as_it_is(before), OperationItem.generation == before.step))


def turn(table: Table, before: Operation, after: Operation, now: datetime, shards: int) -> Written | Refused:
    """Writes another state, if the state is still that of `before`; the step and the cursor stay."""
    return _write(table, before, _standing(after, now, shards), _as_it_is(before))


def operation_in(refused: Refused) -> Operation | None:
    """Returns the operation that a refused write met."""
    item = refused.read(OperationItem)
    return None if item is None else operation_of(item)


def pointer_to(operation: Operation, at: datetime) -> Pointer:
    """Returns the message of the operation's next page."""
    whose = operation.tenant or PROVIDER
    return Pointer(whose, "", None, operation.id, at, generation=operation.step, subject=Subject.OPERATION)


def by_pointer(table: Table, pointer: Pointer) -> Operation | None:
    return read(table, None if pointer.tenant == PROVIDER else pointer.tenant, pointer.run)


# Limits per kind: places, which nobody has to release


def place_op(table: Table, operation: Operation, most: int) -> Op | None:
    """Takes one of the kind's `most` places for a new operation, if it is still as read. None: all are taken.

    A place is free once the operation that took it last has ended or is gone, so a crash never blocks one.
    """
    pk = keys.operations(operation.tenant)
    for number in range(most):
        sk = keys.operation_place(operation.kind, number)
        there = table.get(OperationPlaceItem, pk, sk)
        holder = None if there is None else read(table, operation.tenant, there.operation)
        if holder is None or holder.state in OVER:
            item = OperationPlaceItem(pk=pk, sk=sk, operation=operation.id)
            return table.put_op("place", item, _held_by(None if there is None else there.operation))
    return None


def _held_by(operation_id: str | None) -> Condition:
    if operation_id is None:
        absent: Condition = OperationPlaceItem.pk.does_not_exist()
        return absent
    same: Condition = OperationPlaceItem.operation == operation_id
    return same


_SWEEP = str(SweepText(Waits.OPERATION, Lane.OPERATIONS))


def _as_it_is(before: Operation) -> Condition:
    state: Condition = OperationItem.state == before.state.value
    return state


def _standing(after: Operation, now: datetime, shards: int) -> list[Action]:
    """Returns the state, and the wake, which only an operation has that runs or has rows or files to remove."""
    runs = after.state is OperationState.RUNNING or after.leaves
    return [
        assign(OperationItem.state, after.state.value),
        assign(OperationItem.cause, after.cause),
        assign(OperationItem.ended_at, ms_if_any(after.ended_at)),
        assign(OperationItem.expires_at, s_if_any(after.expires_at)),
        assign(OperationItem.shard, shard_of(after.id, shards) if runs else None),
        assign(OperationItem.next_run_at, _wake_s(after, now) if runs else None),
        assign(OperationItem.sweep, _SWEEP if runs else None),
    ]


def _write(table: Table, before: Operation, actions: list[Action], condition: Condition) -> Written | Refused:
    return table.update(keys.operations(before.tenant), keys.operation(before.id), actions, condition)


def _wake_s(operation: Operation, now: datetime) -> int:
    due_at = operation.cleared_at if operation.leaves else operation.due_at
    return epoch_s(up_to_second(max(now, due_at or now) + WAKE))


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
