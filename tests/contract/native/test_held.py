"""A job says what holds it: a disabled tenant or collection, or a paused flow key."""

import pytest

HTTP = {"type": "http", "url": "https://example.org/run"}
EACH_MINUTE = {"name": "each minute", "cron": "* * * * *"}


@pytest.fixture
def made(api):
    api("POST", "/v1/collections", {"name": "customer"})
    api("POST", "/v1/flow-keys", {"name": "slow", "parallelism": 2})
    return api.create({"action": HTTP, "collection": "customer", "schedules": [EACH_MINUTE]})


def look(api, path, **more):
    """Reads as the provider, because a disabled tenant reads nothing."""
    return api.get(path, caller="provider", headers={"sweephand-tenant": "acme"}, **more)


def job(api, made):
    return look(api, f"/v1/jobs/{made['id']}", query="include=schedules").json


def everywhere(api, made):
    """Yields the same job and schedule, in every answer that shows them."""
    whole = job(api, made)
    listed = look(api, "/v1/jobs", query="collection=customer&include=schedules").json["items"][0]
    path = f"/v1/jobs/{made['id']}/schedules"
    schedule = made["schedules"][0]["id"]
    alone = look(api, f"{path}/{schedule}").json
    of_list = look(api, path).json["items"][0]
    return [whole, whole["schedules"][0], listed, listed["schedules"][0], alone, of_list]


def disable(api, what):
    path = {"collection": "/v1/collections/customer", "tenant": "/v1/tenants/acme"}[what]
    assert api("POST", f"{path}/disable", caller="provider" if what == "tenant" else "acme").status == 200


NAMES = {"collection": "customer", "tenant": "acme"}


def test_a_job_that_is_not_held_says_so(api, made):
    assert [each["held"] for each in everywhere(api, made)] == [None] * 6


@pytest.mark.parametrize("passed_s", [0, 40, 200])
@pytest.mark.parametrize("what", ["collection", "tenant"])
def test_disabling_a_collection_holds_its_jobs_at_once(api, made, what, passed_s):
    """Also before a tick has met their schedules."""
    api.stage.run(61)
    disabled_at = api.stage.clock.now()
    disable(api, what)

    api.stage.run(passed_s)

    for each in everywhere(api, made):
        assert (each["held"]["by"], each["held"]["name"]) == (what, NAMES[what])
        assert each["held"]["since"][:19] == f"{disabled_at:%Y-%m-%dT%H:%M:%S}"
        assert each["nextRunAt"] is None
        assert each.get("nextRuns", []) == []
        assert each["state"] == "ACTIVE"


@pytest.mark.parametrize("what", ["collection", "tenant"])
def test_occurrences_are_announced_as_skipped_while_a_job_is_held(api, made, what):
    api.stage.run(61)
    disable(api, what)
    path = f"/v1/jobs/{made['id']}"
    schedule = made["schedules"][0]["id"]

    ahead = look(api, f"{path}/occurrences", query="limit=5").json
    following = look(api, f"{path}/next")
    explained = look(api, f"{path}/schedules/{schedule}/explain", query="at=2027-03-01T12:30:00Z").json

    assert [(each["state"], each["reason"], each["runId"]) for each in ahead["items"]] == [
        ("SKIPPED", "DISABLED", None)
    ] * 5
    if following.status == 200:
        assert following.json["nextRunAt"] is None
    assert explained["occurs"] is False
    assert "disabled" in explained["reasons"][0]["message"]


def test_an_enabled_collection_announces_the_runs_of_its_jobs_again(api, made):
    api.stage.run(61)
    disable(api, "collection")
    api.stage.run(200)

    api("POST", "/v1/collections/customer/enable")
    api.stage.run(5)

    whole = job(api, made)
    assert whole["held"] is None
    api.stage.run(200)
    assert job(api, made)["nextRunAt"] is not None


def test_the_holder_with_the_widest_scope_is_named(api, made):
    disable(api, "collection")
    disable(api, "tenant")

    assert job(api, made)["held"]["by"] == "tenant"


@pytest.mark.parametrize("of_collection", [True, False])
def test_a_paused_flow_key_holds_its_jobs_and_they_still_fall_due(api, made, of_collection):
    path, member = f"/v1/jobs/{made['id']}", {"policies": {"flowKey": "slow"}}
    if of_collection:
        path, member = "/v1/collections/customer", {"flowKey": "slow"}
    assert api("PATCH", path, member).status == 200

    assert api("POST", "/v1/flow-keys/slow/pause", {"note": "maintenance"}).status == 200

    for each in everywhere(api, made):
        assert (each["held"]["by"], each["held"]["name"]) == ("flowKey", "slow")
        assert each["nextRunAt"] is not None
    api("POST", "/v1/flow-keys/slow/resume")
    assert job(api, made)["held"] is None


def test_a_job_can_be_sent_back_as_read_while_it_is_held(api, made):
    disable(api, "collection")
    whole = job(api, made)

    reply = api("PUT", f"/v1/jobs/{made['id']}", whole)

    assert reply.status == 200, reply.text
