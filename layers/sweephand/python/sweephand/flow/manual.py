"""A manual run: its row first, so that reading it works at once, then its message; a lost message heals by its wake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sweephand import ids
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.domain.job import Job
from sweephand.domain.run import Kind, Run, State
from sweephand.domain.schedule import Lane
from sweephand.errors import NotFound, Unavailable
from sweephand.flow import drafts, settle
from sweephand.flow.effects import WAKE
from sweephand.flow.idempotency import Once, earlier, earlier_answer, once_op
from sweephand.flow.world import World
from sweephand.messaging.run_queue import Delivery
from sweephand.store import jobs, ledger, run_rows
from sweephand.store.conditional import Cancelled, Op, Written

if TYPE_CHECKING:
    from sweephand.flow.edits import Edit


def run_now(
    world: World,
    tenant: str,
    job_id: str,
    schedule_id: str | None,
    once: Once | None,
    hop: int = 0,
    *,
    edit: Edit | None = None,
) -> str:
    """Returns the id of the new run, or of the one that an earlier request of the same key made.

    hop: runs before it, where a run's call asks for it. edit: what this run sends in place of what its job says.
    Raises NotFound; InvalidRequest for an edit that the action cannot send.
    """
    job = find(world, tenant, job_id, schedule_id)
    if once is not None and (there := earlier(world, tenant, once)) is not None:
        return there
    check_not_final(world, job)
    run = new_run(world, job, schedule_id, once, hop)
    done = start(world, job, run, start_ops(world, job, run, once, edit))
    if isinstance(done, Cancelled) and "run" not in done.refused and once is not None:
        return earlier_answer(done.refused["once"], once)
    send(world, run, drafts.lane_of(job))
    return run.id


def check_not_final(world: World, job: Job) -> None:
    """Raises Conflict for a job that has ended for good."""
    if job.policies.get("afterEnd") == "final":
        from sweephand.flow import finality  # noqa: PLC0415 - few jobs end for good

        finality.check_run(world, job)


def find(world: World, tenant: str, job_id: str, schedule_id: str | None) -> Job:
    """The job, if it and the schedule are there. Raises NotFound."""
    job = jobs.read_job(world.table, tenant, job_id)
    if job is None:
        raise NotFound("no such job")
    if schedule_id is not None and jobs.read_schedule(world.table, tenant, job_id, schedule_id) is None:
        raise NotFound("no such schedule")
    return job


def new_run(world: World, job: Job, schedule_id: str | None, once: Once | None, hop: int) -> Run:
    """As its row shall be."""
    now = from_ms(epoch_ms(world.clock.now()))
    key = once.key if once else world.chance.new_id(now)
    uuid = ids.run_uuid(job.tenant, schedule_id or job.id, epoch_ms(now), Kind.MANUAL.value, key)
    return replace(
        settle.new_run(job, Kind.MANUAL, schedule_id, uuid, State.QUEUED, now),
        enqueued_at=now,
        wake_at=now + WAKE,
        hop=hop,
    )


def start_ops(world: World, job: Job, run: Run, once: Once | None, edit: Edit | None = None) -> list[Op]:
    """Returns the parts `run`, `edit` and `once` of the transaction that starts it. Raises InvalidRequest."""
    if edit is not None:
        from sweephand.flow import edits  # noqa: PLC0415 - few runs carry a payload of their own

        edits.check(job.action, edit)
        run = replace(run, edited=True)
    item = run_rows.item_of(run, shards=world.settings.shards, lane=drafts.lane_of(job))
    ops = [world.table.put_op("run", item, ledger.ABSENT)]
    if edit is not None:
        ops.append(edits.edit_op(world, run, edit, run.planned_at))
    if once is not None:
        ops.append(once_op(world, run.tenant, once, run.id))
    return ops


def start(world: World, job: Job, run: Run, ops: Sequence[Op]) -> Written | Cancelled:
    """Carries out the transaction that starts a run. A job notes its first run without a schedule before that."""
    if run.schedule_id is None:
        jobs.note_own_runs(world.table, job)
    return world.table.transact(ops)


def run_from(world: World, parent: Run, job_id: str) -> str | None:
    """A run of another job that a run starts, under an id that follows from that run: a repeat meets it again.

    Returns its id; None if the tenant has no such job. Raises Unavailable.
    """
    job = jobs.read_job(world.table, parent.tenant, job_id)
    if job is None:
        return None
    now = world.clock.now()
    uuid = ids.run_uuid(parent.tenant, job_id, epoch_ms(parent.planned_at), Kind.MANUAL.value, parent.id)
    started = replace(
        settle.new_run(job, Kind.MANUAL, None, uuid, State.QUEUED, parent.planned_at),
        enqueued_at=now,
        parent_uuid=parent.id,
        wake_at=now + WAKE,
        hop=parent.hop + 1,
        chain=parent.chain | {parent.job_id},
        root=parent.root or parent.id,
    )
    lane = drafts.lane_of(job)
    jobs.note_own_runs(world.table, job)
    ledger.claim_first(world.table, started, shards=world.settings.shards, lane=lane)
    send(world, started, lane)
    return started.id


def send(world: World, run: Run, lane: Lane) -> None:
    """Its message; if the queue does not take it, its wake stands in."""
    try:
        world.queue.send_one(Delivery(ledger.pointer_to(run), run.planned_at, lane))
    except Unavailable:
        world.journal.warning("the run starts by its wake", run=run.uuid)
