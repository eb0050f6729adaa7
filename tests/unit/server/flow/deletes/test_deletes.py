from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sweephand.base.errors import NotFound, PreconditionFailed
from sweephand.domain.run import Outcome, Reason, State
from sweephand.domain.schedule import Lane
from sweephand.server.flow.deletes import clean_up
from sweephand.server.flow.job_parts.change_log import By
from sweephand.server.flow.jobs import deletion, lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.server.store.dynamo import keys
from sweephand.server.store.jobs import jobs
from sweephand.testing.service import URLS
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import ACCEPTED, BUSY, OK
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before
from tests.unit.server.flow.common import NOON, SECOND, fixed, once

EACH_MINUTE = {"cron": "* * * * *"}


def rest(stage: Stage, planned: Planned) -> list[str]:
    """Returns what is left of the job outside the ledger."""
    return [
        item["sk"]["S"]
        for item in stage.items()
        if planned.job.id in item["pk"]["S"] + item["sk"]["S"] and "#SCH#" not in item["pk"]["S"]
    ]


def test_a_deleted_job_never_runs_again_and_leaves_only_its_ledger(stage: Stage) -> None:
    planned = stage.create(
        EACH_MINUTE,
        name="nightly",
        tags=("a",),
        resource_id="r",
        action=stage.action(payload={"n": 1}, authentication={"type": "bearer", "token": "t"}),
    )
    stage.run(70)
    stage.change(planned, description="second", tags=("a",), resource_id="r")

    stage.delete(planned)
    stage.run(300)

    assert len(stage.endpoint.received) == 1
    assert rest(stage, planned) == []
    assert [run.state for run in stage.runs(planned)] == [State.SUCCESS]
    assert stage.waiting() == {}
    with pytest.raises(NotFound):
        lookup.find(stage.world, TENANT, planned.job.id)


def test_no_message_sent_ahead_runs_after_a_delete(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    stage.tick()
    stage.clock.advance(57)

    stage.delete(planned)
    stage.run(300)

    assert stage.endpoint.received == []
    assert stage.runs(planned) == []
    assert stage.sqs.bodies(stage.world.settings.queue_urls[Lane.FAST]) == []


def test_a_job_created_again_under_a_deleted_name_is_a_new_job(stage: Stage) -> None:
    first = stage.create(EACH_MINUTE, name="nightly")
    stage.tick()
    stage.delete(first)
    second = stage.create(EACH_MINUTE, name="nightly")

    stage.run(130)

    assert {received.call.job_id for received in stage.endpoint.received} == {second.job.id}
    assert len(stage.endpoint.received) == 2


def test_the_cleanup_ends_a_waiting_run(stage: Stage) -> None:
    stage.endpoint.answer = BUSY
    planned = stage.create(once(), action=stage.action(retry=fixed(7_200)))
    stage.run(90)

    stage.delete(planned)
    stage.run(120)

    run = stage.only_run(planned)
    assert (run.state, run.reason, run.wake_at) == (State.CANCELLED, Reason.OWNER_GONE, None)
    assert stage.waiting() == {}
    assert rest(stage, planned) == []


def test_the_cleanup_ends_a_run_that_waits_for_its_callback(stage: Stage) -> None:
    stage.endpoint.answer = ACCEPTED
    planned = stage.create(once(), action=stage.action(outcome={"on202": "wait"}))
    stage.run(90)

    stage.delete(planned)
    stage.run(120)

    assert stage.only_run(planned).state is State.CANCELLED
    assert stage.waiting() == {}


def test_a_queued_near_retry_ends_when_its_job_is_deleted(stage: Stage) -> None:
    stage.endpoint.answer = BUSY
    planned = stage.create(once(), action=stage.action(retry=fixed(20)))
    stage.run(62)

    stage.delete(planned)
    stage.run(120)

    assert stage.only_run(planned).state is State.CANCELLED
    assert len(stage.endpoint.received) == 1


@pytest.mark.parametrize("answer", [OK, BUSY])
def test_a_call_counts_even_if_its_job_is_deleted_during_it(stage: Stage, answer: Outcome) -> None:
    """A copy of its message arrives before it has ended."""
    planned = stage.create(once())
    stage.tick()
    stage.clock.advance(60)
    assert len(stage.sqs.bodies(URLS[Lane.FAST])) == 2

    def deleted_meanwhile(_call: object) -> Outcome:
        stage.delete(planned)
        stage.deliver(most=1)
        return answer

    stage.endpoint.answer = deleted_meanwhile
    stage.deliver(most=1)
    stage.run(120)

    run = stage.only_run(planned)
    assert (run.state, run.http_status) == (State.SUCCESS if answer is OK else State.ERROR, answer.http_status)
    assert len(stage.endpoint.received) == 1
    assert stage.waiting() == {}


def test_a_report_within_the_lease_still_counts(stage: Stage) -> None:
    planned = stage.create(once())
    stage.tick()
    stage.clock.advance(60)

    def deleted_meanwhile(_call: object) -> Any:
        stage.delete(planned)
        return BUSY

    stage.endpoint.answer = deleted_meanwhile
    stage.deliver(most=1)
    run = stage.only_run(planned)
    assert (run.state, run.http_status) == (State.ERROR, 503)


def test_the_run_of_a_dead_executor_of_a_deleted_job_ends_after_its_lease(stage: Stage) -> None:
    planned = stage.create(once())
    stage.tick()
    stage.clock.advance(60)
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.deliver_all(most=1)
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])

    stage.delete(planned)
    stage.run(1_200)

    assert stage.only_run(planned).state is State.CANCELLED
    assert rest(stage, planned) == []


def test_a_claim_that_overtook_the_delete_is_ended(stage: Stage) -> None:
    """Gate, then delete, then claim: the row that the claim leaves has an end too."""
    planned = stage.create(once())
    stage.tick()
    stage.clock.advance(60)

    def deleted_first(_passing: Passing, act: Act) -> Any:
        fault, stage.taps.fault = stage.taps.fault, None
        stage.delete(planned)
        stage.taps.fault = fault
        act()
        raise Crash

    with stage.taps.once("dynamodb.PutItem", deleted_first), pytest.raises(Crash):
        stage.deliver(most=1)
    stage.run(1_200)

    assert stage.only_run(planned).state is State.CANCELLED
    assert stage.endpoint.received == []


def test_a_deleted_schedule_leaves_its_job_and_the_other_schedules_alone(stage: Stage) -> None:
    stage.endpoint.answer = BUSY
    planned = stage.create(EACH_MINUTE, {"cron": "*/2 * * * *"}, action=stage.action(retry=fixed(7_200)))
    first, second = planned.schedules
    stage.run(130)

    changed = stage.change_schedules(
        planned, lambda there: [ScheduleRequest(lookup.find_schedule(there, first.id), None, delete=True)]
    )
    stage.run(120)

    assert [schedule.id for schedule in changed.schedules] == [second.id]
    assert stage.job(planned).schedule_ids == (second.id,)
    assert {run.state for run in stage.runs(first)} == {State.CANCELLED}
    assert {run.state for run in stage.runs(second)} == {State.RETRY_WAIT}
    assert not [sk for sk in rest(stage, planned) if first.id in sk]
    assert [sk for sk in rest(stage, planned) if second.id in sk] == [f"SCH#{second.id}", f"STATS#{second.id}"]


def test_a_job_can_be_deleted_during_the_cleanup_of_its_deleted_schedule(stage: Stage) -> None:
    """Its run still has its lease when the job's own clean-up has handled every run that it knows."""
    stage.world = replace(stage.world, settings=replace(stage.world.settings, lease_s=70))
    planned = stage.create(EACH_MINUTE, {"cron": "*/2 * * * *"})
    first = planned.schedules[0]
    stage.tick()
    stage.clock.advance(60)
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.deliver(most=1)
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])
    stage.change_schedules(
        planned, lambda there: [ScheduleRequest(lookup.find_schedule(there, first.id), None, delete=True)]
    )
    stage.delete(planned)
    stage.clock.advance(1)

    stage.run(2_400)

    assert {run.state for run in stage.runs(first)} == {State.CANCELLED}
    assert rest(stage, planned) == []


@pytest.mark.parametrize("fault", [crash_before, crash_after])
def test_an_interrupted_cleanup_continues_later(stage: Stage, fault: Any) -> None:
    stage.endpoint.answer = BUSY
    planned = stage.create(once(), action=stage.action(payload={"n": 1}, retry=fixed(7_200)))
    stage.run(90)
    stage.delete(planned)
    stage.tick()
    stage.clock.advance(31)

    with stage.taps.once("dynamodb.TransactWriteItems", fault), pytest.raises(Crash):
        stage.deliver_all(most=1)
    stage.run(1_200)

    assert stage.only_run(planned).state is State.CANCELLED
    assert rest(stage, planned) == []


def test_a_delete_whose_answer_was_lost_has_happened(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)

    with stage.taps.once("dynamodb.TransactWriteItems", answer_lost):
        stage.delete(planned)

    assert jobs.read_job(stage.world.table, TENANT, planned.job.id) is None


def test_a_delete_of_another_revision_does_nothing(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)

    with pytest.raises(PreconditionFailed):
        deletion.delete_job(stage.world, TENANT, planned.job.id, 7)

    assert len(stage.waiting()) == 1


def test_a_job_changed_between_read_and_delete_is_deleted(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE, tags=("old",))

    def changed_first(_passing: Passing, act: Act) -> Any:
        fault, stage.taps.fault = stage.taps.fault, None
        stage.change(planned, tags=("new",))
        stage.change_schedules(planned, lambda _there: [ScheduleRequest(None, stage.schedule({"every": "PT1H"}))])
        stage.taps.fault = fault
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", changed_first):
        stage.delete(planned)
    stage.run(120)

    assert rest(stage, planned) == []
    assert stage.waiting() == {}


def test_the_cleanup_runs_half_a_minute_after_the_delete(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)

    stage.delete(planned)

    assert stage.waiting() == {
        (keys.job(TENANT, planned.job.id), keys.clean_up("job")): int((NOON + 30 * SECOND).timestamp())
    }


@pytest.mark.parametrize("fault", [None, crash_before, crash_after])
def test_a_job_with_many_runs_is_cleaned_up_in_pieces(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, fault: Any
) -> None:
    """Each step handles a few rows and requests the next at once; if a step dies, its row continues the work."""
    monkeypatch.setattr(clean_up, "MOST_ROWS", 3)
    stage.endpoint.answer = BUSY
    timings = [{"every": "PT30S"}, {"cron": "*/2 * * * *"}]
    planned = stage.create(*timings, action=stage.action(payload={"n": 1}, retry=fixed(7_200)))
    stage.run(240)
    stage.delete(planned)
    stage.tick()
    stage.clock.advance(31)

    if fault is not None:
        with stage.taps.once("sqs.SendMessageBatch", fault), pytest.raises(Crash):
            stage.deliver_all(most=1)
    stage.run(1_200 if fault else 90)

    for schedule in planned.schedules:
        runs = stage.runs(schedule)
        assert runs
        assert {run.state for run in runs} == {State.CANCELLED}
    assert rest(stage, planned) == []
    assert stage.waiting() == {}


def test_a_cleanup_in_pieces_checks_the_leased_runs_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean_up, "MOST_ROWS", 1)
    stage.world = replace(stage.world, settings=replace(stage.world.settings, lease_s=70))
    planned = stage.create({"every": "PT30S"}, {"cron": "* * * * *"})
    stage.run(100)
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.run(60)
    for lane in Lane:
        stage.sqs.purge(stage.world.settings.queue_urls[lane])
    stage.delete(planned)

    stage.run(2_400)

    runs = [run for schedule in planned.schedules for run in stage.runs(schedule)]
    assert State.CANCELLED in {run.state for run in runs}
    assert all(run.finished for run in runs)
    assert rest(stage, planned) == []


def test_a_run_says_who_deleted_its_job_although_copies_of_the_table_do_not_know_yet(stage: Stage) -> None:
    stage.endpoint.answer = BUSY
    planned = stage.create(once(), action=stage.action(retry=fixed(10)))
    stage.run(65)

    def behind(passing: Passing, act: Act) -> Any:
        answer = act()
        stale = passing.operation == "Query" and not passing.request.get("ConsistentRead")
        return {**answer, "Items": []} if stale else answer

    by = By(actor="me", reason="the target is being moved")
    deletion.delete_job(stage.world, TENANT, planned.job.id, None, by=by)
    with stage.taps.faulty(behind):
        stage.pass_time(10)
        stage.deliver_all()

    run = stage.only_run(planned)
    assert (run.state, run.message) == (State.CANCELLED, "the job was deleted by me: the target is being moved")
