"""An overview of 1,000 jobs: how many requests its first load takes, and what it reads when it is left open."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from bench.meter import billed, metered
from sweephand.base.ids import run_uuid
from sweephand.domain.instants import epoch_ms
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.store.runs import run_rows
from tests.contract.native.api import Api
from tests.contract.native.api import api as made
from tests.support import many_jobs
from tests.support.stage import TENANT

JOBS, OPEN_S, UNITS_A_MINUTE = 1_000, 3_600, 60


@pytest.fixture(scope="module")
def crowded() -> Iterator[Api]:
    with made() as there:
        world = there.stage.world
        for item in many_jobs.rows(TENANT, JOBS, world.settings.shards):
            world.table.put(item)
        yield there


def fail(api: Api, count: int) -> None:
    """Lets a run of each of the first jobs that run fail a second ago, without the sweep of a thousand."""
    at = api.stage.clock.now().replace(microsecond=0)
    table = api.stage.world.table
    due = (each for each in many_jobs.some_jobs(TENANT, JOBS) if each[1].next_run_at is not None)
    for job, schedule in islice(due, count):
        uuid = run_uuid(TENANT, schedule.id, epoch_ms(at), Kind.SCHEDULED.value)
        run = Run(TENANT, job.id, schedule.id, uuid, Kind.SCHEDULED, State.ERROR, at, reason=Reason.NO_ANSWER)
        table.put(run_rows.item_of(run, shards=1, lane=Lane.FAST))


@pytest.mark.extended
def test_an_overview_left_open_reads_at_most_60_units_a_minute(crowded: Api) -> None:
    with billed(), metered() as meter:
        first = crowded.get("/v1/timeline", query="limit=500").json
        second = crowded.get("/v1/timeline", query={"limit": 500, "cursor": first["nextCursor"]}).json
        others = {path: crowded.get(path).json["askAgainAfterSeconds"] for path in ("/v1/load", "/v1/attention")}
        since, asked, seen = first["since"], 0, 0
        meter.take()
        begun = crowded.stage.clock.monotonic()
        while crowded.stage.clock.monotonic() - begun < OPEN_S:
            fail(crowded, 3)
            found = crowded.get("/v1/timeline:changes", query={"since": since}).json
            since, asked = found["since"], asked + 1
            seen = max(seen, len(found["marks"]))
            for path, left in others.items():
                others[path] = left - found["askAgainAfterSeconds"]
                if others[path] <= 0:
                    others[path] = crowded.get(path).json["askAgainAfterSeconds"]
            crowded.stage.clock.advance(found["askAgainAfterSeconds"])
        spent = meter.take().reads

    assert len(first["items"]) + len(second["items"]) == JOBS
    assert second["nextCursor"] is None
    assert 900 <= first["readUnits"] + second["readUnits"] <= 1_100, "half a unit for each job and each schedule"
    assert asked > 40, "often enough to be worth looking at"
    assert seen >= 3
    assert spent / (OPEN_S / 60) <= UNITS_A_MINUTE
    assert spent / asked > 18, "the whole directory is paid for"
