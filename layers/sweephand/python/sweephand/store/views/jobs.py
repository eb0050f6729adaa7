"""Jobs in the order of their lean rows: by creation, by name, under a tag or a resource."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sweephand.domain.job import Job
from sweephand.domain.schedule import Schedule
from sweephand.store import jobs, keys
from sweephand.store.conditional import Table
from sweephand.store.table import EntryItem, Item, JobItem, ScheduleItem


def in_directory(table: Table, tenant: str, after: str | None, page: int) -> Iterator[str]:
    """The ids of all jobs of a tenant, by creation, behind `after`. page: rows that a query reads."""
    return _ids(table, keys.directory(tenant), after, page)


def with_tag(table: Table, tenant: str, tag: str, after: str | None, page: int) -> Iterator[str]:
    return _ids(table, keys.tag(tenant, tag), after, page)


def with_resource(table: Table, tenant: str, resource_id: str, after: str | None, page: int) -> Iterator[str]:
    return _ids(table, keys.resource(tenant, resource_id), after, page)


def _ids(table: Table, pk: str, after: str | None, page: int) -> Iterator[str]:
    sort = Item.sk.between(keys.job_entry(after) if after else "JOB#", "JOB#~")
    for row in table.query_all(pk, sort, limit=page):
        entry = EntryItem.from_raw_data(row)
        if entry.job_id != after:
            yield entry.job_id


def names_in(
    table: Table, tenant: str, collection: str, prefix: str, after: str | None, page: int
) -> Iterator[tuple[str, str]]:
    """(name, job id) of a collection's jobs in the order of their names, behind the name `after`."""
    start: Mapping[str, Any] | None = None
    if after is not None:
        start = {"pk": {"S": keys.names(tenant, collection)}, "sk": {"S": keys.name(after)}}
    while True:
        rows, start = table.query(
            keys.names(tenant, collection), Item.sk.startswith(keys.name(prefix)), limit=page, start=start
        )
        for row in rows:
            yield keys.parts(row["sk"]["S"])[1], row["job_id"]["S"]
        if start is None:
            return


def jobs_with_schedules(table: Table, tenant: str, ids: Sequence[str]) -> list[tuple[Job, list[Schedule]]]:
    """Jobs by id, in the given order, with their schedules: two batched reads, and one query for a job of over 40."""
    found = table.batch_get(jobs.job_keys(tenant, ids), consistent=False)
    listed = [jobs.job_of(JobItem.from_raw_data(row)) for key in jobs.job_keys(tenant, ids) if (row := found.get(key))]
    wanted = [(keys.job(tenant, job.id), keys.schedule(sid)) for job in listed for sid in job.schedule_ids]
    rows = table.batch_get(wanted, consistent=False)
    result = []
    for job in listed:
        if job.many_schedules:
            result.append((job, jobs.read_schedules(table, tenant, job.id)))
            continue
        own = [rows.get((keys.job(tenant, job.id), keys.schedule(sid))) for sid in job.schedule_ids]
        result.append((job, [jobs.schedule_of(ScheduleItem.from_raw_data(row)) for row in own if row]))
    return result
