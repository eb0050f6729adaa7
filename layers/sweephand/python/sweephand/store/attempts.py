"""Rows of single attempts, beside the run's own."""

from __future__ import annotations

from datetime import datetime

from sweephand.domain.instants import epoch_ms, epoch_s, from_ms
from sweephand.domain.run import Attempt, Reason, Run
from sweephand.store import keys
from sweephand.store.table import AttemptItem


def attempt_item(run: Run, *, reason: Reason | None, answer: str | None) -> AttemptItem:
    """The row of the attempt that `run` has just made. answer: up to 16 KB of it."""
    started = run.started_at or run.planned_at
    return AttemptItem(
        pk=keys.runs(run.tenant, run.schedule_id or run.job_id),
        sk=keys.attempt(run.uuid, run.attempt),
        attempt=run.attempt,
        planned_at=_to_ms(run.attempt_planned_at),
        enqueued_at=_to_ms(run.attempt_enqueued_at),
        started_at=epoch_ms(started),
        finished_at=epoch_ms(run.finished_at or started),
        reason=reason.value if reason else None,
        http_status=run.http_status,
        message=run.message,
        answer=answer,
        expires_at=None if run.expires_at is None else epoch_s(run.expires_at),
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
        planned_at=None if item.planned_at is None else from_ms(item.planned_at),
        enqueued_at=None if item.enqueued_at is None else from_ms(item.enqueued_at),
    )


def _to_ms(value: datetime | None) -> int | None:
    return None if value is None else epoch_ms(value)
