"""Whose turn it is to change a job that many change at once. The item is there only while they do.

A turn promises nothing: a change is kept whole by its own conditions, also where two believe that it is theirs. It
saves the tries that would be in vain.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.domain.instants import epoch_ms, epoch_s
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Refused, Table
from sweephand.store.dynamo.expressions import Condition
from sweephand.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.store.dynamo.table import Item

FORGOTTEN = timedelta(hours=1)
"""After which the table drops a turn that was never given back."""


class TurnItem(Item):
    """Of a job. owner: of the turn; until: epoch ms, when it is over in any case."""

    owner = UnicodeAttribute()
    until = Integer()


def _free(now: datetime) -> Condition:
    """Nobody's turn, or one that is over."""
    free: Condition = TurnItem.pk.does_not_exist() | (TurnItem.until <= epoch_ms(now))
    return free


def take(table: Table, tenant: str, job_id: str, owner: str, now: datetime, lasts: timedelta) -> bool:
    """[free] Is it the owner's turn now? True also where an earlier answer of this call was lost."""
    until = now + lasts
    item = TurnItem(
        pk=keys.job(tenant, job_id),
        sk=keys.TURN,
        owner=owner,
        until=epoch_ms(until),
        expires_at=epoch_s(until + FORGOTTEN),
    )
    done = table.put(item, _free(now))
    if not isinstance(done, Refused):
        return True
    there = done.read(TurnItem)
    return there is not None and there.owner == owner


def give_back(table: Table, tenant: str, job_id: str, owner: str) -> None:
    """[own turn]"""
    table.delete(keys.job(tenant, job_id), keys.TURN, TurnItem.owner == owner)
