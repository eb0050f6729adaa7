"""After a calendar was changed: the schedules that name it are planned anew, however many there are.

The work has a row in the next-run index, written by the transaction of the change, and is carried on by the executor
in stretches, each of which may be cut off or done twice: a job that goes by the version that holds is left alone. One
that cannot be changed now is seen to in a later round. Another change of the calendar begins the work anew.
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
"""What one message may take: well within an executor's lease."""
PAGE = 25


def pointer(tenant: str, name: str, at: datetime) -> Pointer:
    return Pointer(tenant, name, None, name, at, subject=Subject.REPLAN)


def begin(world: World, tenant: str, name: str) -> None:
    """Right after the write that changed it. A message that does not go out is sent by the next sweep."""
    now = world.clock.now()
    try:
        world.queue.send_one(Delivery(pointer(tenant, name, now), now, Lane.FAST))
    except Unavailable:
        world.journal.warning("what names a calendar follows with the next tick", tenant=tenant)


def go_on(world: World, asked: Pointer) -> None:
    """One stretch. What is left is another message's; if that is lost, the row's."""
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
    """False: it must be tried again."""
    try:
        change.follow_calendars(world, tenant, job_id)
    except NotFound:
        return True  # deleted since
    except (Conflict, InvalidRequest, Unavailable) as refused:
        world.journal.warning("a job follows its calendar later", tenant=tenant, job=job_id, reason=refused.reason)
        return False
    return True
