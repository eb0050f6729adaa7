"""Runs that a collection no longer keeps are in no answer, though DynamoDB takes days to delete them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from sweephand.server.flow.runs import run_lists
from tests.contract.native.api import JOB, Api
from tests.support.endpoint import WRONG

KEPT = timedelta(days=15)
SECOND = timedelta(seconds=1)


def failed_run(api: Api) -> dict[str, str]:
    """Makes a schedule whose one run of long ago failed, and whose next one is far ahead. Its ids, and when the run
    goes.
    """
    api.stage.endpoint.script = [WRONG]
    made = api.create({"action": JOB["action"], "schedules": [{"cron": "1 12 1 3 *"}]})
    api.stage.run(120)
    schedule = made["schedules"][0]["id"]
    (run,) = api.get("/v1/runs", query=f"scheduleId={schedule}").json["items"]
    assert run["state"] == "REQUEST_ERROR"
    return {"job": made["id"], "schedule": schedule, "run": run["id"], "goes": run["expiresAt"]}


def shown(api: Api, there: dict[str, str]) -> dict[str, object]:
    """Tells whether each answer that could show the run does so."""
    lists = {
        "of the schedule": f"scheduleId={there['schedule']}",
        "of the job": f"jobId={there['job']}",
        "of a state": f"jobId={there['job']}&state=REQUEST_ERROR",
        "attention": "",
    }
    found: dict[str, object] = {
        name: [each["id"] for each in api.get("/v1/runs", query=query).json["items"]] == [there["run"]]
        for name, query in lists.items()
    }
    place = f"/v1/jobs/{there['job']}/occurrences"
    begin = (datetime.fromisoformat(there["goes"]) - KEPT - timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    past = api.get(place, query=f"from={begin}&until={there['goes']}").json["items"]
    found["occurrences"] = [each["runId"] for each in past] == [there["run"]]
    found["itself"] = api.get(f"/v1/runs/{there['run']}").status == 200
    found["last run"] = api.get(f"/v1/jobs/{there['job']}/schedules/{there['schedule']}").json["lastRun"] is not None
    found["export"] = there["run"] in api.get("/v1/runs:export", query=f"jobId={there['job']}").text
    found["cancelled"] = api("POST", f"/v1/runs/{there['run']}/cancel").status == 409
    found["reported"] = api("PUT", f"/v1/runs/{there['run']}/result", {"success": True}).status == 409
    return found


def test_a_run_is_shown_until_its_last_second_and_no_longer(api: Api) -> None:
    there = failed_run(api)
    goes = datetime.fromisoformat(there["goes"])

    api.stage.clock.move_to(goes - SECOND)
    before = shown(api, there)
    api.stage.clock.move_to(goes)
    after = shown(api, there)

    assert all(before.values()), [name for name, there in before.items() if not there]
    assert not any(after.values()), [name for name, there in after.items() if there]
    totals = api.get(f"/v1/jobs/{there['job']}").json["totals"]
    assert (totals["failed"], totals["open"]) == (1, 0)


def test_an_expired_run_cannot_be_run_again(api: Api) -> None:
    there = failed_run(api)
    api.stage.clock.move_to(datetime.fromisoformat(there["goes"]))

    assert api("POST", f"/v1/runs/{there['run']}/rerun").status == 404


@pytest.mark.parametrize("limit", [1, 2])
def test_pages_continue_past_deleted_runs(api: Api, limit: int) -> None:
    """Expired runs may lie between runs that are kept: a retry ends weeks after runs that were planned later."""
    api.stage.endpoint.script = [WRONG]
    there = failed_run(api)
    api.stage.clock.move_to(datetime.fromisoformat(there["goes"]))
    kept = api("POST", f"/v1/jobs/{there['job']}/run").json["runId"]
    api.stage.deliver_all()

    seen, cursor = [], ""
    while True:
        page = api.get("/v1/runs", query=f"jobId={there['job']}&limit={limit}{cursor}").json
        seen += [each["id"] for each in page["items"]]
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={page['nextCursor']}"

    assert seen == [kept]


def test_a_run_that_is_kept_for_years_is_found_among_all_runs(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that ends among days without runs continues there."""
    monkeypatch.setattr(run_lists, "LOOKED_AT_MOST", 100)
    setting = api.get("/v1/collections/default")
    kept = {"retention": {"runDays": 3_650}}
    etag = setting.headers["etag"]
    assert api("PATCH", "/v1/collections/default", kept, headers={"if-match": etag}).status == 200
    began = api.stage.clock.now()
    there = failed_run(api)
    api.stage.clock.move_to(began + timedelta(days=730))

    seen, count, cursor = [], 0, ""
    while count == 0 or cursor:
        page = api.get("/v1/runs", query=f"from=2000-01-01T00:00:00Z{cursor}").json
        seen += [each["id"] for each in page["items"]]
        cursor = "" if page["nextCursor"] is None else f"&cursor={page['nextCursor']}"
        count += 1

    assert seen == [there["run"]]
    assert count == 8, "a page of 100 days each, and none for years before the tenant existed"
    until = _text(began + timedelta(days=10))
    assert [each["id"] for each in api.get("/v1/runs", query=f"until={until}").json["items"]] == [there["run"]]
    assert api.get("/v1/runs").json["items"] == []


def test_occurrences_whose_runs_are_deleted_are_not_shown_as_future(api: Api) -> None:
    made = api.create({"action": JOB["action"], "schedules": [{"cron": "0 * * * *"}]})
    schedule, began = made["schedules"][0]["id"], api.stage.clock.now()
    api.stage.run(2 * 86_400, most=10)
    api.stage.clock.move_to(began + KEPT + timedelta(days=1))

    found = api.get(f"/v1/jobs/{made['id']}/occurrences", query=f"from={_text(began)}&limit=200").json["items"]

    states = [(each["plannedAt"], each["state"]) for each in found]
    kept = [each for each in states if each[1] == "SUCCESS"]
    assert len(kept) == 24
    assert states[:24] == kept
    owed = [each["plannedAt"] for each in found if each["state"] == "SCHEDULED"]
    assert owed[0] == _text(began + timedelta(days=2, hours=1)), "what an outage left undone is still to come"
    assert [each["id"] for each in api.get("/v1/runs", query=f"scheduleId={schedule}").json["items"]][-1].endswith(
        found[0]["runId"].rpartition("_")[2]
    )


def _text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"
