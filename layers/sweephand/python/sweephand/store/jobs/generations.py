"""Ended plans of a schedule: written by the change that ends one, read by the audit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.occurrences.generations import Generation
from sweephand.domain.schedule import Schedule
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Table
from sweephand.store.dynamo.table import GenerationItem
from sweephand.store.jobs import jobs

KEPT = timedelta(days=30)
"""Twice as long as the ledger keeps a row; the daily audit has settled the plan long before."""
PAGE = 25


def op(table: Table, schedule: Schedule, left: Generation) -> Op:
    """Returns the part that writes an ended plan, for the transaction of the change. schedule: before the change."""
    through = left.through or left.began
    item = GenerationItem(
        pk=keys.job(schedule.tenant, schedule.job_id),
        sk=keys.generation(schedule.id, left.number),
        packed=left.packed,
        began_at=epoch_s(left.began),
        through_at=epoch_s(through),
        first_at=epoch_s(left.first) if left.first else None,
        expires_at=epoch_s(through + KEPT),
    )
    return table.put_op(f"generation {schedule.id}", item)


def find(table: Table, schedule: Schedule, number: int) -> Generation | None:
    """Returns one of the ended plans; None if it has expired."""
    pk, sk = keys.job(schedule.tenant, schedule.job_id), keys.generation(schedule.id, number)
    item = table.get(GenerationItem, pk, sk)
    if item is None:
        return None
    jobs.know_calendars(table, [(schedule.tenant, item.packed)])
    return _generation(item)


def left_since(table: Table, schedule: Schedule, since: datetime) -> Iterator[Generation]:
    """Yields the ended plans that cover an instant after `since`, newest first; reads nothing if none ended since."""
    if max(schedule.ended_at.values(), default=0) <= epoch_s(since):
        return
    sort = GenerationItem.sk.between(keys.generation(schedule.id, 0), keys.generation(schedule.id, 99_999_999))
    pk = keys.job(schedule.tenant, schedule.job_id)
    for row in table.query_all(pk, sort, forward=False, limit=PAGE, consistent=True):
        item = GenerationItem.from_raw_data(row)
        if from_s(item.through_at) <= since:
            return
        jobs.know_calendars(table, [(schedule.tenant, item.packed)])
        yield _generation(item)


def _generation(item: GenerationItem) -> Generation:
    return Generation(
        number=int(keys.parts(item.sk)[2]),
        packed=item.packed,
        began=from_s(item.began_at),
        through=from_s(item.through_at),
        first=from_s(item.first_at) if item.first_at is not None else None,
    )
