"""Azure's jobs and collections in the native API: how they are shown, and which changes are refused."""

from __future__ import annotations

import pytest

from tests.contract.azure.api import COLLECTION, COLLECTIONS, EVERY_HOUR, JOB
from tests.contract.native.api import JOB as NATIVE_JOB


@pytest.fixture
def made(api):
    api.job(recurrence=EVERY_HOUR, startTime=api.at(3600))
    (job,) = api.native.get("/v1/jobs").json["items"]
    return api.native.get(f"/v1/jobs/{job['id']}").json


def test_the_native_api_lists_collections_and_jobs_with_their_facade(api, made):
    (_, collection) = sorted(
        api.native.get("/v1/collections").json["items"], key=lambda each: each["facade"] == "azure"
    )

    assert (made["facade"], made["collection"]) == ("azure", collection["name"])
    assert collection["facade"] == "azure"
    assert collection["attributes"]["name"] == "Nightly"
    assert collection["jobCount"] == 1
    assert collection["retention"] == {"runDays": 60, "endedJobDays": 60}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "", {"description": "new"}),
        ("PATCH", "", {"action": {"type": "http", "url": "https://other.example/"}}),
        ("POST", "/pause", {}),
        ("POST", "/schedules", {"every": "1 hour"}),
        ("PATCH", "/schedules/{schedule}", {"every": "1 hour"}),
        ("POST", "/schedules/{schedule}/deactivate", None),
        ("DELETE", "/schedules/{schedule}", None),
    ],
)
def test_a_native_change_that_azures_api_could_not_show_is_refused(api, made, method, path, body):
    (schedule,) = api.native.get(f"/v1/jobs/{made['id']}/schedules").json["items"]
    before = api.get(JOB).json

    reply = api.native(method, f"/v1/jobs/{made['id']}{path.format(schedule=schedule['id'])}", body)

    assert (reply.status, reply.code) == (409, "FACADE_LIMIT")
    assert api.get(JOB).json == before


def test_native_switches_runs_and_deletes_show_here(api, made):
    where = f"/v1/jobs/{made['id']}"

    assert api.native("POST", f"{where}/deactivate").status == 200
    assert api.properties()["state"] == "Disabled"
    assert api.native("POST", f"{where}/activate").status == 200
    assert api.properties()["state"] == "Enabled"
    assert api.native("DELETE", where).status == 204
    assert api.get(JOB).status == 404


@pytest.mark.parametrize(
    ("switch", "shown", "asked"), [("deactivate", "Disabled", "Enabled"), ("activate", "Enabled", "Disabled")]
)
def test_a_job_that_was_disabled_natively_can_be_enabled_here(api, made, switch, shown, asked):
    where = f"/v1/jobs/{made['id']}/{switch}"
    body = {"properties": {**api.properties(), "state": asked}}
    api("PATCH", JOB, {"properties": {"state": asked}})

    for method, sent in (("PATCH", {"properties": {"state": asked}}), ("PUT", body)):
        assert api.native("POST", where).status == 200
        assert api.properties()["state"] == shown
        assert api(method, JOB, sent).json["properties"]["state"] == asked


@pytest.mark.parametrize(
    ("switch", "shown", "asked"), [("deactivate", "Disabled", "Enabled"), ("activate", "Enabled", "Disabled")]
)
def test_a_change_of_another_member_keeps_a_native_switch(api, made, switch, shown, asked):
    api("PATCH", JOB, {"properties": {"state": asked}})
    api.native("POST", f"/v1/jobs/{made['id']}/{switch}")

    patched = api("PATCH", JOB, {"properties": {"action": {"request": {"body": "new"}}}})

    assert patched.json["properties"]["state"] == shown


@pytest.mark.parametrize(
    ("switch", "shown", "asked"), [("disable", "Disabled", "Enabled"), ("enable", "Enabled", "Suspended")]
)
def test_a_change_of_a_collection_keeps_a_native_switch(api, made, switch, shown, asked):
    api("PATCH", COLLECTION, {"properties": {"state": asked}})
    assert api.native("POST", f"/v1/collections/{made['collection']}/{switch}").status == 200

    patched = api("PATCH", COLLECTION, {"tags": {"team": "night"}})

    assert patched.json["properties"]["state"] == shown


def test_a_native_change_may_set_redirects_but_no_other_quota(api, made):
    where = f"/v1/collections/{made['collection']}"

    assert api.native("PATCH", where, {"events": "all"}).status == 200
    assert api.native("POST", f"{where}/disable").status == 200
    assert api.get(COLLECTION).json["properties"]["state"] == "Disabled"
    closed = {"quota": {"maxJobs": 1}, "defaults": {"timezone": "Europe/Berlin"}, "retention": {"endedJobDays": 0}}
    for name, change in closed.items():
        reply = api.native("PATCH", where, {name: change})
        assert (reply.status, reply.code) == (409, "FACADE_LIMIT")
        assert reply.json["detail"].startswith(f"the {name} of the collection")


@pytest.mark.parametrize(
    ("member", "value"), [("attributes", {}), ("facade", "native"), ("state", "DISABLED"), ("jobCount", 0)]
)
def test_a_native_change_of_a_collection_keeps_members_set_by_the_service(api, made, member, value):
    where = f"/v1/collections/{made['collection']}"
    before, shown = api.native.get(where).json, api.get(COLLECTION).json

    assert api.native("PATCH", where, {member: value}).status == 200

    assert api.native.get(where).json[member] == before[member]
    assert api.get(COLLECTION).json == shown


def test_a_collection_refuses_jobs_of_another_facade(api, made):
    created = api.native("POST", "/v1/jobs", {**NATIVE_JOB, "collection": made["collection"]})
    own = api.native.create()
    moved = api.native("PATCH", f"/v1/jobs/{own['id']}", {"collection": made["collection"]})

    assert (created.status, created.code) == (409, "FACADE_LIMIT")
    assert (moved.status, moved.code) == (409, "FACADE_LIMIT")


def test_deleting_an_empty_collection_natively_frees_its_name(api):
    api.collection()
    (name,) = [each["name"] for each in api.native.get("/v1/collections").json["items"] if each["facade"] == "azure"]

    assert api.native("DELETE", f"/v1/collections/{name}").status == 204

    assert api.get(COLLECTION).status == 404
    assert api.get(COLLECTIONS).json["value"] == []
    assert api.collection()["name"] == "Nightly"
