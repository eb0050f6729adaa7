"""What a tenant has: counted in the transactions that make and delete it, so that its quota holds exactly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pynamodb.expressions.condition import Condition

from sweephand.domain.collection import Usage
from sweephand.store import keys
from sweephand.store.conditional import Op, Table
from sweephand.store.expressions import add, assign, every
from sweephand.store.table import UsageItem

PART = "usage"
"""What the part of a transaction is called that counts."""


def usage_of(row: dict[str, Any] | None) -> Usage:
    """row: in DynamoDB's JSON; None: nothing was counted yet."""
    if row is None:
        return Usage()
    item = UsageItem.from_raw_data(row)
    return Usage(item.schedules, item.most_schedules)


def read(table: Table, tenant: str) -> Usage:
    return read_many(table, [tenant], consistent=True)[tenant]


def read_many(table: Table, tenants: Iterable[str], *, consistent: bool = False) -> dict[str, Usage]:
    """By tenant."""
    wanted = {tenant: (keys.tenant(tenant), keys.USAGE) for tenant in tenants}
    rows = table.batch_get(wanted.values(), consistent=consistent)
    return {tenant: usage_of(rows.get(key)) for tenant, key in wanted.items()}


def count_op(table: Table, tenant: str, step: int, seen: Usage) -> Op:
    """So many schedules more or less. More: [the quota as it was seen, and not exceeded]."""
    condition: Condition | None = None
    if step > 0 and seen.most_schedules is None:
        condition = UsageItem.most_schedules.does_not_exist()
    elif step > 0 and seen.most_schedules is not None:
        room: Condition = UsageItem.schedules <= seen.most_schedules - step
        condition = every(UsageItem.most_schedules == seen.most_schedules, room)
    steps = [add(UsageItem.schedules, step)]
    return table.update_op(PART, keys.tenant(tenant), keys.USAGE, steps, condition)


def limit_op(table: Table, tenant: str, most: int | None) -> Op:
    """From now on the tenant may have so many; what it has stays. None: as many as it likes."""
    actions = [add(UsageItem.schedules, 0), assign(UsageItem.most_schedules, most)]
    return table.update_op("quota", keys.tenant(tenant), keys.USAGE, actions)
