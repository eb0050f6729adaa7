"""Runs that are run again: one by hand, many paced; wherever it is cut off, each of them once."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest

from sweephand.base.errors import Conflict, InvalidRequest, NotFound, Unavailable
from sweephand.domain.job import Payload
from sweephand.domain.operation import OperationKind, OperationState
from sweephand.domain.run import FAILED, Kind, Run, State
from sweephand.server import actions
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import rerun
from sweephand.server.flow.operations import verbs
from sweephand.server.flow.runs.edits import Edit
from sweephand.testing.taps import Act, Passing
from tests.support.acting import GUARD, ROLE
from tests.support.endpoint import OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, conflict, crash_after, crash_before, refused
from tests.unit.server.flow.common import NOON

MINUTELY = {"cron": "* * * * *"}
API_KEY = {"type": "apiKey", "header": "X-Key", "value": "secret"}
SIGNED = {"type": "sigv4", "service": "execute-api", "region": "eu-west-1", "roleArn": ROLE}


def failed_runs(stage: Stage, count: int, **members: Any) -> tuple[Planned, list[Run]]:
    """Makes a schedule whose runs failed, each for good; from now on its target succeeds."""
    stage.endpoint.answer = lambda _: WRONG
    planned = stage.create(MINUTELY | {"count": count}, **members)
    stage.run(60 * count + 10)
    stage.endpoint.answer = lambda _: OK
    return planned, stage.runs(planned, Kind.SCHEDULED)


def again(stage: Stage, run: Run, edit: Edit | None = None, once: Once | None = None) -> str:
    owner = run.schedule_id or run.job_id
    return rerun.rerun(stage.world, TENANT, owner, run.uuid, edit=edit, once=once, actor="acme.me")


def redrive(stage: Stage, runs: list[Run], rate: int = 60) -> str:
    params = {"runs": [run.id for run in runs], "ratePerMinute": rate}
    return verbs.begin(stage.world, TENANT, OperationKind.REDRIVE, params, actor="acme.me", total=len(runs)).id


def reruns(stage: Stage, planned: Planned) -> list[Run]:
    return [run for run in stage.runs(planned) if run.rerun_of is not None]


def test_a_run_that_failed_is_run_again_as_a_run_of_its_own(stage: Stage) -> None:
    planned, (failed,) = failed_runs(stage, 1)

    run_id = again(stage, failed)
    stage.run(1)

    (new,) = reruns(stage, planned)
    assert (new.id, new.kind, new.state, new.rerun_of) == (run_id, Kind.MANUAL, State.SUCCESS, failed.id)
    there = stage.runs(planned, Kind.SCHEDULED)[0]
    assert (there.state, there.rerun_by) == (State.REQUEST_ERROR, new.id)


def test_a_rerun_sends_the_instant_that_it_repeats(stage: Stage) -> None:
    _, (failed,) = failed_runs(stage, 1)
    stage.pass_time(3_600)

    again(stage, failed)
    stage.run(1)

    call = stage.endpoint.received[-1].call
    assert call.planned_at == failed.planned_at == NOON + timedelta(minutes=1)


def test_a_rerun_of_a_rerun_repeats_the_first_instant(stage: Stage) -> None:
    planned, (failed,) = failed_runs(stage, 1)
    again(stage, failed)
    stage.run(60)

    again(stage, reruns(stage, planned)[0])
    stage.run(1)

    assert stage.endpoint.received[-1].call.planned_at == failed.planned_at
    assert len(reruns(stage, planned)) == 2


def test_only_ended_runs_can_be_rerun(stage: Stage) -> None:
    planned = stage.create(MINUTELY)
    stage.run(70)
    (run,) = stage.runs(planned)
    assert run.state is State.SUCCESS

    again(stage, run)
    waiting = next(each for each in stage.runs(planned) if each.state is State.QUEUED)

    with pytest.raises(Conflict, match="not ended"):
        again(stage, waiting)


def test_an_error_action_is_rerun_as_an_error_action(stage: Stage) -> None:
    planned, _ = failed_runs(stage, 1, error_action=stage.action(url="https://example.org/alarm"))
    (alarm,) = stage.runs(planned, Kind.ERROR_ACTION)

    again(stage, alarm)
    stage.run(1)

    both = stage.runs(planned, Kind.ERROR_ACTION)
    assert len(both) == 2
    assert {run.parent_uuid for run in both} == {alarm.parent_uuid}


@pytest.mark.parametrize("name", ["dynamodb.TransactWriteItems", "sqs.SendMessageBatch"])
@pytest.mark.parametrize("fault", [crash_before, crash_after])
def test_the_same_key_makes_one_rerun_wherever_it_is_interrupted(stage: Stage, name: str, fault: Any) -> None:
    planned, (failed,) = failed_runs(stage, 1)
    once = Once("k", "d")
    with stage.taps.once(name, fault), suppress(Crash):
        again(stage, failed, once=once)

    first = again(stage, failed, once=once)
    stage.run(120)

    assert [run.id for run in reruns(stage, planned)] == [first]
    assert len(stage.endpoint.received) == 2


@pytest.mark.parametrize("fault", [answer_lost, conflict])
def test_the_write_of_a_rerun_can_be_answered_late_or_refused_once(stage: Stage, fault: Any) -> None:
    planned, (failed,) = failed_runs(stage, 1)

    with stage.taps.once("dynamodb.TransactWriteItems", fault):
        again(stage, failed, once=Once("k", "d"))
    stage.run(1)

    assert [run.state for run in reruns(stage, planned)] == [State.SUCCESS]


def test_the_wake_row_sends_a_lost_message_again(stage: Stage) -> None:
    planned, (failed,) = failed_runs(stage, 1)
    with stage.taps.once("sqs.SendMessageBatch", refused, skip=0):
        again(stage, failed)

    for url in stage.world.settings.queue_urls.values():
        stage.sqs.purge(url)
    stage.run(180)

    assert [run.state for run in reruns(stage, planned)] == [State.SUCCESS]


def test_an_expired_run_cannot_be_run_again(stage: Stage) -> None:
    planned, (failed,) = failed_runs(stage, 1)
    stage.delete(planned)

    with pytest.raises(NotFound):
        again(stage, failed)


def test_a_run_that_expires_during_its_rerun_is_not_restored(stage: Stage) -> None:
    planned, (failed,) = failed_runs(stage, 1)

    def gone(passing: Passing, act: Act) -> Any:
        key = {"pk": {"S": f"TENANT#{TENANT}#SCH#{failed.schedule_id}"}, "sk": {"S": f"RUN#{failed.uuid}"}}
        with stage.untapped():
            stage.world.table.client.delete_item(TableName=stage.world.table.name, Key=key)
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", gone), pytest.raises(NotFound):
        again(stage, failed)

    assert stage.runs(planned) == []


# Edited


def test_an_edited_rerun_sends_the_edited_payload_and_leaves_the_job_unchanged(stage: Stage) -> None:
    planned, (failed,) = failed_runs(stage, 1, action=stage.action(payload={"n": 1}, headers={"X-A": "1", "x-b": "2"}))
    sent: list[Any] = []
    real = stage.world.perform

    def perform(kind: str, params: Any, call: Any, outbound: Any) -> Any:
        sent.append((call.payload, params["headers"]))
        return real(kind, params, call, outbound)

    stage.world = _with(stage, perform)
    edit = Edit(Payload('{"n":2}', is_json=True), {"X-B": "3", "X-A": None})
    again(stage, failed, edit)
    stage.run(1)
    (edited,) = reruns(stage, planned)
    again(stage, failed)
    again(stage, edited)
    stage.run(1)

    other, own = ('{"n":2}', {"X-B": "3"}), ('{"n":1}', {"X-A": "1", "x-b": "2"})
    assert sent[0] == other
    assert sorted(map(str, sent[1:])) == sorted(map(str, [own, other])), "a rerun of the edited one repeats its edit"


def _with(stage: Stage, perform: Any) -> Any:
    from dataclasses import replace  # noqa: PLC0415

    return replace(stage.world, perform=perform)


def test_the_edit_of_a_run_expires_without_a_delete(stage: Stage) -> None:
    _, (failed,) = failed_runs(stage, 1)
    again(stage, failed, Edit(Payload("{}", is_json=True)))

    (row,) = [item for item in stage.items() if item["sk"]["S"].endswith("#EDIT")]
    assert int(row["expires_at"]["N"]) > stage.clock.now().timestamp() + 548 * 86_400


@pytest.mark.parametrize(
    ("fields", "edit", "field"),
    [
        ({"method": "GET"}, Edit(Payload("[1]", is_json=True)), "payload"),
        ({}, Edit(headers={"authorization": "x"}), "headers.authorization"),
        ({"authentication": API_KEY}, Edit(headers={"x-key": "mine"}), "headers.x-key"),
        ({"authentication": SIGNED}, Edit(headers={"x-amz-date": "20270301T120000Z"}), "headers.x-amz-date"),
        ({"type": "event", "url": None}, Edit(headers={"X-A": "1"}), "headers"),
    ],
)
def test_a_payload_that_the_action_cannot_send_is_refused(stage: Stage, fields: Any, edit: Edit, field: str) -> None:
    made = {"type": "http", "url": "https://example.org/run", **fields}
    made = {name: value for name, value in made.items() if value is not None}
    action = actions.draft(made, field="action", guard=GUARD)
    _, (failed,) = failed_runs(stage, 1, action=action)
    passed = len(stage.taps.passed)

    with pytest.raises(InvalidRequest) as wrong:
        again(stage, failed, edit)

    assert wrong.value.field == field
    assert not [call for call in stage.taps.passed[passed:] if "Write" in call.operation]


# Redriven


def test_a_selection_is_rerun_at_its_rate(stage: Stage) -> None:
    planned, failed = failed_runs(stage, 25)
    begun_at = stage.clock.now()

    operation = redrive(stage, failed, rate=60)
    stage.run(60)

    there = verbs.find(stage.world, TENANT, operation)
    assert (there.state, there.done, there.failed) == (OperationState.DONE, 25, 0)
    new = reruns(stage, planned)
    assert {run.rerun_of for run in new} == {run.id for run in failed}
    assert {run.state for run in new} == {State.SUCCESS}
    starts = sorted(started(run) for run in new)
    assert starts[0] - begun_at < timedelta(seconds=2)
    for n, start in enumerate(starts):
        assert start - begun_at >= timedelta(seconds=n)
    assert starts[-1] - begun_at < timedelta(seconds=35)


def started(run: Run) -> datetime:
    assert run.first_started_at is not None
    return run.first_started_at


@pytest.mark.parametrize("rate", [1, 7, 600])
def test_no_minute_begins_more_reruns_than_the_rate(stage: Stage, rate: int) -> None:
    planned, failed = failed_runs(stage, 8)

    redrive(stage, failed, rate=rate)
    stage.run(8 * 60 + 30)

    starts = sorted(started(run) for run in reruns(stage, planned))
    assert len(starts) == 8
    for first in starts:
        assert sum(first <= start < first + timedelta(seconds=59) for start in starts) <= max(rate, 1)


@pytest.mark.repeats
@pytest.mark.parametrize("name", ["dynamodb.TransactWriteItems", "sqs.SendMessageBatch", "dynamodb.UpdateItem"])
@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused])
@pytest.mark.parametrize("skip", [0, 2])
def test_each_run_is_rerun_once_wherever_the_redrive_is_interrupted(
    stage: Stage, name: str, fault: Any, skip: int
) -> None:
    planned, failed = failed_runs(stage, 5)
    met = 0

    def nth(passing: Passing, act: Act) -> Any:
        nonlocal met
        met += passing.name == name
        return fault(passing, act) if passing.name == name and met == skip + 1 else act()

    with stage.taps.faulty(nth):
        with suppress(Crash, Unavailable, AssertionError):
            redrive(stage, failed, rate=20)
        for _ in range(60):
            with suppress(Crash):
                stage.run(30)

    assert met > skip
    begun = [item for item in stage.items() if item["sk"]["S"].startswith("OP#")]
    new = reruns(stage, planned)
    assert len(new) == (5 if begun else 0)
    assert {run.state for run in new} <= {State.SUCCESS}
    assert all(item["done"]["N"] == "5" and item["state"]["S"] == "DONE" for item in begun)


def test_runs_that_cannot_run_again_are_counted_and_named(stage: Stage) -> None:
    planned, failed = failed_runs(stage, 3)
    again(stage, failed[1])
    stage.run(1)
    succeeded = reruns(stage, planned)[0]
    other = stage.create({"every": "PT1H"})
    nowhere = f"{other.schedules[0].id}_{failed[0].uuid}"

    params = {"runs": [failed[0].id, failed[1].id, succeeded.id, nowhere], "ratePerMinute": 600}
    operation = verbs.begin(stage.world, TENANT, OperationKind.REDRIVE, params, actor=None, total=4)
    stage.run(30)

    there = verbs.find(stage.world, TENANT, operation.id)
    assert (there.state, there.done, there.failed) == (OperationState.DONE, 4, 3)
    assert there.result == {
        "notRun": [
            {"runId": failed[1].id, "reason": f"it was run again as {succeeded.id}"},
            {"runId": succeeded.id, "reason": "it did not fail"},
            {"runId": nowhere, "reason": "no such run"},
        ]
    }
    assert len(reruns(stage, planned)) == 2


def test_a_redrive_paused_between_pages_runs_nothing_more(stage: Stage) -> None:
    planned, failed = failed_runs(stage, 30)
    operation = redrive(stage, failed, rate=60)
    stage.run(12)

    verbs.pause(stage.world, verbs.find(stage.world, TENANT, operation))
    stage.run(3_600)
    rested = len(reruns(stage, planned))
    verbs.resume(stage.world, verbs.find(stage.world, TENANT, operation))
    stage.run(60)

    assert rested == 20
    assert len(reruns(stage, planned)) == 30
    assert not [run for run in reruns(stage, planned) if run.state in FAILED]
