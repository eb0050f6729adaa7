"""The surroundings of jobs: disabled tenants and collections, paused flow keys, and how long runs wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.collection import Collection
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


@dataclass(frozen=True)
class Surroundings:
    """The surroundings of some jobs. held: what holds them, by id; if several things do, the widest.

    callback_timeouts: how long runs wait for their results by default, in seconds, by collection; None for the stack's
    default.
    """

    held: Mapping[str, Held] = field(default_factory=dict)
    callback_timeouts: Mapping[str, int | None] = field(default_factory=dict)


def of_jobs(table: Table, tenant: str, jobs: Iterable[Job]) -> Surroundings:
    """Costs one batched read, and a second one if a collection names a flow key."""
    listed = list(jobs)
    collections = {job.collection for job in listed}
    own = {key for job in listed if (key := job.policies.get("flowKey"))}
    rows = _read(table, tenant, collections, own)
    holds = {name: _collection(rows, tenant, name) for name in collections}
    more = {each.flow_key for each in holds.values() if each is not None and each.flow_key is not None} - own
    if more:
        rows = {**rows, **_read(table, tenant, (), more)}
    held = {}
    for job in listed:
        home = holds[job.collection]
        key = job.policies.get("flowKey") or (None if home is None else home.flow_key)
        by = _of(rows, tenant, job.collection, key)
        if by is not None:
            held[job.id] = by
    return Surroundings(held, {name: each.callback_timeout_s for name, each in holds.items() if each is not None})


def _read(table: Table, tenant: str, collections: Iterable[str], flow_keys: Iterable[str]) -> Rows:
    wanted: list[tuple[str, str]] = [(keys.tenant(tenant), keys.flow_key(name)) for name in flow_keys]
    for name in collections:
        wanted += [(keys.tenant(tenant), keys.collection(name)), (keys.STACK_SWEEP, keys.suspended(tenant, name))]
    wanted.append((keys.STACK_SWEEP, keys.suspended(tenant, None)))
    return table.batch_get(wanted)


def _collection(rows: Rows, tenant: str, name: str) -> Collection | None:
    row = rows.get((keys.tenant(tenant), keys.collection(name)))
    return None if row is None else store.collection_of(CollectionItem.from_raw_data(row))


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
