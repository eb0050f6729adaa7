"""The list of operations."""

from __future__ import annotations

from collections.abc import Iterator

from sweephand.domain.operation import Operation
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Table
from sweephand.store.operations import operations as store
from sweephand.store.operations.operation_items import OperationItem


def listed(table: Table, tenant: str | None, before: str | None, page: int) -> Iterator[Operation]:
    """Yields operations, newest first, after the id `before`. tenant: None for the provider's own."""
    sort = OperationItem.sk.between(keys.operation(""), keys.operation(before or "~"))
    for row in table.query_all(keys.operations(tenant), sort, limit=page, forward=False, consistent=True):
        operation = store.operation_of(OperationItem.from_raw_data(row))
        if operation.id != before:
            yield operation
