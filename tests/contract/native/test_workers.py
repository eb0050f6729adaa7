"""Workers of applications: runs come to a queue of their own, are claimed by the API and settled there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any

import pytest

from bench.meter import metered
from sweephand.base.ids import run_uuid
from sweephand.domain.application import MOST_UNKNOWN, lane_of
from sweephand.domain.instants import text_ms
from sweephand.domain.run import Kind
from sweephand.domain.schedule import Lane
from sweephand.testing.service import URLS
from tests.contract.calls import Reply
from tests.contract.native.api import OTHER, Api
from tests.support.limits import as_dynamodb
from tests.support.stage import TENANT
from tests.support.taps import Crash, answer_lost, crash_after, crash_before, refused

REPORT = {"type": "queue", "application": "billing", "task": "report"}
EVERY_HOUR = [{"every": "PT1H"}]
TWO_LEVEL = {"type": "two_level"}


def register(api: Api, name: str = "billing", *, caller: str = TENANT, **body: Any) -> str:
    """Registers an application. Returns its queue."""
    reply = api("PUT", f"/v1/applications/{name}", body, caller=caller)
    assert reply.status == 200, reply.text
    return reply.json["queueUrl"]


@dataclass
class Hand:
    """A worker, step by step."""

    api: Api
    url: str
    application: str = "billing"
    version: str | None = None
    caller: str = TENANT

    def receive(self, most: int = 10) -> list[Any]:
        return [copy(message) for message in self.api.stage.sqs.receive(self.url, most)]

    def claim(self, received: Any, **more: Any) -> Reply:
        pointer = json.loads(received.body)
        body = {
            "message": received.body,
            "owner": f"hand/{received.receipt}",
            "application": self.application,
            "sentAt": text_ms(received.sent_at),
            **({"version": self.version} if self.version else {}),
            **more,
        }
        return self.api("POST", f"/v1/runs/{run_of(pointer)}/claim", body, caller=self.caller)

    def report(self, task: Mapping[str, Any], received: Any, outcome: str = "success", **more: Any) -> Reply:
        body = {"owner": f"hand/{received.receipt}", "attempt": task["attempt"], "outcome": outcome, **more}
        return self.api("POST", f"/v1/runs/{task['runId']}/settle", body, caller=self.caller)

    def delete(self, message: Any) -> None:
        self.api.stage.sqs.delete(self.url, message.receipt)

    def work(self, outcome: str = "success", **more: Any) -> list[dict[str, Any]]:
        """Carries out all that can be received now. Returns the tasks."""
        done = []
        while messages := self.receive():
            for message in messages:
                said = self.claim(message).json
                if said["verdict"] == "run":
                    assert self.report(said["task"], message, outcome, **more).status == 200
                    done.append(said["task"])
                if said["verdict"] == "wait":
                    seconds = {"VisibilityTimeout": said["waitSeconds"], "ReceiptHandle": message.receipt}
                    self.api.stage.sqs.change_message_visibility(QueueUrl=self.url, **seconds)
                else:
                    self.delete(message)
        return done


def run_of(pointer: Mapping[str, Any]) -> str:
    return f"{pointer['schedule'] or pointer['job']}_{pointer['run']}"


@pytest.fixture
def hand(api: Api) -> Hand:
    return Hand(api, register(api))


def create(api: Api, action: Mapping[str, Any] = REPORT, **members: Any) -> dict[str, Any]:
    return api.create(action=dict(action), **{"schedules": EVERY_HOUR, **members})


def runs(api: Api, job: Mapping[str, Any]) -> list[dict[str, Any]]:
    return api.get("/v1/runs", query={"jobId": job["id"]}).json["items"]


def due(api: Api, seconds: float = 3_600) -> None:
    """Lets the stack work, and no worker."""
    api.stage.run(seconds + 1)


def test_a_worker_gets_a_run_at_its_second_and_settles_it(api, hand):
    job = create(api, REPORT | {"payload": {"month": 7}}, tags=["a"], resourceId="r")
    due(api, 3_590)
    assert hand.receive() == [], "never early"

    due(api, 9)
    [task] = hand.work()

    assert (task["name"], task["payload"], task["body"], task["attempt"]) == ("report", {"month": 7}, None, 1)
    assert (task["jobId"], task["tags"], task["resourceId"]) == (job["id"], ["a"], "r")
    [run] = runs(api, job)
    assert task["traceparent"].split("-")[1] == run["id"].rpartition("_")[2].replace("-", "")
    assert (run["state"], run["reason"]) == ("SUCCESS", "ON_TIME")
    assert run["enqueuedAt"] < run["plannedAt"] <= run["startedAt"] <= run["finishedAt"]
    assert api.stage.endpoint.received == []
    api.stage.run(60)
    assert not any(api.stage.sqs.bodies(url) for url in [hand.url, *URLS.values()])


def test_a_success_costs_five_write_units_if_overlap_is_allowed(api, hand):
    create(api)
    due(api)
    hand.work()
    due(api, 1_800)

    with metered() as meter:
        due(api, 1_800)
        hand.work()

        # 3 advance the schedule (its row, and the index twice), 1 claims, 1 settles.
        assert meter.take().writes == 5


def test_a_success_costs_nine_write_units_if_overlap_is_excluded(api, hand):
    create(api, policies={"overlap": "skip"})
    due(api)
    hand.work()
    due(api, 1_800)

    with metered() as meter:
        due(api, 1_800)
        hand.work()

        # 3 advance the schedule, 4 claim run and slot in one transaction, 1 settles, 1 frees the slot.
        assert meter.take().writes == 9


@pytest.mark.action("queue", "own", "success")
def test_a_manual_run_is_also_sent_to_the_queue(api, hand):
    job = create(api, schedules=[])
    started = api("POST", f"/v1/jobs/{job['id']}/run", {"payload": {"now": True}}).json["runId"]

    [task] = hand.work()

    assert (task["runId"], task["kind"], task["payload"]) == (started, "manual", {"now": True})
    assert api.get(f"/v1/runs/{started}").json["state"] == "SUCCESS"
    api.stage.run(300)
    assert api.stage.waiting() == {}


@pytest.mark.action("queue", "own", "failure")
def test_a_failure_is_retried_by_the_policy_of_the_job_and_the_row_counts_attempts(api, hand):
    job = create(api, REPORT | {"retry": TWO_LEVEL}, schedules=[])
    api("POST", f"/v1/jobs/{job['id']}/run")

    attempts = []
    for _ in range(100):
        attempts += hand.work("failure", exception="ValueError", message="no month", details="Traceback ...")
        api.stage.run(5)

    [run] = runs(api, job)
    assert [task["attempt"] for task in attempts] == list(range(1, 25))
    assert (run["state"], run["reason"], run["message"]) == ("ERROR", "TARGET_ERROR", "ValueError: no month")
    shown = api.get(f"/v1/runs/{run['id']}").json["attempts"]
    assert len(shown) == 24
    assert shown[3]["answer"] == "Traceback ..."
    [group] = api.get("/v1/errors").json["items"]
    assert group["message"] == "ValueError: no month"


def test_a_failure_marked_as_final_is_not_retried(api, hand):
    job = create(api, REPORT | {"retry": {**TWO_LEVEL, "retryOn": "any"}}, schedules=[])
    api("POST", f"/v1/jobs/{job['id']}/run")

    hand.work("failure", exception="KeyError", retry=False)

    assert [(run["state"], run["attempt"]) for run in runs(api, job)] == [("ERROR", 1)]


def test_a_worker_may_delay_the_next_attempt(api, hand):
    job = create(api, REPORT | {"retry": TWO_LEVEL}, schedules=[])
    api("POST", f"/v1/jobs/{job['id']}/run")

    hand.work("failure", delaySeconds=120)
    api.stage.run(119)
    early = hand.work()
    api.stage.run(2)
    again = hand.work()

    assert (early, [task["attempt"] for task in again]) == ([], [2])
    assert runs(api, job)[0]["state"] == "SUCCESS"


def test_invalid_arguments_are_not_retried(api, hand):
    job = create(api, REPORT | {"retry": TWO_LEVEL}, schedules=[])
    api("POST", f"/v1/jobs/{job['id']}/run")

    hand.work("bad_payload", message="month: is missing")

    assert [(run["state"], run["reason"], run["attempt"]) for run in runs(api, job)] == [
        ("REQUEST_ERROR", "BAD_PAYLOAD", 1)
    ]


def test_a_worker_may_discard_a_run_and_give_a_reason(api, hand):
    job = create(api, policies={"overlap": "skip"})
    due(api)

    hand.work("discarded", message="the customer is gone")

    [run] = runs(api, job)
    assert (run["state"], run["message"]) == ("CANCELLED", "discarded by the worker: the customer is gone")
    due(api)
    assert len(hand.work()) == 1, "its slot is free"


def test_a_task_unknown_to_ten_workers_ends_its_run_as_unknown_task(api, hand):
    job = create(api, REPORT | {"retry": TWO_LEVEL}, schedules=[])
    api("POST", f"/v1/jobs/{job['id']}/run")

    asked = 0
    for _ in range(100):
        asked += len(hand.work("unknown_task"))
        api.stage.run(60)

    [run] = runs(api, job)
    assert asked == MOST_UNKNOWN
    assert (run["state"], run["reason"], run["attempt"]) == ("ERROR", "UNKNOWN_TASK", 1)
    assert 'knows the task "report"' in run["message"]


def test_a_task_unknown_to_one_worker_is_done_by_another(api, hand):
    job = create(api, policies={"overlap": "skip"})
    due(api)
    hand.work("unknown_task")
    [waiting] = runs(api, job)

    api.stage.run(6)
    hand.work()

    assert (waiting["state"], waiting["reason"]) == ("RETRY_WAIT", "UNKNOWN_TASK")
    assert [(run["state"], run["attempt"]) for run in runs(api, job)] == [("SUCCESS", 1)]


def test_an_unknown_task_ends_at_the_maximum_age_of_its_run(api, hand):
    job = create(api, REPORT | {"retry": {**TWO_LEVEL, "maxAgeSeconds": 12}}, schedules=[])
    api("POST", f"/v1/jobs/{job['id']}/run")

    for _ in range(10):
        hand.work("unknown_task")
        api.stage.run(5)

    assert [(run["state"], run["reason"]) for run in runs(api, job)] == [("ERROR", "UNKNOWN_TASK")]


def test_a_dead_workers_run_is_taken_over_after_its_lease(api, hand):
    job = create(api, policies={"overlap": "skip"})
    due(api)
    [message] = hand.receive()
    assert hand.claim(message).json["verdict"] == "run"

    api.stage.run(59)
    nothing = hand.work()
    api.stage.run(10)
    [again] = hand.work()

    assert nothing == []
    assert again["attempt"] == 1
    [run] = runs(api, job)
    assert run["state"] == "SUCCESS"
    assert [each["reason"] for each in api.get(f"/v1/runs/{run['id']}").json["attempts"]] == [
        "EXECUTOR_LOST",
        None,
    ]


def test_a_heartbeat_keeps_the_lease_of_a_run(api, hand):
    create(api)
    due(api)
    [message] = hand.receive()
    task = hand.claim(message, leaseSeconds=30).json["task"]
    beat = {"owner": f"hand/{message.receipt}", "leaseSeconds": 30}

    for _ in range(10):
        api.stage.run(20)
        assert api("POST", f"/v1/runs/{task['runId']}/heartbeat", beat).status == 200
        assert hand.work() == []

    assert hand.report(task, message).json["state"] == "SUCCESS"


def test_a_worker_that_lost_its_lease_learns_of_it_but_its_success_counts(api, hand):
    create(api)
    due(api)
    [message] = hand.receive()
    task = hand.claim(message, leaseSeconds=10).json["task"]
    beat = {"owner": f"hand/{message.receipt}"}
    api.stage.run(61)
    [again] = hand.receive()
    assert hand.claim(again).json["verdict"] == "run"

    lost = api("POST", f"/v1/runs/{task['runId']}/heartbeat", beat)
    failed = hand.report(task, message, "failure")
    won = hand.report(task, message)
    late = hand.report(task, again)

    assert (lost.status, lost.code) == (409, "LEASE_LOST")
    assert (failed.status, failed.code) == (409, "LEASE_LOST")
    assert (won.status, won.json["state"]) == (200, "SUCCESS")
    assert (late.status, late.json["state"]) == (200, "SUCCESS")


def test_a_report_that_contradicts_the_outcome_is_refused_and_noted(api, hand):
    create(api)
    due(api)
    [message] = hand.receive()
    task = hand.claim(message).json["task"]
    api("POST", f"/v1/runs/{task['runId']}/cancel")

    reply = hand.report(task, message)

    assert (reply.status, reply.code) == (409, "RESULT_CONFLICT")
    assert api.get(f"/v1/runs/{task['runId']}").json["notes"] == ["report after the end: success"]


@pytest.mark.parametrize("outcome", ["success", "failure", "bad_payload", "discarded", "unknown_task"])
def test_a_repeated_claim_or_report_changes_nothing(api, hand, outcome):
    job = create(api, REPORT | {"retry": {"type": "fixed", "delaySeconds": 60}}, policies={"overlap": "skip"})
    due(api)
    [message] = hand.receive()

    first, second = (hand.claim(message).json for _ in range(2))
    one, two = (hand.report(first["task"], message, outcome) for _ in range(2))

    assert first == second
    assert one.json == two.json
    hand.delete(message)
    api.stage.run(200)
    hand.work()
    assert [run["attempt"] for run in runs(api, job)] == [2 if outcome == "failure" else 1]


@pytest.mark.parametrize("first", ["failure", "unknown_task"])
@pytest.mark.parametrize("then", ["success", "failure", "bad_payload", "discarded", "unknown_task"])
def test_a_run_that_waits_accepts_only_the_report_that_made_it_wait(api, hand, first, then):
    create(api, REPORT | {"retry": {"type": "fixed", "delaySeconds": 600}})
    due(api)
    [message] = hand.receive()
    task = hand.claim(message).json["task"]
    assert hand.report(task, message, first).json["state"] == "RETRY_WAIT"
    before = api.picture()

    reply = hand.report(task, message, then)

    assert reply.status == (200 if then == first else 409)
    assert then == first or api.picture() == before


def test_an_occurrence_that_reaches_its_worker_too_late_is_missed(api, hand):
    job = create(api, policies={"misfire": {"type": "skip"}})
    due(api, 3 * 3_600)

    tasks = hand.work()
    api.stage.run(10)

    assert len(tasks) == 1
    assert sorted((run["state"], run["reason"]) for run in runs(api, job)) == [
        ("MISSED", "CONSUMER_AWAY"),
        ("MISSED", "CONSUMER_AWAY"),
        ("SUCCESS", "ON_TIME"),
    ]


EVENT = {"type": "event", "application": "listener", "retry": {"type": "fixed", "delaySeconds": 10, "maxRetries": 3}}


def test_an_event_must_name_a_registered_application(api):
    reply = api("POST", "/v1/jobs", {"action": EVENT})

    assert (reply.status, reply.fields) == (422, ["action.application"])
    assert '"listener" is not registered' in reply.json["errors"][0]["reason"]


def test_an_event_goes_to_the_bus_and_to_its_applications_queue(api):
    url = register(api, "listener")
    api.stage.act_for_real()
    job = create(api, EVENT, resourceId="inv-1")
    due(api)

    [entry] = api.stage.bus.of_jobs
    [body] = map(json.loads, api.stage.sqs.bodies(url))
    assert body == {"source": "scheduler.acme", "detail-type": "job", "detail": json.loads(entry["Detail"])}
    assert (body["detail"]["resourceId"], body["detail"]["id"]) == ("inv-1", runs(api, job)[0]["id"])


def test_an_event_that_the_queue_refuses_is_sent_again_under_its_id(api):
    """The attempt is not used up, because the service's own queue is no target."""
    url = register(api, "listener")
    api.stage.act_for_real()
    job = create(api, EVENT)

    api.stage.taps.fault = lambda passing, act: (refused if passing.name == "sqs.SendMessage" else as_dynamodb)(
        passing, act
    )
    due(api)
    api.stage.taps.fault = as_dynamodb
    assert runs(api, job) == []
    api.stage.run(60)

    (run,) = runs(api, job)
    assert (run["state"], run["attempt"]) == ("SUCCESS", 1)
    ids = [json.loads(body)["detail"]["id"] for body in api.stage.sqs.bodies(url)]
    assert ids == [run["id"]]
    assert [json.loads(entry["Detail"])["id"] for entry in api.stage.bus.of_jobs] == ids * 2


def test_an_event_that_must_not_come_twice_fails_if_the_queue_refuses_it(api):
    register(api, "listener")
    api.stage.act_for_real()
    job = create(api, EVENT, policies={"delivery": "at_most_once"})

    api.stage.taps.fault = lambda passing, act: (refused if passing.name == "sqs.SendMessage" else as_dynamodb)(
        passing, act
    )
    due(api)

    (run,) = runs(api, job)
    assert (run["state"], run["attempt"]) == ("RETRY_WAIT", 2)
    assert "the queue of the application did not take it" in run["message"]


def test_an_event_for_a_queue_that_was_deleted_is_a_failed_attempt(api):
    url = register(api, "listener")
    api.stage.act_for_real()
    job = create(api, EVENT)
    del api.stage.sqs._queues[url]

    due(api)

    (run,) = runs(api, job)
    assert (run["state"], run["attempt"]) == ("RETRY_WAIT", 2)
    assert "the application has no queue any more" in run["message"]


def test_a_worker_back_after_hours_gets_the_last_occurrence_and_the_others_end(api, hand):
    """The default policy decides. Worker and executors must agree, or they pass the message to each other for ever."""
    job = create(api)
    due(api, 3 * 3_600)

    tasks = hand.work()
    api.stage.run(60)

    assert len(tasks) == 1
    assert not any(api.stage.sqs.bodies(url) for url in [hand.url, *URLS.values()])
    assert sorted((run["state"], run["reason"]) for run in runs(api, job)) == [
        ("MISSED", "CONSUMER_AWAY"),
        ("MISSED", "CONSUMER_AWAY"),
        ("SUCCESS", "ON_TIME"),
    ]


def test_executors_settle_what_a_worker_cannot(api, hand):
    job = create(api, policies={"overlap": "skip"})
    due(api)
    [message] = hand.receive()
    api("POST", f"/v1/jobs/{job['id']}/pause")

    said = hand.claim(message).json
    hand.delete(message)
    api.stage.run(5)

    assert said == {"verdict": "delete", "waitSeconds": None, "task": None}
    assert [(run["state"], run["reason"]) for run in runs(api, job)] == [("SKIPPED", "PAUSED")]


def test_an_occurrence_is_skipped_while_the_previous_one_runs(api, hand):
    job = create(api, policies={"overlap": "skip"})
    due(api)
    [message] = hand.receive()
    task = hand.claim(message, leaseSeconds=3_600).json["task"]
    due(api, 1_800)
    api("POST", f"/v1/runs/{task['runId']}/heartbeat", {"owner": f"hand/{message.receipt}", "leaseSeconds": 3_600})
    due(api, 1_800)

    assert hand.work() == []
    assert hand.report(task, message).status == 200

    states = sorted((run["state"], run["reason"]) for run in runs(api, job))
    assert states == [("SKIPPED", "OVERLAP"), ("SUCCESS", "ON_TIME")]


def test_a_job_that_leaves_the_queue_takes_its_runs_with_it(api, hand):
    job = create(api, schedules=[])
    api("POST", f"/v1/jobs/{job['id']}/run")
    api("PUT", f"/v1/jobs/{job['id']}", {"name": "x", "action": {"type": "http", "url": "https://e.org/x"}})

    assert hand.work() == []
    api.stage.run(5)

    assert len(api.stage.endpoint.received) == 1
    assert [run["state"] for run in runs(api, job)] == ["SUCCESS"]


def test_each_version_has_its_own_queue(api, hand):
    second = Hand(api, register(api, version="2"), version="2")
    job = create(api, REPORT | {"version": "2"}, schedules=[])
    api("POST", f"/v1/jobs/{job['id']}/run")

    assert second.url != hand.url
    assert hand.work() == []
    assert [task["name"] for task in second.work()] == ["report"]


def test_an_application_is_registered_once_and_jobs_are_refused_before_that(api):
    refused = api("POST", "/v1/jobs", {"action": REPORT, "schedules": []})
    first, again = register(api), register(api)
    create(api, schedules=[])

    assert (refused.status, refused.fields) == (422, ["action.application"])
    assert "is not registered" in refused.json["errors"][0]["reason"]
    assert first == again
    assert len(api.stage.sqs.created) == 1
    attributes = api.stage.sqs.created[first]
    assert attributes["MessageRetentionPeriod"] == "1209600"
    assert json.loads(attributes["Policy"])["Statement"][0]["Effect"] == "Deny"


def test_a_queue_with_other_settings_is_corrected(api, hand, monkeypatch):
    monkeypatch.setitem(api.stage.sqs.created, hand.url, {"VisibilityTimeout": "30"})

    register(api)

    assert api.stage.sqs.created[hand.url]["VisibilityTimeout"] == "60"


def test_two_tenants_never_share_a_queue(api, hand):
    theirs = Hand(api, register(api, caller=OTHER), caller=OTHER)
    create(api)
    due(api)
    [message] = hand.receive()

    reply = theirs.claim(message)

    assert theirs.url != hand.url
    assert (reply.status, reply.code) == (404, "NOT_FOUND")
    assert len(hand.api.stage.sqs.bodies(hand.url)) == 1


def test_a_worker_cannot_claim_a_run_of_another_application(api, hand):
    other = Hand(api, register(api, "sales"), "sales")
    create(api)
    due(api)
    [message] = hand.receive()

    said = other.claim(message).json
    hand.delete(message)

    assert said["verdict"] == "delete"
    assert [task["name"] for task in hand.work()] == ["report"], "it went back to its own queue"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"message": "{}"}, "message"),
        ({"message": "no"}, "message"),
        ({"owner": ""}, "owner"),
        ({"leaseSeconds": 9}, "leaseSeconds"),
        ({"leaseSeconds": 3_601}, "leaseSeconds"),
        ({"sentAt": "now"}, "sentAt"),
        ({"version": "../"}, "version"),
        ({"more": 1}, "more"),
    ],
)
def test_an_unreadable_claim_is_refused_by_member(api, hand, change, field):
    create(api)
    due(api)
    [message] = hand.receive()

    reply = hand.claim(message, **change)

    assert (reply.status, reply.fields) == (422, [field])


FORGED = {
    "an instant that no rule had": {"instant": -60},
    "another generation": {"generation": 1},
    "a later attempt": {"attempt": 1},
    "a run that the misfire policy let pass": {"decided": True},
    "a mark of its own": {"mark": "1.AAAA"},
    "no mark": {"mark": None},
    "a manual run that nobody made": {"kind": "manual", "schedule": None},
}


def forged(message: Any, change: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a pointer that agrees with itself but was not sent: its run id is computed as the service would."""
    pointer = json.loads(message.body)
    for name, value in change.items():
        pointer[name] = pointer[name] + value if type(value) is int else value
    owner = pointer["schedule"] or pointer["job"]
    pointer["run"] = run_uuid(pointer["tenant"], owner, pointer["instant"] * 1_000, pointer["kind"])
    return pointer


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_forged_pointer_writes_no_row(api, hand, change):
    job = create(api)
    due(api)
    [message] = hand.receive()
    sent, message.body = message.body, json.dumps(forged(message, change))

    reply = hand.claim(message)

    assert (reply.status, reply.fields) == (422, ["message"])
    assert runs(api, job) == []
    message.body = sent
    assert hand.claim(message).json["verdict"] == "run"


def test_a_pointer_of_another_schedule_is_refused(api, hand):
    first, second = create(api), create(api, schedules=[{"every": "PT7H"}])
    other = api.get(f"/v1/jobs/{second['id']}/schedules").json["items"][0]["id"]
    due(api)
    [message] = hand.receive()
    message.body = json.dumps(forged(message, {"job": second["id"], "schedule": other}))

    reply = hand.claim(message)

    assert (reply.status, reply.fields) == (422, ["message"])
    assert runs(api, first) == runs(api, second) == []


@pytest.mark.parametrize("change", [{"kind": "manual"}, {"attempt": 1}, {"job": "OTHER"}], ids=str)
def test_a_pointer_must_match_the_row_of_an_existing_run(api, hand, change):
    """A pointer with the job of another schedule would end the run, because its schedule would seem to be gone."""
    job, other = create(api), create(api, schedules=[])
    due(api)
    [message] = hand.receive()
    hand.report(hand.claim(message, leaseSeconds=10).json["task"], message, "unknown_task")
    pointer = json.loads(message.body)
    change = {name: other["id"] if value == "OTHER" else value for name, value in change.items()}
    changed = {name: pointer[name] + value if type(value) is int else value for name, value in change.items()}
    message.body = json.dumps(pointer | changed)

    reply = hand.claim(message)

    assert (reply.status, reply.fields) == (422, ["message"])
    api.stage.run(6)
    assert [run["state"] for run in runs(api, job)] == ["RETRY_WAIT"]


def test_a_message_from_before_a_change_of_the_plan_can_still_be_claimed(api, hand):
    job = create(api)
    due(api)
    [message] = hand.receive()
    [schedule] = api.get(f"/v1/jobs/{job['id']}/schedules").json["items"]
    api("PATCH", f"/v1/jobs/{job['id']}/schedules/{schedule['id']}", {"every": "PT3H"})

    said = hand.claim(message).json

    assert said["verdict"] == "run"
    assert hand.report(said["task"], message).json["state"] == "SUCCESS"


def test_a_maximum_age_beyond_the_retention_of_a_queue_is_refused(api, hand):
    """The ledger keeps runs for 15 days, so an older message may be that of a run that has expired."""
    create(api)
    due(api)
    [message] = hand.receive()
    api.stage.pass_time(15 * 86_400)

    reply = hand.claim(message)

    assert (reply.status, reply.fields) == (422, ["message"])


def test_deleting_a_tenant_deletes_its_queue(api, hand):
    create(api)
    api("DELETE", f"/v1/tenants/{TENANT}", caller="provider")
    api.stage.run(300)

    assert api.stage.sqs.created == {}


def test_the_audit_does_not_report_runs_that_wait_for_a_worker(api, hand):
    job = create(api)
    due(api, 2 * 3_600)

    found = api.stage.audit()

    assert api.stage.journal.counts["AuditFindings"] == 0
    assert found is not None
    assert len(hand.work()) >= 1
    assert {run["state"] for run in runs(api, job)} <= {"SUCCESS", "MISSED"}


def test_the_audit_refills_a_purged_queue(api, hand):
    job = create(api)
    due(api)
    api.stage.sqs.purge(hand.url)
    api.stage.run(1_200)

    api.stage.audit()

    assert len(hand.work()) == 1
    assert [run["state"] for run in runs(api, job)] == ["SUCCESS"]


def test_a_message_that_kills_every_worker_ends_through_the_dead_letters(api, hand):
    job = create(api, schedules=[])
    api("POST", f"/v1/jobs/{job['id']}/run")

    for _ in range(25):
        for message in hand.receive():
            hand.claim(message)
        api.stage.run(70)

    assert [(run["state"], run["reason"]) for run in runs(api, job)] == [("UNKNOWN", "EXECUTOR_LOST")]


def test_the_queue_of_an_application_is_no_lane_of_the_stack():
    lane, other = lane_of("acme", "billing", None), lane_of("acme", "billing", "2")

    assert lane.of_application
    assert lane not in set(Lane)
    assert (Lane(str(lane)), lane.executors) == (lane, Lane.FAST)
    assert len({lane, other, lane_of("globex", "billing", None), lane_of("acme", "billing2", "")}) == 4
    with pytest.raises(ValueError, match="is not a valid Lane"):
        Lane("app-short")


def test_a_hook_may_be_a_task(api, hand):
    job = create(api, schedules=[], hooks={"onSuccess": REPORT | {"task": "after"}})
    api("POST", f"/v1/jobs/{job['id']}/run")

    names = [task["name"] for task in hand.work()]
    api.stage.run(5)
    names += [task["name"] for task in hand.work()]

    assert names == ["report", "after"]
    kinds = {run.kind for run in api.stage.runs(job["id"])}
    assert kinds == {Kind.MANUAL, Kind.ON_SUCCESS}


AGAIN = {"reschedule": {"afterSeconds": 120, "payload": {"page": 2}}}


def claimed(api: Api, hand: Hand) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Returns a job whose run by hand a worker holds, its message and its task."""
    job = create(api, REPORT | {"payload": {"page": 1}}, schedules=[])
    api("POST", f"/v1/jobs/{job['id']}/run")
    [message] = hand.receive()
    return job, message, hand.claim(message).json["task"]


def test_a_worker_can_say_when_the_job_runs_again(api, hand):
    job, message, task = claimed(api, hand)

    reply = hand.report(task, message, **AGAIN)
    hand.delete(message)
    waits = runs(api, job)[0]
    api.stage.run(119)
    early = hand.work()
    api.stage.run(2)
    [again] = hand.work()

    assert (reply.status, reply.json["state"], early) == (200, "SUCCESS", [])
    assert (waits["state"], waits["parentRunId"]) == ("QUEUED", task["runId"])
    assert again["payload"] == {"page": 2}
    assert [run["state"] for run in runs(api, job)] == ["SUCCESS", "SUCCESS"]


def test_a_workers_repeated_report_starts_no_further_run(api, hand):
    job, message, task = claimed(api, hand)

    first = hand.report(task, message, **AGAIN)
    api.stage.run(5)
    again = hand.report(task, message, **AGAIN)

    assert (first.status, again.status) == (200, 200)
    assert len(runs(api, job)) == 2


@pytest.mark.parametrize("operation", ["TransactWriteItems", "SendMessageBatch"])
@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost], ids=lambda each: each.__name__)
def test_the_end_of_a_task_and_the_next_run_are_written_together_or_not_at_all(api, hand, fault, operation):
    job, message, task = claimed(api, hand)
    api.stage.taps.fault = lambda passing, act: fault(passing, act) if passing.operation == operation else act()
    with suppress(Crash, Exception):
        hand.report(task, message, **AGAIN)
    api.stage.taps.fault = None
    states = [run["state"] for run in runs(api, job)]

    assert states in (["TRIGGERED"], ["QUEUED", "SUCCESS"])
    assert hand.report(task, message, **AGAIN).status == 200
    hand.delete(message)
    api.stage.run(200)
    assert [again["payload"] for again in hand.work()] == [{"page": 2}]
    assert [run["state"] for run in runs(api, job)] == ["SUCCESS", "SUCCESS"]


def test_the_first_report_of_two_workers_decides_when_the_job_runs_again(api, hand):
    job, message, task = claimed(api, hand)
    api.stage.run(75)
    taken_over = hand.receive()[0]
    assert hand.claim(taken_over).json["verdict"] == "run"

    late = hand.report(task, message, **AGAIN)
    second = hand.report(task, taken_over, reschedule={"afterSeconds": 3_000})

    assert (late.status, second.status) == (200, 200)
    assert len(runs(api, job)) == 2


@pytest.mark.parametrize(
    ("outcome", "more", "field"),
    [
        ("failure", AGAIN, "reschedule"),
        ("discarded", AGAIN, "reschedule"),
        ("success", {"reschedule": {}}, "reschedule"),
        ("success", {"reschedule": {"at": "2001-01-01T00:00:00Z"}}, "reschedule.at"),
        ("success", {"reschedule": {"afterSeconds": 60, "more": 1}}, "reschedule.more"),
    ],
)
def test_an_invalid_reschedule_is_refused_and_the_run_stays_open(api, hand, outcome, more, field):
    job, message, task = claimed(api, hand)

    reply = hand.report(task, message, outcome, **more)

    assert (reply.status, reply.fields) == (422, [field])
    assert [run["state"] for run in runs(api, job)] == ["TRIGGERED"]


def test_a_heartbeat_keeps_the_slot_of_a_flow_key(api, hand):
    assert api("POST", "/v1/flow-keys", {"name": "erp", "parallelism": 1}).status == 201
    job = create(api, schedules=[], policies={"flowKey": "erp"})
    for _ in range(2):
        api("POST", f"/v1/jobs/{job['id']}/run")
    first, second = hand.receive()
    task = hand.claim(first, leaseSeconds=30).json["task"]
    assert hand.claim(second).json["verdict"] == "delete", "it waits in the key's line"
    hand.delete(second)

    meanwhile = []
    for _ in range(10):
        api.stage.run(20)
        beat = {"owner": f"hand/{first.receipt}", "leaseSeconds": 30}
        assert api("POST", f"/v1/runs/{task['runId']}/heartbeat", beat).status == 200
        meanwhile += hand.work()
    assert hand.report(task, first).status == 200
    api.stage.run(5)

    assert meanwhile == []
    assert [each["runId"] != task["runId"] for each in hand.work()] == [True]


def test_a_slot_is_released_after_the_heartbeats_stop(api, hand):
    api("POST", "/v1/flow-keys", {"name": "erp", "parallelism": 1})
    job = create(api, REPORT | {"retry": {"type": "none"}}, schedules=[], policies={"flowKey": "erp"})
    for _ in range(2):
        api("POST", f"/v1/jobs/{job['id']}/run")
    first, second = hand.receive()
    task = hand.claim(first, leaseSeconds=30).json["task"]
    hand.claim(second)
    hand.delete(second)
    api.stage.run(20)
    api("POST", f"/v1/runs/{task['runId']}/heartbeat", {"owner": f"hand/{first.receipt}", "leaseSeconds": 30})
    api("POST", f"/v1/runs/{task['runId']}/cancel")

    api.stage.run(25)
    early = hand.work()
    api.stage.run(120)

    assert early == [], "its call may still go on"
    assert len(hand.work()) == 1


@pytest.mark.parametrize(("outcome", "failed"), [("success", 0), ("failure", 1)])
def test_the_metrics_of_runs_include_the_runs_of_workers(api, hand, outcome, failed):
    create(api, REPORT | {"retry": {"type": "none"}})
    due(api)
    api.stage.run(2)
    [message] = hand.receive()
    before = len(api.stage.journal.measures)

    task = hand.claim(message).json["task"]
    hand.claim(message)
    for _ in range(2):
        hand.report(task, message, outcome)

    [late], [end] = (value for line in api.stage.journal.measures[before:] for value in line.values())
    assert [list(line) for line in api.stage.journal.measures[before:]] == [["Lateness"], ["Failed"]]
    assert (2_000 <= late < 4_000, end) == (True, failed)


def test_tasks_are_registered_with_a_version_and_replaced_at_the_next_start(api):
    path = "/v1/applications/billing"

    first = api("PUT", path, {"version": "1", "tasks": ["b", "a"]})
    later = api("PUT", path, {"version": "1", "tasks": ["c"]})
    kept = api("PUT", path, {"version": "1"})
    refused = api("PUT", path, {"tasks": ["a"]})
    twice = api("PUT", path, {"version": "1", "tasks": ["a", "a"]})

    assert [each.json["tasks"] for each in (first, later, kept)] == [["b", "a"], ["c"], ["c"]]
    assert [(each.status, each.fields) for each in (refused, twice)] == [(422, ["tasks"]), (422, ["tasks[1]"])]
