"""A tenant's quotas, and how many jobs and schedules it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sweephand.domain.collection import Usage
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Table
from sweephand.server.store.dynamo.expressions import add, assign
from sweephand.server.store.dynamo.table import QuotaItem
from sweephand.server.store.tenants import counts
from sweephand.server.store.tenants.counts import Counted

PART = "usage"
"""The name of the part of a transaction that counts usage."""


def quotas_of(row: dict[str, Any] | None) -> Usage:
    """Reads quotas from a row in DynamoDB's JSON, without the counts. row: None if no quota was ever set."""
    if row is None:
        return Usage()
    item = QuotaItem.from_raw_data(row)
    return Usage(0, item.most_schedules, 0, item.most_jobs, item.least_interval_s, item.revision or 0)


def read_quotas(table: Table, tenant: str) -> Usage:
    key = keys.tenant(tenant), keys.USAGE
    return quotas_of(table.batch_get([key]).get(key))


def read_many(table: Table, tenants: Sequence[str]) -> dict[str, Usage]:
    """Returns usage and quotas by tenant: 17 read units for each."""
    places = {tenant: (keys.tenant(tenant), keys.USAGE) for tenant in tenants}
    rows = table.batch_get(places.values())
    quotas_of_each = {tenant: quotas_of(rows.get(key)) for tenant, key in places.items()}
    numbers = counts.totals(table, [counted(tenant, quotas) for tenant, quotas in quotas_of_each.items()])
    return {
        tenant: replace(quotas, jobs=counted_need.jobs, schedules=counted_need.schedules)
        for (tenant, quotas), counted_need in zip(quotas_of_each.items(), numbers, strict=True)
    }


def read(table: Table, tenant: str) -> Usage:
    return read_many(table, [tenant])[tenant]


def counted(tenant: str, quotas: Usage) -> Counted:
    limits = {"jobs": quotas.most_jobs, "schedules": quotas.most_schedules}
    most = {name: limit for name, limit in limits.items() if limit is not None}
    return Counted(tenant, keys.USAGE, quotas.revision, most)


def limit_op(table: Table, tenant: str, allowed: Usage) -> Op:
    """Returns the operation that sets the tenant's quotas. Resources above them stay. Call `counts.void` afterwards."""
    actions = [
        add(QuotaItem.revision, 1),
        assign(QuotaItem.most_schedules, allowed.most_schedules),
        assign(QuotaItem.most_jobs, allowed.most_jobs),
        assign(QuotaItem.least_interval_s, allowed.least_interval_s),
    ]
    return table.update_op("quota", keys.tenant(tenant), keys.USAGE, actions)
