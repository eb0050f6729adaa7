"""More changes within minutes than a row lists, while no executor works: each occurrence keeps to its own plan."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

import pytest

from sweephand.domain.job import DEFAULT_COLLECTION, Pause
from sweephand.domain.run import State
from sweephand.domain.schedule import GENERATIONS_KEPT
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.tenants import tenancy
from tests.support.stage import TENANT, Stage
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, exact

EVERY_S, LASTS_S = 10, 600
SEAM = timedelta(seconds=8)
"""A plan that ends may still send occurrences of the next seconds."""


class Switch(Protocol):
    """A way to switch a job off and on."""

    def __call__(self, stage: Stage, planned: Planned, *, on: bool) -> None: ...


def pauses(stage: Stage, planned: Planned, *, on: bool) -> None:
    stage.set_state(planned, pause=None if on else Pause(stage.clock.now()))


def switches(stage: Stage, planned: Planned, *, on: bool) -> None:
    stage.set_state(planned, active=on)


def disables(stage: Stage, _planned: Planned, *, on: bool) -> None:
    edit = partial(tenancy.enabled, on=on)
    tenancy.change_collection(stage.world, TENANT, DEFAULT_COLLECTION, edit, None)


def disables_tenant(stage: Stage, _planned: Planned, *, on: bool) -> None:
    tenancy.switch_tenant(stage.world, TENANT, on=on)


def without_executors(stage: Stage, seconds: float) -> None:
    """Lets time go by with a tick each minute, while nobody receives a message."""
    until = stage.clock.now() + timedelta(seconds=seconds)
    while stage.clock.now() < until:
        following = NOON + ((stage.clock.now() - NOON) // MINUTE + 1) * MINUTE
        stage.clock.move_to(min(until, following))
        if stage.clock.now() == following:
            stage.tick()


def switched_often(stage: Stage, planned: Planned, switch: Switch, times: int) -> list[tuple[datetime, datetime]]:
    """Switches off and on again so often in ten minutes. Returns the times when it was off."""
    each_s = LASTS_S / times / 2
    off = []
    for _ in range(times):
        without_executors(stage, each_s)
        begins = stage.clock.now()
        switch(stage, planned, on=False)
        without_executors(stage, each_s)
        switch(stage, planned, on=True)
        off.append((begins, stage.clock.now()))
    return off


def within(times: Sequence[tuple[datetime, datetime]], at: datetime, seam: timedelta) -> bool:
    return any(begin + seam < at <= end for begin, end in times)


def recorded(stage: Stage, planned: Planned, at: datetime) -> bool:
    return any(run.planned_at <= at <= (run.range_until or run.planned_at) for run in stage.runs(planned))


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("times", "misfire"), [(25, "all"), (25, "latest"), (25, "skip"), (100, "all")])
@pytest.mark.parametrize("switch", [pauses, switches, disables, disables_tenant])
def test_often_switched_off_without_executors_each_occurrence_has_its_row_and_none_of_an_off_time_is_called(
    stage: Stage, switch: Switch, times: int, misfire: str
) -> None:
    planned = stage.create({"every": f"PT{EVERY_S}S", "align": "epoch"}, policies={"misfire": {"type": misfire}})
    stage.tick()

    off = switched_often(stage, planned, switch, times)
    stage.run(300, tick_in_s=0)

    called = stage.endpoint.planned
    assert len(called) == len(set(called))
    instants = [NOON + n * EVERY_S * SECOND for n in range(1, LASTS_S // EVERY_S)]
    assert [at for at in instants if not recorded(stage, planned, at)] == []
    own = switch in {pauses, switches}
    assert [at for at in called if within(off, at, SEAM if own else timedelta(0))] == []
    if own and misfire == "all":
        assert [at for at in instants if at not in called and not within(off, at, timedelta(0))] == []


def test_each_occurrence_of_a_timing_that_is_changed_often_runs_by_its_own_plan(stage: Stage) -> None:
    planned = stage.create({"every": "PT5S", "align": "epoch"}, policies={"misfire": {"type": "all"}})
    stage.tick()

    for n in range(100):
        without_executors(stage, LASTS_S / 100)
        stage.change(
            planned,
            timings=[{"every": f"PT{5 + n % 2 * 2}S", "align": "epoch"}],
            policies={"misfire": {"type": "all"}},
        )
    listed = len(stage.stored(planned).ended_at)
    stage.run(120, tick_in_s=0)
    stage.set_state(planned, active=False)
    stage.run(300)

    assert listed == GENERATIONS_KEPT
    due = [run for run in stage.runs(planned) if run.planned_at <= NOON + LASTS_S * SECOND]
    assert {run.state for run in due} == {State.SUCCESS}
    exact(stage, planned)
