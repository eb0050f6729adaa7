"""Jobs: create, read, list, change, replace, delete, count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweephand.schedules.text.duration import INTERVAL
from sweephand.schedules.text.iso_dates import EXPECTED as DATE
from tests.contract.sap.api import JOB, OTHER

EVERY_HOUR = {"repeatInterval": "1 hour", "description": "beat", "data": {"n": 1}}
NIGHTLY = {"cron": "* * * * 2 30 0", "description": "nightly"}
UNSET = dict.fromkeys(("cron", "time", "repeatInterval", "repeatAt", "startTime", "endTime"))


# Create


def test_a_created_job_is_answered_as_documented(api):
    reply = api("POST", "/jobs", {**JOB, "schedules": [{"active": True, **EVERY_HOUR}, {"active": False, **NIGHTLY}]})

    body = reply.json
    assert reply.status == 201
    assert reply.headers["location"] == f"/scheduler/jobs/{body['_id']}"
    assert isinstance(body["_id"], int)
    first, second = body.pop("schedules")
    assert body == {
        "_id": body["_id"],
        **JOB,
        "startTime": None,
        "endTime": None,
        "signatureVersion": 0,
    }
    assert first == UNSET | {
        "scheduleId": first["scheduleId"],
        "description": "beat",
        "data": '{"n":1}',
        "type": "recurring",
        "repeatInterval": "1 hour",
        "active": True,
        "nextRunAt": "2027-03-01 13:00:01",
        "modifiedAt": "2027-03-01 12:00:00",
    }
    assert (second["cron"], second["active"], second["nextRunAt"]) == ("* * * * 2 30 0", False, None)


def test_optional_members_are_as_documented(api):
    body = api("POST", "/jobs", {"name": "least", "action": "https://example.org/run", "schedules": []}).json

    assert (body["description"], body["active"], body["httpMethod"], body["schedules"]) == ("", False, "POST", [])


@pytest.mark.parametrize("active", [1, "true", True])
def test_active_may_be_written_in_several_ways(api, active):
    assert api("POST", "/jobs", {**JOB, "active": active, "schedules": []}).json["active"] is True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "4711"}, 'name: must consist of letters, digits, - and _, and must not be a number, not "4711"'),
        ({"name": "my job"}, 'name: must consist of letters, digits, - and _, and must not be a number, not "my job"'),
        ({"name": None}, "name: is required"),
        ({"action": None}, "action: is required"),
        ({"action": "ftp://x"}, "action: "),
        ({"httpMethod": "PATCH"}, "httpMethod: must be one of GET, POST, PUT, DELETE"),
        ({"active": "yes"}, 'active: must be true or false, not "yes"'),
        ({"schedules": {}}, "Schedules must be an array"),
        ({"schedules": None}, "schedules: is required"),
        ({"schedules": [{"active": True, **EVERY_HOUR}, 5]}, "schedules[1]: must be an object"),
        ({"user": "joe"}, "password: is required"),
        ({"password": "canary"}, "user: is required"),
        ({"user": "", "password": "canary"}, "user: is required"),
        ({"schedules": [{"cron": "* * * * * * *"}]}, "schedules[0].active: is required"),
        ({"schedules": [{"active": True}]}, "one of cron, time, repeatInterval, repeatAt is required"),
        (
            {"schedules": [{"active": True, "repeatInterval": "1 hour", "repeatAt": "4.40pm"}]},
            "Extra scheduling parameters passed",
        ),
        ({"schedules": [{"active": True, "repeatInterval": "1 hour", "data": "text"}]}, "schedules[0].data: "),
        (
            {"startTime": "soon"},
            f'startTime: must be {DATE}, not "soon"',
        ),
        (
            {"schedules": [{"active": True, "repeatInterval": "5 minuts"}]},
            f'schedules[0].repeatInterval: must be {INTERVAL}, not "5 minuts"',
        ),
        ({"startTime": "2027-04-01", "endTime": "2027-03-01"}, "endTime: must not be before startTime"),
        ({"calmConfig": {}}, "'calmConfig' object cannot be empty"),
        ({"calmConfig": {"on": True}}, "'on' is not an allowed property for object 'calmConfig'"),
        ({"calmConfig": {"enabled": "yes"}}, "'enabled' in 'calmConfig' must be of type 'boolean'"),
        ({"ansConfig": {"onSuccess": 1}}, "'onSuccess' in 'ansConfig' must be of type 'boolean'"),
        ({"ansConfig": {"onFire": True}}, "'onFire' is not an allowed property for object 'ansConfig'"),
        ({"jobType": "CF_TASK"}, "tasks (CF_TASK) cannot be created with this API: to run a container, create a job"),
        ({"jobType": ["CF_TASK"]}, "jobType: must be HTTP_ENDPOINT, not a list"),
    ],
)
def test_a_refused_create_says_why_and_stores_nothing(api, change, message):
    with api.native.unchanged():
        reply = api("POST", "/jobs", {**JOB, "schedules": [{"active": True, **EVERY_HOUR}], **change})

    assert reply.status == 400
    assert reply.json["message"].startswith(f"Error while creating job: {message}")
    assert api.get("/jobs").json["total"] == 0


@pytest.mark.parametrize(
    ("cron", "why"),
    [
        ("* * 32 * * * 0", 'day must be -31 to -1, or 1 to 31, not "32"'),
        ("* * * 10:12 */30 0", "seven fields"),
        ("* * * * 4", "seven fields"),
    ],
)
def test_an_invalid_cron_is_refused_in_the_wording_that_two_kinds_of_clients_expect(api, cron, why):
    reply = api("POST", "/jobs", {**JOB, "schedules": [{"active": True, "cron": cron}]})

    assert reply.status == 400
    assert "Invalid cron specified (xscron" in reply.json["message"]
    assert why in reply.json["message"]


def test_an_invalid_cron_among_many_schedules_is_located(api):
    schedules = [{"active": True, "cron": "* * * * 3 0 0"}] * 30
    schedules[16] = {"active": True, "cron": "* * 32 * * * 0"}

    reply = api("POST", "/jobs", {**JOB, "schedules": schedules})

    assert (
        'Invalid cron specified (xscron: schedules[16].cron: day must be -31 to -1, or 1 to 31, not "32"'
        in reply.json["message"]
    )


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/jobs"), ("PUT", "/jobs/report"), ("POST", "/jobs/1/schedules")]
)
@pytest.mark.parametrize("body", [[], "text", 5, [{"name": "x"}]])
def test_a_body_that_is_not_an_object_is_named_as_the_body(api, method, path, body):
    api.create()

    reply = api(method, path, body)

    assert reply.status == 400
    assert reply.json["message"].endswith("job: the body must be a JSON object: {...}")


def test_a_job_cannot_become_a_task(api):
    made = api.create()
    body = {**JOB, "schedules": []}

    for where in (f"/jobs/{made['_id']}", "/jobs/report"):
        refused = api("PUT", where, {**body, "jobType": "CF_TASK"})
        assert refused.status == 400
        assert refused.json["message"].startswith("Error while configuring job: tasks (CF_TASK) cannot be created")
        assert api("PUT", where, {**body, "jobType": "HTTP_ENDPOINT"}).status == 200
    assert api.get("/jobs", query={"jobType": "HTTP_ENDPOINT"}).json["total"] == 1
    assert api.get("/jobs", query={"jobType": "CF_TASK"}).json == {
        "total": 0,
        "results": [],
        "prev_url": None,
        "next_url": None,
    }
    assert api.get("/jobs", query={"jobType": "DAEMON"}).status == 400


def test_an_invalid_third_schedule_leaves_none_of_the_first_two(api):
    good = {"active": True, **EVERY_HOUR}

    reply = api("POST", "/jobs", {**JOB, "schedules": [good, good, {"active": True, "cron": "x"}]})

    assert reply.status == 400
    assert api.get("/jobs").json["results"] == []


def test_a_schedule_quota_is_refused_as_forbidden(api):
    patched = api.native("PATCH", "/v1/tenants/acme", {"quota": {"maxSchedules": 1}}, caller="provider")
    assert patched.status == 200
    job = api.create(EVERY_HOUR)

    create = api("POST", "/jobs", {**JOB, "name": "second", "schedules": [{"active": True, **NIGHTLY}]})
    add = api("POST", f"/jobs/{job['_id']}/schedules", {"active": True, **NIGHTLY})

    assert {reply.json["type"] for reply in (create, add)} == {"Forbidden Request"}
    most = "the provider allows this tenant 1 schedules at most (quota.maxSchedules of the tenant)"
    said = f"Error while creating job: {most}: delete some, or ask the provider for more"
    assert (create.status, create.json["message"]) == (403, said)
    assert (add.status, "allows this tenant 1 schedules at most" in add.json["message"]) == (403, True)
    assert api("POST", "/jobs", {**JOB, "name": "none", "schedules": []}).status == 201


def test_a_body_over_100_kilobytes_is_413(api):
    assert api("POST", "/jobs", {**JOB, "schedules": [], "description": "x" * 110_000}).status == 413


def test_names_are_unique_in_a_tenant(api):
    api.create()

    again = api("POST", "/jobs", {**JOB, "schedules": []})

    assert (again.status, again.json["message"]) == (400, "Error while creating job: a job with the name report exists")
    assert api("POST", "/jobs", {**JOB, "schedules": []}, caller=OTHER).status == 201
    assert api("POST", "/jobs", {**JOB, "schedules": []}, caller="provider").status == 201


def test_integer_ids_are_unique_across_the_stack(api):
    ids = [api.create(name=f"job{n}", caller=caller)["_id"] for n in range(3) for caller in ("acme", OTHER, "provider")]

    assert len(set(ids)) == 9
    assert max(ids) < 2**53


# Read


def test_one_job_is_read_by_its_id_and_by_its_name(api):
    made = api.create(EVERY_HOUR, user="joe", password="canary-secret", ansConfig={"onError": True})

    by_path = api.get(f"/jobs/{made['_id']}").json
    by_id = api.get("/jobs", query={"jobId": made["_id"]}).json
    by_name = api.get("/jobs", query={"name": "report"}).json

    assert by_path == by_id == by_name
    assert by_path.keys() == (made.keys() - {"schedules"}) | {"user", "ansConfig", "calmConfig"}
    assert (by_path["user"], by_path["ansConfig"], by_path["calmConfig"]) == (
        "joe",
        {"onSuccess": False, "onError": True},
        {"enabled": False},
    )
    assert "schedules" not in by_path
    assert "password" not in by_path
    with_schedules = api.get(f"/jobs/{made['_id']}", query={"displaySchedules": "true"}).json
    assert with_schedules["schedules"] == made["schedules"]


@pytest.mark.parametrize("path", ["/jobs/999", "/jobs/none", "/jobs/00000000000000000000009"])
def test_an_unknown_job_is_404(api, path):
    assert api.get(path).status == 404


def test_another_tenants_job_is_404_on_every_route(api):
    made = api.create(EVERY_HOUR)
    job, schedule = f"/jobs/{made['_id']}", f"/jobs/{made['_id']}/schedules/{made['schedules'][0]['scheduleId']}"

    for method, path, body in (
        ("GET", job, None),
        ("PUT", job, {"active": False}),
        ("DELETE", job, None),
        ("GET", f"{job}/schedules", None),
        ("POST", f"{job}/schedules", {"active": True, **EVERY_HOUR}),
        ("DELETE", f"{job}/schedules", None),
        ("POST", f"{job}/schedules/activationStatus", {"activationStatus": False}),
        ("GET", schedule, None),
        ("PUT", schedule, {"active": False}),
        ("DELETE", schedule, None),
        ("GET", f"{schedule}/runs", None),
        ("PUT", f"{schedule}/runs/018f0000-0000-7000-8000-000000000000", {"success": True}),
    ):
        reply = api(method, path, body, caller=OTHER)
        assert (reply.status, reply.json["type"]) == (404, "Resource Not Found"), (method, path)
    assert api.get("/jobs", caller=OTHER, query={"name": "report"}).status == 404
    assert api.get("/actionLogs", caller=OTHER, query={"jobId": made["_id"]}).status == 404
    assert api.get(job).status == 200


def test_the_provider_sees_all_tenants_jobs_and_may_select_one_tenant(api):
    mine, theirs = api.create(), api.create(caller=OTHER)
    own = api.create(name="own", caller="provider")

    everything = api.get("/jobs", caller="provider").json
    narrowed = api.get("/jobs", caller="provider", query={"tenantId": OTHER}).json

    assert [each["_id"] for each in everything["results"]] == [own["_id"], mine["_id"], theirs["_id"]]
    assert [each["_id"] for each in narrowed["results"]] == [theirs["_id"]]
    assert api.get(f"/jobs/{mine['_id']}", caller="provider").json["name"] == "report"
    assert api.get("/jobs", query={"tenantId": OTHER}).status == 400
    assert api.get("/jobs", caller="provider", query={"name": "report"}).status == 404
    assert api.get("/jobs", caller="provider", query={"name": "report", "tenantId": OTHER}).json["_id"] == theirs["_id"]


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({"page_size": 1}, 400, "Invalid query"),
        ({"offset": 0}, 400, "Invalid query"),
        ({"name": "another"}, 400, "Invalid query"),
        ({"tenantId": OTHER}, 400, "tenantId is for callers of provider level"),
        ({"jobId": 4711}, 404, "Job Not Found"),
    ],
)
def test_a_list_filtered_by_id_refuses_in_the_wording_for_one_job(api, query, status, message):
    made = api.create()

    reply = api.get("/jobs", query={"jobId": made["_id"], **query})

    assert (reply.status, reply.json["message"]) == (status, f"Error while fetching job details: {message}")


def test_a_tenants_caller_cannot_name_a_tenant_on_any_route(api):
    job = f"/jobs/{api.create()['_id']}"
    query = {"tenantId": "acme", "jobType": "CF_TASK", "q": "x", "jobId": job[6:]}

    for where in ("/jobs", job, "/jobCount", "/search/jobs", "/search/schedules", "/actionLogs", "/globalParameters"):
        assert api.get(where, query=query).status == 400
    assert api("DELETE", job, query=query).status == 400
    assert api.get(job).status == 200


def test_the_provider_replaces_a_tenants_job_by_its_name(api):
    made = api.create(caller=OTHER)

    def put(tenant, description):
        body = {**JOB, "description": description, "schedules": []}
        return api("PUT", "/jobs/report", body, caller="provider", query={"tenantId": tenant})

    replaced, created = put(OTHER, "new"), put("acme", "first")

    assert (replaced.status, replaced.json["_id"]) == (200, made["_id"])
    assert api.get(f"/jobs/{made['_id']}", caller=OTHER).json["description"] == "new"
    assert created.status == 201
    assert api.get("/jobs").json["results"][0]["_id"] == created.json["_id"]
    assert api.get("/jobs", caller="provider", query={"name": "report"}).status == 404


def test_a_taken_name_is_refused_in_the_same_wording_when_a_job_is_renamed(api):
    made = api.create()
    other = api.create(name="other")

    reply = api("PUT", f"/jobs/{other['_id']}", {"name": made["name"]})

    assert (reply.status, reply.json["message"]) == (
        400,
        "Error while configuring job: a job with the name report exists",
    )


@pytest.mark.parametrize("zeros", ["0", "000"])
def test_an_id_with_leading_zeros_is_not_found(api, zeros):
    made = api.create(EVERY_HOUR)

    for method, body in (("GET", None), ("PUT", {"active": False}), ("DELETE", None)):
        assert api(method, f"/jobs/{zeros}{made['_id']}", body).status == 404
    assert api.get("/jobs", query={"jobId": f"{zeros}{made['_id']}"}).status == 404
    assert api.get(f"/jobs/{made['_id']}").json["active"] is True


def test_the_provider_creates_a_job_for_the_tenant_that_it_names(api):
    body = {**JOB, "schedules": []}

    made = api("POST", "/jobs", body, caller="provider", query={"tenantId": OTHER})

    assert made.status == 201
    assert [each["_id"] for each in api.get("/jobs", caller=OTHER).json["results"]] == [made.json["_id"]]
    for tenant, status in ((OTHER, 200), ("acme", 404)):
        job = f"/jobs/{made.json['_id']}"
        assert api.get(job, caller="provider", query={"tenantId": tenant}).status == status
    with api.native.unchanged():
        nobody = api("POST", "/jobs", body, caller="provider", query={"tenantId": "nobody"})
    assert (nobody.status, nobody.json["message"]) == (404, "Error while creating job: Tenant Not Found")


def test_global_parameters_belong_to_the_tenant_that_the_provider_names(api):
    def seconds(caller, **query):
        (config,) = api.get("/globalParameters", caller=caller, query=query).json["config"]
        return config["CONFIG_VALUE"]

    wanted = {"ASYNC_EXEC_TIMEOUT": "600"}
    changed = api("PUT", "/globalParameters", wanted, caller="provider", query={"tenantId": OTHER})

    assert changed.status == 200
    assert (seconds(OTHER), seconds("provider", tenantId=OTHER)) == ("600", "600")
    assert (seconds("acme"), seconds("provider")) == ("1800", "1800")
    query = {"tenantId": "nobody"}
    assert api.get("/globalParameters", caller="provider", query=query).status == 404
    assert api("PUT", "/globalParameters", wanted, caller="provider", query=query).status == 404


def test_while_a_tenant_is_deleted_no_job_and_no_schedule_is_made_for_it(api):
    made = api.create(caller=OTHER)
    assert api.native("DELETE", f"/v1/tenants/{OTHER}", caller="provider").status == 202
    query = {"tenantId": OTHER}

    with api.native.unchanged():
        refused = [
            api("PUT", "/jobs/late", {**JOB, "name": "late", "schedules": []}, caller="provider", query=query),
            api("POST", "/jobs", {**JOB, "name": "late", "schedules": []}, caller="provider", query=query),
            api("POST", f"/jobs/{made['_id']}/schedules", EVERY_HOUR | {"active": True}, caller="provider"),
            api("PUT", "/globalParameters", {"ASYNC_EXEC_TIMEOUT": "7"}, caller="provider", query=query),
        ]

    assert [reply.status for reply in refused] == [400] * 4
    assert all("the tenant is being deleted" in reply.json["message"] for reply in refused)
    assert api.get("/globalParameters", caller="provider", query=query).status == 200


@pytest.mark.parametrize("name", ["x" * 256, "x" * 1_020, "\u00fc" * 520, "x" * 6_000])
def test_an_invalid_job_name_is_not_found(api, name):
    reply = api.get("/jobs", query={"name": name})

    assert (reply.status, reply.json["message"]) == (404, "Error while fetching job details: Job Not Found")


def test_a_job_for_a_missing_tenant_is_404_and_stores_nothing(api):
    with api.native.unchanged():
        reply = api("PUT", "/jobs/report", {**JOB, "schedules": []}, caller="provider", query={"tenantId": "nobody"})

    assert (reply.status, reply.json["message"]) == (404, "Error while configuring job: Tenant Not Found")


def test_the_providers_list_can_be_ordered_across_all_tenants(api):
    made = []
    for n, caller in enumerate([OTHER, "acme", "provider"] * 2):
        made.append(api.create(name=f"job{n}", caller=caller))
        api.stage.clock.advance(1)

    def ids(**query):
        return [each["_id"] for each in api.get("/jobs", caller="provider", query=query).json["results"]]

    assert ids(sort_by="_id") == sorted(each["_id"] for each in made)
    assert ids(sort_order="DESC") == ids(sort_by="_id")[::-1]
    assert ids(sort_by="createdAt") == [each["_id"] for each in made]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ([], "'calmConfig' must be of type 'object'"),
        ({}, "'calmConfig' object cannot be empty"),
        ({"enabled": 1}, "'enabled' in 'calmConfig' must be of type 'boolean'"),
        ({"on": True}, "'on' is not an allowed property for object 'calmConfig'"),
    ],
)
def test_an_invalid_calm_config_is_refused_in_the_wording_of_a_create_also_by_put(api, config, message):
    made = api.create()

    for where, body in ((f"/jobs/{made['_id']}", {}), ("/jobs/report", {**JOB, "schedules": []})):
        reply = api("PUT", where, {**body, "calmConfig": config})
        assert (reply.status, reply.json["message"]) == (400, f"Error while creating job: {message}")


def test_an_answer_that_is_too_large_is_a_400_that_says_what_to_do(api):
    api.create()
    data = {"x": "y" * 60_000}
    where = f"/jobs/{api.create(name='large')['_id']}/schedules"
    for _ in range(100):
        assert api("POST", where, {"active": True, "repeatInterval": "1 hour", "data": data}).status == 201

    whole = api.get(where)

    assert whole.status == 400
    assert "ask for a page" in whole.json["message"]
    assert len(api.get(where, query={"page_size": 50}).json["results"]) == 50


def test_jobs_of_the_native_api_are_not_listed_here(api):
    native = api.native.create()
    api.create()

    assert api.get("/jobs").json["total"] == 1
    assert api.get("/jobCount").json == {"active": 1, "inactive": 0}
    assert {each["facade"] for each in api.native.get("/v1/jobs").json["items"]} == {"native", "sap"}
    assert native["facade"] == "native"
    assert api.get("/jobs/1").status == 404


# Lists


def test_pages_link_to_their_neighbours_and_show_a_total(api):
    ids = [api.create(name=f"job{n:02}")["_id"] for n in range(25)]

    first = api.get("/jobs").json
    second = api.get("/jobs", query={"page_size": 10, "offset": 10}).json
    last = api.get("/jobs", query={"page_size": 10, "offset": 20}).json
    behind = api.get("/jobs", query={"page_size": 10, "offset": 40}).json

    assert (first["total"], len(first["results"]), first["prev_url"]) == (25, 10, None)
    assert first["next_url"] == "/scheduler/jobs?page_size=10&offset=10"
    assert second["prev_url"] == "/scheduler/jobs?page_size=10&offset=0"
    assert (last["next_url"], len(last["results"])) == (None, 5)
    assert (behind["results"], behind["next_url"]) == ([], None)
    assert behind["prev_url"] == "/scheduler/jobs?page_size=10&offset=30"
    found = [each["_id"] for page in (first, second, last) for each in page["results"]]
    assert found == ids
    assert len(api.get("/jobs", query={"page_size": 100}).json["results"]) == 25


def test_a_page_costs_the_same_at_any_offset(api):
    for n in range(60):
        api.create(EVERY_HOUR, name=f"job{n}")

    def calls(**query):
        api.stage.taps.passed.clear()
        assert len(api.get("/jobs", query=query).json["results"]) == 20
        return sorted(each.operation for each in api.stage.taps.passed)

    first, last = calls(page_size=20), calls(page_size=20, offset=40)
    assert first == last == ["BatchGetItem"] * 2 + ["Query"] * 5


@pytest.mark.parametrize("query", ["page_size=0", "page_size=101", "page_size=x", "offset=-1"])
def test_an_invalid_page_is_refused_with_the_documented_text(api, query):
    reply = api.get("/jobs", query=query)

    assert reply.status == 400
    assert reply.json["message"].startswith("Error while fetching list of jobs: Invalid ")


def test_a_listed_job_shows_its_number_of_schedules(api):
    made = api.create(EVERY_HOUR, {**NIGHTLY, "active": False}, NIGHTLY)

    (listed,) = api.get("/jobs").json["results"]

    assert (listed["ACTIVECOUNT"], listed["INACTIVECOUNT"]) == (2, 1)
    assert (listed["jobId"], listed["jobType"], listed["createdAt"]) == (
        made["_id"],
        "HTTP_ENDPOINT",
        "2027-03-01 12:00:00",
    )
    assert "schedules" not in listed


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("contains(name, 'alp')", ["alpha"]),
        ("name eq 'beta'", ["beta"]),
        ("name eq 'bet'", []),
        ("contains(name,'a') and contains(name,'lt')", ["delta"]),
        ("name eq 'alpha' or name eq 'beta' and contains(name,'x')", ["alpha"]),
        ("tenantId eq 'acme'", ["alpha", "beta", "delta"]),
        ("subDomain eq 'other'", []),
    ],
)
def test_a_filter_selects_jobs(api, text, names):
    for name in ("alpha", "beta", "delta"):
        api.create(name=name)

    found = api.get("/jobs", query={"filter": text}).json

    assert (found["total"], [each["name"] for each in found["results"]]) == (len(names), names)


@pytest.mark.parametrize("text", ["name", "name = 'x'", "contains(name)", "foo eq 'x'", "name eq 'x' and", "(", "'"])
def test_an_unreadable_filter_is_refused(api, text):
    assert api.get("/jobs", query={"filter": text}).status == 400


def test_jobs_can_be_ordered(api):
    for name in ("b", "c", "a"):
        api.create(name=name)

    def names(**query):
        return [each["name"] for each in api.get("/jobs", query=query).json["results"]]

    assert names() == ["b", "c", "a"]
    assert names(sort_by="name") == ["a", "b", "c"]
    assert names(sort_by="name", sort_order="DESC", page_size=2) == ["c", "b"]
    assert names(sort_order="DESC") == ["a", "c", "b"]
    refused = api.get("/jobs", query={"sort_by": "color"})
    assert refused.status == 400
    assert refused.json["message"].endswith('sort_by may be _id, jobId, createdAt, name, active, not "color"')


def test_options_with_the_value_undefined_count_as_absent(api):
    """SAP's client sends them in this form."""
    api.create()

    assert api.get("/jobs", query="page_size=undefined&offset=undefined&tenantId=undefined").json["total"] == 1


# Change


def test_a_change_by_id_changes_only_the_sent_members(api):
    made = api.create(EVERY_HOUR, user="joe", password="canary-secret", calmConfig={"enabled": True})
    before = api.get(f"/jobs/{made['_id']}", query={"displaySchedules": "true"}).json

    reply = api("PUT", f"/jobs/{made['_id']}", {"description": "changed", "httpMethod": "PUT"})

    after = api.get(f"/jobs/{made['_id']}", query={"displaySchedules": "true"}).json
    assert (reply.status, reply.json) == (200, {"success": True})
    assert after == before | {"description": "changed", "httpMethod": "PUT"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "at least one field of the job is required"),
        ({"active": "perhaps"}, 'active: must be true or false, not "perhaps"'),
        ({"name": "1"}, "name: must consist of"),
    ],
)
def test_an_invalid_change_is_refused(api, body, message):
    made = api.create()

    with api.native.unchanged():
        reply = api("PUT", f"/jobs/{made['_id']}", body)

    assert reply.status == 400
    assert reply.json["message"].startswith(f"Error while configuring job: {message}")


def test_a_put_with_an_unknown_id_creates_nothing(api):
    reply = api("PUT", "/jobs/4711", {**JOB, "schedules": []})

    assert (reply.status, reply.json["message"]) == (404, "Error while configuring job: Job Not Found")


def test_a_put_by_name_creates_and_then_replaces(api):
    body = {
        "name": "report",
        "action": "https://example.org/a",
        "active": True,
        "schedules": [EVERY_HOUR | {"active": True}],
    }

    created = api("PUT", "/jobs/report", {**body, "description": "old", "httpMethod": "GET"})
    replaced = api("PUT", "/jobs/report", {**body, "active": None, "schedules": [{"active": True, **NIGHTLY}]})

    assert (created.status, replaced.status) == (201, 200)
    assert replaced.json["_id"] == created.json["_id"]
    assert (replaced.json["description"], replaced.json["httpMethod"], replaced.json["active"]) == ("", "POST", False)
    (schedule,) = replaced.json["schedules"]
    assert schedule["cron"] == "* * * * 2 30 0"
    assert schedule["scheduleId"] != created.json["schedules"][0]["scheduleId"]


def test_a_put_by_name_needs_the_same_name_in_the_body(api):
    reply = api("PUT", "/jobs/other", {**JOB, "schedules": []})

    assert reply.status == 400
    assert reply.json["message"].startswith("Error while configuring job: ")


def test_a_deleted_job_is_gone(api):
    made = api.create(EVERY_HOUR)

    reply = api("DELETE", f"/jobs/{made['_id']}")

    assert (reply.status, reply.json) == (200, {"success": True})
    again = api("DELETE", f"/jobs/{made['_id']}")
    assert (again.status, again.json["message"]) == (404, "Error while removing job: Job Not Found")
    assert api.get("/jobs").json["total"] == 0


def test_jobs_are_counted_as_active_and_inactive(api):
    api.create(name="on")
    api.create(name="off", active=False)
    api.create(name="off-too", active=False)

    assert api.get("/jobCount").json == {"active": 1, "inactive": 2}
    assert api.get("/jobCount", caller=OTHER).json == {"active": 0, "inactive": 0}
    assert api.get("/jobCount", caller="provider").json == {"active": 1, "inactive": 2}


# How a call says who it comes from


def authentication(api, made):
    listed = api.native.get("/v1/jobs", query={"name": made["name"], "collection": "sap"}).json["items"][0]
    return listed["action"]["authentication"]["type"]


def test_a_job_without_a_user_has_no_authentication_of_its_own(api):
    api.facade.guard = replace(api.facade.guard, identity=True)
    made = api.create(EVERY_HOUR)

    assert authentication(api, made) == "none"
    assert api("PUT", f"/jobs/{made['_id']}", {"user": "joe", "password": "canary"}).status == 200
    assert authentication(api, made) == "basic"
    assert api("PUT", f"/jobs/{made['_id']}", {"user": None}).status == 200
    assert authentication(api, made) == "none"


def test_a_job_created_for_the_stacks_token_can_be_changed_without_one(api):
    api.native.facade.guard = replace(api.native.facade.guard, identity=True)
    made = api.create(EVERY_HOUR)
    (there,) = api.native.get("/v1/jobs", query={"name": made["name"], "collection": "sap"}).json["items"]
    action = {"action": {**there["action"], "authentication": {"type": "sweephand"}}}
    reply = api.native("PATCH", f"/v1/jobs/{there['id']}", action)
    assert reply.status == 200, reply.text

    assert api("PUT", f"/jobs/{made['_id']}", {"description": "x"}).status == 200


def test_a_password_is_never_sent_to_another_host_or_user(api):
    made = api.create(user="joe", password="canary")

    with api.native.unchanged():
        for change in ({"action": "https://elsewhere.example/run"}, {"user": "ann"}):
            reply = api("PUT", f"/jobs/{made['_id']}", change)
            assert (reply.status, "password: is required" in reply.json["message"]) == (400, True), reply.text
    assert api("PUT", f"/jobs/{made['_id']}", {"user": "joe", "description": "same"}).status == 200


def test_a_password_alone_replaces_that_of_the_same_user(api):
    made = api.create({"repeatInterval": "1 minute"}, user="joe", password="canary-old")
    where = f"/jobs/{made['_id']}"

    assert api("PUT", where, {"password": "canary-new"}).status == 200
    api.stage.run(90)

    assert api.get(where).json["user"] == "joe"
    (called,) = api.stage.endpoint.received
    assert list(called.call.secrets.values()) == ["canary-new"]


@pytest.mark.parametrize("password", ["canary", 5, ["x"]])
def test_a_password_without_a_user_is_refused_and_not_ignored(api, password):
    made = api.create()

    with api.native.unchanged():
        reply = api("PUT", f"/jobs/{made['_id']}", {"password": password})

    assert (reply.status, "user: is required" in reply.json["message"]) == (400, True)


def test_a_password_that_is_not_a_string_is_refused(api):
    made = api.create(user="joe", password="canary")

    reply = api("PUT", f"/jobs/{made['_id']}", {"password": 5})

    assert (reply.status, "password: must be a string" in reply.json["message"]) == (400, True)


def test_an_upsert_with_the_same_user_keeps_the_hidden_password(api):
    api.create(user="joe", password="canary-secret")
    read = api.get("/jobs", query={"name": "report", "displaySchedules": "true"}).json

    replies = [api("PUT", "/jobs/report", {**read, "description": each}) for each in ("a", "b")]

    assert [reply.status for reply in replies] == [200, 200], replies[0].text
    assert api.get("/jobs", query={"name": "report"}).json["user"] == "joe"
    assert api("POST", f"/jobs/{read['_id']}/schedules", {"time": "now", "active": True}).status == 201
    api.stage.run(60)
    (received,) = api.stage.endpoint.received
    assert "canary-secret" in received.call.secrets.values()


@pytest.mark.parametrize("other", [{"user": "jim"}, {"action": "https://elsewhere.example/"}])
def test_an_upsert_for_another_user_or_host_drops_the_password(api, other):
    api.create(user="joe", password="canary-secret")

    with api.native.unchanged():
        reply = api("PUT", "/jobs/report", {**JOB, "user": "joe", "schedules": [], **other})

    assert reply.status == 400
    assert "password: " in reply.json["message"]


def test_an_upsert_without_a_user_removes_user_and_password(api):
    api.create(user="joe", password="canary-secret")

    assert api("PUT", "/jobs/report", {**JOB, "schedules": []}).status == 200

    assert api.get("/jobs", query={"name": "report"}).json["user"] is None
