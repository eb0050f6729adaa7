"""The ledger, with one row per run: claims, terminal writes and waits, each with its named condition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import SupportsInt

from pynamodb.expressions.condition import Condition, size
from pynamodb.expressions.update import Action

from sweephand.base.errors import Unavailable
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, epoch_s, from_s, ms_if_any
from sweephand.domain.message import Pointer
from sweephand.domain.run import CLAIMABLE, TERMINAL, LostCall, Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Table, Written, if_any
from sweephand.server.store.dynamo.expressions import add, assign, every, removal, withdraw
from sweephand.server.store.dynamo.table import AttemptItem, RunItem, StatsItem
from sweephand.server.store.runs.run_rows import (
    NEEDS_ATTENTION,
    attention,
    changes_of,
    item_of,
    key_of,
    lost_text,
    run_of,
    wake_actions,
)

MOST_NOTES = 20
TERMINAL_TEXTS = tuple(sorted(TERMINAL))


def run_in(refused: Refused) -> Run | None:
    """Returns the run as a refused write found it."""
    return if_any(run_of, refused.read(RunItem))


def read(table: Table, tenant: str, owner: str, uuid: str) -> Run | None:
    return if_any(run_of, table.get(RunItem, keys.runs(tenant, owner), keys.run(uuid)))


def read_many(table: Table, run_keys: Sequence[tuple[str, str]]) -> list[Run]:
    """Returns the existing runs with these keys, in order."""
    rows = table.batch_get(run_keys)
    return [run_of(RunItem.from_raw_data(rows[key])) for key in run_keys if key in rows]


# Conditions: the named clauses of the protocol

ABSENT: Condition = RunItem.pk.does_not_exist()
NOT_TERMINAL: Condition = RunItem.pk.exists() & ~RunItem.state.is_in(*TERMINAL_TEXTS)


def claimable(attempt: int, now: datetime) -> Condition:
    """Requires that the row waits for exactly this attempt and that its time has come.

    SCHEDULED are messages. Only runs that are held because no worker took them come here as HELD; the gate lets no
    other held run pass.
    """
    return every(
        RunItem.attempt == attempt,
        RunItem.state.is_in(*sorted(CLAIMABLE | {State.HELD, State.SCHEDULED})),
        RunItem.not_before.does_not_exist() | (RunItem.not_before <= epoch_ms(now)),
    )


def own_lease(owner: str) -> Condition:
    return every(RunItem.state == State.TRIGGERED.value, RunItem.owner == owner)


def lease_as_read(run: Run) -> Condition:
    """Requires that the holder is still the one that was read, whose lease has expired."""
    return every(
        RunItem.state == State.TRIGGERED.value,
        RunItem.attempt == run.attempt,
        RunItem.owner == run.lease_owner,
        RunItem.lease_until == ms_if_any(run.lease_until),
    )


def reports(run: Run) -> Condition:
    """Requires that the attempt whose result is reported has not failed since it was read. run: as read."""
    if run.state is State.RETRY_WAIT:
        return state_as_read(run)
    return every(NOT_TERMINAL, RunItem.attempt == run.attempt, RunItem.state != State.RETRY_WAIT.value)


def state_as_read(run: Run) -> Condition:
    """Requires that the row is still in the state and attempt that were read."""
    return every(RunItem.state == run.state.value, RunItem.attempt == run.attempt)


# Claim


@dataclass(frozen=True)
class Lease:
    """The holder of a run, and the time of its hold. planned_at, enqueued_at: the stamps of an attempt after the first.

    flow_key: the key under which it calls. claims: the marks of workers, with that of this one.
    """

    owner: str
    taken_at: datetime
    until: datetime
    planned_at: datetime | None = None
    enqueued_at: datetime | None = None
    flow_key: str | None = None
    claims: frozenset[str] = frozenset()

    @classmethod
    def of(cls, run: Run) -> Lease:
        """Returns the lease of a claimed run."""
        assert run.lease_owner is not None
        assert run.started_at is not None
        assert run.lease_until is not None
        stamps = run.attempt_planned_at, run.attempt_enqueued_at
        return cls(run.lease_owner, run.started_at, run.lease_until, *stamps, run.flow_key, run.claims)


def claim_first(table: Table, run: Run, *, shards: SupportsInt, lane: Lane) -> Written | Refused:
    """Claims the first attempt of an occurrence without a row; writing the row is the claim."""
    return table.put(item_of(run, shards=shards, lane=lane, table=table), ABSENT)


def claim_again(table: Table, run: Run, lease: Lease, attempt: int) -> Written | Refused:
    """Claims a further attempt, or the first of a run that was written before its message (manual, error action)."""
    return table.update(*key_of(run), claiming(run, lease), claimable(attempt, lease.taken_at))


def claiming(run: Run, lease: Lease) -> list[Action]:
    actions = [
        *_held_by(lease),
        assign(RunItem.first_started_at, epoch_ms(run.first_started_at or lease.taken_at)),
        assign(RunItem.not_before, None),
    ]
    if run.state is State.SCHEDULED:
        actions += removal(RunItem, "next_run_at")
    if run.attempt > 1:
        actions.append(assign(RunItem.attempt_planned_at, ms_if_any(lease.planned_at)))
        actions.append(assign(RunItem.attempt_enqueued_at, ms_if_any(lease.enqueued_at)))
    return actions


def take_over(table: Table, run: Run, lease: Lease) -> Written | Refused:
    """Takes over the attempt of an executor whose lease has expired. The row notes when that executor's call began."""
    lost = RunItem.lost_calls.add({lost_text(LostCall.of(run))})
    return table.update(*key_of(run), [*_held_by(lease), lost], lease_as_read(run))


def unclaim(table: Table, run: Run, before: Run | None) -> Written | Refused:
    """Takes back the claim of an attempt that has not begun, unless another executor has taken it over.

    run: the row as the claim left it. before: the row as it was before that; None if the claim created it.
    """
    assert run.lease_owner is not None
    mine = own_lease(run.lease_owner)
    if before is None:
        return table.delete(*key_of(run), mine)
    names = (
        "state reason not_before owner lease_until started_at first_started_at attempt_planned_at attempt_enqueued_at"
    )
    actions = changes_of(before, f"{names} next_run_at" if before.state is State.SCHEDULED else names)
    if before.state in NEEDS_ATTENTION:
        actions += attention(before, table)
    if before.state is State.TRIGGERED:
        actions.append(withdraw(RunItem.lost_calls, {lost_text(LostCall.of(before))}))
    return table.update(*key_of(run), actions, mine)


def extend(table: Table, place: tuple[str, str, str], owner: str, until: datetime) -> Written | Refused:
    """Extends the lease of a worker that holds the run. place: tenant, owner and uuid of the run."""
    tenant, owner_id, uuid = place
    key = keys.runs(tenant, owner_id), keys.run(uuid)
    return table.update(*key, [assign(RunItem.lease_until, epoch_ms(until))], own_lease(owner))


def give_back(table: Table, run: Run, owner: str) -> Written | Refused:
    """Gives back an attempt that its worker cannot make. run: its new state. owner: the worker that holds it."""
    names = "state reason message unknown not_before"
    actions = [*changes_of(run, names), *removal(RunItem, "owner lease_until"), *attention(run, table)]
    return table.update(*key_of(run), actions, own_lease(owner))


def _held_by(lease: Lease) -> list[Action]:
    return [
        assign(RunItem.state, State.TRIGGERED.value),
        assign(RunItem.owner, lease.owner),
        assign(RunItem.lease_until, epoch_ms(lease.until)),
        assign(RunItem.started_at, epoch_ms(lease.taken_at)),
        *removal(RunItem, "reason attention_day attention_at"),
        *([assign(RunItem.flow_key, lease.flow_key)] if lease.flow_key else []),
        *([RunItem.claims.add(set(lease.claims))] if lease.claims else []),
    ]


# Ends and waits


def succeed(table: Table, run: Run) -> Written | Refused:
    """Ends a run as a success, usually with one write of its row. run: its new state.

    The first report wins, with or without a lease.
    """
    if run.ends_late:
        return _with_counts(table, run, table.update_op("run", *key_of(run), _ending(run), NOT_TERMINAL), {}, ())
    return table.update(*key_of(run), _ending(run), NOT_TERMINAL)


def finish(
    table: Table,
    run: Run,
    condition: Condition,
    counts: dict[str, int],
    attempts: Sequence[AttemptItem],
    also: Sequence[Op] = (),
) -> Written | Refused:
    """Ends a run otherwise, with its counts and attempts, in one transaction. run: its new state.

    also: further parts of the transaction.
    """
    actions = [*_ending(run), *changes_of(run, "max_attempts")]
    if run.state in NEEDS_ATTENTION:
        actions += attention(run, table)
    return _with_counts(table, run, table.update_op("run", *key_of(run), actions, condition), counts, attempts, also)


def finish_from_outside(
    table: Table,
    run: Run,
    *,
    shards: SupportsInt,
    lane: Lane,
    counts: dict[str, int],
    reported: Run | None,
    also: Sequence[Op] = (),
) -> Written | Refused:
    """Ends a run without its lease (callback, cancel). run: its new state, with its wake.

    reported: as for `reports`, if the end is a result. also: further parts of the transaction.
    """
    condition = NOT_TERMINAL if reported is None else reports(reported)
    op = end_from_outside_op(table, "run", run, shards=shards, lane=lane, condition=condition)
    return _with_counts(table, run, op, counts, (), also)


def end_from_outside_op(
    table: Table, name: str, run: Run, *, shards: SupportsInt, lane: Lane, condition: Condition = NOT_TERMINAL
) -> Op:
    assert run.wake_at is not None
    actions = [
        *_ending(run),
        *changes_of(run, "attempt"),
        assign(RunItem.result_digest, run.result_digest),
        *([assign(RunItem.reported, run.reported)] if run.reported is not None else []),
        *wake_actions(run, run.wake_at, shards=shards, lane=lane),
    ]
    if run.state is not State.SUCCESS:
        actions += attention(run, table)
    return table.update_op(name, *key_of(run), actions, condition)


def end_wait(table: Table, run: Run, at: datetime, *, shards: SupportsInt, lane: Lane) -> Written | Refused:
    """Brings the deadline of a run that waits for its result forward to `at`, if it still waits as it was read."""
    actions = [assign(RunItem.deadline_at, epoch_ms(at)), *wake_actions(run, at, shards=shards, lane=lane)]
    return table.update(*key_of(run), actions, state_as_read(run))


def wake_elsewhere(table: Table, run: Run, *, shards: SupportsInt, lane: Lane) -> None:
    """Has the wake of a waiting run go to another queue, unless the run has moved on. run: as read, with a wake."""
    assert run.wake_at is not None
    table.update(*key_of(run), wake_actions(run, run.wake_at, shards=shards, lane=lane), state_as_read(run))


def note(table: Table, run: Run, text: str) -> None:
    """Notes a report that came after the end. A run keeps at most twenty notes."""
    few = RunItem.notes.does_not_exist() | (size(RunItem.notes) < MOST_NOTES)  # type: ignore[no-untyped-call]
    table.update(*key_of(run), [RunItem.notes.add({text})], every(RunItem.pk.exists(), few))


def rerun_op(table: Table, run: Run, by: str) -> Op:
    """Returns the operation that marks a run as run again, if its row exists. by: the whole id of the new run."""
    return table.update_op("old", *key_of(run), [assign(RunItem.rerun_by, by)], RunItem.pk.exists())


def not_rerun_op(table: Table, run: Run, by: str) -> Op:
    """Returns the operation that removes the mark of a rerun that did not run, if no later one has replaced it."""
    return table.update_op("old", *key_of(run), [assign(RunItem.rerun_by, None)], RunItem.rerun_by == by)


def finish_without_attempt(
    table: Table, run: Run, *, shards: SupportsInt, lane: Lane, counts: dict[str, int] | None
) -> Written | Refused:
    """Writes a run that ends before it began (skipped, expired, missed) and its counts in one transaction.

    counts: None if its schedule no longer has statistics.
    """
    put = table.put_op("run", item_of(run, shards=shards, lane=lane, table=table), ABSENT)
    return table.carry_out(put) if counts is None else _with_counts(table, run, put, counts, ())


def wait(
    table: Table,
    run: Run,
    *,
    shards: SupportsInt,
    lane: Lane,
    condition: Condition,
    counts: dict[str, int],
    attempts: Sequence[AttemptItem],
    lost: LostCall | None = None,
) -> Written | Refused:
    """Writes that a run waits: RETRY_WAIT for its next attempt, or ACK_* for its result until a deadline.

    run: its new state. lost: the call whose executor was lost.
    """
    names = (
        "state reason attempt not_before attempt_enqueued_at deadline_at finished_at http_status answer message"
        " answer_headers"
        " max_attempts task"
    )
    actions = [*changes_of(run, names), *removal(RunItem, "owner lease_until"), *attention(run, table)]
    if run.wake_at is not None:
        actions += wake_actions(run, run.wake_at, shards=shards, lane=lane)
    if lost is not None:
        actions.append(RunItem.lost_calls.add({lost_text(lost)}))
    return _with_counts(table, run, table.update_op("run", *key_of(run), actions, condition), counts, attempts)


def record_task(table: Table, run: Run, task: str) -> Written | Refused:
    """Records the task of an open run whose own RunTask had no answer, if it is as read and has no task."""
    return table.update(
        *key_of(run), [assign(RunItem.task, task)], every(state_as_read(run), RunItem.task.does_not_exist())
    )


def drop_wake(table: Table, run: Run) -> Written | Refused:
    """Removes the wake of an ended run after its effects are done. A reported message becomes the run's message."""
    actions = removal(RunItem, "shard sweep next_run_at")
    if run.reported is not None:
        actions += [assign(RunItem.message, run.message), assign(RunItem.reported, None)]
    return table.update(*key_of(run), actions, RunItem.state.is_in(*TERMINAL_TEXTS))


def _ending(run: Run) -> list[Action]:
    """Returns the change that ends a run. It leaves the wake, which an end without a lease sets for the effects."""
    ends = "attention_day attention_at" if run.state is State.SUCCESS else ""
    return [
        *changes_of(run, "state reason finished_at http_status answer message expires_at answer_headers reported_by"),
        *removal(RunItem, f"owner lease_until not_before deadline_at {ends}"),
    ]


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
        recorded=True,
    )


# Counts of ends: added to the statistics in the transaction that makes an end happen only once

LATE_TRIES = 3


def _with_counts(
    table: Table, run: Run, op: Op, counts: dict[str, int], attempts: Sequence[AttemptItem], also: Sequence[Op] = ()
) -> Written | Refused:
    """Writes the run's own part, its counts, its attempts and `also`, all or none."""
    rest = [*(table.put_op(f"attempt {item.attempt}", item) for item in attempts), *also]
    if run.ends_late:
        return _end_late(table, run, op, counts, rest)
    stats = [count_op(table, run, counts)] if counts else []
    if not stats and not rest:
        return table.carry_out(op)
    done = table.transact([op, *stats, *rest])
    return done if isinstance(done, Written) else done.refused["run"]


def _end_late(table: Table, run: Run, op: Op, counts: dict[str, int], rest: Sequence[Op]) -> Written | Refused:
    """Writes a late end, which totals may no longer find by counting rows, and counts it."""
    for _ in range(LATE_TRIES):
        late, same = late_ends(table, [run])
        done = table.transact([op, count_op(table, run, {**counts, **late}, same), *rest])
        if isinstance(done, Written):
            return done
        if "run" in done.refused:
            return done.refused["run"]
    raise Unavailable("too many concurrent changes to the statistics; try again")


def late_ends(table: Table, runs: Sequence[Run]) -> tuple[dict[str, int], Condition | None]:
    """Returns the counts of the runs (of one schedule) that end late, and the condition that settled_to is as read.

    settled_total: counts runs within the settled part. late_ends: always increases, so that an audit that saw one of
    the runs open cannot settle past it.
    """
    late = [run for run in runs if run.ends_late]
    if not late:
        return {}, None
    stats = table.get(StatsItem, *_key(late[0]))
    settled_to = stats.settled_to if stats is not None else None
    if settled_to is None:
        return {"late_ends": len(late)}, StatsItem.settled_to.does_not_exist()
    settled = sum(epoch_ms(run.planned_at) <= settled_to for run in late)
    counts = {"late_ends": len(late), "settled_total": settled} if settled else {"late_ends": len(late)}
    return counts, StatsItem.settled_to == settled_to


def count_op(table: Table, run: Run, counts: dict[str, int], condition: Condition | None = None) -> Op:
    """Returns the part of a transaction that adds to the statistics. Never use it without a part that happens once."""
    actions: list[Action] = [add(getattr(StatsItem, name), amount) for name, amount in counts.items()]
    return table.update_op("stats", *_key(run), actions, condition)


def _key(run: Run) -> tuple[str, str]:
    return keys.job(run.tenant, run.job_id), keys.stats(run.schedule_id or run.job_id)
