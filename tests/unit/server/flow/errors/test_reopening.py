"""Failed runs that are run again where runs exclude each other; what did not run after all stays an error."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.event import EventType
from sweephand.domain.operation import Operation, OperationKind, OperationState
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.server.flow.errors import failures
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import rerun
from sweephand.server.flow.operations import verbs
from sweephand.server.flow.runs import results
from sweephand.server.store.dynamo.conditional import Cancelled, Written
from sweephand.server.store.dynamo.expressions import assign
from sweephand.server.store.errors import failures as store
from sweephand.server.store.errors.failures import ErrorRunItem
from sweephand.server.store.runs import ledger
from sweephand.server.store.views import resources as views
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import ACCEPTED, OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before, refused

ASYNC = {"outcome": {"on202": "wait", "callbackTimeoutSeconds": 6_000}}
every_policy = pytest.mark.parametrize("policy", ["skip", "queue_one", "replace"])


def failed_runs(stage: Stage, count: int, policy: str = "skip", **members: Any) -> tuple[Planned, list[Run]]:
    """Makes a schedule whose runs failed; from now on its target takes them on and reports later."""
    stage.endpoint.answer = lambda _: WRONG
    timing = {"every": "PT1M", "count": count}
    planned = stage.create(timing, action=stage.action(**ASYNC), policies={"overlap": policy}, **members)
    stage.run(60 * count + 10)
    stage.endpoint.answer = ACCEPTED
    return planned, stage.runs(planned, Kind.SCHEDULED)


def redrive(stage: Stage, runs: list[Run], rate: int = 6_000) -> str:
    params = {"runs": [run.id for run in runs], "ratePerMinute": rate}
    return verbs.begin(stage.world, TENANT, OperationKind.REDRIVE, params, actor=None, total=len(runs)).id


def work(stage: Stage, operation: str) -> Operation:
    return verbs.find(stage.world, TENANT, operation)


def again(stage: Stage, run: Run) -> None:
    rerun.rerun(stage.world, TENANT, run.schedule_id or run.job_id, run.uuid, actor="acme.me")


def reruns(stage: Stage, planned: Planned) -> list[Run]:
    """Returns the reruns in the order in which they were requested."""
    found = [run for run in stage.runs(planned) if run.rerun_of is not None]
    return sorted(found, key=lambda run: (run.enqueued_at or run.planned_at, run.uuid))


def under_way(stage: Stage, planned: Planned) -> list[Run]:
    return [run for run in stage.runs(planned) if run.state is State.ACK_RECVD]


def report(stage: Stage, run: Run) -> None:
    assert run.schedule_id is not None
    results.record(stage.world, TENANT, run.schedule_id, run.uuid, success=True, message=None)


def cancel(stage: Stage, run: Run) -> None:
    results.cancel(stage.world, TENANT, run.schedule_id or run.job_id, run.uuid)


def open_errors(stage: Stage) -> int:
    with stage.untapped():
        groups = list(views.groups(stage.world.table, TENANT))
        return sum(failures.open_runs(stage.world, group).count for group in groups)


# Where runs exclude each other


@every_policy
def test_a_redrive_runs_mutually_exclusive_runs_one_after_another(stage: Stage, policy: str) -> None:
    planned, failed = failed_runs(stage, 4, policy)
    stage.endpoint.received.clear()

    operation = redrive(stage, failed)
    for done in range(1, 5):
        stage.run(90)
        (active,) = under_way(stage, planned)
        assert len(stage.endpoint.received) == len(reruns(stage, planned)) == done
        there = work(stage, operation)
        assert (there.state, there.done, there.failed) == (OperationState.RUNNING, done, 0)
        report(stage, active)
    stage.run(90)

    there = work(stage, operation)
    assert (there.state, there.done, there.failed) == (OperationState.DONE, 4, 0)
    assert {run.state for run in reruns(stage, planned)} == {State.SUCCESS}
    assert {run.rerun_of for run in reruns(stage, planned)} == {run.id for run in failed}
    assert open_errors(stage) == 0


def test_runs_that_end_immediately_delay_a_redrive_by_seconds_only(stage: Stage) -> None:
    planned, failed = failed_runs(stage, 20)
    stage.endpoint.answer = OK

    operation = redrive(stage, failed)
    stage.run(60)

    assert work(stage, operation).state is OperationState.DONE
    assert [run.state for run in reruns(stage, planned)] == [State.SUCCESS] * 20


def test_a_waiting_redrive_checks_at_growing_intervals(stage: Stage) -> None:
    _, failed = failed_runs(stage, 2)

    operation = redrive(stage, failed)
    stage.run(120)
    early = work(stage, operation).step
    stage.run(3_000)

    assert work(stage, operation).cursor["waitsFor"] == "runs that exclude each other"
    assert work(stage, operation).step - early <= 52


def test_schedules_do_not_wait_for_each_other(stage: Stage) -> None:
    planned, first = failed_runs(stage, 2)
    other, second = failed_runs(stage, 2)

    redrive(stage, [first[0], second[0], first[1], second[1]])
    stage.run(30)

    assert [len(under_way(stage, each)) for each in (planned, other)] == [1, 1]


def test_a_redrive_waits_for_the_place_after_an_active_run(stage: Stage) -> None:
    planned, failed = failed_runs(stage, 3, "queue_one")
    again(stage, failed[0])
    stage.run(5)
    again(stage, failed[1])
    stage.run(5)

    operation = redrive(stage, failed[2:])
    stage.run(600)
    assert len(reruns(stage, planned)) == 2
    for _ in range(3):
        report(stage, under_way(stage, planned)[0])
        stage.run(90)

    assert [run.state for run in reruns(stage, planned)] == [State.SUCCESS] * 3
    assert (work(stage, operation).state, work(stage, operation).failed) == (OperationState.DONE, 0)


@every_policy
def test_a_rerun_next_to_an_active_run_waits_its_turn(stage: Stage, policy: str) -> None:
    planned, failed = failed_runs(stage, 2, policy)
    again(stage, failed[0])
    stage.run(5)

    again(stage, failed[1])
    stage.run(300)
    (active,) = under_way(stage, planned)
    assert [run.state for run in reruns(stage, planned)] == [State.ACK_RECVD, State.QUEUED]
    report(stage, active)
    stage.run(5)
    report(stage, under_way(stage, planned)[0])
    stage.run(5)

    assert [run.state for run in reruns(stage, planned)] == [State.SUCCESS] * 2
    assert open_errors(stage) == 0


# Reruns that did not run


def test_a_rerun_without_a_place_to_wait_stays_an_error(stage: Stage) -> None:
    planned, failed = failed_runs(stage, 3)

    for run in failed:
        again(stage, run)
        stage.run(5)

    last = reruns(stage, planned)[-1]
    assert (last.state, last.reason) == (State.SKIPPED, Reason.OVERLAP)
    assert open_errors(stage) == 1
    again(stage, stage.runs(planned, Kind.SCHEDULED)[2])
    assert open_errors(stage) == 0


def test_a_cancelled_rerun_counts_as_failed_and_reopens_its_error(stage: Stage) -> None:
    planned, failed = failed_runs(stage, 2)
    operation = redrive(stage, failed)
    stage.run(5)
    (first,) = reruns(stage, planned)

    cancel(stage, first)
    stage.run(90)
    report(stage, under_way(stage, planned)[0])
    stage.run(90)

    there = work(stage, operation)
    assert (there.state, there.done, there.failed) == (OperationState.DONE, 2, 1)
    why = f"its run {first.id} ended as CANCELLED, BY_USER"
    assert there.result == {"notRun": [{"runId": first.rerun_of, "reason": why}]}
    assert open_errors(stage) == 1


def test_a_fresh_occurrence_that_replaces_a_rerun_leaves_the_error_open(stage: Stage) -> None:
    stage.endpoint.answer = lambda call: WRONG if call.planned_at.minute <= 1 else ACCEPTED(call)
    planned = stage.create({"every": "PT1M", "count": 3}, action=stage.action(**ASYNC), policies={"overlap": "replace"})
    stage.run(70)
    (failed,) = stage.runs(planned, Kind.SCHEDULED)
    stage.endpoint.answer = ACCEPTED

    operation = redrive(stage, [failed])
    stage.run(120)

    assert [(run.state, run.reason) for run in reruns(stage, planned)] == [(State.CANCELLED, Reason.REPLACED)]
    assert work(stage, operation).failed == 1
    assert open_errors(stage) == 1


def test_errors_deleted_with_their_job_are_archived_with_the_reason(stage: Stage) -> None:
    planned, (failed,) = failed_runs(stage, 1)
    again(stage, failed)
    stage.run(5)

    stage.delete(planned)
    stage.run(120)

    assert open_errors(stage) == 0
    with stage.untapped():
        assert {group.closed_reason for group in views.groups(stage.world.table, TENANT)} == {failures.DELETED}


@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused])
@pytest.mark.parametrize(
    ("name", "skip"),
    [
        ("dynamodb.TransactWriteItems", 0),
        *((f"dynamodb.{each}", n) for each in ("GetItem", "UpdateItem") for n in range(3)),
    ],
)
def test_an_error_is_reopened_wherever_the_reopening_is_interrupted(
    stage: Stage, name: str, fault: Any, skip: int
) -> None:
    planned, (failed,) = failed_runs(stage, 1)
    again(stage, failed)
    stage.run(5)
    cancel(stage, reruns(stage, planned)[0])

    with stage.taps.once(name, fault, skip=skip):
        for _ in range(20):
            with suppress(Crash):
                stage.run(60)

    assert open_errors(stage) == 1
    assert stage.runs(planned, Kind.SCHEDULED)[0].rerun_by is None


def test_an_error_that_was_rerun_again_stays_settled(stage: Stage) -> None:
    planned, (failed,) = failed_runs(stage, 1)
    again(stage, failed)
    stage.run(5)
    first = reruns(stage, planned)[0]
    cancel(stage, first)

    def anew(passing: Passing, act: Act) -> Any:
        with stage.untapped():
            again(stage, failed)
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", anew):
        stage.run(5)

    there = stage.runs(planned, Kind.SCHEDULED)[0]
    assert there.rerun_by not in {None, first.id}
    assert open_errors(stage) == 0


@pytest.mark.parametrize("row", ["ledger", "error"])
def test_only_the_last_rerun_can_reopen_either_row(stage: Stage, row: str) -> None:
    planned, (failed,) = failed_runs(stage, 1)
    again(stage, failed)
    table = stage.world.table
    (there,) = stage.runs(planned, Kind.SCHEDULED)

    def undo(by: str) -> object:
        if row == "ledger":
            return table.transact([ledger.not_rerun_op(table, there, by)])
        return table.transact([store.not_rerun_op(table, there, stage.clock.now(), by)])

    assert isinstance(undo("another"), Cancelled)
    assert isinstance(undo(str(there.rerun_by)), Written)
    assert isinstance(undo(str(there.rerun_by)), Cancelled)


def test_a_failure_rerun_before_it_was_recorded_is_recorded_when_it_is_reopened(stage: Stage) -> None:
    planned, (failed,) = failed_runs(stage, 1)
    again(stage, failed)
    stage.run(5)
    (row,) = [item for item in stage.items() if "rerun_at" in item]
    gone = [assign(ErrorRunItem.at, None)]
    stage.world.table.update(row["pk"]["S"], row["sk"]["S"], gone, ErrorRunItem.pk.exists())

    cancel(stage, under_way(stage, planned)[0])
    stage.run(5)

    assert open_errors(stage) == 1


def test_a_reopened_error_restores_its_group_and_announces_its_expiry(stage: Stage) -> None:
    planned, (failed,) = failed_runs(stage, 1)
    again(stage, failed)
    stage.run(5)
    (group,) = views.groups(stage.world.table, TENANT)
    store.forget_group(stage.world.table, group)
    assert failed.expires_at is not None
    stage.pass_time((failed.expires_at - stage.clock.now() - timedelta(days=1)).total_seconds())

    cancel(stage, reruns(stage, planned)[0])
    stage.run(300)

    assert open_errors(stage) == 1
    (told,) = stage.bus.of(EventType.ERRORS_EXPIRING)
    assert told["count"] == 1
