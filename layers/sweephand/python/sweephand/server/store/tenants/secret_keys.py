"""The rows of the keys that a tenant's secrets are sealed to: one for each year in which a secret was written."""

from __future__ import annotations

from datetime import datetime

from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.server.store.dynamo.table import Item
from sweephand.server.store.tenants import tenants


class SecretKeyItem(Item):
    """A key pair. public: Base64. sealed: the private key, encrypted by the key service."""

    public = UnicodeAttribute()
    sealed = UnicodeAttribute()
    created_at = Integer()


@dataclass(frozen=True)
class SecretKey:
    """A key pair of a tenant; see SecretKeyItem."""

    public: str
    sealed: str
    created_at: datetime


def read(table: Table, tenant: str, at: datetime) -> SecretKey | None:
    """Returns the key of the year of `at`, or None if there is none."""
    item = table.get(SecretKeyItem, keys.tenant(tenant), _sort_key(at))
    return None if item is None else SecretKey(item.public, item.sealed, from_ms(item.created_at))


def put_first(table: Table, tenant: str, key: SecretKey) -> None:
    """Writes the key of its year if there is none and the tenant stays. If another process was first, its key stays."""
    item = SecretKeyItem(
        pk=keys.tenant(tenant),
        sk=_sort_key(key.created_at),
        public=key.public,
        sealed=key.sealed,
        created_at=epoch_ms(key.created_at),
    )
    table.transact([table.put_op("key", item, SecretKeyItem.pk.does_not_exist()), tenants.stays_op(table, tenant)])


def _sort_key(at: datetime) -> str:
    return keys.secret_key(str(at.year))
