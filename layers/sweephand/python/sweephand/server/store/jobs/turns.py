"""Turns for concurrent changes of one job. The item exists only while there are several.

A turn guarantees nothing: a change is safe by its own conditions, even if two callers believe that it is their turn.
Turns only save tries that would fail.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.domain.instants import epoch_ms, epoch_s
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Refused, Table
from sweephand.server.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.server.store.dynamo.table import Item

FORGOTTEN = timedelta(hours=1)
"""Retention of a turn that was never given back."""


class TurnItem(Item):
    """The turn to change a job. owner: the owner of the turn. until: epoch ms, when it ends in any case."""

    owner = UnicodeAttribute()
    until = Integer()


def take(table: Table, tenant: str, job_id: str, owner: str, now: datetime, lasts: timedelta) -> bool:
    """Takes the turn if it is free. Returns whether the owner has it, even from a try whose answer was lost."""
    until = now + lasts
    item = TurnItem(
        pk=keys.job(tenant, job_id),
        sk=keys.TURN,
        owner=owner,
        until=epoch_ms(until),
        expires_at=epoch_s(until + FORGOTTEN),
    )
    done = table.put(item, TurnItem.pk.does_not_exist() | (TurnItem.until <= epoch_ms(now)))
    if not isinstance(done, Refused):
        return True
    current = done.read(TurnItem)
    return current is not None and current.owner == owner


def give_back(table: Table, tenant: str, job_id: str, owner: str) -> None:
    """Gives the turn back if the owner has it."""
    table.delete(keys.job(tenant, job_id), keys.TURN, TurnItem.owner == owner)
