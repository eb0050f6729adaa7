"""The demo's report: lateness, early and lost runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.local.demo.__main__ import LATE_S, Demo
from sweephand.local.demo.jobs import jobs
from sweephand.local.demo.summary import Summary, Window, count_states, lateness_ms, lost, percentile

BEGIN = datetime(2027, 1, 1, 12, 0, 3, tzinfo=UTC)
WINDOW = Window(BEGIN, BEGIN + timedelta(seconds=300))


def run(second, state="SUCCESS", **more):
    """Makes a run planned so many seconds after the demo began."""
    at = (BEGIN + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return {"plannedAt": at, "state": state, **more}


def series(first=10, period=10, until=300):
    return [run(second) for second in range(first, until, period)]


def test_an_unbroken_series_lost_nothing():
    assert lost(series(), 10, WINDOW) == 0


@pytest.mark.parametrize("missing", [[5], [5, 6, 7], [12, 20]])
def test_each_gap_in_a_series_counts_as_lost(missing):
    runs = [one for number, one in enumerate(series()) if number not in missing]

    assert lost(runs, 10, WINDOW) == len(missing)


def test_a_series_that_starts_too_late_lost_its_beginning():
    assert lost(series(first=20), 10, WINDOW) == 0
    assert lost(series(first=50), 10, WINDOW) == 3


def test_a_series_that_stops_lost_its_end():
    # Planned at 210 and later is missing; what is planned in the last 15 s may be under way: up to 280 counts.
    assert lost(series(until=205), 10, WINDOW) == 8


def test_a_series_that_never_runs_lost_everything():
    assert lost([], 60, WINDOW) == 4
    assert lost([], 60, Window(BEGIN, BEGIN + timedelta(seconds=60))) == 0


def test_a_run_that_never_ends_is_lost_but_one_that_waits_for_its_retry_is_not():
    runs = series()
    runs[3] = run(40, "TRIGGERED")
    runs[27] = run(280, "RETRY_WAIT")

    assert lost(runs, 10, WINDOW) == 1


def test_a_range_counts_for_all_its_occurrences():
    missed = run(60, "MISSED", range={"until": run(110)["plannedAt"], "count": 6})
    runs = [one for number, one in enumerate(series()) if not 5 <= number <= 10]

    assert lost(runs, 10, WINDOW) == 6
    assert lost([*runs, missed], 10, WINDOW) == 0


def test_occurrences_planned_before_the_demo_began_are_not_judged():
    assert lost([run(-300, "TRIGGERED"), *series()], 10, WINDOW) == 0


def test_lateness_is_signed():
    at = int(BEGIN.timestamp() * 1000)

    assert lateness_ms("2027-01-01T12:00:03Z", at + 412) == 412
    assert lateness_ms("2027-01-01T12:00:03.000Z", at - 1) == -1


@given(st.lists(st.integers(-5, 5_000), min_size=1), st.floats(0, 1))
def test_a_percentile_is_the_smallest_value_that_covers_its_share(values, share):
    found = percentile(values, share)

    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9
    smaller = [value for value in values if value < found]
    assert not smaller or sum(value <= max(smaller) for value in values) < share * len(values) + 1e-9


@pytest.mark.parametrize(
    ("lateness", "lost_runs", "good"),
    [([0, 900], 0, True), ([-1, 900], 0, False), ([5], 1, False), ([], 0, False)],
)
def test_an_early_lost_or_missing_run_is_not_good(lateness, lost_runs, good):
    summary = Summary(WINDOW, lateness, lost_runs, {"SUCCESS": 2}, 0)

    assert summary.good is good
    assert f"early {sum(value < 0 for value in lateness)}   lost {lost_runs}" in "\n".join(summary.lines())


def test_the_summary_fits_a_terminal_of_80_columns():
    states = {"SUCCESS": 9_999, "REQUEST_ERROR": 999, "ERROR": 99}

    assert max(map(len, Summary(WINDOW, [99_999] * 9_999, 99, states, 99).lines())) <= 80


def test_runs_are_counted_by_state_and_active_runs_separately():
    runs = [run(1), run(2), run(3, "ERROR"), run(4, "RETRY_WAIT"), run(5, "TRIGGERED")]

    assert count_states(runs) == ({"SUCCESS": 2, "ERROR": 1}, 2)


class Later:
    """A clock that moves by its sleeps, and a follower to which a run of demo-beat comes so many seconds late."""

    def __init__(self, late_s):
        self.seconds, self.late_s, self.runs = 0.0, late_s, {}

    def now(self):
        return BEGIN + timedelta(seconds=self.seconds)

    def monotonic(self):
        return self.seconds

    def sleep(self, seconds):
        self.seconds += seconds

    def step(self):
        there = [second for second in range(7, 100, 10) if second + self.late_s <= self.seconds]
        self.runs = {second: run(second, job="demo-beat", jobId="J", scheduleId="S") for second in there}

    def arrived_late_ms(self, _run):
        return int(self.late_s * 1000)


@pytest.mark.parametrize(("late_s", "lost_runs"), [(1, 0), (50, 0), (LATE_S + 40, 1)])
def test_a_report_waits_a_minute_for_late_runs_before_it_calls_them_lost(late_s, lost_runs):
    demo, later = Demo.__new__(Demo), Later(late_s)
    demo._clock = demo._follower = later
    demo._begin, demo._end, demo._ids = BEGIN, None, {"demo-beat": "J"}
    demo._jobs = [each for each in jobs("http://x", "http://y") if each.name == "demo-beat"]

    demo.follow(35)

    assert demo.judge().lost == lost_runs
    assert demo.judge().window.seconds == 35
