"""The result of an export of runs, as its operation shows it."""

from __future__ import annotations

from typing import Any

from sweephand.domain.instants import text, text_ms
from sweephand.domain.operation import Operation
from sweephand.facades.native import cursors
from sweephand.facades.native.context import Context
from sweephand.flow.bulk import export_runs
from sweephand.flow.bulk.export_runs import Link

EXPORT_PATH = "/v1/runs:export"


def result_with_link(ctx: Context, operation: Operation) -> dict[str, Any] | None:
    """Returns the result with a new link, which is stored nowhere and stands in no log."""
    return result(operation, export_runs.link(ctx.world, operation))


def result(operation: Operation, link: Link | None = None) -> dict[str, Any] | None:
    """Returns the result; None without a file. link: only where one operation is read."""
    there, expires_at = operation.result, export_runs.file_expires_at(operation)
    if there is None or expires_at is None:
        return None
    return {
        "runs": operation.done,
        "bytes": there["bytes"],
        "link": None if link is None else {"url": link.url, "expiresAt": text_ms(link.expires_at)},
        "fileExpiresAt": text(expires_at),
        "nextCursor": _next_cursor(operation, there["behind"]),
    }


def _next_cursor(operation: Operation, behind: list[str] | None) -> str | None:
    if behind is None:
        return None
    place = " ".join((operation.tenant or "", *EXPORT_PATH.split("/")[1:]))
    return cursors.write(place, operation.params, tuple(behind))
