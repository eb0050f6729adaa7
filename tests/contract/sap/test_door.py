"""Authentication, and what happens to many callers at once."""

from __future__ import annotations

import pytest

from sweephand.server.facades.sap.routes import TABLE
from sweephand.server.flow.tenants import access
from sweephand.server.security.caller import TENANT_SCOPES
from tests.contract.calls import basic
from tests.contract.sap.api import JOB, TENANT
from tests.support.turns import at_once


@pytest.mark.parametrize(("method", "path"), [(method, path) for method, path, *_ in TABLE])
def test_every_route_without_credentials_is_401(api, method, path):
    below = path.removeprefix("/scheduler").replace("{job}", "1").replace("{schedule}", "x").replace("{run}", "x")

    for headers in ({}, {"authorization": "Basic x"}, {"authorization": "bearer x"}):
        reply = api(method, below, caller=None, headers=headers)
        assert (reply.status, reply.json["message"], reply.json["type"]) == (
            401,
            "Unauthorized",
            "Authentication Error",
        )


def test_a_token_works_like_its_credential_in_any_spelling_of_the_scheme(api):
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
def test_a_missing_scope_is_403(api, scope, method, path):
    issued = access.create_credential(api.stage.world, TENANT, None, {scope})
    api.credentials["narrow"] = basic(issued.credential.client_id, issued.secret)

    reply = api(method, path, {**JOB, "schedules": []} if method == "POST" else None, caller="narrow")

    assert (reply.status, reply.json["type"]) == (403, "Forbidden Request")
    assert scope in TENANT_SCOPES


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/nowhere"), ("PATCH", "/jobs"), ("DELETE", "/jobs"), ("GET", "")]
)
def test_an_unknown_route_is_404(api, method, path):
    reply = api(method, path)

    assert reply.status == 404
    assert reply.json["message"] == f"Not Found: no such route below /scheduler: {method} /scheduler{path}"


@pytest.mark.parametrize(
    ("written", "status", "why"),
    [
        ("re%70ort", 200, ""),
        ("re%2570ort", 400, "the name in the path and the name of the job differ"),
        ("a%20b", 400, "the name in the path and the name of the job differ"),
        ("a%2Fb", 404, "Not Found: no such route below /scheduler: PUT /scheduler/jobs/a/b"),
        ("a%2fb", 404, "Not Found: no such route below /scheduler: PUT /scheduler/jobs/a/b"),
        ("a%252Fb", 400, "the name in the path and the name of the job differ"),
        ("%ff", 400, "the name in the path and the name of the job differ"),
    ],
)
def test_a_name_in_the_path_is_decoded_once_and_cannot_contain_a_slash(api, written, status, why):
    api.create()

    reply = api("PUT", f"/jobs/{written}", {**JOB, "schedules": []})

    assert (reply.status, reply.json.get("message", "").removeprefix("Error while configuring job: ")) == (status, why)


@pytest.mark.parametrize("first", [True, False])
def test_twenty_creates_of_one_name_at_once_make_one_job(api, first):
    """first: of the tenant, so that they also make its collection."""
    body = {**JOB, "schedules": [{"active": True, "repeatInterval": "1 hour"}]}
    if not first:
        assert api("DELETE", f"/jobs/{api.create()['_id']}").status == 200

    with at_once(api.stage) as run:
        replies = run([lambda: api("POST", "/jobs", body)] * 20)

    assert sorted(reply.status for reply in replies) == [201, *[400] * 19]
    refusals = {reply.json["message"] for reply in replies if reply.status == 400}
    assert refusals == {"Error while creating job: a job with the name report exists"}
    assert api.get("/jobs").json["total"] == 1
    assert api.get("/jobCount").json == {"active": 1, "inactive": 0}


@pytest.mark.parametrize(("many", "within_s"), [(20, 4), (50, 8)])
def test_schedules_created_at_once_for_one_job_are_all_created(api, many, within_s):
    made, began = api.create(), api.stage.clock.monotonic()
    where = f"/jobs/{made['_id']}/schedules"

    def create(n):
        return lambda: api("POST", where, {"active": True, "repeatInterval": f"{n + 1} hours"})

    with at_once(api.stage) as run:
        replies = run([create(n) for n in range(many)])

    assert [reply.status for reply in replies] == [201] * many
    assert api.stage.clock.monotonic() - began < within_s, "its client waits 15 s"
    assert {reply.json["scheduleId"] for reply in replies} == {
        each["scheduleId"] for each in api.get(where).json["results"]
    }
    (listed,) = api.get("/jobs").json["results"]
    assert (listed["ACTIVECOUNT"], listed["INACTIVECOUNT"]) == (many, 0)


def test_schedules_created_at_once_do_not_exceed_the_quota(api):
    made = api.create()
    assert api.native("PATCH", "/v1/tenants/acme", {"quota": {"maxSchedules": 5}}, caller="provider").status == 200
    body = {"active": True, "repeatInterval": "1 hour"}

    with at_once(api.stage) as run:
        replies = run([lambda: api("POST", f"/jobs/{made['_id']}/schedules", body)] * 20)

    assert sorted(reply.status for reply in replies) == [201] * 5 + [403] * 15
    assert api.get(f"/jobs/{made['_id']}/schedules").json["total"] == 5


def test_twenty_puts_of_one_name_at_once_make_one_job(api):
    body = {**JOB, "schedules": [{"active": True, "repeatInterval": "1 hour"}]}

    with at_once(api.stage) as run:
        statuses = [reply.status for reply in run([lambda: api("PUT", "/jobs/report", body)] * 20)]

    assert statuses.count(201) == 1
    assert set(statuses) <= {200, 201}
    assert api.get("/jobs").json["total"] == 1


@pytest.mark.parametrize(("method", "path"), [("GET", "/jobs"), ("DELETE", "/jobs/1"), ("GET", "/jobCount")])
def test_the_native_tenant_header_is_refused_where_it_would_be_ignored(api, method, path):
    for caller, named in (("provider", TENANT), ("provider", "nobody"), (TENANT, "globex")):
        reply = api(method, path, caller=caller, headers={"sweephand-tenant": named})

        assert reply.status == 400, reply.text
        assert "tenantId" in reply.json["message"]


def test_a_tenant_may_name_itself_in_the_header(api):
    assert api("GET", "/jobs", headers={"sweephand-tenant": TENANT}).status == 200
