"""Read-only lists and totals: bounded queries by key, never a scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweephand.domain.run import TERMINAL, Kind, Run
from sweephand.domain.schedule import Schedule
from sweephand.store import keys, ledger
from sweephand.store.conditional import Table
from sweephand.store.table import RunItem, StatsItem


@dataclass(frozen=True)
class Totals:
    """planned: occurrences that were sent. ended: those with an end. missed: never sent, by the misfire policy."""

    planned: int = 0
    ended: int = 0
    failed: int = 0
    failed_attempts: int = 0
    skipped: int = 0
    missed: int = 0

    @property
    def open(self) -> int:
        return max(0, self.planned - self.ended)

    @property
    def succeeded(self) -> int:
        return max(0, self.ended - self.failed - self.skipped)

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.planned + other.planned,
            self.ended + other.ended,
            self.failed + other.failed,
            self.failed_attempts + other.failed_attempts,
            self.skipped + other.skipped,
            self.missed + other.missed,
        )


def totals_of(table: Table, schedule: Schedule) -> Totals:
    """Exact at once: the settled part from the statistics, the rest counted in the ledger after settled_to.

    Cost: one read and one query over the runs since the audit last moved settled_to.
    """
    stats = table.get(StatsItem, keys.job(schedule.tenant, schedule.job_id), keys.stats(schedule.id))
    settled_total = stats.settled_total if stats else 0
    settled_to = stats.settled_to if stats else None
    ended = settled_total + _ended_after(table, schedule.tenant, schedule.id, settled_to)
    if stats is None:
        return Totals(planned=schedule.planned_total, ended=ended)
    return Totals(
        planned=schedule.planned_total,
        ended=ended,
        failed=stats.failed,
        failed_attempts=stats.failed_attempts,
        skipped=stats.skipped,
        missed=stats.missed,
    )


def _ended_after(table: Table, tenant: str, schedule_id: str, settled_to: int | None) -> int:
    """Terminal scheduled rows planned after settled_to (epoch ms; None: all)."""
    first = keys.run("") if settled_to is None else keys.run(_after(settled_to))
    rows = table.query_all(keys.runs(tenant, schedule_id), RunItem.sk.between(first, keys.run("g")), consistent=True)
    return sum(
        1
        for row in rows
        if "state" in row
        and row["state"]["S"] in TERMINAL
        and row["kind"]["S"] == Kind.SCHEDULED.value
        and "range_count" not in row
    )


def _after(instant_ms: int) -> str:
    """The first text of a run's UUID after all those of this instant."""
    number = f"{instant_ms + 1:012x}"
    return f"{number[:8]}-{number[8:]}"


def runs_page(
    table: Table, tenant: str, owner: str, *, limit: int, before: Mapping[str, Any] | None = None
) -> tuple[list[Run], Mapping[str, Any] | None]:
    """A page of a schedule's (or a job's own) runs, newest first, and where to go on. limit: rows that are runs."""
    found: list[Run] = []
    start = before
    while True:
        items, start = table.query(
            keys.runs(tenant, owner),
            RunItem.sk.startswith("RUN#"),
            forward=False,
            limit=limit - len(found) + 1 if before is None else limit - len(found),
            start=start,
            consistent=True,
        )
        found += [ledger.run_of(RunItem.from_raw_data(item)) for item in items if "state" in item]
        if start is None or len(found) >= limit:
            return found[:limit], start
