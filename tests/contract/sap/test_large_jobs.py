"""Jobs that are limited only by the 100 KB of a body: the data of a schedule, and the schedules of a job."""

from __future__ import annotations

import json

import pytest

from tests.contract.sap.api import JOB


def schedules(count, **more):
    return [{"cron": f"2098 1 1 * {n // 60 % 24} {n % 60} 0", "active": True, **more} for n in range(count)]


def post(api, body):
    return api("POST", "/jobs", body)


def put(api, body):
    return api("PUT", "/jobs/report", body)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("send", [post, put])
@pytest.mark.parametrize("count", [40, 41, 91, 200, 999, 1_000])
def test_a_job_can_be_created_with_its_maximum_of_schedules(api, send, count):
    api.stage.taps.passed.clear()

    reply = send(api, {**JOB, "schedules": schedules(count)})

    assert reply.status == 201, reply.text
    shown = api.get(f"/jobs/{reply.json['_id']}/schedules").json["results"]
    assert len(reply.json["schedules"]) == len(shown) == count
    assert [each["cron"] for each in shown] == [each["cron"] for each in schedules(count)]
    assert all(each["active"] and each["nextRunAt"] for each in reply.json["schedules"])
    listed = api.get("/jobs").json["results"][0]
    assert (listed["ACTIVECOUNT"], listed["INACTIVECOUNT"]) == (count, 0)


@pytest.mark.parametrize("send", [post, put])
def test_more_schedules_than_the_maximum_are_refused_with_both_numbers(api, send):
    api.create(name="another")

    with api.native.unchanged():
        reply = send(api, {**JOB, "schedules": schedules(1_001)})

    assert reply.status == 400
    assert "schedules: at most 1,000 in one request, not 1,001" in reply.json["message"]


def test_one_invalid_schedule_among_many_leaves_none_of_them(api):
    api.create(name="another")
    many = schedules(200)
    many[150]["cron"] = "* * 32 * * * 0"

    with api.native.unchanged():
        reply = api("POST", "/jobs", {**JOB, "schedules": many})

    assert reply.status == 400
    assert "schedules[150].cron" in reply.json["message"]


def test_many_schedules_due_at_once_all_run_once_with_their_own_data(api):
    reply = api(
        "POST", "/jobs", {**JOB, "schedules": [{"time": "now", "active": True, "data": {"n": n}} for n in range(60)]}
    )
    api.stage.run(90)

    assert reply.status == 201
    assert sorted(json.loads(each.call.payload)["n"] for each in api.stage.endpoint.received) == [*range(60)]


def data_of(size):
    """Returns an object whose JSON has so many bytes."""
    return {"p": "x" * (size - len('{"p":""}'))}


LARGE = 65_537, 90_000, 102_000


@pytest.mark.parametrize("size", LARGE)
def test_data_may_be_as_large_as_a_body_allows(api, size):
    data = data_of(size)
    reply = api(
        "POST",
        "/jobs",
        {
            "name": "d",
            "action": JOB["action"],
            "active": True,
            "schedules": [{"time": "now", "active": True, "data": data}],
        },
    )
    api.stage.run(60)

    assert reply.status == 201, reply.text
    assert json.loads(reply.json["schedules"][0]["data"]) == data
    (received,) = api.stage.endpoint.received
    assert json.loads(received.call.payload) == data


@pytest.mark.parametrize("size", LARGE)
def test_large_data_is_kept_by_every_change_of_job_and_schedule(api, size):
    made = api.create({"cron": "* * * * 3 0 0", "data": {"a": 1}})
    where = f"/jobs/{made['_id']}/schedules/{made['schedules'][0]['scheduleId']}"
    assert api("PUT", where, {"data": data_of(size)}).status == 200

    job = api.native.get("/v1/jobs").json["items"][0]
    changed = api.native("PATCH", f"/v1/jobs/{job['id']}", {"description": "by another way"})
    sent = [api("PUT", where, {"description": "x"}), api("PUT", f"/jobs/{made['_id']}", {"description": "y"})]

    assert changed.status == 200, changed.text
    assert [reply.status for reply in sent] == [200, 200]
    assert json.loads(api.get(where).json["data"]) == data_of(size)


def test_the_native_payload_limit_still_applies(api):
    action = {"type": "http", "url": JOB["action"], "payload": data_of(65_537)}

    assert api.native("POST", "/v1/jobs", {"action": action}).status == 422
