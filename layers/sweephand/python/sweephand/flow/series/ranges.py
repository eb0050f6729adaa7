"""Lines of the ledger that stand for many occurrences with one reason. A run of its own outranks a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand import ids
from sweephand.domain.instants import epoch_ms
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.errors import Conflict
from sweephand.flow.retention import run_expiry
from sweephand.flow.world import World
from sweephand.messaging.run_queue import Delivery
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op
from sweephand.store.dynamo.expressions import add
from sweephand.store.dynamo.table import StatsItem
from sweephand.store.runs import ledger, run_rows

WRITTEN_WITHIN = timedelta(seconds=30)
"""No function that writes a line is at work for longer after it has sent word of it."""


class StandsForMany(Conflict):
    """What can be done with a run is not done with many occurrences at once."""


def line(
    tenant: str,
    job_id: str,
    schedule_id: str,
    *,
    state: State,
    reason: Reason,
    first: datetime,
    last: datetime,
    count: int,
    generation: int,
    now: datetime,
    message: str,
) -> Run:
    """The row for `count` occurrences from `first` to `last` (planned instants, both included)."""
    return Run(
        tenant=tenant,
        job_id=job_id,
        schedule_id=schedule_id,
        uuid=ids.run_uuid(tenant, schedule_id, epoch_ms(first), Kind.SCHEDULED.value, "range"),
        kind=Kind.SCHEDULED,
        state=state,
        reason=reason,
        planned_at=first,
        finished_at=now,
        generation=generation,
        range_until=last,
        range_count=count,
        message=message,
    )


def check_is_none(run: Run) -> None:
    """Raises StandsForMany."""
    if run.range_count is not None:
        raise StandsForMany(f"it stands for {run.range_count} occurrences, of which none has a run")


def op(world: World, run: Run, collection: str | None) -> Op:
    """Its part of a transaction: under its computed id, so that a repetition writes the same. It is kept as long as
    the runs of the collection; None: that is not known.
    """
    assert run.finished_at is not None
    run = replace(run, expires_at=run_expiry(world, run.tenant, collection, run.finished_at))
    item = run_rows.item_of(run, shards=world.settings.shards, lane=Lane.FAST)
    return world.table.put_op(f"range {run.schedule_id}", item)


def missed_ops(world: World, lines: Sequence[Run], collection: str | None) -> list[Op]:
    """Writes lines of one schedule for what was missed, and counts them."""
    missed = sum(each.range_count or 0 for each in lines)
    if not missed:
        return []
    owner = lines[0]
    stats_key = keys.job(owner.tenant, owner.job_id), keys.stats(owner.schedule_id or "")
    counted = world.table.update_op("stats", *stats_key, [add(StatsItem.missed, missed)])
    return [*(op(world, each, collection) for each in lines), counted]


def word_of(run: Run, now: datetime, lane: Lane) -> Delivery:
    """Goes out before the line is written, and comes to an executor after that: it does what follows from the end.

    As the pointer of a further attempt: where no line has come to be, it is dropped, and starts nothing.
    """
    pointer = replace(ledger.pointer_to(run), attempt=run.attempt + 1)
    return Delivery(pointer, now + WRITTEN_WITHIN, lane)
