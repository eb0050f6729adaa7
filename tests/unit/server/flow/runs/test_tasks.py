"""Runs that are tasks on ECS: what ECS tells ends them, whatever comes twice, late, too early or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from sweephand.domain.job import ActionDraft
from sweephand.domain.run import Kind, Outcome, Reason, Run, State, Verdict
from sweephand.domain.runs import ecs_task
from sweephand.server import actions
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.runs import results
from sweephand.server.store.runs import ledger
from sweephand.testing.service import DEAD, URLS
from sweephand.testing.taps import Act, Passing
from tests.support.ecs import ACTION, GUARD, Cluster, passed_on, refusal
from tests.support.stage import TENANT, Stage, stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before
from tests.unit.server.flow.common import MINUTE, exact, fixed, once

LIMIT_S = 600
ROOT = Path(__file__).resolve().parents[5]


class Jobs:
    """A stage with ECS, and a job that runs a task at noon and one minute."""

    def __init__(self, made: Stage) -> None:
        self.stage = made
        self.ecs = Cluster.of(made)
        self.planned: Planned | None = None

    def job(self, timing: dict[str, object] | None = None, **members: Any) -> Planned:
        action = members.pop("action", None) or draft()
        self.planned = self.stage.create(timing or once(), action=action, **members)
        return self.planned

    def begun(self, **members: Any) -> Run:
        """Returns its run, whose task has begun."""
        self.job(**members)
        self.stage.run(70)
        return self.run

    @property
    def run(self) -> Run:
        assert self.planned is not None
        return self.stage.only_run(self.planned)

    def delivers(self) -> None:
        self.stage.deliver_all()


def draft(**fields: Any) -> ActionDraft:
    fields = {**ACTION, "outcome": {"callbackTimeoutSeconds": LIMIT_S}, **fields}
    return actions.draft(fields, field="action", guard=GUARD)


@pytest.fixture
def cluster() -> Iterator[Jobs]:
    with stage() as made:
        yield Jobs(made)


def lost(passing: Passing, act: Act) -> Any:
    """Begins the task, and gives no answer, neither to the first call nor to its repeat."""
    act()
    raise ReadTimeoutError(endpoint_url=passing.operation)


# ---- The end ---------------------------------------------------------------------------------------------------------


def test_a_started_task_leaves_its_run_waiting_with_a_deadline(cluster: Jobs) -> None:
    run = cluster.begun()

    assert (run.state, run.task) == (State.ACK_RECVD, run.answer)
    assert list(cluster.ecs.begun) == [run.task]
    assert run.deadline_at is not None
    assert run.started_at is not None
    assert 0 <= (run.deadline_at - run.started_at).total_seconds() - LIMIT_S <= 1


@pytest.mark.action("ecs", "own", "success")
def test_exit_code_0_is_success(cluster: Jobs) -> None:
    cluster.begun()

    cluster.ecs.ends(0)
    cluster.delivers()

    run = cluster.run
    assert (run.state, run.reason, run.answer) == (State.SUCCESS, Reason.ON_TIME, run.task)
    assert run.message == "exit code 0: Essential container in task exited"
    assert (run.wake_at, cluster.ecs.stopped) == (None, {})
    exact(cluster.stage, cluster.planned)


def test_another_exit_code_is_an_error_with_the_code_and_the_reason(cluster: Jobs) -> None:
    cluster.begun(error_action=cluster.stage.action())

    cluster.ecs.ends(137)
    cluster.stage.run(5)

    assert cluster.planned is not None
    (run,) = cluster.stage.runs(cluster.planned, Kind.SCHEDULED)
    (told,) = cluster.stage.runs(cluster.planned, Kind.ERROR_ACTION)
    assert (run.state, run.reason) == (State.ERROR, Reason.TARGET_ERROR)
    assert run.message == "exit code 137: Essential container in task exited"
    assert (told.parent_uuid, cluster.stage.totals(cluster.planned).failed) == (run.uuid, 1)


def test_a_task_that_never_ran_is_an_error_with_its_containers_reason(cluster: Jobs) -> None:
    cluster.begun()

    containers = [{"name": "main", "lastStatus": "STOPPED", "reason": "CannotPullContainerError"}]
    cluster.ecs.tells("STOPPED", containers=containers, stoppedReason="Task failed to start")
    cluster.delivers()

    assert cluster.run.state is State.ERROR
    assert cluster.run.message == "the task never ran: Task failed to start: CannotPullContainerError"


def test_the_named_container_decides_among_several(cluster: Jobs) -> None:
    cluster.begun()

    containers = [{"name": "sidecar", "exitCode": 143}, {"name": "main", "exitCode": 0}]
    cluster.ecs.tells("STOPPED", containers=containers, stoppedReason="done")
    cluster.delivers()

    assert cluster.run.state is State.SUCCESS


@pytest.mark.parametrize(
    ("codes", "success"), [([0, 0], True), ([0, 1], False), ([1, 0], False), ([None, 0], False), ([], False)]
)
def test_all_containers_decide_when_the_named_one_is_unknown(codes: list[int | None], success: bool) -> None:
    containers = tuple(ecs_task.Container(f"c{n}", code) for n, code in enumerate(codes))

    assert ecs_task.judged(ecs_task.Change(None, "arn", stopped=True, containers=containers), "other")[0] is success


def test_the_task_of_a_job_deleted_meanwhile_is_judged_or_stopped(cluster: Jobs) -> None:
    """Which of the two comes first; never is a task left running for nobody."""
    cluster.begun()
    assert cluster.planned is not None
    cluster.stage.delete(cluster.planned)

    cluster.stage.run(120)

    (row,) = cluster.stage.runs(cluster.planned.schedules[0].id)
    assert (row.state, row.reason) == (State.CANCELLED, Reason.OWNER_GONE)
    assert list(cluster.ecs.stopped) == [row.task]


# ---- Twice, too early, late ------------------------------------------------------------------------------------------


def test_a_repeated_end_changes_nothing(cluster: Jobs) -> None:
    cluster.begun()
    cluster.ecs.ends(0)
    cluster.delivers()
    first = cluster.run

    cluster.ecs.ends(0)
    cluster.stage.run(5)

    assert cluster.run == first


@pytest.mark.parametrize(("code", "state"), [(0, State.SUCCESS), (3, State.ERROR)])
def test_an_end_that_comes_before_the_executor_has_written_the_wait_is_not_lost(
    cluster: Jobs, code: int, state: State
) -> None:
    def ended_at_once(_passing: Passing, act: Act) -> Any:
        answer = act()
        cluster.ecs.ends(code)
        # Another executor takes it while this one holds the run.
        cluster.delivers()
        return answer

    cluster.job()
    with cluster.stage.taps.once("ecs.RunTask", ended_at_once):
        cluster.stage.run(70)

    run = cluster.run
    assert run.state is state
    assert run.message == f"exit code {code}: Essential container in task exited"
    assert (run.wake_at, cluster.ecs.stopped) == (None, {})
    exact(cluster.stage, cluster.planned)


def test_after_an_executor_dies_with_a_started_task_the_next_waits_for_the_same_task(
    cluster: Jobs,
) -> None:
    cluster.job()
    with cluster.stage.taps.once("ecs.RunTask", crash_after), pytest.raises(Crash):
        cluster.stage.run(70)
    cluster.ecs.tells("RUNNING")

    cluster.stage.run(120)

    assert (cluster.run.state, cluster.run.lost) == (State.ACK_RECVD, 1)
    assert (list(cluster.ecs.begun), cluster.ecs.stopped) == ([cluster.run.task], {})


def test_an_end_between_two_executors_is_the_end_of_the_run(cluster: Jobs) -> None:
    cluster.job()
    with cluster.stage.taps.once("ecs.RunTask", crash_after), pytest.raises(Crash):
        cluster.stage.run(70)
    cluster.ecs.ends(0)

    cluster.stage.run(120)

    assert (cluster.run.state, len(cluster.ecs.asked)) == (State.SUCCESS, 1)


def test_a_wait_whose_write_lost_its_answer_starts_no_second_task(cluster: Jobs) -> None:
    cluster.job()
    with cluster.stage.taps.once("dynamodb.UpdateItem", answer_lost):
        cluster.stage.run(70)

    assert (cluster.run.state, cluster.run.task) == (State.ACK_RECVD, next(iter(cluster.ecs.begun)))


@pytest.mark.parametrize("fault", [crash_before, crash_after], ids=lambda each: each.__name__)
def test_the_next_executor_writes_an_end_whose_executor_died(cluster: Jobs, fault: Any) -> None:
    cluster.begun()
    cluster.ecs.ends(0)
    with cluster.stage.taps.once("dynamodb.UpdateItem", fault), pytest.raises(Crash):
        cluster.delivers()

    cluster.stage.run(300)

    assert (cluster.run.state, cluster.run.wake_at) == (State.SUCCESS, None)
    exact(cluster.stage, cluster.planned)


def test_tasks_of_other_applications_are_ignored(cluster: Jobs) -> None:
    cluster.begun()
    mine = next(iter(cluster.ecs.begun))
    event = cluster.ecs.event(mine, "STOPPED", stoppedReason="done")

    foreign = [
        {**event, "source": "acme.ecs"},
        {**event, "detail-type": "ECS Deployment State Change"},
        *(
            {**event, "detail": {**event["detail"], **other}}
            for other in ({"startedBy": "ecs-svc/1"}, {"clusterArn": "arn:x:y/other"}, {"lastStatus": "PENDING"})
        ),
    ]

    assert [passed_on(each) for each in foreign] == [[]] * len(foreign)
    assert len(passed_on(event)) == 1


@pytest.mark.parametrize(
    "mark", ["sweephand/x", f"sweephand/acme/1/{'A' * 22}/{'A' * 22}", f"sweephand/globex/1/{'A' * 22}/{'A' * 22}"]
)
def test_a_task_that_only_looks_like_one_of_the_service_is_dropped_for_good(cluster: Jobs, mark: str) -> None:
    before = cluster.begun()
    cluster.ecs.tells("STOPPED", startedBy=mark, stoppedReason="done")

    cluster.delivers()

    assert cluster.run == before
    assert ("info", "dropped", {"reason": "the task belongs to no stored run"}) in cluster.stage.journal.lines
    assert not [body for body in cluster.stage.sqs.bodies(next(iter(URLS.values()))) if mark in body]


@pytest.mark.parametrize("body", ["{}", "[]", "5", "null", '{"lastStatus": "STOPPED"}', '{"lastStatus": ["STOPPED"]}'])
def test_a_message_without_an_owner_is_still_an_error(cluster: Jobs, body: str) -> None:
    cluster.stage.sqs.send_message(QueueUrl=next(iter(URLS.values())), MessageBody=body)

    cluster.stage.deliver()

    assert "a message cannot be read" in cluster.stage.journal.at("error")


def test_the_environment_of_a_task_is_not_sent_through_the_queue(cluster: Jobs) -> None:
    cluster.begun(action=draft(environment={"PASSWORD": "canary-of-a-task"}))
    assert "canary-of-a-task" in str(cluster.ecs.event(next(iter(cluster.ecs.begun)), "RUNNING"))

    cluster.ecs.tells("RUNNING")
    cluster.ecs.ends(0)

    assert len(told_by_ecs(cluster)) == 2
    assert "canary" not in "".join(cluster.stage.sqs.bodies(next(iter(URLS.values()))))


def told_by_ecs(cluster: Jobs) -> list[str]:
    """Returns what waits in the queue, without copies of the run's own pointer that wait for the lease of the first."""
    bodies = cluster.stage.sqs.bodies(next(iter(URLS.values())))
    return [body for body in bodies if json.loads(body).get("kind") != "scheduled"]


def test_the_sample_event_of_a_task_end_matches_the_rules_of_the_template(cluster: Jobs) -> None:
    cluster.begun()
    (body,) = passed_on(cluster.ecs.event(next(iter(cluster.ecs.begun)), "STOPPED", stoppedReason="done"))
    (record,) = json.loads((ROOT / "events/executor/task_ended.json").read_text())["Records"]

    change = ecs_task.read_change(record["body"])

    assert json.loads(record["body"]).keys() == json.loads(body).keys()
    assert change is not None
    assert change.of is not None
    assert (change.of.tenant, change.of.attempt, change.stopped) == ("acme", 1, True)
    assert change.containers == (ecs_task.Container("main", 0),)


# ---- Silence ---------------------------------------------------------------------------------------------------------


def test_a_run_waits_after_a_silent_ecs_and_finds_its_task_by_its_mark(cluster: Jobs) -> None:
    cluster.job()
    with cluster.stage.taps.once("ecs.RunTask", lost):
        cluster.stage.run(70)
    assert (cluster.run.state, cluster.run.task) == (State.ACK_NOT_RECVD, None)

    cluster.ecs.tells("RUNNING")
    cluster.delivers()
    assert cluster.run.task == next(iter(cluster.ecs.begun))

    cluster.ecs.ends(0)
    cluster.delivers()
    assert (cluster.run.state, len(cluster.ecs.begun)) == (State.SUCCESS, 1)


def test_a_task_found_later_does_not_replace_the_known_one(cluster: Jobs) -> None:
    run = cluster.begun()

    ledger.record_task(cluster.stage.world.table, run, "arn:another")

    assert cluster.run.task == run.task


def test_a_run_ended_since_it_was_read_waits_for_no_task(cluster: Jobs) -> None:
    cluster.job()
    with cluster.stage.taps.once("ecs.RunTask", lost):
        cluster.stage.run(70)
    before = cluster.run
    results.cancel(cluster.stage.world, TENANT, before.schedule_id or "", before.uuid)

    ledger.record_task(cluster.stage.world.table, before, "arn:late")

    assert (cluster.run.state, cluster.run.task) == (State.CANCELLED, None)


def test_a_start_that_was_refused_is_repeated_with_a_task_of_its_own(cluster: Jobs) -> None:
    def no_room(_passing: Passing, _act: Act) -> Any:
        return {"tasks": [], "failures": [{"reason": "RESOURCE:MEMORY"}]}

    cluster.job(action=draft(retry=fixed(30)))
    with cluster.stage.taps.once("ecs.RunTask", no_room):
        cluster.stage.run(70)
    assert (cluster.run.state, cluster.run.reason) == (State.RETRY_WAIT, Reason.TARGET_ERROR)

    cluster.stage.run(60)

    first, second = cluster.ecs.asked
    assert (cluster.run.state, cluster.run.attempt) == (State.ACK_RECVD, 2)
    assert first["clientToken"] != second["clientToken"]
    assert first["startedBy"] != second["startedBy"]


# ---- Time is over, cancelled, replaced -------------------------------------------------------------------------------


def test_a_run_over_its_time_limit_ends_as_timeout_and_its_task_is_stopped(cluster: Jobs) -> None:
    cluster.begun()

    cluster.stage.run(LIMIT_S + 60)

    run = cluster.run
    assert (run.state, run.reason) == (State.TIMEOUT, Reason.DEADLINE)
    assert cluster.ecs.stopped == {run.task: f"Sweephand: the run {run.id} is TIMEOUT"}
    assert cluster.stage.totals(cluster.planned).failed == 1  # type: ignore[arg-type]
    exact(cluster.stage, cluster.planned)


def test_a_run_whose_task_never_reported_ends_as_timeout(cluster: Jobs) -> None:
    cluster.job()
    with cluster.stage.taps.once("ecs.RunTask", lost):
        cluster.stage.run(LIMIT_S + 120)

    assert (cluster.run.state, cluster.run.task, cluster.ecs.stopped) == (State.TIMEOUT, None, {})

    cluster.ecs.tells("RUNNING")
    cluster.delivers()
    assert list(cluster.ecs.stopped) == list(cluster.ecs.begun)


def test_an_error_action_can_be_a_task_and_ends_as_timeout(cluster: Jobs) -> None:
    cluster.planned = cluster.stage.create(once(), action=draft(), error_action=draft(container="other"))
    with cluster.stage.taps.once("ecs.RunTask", refused_for_good):
        cluster.stage.run(LIMIT_S + 120)

    (failed,) = cluster.stage.runs(cluster.planned, Kind.SCHEDULED)
    (told,) = cluster.stage.runs(cluster.planned, Kind.ERROR_ACTION)
    assert (failed.state, told.state) == (State.REQUEST_ERROR, State.TIMEOUT)
    assert list(cluster.ecs.stopped) == [told.task]


def refused_for_good(_passing: Passing, _act: Act) -> Any:
    raise refusal("AccessDeniedException")


def cancelled(cluster: Jobs) -> None:
    run = cluster.run
    results.cancel(cluster.stage.world, TENANT, run.schedule_id or "", run.uuid)


def test_cancelling_a_run_stops_its_task_and_records_its_end(cluster: Jobs) -> None:
    run = cluster.begun()

    cancelled(cluster)
    cluster.delivers()
    cluster.ecs.ends(143, reason="stopped")
    cluster.delivers()

    assert cluster.ecs.stopped == {run.task: f"Sweephand: the run {run.id} is CANCELLED"}
    assert (cluster.run.state, cluster.run.wake_at) == (State.CANCELLED, None)
    assert cluster.run.notes == ("the task of attempt 1 ended later: exit code 143: stopped",)


def test_a_run_cancelled_while_its_task_starts_stops_the_task(cluster: Jobs) -> None:
    def cancelled_meanwhile(_passing: Passing, act: Act) -> Any:
        cancelled(cluster)
        return act()

    cluster.job()
    with cluster.stage.taps.once("ecs.RunTask", cancelled_meanwhile):
        cluster.stage.run(70)

    assert cluster.run.state is State.CANCELLED
    assert list(cluster.ecs.stopped) == list(cluster.ecs.begun)


def test_the_task_of_a_run_cancelled_as_its_executor_dies_is_stopped_once_it_runs(cluster: Jobs) -> None:
    def cancelled_and_dead(_passing: Passing, act: Act) -> Any:
        act()
        cancelled(cluster)
        raise Crash

    cluster.job()
    with cluster.stage.taps.once("ecs.RunTask", cancelled_and_dead), pytest.raises(Crash):
        cluster.stage.run(70)
    cluster.stage.run(60)
    assert cluster.ecs.stopped == {}

    cluster.ecs.tells("RUNNING")
    cluster.delivers()

    assert list(cluster.ecs.stopped) == list(cluster.ecs.begun)


@pytest.mark.parametrize("fault", [crash_before, crash_after], ids=lambda each: each.__name__)
def test_a_stop_whose_executor_dies_is_repeated(cluster: Jobs, fault: Any) -> None:
    run = cluster.begun()
    cancelled(cluster)
    with cluster.stage.taps.once("ecs.StopTask", fault), pytest.raises(Crash):
        cluster.delivers()

    cluster.stage.run(300)

    assert (list(cluster.ecs.stopped), cluster.run.wake_at) == ([run.task], None)


def test_a_stop_that_ecs_throttles_is_repeated_later(cluster: Jobs) -> None:
    def busy(_passing: Passing, _act: Act) -> Any:
        raise refusal("ThrottlingException")

    run = cluster.begun()
    cancelled(cluster)
    with cluster.stage.taps.once("ecs.StopTask", busy):
        cluster.delivers()
    assert cluster.run.wake_at is not None

    cluster.stage.run(300)

    assert (list(cluster.ecs.stopped), cluster.run.wake_at) == ([run.task], None)


def test_a_permanently_refused_stop_delays_nothing_and_is_reported(cluster: Jobs) -> None:
    cluster.begun()
    cancelled(cluster)
    with cluster.stage.taps.once("ecs.StopTask", refused_for_good):
        cluster.delivers()

    assert (cluster.run.wake_at, cluster.ecs.stopped) == (None, {})
    assert "a task could not be stopped" in cluster.stage.journal.at("warning")


def test_the_task_of_a_replaced_run_is_stopped(cluster: Jobs) -> None:
    cluster.job({"every": "PT5M"}, policies={"overlap": "replace"})
    cluster.stage.run(605)

    assert cluster.planned is not None
    old, new = cluster.stage.runs(cluster.planned)
    assert (old.state, old.reason, new.state) == (State.CANCELLED, Reason.REPLACED, State.ACK_RECVD)
    assert list(cluster.ecs.stopped) == [old.task]


def test_a_task_that_reported_by_callback_can_finish_its_work(cluster: Jobs) -> None:
    run = cluster.begun()
    results.record(cluster.stage.world, TENANT, run.schedule_id or "", run.uuid, success=True, message="done")
    cluster.delivers()

    cluster.ecs.tells("RUNNING")
    cluster.ecs.ends(1)
    cluster.delivers()

    assert (cluster.run.state, cluster.run.message, cluster.run.notes) == (State.SUCCESS, "done", ())
    assert cluster.ecs.stopped == {}


def test_a_task_of_an_attempt_that_ecs_seemed_to_refuse_is_stopped_and_ends_nothing(cluster: Jobs) -> None:
    def begun_all_the_same(_passing: Passing, act: Act) -> Any:
        act()
        raise refusal("ServerException", 500)

    cluster.job(action=draft(retry=fixed(30)))
    with cluster.stage.taps.once("ecs.RunTask", begun_all_the_same):
        cluster.stage.run(130)
    first, second = cluster.ecs.begun
    assert cluster.run.task == second

    cluster.ecs.tells("RUNNING", first)
    cluster.ecs.tells("RUNNING", second)
    cluster.ecs.ends(0, first)
    cluster.delivers()

    assert (list(cluster.ecs.stopped), cluster.run.state) == ([first], State.ACK_RECVD)
    assert cluster.run.notes == ("the task of attempt 1 ended later: exit code 0: Essential container in task exited",)


def test_an_end_among_the_dead_letters_is_still_processed(cluster: Jobs) -> None:
    cluster.begun()
    cluster.ecs.ends(0)
    (body,) = told_by_ecs(cluster)
    cluster.stage.sqs.purge(next(iter(URLS.values())))
    cluster.stage.sqs.send_message(QueueUrl=DEAD, MessageBody=body)

    cluster.delivers()

    assert cluster.run.state is State.SUCCESS


def test_answers_of_other_targets_are_never_taken_for_a_task(cluster: Jobs) -> None:
    """An endpoint may answer with the ARN of somebody's task; who cancels its run stops nothing."""
    cluster.begun()
    theirs = next(iter(cluster.ecs.begun))
    cluster.stage.endpoint.answer = Outcome(Verdict.ACCEPTED, answer=theirs)
    other = cluster.stage.create(once(2 * MINUTE), action=cluster.stage.action())
    cluster.stage.run(130)
    run = cluster.stage.only_run(other)
    assert (run.state, run.answer) == (State.ACK_RECVD, theirs)

    results.cancel(cluster.stage.world, TENANT, run.schedule_id or "", run.uuid)
    cluster.delivers()

    assert cluster.ecs.stopped == {}
