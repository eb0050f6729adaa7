"""Starts runs that follow from a run: runs of other jobs, of the error action, and of hooks of its job or schedule.

Each is a run of its own. Its id is computed from the run that starts it, so that repeated effects start it only once.
The outcome of a hook does not change the run that started it.
"""

from __future__ import annotations

from dataclasses import replace

from sweephand.base import ids
from sweephand.base.errors import InvalidRequest
from sweephand.base.lazy import lazy
from sweephand.domain.collection import REMEMBERED
from sweephand.domain.instants import epoch_ms
from sweephand.domain.job import HOOK_KINDS, Job, Payload
from sweephand.domain.occurrences.index_row import WAKE
from sweephand.domain.run import FAILED, Kind, Run, State
from sweephand.domain.runs.run_action import action_of, lane_of, new_run, policies_of
from sweephand.domain.schedule import Lane, Schedule
from sweephand.server.flow.concurrency import tolerated
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import ledger

with lazy():
    from sweephand.base import json_text
    from sweephand.domain import event
    from sweephand.server import actions
    from sweephand.server.flow.job_parts import schedule_hooks


def run_from(world: World, parent: Run, job_id: str) -> str | None:
    """Starts a run of another job. Its id is computed from the parent's, so that a repetition finds the same run.

    Returns its id; None if the tenant has no such job. Raises Unavailable.
    """
    job = jobs.read_job(world.table, parent.tenant, job_id)
    if job is None:
        return None
    now = world.clock.now()
    uuid = ids.run_uuid(parent.tenant, job_id, epoch_ms(parent.planned_at), Kind.MANUAL.value, parent.id)
    started = replace(
        new_run(job, Kind.MANUAL, None, uuid, State.QUEUED, parent.planned_at),
        enqueued_at=now,
        parent_uuid=parent.id,
        wake_at=now + WAKE,
        hop=parent.hop + 1,
        chain=parent.chain | {parent.job_id},
        root=parent.root or parent.id,
    )
    lane = lane_of(job.action, job.tenant)
    jobs.note_own_runs(world.table, job)
    ledger.claim_first(world.table, started, shards=world.shards, lane=lane)
    send(world, started, lane)
    return started.id


def send(world: World, run: Run, lane: Lane) -> None:
    """Sends the run's message. If the queue does not take it, the run's wake sends it later."""
    with tolerated(world, "the run will be started later, by its wake", run=run.uuid):
        world.queue.send_one(Delivery(ledger.pointer_to(run), run.planned_at, lane))


OF_STATE = {
    State.SUCCESS: "onSuccess",
    **dict.fromkeys(FAILED, "onFailure"),
    State.MISSED: "onMissed",
    State.EXPIRED: "onMissed",
}
"""The hook for each end of a run. A range of missed occurrences has one end, so it has one hook."""


def start(world: World, ended: Run, job: Job, schedule: Schedule | None) -> None:
    """Starts the error action and the hook for this end. May be repeated. Raises Unavailable.

    Starts nothing for a run that ended long ago: what it started may have run, and may have expired since.
    """
    if ended.finished_at is not None and world.clock.now() - ended.finished_at > REMEMBERED:
        return
    if ended.state in FAILED and job.error_action is not None:
        start_reaction(world, ended, job, Kind.ERROR_ACTION)
    name = OF_STATE.get(ended.state)
    if name is None or not (name in job.hooks or schedule_hooks.brings(schedule, name)):
        return
    chosen = policies_of(job, schedule).get("hooks")
    if chosen is not None and name not in chosen:
        return
    kind = HOOK_KINDS[name]
    start_reaction(world, ended, schedule_hooks.job_of(world, job, schedule, kind), kind)


def default_payload(world: World, run: Run, job: Job) -> Payload | None:
    """Returns the payload of a hook that has none of its own: the end of the run that started it, as in its event.

    Returns None if the hook's action takes no such payload.
    """
    assert run.parent_uuid is not None
    parent = ledger.read(world.table, run.tenant, run.schedule_id or run.job_id, run.parent_uuid)
    if parent is None or not parent.finished:
        return None
    payload = Payload(json_text.dumps(event.of_run(parent, job, job.collection).detail), is_json=True)
    action = job.reaction(run.kind)
    assert action is not None
    try:
        actions.check_payload(action.kind, action.params, payload, "payload")
    except InvalidRequest:
        return None
    return payload


def start_reaction(world: World, ended: Run, job: Job, kind: Kind) -> None:
    """Starts a reaction as a run of its own: the row first, then the message. The ended run determines its id."""
    now = world.clock.now()
    owner = ended.schedule_id or ended.job_id
    uuid = ids.run_uuid(ended.tenant, owner, epoch_ms(ended.planned_at), kind.value, ended.uuid)
    started = replace(
        new_run(job, kind, ended.schedule_id, uuid, State.QUEUED, ended.planned_at),
        enqueued_at=now,
        generation=ended.generation,
        parent_uuid=ended.uuid,
        hop=ended.hop,
        chain=ended.chain,
        root=ended.root or (ended.id if action_of(job, kind).kind == "job" else None),
        wake_at=now + WAKE,
    )
    own_lane = lane_of(action_of(job, kind), job.tenant)
    ledger.claim_first(world.table, started, shards=world.shards, lane=own_lane)
    world.queue.send_one(Delivery(ledger.pointer_to(started), now, own_lane))
