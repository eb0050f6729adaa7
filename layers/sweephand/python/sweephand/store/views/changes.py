"""The list of a job's changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sweephand.domain.instants import from_ms
from sweephand.domain.jobs.job_state import Entry
from sweephand.domain.schedule import Schedule
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.compression import unpack
from sweephand.store.dynamo.conditional import Table
from sweephand.store.dynamo.table import JobItem, RevisionItem, ScheduleItem
from sweephand.store.jobs import jobs


def newest_first(table: Table, tenant: str, job_id: str, before: int | None, page: int) -> Iterator[Entry]:
    """Yields a job's changes before revision `before` (None: from the newest). page: items that one query reads."""
    last = keys.revision(before - 1) if before is not None else keys.revision(99_999_999)
    sort = RevisionItem.sk.between(keys.revision(0), last)
    for row in table.query_all(keys.job(tenant, job_id), sort, forward=False, limit=page, consistent=True):
        yield entry_of(RevisionItem.from_raw_data(row))


def entry_of(item: RevisionItem) -> Entry:
    body = unpack(item.body)
    before, after = body["job"]
    return Entry(
        revision=int(keys.parts(item.sk)[1]),
        at=from_ms(item.at),
        actor=item.actor,
        operation=item.operation,
        before=jobs.job_of(JobItem.from_raw_data(before)) if before else None,
        after=jobs.job_of(JobItem.from_raw_data(after)),
        schedules=tuple((_read(old), _read(new)) for old, new in body["schedules"]),
        omitted=body["omitted"],
    )


def _read(row: dict[str, Any] | None) -> Schedule | None:
    return jobs.schedule_of(ScheduleItem.from_raw_data(row)) if row else None
