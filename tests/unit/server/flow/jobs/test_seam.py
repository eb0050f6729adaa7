"""The seconds after a request: what an answer names runs, and what fell due in a stop is not called after it.

tests/faults/test_announced.py holds the same against random changes, through both facades.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.collection import Events
from sweephand.domain.instants import text
from sweephand.domain.job import DEFAULT_COLLECTION, Pause
from sweephand.domain.occurrences import upcoming
from sweephand.domain.run import Reason, State
from sweephand.domain.schedule import ScheduleState
from sweephand.schedules.timing import load
from sweephand.server.flow.jobs import change, lookup
from sweephand.server.flow.tenants import tenancy
from tests.support.stage import TENANT, Stage
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, exact, minutes

DAILY = {"cron": "0 5 * * *"}
AT_THREE = {"cron": "3 12 * * *"}
BEFORE = pytest.mark.parametrize("before_s", [0.5, 1.5, 2.6, 4.5, 5, 6, 8])


def go_to(stage: Stage, before_s: float) -> None:
    """Moves the clock to so long before three minutes past noon."""
    stage.run((NOON + 3 * MINUTE - stage.clock.now()).total_seconds() - before_s)


def named(stage: Stage, planned: Any, limit: int = 1) -> list[Any]:
    there = stage.stored(planned)
    return upcoming.next_runs(there, load(there.packed), stage.clock.now(), limit).instants


@BEFORE
def test_a_daily_report_moved_to_a_few_seconds_from_now_runs_today(stage: Stage, before_s: float) -> None:
    planned = stage.create(DAILY)
    go_to(stage, before_s)

    stage.change(planned, timings=[AT_THREE])

    assert named(stage, planned) == minutes(3)
    stage.run(60)
    assert stage.endpoint.planned == minutes(3)
    assert stage.only_run(planned).state is State.SUCCESS
    exact(stage, planned)


@BEFORE
@pytest.mark.parametrize("off", [{"pause": Pause(NOON)}, {"active": False}])
def test_a_reactivated_job_runs_within_seconds(stage: Stage, off: dict[str, object], before_s: float) -> None:
    planned = stage.create(AT_THREE)
    stage.set_state(planned, **off)
    go_to(stage, before_s)

    stage.set_state(planned, pause=None, active=True)

    assert named(stage, planned) == minutes(3)
    stage.run(60)
    assert stage.endpoint.planned == minutes(3)
    exact(stage, planned)


@pytest.mark.parametrize("seconds", [1, 2, 5])
def test_a_fast_rhythm_misses_none_of_its_first_occurrences(stage: Stage, seconds: int) -> None:
    planned = stage.create(DAILY)
    stage.run(30)

    stage.change(planned, timings=[{"every": f"PT{seconds}S"}])

    first = named(stage, planned, 5)
    assert first[0] - stage.clock.now() <= timedelta(seconds=seconds + 1)
    stage.run(30)
    assert stage.endpoint.planned[:5] == first


def test_the_answer_names_occurrences_that_the_old_plan_still_runs(stage: Stage) -> None:
    """Its message may have been claimed before the request: it cannot be taken back."""
    planned = stage.create(AT_THREE)
    go_to(stage, 3)

    stage.change(planned, timings=[{"cron": "4 12 * * *"}])

    assert named(stage, planned, 2) == minutes(3, 4)
    stage.run(120)
    assert stage.endpoint.planned == minutes(3, 4)
    exact(stage, planned)


def test_a_change_and_its_reversal_within_the_seam_count_an_occurrence_once(stage: Stage) -> None:
    planned = stage.create({**AT_THREE, "cron": "3,9 12 * * *"})
    go_to(stage, 5)

    stage.change(planned, timings=[{"cron": "4,9 12 * * *"}])
    stage.clock.advance(1)
    stage.change(planned, timings=[{"cron": "3,9 12 * * *"}])

    assert stage.stored(planned).still_due == ()
    stage.run(600)
    assert stage.endpoint.planned == minutes(3, 9)
    assert stage.totals(planned).planned == stage.stored(planned).planned_total == 2


def test_a_count_includes_occurrences_that_the_old_plan_still_runs(stage: Stage) -> None:
    """One is left of three, and it is on its way: the new rhythm has none before it."""
    planned = stage.create({"every": "PT60S", "align": "epoch", "count": 3})
    go_to(stage, 2)

    stage.change(planned, timings=[{"every": "PT1S", "align": "epoch", "count": 3}])

    stage.run(60)
    assert stage.endpoint.planned == minutes(1, 2, 3)
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    exact(stage, planned)


# Occurrences that fell due while it was off


@pytest.mark.parametrize(
    ("off", "reason"), [({"pause": Pause(NOON)}, Reason.PAUSED), ({"active": False}, Reason.DISABLED)]
)
def test_occurrences_due_during_a_stop_are_not_called_after_it_even_after_an_outage(
    stage: Stage, off: dict[str, object], reason: Reason
) -> None:
    planned = stage.create({"cron": "* * * * *", "endTime": text(NOON + 13 * MINUTE)})
    stage.tick()
    stage.clock.move_to(NOON + 57 * SECOND)

    stage.set_state(planned, **off)
    stage.pass_time(604)
    stage.set_state(planned, pause=None, active=True)
    stage.run(120)

    assert stage.endpoint.planned == minutes(12, 13)
    first, *_ = stage.runs(planned)
    assert (first.planned_at, first.state, first.reason) == (NOON + MINUTE, State.SKIPPED, reason)
    exact(stage, planned)


def test_a_schedule_stopped_alone_is_not_called_for_that_time(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"})
    stage.tick()
    stage.clock.move_to(NOON + 57 * SECOND)
    switch(stage, planned, active=False)
    stage.pass_time(10)

    switch(stage, planned, active=True)
    stage.run(60)

    assert stage.endpoint.planned == minutes(2)
    assert stage.runs(planned)[0].reason is Reason.DISABLED


def switch(stage: Stage, planned: lookup.Planned, *, active: bool) -> None:
    def request(there: lookup.Planned) -> list[Any]:
        schedule = there.schedules[0]
        draft = stage.schedule(schedule.timing, schedule.name, active=active, id=schedule.id)
        return [change.ScheduleRequest(schedule, draft)]

    stage.change_schedules(planned, request)


@pytest.mark.parametrize("whose", ["collection", "tenant"])
def test_occurrences_due_while_collection_or_tenant_was_disabled_are_not_called_afterwards(
    stage: Stage, whose: str
) -> None:
    planned = stage.create({"cron": "* * * * *", "endTime": text(NOON + 5 * MINUTE)})
    stage.tick()
    stage.clock.move_to(NOON + 57 * SECOND)

    disabled(stage, whose, on=False)
    stage.pass_time(10)
    disabled(stage, whose, on=True)
    stage.run(600)

    assert stage.endpoint.planned == minutes(2, 3, 4, 5)
    first, *_ = stage.runs(planned)
    assert (first.planned_at, first.state, first.reason) == (NOON + MINUTE, State.SKIPPED, Reason.DISABLED)
    assert stage.stored(planned).state is ScheduleState.COMPLETED


def disabled(stage: Stage, whose: str, *, on: bool) -> None:
    if whose == "tenant":
        tenancy.switch_tenant(stage.world, TENANT, on=on)
    else:
        tenancy.change_collection(
            stage.world, TENANT, DEFAULT_COLLECTION, lambda there: tenancy.enabled(there, on=on), None
        )


def test_an_occurrence_planned_for_the_moment_of_enabling_runs(stage: Stage) -> None:
    planned = stage.create(DAILY)
    disabled(stage, "collection", on=False)
    stage.run(30)
    disabled(stage, "collection", on=True)

    stage.change(planned, timings=[{"at": text(stage.clock.now() - 3 * SECOND)}])
    stage.run(60)

    assert len(stage.endpoint.received) == 1


def test_a_resume_in_a_collection_with_all_events_names_only_occurrences_that_run(stage: Stage) -> None:
    """The line of a pause goes out before its write, and ends where the new plan begins."""
    stage.tell(Events.ALL)
    planned = stage.create({"cron": "* * * * *"})
    stage.run(30)
    stage.set_state(planned, pause=Pause(NOON))
    stage.run(85)

    stage.set_state(planned, pause=None)
    stage.run(30)

    assert stage.endpoint.planned == minutes(2)
    (line,) = [run for run in stage.runs(planned) if run.range_count is not None]
    assert (line.planned_at, line.range_until, line.range_count) == (NOON + MINUTE, NOON + MINUTE, 1)
