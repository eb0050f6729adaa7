"""Watches applications: finds out that nobody receives the messages of one, and publishes it when that begins and ends.

A run that no worker has taken begins a watch. While it lasts, the sweep has the application checked each minute. An
application without unclaimed runs is never checked and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from sweephand.domain.application import CHECKED_AFTER, Application
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.schedule import Lane
from sweephand.flow import events
from sweephand.flow.concurrency import tolerated
from sweephand.flow.world import World
from sweephand.messaging.run_queue import Delivery
from sweephand.store.dynamo.conditional import Written
from sweephand.store.tenants import applications as store


class Back(StrEnum):
    """The reason why an application is no longer away."""

    RECEIVED = "RECEIVED"
    """A worker has come, or receives messages."""
    NOTHING_WAITS = "NOTHING_WAITS"
    """Its queue is empty: its messages were deleted, or SQS has kept them for 14 days."""
    DELETED = "DELETED"
    """The application was deleted."""


def begin(world: World, tenant: str, params: Mapping[str, Any], since: datetime) -> None:
    """Watches the application that an action names, unless it is watched. since: when its message could be received.

    The sweep repeats a check whose message is lost. Raises Unavailable.
    """
    found = store.read(world.table, tenant, params["application"], params.get("version"))
    if found is None or found.unclaimed_since is not None:
        return
    now = world.clock.now()
    if isinstance(store.watch(world.table, found, since, now, world.settings.shards), Written):
        _send_check(world, tenant, found.name, found.version, now + CHECKED_AFTER)


def seen(world: World, tenant: str, name: str, version: str | None) -> None:
    """Notes that a worker of the application came, if it is watched; the next check publishes it. Best effort."""
    with tolerated(world, "that a worker came is noted with its next claim"):
        found = store.read(world.table, tenant, name, version, consistent=False)
        if found is None or found.unclaimed_since is None or found.seen_at is not None:
            return
        now = world.clock.now()
        if isinstance(store.see(world.table, tenant, name, version, now), Written):
            _send_check(world, tenant, name, version, now)


def _send_check(world: World, tenant: str, name: str, version: str | None, at: datetime) -> None:
    pointer = Pointer(tenant, name, None, version or "", at, subject=Subject.APPLICATION)
    with tolerated(world, "the application is checked at its next wake"):
        world.queue.send_one(Delivery(pointer, at, Lane.FAST))


def check(world: World, pointer: Pointer) -> None:
    """Checks a watched application: it is away while messages wait and none is in flight. Raises Unavailable.

    Workers that are busy keep messages in flight, so they are not away. Events are published before they are noted: a
    repetition has the same id.
    """
    watched = store.read(world.table, pointer.tenant, pointer.job, pointer.run or None)
    if watched is None or watched.unclaimed_since is None:
        return
    backlog = world.queue.backlog_of(watched.lane)
    if watched.seen_at is not None or (backlog.in_flight and watched.away_at is not None):
        end(world, watched, Back.RECEIVED)
    elif backlog.in_flight:
        return
    elif not backlog.ready:
        end(world, watched, Back.NOTHING_WAITS)
    else:
        _away(world, watched, backlog.ready)


def _away(world: World, watched: Application, waiting: int) -> None:
    now = world.clock.now()
    if watched.away_at is None:
        events.application_away(world, watched, waiting, now)
        store.mark_away(world.table, watched, now, waiting)
    elif watched.waiting != waiting:
        store.count_waiting(world.table, watched, waiting)
    world.journal.count("ApplicationsAway")


def end(world: World, watched: Application, why: Back) -> None:
    """Ends a watch. Publishes it if the application was away."""
    if watched.away_at is not None:
        events.application_back(world, watched, why.value, watched.seen_at or world.clock.now())
    store.end_watch(world.table, watched)
