"""Registered applications: an item for each queue that workers read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from sweephand.domain.application import Application
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Table, if_any
from sweephand.server.store.dynamo.flat_models import TENANT, TEXTS, Codec, Integer, UnicodeAttribute
from sweephand.server.store.tenants import watches
from sweephand.server.store.tenants.watches import WatchedItem, key_of


class ApplicationItem(WatchedItem):
    """A registered application. version: only workers of this version read the queue; if absent, all workers do."""

    name = UnicodeAttribute()
    version = UnicodeAttribute(null=True)
    created_at = Integer()
    busy_until = Integer(null=True)
    tasks = UnicodeAttribute(null=True)


_APPLICATIONS = Codec(Application, ApplicationItem, {"tenant": TENANT, "tasks": TEXTS})
application_of = _APPLICATIONS.read


def read(table: Table, tenant: str, name: str, version: str | None, *, consistent: bool = True) -> Application | None:
    key = keys.tenant(tenant), keys.application(name, version)
    return if_any(application_of, table.get(ApplicationItem, *key, consistent=consistent))


def put_op(table: Table, application: Application) -> Op:
    return table.put_op("application", _APPLICATIONS.item(key_of(application), application))


def keep_tasks(table: Table, application: Application) -> None:
    """Writes the tasks that the workers of a registered version know."""
    table.update(*key_of(application), _APPLICATIONS.changes(application, "tasks"), ApplicationItem.pk.exists())


def note_busy(table: Table, application: Application, until: datetime) -> None:
    """Notes how long a worker holds one of the runs of a registered application. The note outlasts a watch."""
    busy = replace(application, busy_until=until)
    table.update(*key_of(application), _APPLICATIONS.changes(busy, "busy_until"), ApplicationItem.pk.exists())


def knowing(table: Table, tenant: str, name: str, task: str) -> Application | None:
    """Returns a version of the application whose workers know the task: the latest that is not away."""
    known = [each for each in of_tenant(table, tenant) if each.name == name and task in each.tasks]
    return max((each for each in known if each.away_at is None), key=lambda each: each.created_at, default=None)


def delete(table: Table, application: Application) -> None:
    table.transact([table.delete_op("application", *key_of(application)), watches.forget_op(table, application)])


def of_tenant(table: Table, tenant: str) -> Iterator[Application]:
    """Yields the tenant's applications by name and version."""
    sort = ApplicationItem.sk.startswith(f"{keys.APPLICATION}#")
    for row in table.query_all(keys.tenant(tenant), sort, consistent=True):
        yield application_of(ApplicationItem.from_raw_data(row))
