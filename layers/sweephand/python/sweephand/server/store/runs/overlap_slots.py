"""The slot of a schedule whose runs exclude each other. Each write moves it, conditional on what was read.

The item exists only while a run is active: an empty slot has no item.
"""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import SupportsInt

from pynamodb.attributes import Attribute

from sweephand.base.records import dataclass
from sweephand.domain.run import Run, State
from sweephand.domain.runs.overlap import Slot
from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Op, Refused, Table, Written
from sweephand.server.store.dynamo.expressions import Condition, assign, every
from sweephand.server.store.dynamo.table import RunItem, SlotItem
from sweephand.server.store.runs import ledger, run_rows


def read(table: Table, run: Run) -> tuple[Slot, dict[str, Run]]:
    """Reads the slot of the run's schedule, and the other runs in it by uuid, consistently."""
    assert run.schedule_id is not None
    slot = Slot(run.tenant, run.job_id, run.schedule_id)
    slot = _slot_of(slot, table.get(SlotItem, *_key(slot)))
    others = [uuid for uuid in (slot.active, slot.queued) if uuid not in {None, run.uuid}]
    if not others:
        return slot, {}
    pk = keys.runs(run.tenant, run.schedule_id)
    items = table.batch_get([(pk, keys.run(uuid)) for uuid in others if uuid])
    rows = [run_rows.run_of(RunItem.from_raw_data(row)) for row in items.values()]
    return slot, {row.uuid: row for row in rows}


def read_in(refused: Refused, slot: Slot) -> Slot:
    """Returns the slot as a refused move found it. slot: identifies it."""
    return _slot_of(slot, refused.read(SlotItem))


def _slot_of(slot: Slot, item: SlotItem | None) -> Slot:
    return Slot(
        slot.tenant, slot.job_id, slot.schedule_id, item.active if item else None, item.queued if item else None
    )


# Conditions: the named clauses of the protocol


def slot_as_read(slot: Slot) -> Condition:
    """Requires that the slot has the same active run and the same queued run as read, or none."""
    return every(_same(SlotItem.active, slot.active), _same(SlotItem.queued, slot.queued))


STILL_QUEUED: Condition = RunItem.state == State.QUEUED.value


def _same(attribute: Attribute[str], value: str | None) -> Condition:
    return attribute.does_not_exist() if value is None else attribute == value


# Writes


def move(table: Table, before: Slot, after: Slot) -> Written | Refused:
    """Moves the slot, if it is as read."""
    if after.empty:
        return table.delete(*_key(before), slot_as_read(before))
    actions = [assign(SlotItem.active, after.active), assign(SlotItem.queued, after.queued)]
    return table.update(*_key(before), actions, slot_as_read(before))


def _move_op(table: Table, before: Slot, after: Slot) -> Op:
    actions = [assign(SlotItem.active, after.active), assign(SlotItem.queued, after.queued)]
    return table.update_op("slot", *_key(before), actions, slot_as_read(before))


@dataclass(frozen=True)
class Move:
    """A move of a schedule's slot by a run, with its changes of the ledger.

    run: the new state of the run. row: the run as read; None if it has no row. ended: the new states of runs that
    lose their turn, each with its wake. counts: added to the schedule's statistics.
    """

    before: Slot
    after: Slot
    run: Run
    row: Run | None
    ended: tuple[Run, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)


def claim(table: Table, move: Move, *, shards: SupportsInt, lane: Lane) -> Written | Cancelled:
    """Takes the slot, claims the first attempt and ends the runs that lose their turn, in one transaction."""
    if move.row is None:
        run_op = table.put_op("run", run_rows.item_of(move.run, shards=shards, lane=lane, table=table), ledger.ABSENT)
    else:
        lease = ledger.Lease.of(move.run)
        actions = [*ledger.claiming(move.row, lease), assign(RunItem.slotted, value=True)]
        claimable = ledger.claimable(move.row.attempt, lease.taken_at)
        run_op = table.update_op("run", *run_rows.key_of(move.run), actions, claimable)
    ops = [run_op, _move_op(table, move.before, move.after)]
    ops += [ledger.end_from_outside_op(table, f"ended {old.uuid}", old, shards=shards, lane=lane) for old in move.ended]
    late, same = ledger.late_ends(table, move.ended)
    if move.counts or late:
        ops.append(ledger.count_op(table, move.run, {**move.counts, **late}, same))
    return table.transact(ops)


def queue(table: Table, move: Move, *, shards: SupportsInt, lane: Lane) -> Written | Cancelled:
    """Takes the place after the active run and writes the row of the waiting run, in one transaction.

    A run that was written before its message already has its wake.
    """
    if move.row is None:
        run_op = table.put_op("run", run_rows.item_of(move.run, shards=shards, lane=lane, table=table), ledger.ABSENT)
    else:
        actions = [assign(RunItem.slotted, value=True)]
        run_op = table.update_op("run", *run_rows.key_of(move.run), actions, STILL_QUEUED)
    return table.transact([run_op, _move_op(table, move.before, move.after)])


def pass_on(
    table: Table, before: Slot, after: Slot, queued: Run, wake_at: datetime, *, shards: SupportsInt, lane: Lane
) -> Written | Cancelled:
    """Gives the turn to the waiting run, if it is still QUEUED, and wakes it at `wake_at`."""
    actions = run_rows.wake_actions(queued, wake_at, shards=shards, lane=lane)
    return table.transact(
        [
            _move_op(table, before, after),
            table.update_op("queued", *run_rows.key_of(queued), actions, STILL_QUEUED),
        ]
    )


def _key(slot: Slot) -> tuple[str, str]:
    return keys.job(slot.tenant, slot.job_id), keys.slot(slot.schedule_id)
