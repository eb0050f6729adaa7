"""Reruns a run that has ended: starts a new run of the job as it is now, or with an edit, linked to the old run.

One transaction writes the new row, the link on the old row and the entry of the error. The new id is computed from the
old run and the request, so that a repetition finds the same run. Then the message is sent; if it is lost, the row's
wake sends it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sweephand.base import ids
from sweephand.base.errors import Conflict, NotFound
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.domain.job import Job, owner_of
from sweephand.domain.occurrences.index_row import WAKE
from sweephand.domain.run import APART, FAILED, REACTIONS, Kind, Run, State
from sweephand.domain.runs.admission import contested
from sweephand.domain.runs.run_action import action_of, lane_of, new_run
from sweephand.domain.schedule import Lane
from sweephand.server.flow.concurrency import tolerated
from sweephand.server.flow.idempotency import Once, earlier, earlier_answer, once_op
from sweephand.server.flow.runs import edits
from sweephand.server.flow.runs.edits import Edit
from sweephand.server.flow.runs.gate_rows import with_hooks
from sweephand.server.flow.runs.perform import payload_of
from sweephand.server.flow.series import ranges
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo.conditional import Cancelled, Op, Written
from sweephand.server.store.errors import failures
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import ledger, run_rows

with lazy():
    from sweephand.domain import messages as domain
    from sweephand.server.flow import events
    from sweephand.server.flow.jobs import lookup
    from sweephand.server.store.runs import gate, messages


@dataclass(frozen=True)
class Asking:
    """A request for a rerun. key: identifies the request. actor: the caller's client id.

    operation: the operation that makes the request, if any. hop: how many runs came before, if a run's call makes it.
    """

    key: str
    actor: str | None = None
    operation: str | None = None
    hop: int = 0


@dataclass(frozen=True)
class Wanted:
    """A rerun that is about to be written.

    old: the run that it repeats. job: the job that it belongs to. lane: the lane of its message. by: the request.
    alone: whether it runs only while no other run of its schedule does.
    """

    run: Run
    old: Run
    job: Job
    lane: Lane
    by: Asking
    edit: Edit | None = None
    alone: bool = False

    @property
    def delivery(self) -> Delivery:
        return Delivery(ledger.pointer_to(self.run), self.run.not_before or self.run.planned_at, self.lane)


def rerun(
    world: World,
    tenant: str,
    owner: str,
    uuid: str,
    *,
    edit: Edit | None = None,
    once: Once | None = None,
    actor: str | None = None,
    hop: int = 0,
) -> str:
    """Reruns a run. Returns the id of the new run, or of the one that an earlier request with the same key started.

    owner: the schedule's id, or the job's for a run without a schedule. actor: the caller's client id. Raises NotFound;
    Conflict if the run has not ended, or as `prepared`; InvalidRequest for an edit that the action cannot send.
    """
    old = find(world, tenant, owner, uuid)
    if once is not None and (begun := earlier(world, tenant, once)) is not None:
        return begun
    now = from_ms(epoch_ms(world.clock.now()))
    key = once.key if once else world.chance.new_id(now)
    wanted = prepared(world, old, Asking(key, actor, hop=hop), at=now, edit=edit)
    more = [once_op(world, tenant, once, wanted.run.id)] if once is not None else []
    done = write(world, wanted, more)
    if isinstance(done, Cancelled) and "run" not in done.refused:
        if "old" in done.refused:
            raise NotFound("no such run")
        assert once is not None
        return earlier_answer(done.refused["once"], once)
    with tolerated(world, "the run will be started later, by its wake", run=wanted.run.uuid):
        world.queue.send_one(wanted.delivery)
    if edit is not None and old.state in FAILED:
        events.error_edited(world, old, wanted.run, wanted.job, actor)
    return wanted.run.id


def find(world: World, tenant: str, owner: str, uuid: str) -> Run:
    """Returns a run that may be rerun. Raises NotFound, Conflict."""
    run = tenancy.find_run(world, tenant, owner, uuid)
    ranges.check_is_none(run)
    if not run.finished:
        raise Conflict("the run has not ended")
    return run


def prepared(
    world: World, old: Run, by: Asking, *, at: datetime, due: datetime | None = None, edit: Edit | None = None
) -> Wanted:
    """Returns the run that repeats `old`.

    at: its planned instant, the same for the same request. due: when it may begin. edit: None to take over the edit of
    the old run. Raises NotFound if the job was deleted and is not redirected; Conflict if the schedule, the reaction or
    the payload of a redirected run no longer exists; InvalidRequest for the edit.
    """
    redirect = None if old.posted else failures.read_redirect(world.table, old.tenant, old.job_id)
    if edit is None and old.edited:
        edit = edits.read(world, old)
    if redirect is not None:
        job, schedule_id, kind = jobs.read_job(world.table, old.tenant, redirect.to), None, Kind.MANUAL
        edit = _with_payload(world, old, edit)
    else:
        job, schedule_id = gate.job_of(world.table, old), old.schedule_id
        kind = old.kind if old.kind in APART | {Kind.MESSAGE} else Kind.MANUAL
    if job is None:
        raise NotFound("its job is gone" if redirect is None else "the job that its errors are redirected to is gone")
    if job.policies.get("afterEnd") == "final":
        lookup.check_run(world, job)
    schedule = None
    if schedule_id is not None:
        schedule = jobs.read_schedule(world.table, old.tenant, job.id, schedule_id)
        if schedule is None:
            raise Conflict("its schedule is gone")
        job = with_hooks(world, job, schedule, kind)
    if kind in REACTIONS and job.reaction(kind) is None:
        raise Conflict(f"its job has no {owner_of(kind)} any more")
    if edit is not None:
        edits.check(action_of(job, kind), edit)
    run = _new(world, old, job, schedule_id, kind, by, at, due)
    alone = kind not in APART and contested(job, schedule)
    return Wanted(run, old, job, lane_of(action_of(job, kind), job.tenant), by, edit, alone)


def _with_payload(world: World, old: Run, edit: Edit | None) -> Edit | None:
    """Returns the edit for a rerun by another job: with the payload of the old run, if that had one.

    Otherwise the other job's own payload is sent. Raises Conflict if the old payload is no longer known.
    """
    if edit is not None and edit.payload is not None:
        return edit
    job = gate.job_of(world.table, old)
    if job is None:
        raise Conflict("its payload was deleted with its job; give a payload to run it again")
    schedule = jobs.read_schedule(world.table, old.tenant, job.id, old.schedule_id) if old.schedule_id else None
    if old.schedule_id is not None and schedule is None:
        raise Conflict("its payload was deleted with its schedule; give a payload to run it again")
    job = with_hooks(world, job, schedule, old.kind)
    if old.kind in REACTIONS and job.reaction(old.kind) is None:
        raise Conflict(f"its payload was deleted with its job's {owner_of(old.kind)}; give a payload to run it again")
    payload = payload_of(world, old, job, schedule)
    return edit if payload is None else replace(edit or Edit(), payload=payload)


def _new(
    world: World,
    old: Run,
    job: Job,
    schedule_id: str | None,
    kind: Kind,
    by: Asking,
    at: datetime,
    due: datetime | None,
) -> Run:
    now, key = world.clock.now(), f"{old.uuid} {by.key}"
    if old.posted is None:
        uuid = ids.run_uuid(old.tenant, schedule_id or job.id, epoch_ms(at), kind.value, key)
    else:
        owner, uuid = domain.place_of(old.tenant, old.posted.collection, at, key)
        job = replace(job, id=owner)
    return replace(
        new_run(job, kind, schedule_id, uuid, State.QUEUED, at),
        enqueued_at=now,
        not_before=due,
        parent_uuid=old.parent_uuid if kind in REACTIONS else None,
        wake_at=max(now, due or now) + WAKE,
        hop=max(old.hop, by.hop),
        chain=old.chain,
        root=old.root or old.id,
        rerun_of=old.id,
        occurrence_at=old.occurrence_at or old.planned_at,
        posted=old.posted and replace(old.posted, action=domain.packed(job.action)),
    )


def write(world: World, wanted: Wanted, more: Sequence[Op] = ()) -> Written | Cancelled:
    """Writes the new run with all its parts in one transaction. more: further parts of the transaction."""
    if wanted.run.posted is not None:
        messages.note_day(world.table, wanted.run, world.shards)
    elif wanted.run.schedule_id is None:
        jobs.note_own_runs(world.table, wanted.job)
    return world.table.transact([*_ops(world, wanted), *more])


def _ops(world: World, wanted: Wanted) -> list[Op]:
    """Returns the operations that write the new run [absent] and link the old run [it exists] to it.

    If the old run had failed, its error is linked as well.
    """
    table, now = world.table, world.clock.now()
    run = replace(wanted.run, edited=wanted.edit is not None)
    ops = [
        table.put_op("run", run_rows.item_of(run, shards=world.shards, lane=wanted.lane), ledger.ABSENT),
        ledger.rerun_op(table, wanted.old, run.id),
    ]
    if run.posted is not None and run.posted.apart:
        ops.append(messages.body_op(table, run, edits.kept_until(now)))
    if wanted.edit is not None:
        ops.append(edits.edit_op(world, run, wanted.edit, now))
    if wanted.old.state in FAILED:
        by = wanted.by
        ops.append(failures.rerun_op(table, wanted.old, run.id, now, by.actor, by.operation))
    return ops


def send(world: World, wanted: Sequence[Wanted]) -> None:
    """Sends the messages of reruns. A run whose message is not sent is started by its wake."""
    unsent = world.queue.send([each.delivery for each in wanted])
    if unsent:
        world.journal.warning("runs will be started later, by their wakes", left=len(unsent))
