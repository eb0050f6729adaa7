"""An alarm is not an end: what ten receives could not settle comes back, or ends with a reason, effects included."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.job import Pause
from sweephand.domain.message import Subject, decode, encode
from sweephand.domain.run import Reason, State
from sweephand.domain.schedule import Lane, ScheduleState
from sweephand.server.flow.delivery import dead_letters
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.testing.service import ARCHIVE, DEAD, URLS
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import ACCEPTED, BUSY, OK
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, crash_after, crash_before, refused
from tests.unit.server.flow.common import HOUR, exact, fixed, once

BACK = "a dead letter goes back to its queue"


def dead(stage: Stage, *, returns: int = 0) -> None:
    """Makes every message of the run queue a dead letter. returns: how often each has come back before."""
    run_queue, dead_queue = stage.sqs._queues[URLS[Lane.FAST]], stage.sqs._queues[DEAD]
    for message in run_queue.messages:
        if returns:
            message.body = encode(replace(decode(message.body), returns=returns, sent_at=message.sent_at))
        message.visible_at = stage.clock.now()
        dead_queue.messages.append(message)
    run_queue.messages.clear()


def ready(stage: Stage, **members: Any) -> Planned:
    planned = stage.create(once(), **members)
    stage.tick()
    stage.clock.advance(61)
    stage.sqs._queues[URLS[Lane.FAST]].messages[1:] = []  # one of the two that create and tick have sent
    return planned


def archived(stage: Stage) -> int:
    return len(stage.sqs.bodies(ARCHIVE))


def test_the_message_of_a_run_that_never_began_goes_back_to_its_queue(stage: Stage) -> None:
    planned = ready(stage)
    dead(stage)

    stage.deliver_dead()

    assert (len(stage.sqs.bodies(DEAD)), archived(stage)) == (0, 0)
    (line,) = [members for _, message, members in stage.journal.lines if message == BACK]
    assert line == {"tenant": TENANT, "job": planned.job.id, "schedule": planned.schedules[0].id} | {
        "run": decode(stage.sqs.bodies(URLS[Lane.FAST])[0]).run,
        "returns": 1,
    }
    stage.run(5)
    assert stage.only_run(planned).state is State.SUCCESS
    assert stage.journal.counts["DeadLetters"] == 1


def test_the_check_of_a_workers_run_goes_back_because_no_row_asks_again(stage: Stage) -> None:
    ready(stage)
    queue = stage.sqs._queues[URLS[Lane.FAST]]
    queue.messages[0].body = encode(replace(decode(queue.messages[0].body), subject=Subject.UNCLAIMED))
    dead(stage)

    stage.deliver_dead()

    (body,) = stage.sqs.bodies(URLS[Lane.FAST])
    assert (decode(body).subject, decode(body).returns, archived(stage)) == (Subject.UNCLAIMED, 1, 0)


def test_a_message_that_comes_back_again_waits_a_quarter_of_an_hour(stage: Stage) -> None:
    ready(stage)
    dead(stage, returns=1)

    stage.deliver_dead()

    back_at = stage.sqs.next_visible_at([URLS[Lane.FAST]])
    assert back_at is not None
    assert timedelta(0) <= back_at - stage.clock.now() - dead_letters.RETURN_DELAY < timedelta(seconds=1)


def test_a_message_that_has_come_back_is_as_late_as_it_was_before(stage: Stage) -> None:
    """The later occurrence is due, so the policy skips the earlier one, whenever its message was sent again."""
    late = {"misfire": {"type": "latest"}}
    planned = stage.create({"every": "PT5M", "startTime": "2027-03-01T12:01:00Z"}, policies=late)
    stage.tick()
    stage.pass_time(400)
    dead(stage)

    stage.deliver_dead()

    (run,) = stage.runs(planned)
    assert (run.state, run.reason) == (State.MISSED, Reason.SERVICE_OUTAGE)


def test_a_letter_that_was_sent_again_a_moment_ago_is_not_fresh(stage: Stage) -> None:
    """It goes back, as nothing is due after it yet. Ten seconds after it was sent again, the next occurrence is due."""
    planned = stage.create(
        {"every": "PT5M", "startTime": "2027-03-01T12:01:00Z"}, policies={"misfire": {"type": "latest"}}
    )
    stage.tick()
    stage.pass_time(355)
    dead(stage)
    stage.deliver_dead()
    stage.pass_time(10)

    stage.deliver_all()

    (run,) = stage.runs(planned)
    assert (run.state, run.reason) == (State.MISSED, Reason.SERVICE_OUTAGE)


@pytest.mark.parametrize(
    ("policies", "age_s", "end"),
    [
        ({"misfire": {"type": "all", "maxLatenessSeconds": 600}}, 700, (State.EXPIRED, Reason.MAX_LATENESS)),
        ({"misfire": {"type": "skip"}}, 700, (State.MISSED, Reason.SERVICE_OUTAGE)),
        ({"misfire": {"type": "all"}}, 5 * 86_400, (State.EXPIRED, Reason.MAX_AGE)),
    ],
)
@pytest.mark.parametrize("returns", [0, 1])
def test_a_letter_whose_run_is_too_late_by_its_own_policy_ends_as_the_policy_says(
    stage: Stage, policies: dict[str, Any], age_s: int, end: Any, returns: int
) -> None:
    planned = ready(stage, policies=policies)
    dead(stage, returns=returns)
    stage.pass_time(age_s)

    stage.deliver_dead()

    run = stage.only_run(planned)
    assert (run.state, run.reason) == end
    assert archived(stage) == 1


def test_a_message_that_crashes_its_function_each_time_ends_the_run_in_the_end(stage: Stage) -> None:
    planned = ready(stage, error_action=stage.action(url="https://example.org/alarm"))
    began_at, killed = stage.clock.now(), 0

    def kills(passing: Passing, act: Act) -> Any:
        if passing.name == "dynamodb.BatchGetItem" and not looks_back:
            raise Crash
        return act()

    while not stage.runs(planned):
        assert killed < 300, "it comes back without end"
        looks_back = False
        try:
            with stage.taps.faulty(kills):
                stage.deliver(most=1)
        except Crash:
            killed += 1
        stage.pass_time(35)
        for message in stage.sqs._queues[URLS[Lane.FAST]].messages:  # as if the wait of a return were over
            message.visible_at = stage.clock.now()
        looks_back = True
        stage.deliver_dead()

    assert killed == 10 * (dead_letters.MOST_RETURNS + 1)
    assert stage.clock.now() - began_at + (dead_letters.MOST_RETURNS - 1) * dead_letters.RETURN_DELAY > 8 * HOUR
    run = next(run for run in stage.runs(planned) if run.parent_uuid is None)
    assert (run.state, run.reason) == (State.ERROR, Reason.UNDELIVERED)
    assert run.message == "its message came back from the dead letters 24 times"
    assert stage.journal.at("warning").count(BACK) == dead_letters.MOST_RETURNS


def test_a_run_whose_message_came_back_too_often_ends_as_undelivered_and_has_its_effects(stage: Stage) -> None:
    planned = ready(stage, error_action=stage.action(url="https://example.org/alarm"))
    dead(stage, returns=dead_letters.MOST_RETURNS)

    stage.deliver_dead()
    stage.run(5)

    failed = next(run for run in stage.runs(planned) if run.parent_uuid is None)
    assert (failed.state, failed.reason) == (State.ERROR, Reason.UNDELIVERED)
    assert [received.params["url"] for received in stage.endpoint.received] == ["https://example.org/alarm"]
    assert stage.stored(planned).state is ScheduleState.FAULTED
    assert stage.totals(planned).failed == 1
    exact(stage, planned)
    assert archived(stage) == 1
    assert stage.sqs.bodies(DEAD) == []
    assert "undelivered" in stage.journal.at("error")
    assert stage.journal.counts["DeadLetters"] == 1


def test_a_run_that_no_executor_could_claim_for_hours_is_called_once_the_table_takes_claims(stage: Stage) -> None:
    planned = ready(stage)

    def no_claims(passing: Passing, act: Act) -> Any:
        claim = passing.operation == "PutItem" and "#SCH#" in passing.request["Item"]["pk"]["S"]
        return refused(passing, act) if claim else act()

    with stage.taps.faulty(no_claims):
        stage.run(4 * 3_600)
    stage.run(16 * 60)

    assert stage.only_run(planned).state is State.SUCCESS
    assert len(stage.endpoint.received) == 1
    assert BACK in stage.journal.at("warning")
    assert archived(stage) == 0


def test_a_finished_run_keeps_its_end_and_gets_its_effects(stage: Stage) -> None:
    planned = ready(stage, error_action=stage.action(url="https://example.org/alarm"))
    stage.endpoint.script = [BUSY]
    with stage.taps.once("dynamodb.TransactWriteItems", crash_after), pytest.raises(Crash):
        stage.deliver(most=1)
    dead(stage)

    stage.deliver_dead()
    stage.run(10)

    assert {run.state for run in stage.runs(planned)} == {State.ERROR, State.SUCCESS}
    assert next(run for run in stage.runs(planned) if run.parent_uuid is None).reason is Reason.HTTP_STATUS
    assert len(stage.endpoint.received) == 2


def test_a_live_lease_is_left_alone_and_the_letter_comes_back(stage: Stage) -> None:
    planned = ready(stage)
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.deliver(most=1)
    dead(stage)

    stage.deliver_dead()

    held = stage.only_run(planned)
    assert held.state is State.TRIGGERED
    assert archived(stage) == 0
    assert held.lease_until is not None
    back_at = stage.sqs.next_visible_at([DEAD])
    assert back_at is not None
    assert timedelta(seconds=1) <= back_at - held.lease_until <= timedelta(seconds=6)
    stage.run(120)
    run = stage.only_run(planned)
    assert (run.state, run.lost) == (State.SUCCESS, 1)
    assert archived(stage) == 0
    exact(stage, planned)


def test_a_run_with_a_wake_row_is_left_alone(stage: Stage) -> None:
    """A manual run whose holder died: its wake row brings another, so its letter is no reason to end it."""
    planned = stage.create({"cron": "0 0 1 1 *"})
    manual.run_now(stage.world, TENANT, planned.job.id, None, None)
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.deliver(most=1)
    dead(stage)
    stage.clock.advance(40)

    stage.deliver_dead()

    assert stage.only_run(planned.job.id).state is State.TRIGGERED
    assert archived(stage) == 1
    stage.run(1_200)
    run = stage.only_run(planned.job.id)
    assert (run.state, run.lost) == (State.SUCCESS, 1)


def test_the_dead_letter_of_an_earlier_attempt_sends_the_retry(stage: Stage) -> None:
    planned = ready(stage, action=stage.action(retry=fixed(60)))
    stage.endpoint.script = [BUSY]
    with stage.taps.once("dynamodb.TransactWriteItems", crash_after), pytest.raises(Crash):
        stage.deliver(most=1)
    dead(stage)

    stage.deliver_dead()
    stage.endpoint.answer = OK
    stage.run(90)

    run = stage.only_run(planned)
    assert (run.state, run.attempt) == (State.SUCCESS, 2)


def test_the_dead_letter_of_a_due_retry_is_sent_again_and_does_not_end_it(stage: Stage) -> None:
    planned = ready(stage, action=stage.action(retry=fixed(10)))
    stage.endpoint.script = [BUSY]
    stage.deliver(most=1)
    stage.clock.advance(20)
    dead(stage)

    stage.deliver_dead()
    assert stage.only_run(planned).state is State.RETRY_WAIT
    stage.run(10)

    assert stage.only_run(planned).state is State.SUCCESS


def test_a_run_that_waits_for_its_callback_is_left_alone(stage: Stage) -> None:
    stage.endpoint.answer = ACCEPTED
    planned = ready(stage, action=stage.action(outcome={"on202": "wait"}))
    stage.sqs.duplicate(URLS[Lane.FAST])
    stage.deliver(most=1)
    dead(stage)

    stage.deliver_dead()

    assert stage.only_run(planned).state is State.ACK_RECVD
    assert archived(stage) == 1


def test_the_end_of_a_letter_that_would_not_have_run_says_why(stage: Stage) -> None:
    planned = ready(stage)
    stage.set_state(planned, pause=Pause(stage.clock.now()))
    dead(stage)

    stage.deliver_dead()

    run = stage.only_run(planned)
    assert (run.state, run.reason) == (State.SKIPPED, Reason.PAUSED)
    assert archived(stage) == 1


def test_a_letter_without_an_owner_leaves_no_row(stage: Stage) -> None:
    planned = ready(stage)
    stage.delete(planned)
    dead(stage)

    stage.deliver_dead()

    assert stage.runs(planned) == []
    assert archived(stage) == 1


@pytest.mark.parametrize("body", ["not json", "{}", '{"v":99}', "\x00"])
def test_a_letter_that_cannot_be_read_is_kept_and_reported(stage: Stage, body: str) -> None:
    stage.sqs.send_message(QueueUrl=DEAD, MessageBody=body)

    stage.deliver_dead()

    assert stage.sqs.bodies(ARCHIVE) == [body]
    assert "a dead letter cannot be read" in stage.journal.at("error")


def test_a_letter_is_archived_before_it_is_deleted(stage: Stage) -> None:
    planned = ready(stage)
    dead(stage, returns=dead_letters.MOST_RETURNS)

    with stage.taps.once("sqs.SendMessage", refused):
        stage.deliver_dead()
    assert len(stage.sqs.bodies(DEAD)) == 1
    stage.run(200)

    assert archived(stage) == 1
    assert stage.totals(planned).failed == 1
    exact(stage, planned)


@pytest.mark.parametrize("fault", [crash_before, crash_after])
@pytest.mark.parametrize("call", ["dynamodb.TransactWriteItems", "sqs.SendMessage"])
def test_a_consumer_that_dies_still_ends_the_run_once(stage: Stage, call: str, fault: Any) -> None:
    planned = ready(stage)
    dead(stage, returns=dead_letters.MOST_RETURNS)
    with stage.taps.once(call, fault), pytest.raises(Crash):
        stage.deliver_dead()

    stage.run(400)

    run = stage.only_run(planned)
    assert (run.state, run.reason) == (State.ERROR, Reason.UNDELIVERED)
    assert stage.totals(planned).failed == 1
    exact(stage, planned)
    assert archived(stage) >= 1


def test_a_letter_that_raises_an_unexpected_error_delays_no_other(stage: Stage) -> None:
    planned, other = ready(stage), stage.create(once(timedelta(minutes=2)))
    stage.pass_time(120)
    dead(stage)

    def breaks(passing: Passing, act: Act) -> Any:
        if passing.name == "dynamodb.BatchGetItem" and other.job.id in repr(passing.request):
            raise ZeroDivisionError
        return act()

    with stage.taps.faulty(breaks):
        stage.deliver_dead()
    stage.run(5)

    assert stage.only_run(planned).state is State.SUCCESS
    assert "a dead letter failed" in stage.journal.at("error")
    assert len(stage.sqs.bodies(DEAD)) == 1


def test_the_letter_of_an_ending_series_is_left_to_its_wake_row(stage: Stage) -> None:
    planned = ready(stage)
    stage.deliver_all()
    stage.edit_schedule(planned, state={"S": "ENDING"}, next_run_at={"N": str(int(stage.clock.now().timestamp()))})
    stage.edit_schedule(planned, sweep={"S": f"E;fast;sap;{planned.schedules[0].packed}"})
    stage.tick()
    dead(stage)

    stage.deliver_dead()

    assert archived(stage) == 1
    stage.run(1_000)
    assert stage.stored(planned).state is ScheduleState.COMPLETED


def buried(stage: Stage, count: int) -> None:
    """Makes so many letters that nobody can read."""
    for n in range(count):
        stage.sqs._put(DEAD, {"MessageBody": f"unreadable {n}"})


def test_one_minute_processes_all_waiting_letters(stage: Stage) -> None:
    buried(stage, 25)

    assert dead_letters.take(stage.world) == 25

    assert stage.sqs.bodies(DEAD) == []
    assert archived(stage) == 25


def test_the_letters_that_do_not_fit_into_one_minute_are_left_to_the_next(stage: Stage) -> None:
    buried(stage, 100)

    def slow(passing: Passing, act: Act) -> Any:
        if passing.operation == "DeleteMessageBatch":
            stage.clock.advance(8)
        return act()

    with stage.taps.faulty(slow):
        taken = dead_letters.take(stage.world)

    assert 20 <= taken <= 10 + 20 * dead_letters.READERS < 100
    assert len(stage.sqs.bodies(DEAD)) == 100 - taken


def test_letters_that_cannot_be_archived_stay_and_are_tried_again(stage: Stage) -> None:
    buried(stage, 2)

    with stage.taps.faulty(lambda passing, act: refused(passing, act) if passing.operation == "SendMessage" else act()):
        dead_letters.take(stage.world)

    assert len(stage.sqs.bodies(DEAD)) == 2
    stage.clock.advance(181)
    assert dead_letters.take(stage.world) == 2
    assert stage.sqs.bodies(DEAD) == []


def test_the_next_minute_tries_an_unavailable_queue_again(stage: Stage) -> None:
    buried(stage, 1)

    with stage.taps.faulty(refused):
        assert dead_letters.take(stage.world) == 0

    assert "dead letters wait for the queue" in stage.journal.at("warning")
    assert dead_letters.take(stage.world) == 1


def test_a_settled_letter_that_was_not_deleted_can_be_settled_again(stage: Stage) -> None:
    planned = ready(stage)
    dead(stage, returns=dead_letters.MOST_RETURNS)

    with stage.taps.faulty(
        lambda passing, act: refused(passing, act) if passing.operation == "DeleteMessageBatch" else act()
    ):
        dead_letters.take(stage.world)
    stage.clock.advance(181)
    dead_letters.take(stage.world)

    assert stage.only_run(planned).reason is Reason.UNDELIVERED
    assert stage.totals(planned).failed == 1
    assert stage.sqs.bodies(DEAD) == []


def test_an_empty_queue_costs_one_request(stage: Stage) -> None:
    before = stage.taps.count("sqs.ReceiveMessage")

    assert dead_letters.take(stage.world) == 0

    assert stage.taps.count("sqs.ReceiveMessage") - before == 1
