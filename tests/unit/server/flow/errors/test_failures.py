"""Errors: each failed run is in a group, counted once, until it is run again, archived, or announced before it
expires.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from sweephand.base import ids
from sweephand.base.errors import Conflict, InvalidRequest, NotFound, Unavailable
from sweephand.domain.event import EventType
from sweephand.domain.failure import Failure, Group, normalised, signature_of
from sweephand.domain.job import Payload
from sweephand.domain.operation import OperationKind, OperationState
from sweephand.domain.run import FAILED, Kind, Outcome, Reason, Run, State, Verdict
from sweephand.server.flow.errors import failures
from sweephand.server.flow.jobs import deletion
from sweephand.server.flow.jobs.change import ScheduleRequest
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import rerun
from sweephand.server.flow.operations import verbs
from sweephand.server.flow.runs.edits import Edit
from sweephand.server.store.dynamo import keys
from sweephand.server.store.errors import failures as store
from sweephand.server.store.views import resources as views
from sweephand.testing.taps import Act, Fault, Passing
from tests.support.endpoint import OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before, refused
from tests.unit.server.flow.common import DAY

MINUTELY = {"cron": "* * * * *"}


def failed_runs(stage: Stage, count: int, **members: Any) -> tuple[Planned, list[Run]]:
    stage.endpoint.answer = lambda _: WRONG
    planned = stage.create(MINUTELY | {"count": count}, **members)
    stage.run(60 * count + 10)
    stage.endpoint.answer = lambda _: OK
    return planned, stage.runs(planned, Kind.SCHEDULED)


def groups(stage: Stage) -> list[Group]:
    with stage.untapped():
        return sorted(views.groups(stage.world.table, TENANT), key=lambda group: group.first_at)


def only(stage: Stage) -> Group:
    (group,) = groups(stage)
    return group


def count(stage: Stage, group: Group | None = None) -> int:
    with stage.untapped():
        return failures.open_runs(stage.world, group or only(stage)).count


def rows(stage: Stage, group: Group) -> list[Failure]:
    with stage.untapped():
        return list(store.runs_of(stage.world.table, TENANT, group.id, None, 100))


def redrive(stage: Stage, group: Group) -> str:
    params = {"group": group.id, "until": int(stage.clock.now().timestamp() * 1000), "ratePerMinute": 60}
    total = count(stage, group)
    return verbs.begin(stage.world, TENANT, OperationKind.REDRIVE, params, actor="acme.me", total=total).id


def pass_days(stage: Stage, days: float) -> None:
    """Moves the clock, with a look around each six hours: a tick a minute would take a test minutes."""
    for _ in range(int(days * 4)):
        stage.pass_time(6 * 3_600 - 61)
        stage.run(61)


class OnRowsOfErrors:
    """The first call of this name on a row of errors meets the fault."""

    def __init__(self, name: str, fault: Fault) -> None:
        self.name, self.fault, self.met = name, fault, False

    def __call__(self, passing: Passing, act: Act) -> Any:
        if self.met or passing.name != self.name or "#ERRORS" not in passing.request["Key"]["pk"]["S"]:
            return act()
        self.met = True
        return self.fault(passing, act)


# Noted


def test_failures_of_one_kind_are_one_group(stage: Stage) -> None:
    planned, failed = failed_runs(stage, 3)

    group = only(stage)
    assert (group.signature.job_id, group.signature.state) == (planned.job.id, State.REQUEST_ERROR)
    assert (group.signature.reason, group.signature.action) == ("HTTP_STATUS", "action")
    assert (group.last_run, group.first_at < group.last_at) == (failed[-1].id, True)
    assert (group.signature.text, group.last_message) == ("#", failed[-1].message)
    assert count(stage) == 3
    assert [each.expires_at for each in rows(stage, group)] == [
        run.expires_at.replace(microsecond=0) for run in failed if run.expires_at is not None
    ]


def test_different_errors_are_in_different_groups(stage: Stage) -> None:
    answers = iter(
        [
            WRONG,
            Outcome(Verdict.FAILED, Reason.DNS, message="no such host"),
            Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=503, message="row 4711 of 5000"),
            Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=503, message="row 12 of 5000"),
        ]
    )
    stage.endpoint.answer = lambda _: next(answers)
    stage.create(MINUTELY | {"count": 4})
    stage.run(300)

    assert sorted(count(stage, group) for group in groups(stage)) == [1, 1, 2]


def test_messages_that_differ_only_in_numbers_and_ids_share_a_group() -> None:
    one = normalised("row 4711 of 01a400f6-36fa-71e9-9550-323b38da5e82 failed (deadbeefdeadbeef)")

    assert one == "row # of # failed (#)"
    assert len(normalised("x" * 1_000)) == 160


def test_an_error_action_that_fails_is_a_group_of_its_own(stage: Stage) -> None:
    failed_runs(stage, 1, error_action=stage.action(url="https://example.org/alarm"))

    assert sorted(group.signature.action for group in groups(stage)) == ["action", "errorAction"]


def test_hooks_with_the_same_failure_form_groups_of_their_own(stage: Stage) -> None:
    """They go to different targets: who looks after the one may know nothing of the other."""
    hooks = {name: stage.action(url=f"https://example.org/{name}") for name in ("onFailure", "onSuccess")}
    failed_runs(stage, 1, error_action=stage.action(url="https://example.org/alarm"), hooks=hooks)

    found = {group.signature.action: group for group in groups(stage)}

    assert found.keys() == {"action", "errorAction", "hooks.onFailure"}
    assert len({group.id for group in found.values()}) == 3
    assert {count(stage, group) for group in found.values()} == {1}


def test_groups_stored_before_actions_had_names_are_still_read_and_reused(stage: Stage) -> None:
    failed_runs(stage, 1, error_action=stage.action(url="https://example.org/alarm"))
    before = {group.id for group in groups(stage)}
    for group in groups(stage):
        older = {"BOOL": group.signature.action == "errorAction"}
        stage.edit_item(keys.errors(TENANT), keys.error_group(group.id), action=None, error_action=older)

    assert {group.signature.id for group in groups(stage)} == {group.id for group in groups(stage)} == before
    assert sorted(group.signature.action for group in groups(stage)) == ["action", "errorAction"]


def test_a_run_that_did_not_fail_is_not_an_error_and_costs_nothing(stage: Stage) -> None:
    stage.create(MINUTELY | {"count": 2})
    stage.run(200)

    assert groups(stage) == []
    assert not [each for each in stage.items() if "#ERROR" in each["pk"]["S"]]


def test_a_run_that_will_be_retried_is_not_an_error_yet(stage: Stage) -> None:
    answers = iter([WRONG])
    stage.endpoint.answer = lambda _: next(answers, OK)
    retry = {"type": "fixed", "delaySeconds": 20, "maxRetries": 2, "retryOn": "any"}
    stage.create(MINUTELY | {"count": 1}, action=stage.action(retry=retry))
    stage.run(120)

    assert groups(stage) == []


@pytest.mark.repeats
@pytest.mark.parametrize("name", ["dynamodb.PutItem", "dynamodb.UpdateItem", "dynamodb.TransactWriteItems"])
@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused])
@pytest.mark.parametrize("skip", [0, 1, 2, 3])
def test_a_failure_is_recorded_once_wherever_its_executor_is_interrupted(
    stage: Stage, name: str, fault: Any, skip: int
) -> None:
    stage.endpoint.answer = lambda _: WRONG
    planned = stage.create(MINUTELY | {"count": 3})

    with suppress(AssertionError), stage.taps.once(name, fault, skip=skip):
        for _ in range(20):
            with suppress(Crash):
                stage.run(30)

    runs = stage.runs(planned, Kind.SCHEDULED)
    noted = {each.run_id for group in groups(stage) for each in rows(stage, group)}
    assert len(runs) == 3
    assert noted == {run.id for run in runs if run.state in FAILED}


def test_a_storm_of_failures_writes_its_group_twice_a_minute(stage: Stage) -> None:
    stage.endpoint.answer = lambda _: WRONG
    stage.create({"every": "PT1S"}, action=stage.action())
    stage.run(100, most=1)  # failures of one moment write together: how many threads do is luck

    written = [call for call in stage.taps.passed if call.operation == "UpdateItem" and "ERRORS#" in str(call.request)]
    assert count(stage) > 60
    assert len(written) <= 4


def test_concurrent_first_failures_begin_one_group(stage: Stage) -> None:
    _, (run,) = failed_runs(stage, 1)
    group = only(stage)
    fresh = Group(TENANT, signature_of(run), "other", group.last_at, group.last_at, "x")

    store.begin_group(stage.world.table, fresh, stage.clock.now(), 2)

    assert only(stage).collection == "default"


# Seen to


def test_a_rerun_closes_the_error_of_its_run(stage: Stage) -> None:
    _, failed = failed_runs(stage, 2)
    owner = failed[0].schedule_id or ""

    new = rerun.rerun(stage.world, TENANT, owner, failed[0].uuid, actor="acme.me")
    stage.run(1)

    first, second = rows(stage, only(stage))
    assert (first.rerun_by, first.actor, first.operation) == (new, "acme.me", None)
    assert (second.rerun_by, count(stage)) == (None, 1)


def test_a_failed_rerun_is_an_open_error_of_its_own(stage: Stage) -> None:
    planned, (failed,) = failed_runs(stage, 1)
    stage.endpoint.answer = lambda _: WRONG

    rerun.rerun(stage.world, TENANT, failed.schedule_id or "", failed.uuid)
    stage.run(1)

    again = next(run for run in stage.runs(planned) if run.rerun_of is not None)
    opened = [each.run_id for each in rows(stage, only(stage)) if each.rerun_by is None]
    assert (count(stage), opened) == (1, [again.id])


def test_a_failure_recorded_after_its_rerun_is_not_opened(stage: Stage) -> None:
    _, (failed,) = failed_runs(stage, 1)
    key = keys.error_runs(TENANT, only(stage).id), keys.run(failed.uuid)
    stage.world.table.delete(*key)
    rerun.rerun(stage.world, TENANT, failed.schedule_id or "", failed.uuid)
    before = [item for item in stage.items() if (item["pk"]["S"], item["sk"]["S"]) == key]

    failures.noted(stage.world, failed, None)

    assert [item for item in stage.items() if (item["pk"]["S"], item["sk"]["S"]) == key] == before != []
    assert count(stage) == 0


def test_an_archived_group_is_closed_until_it_fails_again(stage: Stage) -> None:
    stage.endpoint.answer = lambda _: WRONG
    planned = stage.create(MINUTELY)
    stage.run(130)
    group = only(stage)

    archived = failures.archive(stage.world, TENANT, group.id, "known", "acme.me")
    closed = count(stage)
    stage.run(60)

    assert (archived.closed_by, archived.closed_reason, closed, count(stage)) == ("acme.me", "known", 0, 1)
    assert failures.restore(stage.world, TENANT, group.id, None).closed_through is None
    assert count(stage) == len(stage.runs(planned))


def test_archiving_one_run_leaves_the_others_of_its_group_open(stage: Stage) -> None:
    _, failed = failed_runs(stage, 3)
    group = only(stage)

    def archived() -> list[bool]:
        return [each.archived is not None for each in rows(stage, group)]

    owner = failed[1].schedule_id or ""
    made = failures.archive_run(stage.world, group, owner, failed[1].uuid, "a test", "acme.me")
    assert (made.archived and made.archived.by, made.archived and made.archived.reason) == ("acme.me", "a test")
    assert (archived(), count(stage)) == ([False, True, False], 2)

    failures.archive(stage.world, TENANT, group.id, None, None)
    failures.restore(stage.world, TENANT, group.id, None)
    assert (archived(), count(stage)) == ([False, True, False], 2)
    assert failures.restore_run(stage.world, group, owner, failed[1].uuid, None).archived is None
    assert count(stage) == 3


def test_an_archived_run_is_not_rerun_or_published_with_its_group(stage: Stage) -> None:
    _, failed = failed_runs(stage, 2)
    stage.endpoint.answer = lambda _: OK
    stage.endpoint.received.clear()
    for run in failed:
        failures.archive_run(stage.world, only(stage), run.schedule_id or "", run.uuid, None, None)

    redrive(stage, only(stage))
    pass_days(stage, 16)

    assert stage.endpoint.received == []
    assert stage.bus.of(EventType.ERRORS_EXPIRING) == []


def test_repeated_effects_do_not_reopen_archived_errors(stage: Stage) -> None:
    _, (failed,) = failed_runs(stage, 1)
    failures.archive_run(stage.world, only(stage), failed.schedule_id or "", failed.uuid, None, None)

    failures.noted(stage.world, failed, None)

    assert count(stage) == 0


def test_only_an_existing_run_of_the_group_is_archived(stage: Stage) -> None:
    _, (failed,) = failed_runs(stage, 1)
    group, owner = only(stage), failed.schedule_id or ""
    for strange in ((owner, "0" * 36), (failed.job_id, failed.uuid)):
        with pytest.raises(NotFound):
            failures.archive_run(stage.world, group, *strange, None, None)

    def gone(_passing: Any, act: Any) -> Any:
        stage.taps.fault = None
        stage.world.table.delete(keys.error_runs(TENANT, group.id), keys.run(failed.uuid))
        return act()

    with pytest.raises(NotFound), stage.taps.once("dynamodb.UpdateItem", gone):
        failures.archive_run(stage.world, group, owner, failed.uuid, None, None)
    assert rows(stage, group) == [], "no half of a row came back"
    with pytest.raises(NotFound):
        failures.restore_run(stage.world, group, owner, failed.uuid, None)


def test_expired_errors_are_not_archived(stage: Stage) -> None:
    _, (failed,) = failed_runs(stage, 1)
    group = only(stage)
    stage.pass_time(16 * 86_400)

    with pytest.raises(NotFound):
        failures.archive_run(stage.world, group, failed.schedule_id or "", failed.uuid, None, None)


def test_notes_keep_their_order_and_are_limited(stage: Stage) -> None:
    failed_runs(stage, 1)
    group = only(stage)
    for n in range(failures.MOST_NOTES):
        failures.add_note(stage.world, TENANT, group.id, f"note {n}", "acme.me")

    with pytest.raises(Conflict):
        failures.add_note(stage.world, TENANT, group.id, "one more", None)
    assert [note.text for note in only(stage).notes] == [f"note {n}" for n in range(20)]


def test_two_concurrent_writes_to_a_group_lose_nothing(stage: Stage) -> None:
    failed_runs(stage, 1)
    group = only(stage)

    def other(_passing: Any, act: Any) -> Any:
        stage.taps.fault = None
        failures.add_note(stage.world, TENANT, group.id, "the other's", None)
        return act()

    stage.taps.fault = lambda passing, act: other(passing, act) if passing.operation == "UpdateItem" else act()
    failures.add_note(stage.world, TENANT, group.id, "mine", None)

    assert [note.text for note in only(stage).notes] == ["the other's", "mine"]


# A group is run again


def test_a_whole_group_is_rerun_without_later_failures(stage: Stage) -> None:
    planned, failed = failed_runs(stage, 12)
    group = only(stage)
    operation = redrive(stage, group)
    stage.endpoint.answer = lambda call: WRONG if call.planned_at == failed[0].planned_at else OK

    stage.run(120)

    there = verbs.find(stage.world, TENANT, operation)
    assert (there.state, there.done, there.total, there.failed) == (OperationState.DONE, 12, 12, 0)
    new = [run for run in stage.runs(planned) if run.rerun_of is not None]
    assert {run.rerun_of for run in new} == {run.id for run in failed}
    assert sorted(run.state for run in new) == [State.REQUEST_ERROR] + [State.SUCCESS] * 11
    assert count(stage) == 1
    assert {each.operation for each in rows(stage, group) if each.rerun_by is not None} == {operation}


def test_reruns_ahead_of_a_groups_redrive_are_counted_and_named(stage: Stage) -> None:
    """They ran manually, by another redrive, or were archived alone: none is left out in silence, and the numbers add
    up.
    """
    planned, failed = failed_runs(stage, 30)
    first, second = redrive(stage, only(stage)), redrive(stage, only(stage))
    owner = failed[0].schedule_id or ""
    by_hand = rerun.rerun(stage.world, TENANT, owner, failed[28].uuid)
    failures.archive_run(stage.world, only(stage), owner, failed[29].uuid, "seen", None)

    stage.run(120)

    one, other = (verbs.find(stage.world, TENANT, operation) for operation in (first, second))
    assert {(each.done, each.total, each.state) for each in (one, other)} == {(30, 30, OperationState.DONE)}
    assert (30 - one.failed) + (30 - other.failed) + 2 == 30
    new = [run for run in stage.runs(planned) if run.rerun_of is not None]
    assert len(new) == len({run.rerun_of for run in new}) == 29
    told = [each for operation in (one, other) for each in (operation.result or {})["notRun"]]
    assert {"runId": failed[28].id, "reason": f"it was run again as {by_hand}"} in told
    assert {"runId": failed[29].id, "reason": "it was archived"} in told
    assert len(told) == min(20, one.failed) + min(20, other.failed)


def test_errors_settled_before_the_request_are_not_rerun(stage: Stage) -> None:
    _, failed = failed_runs(stage, 6)
    owner = failed[0].schedule_id or ""
    rerun.rerun(stage.world, TENANT, owner, failed[0].uuid)
    failures.archive_run(stage.world, only(stage), owner, failed[1].uuid, "seen", None)
    stage.run(60)

    operation = redrive(stage, only(stage))
    stage.run(60)

    there = verbs.find(stage.world, TENANT, operation)
    assert (there.done, there.total, there.failed, there.result) == (4, 4, 0, {"notRun": []})


def test_a_group_archived_during_its_redrive_is_not_rerun_and_says_so(stage: Stage) -> None:
    planned, failed = failed_runs(stage, 3)
    operation = redrive(stage, only(stage))
    failures.archive(stage.world, TENANT, only(stage).id, "known", None)

    stage.run(60)

    there = verbs.find(stage.world, TENANT, operation)
    assert (there.done, there.total, there.failed) == (3, 3, 3)
    reasons = {each["reason"] for each in (there.result or {})["notRun"]}
    assert (reasons, len(stage.runs(planned))) == ({"it was archived"}, len(failed))


def test_errors_that_expire_before_their_turn_are_counted(stage: Stage) -> None:
    _, failed = failed_runs(stage, 3)
    group = only(stage)
    operation = redrive(stage, group)
    stage.world.table.delete(keys.error_runs(TENANT, group.id), keys.run(failed[1].uuid))

    stage.run(60)

    there = verbs.find(stage.world, TENANT, operation)
    assert (there.done, there.total, there.failed) == (3, 3, 1)


@pytest.mark.repeats
@pytest.mark.parametrize("name", ["dynamodb.TransactWriteItems", "dynamodb.UpdateItem", "sqs.SendMessageBatch"])
@pytest.mark.parametrize("fault", [crash_before, crash_after, refused])
@pytest.mark.parametrize("skip", [1, 4])
def test_the_runs_of_a_group_are_rerun_once_wherever_the_redrive_is_interrupted(
    stage: Stage, name: str, fault: Any, skip: int
) -> None:
    planned, _ = failed_runs(stage, 14)
    operation = redrive(stage, only(stage))

    with suppress(AssertionError), stage.taps.once(name, fault, skip=skip):
        for _ in range(40):
            with suppress(Crash):
                stage.run(30)

    there = verbs.find(stage.world, TENANT, operation)
    assert (there.state, there.done, there.failed) == (OperationState.DONE, 14, 0)
    assert len([run for run in stage.runs(planned) if run.rerun_of is not None]) == 14
    assert count(stage) == 0


def test_errors_archived_during_a_redrive_are_not_rerun(stage: Stage) -> None:
    planned, _ = failed_runs(stage, 25)
    operation = redrive(stage, only(stage))
    stage.run(12)

    failures.archive(stage.world, TENANT, only(stage).id, None, None)
    stage.run(120)

    assert verbs.find(stage.world, TENANT, operation).state is OperationState.DONE
    assert len([run for run in stage.runs(planned) if run.rerun_of is not None]) == 20


# Redirects


def test_a_redirect_reruns_the_failures_of_a_job_as_another_job_with_their_payloads(stage: Stage) -> None:
    planned, (failed,) = failed_runs(stage, 1, action=stage.action(payload={"n": 1}))
    other = stage.create(name="other", action=stage.action(payload={"own": 1}))
    owner = failed.schedule_id or ""
    failures.redirect(stage.world, TENANT, planned.job.id, other.job.id, "acme.me")

    rerun.rerun(stage.world, TENANT, owner, failed.uuid)
    stage.run(1)
    stage.delete(planned)
    with pytest.raises(Conflict, match="was deleted with its job; give a payload"):
        rerun.rerun(stage.world, TENANT, owner, failed.uuid)
    rerun.rerun(stage.world, TENANT, owner, failed.uuid, edit=Edit(Payload('{"n":2}', is_json=True)))
    stage.run(1)

    new = stage.runs(other.job.id)
    assert [(run.job_id, run.schedule_id, run.rerun_of, run.state) for run in new] == [
        (other.job.id, None, failed.id, State.SUCCESS)
    ] * 2
    assert [each.call.payload for each in stage.endpoint.received[-2:]] == ['{"n":1}', '{"n":2}']


@pytest.mark.parametrize("gone", ["schedule", "errorAction"])
def test_a_redirected_run_never_sends_the_other_jobs_payload(stage: Stage, gone: str) -> None:
    stage.endpoint.answer = lambda _: WRONG
    alarm = stage.action(url="https://example.org/alarm", payload={"alarm": 1})
    planned = stage.create(
        {"every": "PT1M", "count": 1}, {"every": "PT1H"}, action=stage.action(payload={"n": 1}), error_action=alarm
    )
    other = stage.create(name="other", action=stage.action(payload={"own": 1}))
    stage.run(70)
    kind = Kind.SCHEDULED if gone == "schedule" else Kind.ERROR_ACTION
    (failed,) = stage.runs(planned.schedules[0], kind)
    failures.redirect(stage.world, TENANT, planned.job.id, other.job.id, None)
    if gone == "schedule":
        stage.change_schedules(planned, lambda there: [ScheduleRequest(there.schedules[0], None, delete=True)])
    else:
        stage.change(planned, error_action=None)
    calls = len(stage.endpoint.received)

    with pytest.raises(Conflict, match=f"was deleted with its (job's )?{gone}"):
        rerun.rerun(stage.world, TENANT, failed.schedule_id or "", failed.uuid)
    stage.run(5)

    assert len(stage.endpoint.received) == calls


def test_a_redirect_that_makes_a_chain_or_has_no_target_is_refused(stage: Stage) -> None:
    a, b, c = (stage.create(name=name).job.id for name in "abc")
    failures.redirect(stage.world, TENANT, a, b, None)

    for source, to in ((b, c), (c, a), (a, a), (c, ids.uuid7(0, bytes(10)))):
        with pytest.raises(InvalidRequest) as wrong:
            failures.redirect(stage.world, TENANT, source, to, None)
        assert wrong.value.field == "to"
    assert [each.source for each in views.redirects(stage.world.table, TENANT)] == [a]


def test_a_redirect_to_a_job_deleted_later_names_the_job(stage: Stage) -> None:
    planned, (failed,) = failed_runs(stage, 1)
    other = stage.create({"every": "PT1H"})
    failures.redirect(stage.world, TENANT, planned.job.id, other.job.id, None)
    deletion.delete_job(stage.world, TENANT, other.job.id, None)

    with pytest.raises(NotFound, match="the job that its errors are redirected to is gone"):
        rerun.rerun(stage.world, TENANT, failed.schedule_id or "", failed.uuid)


def test_a_redirect_can_be_ended_once(stage: Stage) -> None:
    a, b = (stage.create(name=name).job.id for name in "ab")
    failures.redirect(stage.world, TENANT, a, b, None)

    failures.end_redirect(stage.world, TENANT, a)

    with pytest.raises(NotFound):
        failures.end_redirect(stage.world, TENANT, a)
    failures.redirect(stage.world, TENANT, b, a, None)


# Never silent


def test_an_event_precedes_the_expiry_of_open_errors(stage: Stage) -> None:
    _, failed = failed_runs(stage, 2)
    group = only(stage)

    pass_days(stage, 12.5)
    early = stage.bus.of(EventType.ERRORS_EXPIRING)
    pass_days(stage, 1.5)

    told = stage.bus.of(EventType.ERRORS_EXPIRING)
    assert early == []
    assert len(told) == 1
    assert (told[0]["errorGroup"], told[0]["count"], told[0]["state"]) == (group.id, 2, "REQUEST_ERROR")
    assert failed[0].expires_at is not None
    assert told[0]["expiresAt"][:19] == failed[0].expires_at.isoformat()[:19]


@pytest.mark.parametrize("seen_to", [True, False])
def test_settled_errors_expire_without_an_event(stage: Stage, *, seen_to: bool) -> None:
    failed_runs(stage, 1)
    if seen_to:
        failures.archive(stage.world, TENANT, only(stage).id, None, None)

    pass_days(stage, 16)

    assert bool(stage.bus.of(EventType.ERRORS_EXPIRING)) is not seen_to


def test_further_failures_are_published_too(stage: Stage) -> None:
    """The group's look at what it has never misses what came after the one before."""
    stage.endpoint.answer = lambda _: WRONG
    stage.create({"every": "P10D"})

    pass_days(stage, 60)

    told = {event["expiresAt"][:10] for event in stage.bus.of(EventType.ERRORS_EXPIRING)}
    ends = [each.expires_at for each in rows(stage, only(stage)) if each.expires_at is not None]
    gone = [at for at in ends if at < stage.clock.now()]
    assert len(gone) >= 4
    assert {at.isoformat()[:10] for at in gone} <= told


@pytest.mark.repeats
@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused])
@pytest.mark.parametrize(
    ("name", "days"), [("dynamodb.UpdateItem", 16), ("dynamodb.DeleteItem", failures.FORGOTTEN.days + 15)]
)
def test_an_interrupted_check_is_repeated(stage: Stage, name: str, days: float, fault: Any) -> None:
    """An announcement of a group may come twice; no group falls silent, and none stays for ever."""
    failed_runs(stage, 1)
    fault_at_its_row = OnRowsOfErrors(name, fault)

    with stage.taps.faulty(fault_at_its_row):
        for _ in range(int(days * 4)):
            stage.pass_time(6 * 3_600 - 61)
            with suppress(Crash):
                stage.run(61)
    stage.run(1_200)

    assert fault_at_its_row.met
    assert stage.bus.of(EventType.ERRORS_EXPIRING)
    if name == "dynamodb.DeleteItem":
        assert (groups(stage), stage.waiting()) == ([], {})


@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused])
def test_changes_of_errors_by_users_can_be_repeated(stage: Stage, fault: Any) -> None:
    planned, (failed,) = failed_runs(stage, 1)
    other = stage.create(name="other").job.id
    group, owner = only(stage), failed.schedule_id or ""
    says = (
        ("UpdateItem", lambda: failures.archive_run(stage.world, group, owner, failed.uuid, "alone", None)),
        ("UpdateItem", lambda: failures.archive(stage.world, TENANT, group.id, "known", None)),
        ("PutItem", lambda: failures.redirect(stage.world, TENANT, planned.job.id, other, None)),
        ("DeleteItem", lambda: failures.end_redirect(stage.world, TENANT, planned.job.id)),
    )

    for operation, say in says:
        with suppress(Crash, Unavailable), stage.taps.once(f"dynamodb.{operation}", fault):
            say()
        with suppress(NotFound):  # it has ended
            say()

    assert [each.archived and each.archived.reason for each in rows(stage, group)] == ["alone"]
    assert (only(stage).closed_reason, count(stage)) == ("known", 0)
    assert list(views.redirects(stage.world.table, TENANT)) == []


def test_a_group_is_deleted_long_after_its_last_failure(stage: Stage) -> None:
    failed_runs(stage, 1)

    pass_days(stage, failures.FORGOTTEN.days - 1)
    kept = len(groups(stage))
    pass_days(stage, 15)

    assert (kept, groups(stage)) == (1, [])
    assert stage.waiting() == {}


def test_a_group_with_a_new_failure_during_its_deletion_stays(stage: Stage) -> None:
    failed_runs(stage, 1)
    group = only(stage)
    _, (run,) = failed_runs(stage, 1)
    store.seen_again(stage.world.table, group, run, stage.clock.now() + DAY)

    store.forget_group(stage.world.table, group)

    assert group.id in {each.id for each in groups(stage)}


def test_a_note_written_during_the_deletion_of_a_group_keeps_it(stage: Stage) -> None:
    failed_runs(stage, 1)
    group = only(stage)
    failures.add_note(stage.world, TENANT, group.id, "look", None)

    store.forget_group(stage.world.table, group)

    assert only(stage).notes[0].text == "look"


def test_a_deleted_group_is_not_restored_by_a_write(stage: Stage) -> None:
    _, (run,) = failed_runs(stage, 1)
    group = only(stage)
    store.forget_group(stage.world.table, group)

    store.check_again(stage.world.table, group, stage.clock.now() + timedelta(days=1))
    store.seen_again(stage.world.table, group, run, stage.clock.now())

    assert groups(stage) == []


def test_a_failure_after_the_deletion_of_its_group_begins_a_new_one(stage: Stage) -> None:
    _, (run,) = failed_runs(stage, 1)
    stage.clock.advance(60)
    group = only(stage)

    def forgotten(passing: Any, act: Any) -> Any:
        stage.taps.fault = None
        store.forget_group(stage.world.table, group)
        return act()

    stage.taps.fault = lambda passing, act: forgotten(passing, act) if passing.operation == "UpdateItem" else act()
    failures.noted(stage.world, run, None)

    assert only(stage).last_run == run.id
