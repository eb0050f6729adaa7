"""The number of shards of the next-run index. It only grows: a row stays in its shard until it is written again."""

from __future__ import annotations

from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Refused, Table
from sweephand.server.store.dynamo.expressions import assign
from sweephand.server.store.dynamo.table import ShardsItem


class Shards:
    """The number of shards: the greatest that was ever wanted. The table keeps it.

    As an integer, it is the number over which new rows are spread, read once in a process. A number that is greater
    than the one kept is kept before any row uses it, so that every sweep reads the shards of every row, whichever
    version of a function wrote it. Safe for threads.
    """

    def __init__(self, table: Table, wanted: int) -> None:
        self._table = table
        self.wanted = wanted
        self.known = 0

    def __int__(self) -> int:
        return self.known or self.read()

    def read(self) -> int:
        """Reads how many shards may have rows. Raises Unavailable."""
        item = self._table.get(ShardsItem, keys.STACK_SWEEP, keys.SHARDS)
        return self.learn(0 if item is None else item.shards)

    def learn(self, kept: int) -> int:
        """Notes the number that the table keeps, or raises it. Returns the number in force. Raises Unavailable."""
        if kept < self.wanted:
            fewer = ShardsItem.pk.does_not_exist() | (ShardsItem.shards < self.wanted)
            raised = self._table.update(keys.STACK_SWEEP, keys.SHARDS, [assign(ShardsItem.shards, self.wanted)], fewer)
            stored = raised.read(ShardsItem) if isinstance(raised, Refused) else None
            kept = self.wanted if stored is None else stored.shards
        self.known = kept
        return kept
