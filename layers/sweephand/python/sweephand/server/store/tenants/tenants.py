"""Tenants and their collections: rows and records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pynamodb.expressions.condition import Condition

from sweephand.base.errors import Conflict, NotFound
from sweephand.base.lazy import lazy
from sweephand.base.sources import Clock
from sweephand.domain.collection import (
    Collection,
    CollectionState,
    Events,
    Home,
    Pace,
    Quota,
    Retention,
    SigningKey,
    Silence,
    Subscription,
    Tenant,
    TenantState,
    Terms,
)
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.server.shared_reads import SharedReads
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Table, Written, if_any
from sweephand.server.store.dynamo.expressions import assign, changes, every
from sweephand.server.store.dynamo.flat_models import TENANT, Codec, Column, named, one_of, to_json
from sweephand.server.store.dynamo.table import AddressItem, CollectionItem, Item, PlacesItem, TenantItem

if TYPE_CHECKING:
    from sweephand.server.store.tenants.counts import Counted

with lazy():
    from sweephand.server.store.tenants import counts, usage

ABSENT: Condition = Item.pk.does_not_exist()


# Tenants


def _applications(text: str) -> dict[str, Subscription]:
    """Reads subscriptions. Each is an instant, as the first version stored it, or an instant and an actor."""
    members = {name: [said] if isinstance(said, int) else said for name, said in json.loads(text).items()}
    return {name: Subscription(from_ms(said[0]), *said[1:]) for name, said in members.items()}


def _applications_text(applications: Mapping[str, Subscription]) -> str:
    """Writes applications sorted by name, so that an unchanged value always has the same text."""
    return to_json(
        {
            name: epoch_ms(each.since) if each.by is None else [epoch_ms(each.since), each.by]
            for name, each in sorted(applications.items())
        }
    )


def _silences(text: str) -> dict[str, Silence]:
    return {
        name: Silence(from_ms(since), from_ms(until), reason, bool(hangs))
        for name, (since, until, reason, hangs) in json.loads(text).items()
    }


def _silences_text(silences: Mapping[str, Silence]) -> str:
    """Writes notes sorted by name, so that an unchanged value always has the same text."""
    return to_json(
        {
            name: [epoch_ms(each.since), epoch_ms(each.until), each.reason, int(each.hangs)]
            for name, each in sorted(silences.items())
        }
    )


_TENANTS = Codec(
    Tenant,
    TenantItem,
    {
        "name": named("tenant"),
        "state": one_of(TenantState),
        "applications": Column(_applications, _applications_text),
        "silences": Column(_silences, _silences_text),
        "watched": Column(frozenset, set),
        "withheld": Column(lambda text: frozenset(text.split()), lambda scopes: " ".join(sorted(scopes))),
    },
    but="pace",
)


def tenant_of(item: TenantItem) -> Tenant:
    """Reads a tenant from its own row; from the register, without applications, purge and off_times."""
    descendants = Pace.descendants if item.descendants is None else item.descendants
    return _TENANTS.read(item, pace=Pace(item.runs_per_minute, descendants))


def _item_of(tenant: Tenant) -> TenantItem:
    """Returns the tenant's own row.

    It contains only the pace that differs from the default, so a new default applies.
    """
    pace = tenant.pace
    return _TENANTS.item(
        (keys.tenant(tenant.name), keys.TENANT),
        tenant,
        runs_per_minute=pace.runs_per_minute,
        descendants=None if pace.descendants == Pace.descendants else pace.descendants,
    )


def read_tenant(table: Table, name: str) -> Tenant | None:
    return if_any(tenant_of, table.get(TenantItem, keys.tenant(name), keys.TENANT))


def leaving(table: Table, name: str) -> Conflict | NotFound:
    """Returns the error for a tenant that refused an addition: it is unknown or being deleted."""
    tenant = read_tenant(table, name)
    return NotFound("no such tenant") if tenant is None else tenant.being_purged()


def tenant_ops(table: Table, tenant: Tenant) -> list[Op]:
    """Returns the operations that create the tenant's own row, if absent, and its row in the stack's register."""
    line = _item_of(replace(tenant, applications={}))
    line.pk, line.sk = keys.STACK_TENANTS, keys.part(tenant.name)
    return [table.put_op("tenant", _item_of(tenant), ABSENT), table.put_op("register", line)]


def change_tenant_ops(table: Table, tenant: Tenant) -> list[Op]:
    """Returns the operations that write the provider's changes to the tenant's row and to the stack's register.

    They fail if the tenant is being purged.
    """
    item, names = _item_of(tenant), "state description runs_per_minute descendants withheld modified_at modified_by"
    return [
        table.update_op("tenant", item.pk, item.sk, changes(item, f"{names} off_times"), _stays()),
        table.update_op(
            "register", keys.STACK_TENANTS, keys.part(tenant.name), changes(item, names), TenantItem.pk.exists()
        ),
    ]


def _stays() -> Condition:
    """Requires that the tenant exists and no purge has begun."""
    return every(TenantItem.pk.exists(), TenantItem.purge.does_not_exist())


def stays_op(table: Table, name: str) -> Op:
    """Returns the guard of a transaction that adds to a tenant. It fails if the tenant is missing or being purged.

    It writes a value that is already there, because no function has the permission to check without writing.
    """
    return table.update_op("tenant", keys.tenant(name), keys.TENANT, [assign(TenantItem.tenant, name)], _stays())


def subscribe_op(table: Table, before: Tenant, after: Tenant) -> Op:
    """Returns the operation that writes only the applications [as read, and the tenant is not being purged]."""
    item, condition = _item_of(after), _stays() & _same_applications(before)
    return table.update_op("tenant", item.pk, item.sk, changes(item, "applications"), condition)


def _same_applications(before: Tenant) -> Condition:
    known = _item_of(before).applications
    return TenantItem.applications == known if known else TenantItem.applications.does_not_exist()


def note_silences(table: Table, before: Tenant, silences: Mapping[str, Silence]) -> Written | Refused:
    """Writes which targets do not answer the tenant's calls [the notes as read, and the tenant exists]."""
    item, known = _item_of(replace(before, silences=silences)), _item_of(before).silences
    same = TenantItem.silences == known if known else TenantItem.silences.does_not_exist()
    return table.update(item.pk, item.sk, changes(item, "silences"), every(TenantItem.pk.exists(), same))


def note_watched(table: Table, tenant: str, application: str, *, watched: bool) -> Written | Refused:
    """Notes whether an application is watched [the tenant exists]. application: the key of its row."""
    change = TenantItem.watched.add if watched else TenantItem.watched.delete
    return table.update(keys.tenant(tenant), keys.TENANT, [change({application})], TenantItem.pk.exists())


def purge_ops(table: Table, before: Tenant, operation_id: str) -> list[Op]:
    """Returns the operations that mark the tenant as purged by this operation [its subscriptions and purge as read]."""
    state = assign(TenantItem.state, TenantState.PURGING.value)
    known = before.purge
    same = TenantItem.purge == known if known else TenantItem.purge.does_not_exist()
    own = every(TenantItem.pk.exists(), same, _same_applications(before))
    key = keys.tenant(before.name), keys.TENANT
    return [
        table.update_op("tenant", *key, [state, assign(TenantItem.purge, operation_id)], own),
        table.update_op("register", keys.STACK_TENANTS, keys.part(before.name), [state], TenantItem.pk.exists()),
    ]


def forget_tenant_ops(table: Table, name: str, operation_id: str) -> list[Op]:
    """Returns the operations that delete the tenant itself, the last step of the purge, if it is still this purge."""
    return [
        table.delete_op("tenant", keys.tenant(name), keys.TENANT, TenantItem.purge == operation_id),
        table.delete_op("register", keys.STACK_TENANTS, keys.part(name)),
    ]


# Collections


Conversion = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def _members(record: Callable[..., Any], names: Mapping[str, str]) -> Conversion:
    """Returns the conversion of a record from and to JSON. names: the record's fields by the members of the JSON."""
    return (
        lambda said: record(**{names[name]: value for name, value in said.items()}),
        lambda one: {name: getattr(one, field) for name, field in names.items() if getattr(one, field) is not None},
    )


_QUOTA = {"maxJobs": "max_jobs", "maxRunsPerJob": "max_runs_per_job", "minIntervalSeconds": "min_interval_s"}
_RETENTION = {"runDays": "run_days", "endedJobDays": "ended_job_days"}
_SETTINGS: Mapping[str, tuple[str, Conversion]] = {
    "quota": ("quota", _members(Quota, _QUOTA)),
    "retention": ("retention", _members(Retention, _RETENTION)),
    "events": ("events", (Events, str)),
    "defaults": ("defaults", (dict, dict)),
    "callbackTimeoutSeconds": ("callback_timeout_s", (int, int)),
    "redirects": ("redirects", (dict, dict)),
    "flowKey": ("flow_key", (str, str)),
    "facade": ("facade", (str, str)),
    "address": ("address", (str, str)),
    "attributes": ("attributes", (dict, dict)),
}
"""The members of the JSON `settings`: the field of a collection, and how it is read and written."""


def _signing(text: str) -> tuple[SigningKey, ...]:
    return tuple(SigningKey(key[0], from_ms(key[1]), *key[2:]) for key in json.loads(text))


def _signing_text(signing: Sequence[SigningKey]) -> str:
    """Writes keys as they were read. A key without a recorded creator has three members."""
    return to_json([[key.id, epoch_ms(key.created_at), key.sealed, *([key.by] if key.by else [])] for key in signing])


_COLLECTIONS = Codec(
    Collection,
    CollectionItem,
    {"tenant": TENANT, "state": one_of(CollectionState), "signing": Column(_signing, _signing_text)},
    but=" ".join(["job_count", *(field for field, _ in _SETTINGS.values())]),
)


def collection_of(item: CollectionItem) -> Collection:
    settings = json.loads(item.settings)
    said = {field: read(settings[name]) for name, (field, (read, _)) in _SETTINGS.items() if name in settings}
    return _COLLECTIONS.read(item, **said)


def _settings_text(collection: Collection) -> str:
    """Writes the settings that differ from the defaults."""
    usual = Collection(collection.tenant, collection.name)
    return to_json(
        {
            name: write(getattr(collection, field))
            for name, (field, (_, write)) in _SETTINGS.items()
            if getattr(collection, field) != getattr(usual, field)
        }
    )


def _row_of(collection: Collection) -> CollectionItem:
    key = keys.tenant(collection.tenant), keys.collection(collection.name)
    return _COLLECTIONS.item(key, collection, settings=_settings_text(collection))


_OF_A_RUN = "events retention signing callback_timeout_s redirects flow_key attributes"
"""The terms of a run that have the same names in its collection."""


def read_terms(table: Table, tenant: str, collection: str) -> Terms:
    """Reads the terms of tenant and collection for a run, in one call. A missing row disables nothing."""
    tenant_key, collection_key = (keys.tenant(tenant), keys.TENANT), (keys.tenant(tenant), keys.collection(collection))
    rows = table.batch_get([tenant_key, collection_key])
    terms, active = Terms(), True
    if tenant_key in rows:
        own = tenant_of(TenantItem.from_raw_data(rows[tenant_key]))
        active = own.state is TenantState.ACTIVE
        terms = Terms(
            enabled=active,
            tenant_active=active,
            purging=own.state is TenantState.PURGING,
            tenant_since=own.created_at,
            withheld=own.withheld,
            pace=own.pace,
            off_times=own.off_times,
            silences=own.silences,
            watched=own.watched,
        )
    if collection_key not in rows:
        return replace(terms, gone=True)
    stored = collection_of(CollectionItem.from_raw_data(rows[collection_key]))
    return replace(
        terms,
        enabled=active and stored.state is CollectionState.ENABLED,
        purging=terms.purging or stored.state is CollectionState.DELETING,
        off_times=" ".join(filter(None, [terms.off_times, stored.off_times])) or None,
        **{name: getattr(stored, name) for name in _OF_A_RUN.split()},
    )


def read_collection(table: Table, tenant: str, name: str) -> Collection | None:
    return if_any(collection_of, table.get(CollectionItem, keys.tenant(tenant), keys.collection(name)))


def read_home(table: Table, tenant: str, name: str) -> Home:
    """Reads a tenant, one of its collections, and its quotas, in one call."""
    own, collection_key, usage_key = (
        (keys.tenant(tenant), sk) for sk in (keys.TENANT, keys.collection(name), keys.USAGE)
    )
    rows = table.batch_get([own, collection_key, usage_key])
    mine, collection_row = rows.get(own), rows.get(collection_key)
    return Home(
        name,
        None if mine is None else tenant_of(TenantItem.from_raw_data(mine)),
        None if collection_row is None else collection_of(CollectionItem.from_raw_data(collection_row)),
        usage.quotas_of(rows.get(usage_key)),
    )


def read_at(table: Table, tenant: str, facade: str, address: str) -> Collection | None:
    """Returns the collection that a facade finds under an address."""
    item = table.get(AddressItem, keys.tenant(tenant), keys.address(facade, address))
    return None if item is None else read_collection(table, tenant, item.collection)


def address_op(table: Table, collection: Collection) -> Op:
    """Returns the operation that gives the collection its address, if no other has it."""
    pk, sk = _address_key(collection)
    return table.put_op("address", AddressItem(pk=pk, sk=sk, collection=collection.name), ABSENT)


def free_address_op(table: Table, collection: Collection) -> Op:
    """Returns the operation that frees the address, if it still leads to this collection."""
    return table.delete_op("address", *_address_key(collection), AddressItem.collection == collection.name)


def _address_key(collection: Collection) -> tuple[str, str]:
    assert collection.address is not None
    return keys.tenant(collection.tenant), keys.address(collection.facade, collection.address)


def read_places(table: Table, tenant: str, facade: str, beginning: str) -> int:
    """Returns how many collections have been given addresses with this beginning so far."""
    item = table.get(PlacesItem, keys.tenant(tenant), keys.places(facade, beginning))
    return 0 if item is None else item.came


def places_op(table: Table, tenant: str, facade: str, beginning: str, came: int) -> Op:
    """Returns the operation that counts one more collection there, if no other was added since `came` was read."""
    item = PlacesItem(pk=keys.tenant(tenant), sk=keys.places(facade, beginning), came=came + 1)
    return table.put_op("places", item, PlacesItem.came == came if came else ABSENT)


def create_collection_ops(table: Table, collection: Collection) -> list[Op]:
    row = table.put_op("collection", _row_of(collection), ABSENT)
    return [row, *counts.begin_ops(table, counted(collection))]


def counted(collection: Collection) -> Counted:
    """Returns the count of the collection's jobs, with its quota."""
    most = {} if collection.quota.max_jobs is None else {"jobs": collection.quota.max_jobs}
    row = keys.collection(collection.name)
    return counts.Counted(collection.tenant, row, collection.revision, most, lasts=True)


def job_counts(table: Table, collections: Sequence[Collection]) -> list[int]:
    """Returns how many jobs each of the collections has."""
    return [each.jobs for each in counts.totals(table, [counted(one) for one in collections])]


def change_collection_op(table: Table, collection: Collection, revision: int) -> Op:
    """Returns the operation that writes a changed collection [the revision as read]."""
    item = _row_of(collection)
    actions = changes(item, "state settings revision modified_at modified_by off_times")
    return table.update_op("collection", item.pk, item.sk, actions, CollectionItem.revision == revision)


def change_signing_op(table: Table, before: Collection, signing: Sequence[SigningKey]) -> Op:
    """Returns the operation that writes only the keys that sign the calls of its jobs, if they are as read."""
    known, item = _row_of(before).signing, _row_of(replace(before, signing=tuple(signing)))
    as_read = CollectionItem.signing == known if known else CollectionItem.signing.does_not_exist()
    condition = CollectionItem.pk.exists() & as_read
    return table.update_op("collection", item.pk, item.sk, changes(item, "signing"), condition)


def delete_collection_ops(table: Table, collection: Collection) -> list[Op]:
    """Returns the operations that delete a collection, if it has no job."""
    row = table.delete_op("collection", keys.tenant(collection.tenant), keys.collection(collection.name))
    return [row, *counts.end_ops(table, counted(collection))]


TERMS_KEPT_S = 2.0
MOST_TERMS = 1_000


class CollectionTerms:
    """A memory of the terms that the executor needs for each run. Safe for threads."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._reads = SharedReads[tuple[str, str], Terms](lambda key: read_terms(table, *key), clock, MOST_TERMS)

    def of(self, tenant: str, collection: str, *, kept_s: float = TERMS_KEPT_S) -> Terms:
        """Returns the terms, at most `kept_s` old. Threads that ask at the same time share one read.

        A collection that no longer exists disables nothing, because its jobs were deleted before it.
        """
        return self._reads.get((tenant, collection), kept_s)

    def forget(self, tenant: str) -> None:
        """Forgets the terms of a tenant's collections, because this process has changed them."""
        self._reads.forget(lambda key: key[0] == tenant)
