"""Holds the runs of consumers that are not live. The executor knows a consumer's phase as of at most 2 s ago."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.domain.consumer import Consumer, Phase
from sweephand.domain.occurrences.index_row import WAKE_AGAIN
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.runs import run_action
from sweephand.server.flow.tenants import absence
from sweephand.server.flow.verdict import RunMessage
from sweephand.server.flow.world import Remembered, World
from sweephand.server.store.consumers import consumers as store
from sweephand.server.store.dynamo.conditional import Refused, Written
from sweephand.server.store.runs import ledger
from sweephand.server.store.tenants.tenants import TERMS_KEPT_S

JUST_NOW = timedelta(minutes=1)
"""A watch begins with the instant of its first run, but no earlier than this."""


class _Consumers(Remembered[tuple[str, str], tuple[float, Consumer]]):
    """Consumers by tenant and name, each with the monotonic second of its reading."""

    most = 1_000


def is_away(world: World, tenant: str, name: str) -> bool:
    """Returns whether runs are held for this consumer. Raises Unavailable."""
    return _known(world, tenant, name).phase_at(world.clock.now()) is not Phase.LIVE


def hold(world: World, message: RunMessage, consumer: str) -> Written | Refused:
    """Writes the row of a run that waits for its consumer, if it has none. Raises Unavailable.

    The consumer's wake is written first, so that no run is held without a wake that ends it in time, and its watch, so
    that it is reported as away.
    """
    pointer, job = message.pointer, message.context.job
    assert job is not None
    expect(world, pointer.tenant, consumer, pointer.instant)
    run: Run = replace(
        run_action.new_run(job, Kind.SCHEDULED, pointer.schedule, pointer.run, State.HELD, pointer.instant),
        reason=Reason.CONSUMER_AWAY,
        enqueued_at=message.delivered.sent_at,
        generation=pointer.generation,
        consumer=consumer,
    )
    return ledger.claim_first(world.table, run, shards=world.shards, lane=message.lane)


def expect(world: World, tenant: str, consumer: str, since: datetime) -> None:
    """Writes the wake and the watch of a consumer for which a run will be held. Raises Unavailable."""
    if not _known(world, tenant, consumer).watched:
        store.watch(world.table, tenant, consumer, world.clock.now() + WAKE_AGAIN, world.shards)
        _remember(world, replace(_known(world, tenant, consumer), watched=True))
    if (known := _known(world, tenant, consumer)).watched_since is None:
        begun_at = max(since, world.clock.now() - JUST_NOW)
        absence.watch(world, known, begun_at)
        _remember(world, replace(known, watched_since=begun_at))


def _known(world: World, tenant: str, name: str) -> Consumer:
    read_at, consumer = world.memory.of(_Consumers).get((tenant, name), (None, None))
    if consumer is not None and read_at is not None and world.clock.monotonic() - read_at < TERMS_KEPT_S:
        return consumer
    consumer = store.read(world.table, tenant, name) or Consumer(tenant, name)
    _remember(world, consumer)
    return consumer


def _remember(world: World, consumer: Consumer) -> None:
    world.memory.of(_Consumers)[consumer.tenant, consumer.name] = world.clock.monotonic(), consumer
