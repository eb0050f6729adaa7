"""Stacks with many combinations of parameters, deployed over one another: each has exactly its own parts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

import pytest

from sweephand.base.sources import SystemClock
from sweephand.local.aws.deploy import Stack
from sweephand.local.aws.emulator import Emulator
from sweephand.local.folder import StateFolder
from tests.local_stack.runtime_emulator import free_port
from tests.template import cloudformation
from tests.template.cloudformation import ROOT, of_type
from tests.template.combinations import pairwise
from tests.template.test_api import ANY, APART, ROUTES
from tests.template.test_functions import GROUPS, KEY, SUBNETS
from tests.template.test_permissions import BOUNDARY, TARGET_ROLES

pytestmark = [pytest.mark.emulator, pytest.mark.extended]

TASKS = {
    "TaskCluster": "batch",
    "TaskDefinitionArns": "arn:aws:ecs:us-east-1:000000000000:task-definition/report:*",
    "TaskNetwork": "subnet-0a1b2c3d,public",
}
TASK_ROLES = {"TaskRoleArns": "arn:aws:iam::000000000000:role/task"}
TOPIC = "arn:aws:sns:us-east-1:000000000000:night-watch"
ISSUER = "https://issuer.example;audience=api"
SIGN_IN = {"OidcIssuers": ISSUER, "ConsoleSignIn": "https://a.example/authorize,https://a.example/token,console"}
FACTORS: list[list[dict[str, str]]] = [
    [{"SapFacade": "on"}, {"SapFacade": "off"}],
    [{"AzureFacade": "on"}, {"AzureFacade": "off"}],
    [{"OutboundIdentity": each} for each in ("auto", "on", "off")],
    [{}, TASKS, TASKS | TASK_ROLES],
    [{}, {"TargetRoleArns": TARGET_ROLES}],
    [{}, {"KmsKeyId": KEY}],
    [{}, {"VpcSubnets": SUBNETS, "VpcSecurityGroups": GROUPS}],
    [{}, {"PermissionsBoundary": BOUNDARY, "RolePath": "/teams/jobs/"}],
    [{}, {"OidcIssuers": ISSUER}, SIGN_IN],
    [{"SweepWorkers": str(each)} for each in range(1, 6)],
    [{}, {"ReservedConcurrency": "20,6,60"}],
    [{}, {"WarmUnits": "12000"}],
    [{}, {"Alarms": "off"}, {"AlarmActionArns": TOPIC}],
    [{}, {"Dashboard": "off"}],
    [{}, {"PublicBaseUrl": "https://jobs.example.org"}],
    [{}, {"LogLevel": "DEBUG"}],
    [{}, {"Architecture": "arm64"}],
    [{}, {"MetricsOf": "acme/default,acme/app:billing"}],
]
ROWS = [{}, *pairwise(FACTORS)]


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    folder = StateFolder(tmp_path_factory.mktemp("emulator"))
    there = Emulator(folder, SystemClock(), port=str(free_port()))
    there.start()
    yield there
    there.stop()


def test_each_value_meets_each_other_one() -> None:
    met = {frozenset(pair) for row in ROWS for pair in combinations(sorted(row.items()), 2)}

    for one, other in combinations(FACTORS, 2):
        for mine in one:
            for others in other:
                for pair in combinations(sorted({**mine, **others}.items()), 2):
                    assert frozenset(pair) in met


def test_each_stack_has_exactly_its_own_parts_whatever_it_had_before(
    emulator: Emulator, translated: dict[str, Any], subtests: Any
) -> None:
    """One stack, updated row by row. An update that leaves something shows in the next row, which is without it."""
    for row in ROWS:
        with subtests.test(row=json.dumps(row)):
            stack = emulator.deploy(ROOT / "template.yaml", row)

            assert _without_hashes(stack.physical) == _without_hashes(cloudformation.present(translated, **row))
            assert _functions(emulator, stack) == _those(stack, translated, "AWS::Lambda::Function")
            assert _groups(emulator) == _those(stack, translated, "AWS::Logs::LogGroup")
            assert _roles(emulator) == _those(stack, translated, "AWS::IAM::Role")
            assert _routes(emulator, stack) == _own_routes(stack)


def _without_hashes(names: Iterable[str]) -> set[str]:
    """Returns the names without the hashes of their code that SAM adds to layers."""
    return {re.sub("(?<=Layer)[0-9a-f]{10}$", "", name) for name in names}


def _those(stack: Stack, translated: dict[str, Any], kind: str) -> set[str]:
    return {stack.physical[name] for name in of_type(translated, kind) if name in stack.physical}


def _functions(emulator: Emulator, stack: Stack) -> set[str]:
    """Returns the names of all functions, and checks that their variables have values and fit."""
    client = emulator.credentials().client("lambda")
    functions = list(client.get_paginator("list_functions").paginate().search("Functions[]"))
    for function in functions:
        variables = function.get("Environment", {}).get("Variables", {})
        assert all(isinstance(value, str) and "${" not in value for value in variables.values()), variables
        assert sum(len(name) + len(value) for name, value in variables.items()) <= 4_096
    return {function["FunctionName"] for function in functions}


def _groups(emulator: Emulator) -> set[str]:
    pages = emulator.credentials().client("logs").get_paginator("describe_log_groups").paginate()
    return {each for each in pages.search("logGroups[].logGroupName") if "sweephand" in each and "/lambda/" not in each}


def _roles(emulator: Emulator) -> set[str]:
    pages = emulator.credentials().client("iam").get_paginator("list_roles").paginate()
    return {each for each in pages.search("Roles[].RoleName") if each.startswith("sweephand")}


def _routes(emulator: Emulator, stack: Stack) -> set[str]:
    pages = emulator.credentials().client("apigatewayv2").get_paginator("get_routes")
    return set(pages.paginate(ApiId=stack.physical["Api"]).search("Items[].RouteKey"))


def _own_routes(stack: Stack) -> set[str]:
    methods = {route: APART.get(route, ANY).upper() for route, function in ROUTES.items() if function in stack.physical}
    any_method = ANY.upper()
    return {
        route if route == "$default" else f"{'ANY' if method == any_method else method} {route}"
        for route, method in methods.items()
    }
