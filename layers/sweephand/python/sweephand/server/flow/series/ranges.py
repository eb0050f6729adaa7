"""Ranges: rows of the ledger that stand for many occurrences with one reason. A single run takes precedence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base import ids
from sweephand.base.errors import Conflict
from sweephand.domain.instants import epoch_ms
from sweephand.domain.run import OF_RANGES, Kind, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.flow.retention import run_expiry
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op
from sweephand.server.store.dynamo.expressions import Condition, add
from sweephand.server.store.dynamo.table import StatsItem
from sweephand.server.store.runs import ledger, run_rows

WRITTEN_WITHIN = timedelta(seconds=30)
"""A line is written within this time after its announcement, because no function works on it for longer."""


class StandsForMany(Conflict):
    """The error for a request that treats a line for many occurrences as a single run."""


def line(
    owner: tuple[str, str, str],
    end: tuple[State, Reason, str],
    span: tuple[datetime, datetime, int],
    generation: int,
    now: datetime,
    packed: str | None = None,
) -> Run:
    """Returns the row for the occurrences of a span. owner: the tenant, and the ids of the job and the schedule.

    end: state, reason and message. span: the first and the last planned instant, both included, and how many there are.
    packed: the timing that they follow, so that readers can tell them apart.
    """
    (tenant, job_id, schedule_id), (state, reason, message), (first, last, count) = owner, end, span
    assert state in OF_RANGES, state
    return Run(
        tenant=tenant,
        job_id=job_id,
        schedule_id=schedule_id,
        uuid=ids.range_uuid(tenant, schedule_id, epoch_ms(first)),
        kind=Kind.SCHEDULED,
        state=state,
        reason=reason,
        planned_at=first,
        finished_at=now,
        generation=generation,
        range_until=last,
        range_count=count,
        range_packed=packed,
        message=message,
    )


def check_is_none(run: Run) -> None:
    """Raises StandsForMany if the row stands for many occurrences."""
    if run.range_count is not None:
        raise StandsForMany(f"it stands for {run.range_count} occurrences, none of which has a run")


def op(world: World, run: Run, collection: str | None, condition: Condition | None = None) -> Op:
    """Returns the operation that writes a line under its computed id, so that a repetition writes the same row.

    collection: its retention applies to the line; None if it is not known.
    """
    assert run.finished_at is not None
    run = replace(run, expires_at=run_expiry(world, run.tenant, collection, run.finished_at))
    item = run_rows.item_of(run, shards=world.shards, lane=Lane.FAST)
    return world.table.put_op(f"range {run.schedule_id}", item, condition)


def missed_ops(
    world: World, lines: Sequence[Run], collection: str | None, condition: Condition | None = None
) -> list[Op]:
    """Returns the operations that write one schedule's lines for missed occurrences and count them.

    condition: of each line.
    """
    missed = sum(each.range_count or 0 for each in lines)
    if not missed:
        return []
    owner = lines[0]
    stats_key = keys.job(owner.tenant, owner.job_id), keys.stats(owner.schedule_id or "")
    counted = world.table.update_op("stats", *stats_key, [add(StatsItem.missed, missed)])
    return [*(op(world, each, collection, condition) for each in lines), counted]


def word_of(run: Run, now: datetime, lane: Lane) -> Delivery:
    """Returns the message that announces a line. It is sent before the line is written and arrives after that.

    The executor then carries out the effects of the line's end. The message is the pointer of a further attempt: if
    the line was never written, the executor drops it and starts nothing.
    """
    pointer = replace(ledger.pointer_to(run), attempt=run.attempt + 1)
    return Delivery(pointer, now + WRITTEN_WITHIN, lane.executors)
