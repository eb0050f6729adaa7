"""The ledger: one row a run. Claims, terminal writes and waits, each with its named condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pynamodb.expressions.condition import Condition, size
from pynamodb.expressions.update import Action

from sweephand.domain.instants import epoch_ms, epoch_s, from_ms, from_s
from sweephand.domain.message import Pointer
from sweephand.domain.run import CLAIMABLE, TERMINAL, Kind, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.domain.waiting import SweepText, WaitingRun, Waits
from sweephand.ids import order_of, shard_of
from sweephand.store import counting, keys
from sweephand.store.conditional import Op, Refused, Table, Written, assign, every
from sweephand.store.table import AttemptItem, RunItem

MOST_NOTES = 20
TERMINAL_TEXTS = tuple(sorted(TERMINAL))


# Rows and runs


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
        enqueued_at=_ms(item.enqueued_at),
        first_started_at=_ms(item.first_started_at),
        started_at=_ms(item.started_at),
        finished_at=_ms(item.finished_at),
        attempt=item.attempt,
        max_attempts=item.max_attempts or 1,
        lost=item.lost or 0,
        owner=item.owner,
        lease_until=_ms(item.lease_until),
        not_before=_ms(item.not_before),
        generation=item.generation or 0,
        http_status=item.http_status,
        answer=item.answer,
        message=item.message,
        reported=item.reported,
        result_digest=item.result_digest,
        deadline_at=_ms(item.deadline_at),
        parent_uuid=item.parent_uuid,
        wake_at=_s(item.next_run_at),
        expires_at=_s(item.expires_at),
        range_until=_ms(item.range_until),
        range_count=item.range_count,
        notes=tuple(sorted(item.notes)) if item.notes else (),
        slotted=bool(item.slotted),
        hop=item.hop or 0,
        rerun_of=item.rerun_of,
        rerun_by=item.rerun_by,
        occurrence_at=_ms(item.occurrence_at),
        edited=bool(item.edited),
        attempt_planned_at=_ms(item.attempt_planned_at),
        attempt_enqueued_at=_ms(item.attempt_enqueued_at),
        task=item.task,
        flow_key=item.flow_key,
        line_at=_ms(item.line_at),
        chain=frozenset(item.chain or ()),
    )


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
        enqueued_at=_to_ms(run.enqueued_at),
        first_started_at=_to_ms(run.first_started_at),
        started_at=_to_ms(run.started_at),
        finished_at=_to_ms(run.finished_at),
        attempt=run.attempt,
        max_attempts=run.max_attempts if run.max_attempts != 1 else None,
        owner=run.owner,
        lease_until=_to_ms(run.lease_until),
        not_before=_to_ms(run.not_before),
        generation=run.generation or None,
        http_status=run.http_status,
        answer=run.answer,
        message=run.message,
        parent_uuid=run.parent_uuid,
        range_until=_to_ms(run.range_until),
        range_count=run.range_count,
        expires_at=_to_s(run.expires_at),
        slotted=run.slotted or None,
        hop=run.hop or None,
        rerun_of=run.rerun_of,
        occurrence_at=_to_ms(run.occurrence_at),
        edited=run.edited or None,
        flow_key=run.flow_key,
        chain=run.chain or None,
    )
    if run.wake_at is not None:
        item.shard = shard_of(run.uuid, shards)
        item.sweep = wake_text(run, lane)
        item.next_run_at = epoch_s(run.wake_at)
    if run.state in _NEEDS_ATTENTION:
        item.attention_day = keys.attention_day(run.tenant, run.planned_at)
        item.attention_at = order_of(run.uuid)
    return item


_NEEDS_ATTENTION = frozenset(set(State) - {State.SUCCESS, State.TRIGGERED, State.SCHEDULED})


def run_in(refused: Refused) -> Run | None:
    """The row that a refused write met."""
    item = refused.read(RunItem)
    return run_of(item) if item is not None else None


def read(table: Table, tenant: str, owner: str, uuid: str) -> Run | None:
    item = table.get(RunItem, keys.runs(tenant, owner), keys.run(uuid))
    return run_of(item) if item is not None else None


# Conditions: each a clause of the protocol, by its name

ABSENT: Condition = RunItem.pk.does_not_exist()
NOT_TERMINAL: Condition = RunItem.pk.exists() & ~RunItem.state.is_in(*TERMINAL_TEXTS)


def claimable(attempt: int, now: datetime) -> Condition:
    """The row waits for exactly this attempt, and its time has come."""
    return every(
        RunItem.attempt == attempt,
        RunItem.state.is_in(*sorted(CLAIMABLE)),
        RunItem.not_before.does_not_exist() | (RunItem.not_before <= epoch_ms(now)),
    )


def own_lease(owner: str) -> Condition:
    return every(RunItem.state == State.TRIGGERED.value, RunItem.owner == owner)


def lease_as_read(run: Run) -> Condition:
    """The holder whose lease is over is still the one that was read."""
    return every(
        RunItem.state == State.TRIGGERED.value,
        RunItem.attempt == run.attempt,
        RunItem.owner == run.owner,
        RunItem.lease_until == _to_ms(run.lease_until),
    )


def state_as_read(run: Run) -> Condition:
    """A row that waits still waits for the same thing."""
    return every(RunItem.state == run.state.value, RunItem.attempt == run.attempt)


# Claim


@dataclass(frozen=True)
class Lease:
    """Who holds a run, since and until when. planned_at, enqueued_at: the stamps of an attempt beyond the first.

    flow_key: under which it calls.
    """

    owner: str
    taken_at: datetime
    until: datetime
    planned_at: datetime | None = None
    enqueued_at: datetime | None = None
    flow_key: str | None = None

    @classmethod
    def of(cls, run: Run) -> Lease:
        """Of a row as its claim leaves it."""
        assert run.owner is not None
        assert run.started_at is not None
        assert run.lease_until is not None
        stamps = run.attempt_planned_at, run.attempt_enqueued_at
        return cls(run.owner, run.started_at, run.lease_until, *stamps, run.flow_key)


def claim_first(table: Table, run: Run, *, shards: int, lane: Lane) -> Written | Refused:
    """The first attempt of an occurrence that has no row: the row is the claim."""
    return table.put(item_of(run, shards=shards, lane=lane), ABSENT)


def claim_again(table: Table, run: Run, lease: Lease, attempt: int) -> Written | Refused:
    """A further attempt, or the first of a run that was written before its message (manual, error action)."""
    return table.update(*key_of(run), claiming(run, lease), claimable(attempt, lease.taken_at))


def claiming(run: Run, lease: Lease) -> list[Action]:
    actions = [
        *_held_by(lease),
        assign(RunItem.first_started_at, epoch_ms(run.first_started_at or lease.taken_at)),
        assign(RunItem.not_before, None),
    ]
    if run.attempt > 1:
        actions.append(assign(RunItem.attempt_planned_at, _to_ms(lease.planned_at)))
        actions.append(assign(RunItem.attempt_enqueued_at, _to_ms(lease.enqueued_at)))
    return actions


def take_over(table: Table, run: Run, lease: Lease) -> Written | Refused:
    """The same attempt again, from an executor whose lease is over."""
    return table.update(*key_of(run), [*_held_by(lease), assign(RunItem.lost, run.lost + 1)], lease_as_read(run))


def _held_by(lease: Lease) -> list[Action]:
    return [
        assign(RunItem.state, State.TRIGGERED.value),
        assign(RunItem.reason, None),
        assign(RunItem.owner, lease.owner),
        assign(RunItem.lease_until, epoch_ms(lease.until)),
        assign(RunItem.started_at, epoch_ms(lease.taken_at)),
        assign(RunItem.attention_day, None),
        assign(RunItem.attention_at, None),
        *([assign(RunItem.flow_key, lease.flow_key)] if lease.flow_key else []),
    ]


# Ends and waits


def succeed(table: Table, run: Run) -> Written | Refused:
    """The one cheap end: nothing but the row. run: as it shall be.

    Whoever reports it first wins, with or without lease.
    """
    if run.ends_late:
        return counting.write(table, run, table.update_op("run", *key_of(run), _ending(run), NOT_TERMINAL), {}, ())
    return table.update(*key_of(run), _ending(run), NOT_TERMINAL)


def finish(
    table: Table, run: Run, condition: Condition, counts: dict[str, int], attempts: Sequence[AttemptItem]
) -> Written | Refused:
    """Any other end, with its counts and what is known of the attempts: one transaction. run: as it shall be."""
    actions = [*_ending(run), assign(RunItem.max_attempts, run.max_attempts)]
    if run.state in _NEEDS_ATTENTION:
        actions += attention(run)
    return counting.write(table, run, table.update_op("run", *key_of(run), actions, condition), counts, attempts)


def finish_from_outside(
    table: Table, run: Run, *, shards: int, lane: Lane, counts: dict[str, int]
) -> Written | Refused:
    """An end by one who holds no lease (callback, cancel) [not terminal]. run: as it shall be, with its wake."""
    return counting.write(table, run, end_from_outside_op(table, "run", run, shards=shards, lane=lane), counts, ())


def end_from_outside_op(table: Table, name: str, run: Run, *, shards: int, lane: Lane) -> Op:
    assert run.wake_at is not None
    actions = [
        *_ending(run),
        assign(RunItem.result_digest, run.result_digest),
        *([assign(RunItem.reported, run.reported)] if run.reported is not None else []),
        *wake_actions(run, run.wake_at, shards=shards, lane=lane),
    ]
    if run.state is not State.SUCCESS:
        actions += attention(run)
    return table.update_op(name, *key_of(run), actions, NOT_TERMINAL)


def note(table: Table, run: Run, text: str) -> None:
    """What came after the end: kept beside it, at most twenty."""
    few = RunItem.notes.does_not_exist() | (size(RunItem.notes) < MOST_NOTES)  # type: ignore[no-untyped-call]
    table.update(*key_of(run), [RunItem.notes.add({text})], every(RunItem.pk.exists(), few))


def rerun_op(table: Table, run: Run, by: str) -> Op:
    """It is run again [it is there: no row comes back by this]. by: the whole id of the new run."""
    return table.update_op("old", *key_of(run), [assign(RunItem.rerun_by, by)], RunItem.pk.exists())


def not_rerun_op(table: Table, run: Run, by: str) -> Op:
    """That run did not run [the row knows of it, and of none that came later]."""
    return table.update_op("old", *key_of(run), [assign(RunItem.rerun_by, None)], RunItem.rerun_by == by)


def finish_without_attempt(
    table: Table, run: Run, *, shards: int, lane: Lane, counts: dict[str, int]
) -> Written | Refused:
    """A run that ends before it began (skipped, expired, missed): row and counts in one transaction."""
    put = table.put_op("run", item_of(run, shards=shards, lane=lane), ABSENT)
    return counting.write(table, run, put, counts, ())


def wait(
    table: Table,
    run: Run,
    *,
    shards: int,
    lane: Lane,
    condition: Condition,
    counts: dict[str, int],
    attempts: Sequence[AttemptItem],
) -> Written | Refused:
    """Leave TRIGGERED for a wait: RETRY_WAIT with its next attempt, or ACK_* with its deadline. run: as it shall be."""
    actions = [
        assign(RunItem.state, run.state.value),
        assign(RunItem.reason, run.reason.value if run.reason else None),
        assign(RunItem.attempt, run.attempt),
        assign(RunItem.not_before, _to_ms(run.not_before)),
        assign(RunItem.deadline_at, _to_ms(run.deadline_at)),
        assign(RunItem.finished_at, _to_ms(run.finished_at)),
        assign(RunItem.http_status, run.http_status),
        assign(RunItem.answer, run.answer),
        assign(RunItem.message, run.message),
        assign(RunItem.max_attempts, run.max_attempts),
        assign(RunItem.task, run.task),
        assign(RunItem.owner, None),
        assign(RunItem.lease_until, None),
        *attention(run),
    ]
    if run.wake_at is not None:
        actions += wake_actions(run, run.wake_at, shards=shards, lane=lane)
    return counting.write(table, run, table.update_op("run", *key_of(run), actions, condition), counts, attempts)


def tell_task(table: Table, run: Run, task: str) -> Written | Refused:
    """Which task an open run waits for, of which its own RunTask had no answer [as read, and none known]."""
    return table.update(
        *key_of(run), [assign(RunItem.task, task)], every(state_as_read(run), RunItem.task.does_not_exist())
    )


def drop_wake(table: Table, run: Run) -> Written | Refused:
    """After the effects are done: nothing waits for this run any more, and what was reported has become its message."""
    actions = [assign(RunItem.shard, None), assign(RunItem.sweep, None), assign(RunItem.next_run_at, None)]
    if run.reported is not None:
        actions += [assign(RunItem.message, run.message), assign(RunItem.reported, None)]
    return table.update(*key_of(run), actions, RunItem.state.is_in(*TERMINAL_TEXTS))


def attention(run: Run) -> list[Action]:
    return [
        assign(RunItem.attention_day, keys.attention_day(run.tenant, run.planned_at)),
        assign(RunItem.attention_at, order_of(run.uuid)),
    ]


def _ending(run: Run) -> list[Action]:
    """Whoever ends a run without its lease sets a wake, so that somebody does the effects:
    it stays until they are done.
    """
    actions = [
        assign(RunItem.state, run.state.value),
        assign(RunItem.reason, run.reason.value if run.reason else None),
        assign(RunItem.finished_at, _to_ms(run.finished_at)),
        assign(RunItem.http_status, run.http_status),
        assign(RunItem.answer, run.answer),
        assign(RunItem.message, run.message),
        assign(RunItem.expires_at, _to_s(run.expires_at)),
        assign(RunItem.owner, None),
        assign(RunItem.lease_until, None),
        assign(RunItem.not_before, None),
        assign(RunItem.deadline_at, None),
    ]
    if run.state is State.SUCCESS:
        actions += [assign(RunItem.attention_day, None), assign(RunItem.attention_at, None)]
    return actions


def pointer_to(run: Run) -> Pointer:
    return Pointer(
        tenant=run.tenant,
        job=run.job_id,
        schedule=run.schedule_id,
        run=run.uuid,
        instant=from_s(epoch_s(run.planned_at)),
        kind=run.kind,
        attempt=run.attempt,
        generation=run.generation,
        decided=True,
    )


def key_of(run: Run) -> tuple[str, str]:
    return keys.runs(run.tenant, run.schedule_id or run.job_id), keys.run(run.uuid)


def _ms(value: int | None) -> datetime | None:
    return None if value is None else from_ms(value)


def _s(value: int | None) -> datetime | None:
    return None if value is None else from_s(value)


def _to_ms(value: datetime | None) -> int | None:
    return None if value is None else epoch_ms(value)


def _to_s(value: datetime | None) -> int | None:
    return None if value is None else epoch_s(value)


def wake_text(run: Run, lane: Lane) -> str:
    return str(SweepText(Waits.RUN, lane, packed=str(WaitingRun.of(run))))


def wake_actions(run: Run, wake_at: datetime, *, shards: int, lane: Lane) -> list[Action]:
    """Somebody will look at this run at `wake_at`."""
    return [
        assign(RunItem.shard, shard_of(run.uuid, shards)),
        assign(RunItem.sweep, wake_text(run, lane)),
        assign(RunItem.next_run_at, epoch_s(wake_at)),
    ]
