"""Lists of jobs by their set, their creation and their next run."""

from __future__ import annotations

import pytest

from sweephand.server.facades.native.jobs import narrow_lists
from tests.contract.native.api import JOB, Api
from tests.contract.native.test_lists import joined, names, pages

ACTION = JOB["action"]


def made(api: Api) -> None:
    """Makes four jobs, a minute apart; `off` has no next run."""
    for name, timing in (
        ("late", {"at": "2027-03-09T00:00:00Z"}),
        ("off", None),
        ("soon", {"at": "2027-03-02T00:00:00Z"}),
        ("mid", {"at": "2027-03-05T00:00:00Z"}),
    ):
        api.create({"action": ACTION}, name=name, tags=["t"], **({"schedules": [timing]} if timing else {}))
        api.stage.clock.advance(60)


def found(api: Api, query: str) -> list[str]:
    return names(api.get("/v1/jobs", query=query).json["items"])


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("sort=nextRunAt", ["soon", "mid", "late", "off"]),
        ("nextRunAfter=2027-03-05T00:00:00Z", ["late", "mid"]),
        ("nextRunBefore=2027-03-05T00:00:00Z", ["soon"]),
        ("nextRunAfter=2027-03-02T00:00:00Z&nextRunBefore=2027-03-05T00:00:01Z&sort=nextRunAt", ["soon", "mid"]),
        ("nextRunBefore=2027-03-09T00:00:00Z&search=S", ["soon"]),
        ("sort=nextRunAt&tag=t&state=ACTIVE", ["soon", "mid", "late", "off"]),
        ("sort=nextRunAt&collection=default&name=mid", ["mid"]),
        ("sort=nextRunAt&offset=1", ["mid", "late", "off"]),
        ("nextRunAfter=2027-03-10T00:00:00Z", []),
    ],
)
def test_jobs_can_be_filtered_by_their_next_run(api: Api, query: str, wanted: list[str]) -> None:
    made(api)

    assert found(api, query) == wanted


def test_jobs_can_be_filtered_by_their_creation(api: Api) -> None:
    made(api)
    late, off, soon, mid = (each["createdAt"] for each in api.get("/v1/jobs").json["items"])

    assert found(api, f"createdAfter={off}") == ["off", "soon", "mid"]
    assert found(api, f"createdBefore={soon}") == ["late", "off"]
    assert found(api, f"createdAfter={off}&createdBefore={mid}") == ["off", "soon"]
    assert found(api, f"createdAfter={late}&createdBefore={late}") == []


def test_jobs_can_be_filtered_by_the_type_of_their_action(api: Api) -> None:
    made(api)
    api.create({"action": {"type": "event"}}, name="bell", tags=["t"])

    assert found(api, "actionType=event") == ["bell"]
    assert found(api, "actionType=http&sort=nextRunAt&tag=t") == ["soon", "mid", "late", "off"]
    assert found(api, "actionType=ecs") == []
    refused = api.get("/v1/jobs", query="actionType=fax")
    assert (refused.status, refused.fields) == (400, ["actionType"])


def test_jobs_can_be_filtered_by_job_set(api: Api) -> None:
    made(api)
    jobs = [{"key": key, "name": key, "action": ACTION, "schedules": [{"cron": "0 3 * * *"}]} for key in ("b", "a")]
    assert api("PUT", "/v1/job-sets/billing", {"jobs": jobs}).status == 200
    gone = next(each["id"] for each in api.get("/v1/jobs").json["items"] if each["name"] == "b")

    assert sorted(found(api, "jobSet=billing")) == ["a", "b"]
    assert found(api, "jobSet=billing&name=a") == ["a"]
    assert found(api, "jobSet=nobody") == []
    assert api("DELETE", f"/v1/jobs/{gone}").status == 204
    assert found(api, "jobSet=billing&sort=nextRunAt") == ["a"]
    assert api.get("/v1/jobs", query="jobSet=billing", caller="globex").json["items"] == []


def test_pages_follow_each_other_and_the_total_counts_all(api: Api) -> None:
    made(api)

    assert names(joined(pages(api, "/v1/jobs", 2, "sort=nextRunAt"))) == ["soon", "mid", "late", "off"]
    first = api.get("/v1/jobs", query="sort=nextRunAt&limit=3&include=total,schedules").json
    assert (first["total"], len(first["items"]), len(first["items"][0]["schedules"])) == (4, 3, 1)
    other = api.get("/v1/jobs", query=f"nextRunAfter=2027-03-01T00:00:00Z&cursor={first['nextCursor']}")
    assert (other.status, other.code) == (400, "INVALID_CURSOR")


def test_too_many_jobs_are_refused_with_filters_that_narrow_the_list(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    made(api)
    monkeypatch.setattr(narrow_lists, "MOST", 3)

    refused = api.get("/v1/jobs", query="sort=nextRunAt")

    assert (refused.status, refused.code, refused.fields) == (400, "INVALID_QUERY", ["sort"])
    assert "narrow the list by tag" in refused.json["detail"]
    assert found(api, "sort=nextRunAt&name=mid") == ["mid"]


@pytest.mark.parametrize(
    "query", ["sort=name", "nextRunAfter=soon", "createdBefore=2027", "jobSet=", "sort=nextRunAt&cursor=x"]
)
def test_invalid_values_are_refused(api: Api, query: str) -> None:
    assert api.get("/v1/jobs", query=query).status == 400
