"""Busy partitions of the index `attention`, spread over 32, because one takes at most 1,000 writes a second.

A partition is a tenant's day or a consumer. Its sort key grows with time, so DynamoDB does not split it. A process that
has written a hundred entries of a partition spreads its further ones. It first notes the partition in a row of the
tenant, which every list reads: so a list of a partition that is not busy stays one query.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from threading import Lock
from typing import Any

from sweephand.base.errors import Unavailable
from sweephand.base.ids import shard_of
from sweephand.base.lazy import lazy
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.expressions import Condition
from sweephand.server.store.dynamo.flat_models import UnicodeSetAttribute
from sweephand.server.store.dynamo.table import ATTENTION, AttentionItem, Item

with lazy():
    from sweephand.server import threads

WAYS = 32
"""Each bears 500 runs a second that wait and then succeed, which are two writes each."""
BUSY = 100
REMEMBERED = 1_000
AT_ONCE = 16


class SpreadItem(Item):
    """A tenant's partitions that are spread."""

    partitions = UnicodeSetAttribute(null=True)


_entries: Counter[str] = Counter()
"""How many entries of each partition this process has written."""
_noted: set[str] = set()
_lock = Lock()


def place(table: Table, partition: str, uuid: str) -> str:
    """Returns the partition for the entry of a run: `partition`, or one of those over which it is spread."""
    with _lock:
        if len(_entries) >= REMEMBERED and partition not in _entries:
            forget()
        _entries[partition] += 1
        is_busy = _entries[partition] > BUSY
    if not is_busy or not _is_noted(table, partition):
        return partition
    return _part(partition, shard_of(uuid, WAYS))


def forget() -> None:
    """Forgets what this process has written."""
    _entries.clear()
    _noted.clear()


def _is_noted(table: Table, partition: str) -> bool:
    """Notes that a partition is spread. Returns False if the table does not answer; the next entry tries again."""
    if partition not in _noted:
        try:
            table.update(*_key(keys.parts(partition)[1]), [SpreadItem.partitions.add({partition})])
        except Unavailable:
            return False
        _noted.add(partition)
    return True


def _part(partition: str, number: int) -> str:
    return f"{partition}#{number:02d}"


def _key(tenant: str) -> tuple[str, str]:
    return keys.tenant(tenant), keys.SPREAD


def partitions(table: Table, tenant: str) -> frozenset[str]:
    """Returns the tenant's partitions that are spread. Read them before their entries."""
    item = table.get(SpreadItem, *_key(tenant))
    return frozenset(item.partitions or ()) if item is not None else frozenset()


def entries(
    table: Table,
    partition: str,
    spread: frozenset[str],
    sort: Condition | None = None,
    *,
    forward: bool = False,
    limit: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Yields the entries of a partition in order, as Table.query_all does.

    spread: the partitions that are spread. One of them costs 33 queries at once.
    """
    places = [partition]
    if partition in spread:
        places += [_part(partition, number) for number in range(WAYS)]
        limit = limit and max(2, 2 * limit // len(places))
    lists = [
        table.query_all(
            each, sort, index=ATTENTION, partition=AttentionItem.attention_day, forward=forward, limit=limit
        )
        for each in places
    ]
    if len(lists) == 1:
        yield from lists[0]
        return
    firsts = threads.at_once(lambda rows: list(islice(rows, 1)), lists, AT_ONCE)
    begun = [chain(first, rest) for first, rest in zip(firsts, lists, strict=True)]
    yield from heapq.merge(*begun, key=lambda entry: int(entry["attention_at"]["N"]), reverse=not forward)
