"""A recurring schedule and its dates after a change: how it stands x what is sent -> goes on, stays off, or 400.

The table is that of server/flow/jobs/last_instant.py; it is five past twelve, and what ran, ran at 12:01.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.contract.sap.api import FORM

DAILY, USED_UP = {"cron": "* * * * 12 1 0"}, {"cron": "2027 3 1 * 12 1 0"}
AT_TEN, CAME = {"endTime": "2027-03-01T22:00:00Z"}, {"endTime": "2027-03-01T12:02:00Z"}
LATER, YESTERDAY, NOON = "2027-12-31T00:00:00Z", "2027-02-28T00:00:00Z", "2027-03-02T11:00:00Z"
INTERVAL = {"repeatInterval": "12 hours", "startTime": "2027-03-01T12:01:00Z"}
OFF = {"active": False}
MADE = {
    "on": (DAILY, {}),
    "on, interval": (INTERVAL, {}),
    "ran out": ({**DAILY, **AT_TEN}, {}),
    "ran out, at": ({"repeatAt": "12.01", **AT_TEN}, {}),
    "ran out, interval": ({**INTERVAL, **AT_TEN}, {}),
    "ran out, job": (DAILY, AT_TEN),
    "used up": (USED_UP, {}),
    "ended": ({**DAILY, **CAME}, {}),
    "ended, job": (DAILY, CAME),
    "off": ({**DAILY, **OFF}, {}),
    "off, used up": ({**USED_UP, **OFF}, {}),
    "off, ended": ({**INTERVAL, **CAME, **OFF}, {}),
    "off, no date": ({**DAILY, **AT_TEN, **OFF}, {}),
}
NEXT, IN_12_H, OVER = "2027-03-02 12:01:00", "2027-03-02 00:01:00", None
AT_ONCE = "2027-03-01 12:05:05"
LEFT_NONE = "leaves no date from 2027-03-01T12:05:00Z"
NO_DATE, END_PAST = "active: cannot be true: no date is left", "active: cannot be true: the endTime of the schedule"
CASES = [
    # Its own time
    ("on", {"endTime": LATER}, NEXT),
    ("on", {"endTime": "2027-03-01T23:00:00Z"}, f"endTime: {LEFT_NONE} to 2027-03-01T23:00:00Z"),
    ("on", {"endTime": "2027-03-01T23:00:00Z", "active": True}, f"endTime: {LEFT_NONE}"),
    ("on", {"endTime": YESTERDAY}, f"endTime: {LEFT_NONE} to 2027-02-28T00:00:00Z"),
    ("on", {"cron": "2027 2 * * 0 0 0"}, f"cron: {LEFT_NONE} on"),
    ("on", {"cron": "2026 * * * 0 0 0"}, "cron: has no occurrence from"),
    ("on", {"startTime": "2027-06-01", "endTime": "2027-06-01T03:00:00Z"}, "cron: has no occurrence from"),
    ("on", {"endTime": YESTERDAY, "active": False}, OVER),
    ("on, interval", {"endTime": NOON}, IN_12_H),
    ("on, interval", {"endTime": "2027-03-01T23:00:00Z"}, f"endTime: {LEFT_NONE}"),
    ("ran out", {"endTime": "2027-03-10T22:00:00Z"}, NEXT),
    ("ran out", {"endTime": None}, NEXT),
    ("ran out", {"cron": "* * * * */6 1 0"}, "2027-03-01 18:01:00"),
    ("ran out", {"endTime": NOON}, OVER),
    ("ran out", {"cron": "* * * * 12 2 0"}, OVER),
    ("ran out", {"description": "x"}, OVER),
    ("ran out", {"endTime": LATER, "active": False}, OVER),
    ("ran out", {"endTime": LATER, "active": True}, NEXT),
    ("ran out", {"active": True}, f"{NO_DATE} before the endTime"),
    ("ran out", {"active": True, "endTime": NOON}, f"endTime: {LEFT_NONE} to 2027-03-02T11:00:00Z"),
    ("ran out, at", {"endTime": LATER}, NEXT),
    ("ran out, interval", {"endTime": LATER}, IN_12_H),
    ("ran out, interval", {"repeatInterval": "3 hours"}, "2027-03-01 15:01:00"),
    ("used up", {"cron": DAILY["cron"]}, NEXT),
    ("used up", {"cron": "2027 2 1 * 12 1 0"}, OVER),
    ("used up", {"endTime": YESTERDAY}, OVER),
    ("used up", {"active": True}, NO_DATE),
    ("ended", {"endTime": None}, OVER),
    ("ended", {"cron": "* * * * */6 1 0", "endTime": LATER}, OVER),
    ("ended", {"endTime": LATER, "active": True}, NEXT),
    ("ended", {"active": True}, END_PAST),
    ("ended", {"startTime": LATER, "endTime": None}, OVER),
    ("off", {"endTime": YESTERDAY}, OVER),
    ("off", {"cron": "2027 2 * * 0 0 0"}, OVER),
    ("off", {"active": True}, NEXT),
    ("off", {"active": True, "cron": "2027 2 * * 0 0 0"}, f"cron: {LEFT_NONE} on"),
    ("off, used up", {"active": True}, NO_DATE),
    ("off, ended", {"active": True}, END_PAST),
    ("off, ended", {"active": True, "endTime": None}, AT_ONCE),
    ("off, ended", {"endTime": None}, OVER),
    ("off, no date", {"active": True}, f"{NO_DATE} before the endTime"),
]
JOB_CASES = [
    ("on", {"endTime": LATER}, NEXT),
    ("on", {"endTime": NOON}, OVER),
    ("on", {"endTime": YESTERDAY}, OVER),
    ("on", {"startTime": "2027-03-02T12:00:00Z", "endTime": "2027-03-02T12:00:30Z"}, OVER),
    ("ran out", {"endTime": LATER}, OVER),
    ("ran out", {"startTime": LATER}, OVER),
    ("ran out, job", {"endTime": LATER}, NEXT),
    ("ran out, job", {"endTime": None}, NEXT),
    ("ran out, job", {"endTime": NOON}, OVER),
    ("ran out, job", {"description": "x"}, OVER),
    ("used up", {"startTime": LATER}, OVER),
    ("used up", {"endTime": YESTERDAY}, OVER),
    ("ended, job", {"endTime": None}, OVER),
    ("ended, job", {"startTime": LATER, "endTime": None}, OVER),
    ("off, used up", {"startTime": LATER}, OVER),
    ("off, ended", {"startTime": LATER}, OVER),
    ("off, ended", {"startTime": None}, OVER),
    ("off, no date", {"endTime": YESTERDAY}, OVER),
]


def path_of(made, n=0):
    return f"/jobs/{made['_id']}/schedules/{made['schedules'][n]['scheduleId']}"


def stands(api, how):
    """Makes a job whose schedule has reached this state."""
    schedule, members = MADE[how]
    made = api.create(schedule, startTime="2027-01-01T00:00:00Z", **members)
    api.stage.run(299.5)
    before = api.get(path_of(made)).json
    assert before["active"] is (how.split(",")[0] == "on")
    return made


def check(api, made, then):
    after = api.get(path_of(made)).json
    assert (after["active"], after["nextRunAt"]) == (then is not OVER, then)
    ran = len(api.stage.endpoint.received)
    due = datetime.strptime(then or NEXT, FORM).replace(tzinfo=UTC)
    api.stage.clock.advance(max(0, (due - api.stage.clock.now()).total_seconds() - 60))
    api.stage.run(120)
    assert (len(api.stage.endpoint.received) > ran) is (then is not OVER)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("how", "sent", "then"), CASES)
def test_a_change_of_a_schedules_own_time_activates_it_only_with_a_date_left(api, how, sent, then):
    made = stands(api, how)

    if then is not OVER and ":" in then and not then.startswith("2027"):
        with api.native.unchanged():
            refused = api("PUT", path_of(made), sent)
        assert (refused.status, refused.json["message"].removeprefix("Error while configuring job: ")[: len(then)]) == (
            400,
            then,
        )
        return
    replies = [api("PUT", path_of(made), sent) for _ in range(2)]  # the answer to the first may have been lost

    assert [reply.status for reply in replies] == [200, 200], replies[0].text
    assert (replies[0].json["active"], replies[0].json["nextRunAt"]) == (then is not OVER, then)
    check(api, made, then)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("how", "sent", "then"), JOB_CASES)
def test_a_change_of_the_job_activates_a_schedule_only_with_a_date_left(api, how, sent, then):
    made = stands(api, how)

    for _ in range(2):
        reply = api("PUT", f"/jobs/{made['_id']}", sent)
        assert reply.status == 200, reply.text

    check(api, made, then)


@pytest.mark.parametrize("of", ["schedule", "job"])
@pytest.mark.parametrize("many", [1, 45])
def test_correcting_a_wrong_date_activates_its_schedules_again(api, of, many):
    """Also of more schedules than one transaction takes."""
    made = api.create(DAILY)
    job = f"/jobs/{made['_id']}"
    for _ in range(many - 1):
        assert api("POST", f"{job}/schedules", {**DAILY, "active": True}).status == 201
    where = job if of == "job" else path_of(made)
    api.stage.run(300)

    assert api("PUT", job, {"endTime": NOON}).status == 200
    api.stage.run(120)
    shown = api.get(f"{job}/schedules").json["results"]
    assert [each["active"] for each in shown] == [False] * many
    corrected = {"endTime": None} if of == "job" else {"endTime": "2027-03-02T10:00:00Z", "description": "x"}
    assert api("PUT", where, corrected).status == 200
    assert api("PUT", job, {"endTime": LATER}).status == 200

    shown = api.get(f"{job}/schedules").json["results"]
    assert [each["nextRunAt"] for each in shown].count(NEXT) == many - (of == "schedule")


def test_a_schedule_that_ran_out_stays_inactive_once_its_end_has_come(api):
    made = stands(api, "ran out")
    assert api("PUT", path_of(made), {"endTime": "2027-03-01T13:00:00Z"}).status == 200
    api.stage.run(3_600)

    after = api("PUT", path_of(made), {"endTime": LATER}).json

    assert (after["active"], after["nextRunAt"]) == (False, None)
    assert api("PUT", path_of(made), {"active": True}).json["nextRunAt"] == NEXT


@pytest.mark.parametrize("how", ["ran out", "used up", "ended", "off, used up", "off, ended"])
def test_a_job_can_be_replaced_by_its_own_answer(api, how):
    made = stands(api, how)
    assert api("POST", f"/jobs/{made['_id']}/schedules", {"repeatInterval": "1 hour", "active": True}).status == 201
    read = api("GET", f"/jobs/{made['_id']}", query={"displaySchedules": "true"}).json

    reply = api("PUT", f"/jobs/{made['name']}", read)

    assert reply.status == 200, reply.text
    dead, living = reply.json["schedules"]
    own = {"scheduleId": None, "modifiedAt": None}
    assert {**dead, **own} == {**read["schedules"][0], **own}
    assert (dead["active"], living["active"]) == (False, True)


def test_one_request_activates_a_job_with_a_new_end_and_its_schedules(api):
    """The job is judged by the end that the request sets."""
    made = stands(api, "ended, job")
    schedule = {"scheduleId": made["schedules"][0]["scheduleId"], "active": True}

    still_over = api("PUT", f"/jobs/{made['_id']}", {"schedules": [schedule]})
    assert (still_over.status, api.get(path_of(made)).json["active"]) == (200, False)
    reply = api("PUT", f"/jobs/{made['_id']}", {"endTime": LATER, "schedules": [schedule]})

    assert reply.status == 200, reply.text
    check(api, made, NEXT)


@pytest.mark.parametrize("how", ["ran out", "ran out, job", "used up", "ended", "off, used up", "off, no date"])
def test_activating_many_schedules_activates_those_with_a_date_left(api, how):
    made = stands(api, how)
    where = f"/jobs/{made['_id']}/schedules"

    with api.native.unchanged():
        refused = api("POST", f"{where}/activationStatus", {"activationStatus": True})
    assert refused.status == 400
    assert "activationStatus: cannot be true" in refused.json["message"]
    beside = {"cron": "* * * * 18 0 0", "active": False}
    if "job" not in how:
        assert api("POST", where, beside).status == 201
        assert api("POST", f"{where}/activationStatus", {"activationStatus": True}).status == 200
        assert [each["active"] for each in api.get(where).json["results"]] == [False, True]


def test_an_inactive_schedule_without_a_date_may_be_created_but_not_activated(api):
    made = api.create({**USED_UP, **OFF, "endTime": YESTERDAY}, {**INTERVAL, **OFF, "endTime": "2027-03-01T12:01:00Z"})
    ended = {"time": "2027-02-01T00:00:00Z", **OFF, "endTime": YESTERDAY}
    assert api("POST", f"/jobs/{made['_id']}/schedules", ended).status == 201
    assert api("POST", f"/jobs/{made['_id']}/schedules", {**ended, "active": True}).status == 201
    api.stage.run(120)

    shown = api.get(f"/jobs/{made['_id']}/schedules").json["results"]
    assert [(each["active"], each["nextRunAt"]) for each in shown] == [(False, None)] * 4
    refused = [api("PUT", f"/jobs/{made['_id']}/schedules/{each['scheduleId']}", {"active": True}) for each in shown]
    assert [reply.status for reply in refused] == [400] * 4


def test_a_deactivation_is_reported_once_and_says_whether_the_end_had_come(api):
    made = stands(api, "ran out")
    for sent in ({"endTime": NOON}, {"description": "x"}, {"endTime": "2027-03-02T10:00:00Z"}):
        assert api("PUT", path_of(made), sent).status == 200
        api.stage.run(70)
    soon = api.create({"repeatInterval": "1 minute", "endTime": api.now(61)}, name="soon")
    api.stage.run(200)

    def told(made):
        lines = api.get("/actionLogs", query={"jobId": made["_id"]}).json["results"]
        return [line["type"] for line in lines if line["type"].startswith("DEACTIVATION")]

    assert told(made) == ["DEACTIVATION_NO_FUTURE_DATES"]
    assert told(soon) == ["DEACTIVATION_ENDTIME_REACHED"]
