"""The cost of lists at 10,000 jobs: time of each page next to an empty route, and read units; units also at 100,000.

The native API in this process, its table on the embedded AWS; every request from its event to its answer. This machine
is not quiet, and the embedded AWS looks at each row of a partition, so the CPU of both processes is shown next to the
time: what a quiet machine would need.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

from bench.meter import Meter, metered
from sweephand.base.ids import run_uuid
from sweephand.base.sources import SystemChance, SystemClock
from sweephand.domain.instants import epoch_ms
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Lane, Schedule
from sweephand.server.facades.native.api import NativeApi
from sweephand.server.flow.tenants import access, tenancy
from sweephand.server.flow.world import World
from sweephand.server.security import guard
from sweephand.server.security.caller import TENANT_SCOPES, Door
from sweephand.server.security.tokens import derive_keys
from sweephand.server.settings import from_environment
from sweephand.server.store.jobs import directory
from sweephand.server.store.jobs.directory import BlockItem
from sweephand.server.store.runs import run_rows
from sweephand.server.store.tenants import credentials
from sweephand.server.store.views import jobs as views
from sweephand.server.wiring import build
from tests.contract.calls import basic, event
from tests.local_stack import quiet
from tests.support import many_jobs

JOBS, MANY = 10_000, 100_000
RUNS = 500
TENANT, LARGE = "bench", "large"
ROUNDS, PATIENCE = 40, 3
SECRET = "a secret of the benchmark, long enough"
EMPTY = "an empty route"
BUDGETS = {
    **dict.fromkeys(("first page", "last page", "runs of a schedule", "runs of a job", "attention"), "100"),
    "timeline, 500 lanes": "300",
}
"""The budget of pages in ms; for filters and searches it is 400."""


@dataclass(frozen=True)
class Listed:
    """p50_ms, p99_ms: of the requests. cpu_ms: of this process and the embedded AWS, a request.

    units: read units; writes: write units; calls: of AWS.
    """

    name: str
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    units: float
    writes: float = 0
    calls: int = 0


def requests(some_job: str, some_schedule: str) -> dict[str, tuple[str, str]]:
    return {
        EMPTY: ("/v1/health", ""),
        "first page": ("/v1/jobs", ""),
        "last page": ("/v1/jobs", f"offset={JOBS - 50}"),
        "offset 9,900, 100 jobs, total": ("/v1/jobs", "offset=9900&limit=100&include=total"),
        "collection": ("/v1/jobs", "collection=default"),
        "tag of all jobs": ("/v1/jobs", f"tag={many_jobs.COMMON}"),
        "tag of ten jobs": ("/v1/jobs", f"tag={many_jobs.RARE}"),
        "resource": ("/v1/jobs", "resourceId=resource-5000"),
        "name": ("/v1/jobs", "name=even-job-005000"),
        "state, of each tenth": ("/v1/jobs", "state=PAUSED"),
        "state, of none": ("/v1/jobs", "state=FAULTED"),
        "search, of each hundredth": ("/v1/jobs", "search=odd"),
        "search, of none": ("/v1/jobs", "search=nowhere"),
        "search in a collection": ("/v1/jobs", "collection=default&search=nowhere"),
        "tag of all jobs and state, of none": ("/v1/jobs", f"tag={many_jobs.COMMON}&state=FAULTED"),
        "runs of a schedule": ("/v1/runs", f"scheduleId={some_schedule}"),
        "runs of a job": ("/v1/runs", f"jobId={some_job}"),
        "attention": ("/v1/runs", ""),
        "timeline, 500 lanes": ("/v1/timeline", "limit=500"),
        "timeline, what is new": ("/v1/timeline:changes", f"since={_a_quarter_ago()}"),
        "what needs somebody": ("/v1/attention", ""),
        "load ahead, from memory": ("/v1/load", ""),
        "first page with last runs": ("/v1/jobs", "include=lastRuns"),
    }


def _a_quarter_ago() -> str:
    """Returns `since` of a timeline that was read a quarter of an hour ago."""
    now = SystemClock().now()
    return f"{epoch_ms(now - timedelta(minutes=15))}-{epoch_ms(now)}-{'0' * 16}"


def measure() -> tuple[list[Listed], list[tuple[str, float]]]:
    """Measures each list at 10,000 jobs, and the units of some at 100,000, by what is asked."""
    with (
        tempfile.TemporaryDirectory() as folder,
        quiet.with_process(Path(folder)) as (aws, stack, process),
        mock.patch.dict("os.environ", quiet.variables(aws, stack, "ApiFunction")),
    ):
        world = build(from_environment(), clock=SystemClock(), chance=SystemChance())
        table = world.table
        tenancy.create_tenant(world, TENANT, None)
        job, schedule = next(islice(many_jobs.some_jobs(TENANT, JOBS), JOBS - 1, None))
        many_jobs.put(table.client, table.name, many_jobs.rows(TENANT, JOBS, world.settings.shards))
        many_jobs.put(table.client, table.name, runs(world, TENANT, schedule, RUNS))
        send = _api(world)
        asked = requests(job.id, schedule.id).items()
        found = [measured(partial(send, *each), process, name) for name, each in asked]
        with metered() as meter:
            found = [replace(each, units=_units(meter, send, each.name, job.id, schedule.id)) for each in found]
            many_jobs.put(table.client, table.name, _lean_rows(MANY))
            return found, list(_at_many(world, meter))


def _api(world: World) -> Callable[[str, str], None]:
    """Sends a request until it is answered well: an embedded AWS on a busy machine may answer too late, which is told
    by the time. The route that is empty is so without an identity.
    """
    derived = derive_keys("bench", SECRET, None)
    issued = access.create_credential(world, TENANT, None, TENANT_SCOPES)
    door = Door(derived, SECRET, lambda tenant, name: credentials.find_credential(world.table, tenant, name))
    facade = NativeApi(world, guard.GuardSettings(), lambda: door)
    headers = {"authorization": basic(issued.credential.client_id, issued.secret)}

    def send(path: str, query: str) -> None:
        for _ in range(PATIENCE):
            answer = facade.handle(event("GET", path, query, {} if path == "/v1/health" else headers), "bench")
            if answer["statusCode"] == 200:
                return
        raise AssertionError(answer["body"])

    return send


def measured(send: Callable[[], None], process: int, name: str, rounds: int = ROUNDS, warm: int = 3) -> Listed:
    """Measures one request. warm: how often it is asked before."""
    for _ in range(warm):
        send()
    taken = []
    began = time.process_time() + _cpu_s(process)
    for _ in range(rounds):
        sent_at = time.perf_counter()
        send()
        taken.append((time.perf_counter() - sent_at) * 1_000)
    cpu_s = time.process_time() + _cpu_s(process) - began
    taken.sort()
    return Listed(name, taken[rounds // 2], taken[math.ceil(rounds * 0.99) - 1], cpu_s / rounds * 1_000, 0)


def _cpu_s(process: int) -> float:
    """Returns the CPU seconds of another process so far, in user and system mode."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _units(meter: Meter, send: Callable[[str, str], None], name: str, job: str, schedule: str) -> float:
    meter.take()
    send(*requests(job, schedule)[name])
    return meter.take().reads


def runs(world: World, tenant: str, schedule: Schedule, count: int) -> Iterator[Any]:
    """Yields runs, one for each minute before now, the latest first. Half of them failed."""
    for n in range(count):
        at = world.clock.now().replace(microsecond=0) - timedelta(minutes=n)
        uuid = run_uuid(tenant, schedule.id, epoch_ms(at), Kind.SCHEDULED.value)
        state, reason = (State.ERROR, Reason.HTTP_STATUS) if n % 2 else (State.SUCCESS, Reason.ON_TIME)
        run = Run(tenant, schedule.job_id, schedule.id, uuid, Kind.SCHEDULED, state, at, reason=reason, finished_at=at)
        yield run_rows.item_of(run, shards=world.settings.shards, lane=Lane.FAST)


def _lean_rows(count: int) -> Iterator[Any]:
    """Writes only the directory of a larger tenant."""
    for job, schedule in many_jobs.some_jobs(LARGE, count):
        yield directory.row_item(job, [schedule])
    for block in range(count // directory.BLOCK + 1):
        live = directory.BLOCK - (block == 0) if block < count // directory.BLOCK else 1
        pk, sk = directory.count_key(LARGE, block * directory.BLOCK, "native")
        yield BlockItem(pk=pk, sk=sk, live=live, active=live)


def _at_many(world: World, meter: Meter) -> Iterator[tuple[str, float]]:
    asked: Sequence[tuple[str, Callable[[], object]]] = [
        ("first page of 50", lambda: _page(world, 0, 51)),
        ("offset 99,900, page of 100", lambda: _page(world, 99_900, 101)),
        ("total", lambda: views.count(world.table, LARGE, views.ALL)),
    ]
    for name, ask in asked:
        meter.take()
        ask()
        yield name, meter.take().reads


def _page(world: World, skip: int, size: int) -> list[Any]:
    return list(islice(views.listed(world.table, LARGE, views.ALL, None, size, skip), size))
