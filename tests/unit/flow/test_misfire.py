"""Outages: of the tick, and of the executors; what each policy then runs, to the second."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sweephand.domain.job import Pause
from sweephand.domain.run import Kind, Reason, Run, State
from tests.support.sources import START
from tests.support.stage import Stage, stage

MINUTE = 60
EVERY_MINUTE = {"every": "PT1M"}
LATEST = {"misfire": {"type": "latest"}}


def outage_of_the_tick(scene: Stage, seconds: float) -> None:
    """What is in the queue still goes out; nothing is swept."""
    scene.pass_time(seconds)


def planned_runs(scene: Stage, planned) -> list[Run]:
    return [run for run in scene.runs(planned, Kind.SCHEDULED) if run.range_count is None]


def ranges(scene: Stage, planned) -> list[Run]:
    return [run for run in scene.runs(planned, Kind.SCHEDULED) if run.range_count is not None]


def settled(scene: Stage, planned) -> None:
    """Nothing is open but what lies ahead, and the totals say what a count of the rows says."""
    assert scene.totals(planned).ended == scene.fold(planned).ended
    ahead = [run for run in planned_runs(scene, planned) if not run.finished]
    assert not ahead


def unsent_at(scene: Stage, planned) -> timedelta:
    """How long ago the oldest unsent occurrence was due."""
    at = scene.stored(planned).next_run_at
    assert at is not None
    return scene.clock.now() - at


def until_oldest_is(scene: Stage, planned, age_s: int) -> None:
    """Time goes by without a tick until the oldest unsent occurrence is exactly this old."""
    scene.pass_time((timedelta(seconds=age_s) - unsent_at(scene, planned)).total_seconds())


@pytest.mark.parametrize(("age_s", "all_run"), [(1_199, True), (1_200, False), (90_000, False)])
def test_after_an_outage_of_the_tick_sap_runs_all_under_twenty_minutes_else_the_last(age_s: int, all_run: bool) -> None:
    with stage() as scene:
        planned = scene.create(EVERY_MINUTE)
        scene.run(3 * MINUTE)
        first_missed = scene.stored(planned).next_run_at
        assert first_missed is not None
        until_oldest_is(scene, planned, age_s)
        now = scene.clock.now()
        last_missed = now - timedelta(minutes=2)

        scene.run(40 * MINUTE)

        ran = {run.planned_at for run in planned_runs(scene, planned)}
        missed = [first_missed + n * timedelta(minutes=1) for n in range(age_s // 60 + 1)]
        older = [at for at in missed if at <= last_missed]
        assert {at for at in missed if at > last_missed} <= ran
        if all_run:
            assert set(older) <= ran
            assert ranges(scene, planned) == []
        else:
            assert ran.intersection(older) == {older[-1]}
            (line,) = ranges(scene, planned)
            assert (line.state, line.reason) == (State.MISSED, Reason.SERVICE_OUTAGE)
            assert (line.planned_at, line.range_until, line.range_count) == (older[0], older[-1], len(older) - 1)
            assert scene.totals(planned).missed == len(older) - 1
        settled(scene, planned)


def test_latest_runs_only_the_last_even_after_five_minutes() -> None:
    with stage() as scene:
        planned = scene.create(EVERY_MINUTE, policies=LATEST)
        scene.run(3 * MINUTE)
        until_oldest_is(scene, planned, 5 * MINUTE)

        scene.run(10 * MINUTE)

        (line,) = ranges(scene, planned)
        assert line.range_count == 3
        settled(scene, planned)


def test_fresh_occurrences_do_not_wait_behind_missed_ones() -> None:
    with stage() as scene:
        planned = scene.create({"every": "PT10S"})
        scene.run(3 * MINUTE)
        until_oldest_is(scene, planned, 19 * MINUTE)
        recovered_at = scene.clock.now()

        scene.run(5 * MINUTE)

        fresh = [run for run in planned_runs(scene, planned) if run.planned_at > recovered_at + timedelta(seconds=60)]
        assert fresh
        assert max(run.lateness_ms or 0 for run in fresh) <= 1_000
        settled(scene, planned)


def test_a_catch_up_is_paced_by_its_rate() -> None:
    with stage() as scene:
        policies = {"misfire": {"type": "sap", "ratePerMinute": 6}}
        planned = scene.create({"every": "PT30S"}, policies=policies)
        scene.run(3 * MINUTE)
        until_oldest_is(scene, planned, 10 * MINUTE)
        first_missed = scene.stored(planned).next_run_at
        last_missed = scene.clock.now() - timedelta(minutes=2)

        scene.run(10 * MINUTE)

        late = [run for run in planned_runs(scene, planned) if first_missed <= run.planned_at <= last_missed]
        starts = sorted(run.started_at for run in late if run.started_at)
        assert len(starts) == 17
        assert starts[-1] - starts[0] >= timedelta(seconds=150)
        settled(scene, planned)


def test_a_single_missed_occurrence_is_simply_sent() -> None:
    with stage() as scene:
        planned = scene.create({"every": "PT1H"})
        scene.run(58 * MINUTE)
        scene.pass_time(30 * MINUTE)

        scene.run(2 * MINUTE)

        (run,) = planned_runs(scene, planned)
        assert (run.state, run.reason) == (State.SUCCESS, Reason.LATE)
        assert ranges(scene, planned) == []


def test_a_split_whose_answer_was_lost_is_not_made_twice() -> None:
    with stage() as scene:
        planned = scene.create(EVERY_MINUTE, policies=LATEST)
        scene.run(3 * MINUTE)
        until_oldest_is(scene, planned, 30 * MINUTE)

        scene.tick()
        scene.tick()
        scene.run(10 * MINUTE)

        assert len(ranges(scene, planned)) == 1
        settled(scene, planned)


def test_a_count_that_ends_within_the_outage_runs_no_more_than_it_says() -> None:
    with stage() as scene:
        planned = scene.create({"every": "PT1M", "count": 10})
        scene.run(3 * MINUTE)
        until_oldest_is(scene, planned, 15 * MINUTE)

        scene.run(60 * MINUTE)

        assert len(planned_runs(scene, planned)) == 10
        assert scene.stored(planned).state.value == "COMPLETED"


def test_an_end_within_a_long_outage_completes_the_schedule_after_its_last_missed_run() -> None:
    with stage() as scene:
        end = (scene.clock.now() + timedelta(minutes=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
        planned = scene.create({"every": "PT1M", "endTime": end})
        scene.run(3 * MINUTE)
        until_oldest_is(scene, planned, 90 * MINUTE)

        scene.run(60 * MINUTE)

        (line,) = ranges(scene, planned)
        assert line.range_count == scene.totals(planned).missed
        assert scene.stored(planned).state.value == "COMPLETED"
        settled(scene, planned)


@pytest.mark.parametrize(("down_s", "all_run"), [(1_100, True), (1_500, False)])
def test_after_an_outage_of_the_executors_the_same_policy_holds(down_s: int, all_run: bool) -> None:
    with stage() as scene:
        planned = scene.create({"every": "PT5M"})
        scene.run(60)
        for _ in range(down_s // 60):
            scene.clock.advance(60)
            scene.tick()
        late = [run_at for run_at in _due(scene, planned) if run_at < scene.clock.now() - timedelta(minutes=20)]

        scene.run(20 * MINUTE)

        rows = {run.planned_at: run for run in planned_runs(scene, planned)}
        for at in late:
            assert rows[at].state is State.MISSED
        assert bool(late) is not all_run
        assert all(run.state is State.SUCCESS for at, run in rows.items() if at not in late)
        assert scene.totals(planned).missed_sent == len(late)
        settled(scene, planned)


def _due(scene: Stage, planned) -> list:
    schedule = scene.stored(planned)
    assert schedule.next_run_at is not None
    begin = planned.schedules[0].next_run_at
    assert begin is not None
    return [
        begin + n * timedelta(minutes=5) for n in range(100) if begin + n * timedelta(minutes=5) < scene.clock.now()
    ]


@pytest.mark.parametrize("off", [{"active": False}, {"pause": Pause(since=START)}])
def test_what_was_due_while_a_schedule_was_off_is_one_line_when_it_goes_on(off: dict[str, object]) -> None:
    with stage() as scene:
        planned = scene.create(EVERY_MINUTE)
        scene.run(150)
        scene.set_state(planned, **off)
        scene.run(10 * MINUTE)
        scene.set_state(planned, active=True, pause=None)
        scene.run(3 * MINUTE)

        (line,) = ranges(scene, planned)
        assert (line.state, line.reason) == (State.SKIPPED, Reason.PAUSED if "pause" in off else Reason.DISABLED)
        ran = {run.planned_at for run in planned_runs(scene, planned) if run.state is State.SUCCESS}
        skipped = {line.planned_at + n * timedelta(minutes=1) for n in range(line.range_count or 0)}
        assert max(skipped) == line.range_until
        assert not ran & skipped
        every = sorted(ran | skipped)
        assert every == [every[0] + n * timedelta(minutes=1) for n in range(len(every))]
        settled(scene, planned)
