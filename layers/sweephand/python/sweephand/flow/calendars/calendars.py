"""Calendars: create, change and delete them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from sweephand.domain.calendar import Calendar, Version, reference_of
from sweephand.errors import Conflict, NotFound, PreconditionFailed, Unavailable
from sweephand.flow.calendars import followers
from sweephand.flow.world import World
from sweephand.store.calendars import calendars as store
from sweephand.store.dynamo.conditional import Cancelled
from sweephand.store.tenants import tenants
from sweephand.store.views import calendars as views

TRIES = 5


def create(world: World, wanted: Calendar, actor: str | None) -> Calendar:
    """Creates a calendar. Raises Conflict(NAME_TAKEN)."""
    now = _ms(world.clock.now())
    calendar = replace(wanted, created_at=now, modified_at=now, version=1)
    calendar = replace(calendar, reference=reference_of(calendar))
    stays = tenants.stays_op(world.table, wanted.tenant)
    done = world.table.transact([*store.create_ops(world.table, calendar, actor), stays])
    if isinstance(done, Cancelled):
        if "tenant" in done.refused:
            raise Conflict("the tenant is being deleted, or does not exist")
        there = store.read(world.table, wanted.tenant, wanted.name)
        if there is None or there.reference != calendar.reference:
            raise Conflict("a calendar of this name exists", code="NAME_TAKEN")
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
    return head


def content_of(world: World, tenant: str, reference: str) -> Mapping[str, Any]:
    content = store.read_content(world.table, tenant, reference)
    if content is None:
        raise NotFound("no such calendar")  # deleted since its head was read
    return content


def change(
    world: World, tenant: str, name: str, edit: Callable[[Calendar], Calendar], if_match: int | None, actor: str | None
) -> Calendar:
    """Writes the next version, which the schedules that name it then follow; an edit without effect writes nothing."""
    for _ in range(TRIES):
        before = find(world, tenant, name)
        if if_match is not None and before.version != if_match:
            raise PreconditionFailed(f"the calendar is at version {before.version}")
        wanted = edit(before)
        if (wanted.content, wanted.description) == (before.content, before.description):
            return before
        after = replace(wanted, version=before.version + 1, modified_at=_ms(world.clock.now()))
        if wanted.content != before.content:
            after = replace(after, reference=reference_of(after), replanning=True)
        ops = store.change_ops(world.table, before, after, actor, world.settings.shards)
        if not isinstance(world.table.transact(ops), Cancelled) or _is_written(world, after):
            if after.reference != before.reference:
                followers.begin(world, tenant, name)
            return after
    raise Unavailable("too many concurrent changes to this calendar; try again")


def _is_written(world: World, after: Calendar) -> bool:
    """Says whether this very write succeeded, although its answer was lost."""
    there = store.read_version(world.table, after.tenant, after.name, after.version)
    return there is not None and (there.reference, there.at) == (after.reference, after.modified_at)


def delete(world: World, tenant: str, name: str, if_match: int | None) -> None:
    """Deletes a calendar. Raises Conflict while schedules name it."""
    before = find_head(world, tenant, name)
    if if_match is not None and before.version != if_match:
        raise PreconditionFailed(f"the calendar is at version {before.version}")
    now = world.clock.now()
    if not before.users:
        for version in views.versions(world.table, tenant, name, before.version, 25):
            store.forget_version(world.table, before, version, now)
        done = world.table.transact(store.delete_ops(world.table, before, now))
        if not isinstance(done, Cancelled) or store.read(world.table, tenant, name) is None:
            return
    some = list(islice(store.users(world.table, tenant, name, None, 3), 3))
    raise Conflict(f"schedules of these jobs name it: {', '.join(some)}" if some else "it was changed meanwhile")


def _ms(instant: datetime) -> datetime:
    """Rounds down to milliseconds, the precision of the table."""
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)
