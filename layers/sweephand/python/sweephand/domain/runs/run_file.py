"""Runs as lines of a file: CSV for spreadsheets, or JSON lines. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sweephand.base.lazy import lazy
from sweephand.domain.instants import stamp, text, text_ms
from sweephand.domain.members import fields
from sweephand.domain.members.json_text import dumps
from sweephand.domain.run import AWAITING_RESULT, FAILED, FROM_ITS_JOB, Attempt, Kind, LostCall, Reason, Run, State
from sweephand.domain.runs import settlement

with lazy():
    from sweephand.domain import failure


class Format(StrEnum):
    CSV = "csv"
    JSON_LINES = "jsonl"


MEDIA_TYPES: Mapping[Format, str] = {
    Format.CSV: "text/csv; charset=utf-8",
    Format.JSON_LINES: "application/x-ndjson",
}
RANGE = {"rangeUntil": "until", "rangeCount": "count"}
COLUMNS = (
    *("id", "jobId", "scheduleId", "kind", "status", "state", "reason", "httpStatus"),
    *("plannedAt", "enqueuedAt", "startedAt", "finishedAt", "latenessMs", "attempt", "maxAttempts"),
    *("parentRunId", *RANGE, "message", "answer", "expiresAt", "jobName"),
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that a spreadsheet would evaluate (OWASP, CSV injection)."""


def head(form: Format) -> str:
    """Returns the first line of a file: the column names for CSV (RFC 4180), nothing for JSON lines."""
    return _csv([COLUMNS]) if form is Format.CSV else ""


def lines(form: Format, runs: Iterable[Run], names: Mapping[str, str | None]) -> str:
    """Returns a line for each run, without the attempts in separate rows. A cell may contain line breaks.

    names: the names of the runs' jobs, by job id.
    """
    bodies = (run_body(run, job_name=names[run.job_id]) for run in runs)
    if form is Format.JSON_LINES:
        return "".join(f"{dumps(body)}\n" for body in bodies)
    return _csv(_cells(body) for body in bodies)


def _csv(rows: Iterable[Iterable[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def _cells(run: dict[str, Any]) -> list[Any]:
    span = run["range"] or {}
    flat = {**run, **{column: span.get(member) for column, member in RANGE.items()}}
    return [_cell(flat[column]) for column in COLUMNS]


def _cell(value: Any) -> Any:
    """Returns a value that no spreadsheet evaluates and no terminal executes.

    A formula gets a leading apostrophe, which spreadsheets do not show. A control character is written as `\\x1b`.
    """
    if not isinstance(value, str):
        return value
    text = fields.without_commands(value)
    return f"'{text}" if text.startswith(FORMULA) else text


MILLISECOND = timedelta(milliseconds=1)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


OF_ITS_JOB = {_camel(name): name for name in FROM_ITS_JOB}
"""The attributes that a run takes from its job and shows as the job does, by the names of the members."""


def run_body(run: Run, attempts: Sequence[Attempt] = (), *, job_name: str | None) -> dict[str, Any]:
    """Returns a run as JSON.

    attempts: rows of earlier attempts. The run's own row contains the last one and those whose executor was lost.
    job_name: the current name of its job; None if the job was deleted.
    """
    return {
        "id": run.id,
        "jobId": run.job_id,
        "jobName": job_name,
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
        "reportedBy": run.reported_by if run.finished else None,
        "errorGroupId": failure.signature_of(run).id if run.state in FAILED else None,
        "range": {"until": text_ms(run.range_until), "count": run.range_count} if run.range_until else None,
        "attempts": attempt_bodies(run, attempts),
        "notes": list(run.notes),
        "expiresAt": None if run.expires_at is None else text(run.expires_at),
        **{member: getattr(run, name) for member, name in OF_ITS_JOB.items()},
    }


def attempt_bodies(run: Run, rows: Sequence[Attempt]) -> list[dict[str, Any]]:
    """Returns attempts with separate rows and those with a lost executor, in order, then the one in the run's row."""
    shown = [_of_row(run, row) for row in rows]
    if run.lost_calls:
        lost = [_of_lost(run, call, rows) for call in run.lost_calls]
        shown = sorted([*shown, *lost], key=lambda one: (one["attempt"], one["startedAt"]))
    if _has_no_row(run, rows):
        shown.append(_of_run(run))
    return shown


def _of_lost(run: Run, call: LostCall, rows: Sequence[Attempt]) -> dict[str, Any]:
    """Returns an attempt whose result is unknown, with the timestamps of the attempt that it belongs to."""
    stamps = _further(run) if call.attempt == run.attempt else (None, None)
    for row in rows:
        if row.number == call.attempt:
            stamps = row.planned_at, row.enqueued_at
    if call.attempt == 1:
        stamps = run.planned_at, run.enqueued_at
    return {
        "attempt": call.attempt,
        "state": State.UNKNOWN.value,
        **_stamps(*stamps, call.started_at, None),
        "reason": Reason.EXECUTOR_LOST.value,
        "httpStatus": None,
        "message": "the executor stopped before reporting a result",
        "answer": None,
    }


def _has_no_row(run: Run, rows: Sequence[Attempt]) -> bool:
    """Returns True if the run's own row contains an attempt that has no separate row.

    While the run waits for the next attempt, all earlier ones have rows. If the run was ended while it waited, its row
    still contains the start of the last attempt.
    """
    if run.started_at is None or run.state is State.RETRY_WAIT:
        return False
    begun = {row.started_at for row in rows} | {call.started_at for call in run.lost_calls}
    return run.attempt not in {row.number for row in rows} and run.started_at not in begun


def _of_row(run: Run, row: Attempt) -> dict[str, Any]:
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
    return {
        "attempt": row.number,
        "state": state.value,
        **_stamps(
            row.planned_at or (run.planned_at if first else None),
            row.enqueued_at or (run.enqueued_at if first else None),
            row.started_at,
            row.finished_at,
        ),
        "reason": reason,
        "httpStatus": row.http_status,
        "message": row.message,
        "answer": row.answer,
    }


def _of_run(run: Run) -> dict[str, Any]:
    assert run.started_at is not None
    failed = run.finished and run.state is not State.SUCCESS
    return {
        "attempt": run.attempt,
        "state": run.state.value,
        **_stamps(
            *((run.planned_at, run.enqueued_at) if run.attempt == 1 else _further(run)),
            run.started_at,
            run.finished_at if run.finished else None,
        ),
        "reason": run.reason.value if run.reason and failed else None,
        "httpStatus": run.http_status,
        "message": run.message,
        "answer": settlement.excerpt(run.answer),
    }


def _further(run: Run) -> tuple[datetime | None, datetime | None]:
    return run.attempt_planned_at, run.attempt_enqueued_at


def _stamps(
    planned: datetime | None, enqueued: datetime | None, started: datetime, finished: datetime | None
) -> dict[str, Any]:
    return {
        "plannedAt": stamp(planned),
        "enqueuedAt": stamp(enqueued),
        "startedAt": text_ms(started),
        "finishedAt": stamp(finished),
        "durationMs": None if finished is None else (finished - started) // MILLISECOND,
    }
