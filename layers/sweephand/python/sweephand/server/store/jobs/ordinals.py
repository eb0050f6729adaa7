"""Ordinals of tenants, for facades with integer ids. Each is assigned once and never reused. Gaps may occur."""

from __future__ import annotations

from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Table
from sweephand.server.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.server.store.dynamo.table import Item
from sweephand.server.store.jobs.directory import NumberItem


class OrdinalItem(Item):
    """A tenant's ordinal, stored twice: with the tenant, and by number in the stack's register."""

    tenant = UnicodeAttribute()
    ordinal = Integer()


def read(table: Table, tenant: str) -> int | None:
    item = table.get(OrdinalItem, keys.tenant(tenant), keys.ORDINAL)
    return None if item is None else item.ordinal


def tenant_of(table: Table, ordinal: int) -> str | None:
    """Reads the stack's register; only for provider-level callers."""
    item = table.get(OrdinalItem, keys.STACK_ORDINALS, keys.ordinal(ordinal))
    return None if item is None else item.tenant


def give(table: Table, tenant: str) -> int:
    """Returns the tenant's ordinal, from 0; assigns one if it has none. Two concurrent calls agree on the first one."""
    number = read(table, tenant)
    if number is not None:
        return number
    ordinal = table.increase(keys.STACK_ORDINALS, keys.LAST, NumberItem.last) - 1
    absent = Item.pk.does_not_exist()
    own = OrdinalItem(pk=keys.tenant(tenant), sk=keys.ORDINAL, tenant=tenant, ordinal=ordinal)
    listed = OrdinalItem(pk=keys.STACK_ORDINALS, sk=keys.ordinal(ordinal), tenant=tenant, ordinal=ordinal)
    done = table.transact([table.put_op("own", own, absent), table.put_op("listed", listed, absent)])
    if not isinstance(done, Cancelled):
        return ordinal
    number = read(table, tenant)
    assert number is not None
    return number
