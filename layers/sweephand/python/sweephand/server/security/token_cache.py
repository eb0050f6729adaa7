"""Cache of outgoing access tokens and credentials, evicted shortly before they expire.

It uses the wall clock, because the monotonic clock of a frozen function may stand still while a token expires.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import field
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from sweephand.base.records import dataclass

MARGIN = timedelta(seconds=60)
"""How long before its end a token is no longer used, because it must outlive the call.

A token that lives for less than five times this long is used for four fifths of its life; otherwise it would be fetched
for each call.
"""
KEPT = 512


@dataclass(frozen=True)
class CachedToken:
    """A credential that expires. value: any type."""

    value: Any = field(repr=False)
    ends_at: datetime


class TokenCache:
    """An LRU cache of tokens. Safe for threads: a thread waits for a token that another one is fetching."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, CachedToken] = OrderedDict()  # ends_at: when it is no longer used
        self._making: dict[Hashable, Lock] = {}
        self._lock = Lock()

    def get(
        self, key: Hashable, now: datetime, make: Callable[[], CachedToken], *, wait_s: float, not_this: Any = None
    ) -> tuple[Any, bool]:
        """Returns the token, and whether it was cached.

        make: fetches it; its errors are raised, and nothing is cached. wait_s: how long to wait for another thread that
        fetches it, before this one does so too. not_this: a value that was refused and must not be returned again.
        """
        kept = self._find(key, now, not_this)
        if kept is not None:
            return kept.value, True
        with self._lock:
            if len(self._making) >= 2 * KEPT:  # locks of tokens that could not be fetched
                self._making = {known: lock for known, lock in self._making.items() if known in self._kept}
            making = self._making.setdefault(key, Lock())
        waited = making.acquire(timeout=max(0.0, wait_s))
        try:
            kept = self._find(key, now, not_this)
            if kept is not None:
                return kept.value, True
            made = make()
            self._keep(key, CachedToken(made.value, made.ends_at - min(MARGIN, (made.ends_at - now) / 5)))
            return made.value, False
        finally:
            if waited:
                making.release()

    def _find(self, key: Hashable, now: datetime, not_this: Any) -> CachedToken | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept.ends_at <= now or kept.value == not_this:
                return None
            self._kept.move_to_end(key)
            return kept

    def _keep(self, key: Hashable, made: CachedToken) -> None:
        with self._lock:
            self._kept[key] = made
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                gone, _ = self._kept.popitem(last=False)
                self._making.pop(gone, None)
