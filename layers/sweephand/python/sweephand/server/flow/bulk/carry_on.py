"""Works on long operations, in the function `operations`.

Each message processes pages of an operation for a while, then sends the next message. If the function is cut off, the
row stays as the last complete page left it. Then the message comes back, or the row's wake sends another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module

from sweephand.base.errors import SweephandError, Unavailable
from sweephand.base.lazy import lazy
from sweephand.domain.message import Pointer, Subject, Unreadable, decode
from sweephand.domain.operation import KEPT, Operation, OperationKind, OperationState, Page
from sweephand.domain.schedule import Lane
from sweephand.server.flow import events
from sweephand.server.flow.operations import verbs
from sweephand.server.flow.verdict import AGAIN, DONE, Delivered, Verdict
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import Refused
from sweephand.server.store.operations import operations as store
from sweephand.server.telemetry import where

with lazy():
    from sweephand.server.flow.errors import failures

STRETCH_S = 60.0
"""No further page begins after this long: half of the function's time limit."""
TRIES_UNEXPECTED = 3
"""Unexpected failures of one message before its operation fails."""
TRIES_UNAVAILABLE = 8
"""Receives of one message before the row's wake takes over: an unavailable table must not fail the operation."""
FIRST_WAIT_S, LONGEST_WAIT_S = 5.0, 300.0


def batch(world: World, request_id: str, messages: Sequence[Delivered]) -> list[str]:
    """Works on the messages. Returns the ids of those that must come back."""
    failed: list[str] = []
    waits: dict[str, float] = {}
    for message in messages:
        verdict = _guarded(world, f"{request_id}/{message.receipt[-24:]}", message)
        if not verdict.acknowledged:
            failed.append(message.message_id)
            waits[message.receipt] = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**message.receive_count)
    if waits:
        world.queue.postpone(Lane.OPERATIONS, waits)
    return failed


def _guarded(world: World, by: str, message: Delivered) -> Verdict:
    try:
        return one(world, by, message)
    except Unavailable as unavailable:
        world.journal.warning("an operation waits for the table or a queue", reason=unavailable.reason)
        return AGAIN if message.receive_count < TRIES_UNAVAILABLE else DONE


def one(world: World, by: str, message: Delivered) -> Verdict:
    """Works on one message. Raises Unavailable."""
    try:
        pointer = decode(message.body)
    except Unreadable as unreadable:
        world.journal.error("a message cannot be read", reason=str(unreadable))
        return AGAIN
    if pointer.subject is Subject.ERRORS:
        failures.wake_up(world, pointer)
        return DONE
    operation = _meant(world, pointer)
    if operation is None:
        return DONE
    if operation.leaves:
        return _cleared(world, operation)
    return _tried(world, by, operation, message.receive_count)


def _tried(world: World, by: str, operation: Operation, tries: int) -> Verdict:
    try:
        return _stretch(world, by, operation)
    except Unavailable:
        raise
    except SweephandError as hopeless:
        return _give_up(world, operation, hopeless.reason)
    except Exception as unexpected:  # noqa: BLE001 - it must end with a cause, not come back forever
        at = where(unexpected)
        world.journal.error("an operation's page failed", error=type(unexpected).__name__, where=at)
        if tries < TRIES_UNEXPECTED:
            return AGAIN
        return _give_up(world, operation, f"unexpected: {type(unexpected).__name__} at {at}")


def dead(world: World, pointer: Pointer) -> None:
    """Fails the operation of a dead letter: its message was received 30 times, and the function died each time."""
    operation = _meant(world, pointer)
    if operation is not None and not operation.leaves:
        verbs.give_up(world, operation, "the function stopped before finishing a page, on every try")


def _meant(world: World, pointer: Pointer) -> Operation | None:
    """Returns the operation; None if it has ended or is paused, or if another message has got further."""
    if pointer.subject is not Subject.OPERATION:
        return None
    operation = store.by_pointer(world.table, pointer)
    if operation is None or operation.step != pointer.generation:
        return None
    if operation.state is OperationState.FAILED:  # the function that gave up may have died before publishing it
        events.operation_failed(world, operation)
    return operation if operation.state is OperationState.RUNNING or operation.leaves else None


def _cleared(world: World, operation: Operation) -> Verdict:
    """Removes what a cancelled operation has written; its wake stays until that is done. Raises Unavailable.

    The message of an earlier page may arrive too early. It leaves the removal to the message that was sent for it.
    """
    if world.clock.now() >= operation.cleared_at:
        clear(world, operation)
        store.turn(world.table, operation, replace(operation, leaves=False), world.clock.now(), world.shards)
    return DONE


def _stretch(world: World, by: str, operation: Operation) -> Verdict:
    """Processes pages until the operation ends, is paused or must wait, or the time of the message is over."""
    page = work_of(operation.kind)
    deadline = world.clock.monotonic() + STRETCH_S
    while operation.due_at is None or operation.due_at <= world.clock.now():
        after = _after(world, operation, page(world, operation), by)
        written = store.move_on(world.table, operation, after, world.clock.now(), world.shards)
        if isinstance(written, Refused) and not _is_written(store.operation_in(written), after):
            return DONE  # paused, cancelled, or another message did the same page
        operation = after
        if operation.state is not OperationState.RUNNING:
            return DONE
        if world.clock.monotonic() > deadline:
            break
    verbs.send(world, operation)
    return DONE


def _after(world: World, operation: Operation, page: Page, by: str) -> Operation:
    """Returns the operation after the page, in absolute values, so that its write may be repeated."""
    moved = replace(
        operation,
        step=operation.step + 1,
        done=operation.done + page.done,
        failed=operation.failed + page.failed,
        total=operation.total if page.total is None else page.total,
        due_at=page.due_at,
        by=by,
    )
    if page.cursor is not None:
        return replace(moved, cursor=page.cursor)
    now = world.clock.now()
    return replace(
        moved, state=OperationState.DONE, due_at=None, result=page.result, ended_at=now, expires_at=now + KEPT
    )


def _is_written(current: Operation | None, wanted: Operation) -> bool:
    """Returns whether the row contains this message's own write, whose answer was lost."""
    return current is not None and (current.step, current.by, current.state) == (wanted.step, wanted.by, wanted.state)


def _give_up(world: World, operation: Operation, cause: str) -> Verdict:
    """Fails the operation if it still runs, even if a page got further than the operation read here."""
    verbs.give_up(world, operation, cause)
    return DONE


Work = Callable[[World, Operation], Page]

MODULES: Mapping[OperationKind, str] = {
    OperationKind.REDRIVE: "redrive",
    OperationKind.DELETE_JOBS: "delete_jobs",
    OperationKind.SWITCH_JOBS: "switch_jobs",
    OperationKind.DELETE_COLLECTION: "delete_collection",
    OperationKind.PURGE_TENANT: "purge_tenant",
    OperationKind.EXPORT_RUNS: "export_runs",
}


def work_of(kind: OperationKind) -> Work:
    """Returns the function that processes a page of this kind of operation."""
    work: Work = import_module(f"sweephand.server.flow.bulk.{MODULES[kind]}").page
    return work


def clear(world: World, operation: Operation) -> None:
    """Removes what a cancelled operation has written. Raises Unavailable."""
    import_module(f"sweephand.server.flow.bulk.{MODULES[operation.kind]}").clear(world, operation)
