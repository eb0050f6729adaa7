"""Runs as a file: CSV for spreadsheets, or JSON lines. A page at a time, each with the address of the next."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from sweephand.domain.json_text import dumps
from sweephand.domain.run import Run
from sweephand.facades.http import Answer
from sweephand.facades.native import bodies, cursors, runs
from sweephand.facades.native.context import Context
from sweephand.ids import is_uuid

CSV, JSON_LINES = "text/csv; charset=utf-8", "application/x-ndjson"
FORMATS = {"csv": CSV, "jsonl": JSON_LINES}
PATH = "/v1/runs:export"
PAGE = 1_000
"""Runs."""
RANGE = {"rangeUntil": "until", "rangeCount": "count"}
COLUMNS = (
    *("id", "jobId", "scheduleId", "kind", "status", "state", "reason", "httpStatus"),
    *("plannedAt", "enqueuedAt", "startedAt", "finishedAt", "latenessMs", "attempt", "maxAttempts"),
    *("parentRunId", *RANGE, "message", "answer", "expiresAt"),
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins so is worked out by a spreadsheet, whoever wrote it (OWASP, CSV injection)."""


def export_runs(ctx: Context) -> Answer:
    """A list of runs. Its pages put one behind the other are one file: the first has the line of names."""
    wanted = ctx.choice("format", frozenset(FORMATS)) or "csv"
    mark = cursors.read(ctx.place, ctx.query, is_uuid, is_uuid)
    limit = PAGE
    while True:
        found, behind = runs.select(ctx, (mark[0], mark[1]) if mark else None, limit)
        text = _WRITERS[wanted](found, first=mark is None)
        headers = {}
        if behind is not None:
            query = {**ctx.query, "cursor": ctx.cursor(*behind)}
            headers["Link"] = f'<{PATH}?{urlencode(query)}>; rel="next"'
        answer = Answer(200, headers=headers, media_type=FORMATS[wanted], raw=text)
        if not answer.too_large:
            return answer
        limit //= 4  # as for every list: what Lambda could not give back comes in shorter pages


def as_csv(found: list[Run], *, first: bool) -> str:
    """Lines as RFC 4180 has them. first: with the line of names."""
    out = io.StringIO()
    lines = csv.writer(out)
    if first:
        lines.writerow(COLUMNS)
    lines.writerows(_cells(bodies.run_body(run)) for run in found)
    return out.getvalue()


def _cells(run: dict[str, Any]) -> list[Any]:
    told = run["range"] or {}
    flat = {**run, **{column: told.get(member) for column, member in RANGE.items()}}
    return [_cell(flat[column]) for column in COLUMNS]


def _cell(value: Any) -> Any:
    """A text that would be a formula begins with an apostrophe, which spreadsheets do not show."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def as_json_lines(found: list[Run], *, first: bool) -> str:  # noqa: ARG001 - a line says by itself what it is
    return "".join(f"{dumps(bodies.run_body(run))}\n" for run in found)


_WRITERS: dict[str, Callable[..., str]] = {"csv": as_csv, "jsonl": as_json_lines}
