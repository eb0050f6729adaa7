"""A schedule that takes too long to compute is refused by every verb; one that becomes so is taken out with a row."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from tests.contract.native.api import JOB
from tests.support.work import OURS, few_calls

DAYS = [f"{date(2027, 1, 1) + timedelta(days=n)}" for n in range(4_000)]
CALENDARS = {
    "even": {"dates": DAYS[::2]},
    "odd": {"dates": DAYS[1:3_981:2]},
    "ranges": {"ranges": [{"from": day, "to": day} for day in DAYS[:1_000]]},
    "weekly": {
        "weekly": [
            {"days": ["MON", "TUE"], "from": f"{n % 24:02}:{n:02}", "to": f"{(n + 1) % 24:02}:00"} for n in range(50)
        ]
    },
}
"""Calendars that never agree on a day near an occurrence. The virtual clock stands on 2027-03-01."""
HARD = {"cron": "0 9 29 2 1", "calendars": [{"name": name, "roll": "next"} for name in CALENDARS]}
FORMER = {"away": {"weekly": [{"days": ["SUN"]}]}, "apia": {"weekly": [{"days": ["TUE"]}], "timezone": "Pacific/Apia"}}
LATER = {
    "away": {"weekly": [{"days": ["SUN", "WED", "FRI", "MON", "SAT"]}]},
    "apia": {"weekly": [{"days": ["TUE", "THU", "SAT", "SUN", "MON"]}], "timezone": "Pacific/Apia"},
}


@pytest.fixture
def calendars(api):
    for name, content in CALENDARS.items():
        assert api("POST", "/v1/calendars", {"name": name, **content}).status == 201


def schedule(body):
    return {**JOB, "schedules": [{"name": "daily", **body}]}


LIST = {"jobs": [{"key": "a", **schedule(HARD)}]}
ASKS = {
    "preview": ("POST", "/v1/schedules:preview", HARD, "calendars"),
    "create a job": ("POST", "/v1/jobs", schedule(HARD), "schedules[0].calendars"),
    "create an inactive job": ("POST", "/v1/jobs", {**schedule(HARD), "active": False}, "schedules[0].calendars"),
    "replace a job": ("PUT", "/v1/jobs/{job}", schedule(HARD), "schedules[0].calendars"),
    "patch a job": ("PATCH", "/v1/jobs/{job}", {"schedules": schedule(HARD)["schedules"]}, "schedules[0].calendars"),
    "add a schedule": ("POST", "/v1/jobs/{job}/schedules", HARD, "calendars"),
    "replace a schedule": ("PUT", "/v1/jobs/{job}/schedules/{schedule}", HARD, "calendars"),
    "patch a schedule": ("PATCH", "/v1/jobs/{job}/schedules/{schedule}", HARD, "calendars"),
    "apply a set": (
        "PUT",
        "/v1/job-sets/s",
        {"jobs": [{"key": "a", **schedule(HARD)}]},
        "jobs[0].schedules[0].calendars",
    ),
    "plan a set": (
        "PUT",
        "/v1/job-sets/s?plan=true",
        {"jobs": [{"key": "a", **schedule(HARD)}]},
        "jobs[0].schedules[0].calendars",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("method", "path", "body", "field"), ASKS.values(), ids=ASKS)
def test_every_verb_refuses_a_schedule_that_takes_too_long_to_compute(api, calendars, method, path, body, field):
    job = api.create()
    path, _, query = path.format(job=job["id"], schedule=job["schedules"][0]["id"]).partition("?")

    with few_calls(within=OURS), api.unchanged():
        reply = api(method, path, body, query={"plan": "true"} if query else {})

    assert (reply.status, reply.code, reply.fields) == (422, "INVALID_FIELD", [field])
    assert "takes too long to compute" in reply.json["detail"]


def test_many_hard_schedules_cost_no_more_than_a_few(api, calendars):
    body = {**JOB, "schedules": [{"name": f"s{n}", **HARD} for n in range(200)]}

    with few_calls(within=OURS):
        reply = api("POST", "/v1/jobs", body)

    assert reply.status == 422


@pytest.fixture
def hard(api):
    """A job whose calendars have changed since its schedule was accepted."""
    for name, content in FORMER.items():
        assert api("POST", "/v1/calendars", {"name": name, **content}).status == 201
    uses = [{"name": name, "roll": "next"} for name in FORMER]
    job = api.create(schedule({"cron": "0 9 * * 5", "calendars": uses}))

    def change() -> str:
        for name, content in LATER.items():
            assert api("PUT", f"/v1/calendars/{name}", content).status == 200
        api.stage.run(120)
        return job["id"]

    return job["id"], change


@pytest.mark.parametrize(("off", "on"), [("deactivate", "activate"), ("pause", "resume")])
def test_a_schedule_that_became_too_hard_is_not_switched_on(api, hard, off, on):
    job, change = hard
    api("POST", f"/v1/jobs/{job}/{off}", {})
    change()

    reply = api("POST", f"/v1/jobs/{job}/{on}", {})
    state = api.get(f"/v1/jobs/{job}").json["state"]
    described = api("PATCH", f"/v1/jobs/{job}", {"description": "still editable"})

    assert (reply.status, reply.code, reply.fields) == (422, "INVALID_FIELD", ["body"])
    assert reply.json["detail"].startswith("the schedule daily takes too long to compute")
    assert state == {"deactivate": "INACTIVE", "pause": "PAUSED"}[off]
    assert described.status == 200


def test_a_schedule_that_becomes_too_hard_says_so_and_comes_back_with_its_calendar(api, hard):
    job, change = hard
    change()
    broken = api.get(f"/v1/jobs/{job}/schedules").json["items"][0]
    (run,) = api.get("/v1/runs", query={"jobId": job}).json["items"]
    described = api("PATCH", f"/v1/jobs/{job}", {"description": "still editable"})
    again = api(
        "PUT", f"/v1/jobs/{job}/schedules/{broken['id']}", {"cron": "0 9 * * 5", "calendars": broken["calendars"]}
    )
    api("PUT", "/v1/calendars/away", FORMER["away"])
    api.stage.run(120)

    assert (broken["state"], run["state"], run["reason"]) == ("BROKEN", "ERROR", "BAD_PAYLOAD")
    assert "takes too long to compute" in run["message"]
    assert described.status == 200
    assert (again.status, again.fields) == (422, ["calendars"])
    assert api.get(f"/v1/jobs/{job}/schedules").json["items"][0]["state"] == "ACTIVE"


def test_a_broken_schedule_is_explained_by_its_rows_and_by_its_state(api, hard):
    job, change = hard
    change()
    (broken,) = api.get(f"/v1/jobs/{job}/schedules").json["items"]
    (run,) = api.get("/v1/runs", query={"jobId": job}).json["items"]
    place = f"/v1/jobs/{job}/schedules/{broken['id']}/explain"

    of_row = api.get(place, query={"at": run["plannedAt"]})
    later = api.get(place, query={"at": "2028-03-03T09:00:00Z"})

    assert (of_row.status, later.status) == (200, 200)
    assert (of_row.json["state"], of_row.json["reason"]) == ("ERROR", "BAD_PAYLOAD")
    assert of_row.json["runId"] == run["id"]
    assert (later.json["occurs"], later.json["state"]) == (False, None)
    assert later.json["reasons"][0]["code"] == "NOT_ACTIVE"
