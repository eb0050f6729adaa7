"""Dispatches a batch of messages: runs go to the executor's steps, all others to their own functions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field

from sweephand.base.errors import NotFound, Unavailable
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.message import Pointer, Subject, Unreadable, decode
from sweephand.domain.schedule import Lane
from sweephand.server.flow.runs import execute
from sweephand.server.flow.verdict import AGAIN, DONE, LEASE_MARGIN_S, Delivered, Verdict, back_in_s, delivered, measure
from sweephand.server.flow.world import World
from sweephand.server.store.runs import gate
from sweephand.server.telemetry import where
from sweephand.server.threads import Threads

with lazy():
    from sweephand.server.flow.calendars import calendars
    from sweephand.server.flow.deletes import clean_up
    from sweephand.server.flow.delivery import unclaimed
    from sweephand.server.flow.flow_keys import waiting_line
    from sweephand.server.flow.jobs import completion, large_changes
    from sweephand.server.flow.lifecycle import ended_jobs, pause_end
    from sweephand.server.flow.runs import ecs_tasks, replay
    from sweephand.server.flow.series import holding, moving
    from sweephand.server.flow.tenants import absence

_threads = Threads("run")
_at_once, _with_more = _threads.map, _threads.work

IN_HAND = 60
"""The most calls of an executor at once, most of which then hang."""
HELD_S = 10
"""How long it receives further messages once it has one that was received before, which waits for the end of all."""


def batch(world: World, lane: Lane, request_id: str, messages: Sequence[Delivered]) -> list[str]:
    """Works on up to ten messages at once. Returns the ids of those that were not acknowledged.

    Messages that were received before run after the others have settled, so that a message that kills the function
    harms no other. The batch's visibility is shortened to the lease, so that the runs of a killed function continue
    after one lease. A message that was not acknowledged then waits longer with each receive, through an outage.

    While a call takes longer than a second, the executor receives further messages, which would wait for its end.
    """
    hand = Hand(world, lane, request_id, world.clock.monotonic() + world.settings.relief_s)
    fresh = hand.pieces(messages)
    if fresh:
        _with_more(hand.work, fresh, hand.more, world.clock.monotonic)
    if hand.again:
        _at_once(hand.work, hand.with_rows(hand.again))
    hand.settle()
    return [message.message_id for message in messages if not hand.verdicts[message.receipt].acknowledged]


Piece = tuple[Delivered, gate.Rows]
"""A message, and the rows that were read for its batch."""


@dataclass
class Hand:
    """The messages that an invocation has in hand. until: when it stops receiving (monotonic seconds).

    messages: all of them, by receipt. again: those that were received before. open: receipts that have yet to be
    settled. verdicts: by receipt. Only `work` runs in several threads.
    """

    world: World
    lane: Lane
    request_id: str
    until: float
    messages: dict[str, Delivered] = field(default_factory=dict)
    again: list[Delivered] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def pieces(self, messages: Sequence[Delivered]) -> list[Piece]:
        """Hides received messages and reads their rows. Returns those received for the first time; keeps the others."""
        hidden_s = self.world.settings.lease_s + LEASE_MARGIN_S
        self.world.queue.postpone(self.lane, {message.receipt: hidden_s for message in messages})
        self.messages |= {message.receipt: message for message in messages}
        self.open |= {message.receipt for message in messages}
        again = [message for message in messages if message.receive_count > 1]
        if again:
            self.until = min(self.until, self.world.clock.monotonic() + HELD_S)
        self.again += again
        return self.with_rows([message for message in messages if message.receive_count == 1])

    def with_rows(self, group: Sequence[Delivered]) -> list[Piece]:
        """Reads the rows of messages that are about to begin."""
        rows = _read_ahead(self.world, group)
        return [(message, rows) for message in group]

    def work(self, piece: Piece) -> None:
        message, rows = piece
        self.verdicts[message.receipt] = _guarded(self.world, self.lane, self.request_id, rows, message)

    def more(self) -> list[Piece]:
        """Settles what has ended, and receives further messages."""
        ended = self.settle()
        self.world.queue.delete(self.lane, [receipt for receipt in ended if self.verdicts[receipt].acknowledged])
        if len(self.open) >= IN_HAND or self.world.clock.monotonic() >= self.until:
            return []
        try:
            letters = self.world.queue.receive(self.lane)
        except Unavailable:
            return []
        return self.pieces([delivered(letter, self.world.clock.now()) for letter in letters]) if letters else []

    def settle(self) -> list[str]:
        """Measures what has ended, and sets when messages come back. Returns the receipts of what has ended."""
        ended = [receipt for receipt in self.open if receipt in self.verdicts]
        self.open.difference_update(ended)
        measure(self.world, [self.verdicts[receipt] for receipt in ended])
        lease_s = self.world.settings.lease_s
        waits = {each: back_in_s(self.verdicts[each], self.messages[each], lease_s) for each in ended}
        if late := {receipt: seconds for receipt, seconds in waits.items() if seconds is not None}:
            self.world.queue.postpone(self.lane, late)
        return ended


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
        case Subject.LEFT:
            unclaimed.send_on(world, pointer)
        case Subject.MOVED:
            moving.publish(world, pointer)
        case Subject.ENDED:
            ended_jobs.wake_up(world, pointer)
