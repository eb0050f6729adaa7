"""Ended plans of a schedule: written by the change that ends one, read by the audit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.occurrences.generations import Generation
from sweephand.domain.schedule import Schedule
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Table
from sweephand.server.store.dynamo.flat_models import SECONDS, Codec, named, of_key
from sweephand.server.store.dynamo.table import GenerationItem
from sweephand.server.store.jobs import jobs

KEPT = timedelta(days=30)
"""Retention of an ended plan: twice as long as the ledger keeps a row by default. The audit settles it long before."""
PAGE = 25
_GENERATIONS = Codec(
    Generation,
    GenerationItem,
    {
        "number": of_key("sk", 2, int),
        "began": named("began_at", SECONDS),
        "through": named("through_at", SECONDS),
        "first": named("first_at", SECONDS),
    },
)


def op(table: Table, schedule: Schedule, left: Generation) -> Op:
    """Returns the part that writes an ended plan, for the transaction of the change. schedule: before the change."""
    through = left.through or left.began
    key = keys.job(schedule.tenant, schedule.job_id), keys.generation(schedule.id, left.number)
    item = _GENERATIONS.item(key, replace(left, through=through), expires_at=epoch_s(through + KEPT))
    return table.put_op(f"generation {schedule.id}", item)


def find(table: Table, schedule: Schedule, number: int) -> Generation | None:
    """Returns one of the ended plans; None if it has expired."""
    pk, sk = keys.job(schedule.tenant, schedule.job_id), keys.generation(schedule.id, number)
    item = table.get(GenerationItem, pk, sk)
    if item is None:
        return None
    jobs.know_calendars(table, [(schedule.tenant, item.packed)])
    return _GENERATIONS.read(item)


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
        yield _GENERATIONS.read(item)
