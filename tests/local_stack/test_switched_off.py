"""A facade that is switched off and on again on a living stack: its functions and routes go, and its jobs run on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from sweephand.local import control
from sweephand.local.folder import StateFolder
from sweephand.local.settings import CHECKOUT, Settings
from tests.local_stack.conftest import start
from tests.local_stack.waiting import CLOCK, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.local_stack.conftest import LocalStack

pytestmark = [pytest.mark.emulator, pytest.mark.extended]

EVERY_5_S = [{"repeatInterval": "5 seconds", "active": True}]
JOB = {"name": "sap", "action": "http://127.0.0.1:9/run", "active": True, "schedules": EVERY_5_S}
FACADE = "SapApi"


@contextmanager
def running(folder: Path, **chosen: str) -> Iterator[LocalStack]:
    """Runs the stack in this folder, deployed with these parameters over what was there."""
    place = Settings(StateFolder(folder), CHECKOUT / "template.yaml", port=0, aws_port="0", chosen=chosen)
    there, stack = start(place)
    try:
        yield stack
    finally:
        stack.close()
        control.release(there, place, CLOCK)


def parts(stack: LocalStack) -> dict[str, list[str]]:
    """Returns the functions, roles and log groups of the facade in the account, and its routes."""
    gateway = stack.boto("apigatewayv2")
    (api,) = gateway.get_apis()["Items"]
    routes = gateway.get_paginator("get_routes").paginate(ApiId=api["ApiId"]).search("Items[].RouteKey")
    return {
        "functions": _of_facade(stack.boto("lambda").get_paginator("list_functions"), "Functions[].FunctionName"),
        "roles": _of_facade(stack.boto("iam").get_paginator("list_roles"), "Roles[].RoleName"),
        "groups": [
            each["logGroupName"]
            for each in stack.boto("logs").describe_log_groups(logGroupNamePrefix="/sweephand/")["logGroups"]
            if each["logGroupName"].endswith("/sap-api")
        ],
        "routes": sorted(route for route in routes if "/scheduler" in route),
    }


def _of_facade(pages: Any, name: str) -> list[str]:
    return [each for each in pages.paginate().search(name) if FACADE in each]


def ended(client: httpx.Client) -> int:
    """Returns how many runs of the job have ended. Its target refuses all connections."""
    return sum(each["status"] == "COMPLETED" for each in client.get("/v1/runs").json()["items"])


def test_a_facade_that_is_switched_off_leaves_nothing_and_its_jobs_run_on(tmp_path: Path) -> None:
    with running(tmp_path) as stack:
        made = stack.client().post("/scheduler/jobs", json=JOB)
        assert made.status_code == 201, made.text
        before = parts(stack)
        assert all(before.values()), before
        until(lambda: ended(stack.client()), lambda count: count >= 1)

    with running(tmp_path, SapFacade="off") as stack:
        assert not any(parts(stack).values()), parts(stack)
        assert stack.client().get("/scheduler/jobs").status_code == 404
        already = ended(stack.client())
        until(lambda: ended(stack.client()), lambda count: count > already)

    with running(tmp_path) as stack:
        assert parts(stack)["routes"] == before["routes"]
        listed = stack.client().get("/scheduler/jobs").json()
        assert [each["name"] for each in listed["results"]] == ["sap"]
        until(lambda: ended(stack.client()), lambda count: count > already + 1)
