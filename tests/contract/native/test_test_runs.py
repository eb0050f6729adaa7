"""A test run calls the target for real, and leaves all else as it was."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.native.api import Api
from tests.support.endpoint import ACCEPTED, OK, WRONG

ACTION = {"type": "http", "url": "https://example.com/run"}
OTHER = {"type": "http", "url": "https://example.com/other"}
HOOKS = {"onSuccess": OTHER, "onFailure": OTHER}


def job(api: Api, **members: Any) -> tuple[str, str]:
    """Creates a job with a far schedule; returns both ids."""
    given = {"schedules": [{"cron": "0 0 1 1 *"}], "errorAction": OTHER, "hooks": HOOKS, **members}
    made = api.create({"action": ACTION, **given})
    return made["id"], made["schedules"][0]["id"]


def test_run(api: Api, job_id: str, **members: Any) -> dict[str, Any]:
    started = api("POST", f"/v1/jobs/{job_id}/run", {"mode": "test", **members})
    assert (started.status, started.json["started"]) == (202, True)
    api.stage.run(5)
    found: dict[str, Any] = api.get(f"/v1/runs/{started.json['runId']}").json
    return found


test_run.__test__ = False  # type: ignore[attr-defined]  # a step of the tests


@pytest.mark.parametrize(("answer", "state"), [(OK, "SUCCESS"), (WRONG, "REQUEST_ERROR")])
@pytest.mark.parametrize("of_schedule", [False, True])
@pytest.mark.parametrize("totals", ["scheduled", "all"])
def test_a_test_run_calls_the_target_and_starts_and_counts_nothing_else(
    api: Api, answer: Any, state: str, of_schedule: bool, totals: str
) -> None:
    job_id, schedule_id = job(api, **({"policies": {"totals": "all"}} if totals == "all" else {}))
    api.stage.endpoint.answer = lambda _: answer
    before = api.get(f"/v1/jobs/{job_id}", query="include=schedules").json

    run = test_run(api, job_id, **({"scheduleId": schedule_id} if of_schedule else {}))

    assert (run["kind"], run["state"]) == ("test", state)
    assert [each.params["url"] for each in api.stage.endpoint.received] == [ACTION["url"]]
    assert [each["id"] for each in api.get("/v1/runs", query=f"jobId={job_id}").json["items"]] == [run["id"]]
    assert api.get("/v1/errors").json["items"] == []
    after = api.get(f"/v1/jobs/{job_id}", query="include=schedules").json
    assert (after["totals"], after["revision"], after["nextRunAt"]) == (
        before["totals"],
        before["revision"],
        before["nextRunAt"],
    )


def test_a_manual_run_starts_and_counts_all_of_this(api: Api) -> None:
    """The difference is the mode."""
    job_id, _ = job(api)
    api.stage.endpoint.answer = lambda _: WRONG
    api("POST", f"/v1/jobs/{job_id}/run", {"mode": "run"})
    api.stage.run(5)

    assert {each["kind"] for each in api.get("/v1/runs", query=f"jobId={job_id}").json["items"]} == {
        *("manual", "on_failure", "error_action")
    }
    assert len(api.get("/v1/errors").json["items"]) > 0


def test_a_test_run_takes_no_turn_of_the_schedule(api: Api) -> None:
    """A run that waits for its result holds the schedule's slot: a test begins all the same, and does not free it."""
    waits = {**ACTION, "outcome": {"on202": "wait"}}
    job_id, schedule_id = job(api, action=waits, policies={"overlap": "skip"})
    api.stage.endpoint.script = [ACCEPTED]
    api("POST", f"/v1/jobs/{job_id}/run", {"scheduleId": schedule_id})
    api.stage.run(5)

    tested = test_run(api, job_id, scheduleId=schedule_id)
    manual = api("POST", f"/v1/jobs/{job_id}/run", {"scheduleId": schedule_id}).json["runId"]
    api.stage.run(5)

    assert tested["state"] == "SUCCESS"
    assert api.get(f"/v1/runs/{manual}").json["reason"] == "OVERLAP"


def test_a_rerun_of_a_test_run_is_a_test_run(api: Api) -> None:
    job_id, _ = job(api)
    run = test_run(api, job_id, payload={"n": 1})
    again = api("POST", f"/v1/runs/{run['id']}/rerun").json["runId"]
    api.stage.run(5)

    assert api.get(f"/v1/runs/{again}").json["kind"] == "test"
    assert len(api.stage.endpoint.received) == 2


def test_a_repeated_test_request_starts_no_second_run(api: Api) -> None:
    job_id, _ = job(api)
    key = {"idempotency-key": "k"}
    first = api("POST", f"/v1/jobs/{job_id}/run", {"mode": "test"}, headers=key).json["runId"]

    assert api("POST", f"/v1/jobs/{job_id}/run", {"mode": "test"}, headers=key).json["runId"] == first
    assert api("POST", f"/v1/jobs/{job_id}/run", {}, headers=key).code == "KEY_REUSED"


def test_runs_can_be_filtered_by_the_kind_test(api: Api) -> None:
    job_id, _ = job(api)
    run = test_run(api, job_id)
    api("POST", f"/v1/jobs/{job_id}/run")
    api.stage.run(5)

    found = api.get("/v1/runs", query=f"jobId={job_id}&kind=test").json["items"]
    assert [each["id"] for each in found] == [run["id"]]


@pytest.mark.parametrize(
    ("members", "field"),
    [({"mode": "dry"}, "mode"), ({"mode": "test", "ifActive": "drop"}, "ifActive")],
)
def test_invalid_modes_are_refused(api: Api, members: dict[str, Any], field: str) -> None:
    job_id, _ = job(api)

    with api.unchanged():
        refused = api("POST", f"/v1/jobs/{job_id}/run", members)

    assert (refused.status, refused.fields) == (422, [field])


@pytest.mark.parametrize("of_schedule", [False, True])
@pytest.mark.parametrize(("answer", "ends"), [(OK, "succeeded"), (WRONG, "failed")])
def test_totals_of_all_runs_count_manual_runs_of_the_whole_job(
    api: Api, answer: Any, ends: str, of_schedule: bool
) -> None:
    made = api.create(policies={"totals": "all"})
    body = {"scheduleId": made["schedules"][0]["id"]} if of_schedule else {}
    api.stage.endpoint.answer = lambda _: answer

    for _ in range(2):
        api("POST", f"/v1/jobs/{made['id']}/run", body)
    api.stage.run(60)

    totals = api.get(f"/v1/jobs/{made['id']}").json["totals"]
    assert (totals["planned"], totals["open"], totals[ends]) == (2, 0, 2)
