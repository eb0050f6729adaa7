"""What the last audit found, as the health of the service shows it."""

from __future__ import annotations

from typing import Any

from sweephand.domain.instants import text
from sweephand.store.views import tenants as views

COUNTS = ("schedules", "stopped", "lost", "superseded", "corrected", "unreadable", "waiting")


def body(last: views.LastAudit | None) -> dict[str, Any] | None:
    """finished False: what it did not get through is the next hour's first."""
    if last is None:
        return None
    counts = {name: last.findings.get(name, 0) for name in COUNTS}
    return {"at": text(last.at), "everything": last.everything, "finished": not last.rests, **counts}
