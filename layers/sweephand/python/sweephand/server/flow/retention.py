"""Retention of runs in the ledger: set by the collection, counted from the end of each run."""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.domain.collection import Retention
from sweephand.server.flow.world import World

RUN_DAYS = Retention.run_days
"""The minimum for every collection."""
KEPT_S = 60.0
"""How old a cached retention may be. The gate has just read it, so the end of a run need not read it again."""


def expiry(finished_at: datetime, days: int = RUN_DAYS) -> datetime:
    return finished_at + timedelta(days=max(days, RUN_DAYS))


def retention_of(world: World, tenant: str, collection: str | None) -> Retention:
    """Returns the collection's retention, at most KEPT_S old, or the default if the collection is not known."""
    if collection is None:
        return Retention()
    return world.terms.of(tenant, collection, kept_s=KEPT_S).retention


def run_expiry(world: World, tenant: str, collection: str | None, finished_at: datetime) -> datetime:
    return expiry(finished_at, retention_of(world, tenant, collection).run_days)
