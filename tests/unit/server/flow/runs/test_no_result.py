"""A run whose result does not come in time: it ends, or its retry policy goes on, as the policy onNoResult says."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.base.errors import Conflict
from sweephand.domain.run import Outcome, Reason, State, Verdict
from sweephand.domain.runs.run_members import ATTEMPT, attempts_of
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.runs import results
from sweephand.server.store.views import runs as views
from tests.support.endpoint import ACCEPTED, OK
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before
from tests.unit.server.flow.common import NOON, SECOND, exact, fixed

AT_ONE = {"at": "2027-03-01T12:01:00Z"}


def waiting(stage: Stage, *, limit_s: int = 100, policies: dict[str, Any] | None = None, **retry: Any) -> Planned:
    """Makes a job whose target takes the work and never reports."""
    stage.endpoint.answer = ACCEPTED
    outcome = {"on202": "wait", "callbackTimeoutSeconds": limit_s}
    action = stage.action(outcome=outcome, retry=fixed(20, **retry) if retry.get("retries", 1) else None)
    return stage.create(AT_ONE, action=action, policies={"onNoResult": "retry", **(policies or {})})


def starts(stage: Stage) -> list[float]:
    return [(each.at - NOON).total_seconds() for each in stage.endpoint.received]


def report(stage: Stage, planned: Planned, *, success: bool = True) -> None:
    run = stage.only_run(planned)
    results.record(stage.world, TENANT, planned.schedules[0].id, run.uuid, success=success, message=None)


@pytest.mark.parametrize("limit_s", [10, 60, 100, 1_800])
def test_a_run_without_a_result_is_retried_at_its_deadline(stage: Stage, limit_s: int) -> None:
    planned = waiting(stage, limit_s=limit_s, retries=2)

    stage.run(60 + limit_s + 30)

    first, second = starts(stage)
    assert limit_s + 20 <= second - first <= limit_s + 26
    assert stage.only_run(planned).state is State.ACK_RECVD
    assert stage.only_run(planned).attempt == 2


def test_a_run_without_a_result_ends_as_unknown_when_no_attempt_is_left(stage: Stage) -> None:
    planned = waiting(stage, retries=2)

    stage.run(700)

    run = stage.only_run(planned)
    assert (run.state, run.reason, run.attempt) == (State.UNKNOWN, Reason.DEADLINE, 3)
    assert len(stage.endpoint.received) == 3
    assert stage.waiting() == {}
    exact(stage, planned)


def test_a_run_without_a_result_ends_at_its_deadline_by_default(stage: Stage) -> None:
    planned = waiting(stage, policies={"onNoResult": "end"}, retries=2)

    stage.run(400)

    run = stage.only_run(planned)
    assert (run.state, run.reason, len(stage.endpoint.received)) == (State.UNKNOWN, Reason.DEADLINE, 1)


def test_an_attempt_that_reports_ends_the_run(stage: Stage) -> None:
    planned = waiting(stage, retries=2)
    stage.run(190)
    assert stage.only_run(planned).attempt == 2

    report(stage, planned)
    stage.run(60)

    assert stage.only_run(planned).state is State.SUCCESS
    assert len(stage.endpoint.received) == 2
    assert stage.waiting() == {}


@pytest.mark.parametrize("success", [True, False])
def test_a_late_result_of_an_earlier_attempt_wins_while_the_next_one_waits(stage: Stage, *, success: bool) -> None:
    planned = waiting(stage, retries=2)
    stage.run(170)
    assert stage.only_run(planned).state is State.RETRY_WAIT

    report(stage, planned, success=success)
    stage.run(600)

    assert stage.only_run(planned).state is (State.SUCCESS if success else State.ERROR)
    assert len(stage.endpoint.received) == 1
    assert stage.waiting() == {}
    exact(stage, planned)


def test_a_late_result_wins_over_a_running_attempt_whose_answer_becomes_a_note(stage: Stage) -> None:
    planned = waiting(stage, retries=2)

    def reported_meanwhile(_call: object) -> Any:
        report(stage, planned)
        stage.clock.advance(1)
        return OK

    stage.run(170)
    stage.endpoint.answer = reported_meanwhile
    stage.run(600)

    run = stage.only_run(planned)
    assert (run.state, run.finished) == (State.SUCCESS, True)
    assert any("the call ended later" in note for note in run.notes)


def test_the_first_of_two_results_wins(stage: Stage) -> None:
    planned = waiting(stage, retries=2)
    stage.run(190)
    report(stage, planned)

    with pytest.raises(Conflict):
        report(stage, planned, success=False)

    stage.run(60)
    assert stage.only_run(planned).state is State.SUCCESS


def test_each_attempt_that_waited_is_shown_with_its_end(stage: Stage) -> None:
    planned = waiting(stage, retries=1)

    stage.run(500)

    run = stage.only_run(planned)
    shown = ATTEMPT.show_all(attempts_of(run, views.attempts_of(stage.world.table, run)))
    assert [(each["attempt"], each["state"], each["reason"], each["httpStatus"]) for each in shown] == [
        (1, "UNKNOWN", "DEADLINE", 202),
        (2, "UNKNOWN", "DEADLINE", 202),
    ]


@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost])
@pytest.mark.parametrize("call", ["dynamodb.TransactWriteItems", "sqs.SendMessageBatch"])
def test_the_next_worker_completes_an_interrupted_deadline(stage: Stage, call: str, fault: Any) -> None:
    planned = waiting(stage, retries=1)
    stage.run(155)

    try:
        with stage.taps.once(call, fault):
            stage.run(20)
    except Crash:
        pass
    stage.run(2_400)

    run = stage.only_run(planned)
    assert (run.state, run.attempt, len(stage.endpoint.received)) == (State.UNKNOWN, 2, 2)
    assert stage.waiting() == {}
    exact(stage, planned)


def test_a_purged_queue_does_not_lose_the_next_attempt(stage: Stage) -> None:
    planned = waiting(stage, retries=1)
    stage.run(165)
    assert stage.only_run(planned).state is State.RETRY_WAIT
    for url in stage.world.settings.queue_urls.values():
        stage.sqs.purge(url)

    stage.run(1_200)

    assert (stage.only_run(planned).state, len(stage.endpoint.received)) == (State.UNKNOWN, 2)


def test_no_attempt_begins_after_the_greatest_age(stage: Stage) -> None:
    planned = waiting(stage, retries=5, maxAgeSeconds=90)

    stage.run(600)

    run = stage.only_run(planned)
    assert (run.state, run.reason, len(stage.endpoint.received)) == (State.UNKNOWN, Reason.MAX_AGE, 1)


def test_a_silent_target_that_can_report_is_retried_too(stage: Stage) -> None:
    planned = waiting(stage, retries=1)
    stage.endpoint.answer = Outcome(Verdict.SILENT, message="no answer within 15 s")

    stage.run(500)

    assert (stage.only_run(planned).state, len(stage.endpoint.received)) == (State.UNKNOWN, 2)


def test_a_retry_at_the_deadline_starts_on_its_second(stage: Stage) -> None:
    planned = waiting(stage, retries=1, limit_s=45)
    stage.run(61)
    deadline = stage.only_run(planned).deadline_at
    assert deadline is not None

    stage.run((deadline - stage.clock.now()).total_seconds() + 3)

    run = stage.only_run(planned)
    assert run.state is State.RETRY_WAIT
    assert run.finished_at is not None
    assert run.finished_at - deadline <= 2 * SECOND
