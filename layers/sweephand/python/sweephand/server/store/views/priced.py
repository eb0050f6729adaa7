"""The price of reads, as DynamoDB bills them, for answers that say what they cost."""

from __future__ import annotations

from typing import Any

from sweephand.server.store.dynamo.conditional import Table

READS = frozenset({"get_item", "batch_get_item", "query"})


class Priced(Table):
    """A table that adds up the units of its reads. It uses the client of the given table. Safe for threads."""

    def __init__(self, table: Table) -> None:
        vars(self).update(vars(table))
        self._spent: list[float] = []

    @property
    def read_units(self) -> float:
        """Returns the read units used so far."""
        return sum(self._spent)

    def call(self, operation: str, **kwargs: Any) -> Any:
        """Calls an operation as the table does, and notes its price."""
        if operation not in READS:
            return super().call(operation, **kwargs)
        answer = super().call(operation, **kwargs, ReturnConsumedCapacity="TOTAL")
        consumed = answer.get("ConsumedCapacity", ())
        for each in [consumed] if isinstance(consumed, dict) else consumed:
            self._spent.append(float(each["CapacityUnits"]))
        return answer
