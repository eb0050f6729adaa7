"""Open errors summed up by job, job set, target and version, in one answer with a bound."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sweephand.server.flow.errors import summaries
from tests.contract.native.api import Api
from tests.support.endpoint import DOWN, WRONG

MINUTES = {"cron": "* * * * *"}
ONE, TWO = "https://one.example/run", "https://two.example/run"
Sums = dict[Any, tuple[int, int, int]]


@pytest.fixture
def failing(api: Api) -> dict[str, str]:
    """Four jobs of two targets, one of them in a set, each failed twice, and a task; returns their ids."""
    api.stage.endpoint.answer = lambda call: WRONG if call.planned_at.minute == 1 else DOWN
    ids = {
        name: api.create({"action": {"type": "http", "url": url}, "schedules": [MINUTES]}, name=name)["id"]
        for name, url in (("a", ONE), ("b", f"{ONE}?page=2"), ("c", TWO))
    }
    entry = {"key": "d", "name": "d", "action": {"type": "http", "url": ONE}, "schedules": [MINUTES]}
    ids["d"] = api("PUT", "/v1/job-sets/billing", {"jobs": [entry]}).json["created"][0]["jobId"]
    api.stage.run(150)
    return ids


def summary(api: Api, by: str, **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = api.get("/v1/errors:summary", query={"groupBy": by, **query}).json
    return found


def sums(api: Api, by: str, **query: Any) -> Sums:
    """Returns runs, groups and jobs by value."""
    return {each["value"]: (each["count"], each["groups"], each["jobs"]) for each in summary(api, by, **query)["items"]}


def test_errors_are_summed_by_job_set_and_target(api: Api, failing: dict[str, str]) -> None:
    assert sums(api, "job") == dict.fromkeys(failing.values(), (2, 2, 1))
    assert sums(api, "jobSet") == {None: (6, 6, 3), "billing": (2, 2, 1)}
    assert sums(api, "target") == {ONE: (6, 6, 3), TWO: (2, 2, 1)}
    assert sums(api, "version") == {None: (8, 8, 4)}


def test_a_sum_names_its_job_its_groups_and_its_time_span(api: Api, failing: dict[str, str]) -> None:
    found = summary(api, "job", jobId=failing["c"])
    groups = api.get("/v1/errors", query={"jobId": failing["c"]}).json["items"]

    (item,) = found["items"]
    assert (found["groupBy"], found["complete"]) == ("job", True)
    assert (item["value"], item["jobName"], item["countIsLeast"]) == (failing["c"], "c", False)
    assert item["errors"] == [each["id"] for each in groups]
    assert item["firstSeenAt"] == min(each["firstSeenAt"] for each in groups)
    assert item["lastSeenAt"] == max(each["lastSeenAt"] for each in groups)
    assert {each["jobName"] for each in summary(api, "target")["items"]} == {None}


def test_only_open_and_requested_errors_count(api: Api, failing: dict[str, str]) -> None:
    (group, *_) = api.get("/v1/errors", query={"jobId": failing["c"]}).json["items"]
    api("POST", f"/v1/errors/{group['id']}/archive", {"reason": "known"})

    assert sums(api, "target") == {ONE: (6, 6, 3), TWO: (1, 1, 1)}
    assert sums(api, "target", jobId=failing["a"]) == {ONE: (2, 2, 1)}
    later = (api.stage.clock.now() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert sums(api, "target", **{"from": later}) == {}


def test_a_redirected_error_of_a_deleted_job_shows_only_the_jobs_id_and_name(api: Api, failing: dict[str, str]) -> None:
    api("PUT", f"/v1/error-redirects/{failing['c']}", {"to": failing["a"]})
    api("DELETE", f"/v1/jobs/{failing['c']}")
    api.stage.run(60)

    assert sums(api, "target")[None] == (2, 2, 1)
    (gone,) = [each for each in summary(api, "job")["items"] if each["value"] == failing["c"]]
    assert gone["jobName"] == "c"


def test_task_errors_are_summed_by_application_and_version(api: Api) -> None:
    for name, members in {"old": {"version": "1"}, "new": {"version": "2"}, "any": {}}.items():
        url = api("PUT", "/v1/applications/billing", members or None).json["queueUrl"]
        action = {"type": "queue", "application": "billing", "task": name, **members}
        made = api.create({"action": action, "schedules": []}, name=name)
        run = api("POST", f"/v1/jobs/{made['id']}/run").json["runId"]
        (message,) = api.stage.sqs.bodies(url)
        body = {"message": message, "owner": "me", "application": "billing", "leaseSeconds": 60, **members}
        assert api("POST", f"/v1/runs/{run}/claim", body).json["verdict"] == "run"
        report = {"owner": "me", "attempt": 1, "outcome": "bad_payload", "message": "no rows"}
        assert api("POST", f"/v1/runs/{run}/settle", report).status == 200
    api.stage.run(2)

    assert sums(api, "version") == {"billing 1": (1, 1, 1), "billing 2": (1, 1, 1), "billing": (1, 1, 1)}


def test_a_sum_reads_only_the_latest_groups_and_some_runs_of_each(
    api: Api, failing: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "MOST_GROUPS", 3)
    few = summary(api, "jobSet")
    monkeypatch.setattr(summaries, "MOST_GROUPS", 8)
    monkeypatch.setattr(summaries, "COUNTED", 1)
    api.stage.run(60)
    counted = summary(api, "jobSet")

    assert (few["complete"], sum(each["count"] for each in few["items"])) == (False, 3)
    assert (counted["complete"], {each["countIsLeast"] for each in counted["items"]}) == (True, {True})


@pytest.mark.parametrize(("query", "field"), [("", "groupBy"), ("groupBy=colour", "groupBy"), ("groupBy=", "groupBy")])
def test_a_sum_by_an_unknown_member_is_refused(api: Api, query: str, field: str) -> None:
    refused = api("GET", "/v1/errors:summary", query=query)

    assert (refused.status, refused.fields) == (400, [field])
