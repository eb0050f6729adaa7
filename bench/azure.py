"""The cost of the routes of the Azure facade in a collection of 1,000 jobs, measured as in `lists`.

Every job has run three times. One of them has 1,000 executions of two attempts each. Requests that write are measured
on separate jobs, each request on another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count

from bench.lists import Listed
from bench.sap import TENANT, Asked, Body, apis, measured_all, world_of_api
from sweephand.base.ids import run_uuid, uuid7
from sweephand.domain.instants import epoch_ms
from sweephand.domain.job import Job
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Lane, Schedule
from sweephand.server.facades.azure.routes import AzureApi
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.table import Item, PayloadItem, StatsItem
from sweephand.server.store.jobs import directory, jobs
from sweephand.server.store.runs import attempts, run_rows
from sweephand.server.store.views import jobs as views
from tests.support import many_jobs

JOBS, RUNS_EACH = 1_000, 3
BUSY, EXECUTIONS = 500, 1_000
SETTLED_BEHIND = 24
"""Executions of that job that the audit has not counted yet: those of a day."""
GROUP = "/subscriptions/sub/resourceGroups/group/providers/Microsoft.Scheduler/jobCollections"
COLLECTION = f"{GROUP}/large"
HISTORY = f"{COLLECTION}/jobs/job-{BUSY:04}/history"
BUDGETS = {
    **dict.fromkeys(("jobs, first 100", "jobs, $skip=900", "jobs by state, of none"), "200"),
    "history, $skip=900": "300",
}
"""In ms, beyond an empty route; 100 of the others."""


def requests() -> dict[str, Asked]:
    def get(path: str, query: str = "") -> Asked:
        return Asked("GET", lambda _: path, query)

    def new(n: int) -> str:
        return f"{COLLECTION}/jobs/new-{n:04}"

    def there(n: int) -> str:
        return f"{COLLECTION}/jobs/job-{n:04}"

    return {
        "collection": get(COLLECTION),
        "job": get(there(BUSY)),
        "jobs, first 100": get(f"{COLLECTION}/jobs"),
        "jobs, $skip=900": get(f"{COLLECTION}/jobs", "$skip=900"),
        "jobs by state, of none": get(f"{COLLECTION}/jobs", "$filter=state%20eq%20Faulted"),
        "history, first page": get(HISTORY),
        "history, $skip=900": get(HISTORY, "$skip=900"),
        "history by status, of none": get(HISTORY, "$filter=status%20eq%20Postponed"),
        "create a job": Asked("PUT", new, body=lambda _: body("Hour"), writes=True),
        "replace a job": Asked("PUT", there, body=lambda _: body("Day"), writes=True),
        "put a job as it is": Asked("PUT", lambda n: there(n + 100), body=lambda _: body("Hour"), writes=True),
        "change a job": Asked("PATCH", lambda n: there(n + 200), body=lambda _: DISABLED, writes=True),
        "delete a job": Asked("DELETE", new, writes=True),
    }


def body(frequency: str) -> Body:
    request = {"uri": "https://x.org/y", "method": "POST", "headers": {"X-Team": "bench"}, "body": "z" * 200}
    plan = {"startTime": "2026-01-01T00:00:00Z", "recurrence": {"frequency": frequency}}
    return {"properties": {"action": {"type": "Https", "request": request}, **plan}}


DISABLED: Body = {"properties": {"state": "Disabled"}}


def measure() -> list[Listed]:
    with world_of_api() as (world, process):
        tenancy.create_tenant(world, TENANT, None)
        empty, send = apis(world, AzureApi, always="api-version=2016-03-01")
        _fill(world, send)
        return measured_all(requests(), empty, send, process)


def _fill(world: World, send: Callable[[Asked, Iterator[int]], None]) -> None:
    """Makes the collection and its first job by requests, and the others like that one."""
    plan = {"location": "West US", "properties": {"sku": {"name": "P20Premium"}}}
    table, once = world.table, count(1)
    send(Asked("PUT", lambda _: COLLECTION, body=lambda _: plan), once)
    send(Asked("PUT", lambda _: f"{COLLECTION}/jobs/job-0001", body=lambda _: body("Hour")), count(1))
    (row,) = views.listed(table, TENANT, views.ALL, None, 1)
    ((job, (schedule,)),) = views.jobs_with_schedules(table, TENANT, [row.job_id])
    many_jobs.put(table.client, table.name, _rows(world, job, schedule))


def _rows(world: World, first: Job, plan: Schedule) -> Iterator[Item]:
    """Keeps the count of the collection at one, so that jobs can be added to it."""
    now = world.clock.now().replace(minute=0, second=0, microsecond=0)
    payloads = [row for row in world.table.query_all(keys.job(TENANT, first.id)) if "is_json" in row]
    for n in range(1, JOBS + 1):
        executions = EXECUTIONS if n == BUSY else RUNS_EACH
        began = now - timedelta(hours=executions, minutes=-30)
        job, schedule = _numbered(first, replace(plan, planned_total=executions, created_at=began, first_at=None), n)
        yield jobs.schedule_item(schedule, world.settings.shards)
        yield jobs.job_item(job)
        for row in payloads:
            payload = PayloadItem.from_raw_data(row)
            payload.pk = keys.job(TENANT, job.id)
            yield payload
        yield from directory.entry_items(job).values()
        yield directory.row_item(job, [schedule])
        for hours in range(executions):
            yield from _run(world, schedule, now - timedelta(hours=hours))
        if executions > SETTLED_BEHIND:
            yield _settled(schedule, now - timedelta(hours=SETTLED_BEHIND), executions - SETTLED_BEHIND)
    pk, sk = directory.count_key(TENANT, 1, first.facade)
    yield directory.BlockItem(pk=pk, sk=sk, live=JOBS, active=JOBS)
    yield directory.NumberItem(pk=keys.directory(TENANT), sk=keys.LAST_NUMBER, last=JOBS)


def _numbered(first: Job, plan: Schedule, n: int) -> tuple[Job, Schedule]:
    """Yields the first job and others like it, each with its own name."""
    if n == 1:
        return first, plan
    at = epoch_ms(first.created_at)
    job_id, schedule_id = (uuid7(at, (each + n).to_bytes(10, "big")) for each in (0, 2**40))
    name = f"job-{n:04}"
    attributes = {**first.attributes, "name": name}
    job = replace(first, id=job_id, name=name, number=n, schedule_ids=(schedule_id,), attributes=attributes)
    return job, replace(plan, id=schedule_id, job_id=job_id)


def _run(world: World, schedule: Schedule, at: datetime) -> Iterator[Item]:
    """Builds a run that succeeded at its second attempt."""
    uuid = run_uuid(TENANT, schedule.id, epoch_ms(at), Kind.SCHEDULED.value)
    run = Run(TENANT, schedule.job_id, schedule.id, uuid, Kind.SCHEDULED, State.ERROR, at, started_at=at)
    failed = replace(run, finished_at=at + timedelta(seconds=1), http_status=503)
    yield attempts.attempt_item(failed, reason=Reason.HTTP_STATUS, answer="busy " * 40)
    again = at + timedelta(seconds=31)
    ended = {"state": State.SUCCESS, "attempt": 2, "started_at": again, "finished_at": again, "answer": "done " * 40}
    run = replace(run, first_started_at=at, reason=Reason.ON_TIME, http_status=200, **ended)
    yield run_rows.item_of(run, shards=world.settings.shards, lane=Lane.FAST)


def _settled(schedule: Schedule, until: datetime, total: int) -> Item:
    """Sets the statistics as the daily audit leaves them."""
    counts = {"settled_total": total, "settled_planned": total, "failed_attempts": total}
    pk, sk = keys.job(TENANT, schedule.job_id), keys.stats(schedule.id)
    return StatsItem(pk=pk, sk=sk, settled_to=epoch_ms(until), **counts)
