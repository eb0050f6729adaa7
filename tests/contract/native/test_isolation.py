"""Two tenants with equal names: each one's things do not exist for the other."""

from __future__ import annotations

import pytest

from sweephand.server.facades.native.routes import ROUTES
from tests.contract.native.api import JOB
from tests.contract.native.everything import body_of, furnish, send, title

TENANTS = ("acme", "globex")
OF_A_TENANT = ("job", "schedule", "run", "message", "credential", "operation", "error")
BY_NAME = ("collection", "calendar", "flow_key", "job_set", "consumer", "problem", "application")
NAMED = [route for route in ROUTES.all if any(f"{{{name}}}" in route.path for name in OF_A_TENANT)]


@pytest.fixture(scope="module")
def both(shared):
    """The same things under the same names in both tenants."""
    return {tenant: furnish(shared, tenant) for tenant in TENANTS}


@pytest.mark.parametrize("route", NAMED, ids=title)
def test_another_tenants_id_is_not_found(shared, both, route):
    theirs, own = both["acme"], both["globex"]
    name = next(
        name
        for name in ("schedule", "job", "run", "message", "credential", "operation", "error")
        if f"{{{name}}}" in route.path
    )
    foreign = [theirs.path(route), own.path(route, **{name: theirs.names[name]})]
    acting = {"sweephand-tenant": "globex"}

    with shared.unchanged():
        for path in foreign:
            named = {"If-Match": '"1"', "Idempotency-Key": "k"}
            for headers in ({}, *({name.lower(): named[name]} for name in route.headers if name in named)):
                reply = send(shared, route, own, path=path, caller="globex", headers=headers)
                assert (reply.status, reply.code) == (404, "NOT_FOUND"), path
            if route.scope != "admin":
                assert send(shared, route, own, path=path, caller="provider", headers=acting).status == 404


def test_another_tenants_id_in_a_body_or_query_is_unknown(shared, both):
    theirs, own = both["acme"].names, both["globex"].names
    place = f"/v1/jobs/{own['job']}"
    foreign = {"id": theirs["schedule"], "every": "PT1H"}

    with shared.unchanged():
        run = shared("POST", f"{place}/run", {"scheduleId": theirs["schedule"]}, caller="globex")
        put = shared("PUT", place, JOB | {"schedules": [foreign]}, caller="globex")
        of_job = shared.get("/v1/runs", query={"jobId": theirs["job"]}, caller="globex")
        of_both = shared.get("/v1/runs", query={"jobId": own["job"], "scheduleId": theirs["schedule"]}, caller="globex")
        of_schedule = shared.get("/v1/runs", query={"scheduleId": theirs["schedule"]}, caller="globex")
        ahead = shared.get(f"{place}/occurrences", query={"scheduleId": theirs["schedule"]}, caller="globex")

    assert (put.status, put.fields) == (422, ["schedules[0].id"])
    assert {each.status for each in (run, of_job, of_both, ahead)} == {404}
    assert of_schedule.json["items"] == []


LISTS = ["/v1/jobs", "/v1/jobs?tag=finance", "/v1/jobs?resourceId=inv-4711", "/v1/jobs?collection=default",
         "/v1/jobs?name=nightly-report", "/v1/jobs?collection=spare", "/v1/jobs?include=schedules", "/v1/runs",
         "/v1/timeline", "/v1/attention", "/v1/timeline:changes?since=1700000000000-1700000000000-0000000000000000",
         "/v1/collections", "/v1/job-sets", "/v1/consumers", "/v1/applications",
         "/v1/job-sets/spare", "/v1/credentials", "/v1/operations", "/v1/errors", "/v1/error-redirects",
         "/v1/errors:summary?groupBy=job", "/v1/errors:summary?groupBy=target"]  # fmt: skip


@pytest.mark.parametrize("path", LISTS)
def test_no_list_shows_anything_of_another_tenant(shared, both, path):
    where, _, query = path.partition("?")

    texts = {tenant: shared.get(where, query=query, caller=tenant).text for tenant in TENANTS}

    for tenant, other in (TENANTS, TENANTS[::-1]):
        for name in OF_A_TENANT:
            assert both[other].names[name] not in texts[tenant]
    if where == "/v1/jobs" and "spare" not in path:
        assert all(both[tenant].names["job"] in texts[tenant] for tenant in TENANTS)


def test_every_route_with_a_name_in_its_path_is_tested(shared, both):
    assert {title(route) for route in NAMED} == {
        title(route) for route in ROUTES.all if "{" in route.path and "{tenant}" not in route.path
    } - {title(route) for route in ROUTES.all if any(f"{{{kind}}}" in route.path for kind in BY_NAME)}
    assert body_of(NAMED[0]) is None
