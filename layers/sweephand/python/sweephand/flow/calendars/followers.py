"""Replans the schedules that name a calendar after the calendar was changed, however many there are.

The transaction of the change writes a row for this work into the next-run index. The executor then does it in
stretches, which may be cut off or repeated: a job that follows the current version already is left alone. A job that
cannot be changed now is tried again in a later round. Another change of the calendar restarts the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from sweephand.domain.message import Pointer, Subject
from sweephand.domain.occurrences.index_row import WAKE
from sweephand.domain.schedule import Lane
from sweephand.errors import Conflict, InvalidRequest, NotFound, Unavailable
from sweephand.flow.jobs import change
from sweephand.flow.world import World
from sweephand.messaging.run_queue import Delivery
from sweephand.store.calendars import calendars as store
from sweephand.store.dynamo.conditional import Refused

STRETCH_S = 10.0
"""Time limit of one message: well within an executor's lease."""
PAGE = 25


def pointer(tenant: str, name: str, at: datetime) -> Pointer:
    return Pointer(tenant, name, None, name, at, subject=Subject.REPLAN)


def begin(world: World, tenant: str, name: str) -> None:
    """Sends the first message, right after the change. If that fails, the next sweep sends it."""
    now = world.clock.now()
    try:
        world.queue.send_one(Delivery(pointer(tenant, name, now), now, Lane.FAST))
    except Unavailable:
        world.journal.warning("the schedules of a calendar follow it with the next tick", tenant=tenant)


def go_on(world: World, asked: Pointer) -> None:
    """Does one stretch, then sends a message for the rest; if that is lost, the row sends it."""
    tenant, name = asked.tenant, asked.run
    item = store.read_replan(world.table, tenant, name)
    if item is None:
        return
    deadline = world.clock.monotonic() + STRETCH_S
    left = bool(item.left)
    for page in _pages(store.users(world.table, tenant, name, item.cursor, PAGE)):
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


def _pages(users: Iterator[str]) -> Iterator[list[str]]:
    while page := list(islice(users, PAGE)):
        yield page


def _follow(world: World, tenant: str, job_id: str) -> bool:
    """Replans the schedules of one job. Returns False if it must be tried again."""
    try:
        change.follow_calendars(world, tenant, job_id)
    except NotFound:
        return True  # deleted since
    except (Conflict, InvalidRequest, Unavailable) as refused:
        world.journal.warning("a job follows its calendar later", tenant=tenant, job=job_id, reason=refused.reason)
        return False
    return True
