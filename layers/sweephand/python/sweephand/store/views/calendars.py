"""Lists of calendars and their versions."""

from __future__ import annotations

from collections.abc import Iterator

from sweephand.domain.calendar import Calendar, Version
from sweephand.store.calendars import calendars as store
from sweephand.store.calendars.calendar_items import CalendarItem, CalendarVersionItem
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Table


def listed(table: Table, tenant: str, after: str | None, page: int) -> Iterator[Calendar]:
    """Yields calendars without content by name, after `after`."""
    first = keys.calendar(after or "")
    sort = CalendarItem.sk.between(first, keys.calendar("\U0010ffff"))
    for row in table.query_all(keys.tenant(tenant), sort, limit=page, consistent=True):
        head = store.calendar_of(CalendarItem.from_raw_data(row))
        if head.name != after:
            yield head


def versions(table: Table, tenant: str, name: str, below: int | None, page: int) -> Iterator[Version]:
    """Yields the versions below a number, newest first."""
    sort = CalendarVersionItem.sk.between(
        keys.calendar_version(0), keys.calendar_version(99_999_999 if below is None else below - 1)
    )
    for row in table.query_all(keys.calendar_rows(tenant, name), sort, limit=page, forward=False, consistent=True):
        yield store.version_of(CalendarVersionItem.from_raw_data(row))
