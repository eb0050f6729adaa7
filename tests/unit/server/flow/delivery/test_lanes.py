"""A run goes through the queue whose executors wait long enough for its action as it is now, not as it once was."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.domain.message import decode, encode
from sweephand.domain.run import Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.testing.service import URLS
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import BUSY
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, refused
from tests.unit.server.flow.common import fixed

PATIENT = {"answerTimeoutSeconds": 60}
SENT = "sqs.SendMessageBatch"


class Seen:
    """Through which queue each call came."""

    def __init__(self, stage: Stage) -> None:
        self.lanes: list[Lane] = []
        self._at = Lane.FAST
        execute = stage._execute

        def executed(lane: Lane, request: str, batch: list[Any]) -> list[str]:
            self._at = lane
            return execute(lane, request, batch)

        def fault(passing: Passing, act: Act) -> Any:
            if passing.service == "endpoint":
                self.lanes.append(self._at)
            return act()

        stage._execute = executed  # type: ignore[method-assign]
        stage.taps.fault = fault


@pytest.fixture
def seen(stage: Stage) -> Seen:
    return Seen(stage)


def bodies(stage: Stage, lane: Lane) -> list[str]:
    return stage.sqs.bodies(URLS[lane])


def raise_limit(stage: Stage, planned: Planned, **fields: Any) -> None:
    stage.change(planned, action=stage.action(outcome=PATIENT, **fields))


def on_its_way(stage: Stage) -> Planned:
    """Makes a job with a manual run whose message lies in the fast queue, and whose limit was raised since."""
    planned = stage.create()
    manual.run_now(stage.world, TENANT, planned.job.id, None, None)
    raise_limit(stage, planned)
    return planned


def run_of(stage: Stage, planned: Planned) -> Run:
    return stage.only_run(planned.job.id)


@pytest.mark.parametrize("delay_s", [60, 1_200])
def test_a_longer_time_limit_applies_to_the_next_attempt_of_a_begun_run(stage: Stage, seen: Seen, delay_s: int) -> None:
    retry = fixed(delay_s)
    stage.endpoint.script = [BUSY, BUSY]
    planned = stage.create({"at": "2027-03-01T12:01:00Z"}, action=stage.action(retry=retry))
    stage.run(90)
    raise_limit(stage, planned, retry=retry)

    stage.run(3 * delay_s)

    assert stage.only_run(planned).state is State.SUCCESS
    assert seen.lanes == [Lane.FAST, Lane.SLOW, Lane.SLOW]


def test_the_attempts_after_one_that_was_forwarded_go_directly_to_the_slow_queue(stage: Stage) -> None:
    retry = fixed(60)
    stage.endpoint.script = [BUSY, BUSY]
    planned = stage.create({"at": "2027-03-01T12:10:00Z"}, action=stage.action(retry=retry))
    stage.run(630)
    raise_limit(stage, planned, retry=retry)
    stage.run(60)
    assert stage.only_run(planned).attempt == 3

    assert (len(bodies(stage, Lane.FAST)), len(bodies(stage, Lane.SLOW))) == (0, 1)


def test_a_shorter_time_limit_returns_the_next_attempt_to_the_fast_queue(stage: Stage, seen: Seen) -> None:
    stage.endpoint.script = [BUSY, BUSY]
    planned = stage.create({"at": "2027-03-01T12:01:00Z"}, action=stage.action(outcome=PATIENT, retry=fixed(60)))
    stage.run(90)
    stage.change(planned, action=stage.action(retry=fixed(60)))

    stage.run(200)

    assert seen.lanes == [Lane.SLOW, Lane.SLOW, Lane.FAST]


def test_an_occurrence_already_sent_is_called_through_the_slow_queue(stage: Stage, seen: Seen) -> None:
    planned = stage.create({"at": "2027-03-01T12:01:00Z"})
    raise_limit(stage, planned)

    stage.run(90)

    assert stage.only_run(planned).state is State.SUCCESS
    assert seen.lanes == [Lane.SLOW]


def test_a_manual_run_already_sent_is_called_through_the_slow_queue(stage: Stage, seen: Seen) -> None:
    planned = on_its_way(stage)

    stage.run(30)

    assert run_of(stage, planned).state is State.SUCCESS
    assert seen.lanes == [Lane.SLOW]


def test_a_run_that_is_taken_over_is_forwarded_first(stage: Stage, seen: Seen) -> None:
    planned = stage.create({"at": "2027-03-01T12:01:00Z"})
    stage.endpoint.script = [dies]
    stage.pass_time(61)
    with pytest.raises(Crash):
        stage.deliver()
    raise_limit(stage, planned)

    stage.run(120)

    run = stage.only_run(planned)
    assert (run.state, run.lost) == (State.SUCCESS, 1)
    assert seen.lanes == [Lane.FAST, Lane.SLOW]


def dies(_call: object) -> Any:
    raise Crash


def test_the_pointer_is_forwarded_unchanged_and_nothing_is_claimed(stage: Stage) -> None:
    planned = on_its_way(stage)
    (before,) = bodies(stage, Lane.FAST)

    stage.deliver()

    run = run_of(stage, planned)
    assert (run.state, run.lease_owner) == (State.QUEUED, None)
    assert bodies(stage, Lane.FAST) == []
    (after,) = bodies(stage, Lane.SLOW)
    assert encode(decode(after)) == encode(decode(before))


def test_a_pointer_that_cannot_be_forwarded_is_not_acknowledged(stage: Stage) -> None:
    planned = on_its_way(stage)
    with stage.taps.faulty(lambda passing, act: refused(passing, act) if passing.name == SENT else act()):
        stage.deliver()
    assert (len(bodies(stage, Lane.FAST)), bodies(stage, Lane.SLOW)) == (1, [])

    stage.run(120)

    assert once_through(stage, planned).state is State.SUCCESS


@pytest.mark.parametrize("fault", [answer_lost, crash_after])
def test_a_pointer_that_is_forwarded_twice_is_called_once(stage: Stage, fault: Any) -> None:
    """The answer of the send is lost; or the executor dies before its message is acknowledged."""
    planned = on_its_way(stage)
    with stage.taps.once(SENT, fault):
        if fault is crash_after:
            with pytest.raises(Crash):
                stage.deliver()
        else:
            stage.deliver()

    stage.run(300)

    assert once_through(stage, planned).state is State.SUCCESS
    assert (bodies(stage, Lane.FAST), bodies(stage, Lane.SLOW)) == ([], [])


def once_through(stage: Stage, planned: Planned) -> Run:
    assert len(stage.endpoint.received) == 1
    return run_of(stage, planned)


def test_copies_in_both_queues_make_one_run(stage: Stage) -> None:
    """One executor has passed it on and its copy is passed on too while the first is under way."""
    planned = on_its_way(stage)
    stage.sqs.duplicate(URLS[Lane.FAST])
    stage.deliver(most=1)
    stage.endpoint.script = [lambda _: (stage.deliver(), BUSY)[1]]

    stage.deliver(Lane.SLOW)
    stage.run(300)

    assert once_through(stage, planned).state is State.ERROR


def test_a_run_with_an_unchanged_time_limit_makes_no_extra_call(stage: Stage) -> None:
    stage.create({"every": "PT1H"})
    stage.run(3_600 - 30)
    stage.pass_time(60)
    stage.taps.passed.clear()

    stage.deliver()

    claim_to_end = ["dynamodb.PutItem", "endpoint.http", "dynamodb.UpdateItem"]
    reads = ["dynamodb.BatchGetItem", "dynamodb.BatchGetItem"]
    assert stage.taps.names() == ["sqs.ChangeMessageVisibilityBatch", *reads, *claim_to_end]
