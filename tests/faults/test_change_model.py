"""Any history of edits, pauses, stops and deletes around the instants, cut off anywhere: what was planned is what ran.

A job with one schedule is changed in any order; the service ticks and delivers in between. Each step may die at any of
its calls. In the end every instant of each generation's own rule, from its beginning to its end, has exactly one row
or lies in one line; so has each instant that an answer named and no later request took back; what fell due while it was
off was not called afterwards; totals are a fold over the ledger; nothing is open or waits; nothing was called early or
twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from sweephand.domain.instants import from_s
from sweephand.domain.job import Pause
from sweephand.domain.occurrences import series, upcoming
from sweephand.domain.run import Kind, Run, State
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.schedules.rule import between
from sweephand.schedules.timing import load
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.store.jobs import jobs
from tests.faults.at_calls import Faults, surviving
from tests.faults.playing import play
from tests.support.stage import TENANT, stage
from tests.unit.server.flow.common import exact

TIMINGS = [{"cron": "* * * * *"}, {"cron": "*/2 * * * *"}, {"every": "PT20S", "align": "epoch"}]
SECOND = timedelta(seconds=1)

timings = st.sampled_from(TIMINGS)
cuts = st.none() | st.tuples(st.integers(0, 9), st.sampled_from(["crash-before", "crash-after"]))
"""Which call of a step dies: before it took effect, or after. None: none of them."""


@dataclass(frozen=True)
class Generation:
    """A generation of a schedule's row. on: was it active? asked_at: when the change was asked for that began it."""

    packed: str
    on: bool
    first_at: datetime | None
    asked_at: datetime


@dataclass
class Life:
    """One job under the name. announced: instants that an answer named, with the generation that it showed.

    off: from when to when the schedule was off.
    """

    planned: Planned
    generations: dict[int, Generation] = field(default_factory=dict)
    announced: set[tuple[datetime, int]] = field(default_factory=set)
    off: list[tuple[datetime, datetime]] = field(default_factory=list)


class Changes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._stage = stage(shards=1)
        self.scene = self._stage.__enter__()
        self.lives: list[Life] = []
        self.pause_ends_at: datetime | None = None
        self.create(TIMINGS[0], None)

    def teardown(self) -> None:
        try:
            self.check()
        finally:
            self._stage.__exit__(None, None, None)

    # State

    def job_ids(self) -> set[str]:
        """Returns the ids of all existing jobs; a create that died may have made one."""
        return {item["job_id"]["S"] for item in self.scene.items() if item["sk"]["S"] == "JOB"}

    @property
    def life(self) -> Life | None:
        life = self.lives[-1] if self.lives else None
        return life if life and life.planned.job.id in self.job_ids() else None

    def row(self, life: Life) -> Schedule | None:
        (schedule,) = life.planned.schedules
        with self.scene.untapped():
            return jobs.read_schedule(self.scene.world.table, TENANT, schedule.job_id, schedule.id)

    def note(self) -> None:
        """Notes the state. A step makes one generation at most: so each of them is seen."""
        life = self.life
        there = self.row(life) if life else None
        if life is None or there is None:
            return
        now = self.scene.clock.now()
        newest = max(life.generations, default=0)
        assert there.generation - newest <= 1
        if there.generation > newest:
            began = Generation(there.packed, there.state is ScheduleState.ACTIVE, there.first_at, there.modified_at)
            if newest and began.on and not life.generations[newest].on:
                ends_at = began.asked_at if self.pause_ends_at is None else min(began.asked_at, self.pause_ends_at)
                life.off.append((self.off_since(life), ends_at))
            life.generations[there.generation] = began
        for instant in upcoming.next_runs(there, load(there.packed), now, 3).instants:
            life.announced.add((instant, there.generation))

    def off_since(self, life: Life) -> datetime:
        """Returns when the first of the newest generations that are off was requested."""
        since = life.generations[max(life.generations)].asked_at
        for number in sorted(life.generations, reverse=True):
            if life.generations[number].on:
                break
            since = life.generations[number].asked_at
        return since

    def cut(self, step: Callable[[], Any], cut: tuple[int, str] | None) -> None:
        with self.scene.taps.faulty(Faults([cut] if cut else [])):
            surviving(step)
        self.note()

    # Changes

    @precondition(lambda self: self.life is None)
    @rule(timing=timings, cut=cuts)
    def create(self, timing: dict[str, Any], cut: tuple[int, str] | None) -> None:
        before = self.job_ids()
        self.cut(lambda: self.scene.create(timing, name="it"), cut)
        for job_id in self.job_ids() - before:
            with self.scene.untapped():
                job = jobs.read_job(self.scene.world.table, TENANT, job_id)
                assert job is not None
                there = jobs.read_schedules(self.scene.world.table, TENANT, job_id)
            self.lives.append(Life(Planned(job, tuple(there))))
            self.note()

    @precondition(lambda self: self.life is not None)
    @rule(timing=timings, cut=cuts)
    def edit(self, timing: dict[str, Any], cut: tuple[int, str] | None) -> None:
        self.cut(lambda: self.scene.change(self.lives[-1].planned, timings=[timing]), cut)

    @precondition(lambda self: self.life is not None)
    @rule(active=st.booleans(), cut=cuts)
    def switch(self, active: bool, cut: tuple[int, str] | None) -> None:
        self.cut(lambda: self.scene.set_state(self.lives[-1].planned, active=active), cut)

    @precondition(lambda self: self.life is not None)
    @rule(length_s=st.none() | st.integers(1, 300), cut=cuts)
    def pause(self, length_s: int | None, cut: tuple[int, str] | None) -> None:
        now = self.scene.clock.now()
        until = None if length_s is None else now.replace(microsecond=0) + (length_s + 1) * SECOND
        self.pause_ends_at = until
        self.cut(lambda: self.scene.set_state(self.lives[-1].planned, pause=Pause(now, until=until)), cut)

    @precondition(lambda self: self.life is not None)
    @rule(cut=cuts)
    def resume(self, cut: tuple[int, str] | None) -> None:
        self.cut(lambda: self.scene.set_state(self.lives[-1].planned, pause=None), cut)

    @precondition(lambda self: self.life is not None)
    @rule(cut=cuts)
    def delete(self, cut: tuple[int, str] | None) -> None:
        self.cut(lambda: self.scene.delete(self.lives[-1].planned), cut)

    @precondition(lambda self: self.life is not None)
    @rule()
    def delete_behind_the_gate(self) -> None:
        """Deletes the job after an executor has looked and before it claims; a second copy of the message looks
        again.
        """
        planned = self.lives[-1].planned

        def gone(passing: Any, act: Callable[[], Any]) -> Any:
            found = act()
            if passing.operation == "BatchGetItem" and self.scene.taps.fault is not None:
                self.scene.taps.fault = None
                self.scene.delete(planned)
            return found

        with self.scene.taps.faulty(gone):
            self.scene.deliver(most=1)
        self.note()

    # Time

    @rule(seconds=st.sampled_from([1, 3, 7, 30, 61, 125, 200]))
    def go_on(self, seconds: int) -> None:
        self.scene.run(seconds, most=1)
        self.note()

    @rule(seconds=st.sampled_from([3, 9, 70]))
    def go_on_without_executors(self, seconds: int) -> None:
        self.scene.pass_time(seconds)
        self.cut(self.scene.tick, None)

    @precondition(lambda self: self.life is not None)
    @rule(offset_s=st.sampled_from([-7, -6, -5, -1, 0, 1]))
    def go_to_an_instant(self, offset_s: int) -> None:
        """Moves the clock to right before or after an instant that the schedule has ahead: the next change falls into
        its last seconds.
        """
        life = self.life
        there = self.row(life) if life else None
        if there is not None:
            upcoming = load(there.packed).rule.next_after(self.scene.clock.now() + 8 * SECOND)
            assert upcoming is not None
            self.scene.run((upcoming + offset_s * SECOND - self.scene.clock.now()).total_seconds(), most=1)
            self.note()

    @rule(cut=cuts)
    def sweep(self, cut: tuple[int, str] | None) -> None:
        self.cut(self.scene.tick, cut)

    @rule(cut=cuts)
    def work(self, cut: tuple[int, str] | None) -> None:
        self.cut(lambda: self.scene.deliver(most=1), cut)

    # In the end

    def check(self) -> None:
        scene = self.scene
        if self.life is not None:
            scene.set_state(self.life.planned, active=False)
            self.note()
        scene.run(1_300, most=1)
        self.note()
        assert scene.waiting() == {}, "something waits for nothing"
        for life in self.lives:
            runs = scene.runs(life.planned, Kind.SCHEDULED)
            assert all(run.finished for run in runs)
            there = self.row(life)
            if there is not None:
                exact(scene, there)
                self.covered(life, there, runs)
        calls = scene.endpoint.received
        assert not [each for each in calls if each.at < each.call.planned_at], "called early"
        off = [each for life in self.lives for each in life.off]
        assert not [
            each for each in calls for since, until in off if since < each.call.planned_at < until <= each.at
        ], "fell due while it was off, and was called afterwards"
        lost = {run.id: run.lost for life in self.lives for run in scene.runs(life.planned)}
        for run_id, calls in Counter(scene.endpoint.run_ids).items():
            assert calls <= 1 + lost[run_id], "called again although nobody was lost"

    def covered(self, life: Life, there: Schedule, runs: list[Run]) -> None:
        rows = {run.planned_at for run in runs if run.range_count is None}
        lines = [run for run in runs if run.range_count is not None]
        expected: set[datetime] = set()
        left_out: set[datetime] = set()
        since = series.before_first(there.created_at)
        for generation in range(1, there.generation):
            until = from_s(there.ended_at[generation])
            its = life.generations[generation]
            begin = since if its.first_at is None else its.first_at - SECOND
            (expected if its.on else left_out).update(between(load(its.packed).rule, begin, until, 100_000))
            since = until
        assert rows == expected, "lost, or of no plan"
        assert all(line.state is State.SKIPPED for line in lines)
        assert left_out == {at for at in left_out if any(within(line, at) for line in lines)}, "silent"
        assert not [at for at in rows for line in lines if within(line, at)], "a row within a line"
        assert sum(line.range_count or 0 for line in lines) == len(left_out)
        told = {at for at, generation in life.announced if not self.taken_back(life, at, generation)}
        assert told == {at for at in told if at in rows or any(within(line, at) for line in lines)}, "named, and silent"

    def taken_back(self, life: Life, instant: datetime, generation: int) -> bool:
        """Tells whether a later request came before it."""
        later = life.generations.get(generation + 1)
        return later is not None and later.asked_at <= instant


def within(line: Run, at: datetime) -> bool:
    return line.range_until is not None and line.planned_at <= at <= line.range_until


@pytest.mark.scaled
def test_any_history_of_changes_accounts_for_every_instant() -> None:
    """The same histories each time."""
    play(Changes, examples=100, steps=12, derandomize=True)


@pytest.mark.long
def test_any_long_history_of_changes_accounts_for_every_instant() -> None:
    play(Changes, examples=1_500, steps=18, derandomize=False)
