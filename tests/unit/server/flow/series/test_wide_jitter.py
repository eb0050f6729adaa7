"""`jitterSeconds` of up to a day: what is put off past the look-ahead waits in the index, and runs once."""

from __future__ import annotations

from datetime import timedelta

from sweephand.domain.occurrences import upcoming
from sweephand.domain.run import State
from sweephand.domain.schedule import ScheduleState
from sweephand.schedules.rule import between
from sweephand.schedules.timing import load
from sweephand.testing.sources import START
from tests.support.stage import Stage

HOUR = timedelta(hours=1)


def test_each_occurrence_runs_once_at_its_delayed_instant(stage: Stage) -> None:
    planned = stage.create({"every": "PT5H", "startTime": START.isoformat(), "jitterSeconds": 86_400})
    rule = load(stage.stored(planned).packed).rule
    wanted = between(rule, START, START + 26 * HOUR, 99)

    for _ in range(26):
        there = stage.stored(planned)
        (ahead,) = upcoming.next_runs(there, load(there.packed), stage.clock.now(), 1).instants
        assert there.next_run_at is not None
        assert there.next_run_at >= ahead
        stage.run(3600)

    runs = stage.runs(planned)
    assert [run.planned_at for run in runs] == wanted
    assert {run.state for run in runs} == {State.SUCCESS}
    assert all(run.started_at is not None and run.started_at >= run.planned_at for run in runs)
    assert {at.timestamp() % 3600 for at in wanted} != {wanted[0].timestamp() % 3600}
    assert (stage.audit().lost, stage.audit().corrected) == (0, 0)


def test_a_change_within_the_spread_neither_loses_nor_duplicates_delayed_occurrences(stage: Stage) -> None:
    fields = {"every": "PT5H", "startTime": START.isoformat(), "jitterSeconds": 86_400}
    planned = stage.create(fields)
    rule = load(stage.stored(planned).packed).rule
    first, second = between(rule, START, START + 26 * HOUR, 2)

    stage.run((first - START).total_seconds() - 600)
    stage.set_state(planned, active=False)
    stage.run(60)
    stage.set_state(planned, active=True)
    stage.run((second - first).total_seconds() + 1_200)

    assert [run.planned_at for run in stage.runs(planned) if run.state is State.SUCCESS] == [first, second]
    assert stage.stored(planned).state is ScheduleState.ACTIVE
