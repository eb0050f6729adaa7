"""The change log of a job: one immutable item per revision, written in the transaction that makes the revision.

The log is in the job's partition and is deleted with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.domain.job import Job
from sweephand.domain.jobs.job_state import Entry
from sweephand.domain.schedule import Schedule
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Table
from sweephand.server.store.dynamo.flat_models import pack, unpack
from sweephand.server.store.dynamo.table import JobItem, RevisionItem, ScheduleItem
from sweephand.server.store.jobs import jobs

LONGEST_BODY = 380_000
"""Characters of one entry's packed body: DynamoDB allows 400 KB per item."""


def item_of(entry: Entry) -> RevisionItem:
    """Returns the item with as many schedules as fit: an entry of 1,000 new ones has some 100 KB."""
    pairs = list(entry.schedules)
    body = _packed(entry, pairs)
    while len(body) > LONGEST_BODY:
        pairs = pairs[: len(pairs) // 2]
        body = _packed(entry, pairs)
    return RevisionItem(
        pk=keys.job(entry.after.tenant, entry.after.id),
        sk=keys.revision(entry.revision),
        body=body,
        actor=entry.actor,
        reason=entry.reason,
        operation=entry.operation,
        at=epoch_ms(entry.at),
    )


def put_op(table: Table, entry: Entry) -> Op:
    return table.put_op("revision", item_of(entry))


def is_written(table: Table, entry: Entry) -> bool:
    """Returns whether this entry exists: its transaction succeeded although its answer was lost."""
    item = table.get(RevisionItem, keys.job(entry.after.tenant, entry.after.id), keys.revision(entry.revision))
    return item is not None and item.serialize() == item_of(entry).serialize()


def _packed(entry: Entry, pairs: Sequence[tuple[Schedule | None, Schedule | None]]) -> str:
    body = {
        "job": [_job(entry.before), _job(entry.after)],
        "schedules": [[_schedule(before), _schedule(after)] for before, after in pairs],
        "omitted": entry.omitted + len(entry.schedules) - len(pairs),
    }
    return pack(body)


def _job(job: Job | None) -> dict[str, Any] | None:
    return jobs.job_item(job).serialize() if job else None


def _schedule(schedule: Schedule | None) -> dict[str, Any] | None:
    return jobs.schedule_item(schedule, 1).serialize() if schedule else None


def entry_of(item: RevisionItem) -> Entry:
    body = unpack(item.body)
    before, after = body["job"]
    return Entry(
        revision=int(keys.parts(item.sk)[1]),
        at=from_ms(item.at),
        actor=item.actor,
        reason=item.reason,
        operation=item.operation,
        before=jobs.job_of(JobItem.from_raw_data(before)) if before else None,
        after=jobs.job_of(JobItem.from_raw_data(after)),
        schedules=tuple((_read(old), _read(new)) for old, new in body["schedules"]),
        omitted=body["omitted"],
    )


def _read(row: dict[str, Any] | None) -> Schedule | None:
    return jobs.schedule_of(ScheduleItem.from_raw_data(row)) if row else None
