"""A run whose target never reports ends at its deadline, however near that was."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.runs.settlement import FALLBACK
from sweephand.domain.schedule import Lane
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.runs import results
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import ACCEPTED
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, crash_after, refused
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, exact

SENT = "sqs.SendMessageBatch"


def awaiting(stage: Stage, timeout_s: int, at: str = "2027-03-01T12:01:05Z") -> Planned:
    stage.endpoint.answer = ACCEPTED
    action = stage.action(outcome={"on202": "wait", "callbackTimeoutSeconds": timeout_s})
    return stage.create({"at": at}, action=action)


def scheduled(stage: Stage, planned: Planned) -> Run:
    (run,) = stage.runs(planned, Kind.SCHEDULED)
    return run


@pytest.mark.parametrize("timeout_s", [1, 2, 20, 30, 54, 55, 56, 59, 60, 61, 74, 75, 76, 90, 149, 150, 151, 200])
@pytest.mark.parametrize("tick_s", [0, 5, 6, 30, 59])
def test_a_deadline_is_kept_to_the_second(stage: Stage, timeout_s: int, tick_s: int) -> None:
    planned = awaiting(stage, timeout_s)

    stage.run(500, tick_in_s=tick_s)

    run = scheduled(stage, planned)
    assert (run.state, run.reason) == (State.UNKNOWN, Reason.DEADLINE)
    assert run.started_at is not None
    assert run.finished_at is not None
    assert timedelta(0) <= run.finished_at - run.started_at - timedelta(seconds=timeout_s) <= 2 * SECOND
    assert stage.waiting() == {}


@pytest.mark.parametrize("lost", ["not sent", "purged", "died before it was sent"])
def test_a_deadline_whose_message_is_lost_is_kept_by_its_row(stage: Stage, lost: str) -> None:
    planned = awaiting(stage, 20, at="2027-03-01T12:10:05Z")
    stage.run(600)
    stage.pass_time(6)
    if lost == "not sent":
        with stage.taps.faulty(_no_send):
            stage.deliver()
    elif lost == "purged":
        stage.deliver()
        stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])
    else:
        with stage.taps.once("dynamodb.UpdateItem", crash_after), pytest.raises(Crash):
            stage.deliver()
    waiting = scheduled(stage, planned)
    assert waiting.state is State.ACK_RECVD
    assert waiting.deadline_at is not None

    stage.run(400)

    run = scheduled(stage, planned)
    assert (run.state, run.reason) == (State.UNKNOWN, Reason.DEADLINE)
    assert run.finished_at is not None
    assert run.finished_at - waiting.deadline_at <= FALLBACK + 2 * SECOND
    assert len(stage.endpoint.received) == 1
    assert stage.waiting() == {}
    exact(stage, planned)


def _no_send(passing: Passing, act: Act) -> Any:
    return refused(passing, act) if passing.name == SENT else act()


def test_no_sweep_sends_a_near_deadline_a_second_time(stage: Stage) -> None:
    """It is over before a sweep may send its row's pointer."""
    planned = awaiting(stage, 60, at="2027-03-01T12:10:05Z")
    stage.run(606)
    assert scheduled(stage, planned).state is State.ACK_RECVD

    stage.run(58)

    assert stage.clock.now() > NOON + 11 * MINUTE, "a sweep has looked"
    assert len(stage.sqs.bodies(stage.world.settings.queue_urls[Lane.FAST])) == 1


def test_a_result_before_the_deadline_is_counted_once(stage: Stage) -> None:
    """The message of the deadline comes all the same, and finds a run that has ended."""
    planned = awaiting(stage, 20)
    stage.run(70)
    run = scheduled(stage, planned)
    results.record(stage.world, TENANT, run.schedule_id or "", run.uuid, success=False, message=None)

    stage.run(200)

    assert scheduled(stage, planned).reason is Reason.CALLBACK
    assert stage.totals(planned).failed == 1
    assert stage.journal.counts["Failed"] == 1
    exact(stage, planned)
    assert stage.waiting() == {}


def test_a_result_after_a_near_deadline_is_too_late(stage: Stage) -> None:
    planned = awaiting(stage, 1)
    stage.run(70)

    assert scheduled(stage, planned).state is State.UNKNOWN
