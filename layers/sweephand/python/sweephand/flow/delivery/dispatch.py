"""Dispatches a batch of messages: runs go to the executor's steps, all others to their own functions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from sweephand.domain.message import Pointer, Subject, Unreadable, decode
from sweephand.domain.schedule import Lane
from sweephand.errors import NotFound, Unavailable
from sweephand.flow.runs import execute
from sweephand.flow.verdict import AGAIN, DONE, LEASE_MARGIN_S, Delivered, Verdict, back_in_s, measure
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.store.runs import gate
from sweephand.telemetry import where
from sweephand.threads import Threads

with lazy():
    from sweephand.flow.calendars import calendars
    from sweephand.flow.deletes import clean_up
    from sweephand.flow.flow_keys import waiting_line
    from sweephand.flow.jobs import completion, large_changes
    from sweephand.flow.lifecycle import ended_jobs, pause_end
    from sweephand.flow.runs import ecs_tasks, replay, unclaimed
    from sweephand.flow.series import holding, moving
    from sweephand.flow.tenants import absence

_at_once = Threads("run").map


def batch(world: World, lane: Lane, request_id: str, messages: Sequence[Delivered]) -> list[str]:
    """Works on up to ten messages at once. Returns the ids of those that were not acknowledged.

    Messages that were received before run after the others have settled, so that a message that kills the function
    harms no other. The batch's visibility is shortened to the lease, so that the runs of a killed function continue
    after one lease. A message that was not acknowledged then waits longer with each receive, through an outage.
    """
    lease_s = world.settings.lease_s
    world.queue.postpone(lane, {message.receipt: lease_s + LEASE_MARGIN_S for message in messages})
    verdicts: dict[str, Verdict] = {}
    for again in (False, True):
        group = [message for message in messages if (message.receive_count > 1) is again]
        if group:
            rows = _read_ahead(world, group)
            results = _at_once(partial(_guarded, world, lane, request_id, rows), group)
            verdicts |= {message.receipt: verdict for message, verdict in zip(group, results, strict=True)}
    measure(world, verdicts.values())
    waits = {each.receipt: back_in_s(verdicts[each.receipt], each, lease_s) for each in messages}
    if late := {receipt: seconds for receipt, seconds in waits.items() if seconds is not None}:
        world.queue.postpone(lane, late)
    return [message.message_id for message in messages if not verdicts[message.receipt].acknowledged]


def _read_ahead(world: World, messages: Sequence[Delivered]) -> gate.Rows:
    """Reads the rows that the gate needs for all due messages in one call.

    A message whose instant is still ahead reads its own rows at that instant, because a change may come before it.
    """
    now = world.clock.now()
    due = []
    for message in messages:
        with suppress(Unreadable):
            pointer = decode(message.body)
            if pointer.subject is Subject.RUN and pointer.instant <= now:
                due.append(pointer)
    try:
        return gate.read(world.table, due) if len(due) > 1 else {}
    except Exception:  # noqa: BLE001 - each then reads its own rows: a bad row fails no other message
        return {}


def _guarded(world: World, lane: Lane, request_id: str, rows: gate.Rows, message: Delivered) -> Verdict:
    try:
        return _one(world, lane, request_id, message, rows)
    except Unavailable as unavailable:
        world.journal.warning("a run waits for the table or the queue", reason=unavailable.reason)
        return AGAIN
    except Exception as unexpected:  # noqa: BLE001 - one message must not fail its batch; it comes back and ends as UNDELIVERED
        world.journal.error("a message failed", error=type(unexpected).__name__, where=where(unexpected))
        return AGAIN


def _one(world: World, lane: Lane, request_id: str, message: Delivered, rows: gate.Rows) -> Verdict:
    try:
        pointer = decode(message.body)
    except Unreadable as unreadable:
        if ecs_tasks.heard(world, message.body):
            return DONE
        world.journal.error("a message cannot be read", reason=str(unreadable))
        return AGAIN
    if pointer.subject is Subject.RUN:
        return execute.carry_out(world, lane, request_id, message, pointer, rows)
    if pointer.subject is Subject.UNCLAIMED:
        unclaimed.look(world, message, pointer)
        return DONE
    with suppress(NotFound):  # deleted since the wake-up was read: nothing is left to do
        _wake_up(world, pointer)
    return DONE


def _wake_up(world: World, pointer: Pointer) -> None:  # noqa: C901 - one line for each subject
    match pointer.subject:
        case Subject.SCHEDULE:
            completion.wake_up(world, pointer)
        case Subject.CLEAN_UP:
            clean_up.clean(world, pointer)
        case Subject.RESUME:
            pause_end.wake_up(world, pointer)
        case Subject.CHANGE:
            large_changes.wake_up(world, pointer)
        case Subject.RELEASE:
            holding.go_on(world, pointer)
        case Subject.REPLAN:
            calendars.go_on(world, pointer)
        case Subject.FLOW:
            waiting_line.wake_up(world, pointer)
        case Subject.CONSUMER:
            replay.wake_up(world, pointer)
        case Subject.WATCH:
            absence.check(world, pointer)
        case Subject.MOVED:
            moving.publish(world, pointer)
        case Subject.ENDED:
            ended_jobs.wake_up(world, pointer)
