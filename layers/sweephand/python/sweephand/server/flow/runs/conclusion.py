"""Concludes an attempt: writes its outcome with all effects, and notes whether its target answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from sweephand.base.lazy import lazy
from sweephand.domain.run import AWAITING_RESULT, UNREACHABLE, Outcome, Reason, Run, State
from sweephand.domain.run import Verdict as OutcomeVerdict
from sweephand.domain.runs import run_action
from sweephand.domain.runs.run_action import OpenAttempt
from sweephand.server.flow.runs import effects, settle
from sweephand.server.flow.verdict import AGAIN, DONE, Verdict
from sweephand.server.flow.world import Remembered, World
from sweephand.server.store.dynamo.conditional import Op

with lazy():
    from sweephand.server.flow.flow_keys import calls
    from sweephand.server.flow.lifecycle import unreachable
    from sweephand.server.flow.runs import replay
    from sweephand.server.flow.tenants import silences


class Answers(Remembered[tuple[str, str], datetime]):
    """When a host or an address last answered a call of this process, by tenant."""

    def note(self, tenant: str, targets: Sequence[str], now: datetime) -> None:
        """Notes that these targets have answered."""
        for target in targets:
            self[tenant, target] = now


def conclude(world: World, attempt: OpenAttempt, outcome: Outcome, also: Sequence[Op] = ()) -> Verdict:
    """Settles the outcome of an attempt that this executor holds, with its effects, its flow key and its schedule.

    also: operations for the transaction that writes a success.
    """
    turned = None
    if attempt.run.flow_key is not None:
        turned = calls.answered(world, attempt, outcome, partial(settle.result_due_at, world, attempt, outcome))
    _note_answer(world, attempt, outcome)
    verdict = _settle(world, _reach_noted(world, attempt, outcome), outcome, also)
    if turned is not None:
        calls.publish_circuit(world, turned, attempt)
    return verdict


def _note_answer(world: World, attempt: OpenAttempt, outcome: Outcome) -> None:
    """Notes whether the target of an attempt, or the issuer of its token, answers, if that is new."""
    answers = world.memory.of(Answers)
    answered = outcome.http_status is not None or outcome.reason is Reason.TARGET_ERROR
    if outcome.apart and not outcome.issuer:
        return
    if answered:
        targets = () if outcome.apart else run_action.targets_of(attempt.action)
        issuers = run_action.issuers_of(attempt.action) if outcome.issuer else ()
        answers.note(attempt.run.tenant, (*targets, *issuers), world.clock.now())
    if attempt.terms.silences or not (answered or outcome.verdict is OutcomeVerdict.SUCCEEDED):
        silences.follow(world, attempt, outcome, answers)


def _reach_noted(world: World, attempt: OpenAttempt, outcome: Outcome) -> OpenAttempt:
    """Returns the attempt, its schedule updated with whether it reached its target."""
    schedule = attempt.schedule
    if schedule is None or (outcome.reason not in UNREACHABLE and schedule.unreachable is None):
        return attempt
    return replace(attempt, schedule=unreachable.follow(world, attempt.run, outcome, attempt.job, schedule))


def _settle(world: World, attempt: OpenAttempt, outcome: Outcome, also: Sequence[Op]) -> Verdict:
    settled = settle.settle(world, attempt, outcome, also)
    if settled is None:
        world.journal.warning("the lease was lost before the outcome was written", run=attempt.run.id)
        return AGAIN
    if attempt.run.flow_key is not None and settled.state not in AWAITING_RESULT:
        calls.leave(world, attempt.run, own=True)
    if settled.finished:
        effects.after(world, settled, attempt.job, attempt.schedule)
    elif settled.state is State.RETRY_WAIT:
        effects.of_attempt(world, settled, attempt.job, attempt.schedule)
    if settled.consumer is not None:
        replay.pass_on(world, settled)
    _log(world, settled)
    return replace(DONE, attempted=attempt.run, ended=settled)


def _log(world: World, run: Run) -> None:
    """Logs one line per run."""
    world.journal.info(
        "run",
        tenant=run.tenant,
        job=run.job_id,
        schedule=run.schedule_id,
        run=run.uuid,
        state=run.state,
        reason=run.reason,
        status=run.http_status,
        attempt=run.attempt,
        lateness_ms=run.lateness_ms,
    )
