"""Lists of error groups and redirects."""

from __future__ import annotations

from collections.abc import Iterator

from sweephand.domain.failure import Group, Redirect
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Table
from sweephand.store.errors import failures as store
from sweephand.store.errors.failure_items import ErrorGroupItem, RedirectItem


def groups(table: Table, tenant: str) -> Iterator[Group]:
    """Yields all groups of a tenant, in no useful order."""
    for row in table.query_all(keys.errors(tenant), ErrorGroupItem.sk.startswith(keys.error_group(""))):
        yield store.group_of(ErrorGroupItem.from_raw_data(row))


def redirects(table: Table, tenant: str, after: str | None = None, page: int | None = None) -> Iterator[Redirect]:
    """Yields redirects by the job that is redirected, after `after`."""
    sort = RedirectItem.sk.between(keys.redirect(after or ""), keys.redirect("~"))
    for row in table.query_all(keys.errors(tenant), sort, limit=page, consistent=True):
        redirect = store.redirect_of(RedirectItem.from_raw_data(row))
        if redirect.source != after:
            yield redirect
