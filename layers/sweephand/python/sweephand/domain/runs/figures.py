"""Figures of runs: how late they began, how long they took in all, and when a limit on that time will be exceeded.

Source: critical time and its estimate in NServiceBus's metrics. Here the time counts from the planned instant, so that
a requested delay does not count. All timestamps come from one clock, that of the service.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from statistics import fmean
from typing import NamedTuple

from sweephand.base.records import dataclass
from sweephand.domain.run import FAILED, RAN, Run

NEVER_S = 30 * 86_400
"""An estimate that lies further ahead has no value."""


class Spread(NamedTuple):
    """The median and the 99th percentile in seconds, by nearest rank; None if there are no values."""

    p50: float | None
    p99: float | None


@dataclass(frozen=True)
class Figures:
    """The figures of some runs. runs: how many ended by success or failure. retried: how many had several attempts.

    lateness: from the planned instant to the first attempt. critical: from the planned instant to the end. breach_in_s:
    the seconds until the critical time reaches the limit if it keeps growing at its present rate; 0 if it already has;
    None if it does not grow.
    """

    runs: int
    failed: int
    retried: int
    lateness: Spread
    critical: Spread
    breach_in_s: float | None


def figures_of(runs: Iterable[Run], limit_s: float | None = None) -> Figures:
    """Returns the figures of those runs that were carried out and have ended."""
    late, points, failed, retried = [], [], 0, 0
    for run in runs:
        if run.state not in RAN or run.started_at is None or run.finished_at is None:
            continue
        late.append(((run.first_started_at or run.started_at) - run.planned_at).total_seconds())
        points.append((run.finished_at.timestamp(), (run.finished_at - run.planned_at).total_seconds()))
        failed += run.state in FAILED
        retried += run.attempt > 1
    points.sort()
    return Figures(
        runs=len(points),
        failed=failed,
        retried=retried,
        lateness=_spread(late),
        critical=_spread([critical for _, critical in points]),
        breach_in_s=None if limit_s is None else _breach(points, limit_s),
    )


def _spread(seconds: Sequence[float]) -> Spread:
    ordered = sorted(seconds)
    if not ordered:
        return Spread(None, None)
    return Spread(*(ordered[max(0, ceil(len(ordered) * part) - 1)] for part in (0.5, 0.99)))


def _breach(points: Sequence[tuple[float, float]], limit_s: float) -> float | None:
    """Returns the seconds until the line through the points (end, critical time) meets the limit, by least squares."""
    if not points:
        return None
    last_s = points[-1][0]
    if points[-1][1] >= limit_s:
        return 0.0
    at = [each - last_s for each, _ in points]
    mean_at, mean = fmean(at), fmean(critical for _, critical in points)
    spread = sum((each - mean_at) ** 2 for each in at)
    if not spread:
        return None
    slope = sum((each - mean_at) * (critical - mean) for each, (_, critical) in zip(at, points, strict=True)) / spread
    now_s = mean - slope * mean_at
    if slope <= 0 or (limit_s - now_s) / slope > NEVER_S:
        return None
    return max(0.0, (limit_s - now_s) / slope)
