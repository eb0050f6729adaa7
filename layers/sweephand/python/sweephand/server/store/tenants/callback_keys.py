"""The row of the stack's callback key."""

from __future__ import annotations

from datetime import datetime

from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.server.store.dynamo.table import Item


class CallbackKeyItem(Item):
    """The key of callback tokens. sealed: 32 bytes, encrypted by the key service."""

    sealed = UnicodeAttribute()
    created_at = Integer()


def read(table: Table) -> tuple[str, datetime] | None:
    """Returns the sealed key and when it was created; None before the first one."""
    item = table.get(CallbackKeyItem, keys.STACK_KEYS, keys.CALLBACK_KEY)
    return None if item is None else (item.sealed, from_ms(item.created_at))


def put_first(table: Table, sealed: str, now: datetime) -> None:
    """Writes the key if there is none. If another process was first, its key stays."""
    item = CallbackKeyItem(pk=keys.STACK_KEYS, sk=keys.CALLBACK_KEY, sealed=sealed, created_at=epoch_ms(now))
    table.put(item, CallbackKeyItem.pk.does_not_exist())
