"""Requests a minute, counted over all instances of a function."""

from __future__ import annotations

from sweephand.store import keys
from sweephand.store.conditional import Table
from sweephand.store.expressions import assign
from sweephand.store.table import RateItem

KEPT_S = 3_600


def count(table: Table, tenant: str | None, minute: int, requests: int) -> int:
    """So many more in this minute (epoch minutes). Returns how many there are. tenant None: of all callers."""
    pk = keys.STACK_RATE if tenant is None else keys.tenant(tenant)
    expiry = assign(RateItem.expires_at, minute * 60 + KEPT_S)
    return table.increase(pk, keys.rate(minute), RateItem.requests, requests, [expiry])
