"""The operation `redrive`: runs failed runs again, at a given rate per minute.

params: `ratePerMinute`, and either `runs`, the whole ids of a selection, or `group`, a group of errors, with `until`
(epoch ms; later failures are left out) and `archivedThrough` (epoch ms; up to where the group was archived when the
redrive was requested); or `groups`, several groups one after the other, with `until` and `closed`, which maps each
group to its `archivedThrough`.

cursor: `at`, how many runs of a selection, or how many groups, are done; `after`, the last run of the group that is
done; `left`, the first runs that could not be run again, each with its reason; `open`, the whole ids of runs that have
begun and are not known to have ended; `looks`, how many times in a row nothing had changed; and WAITS_FOR.

Where the runs of a schedule exclude each other, one run ends before the next one begins. So runs of one redrive never
overlap, whatever the overlap policy, and runs that end without having run count as failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sweephand.base.errors import Conflict, NotFound, SweephandError, Unavailable
from sweephand.base.records import dataclass
from sweephand.domain.failure import Failure, Group
from sweephand.domain.instants import from_ms
from sweephand.domain.job import DEFAULT_COLLECTION
from sweephand.domain.operation import WAITS_FOR, Operation, Page
from sweephand.domain.run import FAILED, RAN, Kind, Run
from sweephand.server.flow.errors import failures
from sweephand.server.flow.manual import rerun
from sweephand.server.flow.manual.rerun import Asking, Wanted
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import Cancelled
from sweephand.server.store.errors import failures as store
from sweephand.server.store.runs import overlap_slots

SPAN_S = 10
"""Seconds over which one page spreads its messages; a pause takes effect after that."""
LARGEST_PAGE = 200
MOST_REASONS = 20
FIRST_CHECK_S, LONGEST_CHECK_S = 1, 60
USUAL_RATE, MOST_RATE = 60, 6_000
"""Runs per minute."""
HELD_CHECK = timedelta(seconds=60)
"""Time between two checks of whether a disabled tenant is enabled again."""
MOST_RUNS = 500
"""Runs of the largest selection."""
MOST_GROUPS = 100
"""Most groups of one redrive."""


def page(world: World, operation: Operation) -> Page:
    """Runs the next failed runs again, spaced by the rate. Raises Unavailable; NotFound if the group is gone.

    Where the runs of a schedule exclude each other, one of them ends before the next begins, and a page may only check
    whether it has ended.
    """
    if (held := _held(world, operation)) is not None:
        return held
    rate = int(operation.params["ratePerMinute"])
    before = read(operation.cursor)
    open_, not_run = _progress(world, operation, before.open)
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
        # Failures of a group that expired since they were counted.
        gone = max(0, (operation.total or 0) - operation.done - seen_to)
        done = seen_to + gone
        return Page(None, done, failed + gone, total=operation.done + done, result={"notRun": left[:MOST_REASONS]})
    pace_s = len(wanted) * 60 / rate
    waits = after(before, open_, moved=bool(seen_to or not_run), waits=seen_to < len(batch.chosen))
    cursor = {**mark, "left": left[:MOST_REASONS], **waits.cursor}
    return Page(cursor, seen_to, failed, due_at=first + timedelta(seconds=max(pace_s, waits.wait_s)))


def _held(world: World, operation: Operation) -> Page | None:
    """Returns a page that only waits if the tenant is disabled; None otherwise."""
    assert operation.tenant is not None
    if world.terms.of(operation.tenant, DEFAULT_COLLECTION).tenant_active:
        return None
    cursor = {**operation.cursor, WAITS_FOR: "the tenant is disabled"}
    return Page(cursor, due_at=world.clock.now() + HELD_CHECK)


def repeatable(world: World, tenant: str, runs: Sequence[str]) -> int:
    """Returns how many of these runs would be run again. runs: whole ids.

    Checks job, schedule and payload once for all runs of a schedule that are of the same kind and equally edited.
    """
    now = world.clock.now()
    recorded = store.in_ledger(world.table, tenant, runs)
    fit = [run for run in recorded if _fits(run, now)]
    of_one_kind: dict[tuple[str, str | None, Kind, bool], list[Run]] = {}
    for run in fit:
        of_one_kind.setdefault((run.job_id, run.schedule_id, run.kind, run.edited), []).append(run)
    return sum(len(alike) for alike in of_one_kind.values() if _has_target(world, alike[0], now))


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
    """A run of the page. mark: the cursor after it. seen_to: why it is not run again; None if it is."""

    run_id: str
    mark: dict[str, Any]
    seen_to: str | None = None


@dataclass(frozen=True)
class _Batch:
    """The runs of one page. mark: the cursor before them. more: others follow."""

    chosen: list[_Next]
    mark: dict[str, Any]
    more: bool


def _next(world: World, operation: Operation, most: int) -> _Batch:
    if "runs" in operation.params:
        at = int(operation.cursor.get("at", 0))
        runs: list[str] = operation.params["runs"]
        chosen = [_Next(each, {"at": n}) for n, each in enumerate(runs[at : at + most], at + 1)]
        return _Batch(chosen, {"at": at}, more=at + most < len(runs))
    if "groups" in operation.params:
        return _next_of_groups(world, operation, most)
    assert operation.tenant is not None
    group = failures.find(world, operation.tenant, operation.params["group"])
    open_ones = list(islice(_counted(world, operation, group, operation.params.get("archivedThrough")), most + 1))
    chosen = [_Next(each.run_id, {"after": each.uuid}, _seen_to(each, group)) for each in open_ones[:most]]
    after = operation.cursor.get("after")
    return _Batch(chosen, {} if after is None else {"after": after}, more=len(open_ones) > most)


def _next_of_groups(world: World, operation: Operation, most: int) -> _Batch:
    """Returns the next runs of the current group. If there are none, the batch is empty and moves to the next group."""
    assert operation.tenant is not None
    at, after = int(operation.cursor.get("at", 0)), operation.cursor.get("after")
    groups: list[str] = operation.params["groups"]
    open_ones: list[Failure] = []
    chosen: list[_Next] = []
    with suppress(NotFound):
        group = failures.find(world, operation.tenant, groups[at])
        closed = operation.params["closed"].get(group.id)
        open_ones = list(islice(_counted(world, operation, group, closed), most + 1))
        chosen = [
            _Next(each.run_id, {"at": at, "after": each.uuid}, _seen_to(each, group)) for each in open_ones[:most]
        ]
    if not chosen:
        return _Batch([], {"at": at + 1}, more=at + 1 < len(groups))
    before = {"at": at} if after is None else {"at": at, "after": after}
    return _Batch(chosen, before, more=len(open_ones) > most or at + 1 < len(groups))


def _counted(world: World, operation: Operation, group: Group, closed: int | None) -> Iterator[Failure]:
    """Yields the failures that were open at the request, even if resolved since: each is counted on one page only."""
    until = from_ms(int(operation.params["until"]))
    after = operation.cursor.get("after")
    for each in store.runs_of(world.table, group.tenant, group.id, after, LARGEST_PAGE):
        if each.operation == operation.id or each.was_open(until, None if closed is None else from_ms(int(closed))):
            yield each


def _seen_to(failure: Failure, group: Group) -> str | None:
    """Returns why a failure that was archived meanwhile is not run again; None for any other.

    For a failure that was run again meanwhile, its row in the ledger gives the reason.
    """
    return "it was archived" if failure.rerun_by is None and failure.is_archived(group) else None


def _begin(world: World, operation: Operation, each: _Next, due: datetime, open_: Collection[str]) -> Wanted | None:
    """Begins a run once, even if its page is repeated: its id follows from the old run's id and the operation's.

    open_: open runs, whose schedules admit no other run yet. Returns None if this run must wait for them. Raises
    SweephandError.
    """
    assert operation.tenant is not None
    if each.seen_to is not None:
        raise Conflict(each.seen_to)
    owner, uuid = each.run_id.split("_")
    old = rerun.find(world, operation.tenant, owner, uuid)
    by = Asking(operation.id, operation.actor, operation.id)
    wanted = rerun.prepared(world, old, by, at=operation.started_at, due=due)
    if old.rerun_by == wanted.run.id:
        return wanted  # an earlier try of this page began it and was cut off; its message may be missing
    if old.state not in FAILED:
        raise Conflict("it did not fail")
    if old.rerun_by is not None:
        raise Conflict(f"it was run again as {old.rerun_by}")
    if wanted.alone and must_wait(world, wanted, open_):
        return None
    done = rerun.write(world, wanted)
    if isinstance(done, Cancelled) and "run" not in done.refused:
        raise NotFound("no such run")
    return wanted


MOST_OPEN = 100
"""Most open runs, each of a different schedule; the cursor names them all."""


@dataclass(frozen=True)
class Waits:
    """The open runs, as whole ids, and the seconds until they are checked again; 0 if no run is open or waits."""

    open: tuple[str, ...] = ()
    checks: int = 0
    wait_s: int = 0

    @property
    def cursor(self) -> dict[str, Any]:
        if not self.wait_s:
            return {}
        return {"open": list(self.open), "looks": self.checks, WAITS_FOR: "runs that exclude each other"}


def read(cursor: Mapping[str, Any]) -> Waits:
    return Waits(tuple(cursor.get("open", ())), int(cursor.get("looks", 0)))


def after(before: Waits, open_: tuple[str, ...], *, moved: bool, waits: bool) -> Waits:
    """Returns the next wait, which doubles while nothing changes. waits: whether a run that has not begun must wait."""
    if not (open_ or waits):
        return Waits()
    checks = 0 if moved else before.checks + 1
    return Waits(open_, checks, min(LONGEST_CHECK_S, FIRST_CHECK_S * 2 ** min(checks, 10)))


def _progress(world: World, operation: Operation, runs: Sequence[str]) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """Returns the runs that are still open, and those that ended without having run, with their reasons.

    A run that is no longer in the ledger counts as ended.
    """
    assert operation.tenant is not None
    by_id = {run.id: run for run in store.in_ledger(world.table, operation.tenant, runs)}
    reruns = [by_id[each] for each in runs if each in by_id]
    return tuple(run.id for run in reruns if not run.finished), [
        {"runId": str(run.rerun_of), "reason": _why(run)} for run in reruns if run.finished and run.state not in RAN
    ]


def _why(run: Run) -> str:
    """Returns the reason in words, for the result of the operation."""
    why = f", {run.reason}" if run.reason is not None else ""
    return f"its run {run.id} ended as {run.state}{why}"


def must_wait(world: World, wanted: Wanted, open_: Collection[str]) -> bool:
    """Returns whether an earlier run of this redrive is open or another run already waits for the active one."""
    owner = wanted.run.schedule_id
    if len(open_) >= MOST_OPEN or any(each.partition("_")[0] == owner for each in open_):
        return True
    slot, rows = overlap_slots.read(world.table, wanted.run)
    return slot.queued in rows and not rows[slot.queued].finished
