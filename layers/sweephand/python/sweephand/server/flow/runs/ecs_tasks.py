"""Ends runs when their ECS tasks end, and stops tasks whose runs are over.

ECS publishes task events on the account's default bus. Two rules of the template put the events of our tasks into the
run queue. An event may come twice, late, or before the executor has recorded the task. If it never comes, the deadline
ends the run.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from sweephand.domain.run import AWAITING_RESULT, REACTIONS, Reason, Run, State, success_reason
from sweephand.domain.runs import ecs_task
from sweephand.domain.runs.ecs_task import Change
from sweephand.domain.runs.run_action import action_of
from sweephand.domain.runs.settlement import excerpt
from sweephand.server.actions.aws import ecs
from sweephand.server.flow.job_parts import schedule_hooks
from sweephand.server.flow.runs import results
from sweephand.server.flow.world import World
from sweephand.server.store.runs import gate, ledger


def heard(world: World, body: str) -> bool:
    """Handles a message if it is an ECS task event. Returns whether it was one. Raises Unavailable."""
    change = ecs_task.read_change(body)
    if change is None:
        return False
    of = change.of
    run = ledger.read(world.table, of.tenant, of.owner, of.uuid) if of else None
    if of is None or run is None:
        world.journal.info("dropped", reason="the task belongs to no stored run")
    elif change.stopped:
        _ended(world, run, change, of.attempt)
    elif of.attempt != run.attempt or (run.finished and run.result_digest is None):
        stop(world, run, change.arn)
    elif run.task is None and run.state in AWAITING_RESULT:
        ledger.record_task(world.table, run, change.arn)
    return True


def _ended(world: World, run: Run, change: Change, attempt: int) -> None:
    """Ends the run with its task. An end that comes later or belongs to another attempt is kept as a note."""
    success, message = ecs_task.judged(change, _container(world, run))
    if run.finished or attempt != run.attempt:
        if run.result_digest is None:
            ledger.note(world.table, run, f"the task of attempt {attempt} ended later: {message}")
        return
    state, reason = (State.SUCCESS, success_reason(run)) if success else (State.ERROR, Reason.TARGET_ERROR)
    digest = hashlib.sha256(change.arn.encode()).hexdigest()[:32]
    ended = replace(run, state=state, reason=reason, message=message, result_digest=digest)
    results.end_from_outside(world, replace(ended, answer=excerpt(change.arn)), world.clock.now())


def _container(world: World, run: Run) -> str | None:
    """Returns the container whose exit code decides, according to the job as it is now."""
    job = gate.job_of(world.table, run)
    if job is not None:
        job = schedule_hooks.job_for(world, job, run)
    if job is None or (run.kind in REACTIONS and job.reaction(run.kind) is None):
        return None
    container: str | None = action_of(job, run.kind).params.get("container")
    return container


def stop(world: World, run: Run, arn: str) -> None:
    """Stops a task whose run no longer waits for it. Raises Unavailable if ECS does not answer at the moment.

    A permanent refusal by ECS is only logged, so that it does not block the other effects.
    """
    refused = ecs.stop(arn, f"Sweephand: the run {run.id} is {run.state}", world.outbound)
    if refused is not None:
        world.journal.warning("a task could not be stopped", run=run.uuid, reason=refused)
