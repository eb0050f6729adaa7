"""A bounded cache of look-ups, for code that must not read the table with each request."""

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
    """A cache that keeps found values for 60 s and misses for 10 s. Not for threads that must see a change at once."""

    def __init__(self, find: Callable[[K], V | None]) -> None:
        self._find = find
        self._known: OrderedDict[K, tuple[datetime, V]] = OrderedDict()
        self._unknown: OrderedDict[K, datetime] = OrderedDict()

    def look_up(self, key: K, now: datetime, for_up_to: timedelta = KNOWN_FOR) -> V | None:
        """Returns a value; None if it does not exist. for_up_to: the greatest age of a cached value."""
        known = self._known.get(key)
        if known is not None and now - known[0] < for_up_to:
            return known[1]
        refused_at = self._unknown.get(key)
        if refused_at is not None and now - refused_at < UNKNOWN_FOR:
            return None
        value = self._find(key)
        self._known.pop(key, None)
        self._unknown.pop(key, None)
        if value is None:
            # In a separate cache, so that guessed names cannot evict real ones.
            self._unknown[key] = now
            while len(self._unknown) > REMEMBERED:
                self._unknown.popitem(last=False)
        else:
            self._known[key] = now, value
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return value
