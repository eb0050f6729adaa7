"""The history of a customer: one list of the runs of all jobs of a collection, a tag or a resource, successes too."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.meter import metered
from sweephand.server.flow.runs import chained_runs, run_lists
from sweephand.server.store.dynamo import keys
from sweephand.server.store.runs import ledger
from tests.contract.native.api import Api
from tests.support.endpoint import OK, WRONG
from tests.support.stage import TENANT

RUNS = "/v1/runs"
HTTP = {"type": "http", "url": "https://example.com/"}


def listed(api: Api, place: str = RUNS, **query: Any) -> list[dict[str, Any]]:
    """Lists all items, page by page. No page may come twice, and each page is bounded."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    for _ in range(1_000):
        reply = api.get(place, query={**query, **cursor})
        assert reply.status == 200, reply.text
        found += reply.json["items"]
        if reply.json["nextCursor"] is None:
            return found
        cursor = {"cursor": reply.json["nextCursor"]}
    raise AssertionError("the list does not end")


def ids(items: list[dict[str, Any]]) -> list[str]:
    return [each["id"] for each in items]


def two_customers(api: Api) -> dict[str, list[dict[str, Any]]]:
    """Makes two customers, each a collection with three jobs; every second call fails."""
    calls = 0

    def answer(_: Any) -> Any:
        nonlocal calls
        calls += 1
        return WRONG if calls % 2 else OK

    api.stage.endpoint.answer = answer
    made: dict[str, list[dict[str, Any]]] = {}
    for name in ("north", "south"):
        api("POST", "/v1/collections", {"name": name})
        made[name] = [
            api.create(
                name=f"{name}-{n}",
                collection=name,
                tags=["all", f"n{n}"],
                resourceId=f"res-{n}",
                action=HTTP,
                schedules=[{"every": "PT20S"}, {"every": "PT30S"}][: n or 1],
            )
            for n in range(3)
        ]
    for jobs in made.values():
        api("POST", f"/v1/jobs/{jobs[0]['id']}/run")
    api.stage.run(130)
    return made


@pytest.fixture
def customers(api: Api) -> dict[str, list[dict[str, Any]]]:
    return two_customers(api)


@pytest.fixture(scope="module")
def shared_customers(shared: Api) -> dict[str, list[dict[str, Any]]]:
    """The same for tests that only read."""
    return two_customers(shared)


def test_a_collections_runs_are_one_list_with_successes_and_job_names(api: Api, customers: Any) -> None:
    names = {job["id"]: job["name"] for job in customers["north"]}
    each_job = [run for job in names for run in listed(api, jobId=job)]

    found = listed(api, collection="north")

    assert sorted(ids(found)) == sorted(ids(each_job))
    assert [each["plannedAt"] for each in found] == sorted((each["plannedAt"] for each in found), reverse=True)
    assert {each["state"] for each in found} >= {"SUCCESS", "REQUEST_ERROR"}
    assert all(each["jobName"] == names[each["jobId"]] for each in found)
    assert {each["kind"] for each in found} == {"scheduled", "manual"}


@pytest.mark.parametrize("limit", [1, 2, 7, 200])
@pytest.mark.parametrize("state", [None, "SUCCESS", "REQUEST_ERROR"])
def test_every_page_size_yields_the_same_list_once(
    shared: Api, shared_customers: Any, limit: int, state: str | None
) -> None:
    query = {"collection": "north"} | ({"state": state} if state else {})

    assert ids(listed(shared, limit=limit, **query)) == ids(listed(shared, **query))
    assert len(ids(listed(shared, **query))) == len(set(ids(listed(shared, **query)))) > 3


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ({"tag": "n1"}, lambda job: "n1" in job["tags"]),
        ({"tag": "all", "collection": "south"}, lambda job: job["collection"] == "south"),
        ({"resourceId": "res-2"}, lambda job: job["resourceId"] == "res-2"),
        (
            {"resourceId": "res-2", "collection": "south", "tag": "n2"},
            lambda job: job["resourceId"] == "res-2" and job["collection"] == "south",
        ),
        ({"tag": "nobody"}, lambda _: False),
    ],
)
@pytest.mark.parametrize("state", [None, "SUCCESS", "REQUEST_ERROR", "TRIGGERED"])
def test_filters_by_job_members_select_the_runs(
    shared: Api, shared_customers: Any, query: Any, holds: Any, state: str | None
) -> None:
    jobs = {job["id"] for made in shared_customers.values() for job in made if holds(job)}
    everything = [run for made in shared_customers.values() for job in made for run in listed(shared, jobId=job["id"])]

    found = listed(shared, **query, **({"state": state} if state else {}))

    assert sorted(ids(found)) == sorted(
        each["id"] for each in everything if each["jobId"] in jobs and state in {None, each["state"]}
    )


@pytest.mark.parametrize("path", [RUNS, "/v1/runs:export", "/v1/errors", "/v1/jobs", "DELETE /v1/jobs"])
@pytest.mark.parametrize("name", ["nowhere", "norht", "North", "a b/%#ü"])
def test_a_list_for_a_missing_collection_is_refused(shared: Api, shared_customers: Any, path: str, name: str) -> None:
    method, _, where = path.rpartition(" ")

    reply = shared(
        method or "GET", where, query={"collection": name, "dryRun": "true"} if method else {"collection": name}
    )

    assert (reply.status, reply.code, reply.fields) == (400, "INVALID_QUERY", ["collection"])
    assert reply.json["errors"][0]["reason"] == f"there is no such collection: {json.dumps(name)}"


def test_a_file_for_a_missing_collection_is_refused(api: Api, customers: Any) -> None:
    reply = api("POST", "/v1/runs:export", {"collection": "nowhere"})

    assert (reply.status, reply.code, reply.fields) == (422, "INVALID_FIELD", ["collection"])


@pytest.mark.parametrize("query", [{"collection": "north"}, {"state": "SUCCESS"}, {"state": "REQUEST_ERROR"}, {}])
@pytest.mark.parametrize("bounds", [(0, 1), (3, 3), (2, 8), (8, 2)])
def test_from_and_until_are_inclusive_limits_of_the_planned_instants(
    shared: Api, shared_customers: Any, query: dict[str, str], bounds: tuple[int, int]
) -> None:
    whole = listed(shared, **query)
    instants = sorted({each["plannedAt"] for each in whole})
    since, until = instants[bounds[0]], instants[-1 - bounds[1]]
    if since > until:
        assert shared.get(RUNS, query={**query, "from": since, "until": until}).fields == ["until"]
        return

    found = listed(shared, **query, **{"from": since, "until": until})

    assert ids(found) == [each["id"] for each in whole if since <= each["plannedAt"] <= until]
    assert ids(listed(shared, limit=2, **query, **{"from": since, "until": until})) == ids(found)


def test_successes_of_the_whole_tenant_can_be_listed_without_a_job(api: Api, customers: Any) -> None:
    every = [run for made in customers.values() for job in made for run in listed(api, jobId=job["id"])]

    found = listed(api, state="SUCCESS")

    assert sorted(ids(found)) == sorted(each["id"] for each in every if each["state"] == "SUCCESS")
    assert found
    assert listed(api, state="TRIGGERED") == []


def test_a_file_contains_the_same_runs(api: Api, customers: Any) -> None:
    query = {"tag": "all", "collection": "north", "state": "SUCCESS"}
    names = [each["jobName"] for each in listed(api, **query)]

    page = api.get("/v1/runs:export", query={**query, "format": "csv"}).text.splitlines()
    operation = api("POST", "/v1/runs:export", {**query, "format": "csv"}).json["id"]
    api.stage.run(60)
    whole = next(content for place, content in api.stage.bucket.objects.items() if operation in place).decode()

    assert [line.rpartition(",")[2] for line in page[1:]] == names
    assert whole.splitlines() == page


@pytest.mark.parametrize("start", ["run", "rerun", "another run", "drop", "redirect"])
def test_runs_without_a_schedule_are_in_the_history_whatever_started_them(api: Api, start: str) -> None:
    api("POST", "/v1/collections", {"name": "north"})
    job = api.create(collection="north", action=HTTP, schedules=[])
    place = f"/v1/jobs/{job['id']}/run"
    match start:
        case "run":
            api("POST", place)
        case "drop":
            api("POST", place, {"ifActive": "drop"})
        case "rerun":
            first = api("POST", place).json["runId"]
            api.stage.run(5)
            api("POST", f"/v1/runs/{first}/rerun")
        case "another run":
            other = api.create(action=HTTP, schedules=[])
            owner, uuid = api("POST", f"/v1/jobs/{other['id']}/run").json["runId"].split("_")
            parent = ledger.read(api.stage.world.table, TENANT, owner, uuid)
            assert parent is not None
            chained_runs.run_from(api.stage.world, parent, job["id"])
        case "redirect":
            api.stage.endpoint.script = [WRONG]
            other = api.create(action=HTTP, schedules=[])
            failed = api("POST", f"/v1/jobs/{other['id']}/run").json["runId"]
            api.stage.run(5)
            api("PUT", f"/v1/error-redirects/{other['id']}", {"to": job["id"]})
            api("POST", f"/v1/runs/{failed}/rerun")
    api.stage.run(10)

    found = listed(api, collection="north")

    assert sorted(ids(found)) == sorted(ids(listed(api, jobId=job["id"])))
    assert found


def test_a_change_that_overtakes_a_jobs_first_run_does_not_hide_it(api: Api) -> None:
    """The change read the job before its first run was noted, and writes it after."""
    api("POST", "/v1/collections", {"name": "north"})
    job = api.create(collection="north", action=HTTP, schedules=[])
    met = False

    def fault(passing: Any, act: Any) -> Any:
        nonlocal met
        if not met and passing.operation == "TransactWriteItems":
            met = True
            api("POST", f"/v1/jobs/{job['id']}/run")
        return act()

    api.stage.taps.fault = fault
    changed = api("PATCH", f"/v1/jobs/{job['id']}", {"description": "new"})
    api.stage.run(5)

    assert met
    assert changed.status == 200
    assert ids(listed(api, collection="north")) == ids(listed(api, jobId=job["id"])) != []


def test_deleting_a_job_as_its_first_run_begins_leaves_no_row_of_it(api: Api) -> None:
    job = api.create(action=HTTP, schedules=[])
    met = False

    def fault(passing: Any, act: Any) -> Any:
        nonlocal met
        if not met and passing.operation == "UpdateItem" and passing.request["Key"]["sk"] == {"S": keys.JOB}:
            met = True
            api("DELETE", f"/v1/jobs/{job['id']}")
        return act()

    api.stage.taps.fault = fault
    api("POST", f"/v1/jobs/{job['id']}/run")

    assert met
    assert [item for item in api.stage.items() if item["sk"] == {"S": keys.JOB}] == []


def test_too_many_jobs_are_refused_with_advice_how_to_continue(api: Api, customers: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(run_lists, "MOST_JOBS", 2)
    monkeypatch.setattr(run_lists.job_ids_of, "__defaults__", (2,))

    of_collection = api.get(RUNS, query={"collection": "north"})
    of_tenant = api.get(RUNS, query={"state": "SUCCESS"})
    as_file = api("POST", "/v1/runs:export", {"collection": "north"})

    assert [(each.status, each.code, each.fields) for each in (of_collection, of_tenant, as_file)] == [
        (400, "INVALID_QUERY", ["collection"]),
        (400, "INVALID_QUERY", ["state"]),
        (422, "INVALID_FIELD", ["collection"]),
    ]
    assert "jobId" in of_collection.json["detail"]
    assert api.get(RUNS, query={"tag": "n1"}).status == 200


def test_a_page_reads_a_bounded_number_of_other_jobs_failures(api: Api, customers: Any, monkeypatch: Any) -> None:
    query = {"collection": "north", "state": "REQUEST_ERROR"}
    whole = ids(listed(api, **query))
    monkeypatch.setattr("sweephand.server.flow.runs.run_lists.LOOKED_AT_MOST", 3)

    first = api.get(RUNS, query=query).json

    assert len(first["items"]) <= 3
    assert first["nextCursor"] is not None
    assert ids(listed(api, **query)) == whole


def test_another_tenants_jobs_with_the_same_names_are_not_listed(api: Api, customers: Any) -> None:
    api("POST", "/v1/collections", {"name": "north"}, caller="globex")
    job = api.create(caller="globex", collection="north", tags=["all"], resourceId="res-0", action=HTTP, schedules=[])
    api.stage.endpoint.answer = OK
    run = api("POST", f"/v1/jobs/{job['id']}/run", caller="globex").json["runId"]
    api.stage.run(5)

    for query in ({"collection": "north"}, {"tag": "all"}, {"resourceId": "res-0"}, {"state": "SUCCESS"}):
        theirs = api.get(RUNS, query=query, caller="globex").json["items"]
        assert ids(theirs) == [run]
        assert run not in ids(listed(api, **query))


def test_a_page_over_200_jobs_costs_at_most_250_read_units(api: Api) -> None:
    api("POST", "/v1/collections", {"name": "north"})
    for n in range(200):
        api.create(name=f"job {n}", collection="north", action=HTTP, schedules=[{"every": "PT1M"}])
    api.stage.run(130)

    with metered() as meter:
        page = api.get(RUNS, query={"collection": "north"}).json
        units = meter.take().reads

    assert len(page["items"]) == 50
    assert units <= 250


# Groups of errors


def test_errors_can_be_filtered_by_members_of_their_jobs(api: Api, customers: Any) -> None:
    every = listed(api, "/v1/errors")
    names = {job["id"]: job["name"] for made in customers.values() for job in made}

    north = listed(api, "/v1/errors", collection="north")
    second = listed(api, "/v1/errors", tag="n1")
    one = listed(api, "/v1/errors", collection="south", resourceId="res-0")

    assert all(each["jobName"] == names[each["jobId"]] for each in every)
    assert {each["jobName"] for each in north} <= {"north-0", "north-1", "north-2"}
    assert sorted(ids(north)) == sorted(each["id"] for each in every if each["jobName"].startswith("north"))
    assert sorted(ids(second)) == sorted(each["id"] for each in every if each["jobName"].endswith("-1"))
    assert sorted(ids(one)) == sorted(each["id"] for each in every if each["jobName"] == "south-0")


def test_errors_can_be_filtered_by_time(api: Api, customers: Any) -> None:
    every = listed(api, "/v1/errors")
    last = max(each["lastSeenAt"] for each in every)

    late = listed(api, "/v1/errors", **{"from": "2027-03-02T00:00:00Z"})
    early = listed(api, "/v1/errors", until="2027-02-01T00:00:00Z")
    all_ = listed(api, "/v1/errors", **{"from": "2027-03-01T00:00:00Z", "until": last})

    assert (late, early) == ([], [])
    assert ids(all_) == ids(every) != []
