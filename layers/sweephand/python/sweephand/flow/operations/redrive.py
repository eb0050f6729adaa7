"""The operation `redrive`: failed runs are run again, so many a minute.

params: `runs`, the whole ids of a selection; `ratePerMinute`. cursor: `at`, how many of them have been seen to; `left`:
those that could not be run again, each with its reason, as far as they are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sweephand.domain.operation import Operation, Page
from sweephand.domain.run import FAILED, Run
from sweephand.errors import Conflict, NotFound, SweephandError, Unavailable
from sweephand.flow import rerun
from sweephand.flow.rerun import Wanted
from sweephand.flow.world import World
from sweephand.store.conditional import Cancelled

SPAN_S = 10
"""What one page sends is spread over so many seconds: a pause takes hold after that."""
LARGEST_PAGE = 200
MOST_TOLD = 20
USUAL_RATE, MOST_RATE = 60, 6_000
"""Runs a minute."""
MOST_RUNS = 500
"""Of a selection."""


def page(world: World, operation: Operation) -> Page:
    """The next runs, each a moment after the one before. Raises Unavailable."""
    rate = int(operation.params["ratePerMinute"])
    begun = int(operation.cursor.get("at", 0))
    left: list[dict[str, str]] = list(operation.cursor.get("left", ()))
    chosen: Sequence[str] = operation.params["runs"][begun : begun + page_size(rate)]
    first = max(world.clock.now(), operation.due_at or operation.started_at)
    wanted: list[Wanted] = []
    for run_id in chosen:
        due = first + timedelta(seconds=len(wanted) * 60 / rate)
        try:
            wanted.append(_begin(world, operation, run_id, due))
        except Unavailable:
            raise
        except SweephandError as why:
            left.append({"runId": run_id, "reason": why.reason})
    rerun.send(world, wanted)
    failed = len(chosen) - len(wanted)
    cursor: dict[str, Any] = {"at": begun + len(chosen), "left": left[:MOST_TOLD]}
    if cursor["at"] == len(operation.params["runs"]):
        return Page(None, len(chosen), failed, result={"notRun": cursor["left"]})
    return Page(cursor, len(chosen), failed, due_at=first + timedelta(seconds=len(wanted) * 60 / rate))


def page_size(rate: int) -> int:
    return max(1, min(LARGEST_PAGE, rate * SPAN_S // 60))


def _begin(world: World, operation: Operation, run_id: str, due: datetime) -> Wanted:
    """Once, whatever happens to its page: the id of the new run follows from the old one's and the operation's."""
    assert operation.tenant is not None
    owner, uuid = run_id.split("_")
    old = rerun.find(world, operation.tenant, owner, uuid)
    wanted = rerun.prepared(world, old, key=operation.id, at=operation.started_at, due=due)
    if old.rerun_by == wanted.run.id:
        return wanted  # by this page, which was cut off before it was counted: its message may be missing
    _check(old)
    done = world.table.transact(rerun.ops(world, wanted))
    if isinstance(done, Cancelled) and "run" not in done.refused:
        raise NotFound("no such run")
    return wanted


def _check(old: Run) -> None:
    if old.state not in FAILED:
        raise Conflict("it did not fail")
    if old.rerun_by is not None:
        raise Conflict(f"it was run again as {old.rerun_by}")
