from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from sweephand.domain.instants import text_ms
from sweephand.domain.run import Kind, Outcome, Reason, Run, State
from sweephand.domain.runs.run_members import ATTEMPT, attempts_of
from sweephand.domain.schedule import Lane, ScheduleState
from sweephand.server.actions.call import Call
from sweephand.server.flow.manual import manual
from sweephand.server.flow.runs import results
from sweephand.server.store.runs import ledger
from sweephand.server.store.views import runs as views
from sweephand.testing.service import URLS
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import ACCEPTED, BUSY, OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import refused
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, exact, fixed, once


def test_a_failed_attempt_is_retried_after_its_delay(stage: Stage) -> None:
    stage.endpoint.script = [BUSY, BUSY]
    planned = stage.create(once(), action=stage.action(retry=fixed(30)))

    stage.run(180)

    run = stage.only_run(planned)
    assert (run.state, run.reason, run.attempt, run.max_attempts) == (State.SUCCESS, Reason.ON_TIME, 3, 4)
    moments = [received.at for received in stage.endpoint.received]
    assert all(30 * SECOND <= later - earlier < 32 * SECOND for earlier, later in pairwise(moments))
    assert [received.call.attempt for received in stage.endpoint.received] == [1, 2, 3]
    assert len(set(stage.endpoint.run_ids)) == 1
    assert (stage.totals(planned).failed_attempts, stage.totals(planned).failed) == (2, 0)


@pytest.mark.parametrize(
    ("answers", "changed", "ends_at"),
    [
        ([BUSY] * 5, 4, (State.ERROR, 5, 5)),
        ([BUSY] * 4, 4, (State.SUCCESS, 5, 5)),
        ([BUSY] * 2, 1, (State.ERROR, 2, 2)),
    ],
)
def test_the_number_of_attempts_follows_the_job(
    stage: Stage, answers: list[Outcome], changed: int, ends_at: tuple[State, int, int]
) -> None:
    """The job is changed while the run waits for its second attempt."""
    stage.endpoint.script = list(answers)
    planned = stage.create(once(), action=stage.action(retry=fixed(60, 1 if changed > 1 else 5)))
    stage.run(90)

    stage.change(planned, action=stage.action(retry=fixed(60, changed)))
    stage.run(600)

    run = stage.only_run(planned)
    assert (run.state, run.attempt, run.max_attempts) == ends_at


def test_every_attempt_but_the_last_has_a_row_of_its_own(stage: Stage) -> None:
    stage.endpoint.script = [BUSY, WRONG]
    planned = stage.create(once(), action=stage.action(retry=fixed(30)))

    stage.run(180)

    run = stage.only_run(planned)
    attempts = views.attempts_of(stage.world.table, run)
    assert [(made.number, made.reason, made.http_status) for made in attempts] == [
        (1, "HTTP_STATUS", 503),
        (2, "HTTP_STATUS", 404),
    ]
    assert attempts[0].started_at <= attempts[0].finished_at < attempts[1].started_at
    assert (run.state, run.http_status) == (State.REQUEST_ERROR, 404)


def test_each_attempt_has_its_own_times_and_outcome(stage: Stage) -> None:
    stage.endpoint.script = [BUSY, BUSY]
    stage.endpoint.takes_s = 0.25
    planned = stage.create(once(), action=stage.action(retry=fixed(30)))

    stage.run(240)

    shown = shown_attempts(stage, stage.only_run(planned))
    assert [(each["attempt"], each["state"]) for each in shown] == [(1, "ERROR"), (2, "ERROR"), (3, "SUCCESS")]
    assert [each["durationMs"] for each in shown] == [250, 250, 250]
    stamps = [[each[name] for name in ("plannedAt", "startedAt", "finishedAt")] for each in shown]
    assert all(each == sorted(each) for each in stamps)
    assert shown[0]["plannedAt"] == text_ms(NOON + MINUTE)
    assert all(each["enqueuedAt"] <= each["startedAt"] for each in shown)
    for before, after in pairwise(shown):
        assert at(after["plannedAt"]) - at(before["finishedAt"]) == 30 * SECOND
        assert after["enqueuedAt"] == before["finishedAt"]


def test_a_copy_of_the_first_message_does_not_change_when_the_second_attempt_was_enqueued(stage: Stage) -> None:
    """The creation and the tick both send the first message. A copy that meets the live lease comes back after it, and
    sends the message of the second attempt once more, in case it is lost.
    """
    planned = stage.create(once(), action=stage.action(retry=fixed(40)))
    stage.tick()
    stage.clock.advance(60)

    def copied(_call: object) -> Outcome:
        stage.endpoint.answer = OK
        stage.deliver(most=1)
        return BUSY

    stage.endpoint.answer = copied
    stage.deliver(most=1)
    failed_at = stage.clock.now()
    messages = stage.sqs._queues[URLS[Lane.FAST]].messages
    own = messages[-1]
    stage.run(39)
    assert len(messages) == 2, "the copy has sent it again"
    messages.remove(own)
    stage.run(10)

    _, second = shown_attempts(stage, stage.only_run(planned))
    assert second["state"] == "SUCCESS"
    assert second["enqueuedAt"] == text_ms(failed_at)


def test_a_far_retry_is_enqueued_by_the_sweep(stage: Stage) -> None:
    stage.endpoint.script = [BUSY]
    planned = stage.create(once(), action=stage.action(retry=fixed(3_600)))

    stage.run(3_900)

    _, second = shown_attempts(stage, stage.only_run(planned))
    late = at(second["plannedAt"]) - at(second["enqueuedAt"])
    assert timedelta(0) < late <= timedelta(seconds=150)


def test_an_attempt_cancelled_before_it_began_is_not_listed(stage: Stage) -> None:
    stage.endpoint.script = [BUSY]
    planned = stage.create(once(), action=stage.action(retry=fixed(300)))
    stage.run(90)
    run = stage.only_run(planned)
    assert run.state is State.RETRY_WAIT

    results.cancel(stage.world, TENANT, planned.schedules[0].id, run.uuid)

    assert [each["state"] for each in shown_attempts(stage, stage.only_run(planned))] == ["ERROR"]


def test_a_running_attempt_is_shown_without_an_end(stage: Stage) -> None:
    stage.endpoint.script = [BUSY]
    planned = stage.create(once(), action=stage.action(retry=fixed(20)))
    seen = []

    def look(_call: Call) -> Outcome:
        seen.extend(shown_attempts(stage, stage.only_run(planned)))
        return OK

    stage.endpoint.script.append(look)
    stage.run(120)

    assert [(each["attempt"], each["state"], each["durationMs"]) for each in seen[1:]] == [(2, "TRIGGERED", None)]


def at(shown: str) -> datetime:
    return datetime.fromisoformat(shown)


def shown_attempts(stage: Stage, run: Run) -> list[dict[str, Any]]:
    """Returns the attempts as the API shows them."""
    return ATTEMPT.show_all(attempts_of(run, views.attempts_of(stage.world.table, run)))


def test_a_run_fails_when_no_attempt_is_left(stage: Stage) -> None:
    stage.endpoint.answer = BUSY
    planned = stage.create(once(), action=stage.action(retry=fixed(10, retries=2)))

    stage.run(180)

    run = stage.only_run(planned)
    assert (run.state, run.reason, run.attempt) == (State.ERROR, Reason.HTTP_STATUS, 3)
    totals = stage.totals(planned)
    assert (totals.failed_attempts, totals.failed, totals.succeeded) == (3, 1, 0)
    exact(stage, planned)


def test_permanent_failures_are_not_retried(stage: Stage) -> None:
    stage.endpoint.answer = WRONG
    planned = stage.create(once(), action=stage.action(retry=fixed(10)))

    stage.run(180)

    assert len(stage.endpoint.received) == 1
    assert stage.only_run(planned).state is State.REQUEST_ERROR


def test_a_retry_beyond_15_minutes_waits_as_a_row_and_starts_on_its_second(stage: Stage) -> None:
    stage.endpoint.script = [BUSY]
    planned = stage.create(once(), action=stage.action(retry=fixed(3_600)))
    stage.run(90)

    waiting = stage.only_run(planned)
    assert waiting.state is State.RETRY_WAIT
    assert waiting.wake_at == waiting.not_before
    assert stage.sqs.bodies(stage.world.settings.queue_urls[Lane.FAST]) == []

    stage.run(3_700)

    first, second = stage.endpoint.received
    assert timedelta(0) <= second.at - waiting.not_before < 2 * SECOND
    assert second.at - first.at < timedelta(seconds=3_602)
    run = stage.only_run(planned)
    assert (run.state, run.attempt, run.wake_at) == (State.SUCCESS, 2, None)
    assert not stage.waiting()
    exact(stage, planned)


def test_a_far_retry_survives_a_lost_pointer(stage: Stage) -> None:
    stage.endpoint.script = [BUSY]
    planned = stage.create(once(), action=stage.action(retry=fixed(3_600)))
    stage.run(3_600)
    stage.tick()
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])

    stage.run(1_200)

    assert stage.only_run(planned).state is State.SUCCESS
    assert len(stage.endpoint.received) == 2


def test_near_and_far_retries_can_follow_each_other(stage: Stage) -> None:
    """After a far retry its wake row is still there: the near one must not wait for it."""
    stage.endpoint.script = [BUSY, BUSY]
    action = stage.action(
        retry={"type": "two_level", "immediate": 1, "delayed": 1, "increaseSeconds": 1_800, "retryOn": "any"}
    )
    stage.endpoint.script = [BUSY, BUSY, BUSY]
    planned = stage.create(once(), action=action)

    stage.run(2_400)

    moments = [received.at for received in stage.endpoint.received]
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert len(gaps) == 3
    assert gaps[0] < 3 * SECOND
    assert 30 * MINUTE <= gaps[1] < 30 * MINUTE + 3 * SECOND
    assert gaps[2] < 3 * SECOND
    assert stage.only_run(planned).state is State.SUCCESS
    assert not stage.waiting()


def test_several_waiting_retries_of_one_schedule_are_several_rows(stage: Stage) -> None:
    stage.endpoint.script = [BUSY] * 5
    planned = stage.create({"cron": "* * * * *", "count": 5}, action=stage.action(retry=fixed(3_600)))

    stage.run(320)
    assert [run.state for run in stage.runs(planned)] == [State.RETRY_WAIT] * 5
    stage.run(5_000)

    assert {run.state for run in stage.runs(planned)} == {State.SUCCESS}
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    exact(stage, planned)


def test_a_schedule_completes_only_after_its_retries(stage: Stage) -> None:
    stage.endpoint.script = [BUSY]
    planned = stage.create(once(), action=stage.action(retry=fixed(600)))

    stage.run(300)
    assert stage.stored(planned).state is ScheduleState.ENDING

    stage.run(500)
    assert stage.stored(planned).state is ScheduleState.COMPLETED


def test_a_manual_run_retries_as_fast_as_its_policy_says(stage: Stage) -> None:
    stage.endpoint.script = [BUSY]
    planned = stage.create({"cron": "0 0 1 1 *"}, action=stage.action(retry=fixed(5)))
    manual.run_now(stage.world, TENANT, planned.job.id, None, None)

    stage.run(20)

    first, second = stage.endpoint.received
    assert 5 * SECOND <= second.at - first.at < 8 * SECOND
    assert stage.only_run(planned.job.id).state is State.SUCCESS
    stage.run(60)
    assert len(stage.endpoint.received) == 2


def test_a_retry_message_that_was_not_sent_is_sent_by_the_redelivery(stage: Stage) -> None:
    stage.endpoint.script = [BUSY]
    planned = stage.create(once(), action=stage.action(retry=fixed(5)))
    stage.run(59)
    with stage.taps.faulty(_no_messages):
        stage.clock.advance(2)
        stage.deliver_all()
    assert stage.only_run(planned).state is State.RETRY_WAIT

    stage.run(300)

    assert stage.only_run(planned).state is State.SUCCESS
    assert len(stage.endpoint.received) == 2


def _no_messages(passing: Passing, act: Act) -> Any:
    return refused(passing, act) if passing.operation == "SendMessageBatch" else act()


# The errorAction


def test_a_run_that_fails_for_good_starts_its_error_action_as_a_run_of_its_own(stage: Stage) -> None:
    stage.endpoint.script = [BUSY, BUSY, OK]
    planned = stage.create(
        once(),
        action=stage.action(retry=fixed(5, retries=1)),
        error_action=stage.action(url="https://example.org/alarm", payload={"alarm": True}),
    )

    stage.run(180)

    failed, alarm = stage.runs(planned)
    if failed.kind is not Kind.SCHEDULED:
        failed, alarm = alarm, failed
    assert (failed.state, alarm.kind, alarm.state) == (State.ERROR, Kind.ERROR_ACTION, State.SUCCESS)
    assert (alarm.parent_uuid, alarm.planned_at, alarm.wake_at) == (failed.uuid, failed.planned_at, None)
    assert stage.endpoint.received[2].params["url"] == "https://example.org/alarm"
    assert stage.endpoint.received[2].call.payload == '{"alarm":true}'
    assert stage.totals(planned).planned == 1
    exact(stage, planned)


def test_a_failed_error_action_starts_no_other(stage: Stage) -> None:
    stage.endpoint.answer = WRONG
    planned = stage.create(once(), error_action=stage.action(url="https://example.org/alarm"))

    stage.run(1_200)

    assert len(stage.endpoint.received) == 2
    assert {run.state for run in stage.runs(planned)} == {State.REQUEST_ERROR}
    assert stage.totals(planned).failed == 1


def test_the_wake_row_starts_an_error_action_whose_message_was_lost(stage: Stage) -> None:
    stage.endpoint.script = [WRONG]
    planned = stage.create(once(), error_action=stage.action(url="https://example.org/alarm"))
    stage.run(59)
    stage.clock.advance(2)
    stage.deliver(most=1)
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])
    assert len(stage.endpoint.received) == 1

    stage.run(180)

    assert len(stage.endpoint.received) == 2
    assert stage.runs(planned, Kind.ERROR_ACTION)[0].state is State.SUCCESS


def test_repeated_effects_start_no_second_error_action(stage: Stage) -> None:
    stage.endpoint.answer = WRONG
    planned = stage.create(once(), error_action=stage.action(url="https://example.org/alarm"))
    stage.run(55)
    for _ in range(3):
        stage.sqs.duplicate(stage.world.settings.queue_urls[Lane.FAST])

    stage.run(300)

    assert len(stage.endpoint.received) == 2
    assert len(stage.runs(planned)) == 2


# Waiting for a callback


def test_a_missing_callback_ends_the_run_as_unknown_at_its_deadline(stage: Stage) -> None:
    stage.endpoint.answer = ACCEPTED
    planned = stage.create(once(), action=stage.action(outcome={"on202": "wait", "callbackTimeoutSeconds": 300}))

    stage.run(359)
    waiting = stage.only_run(planned)
    assert (waiting.state, waiting.finished_at) == (State.ACK_RECVD, None)
    stage.run(10)

    run = stage.only_run(planned)
    assert (run.state, run.reason, run.wake_at) == (State.UNKNOWN, Reason.DEADLINE, None)
    assert run.finished_at is not None
    assert run.finished_at - waiting.deadline_at < 2 * SECOND
    assert not [key for key in stage.waiting() if key[1].startswith("RUN#")]
    exact(stage, planned)


def test_a_copy_of_the_message_leaves_a_waiting_run_alone(stage: Stage) -> None:
    stage.endpoint.answer = ACCEPTED
    planned = stage.create(once(), action=stage.action(outcome={"on202": "wait"}))
    stage.run(55)
    stage.sqs.duplicate(stage.world.settings.queue_urls[Lane.FAST])

    stage.run(120)

    assert len(stage.endpoint.received) == 1
    assert stage.only_run(planned).state is State.ACK_RECVD
    assert stage.sqs.bodies(stage.world.settings.queue_urls[Lane.FAST]) == []


# Answers


@pytest.mark.parametrize(("keep", "kept"), [("all", True), ("failures", False), ("none", False)])
def test_the_whole_answer_of_a_success_is_kept_if_the_job_asks_for_it(stage: Stage, keep: str, kept: bool) -> None:
    stage.endpoint.answer = replace(OK, answer="x" * 5_000)
    planned = stage.create(once(), policies={"keepAnswer": keep})

    stage.run(120)

    run = stage.only_run(planned)
    assert (run.state, run.answer) == (State.SUCCESS, "x" * 200)
    assert [item.answer for item in views.attempts_of(stage.world.table, run)] == (["x" * 5_000] if kept else [])
    assert len(stage.endpoint.received) == 1


def test_the_beginning_of_an_answer_is_kept_in_the_row_of_its_run_or_attempt(stage: Stage) -> None:
    stage.endpoint.script = [replace(BUSY, answer="é" * 5_000), replace(OK, answer="ö" * 5_000)]
    retry = {"type": "fixed", "delaySeconds": 5, "maxRetries": 1}
    planned = stage.create(once(), action=stage.action(retry=retry), policies={"keepAnswer": "beginning"})

    stage.run(120)

    run = stage.only_run(planned)
    (failed,) = views.attempts_of(stage.world.table, run)
    assert (run.state, run.answer, failed.answer) == (State.SUCCESS, "ö" * 1_024, "é" * 1_024)


def test_the_answer_of_a_failure_is_kept_up_to_16_kilobytes(stage: Stage) -> None:
    stage.endpoint.answer = replace(WRONG, answer="é" * 20_000)
    planned = stage.create(once())

    stage.run(120)

    (attempt,) = views.attempts_of(stage.world.table, stage.only_run(planned))
    assert attempt.answer == "é" * 8_192


def test_runs_that_need_attention_are_listed_by_day_without_successes(stage: Stage) -> None:
    stage.endpoint.script = [WRONG, OK, BUSY]
    planned = stage.create({"cron": "* * * * *", "count": 3}, action=stage.action(retry=fixed(30)))

    stage.run(170)
    shown = attention(stage)
    assert {run.state for run in shown} == {State.REQUEST_ERROR}

    stage.run(15)
    shown = attention(stage)
    assert {run.state for run in shown} == {State.REQUEST_ERROR, State.RETRY_WAIT}

    stage.run(100)
    shown = attention(stage)
    assert {run.state for run in shown} == {State.REQUEST_ERROR}
    assert [run.state for run in stage.runs(planned)] == [State.REQUEST_ERROR, State.SUCCESS, State.SUCCESS]


def attention(stage: Stage) -> list[Run]:
    found = views.attention(stage.world.table, TENANT, NOON.date(), stage.clock.now() + MINUTE, None, 10)
    return [each for each in found if isinstance(each, Run)]


def test_a_run_is_kept_15_days_from_its_end_not_its_start(stage: Stage) -> None:
    """A retry 16 days on: the row must be there when it comes."""
    stage.endpoint.script = [BUSY]
    planned = stage.create(once(), action=stage.action(retry=fixed(16 * 86_400)))
    stage.run(120)

    assert stage.only_run(planned).expires_at is None
    stage.pass_time(16 * 86_400)
    stage.run(120)

    run = stage.only_run(planned)
    assert run.state is State.SUCCESS
    assert run.expires_at is not None
    assert run.finished_at is not None
    assert run.expires_at - run.finished_at > timedelta(days=14)
    assert ledger.read(stage.world.table, TENANT, planned.schedules[0].id, run.uuid) == run
