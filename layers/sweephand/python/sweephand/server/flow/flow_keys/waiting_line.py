"""The line of runs that wait under a flow key: calls those whose turn it is and removes entries left over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sweephand.domain.flow_keys import flow_key_lines, flow_keys
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.run import Run
from sweephand.domain.runs import admission
from sweephand.domain.schedule import Lane
from sweephand.server.flow.concurrency import Moved, until_unmoved
from sweephand.server.flow.flow_keys import turnstiles
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo.conditional import Refused
from sweephand.server.store.flow_keys import circuits
from sweephand.server.store.flow_keys import flow_key_lines as lines
from sweephand.server.store.flow_keys import flow_keys as store
from sweephand.server.store.runs import gate, ledger

PAGE = 100
PAGES = 5
MOST_SEEN = 5_000


def wake_up(world: World, pointer: Pointer) -> None:
    """Acts on the key's row in the index, or on a message for its line."""
    call_next(world, pointer.tenant, pointer.run)


@until_unmoved("calls of this line", 10, wait_s=0.005)
def call_next(world: World, tenant: str, name: str) -> None:
    """Calls the runs that have a turn soon, each for the instant of its turn.

    If two processes call at once, the one whose write is refused reads again. Raises Unavailable.
    """
    turnstile = store.read_stile(world.table, tenant, name)
    if turnstile is None or turnstile.wake_at is None:
        return
    now = world.clock.now()
    shut = _open_circuits(world, turnstile)
    if flow_key_lines.wakes(turnstile, now):
        _call_hopeless(world, turnstile, shut, now)
    elif turnstile.terms.paused:
        return
    entries: Entries = {}
    if turnstile.terms.paused:
        calls = flow_key_lines.Calls(flow_key_lines.rest(turnstile, now))
    else:
        entries, line = _line(world, turnstile, shut, now)
        calls = flow_key_lines.call(turnstile, line, shut, now)
    if not entries and not lines.line(world.table, turnstile, "", "", 1):
        calls = flow_key_lines.Calls(flow_keys.empty(turnstile))
    written = store.move(world.table, turnstile, calls.turnstile, turnstiles.new_turn(world), shards=world.shards)
    if isinstance(written, Refused):
        raise Moved
    _send(world, turnstile, entries, calls)


def _call_hopeless(world: World, turnstile: flow_keys.Turnstile, shut: dict[str, datetime], now: datetime) -> None:
    """Calls the runs that wait in vain, wherever they stand in the line.

    Their time is over, their job was deleted, or it no longer names this key. They take no turn: the delivery of each
    run decides how it ends.
    """
    entries = lines.line(world.table, turnstile, "", "", MOST_SEEN)
    leaving = _leaving(world, turnstile, entries)
    over, unwanted = [], []
    for entry in entries:
        if entry.patience.over_at(now, shut=entry.target in shut) is not None:
            over.append(entry)
        elif entry.owner in leaving:
            unwanted.append(entry)
    for entry in unwanted[: PAGE * PAGES]:
        lines.end_patience(world.table, turnstile.tenant, turnstile.name, entry, now)
    waiting = _still_waiting(world, turnstile, [*over, *unwanted][: PAGE * PAGES])
    pointers = [Delivery(ledger.pointer_to(run), now, entry.lane) for entry, run in waiting.values()]
    unsent = world.queue.send(pointers)
    if unsent:
        world.journal.warning("runs that wait under a flow key in vain are called again", left=len(unsent))


def _leaving(world: World, turnstile: flow_keys.Turnstile, entries: Sequence[lines.Entry]) -> set[str]:
    """Returns the owners whose runs no longer belong under this key. The first run of each owner decides."""
    first = list({entry.owner: entry for entry in reversed(entries)}.values())[-PAGE * PAGES :]
    waiting = _still_waiting(world, turnstile, first).values()
    pointers = {entry.owner: ledger.pointer_to(run) for entry, run in waiting}
    known = gate.read(world.table, pointers.values())
    leaving = set()
    for owner, pointer in pointers.items():
        context = gate.read_context(world.table, world.terms, pointer, known)
        gone = context.job is None or (pointer.schedule is not None and context.schedule is None)
        if gone or admission.flow_key_of(pointer.kind, context) != turnstile.name:
            leaving.add(owner)
    return leaving


Entries = dict[str, tuple[lines.Entry, Run]]
"""Entries and their runs, by order."""


def _still_waiting(world: World, turnstile: flow_keys.Turnstile, entries: Sequence[lines.Entry]) -> Entries:
    """Returns the entries whose runs still wait, in the given order. Removes the others."""
    rows = lines.rows_of(world.table, turnstile.tenant, entries)
    waiting = {
        entry.order: (entry, rows[entry.order]) for entry in entries if lines.still_queued(rows.get(entry.order), entry)
    }
    gone = [entry.order for entry in entries if entry.order not in waiting and not lines.at_work(rows.get(entry.order))]
    lines.drop(world.table, turnstile.tenant, turnstile.name, gone)
    return waiting


def _open_circuits(world: World, turnstile: flow_keys.Turnstile) -> dict[str, datetime]:
    """Returns the targets whose circuits are open, each with the instant from which a call may try it again."""
    if turnstile.terms.circuit is None:
        return {}
    listed = circuits.listed(world.table, turnstile.tenant, turnstile.name)
    return {target: each.probe_at for target, each in listed if each.opened_at and each.probe_at}


def _line(
    world: World, turnstile: flow_keys.Turnstile, shut: dict[str, datetime], now: datetime
) -> tuple[Entries, flow_key_lines.Line]:
    """Returns the entries to consider, with their runs. Removes entries whose run no longer waits."""
    before: list[lines.Entry] = []
    if flow_key_lines.mark_is_over(turnstile, now) and turnstile.mark:
        before = lines.line(world.table, turnstile, "", turnstile.mark, PAGE)
    if turnstile.called and any(probe_at <= now for probe_at in shut.values()):
        passed = lines.line(world.table, turnstile, "", turnstile.called, PAGE * PAGES)
        before += _first_to_try(passed, shut, now)
    by_order = {entry.order: entry for entry in (*before, *lines.entries(world.table, turnstile, turnstile.late))}
    before = [by_order[order] for order in sorted(by_order)]
    unpassed = lines.line(world.table, turnstile, turnstile.called, "", PAGE * PAGES)
    entries = _still_waiting(world, turnstile, [*before, *unpassed])
    again = tuple(entry for entry in before if entry.order in entries)
    fresh = tuple(entry for entry in unpassed if entry.order in entries)
    return entries, flow_key_lines.Line(again, fresh, more=len(unpassed) == PAGE * PAGES)


def _first_to_try(entries: list[lines.Entry], shut: dict[str, datetime], now: datetime) -> list[lines.Entry]:
    """Returns the first entry for each target with an open circuit, and all entries whose time is over."""
    soon = now + flow_key_lines.COMES_LATE
    first: dict[str, lines.Entry] = {}
    over = []
    for entry in entries:
        if entry.target not in shut:
            continue
        if entry.patience.over_at(soon, shut=True) is not None:
            over.append(entry)
        else:
            first.setdefault(entry.target, entry)
    return sorted((*first.values(), *over), key=lambda entry: entry.order)


def _send(world: World, turnstile: flow_keys.Turnstile, entries: Entries, calls: flow_key_lines.Calls) -> None:
    """Sends the calls. A message that could not be sent counts as lost: its run is called again."""
    deliveries = []
    for called in calls.called:
        entry, run = entries[called.order]
        deliveries.append(Delivery(ledger.pointer_to(run), called.at, entry.lane))
    if calls.check_at is not None:
        wake_up = pointer(turnstile.tenant, turnstile.name, calls.check_at)
        deliveries.append(Delivery(wake_up, calls.check_at, Lane.FAST))
    unsent = world.queue.send(deliveries)
    if unsent:
        world.journal.warning("runs that wait under a flow key are called again", left=len(unsent))


def pointer(tenant: str, name: str, at: datetime) -> Pointer:
    """Returns the pointer that makes an executor check a key's line."""
    return Pointer(tenant, name, None, name, at, subject=Subject.FLOW)
