"""Each kind of action over the API: made, read, sent back, changed, run, and its line in the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from sweephand.server import actions
from sweephand.server.security.guard import GuardSettings
from tests.contract.calls import CANARY
from tests.contract.native.api import Api
from tests.contract.native.api import api as made
from tests.support.acting import GUARD, ROLE, Roles, arn, client
from tests.support.azure import KEYS, STORAGE_TOKEN, azure
from tests.support.ecs import ACTION as TASK
from tests.support.ecs import TASKS, VirtualEcs
from tests.support.stage import with_targets_on_moto
from tests.unit.server.actions.aws.test_aws import MADE, Bus, Lambda

if TYPE_CHECKING:
    from sweephand.server.security.target_roles import TargetRoles

OUTCOME = {"answerTimeoutSeconds": 15, "onAccepted": "success", "callbackTimeoutSeconds": 1_800}
NO_RETRY = {"type": "none"}
NOTHING = {"payload": None, "body": None}
NOBODY = "01890000-0000-7000-8000-000000000000"
BY_ROLE = {"roleArn": ROLE}
QUEUE = {"type": "sqs", "targetArn": arn("sqs", "orders"), **BY_ROLE}
BUS_ADDED = {
    "authentication": {"type": "sharedAccessKey", "sasKeyName": "QPolicy", "sasKey": "***"},
    "transportType": "NotSpecified",
    "brokeredMessageProperties": {},
    "customMessageProperties": {},
}
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sqs": (QUEUE, {"messageGroupId": None}),
    "sns": ({"type": "sns", "targetArn": arn("sns", "news"), **BY_ROLE}, {"messageGroupId": None, "subject": None}),
    "events": (
        {
            "type": "events",
            "targetArn": arn("events", "event-bus/other"),
            **BY_ROLE,
            "source": "acme.orders",
            "detailType": "due",
        },
        {},
    ),
    "lambda": (
        {"type": "lambda", "targetArn": arn("lambda", "function:f"), **BY_ROLE},
        {"invocation": "sync", "envelope": False},
    ),
    "states": ({"type": "states", "targetArn": arn("states", "stateMachine:m"), **BY_ROLE}, {}),
    "ecs": (
        {**TASK, "environment": {"PASSWORD": f"{CANARY}-of-a-task"}},
        {
            "command": [],
            "environment": {"PASSWORD": "***"},
            **dict.fromkeys(("roleArn", "cpuUnits", "memoryMiB", "diskGiB")),
            "outcome": {"answerTimeoutSeconds": 15, "callbackTimeoutSeconds": 1_800},
        },
    ),
    "event": ({"type": "event"}, {"detailType": "job", "consumer": None, "missed": None, "application": None}),
    "job": ({"type": "job", "jobId": NOBODY}, {}),
    "queue": ({"type": "queue", "application": "billing", "task": "report"}, {"version": None}),
    "azure_storage_queue": (
        {
            "type": "azure_storage_queue",
            "storageAccount": "acme",
            "queueName": "orders",
            "sasToken": STORAGE_TOKEN,
        },
        {"sasToken": "***", "region": None},
    ),
    "azure_service_bus_queue": (
        {
            "type": "azure_service_bus_queue",
            "namespace": "acmebus",
            "queueName": "orders",
            "authentication": {"type": "sharedAccessKey", "sasKeyName": "QPolicy", "sasKey": KEYS["QPolicy"]},
        },
        BUS_ADDED,
    ),
    "azure_service_bus_topic": (
        {
            "type": "azure_service_bus_topic",
            "namespace": "acmebus",
            "topicPath": "news",
            "authentication": {"type": "sharedAccessKey", "sasKeyName": "QPolicy", "sasKey": KEYS["QPolicy"]},
        },
        BUS_ADDED,
    ),
}
"""For each kind: the least that makes one, and what answers add to the members that all have."""
of_each = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def there() -> Iterator[Api]:
    with made() as api:
        assert api("PUT", "/v1/applications/billing").status == 200
        yield api


@pytest.fixture
def acting() -> Iterator[Api]:
    """Jobs do what they say, on moto; Lambda and EventBridge answer as they do on AWS, Azure is a small server."""
    with (
        azure() as there,
        made(backend=with_targets_on_moto, guarded=replace(there.guard, aws=GUARD.aws, tasks=TASKS)) as api,
    ):
        client("sqs").create_queue(QueueName="orders")
        client("sns").create_topic(Name="news")
        client("stepfunctions").create_state_machine(name="m", roleArn=ROLE, **MADE)
        there.now = lambda: api.stage.clock.now().timestamp()
        roles = cast("TargetRoles", Roles({"lambda": Lambda('"done"'), "events": Bus()}))
        settings = replace(there.guard, aws=GUARD.aws, tasks=TASKS)
        ecs = VirtualEcs(api.stage.taps, api.stage.sqs)
        assert api("PUT", "/v1/applications/billing").status == 200
        api.stage.act_for_real(replace(there.outbound, settings=settings, roles=roles, ecs=ecs))
        yield api


def test_these_tests_cover_every_type_but_http() -> None:
    assert KINDS.keys() == actions.KINDS.keys() - {"http"}


def shown(kind: str) -> dict[str, Any]:
    given, added = KINDS[kind]
    outcome = {} if kind in {"job", "queue"} else {"outcome": OUTCOME}
    return {**given, **outcome, **added, "retry": NO_RETRY, **NOTHING}


@of_each
def test_an_action_is_shown_with_all_its_effective_members(there: Api, kind: str) -> None:
    job = there.create(action=KINDS[kind][0])

    body = there.get(f"/v1/jobs/{job['id']}").json["action"]

    assert {**NOTHING, **body} == shown(kind)


@of_each
def test_sending_back_an_answer_changes_nothing(there: Api, kind: str) -> None:
    job = there.create(action={**KINDS[kind][0], "retry": {"type": "fixed", "maxRetries": 2}})
    read = there.get(f"/v1/jobs/{job['id']}")

    with there.unchanged():
        again = there("PUT", f"/v1/jobs/{job['id']}", read.json)

    assert again.status == 200, again.text
    assert again.revision == read.revision


@of_each
def test_an_error_action_may_be_of_any_type(there: Api, kind: str) -> None:
    job = there.create(errorAction=KINDS[kind][0])

    assert job["errorAction"]["type"] == kind
    assert there.get("/v1/jobs").json["items"][0]["errorAction"]["type"] == kind


@of_each
def test_a_job_may_change_from_one_type_to_another(there: Api, kind: str) -> None:
    job = there.create()

    changed = there("PUT", f"/v1/jobs/{job['id']}", {"action": KINDS[kind][0]})
    back = there("PUT", f"/v1/jobs/{job['id']}", {"action": {"type": "http", "url": "https://example.org/"}})

    assert (changed.status, back.status) == (200, 200)
    assert changed.json["action"]["type"] == kind


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "queue"])  # see test_workers.py
def test_a_run_performs_its_jobs_action_and_ends_as_one_ledger_row(acting: Api, kind: str) -> None:
    action = dict(KINDS[kind][0])
    if kind == "job":
        action["jobId"] = acting.create({"action": {"type": "event"}})["id"]
    job = acting.create({"action": action})
    run_id = acting("POST", f"/v1/jobs/{job['id']}/run", {}).json["runId"]

    acting.stage.run(5)
    if kind == "ecs":
        cast("VirtualEcs", acting.stage.world.outbound.ecs).ends(0)
        acting.stage.run(5)

    run = acting.get(f"/v1/runs/{run_id}").json
    assert (run["state"], run["reason"], run["attempt"]) == ("SUCCESS", "ON_TIME", 1), run
    assert run["message"] == ("exit code 0: Essential container in task exited" if kind == "ecs" else None)


def test_a_failed_run_shows_the_message_of_aws(acting: Api) -> None:
    job = acting.create({"action": {**QUEUE, "targetArn": arn("sqs", "nowhere")}})
    run_id = acting("POST", f"/v1/jobs/{job['id']}/run", {}).json["runId"]

    acting.stage.run(5)

    run = acting.get(f"/v1/runs/{run_id}").json
    assert (run["state"], run["reason"], run["httpStatus"]) == ("REQUEST_ERROR", "HTTP_STATUS", 400)
    assert "NonExistentQueue" in run["message"]


def test_a_run_started_by_another_job_names_its_parent_run(acting: Api) -> None:
    child = acting.create({"action": {"type": "event"}})["id"]
    parent = acting.create({"action": {"type": "job", "jobId": child}})["id"]
    run_id = acting("POST", f"/v1/jobs/{parent}/run", {}).json["runId"]

    acting.stage.run(5)

    started = acting.get(f"/v1/runs/{run_id}").json["answer"]
    run = acting.get(f"/v1/runs/{started}").json
    assert (run["jobId"], run["kind"], run["parentRunId"]) == (child, "manual", run_id)


def test_the_queue_gets_the_payload_of_the_job_or_of_the_schedule_instead(acting: Api) -> None:
    job = acting.create(
        {
            "action": {**QUEUE, "payload": {"n": 1}},
            "schedules": [{"every": "PT60S", "align": "clock", "payload": {"n": 2}}],
        }
    )
    acting("POST", f"/v1/jobs/{job['id']}/run", {})

    acting.stage.run(70)

    url = client("sqs").get_queue_url(QueueName="orders")["QueueUrl"]
    messages = client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert sorted(json.loads(message["Body"])["n"] for message in messages) == [1, 2]


def test_a_patch_may_remove_members_that_only_the_former_type_needs(there: Api) -> None:
    """The description allows it too: every exchange of these tests is held against it."""
    created = there.create()
    event = {**dict.fromkeys(created["action"]), "type": "event", "detailType": "due"}

    changed = there("PATCH", f"/v1/jobs/{created['id']}", {"action": event})

    assert changed.status == 200
    assert changed.json["action"]["type"] == "event"


@pytest.mark.parametrize("kind", ["events", "lambda", "states"])
def test_a_schedules_payload_must_also_fit_the_action(there: Api, kind: str) -> None:
    body = {"action": {**KINDS[kind][0], "body": "text"}}

    refused = there("POST", "/v1/jobs", body)

    assert (refused.status, refused.fields) == (422, ["action.body"])


def test_a_schedule_of_a_job_that_runs_another_takes_no_payload(there: Api) -> None:
    refused = there(
        "POST", "/v1/jobs", {"action": KINDS["job"][0], "schedules": [{"cron": "0 3 * * *", "payload": {"n": 1}}]}
    )

    assert (refused.status, refused.fields) == (422, ["schedules[0].payload"])


@pytest.mark.parametrize("kind", ["sqs", "sns", "events", "lambda", "states"])
def test_a_stack_without_target_roles_refuses_such_a_job_and_names_the_parameter(kind: str) -> None:
    with made(guarded=GuardSettings()) as api, api.unchanged():
        refused = api("POST", "/v1/jobs", {"action": KINDS[kind][0]})

    assert (refused.status, refused.fields) == (422, ["action.roleArn"])
    assert "parameter TargetRoleArns" in refused.text


def test_a_patch_of_one_member_keeps_the_others(there: Api) -> None:
    job = there.create(action={**KINDS["sns"][0], "subject": "a", "payload": {"n": 1}})

    changed = there("PATCH", f"/v1/jobs/{job['id']}", {"action": {"subject": None, "outcome": {"onAccepted": "wait"}}})

    assert changed.status == 200, changed.text
    assert changed.json["action"] == {
        **shown("sns"),
        "payload": {"n": 1},
        "outcome": {**OUTCOME, "onAccepted": "wait"},
    }


def test_a_collection_redirects_azure_queues_without_a_change_to_the_jobs(acting: Api) -> None:
    redirect = {"targetArn": arn("sqs", "orders"), "roleArn": ROLE, "format": "raw"}
    made = acting("POST", "/v1/collections", {"name": "moved", "redirects": {"Acme/orders": redirect}})
    job = acting.create({"collection": "moved", "action": {**KINDS["azure_storage_queue"][0], "body": "<a/>"}})
    run_id = acting("POST", f"/v1/jobs/{job['id']}/run", {}).json["runId"]

    acting.stage.run(5)

    url = client("sqs").get_queue_url(QueueName="orders")["QueueUrl"]
    (message,) = client("sqs").receive_message(QueueUrl=url)["Messages"]
    run = acting.get(f"/v1/runs/{run_id}").json
    assert (made.status, made.json["redirects"]) == (201, {"acme/orders": redirect})
    assert (run["state"], run["answer"], message["Body"]) == ("SUCCESS", message["MessageId"], "<a/>")


def test_a_redirect_that_the_stack_forbids_is_refused_by_its_path(there: Api) -> None:
    redirect = {"targetArn": arn("sqs", "orders"), "roleArn": ROLE.replace("jobs", "others")}

    refused = there("POST", "/v1/collections", {"name": "moved", "redirects": {"acme/orders": redirect}})

    assert (refused.status, refused.fields) == (422, ["redirects.acme/orders.roleArn"])
