"""The last runs of each job of a list: from the ledgers, for pages of up to 50 jobs."""

from __future__ import annotations

from typing import Any

import pytest

from bench.meter import metered
from tests.contract.native.api import JOB, OTHER, Api
from tests.support.endpoint import OK, WRONG

MINUTES = {"name": "minutes", "cron": "* * * * *"}


def job(*schedules: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"action": JOB["action"], "schedules": list(schedules), **members}


def last_runs(api: Api, query: str = "") -> dict[str, list[dict[str, Any]]]:
    """Returns them by the jobs' names."""
    found = api.get("/v1/jobs", query=f"include=lastRuns&{query}").json["items"]
    return {each["name"]: each["lastRuns"] for each in found}


@pytest.mark.parametrize("query", ["", "sort=nextRunAt", "collection=default"])
def test_a_list_shows_the_last_runs_of_each_job(api: Api, query: str) -> None:
    api.create(job(MINUTES, name="a"))
    api.create(job(name="none"))
    api.stage.endpoint.script = [OK, WRONG, OK]
    api.stage.run(190)

    found = last_runs(api, query)

    shown = [(each["plannedAt"][11:19], each["state"], each["reason"], each["count"]) for each in found["a"]]
    assert shown == [
        ("12:03:00", "SUCCESS", "ON_TIME", 1),
        ("12:02:00", "REQUEST_ERROR", "HTTP_STATUS", 1),
        ("12:01:00", "SUCCESS", "ON_TIME", 1),
    ]
    assert all(each["durationMs"] >= 0 for each in found["a"])
    assert api.get(f"/v1/runs/{found['a'][0]['runId']}").json["state"] == "SUCCESS"
    assert found["none"] == []


def test_the_last_ten_runs_of_all_schedules_and_manual_runs_are_shown(api: Api) -> None:
    made = api.create(job(MINUTES, {"name": "others", "every": "PT20S"}))
    api.stage.run(250)
    run = api("POST", f"/v1/jobs/{made['id']}/run").json["runId"]
    api.stage.run(1)

    (found,) = last_runs(api).values()

    assert (len(found), found[0]["runId"], found[0]["kind"]) == (10, run, "manual")
    assert {each["runId"][:36] for each in found[1:]} == {each["id"] for each in made["schedules"]}
    assert [each["plannedAt"] for each in found] == sorted((each["plannedAt"] for each in found), reverse=True)


def test_error_actions_and_tests_are_not_among_the_last_runs(api: Api) -> None:
    made = api.create(job(MINUTES, errorAction=JOB["action"]))
    api.stage.endpoint.script = [WRONG, OK]
    api.stage.run(70)
    api("POST", f"/v1/jobs/{made['id']}/run", {"mode": "test"})
    api.stage.run(1)

    (found,) = last_runs(api).values()

    assert [each["kind"] for each in found] == ["scheduled"]


def test_last_runs_are_neither_shown_nor_read_unless_requested(api: Api) -> None:
    api.create(job(MINUTES))

    assert "lastRuns" not in api.get("/v1/jobs").json["items"][0]


def test_a_page_with_last_runs_holds_at_most_50_jobs(shared: Api) -> None:
    refused = shared.get("/v1/jobs", query="include=lastRuns&limit=51")

    assert (refused.status, refused.fields) == (400, ["limit"])
    assert shared.get("/v1/jobs", query="include=lastRuns&limit=50").status == 200


def test_last_runs_cost_a_few_read_units_more_however_many_runs_a_job_had(api: Api) -> None:
    api.create(job({"every": "PT10S"}))
    api.stage.run(1_200)

    with metered() as meter:
        meter.take()
        api.get("/v1/jobs")
        plain = meter.take().reads
        last_runs(api)

        assert meter.take().reads - plain <= 2


def test_runs_of_another_tenant_are_not_shown(api: Api) -> None:
    api.create(job(MINUTES))
    api.stage.run(70)

    assert last_runs(api).keys()
    assert api.get("/v1/jobs", query="include=lastRuns", caller=OTHER).json["items"] == []
