"""Reads the dead-letter queue: a run that nobody could begin gets its message back, any other ends as the gate decides.

A rule starts the reader each minute, because an event source would poll an empty queue all month (decision 0079).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from sweephand.base.errors import Unavailable
from sweephand.base.lazy import lazy
from sweephand.domain.message import Pointer, Subject, Unreadable, decode
from sweephand.domain.run import Reason, State
from sweephand.domain.runs import admission, run_action
from sweephand.domain.schedule import Lane
from sweephand.server.flow.runs import execute, gate_rows
from sweephand.server.flow.verdict import AGAIN, DONE, Delivered, RunMessage, Verdict, delivered
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import BATCH_MOST, Delivery
from sweephand.server.store.runs import gate
from sweephand.server.telemetry import where
from sweephand.server.threads import Threads, at_once

with lazy():
    from sweephand.server.flow.bulk import carry_on
    from sweephand.server.flow.delivery import backlogs
    from sweephand.server.flow.runs import ecs_tasks

TAKEN_FOR_S = 15.0
"""After this long, half of the function's time, no further letters are taken; the next minute takes the rest."""
READERS = 4
"""Threads that take letters at the same time, ten each, if the first ten are not all."""
MOST_RETURNS = 24
"""How often a message goes back to its queue. Ten receives follow each time, so this takes at least eight hours."""
RETURN_DELAY = timedelta(minutes=15)
"""The wait of a message that goes back again. The first time, it is received at once."""

_at_once = Threads("letter").map


def take(world: World) -> int:
    """Settles the waiting dead letters. Returns how many it took.

    A letter that cannot be settled now stays in the queue and is tried again, until it is 14 days old. Measures the
    backlogs of the applications that the operator has listed, because this is what runs each minute.
    """
    if world.settings.metrics_of:
        backlogs.measure(world)
    deadline = world.clock.monotonic() + TAKEN_FOR_S
    taken, more = _ten(world)
    if not more:
        return taken
    readers = READERS if taken == BATCH_MOST else 1
    return taken + sum(at_once(partial(_rest, world), [deadline] * readers, READERS))


def _rest(world: World, deadline: float) -> int:
    taken, more = 0, True
    while more and world.clock.monotonic() < deadline:
        count, more = _ten(world)
        taken += count
    return taken


def _ten(world: World) -> tuple[int, bool]:
    """Takes up to ten letters. Returns how many there were, and whether to take more now.

    During an outage, the rest stays where it is until the next minute.
    """
    try:
        letters = world.queue.receive_dead()
    except Unavailable as unavailable:
        world.journal.warning("dead letters wait for the queue", reason=unavailable.reason)
        return 0, False
    if not letters:
        return 0, False
    settled, away = batch(world, [delivered(letter, world.clock.now()) for letter in letters])
    if settled:
        world.queue.delete_dead(settled)
    return len(letters), not away


def batch(world: World, messages: Sequence[Delivered]) -> tuple[list[str], bool]:
    """Settles letters or sends their messages back to their queues.

    Returns the receipts of the letters to delete, and whether the table or a queue did not answer.
    """
    rows = _read_ahead(world, messages)
    ends = dict(zip(messages, _at_once(partial(_guarded, world, rows), messages), strict=True))
    back = {message.receipt: end for message, end in ends.items() if isinstance(end, Delivery)}
    unsent = world.queue.send(list(back.values()))
    verdicts = {message.receipt: end for message, end in ends.items() if isinstance(end, Verdict)}
    held = {receipt: end.back_in_s for receipt, end in verdicts.items() if end.back_in_s is not None}
    if held:
        world.queue.postpone_dead(held)
    world.journal.count("DeadLetters", len(messages))
    done = [receipt for receipt, end in verdicts.items() if end.acknowledged]
    done += [receipt for receipt, end in back.items() if end not in unsent]
    return done, bool(unsent) or len(verdicts) + len(back) < len(messages)


def _read_ahead(world: World, messages: Sequence[Delivered]) -> gate.Rows:
    """Reads the rows of all runs in one call. If it fails, each letter reads its own, and a bad row fails no other."""
    pointers = [pointer for message in messages if (pointer := _pointer_of(message)) and pointer.subject is Subject.RUN]
    try:
        return gate.read(world.table, pointers) if len(pointers) > 1 else {}
    except Exception:  # noqa: BLE001 - as for the messages of an executor
        return {}


def _pointer_of(message: Delivered) -> Pointer | None:
    try:
        return decode(message.body)
    except Unreadable:
        return None


def _guarded(world: World, rows: gate.Rows, message: Delivered) -> Verdict | Delivery | None:
    """Returns the verdict on a letter, or its message to send back; None if the table or a queue did not answer."""
    try:
        end = _settled(world, rows, message)
        if isinstance(end, Verdict) and end.acknowledged:
            world.queue.archive(message.body)
    except Unavailable as unavailable:
        world.journal.warning("a dead letter waits for the table or the queue", reason=unavailable.reason)
        return None
    except Exception as unexpected:  # noqa: BLE001 - one letter must not hold up the others
        world.journal.error("a dead letter failed", error=type(unexpected).__name__, where=where(unexpected))
        return AGAIN
    return end


def _settled(world: World, rows: gate.Rows, message: Delivered) -> Verdict | Delivery:
    try:
        pointer = decode(message.body)
    except Unreadable as unreadable:
        if not ecs_tasks.heard(world, message.body):
            world.journal.error("a dead letter cannot be read", reason=str(unreadable))
        return DONE
    if pointer.subject is Subject.OPERATION:
        carry_on.dead(world, pointer)
        return DONE
    if pointer.subject is Subject.UNCLAIMED and pointer.returns < MOST_RETURNS:
        return _back(world, message, pointer, Lane.FAST)
    if pointer.subject is not Subject.RUN:
        return DONE  # its row stays in the index and asks again
    return _of_run(world, rows, message, pointer)


def _of_run(world: World, rows: gate.Rows, message: Delivered, pointer: Pointer) -> Verdict | Delivery:
    """Acts as the executor would, except for a run that may begin: its message goes back, or its wake sends one."""
    context = gate_rows.context_of(world, pointer, rows)
    home = run_action.lane_now(context.job, pointer.kind, Lane.FAST)
    of_run = RunMessage(message, pointer, context, home)
    admitted = admission.admit(pointer, context, world.clock.now(), of_run.first_sent_at)
    if isinstance(admitted, admission.Claim | admission.TakeOver):
        if context.run is not None and context.run.wake_at is not None and context.run.state is not State.HELD:
            return DONE  # the wake of a held run only ends it, so its worker needs the message
        if pointer.returns < MOST_RETURNS:
            return _back(world, message, pointer, home)
        why = f"its message came back from the dead letters {MOST_RETURNS} times"
        admitted = admission.End(State.ERROR, Reason.UNDELIVERED, why)
        world.journal.error("undelivered", tenant=pointer.tenant, job=pointer.job, run=pointer.run)
    return execute.settle_unclaimed(world, of_run, admitted)


def _back(world: World, message: Delivered, pointer: Pointer, home: Lane) -> Delivery:
    members = {"tenant": pointer.tenant, "job": pointer.job, "schedule": pointer.schedule, "run": pointer.run}
    world.journal.warning("a dead letter goes back to its queue", **members, returns=pointer.returns + 1)
    again = replace(pointer, returns=pointer.returns + 1, sent_at=pointer.sent_at or message.sent_at)
    return Delivery(again, world.clock.now() + (RETURN_DELAY if pointer.returns else timedelta(0)), home)
