"""Every route by a foreign tenant, by the provider without one, and without its scope."""

from __future__ import annotations

import pytest

from sweephand.formats.azure.members import OF_2014
from sweephand.server.facades.azure.routes import TABLE
from sweephand.server.flow.tenants import access
from tests.contract.azure.api import COLLECTION, COLLECTIONS, JOB, OTHER, TENANT, job
from tests.contract.calls import basic
from tests.contract.native.api import TENANT_SCOPES

NAMES = {"subscription": "sub-1", "group": "group", "collection": "Nightly", "job": "Report"}
ROUTES = [(method, path.format(**NAMES), scope) for method, path, _, scope in TABLE]
OF_JOBS = [(method, path) for method, path, _ in ROUTES if "/jobs" in path]
TITLES = [f"{method} {path.partition('Microsoft.Scheduler')[2]}" for method, path, _ in ROUTES]


def send(api, method, path, **more):
    """Sends a request that is right but for its caller."""
    body = {"location": "East US"} if path == COLLECTION else job(startTime=api.at(7_200))
    sends = method in {"PUT", "PATCH"} or (method == "POST" and path.endswith("/jobs"))
    return api(method, path, body if sends else None, version=OF_2014, **more)


@pytest.fixture
def made(api):
    """The same names in the first tenant, with a job that has run, and nothing in the other one."""
    api.job(recurrence={"frequency": "Hour"})
    api.stage.run(10)
    assert len(api.history()) == 1
    return api


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES, ids=TITLES)
def test_no_route_shows_or_changes_another_tenants_resources(made, method, path, scope):
    before = [item for item in made.stage.items() if "#acme" in item["pk"]["S"]]

    by_itself = send(made, method, path, caller=OTHER)
    by_provider = send(made, method, path, caller="provider", headers={"Sweephand-Tenant": OTHER})

    named = path == COLLECTION and method == "PUT"
    about_one = path.startswith(COLLECTION) and not named
    assert (by_itself.status == 404) is about_one, by_itself.text
    assert (by_provider.status == 404) is about_one, by_provider.text
    assert "Report" not in by_itself.text + by_provider.text or about_one
    assert "West US" not in by_itself.text + by_provider.text
    assert [item for item in made.stage.items() if "#acme" in item["pk"]["S"]] == before


@pytest.mark.parametrize(("method", "path"), OF_JOBS)
def test_equal_names_of_two_tenants_stay_separate(made, method, path):
    made("PUT", COLLECTION, {"location": "East US"}, caller=OTHER)
    made("PUT", JOB, job(startTime=made.at(3_600)), caller=OTHER)
    before = [item for item in made.stage.items() if "#acme" in item["pk"]["S"]]

    reply = send(made, method, path, caller=OTHER)

    assert reply.status in {200, 201}
    assert [item for item in made.stage.items() if "#acme" in item["pk"]["S"]] == before
    if path.endswith("/history"):
        assert reply.json["value"] == []


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES, ids=TITLES)
def test_the_provider_needs_a_known_tenant(made, method, path, scope):
    with made.native.unchanged():
        without = send(made, method, path, caller="provider")
        unknown = send(made, method, path, caller="provider", headers={"Sweephand-Tenant": "nobody"})
        foreign = send(made, method, path, caller=TENANT, headers={"Sweephand-Tenant": OTHER})

    assert (without.status, without.json["error"]["code"]) == (400, "BadRequest")
    assert (unknown.status, unknown.json["error"]["code"]) == (404, "ResourceNotFound")
    assert foreign.status in {403, 404}, foreign.text


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES, ids=TITLES)
def test_every_route_needs_its_scope(made, method, path, scope):
    others = [each for each in TENANT_SCOPES if each != scope]
    issued = access.create_credential(made.stage.world, TENANT, None, others)
    made.credentials["lacking"] = basic(issued.credential.client_id, issued.secret)

    with made.native.unchanged():
        reply = send(made, method, path, caller="lacking")

    assert (reply.status, reply.json["error"]["code"]) == (403, "AuthorizationFailed")
    assert scope in reply.json["error"]["message"]


def test_subscription_and_group_names_give_no_rights(made):
    other = COLLECTIONS.replace("sub-1", "sub-2")

    assert made.get(f"{other}/Nightly").status == 404
    assert made.get(COLLECTIONS.replace("group/", "other/")).json["value"] == []
    assert made("PUT", f"{other}/Nightly", {"location": "East US"}).status == 201
    assert made.get(COLLECTION).json["location"] == "West US"
