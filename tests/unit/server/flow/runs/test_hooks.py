"""Hooks: what runs when a run has succeeded, failed or was missed, once for each end, and changes nothing of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sweephand.domain.job import JobDraft, Pause
from sweephand.domain.run import Kind, Outcome, Reason, State
from sweephand.server import actions
from sweephand.server.actions.call import Call
from sweephand.server.flow.jobs import creation
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.server.flow.runs import results
from sweephand.server.security.guard import GuardSettings
from sweephand.testing.taps import Fault
from tests.support.endpoint import ACCEPTED, BUSY, OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.unit.server.flow.common import MINUTE, NOON, exact, fixed, once
from tests.unit.server.flow.hooked import FAULTS, MINUTELY, OPERATIONS, called, hook_runs, runs_once, target


def job(stage: Stage, timing: dict[str, Any] | None = None, **members: Any) -> Planned:
    """Makes a job with all three hooks, each with its own target."""
    hooks = {name: target(stage, name) for name in ("onSuccess", "onFailure", "onMissed")}
    return stage.create(timing or once(), **{"hooks": hooks, **members})


@pytest.mark.parametrize(
    ("answer", "hook", "kind"),
    [(OK, "onSuccess", Kind.ON_SUCCESS), (WRONG, "onFailure", Kind.ON_FAILURE)],
)
def test_the_end_of_a_run_starts_its_hook_as_a_run_of_its_own(
    stage: Stage, answer: Outcome, hook: str, kind: Kind
) -> None:
    stage.endpoint.script = [answer]
    planned = job(stage)

    stage.run(180)

    assert called(stage) == ["run", hook]
    (ended,) = stage.runs(planned, Kind.SCHEDULED)
    (reaction,) = hook_runs(stage, planned)
    assert (reaction.kind, reaction.state, reaction.parent_uuid) == (kind, State.SUCCESS, ended.uuid)
    assert reaction.planned_at == ended.planned_at
    exact(stage, planned)


def test_a_hook_without_a_payload_receives_the_outcome_of_the_run(stage: Stage) -> None:
    stage.endpoint.script = [WRONG]
    planned = job(stage)

    stage.run(180)

    call = stage.endpoint.received[1].call
    assert call.payload_is_json
    told = json.loads(call.payload or "")
    (ended,) = stage.runs(planned, Kind.SCHEDULED)
    assert (told["runId"], told["state"], told["reason"], told["httpStatus"]) == (
        ended.id,
        "REQUEST_ERROR",
        "HTTP_STATUS",
        404,
    )


def test_a_hook_sends_its_own_payload_and_secrets(stage: Stage) -> None:
    hook = target(stage, "onSuccess", payload={"mine": 1}, authentication={"type": "bearer", "token": "t"})
    action = stage.action(payload={"n": 1}, authentication={"type": "bearer", "token": "u"})
    job(stage, action=action, hooks={"onSuccess": hook})

    stage.run(180)

    calls = [received.call for received in stage.endpoint.received]
    assert [call.payload for call in calls] == ['{"n":1}', '{"mine":1}']
    assert [call.secrets for call in calls] == [{"authentication.token": "u"}, {"authentication.token": "t"}]


def test_a_target_without_a_payload_receives_nothing(stage: Stage) -> None:
    other = stage.create({"at": "2199-01-01T00:00:00Z"}, name="other")

    hook = actions.draft({"type": "job", "jobId": other.job.id}, field="hooks.onSuccess", guard=GuardSettings())
    job(stage, hooks={"onSuccess": hook})

    stage.run(180)

    assert [received.call.payload for received in stage.endpoint.received] == [None, None]


def test_a_hook_retries_by_its_own_rule_and_its_failure_changes_nothing(stage: Stage) -> None:
    stage.endpoint.script = [OK]
    stage.endpoint.answer = BUSY
    planned = job(stage, hooks={"onSuccess": target(stage, "onSuccess", retry=fixed(10, 2))})

    stage.run(240)

    (ended,) = stage.runs(planned, Kind.SCHEDULED)
    (reaction,) = hook_runs(stage, planned)
    assert ended.state is State.SUCCESS
    assert (reaction.state, reaction.attempt) == (State.ERROR, 3)
    assert stage.totals(planned).failed == 0
    exact(stage, planned)


def test_neither_a_hook_nor_an_error_action_starts_another(stage: Stage) -> None:
    stage.endpoint.answer = WRONG
    planned = job(stage, error_action=target(stage, "alarm"))

    stage.run(240)

    assert sorted(called(stage)) == ["alarm", "onFailure", "run"]
    assert len(stage.runs(planned)) == 3


def test_a_retry_starts_no_hook(stage: Stage) -> None:
    stage.endpoint.script = [BUSY, BUSY]
    job(stage, action=stage.action(retry=fixed(10)))

    stage.run(240)

    assert called(stage) == ["run", "run", "run", "onSuccess"]


def test_a_manual_run_and_a_reported_result_have_their_hooks_too(stage: Stage) -> None:

    stage.endpoint.script = [ACCEPTED]
    planned = job(stage, {"at": "2199-01-01T00:00:00Z"}, action=stage.action(outcome={"on202": "wait"}))
    run_id = manual.run_now(stage.world, TENANT, planned.job.id, None, None).run_id
    stage.deliver_all()

    results.record(stage.world, TENANT, planned.job.id, run_id.partition("_")[2], success=False, message=None)
    stage.run(60)

    assert called(stage) == ["run", "onFailure"]


@pytest.mark.parametrize(
    ("policy", "state"),
    [
        ({"type": "skip"}, State.MISSED),
        ({"type": "all", "maxLatenessSeconds": 300}, State.EXPIRED),
        ({"type": "sap", "maxLatenessSeconds": 300}, State.EXPIRED),
    ],
)
def test_missed_occurrences_have_one_hook_with_their_count(stage: Stage, policy: dict[str, Any], state: State) -> None:
    planned = job(stage, MINUTELY, policies={"misfire": policy})
    stage.run(30)
    stage.pass_time(3_600)

    stage.run(120)

    (line,) = [run for run in stage.runs(planned) if run.range_count is not None and run.state is state]
    (reaction,) = [run for run in hook_runs(stage, planned) if run.parent_uuid == line.uuid]
    assert (reaction.kind, reaction.state) == (Kind.ON_MISSED, State.SUCCESS)
    (call,) = [each.call for each in stage.endpoint.received if each.call.run_id == reaction.id]
    assert json.loads(call.payload or "")["range"]["count"] == line.range_count
    assert (line.range_count or 0) > 50


def test_a_late_occurrence_is_missed_too(stage: Stage) -> None:
    planned = job(stage, MINUTELY, policies={"misfire": {"type": "all", "maxLatenessSeconds": 60}})
    stage.run(30)
    stage.pass_time(600)

    stage.run(60)

    expired = {run.uuid for run in stage.runs(planned) if run.state is State.EXPIRED}
    assert expired
    assert {run.parent_uuid for run in hook_runs(stage, planned) if run.kind is Kind.ON_MISSED} == expired


def test_a_skipped_run_has_no_hook(stage: Stage) -> None:
    planned = job(stage)
    stage.run(58)
    stage.set_state(planned, pause=Pause(NOON))

    stage.run(120)

    assert [run.state for run in stage.runs(planned)] == [State.SKIPPED]
    assert called(stage) == []


@pytest.mark.parametrize(
    ("of_job", "of_schedule", "calls"),
    [
        (None, None, ["run", "onSuccess"]),
        (["onFailure"], None, ["run"]),
        (["onFailure"], ["onSuccess"], ["run", "onSuccess"]),
        (None, [], ["run"]),
    ],
)
def test_each_schedule_chooses_which_hooks_run(
    stage: Stage, of_job: list[str] | None, of_schedule: list[str] | None, calls: list[str]
) -> None:
    own = {} if of_schedule is None else {"hooks": of_schedule}
    draft = stage.schedule(once(), policies=own)
    policies = {} if of_job is None else {"hooks": of_job}
    hooks = {name: target(stage, name) for name in ("onSuccess", "onFailure")}

    creation.create_job(
        stage.world, TENANT, JobDraft(None, stage.action(), schedules=(draft,), hooks=hooks, policies=policies)
    )

    stage.run(180)

    assert called(stage) == calls


# Changes and faults


def test_a_removed_hook_is_cancelled_and_never_runs_the_job(stage: Stage) -> None:
    stage.endpoint.script = [OK]
    stage.endpoint.answer = BUSY
    planned = job(stage, hooks={"onSuccess": target(stage, "onSuccess", retry=fixed(120))})
    stage.run(90)
    assert called(stage) == ["run", "onSuccess"]

    stage.change(planned)
    stage.run(300)

    assert called(stage) == ["run", "onSuccess"]
    (reaction,) = hook_runs(stage, planned)
    assert (reaction.state, reaction.reason) == (State.CANCELLED, Reason.OWNER_GONE)


def test_a_removed_error_action_never_runs_the_job(stage: Stage) -> None:
    stage.endpoint.answer = BUSY
    planned = stage.create(once(), error_action=target(stage, "alarm", retry=fixed(120)))
    stage.run(90)
    assert called(stage) == ["run", "alarm"]

    stage.change(planned)
    stage.run(300)

    assert called(stage) == ["run", "alarm"]
    assert [run.state for run in stage.runs(planned, Kind.ERROR_ACTION)] == [State.CANCELLED]


@OPERATIONS
@FAULTS
def test_an_interrupted_hook_still_runs_once(stage: Stage, operation: str, fault: Fault) -> None:
    runs_once(stage, job(stage), "onSuccess", operation, fault)


def test_a_copy_of_the_message_starts_no_second_hook(stage: Stage) -> None:
    planned = job(stage)
    stage.tick()
    for url in stage.world.settings.queue_urls.values():
        if stage.sqs.bodies(url):
            stage.sqs.duplicate(url)

    stage.run(240)

    assert called(stage) == ["run", "onSuccess"]
    assert len(hook_runs(stage, planned)) == 1


def test_a_success_without_a_hook_costs_nothing_more(stage: Stage) -> None:
    stage.create(once())
    stage.run(50)
    stage.taps.passed.clear()

    stage.run(20)

    writes = [name for name in stage.taps.names() if name in {"dynamodb.PutItem", "dynamodb.UpdateItem"}]
    # A second copy of the message may have tried to claim the run too.
    assert list(dict.fromkeys(writes))[:2] == ["dynamodb.PutItem", "dynamodb.UpdateItem"]
    assert stage.endpoint.planned[0] == NOON + MINUTE


def test_a_reaction_is_called_with_the_first_runs_instant(stage: Stage) -> None:
    calls: list[Call] = []
    stage.endpoint.answer = lambda call: calls.append(call) or OK  # type: ignore[func-returns-value]
    job(stage)

    stage.run(180)

    assert {call.planned_at for call in calls} == {NOON + MINUTE}
    assert len({call.run_id for call in calls}) == 2
