"""The looks of workers through what is due soon under newer time-zone data, next to what each tick reads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sweephand.base.records import dataclass
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.flat_models import SECONDS, Codec, Integer, UnicodeAttribute
from sweephand.server.store.dynamo.table import Item


class LookItem(Item):
    """A worker's look. data: the version of the time-zone data."""

    data = UnicodeAttribute()
    workers = Integer()
    began_at = Integer()
    step = Integer(null=True)
    after = UnicodeAttribute(null=True)


@dataclass(frozen=True)
class Look:
    """How far a worker has looked. step: the number of the part of its rows; None at the end.

    after: the key in the index after which it goes on, as JSON; None at the beginning of the part.
    """

    data: str
    workers: int
    began_at: datetime
    step: int | None = None
    after: str | None = None

    def is_for(self, data: str, workers: int) -> bool:
        """Returns whether the look is for these data and this number of workers, which share the shards."""
        return (self.data, self.workers) == (data, workers)


_LOOKS = Codec(Look, LookItem, {"began_at": SECONDS})


def of_row(row: Mapping[str, Any]) -> tuple[int, Look]:
    """Returns the worker and its look."""
    return int(keys.parts(row["sk"]["S"])[-1]), _LOOKS.read(LookItem.from_raw_data(row))


def write(table: Table, worker: int, look: Look) -> None:
    table.put(_LOOKS.item((keys.STACK_SWEEP, keys.look(worker)), look))
