"""Cache of outgoing access tokens and credentials, evicted shortly before they expire.

It goes by the wall clock: a frozen function's monotonic clock may stand still while a token runs out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

MARGIN = timedelta(seconds=60)
"""A token is no longer used so long before its end: it must outlive the call. One that lives less than five times as
long serves four fifths of its life; otherwise it would be fetched for each call."""
KEPT = 512


@dataclass(frozen=True)
class CachedToken:
    """A token. value: of whatever kind its maker gives."""

    value: Any = field(repr=False)
    ends_at: datetime


class TokenCache:
    """A cache that is safe for threads: one waits for a token that another is fetching. The least recently used go."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, CachedToken] = OrderedDict()  # each until it is not used any more
        self._making: dict[Hashable, Lock] = {}
        self._lock = Lock()

    def get(
        self, key: Hashable, now: datetime, make: Callable[[], CachedToken], *, wait_s: float, not_this: Any = None
    ) -> tuple[Any, bool]:
        """Returns the token, and whether it was there already.

        make: what it raises goes to the caller, and nothing is kept. wait_s: for another thread that makes it; then it
        is made here too. not_this: a value that was refused, which is not given again.
        """
        there = self._look(key, now, not_this)
        if there is not None:
            return there.value, True
        with self._lock:
            if len(self._making) >= 2 * KEPT:  # of tokens that nobody gave
                self._making = {known: lock for known, lock in self._making.items() if known in self._kept}
            making = self._making.setdefault(key, Lock())
        waited = making.acquire(timeout=max(0.0, wait_s))
        try:
            there = self._look(key, now, not_this)
            if there is not None:
                return there.value, True
            made = make()
            self._keep(key, CachedToken(made.value, made.ends_at - min(MARGIN, (made.ends_at - now) / 5)))
            return made.value, False
        finally:
            if waited:
                making.release()

    def _look(self, key: Hashable, now: datetime, not_this: Any) -> CachedToken | None:
        with self._lock:
            there = self._kept.get(key)
            if there is None or there.ends_at <= now or there.value == not_this:
                return None
            self._kept.move_to_end(key)
            return there

    def _keep(self, key: Hashable, made: CachedToken) -> None:
        with self._lock:
            self._kept[key] = made
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                gone, _ = self._kept.popitem(last=False)
                self._making.pop(gone, None)
