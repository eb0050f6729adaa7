"""The holders of jobs: disabled tenants and collections, paused flow keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sweephand.base.lazy import lazy
from sweephand.domain.instants import from_ms, from_s
from sweephand.domain.job import Job
from sweephand.domain.jobs.job_state import Held, HeldBy
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.table import CollectionItem, SuspensionItem
from sweephand.server.store.tenants import tenants as store

with lazy():
    from sweephand.server.store.flow_keys import flow_keys

Rows = Mapping[tuple[str, str], dict[str, Any]]


def of_jobs(table: Table, tenant: str, jobs: Iterable[Job]) -> dict[str, Held]:
    """Returns what holds each job, by id; if several things do, the widest. Leaves out jobs that nothing holds.

    Cost: one batched read, and a second one if a collection names a flow key.
    """
    listed = list(jobs)
    collections = {job.collection for job in listed}
    own = {key for job in listed if (key := job.policies.get("flowKey"))}
    rows = _read(table, tenant, collections, own)
    of_collections = {name: _flow_key_of(rows, tenant, name) for name in collections}
    more = {key for key in of_collections.values() if key is not None} - own
    if more:
        rows = {**rows, **_read(table, tenant, (), more)}
    holds = {}
    for job in listed:
        key = job.policies.get("flowKey") or of_collections[job.collection]
        held = _of(rows, tenant, job.collection, key)
        if held is not None:
            holds[job.id] = held
    return holds


def _read(table: Table, tenant: str, collections: Iterable[str], flow_keys: Iterable[str]) -> Rows:
    wanted: list[tuple[str, str]] = [(keys.tenant(tenant), keys.flow_key(name)) for name in flow_keys]
    for name in collections:
        wanted += [(keys.tenant(tenant), keys.collection(name)), (keys.STACK_SWEEP, keys.suspended(tenant, name))]
    wanted.append((keys.STACK_SWEEP, keys.suspended(tenant, None)))
    return table.batch_get(wanted)


def _flow_key_of(rows: Rows, tenant: str, collection: str) -> str | None:
    row = rows.get((keys.tenant(tenant), keys.collection(collection)))
    return None if row is None else store.collection_of(CollectionItem.from_raw_data(row)).flow_key


def _of(rows: Rows, tenant: str, collection: str, flow_key: str | None) -> Held | None:
    candidates: Sequence[tuple[HeldBy, str, datetime | None]] = (
        (HeldBy.TENANT, tenant, _disabled_at(rows, tenant, None)),
        (HeldBy.COLLECTION, collection, _disabled_at(rows, tenant, collection)),
        (HeldBy.FLOW_KEY, flow_key or "", None if flow_key is None else _paused_at(rows, tenant, flow_key)),
    )
    return next((Held(by, name, since) for by, name, since in candidates if since is not None), None)


def _disabled_at(rows: Rows, tenant: str, collection: str | None) -> datetime | None:
    row = rows.get((keys.STACK_SWEEP, keys.suspended(tenant, collection)))
    item = None if row is None else SuspensionItem.from_raw_data(row)
    return None if item is None or item.until is not None else from_s(item.changed_at)


def _paused_at(rows: Rows, tenant: str, flow_key: str) -> datetime | None:
    row = rows.get((keys.tenant(tenant), keys.flow_key(flow_key)))
    item = None if row is None else flow_keys.FlowKeyItem.from_raw_data(row)
    return None if item is None or item.paused_at is None else from_ms(item.paused_at)
