"""Jobs in the order of their lean rows: by creation, by name, under a tag or a resource."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sweephand.domain.job import Job
from sweephand.domain.schedule import Schedule
from sweephand.store import jobs, keys
from sweephand.store.conditional import Table
from sweephand.store.table import EntryItem, Item, JobItem, ScheduleItem


class Entry(NamedTuple):
    """A lean row. place: where it stands in its list, to go on behind it."""

    place: str
    job_id: str
    name: str


def in_directory(table: Table, tenant: str, after: str | None, page: int) -> Iterator[Entry]:
    """All jobs of a tenant, by creation, behind the id `after`. page: rows that a query reads."""
    return _by_creation(table, keys.directory(tenant), after, page)


def with_tag(table: Table, tenant: str, tag: str, after: str | None, page: int) -> Iterator[Entry]:
    return _by_creation(table, keys.tag(tenant, tag), after, page)


def with_resource(table: Table, tenant: str, resource_id: str, after: str | None, page: int) -> Iterator[Entry]:
    return _by_creation(table, keys.resource(tenant, resource_id), after, page)


def _by_creation(table: Table, pk: str, after: str | None, page: int) -> Iterator[Entry]:
    sort = Item.sk.between(keys.job_entry(after) if after else "JOB#", "JOB#~")
    for row in table.query_all(pk, sort, limit=page):
        entry = EntryItem.from_raw_data(row)
        if entry.job_id != after:
            yield Entry(entry.job_id, entry.job_id, entry.name or "")


def in_collection(table: Table, tenant: str, collection: str, after: str | None, page: int) -> Iterator[Entry]:
    """A collection's jobs in the order of their names, behind the name `after`."""
    first = keys.name(after) if after is not None else keys.name("")
    sort = Item.sk.between(first, keys.name("\U0010ffff"))
    for row in table.query_all(keys.names(tenant, collection), sort, limit=page):
        name = keys.parts(row["sk"]["S"])[1]
        if name != after:
            yield Entry(name, row["job_id"]["S"], name)


def named(table: Table, tenant: str, collection: str, name: str) -> Entry | None:
    row = table.get(EntryItem, keys.names(tenant, collection), keys.name(name))
    return Entry(name, row.job_id, name) if row else None


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
