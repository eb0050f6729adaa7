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
    """wanted: its name, content and facts. Raises Conflict(NAME_TAKEN)."""
    now = _ms(world.clock.now())
    calendar = replace(wanted, created_at=now, modified_at=now, version=1)
    calendar = replace(calendar, reference=reference_of(calendar))
    stays = tenants.stays_op(world.table, wanted.tenant)
    done = world.table.transact([*store.create_ops(world.table, calendar, actor), stays])
    if isinstance(done, Cancelled):
        if "tenant" in done.refused:
            raise Conflict("the tenant is being deleted, or is not there")
        there = store.read(world.table, wanted.tenant, wanted.name)
        if there is None or there.reference != calendar.reference:
            raise Conflict("a calendar of this name exists", code="NAME_TAKEN")
    return calendar


def find(world: World, tenant: str, name: str) -> Calendar:
    """With its content. Raises NotFound."""
    head = find_head(world, tenant, name)
    return replace(head, content=content_of(world, tenant, head.reference))


def find_version(world: World, tenant: str, name: str, number: int) -> tuple[Version, Mapping[str, Any]]:
    """With its content. Raises NotFound."""
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
    """The next version; its users follow. What is asked for as it is changes nothing."""
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
    raise Unavailable("the calendar was changed by others all the time")


def _is_written(world: World, after: Calendar) -> bool:
    """The answer to this very write may have been lost."""
    there = store.read_version(world.table, after.tenant, after.name, after.version)
    return there is not None and (there.reference, there.at) == (after.reference, after.modified_at)


def delete(world: World, tenant: str, name: str, if_match: int | None) -> None:
    """Raises Conflict while schedules name it."""
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
    raise Conflict(f"schedules name it, of the jobs {', '.join(some)}" if some else "it was changed meanwhile")


def _ms(instant: datetime) -> datetime:
    """Whole milliseconds, as the table keeps them."""
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)
