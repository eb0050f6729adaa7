"""A model of disabled collections: whatever is done in whatever order, no occurrence is lost, doubled or silent."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from sweephand.base.errors import SweephandError
from sweephand.domain.collection import Collection
from sweephand.domain.run import Reason, State
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.sweep import sweep
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.index import suspended
from sweephand.testing.sources import START
from sweephand.testing.taps import Act, Fault, Passing
from tests.faults.playing import play
from tests.support.stage import TENANT, Stage, stage
from tests.support.taps import Crash, crash_after, crash_before

NOON = START.replace(microsecond=0)
MINUTE = timedelta(minutes=1)
PLACES = ("default", "other")


class HeldSchedules(RuleBasedStateMachine):
    """One minutely schedule, two collections, a tenant. Time goes on by ticks; calls are cut off anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open = ExitStack()
        self.stage: Stage = self.open.enter_context(stage(shards=1))
        self.old_list = suspended.read(self.stage.world.table)
        self.planned: Planned

    def teardown(self) -> None:
        try:
            self._calm_down()
            self._check()
        finally:
            self.open.close()

    @initialize(place=st.sampled_from(PLACES))
    def begin(self, place: str) -> None:
        tenancy.create_collection(self.stage.world, Collection(TENANT, "other"))
        self.planned = self.stage.create({"cron": "* * * * *"}, collection=place)

    @rule(
        place=st.sampled_from(PLACES), on=st.booleans(), crash=st.none() | st.tuples(st.integers(0, 6), st.booleans())
    )
    def switch(self, place: str, on: bool, crash: tuple[int, bool] | None) -> None:
        self._cut(crash, lambda: self._switch(place, on=on))

    @rule(on=st.booleans(), crash=st.none() | st.tuples(st.integers(0, 6), st.booleans()))
    def switch_tenant(self, on: bool, crash: tuple[int, bool] | None) -> None:
        self._cut(crash, lambda: tenancy.switch_tenant(self.stage.world, TENANT, on=on))

    @rule(seconds=st.sampled_from([1, 20, 61, 200]))
    def time_passes(self, seconds: int) -> None:
        self.stage.run(seconds, most=1)

    @rule(seconds=st.sampled_from([5, 90, 3_700]))
    def nothing_works(self, seconds: int) -> None:
        self.stage.pass_time(seconds)

    @rule(crash=st.tuples(st.integers(0, 8), st.booleans()))
    def tick_is_cut(self, crash: tuple[int, bool]) -> None:
        self._cut(crash, self.stage.tick)

    @rule(crash=st.tuples(st.integers(0, 12), st.booleans()))
    def delivery_is_cut(self, crash: tuple[int, bool]) -> None:
        self._cut(crash, lambda: self.stage.deliver_all(most=1))

    @rule()
    def list_is_read(self) -> None:
        self.old_list = suspended.read(self.stage.world.table)

    @rule()
    def tick_with_an_old_list(self) -> None:
        real = sweep.suspended.read
        sweep.suspended.read = lambda _: self.old_list
        try:
            self.stage.tick()
        finally:
            sweep.suspended.read = real

    @rule(place=st.sampled_from(PLACES))
    @precondition(lambda self: hasattr(self, "planned"))
    def move(self, place: str) -> None:
        self._cut(None, lambda: self.stage.change(self.planned, collection=place))

    def _switch(self, place: str, *, on: bool) -> None:
        tenancy.change_collection(
            self.stage.world, TENANT, place, lambda before: tenancy.enabled(before, on=on), if_match=None
        )

    def _cut(self, crash: tuple[int, bool] | None, step: Callable[[], object]) -> None:
        seen = 0
        fault: Fault = crash_after if crash and crash[1] else crash_before

        def only(passing: Passing, act: Act) -> object:
            nonlocal seen
            seen += 1
            return fault(passing, act) if crash is not None and seen == crash[0] + 1 else act()

        try:
            with self.stage.taps.faulty(only):
                step()
        except (Crash, SweephandError):
            pass

    def _calm_down(self) -> None:
        tenancy.switch_tenant(self.stage.world, TENANT, on=True)
        for place in PLACES:
            self._switch(place, on=True)
        self.stage.run(400, most=1)
        there = self.stage.stored(self.planned)
        if there.held_from is not None and there.next_run_at is not None:
            # A sweep that has read a list older than any tick releases it: the row finds out without it.
            self.stage.pass_time((there.next_run_at - self.stage.clock.now()).total_seconds())
            self.stage.run(400, most=1)

    def _check(self) -> None:
        """Checks that every minute has one row or lies in one line, nothing was early, and the totals match the
        rows.
        """
        there = self.stage.stored(self.planned)
        now = self.stage.clock.now()
        assert there.held_from is None
        assert there.unsent_from is not None
        assert there.unsent_from > now
        rows = self.stage.runs(self.planned)
        runs = {run.planned_at: run for run in rows if run.range_count is None}
        told: list[datetime] = list(runs)
        for line in rows:
            if line.range_count is None:
                continue
            assert line.range_until is not None
            within = _minutes(line.planned_at - MINUTE, line.range_until)
            left_out = [at for at in within if at not in runs]
            assert line.reason in {Reason.DISABLED, Reason.SERVICE_OUTAGE}
            assert len(left_out) == line.range_count, (line.planned_at, line.range_until, line.range_count)
            told += left_out
        assert sorted(told) == _minutes(NOON, now)
        ends = {State.SUCCESS, State.MISSED}
        assert all(run.state in ends or run.reason is Reason.DISABLED or run.lost for run in runs.values())
        ahead = len([at for at in _minutes(now, there.unsent_from) if at < there.unsent_from])
        totals = self.stage.totals(self.planned)
        assert (totals.planned - ahead, totals.ended) == (len(runs), len(runs))
        assert all(each.call.planned_at <= each.at for each in self.stage.endpoint.received)
        assert not [key for key in self.stage.waiting() if "RELEASE" in key[0] or "RUN#" in key[1]]


def _minutes(after: datetime, until: datetime) -> list[datetime]:
    first = after.replace(second=0, microsecond=0) + MINUTE
    return [first + n * MINUTE for n in range(int((until - first) / MINUTE) + 1)] if first <= until else []


@pytest.mark.scaled
def test_disabling_never_loses_repeats_or_hides_an_occurrence() -> None:
    play(HeldSchedules, examples=40, steps=14, derandomize=True)


@pytest.mark.long
def test_disabling_never_loses_repeats_or_hides_an_occurrence_in_many_histories() -> None:
    play(HeldSchedules, examples=150, steps=25, derandomize=False)
