"""A manual run that is asked for only if none is active: one at a time, whoever asks and whatever is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sweephand.domain.run import Kind, State
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.server.flow.manual.manual import Answered
from sweephand.server.flow.runs import results
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import ACCEPTED, BUSY, OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before
from tests.unit.server.flow.common import DAY, fixed, once

NEVER = {"at": "2199-01-01T00:00:00Z"}


def ask(stage: Stage, planned: Planned, schedule: int | None = None, key: Once | None = None) -> Answered:
    """Asks for a run unless one is active. schedule: its place among the job's; None: a run of the job itself."""
    owner = None if schedule is None else planned.schedules[schedule].id
    return manual.run_now(stage.world, TENANT, planned.job.id, owner, key, unless_active=True)


def manual_runs(stage: Stage, owner: str) -> list[State]:
    return [run.state for run in stage.runs(owner, Kind.MANUAL)]


def test_a_second_request_returns_the_active_run(stage: Stage) -> None:
    planned = stage.create(NEVER)

    first = ask(stage, planned)
    second = ask(stage, planned)

    assert (first.started, second) == (True, Answered(first.run_id, started=False))
    stage.deliver_all()
    assert len(stage.endpoint.received) == 1


def test_the_next_run_starts_once_the_active_one_has_ended(stage: Stage) -> None:
    planned = stage.create(NEVER)
    first = ask(stage, planned)
    stage.deliver_all()

    second = ask(stage, planned)

    assert second.started
    assert second.run_id != first.run_id


@pytest.mark.parametrize(("answer", "state"), [(BUSY, State.RETRY_WAIT), (ACCEPTED, State.ACK_RECVD)])
def test_a_waiting_run_is_active(stage: Stage, answer: Any, state: State) -> None:
    stage.endpoint.answer = answer
    action = stage.action(retry=fixed(600), outcome={"on202": "wait"})
    planned = stage.create(once(), action=action)
    stage.run(90)
    waiting = stage.only_run(planned)
    assert waiting.state is state

    assert ask(stage, planned) == Answered(waiting.id, started=False)
    results.cancel(stage.world, TENANT, planned.schedules[0].id, waiting.uuid)

    assert ask(stage, planned).started


def test_a_run_of_one_schedule_does_not_delay_another(stage: Stage) -> None:
    planned = stage.create(NEVER, NEVER)
    first = ask(stage, planned, 0)

    assert ask(stage, planned, 0) == Answered(first.run_id, started=False)
    assert ask(stage, planned) == Answered(first.run_id, started=False)
    assert ask(stage, planned, 1).started


def test_an_ordinary_manual_run_counts_as_active_and_is_never_dropped(stage: Stage) -> None:
    planned = stage.create(NEVER)
    first = manual.run_now(stage.world, TENANT, planned.job.id, None, None).run_id
    second = manual.run_now(stage.world, TENANT, planned.job.id, None, None).run_id

    assert first != second
    assert ask(stage, planned).run_id in {first, second}
    assert len(manual_runs(stage, planned.job.id)) == 2


def test_an_error_action_delays_nothing(stage: Stage) -> None:
    stage.endpoint.script = [WRONG, BUSY]
    planned = stage.create(once(), action=stage.action(), error_action=stage.action(retry=fixed(600)))
    stage.run(90)
    assert [run.state for run in stage.runs(planned, Kind.ERROR_ACTION)] == [State.RETRY_WAIT]

    assert ask(stage, planned).started


def test_a_start_that_waits_for_days_is_found_among_many_later_runs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweephand.server.flow.manual.manual.LOOKED_AT_MOST", 3)
    stage.endpoint.script = [BUSY]
    planned = stage.create(NEVER, action=stage.action(retry=fixed(30 * 86_400)))
    first = ask(stage, planned)
    stage.deliver_all()
    for _ in range(5):
        stage.pass_time(DAY.total_seconds())
        manual.run_now(stage.world, TENANT, planned.job.id, None, None)
        stage.deliver_all()

    assert ask(stage, planned) == Answered(first.run_id, started=False)


def test_ten_concurrent_requests_start_one_run(stage: Stage) -> None:
    planned = stage.create(NEVER)

    with ThreadPoolExecutor(max_workers=10) as pool:
        answers = list(pool.map(lambda _: ask(stage, planned), range(10)))

    assert sum(answer.started for answer in answers) == 1
    assert len({answer.run_id for answer in answers}) == 1
    assert manual_runs(stage, planned.job.id) == [State.QUEUED]


@pytest.mark.parametrize("earlier", [False, True], ids=["the first", "a later one"])
def test_a_request_that_read_before_another_start_finds_that_run(stage: Stage, earlier: bool) -> None:
    planned = stage.create(NEVER)
    if earlier:
        ask(stage, planned)
        stage.deliver_all()
    others: list[Answered] = []

    def another_first(_passing: Passing, act: Act) -> Any:
        fault, stage.taps.fault = stage.taps.fault, None
        others.append(ask(stage, planned))
        stage.taps.fault = fault
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", another_first):
        mine = ask(stage, planned)

    assert mine == Answered(others[0].run_id, started=False)
    assert manual_runs(stage, planned.job.id).count(State.QUEUED) == 1


@pytest.mark.parametrize("key", [None, Once("k", "d")], ids=["without a key", "with a key"])
def test_a_start_whose_answer_was_lost_makes_one_run(stage: Stage, key: Once | None) -> None:
    planned = stage.create(NEVER)

    with stage.taps.once("dynamodb.TransactWriteItems", answer_lost):
        answer = ask(stage, planned, key=key)

    assert answer.started
    assert [run.id for run in stage.runs(planned.job.id)] == [answer.run_id]


@pytest.mark.parametrize("fault", [crash_before, crash_after])
def test_an_interrupted_start_can_be_requested_again(stage: Stage, fault: Any) -> None:
    planned = stage.create(NEVER)
    with stage.taps.once("dynamodb.TransactWriteItems", fault), pytest.raises(Crash):
        ask(stage, planned)

    answer = ask(stage, planned)
    stage.run(120)

    assert answer.started is (fault is crash_before)
    assert manual_runs(stage, planned.job.id) == [State.SUCCESS]


def test_a_key_finds_its_run_after_the_run_has_ended(stage: Stage) -> None:
    planned = stage.create(NEVER)
    first = ask(stage, planned, key=Once("k", "d"))
    stage.endpoint.answer = OK
    stage.deliver_all()

    assert ask(stage, planned, key=Once("k", "d")) == first


def test_a_request_that_starts_nothing_writes_nothing(stage: Stage) -> None:
    planned = stage.create(NEVER)
    ask(stage, planned)
    before = stage.items()

    ask(stage, planned, key=Once("k", "d"))

    assert stage.items() == before


def test_deleting_a_job_deletes_the_mark_of_its_active_run(stage: Stage) -> None:
    planned = stage.create(NEVER)
    ask(stage, planned)
    stage.delete(planned)
    stage.run(600)

    assert not [item for item in stage.items() if item["pk"]["S"].endswith(planned.job.id) and "uuid" in item]
