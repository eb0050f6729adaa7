"""Changing a task's payload needs the scope `tasks:write`: by a schedule, a run, a rerun or a redirect."""

from __future__ import annotations

import pytest

from sweephand.server.security.caller import TENANT_SCOPES
from tests.contract.native.api import JOB, Api
from tests.contract.native.test_scopes import bearer
from tests.support.ecs import ACTION

OTHERS = sorted(TENANT_SCOPES - {"tasks:write"})
PAYLOAD = {"command": "another"}
HOURLY = {"every": "PT1H"}


@pytest.fixture
def job(api: Api) -> dict[str, object]:
    return api.create(action={**ACTION, "payload": {"a": 1}}, schedules=[{**HOURLY, "payload": {"b": 2}}])


def without(api: Api, method: str, path: str, body: object) -> tuple[int, str | None]:
    reply = api(method, path, body, caller=None, headers=bearer(api, "acme", OTHERS))
    return reply.status, reply.json.get("code")


def asked(api: Api, job: dict[str, object]) -> dict[str, tuple[str, str, object]]:
    """Yields every way to send the job's task something else."""
    place = f"/v1/jobs/{job['id']}"
    schedule = job["schedules"][0]["id"]
    return {
        "a schedule that is added": ("POST", f"{place}/schedules", {**HOURLY, "payload": PAYLOAD}),
        "a schedule that is patched": ("PATCH", f"{place}/schedules/{schedule}", {"payload": PAYLOAD}),
        "a schedule that is replaced": ("PUT", f"{place}/schedules/{schedule}", {**HOURLY, "payload": PAYLOAD}),
        "a job that is patched": ("PATCH", place, {"schedules": [{"id": schedule, **HOURLY, "payload": PAYLOAD}]}),
        "a run": ("POST", f"{place}/run", {"payload": PAYLOAD}),
    }


WAYS = (
    *("a schedule that is added", "a schedule that is patched", "a schedule that is replaced"),
    *("a job that is patched", "a run"),
)


@pytest.mark.parametrize("way", WAYS)
def test_changing_the_payload_of_a_task_needs_the_task_scope(api: Api, job: dict[str, object], way: str) -> None:
    request = asked(api, job)[way]

    with api.unchanged():
        assert without(api, *request) == (403, "SCOPE_MISSING")
    assert api(*request).status in {200, 201, 202}


def test_a_request_that_keeps_the_payload_needs_no_task_scope(api: Api, job: dict[str, object]) -> None:
    place, schedule = f"/v1/jobs/{job['id']}", job["schedules"][0]["id"]

    for request in (
        ("PATCH", f"{place}/schedules/{schedule}", {"every": "PT2H"}),
        ("PUT", f"{place}/schedules/{schedule}", {**HOURLY, "payload": {"b": 2}}),
        ("POST", f"{place}/schedules", {"every": "PT3H"}),
        ("PATCH", place, {"description": "other"}),
        ("POST", f"{place}/run", {}),
    ):
        assert without(api, *request)[0] in {200, 201, 202}, request


def test_a_rerun_with_another_payload_needs_the_task_scope(api: Api, job: dict[str, object]) -> None:
    run = api("POST", f"/v1/jobs/{job['id']}/run", {}).json["runId"]
    api("POST", f"/v1/runs/{run}/cancel")

    assert without(api, "POST", f"/v1/runs/{run}/rerun", {"payload": PAYLOAD}) == (403, "SCOPE_MISSING")
    assert without(api, "POST", f"/v1/runs/{run}/rerun", {})[0] == 202


def test_redirecting_another_jobs_errors_to_a_task_needs_the_task_scope(api: Api, job: dict[str, object]) -> None:
    other = api.create(JOB)

    request = ("PUT", f"/v1/error-redirects/{other['id']}", {"to": job["id"]})
    assert without(api, *request) == (403, "SCOPE_MISSING")
    assert api(*request).status == 200
