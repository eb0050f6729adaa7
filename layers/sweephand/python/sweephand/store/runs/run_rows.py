"""A run as its row: what each attribute of the ledger says of it, its key, its place in the two indexes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from pynamodb.expressions.update import Action

from sweephand.domain.instants import (
    epoch_ms,
    epoch_s,
    from_ms,
    from_ms_if_any,
    from_s_if_any,
    ms_if_any,
    s_if_any,
)
from sweephand.domain.occurrences.index_row import SweepText, WaitingRun, Waits
from sweephand.domain.run import Kind, LostCall, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.ids import order_of, shard_of
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.expressions import assign
from sweephand.store.dynamo.table import RunItem

NEEDS_ATTENTION = frozenset(set(State) - {State.SUCCESS, State.TRIGGERED, State.SCHEDULED})


def key_of(run: Run) -> tuple[str, str]:
    return keys.runs(run.tenant, run.schedule_id or run.job_id), keys.run(run.uuid)


def run_of(item: RunItem) -> Run:
    tenant = keys.parts(item.pk)[1]
    return Run(
        tenant=tenant,
        job_id=item.job_id,
        schedule_id=item.schedule,
        uuid=keys.parts(item.sk)[1],
        kind=Kind(item.kind),
        state=State(item.state),
        planned_at=from_ms(item.planned_at),
        reason=Reason(item.reason) if item.reason else None,
        enqueued_at=from_ms_if_any(item.enqueued_at),
        first_started_at=from_ms_if_any(item.first_started_at),
        started_at=from_ms_if_any(item.started_at),
        finished_at=from_ms_if_any(item.finished_at),
        attempt=item.attempt,
        max_attempts=item.max_attempts or 1,
        lost_calls=_lost_calls(item.lost_calls) if item.lost_calls else (),
        owner=item.owner,
        lease_until=from_ms_if_any(item.lease_until),
        not_before=from_ms_if_any(item.not_before),
        generation=item.generation or 0,
        http_status=item.http_status,
        answer=item.answer,
        message=item.message,
        reported=item.reported,
        result_digest=item.result_digest,
        deadline_at=from_ms_if_any(item.deadline_at),
        parent_uuid=item.parent_uuid,
        wake_at=from_s_if_any(item.next_run_at),
        expires_at=from_s_if_any(item.expires_at),
        range_until=from_ms_if_any(item.range_until),
        range_count=item.range_count,
        notes=tuple(sorted(item.notes)) if item.notes else (),
        slotted=bool(item.slotted),
        hop=item.hop or 0,
        rerun_of=item.rerun_of,
        rerun_by=item.rerun_by,
        occurrence_at=from_ms_if_any(item.occurrence_at),
        edited=bool(item.edited),
        attempt_planned_at=from_ms_if_any(item.attempt_planned_at),
        attempt_enqueued_at=from_ms_if_any(item.attempt_enqueued_at),
        task=item.task,
        flow_key=item.flow_key,
        line_at=from_ms_if_any(item.line_at),
        chain=frozenset(item.chain or ()),
        root=item.root,
    )


def lost_text(call: LostCall) -> str:
    return f"{call.attempt},{epoch_ms(call.started_at)}"


def _lost_calls(texts: Collection[str]) -> tuple[LostCall, ...]:
    """In order."""
    pairs = sorted((int(attempt), int(started)) for attempt, started in (text.split(",") for text in texts))
    return tuple(LostCall(attempt, from_ms(started)) for attempt, started in pairs)


def item_of(run: Run, *, shards: int, lane: Lane) -> RunItem:
    """A new row. A wake puts it into the next-run index; a state other than plain success into `attention`."""
    item = RunItem(
        pk=keys.runs(run.tenant, run.schedule_id or run.job_id),
        sk=keys.run(run.uuid),
        job_id=run.job_id,
        schedule=run.schedule_id,
        kind=run.kind.value,
        state=run.state.value,
        reason=run.reason.value if run.reason else None,
        planned_at=epoch_ms(run.planned_at),
        enqueued_at=ms_if_any(run.enqueued_at),
        first_started_at=ms_if_any(run.first_started_at),
        started_at=ms_if_any(run.started_at),
        finished_at=ms_if_any(run.finished_at),
        attempt=run.attempt,
        max_attempts=run.max_attempts if run.max_attempts != 1 else None,
        owner=run.owner,
        lease_until=ms_if_any(run.lease_until),
        not_before=ms_if_any(run.not_before),
        generation=run.generation or None,
        http_status=run.http_status,
        answer=run.answer,
        message=run.message,
        parent_uuid=run.parent_uuid,
        range_until=ms_if_any(run.range_until),
        range_count=run.range_count,
        expires_at=s_if_any(run.expires_at),
        slotted=run.slotted or None,
        hop=run.hop or None,
        rerun_of=run.rerun_of,
        occurrence_at=ms_if_any(run.occurrence_at),
        edited=run.edited or None,
        flow_key=run.flow_key,
        chain=run.chain or None,
        root=run.root,
    )
    if run.wake_at is not None:
        item.shard = shard_of(run.uuid, shards)
        item.sweep = wake_text(run, lane)
        item.next_run_at = epoch_s(run.wake_at)
    if run.state in NEEDS_ATTENTION:
        item.attention_day = keys.attention_day(run.tenant, run.planned_at)
        item.attention_at = order_of(run.uuid)
    return item


def wake_text(run: Run, lane: Lane) -> str:
    return str(SweepText(Waits.RUN, lane, packed=str(WaitingRun.of(run))))


def wake_actions(run: Run, wake_at: datetime, *, shards: int, lane: Lane) -> list[Action]:
    """Somebody will look at this run at `wake_at`."""
    return [
        assign(RunItem.shard, shard_of(run.uuid, shards)),
        assign(RunItem.sweep, wake_text(run, lane)),
        assign(RunItem.next_run_at, epoch_s(wake_at)),
    ]


def attention(run: Run) -> list[Action]:
    return [
        assign(RunItem.attention_day, keys.attention_day(run.tenant, run.planned_at)),
        assign(RunItem.attention_at, order_of(run.uuid)),
    ]
