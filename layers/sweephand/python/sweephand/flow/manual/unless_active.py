"""Starts a manual run only if no other run of its job, or of its schedule, is active.

A run is active until it has ended: under way, or waiting for a retry, a result or its turn. The ledger decides. The job
keeps which run was last started in this way, and a start fails if that has changed since it was read, so that of two
requests at once only one starts a run. Error actions and hooks do not count as active.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from sweephand.domain.job import Job
from sweephand.domain.run import REACTIONS, Run
from sweephand.errors import Unavailable
from sweephand.flow.idempotency import Once, earlier, earlier_answer
from sweephand.flow.jobs import drafts
from sweephand.flow.manual import manual
from sweephand.flow.runs import chained_runs
from sweephand.flow.runs.edits import Edit
from sweephand.flow.world import World
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Cancelled, Op
from sweephand.store.dynamo.expressions import Condition
from sweephand.store.dynamo.table import LastStartItem
from sweephand.store.jobs import jobs
from sweephand.store.runs import ledger
from sweephand.store.views import runs as views

LOOKED_AT_MOST = 500
"""How many runs are searched for an active one, latest planned first, in addition to the last one started this way."""
TRIES = 5


@dataclass(frozen=True)
class Answered:
    """The answer to a request. run_id: the new run's id; if `started` is False, the active run's."""

    run_id: str
    started: bool


def run_unless_active(
    world: World,
    tenant: str,
    job_id: str,
    schedule_id: str | None,
    once: Once | None,
    hop: int = 0,
    *,
    edit: Edit | None = None,
) -> Answered:
    """Starts a run unless one is active. A request that starts nothing writes nothing, no idempotency record either.

    edit: as in `manual.run_now`. Raises NotFound, InvalidRequest, Unavailable.
    """
    job = manual.find(world, tenant, job_id, schedule_id)
    if once is not None and (there := earlier(world, tenant, once)) is not None:
        return Answered(there, started=True)
    for _ in range(TRIES):
        last = world.table.get(LastStartItem, keys.job(tenant, job_id), keys.LAST_START)
        active = _active(world, job, schedule_id, last)
        if active is not None:
            return Answered(active.id, started=False)
        manual.check_not_final(world, job)
        run = manual.new_run(world, job, schedule_id, once, hop)
        ops = [*manual.start_ops(world, job, run, once, edit), _mark_op(world, job, run, last)]
        done = manual.start(world, job, run, ops)
        if isinstance(done, Cancelled) and "run" not in done.refused:
            if once is not None and "once" in done.refused:
                return Answered(earlier_answer(done.refused["once"], once), started=True)
            continue  # another one was started in between
        chained_runs.send(world, run, drafts.lane_of(job))
        return Answered(run.id, started=True)
    raise Unavailable("too many concurrent starts of this job; try again")


def _mark_op(world: World, job: Job, run: Run, last: LastStartItem | None) -> Op:
    """Returns the operation that notes the run as the job's last start [the last start as read]."""
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
    return next((run for run in newest if not run.finished and run.kind not in REACTIONS), None)


def _schedules(world: World, job: Job) -> list[str]:
    if not job.many_schedules:
        return list(job.schedule_ids)
    return [schedule.id for schedule in jobs.read_schedules(world.table, job.tenant, job.id)]
