"""Hooks that a schedule brings itself: each before its job's of that name, with its own retry, payload and secrets."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sweephand.base.errors import InvalidRequest
from sweephand.domain.job import ActionDraft, JobDraft, ScheduleDraft
from sweephand.domain.run import Kind, Outcome, Reason, State
from sweephand.server.flow.jobs import creation, drafts
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.server.flow.manual import rerun
from sweephand.server.store.dynamo import keys
from sweephand.server.store.jobs import own_hooks
from sweephand.testing.taps import Fault
from tests.support.endpoint import BUSY, OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import answer_lost
from tests.unit.server.flow.common import MINUTE, NOON, exact, fixed, once
from tests.unit.server.flow.delivery.test_dead_letters import dead
from tests.unit.server.flow.hooked import FAULTS, MINUTELY, OPERATIONS, called, hook_runs, runs_once, target


def job(stage: Stage, own: dict[str, ActionDraft], *timings: dict[str, Any], **members: Any) -> Planned:
    """Makes a job whose first schedule brings hooks; the others do not."""
    first, *others = timings or (once(),)
    schedules = stage.schedule(first, "first", hooks=own), *(stage.schedule(other) for other in others)
    draft = JobDraft(None, members.pop("action", None) or stage.action(), schedules=schedules, **members)
    return creation.create_job(stage.world, TENANT, draft)


def bring(stage: Stage, planned: Planned, **hooks: ActionDraft) -> Planned:
    """Replaces the first schedule by PUT with these hooks."""

    def request(there: Planned) -> list[ScheduleRequest]:
        first = there.schedules[0]
        return [ScheduleRequest(first, replace(drafts.as_stored(first), hooks=hooks))]

    return stage.change_schedules(planned, request)


@pytest.mark.parametrize(
    ("answer", "name", "kind"), [(OK, "onSuccess", Kind.ON_SUCCESS), (WRONG, "onFailure", Kind.ON_FAILURE)]
)
def test_a_schedules_own_hook_replaces_that_of_its_job(stage: Stage, answer: Outcome, name: str, kind: Kind) -> None:
    stage.endpoint.script = [answer]
    planned = job(stage, {name: target(stage, "own")}, hooks={name: target(stage, "jobs")})

    stage.run(180)

    assert called(stage) == ["run", "own"]
    (ended,) = stage.runs(planned, Kind.SCHEDULED)
    (reaction,) = hook_runs(stage, planned)
    assert (reaction.kind, reaction.state, reaction.parent_uuid) == (kind, State.SUCCESS, ended.uuid)
    exact(stage, planned)


def test_a_schedule_inherits_hooks_from_its_job(stage: Stage) -> None:
    stage.endpoint.script = [WRONG]
    hooks = {name: target(stage, f"jobs-{name}") for name in ("onSuccess", "onFailure")}
    job(stage, {"onSuccess": target(stage, "own")}, hooks=hooks)

    stage.run(180)

    assert called(stage) == ["run", "jobs-onFailure"]


def test_another_schedule_of_the_job_uses_the_hook_of_the_job(stage: Stage) -> None:
    other = {"at": (NOON + 3 * MINUTE).isoformat()}
    job(stage, {"onSuccess": target(stage, "own")}, once(), other, hooks={"onSuccess": target(stage, "jobs")})

    stage.run(300)

    assert called(stage) == ["run", "own", "run", "jobs"]


def test_a_schedule_can_have_hooks_in_a_job_without_any_and_the_policy_selects_them(stage: Stage) -> None:
    own = {name: target(stage, f"own-{name}") for name in ("onSuccess", "onFailure")}
    stage.endpoint.script = [WRONG]
    draft = stage.schedule(once(), hooks=own, policies={"hooks": ["onSuccess"]})
    creation.create_job(stage.world, TENANT, JobDraft(None, stage.action(), schedules=(draft,)))

    stage.run(180)

    assert called(stage) == ["run"]


def test_a_schedules_hook_sends_its_own_payload_and_secrets_and_retries_by_its_own_rule(stage: Stage) -> None:
    own = target(
        stage,
        "own",
        payload={"mine": 1},
        retry=fixed(10, 2),
        authentication={"type": "bearer", "token": "t"},
    )
    action = stage.action(payload={"n": 1}, authentication={"type": "bearer", "token": "u"})
    stage.endpoint.script = [OK, BUSY, BUSY, BUSY]
    planned = job(stage, {"onSuccess": own}, action=action)

    stage.run(240)

    calls = [received.call for received in stage.endpoint.received]
    assert [call.payload for call in calls] == ['{"n":1}', *['{"mine":1}'] * 3]
    assert [call.secrets for call in calls] == [{"authentication.token": "u"}, *[{"authentication.token": "t"}] * 3]
    (reaction,) = hook_runs(stage, planned)
    assert (reaction.state, reaction.attempt, reaction.max_attempts) == (State.ERROR, 3, 3)


def test_a_schedules_hook_without_a_payload_receives_the_outcome_of_the_run(stage: Stage) -> None:
    planned = job(stage, {"onSuccess": target(stage, "own")})

    stage.run(180)

    (ended,) = stage.runs(planned, Kind.SCHEDULED)
    assert json.loads(stage.endpoint.received[1].call.payload or "")["runId"] == ended.id


def test_the_secrets_of_a_hook_cannot_be_opened_under_another_schedule_or_hook(stage: Stage) -> None:
    secret = target(stage, "own", authentication={"type": "bearer", "token": "t"})
    later = {"at": (NOON + 3 * MINUTE).isoformat()}
    planned = job(stage, {"onSuccess": secret, "onFailure": secret}, once(), later)
    first, second = (own_hooks.read(stage.world.table, each) for each in planned.schedules)
    assert second == {}
    sealed = {name: hook.inline.sealed["authentication.token"] for name, hook in first.items() if hook.inline}
    with stage.untapped():
        swapped = own_hooks.to_json(first)
        for name, other in (("onSuccess", "onFailure"), ("onFailure", "onSuccess")):
            swapped[name]["sealed"] = {"authentication.token": sealed[other]}
        item = own_hooks.put_op(
            stage.world.table, planned.schedules[0], own_hooks.from_json(planned.schedules[0].id, swapped)
        )
        stage.world.table.transact([item])

    stage.run(120)

    assert called(stage) == ["run", "own"]
    assert stage.endpoint.received[1].call.secrets == {}


def test_missed_occurrences_of_the_schedule_run_its_own_hook(stage: Stage) -> None:
    planned = job(stage, {"onMissed": target(stage, "own")}, MINUTELY, policies={"misfire": {"type": "skip"}})
    stage.run(30)
    stage.pass_time(3_600)

    stage.run(120)

    (line,) = [run for run in stage.runs(planned) if run.range_count is not None]
    (reaction,) = [run for run in hook_runs(stage, planned) if run.parent_uuid == line.uuid]
    assert (reaction.kind, reaction.state) == (Kind.ON_MISSED, State.SUCCESS)
    assert "own" in called(stage)


def test_a_rerun_of_a_hook_follows_the_schedule(stage: Stage) -> None:
    stage.endpoint.script = [OK, WRONG]
    planned = job(stage, {"onSuccess": target(stage, "own", payload={"mine": 1})})
    stage.run(180)
    (reaction,) = hook_runs(stage, planned)

    rerun.rerun(stage.world, TENANT, planned.schedules[0].id, reaction.uuid)
    stage.run(60)

    assert called(stage) == ["run", "own", "own"]
    assert stage.endpoint.received[2].call.payload == '{"mine":1}'


# Changes


def hooks_items(stage: Stage) -> list[str]:
    return [row["sk"]["S"] for row in stage.items() if row["sk"]["S"].startswith("HOOKS#")]


def test_an_unchanged_request_writes_nothing(stage: Stage) -> None:
    planned = job(stage, {"onSuccess": target(stage, "own", payload={"n": 1})})
    before = stage.items()

    bring(stage, planned, onSuccess=target(stage, "own", payload={"n": 1}))

    assert stage.items() == before


def test_a_change_of_hooks_replans_nothing_and_applies_to_the_next_end(stage: Stage) -> None:
    planned = job(stage, {"onSuccess": target(stage, "own")}, MINUTELY)
    stage.run(90)

    bring(stage, planned, onSuccess=target(stage, "new"))
    stage.run(60)

    assert stage.stored(planned).generation == 1
    assert called(stage) == ["run", "own", "run", "new"]
    assert len(hooks_items(stage)) == 2, "the change log still knows the old one"


def test_other_changes_keep_the_hooks_of_a_schedule(stage: Stage) -> None:
    planned = job(stage, {"onSuccess": target(stage, "own")}, MINUTELY)

    stage.change(planned, description="other")
    stage.change_schedules(
        planned,
        lambda there: [
            ScheduleRequest(there.schedules[0], replace(drafts.as_stored(there.schedules[0]), active=False))
        ],
    )

    assert stage.stored(planned).hooks == "1 onSuccess"
    assert len(hooks_items(stage)) == 1


def test_removing_its_own_hook_restores_that_of_the_job(stage: Stage) -> None:
    planned = job(stage, {"onSuccess": target(stage, "own")}, MINUTELY, hooks={"onSuccess": target(stage, "jobs")})
    stage.run(70)

    bring(stage, planned)
    stage.run(60)

    assert called(stage) == ["run", "own", "run", "jobs"]
    assert stage.stored(planned).hooks is None


def test_a_removed_hook_is_cancelled(stage: Stage) -> None:
    stage.endpoint.script = [OK]
    stage.endpoint.answer = BUSY
    planned = job(stage, {"onSuccess": target(stage, "own", retry=fixed(120))})
    stage.run(90)

    bring(stage, planned)
    stage.run(300)

    assert called(stage) == ["run", "own"]
    (reaction,) = hook_runs(stage, planned)
    assert (reaction.state, reaction.reason) == (State.CANCELLED, Reason.OWNER_GONE)


def test_schedules_written_after_their_job_keep_their_hooks(stage: Stage) -> None:
    """More than one transaction takes: rows, payloads and hooks go in parts."""
    token = {"type": "bearer", "token": "t"}
    own = {"onSuccess": target(stage, "own", payload={"n": 1}, authentication=token)}
    first = JobDraft(
        None, stage.action(), schedules=tuple(_one(stage, n, own) for n in range(40)), tags=tuple("abcdefghij")
    )
    planned = creation.create_job(stage.world, TENANT, first)

    assert planned.job.open_change is None
    assert [each.hooks for each in planned.schedules] == ["1 onSuccess"] * 40
    assert len(own_hooks.read_all(stage.world.table, planned.schedules)) == 40

    changed = {"onFailure": target(stage, "new", authentication=token)}
    more = [ScheduleRequest(each, replace(drafts.as_stored(each), hooks=changed)) for each in planned.schedules]
    planned = stage.change_schedules(planned, lambda _: more)

    assert [each.hooks for each in planned.schedules] == ["2 onFailure"] * 40
    stored = own_hooks.read_all(stage.world.table, planned.schedules)
    assert {hook.inline is not None and bool(hook.inline.sealed) for by in stored.values() for hook in by.values()} == {
        True
    }
    stage.endpoint.script = [WRONG]
    stage.run(120)
    assert called(stage)[:2] in (["run", "new"], ["run", "run"])
    assert called(stage).count("new") == 1


def _one(stage: Stage, n: int, own: dict[str, ActionDraft]) -> ScheduleDraft:
    return stage.schedule(once(), f"s{n}", payload=stage.action(payload={"n": n}).payload, hooks=own)


def test_a_kept_secret_must_exist(stage: Stage) -> None:
    planned = job(stage, {"onSuccess": target(stage, "own")})
    wanted = replace(target(stage, "own"), kept=frozenset({"authentication.token"}))
    before = stage.items()

    with pytest.raises(InvalidRequest) as wrong:
        bring(stage, planned, onSuccess=wanted)

    assert wrong.value.field == "hooks.onSuccess.authentication.token"
    assert stage.items() == before


def test_a_deleted_job_leaves_no_hook_behind(stage: Stage) -> None:
    planned = job(stage, {"onSuccess": target(stage, "own", authentication={"type": "bearer", "token": "t"})})
    assert hooks_items(stage)

    stage.delete(planned)
    stage.run(180)

    assert not hooks_items(stage)


# Costs and faults


def test_hooks_keep_the_schedule_row_small_and_an_end_without_a_hook_reads_nothing(stage: Stage) -> None:
    big = target(stage, "own", payload={"text": "x" * 20_000})
    planned = job(stage, {"onFailure": big})
    (row,) = [row for row in stage.items() if row["sk"]["S"] == keys.schedule(planned.schedules[0].id)]
    assert len(json.dumps(row)) < 1_500
    stage.run(50)
    stage.taps.passed.clear()

    stage.run(60)

    assert called(stage) == ["run"]
    wanted = [str(each.request) for each in stage.taps.passed if "HOOKS#" in str(each.request)]
    assert wanted == []


@OPERATIONS
@FAULTS
def test_an_interrupted_hook_still_runs_once(stage: Stage, operation: str, fault: Fault) -> None:
    runs_once(stage, job(stage, {"onSuccess": target(stage, "own")}), "own", operation, fault)


def test_a_dead_letter_leaves_a_hook_to_its_wake_row(stage: Stage) -> None:
    """Judged by the job alone, which has no such hook, it would be cancelled."""
    planned = job(stage, {"onSuccess": target(stage, "own")})
    stage.run(50)
    stage.clock.advance(11)
    stage.deliver()
    dead(stage)

    stage.deliver_dead()

    assert [run.state for run in hook_runs(stage, planned)] == [State.QUEUED]
    stage.run(180)
    assert called(stage) == ["run", "own"]
    assert [run.state for run in hook_runs(stage, planned)] == [State.SUCCESS]


def test_a_change_of_hooks_whose_answer_was_lost_is_sealed_once_and_happens(stage: Stage) -> None:
    planned = job(stage, {}, MINUTELY)
    secret = target(stage, "own", authentication={"type": "bearer", "token": "t"})

    with stage.taps.once("dynamodb.TransactWriteItems", answer_lost):
        changed = bring(stage, planned, onSuccess=secret)
    stage.run(60)

    assert changed.schedules[0].hooks == "2 onSuccess"
    assert len(hooks_items(stage)) == 1
    assert called(stage) == ["run", "own"]
