"""After a collection or a tenant was enabled: its held schedules go on, however many there are.

The work has a row in the next-run index, written by the transaction that enabled it, and is carried on by the executor
in stretches, each of which may be cut off or done twice. It goes over all jobs two times: a sweep that read the list of
what is disabled before it changed may hold a row behind the first round.
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
"""What one message may take: well within an executor's lease."""
LONGEST_TICK = timedelta(minutes=2)
"""A sweep that began before the list changed is over by then."""
ROUNDS = 2
PAGE = 25


def pointer(tenant: str, collection: str | None, at: datetime) -> Pointer:
    return Pointer(tenant, "", None, collection or "", at, subject=Subject.RELEASE)


def begin(world: World, tenant: str, collection: str | None) -> None:
    """Right after the write that enabled it. A message that does not go out is sent by the next sweep."""
    now = world.clock.now()
    try:
        world.queue.send_one(Delivery(pointer(tenant, collection, now), now, Lane.FAST))
    except Unavailable:
        world.journal.warning("held schedules go on with the next tick", tenant=tenant)


def go_on(world: World, asked: Pointer) -> None:
    """One stretch. What is left is another message's; if that is lost, the row's."""
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
"""A collection, and the name of its last job that was done."""


def _pages(
    world: World, tenant: str, collection: str | None, item: ReleaseItem
) -> Iterator[tuple[Mark, Sequence[Schedule]]]:
    """The schedules of a page of jobs at a time, behind the row's cursor, with the cursor behind them."""
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
    """Of a tenant, those that are enabled themselves: the others' schedules stay held."""
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
    """Those that are held, and those that fell due without having been held yet."""
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
