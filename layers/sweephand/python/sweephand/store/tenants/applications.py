"""Registered applications: an item for each queue that workers read."""

from __future__ import annotations

from collections.abc import Iterator

from sweephand.domain.application import Application
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Table
from sweephand.store.dynamo.flat_models import TENANT, Codec, Integer, UnicodeAttribute
from sweephand.store.dynamo.table import Item


class ApplicationItem(Item):
    """A registered application. version: only workers of this version read the queue; if absent, all workers do."""

    name = UnicodeAttribute()
    version = UnicodeAttribute(null=True)
    created_at = Integer()


_APPLICATIONS = Codec(Application, ApplicationItem, {"tenant": TENANT})


def read(table: Table, tenant: str, name: str, version: str | None) -> Application | None:
    item = table.get(ApplicationItem, keys.tenant(tenant), keys.application(name, version))
    return None if item is None else _APPLICATIONS.read(item)


def put_op(table: Table, application: Application) -> Op:
    key = keys.tenant(application.tenant), keys.application(application.name, application.version)
    return table.put_op("application", _APPLICATIONS.item(key, application))


def of_tenant(table: Table, tenant: str) -> Iterator[Application]:
    """Yields the tenant's applications by name and version."""
    sort = ApplicationItem.sk.startswith("APP#")
    for row in table.query_all(keys.tenant(tenant), sort, consistent=True):
        yield _APPLICATIONS.read(ApplicationItem.from_raw_data(row))
