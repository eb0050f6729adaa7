"""Actions within the service: a job that runs another one, a job that tells the bus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from sweephand.domain.collection import Events
from sweephand.domain.job import ActionDraft
from sweephand.domain.run import Kind, Outcome, Reason, Run, State, Verdict
from sweephand.server import actions
from sweephand.server.actions.job import MOST_HOPS
from sweephand.server.flow.jobs import creation
from sweephand.server.flow.manual import manual
from sweephand.server.security.guard import GuardSettings
from sweephand.testing.taps import Act, Passing
from tests.support import taps
from tests.support.bus import malformed, refused_by_bus
from tests.support.stage import TENANT, Stage, stage
from tests.support.taps import Crash
from tests.unit.server.actions.aws.test_aws import refusal
from tests.unit.server.flow.common import MINUTE, fixed, once

NOBODY = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def there() -> Iterator[Stage]:
    with stage() as made:
        made.act_for_real()
        yield made


def draft(**fields: Any) -> ActionDraft:
    return actions.draft(fields, field="action", guard=GuardSettings())


def runs(stage: Stage, job_id: str, **more: Any) -> ActionDraft:
    return draft(type="job", jobId=job_id, **more)


def told(stage: Stage) -> list[dict[str, Any]]:
    return [json.loads(entry["Detail"]) for entry in stage.bus.of_jobs]


# ---- A job that runs another -----------------------------------------------------------------------------------------


@pytest.mark.action("job", "own", "success")
def test_a_job_starts_a_manual_run_of_another_job(there: Stage) -> None:
    other = there.create(action=draft(type="event", payload={"n": 1}))
    parent = there.create(once(), action=runs(there, other.job.id))

    there.run(70)

    run, child = there.only_run(parent), there.only_run(other.job.id)
    assert (run.state, run.answer) == (State.SUCCESS, child.id)
    assert (child.kind, child.state, child.parent_id, child.hop) == (Kind.MANUAL, State.SUCCESS, run.id, 1)
    assert [(each["id"], each["payload"]) for each in told(there)] == [(child.id, {"n": 1})]


@pytest.mark.parametrize("operation", ["dynamodb.PutItem", "sqs.SendMessageBatch"])
@pytest.mark.parametrize("fault", [taps.crash_before, taps.crash_after, taps.answer_lost, taps.refused])
def test_however_the_start_fails_the_other_job_runs_once(there: Stage, operation: str, fault: Any) -> None:
    other = there.create(action=draft(type="event"))
    parent = there.create(once(), action=runs(there, other.job.id))
    there.pass_time(60)
    there.tick()
    met = []

    def only_the_child(passing: Passing, act: Any) -> Any:
        ours = other.job.id in str(passing.request) and passing.name == operation
        if ours and not met:
            met.append(passing)
            return fault(passing, act)
        return act()

    there.taps.fault = only_the_child
    try:
        there.deliver()
    except Crash:
        there.pass_time(30)
    there.taps.fault = None
    there.run(300)

    assert met, "no call to be faulty"
    assert there.only_run(parent).state is State.SUCCESS
    assert there.only_run(other.job.id).state is State.SUCCESS
    assert {each["id"] for each in told(there)} == {there.only_run(other.job.id).id}


def test_a_retry_of_the_parent_does_not_run_the_other_job_again(there: Stage) -> None:
    other = there.create(action=draft(type="event"))
    parent = there.create(once(), action=runs(there, other.job.id, retry=fixed(10, 2)))
    lost = Outcome(Verdict.FAILED, Reason.NO_ANSWER, retryable=True)

    def started_but_not_known(_passing: Passing, act: Any) -> Outcome:
        act()
        return lost

    with there.taps.once("action.job", started_but_not_known):
        there.run(90)

    run = there.only_run(parent)
    assert (run.state, run.attempt) == (State.SUCCESS, 2)
    assert len(told(there)) == 1


def test_two_jobs_that_run_each_other_stop(there: Stage) -> None:
    first = there.create(action=draft(type="event"))
    second = there.create(once(), action=runs(there, first.job.id))
    there.change(first, action=runs(there, second.job.id))

    there.run(600)

    everything = [*there.runs(second), *there.runs(second.job.id), *there.runs(first.job.id)]
    assert sorted(run.hop for run in everything) == list(range(MOST_HOPS + 1))
    last = max(everything, key=lambda run: run.hop)
    assert (last.state, last.reason) == (State.REQUEST_ERROR, Reason.GUARD)
    assert all(run.state is State.SUCCESS for run in everything if run is not last)


def test_an_error_action_runs_a_job_and_continues_the_chain(there: Stage) -> None:
    clean_up = there.create(action=draft(type="event", payload="cleaned"))
    failing = there.create(once(), action=runs(there, NOBODY), error_action=runs(there, clean_up.job.id))

    there.run(90)

    (failed,) = there.runs(failing, Kind.SCHEDULED)
    (alarm,) = there.runs(failing, Kind.ERROR_ACTION)
    assert (failed.state, failed.reason) == (State.REQUEST_ERROR, Reason.NO_TARGET)
    assert NOBODY in str(failed.message)
    assert alarm.state is State.SUCCESS
    assert there.only_run(clean_up.job.id).parent_id == alarm.id


@pytest.mark.action("job", "own", "failure")
def test_a_job_of_another_tenant_is_not_found(there: Stage) -> None:
    from sweephand.server.flow.tenants import tenancy  # noqa: PLC0415 - of this test alone

    tenancy.create_tenant(there.world, "globex", None)
    theirs = creation.create_job(there.world, "globex", there.draft(action=draft(type="event")), None)
    mine = there.create(once(), action=runs(there, theirs.job.id))

    there.run(90)

    assert there.only_run(mine).reason is Reason.NO_TARGET
    assert told(there) == []


def test_a_deleted_job_is_not_found(there: Stage) -> None:
    other = there.create(action=draft(type="event"))
    parent = there.create(once(), action=runs(there, other.job.id))
    there.delete(other)

    there.run(90)

    assert there.only_run(parent).reason is Reason.NO_TARGET


KNOWN = "body, detailType, outcome, payload, retry, type"


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"type": "job"}, "jobId", "is required"),
        ({"type": "job", "jobId": "x"}, "jobId", 'is not the id of a job: "x"'),
        (
            {"type": "job", "jobId": NOBODY, "body": "x"},
            "body",
            "has no effect here: the other job sends its own payload",
        ),
        ({"type": "event", "detailType": ""}, "detailType", "must have 1 to 128 characters, not 0"),
        (
            {"type": "event", "source": "sweephand"},
            "source",
            (
                "is not a known member; known are application, body, consumer, detailType, missed, outcome, payload, "
                "retry, type"
            ),
        ),
        ({"type": "event", "payload": "x" * 65_537}, "payload", "must have at most 65,536 bytes"),
    ],
)
def test_an_invalid_field_is_refused_with_its_path(fields: dict[str, Any], field: str, reason: str) -> None:
    assert refusal(fields) == (f"action.{field}", reason)


# ---- A job that tells the bus ----------------------------------------------------------------------------------------


@pytest.mark.action("event", "own", "success")
def test_a_job_publishes_an_event_on_the_bus_of_the_stack_under_the_name_of_its_tenant(there: Stage) -> None:
    there.tell(Events.NONE)
    planned = there.create(
        once(), action=draft(type="event", payload={"n": 1}), resource_id="inv-4711", tags=("a", "b")
    )

    there.run(70)

    run = there.only_run(planned)
    (entry,) = there.bus.of_jobs
    detail = json.loads(entry["Detail"])
    assert (entry["Source"], entry["DetailType"]) == ("scheduler.acme", "job")
    assert detail.pop("firedAt") == "2027-03-01T12:01:00.250Z"
    assert detail == {
        "id": run.id,
        "tenant": "acme",
        "jobId": planned.job.id,
        "jobScheduleId": planned.job.id,
        "scheduleId": planned.schedules[0].id,
        "resourceId": "inv-4711",
        "tag": "a",
        "tags": ["a", "b"],
        "jobTime": "2027-03-01T12:01:00Z",
        "attempt": 1,
        "payload": {"n": 1},
        "traceparent": f"00-{run.uuid.replace('-', '')}-{detail['traceparent'][36:52]}-01",
    }
    assert re.fullmatch("00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01", detail["traceparent"], re.ASCII)
    assert run.state is State.SUCCESS


def test_a_manual_run_names_the_job_like_any_other(there: Stage) -> None:
    """`jobScheduleId` is what create returned: a listener edits or deletes by it."""
    there.tell(Events.NONE)
    planned = there.create(action=draft(type="event"))

    manual.run_now(there.world, TENANT, planned.job.id, None, None)
    there.run(10)

    (detail,) = told(there)
    assert (detail["jobScheduleId"], detail["scheduleId"]) == (planned.job.id, None)
    assert (detail["resourceId"], detail["tag"], detail["tags"], detail["payload"]) == (None, None, [], None)


def test_the_attempts_of_a_run_are_spans_of_one_trace(there: Stage) -> None:
    there.tell(Events.NONE)
    there.create(once(), action=draft(type="event", retry={"type": "fixed", "maxRetries": 1, "delaySeconds": 1}))
    asked: list[str] = []

    def loses_the_answer(passing: Passing, act: Act) -> Any:
        if passing.name != "events.PutEvents":
            return act()
        asked.append(json.loads(passing.request["Entries"][0]["Detail"])["traceparent"])
        return denied(passing, act)

    with there.taps.faulty(loses_the_answer):
        there.run(70)

    assert len(asked) == len(set(asked)) == 2
    assert len({each[:35] for each in asked}) == 1


def denied(passing: Passing, _act: Act) -> Any:
    """Makes the bus refuse the request for good."""
    raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, passing.operation)


def test_an_event_that_the_bus_rejects_is_a_failed_attempt_and_is_retried(there: Stage) -> None:
    there.tell(Events.NONE)
    planned = there.create(once(), action=draft(type="event", detailType="due", retry=fixed(10, 3)))

    with there.taps.once("events.PutEvents", malformed):
        there.run(90)

    run = there.only_run(planned)
    assert (run.state, run.attempt) == (State.SUCCESS, 2)
    assert [(entry["DetailType"], json.loads(entry["Detail"])["attempt"]) for entry in there.bus.of_jobs] == [
        ("due", 2)
    ]


@pytest.mark.parametrize(("fault", "code"), [(malformed, "MalformedDetail"), (denied, "AccessDeniedException")])
@pytest.mark.action("event", "own", "failure")
def test_without_retries_a_refusal_ends_the_run_and_says_why(there: Stage, fault: Any, code: str) -> None:
    there.tell(Events.NONE)
    planned = there.create(once(), action=draft(type="event"))

    with there.taps.once("events.PutEvents", fault):
        there.run(90)

    run = there.only_run(planned)
    assert (run.state, run.reason) == (State.ERROR, Reason.TARGET_ERROR)
    assert run.message == f"the event was refused: {code}"
    assert there.taps.count("events.PutEvents") == 1, "the job's retry policy repeats it, nothing else"


def broken(error: Exception) -> Any:
    def fault(_passing: Passing, _act: Act) -> Any:
        raise error

    return fault


@pytest.mark.parametrize(
    "fault",
    [
        refused_by_bus,
        taps.refused,
        pytest.param(broken(ReadTimeoutError(endpoint_url="u")), marks=pytest.mark.action("event", "own", "silence")),
        pytest.param(
            broken(EndpointConnectionError(endpoint_url="u")), marks=pytest.mark.action("event", "own", "unreachable")
        ),
    ],
)
def test_a_bus_that_is_away_uses_up_no_attempt(there: Stage, fault: Any) -> None:
    there.tell(Events.NONE)
    planned = there.create(once(5 * MINUTE), action=draft(type="event"))

    with there.taps.once("events.PutEvents", fault):
        there.run(310)
    assert there.runs(planned) == []
    there.run(60)

    run = there.only_run(planned)
    assert (run.state, run.attempt, run.lost) == (State.SUCCESS, 1, 0)
    assert len(there.bus.of_jobs) == 1


@pytest.mark.parametrize(
    ("error", "taken"), [(ReadTimeoutError(endpoint_url="u"), True), (EndpointConnectionError(endpoint_url="u"), False)]
)
def test_an_event_that_the_bus_may_have_taken_is_not_put_again_if_the_job_forbids_it(
    there: Stage, error: Exception, taken: bool
) -> None:
    there.tell(Events.NONE)
    planned = there.create(once(5 * MINUTE), action=draft(type="event"), policies={"delivery": "at_most_once"})

    with there.taps.once("events.PutEvents", broken(error)):
        there.run(360)

    assert there.only_run(planned).state is (State.ERROR if taken else State.SUCCESS)
    assert there.taps.count("events.PutEvents") == (1 if taken else 2)


def test_a_string_payload_stays_a_string(there: Stage) -> None:
    there.create(once(), action=draft(type="event", body="<a/>"))

    there.run(70)

    assert [each["payload"] for each in told(there)] == ["<a/>"]


@pytest.mark.action("event", "own", "wait")
def test_a_run_can_wait_for_a_listener(there: Stage) -> None:
    planned = there.create(once(), action=draft(type="event", outcome={"onAccepted": "wait"}))

    there.run(70)

    run: Run = there.only_run(planned)
    assert run.state is State.ACK_RECVD
    assert run.deadline_at is not None
