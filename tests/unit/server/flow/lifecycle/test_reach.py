"""A schedule whose target gets no connection for ten days on end is switched off; plain runs pay nothing for it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from sweephand.domain.collection import Events
from sweephand.domain.event import EventType
from sweephand.domain.job import Pause
from sweephand.domain.run import Kind, Outcome, State
from sweephand.domain.schedule import ScheduleState, StateReason
from sweephand.server.flow.jobs.drafts import as_stored
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.server.flow.lifecycle.unreachable import Streak, target_of
from sweephand.server.flow.manual import manual
from sweephand.server.store.dynamo.table import RevisionItem
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import BUSY, DOWN, OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before, refused
from tests.unit.server.flow.common import DAY, MINUTE, NOON, exact, fixed

DAILY = {"cron": "5 12 * * *"}
FIRST = NOON + 5 * MINUTE


def job(stage: Stage, **members: Any) -> Planned:
    """Makes one schedule, daily at five past twelve. It stands four minutes before its first occurrence."""
    planned = stage.create(DAILY, **members)
    stage.run(60)
    return planned


def days(stage: Stage, *answers: Outcome) -> None:
    """Lets one day pass for each answer: time goes to the next occurrence and a little beyond."""
    for answer in answers:
        stage.endpoint.answer = answer
        stage.run(360)
        stage.pass_time(DAY.total_seconds() - 360)


def since(stage: Stage, planned: Planned) -> datetime | None:
    stored = stage.stored(planned).unreachable
    return None if stored is None else Streak.read(stored).since


def state(stage: Stage, planned: Planned) -> tuple[ScheduleState, str | None]:
    there = stage.stored(planned)
    return there.state, there.state_reason


ON = (ScheduleState.ACTIVE, None)
OFF = (ScheduleState.INACTIVE, StateReason.UNREACHABLE)


def told(stage: Stage) -> list[str]:
    """Returns the ids of the events."""
    return [each["id"] for each in stage.bus.of(EventType.SCHEDULE_DEACTIVATED)]


# The streak


def test_ten_days_of_failures_switch_the_schedule_off_at_the_first_failure_after_them(stage: Stage) -> None:
    planned = job(stage)

    days(stage, *[DOWN] * 10)
    assert state(stage, planned) == ON
    days(stage, DOWN)

    assert state(stage, planned) == OFF
    assert not stage.stored(planned).active
    days(stage, OK)
    assert [run.state for run in stage.runs(planned)] == [State.REQUEST_ERROR] * 11
    exact(stage, planned)
    assert stage.job(planned).active


@pytest.mark.parametrize(("short_ms", "after"), [(1, ON), (0, OFF)])
def test_ten_days_are_counted_to_the_millisecond(
    stage: Stage, short_ms: int, after: tuple[ScheduleState, str | None]
) -> None:
    planned = job(stage)
    stage.run(239)
    begins(stage, planned, FIRST + MINUTE - 10 * DAY + timedelta(milliseconds=short_ms))
    stage.endpoint.answer = lambda _call: at(stage, FIRST + MINUTE)

    stage.run(120)

    run = stage.only_run(planned)
    assert run.finished_at == FIRST + MINUTE
    assert state(stage, planned) == after


def at(stage: Stage, instant: datetime) -> Outcome:
    stage.clock.move_to(instant)
    return DOWN


def begins(stage: Stage, planned: Planned, since: datetime) -> str:
    """Sets the beginning of the streak to then."""
    streak = str(Streak(since, target_of(stage.job(planned).action)))
    stage.edit_schedule(planned, unreachable={"S": streak})
    return streak


@pytest.mark.parametrize("contact", [OK, BUSY, WRONG], ids=["success", "503", "404"])
def test_one_contact_restarts_the_count(stage: Stage, contact: Outcome) -> None:
    planned = job(stage)

    days(stage, *[DOWN] * 9, contact)
    assert since(stage, planned) is None
    days(stage, *[DOWN] * 10)
    assert state(stage, planned) == ON
    days(stage, DOWN)

    assert state(stage, planned) == OFF


def test_a_retry_that_reaches_the_target_is_a_contact(stage: Stage) -> None:
    planned = job(stage, action=stage.action(retry=fixed(10)))
    days(stage, *[DOWN] * 5)
    assert since(stage, planned) is not None
    stage.endpoint.script = [DOWN, DOWN]

    days(stage, OK)

    assert since(stage, planned) is None


def test_an_attempt_that_waits_for_its_retry_counts_too(stage: Stage) -> None:
    planned = job(stage, action=stage.action(retry=fixed(86_400, 49)))
    days(stage, DOWN)
    stage.pass_time(10 * DAY.total_seconds())

    stage.run(360)

    assert state(stage, planned) == OFF
    assert {run.state for run in stage.runs(planned)} & {State.RETRY_WAIT}


def test_a_manual_run_of_the_schedule_is_a_contact(stage: Stage) -> None:
    planned = job(stage)
    days(stage, DOWN)
    stage.endpoint.answer = OK

    manual.run_now(stage.world, TENANT, planned.job.id, planned.schedules[0].id, None)
    stage.deliver_all()

    assert since(stage, planned) is None


def test_an_error_action_has_another_target(stage: Stage) -> None:
    planned = job(stage, error_action=stage.action(url="https://example.org/alarm"))

    def only_the_alarm(_call: Any) -> Outcome:
        return OK if len(stage.runs(planned, Kind.ERROR_ACTION)) == 1 else DOWN

    stage.endpoint.answer = only_the_alarm
    stage.run(360)

    assert [run.state for run in stage.runs(planned, Kind.ERROR_ACTION)] == [State.SUCCESS]
    assert since(stage, planned) == stage.runs(planned, Kind.SCHEDULED)[0].finished_at


# Reactions of a user


def test_another_target_restarts_the_count(stage: Stage) -> None:
    planned = job(stage)
    days(stage, *[DOWN] * 9)
    stage.change(planned, action=stage.action(url="https://example.org/moved"))

    days(stage, *[DOWN] * 5)

    assert state(stage, planned) == ON


def switched(stage: Stage, planned: Planned, *, on: bool) -> None:
    def request(there: Planned) -> list[ScheduleRequest]:
        return [ScheduleRequest(each, replace(as_stored(each), active=on)) for each in there.schedules]

    stage.change_schedules(planned, request)


def test_activating_again_gives_ten_more_days(stage: Stage) -> None:
    planned = job(stage)
    days(stage, *[DOWN] * 11)
    assert state(stage, planned) == OFF

    switched(stage, planned, on=True)
    assert since(stage, planned) is None
    days(stage, *[DOWN] * 10)
    assert state(stage, planned) == ON
    days(stage, DOWN)

    assert state(stage, planned) == OFF
    assert len(set(told(stage))) == 2


def test_the_reason_stays_until_somebody_activates_the_schedule(stage: Stage) -> None:
    planned = job(stage)
    days(stage, *[DOWN] * 11)

    stage.change(planned, timings=[{"cron": "6 12 * * *"}])
    stage.set_state(planned, active=False)
    stage.set_state(planned, active=True)
    assert state(stage, planned) == OFF
    switched(stage, planned, on=True)
    switched(stage, planned, on=False)

    assert state(stage, planned) == (ScheduleState.INACTIVE, StateReason.BY_USER)


def test_a_pause_restarts_the_count(stage: Stage) -> None:
    planned = job(stage)
    days(stage, DOWN)
    stage.set_state(planned, pause=Pause(NOON))
    stage.pass_time(20 * DAY.total_seconds())
    stage.set_state(planned, pause=None)

    days(stage, DOWN)

    assert state(stage, planned) == ON


def test_a_job_can_be_set_to_continue_forever(stage: Stage) -> None:
    planned = job(stage, policies={"onUnreachable": "continue"})

    days(stage, *[DOWN] * 12)

    assert state(stage, planned) == ON


def test_the_change_log_attributes_the_deactivation_to_the_service(stage: Stage) -> None:
    planned = job(stage)
    before = stage.job(planned).revision

    days(stage, *[DOWN] * 11)

    assert stage.job(planned).revision == before + 1
    (entry,) = [
        RevisionItem.from_raw_data(item) for item in stage.items() if item["sk"]["S"] == f"REV#{before + 1:08d}"
    ]
    assert (entry.operation, entry.actor) == ("deactivate_unreachable", None)


@pytest.mark.parametrize(("choice", "events"), [(Events.FAILURES, 1), (Events.ALL, 1), (Events.NONE, 0)])
def test_a_deactivation_is_published_with_the_failures(stage: Stage, choice: Events, events: int) -> None:
    planned = job(stage)
    stage.tell(choice)

    days(stage, *[DOWN] * 11)

    assert state(stage, planned) == OFF
    assert len(told(stage)) == events


# Races and faults


def test_a_contact_between_the_read_and_the_write_keeps_the_schedule_active(stage: Stage) -> None:
    planned = job(stage)
    days(stage, *[DOWN] * 10)
    revision = stage.job(planned).revision

    def reached(_passing: Passing, act: Act) -> Any:
        stage.edit_schedule(planned, unreachable=None)
        return act()

    stage.endpoint.answer = DOWN
    with stage.taps.faulty(lambda passing, act: reached(passing, act) if switches_off(passing) else act()):
        stage.run(360)

    assert state(stage, planned) == ON
    assert stage.job(planned).revision == revision


def switches_off(passing: Passing) -> bool:
    return passing.operation == "TransactWriteItems" and "deactivate_unreachable" in str(passing.request)


def test_a_change_by_a_user_before_the_write_keeps_the_schedule_active(stage: Stage) -> None:
    planned = job(stage)
    days(stage, *[DOWN] * 10)
    moved = []

    def first(passing: Passing, act: Act) -> Any:
        if switches_off(passing) and not moved:
            moved.append(True)
            fault, stage.taps.fault = stage.taps.fault, None
            stage.change(planned, action=stage.action(url="https://example.org/moved"))
            stage.taps.fault = fault
        return act()

    stage.endpoint.answer = DOWN
    with stage.taps.faulty(first):
        stage.run(360)

    assert moved
    assert state(stage, planned) == ON


@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused])
def test_the_returning_message_completes_and_publishes_an_interrupted_deactivation(stage: Stage, fault: Any) -> None:
    planned = job(stage)
    days(stage, *[DOWN] * 10)
    met = []

    def once(passing: Passing, act: Act) -> Any:
        if switches_off(passing) and not met:
            met.append(True)
            return fault(passing, act)
        return act()

    stage.endpoint.answer = DOWN
    with stage.taps.faulty(once):
        for _ in range(12):
            with suppress(Crash):
                stage.run(60)

    assert met
    assert state(stage, planned) == OFF
    assert len(set(told(stage))) == 1
    exact(stage, planned)


@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused])
def test_an_interrupted_note_loses_no_run_and_no_streak(stage: Stage, fault: Any) -> None:
    planned = job(stage)
    met = []

    def once(passing: Passing, act: Act) -> Any:
        if passing.operation == "UpdateItem" and "unreachable" in str(passing.request) and not met:
            met.append(True)
            return fault(passing, act)
        return act()

    stage.endpoint.answer = DOWN
    with stage.taps.faulty(once):
        for _ in range(6):
            with suppress(Crash):
                stage.run(60)
    stage.pass_time(DAY.total_seconds() - 360)
    days(stage, DOWN)

    assert met
    assert since(stage, planned) is not None
    assert {run.state for run in stage.runs(planned)} == {State.REQUEST_ERROR}
    exact(stage, planned)


@pytest.mark.parametrize("answer", [OK, WRONG], ids=["success", "404"])
def test_a_contact_that_could_not_be_recorded_is_recorded_with_the_end(stage: Stage, answer: Outcome) -> None:
    planned = job(stage)
    days(stage, DOWN)
    met = []

    def first(passing: Passing, act: Act) -> Any:
        if passing.operation == "UpdateItem" and "unreachable" in str(passing.request) and not met:
            met.append(True)
            return refused(passing, act)
        return act()

    with stage.taps.faulty(first):
        days(stage, answer)

    assert met
    assert since(stage, planned) is None


def test_no_failure_is_recorded_for_a_superseded_plan(stage: Stage) -> None:
    planned = job(stage)

    def changed_meanwhile(_call: Any) -> Outcome:
        stage.change(planned, timings=[{"cron": "6 12 * * *"}])
        return DOWN

    stage.endpoint.script = [changed_meanwhile]
    stage.run(290)

    assert len(stage.endpoint.received) == 1
    assert since(stage, planned) is None


def test_a_streak_begun_by_another_attempt_keeps_its_start(stage: Stage) -> None:
    planned = job(stage)

    def noted_meanwhile(_call: Any) -> Outcome:
        begins(stage, planned, NOON)
        return DOWN

    stage.endpoint.script = [noted_meanwhile]
    stage.run(290)

    assert len(stage.endpoint.received) == 1
    assert since(stage, planned) == NOON


def test_a_streak_begun_after_the_read_outlives_an_older_contact(stage: Stage) -> None:
    planned = job(stage)
    days(stage, DOWN)

    def begun_anew(_call: Any) -> Outcome:
        begins(stage, planned, NOON + DAY)
        return OK

    stage.endpoint.script = [begun_anew]
    stage.run(360)

    assert since(stage, planned) == NOON + DAY


def test_a_job_deleted_meanwhile_causes_no_error(stage: Stage) -> None:
    planned = job(stage)
    days(stage, *[DOWN] * 10)

    def gone(_call: Any) -> Outcome:
        stage.delete(planned)
        return DOWN

    stage.endpoint.answer = gone
    stage.run(600)

    assert "a message failed" not in stage.journal.at("error")
    assert told(stage) == []


# Costs


def test_a_success_costs_no_additional_read_or_write(stage: Stage) -> None:
    planned = job(stage)
    days(stage, OK)
    stage.taps.passed.clear()

    days(stage, OK)

    writes = [each for each in stage.taps.passed if "#SCH" in str(each.request) and each.operation == "UpdateItem"]
    assert [each.request["Key"]["sk"]["S"].split("#")[0] for each in writes] == ["RUN"]
    assert len(stage.runs(planned)) == 2


def test_a_streak_costs_one_write_at_its_start_and_one_at_its_end(stage: Stage) -> None:
    job(stage)
    stage.taps.passed.clear()

    days(stage, DOWN, DOWN, DOWN, OK, OK)

    updates = [each for each in stage.taps.passed if each.operation == "UpdateItem"]
    assert len([each for each in updates if "unreachable" in str(each.request)]) == 2
