"""Search over jobs and schedules, and the global parameters."""

from __future__ import annotations

import pytest

from sweephand.server.store.views import jobs as views

HOURLY = {"repeatInterval": "1 hour"}


@pytest.fixture
def some(api):
    api.create({**HOURLY, "description": "light"}, name="nightly-report", description="All the Numbers")
    api.create(
        {**HOURLY, "description": "heavy load", "startTime": "2027-05-01"},
        name="import",
        description="of numbers",
        startTime="2027-04-01",
        endTime="2027-06-01",
    )
    api.create({**HOURLY, "active": False, "description": "spare"}, name="old", description="", active=False)
    return api


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("report", ["nightly-report"]),
        ("numbers", ["nightly-report", "import"]),
        ("NUMBERS night", ["nightly-report"]),
        ("active:false", ["old"]),
        ("active:true numbers", ["nightly-report", "import"]),
        ("active:true active:true numbers", ["nightly-report", "import"]),
        ("active:true active:false", []),
        ("startTime:>2027-03-01", ["import"]),
        ("startTime:>=2027-04-01T00:00:00 endTime:<=2027-06-01", ["import"]),
        ("startTime:<2027-04-01", []),
        ("nowhere", []),
    ],
)
def test_jobs_are_found(some, query, names):
    found = some.get("/search/jobs", query={"q": query}).json

    assert (found["total"], [each["name"] for each in found["results"]]) == (len(names), names)


def test_a_found_job_has_the_member_names_of_a_search(some):
    (found,) = some.get("/search/jobs", query={"q": "report"}).json["results"]

    assert found["jobActive"] is True
    assert found.keys() >= {"_id", "jobStartTime", "jobEndTime", "user", "signatureVersion"}
    assert found["schedules"][0]["scheduleDescription"] == "light"
    without = some.get("/search/jobs", query={"q": "report", "displaySchedules": "false"}).json["results"][0]
    assert "schedules" not in without


def test_found_jobs_come_in_pages_whose_links_keep_the_query(some):
    page = some.get("/search/jobs", query={"q": "numbers active:true", "page_size": 1}).json

    assert page["next_url"] == "/scheduler/search/jobs?q=numbers%20active%3Atrue&page_size=1&offset=1"
    assert (page["pagination_enabled"], page["total"], len(page["results"])) == (True, 2, 1)
    assert some.get("/search/jobs", query={"q": "numbers"}).json["pagination_enabled"] is False


@pytest.mark.parametrize(
    ("query", "descriptions"),
    [
        ("l", ["light", "heavy load"]),
        ("active:false", ["spare"]),
        ("startTime:>=2027-05-01", ["heavy load"]),
    ],
)
def test_schedules_are_found(some, query, descriptions):
    found = some.get("/search/schedules", query={"q": query}).json["results"]

    assert [each["scheduleDescription"] for each in found] == descriptions
    assert all("description" not in each for each in found)
    parent = found[0]["parent"]
    assert parent["jobUrl"] == f"/scheduler/jobs/{parent['_id']}"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "Search query not provided"),
        ("q=+", "Search query not provided"),
        ("q=color:red", "Field not recognized"),
        ("q=active:perhaps", "active must be true or false"),
        ("q=startTime:2027-01-01", "Operator not specified for startTime"),
        ("q=startTime:>tomorrow", "Date format must be YYYY-MM-DDTHH:mm:ss or YYYY-MM-DD"),
        ("q=startTime:>2027-02-30", "Date format must be YYYY-MM-DDTHH:mm:ss or YYYY-MM-DD"),
        ("q=x&page_size=0", "Invalid Page Size"),
    ],
)
def test_an_unreadable_query_is_refused_with_the_documented_text(api, query, message):
    for what in ("jobs", "schedules"):
        reply = api.get(f"/search/{what}", query=query)
        assert (reply.status, reply.json["message"]) == (400, f"Error in Job Scheduler action: {message}")


def test_a_search_for_schedules_refuses_display_schedules(api):
    reply = api.get("/search/schedules", query={"q": "x", "displaySchedules": "true"})

    assert reply.status == 400
    assert reply.json["message"] == "Error in Job Scheduler action: displaySchedules is not supported"


def test_a_plus_in_a_query_is_a_space(some):
    assert some.get("/search/jobs", query="q=numbers+startTime%3A%3E2027-03-01").json["total"] == 1


# Global parameters


def test_the_global_parameters_can_be_read_and_changed(api):
    def shown():
        return api.get("/globalParameters").json

    assert shown() == {"config": [{"CONFIG_NAME": "ASYNC_EXEC_TIMEOUT", "CONFIG_VALUE": "1800"}]}
    assert api("PUT", "/globalParameters", {"ASYNC_EXEC_TIMEOUT": "600"}).json == {"success": True}
    assert shown()["config"][0]["CONFIG_VALUE"] == "600"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"OTHER": "1"}, "Unallowed Configuration"),
        ({}, "Unallowed Configuration"),
        ({"ASYNC_EXEC_TIMEOUT": "x"}, "Incorrect ASYNC_EXEC_TIMEOUT value - ASYNC_EXEC_TIMEOUT must be a number"),
        (
            {"ASYNC_EXEC_TIMEOUT": "604801"},
            "Incorrect ASYNC_EXEC_TIMEOUT value - maximum value for ASYNC_EXEC_TIMEOUT is 604800",
        ),
        (
            {"ASYNC_EXEC_TIMEOUT": "1" * 16},
            "Incorrect ASYNC_EXEC_TIMEOUT value - maximum value for ASYNC_EXEC_TIMEOUT is 604800",
        ),
        (
            {"ASYNC_EXEC_TIMEOUT": "-5"},
            "Incorrect ASYNC_EXEC_TIMEOUT value - value for ASYNC_EXEC_TIMEOUT must be positive (provided -5)",
        ),
    ],
)
def test_invalid_global_parameters_are_refused_with_the_documented_text(api, body, message):
    reply = api("PUT", "/globalParameters", body)

    assert (reply.status, reply.json["message"]) == (400, f"Error in Job Scheduler action: {message}")


# Searches in lean rows


def names(api, query, **more):
    return [each["name"] for each in api.get("/search/jobs", query={"q": query, **more}).json["results"]]


def descriptions(api, query, **more):
    return [
        each["scheduleDescription"] for each in api.get("/search/schedules", query={"q": query, **more}).json["results"]
    ]


def test_a_search_follows_every_change_of_a_job_and_its_schedules(some):
    old = some.get("/jobs", query={"name": "old"}).json["_id"]
    spare = some.get(f"/jobs/{old}/schedules").json["results"][0]["scheduleId"]

    some("PUT", f"/jobs/{old}", {"description": "Fresh", "active": True, "startTime": "2027-09-01"})
    some("PUT", f"/jobs/{old}/schedules/{spare}", {"description": "lively", "endTime": "2027-10-01"})
    some("POST", f"/jobs/{old}/schedules", {**HOURLY, "active": True, "description": "added"})

    assert names(some, "fresh active:true startTime:>=2027-09-01") == ["old"]
    assert descriptions(some, "l") == ["light", "heavy load", "lively"]
    assert descriptions(some, "endTime:<2027-11-01") == ["lively"]
    assert descriptions(some, "added active:true") == ["added"]
    some("DELETE", f"/jobs/{old}/schedules/{spare}")
    assert descriptions(some, "lively") == []
    some("DELETE", f"/jobs/{old}")
    assert names(some, "fresh") == descriptions(some, "added") == []


def test_a_search_also_finds_native_changes(some):
    native = {each["name"]: each["id"] for each in some.native.get("/v1/jobs").json["items"]}

    some.native("PATCH", f"/v1/jobs/{native['import']}", {"description": "Elsewhere", "active": False})

    assert names(some, "elsewhere active:false") == ["import"]


def test_a_search_finds_values_that_only_the_job_holds(api):
    long = "needle " + "x" * 900
    api.create({**HOURLY, "description": long}, {**HOURLY, "description": "short"}, name="a", description=long)
    api.create({**HOURLY, "description": "needle"}, name="b", description="a needle")
    api.create(*({**HOURLY, "description": f"one of many {n}"} for n in range(40)), name="c")

    assert names(api, "needle") == ["a", "b"]
    assert [each[:6] for each in descriptions(api, "needle")] == ["needle", "needle"]
    assert descriptions(api, "many 39") == ["one of many 39"]
    rows = [item for item in api.stage.items() if item["sk"]["S"].startswith("JOB#") and "entry" in item]
    assert ["search" in row for row in rows] == [False, True, False]
    assert max(len(str(row)) for row in rows) < 1_000


@pytest.mark.parametrize("beside", [[], [{"repeatInterval": "1 day", "description": "other"}]])
def test_a_finished_schedule_is_not_active(api, beside):
    """Its end is no change of its job."""
    api.create({"time": "in 5 minutes", "description": "once"}, *beside)
    assert descriptions(api, "once active:true") == ["once"]
    api.stage.run(900)

    assert descriptions(api, "once active:true") == []
    assert descriptions(api, "once active:false") == ["once"]
    assert descriptions(api, "active:true") == [each["description"] for each in beside]


def test_pages_of_schedules_join_to_the_whole_list(api):
    for n in range(7):
        api.create(
            *({**HOURLY, "description": f"{'odd' if m % 2 else 'even'} {n} {m}"} for m in range(4)), name=f"j{n}"
        )

    whole = descriptions(api, "odd")
    pages = [each for offset in range(0, 20, 3) for each in descriptions(api, "odd", page_size=3, offset=offset)]

    assert whole == pages == [f"odd {n} {m}" for n in range(7) for m in (1, 3)]


def test_a_search_reads_lean_rows_and_only_the_jobs_of_its_page(api):
    for n in range(60):
        api.create({**HOURLY, "description": f"beat {n}"}, name=f"job{n}", description="x")
    api.stage.taps.passed.clear()

    assert len(names(api, "job", page_size=2)) == 2

    read = [each.request for each in api.stage.taps.passed if each.operation == "BatchGetItem"]
    keys = sum(len(table["Keys"]) for request in read for table in request["RequestItems"].values())
    assert keys == 4, "two jobs, each with its schedule"


def test_a_search_or_a_filter_over_too_many_jobs_is_refused(some, monkeypatch):
    monkeypatch.setattr(views, "FILTERED_MOST", 2)

    for path, query in (("/search/jobs", "q=x"), ("/search/schedules", "q=x"), ("/jobs", "sort_by=name")):
        reply = some.get(path, query=query)
        assert reply.status == 400
        assert "at most 2 jobs" in reply.json["message"]
    assert some.get("/jobs").status == 200
