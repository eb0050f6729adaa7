"""Thousands of jobs, put into the table as their creation would have left them, without creating them one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from sweephand.base.ids import uuid7
from sweephand.domain.instants import epoch_ms
from sweephand.domain.job import ActionSpec, Job, Pause
from sweephand.domain.schedule import Lane, Schedule, ScheduleState
from sweephand.formats.sap.fields import new_job
from sweephand.schedules.timing import parse
from sweephand.server.actions import Allowed
from sweephand.server.security.guard import GuardSettings
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.table import Item
from sweephand.server.store.jobs import directory, jobs
from sweephand.server.store.jobs.directory import BlockItem, NumberItem

NEVER = datetime(2190, 1, 1, tzinfo=UTC)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
RARE, COMMON = "rare", "common"
"""Tags: of one job in a thousand, of each."""


def some_jobs(tenant: str, count: int) -> Iterator[tuple[Job, Schedule]]:
    """Yields jobs by number from 1, a second apart. In each ten one is switched off, one paused, one over; one in 100
    is odd.
    """
    packed = parse({"every": "PT1H"}, now=BEGAN).packed
    for n in range(1, count + 1):
        created_at = BEGAN + timedelta(seconds=n)
        job = Job(
            tenant=tenant,
            id=uuid7(epoch_ms(created_at), n.to_bytes(10, "big")),
            collection="default",
            name=f"{'odd' if n % 100 == 50 else 'even'}-job-{n:06d}",
            action=ActionSpec("http", {"method": "POST", "url": "https://x.org", "headers": {}, "outcome": {}}, {}),
            created_at=created_at,
            modified_at=created_at,
            active=n % 10 != 1,
            pause=Pause(created_at) if n % 10 == 2 else None,
            tags=(COMMON, RARE) if n % 1_000 == 500 else (COMMON,),
            resource_id=f"resource-{n}",
            number=n,
        )
        schedule = Schedule(
            tenant=tenant,
            job_id=job.id,
            id=uuid7(epoch_ms(created_at), (n + 2**40).to_bytes(10, "big")),
            name="hourly",
            timing={"every": "PT1H"},
            packed=packed,
            lane=Lane.FAST,
            created_at=created_at,
            modified_at=created_at,
            state=ScheduleState.COMPLETED if n % 10 == 3 else ScheduleState.ACTIVE,
            next_run_at=NEVER if n % 10 > 3 else None,
        )
        yield replace(job, schedule_ids=(schedule.id,)), schedule


@cache
def _sap_action() -> ActionSpec:
    body = {"name": "x", "action": "https://x.org", "schedules": []}
    draft = new_job(body, Allowed(GuardSettings()), BEGAN).action
    return ActionSpec(draft.kind, draft.params, draft.retry)


def of_sap(job: Job, schedule: Schedule, ordinal: int) -> tuple[Job, Schedule]:
    """Returns the same job as the SAP facade makes it: with an integer id, descriptions and windows to search for."""
    shown = {"repeatInterval": "1 hour", "description": f"beat of {job.name}"}
    window = {"startTime": "2026-01-01T00:00:00Z", "endTime": "2190-01-01T00:00:00Z"} if job.number % 2 else {}
    made = replace(
        job,
        collection="sap",
        facade="sap",
        ordinal=ordinal,
        description=f"numbers of branch {job.number % 100}",
        start_at=BEGAN if job.number % 5 == 0 else None,
        action=_sap_action(),
        tags=(),
    )
    return made, replace(schedule, attributes=shown, timing={**schedule.timing, **window})


def rows(tenant: str, count: int, shards: int, *, ordinal: int | None = None) -> Iterator[Item]:
    """Yields rows. ordinal: of the tenant, where its jobs are those of the SAP facade."""
    live: Counter[int] = Counter()
    active: Counter[int] = Counter()
    made = some_jobs(tenant, count)
    for job, schedule in made if ordinal is None else (of_sap(*each, ordinal) for each in made):
        yield jobs.job_item(job)
        yield jobs.schedule_item(schedule, shards)
        yield from directory.entry_items(job).values()
        yield directory.row_item(job, [schedule])
        live[directory.block_of(job.number)] += 1
        active[directory.block_of(job.number)] += job.active
    for block, jobs_in_it in live.items():
        pk, sk = directory.count_key(tenant, block * directory.BLOCK, "native" if ordinal is None else "sap")
        yield BlockItem(pk=pk, sk=sk, live=jobs_in_it, active=active[block])
    yield NumberItem(pk=keys.directory(tenant), sk=keys.LAST_NUMBER, last=count)


def put(client: Any, table: str, items: Iterator[Item]) -> None:
    """Writes by BatchWriteItem, 25 at a time."""
    batch: list[Mapping[str, Any]] = []
    for item in items:
        batch.append({"PutRequest": {"Item": item.serialize()}})
        if len(batch) == 25:
            _write(client, table, batch)
            batch = []
    if batch:
        _write(client, table, batch)


def _write(client: Any, table: str, batch: Sequence[Mapping[str, Any]]) -> None:
    left: Any = {table: list(batch)}
    while left:
        left = client.batch_write_item(RequestItems=left).get("UnprocessedItems")
