"""A schedule that has ended is stored and off, whichever request brings it, and never a reason to refuse its job.

It is noon of 1 March 2027.
"""

from __future__ import annotations

import pytest

from tests.contract.sap.api import JOB

PAST, EARLIER, LATER = "2027-02-01T00:00:00Z", "2027-01-01T00:00:00Z", "2027-12-31T00:00:00Z"
LIVING = {"cron": "* * * * 3 0 0", "active": True}
ENDED = {
    "cron, end past": {"cron": "* * * * * * 0", "endTime": PAST},
    "cron, years past": {"cron": "2020:2026 * * * 3 0 0"},
    "cron, years past, with a start": {"cron": "2026 * * * 3 0 0", "startTime": PAST},
    "cron, years before its start": {"cron": "2028 * * * 3 0 0", "startTime": "2030-01-01T00:00:00Z"},
    "cron, no date before its end": {"cron": "2028 * * * 3 0 0", "endTime": "2027-06-01T00:00:00Z"},
    "interval, end past": {"repeatInterval": "1 hour", "endTime": PAST},
    "interval, both past": {"repeatInterval": "1 hour", "startTime": EARLIER, "endTime": PAST},
    "interval, start now, end past": {"repeatInterval": "1 hour", "startTime": "2027-03-01T12:00:00Z", "endTime": PAST},
    "repeatAt, end past": {"repeatAt": "4.40pm", "endTime": PAST},
    "time, both past": {"time": EARLIER, "endTime": PAST},
    "time, both just past": {"time": "2027-03-01T11:59:40Z", "endTime": "2027-03-01T11:59:50Z"},
    "time ahead, end past": {"time": LATER, "endTime": PAST},
    "time ahead, end before it": {"time": LATER, "endTime": "2027-06-01T00:00:00Z"},
    "words, end past": {"time": "in 2 hours", "endTime": PAST},
}
BY_ITS_JOB = {"cron": LIVING["cron"]}, {"repeatInterval": "1 hour"}, {"time": EARLIER}, {"time": LATER}


def by_create(api, body):
    reply = api("POST", "/jobs", body)
    return reply, reply.json.get("_id")


def by_upsert(api, body):
    reply = api("PUT", f"/jobs/{body['name']}", body)
    return reply, reply.json.get("_id")


def by_upsert_over_what_is_there(api, body):
    api.create(LIVING, LIVING)
    reply = api("PUT", f"/jobs/{body['name']}", body)
    return reply, reply.json.get("_id")


def by_its_id(api, body):
    made = api.create(LIVING)
    reply = api("PUT", f"/jobs/{made['_id']}", body)
    return reply, made["_id"]


def by_its_id_and_the_schedules_id(api, body):
    made = api.create(*({**each, "endTime": None, **_living(each)} for each in body["schedules"]), active=False)
    ids = [{"scheduleId": each["scheduleId"]} for each in made["schedules"]]
    schedules = [{**each, **its} for each, its in zip(body["schedules"], ids, strict=True)]
    reply = api("PUT", f"/jobs/{made['_id']}", {**body, "schedules": schedules})
    return reply, made["_id"]


def _living(schedule):
    return {"cron": LIVING["cron"]} if "cron" in schedule else {"time": LATER} if "time" in schedule else {}


def by_its_own_request(api, body):
    made = api.create(**{name: body[name] for name in body if name not in JOB and name != "schedules"})
    replies = []
    for each in body["schedules"]:
        api.stage.clock.advance(0.01)
        replies.append(api("POST", f"/jobs/{made['_id']}/schedules", each))
    return max(replies, key=lambda reply: reply.status), made["_id"]


WAYS = [
    by_create,
    by_upsert,
    by_upsert_over_what_is_there,
    by_its_id,
    by_its_id_and_the_schedules_id,
    by_its_own_request,
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", ENDED)
def test_an_ended_schedule_is_stored_as_inactive_and_the_others_run(api, way, how):
    body = {**JOB, "schedules": [{**ENDED[how], "active": True}, LIVING]}

    reply, job_id = way(api, body)

    assert reply.status in {200, 201}, reply.text
    ended, living = api.get(f"/jobs/{job_id}/schedules").json["results"]
    assert (ended["active"], ended["nextRunAt"]) == (False, None)
    assert (living["active"], living["nextRunAt"]) == (True, "2027-03-02 03:00:00")
    listed = api.get("/jobs").json["results"][0]
    assert (listed["ACTIVECOUNT"], listed["INACTIVECOUNT"]) == (1, 1)
    api.stage.run(90)
    assert api.stage.endpoint.received == []
    assert api.get(f"/jobs/{job_id}").json["active"] is True


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("window", [{"endTime": PAST}, {"startTime": "2027-03-01T12:00:00Z", "endTime": PAST}])
def test_a_job_with_a_past_end_is_stored_with_its_schedules_inactive(api, way, window):
    if way is by_its_id_and_the_schedules_id:
        schedules = [{"cron": LIVING["cron"], "active": True}]
    else:
        schedules = [{**each, "active": True} for each in BY_ITS_JOB]

    reply, job_id = way(api, {**JOB, **window, "schedules": schedules})

    assert reply.status in {200, 201}, reply.text
    found = api.get(f"/jobs/{job_id}/schedules").json["results"]
    assert [(each["active"], each["nextRunAt"]) for each in found] == [(False, None)] * len(schedules)
    api.stage.run(90)
    assert api.stage.endpoint.received == []


def test_an_application_can_upsert_the_same_job_at_each_start_after_its_end(api):
    """The outside look's case: the end comes between two starts, and the second start must not fail."""
    body = {
        **JOB,
        "schedules": [{"repeatInterval": "1 minute", "endTime": api.now(150), "active": True}, LIVING],
    }
    assert api("PUT", "/jobs/report", body).status == 201
    api.stage.run(300)
    ran = len(api.stage.endpoint.received)

    replies = [api("PUT", "/jobs/report", body) for _ in range(3)]
    api.stage.run(120)

    assert [reply.status for reply in replies] == [200] * 3
    assert [each["active"] for each in replies[-1].json["schedules"]] == [False, True]
    assert len(api.stage.endpoint.received) == ran


def test_an_inactive_job_keeps_an_ended_schedule_and_can_be_activated_and_changed(api):
    made = api.create(ENDED["time, both past"], ENDED["interval, end past"], LIVING, active=False)
    job = f"/jobs/{made['_id']}"

    replies = [
        api("PUT", job, sent)
        for sent in ({"description": "x"}, {"startTime": EARLIER}, {"active": True}, {"endTime": LATER})
    ]
    api.stage.run(90)

    assert [reply.status for reply in replies] == [200] * 4, [reply.text for reply in replies]
    found = api.get(f"{job}/schedules").json["results"]
    assert [each["active"] for each in found] == [False, False, True]
    assert api.stage.endpoint.received == []


@pytest.mark.parametrize("how", ["cron, end past", "interval, both past", "time, both past", "words, end past"])
def test_an_ended_schedule_runs_again_once_a_later_end_activates_it(api, how):
    made = api.create({**ENDED[how], "active": True})
    where = f"/jobs/{made['_id']}/schedules/{made['schedules'][0]['scheduleId']}"
    assert api("PUT", where, {"description": "x"}).json["active"] is False

    changed = api("PUT", where, {"endTime": LATER, "active": True})
    api.stage.run(7_300)

    assert (changed.status, changed.json["active"]) == (200, True)
    assert api.stage.endpoint.received


def test_the_end_of_a_one_time_schedule_is_checked_against_the_jobs_new_end(api):
    made = api.create({"time": EARLIER}, endTime=PAST)
    schedule = {"scheduleId": made["schedules"][0]["scheduleId"], "active": True}

    reply = api("PUT", f"/jobs/{made['_id']}", {"endTime": LATER, "schedules": [schedule]})
    api.stage.run(60)

    assert reply.status == 200, reply.text
    assert len(api.stage.endpoint.received) == 1


def test_many_ended_schedules_are_inactive_in_the_answer(api):
    made = api.create(*[ENDED["cron, end past"]] * 30)

    assert [each["active"] for each in made["schedules"]] == [False] * 30


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ({"cron": "* 2 30 * 0 0 0"}, "none of its years and months has a day that it names"),
        (
            {"repeatInterval": "1 hour", "startTime": LATER, "endTime": "2027-06-01T00:00:00Z"},
            "must not be before startTime",
        ),
    ],
)
def test_a_mistake_other_than_a_past_end_is_still_refused(api, schedule, why):
    api.create()

    with api.native.unchanged():
        reply = api("POST", "/jobs", {**JOB, "name": "other", "schedules": [{**schedule, "active": True}]})

    assert reply.status == 400
    assert why in reply.json["message"]
