"""Duplicates, dead executors, lost answers: a run is carried out once, or its ledger row says why not."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from sweephand.base.errors import Unavailable
from sweephand.domain.job import Pause
from sweephand.domain.message import decode, encode
from sweephand.domain.run import Outcome, Reason, Run, State, Verdict
from sweephand.domain.runs.admission import MAX_LOST_LAST
from sweephand.domain.schedule import Lane, ScheduleState
from sweephand.server.actions.call import Call
from sweephand.server.flow.delivery import dispatch
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.store.dynamo.conditional import Refused
from sweephand.server.store.runs import ledger
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import BUSY, DOWN, OK
from tests.support.stage import Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before, refused
from tests.unit.server.flow.common import DAY, MINUTE, NOON, SECOND, exact, fixed, once

FAST = Lane.FAST


def ready(stage: Stage, **members: Any) -> Planned:
    """Makes a daily job whose message of today is visible now."""
    planned = stage.create({"cron": "5 12 * * *"}, **members)
    stage.run(240)
    stage.pass_time(61)
    assert len(messages(stage)) == 1
    return planned


def messages(stage: Stage) -> list[str]:
    return stage.sqs.bodies(stage.world.settings.queue_urls[FAST])


def url(stage: Stage) -> str:
    return stage.world.settings.queue_urls[FAST]


# Duplicates


def test_copies_of_a_message_make_one_run(stage: Stage) -> None:
    planned = ready(stage)
    for _ in range(3):
        stage.sqs.duplicate(url(stage))

    stage.run(120)

    assert len(stage.endpoint.received) == 1
    assert stage.only_run(planned).state is State.SUCCESS
    assert messages(stage) == []


def test_a_copy_that_arrives_days_later_finds_its_run(stage: Stage) -> None:
    """Queues keep a message for 14 days: longer than most records of repetitions are kept."""
    planned = ready(stage)
    stage.sqs.duplicate(url(stage))
    stage.deliver(most=1)
    before = stage.only_run(planned)
    stage.pass_time(13 * 86_400)

    stage.deliver(most=1)

    assert stage.only_run(planned) == before
    assert len(stage.endpoint.received) == 1
    assert messages(stage) == []


def test_a_copy_that_meets_a_live_lease_comes_back_and_is_not_deleted(stage: Stage) -> None:
    planned = ready(stage)
    stage.sqs.duplicate(url(stage))
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.deliver(most=1)
    held = stage.only_run(planned)

    stage.deliver(most=1)

    assert stage.only_run(planned) == held
    assert held.lease_until is not None
    back_in = [message.visible_at - held.lease_until for message in stage.sqs._queues[url(stage)].messages]
    assert len(back_in) == 2
    assert timedelta(0) < min(back_in) < 7 * SECOND


def test_a_copy_continues_the_run_of_a_dead_executor(stage: Stage) -> None:
    planned = ready(stage)
    stage.sqs.duplicate(url(stage))
    with stage.taps.once("endpoint.http", crash_after), pytest.raises(Crash):
        stage.deliver(most=1)

    stage.run(180)

    run = stage.only_run(planned)
    assert (run.state, run.lost) == (State.SUCCESS, 1)
    assert len(stage.endpoint.received) == 2
    assert messages(stage) == []


# Dead executors


def test_the_run_of_a_killed_executor_continues_after_one_lease(stage: Stage) -> None:
    planned = ready(stage)
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.deliver()
    died_at = stage.clock.now()

    stage.run(60)

    run = stage.only_run(planned)
    assert (run.state, run.attempt, run.lost) == (State.SUCCESS, 1, 1)
    assert run.started_at is not None
    assert run.started_at - died_at <= timedelta(seconds=stage.world.settings.lease_s + 12)
    assert run.first_started_at == died_at
    exact_once_ended(stage, planned)


def exact_once_ended(stage: Stage, planned: Planned) -> None:
    totals, fold = stage.totals(planned), stage.fold(planned)
    assert (totals.ended, totals.failed, totals.skipped) == (fold.ended, fold.failed, fold.skipped)
    assert fold.rows == fold.ended


def test_the_greatest_number_of_lost_executors_ends_a_run_as_unknown(stage: Stage) -> None:
    planned = ready(stage)
    for _ in range(MAX_LOST_LAST + 1):
        with stage.taps.once("endpoint.http", crash_after), pytest.raises(Crash):
            stage.deliver()
        stage.pass_time(60)

    stage.run(120)

    run = stage.only_run(planned)
    assert (run.state, run.reason) == (State.UNKNOWN, Reason.EXECUTOR_LOST)
    assert len(stage.endpoint.received) == MAX_LOST_LAST + 1
    assert stage.totals(planned).failed == 1
    exact_once_ended(stage, planned)
    assert messages(stage) == []


def test_at_most_once_never_calls_twice(stage: Stage) -> None:
    planned = ready(stage, policies={"delivery": "at_most_once"})
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.deliver()

    stage.run(120)

    run = stage.only_run(planned)
    assert (run.state, run.reason) == (State.UNKNOWN, Reason.EXECUTOR_LOST)
    assert stage.endpoint.received == []


def test_a_lost_run_starts_its_error_action(stage: Stage) -> None:
    planned = ready(
        stage, policies={"delivery": "at_most_once"}, error_action=stage.action(url="https://example.org/a")
    )
    with stage.taps.once("endpoint.http", crash_after), pytest.raises(Crash):
        stage.deliver()

    stage.run(120)

    assert [received.params["url"] for received in stage.endpoint.received][1:] == ["https://example.org/a"]
    assert {run.state for run in stage.runs(planned)} == {State.UNKNOWN, State.SUCCESS}


def test_each_attempt_can_lose_its_own_executor(stage: Stage) -> None:
    """lost counts over the run: a retry does not make an executor immortal, nor a lost one a failure."""
    stage.endpoint.script = [BUSY]
    planned = ready(stage, action=stage.action(retry=fixed(10)))
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.deliver()

    stage.run(180)

    run = stage.only_run(planned)
    assert (run.state, run.attempt, run.lost) == (State.SUCCESS, 2, 1)


# Lost leases


def takes_longer_than_the_lease(stage: Stage, planned: Planned, outcome: Outcome, then: Outcome) -> None:
    """Lets the holder be slow: its lease ends, another takes over and ends the run; then the first one comes back."""

    def slow(_call: Call) -> Outcome:
        stage.endpoint.answer = then
        stage.clock.advance(60)
        stage.deliver()
        return outcome

    stage.endpoint.answer = slow


def test_a_caller_that_lost_the_lease_cannot_report_a_failure(stage: Stage) -> None:
    planned = ready(stage)
    takes_longer_than_the_lease(stage, planned, BUSY, OK)

    stage.run(120)

    run = stage.only_run(planned)
    assert (run.state, run.lost) == (State.SUCCESS, 1)
    assert stage.totals(planned).failed == 0
    assert messages(stage) == []


@pytest.mark.parametrize("retries", [0, 3])
def test_a_failure_reported_without_the_lease_leaves_the_run_to_its_holder(stage: Stage, retries: int) -> None:
    """The one who took over is still at work: its lease, its run."""
    planned = ready(stage, action=stage.action(retry=fixed(5, retries) if retries else {"type": "none"}))

    def taken_over_meanwhile(_call: Call) -> Outcome:
        stage.endpoint.answer = OK
        stage.clock.advance(60)
        with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
            stage.deliver(most=1)
        return BUSY

    stage.endpoint.answer = taken_over_meanwhile
    stage.deliver(most=1)

    run = stage.only_run(planned)
    assert (run.state, run.attempt, run.lost) == (State.TRIGGERED, 1, 1)
    assert "the lease was lost before the outcome was written" in stage.journal.at("warning")
    assert len(messages(stage)) == 1
    assert stage.totals(planned).failed_attempts == 0


def test_a_late_success_does_not_change_an_ended_run(stage: Stage) -> None:
    planned = ready(stage)
    takes_longer_than_the_lease(stage, planned, OK, BUSY)

    stage.run(120)

    run = stage.only_run(planned)
    assert (run.state, run.http_status) == (State.ERROR, 503)
    assert stage.totals(planned).failed == 1
    exact_once_ended(stage, planned)


def test_a_success_after_the_lease_counts_while_the_run_is_open(stage: Stage) -> None:
    planned = ready(stage)
    stage.endpoint.takes_s = 40

    stage.run(120)

    assert stage.only_run(planned).state is State.SUCCESS
    assert stage.totals(planned).failed == 0


def test_a_call_gets_no_more_time_than_its_lease_leaves(stage: Stage) -> None:
    """A table that is slow between claim and call eats the call's time, not the next holder's."""
    planned = ready(stage, action=stage.action(payload={"a": 1}))

    def slow_payload(passing: Passing, act: Act) -> Any:
        if passing.name == "dynamodb.GetItem" and passing.request["Key"]["sk"]["S"].startswith("PAY#"):
            stage.clock.advance(20)
        return act()

    with stage.taps.faulty(slow_payload):
        stage.deliver()

    assert stage.endpoint.received[0].call.deadline_s == pytest.approx(3.0)
    assert stage.only_run(planned).state is State.SUCCESS


def test_an_expired_lease_prevents_the_call(stage: Stage) -> None:
    planned = ready(stage, action=stage.action(payload={"a": 1}, retry=fixed(10)))

    def very_slow_payload(passing: Passing, act: Act) -> Any:
        if passing.name == "dynamodb.GetItem" and passing.request["Key"]["sk"]["S"].startswith("PAY#"):
            stage.clock.advance(24)
        return act()

    with stage.taps.faulty(very_slow_payload):
        stage.deliver()

    assert stage.endpoint.received == []
    waiting = stage.only_run(planned)
    assert (waiting.state, waiting.reason) == (State.RETRY_WAIT, Reason.DEADLINE)
    stage.run(60)
    assert stage.only_run(planned).state is State.SUCCESS


def test_a_message_visible_to_others_again_is_not_claimed(stage: Stage) -> None:
    """The message is visible again, or about to be: the next holder must claim it."""
    planned = ready(stage)

    def slow_gate(passing: Passing, act: Act) -> Any:
        if passing.name == "dynamodb.BatchGetItem":
            stage.clock.advance(stage.world.settings.visibility_s - 4)
        return act()

    with stage.taps.once("dynamodb.BatchGetItem", slow_gate):
        stage.deliver()
    assert stage.endpoint.received == []

    stage.run(200)
    assert stage.only_run(planned).state is State.SUCCESS


# Lost answers


@pytest.mark.parametrize("call", ["dynamodb.PutItem", "dynamodb.UpdateItem"])
def test_a_claim_or_an_end_whose_answer_was_lost_is_recognized(stage: Stage, call: str) -> None:
    planned = ready(stage)

    with stage.taps.once(call, answer_lost):
        stage.deliver()

    assert stage.only_run(planned).state is State.SUCCESS
    assert len(stage.endpoint.received) == 1
    assert messages(stage) == []


def test_a_takeover_whose_answer_was_lost_is_recognized(stage: Stage) -> None:
    planned = ready(stage)
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.deliver()
    stage.pass_time(40)

    with stage.taps.once("dynamodb.UpdateItem", answer_lost):
        stage.deliver()

    run = stage.only_run(planned)
    assert (run.state, run.lost) == (State.SUCCESS, 1)
    assert len(stage.endpoint.received) == 1


@pytest.mark.parametrize("retries", [0, 3])
def test_a_failure_whose_answer_was_lost_counts_once_and_continues_immediately(stage: Stage, retries: int) -> None:
    stage.endpoint.script = [BUSY]
    planned = ready(stage, action=stage.action(retry=fixed(5, retries) if retries else {"type": "none"}))

    with stage.taps.once("dynamodb.TransactWriteItems", answer_lost):
        stage.deliver()

    assert stage.totals(planned).failed_attempts == 1
    assert len(messages(stage)) == (1 if retries else 0)
    assert stage.only_run(planned).state is (State.RETRY_WAIT if retries else State.ERROR)
    stage.run(60)
    assert stage.totals(planned).failed == (0 if retries else 1)
    exact_once_ended(stage, planned)


def test_a_failed_condition_is_no_success_when_another_executor_owns_the_run(stage: Stage) -> None:
    """The row says who holds it: a second executor that comes between the gate and the claim is no own success."""
    planned = ready(stage)
    stage.sqs.duplicate(url(stage))

    def other_first(passing: Passing, act: Act) -> Any:
        fault, stage.taps.fault = stage.taps.fault, None
        stage.deliver(most=1)
        stage.taps.fault = fault
        return act()

    with stage.taps.once("dynamodb.PutItem", other_first):
        stage.deliver(most=1)

    assert len(stage.endpoint.received) == 1
    assert stage.only_run(planned).state is State.SUCCESS
    assert messages(stage) == []


# Refusals of AWS


@pytest.mark.parametrize(
    ("call", "skip"),
    [("dynamodb.BatchGetItem", 0), ("dynamodb.BatchGetItem", 1), ("dynamodb.PutItem", 0), ("dynamodb.UpdateItem", 0)],
    ids=["gate", "terms", "claim", "outcome"],
)
def test_an_unavailable_table_returns_the_message_to_the_queue(stage: Stage, call: str, skip: int) -> None:
    planned = ready(stage)

    with stage.taps.once(call, refused, skip=skip):
        stage.deliver()
    assert len(messages(stage)) == 1

    stage.run(240)
    assert stage.only_run(planned).state is State.SUCCESS
    assert messages(stage) == []


# Attempts that could not begin


def away(_call: Call) -> Outcome:
    raise Unavailable("the key service does not answer")


def test_a_first_attempt_that_could_not_begin_leaves_no_row(stage: Stage) -> None:
    planned = ready(stage)
    stage.endpoint.script = [away]

    stage.deliver()

    assert stage.runs(planned) == []
    stage.run(60)
    run = stage.only_run(planned)
    assert (run.state, run.attempt, run.lost, run.first_started_at) == (State.SUCCESS, 1, 0, run.started_at)


def test_a_later_attempt_that_could_not_begin_waits_as_before(stage: Stage) -> None:
    planned = ready(stage, action=stage.action(retry=fixed(10, 1)))
    stage.endpoint.script = [BUSY, away]
    stage.deliver()
    waiting = stage.only_run(planned)
    stage.pass_time(11)

    stage.deliver()

    assert stage.only_run(planned) == waiting
    stage.run(60)
    run = stage.only_run(planned)
    assert (run.state, run.attempt, run.lost) == (State.SUCCESS, 2, 0)


def test_an_attempt_that_no_executor_could_repeat_counts_one_lost_executor(stage: Stage) -> None:
    planned = ready(stage)
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.deliver()
    lost = stage.only_run(planned)
    stage.endpoint.script = [away] * (MAX_LOST_LAST + 1)

    stage.run(2 * 3_600)

    run = stage.only_run(planned)
    assert (run.state, run.attempt, run.lost_calls[0].started_at) == (State.SUCCESS, 1, lost.started_at)
    assert run.lost == 1


@pytest.mark.parametrize("retried", [False, True])
def test_a_claim_that_another_executor_has_taken_over_is_not_taken_back(stage: Stage, retried: bool) -> None:
    planned = ready(stage, action=stage.action(retry=fixed(10, 1)))

    def frozen(call: Call) -> Outcome:
        stage.clock.advance(40)
        stage.endpoint.script = [frozen_too]
        stage.deliver()
        return away(call)

    def frozen_too(_call: Call) -> Outcome:
        return OK

    stage.endpoint.script = [BUSY, frozen] if retried else [frozen]
    stage.deliver()
    if retried:
        stage.pass_time(11)
        stage.deliver()

    run = stage.only_run(planned)
    assert (run.state, run.lost, run.attempt) == (State.SUCCESS, 1, 2 if retried else 1)


def test_a_target_that_cannot_be_connected_fails_only_if_the_queue_can_be_reached(stage: Stage) -> None:
    stage.endpoint.answer = DOWN
    planned = ready(stage)
    queue = stage.taps.count("sqs.GetQueueAttributes")

    def no_network(passing: Passing, act: Act) -> Any:
        if passing.name == "sqs.GetQueueAttributes":
            raise EndpointConnectionError(endpoint_url="https://sqs.example")
        return act()

    with stage.taps.faulty(no_network):
        stage.deliver()
    assert stage.runs(planned) == []
    stage.run(60)

    run = stage.only_run(planned)
    assert (run.state, run.reason, run.attempt) == (State.REQUEST_ERROR, Reason.CONNECT, 1)
    assert stage.taps.count("sqs.GetQueueAttributes") - queue == 2


def test_a_queue_that_refuses_to_answer_is_reached_all_the_same(stage: Stage) -> None:
    stage.endpoint.answer = DOWN
    planned = ready(stage)

    with stage.taps.once("sqs.GetQueueAttributes", refused):
        stage.deliver()

    assert stage.only_run(planned).reason is Reason.CONNECT


def test_a_visibility_that_cannot_be_changed_is_not_a_failure(stage: Stage) -> None:
    planned = ready(stage)

    with stage.taps.once("sqs.ChangeMessageVisibilityBatch", refused):
        stage.deliver()

    assert stage.only_run(planned).state is State.SUCCESS
    assert messages(stage) == []


def test_an_unexpected_error_in_one_message_fails_no_other(stage: Stage) -> None:
    good = ready(stage)
    stage.endpoint.script = [lambda _call: 1 / 0]  # type: ignore[arg-type,return-value]
    stage.sqs.send_message(QueueUrl=url(stage), MessageBody="not a message")

    stage.deliver()

    assert "a message failed" in stage.journal.at("error")
    assert "a message cannot be read" in stage.journal.at("error")
    assert len(messages(stage)) == 2
    stage.run(60)
    assert stage.only_run(good).state is State.SUCCESS


def test_redelivered_messages_run_after_the_others_have_settled(stage: Stage) -> None:
    """One that kills its function must take no other along."""
    ready(stage)
    with stage.taps.once("dynamodb.BatchGetItem", refused):
        stage.deliver()
    stage.run(0)
    second = stage.create(once(stage.clock.now() - NOON + 30 * SECOND), name="second")
    stage.pass_time(181)
    came_again = threading.Event()
    beside_the_second = []

    def answer(call: Call) -> Outcome:
        if call.job_id == second.job.id:
            beside_the_second.append(came_again.wait(0.5))
        else:
            came_again.set()
        return OK

    stage.endpoint.answer = answer
    batch = [stage._delivered(message) for message in stage.sqs.receive(url(stage), 10)]
    dispatch.batch(stage.world, FAST, "request", batch)  # in threads, unlike deliver

    assert [received.call.job_id == second.job.id for received in stage.endpoint.received] == [True, False]
    assert beside_the_second == [False]


# The gate, carried out


def test_a_message_ahead_of_its_second_waits_for_it(stage: Stage) -> None:
    planned = stage.create({"cron": "*/5 * * * *"})
    stage.run(240)
    stage.pass_time(59.25)
    for message in stage.sqs._queues[url(stage)].messages:
        message.visible_at = stage.clock.now()

    stage.deliver()

    (received,) = stage.endpoint.received
    assert received.at == received.call.planned_at
    assert stage.only_run(planned).reason is Reason.ON_TIME


def test_a_message_far_ahead_of_its_second_comes_back_then(stage: Stage) -> None:
    stage.create({"cron": "*/5 * * * *"})
    stage.run(240)
    for message in stage.sqs._queues[url(stage)].messages:
        message.visible_at = stage.clock.now()

    stage.deliver()
    assert stage.endpoint.received == []
    stage.run(70)

    (received,) = stage.endpoint.received
    assert timedelta(0) <= received.at - received.call.planned_at < 7 * SECOND


def test_an_occurrence_due_while_its_job_is_paused_is_skipped_with_a_reason(stage: Stage) -> None:
    planned = stage.create({"cron": "*/5 * * * *"})
    stage.run(290)
    paused = stage.set_state(planned, pause=Pause(stage.clock.now(), "holiday"))
    assert paused.schedules[0].state is ScheduleState.PAUSED

    stage.run(30)

    assert stage.endpoint.received == []
    assert stage.runs(planned) == []
    assert stage.totals(planned).planned == 0


def test_an_occurrence_due_at_the_moment_of_a_pause_is_skipped_and_counted(stage: Stage) -> None:
    planned = stage.create({"cron": "*/5 * * * *"})
    stage.run(240)
    stage.pass_time(57)
    stage.set_state(planned, pause=Pause(stage.clock.now()))

    stage.run(30)

    run = stage.only_run(planned)
    assert (run.state, run.reason) == (State.SKIPPED, Reason.PAUSED)
    assert stage.totals(planned).skipped == 1
    exact(stage, planned)


def test_a_run_older_than_four_days_expires_without_acting(stage: Stage) -> None:
    planned = ready(stage)
    (body,) = messages(stage)
    stage.pass_time(4 * DAY.total_seconds())
    assert body == messages(stage)[0]

    stage.deliver()

    run = stage.only_run(planned)
    assert run.state in {State.EXPIRED, State.MISSED}
    assert stage.endpoint.received == []
    exact_once_ended(stage, planned)


def test_an_end_without_an_attempt_is_counted_once_even_if_its_answer_is_lost(stage: Stage) -> None:
    planned = ready(stage)
    stage.pass_time(5 * DAY.total_seconds())

    with stage.taps.once("dynamodb.TransactWriteItems", answer_lost):
        stage.deliver()

    totals = stage.totals(planned)
    assert totals.skipped + totals.missed_sent == 1
    exact_once_ended(stage, planned)
    assert messages(stage) == []


@pytest.mark.parametrize(("timeout_s", "lane"), [(15, Lane.FAST), (16, Lane.SLOW), (60, Lane.SLOW)])
def test_the_fast_lane_waits_15_seconds_for_an_answer(stage: Stage, timeout_s: int, lane: Lane) -> None:
    planned = stage.create(once(), action=stage.action(outcome={"answerTimeoutSeconds": timeout_s}))

    with_messages = [each for each, at in stage.world.settings.queue_urls.items() if stage.sqs.bodies(at)]
    assert with_messages == [lane]
    stage.run(70)
    assert stage.only_run(planned).state is State.SUCCESS


def test_a_claim_shortens_the_visibility_of_its_batch_to_the_lease(stage: Stage) -> None:
    ready(stage)
    seen: list[timedelta] = []

    def look(_call: Call) -> Outcome:
        (message,) = stage.sqs._queues[url(stage)].messages
        seen.append(message.visible_at - stage.clock.now())
        return Outcome(Verdict.SUCCEEDED, http_status=200)

    stage.endpoint.answer = look
    stage.deliver()

    assert seen == [timedelta(seconds=stage.world.settings.lease_s + 10)]


def test_a_run_ended_concurrently_keeps_that_end_and_gets_its_effects(stage: Stage) -> None:
    """A callback or a cancel has the same effect: the first end wins, the executor does its effects."""
    planned = ready(stage, error_action=stage.action(url="https://example.org/alarm"))

    def cancelled_meanwhile(call: Call) -> Outcome:
        there = stage.only_run(planned)
        ended = replace(
            there, state=State.ERROR, reason=Reason.CALLBACK, finished_at=stage.clock.now(), lease_owner=None
        )
        stage.endpoint.answer = OK
        assert not isinstance(ledger.finish(stage.world.table, ended, ledger.NOT_TERMINAL, {"failed": 1}, ()), Refused)
        return OK

    stage.endpoint.answer = cancelled_meanwhile
    stage.deliver()
    stage.run(30)

    scheduled: Run = stage.runs(planned)[0]
    states = {run.state for run in stage.runs(planned)}
    assert states == {State.ERROR, State.SUCCESS}
    assert scheduled.planned_at == NOON + 5 * MINUTE
    assert stage.endpoint.received[-1].params["url"] == "https://example.org/alarm"


def test_a_pointer_of_another_tenant_finds_nothing(stage: Stage) -> None:
    """Keys begin with the tenant: a forged or mixed-up message cannot reach into another's partition."""
    planned = ready(stage)
    (body,) = messages(stage)
    stage.sqs.purge(url(stage))
    stage.sqs.send_message(QueueUrl=url(stage), MessageBody=encode(replace(decode(body), tenant="globex")))

    stage.deliver()

    assert stage.endpoint.received == []
    assert stage.runs(planned) == []
    assert messages(stage) == []
