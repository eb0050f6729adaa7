"""The key of callback tokens: one per stack, sealed in the table, created by the first process that needs it.

The key is independent of the stack's secret. So executors, which call targets, need no access to that secret, and a
rotation of the secret leaves the tokens of waiting runs valid (decision 0072).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Lock

from sweephand.base.errors import NotFound, Unavailable
from sweephand.base.sources import Chance, Clock
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.server.security.key_service import CALLBACKS, KeyService
from sweephand.server.security.tokens import CallbackKey
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.server.store.dynamo.table import Item

KEPT = timedelta(minutes=5)
SIZE = 32
OWNER = "provider"
"""The namespace of the stack itself in the encryption context."""


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


class CallbackKeys:
    """A reader of the key, which it remembers for 5 minutes. Safe for threads."""

    def __init__(self, table: Table, key_service: KeyService, clock: Clock, chance: Chance) -> None:
        self._table = table
        self._key_service = key_service
        self._clock = clock
        self._chance = chance
        self._known: tuple[datetime, CallbackKey] | None = None
        self._lock = Lock()

    def current(self) -> CallbackKey:
        """Returns the stack's key; creates it if there is none.

        Raises Unavailable if the table or the key service does not answer, or if the row cannot be opened.
        """
        with self._lock:
            now = self._clock.now()
            if self._known is None or not now - KEPT < self._known[0] <= now:
                self._known = now, self._read(now)
            return self._known[1]

    def _read(self, now: datetime) -> CallbackKey:
        stored = read(self._table)
        if stored is None:
            sealed = self._key_service.encrypt(OWNER, CALLBACKS, self._chance.token(SIZE))
            put_first(self._table, sealed, now)
            stored = read(self._table)
            if stored is None:
                raise Unavailable("the key of callback tokens could not be created")
        sealed, made_at = stored
        try:
            return CallbackKey(self._key_service.decrypt(OWNER, CALLBACKS, sealed), made_at)
        except NotFound as wrong:
            raise Unavailable("the key of callback tokens cannot be opened") from wrong
