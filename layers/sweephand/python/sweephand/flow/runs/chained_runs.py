"""Starts runs of other jobs from a run."""

from __future__ import annotations

from dataclasses import replace

from sweephand import ids
from sweephand.domain.instants import epoch_ms
from sweephand.domain.occurrences.index_row import WAKE
from sweephand.domain.run import Kind, Run, State
from sweephand.domain.runs import run_action
from sweephand.domain.schedule import Lane
from sweephand.errors import Unavailable
from sweephand.flow.world import World
from sweephand.messaging.run_queue import Delivery
from sweephand.store.jobs import jobs
from sweephand.store.runs import ledger


def run_from(world: World, parent: Run, job_id: str) -> str | None:
    """Starts a run of another job, under an id computed from the parent, so that a repetition finds the same run.

    Returns its id; None if the tenant has no such job. Raises Unavailable.
    """
    job = jobs.read_job(world.table, parent.tenant, job_id)
    if job is None:
        return None
    now = world.clock.now()
    uuid = ids.run_uuid(parent.tenant, job_id, epoch_ms(parent.planned_at), Kind.MANUAL.value, parent.id)
    started = replace(
        run_action.new_run(job, Kind.MANUAL, None, uuid, State.QUEUED, parent.planned_at),
        enqueued_at=now,
        parent_uuid=parent.id,
        wake_at=now + WAKE,
        hop=parent.hop + 1,
        chain=parent.chain | {parent.job_id},
        root=parent.root or parent.id,
    )
    lane = run_action.lane_of(job.action)
    jobs.note_own_runs(world.table, job)
    ledger.claim_first(world.table, started, shards=world.settings.shards, lane=lane)
    send(world, started, lane)
    return started.id


def send(world: World, run: Run, lane: Lane) -> None:
    """Sends the run's message. If the queue does not take it, the run's wake sends it later."""
    try:
        world.queue.send_one(Delivery(ledger.pointer_to(run), run.planned_at, lane))
    except Unavailable:
        world.journal.warning("the run will be started later, by its wake", run=run.uuid)
