"""How a collection and its tenant stand, as the executor asks for each run: remembered for two seconds a process."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from sweephand.domain.collection import Terms
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
        self._known: OrderedDict[tuple[str, str], tuple[float, Terms]] = OrderedDict()
        self._lock = Lock()

    def of(self, tenant: str, collection: str, *, kept_s: float = KEPT_S) -> Terms:
        """The terms of at most `kept_s` ago, in one read.

        A collection that is not there any more disables nothing: its jobs went before it.
        """
        key = tenant, collection
        now = self._clock.monotonic()
        with self._lock:
            known = self._known.get(key)
        if known is not None and now - known[0] < kept_s:
            return known[1]
        terms = tenants.read_terms(self._table, tenant, collection)
        with self._lock:
            self._known[key] = now, terms
            self._known.move_to_end(key)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return terms
