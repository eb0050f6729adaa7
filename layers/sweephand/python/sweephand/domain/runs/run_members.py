"""The members of a run and of its attempts, as answers and files show them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sweephand.base.json_schema import answer, items, one_of, or_null, ref, text, whole
from sweephand.base.records import dataclass
from sweephand.domain import failure
from sweephand.domain.answers import Member, Table, answered
from sweephand.domain.instants import stamp, text_ms
from sweephand.domain.run import (
    AWAITING_RESULT,
    FAILED,
    FROM_ITS_JOB,
    Attempt,
    Kind,
    LostCall,
    Reason,
    Run,
    State,
    Status,
)
from sweephand.domain.runs import settlement
from sweephand.domain.schema_words import ID, INSTANT, INSTANT_MS, RUN_ID, STATUS_CODE, TEXT

MILLISECOND = timedelta(milliseconds=1)
GROUP_ID = text(pattern="^[0-9a-f]{32}$")


@dataclass(frozen=True)
class Shown:
    """An attempt as it is shown. reason: one of Reason, as a string."""

    attempt: int
    state: State
    planned_at: datetime | None
    enqueued_at: datetime | None
    started_at: datetime
    finished_at: datetime | None
    reason: str | None = None
    http_status: int | None = None
    message: str | None = None
    answer: str | None = None

    @property
    def duration_ms(self) -> int | None:
        return None if self.finished_at is None else (self.finished_at - self.started_at) // MILLISECOND


class RunView(NamedTuple):
    """A run with its attempts and the current name of its job; None if the job was deleted."""

    run: Run
    attempts: Sequence[Shown]
    job_name: str | None


ATTEMPT = Table(
    {
        "attempt": answered(whole(1)),
        "state": answered(one_of(State), says="The result of the attempt. The last attempt's is the state of the run."),
        "plannedAt": answered(or_null(INSTANT_MS), says="When it should have begun."),
        "enqueuedAt": answered(or_null(INSTANT_MS), says="When its message was put into the run queue."),
        "startedAt": answered(INSTANT_MS),
        "finishedAt": answered(or_null(INSTANT_MS)),
        "durationMs": answered(or_null(whole()), says="How long the attempt took, in milliseconds."),
        "reason": answered(or_null(one_of(Reason))),
        "httpStatus": answered(or_null(STATUS_CODE)),
        "message": answered(or_null(TEXT)),
        "answer": answered(or_null(TEXT)),
    }
)
RANGE = Table(
    {
        "until": answered(INSTANT_MS, "range_until"),
        "count": answered(whole(1), "range_count"),
    }
)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


OF_ITS_JOB = {_camel(name): name for name in FROM_ITS_JOB}
"""The attributes that a run takes from its job and shows as the job does, by the names of the members."""

RUN = Table(
    {
        "id": answered(RUN_ID),
        "jobId": answered(or_null(ID), "of_job", "The id of its job; null for a message, which has none."),
        "jobName": answered(
            or_null(TEXT),
            lambda view: view.job_name,
            "The current name of the job; null if there is none any more.",
        ),
        "scheduleId": answered(or_null(ID)),
        "kind": answered(one_of(Kind)),
        "status": answered(one_of(Status), "state.status"),
        "state": answered(one_of(State)),
        "reason": answered(or_null(one_of(Reason))),
        "httpStatus": answered(or_null(STATUS_CODE)),
        "plannedAt": answered(INSTANT_MS),
        "enqueuedAt": answered(or_null(INSTANT_MS), says="When its message was put into the queue."),
        "startedAt": answered(
            or_null(INSTANT_MS), lambda view: stamp(view.run.first_started_at or view.run.started_at)
        ),
        "finishedAt": answered(
            or_null(INSTANT_MS), lambda view: stamp(view.run.finished_at) if view.run.finished else None
        ),
        "latenessMs": answered(
            or_null(whole()),
            lambda view: view.run.lateness_ms if view.run.kind in {Kind.SCHEDULED, Kind.MESSAGE} else None,
            "How late the run began, in milliseconds.",
        ),
        "attempt": answered(whole(1)),
        "maxAttempts": answered(whole(1)),
        "nextAttemptAt": answered(
            or_null(INSTANT_MS),
            lambda view: stamp(view.run.not_before) if view.run.state is State.RETRY_WAIT else None,
            "When the next attempt begins; null if there is none.",
        ),
        "callbackDeadlineAt": answered(
            or_null(INSTANT_MS),
            lambda view: stamp(view.run.deadline_at) if view.run.state in AWAITING_RESULT else None,
            "The instant until which the run waits for its result.",
        ),
        "answer": answered(or_null(TEXT)),
        "message": answered(or_null(TEXT)),
        "parentRunId": answered(or_null(RUN_ID), "parent_id"),
        "rerunOf": answered(or_null(RUN_ID), says="The run that this one repeats."),
        "rerunBy": answered(or_null(RUN_ID), says="The last run that repeats this one."),
        "reportedBy": answered(
            or_null(TEXT),
            lambda view: view.run.reported_by if view.run.finished else None,
            "The reporter of how the run ended: the `owner` of the worker, or the client id that sent the result. "
            "null if the call's own answer ended it.",
        ),
        "errorGroupId": answered(
            or_null(GROUP_ID),
            lambda view: failure.signature_of(view.run).id if view.run.state in FAILED else None,
            "The error group of a failed run; null for other runs.",
        ),
        "range": answered(
            or_null(answer(RANGE.answer())),
            lambda view: RANGE.show(view.run) if view.run.range_until else None,
            "It stands for many occurrences.",
        ),
        "attempts": answered(
            items(ref("Attempt")),
            lambda view: ATTEMPT.show_all(view.attempts),
            "Each attempt, in order. If its executor stopped before reporting a result, it is `UNKNOWN`, "
            "`EXECUTOR_LOST`, without an end: the call may have been made. The same attempt is then made again.",
        ),
        "notes": answered(items(TEXT)),
        "expiresAt": answered(or_null(INSTANT)),
        **{name: Member(shown={}, attribute=attribute) for name, attribute in OF_ITS_JOB.items()},
    },
    "run",
)
"""The schemas of the members that it takes from its job are the job's."""


def run_body(run: Run, attempts: Sequence[Attempt] = (), *, job_name: str | None) -> dict[str, Any]:
    """Returns a run as JSON.

    attempts: rows of earlier attempts. The run's own row contains the last one and those whose executor was lost.
    job_name: the current name of its job; None if the job was deleted.
    """
    return RUN.show(RunView(run, attempts_of(run, attempts), job_name))


def attempts_of(run: Run, rows: Sequence[Attempt]) -> list[Shown]:
    """Returns attempts with separate rows and those with a lost executor, in order, then the one in the run's row."""
    shown = [_of_row(run, row) for row in rows]
    if run.lost_calls:
        lost = [_of_lost(run, call, rows) for call in run.lost_calls]
        shown = sorted([*shown, *lost], key=lambda one: (one.attempt, text_ms(one.started_at)))
    if _has_no_row(run, rows):
        shown.append(_of_run(run))
    return shown


def _of_lost(run: Run, call: LostCall, rows: Sequence[Attempt]) -> Shown:
    """Returns an attempt whose result is unknown, with the timestamps of the attempt that it belongs to."""
    stamps = _further(run) if call.attempt == run.attempt else (None, None)
    for row in rows:
        if row.number == call.attempt:
            stamps = row.planned_at, row.enqueued_at
    if call.attempt == 1:
        stamps = run.planned_at, run.enqueued_at
    lost, said = Reason.EXECUTOR_LOST.value, "the executor stopped before reporting a result"
    return Shown(call.attempt, State.UNKNOWN, *stamps, call.started_at, None, reason=lost, message=said)


def _has_no_row(run: Run, rows: Sequence[Attempt]) -> bool:
    """Returns True if the run's own row contains an attempt that has no separate row.

    While the run waits for the next attempt, all earlier ones have rows. If the run was ended while it waited, its row
    still contains the start of the last attempt.
    """
    if run.started_at is None or run.state is State.RETRY_WAIT:
        return False
    begun = {row.started_at for row in rows} | {call.started_at for call in run.lost_calls}
    return run.attempt not in {row.number for row in rows} and run.started_at not in begun


def _of_row(run: Run, row: Attempt) -> Shown:
    reason = row.reason
    if row.number == run.attempt and row.started_at == run.started_at:
        state = run.state
        if reason is None and run.reason is not None and run.finished and state is not State.SUCCESS:
            reason = run.reason.value  # it waited for a result
    elif row.state is not None:
        state = State(row.state)
    elif row.reason is None:
        state = State.SUCCESS
    else:
        state = settlement.failure_state(Reason(row.reason), row.http_status)
    first = row.number == 1
    return Shown(
        row.number,
        state,
        row.planned_at or (run.planned_at if first else None),
        row.enqueued_at or (run.enqueued_at if first else None),
        row.started_at,
        row.finished_at,
        reason,
        row.http_status,
        row.message,
        row.answer,
    )


def _of_run(run: Run) -> Shown:
    assert run.started_at is not None
    failed = run.finished and run.state is not State.SUCCESS
    return Shown(
        run.attempt,
        run.state,
        *((run.planned_at, run.enqueued_at) if run.attempt == 1 else _further(run)),
        run.started_at,
        run.finished_at if run.finished else None,
        run.reason if failed else None,
        run.http_status,
        run.message,
        settlement.excerpt(run.answer),
    )


def _further(run: Run) -> tuple[datetime | None, datetime | None]:
    return run.attempt_planned_at, run.attempt_enqueued_at
