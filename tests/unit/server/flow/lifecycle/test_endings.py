"""How a series ends, what is said of it, and how it goes on."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.instants import text
from sweephand.domain.run import Kind, State
from sweephand.domain.schedule import ScheduleState, StateReason
from sweephand.server.facades.native.members import job_members
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import BUSY, OK
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, crash_after, crash_before
from tests.unit.server.flow.common import HOUR, MINUTE, NOON, exact, fixed, minutes, once

EACH_MINUTE = {"cron": "* * * * *"}


def job_says(stage: Stage, planned: Planned) -> tuple[str, str | None]:
    there = lookup.find(stage.world, TENANT, planned.job.id)
    body = job_members.job_body(there.job, there.schedules, stage.clock.now())
    return body["state"], body["stateReason"]


@pytest.mark.parametrize(
    ("timing", "members", "reason"),
    [
        (once(), {}, StateReason.ONE_TIME_DONE),
        ({**EACH_MINUTE, "count": 3}, {}, StateReason.COUNT_REACHED),
        ({**EACH_MINUTE, "endTime": text(NOON + 3 * MINUTE)}, {}, StateReason.END_REACHED),
        (EACH_MINUTE, {"end_at": NOON + 3 * MINUTE}, StateReason.END_REACHED),
    ],
    ids=["one time", "count", "its own end", "the job's end"],
)
def test_a_series_that_has_ended_says_why_and_so_does_its_job(
    stage: Stage, timing: dict[str, Any], members: dict[str, Any], reason: StateReason
) -> None:
    planned = stage.create(timing, **members)

    stage.run(1_300)

    schedule = stage.stored(planned)
    assert (schedule.state, schedule.state_reason) == (ScheduleState.COMPLETED, reason)
    assert (schedule.next_run_at, stage.waiting()) == (None, {})
    assert job_says(stage, planned) == ("COMPLETED", reason)
    exact(stage, planned)


def test_a_run_that_ends_between_the_read_and_the_advance_of_a_tick_ends_the_series(stage: Stage) -> None:
    """A creation sends at once what is due soon, so that the run may end before any tick has met its schedule."""

    def delivered_first(_passing: Passing, act: Act) -> Any:
        with stage.untapped():
            stage.deliver_all()
        return act()

    planned = stage.create({"at": text(NOON + timedelta(seconds=5))})
    stage.pass_time(10)
    with stage.taps.once("dynamodb.BatchExecuteStatement", delivered_first):
        stage.tick()

    assert stage.only_run(planned).state is State.SUCCESS
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    stage.run(180)
    exact(stage, planned)


def test_a_job_whose_schedules_ended_in_different_ways_has_no_future_dates(stage: Stage) -> None:
    planned = stage.create(once(), {**EACH_MINUTE, "count": 2})

    stage.run(60)
    assert job_says(stage, planned) == ("ACTIVE", None)
    stage.run(1_300)

    assert job_says(stage, planned) == ("COMPLETED", "NO_FUTURE_DATES")


@pytest.mark.parametrize(
    ("timing", "state"),
    [(once(), ScheduleState.FAULTED), ({**EACH_MINUTE, "count": 1}, ScheduleState.COMPLETED)],
    ids=["one time", "recurring"],
)
def test_only_a_one_time_schedule_becomes_faulted_by_a_failure(
    stage: Stage, timing: dict[str, Any], state: ScheduleState
) -> None:
    stage.endpoint.answer = lambda _: BUSY
    planned = stage.create(timing)

    stage.run(1_300)

    assert stage.only_run(planned).state is State.ERROR
    assert stage.stored(planned).state is state
    assert job_says(stage, planned)[0] == state.value


def test_a_run_that_fails_and_then_succeeds_is_not_a_fault(stage: Stage) -> None:
    stage.endpoint.answer = lambda call: BUSY if call.attempt == 1 else OK
    planned = stage.create(once(), action=stage.action(retry=fixed(10)))

    stage.run(1_300)

    assert job_says(stage, planned) == ("COMPLETED", "ONE_TIME_DONE")


def test_a_faulted_schedule_runs_again_when_it_is_moved(stage: Stage) -> None:
    stage.endpoint.answer = lambda _: BUSY
    planned = stage.create(once())
    stage.run(1_300)
    stage.endpoint.answer = lambda _: OK

    stage.change(planned, timings=[once(HOUR)])
    assert job_says(stage, planned) == ("ACTIVE", None)
    stage.run(4_000)

    assert job_says(stage, planned) == ("COMPLETED", "ONE_TIME_DONE")
    assert [run.state for run in stage.runs(planned, Kind.SCHEDULED)] == [State.ERROR, State.SUCCESS]
    exact(stage, planned)


@pytest.mark.parametrize("fault", [crash_before, crash_after])
def test_the_wake_row_writes_an_interrupted_end(stage: Stage, fault: Any) -> None:
    stage.endpoint.answer = lambda _: BUSY
    planned = stage.create(once())
    stage.run(59)

    with suppress(Crash), stage.taps.once("dynamodb.UpdateItem", fault):
        stage.run(10)
    stage.run(2_000)

    assert job_says(stage, planned) == ("FAULTED", "ONE_TIME_DONE")


@pytest.mark.parametrize(
    ("first", "then", "planned_at"),
    [
        ({"count": 2}, {"count": 4}, [1, 2, 31, 32]),
        ({"endTime": text(NOON + 2 * MINUTE)}, {"endTime": text(NOON + 32 * MINUTE)}, [1, 2, 31, 32]),
        ({"count": 2}, {}, [1, 2, 31, 32]),
    ],
    ids=["greater count", "later end", "no count"],
)
def test_a_completed_series_with_a_greater_count_continues_from_now(
    stage: Stage, first: dict[str, Any], then: dict[str, Any], planned_at: list[int]
) -> None:
    planned = stage.create({**EACH_MINUTE, **first})
    stage.run(30 * 60)
    assert stage.stored(planned).state is ScheduleState.COMPLETED

    stage.change(planned, timings=[{**EACH_MINUTE, **then}])
    assert job_says(stage, planned) == ("ACTIVE", None)
    stage.run(2 * 60 + 10)

    assert stage.endpoint.planned == minutes(*planned_at)


def test_a_count_below_the_number_sent_ends_the_series_immediately(stage: Stage) -> None:
    planned = stage.create({**EACH_MINUTE, "count": 9})
    stage.run(4 * 60 + 10)

    stage.change(planned, timings=[{**EACH_MINUTE, "count": 2}])
    stage.run(1_300)

    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert stage.endpoint.planned == minutes(1, 2, 3, 4)
    exact(stage, planned)


def test_a_change_that_leaves_nothing_to_run_ends_the_series_immediately(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    stage.run(2 * 60 + 10)

    changed = stage.change(planned, timings=[{**EACH_MINUTE, "count": 2}])

    assert [each.state for each in changed.schedules] == [ScheduleState.COMPLETED]
    assert stage.stored(planned).completed_at == stage.clock.now().replace(microsecond=0)
    stage.run(1_300)
    assert stage.endpoint.planned == minutes(1, 2)
    exact(stage, planned)


def test_a_change_that_leaves_a_run_open_does_not_end_the_series(stage: Stage) -> None:
    stage.endpoint.script = [OK, BUSY]
    planned = stage.create(EACH_MINUTE, action=stage.action(retry=fixed(300)))
    stage.run(2 * 60 + 10)

    changed = stage.change(planned, timings=[{**EACH_MINUTE, "count": 2}])

    assert [each.state for each in changed.schedules] == [ScheduleState.ENDING]
    stage.run(1_300)
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    exact(stage, planned)


def test_a_completed_job_that_is_switched_off_and_on_stays_completed(stage: Stage) -> None:
    planned = stage.create(once())
    stage.run(1_300)

    stage.set_state(planned, active=False)
    stage.set_state(planned, active=True)
    stage.run(1_300)

    assert len(stage.endpoint.planned) == 1
    assert job_says(stage, planned) == ("COMPLETED", "ONE_TIME_DONE")
