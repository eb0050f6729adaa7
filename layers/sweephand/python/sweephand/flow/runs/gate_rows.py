"""What the gate judges a run by: the rows that are always read, and the few that only some runs need."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

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
    from sweephand.store.jobs import generations
    from sweephand.store.views import runs


def seen_of(world: World, pointer: Pointer, rows: gate.Rows | None = None) -> Seen:
    """rows: read ahead for the whole batch, and not before the run's instant. Raises Unavailable."""
    seen = gate.look(world.table, world.standing, pointer, rows)
    now = world.clock.now()
    return _with_hooks(world, pointer, _with_line(world, pointer, _with_plan(world, pointer, seen, now), now))


def _with_plan(world: World, pointer: Pointer, seen: Seen, now: datetime) -> Seen:
    """A late message of a plan that a change has left behind is judged by that plan."""
    if not admission.needs_left(pointer, seen, now):
        return seen
    assert seen.schedule is not None
    return replace(seen, left=generations.find(world.table, seen.schedule, pointer.generation))


def _with_line(world: World, pointer: Pointer, seen: Seen, now: datetime) -> Seen:
    """A late message from before what was left out last may lie in what was left out before that."""
    if not admission.needs_line(pointer, seen, now):
        return seen
    assert seen.schedule is not None
    line = runs.line_over(world.table, pointer.tenant, seen.schedule.id, pointer.instant, back=SENT_AHEAD)
    return seen if line is None else replace(seen, line=line)


def _with_hooks(world: World, pointer: Pointer, seen: Seen) -> Seen:
    if seen.job is None or pointer.kind not in HOOKS:
        return seen
    return replace(seen, job=with_hooks(world, seen.job, seen.schedule, pointer.kind))


def with_hooks(world: World, job: Job, schedule: Schedule | None, kind: Kind) -> Job:
    """The job as a run of this kind sees it: with its schedule's own hook, if there is one. Raises Unavailable."""
    if schedule is None or schedule.hooks is None:
        return job
    return schedule_hooks.job_of(world, job, schedule, kind)


SENT_AHEAD = 1_000
"""More rows than a line has within it: of each run that was on its way when it began, with its attempts."""
