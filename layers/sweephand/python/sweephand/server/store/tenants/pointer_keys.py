"""The key that marks pointers to workers: one per stack, created by the first process that needs it.

The key is stored in plain text. Anybody who can read the table's rows can also write them, so an encrypted key would
protect nothing, and a sweeper would need a call to the key service.
"""

from __future__ import annotations

import base64
from datetime import datetime, timedelta

from sweephand.base.errors import Unavailable
from sweephand.base.sources import Chance, Clock
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.flat_models import UnicodeAttribute
from sweephand.server.store.dynamo.table import Item

KEPT = timedelta(minutes=5)
SIZE = 32


class PointerKeyItem(Item):
    """The key of pointers. key: Base64 of 32 bytes."""

    key = UnicodeAttribute()


class PointerKeys:
    """A reader of the key, which it remembers for 5 minutes. Safe for threads."""

    def __init__(self, table: Table, clock: Clock, chance: Chance) -> None:
        self._table, self._clock, self._chance = table, clock, chance
        self._known: tuple[datetime, bytes] | None = None

    def current(self) -> bytes:
        """Returns the stack's key; creates it if there is none. Raises Unavailable."""
        now, known = self._clock.now(), self._known
        if known is None or not now - KEPT < known[0] <= now:
            # No lock is needed: two threads that read at once find or create the same key.
            self._known = known = now, self._read() or self._created()
        return known[1]

    def _read(self) -> bytes | None:
        item = self._table.get(PointerKeyItem, keys.STACK_KEYS, keys.POINTER_KEY)
        return None if item is None else base64.b64decode(item.key)

    def _created(self) -> bytes:
        """Creates the key. If another process was first, its key counts."""
        fresh = base64.b64encode(self._chance.token(SIZE)).decode()
        item = PointerKeyItem(pk=keys.STACK_KEYS, sk=keys.POINTER_KEY, key=fresh)
        self._table.put(item, PointerKeyItem.pk.does_not_exist())
        stored = self._read()
        if stored is None:
            raise Unavailable("the key of pointers could not be created")
        return stored
