"""Redrives where the runs of a schedule exclude each other: one run ends before the next one begins.

So runs of one redrive never overlap, whatever the overlap policy, and runs that end without having run count as failed.
cursor: `open`, the whole ids of runs that have begun and are not known to have ended; `looks`, how many times in a row
nothing had changed.
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
"""Limit of open runs, each of another schedule; the cursor names them all."""


@dataclass(frozen=True)
class Waits:
    """The open runs, as whole ids, and the seconds until they are checked again (0 where none is open or waits)."""

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
    """Returns the next wait, which doubles while nothing changes. waits: a run that has not begun must wait."""
    if not (open_ or waits):
        return Waits()
    looks = 0 if moved else before.looks + 1
    return Waits(open_, looks, min(LONGEST_LOOK_S, FIRST_LOOK_S * 2 ** min(looks, 10)))


def look(world: World, operation: Operation, runs: Sequence[str]) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """Returns the runs that are still open, and the failed runs whose repetition ended without running, with reasons.

    A run that is no longer in the ledger counts as ended.
    """
    assert operation.tenant is not None
    by_id = {run.id: run for run in store.in_ledger(world.table, operation.tenant, runs)}
    found = [by_id[each] for each in runs if each in by_id]
    return tuple(run.id for run in found if not run.finished), [
        {"runId": str(run.rerun_of), "reason": _why(run)} for run in found if run.finished and run.state not in RAN
    ]


def _why(run: Run) -> str:
    """Returns the reason in words, for the result of the operation."""
    why = f", {run.reason}" if run.reason is not None else ""
    return f"its run {run.id} ended as {run.state}{why}"


def must_wait(world: World, wanted: Wanted, open_: Collection[str]) -> bool:
    """Says whether an earlier run of this redrive is open, or another run already waits for the active one."""
    owner = wanted.run.schedule_id
    if len(open_) >= MOST_OPEN or any(each.partition("_")[0] == owner for each in open_):
        return True
    slot, rows = overlap_slots.look(world.table, wanted.run)
    return slot.queued in rows and not rows[slot.queued].finished
