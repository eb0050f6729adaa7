"""Guards of what each function may do: exact actions on exact resources."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase

import pytest

from sweephand.server.security.key_service import CALLBACKS, SECRETS, context
from sweephand.server.store.tenants.callback_keys import OWNER
from tests.template.cloudformation import ROOT, of_type
from tests.template.test_functions import GROUPS, SUBNETS

READS = {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"}
WRITES = {"dynamodb:PutItem", "dynamodb:UpdateItem"}
READS_POINTERS = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"}
WRITES_LOG = {"logs:CreateLogStream", "logs:PutLogEvents"}

LISTS = "arn:aws:ssm:eu-central-1:123456789012:parameter/${Lists}"
APPLICATIONS = "arn:aws:sqs:eu-central-1:123456789012:sweephand-51af3dc0-da77-11e4-872e-1234567d-app-*"
SENDS = {"sqs:SendMessage"}

# Role -> resource -> actions. A new line here is a new right: say in the template what it is for.
GRANTED = {
    "ApiRole": {
        "ApiLogs": WRITES_LOG,
        LISTS: {"ssm:GetParameter"},
        "Table": READS | WRITES | {"dynamodb:DeleteItem"},
        "${Table.Arn}/index/attention": {"dynamodb:Query"},
        "${Table.Arn}/index/next-run": {"dynamodb:Query"},
        "RunQueue": {"sqs:SendMessage", "sqs:GetQueueAttributes"},
        "SlowQueue": {"sqs:SendMessage", "sqs:GetQueueAttributes"},
        "OperationsQueue": {"sqs:SendMessage", "sqs:GetQueueAttributes"},
        "Key": {"kms:Encrypt", "kms:Decrypt"},
        "IdentityKey": {"kms:GetPublicKey"},
        "StackSecret": {"secretsmanager:GetSecretValue"},
        "${FilesBucket.Arn}/*": {"s3:GetObject"},
        "EventBus": {"events:PutEvents"},
        APPLICATIONS: SENDS
        | {"sqs:CreateQueue", "sqs:DeleteQueue", "sqs:GetQueueAttributes", "sqs:SetQueueAttributes", "sqs:TagQueue"},
    },
    "ConsoleRole": {"ConsoleLogs": WRITES_LOG},
    "SapApiRole": {
        "SapApiLogs": WRITES_LOG,
        LISTS: {"ssm:GetParameter"},
        "Table": READS | WRITES | {"dynamodb:DeleteItem"},
        "RunQueue": {"sqs:SendMessage"},
        "SlowQueue": {"sqs:SendMessage"},
        "Key": {"kms:Encrypt"},
        "StackSecret": {"secretsmanager:GetSecretValue"},
        "EventBus": {"events:PutEvents"},
    },
    "AzureApiRole": {
        "AzureApiLogs": WRITES_LOG,
        LISTS: {"ssm:GetParameter"},
        "Table": READS | WRITES | {"dynamodb:DeleteItem"},
        "RunQueue": {"sqs:SendMessage"},
        "SlowQueue": {"sqs:SendMessage"},
        "OperationsQueue": {"sqs:SendMessage"},
        "Key": {"kms:Encrypt"},
        "StackSecret": {"secretsmanager:GetSecretValue"},
        "EventBus": {"events:PutEvents"},
    },
    "SweeperRole": {
        "SweeperLogs": WRITES_LOG,
        "Table": WRITES
        | {
            "dynamodb:BatchGetItem",
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:PartiQLUpdate",
            "dynamodb:Query",
        },
        "${Table.Arn}/index/next-run": {"dynamodb:Query"},
        "RunQueue": {"sqs:SendMessage"},
        "SlowQueue": {"sqs:SendMessage"},
        "OperationsQueue": {"sqs:SendMessage"},
        "TickDeadLetterQueue": {"sqs:SendMessage"},
        APPLICATIONS: SENDS,
    },
    "ExecutorRole": {
        "ExecutorLogs": WRITES_LOG,
        LISTS: {"ssm:GetParameter"},
        "Table": READS | WRITES | {"dynamodb:DeleteItem", "dynamodb:PartiQLUpdate"},
        "RunQueue": READS_POINTERS | {"sqs:SendMessage"},
        "SlowQueue": {"sqs:SendMessage"},
        "DeadLetterQueue": READS_POINTERS - {"sqs:GetQueueAttributes"},
        "TickDeadLetterQueue": {"sqs:SendMessage"},
        "ArchiveQueue": {"sqs:SendMessage"},
        "Key": {"kms:Decrypt", "kms:Encrypt"},
        "IdentityKey": {"kms:Sign"},
        "EventBus": {"events:PutEvents"},
        APPLICATIONS: SENDS | {"sqs:GetQueueAttributes"},
    },
    "ExecutorSlowRole": {
        "ExecutorSlowLogs": WRITES_LOG,
        LISTS: {"ssm:GetParameter"},
        "Table": READS | WRITES | {"dynamodb:DeleteItem", "dynamodb:PartiQLUpdate"},
        "RunQueue": {"sqs:SendMessage"},
        "SlowQueue": READS_POINTERS | {"sqs:SendMessage"},
        "Key": {"kms:Decrypt", "kms:Encrypt"},
        "IdentityKey": {"kms:Sign"},
        "EventBus": {"events:PutEvents"},
        APPLICATIONS: SENDS,
    },
    "AuditorRole": {
        "AuditorLogs": WRITES_LOG,
        "Table": READS | WRITES,
        "${Table.Arn}/index/catalogue": {"dynamodb:Query"},
        "${Table.Arn}/index/next-run": {"dynamodb:Query"},
        "RunQueue": {"sqs:SendMessage"},
        "SlowQueue": {"sqs:SendMessage"},
        "EventBus": {"events:PutEvents"},
        "TickDeadLetterQueue": {"sqs:SendMessage"},
        APPLICATIONS: SENDS,
    },
    "OperationsRole": {
        "OperationsLogs": WRITES_LOG,
        "Table": READS | WRITES | {"dynamodb:DeleteItem"},
        "RunQueue": {"sqs:SendMessage"},
        "SlowQueue": {"sqs:SendMessage"},
        "EventBus": {"events:PutEvents"},
        "FilesBucket": {"s3:ListBucket"},
        "${FilesBucket.Arn}/*": {"s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload", "s3:DeleteObject"},
        "OperationsQueue": READS_POINTERS | {"sqs:SendMessage"},
        APPLICATIONS: SENDS | {"sqs:DeleteQueue"},
    },
}
EVERYTHING_IN = {
    "${FilesBucket.Arn}/*": "the stack's own bucket: keys of files are not known beforehand",
    APPLICATIONS: "queues of applications, which workers register: each name begins with the id of this stack",
}
"""Resources with a star, each with its reason."""
ROLE_OF = {
    "ApiFunction": "ApiRole",
    "ConsoleFunction": "ConsoleRole",
    "SapApiFunction": "SapApiRole",
    "AzureApiFunction": "AzureApiRole",
    "SweeperFunction": "SweeperRole",
    "ExecutorFunction": "ExecutorRole",
    "ExecutorSlowFunction": "ExecutorSlowRole",
    "AuditorFunction": "AuditorRole",
    "OperationsFunction": "OperationsRole",
}


def test_each_function_has_its_own_role(stack):
    functions = of_type(stack, "AWS::Lambda::Function")

    assert {name: function["Role"]["Fn::GetAtt"][0] for name, function in functions.items()} == ROLE_OF
    assert sorted(of_type(stack, "AWS::IAM::Role")) == sorted(ROLE_OF.values())


@pytest.mark.parametrize("role", GRANTED)
def test_a_function_may_make_exactly_the_calls_in_its_code(stack, role):
    assert _granted(stack, role) == GRANTED[role]


@pytest.mark.parametrize(
    ("parameters", "has_key"),
    [
        ({}, True),
        ({"SapFacade": "off"}, False),
        ({"OutboundIdentity": "on"}, True),
        ({"OutboundIdentity": "on", "SapFacade": "off"}, True),
        ({"OutboundIdentity": "off"}, False),
        ({"OutboundIdentity": "off", "SapFacade": "off"}, False),
    ],
)
def test_the_executors_sign_with_the_stacks_key_and_the_api_publishes_its_public_half(deployed, parameters, has_key):
    stack = deployed(**parameters)

    rights = {role: _granted(stack, role).get("IdentityKey") for role in GRANTED}

    assert {role: actions for role, actions in rights.items() if actions} == (
        {"ApiRole": {"kms:GetPublicKey"}, "ExecutorRole": {"kms:Sign"}, "ExecutorSlowRole": {"kms:Sign"}}
        if has_key
        else {}
    )


@pytest.mark.parametrize("role", GRANTED)
def test_no_right_ends_in_a_wildcard(stack, role):
    for statement in _statements(stack, role):
        assert not [action for action in _listed(statement["Action"]) if "*" in action]


@pytest.mark.parametrize("role", GRANTED)
def test_no_right_applies_to_every_resource(stack, role):
    for statement in _statements(stack, role):
        resources = [_name(resource) for resource in _listed(statement["Resource"])]
        assert not [name for name in resources if "*" in name and name not in EVERYTHING_IN]


@pytest.mark.parametrize("role", GRANTED)
def test_no_role_includes_rights_defined_elsewhere_except_lambdas_own_to_join_subnets(stack, deployed, role):
    inside = deployed(VpcSubnets=SUBNETS, VpcSecurityGroups=GROUPS)

    assert "ManagedPolicyArns" not in stack["Resources"][role]["Properties"]
    assert inside["Resources"][role]["Properties"]["ManagedPolicyArns"] == [
        "arn:aws:iam::aws:policy/service-role/AWSLambdaENIManagementAccess"
    ]
    assert _granted(inside, role) == GRANTED[role]


BOUNDARY = "arn:aws:iam::123456789012:policy/teams/jobs-boundary"


@pytest.mark.parametrize("role", GRANTED)
def test_every_role_has_the_path_and_the_boundary_of_the_organisation(stack, deployed, role):
    bound = deployed(PermissionsBoundary=BOUNDARY, RolePath="/teams/jobs/")["Resources"][role]["Properties"]
    free = stack["Resources"][role]["Properties"]

    assert (bound["Path"], bound["PermissionsBoundary"]) == ("/teams/jobs/", BOUNDARY)
    assert (free["Path"], "PermissionsBoundary" in free) == ("/", False)


JOINS_SUBNETS = {
    *("ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DeleteNetworkInterface"),
    *("ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"),
}
"""The rights in Lambda's own policy that a role takes from elsewhere."""


def test_the_boundary_of_the_page_allows_all_that_the_roles_may_do(deployed):
    page = (ROOT / "docs" / "operate" / "enterprise.md").read_text()
    ((boundary,),) = [
        policy["Statement"]
        for text in re.findall(r"```json\n(\{.*?)```", page, re.DOTALL)
        if (policy := json.loads(text))
    ]
    everything = deployed(TargetRoleArns=TARGET_ROLES, TaskCluster="c", TaskDefinitionArns="d", TaskRoleArns="r")
    used = set().union(*(actions for role in GRANTED for actions in _granted(everything, role).values()))

    assert {"sts:AssumeRole", "ecs:RunTask", "iam:PassRole", "ssm:GetParameter"} <= used
    assert not [each for each in used | JOINS_SUBNETS if not any(fnmatchcase(each, may) for may in boundary["Action"])]
    idle = [may for may in boundary["Action"] if not may.startswith(("kms:", "ec2:"))]
    assert not [may for may in idle if not any(fnmatchcase(each, may) for each in used)]


def test_whoever_deploys_may_do_all_that_the_roles_parameters_need(raw):
    page = (ROOT / "docs" / "guide" / "operating.md").read_text()
    (policy,) = [
        json.loads(text) for text in re.findall(r"```json\n(\{.*?)```", page, re.DOTALL) if "iam:CreateRole" in text
    ]
    may = {action for statement in policy["Statement"] for action in _listed(statement["Action"])}
    needs = {
        "Policies": {"iam:PutRolePolicy", "iam:DeleteRolePolicy"},
        "ManagedPolicyArns": {"iam:AttachRolePolicy", "iam:DetachRolePolicy"},
        "PermissionsBoundary": {"iam:PutRolePermissionsBoundary", "iam:DeleteRolePermissionsBoundary"},
        "AssumeRolePolicyDocument": {"iam:UpdateAssumeRolePolicy"},
        "Path": {"iam:CreateRole"},
    }

    for role in GRANTED:
        assert raw["Resources"][role]["Properties"].keys() == needs.keys()
    assert set().union(*needs.values()) <= may


@pytest.mark.parametrize("role", GRANTED)
def test_every_right_is_used_and_says_what_it_is_for(stack, role):
    for statement in _statements(stack, role):
        assert statement["Effect"] == "Allow"
        assert statement["Sid"].isalnum()
        assert statement.keys().isdisjoint({"NotAction", "NotResource"})


@pytest.mark.parametrize("role", GRANTED)
def test_a_role_can_be_assumed_only_by_lambda(stack, role):
    assert stack["Resources"][role]["Properties"]["AssumeRolePolicyDocument"]["Statement"] == [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ]


@pytest.mark.parametrize("role", GRANTED)
def test_nobody_may_scan_the_table_or_change_the_table_itself(stack, role):
    actions = set().union(*_granted(stack, role).values())

    assert actions.isdisjoint(
        {"dynamodb:Scan", "dynamodb:DeleteTable", "dynamodb:UpdateTable", "dynamodb:PartiQLSelect"}
    )


TENANT_KEYS = {
    "StringEquals": {"kms:EncryptionContext:purpose": "secrets"},
    "ForAllValues:StringEquals": {"kms:EncryptionContextKeys": ["tenant", "purpose"]},
}
CALLBACK_KEY_ALONE = {
    "StringEquals": {"kms:EncryptionContext:tenant": "provider", "kms:EncryptionContext:purpose": "callbacks"}
}


def test_functions_that_seal_job_secrets_cannot_open_them_and_vice_versa(stack):
    rights = {role: _on_the_key(stack, role, lambda condition: condition == TENANT_KEYS) for role in GRANTED}

    assert rights == {
        "ApiRole": {"kms:Encrypt"},
        "ConsoleRole": set(),
        "SapApiRole": {"kms:Encrypt"},
        "AzureApiRole": {"kms:Encrypt"},
        "SweeperRole": set(),
        "ExecutorRole": {"kms:Decrypt"},
        "ExecutorSlowRole": {"kms:Decrypt"},
        "AuditorRole": set(),
        "OperationsRole": set(),
    }


def test_a_right_to_the_key_holds_for_one_purpose(stack):
    others = {
        role: _on_the_key(stack, role, lambda each: each not in (TENANT_KEYS, CALLBACK_KEY_ALONE)) for role in GRANTED
    }

    assert not any(others.values())


def test_the_callback_key_is_created_by_the_executors_and_also_opened_by_the_api(stack):
    rights = {role: _on_the_key(stack, role, lambda condition: condition == CALLBACK_KEY_ALONE) for role in GRANTED}

    assert {role: actions for role, actions in rights.items() if actions} == {
        "ApiRole": {"kms:Decrypt"},
        "ExecutorRole": {"kms:Encrypt"},
        "ExecutorSlowRole": {"kms:Encrypt"},
    }


@pytest.mark.parametrize(
    ("condition", "used"), [(TENANT_KEYS, context("acme", SECRETS)), (CALLBACK_KEY_ALONE, context(OWNER, CALLBACKS))]
)
def test_a_right_holds_in_the_context_that_the_code_uses(condition, used):
    wanted = {name.rpartition(":")[2]: value for name, value in condition["StringEquals"].items()}

    assert wanted.items() <= used.items()
    assert used.keys() <= set(TENANT_KEYS["ForAllValues:StringEquals"]["kms:EncryptionContextKeys"])


def test_the_functions_that_call_targets_cannot_read_the_stacks_secret(stack):
    readers = {role for role in GRANTED if "StackSecret" in _granted(stack, role)}
    told = {
        name
        for name, function in of_type(stack, "AWS::Lambda::Function").items()
        if "STACK_SECRET_ID" in function.get("Environment", {}).get("Variables", {})
    }

    assert readers == {"ApiRole", "SapApiRole", "AzureApiRole"}
    assert told == {"ApiFunction", "SapApiFunction", "AzureApiFunction"}


def _on_the_key(stack, role, chosen):
    return {
        action
        for statement in _statements(stack, role)
        if "Key" in [_name(resource) for resource in _listed(statement["Resource"])]
        and chosen(statement.get("Condition"))
        for action in _listed(statement["Action"])
    }


TARGET_ROLES = "arn:aws:iam::111122223333:role/a,arn:aws:iam::*:role/sweephand-target-*"


def test_executors_assume_only_the_roles_of_the_parameter(deployed):
    stack = deployed(TargetRoleArns=TARGET_ROLES)

    assuming = {
        role: [each["Resource"] for each in _statements(stack, role) if "sts:AssumeRole" in _listed(each["Action"])]
        for role in GRANTED
    }

    always_for_a_tenant = [
        each["Condition"]
        for role in GRANTED
        for each in _statements(stack, role)
        if "sts:AssumeRole" in _listed(each["Action"])
    ]
    assert always_for_a_tenant == [{"Null": {"sts:ExternalId": "false"}}] * 2
    those = [{"Fn::Split": [",", TARGET_ROLES]}]
    assert {role: found for role, found in assuming.items() if found} == {
        "ExecutorRole": those,
        "ExecutorSlowRole": those,
    }


def test_only_sweeper_auditor_and_health_read_the_due_index(stack):
    readers = {role for role in GRANTED if "${Table.Arn}/index/next-run" in _granted(stack, role)}

    assert readers == {"SweeperRole", "AuditorRole", "ApiRole"}


def test_the_key_has_no_policy_that_admits_others(stack):
    assert "KeyPolicy" not in stack["Resources"]["Key"]["Properties"]


def _statements(stack, role):
    policies = stack["Resources"][role]["Properties"]["Policies"]
    return [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]


def _granted(stack, role):
    granted = {}
    for statement in _statements(stack, role):
        for resource in _listed(statement["Resource"]):
            granted.setdefault(_name(resource), set()).update(_listed(statement["Action"]))
    return granted


def _name(resource):
    if isinstance(resource, str):
        return resource
    ((_, target),) = resource.items()
    return target if isinstance(target, str) else target[0]


def _listed(value):
    return value if isinstance(value, list) else [value]
