"""A run as the native API and its files show it: every member is always there, null where there is nothing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sweephand.domain.attempt_bodies import attempt_bodies
from sweephand.domain.instants import stamp, text, text_ms
from sweephand.domain.run import AWAITING_RESULT, Attempt, Kind, Run, State


def run_body(run: Run, attempts: Sequence[Attempt] = ()) -> dict[str, Any]:
    """attempts: rows of attempts before the last; the run's own row is the last."""
    return {
        "id": run.id,
        "jobId": run.job_id,
        "scheduleId": run.schedule_id,
        "kind": run.kind.value,
        "status": run.state.status.value,
        "state": run.state.value,
        "reason": run.reason.value if run.reason else None,
        "httpStatus": run.http_status,
        "plannedAt": text_ms(run.planned_at),
        "enqueuedAt": stamp(run.enqueued_at),
        "startedAt": stamp(run.first_started_at or run.started_at),
        "finishedAt": stamp(run.finished_at) if run.finished else None,
        "latenessMs": run.lateness_ms if run.kind is Kind.SCHEDULED else None,
        "attempt": run.attempt,
        "maxAttempts": run.max_attempts,
        "nextAttemptAt": stamp(run.not_before) if run.state is State.RETRY_WAIT else None,
        "callbackDeadlineAt": stamp(run.deadline_at) if run.state in AWAITING_RESULT else None,
        "answer": run.answer,
        "message": run.message,
        "parentRunId": run.parent_id,
        "rerunOf": run.rerun_of,
        "rerunBy": run.rerun_by,
        "range": {"until": text_ms(run.range_until), "count": run.range_count} if run.range_until else None,
        "attempts": attempt_bodies(run, attempts),
        "notes": list(run.notes),
        "expiresAt": None if run.expires_at is None else text(run.expires_at),
    }
