"""Reads the rows that the gate needs to decide about a run: those that all runs need, and those that only some need."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sweephand.base.lazy import lazy
from sweephand.domain.consumer import consumer_of
from sweephand.domain.job import HOOKS, Job
from sweephand.domain.message import Pointer
from sweephand.domain.run import Kind
from sweephand.domain.runs import admission
from sweephand.domain.runs.admission import RunContext
from sweephand.domain.schedule import Schedule
from sweephand.server.flow.world import World
from sweephand.server.store.runs import gate

with lazy():
    from sweephand.server.flow.job_parts import schedule_hooks
    from sweephand.server.flow.runs import held_runs
    from sweephand.server.store.jobs import generations
    from sweephand.server.store.views import runs


def context_of(world: World, pointer: Pointer, rows: gate.Rows | None = None) -> RunContext:
    """Returns what the gate needs to know. Raises Unavailable.

    rows: those read for the whole batch, not before the run's instant.
    """
    context = gate.read_context(world.table, world.terms, pointer, rows)
    now = world.clock.now()
    context = _with_line(world, pointer, _with_plan(world, pointer, context, now), now)
    return _with_hooks(world, pointer, _with_consumer(world, pointer, context))


def _with_plan(world: World, pointer: Pointer, context: RunContext, now: datetime) -> RunContext:
    """Adds the plan of a late message's generation if a change has replaced it. The message is judged by that plan."""
    if not admission.needs_left(pointer, context, now):
        return context
    assert context.schedule is not None
    return replace(context, left=generations.find(world.table, context.schedule, pointer.generation))


def _with_line(world: World, pointer: Pointer, context: RunContext, now: datetime) -> RunContext:
    """Adds the ledger range that covers a late message, because it may belong to an earlier span that was left out."""
    if not admission.needs_line(pointer, context, now):
        return context
    assert context.schedule is not None
    line = runs.line_over(world.table, pointer.tenant, context.schedule.id, pointer.instant, back=SENT_AHEAD)
    return context if line is None else replace(context, line=line)


def _with_consumer(world: World, pointer: Pointer, context: RunContext) -> RunContext:
    """Adds the consumer of a run without a row, if it is away."""
    if context.job is None or context.run is not None or pointer.kind is not Kind.SCHEDULED:
        return context
    name = consumer_of(context.job)
    return (
        replace(context, away=name) if name is not None and held_runs.is_away(world, pointer.tenant, name) else context
    )


def _with_hooks(world: World, pointer: Pointer, context: RunContext) -> RunContext:
    if context.job is None or pointer.kind not in HOOKS:
        return context
    return replace(context, job=with_hooks(world, context.job, context.schedule, pointer.kind))


def with_hooks(world: World, job: Job, schedule: Schedule | None, kind: Kind) -> Job:
    """Returns the job as a run of this kind sees it: with its schedule's own hook, if any. Raises Unavailable."""
    if schedule is None or schedule.hooks is None:
        return job
    return schedule_hooks.job_of(world, job, schedule, kind)


SENT_AHEAD = 1_000
"""More rows than can lie within a line: runs that were on their way when the line began, with their attempts."""
