"""Guards of tasks on ECS: who may run which, where, as whom, and how their end is heard."""

from __future__ import annotations

import json

import pytest

from tests.support.ecs import passed_on
from tests.template.cloudformation import of_type
from tests.template.test_parameters import PARAMETERS, _allows
from tests.template.test_permissions import GRANTED, _listed, _statements
from tests.template.test_queues import TLS_ONLY

ACCOUNT = "arn:aws:ecs:eu-central-1:123456789012"
CLUSTER = f"{ACCOUNT}:cluster/jobs"
DEFINITIONS = f"{ACCOUNT}:task-definition/report:*,{ACCOUNT}:task-definition/fixed:7"
ROLES = "arn:aws:iam::123456789012:role/a,arn:aws:iam::123456789012:role/b"
SUBNETS = "subnet-0a1b2c3d,subnet-0123456789abcdef0"
RULES = ("TaskBegunRule", "TaskEndedRule")
EXECUTORS = {"ExecutorRole", "ExecutorSlowRole"}


@pytest.fixture(scope="module")
def tasks(deployed):
    return deployed(TaskCluster="jobs", TaskDefinitionArns=DEFINITIONS, TaskNetwork=SUBNETS, TaskRoleArns=ROLES)


def _of(stack, action):
    """Returns role -> its statement of this action."""
    return {
        role: statement
        for role in GRANTED
        for statement in _statements(stack, role)
        if action in _listed(statement["Action"])
    }


def test_without_the_parameters_nobody_may_run_a_task_or_listen_for_its_events(stack, raw):
    assert [_of(stack, action) for action in ("ecs:RunTask", "ecs:StopTask", "iam:PassRole")] == [{}, {}, {}]
    assert {raw["Resources"][name]["Condition"] for name in RULES} == {"HasTasks"}


def test_executors_run_only_the_given_definitions_in_the_given_cluster(tasks):
    granted = _of(tasks, "ecs:RunTask")

    assert granted.keys() == EXECUTORS
    for statement in granted.values():
        assert statement == {
            "Sid": "RunTasks",
            "Effect": "Allow",
            "Action": "ecs:RunTask",
            "Resource": {"Fn::Split": [",", DEFINITIONS]},
            "Condition": {"ArnEquals": {"ecs:cluster": CLUSTER}},
        }


def test_executors_stop_only_tasks_of_that_cluster(tasks):
    granted = _of(tasks, "ecs:StopTask")

    assert granted.keys() == EXECUTORS
    for statement in granted.values():
        assert statement == {
            "Sid": "StopTasks",
            "Effect": "Allow",
            "Action": "ecs:StopTask",
            "Resource": f"{ACCOUNT}:task/jobs/*",
            "Condition": {"ArnEquals": {"ecs:cluster": CLUSTER}},
        }


def test_executors_pass_the_given_roles_only_to_tasks(tasks, deployed):
    granted = _of(tasks, "iam:PassRole")

    assert granted.keys() == EXECUTORS
    for statement in granted.values():
        assert statement["Resource"] == {"Fn::Split": [",", ROLES]}
        assert statement["Condition"] == {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
    without = deployed(TaskCluster="jobs", TaskDefinitionArns=DEFINITIONS, TaskNetwork=SUBNETS)
    assert _of(without, "iam:PassRole") == {}


def test_roles_alone_grant_no_right(deployed):
    assert _of(deployed(TaskRoleArns=ROLES), "iam:PassRole") == {}


def test_no_function_has_any_other_right_on_ecs(tasks):
    rights = {action for role in GRANTED for each in _statements(tasks, role) for action in _listed(each["Action"])}

    assert {action for action in rights if action.startswith("ecs:")} == {"ecs:RunTask", "ecs:StopTask"}


EVENT = {
    "source": "aws.ecs",
    "detail-type": "ECS Task State Change",
    "detail": {
        "clusterArn": CLUSTER,
        "lastStatus": "STOPPED",
        "startedBy": "sweephand/acme/1/x/y",
        "taskArn": f"{ACCOUNT}:task/jobs/1",
        "stoppedReason": 'a "quoted" reason',
        "containers": [{"name": "main", "exitCode": 0}],
        "overrides": {"containerOverrides": [{"environment": [{"name": "A", "value": "canary"}]}]},
    },
}


def test_only_events_of_our_tasks_in_our_cluster_enter_the_run_queue(tasks):
    for name, status in zip(RULES, ("RUNNING", "STOPPED"), strict=True):
        rule = tasks["Resources"][name]["Properties"]
        assert rule["State"] == "ENABLED"
        assert "EventBusName" not in rule, "ECS tells it on the account's own bus"
        assert rule["EventPattern"] == {
            "source": ["aws.ecs"],
            "detail-type": ["ECS Task State Change"],
            "detail": {"clusterArn": [CLUSTER], "lastStatus": [status], "startedBy": [{"prefix": "sweephand/"}]},
        }


def test_only_the_required_parts_of_an_ecs_event_are_forwarded(tasks):
    (body,) = passed_on(EVENT)

    assert json.loads(body) == {
        name: EVENT["detail"][name] for name in ("startedBy", "lastStatus", "taskArn", "stoppedReason", "containers")
    }
    assert "canary" not in body


def test_undelivered_events_are_kept_as_evidence(tasks):
    for name in RULES:
        (target,) = tasks["Resources"][name]["Properties"]["Targets"]
        assert target["Arn"] == {"Fn::GetAtt": ["RunQueue", "Arn"]}
        assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": ["TickDeadLetterQueue", "Arn"]}}
        assert "RetryPolicy" not in target, "a day, as EventBridge does by itself: an end is worth it late too"


def test_only_these_rules_may_write_to_the_run_queue_without_a_role(tasks):
    policy = of_type(tasks, "AWS::SQS::QueuePolicy")["RunQueuePolicy"]
    kept = of_type(tasks, "AWS::SQS::QueuePolicy")["TickDeadLetterPolicy"]
    ours = [{"Fn::GetAtt": [name, "Arn"]} for name in RULES]

    assert policy["Queues"] == [{"Ref": "RunQueue"}]
    assert policy["PolicyDocument"]["Statement"] == [
        TLS_ONLY,
        {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": {"Fn::GetAtt": ["RunQueue", "Arn"]},
            "Condition": {"ArnEquals": {"aws:SourceArn": ours}},
        },
    ]
    (_, statement) = kept["PolicyDocument"]["Statement"]
    assert statement["Condition"]["ArnEquals"]["aws:SourceArn"][3:] == ours


def test_a_cluster_without_definitions_or_subnets_is_refused_on_deployment(raw):
    rule = raw["Rules"]["TasksNeedDefinitionsAndSubnets"]

    assert rule["RuleCondition"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "TaskCluster"}, ""]}]}
    assert [each["Assert"] for each in rule["Assertions"]] == [
        {"Fn::Not": [{"Fn::Equals": [{"Ref": name}, ""]}]} for name in ("TaskDefinitionArns", "TaskNetwork")
    ]


def test_definitions_a_network_or_roles_without_a_cluster_are_refused_on_deployment(raw):
    rule = raw["Rules"]["DefinitionsNetworkAndRolesNeedTasks"]
    others = sorted(name for name in raw["Parameters"] if name.startswith("Task") and name != "TaskCluster")

    assert rule["RuleCondition"] == {"Fn::Equals": [{"Ref": "TaskCluster"}, ""]}
    (assertion,) = rule["Assertions"]
    refused = [each["Fn::Equals"] for each in assertion["Assert"]["Fn::And"]]
    assert sorted((named["Ref"], value) for named, value in refused) == [(name, "") for name in others]


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("TaskCluster", "jobs-1_a", True),
        ("TaskCluster", "a" * 101, False),
        ("TaskCluster", f"{CLUSTER}", False),
        ("TaskDefinitionArns", DEFINITIONS, True),
        ("TaskDefinitionArns", f"{ACCOUNT}:task-definition/report", False),
        ("TaskDefinitionArns", f"{ACCOUNT}:task-definition/*", False),
        ("TaskDefinitionArns", f"{ACCOUNT}:task-definition/*:*", False),
        ("TaskDefinitionArns", f"{DEFINITIONS},", False),
        ("TaskNetwork", SUBNETS, True),
        ("TaskNetwork", f"{SUBNETS},sg-0a1b2c3d,sg-4e5f6a7b,public", True),
        ("TaskNetwork", f"{SUBNETS},public", True),
        ("TaskNetwork", "subnet-xyz", False),
        ("TaskNetwork", "sg-0a1b2c3d", False),
        ("TaskNetwork", f"{SUBNETS},default", False),
        ("TaskRoleArns", ROLES, True),
        ("TaskRoleArns", "arn:aws:iam::123456789012:role/*", False),
    ],
)
def test_a_task_parameter_accepts_only_its_own_kind_of_value(name, value, allowed):
    assert _allows(PARAMETERS[name], value) is allowed
