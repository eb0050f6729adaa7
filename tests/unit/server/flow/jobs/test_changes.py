"""A change of timing or state within the look-ahead window: what was planned and what ran stay the same number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest, PreconditionFailed, Unavailable
from sweephand.domain.instants import text
from sweephand.domain.job import Pause
from sweephand.domain.run import Kind, Reason, State
from sweephand.domain.schedule import Lane, ScheduleState, StateReason
from sweephand.server.flow.jobs import change, lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.server.store.jobs import jobs
from sweephand.testing.taps import Act, Passing
from tests.support.stage import TENANT, Stage
from tests.support.stage import stage as new_stage
from tests.support.taps import answer_lost, conflict, refused
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, exact, minutes, once

HOUR = 60 * MINUTE

A = {"cron": "* * * * *"}
B = {"cron": "*/2 * * * *"}
TAKES_EFFECT_WITHIN = 7 * SECOND


def at(stage: Stage, moment: datetime) -> None:
    """Runs the service until then."""
    stage.run((moment - stage.clock.now()).total_seconds())


def ended_by(stage: Stage, planned: Planned) -> None:
    """Lets the series end and everything settle."""
    stage.run(1_500)
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    exact(stage, planned)


def counted(timing: dict[str, Any]) -> dict[str, Any]:
    """Returns a timing with an end, so that the whole history settles and can be counted."""
    return {**timing, "endTime": text(NOON + 10 * MINUTE)}


# One edit


@pytest.mark.parametrize("before_s", [1, -1])
def test_an_edit_near_an_instant_runs_and_counts_the_instant_once(stage: Stage, before_s: int) -> None:
    """A second before its instant the occurrence is due before the change takes effect; a second after, it has run."""
    planned = stage.create(counted(A))
    at(stage, NOON + 3 * MINUTE - before_s * SECOND)

    stage.change(planned, timings=[counted(B)])

    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(1, 2, 3, 4, 6, 8, 10)


def test_an_edit_takes_effect_within_seconds(stage: Stage) -> None:
    planned = stage.create(counted(A))
    at(stage, NOON + 3 * MINUTE - TAKES_EFFECT_WITHIN)

    stage.change(planned, timings=[counted(B)])

    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(1, 2, 4, 6, 8, 10)


def test_instants_sent_ahead_are_withdrawn_and_counted_again(stage: Stage) -> None:
    planned = stage.create(counted(A))
    stage.tick()
    assert stage.stored(planned).planned_total == 2

    changed = stage.change(planned, timings=[counted(B)]).schedules[0]

    assert (changed.generation, changed.planned_total) == (2, 0)
    assert changed.next_run_at == NOON + 2 * MINUTE
    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(2, 4, 6, 8, 10)


def test_instants_due_before_the_change_that_were_not_yet_sent_run_and_count(stage: Stage) -> None:
    """The sweeper was away: what the old plan owes is sent by the change itself, before its write."""
    planned = stage.create(counted(A))
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])
    stage.clock.advance(130)

    changed = stage.change(planned, timings=[counted(B)]).schedules[0]

    assert changed.planned_total == 2
    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(1, 2, 4, 6, 8, 10)


def test_the_same_instant_under_both_plans_runs_once(stage: Stage) -> None:
    planned = stage.create(counted(A))
    stage.run(30)

    stage.change(planned, timings=[counted({**A, "jitterSeconds": 0, "timezone": "Europe/Berlin"})])

    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(*range(1, 11))


def test_a_change_and_its_reversal_within_the_window_run_each_instant_once(stage: Stage) -> None:
    planned = stage.create(counted(A))
    stage.run(30)

    stage.change(planned, timings=[counted(B)])
    stage.clock.advance(1)
    changed = stage.change(planned, timings=[counted(A)]).schedules[0]

    assert changed.generation == 3
    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(*range(1, 11))


def test_more_changes_than_the_row_remembers_lose_no_occurrence(stage: Stage) -> None:
    planned = stage.create(counted(A))
    stage.tick()

    for n in range(25):
        stage.change(planned, timings=[counted(B if n % 2 == 0 else A)])
    assert stage.stored(planned).generation == 26
    assert len(stage.stored(planned).ended_at) == 20

    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(2, 4, 6, 8, 10)


def test_a_change_of_an_ending_series_withdraws_occurrences_sent_ahead(stage: Stage) -> None:
    """All three are sent and counted: the row keeps its last instant, so that the change knows what to take back."""
    planned = stage.create({**A, "count": 3})
    stage.run(61)
    stage.tick()
    assert stage.stored(planned).state is ScheduleState.ENDING

    changed = stage.change(planned, timings=[{**B, "count": 3}]).schedules[0]

    assert (changed.state, changed.planned_total) == (ScheduleState.ACTIVE, 1)
    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(1, 2, 4)


def test_a_change_that_leaves_no_occurrence_ends_the_series(stage: Stage) -> None:
    planned = stage.create(counted(A))
    at(stage, NOON + 150 * SECOND)

    changed = stage.change(planned, timings=[{**A, "count": 2}]).schedules[0]

    assert (changed.state, changed.planned_total) == (ScheduleState.COMPLETED, 2)
    ended_by(stage, planned)
    assert stage.stored(planned).state_reason == StateReason.COUNT_REACHED
    assert stage.endpoint.planned == minutes(1, 2)


def test_a_completed_series_continues_with_a_new_timing(stage: Stage) -> None:
    planned = stage.create(once())
    stage.run(120)
    assert stage.stored(planned).state is ScheduleState.COMPLETED

    changed = stage.change(planned, timings=[once(5 * MINUTE)]).schedules[0]

    assert changed.state is ScheduleState.ACTIVE
    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(1, 5)


def test_a_moved_one_time_instant_runs_only_at_its_new_time(stage: Stage) -> None:
    planned = stage.create(once(2 * MINUTE))
    stage.tick()

    stage.change(planned, timings=[once(3 * MINUTE)])

    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(3)


def test_a_one_time_instant_moved_to_now_runs_now(stage: Stage) -> None:
    planned = stage.create(once(2 * MINUTE))
    stage.tick()

    stage.change(planned, timings=[once(2 * SECOND)])

    ended_by(stage, planned)
    assert stage.endpoint.planned == [NOON + 2 * SECOND]


def test_messages_of_an_earlier_generation_still_run_if_due_before_the_change(stage: Stage) -> None:
    """Executors were down: what the old plan sent and owned runs, though the schedule has moved on."""
    planned = stage.create(counted(A))
    stage.tick()
    stage.clock.advance(100)

    stage.change(planned, timings=[counted(B)])

    ended_by(stage, planned)
    assert stage.endpoint.planned[0] == NOON + MINUTE


def test_an_interval_from_the_actual_start_is_withdrawn_by_its_own_steps(stage: Stage) -> None:
    timing = {"every": "PT1M", "align": "actual_start", "count": 8}
    planned = stage.create(timing)
    stage.tick()
    assert stage.stored(planned).planned_total == 2

    changed = stage.change(planned, timings=[counted(B)]).schedules[0]

    assert changed.planned_total == 0
    ended_by(stage, planned)


# Changes that keep the plan


def test_a_change_equal_to_what_is_stored_changes_nothing(stage: Stage) -> None:
    planned = stage.create(counted(A))
    stage.tick()
    before = stage.items()

    stage.change(planned, timings=[counted(A)])

    assert stage.items() == before


def test_a_new_name_or_payload_leaves_the_series_alone(stage: Stage) -> None:
    planned = stage.create(counted(A))
    stage.tick()

    stage.change(planned, description="new", action=stage.action(payload={"n": 2}))

    schedule = stage.stored(planned)
    assert (schedule.generation, schedule.planned_total) == (1, 2)
    assert stage.job(planned).revision == 2
    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(*range(1, 11))
    assert {received.call.payload for received in stage.endpoint.received} == {'{"n":2}'}


def test_occurrences_due_before_a_change_of_the_action_run_with_the_current_one(stage: Stage) -> None:
    planned = stage.create(counted(A))
    stage.tick()

    stage.change(planned, action=stage.action(url="https://example.org/new"))

    stage.run(61)
    assert stage.endpoint.received[0].params["url"] == "https://example.org/new"


# States


def test_a_pause_skips_due_occurrences_and_the_resume_replans(stage: Stage) -> None:
    planned = stage.create(counted(A))
    at(stage, NOON + 150 * SECOND)

    stage.set_state(planned, pause=Pause(stage.clock.now()))
    assert stage.stored(planned).state is ScheduleState.PAUSED
    assert stage.stored(planned).next_run_at is None
    at(stage, NOON + 330 * SECOND)
    stage.set_state(planned, pause=None)

    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(1, 2, 6, 7, 8, 9, 10)
    assert stage.fold(planned).left_out == 3


def test_each_period_that_a_schedule_was_off_is_one_line_of_the_ledger(stage: Stage) -> None:
    """Paused, changed while paused, stopped while paused: no minute of it goes without its line."""
    planned = stage.create(counted(A))
    at(stage, NOON + 90 * SECOND)
    stage.set_state(planned, pause=Pause(stage.clock.now()))
    at(stage, NOON + 210 * SECOND)
    stage.change(planned, timings=[counted(B)])
    at(stage, NOON + 330 * SECOND)
    stage.set_state(planned, active=False)
    at(stage, NOON + 450 * SECOND)
    stage.set_state(planned, active=True, pause=None)

    ended_by(stage, planned)

    lines = [run for run in stage.runs(planned) if run.range_count is not None]
    assert [(run.planned_at, run.range_until, run.range_count, run.reason) for run in lines] == [
        (*minutes(2, 3), 2, Reason.PAUSED),
        (*minutes(4, 4), 1, Reason.PAUSED),
        (*minutes(6, 6), 1, Reason.DISABLED),
    ]
    assert stage.endpoint.planned == minutes(1, 8, 10)


@pytest.mark.parametrize("members", [{"pause": Pause(NOON)}, {"active": False}])
@pytest.mark.parametrize("offset_s", [-1, 1])
def test_a_stop_and_a_start_within_the_window_run_each_instant_once(
    stage: Stage, members: dict[str, Any], offset_s: int
) -> None:
    planned = stage.create(counted(A))
    at(stage, NOON + 2 * MINUTE + offset_s * SECOND)

    stage.set_state(planned, **members)
    stage.clock.advance(1)
    stage.set_state(planned, pause=None, active=True)

    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(*range(1, 11))


@pytest.mark.parametrize(
    ("members", "reason"), [({"pause": Pause(NOON)}, Reason.PAUSED), ({"active": False}, Reason.DISABLED)]
)
def test_occurrences_in_the_last_seconds_before_a_stop_are_skipped_and_counted(
    stage: Stage, members: dict[str, Any], reason: Reason
) -> None:
    planned = stage.create(counted(A))
    at(stage, NOON + 2 * MINUTE - 2 * SECOND)

    stage.set_state(planned, **members)
    stage.run(300)

    assert stage.endpoint.planned == minutes(1)
    skipped = stage.runs(planned)[-1]
    assert (skipped.state, skipped.reason, skipped.planned_at) == (State.SKIPPED, reason, NOON + 2 * MINUTE)
    exact(stage, planned)
    stage.set_state(planned, pause=None, active=True)
    ended_by(stage, planned)


def test_one_schedule_is_deactivated_and_the_others_continue(stage: Stage) -> None:
    planned = stage.create(counted(A), counted(B))
    first, second = planned.schedules

    def off(there: Planned) -> list[ScheduleRequest]:
        schedule = lookup.find_schedule(there, first.id)
        return [
            ScheduleRequest(
                schedule, replace(stage.schedule(schedule.timing, schedule.name), active=False, id=schedule.id)
            )
        ]

    stage.run(1)
    stage.change_schedules(planned, off)

    stage.run(240)
    assert {received.call.schedule_id for received in stage.endpoint.received} == {second.id}
    assert stage.stored(first).state is ScheduleState.INACTIVE
    assert stage.stored(first).state_reason == StateReason.BY_USER
    assert stage.stored(second).generation == 1


def test_an_inactive_schedule_is_not_in_any_index(stage: Stage) -> None:
    planned = stage.create(counted(A), active=False)

    assert stage.waiting() == {}
    assert not [item for item in stage.items() if "schedule_id" in item and "sweep" in item]
    stage.set_state(planned, active=True)
    assert len(stage.waiting()) == 1
    ended_by(stage, planned)


# The order of its steps


def test_occurrences_owed_by_the_old_plan_are_sent_before_the_write(stage: Stage) -> None:
    planned = stage.create(counted(A))
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])
    stage.clock.advance(70)
    stage.taps.passed.clear()

    stage.change(planned, timings=[counted(B)])

    names = stage.taps.names()
    assert names.index("sqs.SendMessageBatch") < names.index("dynamodb.TransactWriteItems")


def test_a_change_whose_owed_message_is_refused_does_not_happen(stage: Stage) -> None:
    planned = stage.create(counted(A))
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])
    stage.clock.advance(70)
    before = stage.items()

    with stage.taps.faulty(_no_sends), pytest.raises(Unavailable):
        stage.change(planned, timings=[counted(B)])

    assert stage.items() == before
    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(*range(1, 11))


def _no_sends(passing: Passing, act: Act) -> Any:
    return refused(passing, act) if passing.operation == "SendMessageBatch" else act()


def test_a_change_that_took_too_long_to_prepare_does_not_happen(stage: Stage) -> None:
    planned = stage.create(counted(A))
    stage.clock.advance(70)
    before = stage.items()

    def slow(_passing: Passing, act: Act) -> Any:
        stage.clock.advance(6)
        return act()

    with stage.taps.once("sqs.SendMessageBatch", slow), pytest.raises(Unavailable):
        stage.change(planned, timings=[counted(B)])

    assert stage.items() == before


def test_a_sweep_between_read_and_write_makes_the_change_start_again(stage: Stage) -> None:
    planned = stage.create(counted(A))

    def swept_first(_passing: Passing, act: Act) -> Any:
        fault, stage.taps.fault = stage.taps.fault, None
        stage.tick()
        stage.taps.fault = fault
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", swept_first):
        changed = stage.change(planned, timings=[counted(B)]).schedules[0]

    assert changed.planned_total == 0
    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(2, 4, 6, 8, 10)


def test_two_concurrent_changes_both_happen_in_turn(stage: Stage) -> None:
    planned = stage.create(counted(A))

    def other_first(_passing: Passing, act: Act) -> Any:
        fault, stage.taps.fault = stage.taps.fault, None
        stage.change(planned, description="other")
        stage.taps.fault = fault
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", other_first):
        stage.set_state(planned, active=False)

    job = stage.job(planned)
    assert (job.revision, job.description, job.active) == (3, "other", False)


def others_first(stage: Stage, planned: Planned, times: int) -> Callable[[Passing, Act], Any]:
    """Lets somebody else change the job before each of that many transactions."""
    left = iter(range(times))

    def fault(passing: Passing, act: Act) -> Any:
        if passing.name == "dynamodb.TransactWriteItems" and (n := next(left, None)) is not None:
            mine, stage.taps.fault = stage.taps.fault, None
            stage.change(planned, description=f"other {n}")
            stage.taps.fault = mine
        return act()

    return fault


@pytest.mark.parametrize("times", [5, 19])
def test_a_change_succeeds_after_many_concurrent_ones(stage: Stage, times: int) -> None:
    planned = stage.create(counted(A))

    with stage.taps.faulty(others_first(stage, planned, times)):
        stage.set_state(planned, active=False)

    job = stage.job(planned)
    assert (job.revision, job.description, job.active) == (2 + times, f"other {times - 1}", False)


def test_a_change_that_never_succeeds_fails_while_its_caller_still_waits(stage: Stage) -> None:
    planned = stage.create(counted(A))
    began = stage.clock.now()

    with (
        stage.taps.faulty(others_first(stage, planned, 10_000)),
        pytest.raises(Unavailable, match="too many concurrent changes to this job"),
    ):
        stage.set_state(planned, active=False)

    assert stage.job(planned).active
    assert stage.clock.now() - began < timedelta(seconds=12)


def test_a_change_in_conflict_with_another_is_tried_again(stage: Stage) -> None:
    planned = stage.create(counted(A))

    with stage.taps.once("dynamodb.TransactWriteItems", conflict):
        stage.change(planned, timings=[counted(B)])

    assert stage.stored(planned).generation == 2
    ended_by(stage, planned)


@pytest.mark.parametrize("lasting", [conflict, refused])
def test_a_change_that_is_always_refused_fails_and_changes_nothing(stage: Stage, lasting: Any) -> None:
    planned = stage.create(counted(A))
    before = stage.items()

    def always(passing: Passing, act: Act) -> Any:
        return lasting(passing, act) if passing.operation == "TransactWriteItems" else act()

    with stage.taps.faulty(always), pytest.raises(Unavailable):
        stage.change(planned, timings=[counted(B)])

    assert stage.items() == before


def test_a_change_whose_answer_was_lost_happened_once(stage: Stage) -> None:
    planned = stage.create(counted(A))
    stage.tick()

    with stage.taps.once("dynamodb.TransactWriteItems", answer_lost):
        changed = stage.change(planned, timings=[counted(B)])

    assert (changed.job.revision, changed.schedules[0].generation) == (2, 2)
    assert stage.job(planned).revision == 2
    ended_by(stage, planned)
    assert stage.endpoint.planned == minutes(2, 4, 6, 8, 10)


def test_a_schedule_added_with_a_lost_answer_is_added_once(stage: Stage) -> None:
    planned = stage.create(counted(A))

    with stage.taps.once("dynamodb.TransactWriteItems", answer_lost):
        stage.change_schedules(planned, lambda _there: [ScheduleRequest(None, stage.schedule(counted(B)))])

    assert len(lookup.find(stage.world, TENANT, planned.job.id).schedules) == 2


def test_a_change_with_an_outdated_revision_changes_nothing(stage: Stage) -> None:
    planned = stage.create(counted(A))
    stage.change(planned, description="second")

    with pytest.raises(PreconditionFailed):
        change.set_state(stage.world, TENANT, planned.job.id, lambda job: replace(job, active=False), 1)

    assert stage.job(planned).active


def test_the_stored_job_equals_the_returned_one(stage: Stage) -> None:
    planned = stage.create(counted(A), tags=("a", "b"), resource_id="r", start_at=NOON, end_at=NOON + 300 * MINUTE)
    changed = stage.change(planned, timings=[counted(B)], tags=("b", "c"), resource_id=None)

    assert lookup.find(stage.world, TENANT, planned.job.id) == changed


# A schedule that cannot be read any more


def broken(stage: Stage) -> Planned:
    planned = stage.create(counted(A), counted(B))
    stage.edit_schedule(planned, sweep={"S": 'S;fast;sap;{"cron":"gone"}'})
    stage.tick()
    assert stage.stored(planned).state is ScheduleState.BROKEN
    return planned


def test_a_job_with_a_broken_schedule_can_still_be_paused_and_changed(stage: Stage) -> None:
    planned = broken(stage)

    stage.set_state(planned, pause=Pause(NOON))
    stage.set_state(planned, pause=None)
    stage.change(planned, description="new")

    assert stage.stored(planned).state is ScheduleState.BROKEN
    assert stage.stored(planned.schedules[1]).state is ScheduleState.ACTIVE
    assert stage.job(planned).description == "new"


def test_a_new_timing_repairs_a_broken_schedule(stage: Stage) -> None:
    planned = broken(stage)

    stage.change(planned, timings=[counted({"cron": "*/3 * * * *"}), counted(B)])

    assert stage.stored(planned).state is ScheduleState.ACTIVE
    stage.run(400)
    mine = [run.planned_at for run in stage.runs(planned) if run.state is State.SUCCESS]
    assert mine == minutes(3, 6)


def test_sending_its_own_timing_repairs_a_broken_schedule(stage: Stage) -> None:
    """The string that cannot be read is our own, not the caller's: the same request, packed anew."""
    planned = broken(stage)

    stage.change(planned, timings=[counted(A), counted(B)])

    assert stage.stored(planned).state is ScheduleState.ACTIVE


def test_a_job_with_a_broken_schedule_can_be_deleted(stage: Stage) -> None:
    planned = broken(stage)

    stage.delete(planned)
    stage.run(120)

    assert jobs.read_job(stage.world.table, TENANT, planned.job.id) is None


def test_a_change_to_a_timing_that_never_fires_is_refused(stage: Stage) -> None:
    planned = stage.create(counted(A))
    before = stage.items()

    for wrong in ({"cron": "0 0 30 2 *"}, {"at": "2020-01-01T00:00:00Z"}, {"every": "PT0S"}):
        with pytest.raises(InvalidRequest):
            stage.change(planned, timings=[wrong])

    assert stage.items() == before


# Any history

moves = st.lists(
    st.tuples(
        st.integers(0, 130),
        st.sampled_from(["A", "B", "pause", "resume", "off", "on", "nothing"]),
    ),
    max_size=8,
)


def any_history(history: list[tuple[int, str]]) -> None:
    end = {"endTime": text(NOON + 6 * MINUTE)}
    with new_stage(shards=1) as stage:
        planned = stage.create({**A, **end})
        for seconds, move in history:
            stage.run(seconds, most=1)
            match move:
                case "A" | "B":
                    if stage.clock.now() < NOON + 5 * MINUTE:
                        stage.change(planned, timings=[{**(A if move == "A" else B), **end}])
                case "pause" | "resume":
                    stage.set_state(planned, pause=Pause(NOON) if move == "pause" else None)
                case "off" | "on":
                    stage.set_state(planned, active=move == "on")
        stage.set_state(planned, active=True, pause=None)
        stage.run(1_300, most=1)

        schedule = stage.stored(planned)
        rows = stage.runs(planned, Kind.SCHEDULED)
        runs = [run for run in rows if run.range_count is None]
        assert schedule.state is ScheduleState.COMPLETED
        assert schedule.planned_total == len(runs) == len({run.planned_at for run in runs})
        assert len(stage.endpoint.planned) == len(set(stage.endpoint.planned))
        assert all(run.finished for run in rows)
        exact(stage, planned)


@settings(max_examples=10)
@given(moves)
def test_the_ledger_equals_the_plan_after_any_change(history: list[tuple[int, str]]) -> None:
    """planned_total = rows of the ledger, and no instant runs twice: for each history of edits, pauses and stops."""
    any_history(history)


@pytest.mark.long
@settings(max_examples=300, derandomize=False)
@given(moves)
def test_the_ledger_equals_the_plan_after_any_change_in_long_histories(history: list[tuple[int, str]]) -> None:
    any_history(history)


def test_the_last_remembered_change_is_within_its_bounds(stage: Stage) -> None:
    planned = stage.create(counted(A))
    stage.clock.advance(0.5)

    changed = stage.change(planned, timings=[counted(B)]).schedules[0]

    effective = changed.ended_at[1]
    assert timedelta(seconds=5) <= timedelta(seconds=effective) - timedelta(seconds=stage.clock.now().timestamp())
    assert effective <= (stage.clock.now() + TAKES_EFFECT_WITHIN).timestamp()


@pytest.mark.parametrize("interval", [{"every": "PT1H"}, {"eventBridge": "rate(1 hour)"}])
@pytest.mark.parametrize("more", [{"count": 100}, {"endTime": text(NOON + 50 * HOUR)}])
def test_a_change_of_the_window_alone_keeps_the_rhythm(
    stage: Stage, interval: dict[str, Any], more: dict[str, Any]
) -> None:
    planned = stage.create(interval)
    stage.run(700)

    changed = stage.change(planned, timings=[{**interval, **more}]).schedules[0]

    assert changed.next_run_at == planned.schedules[0].next_run_at
    assert changed.generation == 2


def test_a_change_of_the_jobs_window_keeps_the_rhythm_too(stage: Stage) -> None:
    planned = stage.create({"every": "PT1H"})
    stage.run(700)

    changed = stage.change(planned, end_at=NOON + 50 * HOUR).schedules[0]

    assert changed.next_run_at == planned.schedules[0].next_run_at


def test_a_window_that_leaves_no_occurrence_is_refused_by_its_field(stage: Stage) -> None:
    planned = stage.create({"every": "PT1H"})

    with pytest.raises(InvalidRequest) as refused:
        stage.change(planned, end_at=NOON + MINUTE)

    assert (refused.value.field, refused.value.code) == ("endTime", "NEVER_FIRES")


def test_a_one_time_schedule_that_has_run_does_not_run_again_when_its_job_is_changed(stage: Stage) -> None:
    planned = stage.create({"at": text(NOON - HOUR)}, policies={"onPastStart": "run_now"})
    stage.run(7)

    stage.change(planned, end_at=NOON + 50 * HOUR, policies={"onPastStart": "run_now"})
    stage.run(1_200)
    stage.change(planned, end_at=NOON + 60 * HOUR, policies={"onPastStart": "run_now"})
    stage.run(1_200)

    assert len(stage.endpoint.received) == 1
    assert stage.stored(planned).state is ScheduleState.COMPLETED
