"""Tenants and their collections: rows and records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pynamodb.expressions.condition import Condition

from sweephand.domain.collection import (
    Collection,
    CollectionState,
    Events,
    Pace,
    Quota,
    Retention,
    SigningKey,
    Subscription,
    Tenant,
    TenantState,
    Terms,
    Usage,
)
from sweephand.domain.instants import epoch_ms, from_ms, from_ms_if_any
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Table
from sweephand.store.dynamo.expressions import add, assign, every
from sweephand.store.dynamo.table import CollectionItem, Item, TenantItem
from sweephand.store.tenants import usage

ABSENT: Condition = Item.pk.does_not_exist()


# Tenants


def tenant_of(item: TenantItem) -> Tenant:
    """Reads a tenant from its own row; from the register, without applications, purge and off_times."""
    applications = json.loads(item.applications) if item.applications else {}
    return Tenant(
        name=item.tenant,
        state=TenantState(item.state),
        description=item.description,
        created_at=from_ms(item.created_at),
        applications={name: _subscription(said) for name, said in applications.items()},
        purge=item.purge,
        pace=pace_of(item),
        withheld=withheld_of(item),
        created_by=item.created_by,
        modified_at=from_ms_if_any(item.modified_at),
        modified_by=item.modified_by,
        off_times=item.off_times,
    )


def withheld_of(item: TenantItem) -> frozenset[str]:
    return frozenset((item.withheld or "").split())


def pace_of(item: TenantItem) -> Pace:
    usual = Pace()
    descendants = usual.descendants if item.descendants is None else item.descendants
    return Pace(item.runs_per_minute, descendants)


def _kept(pace: Pace) -> dict[str, int | None]:
    """Returns the row's attributes: only those that differ from the default, so that a new default reaches others."""
    descendants = None if pace.descendants == Pace.descendants else pace.descendants
    return {"runs_per_minute": pace.runs_per_minute, "descendants": descendants}


def _subscription(said: int | list[Any]) -> Subscription:
    """Reads a subscription from the instant alone, as the first version stored it, or from instant and actor."""
    return Subscription(from_ms(said)) if isinstance(said, int) else Subscription(from_ms(said[0]), said[1])


def _applications_text(tenant: Tenant) -> str | None:
    """Writes applications sorted by name, so that an unchanged value is written the same."""
    found = {
        name: epoch_ms(each.since) if each.by is None else [epoch_ms(each.since), each.by]
        for name, each in sorted(tenant.applications.items())
    }
    return json.dumps(found, separators=(",", ":")) if found else None


def _withheld_text(tenant: Tenant) -> str | None:
    return " ".join(sorted(tenant.withheld)) or None


def read_tenant(table: Table, name: str) -> Tenant | None:
    item = table.get(TenantItem, keys.tenant(name), keys.TENANT)
    return tenant_of(item) if item else None


def tenant_ops(table: Table, tenant: Tenant) -> list[Op]:
    """Creates the tenant's own row, if absent, and its line in the stack's register."""

    def item(pk: str, sk: str, applications: str | None = None) -> TenantItem:
        return TenantItem(
            pk=pk,
            sk=sk,
            tenant=tenant.name,
            state=tenant.state.value,
            description=tenant.description,
            created_at=epoch_ms(tenant.created_at),
            created_by=tenant.created_by,
            withheld=_withheld_text(tenant),
            applications=applications,
            **_kept(tenant.pace),
        )

    own = item(keys.tenant(tenant.name), keys.TENANT, _applications_text(tenant))
    return [
        table.put_op("tenant", own, ABSENT),
        table.put_op("register", item(keys.STACK_TENANTS, keys.part(tenant.name))),
    ]


def change_tenant_ops(table: Table, tenant: Tenant) -> list[Op]:
    """Writes what the provider changes to the tenant's row, unless it is being purged, and to the stack's register."""
    pace = _kept(tenant.pace)
    actions = [
        assign(TenantItem.state, tenant.state.value),
        assign(TenantItem.description, tenant.description),
        assign(TenantItem.runs_per_minute, pace["runs_per_minute"]),
        assign(TenantItem.descendants, pace["descendants"]),
        assign(TenantItem.withheld, _withheld_text(tenant)),
        assign(TenantItem.modified_at, None if tenant.modified_at is None else epoch_ms(tenant.modified_at)),
        assign(TenantItem.modified_by, tenant.modified_by),
    ]
    own = [*actions, assign(TenantItem.off_times, tenant.off_times)]
    return [
        table.update_op("tenant", keys.tenant(tenant.name), keys.TENANT, own, _stays()),
        table.update_op("register", keys.STACK_TENANTS, keys.part(tenant.name), actions, TenantItem.pk.exists()),
    ]


def _stays() -> Condition:
    """Requires that the tenant exists and no purge has begun."""
    return every(TenantItem.pk.exists(), TenantItem.purge.does_not_exist())


def stays_op(table: Table, name: str) -> Op:
    """Guards a transaction that adds to a tenant: fails if the tenant does not exist or is being purged.

    Writes a value that is there already, because no function has the permission to check without writing.
    """
    return table.update_op("tenant", keys.tenant(name), keys.TENANT, [assign(TenantItem.tenant, name)], _stays())


def subscribe_op(table: Table, before: Tenant, after: Tenant) -> Op:
    """Writes only the applications, if they are as read and the tenant is not being purged."""
    actions = [assign(TenantItem.applications, _applications_text(after))]
    condition = _stays() & _same_applications(before)
    return table.update_op("tenant", keys.tenant(after.name), keys.TENANT, actions, condition)


def _same_applications(before: Tenant) -> Condition:
    known = _applications_text(before)
    return TenantItem.applications == known if known else TenantItem.applications.does_not_exist()


def purge_ops(table: Table, before: Tenant, operation_id: str) -> list[Op]:
    """Marks the tenant as purged by this operation, if its applications and an earlier purge are as read."""
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
    """Deletes the tenant itself, as the purge's last step, if it is still this purge."""
    return [
        table.delete_op("tenant", keys.tenant(name), keys.TENANT, TenantItem.purge == operation_id),
        table.delete_op("register", keys.STACK_TENANTS, keys.part(name)),
    ]


# Collections


def collection_of(item: CollectionItem) -> Collection:
    settings = json.loads(item.settings)
    quota, retention = settings.get("quota", {}), settings.get("retention", {})
    return Collection(
        tenant=keys.parts(item.pk)[1],
        name=item.name,
        state=CollectionState(item.state),
        quota=Quota(quota.get("maxJobs"), quota.get("maxRunsPerJob"), quota.get("minIntervalSeconds")),
        retention=Retention(
            retention.get("runDays", Retention.run_days), retention.get("endedJobDays", Retention.ended_job_days)
        ),
        events=Events(settings.get("events", Events.FAILURES)),
        defaults=settings.get("defaults", {}),
        callback_timeout_s=settings.get("callbackTimeoutSeconds"),
        redirects=settings.get("redirects", {}),
        flow_key=settings.get("flowKey"),
        revision=item.revision,
        job_count=item.job_count,
        created_at=from_ms(item.created_at),
        created_by=item.created_by,
        modified_at=from_ms(item.modified_at),
        modified_by=item.modified_by,
        signing=tuple(SigningKey(*_signing(*key)) for key in json.loads(item.signing)) if item.signing else (),
        off_times=item.off_times,
    )


def _signing(key_id: str, created_ms: int, sealed: str, by: str | None = None) -> tuple[str, datetime, str, str | None]:
    return key_id, from_ms(created_ms), sealed, by


def _signing_text(signing: Sequence[SigningKey]) -> str | None:
    """Writes keys as they were read: a key without a recorded creator has three members."""
    found = [[key.id, epoch_ms(key.created_at), key.sealed, *([key.by] if key.by else [])] for key in signing]
    return json.dumps(found, separators=(",", ":")) if found else None


def collection_item(collection: Collection) -> CollectionItem:
    assert collection.created_at is not None
    assert collection.modified_at is not None
    return CollectionItem(
        pk=keys.tenant(collection.tenant),
        sk=keys.collection(collection.name),
        name=collection.name,
        state=collection.state.value,
        settings=_settings_text(collection),
        revision=collection.revision,
        job_count=collection.job_count,
        created_at=epoch_ms(collection.created_at),
        created_by=collection.created_by,
        modified_at=epoch_ms(collection.modified_at),
        modified_by=collection.modified_by,
    )


def _settings_text(collection: Collection) -> str:
    """Writes the settings that differ from the defaults."""
    usual = Collection(collection.tenant, collection.name)
    quota = {
        "maxJobs": collection.quota.max_jobs,
        "maxRunsPerJob": collection.quota.max_runs_per_job,
        "minIntervalSeconds": collection.quota.min_interval_s,
    }
    retention = {"runDays": collection.retention.run_days, "endedJobDays": collection.retention.ended_job_days}
    said: dict[str, Any] = {"quota": {name: value for name, value in quota.items() if value is not None}}
    if collection.retention != usual.retention:
        said["retention"] = retention
    if collection.events is not usual.events:
        said["events"] = collection.events.value
    if collection.defaults:
        said["defaults"] = dict(collection.defaults)
    if collection.callback_timeout_s is not None:
        said["callbackTimeoutSeconds"] = collection.callback_timeout_s
    if collection.redirects:
        said["redirects"] = dict(collection.redirects)
    if collection.flow_key is not None:
        said["flowKey"] = collection.flow_key
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False)


def read_terms(table: Table, tenant: str, collection: str) -> Terms:
    """Reads the terms of tenant and collection for a run, in one call. A missing row disables nothing."""
    tenant_key, collection_key = (keys.tenant(tenant), keys.TENANT), (keys.tenant(tenant), keys.collection(collection))
    rows = table.batch_get([tenant_key, collection_key])
    active, purging, since, pace, found, withheld = True, False, None, Pace(), None, frozenset[str]()
    off: str | None = None
    if tenant_key in rows:
        item = TenantItem.from_raw_data(rows[tenant_key])
        since, pace, off = from_ms(item.created_at), pace_of(item), item.off_times
        withheld = withheld_of(item)
        active, purging = item.state == TenantState.ACTIVE, item.state == TenantState.PURGING
    if collection_key in rows:
        found = collection_of(CollectionItem.from_raw_data(rows[collection_key]))
    if found is None:
        return Terms(active, active, purging, since, withheld, pace=pace, off_times=off)
    return Terms(
        enabled=active and found.state is CollectionState.ENABLED,
        tenant_active=active,
        purging=purging,
        tenant_since=since,
        withheld=withheld,
        events=found.events,
        retention=found.retention,
        signing=found.signing,
        callback_timeout_s=found.callback_timeout_s,
        redirects=found.redirects,
        flow_key=found.flow_key,
        pace=pace,
        off_times=" ".join(filter(None, [off, found.off_times])) or None,
    )


def read_collection(table: Table, tenant: str, name: str) -> Collection | None:
    item = table.get(CollectionItem, keys.tenant(tenant), keys.collection(name))
    return collection_of(item) if item else None


def read_with_usage(table: Table, tenant: str, name: str) -> tuple[Tenant | None, Collection | None, Usage]:
    """Reads a tenant, one of its collections, and its usage in all of them."""
    own, collection_key, usage_key = (
        (keys.tenant(tenant), sk) for sk in (keys.TENANT, keys.collection(name), keys.USAGE)
    )
    rows = table.batch_get([own, collection_key, usage_key])
    mine, there = rows.get(own), rows.get(collection_key)
    return (
        None if mine is None else tenant_of(TenantItem.from_raw_data(mine)),
        None if there is None else collection_of(CollectionItem.from_raw_data(there)),
        usage.usage_of(rows.get(usage_key)),
    )


def put_collection_op(table: Table, collection: Collection) -> Op:
    return table.put_op("collection", collection_item(collection), ABSENT)


def change_collection_op(table: Table, collection: Collection, revision: int) -> Op:
    """Writes all but the job count, which the jobs' transactions own, at the revision that was read."""
    assert collection.modified_at is not None
    actions = [
        assign(CollectionItem.state, collection.state.value),
        assign(CollectionItem.settings, _settings_text(collection)),
        assign(CollectionItem.revision, collection.revision),
        assign(CollectionItem.modified_at, epoch_ms(collection.modified_at)),
        assign(CollectionItem.modified_by, collection.modified_by),
        assign(CollectionItem.off_times, collection.off_times),
    ]
    key = keys.tenant(collection.tenant), keys.collection(collection.name)
    return table.update_op("collection", *key, actions, CollectionItem.revision == revision)


def change_signing_op(table: Table, before: Collection, signing: Sequence[SigningKey]) -> Op:
    """Writes only the keys that sign its jobs' calls, if they are as read."""
    known, wanted = _signing_text(before.signing), _signing_text(signing)
    as_read = CollectionItem.signing == known if known else CollectionItem.signing.does_not_exist()
    key = keys.tenant(before.tenant), keys.collection(before.name)
    action = assign(CollectionItem.signing, wanted)
    return table.update_op("collection", *key, [action], CollectionItem.pk.exists() & as_read)


def count_job_op(table: Table, collection: Collection, step: int) -> Op:
    """Counts one job more or less, if the collection exists and, for more, is below its quota."""
    condition: Condition = CollectionItem.pk.exists()
    if step > 0 and collection.quota.max_jobs is not None:
        condition = condition & (CollectionItem.job_count < collection.quota.max_jobs)
    key = keys.tenant(collection.tenant), keys.collection(collection.name)
    return table.update_op(
        "collection" if step > 0 else "old collection", *key, [add(CollectionItem.job_count, step)], condition
    )


def delete_collection_op(table: Table, collection: Collection) -> Op:
    """Deletes a collection, if it has no job."""
    key = keys.tenant(collection.tenant), keys.collection(collection.name)
    return table.delete_op("collection", *key, CollectionItem.job_count == 0)
