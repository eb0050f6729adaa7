"""The cost of the routes of the SAP facade at 10,000 jobs, measured as in `lists`.

One schedule of them has 10,000 runs. Requests that write are measured on separate jobs, each request on another one.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any
from unittest import mock

from bench.lists import EMPTY, ROUNDS, SECRET, Listed, measured, runs
from bench.meter import Meter, metered
from sweephand.base.sources import SystemChance, SystemClock
from sweephand.domain.collection import Collection
from sweephand.domain.job import integer_id
from sweephand.formats.sap.fields import COLLECTION
from sweephand.server.facades.api import Api
from sweephand.server.facades.native.api import NativeApi
from sweephand.server.facades.sap.routes import SapApi
from sweephand.server.flow.tenants import access, tenancy
from sweephand.server.flow.world import World
from sweephand.server.security import guard
from sweephand.server.security.caller import TENANT_SCOPES, Door
from sweephand.server.security.tokens import derive_keys
from sweephand.server.settings import from_environment
from sweephand.server.store.dynamo import keys
from sweephand.server.store.jobs import ordinals
from sweephand.server.store.tenants import credentials
from sweephand.server.wiring import build
from tests.contract.calls import basic, event
from tests.local_stack import quiet
from tests.support import many_jobs

JOBS, RUNS = 10_000, 10_000
TENANT = "bench"
WRITE_ROUNDS = 20
MIDDLE = JOBS // 2
Body = Mapping[str, Any] | None


@dataclass(frozen=True)
class Asked:
    """path and body: of the n-th request; each in its own way where it writes."""

    method: str
    path: Callable[[int], str]
    query: str = ""
    body: Callable[[int], Body] = lambda _: None
    writes: bool = False


def requests(ordinal: int, schedule: str, run: str) -> dict[str, Asked]:
    """Lists the requests. schedule, run: of the last job."""

    def job(n: int) -> str:
        return f"/jobs/{integer_id(ordinal, n)}"

    def get(path: str, query: str = "") -> Asked:
        return Asked("GET", lambda _: path, query)

    def new(n: int) -> Body:
        every = {"repeatInterval": "1 hour", "active": True, "data": {"n": n}}
        return {"name": f"new-{n}", "action": "https://x.org", "active": True, "schedules": [every, every]}

    log = f"{job(JOBS)}/schedules/{schedule}/runs"
    return {
        "jobs, first page": get("/jobs"),
        "jobs, page of 100 at 9,900": get("/jobs", "page_size=100&offset=9900"),
        "jobs by filter, of none": get("/jobs", "filter=contains(name%2C%27nowhere%27)"),
        "jobs by filter, of each hundredth": get("/jobs", "filter=contains(name%2C%27odd%27)"),
        "jobs, ordered by name": get("/jobs", "sort_by=name&page_size=100"),
        "job by name": get("/jobs", "name=even-job-005000"),
        "job by jobId": get("/jobs", f"jobId={integer_id(ordinal, MIDDLE)}&displaySchedules=true"),
        "job": get(job(MIDDLE)),
        "jobCount": get("/jobCount"),
        "search jobs, of none": get("/search/jobs", "q=nowhere"),
        "search jobs, of each hundredth": get("/search/jobs", "q=branch+17&page_size=10"),
        "search jobs, active, a page": get("/search/jobs", "q=active:true&page_size=10"),
        "search jobs, by startTime": get("/search/jobs", "q=startTime:%3E2027-01-01&page_size=10"),
        "search schedules, of none": get("/search/schedules", "q=nowhere"),
        "search schedules, of each hundredth": get("/search/schedules", "q=odd&page_size=10"),
        "search schedules, active, a page": get("/search/schedules", "q=active:true&page_size=10"),
        "schedules of a job": get(f"{job(MIDDLE)}/schedules"),
        "schedule": get(f"{job(JOBS)}/schedules/{schedule}"),
        "schedule with 200 logs": get(f"{job(JOBS)}/schedules/{schedule}", "displayLogs=true"),
        "runs, first page": get(log, "page_size=10"),
        "runs, 200": get(log),
        "runs, page at 9,900": get(log, "page_size=100&offset=9900"),
        "runs, after the oldest hundredth": get(log, f"page_size=100&next={run}"),
        "run": get(f"{log}/{run}"),
        "action logs": get("/actionLogs", f"jobId={integer_id(ordinal, MIDDLE)}"),
        "global parameters": get("/globalParameters"),
        "create a job": Asked("POST", lambda _: "/jobs", body=new, writes=True),
        "upsert a job": Asked("PUT", lambda n: f"/jobs/new-{n}", body=new, writes=True),
        "change a job": Asked("PUT", job, body=lambda n: {"description": f"changed {n}"}, writes=True),
        "add a schedule": Asked(
            "POST", lambda n: f"{job(n)}/schedules", body=lambda _: {"repeatAt": "4pm", "active": True}, writes=True
        ),
        "switch all schedules off": Asked(
            "POST",
            lambda n: f"{job(n)}/schedules/activationStatus",
            body=lambda _: {"activationStatus": False},
            writes=True,
        ),
        "delete a job": Asked("DELETE", job, writes=True),
    }


def budget(name: str) -> str:
    """Returns milliseconds beyond an empty route. With an offset, a page of the run log is looked for line by line."""
    return "400" if any(word in name for word in ("search", "filter", "ordered", "runs, page at")) else "100"


@contextmanager
def world_of_api() -> Iterator[tuple[World, int]]:
    """Yields the world of an API function of a fresh stack, and the id of the process that its table runs in."""
    with (
        tempfile.TemporaryDirectory() as folder,
        quiet.with_process(Path(folder)) as (aws, stack, process),
        mock.patch.dict("os.environ", quiet.variables(aws, stack, "ApiFunction")),
    ):
        yield build(from_environment(), clock=SystemClock(), chance=SystemChance()), process


def measure() -> list[Listed]:
    with world_of_api() as (world, process):
        asked = requests(*_filled(world))
        empty, send = apis(world, SapApi, "/scheduler")
        return measured_all(asked, empty, send, process)


def measured_all(
    asked: Mapping[str, Asked], empty: Callable[[], None], send: Callable[[Asked, Iterator[int]], None], process: int
) -> list[Listed]:
    """Measures each of them and the empty route: times, units and calls."""
    senders = {name: partial(send, each, count(1)) for name, each in asked.items()}
    found = [measured(empty, process, EMPTY)]
    for name, each in asked.items():
        rounds, warm = (WRITE_ROUNDS, 0) if each.writes else (ROUNDS, 3)
        found.append(measured(senders[name], process, name, rounds, warm))
    with metered() as meter:
        return [each if each.name == EMPTY else _with_units(each, meter, senders[each.name]) for each in found]


def _filled(world: World) -> tuple[int, str, str]:
    """Makes the jobs, and 10,000 runs of the last one. Returns the tenant's ordinal, that schedule, and one of its
    runs.
    """
    table = world.table
    tenancy.create_tenant(world, TENANT, None)
    tenancy.create_collection(world, Collection(TENANT, COLLECTION))
    ordinal = ordinals.give(table, TENANT)
    _, schedule = next(islice(many_jobs.some_jobs(TENANT, JOBS), JOBS - 1, None))
    many_jobs.put(table.client, table.name, many_jobs.rows(TENANT, JOBS, world.settings.shards, ordinal=ordinal))
    rows = list(runs(world, TENANT, schedule, RUNS))
    many_jobs.put(table.client, table.name, iter(rows))
    return ordinal, schedule.id, keys.parts(rows[-RUNS // 100].sk)[1]


def apis(
    world: World, facade: type[Api], begin: str = "", always: str = ""
) -> tuple[Callable[[], None], Callable[[Asked, Iterator[int]], None]]:
    """Returns two functions: one asks for a route that is empty, one sends a request of a facade.

    begin: of each path; always: what each query has.
    """
    derived = derive_keys("bench", SECRET, None)
    issued = access.create_credential(world, TENANT, None, TENANT_SCOPES)
    door = Door(derived, SECRET, lambda tenant, name: credentials.find_credential(world.table, tenant, name))
    native = NativeApi(world, guard.GuardSettings(), lambda: door)
    asked_of = facade(world, guard.GuardSettings(), lambda: door)
    headers = {
        "authorization": basic(issued.credential.client_id, issued.secret),
        "content-type": "application/json",
    }

    def send(asked: Asked, numbers: Iterator[int]) -> None:
        n = next(numbers)
        body = asked.body(n)
        raw = None if body is None else json.dumps(body)
        query = "&".join(filter(None, (asked.query, always)))
        answer = asked_of.handle(event(asked.method, f"{begin}{asked.path(n)}", query, headers, raw), "bench")
        assert answer["statusCode"] in {200, 201}, answer["body"]

    return lambda: _answered(native.handle(event("GET", "/v1/health", "", {}), "bench")), send


def _answered(answer: Mapping[str, Any]) -> None:
    assert answer["statusCode"] == 200, answer["body"]


def _with_units(each: Listed, meter: Meter, send: Callable[[], None]) -> Listed:
    meter.take()
    send()
    used = meter.take()
    return replace(each, units=used.reads, writes=used.writes, calls=sum(used.calls.values()))
