"""The operation `redrive`: failed runs are run again, so many a minute.

params: `runs`, the whole ids of a selection, or `group` with `until` (epoch ms), what had failed up to then and nobody
had seen to; `ratePerMinute`. cursor: `at`, how many of a selection have been seen to, or `after`, the last run of the
group; `left`: those that could not be run again, each with its reason, as far as they are told.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sweephand.domain.failure import Failure, Group
from sweephand.domain.instants import from_ms
from sweephand.domain.operation import Operation, Page
from sweephand.domain.run import FAILED, Run
from sweephand.errors import Conflict, NotFound, SweephandError, Unavailable
from sweephand.flow import failures, rerun
from sweephand.flow.rerun import Asking, Wanted
from sweephand.flow.world import World
from sweephand.store import failures as store
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
    """The next runs, each a moment after the one before. Raises Unavailable; NotFound where the group is gone."""
    rate = int(operation.params["ratePerMinute"])
    chosen, behind = _next(world, operation, page_size(rate))
    left: list[dict[str, str]] = list(operation.cursor.get("left", ()))
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
    if behind is None:
        return Page(None, len(chosen), failed, result={"notRun": left[:MOST_TOLD]})
    due_at = first + timedelta(seconds=len(wanted) * 60 / rate)
    return Page({**behind, "left": left[:MOST_TOLD]}, len(chosen), failed, due_at=due_at)


def page_size(rate: int) -> int:
    return max(1, min(LARGEST_PAGE, rate * SPAN_S // 60))


def _next(world: World, operation: Operation, most: int) -> tuple[list[str], dict[str, Any] | None]:
    """The ids of the next runs, and where the page behind them begins; None: there is none."""
    if "runs" in operation.params:
        at = int(operation.cursor.get("at", 0))
        runs: list[str] = operation.params["runs"]
        chosen = runs[at : at + most]
        return chosen, {"at": at + most} if at + most < len(runs) else None
    found = list(islice(_open(world, operation), most + 1))
    behind = {"after": found[most - 1].uuid} if len(found) > most else None
    return [each.run_id for each in found[:most]], behind


def _open(world: World, operation: Operation) -> Iterator[Failure]:
    """What the group still has; and what this very page began before it was cut off, so that it counts the same."""
    assert operation.tenant is not None
    group: Group = failures.find(world, operation.tenant, operation.params["group"])
    until, now = from_ms(int(operation.params["until"])), world.clock.now()
    after = operation.cursor.get("after")
    for each in store.runs_of(world.table, operation.tenant, group.id, after, LARGEST_PAGE):
        mine = each.operation == operation.id
        if mine or (each.is_open(group, now) and each.at is not None and each.at < until):
            yield each


def _begin(world: World, operation: Operation, run_id: str, due: datetime) -> Wanted:
    """Once, whatever happens to its page: the id of the new run follows from the old one's and the operation's."""
    assert operation.tenant is not None
    owner, uuid = run_id.split("_")
    old = rerun.find(world, operation.tenant, owner, uuid)
    by = Asking(operation.id, operation.actor, operation.id)
    wanted = rerun.prepared(world, old, by, at=operation.started_at, due=due)
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
