"""What the tests of the flow share."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sweephand.domain.instants import text
from tests.support.sources import START
from tests.support.stage import Stage

NOON = START.replace(microsecond=0)
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=n) for n in (1, 60, 3_600, 86_400))


def minutes(*numbers: float) -> list[datetime]:
    return [NOON + n * MINUTE for n in numbers]


def once(after: timedelta = MINUTE) -> dict[str, object]:
    """A one-time timing."""
    return {"at": text(NOON + after)}


def fixed(delay_s: int, retries: int = 3, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "delaySeconds": delay_s, "maxRetries": retries, **more}


def exact(stage: Stage, planned: Any) -> None:
    """The totals say what a fold over the ledger says, and nothing that was planned is without its end."""
    totals, fold = stage.totals(planned), stage.fold(planned)
    assert (totals.planned, totals.ended, totals.failed, totals.skipped) == (
        fold.rows,
        fold.ended,
        fold.failed,
        fold.skipped,
    )
    assert totals.open == 0
