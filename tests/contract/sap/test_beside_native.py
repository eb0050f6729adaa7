"""Jobs of the SAP facade as the native API shows and changes them."""

from __future__ import annotations

import json

import pytest

from tests.contract.sap.api import OTHER
from tests.support.endpoint import WRONG

HOURLY = {"repeatInterval": "1 hour", "data": {"a": 1}, "description": "d"}


def test_a_job_made_here_can_be_read_and_put_back_natively(api):
    made = api.create(HOURLY, user="joe", password="canary-secret")
    (listed,) = api.native.get("/v1/jobs").json["items"]
    native = api.native.get(f"/v1/jobs/{listed['id']}").json
    before = api.get(f"/jobs/{made['_id']}", query={"displaySchedules": "true"}).json

    with api.native.unchanged():
        put = api.native("PUT", f"/v1/jobs/{listed['id']}", native)

    assert put.status == 200
    assert native["facade"] == "sap"
    assert native["action"]["outcome"]["callbackTimeoutSeconds"] == 1_800
    assert api.get(f"/jobs/{made['_id']}", query={"displaySchedules": "true"}).json == before


def test_a_native_change_keeps_members_that_only_this_facade_knows(api):
    made = api.create(HOURLY, ansConfig={"onError": True})
    (listed,) = api.native.get("/v1/jobs").json["items"]

    patched = api.native("PATCH", f"/v1/jobs/{listed['id']}", {"description": "natively"})

    after = api.get(f"/jobs/{made['_id']}", query={"displaySchedules": "true"}).json
    assert patched.status == 200
    assert (after["description"], after["ansConfig"]) == ("natively", {"onSuccess": False, "onError": True})
    assert after["schedules"][0]["description"] == "d"


@pytest.mark.parametrize("failed", [False, True])
def test_the_native_job_filters_accept_the_integer_id(api, failed):
    api.native.create()
    if failed:
        api.stage.endpoint.script.append(WRONG)
    made = api.create({"time": "now"}, name="one")
    api.stage.run(5)
    other = api.create({"time": "now"}, name="other")
    api.stage.run(120)
    (native,) = api.native.get("/v1/jobs", query={"collection": "sap", "name": "one"}).json["items"]

    def both(path):
        """Returns the answers to the integer and to the native id."""
        query = [{"jobId": made["_id"]}, {"jobId": native["id"]}]
        replies = [api.native.get(path, query=each) for each in query]
        assert [reply.status for reply in replies] == [200, 200], replies[0].text
        return replies[0].text, replies[1].text

    runs = both("/v1/runs")
    assert runs[0] == runs[1]
    assert [run["jobId"] for run in json.loads(runs[0])["items"]] == [native["id"]]
    assert len({*both("/v1/runs:export")}) == len({*both("/v1/errors")}) == 1
    assert len(json.loads(both("/v1/errors")[0])["items"]) == failed
    begun = api.native("POST", "/v1/runs:export", {"jobId": str(made["_id"])})
    api.stage.run(60)
    assert api.native.get(f"/v1/operations/{begun.json['id']}").json["result"]["runs"] == 1
    assert other["_id"] != made["_id"]


@pytest.mark.parametrize("integer", ["4711", "2000000001", "9999999999999999"])
@pytest.mark.parametrize("path", ["/v1/runs", "/v1/errors", "/v1/runs:export"])
def test_an_unknown_integer_or_another_tenants_is_not_found(api, path, integer):
    made = api.create(HOURLY)
    natively = api.native.create(name="natively")
    number = made["_id"] + 1
    assert natively["id"]

    for given in (integer, number):
        assert api.native.get(path, query={"jobId": given}).status == 404
    assert api.native.get(path, query={"jobId": made["_id"]}, caller=OTHER).status == 404
    for wrong in ("0", "-1", "1.0", "\u0661", "1e3", "9" * 17):
        assert api.native.get(path, query={"jobId": wrong}).status == 400


def test_the_next_run_shown_follows_a_changed_calendar(api):
    made = api.create({"cron": "* * * * * */10 0", "description": "report"})
    (listed,) = api.native.get("/v1/jobs", query={"include": "schedules"}).json["items"]
    (schedule,) = listed["schedules"]
    first, second, *_ = schedule["nextRuns"]
    api.native("POST", "/v1/calendars", {"name": "closed", "ranges": [{"from": "2020-01-01", "to": "2020-01-02"}]})
    place = f"/v1/jobs/{listed['id']}/schedules/{schedule['id']}"
    assert api.native("PATCH", place, {"calendars": [{"name": "closed"}]}).json["nextRunAt"] == first
    job = f"/jobs/{made['_id']}"

    api.native("PUT", "/v1/calendars/closed", {"ranges": [{"from": first, "to": second}]})
    one = api.get(f"{job}/schedules/{schedule['id']}").json["nextRunAt"]
    (within,) = api.get(job, query={"displaySchedules": "true"}).json["schedules"]
    (found,) = api.get("/search/schedules", query={"q": "report"}).json["results"]
    (line,) = api.get(f"{job}/schedules/{schedule['id']}/runs").json["results"]

    assert [each.replace(" ", "T") for each in (one, within["nextRunAt"], found["nextRunAt"])] == [second[:19]] * 3
    assert line["scheduleTimestamp"].replace(" ", "T")[:19] == second[:19]


def test_a_schedule_whose_calendars_became_too_hard_is_not_switched_on_here(api):
    calendars = {"away": ["SUN"], "apia": ["TUE"]}
    for name, days in calendars.items():
        body = {"name": name, "weekly": [{"days": days}], "timezone": "Pacific/Apia" if name == "apia" else None}
        assert api.native("POST", "/v1/calendars", body).status == 201
    made = api.create({"cron": "* * * fri 9 0 0"})
    (native,) = api.native.get("/v1/jobs").json["items"]
    schedules = f"/v1/jobs/{native['id']}/schedules"
    (schedule,) = api.native.get(schedules).json["items"]
    named = [{"name": name, "roll": "next"} for name in calendars]
    assert api.native("PATCH", f"{schedules}/{schedule['id']}", {"calendars": named}).status == 200
    assert api("PUT", f"/jobs/{made['_id']}", {"active": False}).status == 200
    for name, days in {
        "away": ["SUN", "WED", "FRI", "MON", "SAT"],
        "apia": ["TUE", "THU", "SAT", "SUN", "MON"],
    }.items():
        body = {"weekly": [{"days": days}], "timezone": "Pacific/Apia" if name == "apia" else None}
        assert api.native("PUT", f"/v1/calendars/{name}", body).status == 200
    api.stage.run(120)

    reply = api("PUT", f"/jobs/{made['_id']}", {"active": True})

    assert reply.status == 400
    assert "takes too long to compute" in reply.json["message"]
    assert api.get(f"/jobs/{made['_id']}").json["active"] is False
