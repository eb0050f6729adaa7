"""A bounded memory of look-ups, for whoever must not ask the table with each request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Generic, TypeVar

KNOWN_FOR = timedelta(seconds=60)
UNKNOWN_FOR = timedelta(seconds=10)
REMEMBERED = 1_000

K = TypeVar("K")
V = TypeVar("V")


class Memory(Generic[K, V]):
    """What was found is known for 60 s, what was not for 10 s. Not shared by threads that must see a change at once."""

    def __init__(self, find: Callable[[K], V | None]) -> None:
        self._find = find
        self._known: OrderedDict[K, tuple[datetime, V]] = OrderedDict()
        self._unknown: OrderedDict[K, datetime] = OrderedDict()

    def look_up(self, key: K, now: datetime, for_up_to: timedelta = KNOWN_FOR) -> V | None:
        """for_up_to: how old an answer may be that was found before."""
        known = self._known.get(key)
        if known is not None and now - known[0] < for_up_to:
            return known[1]
        refused_at = self._unknown.get(key)
        if refused_at is not None and now - refused_at < UNKNOWN_FOR:
            return None
        found = self._find(key)
        self._known.pop(key, None)
        self._unknown.pop(key, None)
        if found is None:
            # In a memory of their own: guessed names must not push out the real ones.
            self._unknown[key] = now
            while len(self._unknown) > REMEMBERED:
                self._unknown.popitem(last=False)
        else:
            self._known[key] = now, found
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return found
