"""Effects of the end of a run. Each of them may happen twice: all are idempotent by the run's id."""

from __future__ import annotations

import math

from sweephand.base.lazy import lazy
from sweephand.domain.collection import Events
from sweephand.domain.job import Job
from sweephand.domain.run import APART, FAILED, RAN, Kind, Run, State
from sweephand.domain.schedule import Schedule, ScheduleState, may_end
from sweephand.server.flow.jobs import completion
from sweephand.server.flow.world import World
from sweephand.server.store.runs import ledger

with lazy():
    from sweephand.server.flow import events
    from sweephand.server.flow.errors import failures
    from sweephand.server.flow.flow_keys import calls
    from sweephand.server.flow.lifecycle import unreachable
    from sweephand.server.flow.runs import chained_runs, ecs_tasks, overlap, results

STOPS_ITS_TASK = frozenset({State.CANCELLED, State.TIMEOUT})


_ALERTS = {"ansConfig", "calmConfig"}
"""Attributes by which a job of the SAP facade requests events of its own."""


def after(world: World, run: Run, job: Job | None, schedule: Schedule | None) -> None:
    """Carries out the effects of a finished run, then removes its wake.

    Raises Unavailable. Then the message comes back.
    """
    if run.reported is not None:
        run = results.read_over(world, run, job, schedule)
    if run.kind not in APART and job is not None:
        has_hooks = job.hooks or (schedule is not None and schedule.hooks is not None)
        if has_hooks or (run.state in FAILED and job.error_action is not None):
            chained_runs.start(world, run, job, schedule)
    if run.slotted:
        overlap.release(world, run, schedule)
    if run.task is not None and run.state in STOPS_ITS_TASK:
        ecs_tasks.stop(world, run, run.task)
    if run.flow_key is not None:
        calls.leave(world, run, own=False)
    _publish(world, run, job, schedule)
    _note_errors(world, run, job)
    of_attempt(world, run, job, schedule)
    if schedule is not None and (schedule.state is not ScheduleState.ACTIVE or may_end(schedule.packed)):
        completion.after_run(world, run, schedule, job)
    if run.wake_at is not None:
        ledger.drop_wake(world.table, run)


def _note_errors(world: World, run: Run, job: Job | None) -> None:
    """Records a failed run as an error, and a rerun's result in the error that it repeats. Leaves out test runs."""
    if run.kind is Kind.TEST:
        return
    if run.state in FAILED:
        failures.noted(world, run, job)
    if run.rerun_of is not None and run.state not in RAN:
        failures.reopen(world, run, job)
    if run.rerun_of is not None and run.state is State.SUCCESS and job is not None:
        events.error_resolved(world, run, job)


def of_attempt(world: World, run: Run, job: Job | None, schedule: Schedule | None) -> None:
    """Decides about a schedule whose target could not be reached, whether or not another attempt follows."""
    if job is None or schedule is None or schedule.unreachable is None:
        return
    unreachable.judge(world, run, job, schedule)


def _publish(world: World, run: Run, job: Job | None, schedule: Schedule | None) -> None:
    """Publishes the end of the run. A success that nobody has subscribed to loads and reads nothing.

    The collection's choice of events is the one that the gate read, however long ago.
    """
    if run.state is State.SUCCESS and job is not None and not _ALERTS & job.attributes.keys():
        terms = world.terms.of(job.tenant, job.collection, kept_s=math.inf)
        if terms.events is not Events.ALL:
            return
    events.run_ended(world, run, job, schedule)
