"""The way of an occurrence, whole: created, swept, delivered on its second, claimed, acted on, in the ledger."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from sweephand.domain.instants import from_s, text
from sweephand.domain.job import Payload
from sweephand.domain.run import Reason, State
from sweephand.domain.schedule import ScheduleState, StateReason
from sweephand.schedules.timing import load_or_never
from sweephand.server.flow.jobs import creation
from sweephand.server.store.dynamo import keys
from sweephand.testing.sources import START
from tests.support.endpoint import WRONG
from tests.support.stage import TENANT, Stage

NOON = START.replace(microsecond=0)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def minutes(*numbers: float) -> list[datetime]:
    return [NOON + n * MINUTE for n in numbers]


def test_a_recurring_job_runs_at_each_of_its_instants(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"})

    stage.run(300)

    assert stage.endpoint.planned == minutes(1, 2, 3, 4, 5)
    lateness = [received.at - received.call.planned_at for received in stage.endpoint.received]
    assert all(timedelta(0) <= late < SECOND for late in lateness)
    runs = stage.runs(planned)
    assert [run.id for run in runs] == stage.endpoint.run_ids
    assert {(run.state, run.reason, run.attempt) for run in runs} == {(State.SUCCESS, Reason.ON_TIME, 1)}


def test_no_occurrence_is_delivered_before_its_instant(stage: Stage) -> None:
    """The clock reads a fraction of a second: a delay rounded down would bring each message early."""
    stage.create({"every": "PT7S"})

    stage.run(180)

    assert len(stage.endpoint.received) >= 25
    assert all(received.at >= received.call.planned_at for received in stage.endpoint.received)


def test_a_ledger_row_holds_all_facts_of_its_run(stage: Stage) -> None:
    planned = stage.create({"at": text(NOON + MINUTE)})

    stage.run(61)

    run = stage.only_run(planned)
    assert run.planned_at == NOON + MINUTE
    assert run.planned_at <= run.started_at == run.first_started_at == run.finished_at < run.planned_at + SECOND
    assert run.enqueued_at == START
    assert (run.http_status, run.answer, run.attempt, run.lost, run.generation) == (200, "done", 1, 0, 1)
    assert (run.lease_owner, run.lease_until, run.wake_at) == (None, None, None)
    assert run.expires_at is not None
    assert run.expires_at - run.finished_at > timedelta(days=14)


def test_a_successful_run_costs_one_claim_and_one_end_write(stage: Stage) -> None:
    """Least writes: what only failures pay must not slip into the plain way."""
    stage.create({"cron": "*/5 * * * *"})
    stage.run(240)
    stage.taps.passed.clear()
    stage.pass_time(60)

    stage.deliver_all()

    assert stage.taps.names() == [
        "sqs.ChangeMessageVisibilityBatch",
        "dynamodb.BatchGetItem",
        "dynamodb.BatchGetItem",  # tenant and collection, remembered for two seconds
        "dynamodb.PutItem",
        "endpoint.http",
        "dynamodb.UpdateItem",
    ]


def test_an_idle_tick_reads_the_disabled_list_and_each_shard_once_and_writes_nothing(stage: Stage) -> None:
    stage.create({"cron": "0 0 1 1 *"})
    stage.tick()  # the first one notes the version of its zone data
    stage.taps.passed.clear()

    stage.tick()

    assert stage.taps.names() == ["dynamodb.Query"] * (1 + stage.world.settings.shards)


def test_a_one_time_job_runs_once_and_completes(stage: Stage) -> None:
    planned = stage.create({"at": text(NOON + 5 * MINUTE)})

    stage.run(1_500)

    assert stage.endpoint.planned == minutes(5)
    schedule = stage.stored(planned)
    assert (schedule.state, schedule.state_reason) == (ScheduleState.COMPLETED, StateReason.ONE_TIME_DONE)
    assert schedule.next_run_at is None
    assert not stage.waiting()


def test_a_one_time_instant_within_the_last_minute_runs_immediately(stage: Stage) -> None:
    planned = stage.create({"at": text(NOON - 30 * SECOND)})

    stage.run(2)

    run = stage.only_run(planned)
    assert (run.planned_at, run.state, run.reason) == (NOON - 30 * SECOND, State.SUCCESS, Reason.LATE)


@pytest.mark.parametrize("timing", [{"every": "PT20S", "count": 3}, {"cron": "* * * * *", "count": 3}])
def test_a_count_ends_the_series_after_that_many_runs(stage: Stage, timing: dict[str, object]) -> None:
    planned = stage.create(timing)

    stage.run(1_500)

    assert len(stage.endpoint.received) == 3
    schedule = stage.stored(planned)
    assert (schedule.state, schedule.state_reason) == (ScheduleState.COMPLETED, StateReason.COUNT_REACHED)
    assert schedule.planned_total == 3
    assert not stage.waiting()


def test_an_end_time_is_inclusive_and_ends_the_series(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *", "endTime": text(NOON + 3 * MINUTE)})

    stage.run(1_500)

    assert stage.endpoint.planned == minutes(1, 2, 3)
    schedule = stage.stored(planned)
    assert (schedule.state, schedule.state_reason) == (ScheduleState.COMPLETED, StateReason.END_REACHED)


def test_a_jobs_own_end_ends_its_schedules_too(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"}, end_at=NOON + 2 * MINUTE)

    stage.run(1_500)

    assert stage.endpoint.planned == minutes(1, 2)
    schedule = stage.stored(planned)
    assert (schedule.state, schedule.state_reason) == (ScheduleState.COMPLETED, StateReason.END_REACHED)


def test_a_series_is_ending_while_its_last_runs_are_open(stage: Stage) -> None:
    planned = stage.create({"every": "PT10S", "count": 2})
    stage.tick()

    assert stage.stored(planned).state is ScheduleState.ENDING
    stage.run(11)
    assert stage.stored(planned).state is ScheduleState.ENDING
    stage.run(11)
    assert stage.stored(planned).state is ScheduleState.COMPLETED


def test_a_one_time_schedule_whose_run_fails_is_faulted(stage: Stage) -> None:
    stage.endpoint.answer = WRONG
    planned = stage.create({"at": text(NOON + MINUTE)})

    stage.run(120)

    assert stage.stored(planned).state is ScheduleState.FAULTED
    assert stage.totals(planned).failed == 1


def test_twenty_last_runs_that_settle_concurrently_complete_the_series_once(stage: Stage) -> None:
    planned = stage.create({"every": "PT1S", "count": 20})
    stage.tick()
    stage.pass_time(60)

    stage.deliver_all()

    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert [message for _, message, _ in stage.journal.lines].count("completed") == 1


def test_a_last_run_that_ended_before_any_tick_ends_its_series(stage: Stage) -> None:
    """The executor was faster than the sweeper, and moves the schedule on in its place."""
    planned = stage.create({"at": text(NOON + SECOND)})
    stage.pass_time(2)

    stage.deliver_all()

    assert stage.stored(planned).state is ScheduleState.COMPLETED
    stage.run(16 * 60)
    assert len(stage.endpoint.received) == 1


def test_an_interval_from_the_actual_start_keeps_its_distance_after_an_outage(stage: Stage) -> None:
    stage.create({"every": "PT5M", "align": "actual_start", "startTime": text(NOON)})
    stage.run(60)
    stage.pass_time(1_000)

    stage.run(600)

    gaps = [later - earlier for earlier, later in zip(stage.endpoint.planned, stage.endpoint.planned[1:], strict=False)]
    assert len(gaps) >= 2
    assert all(gap >= 5 * MINUTE for gap in gaps)
    assert max(gaps) > 10 * MINUTE


def test_schedules_of_one_job_keep_their_own_series_and_payloads(stage: Stage) -> None:
    first = stage.schedule({"cron": "*/2 * * * *"}, name="even", payload=Payload('{"n":2}', is_json=True))
    second = stage.schedule({"cron": "1-59/2 * * * *"}, name="odd")
    draft = stage.draft(action=stage.action(payload={"n": 1}))
    creation.create_job(stage.world, "acme", replace(draft, schedules=(first, second)))

    stage.run(250)

    sent = [(received.call.planned_at, received.call.payload) for received in stage.endpoint.received]
    assert sent == [(at, '{"n":2}' if at.minute % 2 == 0 else '{"n":1}') for at in minutes(1, 2, 3, 4)]


def test_the_call_identifies_its_run(stage: Stage) -> None:
    planned = stage.create({"at": text(NOON + MINUTE)})
    stage.run(61)

    call = stage.endpoint.received[0].call

    run = stage.only_run(planned)
    assert (call.tenant, call.job_id, call.schedule_id) == ("acme", planned.job.id, planned.schedules[0].id)
    assert (call.run_id, call.planned_at, call.attempt) == (run.id, from_s(int(run.planned_at.timestamp())), 1)
    assert call.callback_url == f"https://sweephand.example/v1/runs/{run.id}/result"
    assert call.deadline_s == stage.world.settings.call_deadline_s


def test_runs_of_ten_schedules_due_together_all_start_on_their_second(stage: Stage) -> None:
    for n in range(10):
        stage.create({"cron": "*/5 * * * *"}, name=f"job {n}")

    stage.run(301)

    assert stage.endpoint.planned == minutes(5) * 10
    assert len(set(stage.endpoint.run_ids)) == 10


def test_totals_equal_a_fold_over_the_ledger(stage: Stage) -> None:
    stage.endpoint.script = [WRONG]
    planned = stage.create({"cron": "* * * * *", "count": 5})

    stage.run(1_500)

    totals, fold = stage.totals(planned), stage.fold(planned)
    assert (totals.planned, totals.ended, totals.open) == (5, fold.ended, 0)
    assert (totals.failed, totals.succeeded, totals.skipped) == (1, 4, 0)
    assert (fold.rows, fold.failed, fold.skipped) == (5, 1, 0)


def test_run_now_on_creation_runs_immediately_and_then_by_the_rule(stage: Stage) -> None:
    planned = stage.create({"cron": "*/10 * * * *"}, policies={"onCreate": "run_now"})

    stage.run(1_201)

    first, *rest = [run.planned_at for run in stage.runs(planned)]
    assert timedelta(0) <= first - START < SECOND
    assert rest == minutes(10, 20)
    assert stage.totals(planned).ended == 3


def test_an_unreadable_schedule_fails_no_list_and_can_be_replaced(stage: Stage) -> None:
    planned = stage.create({"cron": "*/10 * * * *"})
    schedule = planned.schedules[0]
    stage.edit_item(keys.job(TENANT, planned.job.id), keys.schedule(schedule.id), sweep={"S": "no sense"})

    stage.run(601)
    broken = stage.stored(planned)
    stage.change(planned, timings=[{"cron": "*/5 * * * *"}])
    stage.run(301)

    assert broken.state is ScheduleState.BROKEN
    assert load_or_never(broken.packed).rule.next_after(START) is None
    assert stage.stored(planned).state is ScheduleState.ACTIVE
    assert len(stage.endpoint.received) == 1
