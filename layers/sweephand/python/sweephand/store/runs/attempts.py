"""Rows of single attempts, next to the run's own."""

from __future__ import annotations

from sweephand.domain.instants import epoch_ms, from_ms, from_ms_if_any, ms_if_any, s_if_any
from sweephand.domain.run import Attempt, Reason, Run, State
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.table import AttemptItem


def attempt_item(run: Run, *, reason: Reason | None, answer: str | None, state: State | None = None) -> AttemptItem:
    """Returns the row of the attempt that `run` has just made.

    answer: up to 16 KB of the target's answer. state: if the reason leaves it open.
    """
    started = run.started_at or run.planned_at
    return AttemptItem(
        pk=keys.runs(run.tenant, run.schedule_id or run.job_id),
        sk=keys.attempt(run.uuid, run.attempt),
        attempt=run.attempt,
        planned_at=ms_if_any(run.attempt_planned_at),
        enqueued_at=ms_if_any(run.attempt_enqueued_at),
        started_at=epoch_ms(started),
        finished_at=epoch_ms(run.finished_at or started),
        reason=reason.value if reason else None,
        http_status=run.http_status,
        message=run.message,
        answer=answer,
        ended_as=state.value if state else None,
        expires_at=s_if_any(run.expires_at),
    )


def attempt_of(item: AttemptItem) -> Attempt:
    return Attempt(
        number=item.attempt,
        started_at=from_ms(item.started_at),
        finished_at=from_ms(item.finished_at),
        reason=item.reason,
        http_status=item.http_status,
        message=item.message,
        answer=item.answer,
        planned_at=from_ms_if_any(item.planned_at),
        enqueued_at=from_ms_if_any(item.enqueued_at),
        state=item.ended_as,
    )
