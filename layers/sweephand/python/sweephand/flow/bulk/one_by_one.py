"""A redrive where the runs of a schedule exclude each other: one is seen to its end before the next begins.

So none of them meets another one of the same redrive, whatever the policy makes of that; and what the redrive says has
failed includes those that ended without having run. cursor: `open`, the whole ids of runs that were begun and whose end
was not seen; `looks`: how often in a row nothing had moved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweephand.domain.operation import WAITS_FOR, Operation
from sweephand.domain.run import RAN, Run
from sweephand.flow.manual.rerun import Wanted
from sweephand.flow.world import World
from sweephand.store.errors import failures as store
from sweephand.store.runs import overlap_slots

FIRST_LOOK_S, LONGEST_LOOK_S = 1, 60
MOST_OPEN = 100
"""Of as many schedules: more wait. The cursor names them all."""


@dataclass(frozen=True)
class Waits:
    """open: whole ids. wait_s: before the next look, 0 where there is nothing to look at. cursor: all of it."""

    open: tuple[str, ...] = ()
    looks: int = 0
    wait_s: int = 0

    @property
    def cursor(self) -> dict[str, Any]:
        if not self.wait_s:
            return {}
        return {"open": list(self.open), "looks": self.looks, WAITS_FOR: "runs that exclude each other"}


def read(cursor: Mapping[str, Any]) -> Waits:
    return Waits(tuple(cursor.get("open", ())), int(cursor.get("looks", 0)))


def after(before: Waits, open_: tuple[str, ...], *, moved: bool, waits: bool) -> Waits:
    """waits: one has to wait that is not begun. While nothing moves, twice the time goes by from look to look."""
    if not (open_ or waits):
        return Waits()
    looks = 0 if moved else before.looks + 1
    return Waits(open_, looks, min(LONGEST_LOOK_S, FIRST_LOOK_S * 2 ** min(looks, 10)))


def look(world: World, operation: Operation, runs: Sequence[str]) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """Which of them are open still; and those of the ended that did not run, each as what it was to repeat, with why.

    One that the ledger has no more has ended.
    """
    assert operation.tenant is not None
    by_id = {run.id: run for run in store.in_ledger(world.table, operation.tenant, runs)}
    found = [by_id[each] for each in runs if each in by_id]
    return tuple(run.id for run in found if not run.finished), [
        {"runId": str(run.rerun_of), "reason": _why(run)} for run in found if run.finished and run.state not in RAN
    ]


def _why(run: Run) -> str:
    """In words, for who asks what became of it."""
    why = f", {run.reason}" if run.reason is not None else ""
    return f"its run {run.id} ended as {run.state}{why}"


def must_wait(world: World, wanted: Wanted, open_: Collection[str]) -> bool:
    """An earlier one of this redrive has not ended, or the place behind the active run is taken."""
    owner = wanted.run.schedule_id
    if len(open_) >= MOST_OPEN or any(each.partition("_")[0] == owner for each in open_):
        return True
    slot, rows = overlap_slots.look(world.table, wanted.run)
    return slot.queued in rows and not rows[slot.queued].finished
