"""Flow keys: their owners' rows, the turnstile that calls pass, the line of runs that wait, the circuits of targets.

The turnstile holds a copy of what the key asks, so that a change of the key and a call cannot miss each other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pynamodb.expressions.condition import Condition

from sweephand.domain.circuits import KEPT, Circuit
from sweephand.domain.flow_key_lines import ENDLESS, Patience
from sweephand.domain.flow_keys import CircuitRule, FlowKey, Holds, Place, Rate, Terms, Turnstile
from sweephand.domain.instants import EPOCH, epoch_ms, epoch_s, from_ms, from_s
from sweephand.domain.job import Pause
from sweephand.domain.run import Run, State
from sweephand.domain.schedule import Lane
from sweephand.domain.waiting import SweepText, Waits
from sweephand.ids import shard_of
from sweephand.store import keys, ledger, run_rows
from sweephand.store.conditional import Action, Cancelled, Op, Refused, Table, Written, add, assign, every
from sweephand.store.flow_items import CircuitItem, FlowKeyItem, LineItem, TurnstileItem
from sweephand.store.table import RunItem

ABSENT: Condition = FlowKeyItem.pk.does_not_exist()
PART = "flow key "
"""What the names of a transaction's parts begin with that say who names a key."""
_US = timedelta(microseconds=1)
_SHOWN_TARGET = 200


# The owner's row


def key_of(item: FlowKeyItem) -> FlowKey:
    terms = _terms_of(item.settings)
    return FlowKey(
        tenant=keys.parts(item.pk)[1],
        name=item.name,
        description=item.description,
        rate=terms.rate,
        parallelism=terms.parallelism,
        circuit=terms.circuit,
        pause=Pause(from_ms(item.paused_at), item.note) if item.paused_at is not None else None,
        revision=item.revision,
        users=item.users,
        created_at=from_ms(item.created_at),
        modified_at=from_ms(item.modified_at),
    )


def _terms_of(text: str) -> Terms:
    said = json.loads(text)
    return Terms(
        rate=Rate(*said["rate"]) if "rate" in said else None,
        parallelism=said.get("parallelism"),
        circuit=CircuitRule(*said["circuit"]) if "circuit" in said else None,
        paused=said.get("paused", False),
    )


def _terms_text(terms: Terms) -> str:
    said: dict[str, Any] = {}
    if terms.rate is not None:
        said["rate"] = [terms.rate.limit, terms.rate.period_s]
    if terms.parallelism is not None:
        said["parallelism"] = terms.parallelism
    if terms.circuit is not None:
        said["circuit"] = [terms.circuit.failures, terms.circuit.probe_s]
    if terms.paused:
        said["paused"] = True
    return json.dumps(said, separators=(",", ":"))


def find(table: Table, tenant: str, name: str) -> FlowKey | None:
    item = table.get(FlowKeyItem, keys.tenant(tenant), keys.flow_key(name))
    return key_of(item) if item is not None else None


def create_ops(table: Table, key: FlowKey, turn: str) -> list[Op]:
    """The owner's row [absent], and its turnstile."""
    item = FlowKeyItem(
        pk=keys.tenant(key.tenant),
        sk=keys.flow_key(key.name),
        name=key.name,
        description=key.description,
        settings=_terms_text(key.terms),
        created_at=epoch_ms(key.created_at),
        modified_at=epoch_ms(key.modified_at),
    )
    pk, sk = _stile_key(key.tenant, key.name)
    stile = TurnstileItem(pk=pk, sk=sk, terms=_terms_text(key.terms), turn=turn)
    return [table.put_op("key", item, ABSENT), table.put_op("turnstile", stile)]


def change_ops(table: Table, before: FlowKey, after: FlowKey, turn: str) -> list[Op]:
    """[revision as read]. Who waits is called anew by the new terms."""
    pause = after.pause
    actions = [
        assign(FlowKeyItem.description, after.description),
        assign(FlowKeyItem.settings, _terms_text(after.terms)),
        assign(FlowKeyItem.paused_at, epoch_ms(pause.since) if pause else None),
        assign(FlowKeyItem.note, pause.note if pause else None),
        assign(FlowKeyItem.revision, after.revision),
        assign(FlowKeyItem.modified_at, epoch_ms(after.modified_at)),
    ]
    stile = [
        assign(TurnstileItem.terms, _terms_text(after.terms)),
        assign(TurnstileItem.turn, turn),
        *_from_the_front(),
        # The cursor of another rate may be a week ahead.
        *([] if before.rate == after.rate else [assign(TurnstileItem.next_at, None)]),
    ]
    return [
        table.update_op("key", *_key(after.tenant, after.name), actions, FlowKeyItem.revision == before.revision),
        table.update_op("turnstile", *_stile_key(after.tenant, after.name), stile),
    ]


def delete_ops(table: Table, key: FlowKey) -> list[Op]:
    """[revision as read, nobody names it]"""
    unused = every(FlowKeyItem.revision == key.revision, FlowKeyItem.users == 0)
    return [
        table.delete_op("key", *_key(key.tenant, key.name), unused),
        table.delete_op("turnstile", *_stile_key(key.tenant, key.name)),
    ]


def forget(table: Table, tenant: str, name: str) -> None:
    """What is left under a key that is about to go: circuits, and entries of runs that ended while they waited."""
    pk, sk = _stile_key(tenant, name)
    for row in table.query_all(pk, consistent=True):
        if row["sk"]["S"] != sk:
            table.delete(pk, row["sk"]["S"])


def use_ops(table: Table, tenant: str, before: str | None, after: str | None) -> list[Op]:
    """Parts of the transaction of a job or a collection that names another key than before [the new one is there]."""
    if before == after:
        return []
    ops = []
    if after is not None:
        there: Condition = FlowKeyItem.pk.exists()
        ops.append(table.update_op(PART + after, *_key(tenant, after), [add(FlowKeyItem.users, 1)], there))
    if before is not None:
        one_less = [add(FlowKeyItem.users, -1)]
        ops.append(table.update_op("old flow key", *_key(tenant, before), one_less, FlowKeyItem.pk.exists()))
    return ops


def _key(tenant: str, name: str) -> tuple[str, str]:
    return keys.tenant(tenant), keys.flow_key(name)


# The turnstile


def _stile_key(tenant: str, name: str) -> tuple[str, str]:
    return keys.flow(tenant, name), keys.turnstile(name)


def stile_of(item: TurnstileItem) -> Turnstile:
    _, tenant, _, name = keys.parts(item.pk)
    return Turnstile(
        tenant=tenant,
        name=name,
        terms=_terms_of(item.terms),
        turn=item.turn,
        next_at=_from_us(item.next_at),
        places=_places_of(item.places or ""),
        wake_at=None if item.next_run_at is None else from_s(item.next_run_at),
        look_at=None if item.look_at is None else from_ms(item.look_at),
        called=item.called or "",
        called_to=_from_us(item.called_to),
        mark=item.mark or "",
        mark_at=_from_us(item.mark_at),
        late=tuple((item.late or "").split()),
    )


def read_stile(table: Table, tenant: str, name: str) -> Turnstile | None:
    item = table.get(TurnstileItem, *_stile_key(tenant, name))
    return stile_of(item) if item is not None else None


def stile_in(refused: Refused) -> Turnstile | None:
    """The turnstile that a refused move met."""
    item = refused.read(TurnstileItem)
    return stile_of(item) if item is not None else None


def move(table: Table, before: Turnstile, after: Turnstile, turn: str, *, shards: int) -> Written | Refused:
    """[the turn as read: nobody has moved it since]"""
    actions = [
        assign(TurnstileItem.turn, turn),
        assign(TurnstileItem.next_at, _to_us(after.next_at)),
        assign(TurnstileItem.places, _places_text(after.places)),
        assign(TurnstileItem.called, after.called or None),
        assign(TurnstileItem.called_to, _to_us(after.called_to)),
        assign(TurnstileItem.mark, after.mark or None),
        assign(TurnstileItem.mark_at, _to_us(after.mark_at)),
        assign(TurnstileItem.late, " ".join(after.late) or None),
        assign(TurnstileItem.look_at, None if after.look_at is None else epoch_ms(after.look_at)),
        *_wake_actions(before, after, shards),
    ]
    return table.update(*_stile_key(after.tenant, after.name), actions, TurnstileItem.turn == before.turn)


def _wake_actions(before: Turnstile, after: Turnstile, shards: int) -> list[Action]:
    """Only where it changes: the sweep moves the row on beside us, and the index is written with it."""
    if before.wake_at == after.wake_at:
        return []
    if after.wake_at is None:
        gone = (TurnstileItem.shard, TurnstileItem.sweep, TurnstileItem.next_run_at)
        return [assign(attribute, None) for attribute in gone]
    return [
        assign(TurnstileItem.shard, shard_of(keys.flow(after.tenant, after.name), shards)),
        assign(TurnstileItem.sweep, str(SweepText(Waits.FLOW, Lane.FAST))),
        assign(TurnstileItem.next_run_at, epoch_s(after.wake_at)),
    ]


def call_anew(table: Table, tenant: str, name: str, turn: str) -> None:
    """All who wait may be called again: a circuit has closed."""
    actions = [assign(TurnstileItem.turn, turn), *_from_the_front()]
    table.update(*_stile_key(tenant, name), actions, TurnstileItem.pk.exists())


def _from_the_front() -> list[Action]:
    gone = (
        TurnstileItem.called,
        TurnstileItem.called_to,
        TurnstileItem.mark,
        TurnstileItem.mark_at,
        TurnstileItem.look_at,
        TurnstileItem.late,
    )
    return [assign(attribute, None) for attribute in gone]


def _places_text(places: Mapping[str, Place]) -> str | None:
    return " ".join(f"{who},{epoch_ms(place.until):x},{place.holds}" for who, place in places.items()) or None


def _places_of(text: str) -> dict[str, Place]:
    found = {}
    for each in text.split():
        who, until, holds = each.split(",")
        found[who] = Place(from_ms(int(until, 16)), Holds(holds))
    return found


def _to_ms(instant: datetime | None) -> int | None:
    return None if instant is None else epoch_ms(instant)


def _from_ms(value: int | None) -> datetime | None:
    return None if value is None else from_ms(value)


def _to_us(instant: datetime | None) -> int | None:
    return None if instant is None else (instant - EPOCH) // _US


def _from_us(value: int | None) -> datetime | None:
    return None if value is None else EPOCH + value * _US


# The line


@dataclass(frozen=True)
class Entry:
    """A run in the line. target: the hash of what it calls. patience: as it was when the run joined."""

    order: str
    owner: str
    uuid: str
    target: str
    lane: Lane
    patience: Patience = ENDLESS


def order_of(run: Run) -> str:
    """Its place in the line, by the instant at which it joined."""
    assert run.line_at is not None
    return f"{epoch_ms(run.line_at):013d}#{run.uuid}"


def join(
    table: Table, run: Run, left: Run | None, target: str, lane: Lane, patience: Patience = ENDLESS
) -> Written | Refused:
    """A claimed run waits in the line of its key [own lease]: one transaction.

    run: as its row shall be, with its owner. left: as it stood in the line of another key.
    """
    assert run.flow_key is not None
    assert run.owner is not None
    assert run.line_at is not None
    owner = run.schedule_id or run.job_id
    entry = LineItem(
        pk=keys.flow(run.tenant, run.flow_key),
        sk=keys.line(order_of(run)),
        owner=owner,
        uuid=run.uuid,
        target=target,
        lane=lane.value,
        until=_to_ms(patience.until),
        tries_until=_to_ms(patience.tries_until),
    )
    actions = [
        assign(RunItem.state, run.state.value),
        assign(RunItem.reason, run.reason.value if run.reason else None),
        assign(RunItem.message, run.message),
        assign(RunItem.owner, None),
        assign(RunItem.lease_until, None),
        assign(RunItem.started_at, None if run.started_at is None else epoch_ms(run.started_at)),
        assign(RunItem.first_started_at, None if run.first_started_at is None else epoch_ms(run.first_started_at)),
        assign(RunItem.flow_key, run.flow_key),
        assign(RunItem.line_at, epoch_ms(run.line_at)),
        *run_rows.attention(run),
    ]
    ops = [
        table.update_op("run", *run_rows.key_of(run), actions, ledger.own_lease(run.owner)),
        table.put_op("entry", entry),
    ]
    if left is not None and left.flow_key is not None and left.flow_key != run.flow_key:
        ops.append(table.delete_op("old entry", keys.flow(left.tenant, left.flow_key), keys.line(order_of(left))))
    done = table.transact(ops)
    return done.refused["run"] if isinstance(done, Cancelled) else done


def line(table: Table, stile: Turnstile, behind: str, until: str, most: int) -> list[Entry]:
    """Entries in order, the first ones behind `behind`; until: the last, "" for all."""
    sort = LineItem.sk.between(keys.line(behind + " " if behind else ""), keys.line(until or "~"))
    rows = table.query(keys.flow(stile.tenant, stile.name), sort, limit=most, consistent=True)[0]
    return [_entry_of(LineItem.from_raw_data(row)) for row in rows]


def entries(table: Table, stile: Turnstile, orders: Sequence[str]) -> list[Entry]:
    """Those that are there."""
    pk = keys.flow(stile.tenant, stile.name)
    found = table.batch_get((pk, keys.line(order)) for order in orders) if orders else {}
    return [_entry_of(LineItem.from_raw_data(row)) for row in found.values()]


def _entry_of(item: LineItem) -> Entry:
    return Entry(
        order=item.sk.partition("#")[2],
        owner=item.owner,
        uuid=item.uuid,
        target=item.target,
        lane=Lane(item.lane),
        patience=Patience(_from_ms(item.until), _from_ms(item.tries_until)),
    )


def rows_of(table: Table, tenant: str, entries: Sequence[Entry]) -> dict[str, Run]:
    """The runs' rows, by their entry's order; those that are gone are missing."""
    wanted = {(keys.runs(tenant, entry.owner), keys.run(entry.uuid)): entry.order for entry in entries}
    found = table.batch_get(wanted)
    return {wanted[key]: run_rows.run_of(RunItem.from_raw_data(row)) for key, row in found.items()}


def drop(table: Table, tenant: str, name: str, orders: Iterable[str]) -> None:
    """Entries of runs that wait no longer."""
    for order in orders:
        table.delete(keys.flow(tenant, name), keys.line(order))


def let_go(table: Table, tenant: str, name: str, entry: Entry, now: datetime) -> None:
    """A run has nothing to wait for any more. Should it have left meanwhile, its row tells so of this entry too."""
    item = LineItem(
        pk=keys.flow(tenant, name),
        sk=keys.line(entry.order),
        owner=entry.owner,
        uuid=entry.uuid,
        target=entry.target,
        lane=entry.lane.value,
        until=epoch_ms(now),
    )
    table.put(item)


def waiting(table: Table, tenant: str, name: str, most: int) -> int:
    """How many stand in the line, counted up to `most`."""
    rows = table.query_all(keys.flow(tenant, name), LineItem.sk.startswith(keys.line("")), consistent=True)
    return sum(1 for _, _ in zip(range(most), rows, strict=False))


# The circuits of its targets


def target_hash(target: str) -> str:
    return hashlib.sha256(target.encode()).hexdigest()[:16]


def _circuit_key(tenant: str, name: str, target: str) -> tuple[str, str]:
    return keys.flow(tenant, name), keys.circuit(target_hash(target))


def circuit_of(item: CircuitItem) -> Circuit:
    def instant(value: int | None) -> datetime | None:
        return None if value is None else from_ms(value)

    return Circuit(
        target=item.target,
        failures=item.failures,
        opened_at=instant(item.opened_at),
        probe_at=instant(item.probe_at),
        failed_at=instant(item.failed_at),
        reason=item.reason,
        id=keys.parts(item.sk)[1],
    )


def read_circuit(table: Table, tenant: str, name: str, target: str) -> Circuit:
    item = table.get(CircuitItem, *_circuit_key(tenant, name, target))
    return circuit_of(item) if item is not None else Circuit(target)


def circuits(table: Table, tenant: str, name: str) -> Iterator[tuple[str, Circuit]]:
    """Of all targets that have failed lately: the hash of each, and its circuit."""
    sort = CircuitItem.sk.startswith(keys.circuit(""))
    for row in table.query_all(keys.flow(tenant, name), sort, consistent=True):
        item = CircuitItem.from_raw_data(row)
        yield keys.parts(item.sk)[1], circuit_of(item)


def count_failure(table: Table, tenant: str, name: str, target: str, reason: str, now: datetime) -> int:
    """One more in a row. Returns how many: a lost answer may count one twice, which opens it a little early."""
    also = [
        assign(CircuitItem.target, target[:_SHOWN_TARGET]),
        assign(CircuitItem.failed_at, epoch_ms(now)),
        assign(CircuitItem.reason, reason),
        assign(CircuitItem.expires_at, epoch_s(now + KEPT)),
    ]
    return table.increase(*_circuit_key(tenant, name, target), CircuitItem.failures, 1, also)


def open_circuit(
    table: Table, tenant: str, name: str, target: str, now: datetime, probe_at: datetime
) -> Written | Refused:
    """[it is closed, and there: nobody has closed it since]"""
    actions = [assign(CircuitItem.opened_at, epoch_ms(now)), assign(CircuitItem.probe_at, epoch_ms(probe_at))]
    closed = every(CircuitItem.pk.exists(), CircuitItem.opened_at.does_not_exist())
    return table.update(*_circuit_key(tenant, name, target), actions, closed)


def take_probe(
    table: Table, tenant: str, name: str, target: str, now: datetime, probe_at: datetime
) -> Written | Refused:
    """[it is open, and may be tried]: one call tries it, the next one at `probe_at`."""
    key = _circuit_key(tenant, name, target)
    actions = [assign(CircuitItem.probe_at, epoch_ms(probe_at))]
    return table.update(*key, actions, CircuitItem.probe_at <= epoch_ms(now))


def close_circuit(table: Table, tenant: str, name: str, target: str) -> Circuit | None:
    """Its target answers: it has failed no more. Returns it if it was open; two at once may both be told so."""
    key = _circuit_key(tenant, name, target)
    met = table.delete(*key, CircuitItem.opened_at.does_not_exist())
    if not isinstance(met, Refused):
        return None
    table.delete(*key)
    there = met.read(CircuitItem)
    return None if there is None else circuit_of(there)


def forget_circuits(table: Table, tenant: str, name: str) -> None:
    """The key asks for none any more."""
    for target, _ in list(circuits(table, tenant, name)):
        table.delete(keys.flow(tenant, name), keys.circuit(target))


def still_queued(run: Run | None, entry: Entry) -> bool:
    """The row is the truth: an entry that it does not bear out is left over."""
    return run is not None and run.in_line and order_of(run) == entry.order


def at_work(run: Run | None) -> bool:
    """It has been called, or is trying: its entry goes when it has passed, or stays."""
    return run is not None and run.state is State.TRIGGERED
