"""The circuits of targets under a flow key: a row for each target that has failed recently."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime

from sweephand.domain.flow_keys.circuits import KEPT, Circuit
from sweephand.domain.instants import epoch_ms, epoch_s
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Refused, Table, Written, if_any
from sweephand.server.store.dynamo.expressions import assign, every
from sweephand.server.store.dynamo.flat_models import Codec, Integer, UnicodeAttribute, of_key
from sweephand.server.store.dynamo.table import Item

_SHOWN_TARGET = 200


class CircuitItem(Item):
    """A target under a flow key that has failed. failures: how many in a row. opened_at, probe_at: set while open."""

    target = UnicodeAttribute()
    failures = Integer(default=0)
    opened_at = Integer(null=True)
    probe_at = Integer(null=True)
    failed_at = Integer(null=True)
    reason = UnicodeAttribute(null=True)


def target_hash(target: str) -> str:
    return hashlib.sha256(target.encode()).hexdigest()[:16]


def _circuit_key(tenant: str, name: str, target: str) -> tuple[str, str]:
    return keys.flow(tenant, name), keys.circuit(target_hash(target))


_CIRCUITS = Codec(Circuit, CircuitItem, {"id": of_key("sk", 1)})
circuit_of = _CIRCUITS.read


def read_circuit(table: Table, tenant: str, name: str, target: str) -> Circuit:
    circuit = if_any(circuit_of, table.get(CircuitItem, *_circuit_key(tenant, name, target)))
    return circuit or Circuit(target)


def listed(table: Table, tenant: str, name: str) -> Iterator[tuple[str, Circuit]]:
    """Yields the hash and the circuit of each target that has failed recently."""
    sort = CircuitItem.sk.startswith(keys.circuit(""))
    for row in table.query_all(keys.flow(tenant, name), sort, consistent=True):
        item = CircuitItem.from_raw_data(row)
        yield keys.parts(item.sk)[1], circuit_of(item)


def count_failure(table: Table, tenant: str, name: str, target: str, reason: str, now: datetime) -> int:
    """Counts a failure.

    Returns how many came in a row. A lost answer may count twice, which opens the circuit early.
    """
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
    """Opens a circuit if it is closed and its row still exists (a success deletes the row)."""
    actions = [assign(CircuitItem.opened_at, epoch_ms(now)), assign(CircuitItem.probe_at, epoch_ms(probe_at))]
    closed = every(CircuitItem.pk.exists(), CircuitItem.opened_at.does_not_exist())
    return table.update(*_circuit_key(tenant, name, target), actions, closed)


def take_probe(
    table: Table, tenant: str, name: str, target: str, now: datetime, probe_at: datetime
) -> Written | Refused:
    """Reserves a probe of an open circuit if one is due; the next one is due at `probe_at`."""
    key = _circuit_key(tenant, name, target)
    actions = [assign(CircuitItem.probe_at, epoch_ms(probe_at))]
    return table.update(*key, actions, CircuitItem.probe_at <= epoch_ms(now))


def close_circuit(table: Table, tenant: str, name: str, target: str) -> Circuit | None:
    """Closes a circuit, because its target answers. Returns the circuit if it was open, perhaps to two callers."""
    key = _circuit_key(tenant, name, target)
    deleted = table.delete(*key, CircuitItem.opened_at.does_not_exist())
    if not isinstance(deleted, Refused):
        return None
    table.delete(*key)
    return if_any(circuit_of, deleted.read(CircuitItem))


def forget_circuits(table: Table, tenant: str, name: str) -> None:
    """Deletes all circuits of a key that no longer has a circuit rule."""
    for target, _ in list(listed(table, tenant, name)):
        table.delete(keys.flow(tenant, name), keys.circuit(target))
