"""Starts manual runs: writes the row first, so that it can be read at once, then sends the message.

If the message is lost, the row's wake sends it again.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from sweephand.base import ids
from sweephand.base.errors import NotFound
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.domain.job import Job
from sweephand.domain.occurrences.index_row import WAKE
from sweephand.domain.run import APART, Kind, Run, State
from sweephand.domain.runs import run_action
from sweephand.server.flow.concurrency import Moved, until_unmoved
from sweephand.server.flow.idempotency import Once, earlier, earlier_answer, once_op
from sweephand.server.flow.runs.chained_runs import send
from sweephand.server.flow.runs.edits import Edit
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Op
from sweephand.server.store.dynamo.expressions import Condition
from sweephand.server.store.dynamo.table import LastStartItem
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import ledger, run_rows
from sweephand.server.store.views import runs as views

if TYPE_CHECKING:
    from sweephand.server.flow.runs.edits import Edit

with lazy():
    from sweephand.server.flow.jobs import lookup
    from sweephand.server.flow.runs import edits


LOOKED_AT_MOST = 500
"""How many runs are searched for an active one, latest planned first. The last run started this way comes on top."""


@dataclass(frozen=True)
class Answered:
    """The answer to a request. run_id: the id of the new run or, if `started` is False, of the active run."""

    run_id: str
    started: bool = True


def run_now(
    world: World,
    tenant: str,
    job_id: str,
    schedule_id: str | None,
    once: Once | None,
    hop: int = 0,
    *,
    edit: Edit | None = None,
    unless_active: bool = False,
    kind: Kind = Kind.MANUAL,
) -> Answered:
    """Starts a manual run, or finds the one that an earlier request with the same key started.

    hop: how many runs came before it, if a run's call requests it. edit: replaces what the job says, for this run only.
    unless_active: starts a run only if no other run of the job, or of the schedule, is active. A request that starts
    nothing writes nothing, not even an idempotency record. kind: TEST for a run that counts nowhere and starts nothing
    at its end. Raises NotFound; InvalidRequest for an edit that the action cannot send.

    A run is active until it has ended: it runs, or it waits for a retry, a result or its turn. Error actions and hooks
    do not count. The job stores which run was last started in this way. A start fails if that has changed since it was
    read, so that only one of two concurrent requests starts a run.
    """
    job = find(world, tenant, job_id, schedule_id)
    if once is not None and (begun := earlier(world, tenant, once)) is not None:
        return Answered(begun)
    return _start(world, job, schedule_id, once, hop, edit, unless_active=unless_active, kind=kind)


@until_unmoved("starts of this job")
def _start(
    world: World,
    job: Job,
    schedule_id: str | None,
    once: Once | None,
    hop: int,
    edit: Edit | None,
    *,
    unless_active: bool,
    kind: Kind,
) -> Answered:
    last = None
    if unless_active:
        last = world.table.get(LastStartItem, keys.job(job.tenant, job.id), keys.LAST_START)
        active = _active(world, job, schedule_id, last)
        if active is not None:
            return Answered(active.id, started=False)
    if job.policies.get("afterEnd") == "final":
        lookup.check_run(world, job)
    run = new_run(world, job, schedule_id, once, hop, kind)
    ops = start_ops(world, job, run, once, edit)
    if unless_active:
        ops.append(_mark_op(world, job, run, last))
    if run.schedule_id is None:
        jobs.note_own_runs(world.table, job)
    done = world.table.transact(ops)
    if isinstance(done, Cancelled) and "run" not in done.refused:
        if once is not None and "once" in done.refused:
            return Answered(earlier_answer(done.refused["once"], once))
        raise Moved  # another run was started in between
    send(world, run, run_action.lane_of(job.action, job.tenant))
    return Answered(run.id)


def find(world: World, tenant: str, job_id: str, schedule_id: str | None) -> Job:
    """Returns the job. Raises NotFound if it, or the schedule, does not exist."""
    job = jobs.read_job(world.table, tenant, job_id)
    if job is None:
        raise NotFound("no such job")
    if schedule_id is not None and jobs.read_schedule(world.table, tenant, job_id, schedule_id) is None:
        raise NotFound("no such schedule")
    return job


def new_run(
    world: World, job: Job, schedule_id: str | None, once: Once | None, hop: int, kind: Kind = Kind.MANUAL
) -> Run:
    """Returns the new run, as its row will contain it."""
    now = from_ms(epoch_ms(world.clock.now()))
    key = once.key if once else world.chance.new_id(now)
    uuid = ids.run_uuid(job.tenant, schedule_id or job.id, epoch_ms(now), kind.value, key)
    return replace(
        run_action.new_run(job, kind, schedule_id, uuid, State.QUEUED, now),
        enqueued_at=now,
        wake_at=now + WAKE,
        hop=hop,
    )


def start_ops(world: World, job: Job, run: Run, once: Once | None, edit: Edit | None = None) -> list[Op]:
    """Returns the operations `run`, `edit` and `once` of the transaction that starts a run. Raises InvalidRequest."""
    if edit is not None:
        edits.check(job.action, edit)
        run = replace(run, edited=True)
    item = run_rows.item_of(run, shards=world.shards, lane=run_action.lane_of(job.action, job.tenant))
    ops = [world.table.put_op("run", item, ledger.ABSENT)]
    if edit is not None:
        ops.append(edits.edit_op(world, run, edit, run.planned_at))
    if once is not None:
        ops.append(once_op(world, run.tenant, once, run.id))
    return ops


def _mark_op(world: World, job: Job, run: Run, last: LastStartItem | None) -> Op:
    """Returns the operation that notes the run as the job's last start [the last start is as read]."""
    same: Condition = LastStartItem.pk.does_not_exist()
    if last is not None:
        same = LastStartItem.uuid == last.uuid
    item = LastStartItem(
        pk=keys.job(job.tenant, job.id), sk=keys.LAST_START, uuid=run.uuid, owner=run.schedule_id or run.job_id
    )
    return world.table.put_op("last", item, same)


def _active(world: World, job: Job, schedule_id: str | None, last: LastStartItem | None) -> Run | None:
    if last is not None and schedule_id in {None, last.owner}:
        started = ledger.read(world.table, job.tenant, last.owner, last.uuid)
        if started is not None and not started.finished:
            return started
    owners = [schedule_id] if schedule_id is not None else [job.id, *_schedules(world, job)]
    newest = islice(views.merged_runs(world.table, job.tenant, owners, None, LOOKED_AT_MOST), LOOKED_AT_MOST)
    return next((run for run in newest if not run.finished and run.kind not in APART), None)


def _schedules(world: World, job: Job) -> list[str]:
    if not job.many_schedules:
        return list(job.schedule_ids)
    return [schedule.id for schedule in jobs.read_schedules(world.table, job.tenant, job.id)]
