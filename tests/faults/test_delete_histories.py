"""Random histories of deletes with a backlog: what was announced, what was called and what is recorded agree.

Executors are away for a while, or die in a call; ticks go on or stay out; messages come twice or are purged. Then a
job, or first some of its schedules, is deleted, and executors come back.
"""

from __future__ import annotations

import random  # noqa: TID251 - a history is played again by its seed
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from sweephand.domain.job import Pause
from sweephand.domain.occurrences import series
from sweephand.domain.occurrences.upcoming import next_runs
from sweephand.domain.run import Kind, State
from sweephand.domain.schedule import Lane, Schedule
from sweephand.schedules.rule import between
from sweephand.schedules.timing import load
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.testing.sources import START
from tests.support.endpoint import BUSY, OK
from tests.support.stage import TENANT, Stage, stage
from tests.support.taps import Crash, crash_after, crash_before

SHORT, LONG, IN_PART = 90, 10_000, 500
ANNOUNCED = 40


@dataclass
class History:
    """announced: by schedule, what answers named and no later change took back."""

    seed: int
    scene: Stage
    chance: random.Random
    planned: Planned
    changed: bool = False
    died: bool = False
    paused: bool = False
    announced: dict[str, set[datetime]] = field(default_factory=dict)
    gone_at: dict[str, datetime] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)

    def schedules(self) -> list[Schedule]:
        return [self.scene.stored(each) for each in self.planned.schedules if each.id not in self.gone_at]

    def announce(self) -> None:
        now = self.scene.clock.now()
        for each in self.schedules():
            found = next_runs(each, load(each.packed), now, ANNOUNCED).instants
            self.announced.setdefault(each.id, set()).update(found)

    # Steps

    def executors_work(self) -> None:
        self.scene.run(self.chance.choice([1, 3, 10, 25]))

    def executors_are_away(self) -> None:
        for _ in range(self.chance.choice([1, 1, 2])):
            self.scene.pass_time(self.chance.uniform(0.2, 40))
            if self.chance.random() < 0.7:
                self.scene.tick()

    def an_executor_dies(self) -> None:
        fault = self.chance.choice([crash_before, crash_after])
        call = self.chance.choice(["endpoint.http", "dynamodb.PutItem", "dynamodb.UpdateItem"])
        try:
            with self.scene.taps.once(call, fault):
                self.scene.deliver(most=self.chance.choice([1, 3]))
        except Crash:
            self.died = True
        except AssertionError as none_met:
            if "to be faulty" not in str(none_met):
                raise

    def messages_come_twice(self) -> None:
        self.scene.sqs.duplicate(self.scene.world.settings.queue_urls[Lane.FAST])

    def messages_are_purged(self) -> None:
        self.scene.sqs.purge(self.scene.world.settings.queue_urls[Lane.FAST])

    def pause_or_resume(self) -> None:
        self.paused = not self.paused
        pause = Pause(self.scene.clock.now(), None, None) if self.paused else None
        self._change(lambda: self.scene.set_state(self.planned, pause=pause))

    def change_the_rule(self) -> None:
        timings = [_timing(self.chance, endless=True) for _ in self.schedules()]
        self._change(lambda: self.scene.change(self.scene_planned(), timings=timings))

    def scene_planned(self) -> Planned:
        return lookup.find(self.scene.world, TENANT, self.planned.job.id)

    def _change(self, change: Any) -> None:
        """Changes the job. Announced occurrences may be taken back from now on; those that are due by now stay."""
        self.changed = True
        now = self.scene.clock.now()
        for found in self.announced.values():
            found -= {at for at in found if at > now}
        change()

    def a_schedule_goes(self) -> None:
        there = self.schedules()
        if len(there) < 2:
            return
        gone = self.chance.choice(there).id
        self.announce()
        self.gone_at[gone] = self.scene.clock.now()
        self.scene.change_schedules(
            self.planned, lambda now: [ScheduleRequest(lookup.find_schedule(now, gone), None, delete=True)]
        )

    def the_job_goes(self) -> None:
        self.announce()
        for each in self.schedules():
            self.gone_at[each.id] = self.scene.clock.now()
        self.scene.delete(self.planned)


STEPS = (
    *[History.executors_work] * 3,
    *[History.executors_are_away] * 4,
    History.an_executor_dies,
    History.messages_come_twice,
    History.messages_are_purged,
    History.pause_or_resume,
    History.change_the_rule,
    History.a_schedule_goes,
)


def _timing(chance: random.Random, *, endless: bool = False) -> dict[str, Any]:
    kinds: list[dict[str, Any]] = [
        {"every": f"PT{chance.choice((1, 2, 3, 4, 5, 6, 8, 9))}S", "align": "clock"},
        {"every": f"PT{chance.randint(1, 9)}S"},
        {"every": "PT1M", "align": "clock"},
        {"cron": "* * * * *"},
    ]
    if not endless:
        kinds += [
            {"at": f"{START + timedelta(seconds=chance.randint(1, 90)):%Y-%m-%dT%H:%M:%SZ}"},
            {"every": f"PT{chance.randint(1, 9)}S", "count": chance.randint(1, 20)},
        ]
    return chance.choice(kinds)


def play(seed: int) -> None:
    chance = random.Random(seed)
    with stage(shards=1, seed=seed) as scene:
        scene.endpoint.answer = lambda _: BUSY if chance.random() < 0.1 else OK
        planned = scene.create(*(_timing(chance) for _ in range(chance.randint(1, 3))))
        history = History(seed, scene, chance, planned)
        history.announce()
        for _ in range(chance.randint(1, 7)):
            step = chance.choice(STEPS)
            history.steps.append(step.__name__)
            step(history)
            history.announce()
        history.the_job_goes()
        if chance.random() < 0.5:
            scene.pass_time(chance.uniform(0.2, 300))
        scene.run(2_100)
        _check(history)


def _check(history: History) -> None:
    for schedule in history.planned.schedules:
        told = f"seed {history.seed}, {history.steps}, {dict(schedule.timing)}"
        gone_at = history.gone_at[schedule.id]
        rows = history.scene.runs(schedule, Kind.SCHEDULED)
        own = {run.planned_at for run in rows if run.range_count is None}
        lines = [run for run in rows if run.range_count is not None]
        calls = [each for each in history.scene.endpoint.received if each.call.schedule_id == schedule.id]

        assert all(run.finished for run in rows), told
        assert not [each for each in calls if each.at > gone_at], f"called after the delete: {told}"
        assert {each.call.planned_at for each in calls} <= own, f"called without a row: {told}"
        twice = [at for at, n in Counter(each.call.planned_at for each in calls).items() if n > 1]
        assert not twice or history.died, f"called twice: {told}"
        assert all(at <= gone_at for at in own), f"recorded though it was not due: {told}"
        assert all((line.range_until or line.planned_at) <= gone_at for line in lines), told
        covered = own | {
            at
            for at in history.announced[schedule.id]
            if any(line.planned_at <= at <= (line.range_until or line.planned_at) for line in lines)
        }
        silent = sorted(at for at in history.announced[schedule.id] if at <= gone_at and at not in covered)
        assert not silent, f"announced and neither called nor recorded: {silent}, {told}"
        begun = {run.planned_at for run in rows if run.first_started_at is not None}
        assert begun >= {each.call.planned_at for each in calls}, told
        if not history.changed:
            assert len(own) + sum(line.range_count or 0 for line in lines) == _owed(schedule, gone_at), told
        cancelled = [run for run in rows if run.state is State.CANCELLED]
        assert all(run.reason == "OWNER_GONE" for run in cancelled), told
    assert history.scene.waiting() == {}, f"seed {history.seed}"


def _owed(schedule: Schedule, until: datetime) -> int:
    """Returns how many occurrences its rule had up to the delete, within its count."""
    timing = load(schedule.packed)
    found = list(between(timing.rule, series.before_first(schedule.created_at), until, 10_000))
    return len(found) if timing.count is None else min(len(found), timing.count)


@pytest.mark.parametrize("part", range(3))
def test_announced_called_and_recorded_runs_agree_after_deletes(part: int) -> None:
    for seed in range(part * SHORT // 3, (part + 1) * SHORT // 3):
        play(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(LONG // IN_PART))
def test_announced_called_and_recorded_runs_agree_in_each_of_10_000_histories(part: int) -> None:
    for seed in range(1_000 + part * IN_PART, 1_000 + (part + 1) * IN_PART):
        play(seed)
