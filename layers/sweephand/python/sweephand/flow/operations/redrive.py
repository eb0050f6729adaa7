"""The operation `redrive`: failed runs are run again, so many a minute.

params: `runs`, the whole ids of a selection, or `group` with `until` (epoch ms), what had failed up to then and nobody
had seen to, and `archivedThrough` (epoch ms), what its group had archived then; `ratePerMinute`. cursor: `at`, how many
of a selection have been seen to, or `after`, the last run of the group; `left`: those that could not be run again, each
with its reason, as far as they are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sweephand.domain.failure import Failure, Group
from sweephand.domain.instants import from_ms
from sweephand.domain.operation import Operation, Page
from sweephand.domain.run import FAILED, Kind, Run
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
    for run_id, seen_to in chosen:
        due = first + timedelta(seconds=len(wanted) * 60 / rate)
        try:
            if seen_to is not None:
                raise Conflict(seen_to)
            wanted.append(_begin(world, operation, run_id, due))
        except Unavailable:
            raise
        except SweephandError as why:
            left.append({"runId": run_id, "reason": why.reason})
    rerun.send(world, wanted)
    failed = len(chosen) - len(wanted)
    if behind is None:
        # Of a group: what its retention has taken since it was counted.
        gone = max(0, (operation.total or 0) - operation.done - len(chosen))
        done = len(chosen) + gone
        return Page(None, done, failed + gone, total=operation.done + done, result={"notRun": left[:MOST_TOLD]})
    due_at = first + timedelta(seconds=len(wanted) * 60 / rate)
    return Page({**behind, "left": left[:MOST_TOLD]}, len(chosen), failed, due_at=due_at)


def repeatable(world: World, tenant: str, runs: Sequence[str]) -> int:
    """How many of these runs would be run again, by the whole id. Those of one schedule and kind have one answer to
    whether job and schedule are still there.
    """
    now = world.clock.now()
    there = store.in_ledger(world.table, tenant, [(owner, uuid) for owner, uuid in (each.split("_") for each in runs)])
    fit = [run for run in there if _fits(run, now)]
    of_one_kind: dict[tuple[str, str | None, Kind], list[Run]] = {}
    for run in fit:
        of_one_kind.setdefault((run.job_id, run.schedule_id, run.kind), []).append(run)
    return sum(len(found) for found in of_one_kind.values() if _has_target(world, found[0], now))


def _fits(run: Run, now: datetime) -> bool:
    return run.state in FAILED and run.rerun_by is None and run.range_count is None and not run.is_gone(now)


def _has_target(world: World, run: Run, now: datetime) -> bool:
    try:
        rerun.prepared(world, run, Asking("count"), at=now)
    except Unavailable:
        raise
    except SweephandError:
        return False
    return True


def page_size(rate: int) -> int:
    return max(1, min(LARGEST_PAGE, rate * SPAN_S // 60))


def _next(world: World, operation: Operation, most: int) -> tuple[list[tuple[str, str | None]], dict[str, Any] | None]:
    """The ids of the next runs, each perhaps with why it is not run; and where the page behind them begins, if any."""
    if "runs" in operation.params:
        at = int(operation.cursor.get("at", 0))
        runs: list[str] = operation.params["runs"]
        chosen = runs[at : at + most]
        return [(each, None) for each in chosen], {"at": at + most} if at + most < len(runs) else None
    assert operation.tenant is not None
    group = failures.find(world, operation.tenant, operation.params["group"])
    found = list(islice(_counted(world, operation, group), most + 1))
    behind = {"after": found[most - 1].uuid} if len(found) > most else None
    return [(each.run_id, _seen_to(each, group)) for each in found[:most]], behind


def _counted(world: World, operation: Operation, group: Group) -> Iterator[Failure]:
    """What the group had at the request, whoever has seen to it since: each is counted once, on whatever page."""
    until = from_ms(int(operation.params["until"]))
    closed = operation.params.get("archivedThrough")
    after = operation.cursor.get("after")
    for each in store.runs_of(world.table, group.tenant, group.id, after, LARGEST_PAGE):
        if each.operation == operation.id or each.was_open(until, None if closed is None else from_ms(int(closed))):
            yield each


def _seen_to(failure: Failure, group: Group) -> str | None:
    """What was archived meanwhile is not run. What was run again says so by its row in the ledger."""
    return "it was archived" if failure.rerun_by is None and failure.is_archived(group) else None


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
