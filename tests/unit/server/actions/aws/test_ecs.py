"""Tasks on ECS: what is asked of RunTask, what its answers mean, and what is refused when a job is made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore import exceptions
from botocore.session import get_session
from moto import mock_aws

from sweephand.base.errors import InvalidRequest, Unavailable
from sweephand.base.sources import SystemClock
from sweephand.domain.job import ActionSpec, Payload
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.domain.runs import ecs_task
from sweephand.server import actions
from sweephand.server.actions.aws.ecs import stop
from sweephand.server.actions.call import Call
from sweephand.server.actions.run_headers import traceparent
from sweephand.server.security.guard import GuardSettings, Outbound
from tests.support.ecs import ACTION, CLUSTER, GUARD, ROLE, TASKS, VirtualEcs, outbound, refusal

SCHEDULE, RUN = "0190163d-8694-739b-aea5-966c26f8ad91", "0190163e-8694-839b-aea5-966c26f8ad92"
CALL = Call(
    run_id=f"{SCHEDULE}_{RUN}",
    job_id="0190163d-8694-739b-aea5-966c26f8ad90",
    schedule_id=SCHEDULE,
    tenant="acme",
    planned_at=datetime(2027, 3, 1, 12, 0, tzinfo=UTC),
    attempt=2,
    deadline_s=15.0,
    clock=SystemClock(),
    callback_url="https://sweephand.example/v1/runs/x/result",
)
FULL = {
    **ACTION,
    "command": ["report", "--all"],
    "environment": {"PASSWORD": "canary-of-a-task", "EMPTY": ""},
    "roleArn": ROLE,
    "cpuUnits": 1024,
    "memoryMiB": 2048,
    "diskGiB": 40,
}


def drafted(fields: Any, stored: ActionSpec | None = None, guard: GuardSettings = GUARD) -> actions.ActionDraft:
    return actions.draft(fields, field="action", guard=guard, stored=stored)


def performed(fields: Any = ACTION, ecs: VirtualEcs | None = None, call: Call = CALL, **secrets: str) -> Outcome:
    draft = drafted(fields)
    stored = json.loads(json.dumps(draft.params))
    secrets = {**draft.secrets, **{f"environment.{name}": value for name, value in secrets.items()}}
    return actions.perform("ecs", stored, replace(call, secrets=secrets), outbound(ecs or VirtualEcs()))


def refused(fields: Any, **more: Any) -> tuple[str | None, str]:
    with pytest.raises(InvalidRequest) as wrong:
        drafted(fields, **more)
    return wrong.value.field, wrong.value.reason


# ---- What is asked ---------------------------------------------------------------------------------------------------


@pytest.mark.action("ecs", "own", "wait")
def test_a_task_starts_on_fargate_in_the_network_of_the_stack_and_the_run_waits_for_it() -> None:
    ecs = VirtualEcs()

    outcome = performed(FULL, ecs, replace(CALL, payload='{"n":1}', payload_is_json=True))

    ((arn, request),) = ecs.begun.items()
    assert (outcome.verdict, outcome.task, outcome.answer) == (Verdict.ACCEPTED, arn, arn)
    overrides = request.pop("overrides")
    (container,) = overrides.pop("containerOverrides")
    assert request == {
        "cluster": CLUSTER,
        "taskDefinition": "report",
        "count": 1,
        "launchType": "FARGATE",
        "networkConfiguration": {
            "awsvpcConfiguration": {
                "subnets": list(TASKS.subnets),
                "securityGroups": list(TASKS.security_groups),
                "assignPublicIp": "DISABLED",
            }
        },
        "startedBy": request["startedBy"],
        "clientToken": request["clientToken"],
    }
    assert overrides == {"taskRoleArn": ROLE, "cpu": "1024", "memory": "2048", "ephemeralStorage": {"sizeInGiB": 40}}
    assert (container["name"], container["command"]) == ("main", ["report", "--all"])
    assert {each["name"]: each["value"] for each in container["environment"]} == {
        "SWEEPHAND_JOB_ID": CALL.job_id,
        "SWEEPHAND_SCHEDULE_ID": SCHEDULE,
        "SWEEPHAND_RUN_ID": CALL.run_id,
        "SWEEPHAND_PLANNED_AT": "2027-03-01T12:00:00Z",
        "SWEEPHAND_ATTEMPT": "2",
        "SWEEPHAND_CALLBACK_URL": CALL.callback_url,
        "SWEEPHAND_HOP": "1",
        "TRACEPARENT": traceparent(CALL),
        "SWEEPHAND_PAYLOAD": '{"n":1}',
        "PASSWORD": "canary-of-a-task",
        "EMPTY": "",
    }


def test_a_minimal_job_uses_the_defaults_of_the_task_definition() -> None:
    ecs = VirtualEcs()

    performed(ACTION, ecs)

    ((_, request),) = ecs.begun.items()
    assert request["overrides"].keys() == {"containerOverrides"}
    assert request["overrides"]["containerOverrides"][0].keys() == {"name", "environment"}


def test_a_task_can_get_a_public_address_and_the_networks_default_group() -> None:
    ecs = VirtualEcs()
    tasks = replace(TASKS, security_groups=(), public_ip=True)

    actions.perform("ecs", drafted(ACTION).params, CALL, Outbound(GuardSettings(tasks=tasks), ecs=ecs))

    ((_, request),) = ecs.begun.items()
    network = request["networkConfiguration"]["awsvpcConfiguration"]
    assert network == {"subnets": list(TASKS.subnets), "assignPublicIp": "ENABLED"}


def test_the_mark_of_a_task_names_its_run_within_what_ecs_allows() -> None:
    tenant = "t" * 64

    told = ecs_task.mark(tenant, CALL.run_id, 50)

    assert ecs_task.read_mark(told) == ecs_task.Marked(tenant, SCHEDULE, RUN, 50)
    assert len(told) <= 128
    assert set(told) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-/_")


@pytest.mark.parametrize("mark", [None, 5, "", "ecs-svc/123", "sweephand/acme/1/short/short", "sweephand/../1/x/y"])
def test_the_mark_of_a_foreign_task_names_no_run(mark: object) -> None:
    assert ecs_task.read_mark(mark) is None


def test_each_attempt_has_one_token_of_its_own() -> None:
    tokens = {ecs_task.client_token(*of) for of in [("a", "r", 1), ("a", "r", 2), ("b", "r", 1), ("a", "s", 1)]}

    assert len(tokens) == 4
    assert ecs_task.client_token("a", "r", 1) in tokens
    assert all(len(token) == 64 and token.isalnum() for token in tokens)


def test_a_repeated_attempt_has_one_task() -> None:
    ecs = VirtualEcs()

    first, second = performed(ACTION, ecs), performed(ACTION, ecs)

    assert (len(ecs.begun), first) == (1, second)


def test_an_attempt_repeated_after_a_change_of_its_job_waits_for_the_existing_task() -> None:
    ecs = VirtualEcs()
    first = performed(ACTION, ecs)

    second = performed({**ACTION, "command": ["other"]}, ecs)

    assert (len(ecs.begun), second) == (1, first)


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Makes moto's ECS, with a client that checks requests against botocore's own model of it."""
    with mock_aws():
        session = get_session()
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "eu-central-1"}
        client = session.create_client("ecs", **keys)
        ec2 = session.create_client("ec2", **keys)
        network = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        ec2.modify_vpc_attribute(VpcId=network, EnableDnsHostnames={"Value": True})
        subnet = ec2.create_subnet(VpcId=network, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
        group = ec2.create_security_group(VpcId=network, GroupName="jobs", Description="d")["GroupId"]
        client.create_cluster(clusterName=CLUSTER)
        client.register_task_definition(
            family="report",
            requiresCompatibilities=["FARGATE"],
            networkMode="awsvpc",
            cpu="256",
            memory="512",
            # moto wants the container to say how much it takes.
            containerDefinitions=[{"name": "main", "image": "busybox", "memory": 256}],
        )
        tasks = replace(TASKS, subnets=(subnet,), security_groups=(group,))
        yield client, Outbound(GuardSettings(tasks=tasks), ecs=lambda _: client)


def test_the_requests_match_botocores_model_of_ecs(cluster: Any) -> None:
    client, there = cluster
    draft = drafted(FULL)

    outcome = actions.perform("ecs", draft.params, replace(CALL, secrets=draft.secrets), there)

    (found,) = client.describe_tasks(cluster=CLUSTER, tasks=[outcome.task])["tasks"]
    assert found["startedBy"] == ecs_task.mark("acme", CALL.run_id, 2)
    assert client.meta.service_model.operation_model("RunTask").idempotent_members == ["clientToken"]


def test_a_running_task_is_stopped_and_a_missing_one_delays_nothing(cluster: Any) -> None:
    client, there = cluster
    outcome = actions.perform("ecs", drafted(ACTION).params, CALL, there)

    assert outcome.task is not None
    assert stop(outcome.task, "because", there) is None

    (found,) = client.describe_tasks(cluster=CLUSTER, tasks=[outcome.task])["tasks"]
    assert (found["desiredStatus"], found["stoppedReason"]) == ("STOPPED", "because")
    assert stop(outcome.task[:-1] + "x", "because", outbound(VirtualEcs())) is None


# ---- What comes of it ------------------------------------------------------------------------------------------------


class Failing(VirtualEcs):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        raise self.error

    _stop = _run


class Refusing(VirtualEcs):
    def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"tasks": [], "failures": [{"reason": "RESOURCE:MEMORY", "detail": "no room"}, {"reason": "AGENT"}]}


class Silent(VirtualEcs):
    def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"tasks": [], "failures": []}


def test_a_task_without_capacity_is_a_failed_attempt_that_is_retried() -> None:
    outcome = performed(ecs=Refusing())

    assert (outcome.verdict, outcome.reason, outcome.retryable) == (Verdict.FAILED, Reason.TARGET_ERROR, True)
    assert outcome.message == "RESOURCE:MEMORY: no room; AGENT"
    assert performed(ecs=Silent()).message == "ECS started no task and gave no reason"


@pytest.mark.parametrize(
    ("code", "status", "retryable"),
    [
        ("AccessDeniedException", 400, False),
        ("ClusterNotFoundException", 400, False),
        ("ClientException", 400, False),
        ("ThrottlingException", 400, True),
        ("ServerException", 500, True),
    ],
)
@pytest.mark.action("ecs", "own", "failure")
def test_a_refusal_by_ecs_is_reported_by_code_and_retried_if_it_is_transient(
    code: str, status: int, retryable: bool
) -> None:
    outcome = performed(ecs=Failing(refusal(code, status)))

    assert (outcome.verdict, outcome.reason, outcome.http_status) == (Verdict.FAILED, Reason.HTTP_STATUS, status)
    assert (outcome.message, outcome.retryable) == (f"{code}: because", retryable)


@pytest.mark.parametrize(
    "error", [exceptions.ReadTimeoutError(endpoint_url="u"), exceptions.ConnectionClosedError(endpoint_url="u")]
)
@pytest.mark.action("ecs", "own", "silence")
def test_a_run_waits_for_a_possible_task_if_ecs_does_not_answer(error: Exception) -> None:
    outcome = performed(ecs=Failing(error))

    assert (outcome.verdict, outcome.message) == (Verdict.SILENT, "AWS did not answer in time")


@pytest.mark.action("ecs", "own", "unreachable")
def test_an_attempt_without_a_task_fails_if_ecs_cannot_be_reached() -> None:
    outcome = performed(ecs=Failing(exceptions.EndpointConnectionError(endpoint_url="u")))

    assert (outcome.verdict, outcome.reason, outcome.retryable) == (Verdict.FAILED, Reason.CONNECT, True)


def test_a_refusal_that_quotes_a_variable_is_kept_without_its_value() -> None:
    error = refusal("InvalidParameterException")
    error.response["Error"]["Message"] = "not canary-of-a-task"

    outcome = performed(FULL, Failing(error))

    assert outcome.message == "InvalidParameterException: not ***"


def test_a_call_waits_no_longer_than_the_job_or_the_executor_allows() -> None:
    ecs = VirtualEcs()

    performed({**ACTION, "outcome": {"answerTimeoutSeconds": 5}}, ecs)
    performed({**ACTION, "outcome": {"answerTimeoutSeconds": 60}}, ecs)

    assert ecs.limits == [5, 15.0]


def test_a_variable_that_cannot_be_decrypted_starts_no_task() -> None:
    ecs = VirtualEcs()
    draft = drafted(FULL)

    outcome = actions.perform("ecs", draft.params, CALL, outbound(ecs))

    assert (outcome.verdict, outcome.reason, ecs.asked) == (Verdict.FAILED, Reason.GUARD, [])


def test_a_payload_too_large_for_a_task_is_a_bad_payload() -> None:
    ecs = VirtualEcs()
    values = {f"V{n}": "***" for n in range(8)}
    before = ActionSpec("ecs", drafted({**ACTION, "environment": dict.fromkeys(values, "x")}).params, {})
    draft = drafted({**ACTION, "environment": values}, before)
    call = replace(CALL, secrets={f"environment.{name}": "x" * 1_024 for name in values})

    outcome = actions.perform("ecs", draft.params, call, outbound(ecs))

    assert (outcome.reason, outcome.retryable, ecs.asked) == (Reason.BAD_PAYLOAD, False, [])


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        (replace(TASKS, cluster=""), "TaskCluster"),
        (replace(TASKS, definitions=frozenset()), "TaskDefinitionArns"),
        (replace(TASKS, definitions=frozenset({"other:*"})), "TaskDefinitionArns"),
        (replace(TASKS, subnets=()), "TaskNetwork"),
        (replace(TASKS, roles=frozenset()), "TaskRoleArns"),
    ],
)
def test_a_task_that_the_stack_no_longer_allows_is_not_run(settings: Any, parameter: str) -> None:
    ecs = VirtualEcs()
    draft = drafted(FULL)

    outcome = actions.perform(
        "ecs", draft.params, replace(CALL, secrets=draft.secrets), Outbound(GuardSettings(tasks=settings), ecs=ecs)
    )

    assert (outcome.reason, outcome.retryable, ecs.asked) == (Reason.GUARD, False, [])
    assert parameter in str(outcome.message)
    with pytest.raises(InvalidRequest, match=parameter):
        drafted(FULL, guard=GuardSettings(tasks=settings))


def test_a_function_that_cannot_run_tasks_says_so() -> None:
    outcome = actions.perform("ecs", drafted(ACTION).params, CALL, Outbound(GUARD))

    assert (outcome.reason, outcome.message) == (Reason.GUARD, "this function runs no tasks")


@pytest.mark.parametrize(
    "error",
    [refusal("ThrottlingException"), refusal("ServerException", 500), exceptions.ReadTimeoutError(endpoint_url="u")],
)
def test_a_task_that_cannot_be_stopped_now_is_stopped_later(error: Exception) -> None:
    with pytest.raises(Unavailable):
        stop("arn:task", "because", outbound(Failing(error)))


def test_a_stop_that_is_forbidden_is_reported_by_its_code() -> None:
    refusing = outbound(Failing(refusal("AccessDeniedException")))
    assert stop("arn:task", "because", refusing) == "AccessDeniedException"
    assert stop("arn:task", "because", Outbound(GUARD)) == "this function runs no tasks"


# ---- What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"taskDefinition": None}, "taskDefinition", "is required"),
        ({"taskDefinition": "re/port"}, "taskDefinition", "must be the family of a task definition"),
        ({"taskDefinition": "report:0"}, "taskDefinition", "must be the family of a task definition"),
        ({"taskDefinition": "other"}, "taskDefinition", "(parameter TaskDefinitionArns)"),
        ({"taskDefinition": "fixed:8"}, "taskDefinition", "(parameter TaskDefinitionArns)"),
        ({"taskDefinition": "fixed"}, "taskDefinition", "(parameter TaskDefinitionArns)"),
        ({"container": None}, "container", "is required"),
        ({"container": "a b"}, "container", "must have letters"),
        ({"command": "sh"}, "command", 'must be a list of strings, not "sh"'),
        ({"command": ["sh", 5]}, "command[1]", "must be a string, not a number"),
        ({"command": ["a\0b"]}, "command[0]", "contains the character NUL"),
        ({"environment": []}, "environment", "must be an object with at most 20 members"),
        ({"environment": {"A B": "x"}}, "environment.A B", "is not the name of a variable"),
        ({"environment": {"SWEEPHAND_RUN_ID": "x"}}, "environment.SWEEPHAND_RUN_ID", "is set by the service"),
        ({"environment": {"A": 5}}, "environment.A", "must be a string, not a number"),
        ({"environment": {"A": None}}, "environment.A", "must be a string, not null"),
        ({"environment": {"A": "x" * 1_025}}, "environment.A", "must have 0 to 1,024 characters, not 1,025"),
        ({"environment": {"A": "***"}}, "environment.A", "is required"),
        ({"environment": {f"V{n}": "x" * 800 for n in range(3)}}, "", "at most 2,304 bytes together"),
        ({"roleArn": "arn:aws:iam::123456789012:user/x"}, "roleArn", "must be the ARN of a role"),
        ({"roleArn": "arn:aws:iam::123456789012:role/other"}, "roleArn", "(parameter TaskRoleArns)"),
        ({"cpuUnits": 255}, "cpuUnits", "must be a whole number from 256 to 16,384"),
        ({"memoryMiB": "512"}, "memoryMiB", "must be a whole number"),
        ({"diskGiB": 20}, "diskGiB", "must be a whole number from 21 to 200"),
        ({"outcome": {"onAccepted": "success"}}, "outcome.onAccepted", "is not a known member"),
        ({"payload": "x" * 4_097}, "payload", "must have at most 4,096 bytes"),
        ({"body": "a\0b"}, "body", "contains the character NUL"),
        ({"targetArn": "x"}, "targetArn", "is not a known member"),
    ],
)
def test_a_field_is_refused_with_its_path_and_the_reason(fields: dict[str, Any], field: str, reason: str) -> None:
    found = refused({**ACTION, **fields})

    assert found[0] == (f"action.{field}" if field else "action")
    assert reason in found[1]


def test_a_task_job_cannot_be_created_without_the_parameters() -> None:
    assert refused(ACTION, guard=GuardSettings()) == (
        "action.taskDefinition",
        "this stack runs no tasks (parameter TaskCluster is empty)",
    )


def test_a_single_revision_or_all_revisions_can_be_allowed() -> None:
    assert drafted({**ACTION, "taskDefinition": "fixed:7"}).params["taskDefinition"] == "fixed:7"
    assert drafted({**ACTION, "taskDefinition": "report:12"}).params["taskDefinition"] == "report:12"


def test_a_stored_action_reads_back_unchanged_without_values_of_variables() -> None:
    draft = drafted(FULL)

    stored = json.loads(json.dumps(draft.params))

    assert draft.secrets == {"environment.PASSWORD": "canary-of-a-task", "environment.EMPTY": ""}
    assert stored == draft.params
    assert stored["environment"] == {"PASSWORD": "***", "EMPTY": "***"}
    again = drafted({**stored, "payload": None}, ActionSpec("ecs", stored, {}))
    assert (again.params, again.secrets) == (stored, {})
    assert again.kept == {"environment.PASSWORD", "environment.EMPTY"}


@pytest.mark.parametrize(
    "other",
    [
        {"taskDefinition": "report:2"},
        {"container": "sidecar"},
        {"command": ["env"]},
        {"roleArn": None},
    ],
)
def test_a_kept_variable_is_not_passed_to_other_code_or_another_role(other: dict[str, Any]) -> None:
    before = ActionSpec("ecs", drafted(FULL).params, {})
    wanted = {**FULL, "environment": {"PASSWORD": "***", "EMPTY": ""}, **other}

    found = refused(wanted, stored=before)

    assert found[0] == "action.environment.PASSWORD"
    assert "the task has changed" in found[1]


def test_a_kept_variable_survives_a_change_of_size_and_is_removed_when_omitted() -> None:
    before = ActionSpec("ecs", drafted(FULL).params, {})

    draft = drafted({**FULL, "environment": {"PASSWORD": "***"}, "memoryMiB": 4_096}, before)

    assert (draft.kept, draft.secrets) == ({"environment.PASSWORD"}, {})


def test_a_schedules_payload_has_the_same_limit_as_the_actions() -> None:
    params = drafted(ACTION).params

    actions.check_payload("ecs", params, Payload("{}", is_json=True), "payload")
    with pytest.raises(InvalidRequest, match="at most 4,096 bytes"):
        actions.check_payload("ecs", params, Payload('"' * 3_000, is_json=False), "payload")


def test_the_largest_allowed_job_fits_the_limits_of_ecs() -> None:
    fields = {
        **FULL,
        "container": "c" * 255,
        "command": ["x" * 1_000],
        "environment": {"A": "y" * 1_000, "B": "z" * 250},
        "body": "p" * 4_094,
    }
    call = replace(
        CALL,
        payload="p" * 4_094,
        callback_url=f"https://{'h' * 120}.example/v1/runs/{CALL.run_id}/result",
        callback_token="t" * 64,
    )

    outcome = performed(fields, VirtualEcs(), call)

    assert outcome.verdict is Verdict.ACCEPTED
