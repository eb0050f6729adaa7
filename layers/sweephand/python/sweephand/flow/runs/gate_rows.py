"""Reads the rows that the gate needs to decide about a run: those that all runs need, and those that only some need."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sweephand.domain.consumer import consumer_of
from sweephand.domain.job import HOOKS, Job
from sweephand.domain.message import Pointer
from sweephand.domain.run import Kind
from sweephand.domain.runs import admission
from sweephand.domain.runs.admission import Seen
from sweephand.domain.schedule import Schedule
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.store.runs import gate

with lazy():
    from sweephand.flow.job_parts import schedule_hooks
    from sweephand.flow.runs import held_runs
    from sweephand.store.jobs import generations
    from sweephand.store.views import runs


def seen_of(world: World, pointer: Pointer, rows: gate.Rows | None = None) -> Seen:
    """Returns what the gate needs to know. Raises Unavailable.

    rows: those read for the whole batch, not before the run's instant.
    """
    seen = gate.look(world.table, world.terms, pointer, rows)
    now = world.clock.now()
    seen = _with_line(world, pointer, _with_plan(world, pointer, seen, now), now)
    return _with_hooks(world, pointer, _with_consumer(world, pointer, seen))


def _with_plan(world: World, pointer: Pointer, seen: Seen, now: datetime) -> Seen:
    """Adds the plan of a late message's generation if a change has replaced it. The message is judged by that plan."""
    if not admission.needs_left(pointer, seen, now):
        return seen
    assert seen.schedule is not None
    return replace(seen, left=generations.find(world.table, seen.schedule, pointer.generation))


def _with_line(world: World, pointer: Pointer, seen: Seen, now: datetime) -> Seen:
    """Adds the ledger line that covers a late message, because it may belong to an earlier span that was left out."""
    if not admission.needs_line(pointer, seen, now):
        return seen
    assert seen.schedule is not None
    line = runs.line_over(world.table, pointer.tenant, seen.schedule.id, pointer.instant, back=SENT_AHEAD)
    return seen if line is None else replace(seen, line=line)


def _with_consumer(world: World, pointer: Pointer, seen: Seen) -> Seen:
    """Adds the consumer of a run without a row, if it is away."""
    if seen.job is None or seen.run is not None or pointer.kind is not Kind.SCHEDULED:
        return seen
    name = consumer_of(seen.job)
    return replace(seen, away=name) if name is not None and held_runs.is_away(world, pointer.tenant, name) else seen


def _with_hooks(world: World, pointer: Pointer, seen: Seen) -> Seen:
    if seen.job is None or pointer.kind not in HOOKS:
        return seen
    return replace(seen, job=with_hooks(world, seen.job, seen.schedule, pointer.kind))


def with_hooks(world: World, job: Job, schedule: Schedule | None, kind: Kind) -> Job:
    """Returns the job as a run of this kind sees it: with its schedule's own hook, if any. Raises Unavailable."""
    if schedule is None or schedule.hooks is None:
        return job
    return schedule_hooks.job_of(world, job, schedule, kind)


SENT_AHEAD = 1_000
"""More rows than can lie within a line: runs that were on their way when the line began, with their attempts."""
