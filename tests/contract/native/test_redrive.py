"""How many runs a redrive says that it would be, and how it shows what was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.server.store.dynamo import keys
from tests.contract.native.api import Api
from tests.support.endpoint import OK, WRONG

GONE = "01890000-0000-7000-8000-000000000000"


def run(api: Api, job: dict[str, Any]) -> str:
    run_id: str = api("POST", f"/v1/jobs/{job['id']}/run").json["runId"]
    api.stage.run(5)
    return run_id


def failed(api: Api, count: int) -> list[str]:
    """Runs that failed; from now on all goes well."""
    job = api.create({"action": {"type": "http", "url": "https://example.com/"}})
    api.stage.endpoint.answer = lambda _: WRONG
    found = [run(api, job) for _ in range(count)]
    api.stage.endpoint.answer = lambda _: OK
    return found


def redrive(api: Api, **members: Any) -> Any:
    return api("POST", "/v1/errors:redrive", members)


def test_the_count_of_a_selection_is_the_number_of_runs_that_would_run_again(api: Api) -> None:
    first, second, of_no_job = *failed(api, 2), *failed(api, 1)
    api("POST", f"/v1/runs/{second}/rerun")
    job = of_no_job.partition("_")[0]
    good = run(api, api.create({"action": {"type": "http", "url": "https://example.com/"}}))
    selection = [first, second, of_no_job, good, f"{job}_{GONE}"]
    assert redrive(api, runs=selection, dryRun=True).json == {"count": 2, "operation": None}
    refused = redrive(api, runs=selection, expectedCount=5)
    assert (refused.status, refused.json["detail"]) == (412, "expectedCount is 5, but 2 runs would be run again")
    assert api("DELETE", f"/v1/jobs/{job}").status in {200, 204}

    assert redrive(api, runs=selection, dryRun=True).json == {"count": 1, "operation": None}
    assert redrive(api, runs=[good], dryRun=True).json["count"] == 0
    assert redrive(api, runs=selection, expectedCount=5).status == 412
    begun = redrive(api, runs=selection, expectedCount=1, ratePerMinute=600)
    assert (begun.status, begun.json["count"]) == (202, 1)
    api.stage.run(5)
    there = api("GET", f"/v1/operations/{begun.json['operation']['id']}").json
    assert there["progress"] == {"done": 5, "total": 5, "failed": 4, "waitsFor": None}


def test_another_tenants_runs_are_never_counted(api: Api) -> None:
    runs = failed(api, 1)

    assert api("POST", "/v1/errors:redrive", {"runs": runs, "dryRun": True}, caller="globex").json["count"] == 0


def test_an_empty_redrive_starts_no_operation(api: Api) -> None:
    runs = failed(api, 1)
    (group,) = api("GET", "/v1/errors").json["items"]

    foreign = api("POST", "/v1/errors:redrive", {"runs": runs}, caller="globex")
    assert api("POST", f"/v1/errors/{group['id']}/archive", {"reason": "known"}).status == 200
    seen_to = redrive(api, group=group["id"])

    assert [(each.status, each.json) for each in (foreign, seen_to)] == [(202, {"count": 0, "operation": None})] * 2
    for caller in ("acme", "globex"):
        assert api("GET", "/v1/operations", caller=caller).json["items"] == []


def test_a_redrive_is_refused_while_its_tenant_is_disabled(api: Api) -> None:
    runs = failed(api, 4)
    operation = redrive(api, runs=runs, ratePerMinute=6).json["operation"]["id"]
    api.stage.run(1)
    assert api("POST", "/v1/tenants/acme/disable", caller="provider").status == 200
    for_acme = {"caller": "provider", "headers": {"sweephand-tenant": "acme"}}
    calls = len(api.stage.endpoint.received)
    api.stage.run(3_600)

    assert len(api.stage.endpoint.received) == calls
    there = api("GET", f"/v1/operations/{operation}", **for_acme).json
    assert (there["state"], there["progress"]["waitsFor"]) == ("RUNNING", "the tenant is disabled")
    assert api("POST", "/v1/tenants/acme/enable", caller="provider").status == 200
    api.stage.run(120)
    there = api("GET", f"/v1/operations/{operation}").json
    assert there["state"] == "DONE"
    assert there["progress"] == {"done": 4, "total": 4, "failed": 0, "waitsFor": None}
    assert len(api.stage.endpoint.received) == calls + 3


def test_runs_of_a_removed_action_are_not_run_again(api: Api) -> None:
    action = {"type": "http", "url": "https://example.com/"}
    job = api.create({"action": action, "errorAction": {**action, "url": "https://example.com/alarm"}})
    api.stage.endpoint.answer = lambda _: WRONG
    run(api, job)
    (group,) = (each for each in api("GET", "/v1/errors").json["items"] if each["action"] == "errorAction")
    (alarm,) = (each["runId"] for each in api("GET", f"/v1/errors/{group['id']}/runs").json["items"])
    assert api("PATCH", f"/v1/jobs/{job['id']}", {"errorAction": None}).status == 200

    single = api("POST", f"/v1/runs/{alarm}/rerun")
    operation = redrive(api, group=group["id"]).json["operation"]["id"]
    api.stage.run(10)

    why = "its job has no errorAction any more"
    assert (single.status, single.json["detail"]) == (409, why)
    there = api("GET", f"/v1/operations/{operation}").json
    assert there["progress"] == {"done": 1, "total": 1, "failed": 1, "waitsFor": None}
    assert there["result"] == {"notRun": [{"runId": alarm, "reason": why}]}
    assert api("GET", f"/v1/errors/{group['id']}").json["count"] == 1


@pytest.mark.parametrize("by", ["runs", "group"])
def test_a_repetition_with_its_key_succeeds_after_the_first_started_runs(api: Api, by: str) -> None:
    runs = failed(api, 2)
    (group,) = api("GET", "/v1/errors").json["items"]
    body = {by: {"runs": runs, "group": group["id"]}[by], "expectedCount": 2, "ratePerMinute": 600}
    first, again = (_keyed(api, body) for _ in range(2))

    assert (first.status, again.status) == (202, 202)
    assert first.json["operation"]["id"] == again.json["operation"]["id"]


def _keyed(api: Api, body: dict[str, Any]) -> Any:
    answer = api("POST", "/v1/errors:redrive", body, headers={"idempotency-key": "once"})
    api.stage.run(5)
    return answer


def test_the_request_of_an_operation_shows_instants_in_the_usual_format(api: Api) -> None:
    (first,) = failed(api, 1)
    (group,) = api("GET", "/v1/errors").json["items"]
    assert api("POST", f"/v1/errors/{group['id']}/archive", {"reason": "known"}).status == 200
    api.stage.run(1)
    api.stage.endpoint.answer = lambda _: WRONG
    run(api, {"id": first.partition("_")[0]})
    begun = redrive(api, group=group["id"]).json["operation"]

    asked = api("GET", f"/v1/operations/{begun['id']}").json["request"]
    assert (asked["until"], asked["group"]) == (begun["startedAt"], group["id"])
    assert asked["archivedThrough"].endswith("Z")
    assert asked["archivedThrough"] <= asked["until"]


# Filters


def two_jobs(api: Api) -> list[tuple[str, list[str]]]:
    """Creates two jobs of which runs fail, two each; from now on all goes well."""
    found = []
    for n in range(2):
        job = api.create({"action": {"type": "http", "url": f"https://example.com/{n}"}}, tags=[f"t{n}", "both"])
        api.stage.endpoint.answer = lambda _: WRONG
        found.append((job["id"], [run(api, job) for _ in range(2)]))
    api.stage.endpoint.answer = lambda _: OK
    return found


def test_all_groups_that_match_a_filter_are_run_again(api: Api) -> None:
    (first, _), _ = two_jobs(api)

    assert redrive(api, filter={"tag": "t1"}, dryRun=True).json == {"count": 2, "operation": None}
    assert redrive(api, filter={"jobId": first}, dryRun=True).json["count"] == 2
    assert redrive(api, filter={"from": "2027-03-02T00:00:00Z"}, dryRun=True).json["count"] == 0
    begun = redrive(api, filter={"tag": "both"}, expectedCount=4, ratePerMinute=600)
    assert (begun.status, begun.json["count"]) == (202, 4)
    assert sorted(begun.json["operation"]["request"]) == ["groups", "ratePerMinute", "until"]
    for _ in range(6):
        api.stage.run(15)

    there = api("GET", f"/v1/operations/{begun.json['operation']['id']}").json
    assert (there["state"], there["progress"]) == ("DONE", {"done": 4, "total": 4, "failed": 0, "waitsFor": None})
    assert {each.params["url"] for each in api.stage.endpoint.received[-4:]} == {
        "https://example.com/0",
        "https://example.com/1",
    }
    assert api("GET", "/v1/errors").json["items"] == []
    assert redrive(api, filter={"tag": "both"}, dryRun=True).json["count"] == 0


def test_failures_after_the_request_and_previously_archived_ones_stay(api: Api) -> None:
    (first, _), (_, runs) = two_jobs(api)
    group = next(each for each in api("GET", "/v1/errors").json["items"] if each["jobId"] == first)
    assert api("POST", f"/v1/errors/{group['id']}/archive", {"reason": "known"}).status == 200

    begun = redrive(api, filter={"tag": "both"}, ratePerMinute=60)
    api.stage.endpoint.answer = lambda _: WRONG
    late = run(api, {"id": first})
    api.stage.endpoint.answer = lambda _: OK
    for _ in range(6):
        api.stage.run(15)

    assert begun.json["count"] == 2
    assert [api.get(f"/v1/runs/{each}").json["rerunBy"] is not None for each in [*runs, late]] == [True, True, False]


def test_a_group_deleted_meanwhile_is_skipped(api: Api) -> None:
    two_jobs(api)
    begun = redrive(api, filter={"tag": "both"}, ratePerMinute=600)
    group = next(each for each in begun.json["operation"]["request"]["groups"])
    api.stage.world.table.delete(keys.errors("acme"), keys.error_group(group))
    for _ in range(6):
        api.stage.run(15)

    there = api("GET", f"/v1/operations/{begun.json['operation']['id']}").json
    assert (there["state"], there["progress"]["done"], there["progress"]["failed"]) == ("DONE", 4, 2)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"filter": {"colour": 1}}, "filter.colour"),
        ({"filter": []}, "filter"),
        ({"filter": {"tag": ""}}, "filter.tag"),
        ({"filter": {"from": "soon"}}, "filter.from"),
        ({"filter": {"collection": "none"}}, "filter.collection"),
        ({"filter": {"jobId": "none"}}, "filter.jobId"),
        ({"filter": {"jobId": GONE, "tag": "t1"}}, "filter.jobId"),
        ({"filter": {"from": "2027-03-02T00:00:00Z", "until": "2027-03-01T00:00:00Z"}}, "filter.until"),
        ({"filter": {}, "group": "0" * 32}, "runs"),
        ({}, "runs"),
    ],
)
def test_invalid_filters_are_refused(api: Api, given: dict[str, Any], field: str) -> None:
    with api.unchanged():
        refused = redrive(api, **given)

    assert (refused.status, refused.fields) == (422, [field])


def test_too_many_groups_are_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    two_jobs(api)
    monkeypatch.setattr("sweephand.server.flow.bulk.redrive.MOST_GROUPS", 1)

    refused = redrive(api, filter={}, dryRun=True)

    assert (refused.status, refused.fields) == (422, ["filter"])
    assert "matches 2 groups; the maximum is 1" in refused.json["detail"]
