"""Lets the held schedules of a collection or tenant go after it was enabled, however many there are.

The work has a row in the next-run index, written by the transaction that enabled it. The executor does it in stretches,
each of which may be cut off or done twice. It goes over all jobs twice: a sweep that had read the list of what is
disabled before it changed may hold a row after the first round has passed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from sweephand.domain.collection import CollectionState
from sweephand.domain.instants import from_s
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.occurrences.index_row import WAKE
from sweephand.domain.schedule import Lane, Schedule, ScheduleState
from sweephand.errors import Unavailable
from sweephand.flow.series import holding, replan
from sweephand.flow.world import World
from sweephand.messaging.run_queue import Delivery
from sweephand.store.dynamo.conditional import Refused
from sweephand.store.dynamo.table import ReleaseItem
from sweephand.store.index import suspended
from sweephand.store.jobs import jobs
from sweephand.store.views import jobs as lists
from sweephand.store.views import tenants as views

STRETCH_S = 10.0
"""How long one message may take: well within an executor's lease."""
LONGEST_TICK = timedelta(minutes=2)
"""A sweep that began before the list changed has ended by then."""
ROUNDS = 2
PAGE = 25


def pointer(tenant: str, collection: str | None, at: datetime) -> Pointer:
    return Pointer(tenant, "", None, collection or "", at, subject=Subject.RELEASE)


def begin(world: World, tenant: str, collection: str | None) -> None:
    """Sends the first message of a release, right after the write that enabled it. The next sweep sends it if lost."""
    now = world.clock.now()
    try:
        world.queue.send_one(Delivery(pointer(tenant, collection, now), now, Lane.FAST))
    except Unavailable:
        world.journal.warning("held schedules will go on with the next tick", tenant=tenant)


def go_on(world: World, asked: Pointer) -> None:
    """Carries out one stretch of a release. Another message does the rest or, if that is lost, the wake row."""
    tenant, collection = asked.tenant, asked.run or None
    item = suspended.read_release(world.table, tenant, collection)
    now = world.clock.now()
    if item is None or (item.round == ROUNDS and now < from_s(item.until) + LONGEST_TICK):
        return
    deadline = world.clock.monotonic() + STRETCH_S
    for cursor, schedules in _pages(world, tenant, collection, item):
        _let_go(world, schedules, from_s(item.until))
        if world.clock.monotonic() > deadline:
            again = world.clock.now()
            saved = suspended.go_on(world.table, item, number=item.round, cursor=cursor, at=again + WAKE)
            if not isinstance(saved, Refused):
                world.queue.send_one(Delivery(pointer(tenant, collection, again), again, Lane.FAST))
            return
    if item.round < ROUNDS:
        at = max(world.clock.now(), from_s(item.until) + LONGEST_TICK)
        suspended.go_on(world.table, item, number=item.round + 1, cursor=None, at=at)
    else:
        suspended.finish(world.table, tenant, collection, item)


Mark = tuple[str, str]
"""A collection, and the name of its last job that is done."""


def _pages(
    world: World, tenant: str, collection: str | None, item: ReleaseItem
) -> Iterator[tuple[Mark, Sequence[Schedule]]]:
    """Yields the schedules of one page of jobs at a time, from the row's cursor on, with the cursor after the page."""
    begun, name = suspended.cursor_of(item)
    for each in _collections(world, tenant, collection, begun):
        entries = lists.by_name(world.table, tenant, each, name if each == begun else None, PAGE)
        page: list[lists.Row] = []
        for entry in entries:
            page.append(entry)
            if len(page) == PAGE:
                yield (each, entry.place), _schedules(world, tenant, page)
                page = []
        if page:
            yield (each, page[-1].place), _schedules(world, tenant, page)


def _collections(world: World, tenant: str, collection: str | None, begun: str | None) -> Iterator[str]:
    """Yields the collections to release. For a tenant these are its enabled ones; schedules of others stay held."""
    if collection is not None:
        yield collection
        return
    for each in views.collections(world.table, tenant, None, PAGE):
        if each.state is CollectionState.ENABLED and (begun is None or each.name >= begun):
            yield each.name


def _schedules(world: World, tenant: str, entries: Sequence[lists.Row]) -> list[Schedule]:
    found = lists.jobs_with_schedules(world.table, tenant, [entry.job_id for entry in entries])
    return [schedule for _, schedules in found for schedule in schedules]


def _let_go(world: World, schedules: Sequence[Schedule], until: datetime) -> None:
    """Lets go the schedules that are held, and those that fell due without having been held yet."""
    going: list[Schedule] = []
    for schedule in schedules:
        first = schedule.unsent_from
        if schedule.state is not ScheduleState.ACTIVE or first is None:
            continue
        if schedule.held_from is None and (first > until or holding.planned_since(schedule, until)):
            continue
        try:
            row = holding.let_go(world, holding.row_of(schedule), until)
        except ValueError:
            continue  # the sweep takes a schedule that cannot be read out of service
        if row is not None:
            there = jobs.read_schedule(world.table, schedule.tenant, schedule.job_id, schedule.id)
            going += [there] if there is not None else []
    replan.send_ahead(world, going)
