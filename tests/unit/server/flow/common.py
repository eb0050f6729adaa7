"""Common parts of the tests of the flow."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sweephand.domain.instants import text
from sweephand.testing.sources import START
from tests.support.stage import Stage

NOON = START.replace(microsecond=0)
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=n) for n in (1, 60, 3_600, 86_400))


def minutes(*numbers: float) -> list[datetime]:
    return [NOON + n * MINUTE for n in numbers]


def once(after: timedelta = MINUTE) -> dict[str, object]:
    """Returns a one-time timing."""
    return {"at": text(NOON + after)}


def fixed(delay_s: int, retries: int = 3, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "delaySeconds": delay_s, "maxRetries": retries, **more}


def exact(stage: Stage, planned: Any) -> None:
    """Checks that the totals equal a fold over the ledger, and that every planned occurrence has its end."""
    totals, fold = stage.totals(planned), stage.fold(planned)
    assert (totals.planned, totals.ended, totals.failed, totals.skipped) == (
        fold.rows,
        fold.ended,
        fold.failed,
        fold.skipped,
    )
    assert totals.open == 0
