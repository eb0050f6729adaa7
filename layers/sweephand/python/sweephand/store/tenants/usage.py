"""A tenant's usage, counted in the transactions that create and delete resources, so that quotas hold exactly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pynamodb.expressions.condition import Condition

from sweephand.domain.collection import Usage
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Table
from sweephand.store.dynamo.expressions import add, assign, every
from sweephand.store.dynamo.table import UsageItem

PART = "usage"
"""The name of the part of a transaction that counts usage."""


def usage_of(row: dict[str, Any] | None) -> Usage:
    """Reads usage from a row in DynamoDB's JSON. row: None if nothing was counted yet."""
    if row is None:
        return Usage()
    item = UsageItem.from_raw_data(row)
    return Usage(item.schedules, item.most_schedules, item.jobs, item.most_jobs, item.least_interval_s)


def read(table: Table, tenant: str) -> Usage:
    return read_many(table, [tenant], consistent=True)[tenant]


def read_many(table: Table, tenants: Iterable[str], *, consistent: bool = False) -> dict[str, Usage]:
    """Returns usage by tenant."""
    wanted = {tenant: (keys.tenant(tenant), keys.USAGE) for tenant in tenants}
    rows = table.batch_get(wanted.values(), consistent=consistent)
    return {tenant: usage_of(rows.get(key)) for tenant, key in wanted.items()}


def count_op(table: Table, tenant: str, schedules: int, jobs: int, usage: Usage) -> Op:
    """Returns the operation that adds to the counts of schedules and jobs.

    An increase requires the quotas as read, and room in them.
    """
    conditions: list[Condition] = []
    if schedules > 0 and usage.most_schedules is None:
        conditions.append(UsageItem.most_schedules.does_not_exist())
    elif schedules > 0 and usage.most_schedules is not None:
        room: Condition = UsageItem.schedules <= usage.most_schedules - schedules
        conditions += [UsageItem.most_schedules == usage.most_schedules, room]
    if jobs > 0 and usage.most_jobs is None:
        conditions.append(UsageItem.most_jobs.does_not_exist())
    elif jobs > 0 and usage.most_jobs is not None:
        conditions += [UsageItem.most_jobs == usage.most_jobs, UsageItem.jobs < usage.most_jobs]
    steps = [add(UsageItem.schedules, schedules), add(UsageItem.jobs, jobs)]
    return table.update_op(PART, keys.tenant(tenant), keys.USAGE, steps, every(*conditions) if conditions else None)


def limit_op(table: Table, tenant: str, allowed: Usage) -> Op:
    """Returns the operation that sets the tenant's quotas. Resources above them stay."""
    actions = [
        add(UsageItem.schedules, 0),
        add(UsageItem.jobs, 0),
        assign(UsageItem.most_schedules, allowed.most_schedules),
        assign(UsageItem.most_jobs, allowed.most_jobs),
        assign(UsageItem.least_interval_s, allowed.least_interval_s),
    ]
    return table.update_op("quota", keys.tenant(tenant), keys.USAGE, actions)
