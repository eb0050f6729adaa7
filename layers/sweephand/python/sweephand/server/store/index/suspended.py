"""The stack's list of disabled tenants and collections, in the small partition that each tick reads; and releases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, SupportsInt

from sweephand.base.ids import shard_of
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.occurrences.suspension import Key, Suspension, Suspensions
from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Table, Written
from sweephand.server.store.dynamo.expressions import Condition, assign, every
from sweephand.server.store.dynamo.table import ReleaseItem, ShardsItem, SuspensionItem
from sweephand.server.store.index import newer_zones

if TYPE_CHECKING:
    from sweephand.server.store.index.newer_zones import Look


class Stack(NamedTuple):
    """The rows that each tick reads. shards: their number, 0 if it is not kept yet. looks: by worker."""

    suspensions: Suspensions
    shards: int
    looks: Mapping[int, Look]


def read(table: Table) -> Stack:
    """Reads the list and, from the same partition, the number of shards and the looks. Raises Unavailable."""
    suspensions: dict[Key, Suspension] = {}
    looks: dict[int, Look] = {}
    shards = 0
    for row in table.query_all(keys.STACK_SWEEP, consistent=True):
        if row["sk"]["S"] == keys.SHARDS:
            shards = ShardsItem.from_raw_data(row).shards
            continue
        if row["sk"]["S"].startswith(keys.LOOK):
            worker, looks[worker] = newer_zones.of_row(row)
            continue
        item = SuspensionItem.from_raw_data(row)
        tenant, *collection = keys.parts(item.sk)
        until = None if item.until is None else from_s(item.until)
        suspensions[tenant, collection[0] if collection else None] = Suspension(until)
    return Stack(Suspensions(suspensions), shards, looks)


def begin_ops(table: Table, tenant: str, collection: str | None, now: datetime) -> list[Op]:
    """Returns the operations that disable a tenant or a collection and end a release that is still in progress."""
    item = SuspensionItem(pk=keys.STACK_SWEEP, sk=keys.suspended(tenant, collection), changed_at=epoch_s(now))
    return [
        table.put_op("suspension", item),
        table.delete_op("release", keys.releasing(tenant, collection), keys.release(collection)),
    ]


def end_ops(table: Table, tenant: str, collection: str | None, now: datetime, shards: SupportsInt) -> list[Op]:
    """Returns the operations that enable a tenant or a collection.

    The list notes until when it was disabled, and a row in the next-run index releases the held schedules.
    """
    item = ReleaseItem(
        pk=keys.releasing(tenant, collection),
        sk=keys.release(collection),
        shard=shard_of(keys.suspended(tenant, collection), shards),
        next_run_at=epoch_s(now),
        sweep=str(SweepText(Waits.RELEASE, Lane.FAST)),
        until=epoch_s(now),
    )
    suspension = SuspensionItem(
        pk=keys.STACK_SWEEP, sk=keys.suspended(tenant, collection), changed_at=epoch_s(now), until=epoch_s(now)
    )
    return [table.put_op("suspension", suspension), table.put_op("release", item)]


def forget_ops(table: Table, tenant: str, collection: str | None) -> list[Op]:
    """Returns the operations that delete the rows of a deleted collection or tenant, whatever its state was."""
    return [
        table.delete_op("suspension", keys.STACK_SWEEP, keys.suspended(tenant, collection)),
        table.delete_op("release", keys.releasing(tenant, collection), keys.release(collection)),
    ]


def read_release(table: Table, tenant: str, collection: str | None) -> ReleaseItem | None:
    return table.get(ReleaseItem, keys.releasing(tenant, collection), keys.release(collection))


def cursor_of(item: ReleaseItem) -> tuple[str | None, str | None]:
    """Returns the collection and the name of the job after which a release continues."""
    if item.cursor is None:
        return None, None
    collection, name = json.loads(item.cursor)
    return collection, name


def go_on(
    table: Table, item: ReleaseItem, *, number: int, cursor: tuple[str, str] | None, at: datetime
) -> Written | Refused:
    """Writes the progress of a release, if it is as read. number: its round. at: when its row wakes next."""
    text = None if cursor is None else json.dumps(cursor, ensure_ascii=False)
    actions = [
        assign(ReleaseItem.round, number),
        assign(ReleaseItem.cursor, text),
        assign(ReleaseItem.next_run_at, epoch_s(at)),
    ]
    return table.update(item.pk, item.sk, actions, _as_read(item))


def finish(table: Table, tenant: str, collection: str | None, item: ReleaseItem) -> None:
    """Deletes the release and its entry in the list, if the release is as read and it was not disabled again."""
    same: Condition = SuspensionItem.until == item.until
    table.transact(
        [
            table.delete_op("release", item.pk, item.sk, _as_read(item)),
            table.delete_op("suspension", keys.STACK_SWEEP, keys.suspended(tenant, collection), same),
        ]
    )


def _as_read(item: ReleaseItem) -> Condition:
    cursor: Condition = (
        ReleaseItem.cursor.does_not_exist() if item.cursor is None else ReleaseItem.cursor == item.cursor
    )
    return every(ReleaseItem.until == item.until, ReleaseItem.round == item.round, cursor)
