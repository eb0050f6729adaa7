"""A cache of the settings of collections and tenants, which the executor needs for each run. It keeps them for 2 s."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from sweephand.domain.collection import Terms
from sweephand.sources import Clock
from sweephand.store.dynamo.conditional import Table
from sweephand.store.tenants import tenants

KEPT_S = 2.0
REMEMBERED = 1_000
READERS = 64
WAIT_S = 1.0
"""How long to wait for another thread's read. If the table does not answer, ten threads must not wait in sequence."""


class CollectionTerms:
    """A cache of terms. Safe for threads."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], tuple[float, Terms]] = OrderedDict()
        self._lock = Lock()
        self._reading = [Lock() for _ in range(READERS)]

    def of(self, tenant: str, collection: str, *, kept_s: float = KEPT_S) -> Terms:
        """Returns the terms, at most `kept_s` old. Threads that ask at the same time share one read.

        A collection that no longer exists disables nothing, because its jobs were deleted before it.
        """
        key = tenant, collection
        known = self._kept(key, kept_s)
        if known is not None:
            return known
        reading = self._reading[hash(key) % READERS]
        mine = reading.acquire(timeout=WAIT_S)
        try:
            # Another thread may have read it meanwhile.
            known = self._kept(key, kept_s)
            return known if known is not None else self._read(key)
        finally:
            if mine:
                reading.release()

    def forget(self, tenant: str) -> None:
        """Forgets the terms of a tenant's collections, because this process has changed them."""
        with self._lock:
            for key in [key for key in self._known if key[0] == tenant]:
                del self._known[key]

    def _kept(self, key: tuple[str, str], kept_s: float) -> Terms | None:
        with self._lock:
            known = self._known.get(key)
        return known[1] if known is not None and self._clock.monotonic() - known[0] < kept_s else None

    def _read(self, key: tuple[str, str]) -> Terms:
        now = self._clock.monotonic()
        terms = tenants.read_terms(self._table, *key)
        with self._lock:
            self._known[key] = now, terms
            self._known.move_to_end(key)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return terms
