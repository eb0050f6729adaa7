"""Collections: a tenant's groups of jobs with what they allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.contract.native import shapes
from tests.contract.native.api import JOB
from tests.contract.native.test_lists import joined, names, pages
from tests.support.endpoint import ACCEPTED

QUOTA = {"maxJobs": 2, "maxRunsPerJob": 1_000, "minIntervalSeconds": 60}


def test_every_tenant_has_the_collection_named_default(api):
    reply = api.get("/v1/collections/default")

    assert reply.json.keys() == shapes.COLLECTION
    assert reply.json["quota"] == dict.fromkeys(shapes.QUOTA)
    assert (reply.json["name"], reply.json["state"], reply.json["jobCount"]) == ("default", "ENABLED", 0)


def test_a_collection_is_created_read_and_listed(api):
    made = api("POST", "/v1/collections", {"name": "night.jobs_1-a", "quota": QUOTA})
    read = api.get(made.headers["location"])

    assert (made.status, made.headers["location"]) == (201, "/v1/collections/night.jobs_1-a")
    assert made.headers["etag"] == read.headers["etag"] == '"1"'
    assert made.json == read.json
    assert made.json.keys() == shapes.COLLECTION
    assert made.json["quota"] == QUOTA
    assert api.get("/v1/collections").json["items"][1] == made.json


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_collections_are_listed_by_name_page_by_page(api, count):
    for n in range(count):
        api("POST", "/v1/collections", {"name": f"c{9 - n}"})

    found = joined(pages(api, "/v1/collections", 2))

    assert names(found) == sorted([*(f"c{9 - n}" for n in range(count)), "default"])


USUAL = {"timezone": None, "retry": None, "policies": {}}


def test_omitted_members_take_their_defaults(api):
    made = api("POST", "/v1/collections", {"name": "c", "retention": {}, "defaults": {"policies": {}}}).json

    assert made["retention"] == {"runDays": 15, "endedJobDays": 60}
    assert (made["events"], made["defaults"]) == ("failures", USUAL)


def test_settings_are_stored_patched_and_reset(api):
    retry = {
        "type": "fixed",
        "maxRetries": 2,
        "delaySeconds": 60,
        "retryOn": "any",
        "neverOn": [],
        "maxAgeSeconds": None,
    }
    settings = {
        "retention": {"runDays": 3_650, "endedJobDays": 0},
        "events": "none",
        "defaults": {"timezone": "Europe/Berlin", "retry": retry, "policies": {"keepAnswer": "all"}},
    }
    made = api("POST", "/v1/collections", {"name": "c", **settings}).json
    with api.unchanged():
        again = api("PUT", "/v1/collections/c", made).json
    patch = {"retention": {"runDays": None}, "events": "all", "defaults": {"retry": None}}
    patched = api("PATCH", "/v1/collections/c", patch).json
    replaced = api("PUT", "/v1/collections/c", {}).json

    assert {name: made[name] for name in settings} == settings
    assert again == made
    assert patched["retention"] == {"runDays": 15, "endedJobDays": 0}
    assert (patched["events"], patched["defaults"]) == ("all", settings["defaults"] | {"retry": None})
    assert replaced["retention"] == {"runDays": 15, "endedJobDays": 60}
    assert (replaced["events"], replaced["defaults"]) == ("failures", USUAL)


def test_a_new_job_gets_the_defaults_of_its_collection(api):
    retry = {
        "type": "fixed",
        "maxRetries": 2,
        "delaySeconds": 60,
        "retryOn": "any",
        "neverOn": [],
        "maxAgeSeconds": None,
    }
    policies = {"keepAnswer": "all", "misfire": {"type": "latest"}}
    defaults = {"timezone": "Europe/Berlin", "retry": retry, "policies": policies}
    api("POST", "/v1/collections", {"name": "c", "defaults": defaults})

    silent = api.create(collection="c", schedules=[{"cron": "0 3 * * *"}], policies={"delivery": None})
    outspoken = api.create(
        collection="c",
        action={"type": "http", "url": "https://example.org/", "retry": {"type": "none"}},
        policies={"keepAnswer": "none"},
        schedules=[{"cron": "0 3 * * *", "timezone": "UTC"}],
    )
    added = api("POST", f"/v1/jobs/{outspoken['id']}/schedules", {"cron": "0 4 * * *"}).json
    elsewhere = api.create(schedules=[{"cron": "0 3 * * *"}])

    assert silent["action"]["retry"] == retry
    assert (silent["policies"]["keepAnswer"], silent["policies"]["misfire"]["type"]) == ("all", "latest")
    assert [each["timezone"] for each in silent["schedules"]] == ["Europe/Berlin"]
    assert outspoken["action"]["retry"] == {"type": "none"}
    assert (outspoken["policies"]["keepAnswer"], outspoken["policies"]["misfire"]["type"]) == ("none", "latest")
    assert [each["timezone"] for each in outspoken["schedules"]] == ["UTC"]
    assert added["timezone"] == "Europe/Berlin"
    assert elsewhere["action"]["retry"] == {"type": "none"}
    assert elsewhere["schedules"][0]["timezone"] == "UTC"


EVENT = {"type": "event"}


@pytest.mark.parametrize("of_collection", [True, False], ids=["collection", "stack"])
def test_the_callback_timeout_defaults_to_the_collections_and_then_to_the_stacks(api, of_collection):
    """For each of its actions: whatever may wait for a result."""
    if of_collection:
        api("PATCH", "/v1/collections/default", {"callbackTimeoutSeconds": 60})
    else:
        world = api.stage.world
        api.stage.world = replace(world, settings=replace(world.settings, callback_timeout_s=60))
        api.facade.world = api.stage.world
    http = {"type": "http", "url": "https://example.org/run", "outcome": {"on202": "wait"}}

    made = api.create(action=http, errorAction=EVENT, hooks={"onFailure": EVENT})
    says = api.create(
        action={**http, "outcome": {"callbackTimeoutSeconds": 90}}, errorAction={"type": "job", "jobId": made["id"]}
    )

    waits = [made["action"], made["errorAction"], made["hooks"]["onFailure"]]
    assert [each["outcome"]["callbackTimeoutSeconds"] for each in waits] == [60, 60, 60]
    assert says["action"]["outcome"]["callbackTimeoutSeconds"] == 90
    api.stage.endpoint.answer = ACCEPTED
    api.stage.pass_time(3)
    started = api("POST", f"/v1/jobs/{made['id']}/run").json
    api.stage.deliver_all()
    run = api.get(f"/v1/runs/{started['runId']}").json
    assert (run["state"], run["callbackDeadlineAt"]) == ("ACK_RECVD", "2027-03-01T12:01:04.000Z")


def test_the_callback_timeout_of_a_job_without_its_own_follows_its_collection(api):
    """Also of one that was read and sent back meanwhile."""
    api.stage.endpoint.answer = ACCEPTED
    http = {"type": "http", "url": "https://example.org/run", "outcome": {"on202": "wait"}}
    hooks = {"onFailure": EVENT}
    made = api.create(action=http, schedules=[{"cron": "0 4 * * *", "hooks": hooks}])
    path = f"/v1/jobs/{made['id']}"
    says = api.create(action={**http, "outcome": {"on202": "wait", "callbackTimeoutSeconds": 1_800}})
    same = api("PUT", path, made)
    schedule = made["schedules"][0]
    as_shown = api("PUT", f"{path}/schedules/{schedule['id']}", schedule)
    api("PATCH", path, {"description": "new"})

    api("PATCH", "/v1/collections/default", {"callbackTimeoutSeconds": 60})
    api.stage.pass_time(3)
    started = api("POST", f"{path}/run").json
    api.stage.deliver_all()

    assert (same.status, same.revision, as_shown.revision) == (200, 1, 1)
    assert made["action"]["outcome"]["callbackTimeoutSeconds"] == 1_800
    there = api.get(path, query={"include": "schedules"}).json
    own = there["schedules"][0]["hooks"]["onFailure"]
    assert [each["outcome"]["callbackTimeoutSeconds"] for each in (there["action"], own)] == [60, 60]
    listed = {
        each["id"]: each["action"]["outcome"]["callbackTimeoutSeconds"] for each in api.get("/v1/jobs").json["items"]
    }
    assert listed == {made["id"]: 60, says["id"]: 1_800}
    run = api.get(f"/v1/runs/{started['runId']}").json
    assert (run["state"], run["callbackDeadlineAt"]) == ("ACK_RECVD", "2027-03-01T12:01:04.000Z")


def test_a_jobs_own_callback_timeout_is_kept(api):
    made = api.create(action={"type": "http", "url": "https://example.org/run"})
    path = f"/v1/jobs/{made['id']}"
    api("PATCH", path, {"action": {"outcome": {"callbackTimeoutSeconds": 90}}})
    api("PATCH", "/v1/collections/default", {"callbackTimeoutSeconds": 60})

    kept = api.get(path).json["action"]["outcome"]["callbackTimeoutSeconds"]
    api("PATCH", path, {"action": {"outcome": {"callbackTimeoutSeconds": None}}})

    assert kept == 90
    assert api.get(path).json["action"]["outcome"]["callbackTimeoutSeconds"] == 60
    (first, *_) = api.get(f"{path}/changes").json["items"]
    assert [(each["old"], each["new"]) for each in first["changes"]] == [(90, None)]


def test_later_defaults_do_not_change_existing_jobs(api):
    api("POST", "/v1/collections", {"name": "c", "defaults": {"timezone": "Europe/Berlin"}})
    made = api.create(collection="c", schedules=[{"cron": "0 3 * * *"}])
    api("PATCH", "/v1/collections/c", {"defaults": {"timezone": "Asia/Tokyo", "policies": {"keepAnswer": "all"}}})

    put = api("PUT", f"/v1/jobs/{made['id']}", made).json

    assert put["policies"]["keepAnswer"] == "failures"
    assert api.get(f"/v1/jobs/{made['id']}/schedules").json["items"][0]["timezone"] == "Europe/Berlin"


@pytest.mark.parametrize("collection", [7, "", [], "a b", "x" * 5_000, "nowhere"])
def test_the_defaults_of_its_collection_are_applied_before_a_job_is_checked(api, collection):
    with api.unchanged():
        reply = api("POST", "/v1/jobs", JOB | {"collection": collection})

    assert (reply.status, reply.fields) == (422, ["collection"])


@pytest.mark.parametrize("body", [[], {"action": []}, {"action": None}, {"schedules": ["x"]}, {"policies": 7}])
def test_defaults_do_not_make_an_invalid_job_valid(api, body):
    defaults = {"timezone": "Europe/Berlin", "retry": {"type": "fixed"}, "policies": {"keepAnswer": "all"}}
    api("PATCH", "/v1/collections/default", {"defaults": defaults})

    with api.unchanged():
        reply = api("POST", "/v1/jobs", JOB | body if isinstance(body, dict) else body)

    assert reply.status == 422


def test_a_collection_name_can_be_used_once(api):
    with api.unchanged():
        another = api("POST", "/v1/collections", {"name": "default", "quota": QUOTA})
        api.stage.clock.advance(1)
        later = api("POST", "/v1/collections", {"name": "default"})

    assert {(each.status, each.code) for each in (another, later)} == {(409, "NAME_TAKEN")}


def test_putting_back_an_answer_changes_nothing(api):
    api("POST", "/v1/collections", {"name": "c", "quota": QUOTA})
    api("POST", "/v1/collections/c/disable")
    read = api.get("/v1/collections/c")

    with api.unchanged():
        put = api("PUT", "/v1/collections/c", read.json)
        patched = api("PATCH", "/v1/collections/c", read.json)
        empty = api("PATCH", "/v1/collections/c", {})

    for reply in (put, patched, empty):
        assert (reply.status, reply.json, reply.revision) == (200, read.json, 2)


def test_a_collection_can_be_replaced_and_patched(api):
    api("POST", "/v1/collections", {"name": "c", "quota": QUOTA})

    patched = api("PATCH", "/v1/collections/c", {"quota": {"maxJobs": None}}).json["quota"]
    put = api("PUT", "/v1/collections/c", {"quota": {"maxJobs": 7}}).json["quota"]

    assert patched == QUOTA | {"maxJobs": None}
    assert put == {"maxJobs": 7, "maxRunsPerJob": None, "minIntervalSeconds": None}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "", {}),
        ("PATCH", "", {}),
        ("DELETE", "", None),
        ("POST", "/enable", None),
        ("POST", "/disable", None),
    ],
)
def test_if_match_with_another_revision_changes_nothing(api, method, path, body):
    api("POST", "/v1/collections", {"name": "c"})

    with api.unchanged():
        reply = api(method, f"/v1/collections/c{path}", body, headers={"if-match": '"9"'})

    assert (reply.status, reply.code) == (412, "REVISION_MISMATCH")


def test_the_job_quota_is_enforced(api):
    api("POST", "/v1/collections", {"name": "c", "quota": {"maxJobs": 1}})
    first = api.create(collection="c")

    with api.unchanged():
        second = api("POST", "/v1/jobs", JOB | {"collection": "c"})
    api("DELETE", f"/v1/jobs/{first['id']}")
    third = api("POST", "/v1/jobs", JOB | {"collection": "c"})
    moved = api.create()
    with api.unchanged():
        into = api("PATCH", f"/v1/jobs/{moved['id']}", {"collection": "c"})

    assert (second.status, second.code) == (409, "QUOTA_EXCEEDED")
    assert third.status == 201
    assert (into.status, into.code) == (409, "QUOTA_EXCEEDED")


def test_the_shortest_allowed_interval_is_enforced(api):
    api("POST", "/v1/collections", {"name": "c", "quota": {"minIntervalSeconds": 60}})
    fast, slow = {"every": "PT59S"}, {"every": "PT60S"}

    with api.unchanged():
        refused = api("POST", "/v1/jobs", JOB | {"collection": "c", "schedules": [slow, fast]})
    made = api.create(collection="c", schedules=[slow])
    place = f"/v1/jobs/{made['id']}/schedules"
    with api.unchanged():
        added = api("POST", place, fast)
        changed = api("PATCH", f"{place}/{made['schedules'][0]['id']}", fast)

    assert {each.code for each in (refused, added, changed)} == {"QUOTA_EXCEEDED"}
    assert "schedules[1]" in refused.json["detail"]


def test_the_quota_of_runs_is_enforced_for_each_schedule(api):
    api("POST", "/v1/collections", {"name": "c", "quota": {"maxRunsPerJob": 3}})
    every = {"every": "PT20S"}

    with api.unchanged():
        refused = api("POST", "/v1/jobs", JOB | {"collection": "c", "schedules": [every | {"count": 4}]})
    made = api.create(collection="c", schedules=[every | {"count": 2}, every | {"name": "without"}])
    place = f"/v1/jobs/{made['id']}/schedules"
    with api.unchanged():
        more = api("PATCH", f"{place}/{made['schedules'][0]['id']}", {"count": 4})
        again = api("PUT", f"/v1/jobs/{made['id']}", made)
    api.stage.run(600)
    ended = api.get(place).json["items"]
    moved = api.create(schedules=[every])
    api("PATCH", f"/v1/jobs/{moved['id']}", {"collection": "c"})
    api.stage.run(600)

    assert {each.code for each in (refused, more)} == {"QUOTA_EXCEEDED"}
    assert again.json["revision"] == made["revision"]
    assert [each["totals"]["planned"] for each in ended] == [2, 3]
    assert [(each["state"], each["stateReason"]) for each in ended] == [
        ("COMPLETED", "COUNT_REACHED"),
        ("COMPLETED", "QUOTA_REACHED"),
    ]
    assert ended[1]["count"] is None
    assert api.get(f"/v1/jobs/{moved['id']}/schedules").json["items"][0]["totals"]["planned"] == 3


def test_a_lower_quota_keeps_existing_jobs(api):
    api("POST", "/v1/collections", {"name": "c"})
    made = api.create(collection="c", schedules=[{"every": "PT20S", "count": 5}])
    api("PATCH", "/v1/collections/c", {"quota": {"maxRunsPerJob": 2}})

    renamed = api("PATCH", f"/v1/jobs/{made['id']}", {"name": "other"})
    api.stage.run(600)

    assert renamed.status == 200
    assert api.get(f"/v1/jobs/{made['id']}/schedules").json["items"][0]["totals"]["planned"] == 5


def test_a_disabled_collection_runs_nothing_until_it_is_enabled(api):
    api.create(schedules=[{"every": "PT20S"}])

    off = api("POST", "/v1/collections/default/disable")
    with api.unchanged():
        assert api("POST", "/v1/collections/default/disable", {}).revision == 2
    api.stage.run(50)
    states = {each["reason"] for each in api.get("/v1/runs").json["items"]}
    on = api("POST", "/v1/collections/default/enable")
    api.stage.run(50)

    assert (off.json["state"], on.json["state"], on.revision) == ("DISABLED", "ENABLED", 3)
    assert states == {"DISABLED"}
    assert len(api.stage.endpoint.received) == 2


def test_a_collection_can_be_deleted_once_it_is_empty(api):
    api("POST", "/v1/collections", {"name": "c"})
    job = api.create(collection="c")

    with api.unchanged():
        full = api("DELETE", "/v1/collections/c")
    api("DELETE", f"/v1/jobs/{job['id']}")
    gone = api("DELETE", "/v1/collections/c")

    assert (full.status, full.code) == (409, "STATE_CONFLICT")
    assert (gone.status, gone.text) == (204, "")
    assert api.get("/v1/collections/c").status == 404
    assert api("DELETE", "/v1/collections/c").status == 404
    assert api("POST", "/v1/jobs", JOB | {"collection": "c"}).fields == ["collection"]


def test_the_collection_named_default_cannot_be_deleted(api):
    with api.unchanged():
        reply = api("DELETE", "/v1/collections/default")

    assert (reply.status, reply.code) == (409, "STATE_CONFLICT")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": None}, "name"),
        *(
            ({"name": name}, "name")
            for name in ("", ".", "..", "-a", "a b", "a/b", "a#b", "a%23", "ä", "a\n", "x" * 129, "x" * 70_000, 7, [])
        ),
        ({"name": "c", "quota": []}, "quota"),
        ({"name": "c", "quota": {"maxJobs": 0}}, "quota.maxJobs"),
        ({"name": "c", "quota": {"maxJobs": 1.0}}, "quota.maxJobs"),
        ({"name": "c", "quota": {"maxJobs": 10**30}}, "quota.maxJobs"),
        ({"name": "c", "quota": {"minIntervalSeconds": -1}}, "quota.minIntervalSeconds"),
        ({"name": "c", "quota": {"minIntervalSeconds": "60"}}, "quota.minIntervalSeconds"),
        ({"name": "c", "quota": {"maxRunsPerJob": 0}}, "quota.maxRunsPerJob"),
        ({"name": "c", "quota": {"maxRunsPerJob": 2**31}}, "quota.maxRunsPerJob"),
        ({"name": "c", "quota": {"x": None}}, "quota.x"),
        ({"name": "c", "retention": 30}, "retention"),
        ({"name": "c", "retention": {"runDays": 14}}, "retention.runDays"),
        ({"name": "c", "retention": {"runDays": 3_651}}, "retention.runDays"),
        ({"name": "c", "retention": {"endedJobDays": -1}}, "retention.endedJobDays"),
        ({"name": "c", "retention": {"days": 15}}, "retention.days"),
        ({"name": "c", "events": ""}, "events"),
        ({"name": "c", "events": ["all"]}, "events"),
        ({"name": "c", "defaults": 0}, "defaults"),
        ({"name": "c", "defaults": {"name": "x"}}, "defaults.name"),
        ({"name": "c", "defaults": {"timezone": "Europe/Berlinn"}}, "defaults.timezone"),
        ({"name": "c", "defaults": {"timezone": "../../etc/passwd"}}, "defaults.timezone"),
        ({"name": "c", "defaults": {"timezone": 1}}, "defaults.timezone"),
        ({"name": "c", "defaults": {"retry": {"type": "never"}}}, "defaults.retry.type"),
        ({"name": "c", "defaults": {"policies": {"misfire": {"type": "x"}}}}, "defaults.policies.misfire.type"),
        ({"name": "c", "state": "DISABLED"}, "state"),
        ({"name": "c", "x": 1}, "x"),
        ([], "body"),
        ("c", "body"),
    ],
)
def test_an_invalid_collection_is_refused(api, body, field):
    with api.unchanged():
        reply = api("POST", "/v1/collections", body)

    assert (reply.status, reply.fields) == (422, [field])


def test_a_collection_cannot_be_renamed(api):
    with api.unchanged():
        for method in ("PUT", "PATCH"):
            reply = api(method, "/v1/collections/default", {"name": "other"})
            assert (reply.status, reply.fields) == (422, ["name"])


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"])
@pytest.mark.parametrize(
    ("least_s", "timing", "refused_s"),
    [
        (86_400, {"cron": "0 9 * * *"}, None),
        (604_800, {"cron": "0 9 * * 1"}, None),
        (2_419_200, {"every": "P1M"}, None),
        (86_400, {"cron": "0 9,17 * * *"}, "28,800"),
        (86_400, {"cron": "0 9 * * *", "calendars": [{"name": "weekend", "roll": "next"}]}, None),
    ],
)
def test_a_quota_of_a_day_is_a_day_by_the_clock_in_every_zone(api, zone, least_s, timing, refused_s):
    api("POST", "/v1/calendars", {"name": "weekend", "weekly": [{"days": ["SAT", "SUN"]}]})
    api("POST", "/v1/collections", {"name": "rare", "quota": {"minIntervalSeconds": least_s}})
    schedule = {"timezone": zone, **timing}
    job = {**JOB, "collection": "rare", "schedules": [{"name": "a", **schedule}]}

    replies = [
        api("POST", "/v1/jobs", job),
        api("PUT", "/v1/job-sets/s", {"jobs": [{"key": "a", **job}]}),
        api("POST", "/v1/schedules:preview", {**schedule, "collection": "rare"}),
    ]

    if refused_s is None:
        assert [reply.status for reply in replies] == [201, 200, 200]
    else:
        assert {(reply.status, reply.code) for reply in replies} == {(409, "QUOTA_EXCEEDED")}
        assert f"two of this schedule may be {refused_s} seconds apart" in replies[0].json["detail"]
