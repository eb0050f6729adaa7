"""Schedules that follow a change of their job, because they are too many for its transaction.

The job's transaction is the commit: it holds the steps, in parts, and a row in the next-run index that answers for
them. Whoever made the change carries the parts out at once; if it dies, the executor does. A part goes in the
transaction that carries it out, so it happens once; the next change of the job waits for all of them. (Decision 0017.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sweephand.domain.collection import Events
from sweephand.domain.job import Job
from sweephand.domain.message import Pointer
from sweephand.domain.occurrences.index_row import WAKE, Waits
from sweephand.errors import Unavailable
from sweephand.flow.job_parts import clean_up_rows, expiry
from sweephand.flow.job_parts.step import Step
from sweephand.flow.jobs import completion, steps
from sweephand.flow.jobs.lookup import Planned, find
from sweephand.flow.jobs.steps import CALLERS
from sweephand.flow.series import replan
from sweephand.flow.series.replan import Effect
from sweephand.flow.world import World
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Cancelled, Op
from sweephand.store.dynamo.expressions import assign
from sweephand.store.dynamo.table import JobItem
from sweephand.store.jobs import change_parts, jobs
from sweephand.store.jobs.change_parts import Part, PartStep

TRIES = 5
WRITES_IN_PART = 90
"""Of at most 100 in a transaction; the others are the job's, the part's and a clean-up row's."""
WRITES_OF = {"add": 2, "change": 3, "delete": 1}
"""At most: the row, its payload, and a line for what it left out while it was off."""


def start_ops(world: World, job: Job, wanted: Sequence[Step], resumed_at: datetime | None) -> list[Op]:
    """Parts of the job's transaction. job: as it shall be, with its open change."""
    table, shards = world.table, world.settings.shards
    chunks = [[_part_step(step) for step in chunk] for chunk in _chunks(wanted, expiry.writes(job))]
    wake = change_parts.wake_op(table, job, keys.change(job.revision), Waits.CHANGE, world.clock.now() + WAKE, shards)
    return [wake, *change_parts.part_ops(table, job, chunks, resumed_at)]


def _chunks(wanted: Sequence[Step], more: int) -> Iterator[list[Step]]:
    """In order, each as large as one transaction can carry out. more: writes that each step may have beside."""
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
    """Of a change only what it sets: a thousand schedules that follow their job are a thousand ids."""
    if step.before is None:
        assert step.after is not None
        return PartStep(step.after.id, added=step.after, payload=step.payload, hooks=step.hooks)
    if step.after is None:
        return PartStep(step.before.id)
    members: dict[str, Any] = {
        name: getattr(step.after, name) for name in CALLERS if getattr(step.after, name) != getattr(step.before, name)
    }
    return PartStep(step.before.id, members=members, at=step.at, payload=step.payload, hooks=step.hooks)


def look(world: World, pointer: Pointer) -> None:
    """What the row in the index asks for."""
    job = jobs.read_job(world.table, pointer.tenant, pointer.job)
    if job is not None and job.open_change == int(pointer.run):
        finish(world, job)
    else:
        world.table.delete(keys.job(pointer.tenant, pointer.job), keys.change(int(pointer.run)))


def finish(world: World, job: Job) -> None:
    """Carries out what is left of the job's open change, here or by somebody else at the same time.

    Raises Unavailable: the row in the index still answers for it.
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


def _carry_out(world: World, job: Job, part: Part) -> None:
    """[The part is there, the change open], so that neither a second executor nor a delete of the job is undone."""
    for tries in range(TRIES):
        began_at = world.clock.now()
        effect = Effect(began_at, job.modified_at, part.resumed_at)
        carried = steps.carry_out(world, _steps(world, job, part), job, effect)
        if carried.held or carried.missed:
            steps.let_go(world, carried)
            continue
        same = assign(JobItem.open_change, job.revision)
        ops = [
            world.table.update_op(
                "job", keys.job(job.tenant, job.id), keys.JOB, [same], jobs.open_change_is(job.revision)
            ),
            change_parts.done_op(world.table, job, part),
            *carried.ops,
            *clean_up_ops(world, job, carried, began_at),
        ]
        terms = world.standing.of(job.tenant, job.collection)
        replan.send_owed(world, carried.plans, lines_too=terms.events is Events.ALL)
        replan.in_time(world, effect.at)
        done = world.table.transact(ops)
        if not isinstance(done, Cancelled):
            if carried.gone:
                clean_up_rows.note_delay(world, clean_up_rows.Place.of(job), began_at, carried.gone[0].id)
            if terms.enabled:
                replan.send_ahead(world, carried.ahead)
            return
        if done.refused.keys() & {"job", "part"}:
            # Carried out already, perhaps by this very call: what is due soon is sent by the rows as they are.
            replan.send_ahead(world, list(change_parts.rows(world.table, job, part).values()))
            return
        world.clock.sleep(world.chance.uniform(0.0, 0.02 * 2**tries))
    raise Unavailable("the schedules were moved on all the time")


def clean_up_ops(world: World, job: Job, carried: steps.Carried, deleted_at: datetime) -> list[Op]:
    """The part of the schedules that a change deletes."""
    if not carried.gone:
        return []
    return clean_up_rows.of_schedules_ops(world, clean_up_rows.Place.of(job), carried.gone, deleted_at)


def _steps(world: World, job: Job, part: Part) -> list[Step]:
    """On the rows as they are now."""
    there = change_parts.rows(world.table, job, part)
    found = []
    for step in part.steps:
        if step.added is not None:
            found.append(Step(None, step.added, payload=step.payload, hooks=step.hooks))
        elif step.members is None and step.id in there:
            found.append(Step(there[step.id], None))
        elif step.id in there:
            before = there[step.id]
            found.append(Step(before, step.applied(before), step.at, step.payload, step.hooks))
    return found


def followed(world: World, job: Job) -> Planned:
    """Finishes the change now if it can; else the schedules follow within minutes. Returns the job as it then is."""
    try:
        finish(world, job)
    except Unavailable as unavailable:
        world.journal.warning("schedules follow their job later", job=job.id, reason=unavailable.reason)
    return find(world, job.tenant, job.id)
