"""The list of flow keys, and the live state of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from sweephand.domain.flow_keys.circuits import Circuit
from sweephand.domain.flow_keys.flow_keys import FlowKey, Turnstile
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Table
from sweephand.store.flow_keys import circuits
from sweephand.store.flow_keys import flow_key_lines as lines
from sweephand.store.flow_keys import flow_keys as store
from sweephand.store.flow_keys.flow_items import FlowKeyItem

MOST_COUNTED = 10_000
MOST_CIRCUITS = 100


def listed(table: Table, tenant: str, after: str | None, page: int) -> Iterator[FlowKey]:
    """Yields flow keys by name, after `after`."""
    sort = FlowKeyItem.sk.between(keys.flow_key(after or ""), keys.flow_key("\U0010ffff"))
    for row in table.query_all(keys.tenant(tenant), sort, limit=page, consistent=True):
        key = store.key_of(FlowKeyItem.from_raw_data(row))
        if key.name != after:
            yield key


@dataclass(frozen=True)
class Live:
    """The live state of a flow key. waiting: counted up to MOST_COUNTED."""

    stile: Turnstile
    waiting: int
    circuits: list[Circuit]


def live(table: Table, tenant: str, name: str) -> Live:
    stile = store.read_stile(table, tenant, name) or Turnstile(tenant, name)
    shown = list(islice((circuit for _, circuit in circuits.listed(table, tenant, name)), MOST_CIRCUITS))
    return Live(stile, lines.waiting(table, tenant, name, MOST_COUNTED), shown)
