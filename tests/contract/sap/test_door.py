"""Who may come in, and what happens to many at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from sweephand.facades.sap.routes import TABLE
from sweephand.flow import tenancy
from sweephand.security.caller import TENANT_SCOPES
from tests.contract.native.api import basic
from tests.contract.sap.api import JOB, TENANT


@pytest.mark.parametrize(("method", "path"), [(method, path) for method, path, *_ in TABLE])
def test_without_credentials_every_route_is_401(api, method, path):
    below = path.removeprefix("/scheduler").replace("{job}", "1").replace("{schedule}", "x").replace("{run}", "x")

    for headers in ({}, {"authorization": "Basic x"}, {"authorization": "bearer x"}):
        reply = api(method, below, caller=None, headers=headers)
        assert (reply.status, reply.json["message"], reply.json["type"]) == (
            401,
            "Unauthorized",
            "Authentication Error",
        )


def test_a_token_is_as_good_as_its_credential_however_its_scheme_is_written(api):
    token = api.native(
        "POST",
        "/oauth/token",
        raw="response_type=token&grant_type=client_credentials",
        headers={
            "content-type": "application/x-www-form-urlencoded",
        },
    )

    assert token.status == 200, token.text
    for scheme in ("Bearer", "bearer"):
        headers = {"authorization": f"{scheme} {token.json['access_token']}"}
        assert api("GET", "/jobs", caller=None, headers=headers).status == 200


@pytest.mark.parametrize(("scope", "method", "path"), [("jobs:read", "POST", "/jobs"), ("runs:write", "GET", "/jobs")])
def test_a_scope_that_is_missing_is_403(api, scope, method, path):
    issued = tenancy.create_credential(api.stage.world, TENANT, None, {scope})
    api.credentials["narrow"] = basic(issued.credential.client_id, issued.secret)

    reply = api(method, path, {**JOB, "schedules": []} if method == "POST" else None, caller="narrow")

    assert (reply.status, reply.json["type"]) == (403, "Forbidden Request")
    assert scope in TENANT_SCOPES


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/nowhere"), ("PATCH", "/jobs"), ("DELETE", "/jobs"), ("GET", "")]
)
def test_an_unknown_route_is_404(api, method, path):
    assert api(method, path).status == 404


def test_twenty_creates_of_one_name_at_once_make_one_job(api):
    body = {**JOB, "schedules": [{"active": True, "repeatInterval": "1 hour"}]}

    with ThreadPoolExecutor(max_workers=20) as pool:
        statuses = list(pool.map(lambda _: api("POST", "/jobs", body).status, range(20)))

    assert sorted(statuses) == [201, *[400] * 19]
    assert api.get("/jobs").json["total"] == 1
    assert api.get("/jobCount").json == {"active": 1, "inactive": 0}


def test_twenty_puts_of_one_name_at_once_make_one_job(api):
    body = {**JOB, "schedules": [{"active": True, "repeatInterval": "1 hour"}]}

    with ThreadPoolExecutor(max_workers=8) as pool:
        statuses = list(pool.map(lambda _: api("PUT", "/jobs/report", body).status, range(8)))

    assert statuses.count(201) == 1
    assert set(statuses) <= {200, 201}
    assert api.get("/jobs").json["total"] == 1
