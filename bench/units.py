"""The write and read units of a run: read and write units by outcome, and the calls of an idle tick.

Measured on the embedded AWS with the real template, where nothing ticks; messages are handed over directly. Units are
counted by AWS's rules from the items themselves (meter.py).
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from bench.meter import Meter, metered
from sweephand.base.sources import SystemChance, SystemClock
from sweephand.domain.job import ActionDraft, JobDraft, Payload, ScheduleDraft
from sweephand.domain.message import encode
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.domain.schedule import Lane
from sweephand.server import actions
from sweephand.server.flow import verdict
from sweephand.server.flow.delivery import dispatch
from sweephand.server.flow.jobs import change, creation
from sweephand.server.flow.sweep import sweep
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.security.guard import GuardSettings
from sweephand.server.settings import from_environment
from sweephand.server.wiring import build
from tests.local_stack import quiet

TENANT = "bench"
RETRY = {"type": "fixed", "maxRetries": 1, "delaySeconds": 5}
SUCCESS = Outcome(Verdict.SUCCEEDED, http_status=200, answer="ok")
FAILURE = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, 503, "no", retryable=True)


class MovedClock(SystemClock):
    """The system's clock, put forward."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead

    def sleep(self, seconds: float) -> None:
        self.ahead += timedelta(seconds=seconds)


class Kept:
    """Takes messages as the run queue does, to be handed to the executor at once."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []

    def send(self, deliveries: list[Delivery]) -> list[Delivery]:
        self.deliveries += deliveries
        return []

    def send_one(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)

    def postpone(self, _lane: Lane, _receipts: Any) -> None:
        return


@dataclass(frozen=True)
class Units:
    name: str
    reads: float
    writes: float


def measure() -> tuple[list[Units], dict[str, int], int]:
    """Units by outcome; the calls of an idle tick; the shards that it asks."""
    with tempfile.TemporaryDirectory() as folder, quiet.stack(Path(folder)) as (aws, stack):
        variables = quiet.variables(aws, stack, "ExecutorFunction")
        with mock.patch.dict("os.environ", variables), metered() as meter:
            clock, queue = MovedClock(), Kept()
            world = replace(build(from_environment(), clock=clock, chance=SystemChance()), queue=queue)
            tenancy.create_tenant(world, TENANT, None)
            sweep.tick(world)  # the first one keeps the number of shards
            meter.take()
            sweep.tick(world)
            idle = dict(meter.take().calls)
            units = [
                _run(world, clock, queue, meter, "success", [SUCCESS]),
                _run(world, clock, queue, meter, "success, payload of 8 KB", [SUCCESS], payload=8_000),
                _run(world, clock, queue, meter, "success, one run at a time", [SUCCESS], overlap="skip"),
                _run(world, clock, queue, meter, "success at the second attempt", [FAILURE, SUCCESS], retry=RETRY),
                _run(world, clock, queue, meter, "failure without retry", [FAILURE]),
                _run(world, clock, queue, meter, "failure after one retry", [FAILURE, FAILURE], retry=RETRY),
            ]
            return units, idle, world.settings.shards


def _run(
    world: World,
    clock: MovedClock,
    queue: Kept,
    meter: Meter,
    name: str,
    outcomes: list[Outcome],
    *,
    payload: int = 0,
    retry: dict[str, Any] | None = None,
    overlap: str = "allow",
) -> Units:
    """Runs one occurrence of a recurring job in the middle of its life, from the sweep to its last effect."""
    left = list(outcomes)
    world = replace(world, perform=lambda *_: left.pop(0))
    text = Payload('{"x":"' + "x" * payload + '"}', is_json=True) if payload else None
    asked = actions.draft({"type": "http", "url": "https://x.org"}, field="action", guard=GuardSettings())
    action = ActionDraft(asked.kind, asked.params, retry or {"type": "none"}, payload=text)
    each = ScheduleDraft("each", {"every": "PT10M"}, policies={"overlap": overlap})
    draft = JobDraft(name=name, action=action, schedules=(each,))
    planned = creation.create_job(world, TENANT, draft)
    clock.ahead += timedelta(minutes=9)
    queue.deliveries.clear()
    meter.take()
    assert sweep.tick(world).advanced == 1
    # The sweep's queries are shared by all the rows of their shards.
    meter.reads = 0
    clock.ahead += timedelta(minutes=2)
    while queue.deliveries:
        delivery = queue.deliveries.pop(0)
        clock.ahead += max(timedelta(0), delivery.at - clock.now())
        message = verdict.Delivered("1", "r", encode(delivery.pointer), clock.now(), clock.now())
        failed = dispatch.batch(world, Lane.FAST, f"bench {len(left)}", [message])
        assert not failed, name
    assert not left, name
    spent = meter.take()
    change.set_state(world, TENANT, planned.job.id, lambda job: replace(job, active=False), None)
    return Units(name, spent.reads, spent.writes)
