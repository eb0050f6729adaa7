"""Counts requests and runs per minute over all instances of a function, and the runs that follow from one run."""

from __future__ import annotations

from datetime import datetime, timedelta

from pynamodb.expressions.condition import Condition

from sweephand.domain.instants import epoch_s
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Refused, Table
from sweephand.server.store.dynamo.expressions import add, assign
from sweephand.server.store.dynamo.table import FamilyItem, RateItem

KEPT_S = 3_600
FAMILY_KEPT = timedelta(days=8)
"""Retention after the last run of a family: a day longer than a run can wait for its result."""


def count(table: Table, tenant: str | None, minute: int, more: int, counted: str = "") -> int:
    """Adds to the count of this minute (epoch minutes) and returns it.

    tenant: None for all callers together. counted: see keys.rate.
    """
    pk = keys.STACK_RATE if tenant is None else keys.tenant(tenant)
    expiry = assign(RateItem.expires_at, minute * 60 + KEPT_S)
    return table.increase(pk, keys.rate(minute, counted), RateItem.requests, more, [expiry])


def count_descendant(table: Table, tenant: str, root: str, most: int, now: datetime) -> bool:
    """Counts a run that follows from `root`. Returns False if `most` are already counted."""
    if most == 0:
        return False
    owner, uuid = root.split("_")
    steps = [add(FamilyItem.descendants, 1), assign(FamilyItem.expires_at, epoch_s(now + FAMILY_KEPT))]
    room: Condition = FamilyItem.descendants.does_not_exist() | (FamilyItem.descendants < most)
    done = table.update(keys.runs(tenant, owner), keys.family(uuid), steps, room)
    return not isinstance(done, Refused)


def uncount_descendant(table: Table, tenant: str, root: str) -> None:
    """Takes back a run that was counted but has not begun."""
    owner, uuid = root.split("_")
    table.update(keys.runs(tenant, owner), keys.family(uuid), [add(FamilyItem.descendants, -1)])
