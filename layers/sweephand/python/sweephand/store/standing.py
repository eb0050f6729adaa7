"""Whether a collection is enabled, as the executor's gate asks for each run: remembered for two seconds a process."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from sweephand.domain.collection import CollectionState
from sweephand.sources import Clock
from sweephand.store import tenants
from sweephand.store.conditional import Table

KEPT_S = 2.0
REMEMBERED = 1_000


class Standing:
    """Safe for threads."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], tuple[float, bool]] = OrderedDict()
        self._lock = Lock()

    def enabled(self, tenant: str, collection: str) -> bool:
        """A collection that is not there any more disables nothing: its jobs went before it."""
        key = tenant, collection
        now = self._clock.monotonic()
        with self._lock:
            known = self._known.get(key)
        if known is not None and now - known[0] < KEPT_S:
            return known[1]
        found = tenants.read_collection(self._table, tenant, collection)
        enabled = found is None or found.state is CollectionState.ENABLED
        with self._lock:
            self._known[key] = now, enabled
            self._known.move_to_end(key)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return enabled
