"""Calendars: create, change and delete them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from sweephand.base.errors import Conflict, InvalidRequest, NotFound, Unavailable, name_taken
from sweephand.domain.calendar import Calendar, Version, reference_of
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.occurrences.index_row import WAKE
from sweephand.domain.schedule import Lane
from sweephand.server.flow.concurrency import Moved, require_revision, tolerated, until_unmoved
from sweephand.server.flow.idempotency import Once, check_once, once_ops
from sweephand.server.flow.jobs.change import follow_calendars
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.calendars import calendars as store
from sweephand.server.store.dynamo.conditional import Cancelled, Refused
from sweephand.server.store.tenants import tenants
from sweephand.server.store.views import resources


def create(world: World, wanted: Calendar, actor: str | None, once: Once | None = None) -> Calendar:
    """Creates a calendar. Raises Conflict(NAME_TAKEN)."""
    now = world.clock.now()
    calendar = replace(wanted, created_at=now, modified_at=now, version=1)
    calendar = replace(calendar, reference=reference_of(calendar))
    stays = tenants.stays_op(world.table, wanted.tenant)
    ops = [*store.create_ops(world.table, calendar, actor), stays]
    done = world.table.transact([*ops, *once_ops(world, wanted.tenant, once, wanted.name)])
    if isinstance(done, Cancelled):
        if "tenant" in done.refused:
            raise Conflict("the tenant is being deleted, or does not exist")
        current = store.read(world.table, wanted.tenant, wanted.name)
        if current is None or current.reference != calendar.reference:
            check_once(done, once)
            raise name_taken("calendar", wanted.name)
    return calendar


def find(world: World, tenant: str, name: str) -> Calendar:
    """Returns the calendar with its content. Raises NotFound."""
    head = find_head(world, tenant, name)
    return replace(head, content=content_of(world, tenant, head.reference))


def find_version(world: World, tenant: str, name: str, number: int) -> tuple[Version, Mapping[str, Any]]:
    """Returns a version with its content. Raises NotFound."""
    version = store.read_version(world.table, tenant, name, number)
    if version is None:
        raise NotFound("no such version")
    return version, content_of(world, tenant, version.reference)


def find_head(world: World, tenant: str, name: str) -> Calendar:
    head = store.read(world.table, tenant, name)
    if head is None:
        raise NotFound("no such calendar")
    return store.with_users(world.table, [head])[0]


def content_of(world: World, tenant: str, reference: str) -> Mapping[str, Any]:
    content = store.read_content(world.table, tenant, reference)
    if content is None:
        raise NotFound("no such calendar")  # deleted since its head was read
    return content


@until_unmoved("changes to this calendar")
def change(
    world: World, tenant: str, name: str, edit: Callable[[Calendar], Calendar], if_match: int | None, actor: str | None
) -> Calendar:
    """Writes the next version, which the schedules that name the calendar then follow.

    An edit without effect writes nothing.
    """
    before = find(world, tenant, name)
    require_revision(if_match, before.version, "the calendar is at version")
    wanted = edit(before)
    if (wanted.content, wanted.description) == (before.content, before.description):
        return before
    after = replace(wanted, version=before.version + 1, modified_at=world.clock.now())
    if wanted.content != before.content:
        after = replace(after, reference=reference_of(after), replanning=True)
    ops = store.change_ops(world.table, before, after, actor, world.shards)
    if isinstance(world.table.transact(ops), Cancelled) and not _is_written(world, after):
        raise Moved
    if after.reference != before.reference:
        begin(world, tenant, name)
    return after


def _is_written(world: World, after: Calendar) -> bool:
    """Returns whether this write succeeded although its answer was lost."""
    stored = store.read_version(world.table, after.tenant, after.name, after.version)
    return stored is not None and (stored.reference, stored.at) == (after.reference, after.modified_at)


def delete(world: World, tenant: str, name: str, if_match: int | None) -> None:
    """Deletes a calendar. Raises Conflict while schedules name it."""
    before = find_head(world, tenant, name)
    require_revision(if_match, before.version, "the calendar is at version")
    now = world.clock.now()
    if not before.users:
        for version in resources.versions(world.table, tenant, name, before.version, 25):
            store.forget_version(world.table, before, version, now)
        done = world.table.transact(store.delete_ops(world.table, before, now))
        if not isinstance(done, Cancelled) or store.read(world.table, tenant, name) is None:
            return
    some = list(islice(store.users(world.table, tenant, name, None, 3), 3))
    raise Conflict(f"schedules of these jobs name it: {', '.join(some)}" if some else "it was changed meanwhile")


STRETCH_S = 10.0
"""Time limit of one message: well within an executor's lease."""

PAGE = 25


def pointer(tenant: str, name: str, at: datetime) -> Pointer:
    return Pointer(tenant, name, None, name, at, subject=Subject.REPLAN)


def begin(world: World, tenant: str, name: str) -> None:
    """Sends the first message, right after the change. If that fails, the next sweep sends it."""
    now = world.clock.now()
    with tolerated(world, "the schedules of a calendar follow it after the next tick", tenant=tenant):
        world.queue.send_one(Delivery(pointer(tenant, name, now), now, Lane.FAST))


def go_on(world: World, asked: Pointer) -> None:
    """Carries out one stretch, then sends a message for the rest; if that is lost, the row sends it."""
    tenant, name = asked.tenant, asked.run
    item, head = store.read_replan(world.table, tenant, name), store.read(world.table, tenant, name)
    if item is None or head is None:
        return
    if item.cursor is None:
        store.enforce(world.table, head)
    deadline = world.clock.monotonic() + STRETCH_S
    left = bool(item.left)
    users = store.users(world.table, tenant, name, item.cursor, PAGE)
    while page := list(islice(users, PAGE)):
        for job_id in page:
            left = not _follow(world, tenant, job_id) or left
        if world.clock.monotonic() > deadline:
            again = world.clock.now()
            saved = store.go_on(world.table, item, cursor=page[-1], left=left, at=again + WAKE)
            if not isinstance(saved, Refused):
                world.queue.send_one(Delivery(pointer(tenant, name, again), again, Lane.FAST))
            return
    if left:
        store.go_on(world.table, item, cursor=None, left=False, at=world.clock.now() + WAKE)
    else:
        store.finish(world.table, tenant, name, item)


def _follow(world: World, tenant: str, job_id: str) -> bool:
    """Replans the schedules of one job. Returns False if it must be tried again."""
    try:
        follow_calendars(world, tenant, job_id)
    except NotFound:
        return True  # it was deleted meanwhile
    except (Conflict, InvalidRequest, Unavailable) as refused:
        world.journal.warning("a job follows its calendar later", tenant=tenant, job=job_id, reason=refused.reason)
        return False
    return True
