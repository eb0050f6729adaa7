"""Schedules that have no instant left when they are made: refused, or by their policy over at once, without a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sweephand.base.errors import InvalidRequest
from sweephand.domain.collection import Events
from sweephand.domain.instants import text
from sweephand.domain.schedule import ScheduleState, StateReason
from sweephand.server.facades.native.members import job_members
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.testing.taps import Act, Passing
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, crash_before, refused
from tests.unit.server.flow.common import DAY, HOUR, MINUTE, NOON, exact, once

COMPLETE = {"onNothingLeft": "complete"}
DAILY = {"recurrence": {"frequency": "Day"}}
PAST = text(NOON - HOUR)
LONG_AGO = {"startTime": text(NOON - 9 * DAY)}
OVER: dict[str, tuple[dict[str, Any], StateReason]] = {
    "a recurrence that has ended": ({**DAILY, **LONG_AGO, "endTime": PAST}, StateReason.END_REACHED),
    "one without a beginning": ({**DAILY, "endTime": PAST}, StateReason.END_REACHED),
    "the next instant behind its end": ({**DAILY, **LONG_AGO, "endTime": text(NOON + HOUR)}, StateReason.END_REACHED),
    "a cron text": ({"cron": "0 9 * * *", "endTime": PAST}, StateReason.END_REACHED),
    "equal steps": ({"every": "PT1H", "endTime": PAST}, StateReason.END_REACHED),
    "a rule of so many": ({"rrule": "DTSTART:20270101T000000Z\nRRULE:FREQ=DAILY;COUNT=2"}, StateReason.NO_FUTURE_DATES),
    "once": ({"at": PAST}, StateReason.NO_FUTURE_DATES),
}
each = pytest.mark.parametrize(("timing", "reason"), OVER.values(), ids=OVER)


def shown(stage: Stage, planned: Planned) -> dict[str, Any]:
    there = lookup.find(stage.world, TENANT, planned.job.id)
    return job_members.job_body(there.job, there.schedules, stage.clock.now())


def of_schedule(passing: Passing) -> bool:
    return passing.name == "dynamodb.UpdateItem" and passing.request["Key"]["sk"]["S"].startswith("SCH#")


@each
def test_a_schedule_without_occurrences_is_created_as_completed_and_never_runs(
    stage: Stage, timing: dict[str, Any], reason: StateReason
) -> None:
    stage.tell(Events.ALL)
    planned = stage.create(timing, policies=COMPLETE)

    assert [(each.state, each.state_reason) for each in planned.schedules] == [(ScheduleState.COMPLETED, reason)]
    assert (shown(stage, planned)["state"], shown(stage, planned)["stateReason"]) == ("COMPLETED", reason)
    assert stage.waiting() == {}
    stage.run(3_600)
    assert stage.endpoint.received == []
    exact(stage, planned)
    completed = [told.detail for told in stage.bus.told if told.kind == "schedule.completed"]
    assert [told["reason"] for told in completed] == [reason]


@each
def test_a_schedule_without_occurrences_is_refused_without_the_policy(
    stage: Stage, timing: dict[str, Any], reason: StateReason
) -> None:
    passed = len(stage.taps.passed)

    with pytest.raises(InvalidRequest):
        stage.create(timing)

    assert reason
    assert not [call for call in stage.taps.passed[passed:] if "Write" in call.operation]


def test_an_immediate_run_does_not_follow_the_end(stage: Stage) -> None:
    """Azure's own facts: neither beginning nor end ahead; with an end of just now, once."""
    policies = {**COMPLETE, "onCreate": "run_now", "onPastStart": "run_now"}
    ended = stage.create({**DAILY, **LONG_AGO, "endTime": PAST}, policies=policies)
    now = stage.clock.now().replace(microsecond=0)
    just = stage.create({**DAILY, **LONG_AGO, "endTime": text(now)}, policies=policies)

    stage.run(1_200)

    assert stage.runs(ended) == []
    assert len(stage.runs(just)) == 1
    assert stage.stored(just).state is ScheduleState.COMPLETED


def test_an_occurrence_that_is_due_now_is_not_omitted(stage: Stage) -> None:
    planned = stage.create({"at": PAST}, policies={**COMPLETE, "onPastStart": "run_now"})

    stage.run(1_200)

    assert len(stage.runs(planned)) == 1
    assert stage.stored(planned).state_reason == StateReason.ONE_TIME_DONE


def test_a_rule_that_never_fires_is_refused_even_under_the_policy(stage: Stage) -> None:
    with pytest.raises(InvalidRequest) as wrong:
        stage.create({"cron": "0 0 30 2 *", "endTime": PAST}, policies=COMPLETE)

    assert (wrong.value.code, wrong.value.field) == ("NEVER_FIRES", "schedules[0].cron")


def test_an_empty_schedule_with_its_own_policy_is_completed_next_to_an_active_one(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"})
    draft = stage.schedule({**DAILY, "endTime": PAST}, policies=COMPLETE)

    after = stage.change_schedules(planned, lambda _: [ScheduleRequest(None, draft)])

    assert sorted(each.state for each in after.schedules) == [ScheduleState.ACTIVE, ScheduleState.COMPLETED]
    assert shown(stage, planned)["state"] == "ACTIVE"


def test_a_change_that_leaves_a_schedule_no_occurrence_completes_it(stage: Stage) -> None:
    planned = stage.create(once(2 * HOUR), policies=COMPLETE)

    stage.change(planned, timings=[{**DAILY, "endTime": PAST}], policies=COMPLETE)
    stage.run(120)

    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert stage.endpoint.received == []
    exact(stage, planned)


def test_an_instant_moved_into_the_past_does_not_run(stage: Stage) -> None:
    planned = stage.create(once(2 * HOUR), policies=COMPLETE)

    stage.change(planned, timings=[{"at": PAST}], policies=COMPLETE)
    stage.run(120)

    assert (stage.stored(planned).state, stage.endpoint.received) == (ScheduleState.COMPLETED, [])


def test_an_inactive_schedule_without_occurrences_completes_when_activated(stage: Stage) -> None:
    planned = stage.create({**DAILY, "endTime": PAST}, policies=COMPLETE, active=False)
    assert stage.stored(planned).state is ScheduleState.INACTIVE

    stage.set_state(planned, active=True)
    stage.run(120)

    assert stage.stored(planned).state is ScheduleState.COMPLETED


def test_a_longer_window_activates_a_completed_schedule(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *", "endTime": PAST}, policies=COMPLETE)

    stage.change(planned, timings=[{"cron": "* * * * *", "endTime": text(NOON + 3 * MINUTE)}], policies=COMPLETE)
    stage.run(1_300)

    assert stage.endpoint.planned == [NOON + n * MINUTE for n in (1, 2, 3)]
    exact(stage, planned)


def test_the_wake_row_writes_an_end_that_could_not_be_written(stage: Stage) -> None:
    def no_end(passing: Passing, act: Act) -> Any:
        return refused(passing, act) if of_schedule(passing) else act()

    with stage.taps.faulty(no_end):
        planned = stage.create({**DAILY, "endTime": PAST}, policies=COMPLETE)
    assert planned.schedules[0].state is ScheduleState.ENDING

    stage.run(120)

    assert stage.stored(planned).state is ScheduleState.COMPLETED


def test_a_function_that_dies_after_the_creation_leaves_a_wake_row(stage: Stage) -> None:
    def dies(passing: Passing, act: Act) -> Any:
        return crash_before(passing, act) if of_schedule(passing) else act()

    with stage.taps.faulty(dies), pytest.raises(Crash):
        stage.create({**DAILY, "endTime": PAST}, policies=COMPLETE, name="late")
    stage.run(120)

    (row,) = [item for item in stage.items() if item["sk"]["S"].startswith("SCH#")]
    assert row["state"]["S"] == ScheduleState.COMPLETED


def test_a_job_created_as_completed_is_deleted_as_other_ended_jobs(stage: Stage) -> None:
    from sweephand.domain.collection import Retention  # noqa: PLC0415
    from sweephand.server.flow.tenants import tenancy  # noqa: PLC0415

    days = Retention(ended_job_days=60)
    tenancy.change_collection(stage.world, TENANT, "default", lambda there: replace(there, retention=days), None)
    planned = stage.create({**DAILY, "endTime": PAST}, policies=COMPLETE)

    stage.pass_time(59 * 86_400)
    stage.run(60)
    assert lookup.find(stage.world, TENANT, planned.job.id)
    stage.pass_time(2 * 86_400)
    stage.run(120)

    assert not [item for item in stage.items() if item["pk"]["S"].endswith(planned.job.id) and item["sk"]["S"] == "JOB"]
