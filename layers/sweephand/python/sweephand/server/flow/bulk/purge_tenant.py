"""Deletes a tenant with everything it owns: first its jobs, each as a caller would, then collections and the rest.

Nothing new can be added meanwhile (tenants.stays_op, and jobs need a collection). So once the last collection could be
deleted, no job is left. The tenant's counters stay, so that no integer id is assigned twice. Runs of jobs that were
deleted earlier stay until their retention is over. (Decision 0037.)

The tenant's own row is deleted last, once every function has noticed the deletion. Otherwise a function that remembers
the old tenant would admit its callers to the next one of that name.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import islice

from sweephand.base.errors import Conflict, NotFound
from sweephand.domain.messages import ledgers_of
from sweephand.domain.operation import Operation, Page
from sweephand.server.flow.calendars import calendars
from sweephand.server.flow.jobs import deletion
from sweephand.server.flow.tenants import applications, tenancy
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled
from sweephand.server.store.index import suspended
from sweephand.server.store.jobs import directory
from sweephand.server.store.tenants import counts, tenants, watches
from sweephand.server.store.views import jobs as lists
from sweephand.server.store.views import messages, resources
from sweephand.server.store.views import tenants as views

JOBS = 25
PAGE_S = 10.0
"""A page begins no further job after this long: a job of 1,000 schedules takes some seconds."""
PAGE = 100
ROUNDS = 20
"""Pages in a row that may find resources still in use before the operation fails."""
PAUSE = timedelta(seconds=5)
KEPT = frozenset({keys.TENANT, keys.ORDINAL, keys.LAST_NUMBER, keys.SPREAD})


def page(world: World, operation: Operation) -> Page:
    """Deletes the next part. May be repeated: the count of deleted jobs follows from the jobs that are left."""
    name = str(operation.params["tenant"])
    tenant = tenants.read_tenant(world.table, name)
    if tenant is None or tenant.purge != operation.id:
        return _last(operation)
    if _delete_jobs(world, name):
        return Page({"round": 0}, done=_done(world, name, operation))
    noticed_at = operation.started_at + tenancy.NOTICED
    noticed = world.clock.now() >= noticed_at
    left = _left(world, name, noticed=noticed)
    if left is None and not noticed:
        return Page({"round": 0}, done=_done(world, name, operation), due_at=noticed_at)
    if left is None:
        ops = [
            *tenants.forget_tenant_ops(world.table, name, operation.id),
            *suspended.forget_ops(world.table, name, None),
        ]
        world.table.transact(ops)
        world.journal.info("a tenant was deleted", tenant=name, operation=operation.id)
        return _last(operation)
    tried = int(operation.cursor.get("round", 0)) + 1
    if tried > ROUNDS:
        raise Conflict(left)
    return Page({"round": tried}, done=_done(world, name, operation), due_at=world.clock.now() + PAUSE)


def _last(operation: Operation) -> Page:
    total = operation.total or 0
    return Page(None, done=max(0, total - operation.done), result={"tenant": operation.params["tenant"], "jobs": total})


def _done(world: World, name: str, operation: Operation) -> int:
    live = lists.count(world.table, name, lists.ALL)
    return max(0, (operation.total or 0) - live - operation.done)


def _delete_jobs(world: World, name: str) -> bool:
    """Deletes some of the jobs that are left. Returns False if none was found."""
    deadline = world.clock.monotonic() + PAGE_S
    deleted = False
    for row in list(islice(lists.listed(world.table, name, lists.ALL, None, JOBS), JOBS)):
        try:
            deletion.delete_job(world, name, row.job_id, None, deletion.Cause.PURGE)
        except NotFound:
            continue  # a repetition of this page deleted it, or the list is slightly stale
        deleted = True
        if world.clock.monotonic() > deadline:
            break
    return deleted


def _left(world: World, name: str, *, noticed: bool) -> str | None:
    """Deletes what jobs belong to or name. Returns what a job still uses, or None once everything is deleted.

    noticed: whether every function knows of the deletion. Until then, it may accept a message for a day that is noted.
    """
    for collection in list(views.collections(world.table, name, None, PAGE)):
        ops = [
            *tenants.delete_collection_ops(world.table, collection),
            *suspended.forget_ops(world.table, name, collection.name),
        ]
        if isinstance(world.table.transact(ops), Cancelled):
            return f"the collection {collection.name} still has jobs"
    for calendar in list(resources.calendars(world.table, name, None, PAGE)):
        try:
            calendars.delete(world, name, calendar.name, None)
        except NotFound:
            continue
        except Conflict as used:
            return f"the calendar {calendar.name}: {used.reason}"
    applications.remove_queues(world, name)
    watches.forget(world.table, name)
    own = keys.tenant(name)
    for row in list(world.table.query_all(own, consistent=True)):
        _clear(world, f"{own}#{row['sk']['S']}")  # a partition of its own has this row's key as its name
    _delete_messages(world, name)
    if noticed:
        _clear(world, keys.message_days(name))
    _delete_errors(world, name)
    counted = [keys.stripe(name, stripe) for stripe in range(counts.STRIPES)]
    counted += [keys.directory_counts(name, number) for number in range(directory.SPREAD)]
    records = [keys.idempotency_part(name, number) for number in range(keys.IDEMPOTENCY_PARTS)]
    for pk in (own, *counted, *records, keys.directory(name), keys.operations(name), keys.errors(name)):
        _clear(world, pk)
    world.files.clear(keys.files(name))  # the bucket's lifecycle rule removes what a running export still writes
    return None


def _delete_errors(world: World, name: str) -> None:
    for row in list(world.table.query_all(keys.errors(name), consistent=True)):
        kind, *of = keys.parts(row["sk"]["S"])
        if kind == "GROUP":
            _clear(world, keys.error_runs(name, of[0]))


def _delete_messages(world: World, name: str) -> None:
    for day, collections in list(messages.days(world.table, name, None, None)):
        for owner in (owner for each in collections for owner in ledgers_of(name, each, day)):
            _clear(world, keys.runs(name, owner))


def _clear(world: World, pk: str) -> None:
    for row in list(world.table.query_all(pk, consistent=True)):
        if row["sk"]["S"] not in KEPT:
            world.table.delete(pk, row["sk"]["S"])
