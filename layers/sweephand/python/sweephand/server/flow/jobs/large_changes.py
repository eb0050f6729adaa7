"""Carries out changes with more schedules than the job's transaction has room for.

The job's transaction is the commit. It writes the steps, in parts, and a wake row in the next-run index. The process
that made the change carries the parts out at once; if it dies, the wake row makes the executor do so. Each part is
deleted by the transaction that carries it out, so it happens once. The next change of the job waits for all parts.
(Decision 0017.)

However late a part is carried out, it plans from the request. Until then, the old plan goes on, but the gate defers its
occurrences after E, so that none runs that the new plan does not have. (Decision 0172.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sweephand.base.errors import Unavailable
from sweephand.domain.collection import Events
from sweephand.domain.job import Job
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.occurrences.index_row import WAKE, Waits
from sweephand.domain.schedule import Lane
from sweephand.server.flow.concurrency import Moved, until_unmoved
from sweephand.server.flow.job_parts import clean_up_rows, expiry
from sweephand.server.flow.job_parts.change_log import Step
from sweephand.server.flow.jobs import completion, steps
from sweephand.server.flow.jobs.lookup import Planned, find
from sweephand.server.flow.jobs.steps import CALLERS
from sweephand.server.flow.series import replan
from sweephand.server.flow.series.replan import Effect
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Op
from sweephand.server.store.dynamo.expressions import assign
from sweephand.server.store.dynamo.table import JobItem
from sweephand.server.store.jobs import change_parts, jobs
from sweephand.server.store.jobs.change_parts import Part, PartStep

WRITES_IN_PART = 90
"""A transaction takes at most 100 writes; the rest is for the job, the part and a clean-up row."""
WRITES_OF = {"add": 2, "change": 3, "delete": 1}
"""The most writes of a step: the row, its payload, and a line for the occurrences left out while it was off."""
FOLLOWED_WITHIN_S = 3.0
LONGEST_WAIT_S = 0.5
FOLLOWS_S = 10
FOLLOWS = "the change is stored, but not all of its schedules follow it yet; they will within minutes"


def start_ops(world: World, job: Job, wanted: Sequence[Step], resumed_at: datetime | None) -> list[Op]:
    """Returns the operations for the job's transaction. job: as it will be, with its open change."""
    table, shards = world.table, world.shards
    chunks = [[_part_step(step) for step in chunk] for chunk in _chunks(wanted, expiry.writes(job))]
    wake = change_parts.wake_op(table, job, keys.change(job.revision), Waits.CHANGE, world.clock.now() + WAKE, shards)
    return [wake, *change_parts.part_ops(table, job, chunks, resumed_at)]


def _chunks(wanted: Sequence[Step], more: int) -> Iterator[list[Step]]:
    """Yields the steps in order, in chunks that one transaction can carry out. more: further writes of each step."""
    chunk: list[Step] = []
    writes = 0
    for step in wanted:
        verb = "delete" if step.after is None else "add" if step.before is None else "change"
        own = WRITES_OF[verb] + more + (1 if step.hooks else 0)
        if writes + own > WRITES_IN_PART:
            yield chunk
            chunk, writes = [], 0
        chunk.append(step)
        writes += own
    yield chunk


def _part_step(step: Step) -> PartStep:
    """Returns a step as it is stored, with only the members that change, so that large jobs stay small."""
    if step.before is None:
        assert step.after is not None
        return PartStep(step.after.id, added=step.after, payload=step.payload, hooks=step.hooks)
    if step.after is None:
        return PartStep(step.before.id)
    members: dict[str, Any] = {
        name: getattr(step.after, name) for name in CALLERS if getattr(step.after, name) != getattr(step.before, name)
    }
    return PartStep(step.before.id, members=members, at=step.at, payload=step.payload, hooks=step.hooks)


def wake_up(world: World, pointer: Pointer) -> None:
    """Carries out the wake row of an open change: finishes the change, or deletes the row if there is none."""
    job = jobs.read_job(world.table, pointer.tenant, pointer.job)
    if job is not None and job.open_change == int(pointer.run):
        finish(world, job)
    else:
        world.table.delete(keys.job(pointer.tenant, pointer.job), keys.change(int(pointer.run)))


def finish(world: World, job: Job) -> None:
    """Carries out the remaining parts of the job's open change. Two processes may do so at the same time.

    Raises Unavailable; the wake row then tries again.
    """
    assert job.open_change == job.revision
    for part in change_parts.open_parts(world.table, job.tenant, job.id, job.revision):
        _carry_out(world, job, part)
    completion.mark_job(world, job.tenant, job.id)
    key = keys.job(job.tenant, job.id)
    still = jobs.open_change_is(job.revision)
    world.table.transact(
        [
            world.table.update_op("job", key, keys.JOB, [assign(JobItem.open_change, None)], still),
            world.table.delete_op("wake", key, keys.change(job.revision)),
        ]
    )


@until_unmoved("changes to the job's schedules", wait_s=0.02)
def _carry_out(world: World, job: Job, part: Part) -> None:
    """Carries out one part [it is still there, the change is open].

    The condition prevents a repetition of what another executor has done, and the return of a deleted job.
    """
    began_at = world.clock.now()
    effect = Effect(job.modified_at, job.modified_at, part.resumed_at)
    carried = steps.carry_out(world, _steps(world, job, part), job, effect)
    if carried.held or carried.missed:
        steps.release(world, carried, effect)
        raise Moved
    same = assign(JobItem.open_change, job.revision)
    ops = [
        world.table.update_op("job", keys.job(job.tenant, job.id), keys.JOB, [same], jobs.open_change_is(job.revision)),
        change_parts.done_op(world.table, job, part),
        *carried.ops,
        *clean_up_ops(world, job, carried, min(began_at, effect.at)),
    ]
    terms = world.terms.of(job.tenant, job.collection)
    replan.send_owed(world, carried.plans, lines_too=terms.events is Events.ALL)
    done = world.table.transact(ops)
    if not isinstance(done, Cancelled):
        if carried.gone and world.clock.now() < effect.at:
            clean_up_rows.note_delay(world, clean_up_rows.Place.of(job), began_at, carried.gone[0].id)
        if terms.enabled:
            replan.send_ahead(world, carried.ahead)
        return
    if done.refused.keys() & {"job", "part"}:
        # The part was carried out before, perhaps by this call: send what is due soon from the current rows.
        replan.send_ahead(world, list(change_parts.rows(world.table, job, part).values()))
        return
    raise Moved


def clean_up_ops(
    world: World, job: Job, carried: steps.Carried, deleted_at: datetime, why: str | None = None
) -> list[Op]:
    """Returns the clean-up operations for the schedules that a change deletes. why: who deletes them, and why."""
    if not carried.gone:
        return []
    return clean_up_rows.of_schedules_ops(world, clean_up_rows.Place.of(job, why), carried.gone, deleted_at)


def _steps(world: World, job: Job, part: Part) -> list[Step]:
    """Returns the steps of a part, applied to the rows as they are now."""
    rows = change_parts.rows(world.table, job, part)
    steps = []
    for step in part.steps:
        if step.added is not None:
            steps.append(Step(None, step.added, payload=step.payload, hooks=step.hooks))
        elif step.members is None and step.id in rows:
            steps.append(Step(rows[step.id], None))
        elif step.id in rows:
            before = rows[step.id]
            steps.append(Step(before, step.applied(before), step.at, step.payload, step.hooks))
    return steps


def followed(world: World, job: Job) -> Planned:
    """Finishes the change now, and returns the job as it is then.

    Raises Unavailable if that takes too long. The change stands, and its parts follow within minutes.
    """
    until = world.clock.monotonic() + FOLLOWED_WITHIN_S
    while True:
        try:
            finish(world, job)
            return find(world, job.tenant, job.id)
        except Unavailable as unavailable:
            if world.clock.monotonic() > until:
                world.journal.warning("schedules will follow their job later", job=job.id, reason=unavailable.reason)
                break
        world.clock.sleep(world.chance.uniform(0.1, LONGEST_WAIT_S))
    now = world.clock.now()
    pointer = Pointer(job.tenant, job.id, None, str(job.revision), now, subject=Subject.CHANGE)
    world.queue.send([Delivery(pointer, now, Lane.FAST)])
    raise Unavailable(FOLLOWS, retry_after_s=FOLLOWS_S)
