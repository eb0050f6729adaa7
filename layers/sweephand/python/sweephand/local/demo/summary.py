"""The summary of the demo: lateness by the endpoint's clock, early and lost runs. Pure."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sweephand.domain.run import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TERMINAL_NAMES = frozenset(state.value for state in TERMINAL)
# A change of a schedule takes effect after 5 s; the rest allows for a slow start.
SETTLES_IN_S = 10
# Runs planned in this time before the end may still be under way.
GRACE_S = 15


def instant(text: str) -> datetime:
    """Reads an instant of the API (RFC 3339, UTC)."""
    return datetime.fromisoformat(text).astimezone(UTC)


def lateness_ms(planned_at: str, arrived_ms: int) -> int:
    """Returns milliseconds from the planned instant to the arrival, negative if it was early."""
    return arrived_ms - round(instant(planned_at).timestamp() * 1000)


def percentile(values: Sequence[int], share: float) -> int:
    """Returns the percentile by nearest rank. share: 0..1. values: not empty."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True)
class Window:
    """The time that is judged: from the start of the demo to its end."""

    begin: datetime
    end: datetime

    @property
    def seconds(self) -> int:
        return round((self.end - self.begin).total_seconds())


def explained(run: Mapping[str, Any], period_s: int) -> set[datetime]:
    """Returns the instants that a row of the ledger stands for: its own, or all of its range."""
    span = run.get("range")
    if not span:
        return {instant(run["plannedAt"])}
    first, last = instant(run["plannedAt"]), instant(span["until"])
    count = int((last - first).total_seconds()) // period_s + 1
    return {first + timedelta(seconds=period_s * step) for step in range(count)}


def lost(runs: Iterable[Mapping[str, Any]], period_s: int, window: Window) -> int:
    """Counts the occurrences of a series with a fixed period that are missing from the ledger or do not finish.

    The rows themselves determine the grid. The first row may be late by one period and the time that a change takes.
    """
    latest = window.end - timedelta(seconds=GRACE_S)
    rows = list(runs)
    present = {at for run in rows for at in explained(run, period_s) if window.begin <= at <= latest}
    hanging = sum(
        1
        for run in rows
        if run["state"] not in TERMINAL_NAMES
        and window.begin <= instant(run["plannedAt"]) <= window.end - timedelta(seconds=60 + GRACE_S)
    )
    expected_by = window.begin + timedelta(seconds=SETTLES_IN_S + period_s)
    if not present:
        return hanging + (1 + int((latest - expected_by).total_seconds()) // period_s if latest >= expected_by else 0)
    first = min(present)
    before = max(0, math.ceil((first - expected_by).total_seconds() / period_s))
    due = int((latest - first).total_seconds()) // period_s + 1
    return hanging + before + max(0, due - len(present))


@dataclass(frozen=True)
class Summary:
    """The figures of a demo. lateness: of first attempts, in ms by the endpoint's clock. states: finished runs."""

    window: Window
    lateness: Sequence[int]
    lost: int
    states: Mapping[str, int]
    unfinished: int

    @property
    def early(self) -> int:
        return sum(1 for value in self.lateness if value < 0)

    @property
    def good(self) -> bool:
        return self.early == 0 and self.lost == 0 and bool(self.lateness)

    def lines(self) -> list[str]:
        late = self.lateness
        minutes, seconds = divmod(self.window.seconds, 60)
        figures = (
            f"p50 {percentile(late, 0.5)}   p99 {percentile(late, 0.99)}   max {max(late)}   (of {len(late)})"
            if late
            else "none: nothing arrived"
        )
        states = ", ".join(f"{state} {count}" for state, count in sorted(self.states.items())) or "none"
        return [
            f"Demo of {minutes} min {seconds} s, recurring jobs, by the clock of the endpoint:",
            f"  lateness in ms   {figures}",
            f"  early {self.early}   lost {self.lost}",
            f"  runs finished    {states}; under way {self.unfinished}",
        ]


def count_states(runs: Iterable[Mapping[str, Any]]) -> tuple[dict[str, int], int]:
    """Returns (finished runs by state, the number of unfinished runs)."""
    states = Counter(run["state"] for run in runs)
    finished = {state: count for state, count in states.items() if state in TERMINAL_NAMES}
    return finished, sum(states.values()) - sum(finished.values())
