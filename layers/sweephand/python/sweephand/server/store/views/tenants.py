"""Lists of tenants, collections and credentials; the lag of the sweep and the findings of the last audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.collection import Collection, Silence, Tenant, Usage
from sweephand.domain.instants import EPOCH
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table, if_any
from sweephand.server.store.dynamo.flat_models import Codec, Column, named
from sweephand.server.store.dynamo.table import AddressItem, CollectionItem, CredentialItem, Item, TenantItem
from sweephand.server.store.index import next_run_index
from sweephand.server.store.tenants import credentials as stored
from sweephand.server.store.tenants import tenants as store

if TYPE_CHECKING:
    from sweephand.domain.absence import Watched
    from sweephand.domain.application import Application
    from sweephand.server.store.tenants.audits import LastAudit as LastAudit  # noqa: PLC0414 - shown by the facade

with lazy():
    from sweephand.server import threads
    from sweephand.server.store.consumers import consumers as consumer_rows
    from sweephand.server.store.tenants import applications as application_rows
    from sweephand.server.store.tenants import audits, usage, watches


@dataclass(frozen=True)
class Listed:
    """A credential without its hashes. created_by, rotated_by: client ids; None for the service, or if not recorded."""

    tenant: str | None
    id: str
    name: str | None
    scopes: tuple[str, ...]
    created_at: datetime
    created_by: str | None = None
    rotated_at: datetime | None = None
    rotated_by: str | None = None
    former_until: datetime | None = None


AT_ONCE = 16
"""Shards that one request asks at a time."""
_LISTED = Codec(
    Listed,
    CredentialItem,
    {"id": named("credential_id"), "scopes": Column(lambda text: tuple(text.split()), " ".join)},
)


def tenants(table: Table, after: str | None, page: int) -> Iterator[Tenant]:
    """Yields all tenants by name, after `after`, from the stack's register, which only provider-level code reads."""
    sort = TenantItem.sk > keys.part(after) if after is not None else None
    for row in table.query_all(keys.STACK_TENANTS, sort, limit=page, consistent=True):
        yield store.tenant_of(TenantItem.from_raw_data(row))


def silences(table: Table, tenant: str) -> Mapping[str, Silence]:
    """Returns the notes of targets that do not answer the tenant's calls, by host or address."""
    tenant_row = store.read_tenant(table, tenant)
    return {} if tenant_row is None else tenant_row.silences


def usage_of(table: Table, tenant: str) -> Usage:
    return usage.read(table, tenant)


def usage_of_many(table: Table, tenants: Sequence[str]) -> dict[str, Usage]:
    """Returns usage by tenant, for one page of a list."""
    return usage.read_many(table, tenants)


def callback_timeout(table: Table, tenant: str, collection: str) -> int | None:
    """Returns the default callback timeout of a collection, in seconds; None for the stack's default."""
    stored = store.read_collection(table, tenant, collection)
    return None if stored is None else stored.callback_timeout_s


def collections(table: Table, tenant: str, after: str | None, page: int) -> Iterator[Collection]:
    """Yields a tenant's collections by name, after `after`."""
    items = table.listed(CollectionItem, keys.tenant(tenant), keys.collection, after, page)
    yield from map(store.collection_of, items)


def collection_at(table: Table, tenant: str, facade: str, address: str) -> Collection | None:
    """Returns the collection that a facade finds under an address."""
    return store.read_at(table, tenant, facade, address)


def addresses_at(table: Table, tenant: str, facade: str, beginning: str) -> dict[str, str]:
    """Returns the names of a facade's collections by their addresses, for addresses with this beginning."""
    prefix = keys.address(facade, beginning)
    rows = table.query_all(keys.tenant(tenant), AddressItem.sk.startswith(prefix), consistent=True)
    return {keys.parts(row["sk"]["S"])[2]: row["collection"]["S"] for row in rows}


def collections_at(table: Table, tenant: str, facade: str, beginning: str) -> list[Collection]:
    """Returns the collections of a facade whose addresses have this beginning, by address."""
    return collections_named(table, tenant, addresses_at(table, tenant, facade, beginning).values())


def collections_named(table: Table, tenant: str, names: Iterable[str]) -> list[Collection]:
    """Returns those of these collections that exist, in order."""
    places = [(keys.tenant(tenant), keys.collection(name)) for name in names]
    rows = table.batch_get(places)
    return [store.collection_of(CollectionItem.from_raw_data(rows[key])) for key in places if key in rows]


def job_counts(table: Table, collections: Sequence[Collection]) -> list[int]:
    """Returns how many jobs each of these collections has: 16 read units for each."""
    return store.job_counts(table, collections)


def with_job_counts(table: Table, collections: Sequence[Collection]) -> list[Collection]:
    """Returns the collections as answers show them. Cost: as `job_counts`."""
    numbers = job_counts(table, collections)
    return [replace(each, job_count=jobs) for each, jobs in zip(collections, numbers, strict=True)]


def credentials(table: Table, tenant: str | None, after: str | None, page: int) -> Iterator[Listed]:
    pk = stored.credential_key(tenant, "")[0]
    yield from map(_LISTED.read, table.listed(CredentialItem, pk, keys.credential, after, page))


def credential(table: Table, tenant: str | None, credential_id: str) -> Listed | None:
    return if_any(_LISTED.read, table.get(CredentialItem, *stored.credential_key(tenant, credential_id)))


def last_audit(table: Table) -> LastAudit | None:
    return audits.read(table)


def applications(table: Table, tenant: str) -> Iterator[Application]:
    """Yields the tenant's applications by name and version; there are at most a hundred."""
    yield from application_rows.of_tenant(table, tenant)


def away(table: Table, most: int) -> list[Watched]:
    """Returns applications, consumers and targets of all tenants that are away."""
    watched = [_watched(row) for row in watches.listed_away(table, most)]
    return [each for each in watched if each.away_at is not None]


def watched(table: Table, tenant: str, sk: str) -> Watched | None:
    """Returns an application, consumer or target by the key of its row."""
    model, read = _kind_of(sk)
    return if_any(read, table.get(model, keys.tenant(tenant), sk))


def _watched(row: Mapping[str, Any]) -> Watched:
    model, read = _kind_of(row["sk"]["S"])
    return read(model.from_raw_data(row))


def _kind_of(sk: str) -> tuple[type[Item], Callable[[Any], Watched]]:
    kinds: Mapping[str, tuple[type[Item], Callable[[Any], Watched]]] = {
        keys.APPLICATION: (application_rows.ApplicationItem, application_rows.application_of),
        keys.CONSUMER: (consumer_rows.ConsumerItem, consumer_rows.consumer_of),
        keys.TARGET: (watches.TargetItem, watches.target_of),
    }
    return kinds[keys.parts(sk)[0]]


def audited(table: Table, shards: int, now: datetime) -> tuple[datetime | None, int]:
    """Returns the instant after which all schedules were compared with the ledger; None if some never were.

    Returns with it about how many were last compared more than three days ago. Costs one read.
    """
    rounds = audits.rounds(table)
    since = min((rounds.get(shard, audits.Round(shard)).since for shard in range(shards)), default=EPOCH)
    return (None if since == EPOCH else since), audits.overdue(rounds.values(), now)


def oldest_due_of(table: Table, tenant: str, shards: int, now: datetime) -> datetime | None:
    """Returns the earliest due instant of a tenant that no sweep has sent. Costs half a read unit per shard."""
    oldest = threads.at_once(lambda shard: next_run_index.oldest_of(table, shard, tenant, now), range(shards), AT_ONCE)
    return min((at for at in oldest if at is not None), default=None)


def oldest_due(table: Table, shards: int) -> datetime | None:
    """Returns the earliest instant in the next-run index."""
    oldest = threads.at_once(lambda shard: next_run_index.oldest(table, shard), range(shards), AT_ONCE)
    return min((at for at in oldest if at is not None), default=None)
