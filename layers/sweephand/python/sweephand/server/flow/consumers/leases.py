"""The lease of a consumer, which its holder takes, extends and gives back, and the start of its replay."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base.errors import Conflict, NotFound
from sweephand.domain.consumer import Consumer, Phase
from sweephand.domain.instants import text_ms
from sweephand.server.flow.concurrency import Moved, tolerated, until_unmoved
from sweephand.server.flow.runs.replay import send_word
from sweephand.server.flow.tenants import absence
from sweephand.server.flow.world import World
from sweephand.server.store.consumers import consumers as store
from sweephand.server.store.dynamo.conditional import Refused

CHANGES = "changes of this consumer"


def find(world: World, tenant: str, name: str, *, deleted_too: bool = False) -> Consumer:
    """Returns a consumer. deleted_too: True to include one deleted in the last few minutes.

    Raises NotFound for a consumer that never had a lease and for which nothing was held.
    """
    consumer = store.read(world.table, tenant, name)
    if consumer is None or (not deleted_too and is_gone(world, consumer)):
        raise NotFound("no such consumer")
    return consumer


def is_gone(world: World, consumer: Consumer) -> bool:
    """Returns whether the consumer was deleted. It exists again once somebody takes its lease or a new run is held."""
    until = consumer.ends_until
    if until is None or consumer.is_held(world.clock.now()):
        return False
    held = store.held(world.table, consumer.tenant, consumer.name)
    return not any(store.planned_at(key) > until for key in held)


@until_unmoved(CHANGES)
def take(world: World, tenant: str, name: str, holder: str, seconds: int) -> Consumer:
    """Takes or extends the lease, and repeats what its replay may have lost. Raises Conflict(CONSUMER_TAKEN)."""
    now = world.clock.now()
    until = now + timedelta(seconds=seconds)
    consumer = store.read(world.table, tenant, name) or Consumer(tenant, name)
    if consumer.is_held(now):
        _check_holder(consumer, holder)
        after = replace(consumer, lease_until=until)
        done = store.renew(world.table, tenant, name, holder, until, now)
    else:
        after = Consumer(tenant, name, holder, until, now)
        done = store.take(world.table, tenant, name, holder, until, now)
    if isinstance(done, Refused):
        raise Moved
    if after.phase is Phase.STARTING or (after.phase is Phase.LIVE and _any_held(world, after)):
        send_on(world, after)
    return after


@until_unmoved(CHANGES)
def release(world: World, tenant: str, name: str, holder: str) -> None:
    """Gives the lease back. From then on, runs are held. Raises NotFound, Conflict(CONSUMER_TAKEN)."""
    now = world.clock.now()
    consumer = find(world, tenant, name)
    if not consumer.is_held(now):
        return
    _check_holder(consumer, holder)
    if isinstance(store.release(world.table, tenant, name, holder, now), Refused):
        raise Moved


@until_unmoved(CHANGES)
def start(world: World, tenant: str, name: str, holder: str) -> Consumer:
    """Begins the replay of the held runs. A repetition changes nothing.

    Raises NotFound, Conflict(CONSUMER_TAKEN), Conflict(LEASE_OVER).
    """
    now = world.clock.now()
    consumer = find(world, tenant, name)
    if not consumer.is_held(now):
        path = f"/v1/consumers/{name}/lease"
        raise Conflict(f"nobody holds the lease of this consumer now: take it first (PUT {path})", code="LEASE_OVER")
    _check_holder(consumer, holder)
    if consumer.phase is Phase.LIVE:
        return consumer
    if consumer.phase is Phase.AWAY:
        if isinstance(store.start(world.table, tenant, name, holder, now), Refused):
            raise Moved
        consumer = replace(consumer, phase=Phase.STARTING)
        absence.check_soon(world, consumer)
    send_on(world, consumer)
    return consumer


def check_free(consumer: Consumer, now: datetime) -> None:
    """Raises Conflict(CONSUMER_TAKEN) while somebody holds the lease."""
    if consumer.is_held(now):
        raise _taken(consumer)


def _check_holder(consumer: Consumer, holder: str) -> None:
    if consumer.holder != holder:
        raise _taken(consumer)


def _taken(consumer: Consumer) -> Conflict:
    assert consumer.lease_until is not None
    until = text_ms(consumer.lease_until)
    return Conflict(f"{consumer.holder} holds the lease of this consumer until {until}", code="CONSUMER_TAKEN")


def _any_held(world: World, consumer: Consumer) -> bool:
    return next(store.held(world.table, consumer.tenant, consumer.name, 1), None) is not None


def send_on(world: World, consumer: Consumer) -> None:
    """Sends the message that continues with the held runs. If it is lost, a heartbeat or a wake sends another."""
    with tolerated(world, "the replay continues with the next heartbeat or wake", consumer=consumer.name):
        send_word(world, consumer, world.clock.now())
