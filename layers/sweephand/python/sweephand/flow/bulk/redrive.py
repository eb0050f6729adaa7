"""The operation `redrive`: failed runs are run again, so many a minute.

params: `runs`, the whole ids of a selection, or `group` with `until` (epoch ms), what had failed up to then and nobody
had seen to, and `archivedThrough` (epoch ms), what its group had archived then; `ratePerMinute`. cursor: `at`, how many
of a selection have been seen to, or `after`, the last run of the group; `left`: those that could not be run again, each
with its reason, as far as they are told; and what `one_by_one` and WAITS_FOR say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sweephand.domain.failure import Failure, Group
from sweephand.domain.instants import from_ms
from sweephand.domain.job import DEFAULT_COLLECTION
from sweephand.domain.operation import WAITS_FOR, Operation, Page
from sweephand.domain.run import FAILED, Kind, Run
from sweephand.errors import Conflict, NotFound, SweephandError, Unavailable
from sweephand.flow.bulk import one_by_one
from sweephand.flow.errors import failures
from sweephand.flow.manual import rerun
from sweephand.flow.manual.rerun import Asking, Wanted
from sweephand.flow.world import World
from sweephand.store.dynamo.conditional import Cancelled
from sweephand.store.errors import failures as store

SPAN_S = 10
"""What one page sends is spread over so many seconds: a pause takes hold after that."""
LARGEST_PAGE = 200
MOST_TOLD = 20
USUAL_RATE, MOST_RATE = 60, 6_000
"""Runs a minute."""
HELD_LOOK = timedelta(seconds=60)
"""So often one looks whether its tenant is enabled again."""
MOST_RUNS = 500
"""Of a selection."""


def page(world: World, operation: Operation) -> Page:
    """The next runs, each a moment after the one before. Raises Unavailable; NotFound where the group is gone.

    Where the runs of a schedule exclude each other, one of them is begun and seen to its end before the next. It may be
    all that a page does to look how far they are.
    """
    if (held := _held(world, operation)) is not None:
        return held
    rate = int(operation.params["ratePerMinute"])
    before = one_by_one.read(operation.cursor)
    open_, not_run = one_by_one.look(world, operation, before.open)
    left = [*operation.cursor.get("left", ()), *not_run]
    first = max(world.clock.now(), operation.due_at or operation.started_at)
    batch = _next(world, operation, page_size(rate))
    wanted: list[Wanted] = []
    seen_to, refused, mark = 0, 0, batch.mark
    for each in batch.chosen:
        due = first + timedelta(seconds=len(wanted) * 60 / rate)
        try:
            begun = _begin(world, operation, each, due, open_)
        except Unavailable:
            raise
        except SweephandError as why:
            left.append({"runId": each.run_id, "reason": why.reason})
            refused += 1
        else:
            if begun is None:
                break
            wanted.append(begun)
            if begun.alone:
                open_ = (*open_, begun.run.id)
        seen_to, mark = seen_to + 1, each.mark
    rerun.send(world, wanted)
    failed = refused + len(not_run)
    if not (batch.more or open_ or seen_to < len(batch.chosen)):
        # Of a group: what its retention has taken since it was counted.
        gone = max(0, (operation.total or 0) - operation.done - seen_to)
        done = seen_to + gone
        return Page(None, done, failed + gone, total=operation.done + done, result={"notRun": left[:MOST_TOLD]})
    pace_s = len(wanted) * 60 / rate
    waits = one_by_one.after(before, open_, moved=bool(seen_to or not_run), waits=seen_to < len(batch.chosen))
    cursor = {**mark, "left": left[:MOST_TOLD], **waits.cursor}
    return Page(cursor, seen_to, failed, due_at=first + timedelta(seconds=max(pace_s, waits.wait_s)))


def _held(world: World, operation: Operation) -> Page | None:
    """While its tenant is disabled, nothing begins."""
    assert operation.tenant is not None
    if world.standing.of(operation.tenant, DEFAULT_COLLECTION).tenant_active:
        return None
    cursor = {**operation.cursor, WAITS_FOR: "the tenant is disabled"}
    return Page(cursor, due_at=world.clock.now() + HELD_LOOK)


def repeatable(world: World, tenant: str, runs: Sequence[str]) -> int:
    """How many of these runs would be run again, by the whole id. Those of one schedule and kind have one answer to
    whether job and schedule are still there, and their payload, if none is edited.
    """
    now = world.clock.now()
    there = store.in_ledger(world.table, tenant, runs)
    fit = [run for run in there if _fits(run, now)]
    of_one_kind: dict[tuple[str, str | None, Kind, bool], list[Run]] = {}
    for run in fit:
        of_one_kind.setdefault((run.job_id, run.schedule_id, run.kind, run.edited), []).append(run)
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


@dataclass(frozen=True)
class _Next:
    """A run of the page, perhaps with why it is not run. mark: where the operation stands behind it."""

    run_id: str
    mark: dict[str, Any]
    seen_to: str | None = None


@dataclass(frozen=True)
class _Batch:
    """mark: where the operation stands before them. more: there are others behind."""

    chosen: list[_Next]
    mark: dict[str, Any]
    more: bool


def _next(world: World, operation: Operation, most: int) -> _Batch:
    if "runs" in operation.params:
        at = int(operation.cursor.get("at", 0))
        runs: list[str] = operation.params["runs"]
        chosen = [_Next(each, {"at": n}) for n, each in enumerate(runs[at : at + most], at + 1)]
        return _Batch(chosen, {"at": at}, more=at + most < len(runs))
    assert operation.tenant is not None
    group = failures.find(world, operation.tenant, operation.params["group"])
    found = list(islice(_counted(world, operation, group), most + 1))
    chosen = [_Next(each.run_id, {"after": each.uuid}, _seen_to(each, group)) for each in found[:most]]
    after = operation.cursor.get("after")
    return _Batch(chosen, {} if after is None else {"after": after}, more=len(found) > most)


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


def _begin(world: World, operation: Operation, each: _Next, due: datetime, open_: Collection[str]) -> Wanted | None:
    """Once, whatever happens to its page: the id of the new run follows from the old one's and the operation's.

    open_: runs whose schedules take no other one yet. None: it has to wait for them. Raises SweephandError.
    """
    assert operation.tenant is not None
    if each.seen_to is not None:
        raise Conflict(each.seen_to)
    owner, uuid = each.run_id.split("_")
    old = rerun.find(world, operation.tenant, owner, uuid)
    by = Asking(operation.id, operation.actor, operation.id)
    wanted = rerun.prepared(world, old, by, at=operation.started_at, due=due)
    if old.rerun_by == wanted.run.id:
        return wanted  # by this page, which was cut off before it was counted: its message may be missing
    _check(old)
    if wanted.alone and one_by_one.must_wait(world, wanted, open_):
        return None
    done = rerun.write(world, wanted)
    if isinstance(done, Cancelled) and "run" not in done.refused:
        raise NotFound("no such run")
    return wanted


def _check(old: Run) -> None:
    if old.state not in FAILED:
        raise Conflict("it did not fail")
    if old.rerun_by is not None:
        raise Conflict(f"it was run again as {old.rerun_by}")
