"""Rows of single attempts, next to the run's own."""

from __future__ import annotations

from sweephand.domain.instants import s_if_any
from sweephand.domain.run import Attempt, Reason, Run, State
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.flat_models import Codec, named
from sweephand.server.store.dynamo.table import AttemptItem

_ATTEMPTS = Codec(Attempt, AttemptItem, {"number": named("attempt"), "state": named("ended_as")})
attempt_of = _ATTEMPTS.read


def attempt_item(run: Run, *, reason: Reason | None, answer: str | None, state: State | None = None) -> AttemptItem:
    """Returns the row of the attempt that `run` has just made.

    answer: up to 16 KB of the target's answer. state: given if it does not follow from the reason.
    """
    started_at = run.started_at or run.planned_at
    attempt = Attempt(
        number=run.attempt,
        started_at=started_at,
        finished_at=run.finished_at or started_at,
        reason=reason.value if reason else None,
        http_status=run.http_status,
        message=run.message,
        answer=answer,
        planned_at=run.attempt_planned_at,
        enqueued_at=run.attempt_enqueued_at,
        state=state.value if state else None,
        answer_headers=run.answer_headers,
    )
    key = keys.runs(run.tenant, run.schedule_id or run.job_id), keys.attempt(run.uuid, run.attempt)
    return _ATTEMPTS.item(key, attempt, expires_at=s_if_any(run.expires_at))
