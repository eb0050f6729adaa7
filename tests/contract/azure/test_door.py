"""Callers, paths, api-versions, unreadable bodies and names of others."""

from __future__ import annotations

import json

import pytest

from sweephand.server.facades.azure.routes import TABLE
from tests.contract.azure.api import COLLECTION, COLLECTIONS, GROUPS, HTTP, JOB

NAMES = {"subscription": "sub-1", "group": "group", "collection": "Nightly", "job": "Report"}
PATHS = [(method, path.format(**NAMES)) for method, path, _, _ in TABLE]
VERSIONED = [each for each in PATHS if "/register" not in each[1] and not each[1].endswith("Microsoft.Scheduler")]
PROVIDER = "/subscriptions/sub-1/providers/Microsoft.Scheduler"


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_every_path_is_refused_without_credentials(api, method, path):
    reply = api(method, path, caller=None)

    assert (reply.status, reply.json["error"]["code"]) == (401, "AuthenticationFailed")


def test_the_provider_names_the_tenant_it_acts_for(api):
    api.collection()

    assert api.get(COLLECTION, caller="provider").status == 400
    assert api.get(COLLECTION, caller="provider", headers={"Sweephand-Tenant": "nobody"}).status == 404
    assert api.get(COLLECTION, caller="provider", headers={"Sweephand-Tenant": "acme"}).status == 200


@pytest.mark.parametrize(("method", "path"), [each for each in VERSIONED if "operations" not in each[1]])
def test_every_resource_needs_a_known_api_version(api, method, path):
    missing = api(method, path, version=None)
    unknown = api(method, path, version="2014-04-01")

    assert (missing.status, missing.json["error"]["code"]) == (400, "MissingApiVersionParameter")
    assert (unknown.status, unknown.json["error"]["code"]) == (400, "InvalidApiVersionParameter")
    assert "api-version" in missing.json["error"]["message"]


def test_the_resource_provider_is_registered_in_every_version(api):
    for reply in (api("POST", f"{PROVIDER}/register", version="2018-02-01"), api.get(PROVIDER, version=None)):
        assert (reply.status, reply.json["registrationState"]) == (200, "Registered")
        assert [each["resourceType"] for each in reply.json["resourceTypes"]] == [
            "jobCollections",
            "jobCollections/jobs",
        ]
    operations = api.get("/providers/Microsoft.Scheduler/operations").json["value"]
    kind = "Microsoft.Scheduler/jobCollections"
    assert [each["name"] for each in operations] == [
        *(f"{kind}/{each}" for each in ("read", "write", "delete", "enable/action", "disable/action")),
        *(f"{kind}/jobs/{each}" for each in ("read", "write", "delete", "run/action")),
    ]


def test_unknown_paths_and_verbs_get_arms_answers(api):
    unknown = api.get(f"{GROUPS}/group/providers/Microsoft.Logic/workflows")
    verb = api("POST", COLLECTION)

    assert (unknown.status, unknown.json["error"]["code"]) == (404, "ResourceNotFound")
    assert (verb.status, verb.json["error"]["code"]) == (405, "MethodNotAllowed")
    assert verb.headers["allow"] == "DELETE, GET, HEAD, PATCH, PUT"


@pytest.mark.parametrize("name", ["9c", "-c", "c c", "c!", "c" * 101])
def test_invalid_collection_names_are_refused(api, name):
    assert api("PUT", f"{COLLECTIONS}/{name}", {"location": "x"}).status == 400


@pytest.mark.parametrize("name", ["my.group", "(old)_1", "Müllabfuhr", "夜"])
def test_group_names_allow_letters_of_any_language_and_ignore_case(api, name):
    path = f"/subscriptions/sub-1/resourceGroups/{name}/providers/Microsoft.Scheduler/jobCollections"

    assert api("PUT", f"{path}/Nightly", {"location": "x"}).json["id"] == f"{path}/Nightly"

    (shown,) = api.get(path.replace(name, name.upper())).json["value"]
    assert shown["id"] == f"{path}/Nightly"


@pytest.mark.parametrize("name", ["a b", "a.", "a" * 91, "a!"])
def test_invalid_group_names_are_refused(api, name):
    path = f"/subscriptions/sub-1/resourceGroups/{name}/providers/Microsoft.Scheduler/jobCollections/Nightly"

    assert api("PUT", path, {"location": "x"}).status == 400


@pytest.mark.parametrize("raw", ["", "{", "[]", "5", "null", '{"location": "x", "location": "y"}', b"\xff"])
def test_bodies_that_are_not_json_objects_are_refused(api, raw):
    reply = api("PUT", COLLECTION, raw=raw)

    assert (reply.status, reply.json["error"]["code"]) == (400, "BadRequest")


def test_a_body_over_64_kib_is_too_large(api):
    reply = api("PUT", COLLECTION, {"location": "x" * 66_000})

    assert (reply.status, reply.json["error"]["code"]) == (413, "RequestEntityTooLarge")


def test_members_in_any_case_duplicates_and_unknown_members_are_accepted(api):
    api.collection()
    body = {
        "Properties": {
            "ACTION": {**HTTP, "colour": "red"},
            "state": "DISABLED",
            "State": "DISABLED",
            "extra": {"a": [1]},
        },
        "zones": [],
    }

    shown = api("PUT", JOB, body)

    assert (shown.status, shown.json["properties"]["state"]) == (201, "Disabled")
    assert shown.json["properties"].keys() == {"action", "state", "status"}
    body["Properties"]["State"] = "Enabled"
    assert "properties.state" in api("PUT", JOB, body).json["error"]["message"]


@pytest.mark.parametrize(
    "query", [{"$top": 0}, {"$top": 101}, {"$top": "x"}, {"$skip": -1}, {"$filter": "name eq 'x'"}]
)
@pytest.mark.parametrize("path", [f"{COLLECTION}/jobs", f"{JOB}/history"])
def test_out_of_range_query_parameters_are_refused_by_name(api, path, query):
    api.job(startTime=api.at(3600))

    reply = api.get(path, query=query)

    assert reply.status == 400
    assert reply.json["error"]["message"].startswith(next(iter(query)))


def test_answers_have_azures_headers(api):
    reply = api.get(COLLECTION, headers={"x-ms-client-request-id": "abc"})

    assert reply.headers["x-ms-client-request-id"] == "abc"
    assert reply.headers["cache-control"] == "no-cache"
    assert json.loads(reply.text)["error"]["code"] == "ResourceNotFound"
