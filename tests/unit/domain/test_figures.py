"""Figures of runs: percentiles by the nearest rank, and the line through the critical times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.run import Kind, Run, State
from sweephand.domain.runs.figures import Figures, Spread, figures_of

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)


def run(at_s: float = 0, late_s: float = 0, critical_s: float = 1, state: State = State.SUCCESS, **more: Any) -> Run:
    planned = NOON + timedelta(seconds=at_s)
    begun = planned + timedelta(seconds=late_s)
    return Run(
        *("acme", "job", "schedule", "uuid", Kind.SCHEDULED, state, planned),
        started_at=begun,
        finished_at=planned + timedelta(seconds=critical_s),
        **more,
    )


def test_no_runs_give_no_figures() -> None:
    none = Spread(None, None)

    assert figures_of([], 5) == Figures(0, 0, 0, none, none, None)


def test_runs_that_were_not_carried_out_or_have_not_ended_do_not_count() -> None:
    waits = Run("acme", "job", "schedule", "uuid", Kind.SCHEDULED, State.TRIGGERED, NOON, started_at=NOON)

    found = figures_of([run(), waits, run(state=State.SKIPPED), run(state=State.MISSED), run(state=State.ERROR)])

    assert (found.runs, found.failed) == (2, 1)


def test_lateness_uses_the_first_attempt_and_critical_time_uses_all_attempts() -> None:
    first = NOON + timedelta(seconds=2)

    found = figures_of([run(late_s=40, critical_s=50, attempt=3, first_started_at=first)])

    assert (found.retried, found.lateness, found.critical) == (1, Spread(2, 2), Spread(50, 50))


@pytest.mark.parametrize(
    ("count", "p50", "p99"), [(1, 1, 1), (2, 1, 2), (100, 50, 99), (101, 51, 100), (1_000, 500, 990)]
)
def test_percentiles_are_nearest_ranks(count: int, p50: float, p99: float) -> None:
    found = figures_of(run(critical_s=each + 1) for each in range(count))

    assert found.critical == Spread(p50, p99)


@pytest.mark.parametrize(
    ("criticals", "limit_s", "breach_s"),
    [
        ([1, 2, 3], 13, 100),  # a second more with each run, and one run each ten seconds
        ([1, 2, 3], 3, 0),
        ([3, 2, 1], 13, None),
        ([2, 2, 2], 13, None),
        ([2], 13, None),
    ],
)
def test_a_breach_is_where_the_line_meets_the_limit(
    criticals: list[int], limit_s: float, breach_s: float | None
) -> None:
    ended = [run(at_s=10 * n - critical, critical_s=critical) for n, critical in enumerate(criticals)]

    found = figures_of(reversed(ended), limit_s).breach_in_s

    assert found == (None if breach_s is None else pytest.approx(breach_s))


def test_without_a_limit_there_is_no_breach() -> None:
    assert figures_of([run(critical_s=1), run(at_s=10, critical_s=9)]).breach_in_s is None


def test_a_breach_that_is_years_away_is_not_reported() -> None:
    assert figures_of([run(critical_s=1), run(at_s=86_400, critical_s=1.001)], 1_000).breach_in_s is None


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e4)), max_size=30), st.floats(1, 86_400))
def test_a_breach_is_never_in_the_past_or_beyond_the_reported_range(
    points: list[tuple[float, float]], limit_s: float
) -> None:
    found = figures_of((run(at_s=at, critical_s=critical) for at, critical in points), limit_s).breach_in_s

    assert found is None or 0 <= found <= 30 * 86_400
