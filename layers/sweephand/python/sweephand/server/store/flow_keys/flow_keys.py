"""Flow keys: the row that the owner sets, and the turnstile that calls pass.

The turnstile has a copy of the key's terms, so a call cannot miss a change of the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, SupportsInt

from sweephand.base.ids import shard_of
from sweephand.base.lazy import lazy
from sweephand.domain.flow_keys.flow_keys import CircuitRule, FlowKey, Holds, Place, Rate, Terms, Turnstile
from sweephand.domain.instants import EPOCH, epoch_ms, epoch_s, from_ms
from sweephand.domain.job import Pause
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Table, Written, if_any
from sweephand.server.store.dynamo.expressions import Action, Condition, assign, changes, removal
from sweephand.server.store.dynamo.flat_models import (
    SECONDS,
    TENANT,
    Codec,
    Column,
    Integer,
    UnicodeAttribute,
    named,
    of_key,
)
from sweephand.server.store.dynamo.table import Item

with lazy():
    from sweephand.server.store.tenants import counts

PART = "flow key "
"""The prefix of a transaction's part that counts a job or collection that names a key."""
_US = timedelta(microseconds=1)


# The owner's row


class FlowKeyItem(Item):
    """A flow key as its owner set it. settings: JSON, see _terms_text. users: what version 0.1 has counted here."""

    name = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    settings = UnicodeAttribute()
    paused_at = Integer(null=True)
    note = UnicodeAttribute(null=True)
    revision = Integer(default=1)
    users = Integer(null=True)
    created_at = Integer()
    created_by = UnicodeAttribute(null=True)
    modified_at = Integer()
    modified_by = UnicodeAttribute(null=True)


ABSENT: Condition = FlowKeyItem.pk.does_not_exist()
_KEYS = Codec(FlowKey, FlowKeyItem, {"tenant": TENANT}, but="rate parallelism circuit resting pause users")


def key_of(item: FlowKeyItem) -> FlowKey:
    said = json.loads(item.settings)
    terms = _terms_of(said)
    return _KEYS.read(
        item,
        rate=terms.rate,
        parallelism=terms.parallelism,
        circuit=terms.circuit,
        resting=CircuitRule(*said["resting"]) if "resting" in said else None,
        pause=Pause(from_ms(item.paused_at), item.note) if item.paused_at is not None else None,
        users=item.users or 0,
    )


def _key_item(key: FlowKey) -> FlowKeyItem:
    return _KEYS.item(
        _key(key.tenant, key.name),
        key,
        settings=_terms_text(key.terms, key.resting),
        paused_at=epoch_ms(key.pause.since) if key.pause else None,
        note=key.pause.note if key.pause else None,
    )


def _terms_of(said: Mapping[str, Any]) -> Terms:
    return Terms(
        rate=Rate(*said["rate"]) if "rate" in said else None,
        parallelism=said.get("parallelism"),
        circuit=CircuitRule(*said["circuit"]) if "circuit" in said else None,
        paused=said.get("paused", False),
    )


def _terms_text(terms: Terms, resting: CircuitRule | None = None) -> str:
    """Writes the terms for the turnstile or, with `resting`, for the owner's row."""
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
    """Reads a flow key, all but the number of its users.

    If it is of version 0.1, moves this number into the rows that count them.
    """
    item = table.get(FlowKeyItem, *_key(tenant, name))
    if item is None or item.users is None:
        return if_any(key_of, item)
    moved = table.update_op(
        "head", item.pk, item.sk, [assign(FlowKeyItem.users, None)], FlowKeyItem.users == item.users
    )
    counts.adopt(table, _counted(tenant, name), moved, item.users)
    return replace(key_of(item), users=0)


def with_users(table: Table, flow_keys: Sequence[FlowKey]) -> list[FlowKey]:
    """Returns the flow keys with the numbers of their users: 16 read units for each."""
    totals = counts.totals(table, [_counted(each.tenant, each.name) for each in flow_keys])
    return [replace(each, users=each.users + users.jobs) for each, users in zip(flow_keys, totals, strict=True)]


def _counted(tenant: str, name: str) -> counts.Counted:
    """Returns the count of the jobs and collections that name a key."""
    return counts.Counted(tenant, keys.flow_key(name), lasts=True)


def create_ops(table: Table, key: FlowKey, turn: str) -> list[Op]:
    """Returns the operations that create the owner's row, if absent, its turnstile and the count of its users."""
    pk, sk = _turnstile_key(key.tenant, key.name)
    turnstile = TurnstileItem(pk=pk, sk=sk, terms=_terms_text(key.terms), turn=turn)
    users = counts.begin_ops(table, _counted(key.tenant, key.name))
    return [table.put_op("key", _key_item(key), ABSENT), table.put_op("turnstile", turnstile), *users]


def change_ops(table: Table, before: FlowKey, after: FlowKey, turn: str) -> list[Op]:
    """Returns the operations that change the key [the revision as read].

    Waiting runs are called under the new terms.
    """
    actions = changes(_key_item(after), "description settings paused_at note revision modified_at modified_by")
    turnstile = [
        assign(TurnstileItem.terms, _terms_text(after.terms)),
        assign(TurnstileItem.turn, turn),
        *removal(TurnstileItem, _FRONT),
        # The cursor of another rate may be a week ahead.
        *([] if before.rate == after.rate else [assign(TurnstileItem.next_at, None)]),
    ]
    return [
        table.update_op("key", *_key(after.tenant, after.name), actions, FlowKeyItem.revision == before.revision),
        table.update_op("turnstile", *_turnstile_key(after.tenant, after.name), turnstile),
    ]


def delete_ops(table: Table, key: FlowKey) -> list[Op]:
    """Returns the operations that delete the key [the revision as read, no users]."""
    return [
        table.delete_op("key", *_key(key.tenant, key.name), FlowKeyItem.revision == key.revision),
        *counts.end_ops(table, _counted(key.tenant, key.name)),
        table.delete_op("turnstile", *_turnstile_key(key.tenant, key.name)),
    ]


def forget(table: Table, tenant: str, name: str) -> None:
    """Deletes the other rows of a key: circuits, and entries of runs that ended while they waited."""
    pk, sk = _turnstile_key(tenant, name)
    for row in table.query_all(pk, consistent=True):
        if row["sk"]["S"] != sk:
            table.delete(pk, row["sk"]["S"])


def use_ops(table: Table, tenant: str, before: str | None, after: str | None, number: int = 0) -> list[Op]:
    """Returns the parts that count a change of the key that a job or collection names, if the new key exists.

    number: of the job.
    """
    ops = []
    if after is not None:
        ops.append(counts.count_op(table, PART + after, _counted(tenant, after), number, counts.Need(1)))
    if before is not None:
        left = replace(_counted(tenant, before), lasts=False)
        ops.append(counts.count_op(table, "old flow key", left, number, counts.Need(-1)))
    return ops


def _key(tenant: str, name: str) -> tuple[str, str]:
    return keys.tenant(tenant), keys.flow_key(name)


# The turnstile


def _turnstile_key(tenant: str, name: str) -> tuple[str, str]:
    return keys.flow(tenant, name), keys.turnstile(name)


class TurnstileItem(Item):
    """The turnstile that every call under a flow key passes. terms: its rules, JSON. turn: replaced by every move.

    places: packed; which run holds one until when. next_at, called_to, mark_at: epoch microseconds. look_at: epoch ms.
    shard, sweep and next_run_at: set only while a run may wait in the line.
    """

    terms = UnicodeAttribute()
    turn = UnicodeAttribute()
    next_at = Integer(null=True)
    places = UnicodeAttribute(null=True)
    called = UnicodeAttribute(null=True)
    called_to = Integer(null=True)
    mark = UnicodeAttribute(null=True)
    mark_at = Integer(null=True)
    late = UnicodeAttribute(null=True)
    look_at = Integer(null=True)
    shard = Integer(null=True)
    sweep = UnicodeAttribute(null=True)
    next_run_at = Integer(null=True)


def _places_of(text: str) -> dict[str, Place]:
    each = (place.split(",") for place in text.split())
    return {who: Place(from_ms(int(until, 16)), Holds(holds)) for who, until, holds in each}


def _places_text(places: Mapping[str, Place]) -> str:
    return " ".join(f"{who},{epoch_ms(place.until):x},{place.holds}" for who, place in places.items())


_MICROSECONDS = Column(lambda value: EPOCH + value * _US, lambda instant: (instant - EPOCH) // _US)
_STILES = Codec(
    Turnstile,
    TurnstileItem,
    {
        "tenant": TENANT,
        "name": of_key("pk", 3),
        "terms": Column(lambda text: _terms_of(json.loads(text)), _terms_text),
        "places": Column(_places_of, _places_text),
        "late": Column(lambda text: tuple(text.split()), " ".join),
        "wake_at": named("next_run_at", SECONDS),
        **dict.fromkeys(("next_at", "called_to", "mark_at"), _MICROSECONDS),
    },
)
_FRONT = "called called_to mark mark_at look_at late"
"""The attributes of a position in the line; without them, all waiting runs are called again."""


def read_stile(table: Table, tenant: str, name: str) -> Turnstile | None:
    return if_any(_STILES.read, table.get(TurnstileItem, *_turnstile_key(tenant, name)))


def stile_in(refused: Refused) -> Turnstile | None:
    """Returns the turnstile as a refused move found it."""
    return if_any(_STILES.read, refused.read(TurnstileItem))


def move(table: Table, before: Turnstile, after: Turnstile, turn: str, *, shards: SupportsInt) -> Written | Refused:
    """Moves the turnstile if nobody has moved it since it was read."""
    key = _turnstile_key(after.tenant, after.name)
    moved = _STILES.item(key, replace(after, turn=turn))
    actions = [*changes(moved, f"turn next_at places {_FRONT}"), *_wake_actions(before, after, shards)]
    return table.update(*key, actions, TurnstileItem.turn == before.turn)


def _wake_actions(before: Turnstile, after: Turnstile, shards: SupportsInt) -> list[Action]:
    """Returns a change of the wake, if any: the sweep also moves the row, and each write costs one to the index."""
    if before.wake_at == after.wake_at:
        return []
    if after.wake_at is None:
        return removal(TurnstileItem, "shard sweep next_run_at")
    return [
        assign(TurnstileItem.shard, shard_of(keys.flow(after.tenant, after.name), shards)),
        assign(TurnstileItem.sweep, str(SweepText(Waits.FLOW, Lane.FAST))),
        assign(TurnstileItem.next_run_at, epoch_s(after.wake_at)),
    ]


def call_all_again(table: Table, tenant: str, name: str, turn: str) -> None:
    """Makes the line call all waiting runs again, because a circuit has closed."""
    actions = [assign(TurnstileItem.turn, turn), *removal(TurnstileItem, _FRONT)]
    table.update(*_turnstile_key(tenant, name), actions, TurnstileItem.pk.exists())
