"""How long the ledger keeps a run: counted from its end, as its collection says."""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.domain.collection import Retention
from sweephand.flow.world import World

RUN_DAYS = Retention.run_days
"""The least that any collection keeps."""
KEPT_S = 60.0
"""A retention may be this old: it is known from the gate, and not read again for an outcome."""


def expiry(finished_at: datetime, days: int = RUN_DAYS) -> datetime:
    return finished_at + timedelta(days=max(days, RUN_DAYS))


def lately(world: World, tenant: str, collection: str | None) -> Retention:
    """What the collection says, or said a moment ago; the usual where the collection is not known."""
    if collection is None:
        return Retention()
    return world.standing.of(tenant, collection, kept_s=KEPT_S).retention


def run_expiry(world: World, tenant: str, collection: str | None, finished_at: datetime) -> datetime:
    return expiry(finished_at, lately(world, tenant, collection).run_days)
