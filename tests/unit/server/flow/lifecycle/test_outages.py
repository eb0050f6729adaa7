"""An outage of the tick, and one of the executors, under each policy: exactly what runs, and how the rest stands."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.server.flow.jobs.lookup import Planned
from tests.support.stage import Stage, stage
from tests.unit.server.flow.common import MINUTE

EVERY = 8 * MINUTE
"""So that of each outage below the last missed occurrence is four minutes old, give or take a second."""

LASTS = {"19 min 59 s": 1_199, "20 min": 1_200, "1 h": 3_600, "25 h": 90_000}
RUNS = {"all": slice(None), "the last": slice(-1, None), "none": slice(0), "the last two": slice(-2, None)}

OF_THE_TICK = {
    ("sap", "19 min 59 s"): "all",
    ("sap", "20 min"): "the last",
    ("sap", "1 h"): "the last",
    ("sap", "25 h"): "the last",
    ("all", "19 min 59 s"): "all",
    ("all", "20 min"): "all",
    ("all", "1 h"): "all",
    ("all", "25 h"): "all",
    ("latest", "19 min 59 s"): "the last",
    ("latest", "20 min"): "the last",
    ("latest", "1 h"): "the last",
    ("latest", "25 h"): "the last",
    ("skip", "19 min 59 s"): "none",
    ("skip", "20 min"): "none",
    ("skip", "1 h"): "none",
    ("skip", "25 h"): "none",
}
OF_THE_EXECUTORS = {
    **OF_THE_TICK,
    ("sap", "20 min"): "the last two",
    ("sap", "1 h"): "the last two",
    ("sap", "25 h"): "the last two",
}
"""Each message is judged by its own age: those of 4 and 12 minutes are under twenty."""


def rows(table: dict[tuple[str, str], str]) -> list[object]:
    return [pytest.param(policy, LASTS[age], RUNS[ran], id=f"{policy}, {age}") for (policy, age), ran in table.items()]


def every_eight_minutes(scene: Stage, policy: str) -> Planned:
    return scene.create({"every": "PT8M"}, policies={"misfire": {"type": policy, "ratePerMinute": 600}})


def time_goes_by(scene: Stage, until: datetime, *, sweeping: bool = True, executing: bool = True) -> None:
    """Moves the clock, with a tick a minute and delivery of what is visible, except for what is away."""
    while scene.clock.now() < until:
        scene.clock.move_to(min(scene.clock.now() + MINUTE, until))
        if sweeping:
            scene.tick()
        if executing:
            scene.deliver_all()


def single(scene: Stage, planned: Planned) -> dict[datetime, Run]:
    return {run.planned_at: run for run in scene.runs(planned, Kind.SCHEDULED) if run.range_count is None}


def instants(first: datetime, last: datetime) -> list[datetime]:
    return [first + n * EVERY for n in range((last - first) // EVERY + 1)]


def nothing_else_happened(scene: Stage, planned: Planned, missed: list[datetime]) -> None:
    """Checks for one row for each instant at most, one call for each success, and fresh ones on time; the audit has
    nothing to say.
    """
    runs = single(scene, planned)
    called = [received.call.planned_at for received in scene.endpoint.received]
    assert sorted(called) == [at for at, run in runs.items() if run.state is State.SUCCESS]
    fresh = instants(missed[-1] + EVERY, scene.clock.now())
    assert [(runs[at].state, runs[at].reason) for at in fresh] == [(State.SUCCESS, Reason.ON_TIME)] * len(fresh)
    assert len(fresh) > 1
    totals, fold = scene.totals(planned), scene.fold(planned)
    assert (totals.ended, totals.planned - totals.open) == (fold.ended, fold.ended)
    found = scene.audit()
    assert (found.lost, found.corrected) == (0, 0)


def whole(left_out: list[datetime]) -> list[object]:
    """Returns first, last and number of the one line that stands for all; no line for none."""
    return [(left_out[0], left_out[-1], len(left_out))] if left_out else []


@pytest.mark.parametrize(("policy", "seconds", "run"), rows(OF_THE_TICK))
def test_the_policy_judges_all_occurrences_together_after_an_outage_of_the_tick(
    policy: str, seconds: int, run: slice
) -> None:
    """seconds: the age of the oldest occurrence that was not sent, at the first tick. Occurrences that are left out are
    one line.
    """
    with stage(shards=1) as scene:
        planned = every_eight_minutes(scene, policy)
        time_goes_by(scene, scene.clock.now() + 3 * MINUTE)
        first = scene.stored(planned).next_run_at
        assert first is not None
        back_at = first + timedelta(seconds=seconds)
        missed = instants(first, back_at)

        time_goes_by(scene, back_at, sweeping=False)
        scene.run(18 * 60)

        runs = single(scene, planned)
        assert {at: runs[at].state for at in missed if at in runs} == dict.fromkeys(missed[run], State.SUCCESS)
        left_out = [at for at in missed if at not in missed[run]]
        lines = [run for run in scene.runs(planned) if run.range_count is not None]
        assert [(line.state, line.reason) for line in lines] == [(State.MISSED, Reason.SERVICE_OUTAGE)][: len(left_out)]
        assert [(line.planned_at, line.range_until, line.range_count) for line in lines] == whole(left_out)
        assert scene.totals(planned).missed == len(left_out)
        nothing_else_happened(scene, planned, missed)


@pytest.mark.parametrize(("policy", "seconds", "run"), rows(OF_THE_EXECUTORS))
def test_the_policy_judges_each_occurrence_by_its_age_after_an_outage_of_the_executors(
    policy: str, seconds: int, run: slice
) -> None:
    """seconds: the age of the oldest message as the executors come back. Each that is left out has its own row."""
    with stage(shards=1) as scene:
        planned = every_eight_minutes(scene, policy)
        first = planned.schedules[0].next_run_at
        assert first is not None
        back_at = first + timedelta(seconds=seconds)
        missed = instants(first, back_at)

        time_goes_by(scene, back_at, executing=False)
        scene.run(18 * 60)

        runs = single(scene, planned)
        ended = {at: (runs[at].state, runs[at].reason) for at in missed}
        left_out = [at for at in missed if at not in missed[run]]
        assert ended == {
            **dict.fromkeys(left_out, (State.MISSED, Reason.SERVICE_OUTAGE)),
            **dict.fromkeys(missed[run], (State.SUCCESS, Reason.LATE)),
        }
        assert all(line.range_count is None for line in scene.runs(planned))
        for at in left_out:
            assert str(runs[at].message).startswith("an executor received it ")
        assert scene.totals(planned).missed_sent == len(left_out)
        nothing_else_happened(scene, planned, missed)
