"""Registered applications: an item for each queue that workers read, and the stack's list of those that are away.

An application is watched from its first unclaimed run until somebody receives its messages. Its item is in the next-run
index for that time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from sweephand.domain.application import CHECKED_AGAIN, Application
from sweephand.domain.instants import epoch_ms, epoch_s
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import Lane
from sweephand.ids import shard_of
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Cancelled, Op, Refused, Table, Written
from sweephand.store.dynamo.expressions import Condition, assign, every, removal
from sweephand.store.dynamo.flat_models import TENANT, TEXTS, Codec, Integer, UnicodeAttribute
from sweephand.store.dynamo.table import Item


class ApplicationItem(Item):
    """A registered application. version: only workers of this version read the queue; if absent, all workers do."""

    name = UnicodeAttribute()
    version = UnicodeAttribute(null=True)
    created_at = Integer()
    unclaimed_since = Integer(null=True)
    away_at = Integer(null=True)
    waiting = Integer(default=0)
    seen_at = Integer(null=True)
    shard = Integer(null=True)
    next_run_at = Integer(null=True)
    sweep = UnicodeAttribute(null=True)
    tasks = UnicodeAttribute(null=True)


_APPLICATIONS = Codec(Application, ApplicationItem, {"tenant": TENANT, "tasks": TEXTS})
WATCHED = "unclaimed_since away_at waiting seen_at shard next_run_at sweep"


def read(table: Table, tenant: str, name: str, version: str | None, *, consistent: bool = True) -> Application | None:
    item = table.get(ApplicationItem, keys.tenant(tenant), keys.application(name, version), consistent=consistent)
    return None if item is None else _APPLICATIONS.read(item)


def _key(application: Application) -> tuple[str, str]:
    return keys.tenant(application.tenant), keys.application(application.name, application.version)


def put_op(table: Table, application: Application) -> Op:
    return table.put_op("application", _APPLICATIONS.item(_key(application), application))


def keep_tasks(table: Table, application: Application) -> None:
    """Writes the tasks that the workers of a registered version know."""
    table.update(*_key(application), _APPLICATIONS.changes(application, "tasks"), ApplicationItem.pk.exists())


def knowing(table: Table, tenant: str, name: str, task: str) -> Application | None:
    """Returns a version of the application whose workers know the task: the latest that is not away."""
    known = [each for each in of_tenant(table, tenant) if each.name == name and task in each.tasks]
    return max((each for each in known if each.away_at is None), key=lambda each: each.created_at, default=None)


def delete(table: Table, application: Application) -> None:
    table.transact([table.delete_op("application", *_key(application)), _forget_op(table, application)])


def of_tenant(table: Table, tenant: str) -> Iterator[Application]:
    """Yields the tenant's applications by name and version."""
    sort = ApplicationItem.sk.startswith("APP#")
    for row in table.query_all(keys.tenant(tenant), sort, consistent=True):
        yield _APPLICATIONS.read(ApplicationItem.from_raw_data(row))


# The watch


UNWATCHED: Condition = every(ApplicationItem.pk.exists(), ApplicationItem.unclaimed_since.does_not_exist())
UNSEEN: Condition = every(ApplicationItem.unclaimed_since.exists(), ApplicationItem.seen_at.does_not_exist())


def same_watch(application: Application) -> Condition:
    """Requires the watch that was read."""
    assert application.unclaimed_since is not None
    same: Condition = ApplicationItem.unclaimed_since == epoch_ms(application.unclaimed_since)
    return same


def watch(table: Table, application: Application, since: datetime, now: datetime, shards: int) -> Written | Refused:
    """Begins to watch an application that is not watched."""
    actions = [
        assign(ApplicationItem.unclaimed_since, epoch_ms(since)),
        assign(ApplicationItem.shard, shard_of(application.lane, shards)),
        assign(ApplicationItem.next_run_at, epoch_s(now + CHECKED_AGAIN)),
        assign(ApplicationItem.sweep, str(SweepText(Waits.APPLICATION, Lane.FAST))),
    ]
    return table.update(*_key(application), actions, UNWATCHED)


def mark_away(table: Table, application: Application, now: datetime, waiting: int) -> Written | Cancelled:
    """Notes that nobody receives the messages of a watched application, and adds it to the stack's list."""
    actions = [assign(ApplicationItem.away_at, epoch_ms(now)), assign(ApplicationItem.waiting, waiting)]
    listed = Item(pk=keys.STACK_AWAY, sk=keys.away(application.tenant, application.name, application.version))
    return table.transact(
        [
            table.update_op("application", *_key(application), actions, same_watch(application)),
            table.put_op("listed", listed),
        ]
    )


def count_waiting(table: Table, application: Application, waiting: int) -> Written | Refused:
    return table.update(*_key(application), [assign(ApplicationItem.waiting, waiting)], same_watch(application))


def see(table: Table, tenant: str, name: str, version: str | None, now: datetime) -> Written | Refused:
    """Notes that a worker of a watched application came, once for each watch."""
    key = keys.tenant(tenant), keys.application(name, version)
    return table.update(*key, [assign(ApplicationItem.seen_at, epoch_ms(now))], UNSEEN)


def end_watch(table: Table, application: Application) -> Written | Refused | Cancelled:
    """Ends the watch that was read, and takes the application off the stack's list."""
    actions = removal(ApplicationItem, WATCHED)
    if application.away_at is None:
        return table.update(*_key(application), actions, same_watch(application))
    ended = table.update_op("application", *_key(application), actions, same_watch(application))
    return table.transact([ended, _forget_op(table, application)])


def _forget_op(table: Table, application: Application) -> Op:
    return table.delete_op(
        "listed", keys.STACK_AWAY, keys.away(application.tenant, application.name, application.version)
    )


def forget(table: Table, application: Application) -> None:
    """Takes the application of a tenant that is being purged off the stack's list."""
    table.delete(keys.STACK_AWAY, keys.away(application.tenant, application.name, application.version))


def listed_away(table: Table, most: int) -> list[Application]:
    """Returns the applications on the stack's list, by tenant and name."""
    listed = islice(table.query_all(keys.STACK_AWAY, limit=most), most)
    places = [keys.parts(row["sk"]["S"]) for row in listed]
    wanted = [(keys.tenant(tenant), keys.application(name, version)) for tenant, name, version in places]
    rows = table.batch_get(wanted) if wanted else {}
    found = (_APPLICATIONS.read(ApplicationItem.from_raw_data(rows[key])) for key in wanted if key in rows)
    return [each for each in found if each.away_at is not None]
