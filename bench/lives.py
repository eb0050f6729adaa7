"""Units of a job's whole life: its creation, a change, its run and its deletion, and what it takes in the table.

Counted by the meter on the in-memory table. The units of idle ticks in the same time are not included. The prices are
in tools/docs/costs.py; tests/unit/test_costs.py holds its figures against these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bench.meter import Meter, metered, size
from sweephand.domain.instants import text
from tests.support.stage import TENANT, Stage, stage

SECRET: Mapping[str, Any] = {"authentication": {"type": "bearer", "token": "s3cret"}}
HOUR_S, KEPT_S = 3_600, 60 * 86_400
"""Until a one-time job runs; until it is deleted after its end."""


@dataclass(frozen=True)
class Spent:
    """Units of a phase. Whole write units; read units in halves."""

    writes: int
    reads: float


@dataclass(frozen=True)
class OneTime:
    """The life of a one-time job: its phases, and the bytes of its rows until its deletion."""

    created: Spent
    ran: Spent
    deleted: Spent
    stored: int


@dataclass(frozen=True)
class Asked:
    """Requests about a job with one schedule: to create it, to change its description, and to delete it."""

    created: Spent
    changed: Spent
    deleted: Spent


def one_time(**action: Any) -> OneTime:
    """Returns the units of a one-time job, which is deleted 60 days after its end."""
    idle = _idle(HOUR_S + 120), _idle(KEPT_S + HOUR_S)
    with _ready() as (there, meter):
        at = text(there.clock.now() + timedelta(seconds=HOUR_S))
        planned = there.create({"at": at}, action=there.action(**action))
        created = _taken(meter)
        _pass(there, HOUR_S + 120)
        ran = _taken(meter, idle[0])
        stored = sum(size(item) for item in there.items() if planned.job.id in str(item))
        meter.take()
        _pass(there, KEPT_S + HOUR_S)
        assert not [item for item in there.items() if item["sk"]["S"] == "JOB"]
        return OneTime(created, ran, _taken(meter, idle[1]), stored)


def asked() -> Asked:
    """Returns the units of requests about a recurring job. Includes the clean-up after the deletion."""
    idle = _idle(600)
    with _ready() as (there, meter):
        planned = there.create({"every": "P30D"})
        created = _taken(meter)
        planned = there.change(planned, description="other")
        changed = _taken(meter)
        there.delete(planned)
        _pass(there, 600)
        return Asked(created, changed, _taken(meter, idle))


@contextmanager
def _ready() -> Iterator[tuple[Stage, Meter]]:
    """Yields a service whose tenant has a key for secrets, with a meter that begins at zero."""
    with stage() as there, metered() as meter:
        there.world.secrets.encrypt(TENANT, "job", "field", "first")
        there.tick()
        meter.take()
        yield there, meter


def _pass(there: Stage, seconds: float) -> None:
    """Lets time go by. Only the last ten minutes have ticks."""
    there.pass_time(max(0, seconds - 600))
    there.run(min(seconds, 600))


def _idle(seconds: float) -> float:
    """Returns the read units of the same time without a job."""
    with stage() as there, metered() as meter:
        there.tick()
        meter.take()
        _pass(there, seconds)
        return meter.take().reads


def _taken(meter: Meter, idle: float = 0.0) -> Spent:
    spent = meter.take()
    return Spent(int(spent.writes), spent.reads - idle)
