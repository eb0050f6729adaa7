"""The sizing page's model, held against the service's own executors by a virtual clock."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from sweephand.domain.instants import text
from sweephand.domain.run import Outcome
from sweephand.server.actions.call import Call
from sweephand.server.flow.sweep import sweep
from sweephand.testing.sources import START
from tests.support.endpoint import OK
from tests.support.executors import BATCH_S, RUN_S, executors
from tests.support.stage import Stage
from tools.docs import sizing

ROOT = Path(__file__).resolve().parents[2]
WITHIN = 0.2
DUE = START.replace(microsecond=0) + timedelta(seconds=100)
"""Late enough that a tick sends the burst, and creating it sends nothing."""


def played(stage: Stage, fast: int, number: int, target_s: float) -> list[float]:
    """Returns the lateness of each run of a burst, in order."""
    for begin in range(0, number, 40):
        stage.create(*[{"at": text(DUE)}] * min(40, number - begin))
    late: list[float] = []
    with executors(stage, fast=fast) as simulation:

        def answer(call: Call) -> Outcome:
            late.append((stage.clock.now() - call.planned_at).total_seconds())
            simulation.time.sleep(target_s)
            return OK

        stage.endpoint.answer = answer
        simulation.run(180)
    assert len(late) == number
    return sorted(late)


@pytest.mark.parametrize(
    ("fast", "number", "target_s"),
    [
        (3, 320, 0.12),
        (2, 160, 0.5),
        (2, 200, 5.0),
        (2, 160, 15.0),
        pytest.param(3, 1_000, 0.12, marks=pytest.mark.long),
        pytest.param(5, 600, 2.0, marks=pytest.mark.long),
        pytest.param(2, 400, 15.0, marks=pytest.mark.long),
    ],
)
def test_a_burst_is_as_late_as_the_model_says(stage: Stage, fast: int, number: int, target_s: float) -> None:
    said = sizing.burst(sizing.Size("", fast), number, target_s)

    late = played(stage, fast, number, target_s)

    assert late[number // 2] == pytest.approx(said.p50, rel=WITHIN)
    assert late[int(number * 0.99)] == pytest.approx(said.p99, rel=WITHIN)


def test_the_model_and_the_virtual_executors_assume_the_same_times() -> None:
    assert (sizing.BATCH_S, sizing.RUN_S) == (BATCH_S, RUN_S)


@pytest.mark.parametrize(
    ("size", "number", "limit"),
    [
        ({"fast": 3}, 1, "none"),
        ({"fast": 3}, 50_000, "executors"),
        ({"fast": 500, "units": 40_000, "workers": 5}, 50_000, "their start"),
        ({"fast": 500}, 50_000, "table"),
        ({"fast": 1_000, "units": 40_000}, 3_000_000, "sweep"),
    ],
)
def test_each_limit_is_named_where_it_is_the_first(size: dict[str, int], number: int, limit: str) -> None:
    assert sizing.burst(sizing.Size("", **size), number, 0.12).limit == limit


def test_more_of_anything_never_makes_a_burst_later() -> None:
    sizes = [sizing.Size("", fast, units) for fast in (3, 30, 300) for units in (4_000, 40_000)]

    for number in (1_000, 50_000):
        late = {(each.fast, each.units): sizing.burst(each, number, 0.5).p99 for each in sizes}
        assert all(late[a] >= late[b] for a in late for b in late if a[0] <= b[0] and a[1] <= b[1])


def test_the_pages_name_the_end_that_the_model_computes() -> None:
    ends = [f"{sizing.for_ever(workers, 64):,.0f}" for workers in (1, 5)]

    assert ends == ["5,833", "29,167"]
    for page in ("docs/operate/load.md", "docs/reference/limits.md"):
        assert {"5,800", "29,000", "32,000"} <= {*re.findall(r"[0-9]+,000|5,800", (ROOT / page).read_text())}
    assert sizing.for_ever(sizing.SWEEPERS_MOST, 1_024) == sizing.for_ever(sizing.SWEEPERS_MOST, 64)


def test_the_template_and_the_tick_are_as_the_model_assumes() -> None:
    workers = re.search(r"  SweepWorkers:.*?MaxValue: ([0-9]+)", (ROOT / "template.yaml").read_text(), re.DOTALL)

    assert workers is not None
    assert int(workers[1]) == sizing.SWEEPERS_MOST
    assert sizing.SWEEPS_S == sweep.TICK_DEADLINE_S
