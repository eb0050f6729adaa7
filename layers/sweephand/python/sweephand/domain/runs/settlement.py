"""Turns the outcome of an attempt into the state of its run: success, a wait, a retry or a failure. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base.records import dataclass
from sweephand.domain.instants import up_to_second
from sweephand.domain.job import ActionSpec
from sweephand.domain.run import FAILED, UNREACHABLE, Kind, Outcome, Reason, Run, State, Verdict, success_reason
from sweephand.domain.runs import retry

SHORT_RETRY = timedelta(minutes=15)
"""A retry within this time is sent as a delayed message; a later one waits as a row."""
SHORT_DEADLINE = timedelta(seconds=75)
"""A deadline within this time is sent as a delayed message, because the next sweep may come too late for it."""
FALLBACK = timedelta(minutes=3)
"""The wake-up of such a row lies this long after its deadline, in case the message is lost.

It is longer than a sweep looks ahead, so that no sweep sends a needless second message.
"""
EXCERPT_BYTES, BEGINNING_BYTES = 200, 2_048
"""The most bytes of an answer in the row of its run: by default, and with the policy `keepAnswer: beginning`."""


@dataclass(frozen=True)
class Settlement:
    """The result of settling an attempt. run: the new row. counts: increments of the schedule's statistics.

    message_at: when the message of a retry within 15 minutes, or of a near deadline, must arrive, in addition to any
    wake-up of the row.
    """

    run: Run
    counts: dict[str, int]
    message_at: datetime | None = None


def settle(
    run: Run,
    outcome: Outcome,
    action: ActionSpec,
    now: datetime,
    uniform: Callable[[float, float], float],
    callback_timeout_s: int,
) -> Settlement:
    """Settles an attempt. uniform: for the retry's jitter. callback_timeout_s: the default wait for a result.

    The caller sets `expires_at` of a finished run.
    """
    ended = replace(
        run,
        finished_at=run.ended_at(now),
        http_status=outcome.http_status,
        answer=excerpt(outcome.answer),
        answer_headers=outcome.answer_headers,
        message=outcome.message,
        lease_owner=None,
        lease_until=None,
    )
    match outcome.verdict:
        case Verdict.SUCCEEDED:
            return Settlement(replace(ended, state=State.SUCCESS, reason=success_reason(run)), {})
        case Verdict.ACCEPTED | Verdict.SILENT:
            state = State.ACK_RECVD if outcome.verdict is Verdict.ACCEPTED else State.ACK_NOT_RECVD
            deadline = up_to_second(now + timedelta(seconds=waits_s(action) or callback_timeout_s))
            near = deadline - now <= SHORT_DEADLINE
            wake_at = deadline + FALLBACK if near else deadline
            waiting = replace(ended, state=state, reason=None, finished_at=None, deadline_at=deadline, wake_at=wake_at)
            return Settlement(replace(waiting, task=outcome.task), {}, deadline if near else None)
        case Verdict.FAILED:
            return _failed(ended, outcome, action, now, uniform)


def _failed(
    run: Run, outcome: Outcome, action: ActionSpec, now: datetime, uniform: Callable[[float, float], float]
) -> Settlement:
    policy = retry.load(action.retry)
    run = replace(run, max_attempts=policy.max_attempts)  # the job's current value, which may have changed
    decision = retry.next_attempt(policy, run.attempt, outcome, now, uniform, run.planned_at)
    reason = outcome.reason or Reason.NO_ANSWER
    if isinstance(decision, retry.RetryAt):
        waiting = replace(
            run,
            state=State.RETRY_WAIT,
            reason=reason,
            attempt=run.attempt + 1,
            not_before=decision.at,
            attempt_enqueued_at=None,
        )
        if decision.at - now <= SHORT_RETRY:
            # A copy of an earlier message may send the attempt's message again. The first one counts.
            waiting = replace(waiting, attempt_enqueued_at=now)
            return Settlement(waiting, counted(run, "failed_attempts"), decision.at)
        wake_at = up_to_second(decision.at)
        return Settlement(replace(waiting, not_before=wake_at, wake_at=wake_at), counted(run, "failed_attempts"))
    state = outcome.ends_as or failure_state(reason, outcome.http_status)
    ended = replace(run, state=state, reason=decision.reason or reason)
    return Settlement(ended, counted(run, "failed_attempts", "failed"))


def counted(run: Run, *names: str) -> dict[str, int]:
    """Returns increments of the schedule's statistics, which count planned occurrences only."""
    return dict.fromkeys(names, 1) if run.kind is Kind.SCHEDULED else {}


def manual_counts(run: Run) -> dict[str, int]:
    """Returns the increments for a manual run after an attempt, if the totals of its job count manual runs."""
    failed = run.state in FAILED
    counts = {
        "manual_ended": run.finished,
        "manual_failed": failed,
        "manual_failed_attempts": failed or run.state is State.RETRY_WAIT,
    }
    return {name: 1 for name, counted in counts.items() if counted}


def failure_state(reason: Reason, http_status: int | None) -> State:
    """Returns REQUEST_ERROR if the request could not be made or was refused (4xx, no connection), else ERROR."""
    if reason in UNREACHABLE or reason in (Reason.GUARD, Reason.BAD_PAYLOAD, Reason.NO_TARGET):
        return State.REQUEST_ERROR
    if reason is Reason.HTTP_STATUS and http_status is not None and 400 <= http_status < 500:
        return State.REQUEST_ERROR
    return State.ERROR


def waits_s(action: ActionSpec) -> int | None:
    """Returns how long a run waits for its result; None if the action does not say."""
    said: int | None = action.params.get("outcome", {}).get("callbackTimeoutSeconds")
    return said


def excerpt(answer: str | None, most: int = EXCERPT_BYTES) -> str | None:
    """Returns the first bytes of the answer, cut between characters."""
    if not answer:
        return None
    return answer.encode()[:most].decode(errors="ignore")
