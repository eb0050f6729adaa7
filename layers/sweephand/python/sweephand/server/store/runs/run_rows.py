"""The row of a run: its attributes, its key, and its place in the two indexes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, SupportsInt

from pynamodb.expressions.update import Action

from sweephand.base.ids import order_of, shard_of
from sweephand.base.lazy import lazy
from sweephand.domain.instants import epoch_ms, epoch_s, from_ms
from sweephand.domain.occurrences.index_row import SweepText, WaitingRun, Waits
from sweephand.domain.run import Kind, LostCall, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.expressions import assign
from sweephand.server.store.dynamo.flat_models import SECONDS, TENANT, Codec, Column, named, of_key, one_of
from sweephand.server.store.dynamo.table import RunItem

if TYPE_CHECKING:
    from sweephand.server.store.dynamo.conditional import Table

with lazy():
    from sweephand.domain import posted
    from sweephand.server.store.runs import spread

NEEDS_ATTENTION = frozenset(set(State) - {State.SUCCESS, State.TRIGGERED, State.SCHEDULED})


def key_of(run: Run) -> tuple[str, str]:
    return keys.runs(run.tenant, run.schedule_id or run.job_id), keys.run(run.uuid)


def lost_text(call: LostCall) -> str:
    return f"{call.attempt},{epoch_ms(call.started_at)}"


def _lost_calls(texts: Collection[str]) -> tuple[LostCall, ...]:
    """Reads lost calls, in order."""
    pairs = sorted((int(attempt), int(started)) for attempt, started in (text.split(",") for text in texts))
    return tuple(LostCall(attempt, from_ms(started)) for attempt, started in pairs)


def _posted(text: str) -> posted.Posted:
    return posted.Posted.read(text)


_RUNS = Codec(
    Run,
    RunItem,
    {
        "tenant": TENANT,
        "uuid": of_key("sk", 1),
        "schedule_id": named("schedule"),
        "lease_owner": named("owner"),
        "kind": one_of(Kind),
        "state": one_of(State),
        "reason": one_of(Reason),
        "expires_at": SECONDS,
        "lost_calls": Column(_lost_calls, lambda calls: {lost_text(call) for call in calls}),
        "notes": Column(lambda notes: tuple(sorted(notes)), set),
        "chain": Column(frozenset, frozenset),
        "claims": Column(frozenset, frozenset),
        "wake_at": named("next_run_at", SECONDS),
        "posted": Column(_posted, str),
    },
)
run_of, changes_of = _RUNS.read, _RUNS.changes


def item_of(run: Run, *, shards: SupportsInt, lane: Lane, table: Table | None = None) -> RunItem:
    """Returns a new row. A wake puts it into the next-run index; a state in NEEDS_ATTENTION into `attention`.

    table: where busy partitions of `attention` are noted; None if such rows are never written by the thousand.
    """
    item = _RUNS.item(key_of(run), run)
    if run.wake_at is not None:
        item.shard = shard_of(run.uuid, shards)
        item.sweep = wake_text(run, lane)
    if run.state in NEEDS_ATTENTION:
        item.attention_day = _attention_partition(run, table)
        item.attention_at = order_of(run.uuid)
    return item


def wake_text(run: Run, lane: Lane) -> str:
    return str(SweepText(Waits.RUN, lane, packed=str(WaitingRun.of(run))))


def wake_actions(run: Run, wake_at: datetime, *, shards: SupportsInt, lane: Lane) -> list[Action]:
    """Returns the change that wakes this run at `wake_at`."""
    return [
        assign(RunItem.shard, shard_of(run.uuid, shards)),
        assign(RunItem.sweep, wake_text(run, lane)),
        assign(RunItem.next_run_at, epoch_s(wake_at)),
    ]


def attention(run: Run, table: Table) -> list[Action]:
    """Returns the change that puts the run into the index `attention`."""
    return [
        assign(RunItem.attention_day, _attention_partition(run, table)),
        assign(RunItem.attention_at, order_of(run.uuid)),
    ]


def _attention_partition(run: Run, table: Table | None) -> str:
    """Returns the partition of the index: that of the run's day, or that of the consumer for which it is held."""
    partition = keys.attention_day(run.tenant, run.planned_at)
    if run.state is State.HELD and run.consumer is not None:
        partition = keys.consumer_rows(run.tenant, run.consumer)
    return partition if table is None else spread.place(table, partition, run.uuid)
