"""Flow keys: the row that the owner sets, and the turnstile that calls pass.

The turnstile has a copy of the key's terms, so a call cannot miss a change of the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pynamodb.expressions.condition import Condition

from sweephand.domain.flow_keys.flow_keys import CircuitRule, FlowKey, Holds, Place, Rate, Terms, Turnstile
from sweephand.domain.instants import EPOCH, epoch_ms, epoch_s, from_ms, from_ms_if_any, from_s_if_any, ms_if_any
from sweephand.domain.job import Pause
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import Lane
from sweephand.ids import shard_of
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Refused, Table, Written
from sweephand.store.dynamo.expressions import Action, add, assign, every
from sweephand.store.flow_keys.flow_items import FlowKeyItem, TurnstileItem

ABSENT: Condition = FlowKeyItem.pk.does_not_exist()
PART = "flow key "
"""The prefix of a transaction's part that counts a job or collection that names a key."""
_US = timedelta(microseconds=1)


# The owner's row


def key_of(item: FlowKeyItem) -> FlowKey:
    said = json.loads(item.settings)
    terms = _terms_of(said)
    return FlowKey(
        tenant=keys.parts(item.pk)[1],
        name=item.name,
        description=item.description,
        rate=terms.rate,
        parallelism=terms.parallelism,
        circuit=terms.circuit,
        resting=CircuitRule(*said["resting"]) if "resting" in said else None,
        pause=Pause(from_ms(item.paused_at), item.note) if item.paused_at is not None else None,
        revision=item.revision,
        users=item.users,
        created_at=from_ms(item.created_at),
        modified_at=from_ms(item.modified_at),
        created_by=item.created_by,
        modified_by=item.modified_by,
    )


def _terms_of(said: Mapping[str, Any]) -> Terms:
    return Terms(
        rate=Rate(*said["rate"]) if "rate" in said else None,
        parallelism=said.get("parallelism"),
        circuit=CircuitRule(*said["circuit"]) if "circuit" in said else None,
        paused=said.get("paused", False),
    )


def _terms_text(terms: Terms, resting: CircuitRule | None = None) -> str:
    """Writes the terms for the turnstile; with `resting` for the owner's row."""
    said: dict[str, Any] = {} if resting is None else {"resting": [resting.failures, resting.probe_s]}
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
    """Creates the owner's row, if absent, and its turnstile."""
    item = FlowKeyItem(
        pk=keys.tenant(key.tenant),
        sk=keys.flow_key(key.name),
        name=key.name,
        description=key.description,
        settings=_terms_text(key.terms, key.resting),
        created_at=epoch_ms(key.created_at),
        created_by=key.created_by,
        modified_at=epoch_ms(key.modified_at),
    )
    pk, sk = _stile_key(key.tenant, key.name)
    stile = TurnstileItem(pk=pk, sk=sk, terms=_terms_text(key.terms), turn=turn)
    return [table.put_op("key", item, ABSENT), table.put_op("turnstile", stile)]


def change_ops(table: Table, before: FlowKey, after: FlowKey, turn: str) -> list[Op]:
    """Changes the key at the revision that was read. Waiting runs are called again under the new terms."""
    pause = after.pause
    actions = [
        assign(FlowKeyItem.description, after.description),
        assign(FlowKeyItem.settings, _terms_text(after.terms, after.resting)),
        assign(FlowKeyItem.paused_at, epoch_ms(pause.since) if pause else None),
        assign(FlowKeyItem.note, pause.note if pause else None),
        assign(FlowKeyItem.revision, after.revision),
        assign(FlowKeyItem.modified_at, epoch_ms(after.modified_at)),
        assign(FlowKeyItem.modified_by, after.modified_by),
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
    """Deletes the key at the revision that was read, if nothing names it."""
    unused = every(FlowKeyItem.revision == key.revision, FlowKeyItem.users == 0)
    return [
        table.delete_op("key", *_key(key.tenant, key.name), unused),
        table.delete_op("turnstile", *_stile_key(key.tenant, key.name)),
    ]


def forget(table: Table, tenant: str, name: str) -> None:
    """Deletes the other rows of a key: circuits, and entries of runs that ended while they waited."""
    pk, sk = _stile_key(tenant, name)
    for row in table.query_all(pk, consistent=True):
        if row["sk"]["S"] != sk:
            table.delete(pk, row["sk"]["S"])


def use_ops(table: Table, tenant: str, before: str | None, after: str | None) -> list[Op]:
    """Returns the parts that count a change of the key that a job or collection names, if the new key exists."""
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
        terms=_terms_of(json.loads(item.terms)),
        turn=item.turn,
        next_at=_from_us(item.next_at),
        places=_places_of(item.places or ""),
        wake_at=from_s_if_any(item.next_run_at),
        look_at=from_ms_if_any(item.look_at),
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
    """Returns the turnstile that a refused move met."""
    item = refused.read(TurnstileItem)
    return stile_of(item) if item is not None else None


def move(table: Table, before: Turnstile, after: Turnstile, turn: str, *, shards: int) -> Written | Refused:
    """Moves the turnstile if nobody has moved it since it was read."""
    actions = [
        assign(TurnstileItem.turn, turn),
        assign(TurnstileItem.next_at, _to_us(after.next_at)),
        assign(TurnstileItem.places, _places_text(after.places)),
        assign(TurnstileItem.called, after.called or None),
        assign(TurnstileItem.called_to, _to_us(after.called_to)),
        assign(TurnstileItem.mark, after.mark or None),
        assign(TurnstileItem.mark_at, _to_us(after.mark_at)),
        assign(TurnstileItem.late, " ".join(after.late) or None),
        assign(TurnstileItem.look_at, ms_if_any(after.look_at)),
        *_wake_actions(before, after, shards),
    ]
    return table.update(*_stile_key(after.tenant, after.name), actions, TurnstileItem.turn == before.turn)


def _wake_actions(before: Turnstile, after: Turnstile, shards: int) -> list[Action]:
    """Returns a change of the wake, if any: the sweep also moves the row, and each write costs one of the index."""
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
    """Lets all waiting runs be called again, because a circuit has closed."""
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


def _to_us(instant: datetime | None) -> int | None:
    return None if instant is None else (instant - EPOCH) // _US


def _from_us(value: int | None) -> datetime | None:
    return None if value is None else EPOCH + value * _US
