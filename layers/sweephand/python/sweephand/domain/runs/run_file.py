"""Runs as lines of a file: CSV for spreadsheets, or JSON lines. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from sweephand.base.json_text import dumps
from sweephand.base.members import fields
from sweephand.domain.run import Run
from sweephand.domain.runs.run_members import run_body


class Format(StrEnum):
    CSV = "csv"
    JSON_LINES = "jsonl"


MEDIA_TYPES: Mapping[Format, str] = {
    Format.CSV: "text/csv; charset=utf-8",
    Format.JSON_LINES: "application/x-ndjson",
}
RANGE = {"rangeUntil": "until", "rangeCount": "count"}
COLUMNS = (
    "id",
    "jobId",
    "scheduleId",
    "kind",
    "status",
    "state",
    "reason",
    "httpStatus",
    "plannedAt",
    "enqueuedAt",
    "startedAt",
    "finishedAt",
    "latenessMs",
    "attempt",
    "maxAttempts",
    "parentRunId",
    *RANGE,
    "message",
    "answer",
    "expiresAt",
    "jobName",
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
