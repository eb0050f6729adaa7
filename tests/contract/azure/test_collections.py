"""Job collections: plans, quotas, states, names in any case, deletion with jobs."""

from __future__ import annotations

import pytest

from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo.conditional import Cancelled
from sweephand.server.store.tenants import counts, tenants
from sweephand.server.store.tenants.counts import Need
from tests.contract.azure.api import COLLECTION, COLLECTIONS, EVERY_HOUR, GROUPS, HTTP, JOB, TENANT, job
from tests.support.endpoint import WRONG

OTHER_NAME = f"{COLLECTIONS}/Other"
MINUTE = {"frequency": "Minute", "interval": 1}


def put(api, path=COLLECTION, **members):
    return api("PUT", path, {"location": "West US", **members})


def test_a_collection_is_shown_as_it_was_sent(api):
    quota = {"maxJobCount": 7, "maxJobOccurrence": 3, "maxRecurrence": {"frequency": "hour", "interval": 2}}
    body = {"location": "West US", "tags": {"team": "ops"}, "properties": {"sku": {"name": "standard"}, "quota": quota}}

    reply = api("PUT", COLLECTION, {"name": "ignored", **body})

    assert reply.status == 201
    assert reply.json == {
        "id": COLLECTION,
        "type": "Microsoft.Scheduler/jobCollections",
        "name": "Nightly",
        "location": "West US",
        "tags": {"team": "ops"},
        "properties": {
            "sku": {"name": "Standard"},
            "state": "Enabled",
            "quota": {**quota, "maxRecurrence": {"frequency": "Hour", "interval": 2}},
        },
    }
    assert api.get(COLLECTION).json == reply.json


def test_the_quota_of_the_plan_is_shown_by_default(api):
    assert api.collection()["properties"]["quota"] == {"maxJobCount": 50, "maxRecurrence": MINUTE}


def test_names_ignore_case_and_keep_the_spelling_of_creation(api):
    api.collection()

    reply = put(api, COLLECTION.upper().replace("SUBSCRIPTIONS", "Subscriptions"))

    assert (reply.status, reply.json["name"], reply.json["id"]) == (200, "Nightly", COLLECTION)
    assert len(api.get(COLLECTIONS.lower()).json["value"]) == 1


def test_put_replaces_everything_and_patch_merges(api):
    put(api, tags={"a": "1"}, properties={"quota": {"maxJobCount": 7}, "sku": {"name": "P10Premium"}})

    patched = api("PATCH", COLLECTION, {"tags": {"b": "2"}, "properties": {"quota": {"maxJobOccurrence": 4}}}).json
    replaced = put(api).json

    assert patched["tags"] == {"b": "2"}
    assert patched["properties"]["sku"] == {"name": "P10Premium"}
    assert patched["properties"]["quota"] == {"maxJobCount": 7, "maxJobOccurrence": 4}
    assert "tags" not in replaced
    assert replaced["properties"]["quota"] == {"maxJobCount": 50, "maxRecurrence": MINUTE}


def test_premium_is_shown_as_p10_except_in_older_versions(api):
    reply = put(api, properties={"sku": {"name": "Premium"}})

    assert reply.json["properties"]["sku"]["name"] == "P10Premium"
    assert api.get(COLLECTION, version="2016-01-01").json["properties"]["sku"]["name"] == "Premium"


def test_collections_of_a_group_and_of_a_subscription_are_listed_by_name(api):
    for path in (OTHER_NAME, COLLECTION, f"{GROUPS}/Second/providers/Microsoft.Scheduler/jobCollections/aaa"):
        api.collection(path)
    api.collection("/subscriptions/sub-12/resourceGroups/group/providers/Microsoft.Scheduler/jobCollections/zzz")

    of_group = api.get(COLLECTIONS).json
    of_subscription = api.get("/subscriptions/sub-1/providers/Microsoft.Scheduler/jobCollections").json
    of_nobody = api.get(f"{GROUPS}/none/providers/Microsoft.Scheduler/jobCollections").json

    assert [each["name"] for each in of_group["value"]] == ["Nightly", "Other"]
    assert [each["name"] for each in of_subscription["value"]] == ["aaa", "Nightly", "Other"]
    assert of_nobody == {"value": [], "nextLink": None}


@pytest.mark.parametrize(
    ("members", "names"),
    [
        ({"location": None}, "location"),
        ({"location": 5}, "location"),
        ({"tags": {"a": 1}}, "tags.a"),
        ({"tags": {f"t{n}": "x" for n in range(16)}}, "tags"),
        ({"properties": {"sku": {"name": "Gold"}}}, "properties.sku.name"),
        ({"properties": {"state": "Deleted"}}, "properties.state"),
        ({"properties": {"quota": {"maxJobCount": 51}}}, "properties.quota.maxJobCount"),
        ({"properties": {"quota": {"maxJobCount": "5"}}}, "properties.quota.maxJobCount"),
        (
            {"properties": {"sku": {"name": "Free"}, "quota": {"maxRecurrence": MINUTE}}},
            "properties.quota.maxRecurrence",
        ),
    ],
)
def test_a_member_that_breaks_a_rule_is_refused_by_name(api, members, names):
    reply = put(api, **members)

    assert reply.status == 400
    assert reply.json["error"]["message"].startswith(names)
    assert api.get(COLLECTION).status == 404


def test_a_subscription_has_one_free_collection(api):
    put(api, properties={"sku": {"name": "Free"}})

    assert put(api, OTHER_NAME, properties={"sku": {"name": "Free"}}).status == 409
    assert put(api, COLLECTION, properties={"sku": {"name": "Free"}}).status == 200


@pytest.mark.parametrize(
    "properties",
    [
        {"recurrence": MINUTE},
        {
            "action": {
                **HTTP,
                "request": {
                    **HTTP["request"],
                    "authentication": {"type": "Basic", "username": "joe", "password": "canary"},
                },
            }
        },
    ],
)
def test_a_change_to_free_is_refused_if_its_jobs_exceed_the_free_plan(api, properties):
    api.job(startTime=api.at(3600), **properties)

    assert api("PATCH", COLLECTION, {"properties": {"sku": {"name": "Free"}}}).status == 409


def test_a_free_collection_refuses_jobs_beyond_its_limits(api):
    put(api, properties={"sku": {"name": "Free"}})

    fast = {**HTTP, "retryPolicy": {"retryType": "Fixed", "retryInterval": "PT30M"}}
    slow = {**HTTP, "retryPolicy": {"retryType": "Fixed"}}

    assert api("PUT", JOB, job(recurrence=MINUTE)).status == 409
    assert api("PUT", JOB, job(action=fast)).status == 409
    shown = api("PUT", JOB, job(action=slow)).json["properties"]["action"]["retryPolicy"]
    assert shown == {"retryType": "Fixed", "retryInterval": "PT1H", "retryCount": 4}


def test_the_job_quota_limits_creates_but_not_updates(api):
    api.collection(quota={"maxJobCount": 1})
    api.job(startTime=api.at(3600))

    assert api("PUT", f"{COLLECTION}/jobs/second", job()).status == 409
    assert api("PUT", JOB, job(startTime=api.at(7200))).status == 200


def test_the_shortest_gap_between_runs_counts_not_only_the_frequency(api):
    api.collection(quota={"maxRecurrence": {"frequency": "Hour", "interval": 1}})

    twice = {"frequency": "Day", "schedule": {"minutes": [0, 30]}}

    assert api("PUT", JOB, job(recurrence=twice)).status == 409
    assert api("PUT", JOB, job(recurrence=EVERY_HOUR)).status == 201
    assert api("PATCH", JOB, {"properties": {"recurrence": twice}}).status == 409


def test_a_count_beyond_max_job_occurrence_is_refused(api):
    api.collection(quota={"maxJobOccurrence": 2})

    assert api("PUT", JOB, job(recurrence={**EVERY_HOUR, "count": 3})).status == 409
    assert api("PUT", JOB, job(recurrence={**EVERY_HOUR, "count": 2})).status == 201


def test_a_disabled_collection_runs_nothing_and_resumes_when_enabled(api):
    api.job(startTime=api.at(3600), recurrence=EVERY_HOUR)

    assert api("POST", f"{COLLECTION}/disable").status == 200
    assert api.get(COLLECTION).json["properties"]["state"] == "Disabled"
    assert "nextExecutionTime" not in api.properties()["status"]
    assert api("POST", f"{JOB}/run").status == 409
    api.stage.run(5400)
    assert api.stage.endpoint.received == []

    assert api("POST", f"{COLLECTION}/enable").status == 200
    assert api.get(COLLECTION).json["properties"]["state"] == "Enabled"
    api.stage.run(3600)
    assert len(api.stage.endpoint.received) == 1


@pytest.mark.parametrize("start_s", [None, -60, 30, 90, 3_600])
def test_a_one_time_job_that_fell_due_in_a_disabled_collection_runs_once_it_is_enabled(api, start_s):
    api.collection(state="Disabled")
    api.job(**({} if start_s is None else {"startTime": api.at(start_s)}))
    api.stage.run(5_400)
    assert api.stage.endpoint.received == []
    assert api.properties()["state"] == "Enabled"
    assert api.history() == []

    api("POST", f"{COLLECTION}/enable")
    api.stage.run(5)

    assert len(api.stage.endpoint.received) == 1
    assert api.properties()["state"] == "Completed"
    assert api.properties()["status"]["executionCount"] == 1


@pytest.mark.parametrize("disabled_s", [1, 55, 1_000])
def test_a_job_waiting_in_a_disabled_collection_runs_once_it_is_enabled(api, disabled_s):
    start = api.at(1_020)
    api.job(startTime=start)
    api.stage.run(disabled_s)

    api("PATCH", COLLECTION, {"properties": {"state": "Disabled"}})
    api.stage.run(2_400)
    api("PATCH", COLLECTION, {"properties": {"state": "Enabled"}})
    api.stage.run(5)

    (record,) = api.history()
    assert record["expectedExecutionTime"] == start.replace("Z", ".000000Z")
    assert api.properties()["state"] == "Completed"


def test_suspended_works_like_disabled_and_is_shown(api):
    put(api, properties={"state": "suspended"})

    assert api.get(COLLECTION).json["properties"]["state"] == "Suspended"
    assert api.native.get("/v1/collections").json["items"][0]["state"] == "DISABLED"


def test_deleting_a_collection_removes_its_jobs_and_frees_its_name_at_once(api):
    api.job(recurrence={"frequency": "Minute"}, startTime=api.at(60))
    before = api.stage.endpoint.received.copy()

    assert api("DELETE", COLLECTION).status == 200

    assert api.get(COLLECTION).status == 404
    assert api.get(JOB).status == 404
    assert api("DELETE", COLLECTION).status == 404
    assert api("PUT", COLLECTION, {"location": "East US"}).status == 201
    assert api.get(f"{COLLECTION}/jobs").json["value"] == []
    api.stage.run(300)
    assert api.stage.endpoint.received == before


@pytest.mark.parametrize("manual", [False, True])
def test_no_retry_starts_after_a_collection_is_deleted_even_before_its_jobs_are(api, manual):
    api.stage.endpoint.answer = WRONG
    api.job(startTime=api.at(86_400 if manual else 10))
    if manual:
        api("POST", f"{JOB}/run")
    api.stage.run(15)
    assert len(api.stage.endpoint.received) == 1

    api("DELETE", COLLECTION)
    api.stage.clock.advance(120)
    for _ in range(5):
        api.stage.tick()
        api.stage.deliver(Lane.SLOW)

    assert len(api.stage.endpoint.received) == 1


def test_the_jobs_of_a_deleted_collection_are_deleted_later(api):
    for n in range(30):
        api.job(f"{COLLECTION}/jobs/job-{n}", startTime=api.at(3600))
    api("DELETE", COLLECTION)
    left = {each["name"]: each["state"] for each in api.native.get("/v1/collections").json["items"]}
    assert list(left.values()).count("DELETING") == 1

    while api.stage.deliver(Lane.OPERATIONS):
        pass

    assert [each["name"] for each in api.native.get("/v1/collections").json["items"]] == ["default"]
    assert api.native.get("/v1/jobs").json["items"] == []


def stored(api):
    """Returns the collection as the store has it."""
    return tenants.read_at(api.stage.world.table, TENANT, "azure", "sub-1/group/nightly/")


def test_a_job_that_arrives_after_its_collection_was_deleted_is_not_added(api):
    api.collection()
    as_read = stored(api)
    api("DELETE", COLLECTION)

    table = api.stage.world.table
    done = table.transact([counts.count_op(table, "collection", tenants.counted(as_read), 1, Need(1))])

    assert isinstance(done, Cancelled)


def test_only_its_own_collection_frees_an_address(api):
    api.collection()
    former, table = stored(api), api.stage.world.table
    api("DELETE", COLLECTION)
    api.collection()

    done = table.transact([tenants.free_address_op(table, former)])

    assert isinstance(done, Cancelled)
    assert api.get(COLLECTION).status == 200


def test_an_omitted_retry_interval_shows_the_jobs_own_even_after_a_change_of_plan(api):
    api.job(startTime=api.at(3600), action={**HTTP, "retryPolicy": {"retryType": "Fixed"}})

    assert api("PATCH", COLLECTION, {"properties": {"sku": {"name": "Free"}}}).status == 200

    assert api.properties()["action"]["retryPolicy"]["retryInterval"] == "PT30S"
    api.stage.endpoint.script = [WRONG]
    api.stage.run(3600 + 45)
    assert len(api.stage.endpoint.received) == 2


def test_a_refusal_by_a_lowered_quota_names_quota_and_count(api):
    for name in ("a", "b", "c"):
        api.job(f"{COLLECTION}/jobs/{name}", startTime=api.at(3600))
    api("PATCH", COLLECTION, {"properties": {"quota": {"maxJobCount": 2}}})

    refused = api("PUT", f"{COLLECTION}/jobs/d", job())

    assert refused.status == 409
    message = "the collection Nightly has 3 jobs, and its quota maxJobCount allows 2: delete jobs, or raise the quota"
    assert refused.json["error"]["message"] == message
