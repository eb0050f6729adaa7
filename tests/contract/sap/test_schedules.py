"""Schedules: four ways to say when, changes, switching on and off."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from sweephand.schedules.timing import parse
from sweephand.server.flow.jobs import lookup
from sweephand.server.store.jobs import jobs
from tests.contract.sap.api import FORM, JOB, OTHER, TENANT


def path(made, n=0):
    return f"/jobs/{made['_id']}/schedules/{made['schedules'][n]['scheduleId']}"


@pytest.mark.parametrize(
    ("when", "kind", "next_run"),
    [
        ({"cron": "* * * * 16 40 0"}, "recurring", "2027-03-01 16:40:00"),
        ({"repeatAt": "4.40pm"}, "recurring", "2027-03-01 16:40:00"),
        ({"repeatInterval": "2 hours"}, "recurring", "2027-03-01 14:00:01"),
        ({"repeatInterval": "1 month"}, "recurring", "2027-03-31 12:00:01"),
        ({"repeatInterval": "1 year"}, "recurring", "2028-02-29 12:00:01"),
        ({"repeatInterval": "2 years"}, "recurring", "2029-02-28 12:00:01"),
        ({"time": "tomorrow at 4pm"}, "one-time", "2027-03-02 16:00:00"),
        ({"time": "2027-03-04T05:06:07Z"}, "one-time", "2027-03-04 05:06:07"),
        ({"time": {"date": "2027-03-04 05:06", "format": "YYYY-MM-DD HH:mm"}}, "one-time", "2027-03-04 05:06:00"),
        ({"time": "now"}, "one-time", "2027-03-01 12:00:01"),
    ],
)
def test_each_way_to_state_a_time_is_accepted(api, when, kind, next_run):
    (schedule,) = api.create(when)["schedules"]

    (mode,) = when
    assert schedule[mode] == when[mode]
    assert (schedule["type"], schedule["nextRunAt"]) == (kind, next_run)


@pytest.mark.parametrize(
    "written",
    [
        "2031-12-08 09:30:26.123",
        "2031-12-08T09:30:26.999Z",
        "2031-12-08T10:30:26,5+01:00",
        {"date": "2031-12-08 09:30:26.123"},
        {"date": "2031-12-08 09:30:26.123", "format": "YYYY-MM-DD HH:mm:ss.SSS"},
        {"date": "1954488626.5", "format": "X"},
        {"date": "1954488626123", "format": "x"},
        "2031-12-08 09:30:26",
        {"date": "1954488626", "format": "X"},
    ],
)
def test_a_fraction_of_a_second_in_a_window_is_dropped_as_documented(api, written):
    made = api.create({"repeatInterval": "1 hour", "startTime": written}, startTime=written)

    assert made["startTime"] == made["schedules"][0]["startTime"] == "2031-12-08 09:30:26"
    assert made["schedules"][0]["nextRunAt"] == "2031-12-08 09:30:26"


def test_a_fraction_of_a_second_in_a_time_makes_no_run_early(api):
    (schedule,) = api.create({"time": "2031-12-08 09:30:26.123"})["schedules"]

    assert schedule["nextRunAt"] == "2031-12-08 09:30:27"


def test_a_window_limits_its_schedule_and_is_shown(api):
    window = {"startTime": "2027-03-05 10:00", "endTime": {"date": "06.03.2027", "format": "DD.MM.YYYY"}}
    (schedule,) = api.create({"repeatInterval": "1 hour", **window})["schedules"]

    assert (schedule["startTime"], schedule["endTime"]) == ("2027-03-05 10:00:00", "2027-03-06 00:00:00")
    assert schedule["nextRunAt"] == "2027-03-05 10:00:00"


def test_the_jobs_window_also_limits_its_schedules(api):
    (schedule,) = api.create({"repeatInterval": "1 hour"}, startTime="2027-03-05T10:00:00Z")["schedules"]

    assert schedule["nextRunAt"] == "2027-03-05 10:00:00"


def test_the_time_of_a_schedule_overrides_the_start_of_its_job(api):
    (schedule,) = api.create({"time": "2027-03-02T00:00:00Z"}, startTime="2027-03-05T10:00:00Z")["schedules"]

    assert schedule["nextRunAt"] == "2027-03-02 00:00:00"


def test_a_past_time_runs_at_once(api):
    made = api.create({"time": "2027-02-01T00:00:00Z", "endTime": "2027-04-01"})

    api.stage.run(30)

    assert len(api.stage.endpoint.received) == 1
    assert api.get(path(made)).json["active"] is False


def test_a_created_schedule_is_answered_with_its_location(api):
    made = api.create()

    reply = api("POST", f"/jobs/{made['_id']}/schedules", {"active": True, "repeatAt": "18.40", "data": {"a": [1]}})

    assert reply.status == 201
    assert reply.headers["location"] == f"/scheduler/jobs/{made['_id']}/schedules/{reply.json['scheduleId']}"
    assert (reply.json["jobId"], reply.json["data"]) == (made["_id"], '{"a":[1]}')
    assert "jobId" not in api.get(f"/jobs/{made['_id']}/schedules/{reply.json['scheduleId']}").json
    listed = api.get(f"/jobs/{made['_id']}/schedules").json
    assert (listed["total"], listed["results"][0]["scheduleId"]) == (1, reply.json["scheduleId"])


def test_all_schedules_come_without_a_page_and_ten_at_a_time_with_an_offset(api):
    made = api.create(*({"repeatInterval": f"{n + 1} hours"} for n in range(25)))
    where = f"/jobs/{made['_id']}/schedules"

    whole, page = api.get(where).json, api.get(where, query={"offset": 20}).json

    assert (len(whole["results"]), whole["next_url"], whole["prev_url"]) == (25, None, None)
    assert (len(page["results"]), page["prev_url"]) == (5, f"/scheduler{where}?page_size=10&offset=10")


def test_a_change_affects_only_the_sent_members(api):
    made = api.create({"repeatInterval": "2 hours", "data": {"a": 1}, "description": "d", "startTime": "2027-03-05"})
    before = api.get(path(made)).json

    reply = api("PUT", path(made), {"description": "new"})

    assert reply.status == 200
    changed = {**before, "description": "new", "jobId": made["_id"]}
    assert {**reply.json, "modifiedAt": None} == {**changed, "modifiedAt": None}


def test_a_change_of_the_interval_replans_the_schedule(api):
    made = api.create({"repeatInterval": "2 hours"})

    changed = api("PUT", path(made), {"repeatInterval": "10 minutes", "data": None}).json

    assert (changed["repeatInterval"], changed["nextRunAt"], changed["data"]) == (
        "10 minutes",
        "2027-03-01 12:10:01",
        None,
    )


def test_an_answer_can_be_sent_back(api):
    made = api.create({"repeatInterval": "2 hours", "data": {"a": [1.5, {"b": None}]}, "description": "d"})
    read = api.get(path(made)).json

    sent = api("PUT", path(made), {name: value for name, value in read.items() if value is not None})

    assert sent.status == 200, sent.text
    assert api.get(path(made)).json["data"] == read["data"] == '{"a":[1.5,{"b":null}]}'
    with api.native.unchanged():
        wrong = [api("PUT", path(made), {"data": data}) for data in ("", "x", "[1]", '"x"', "{", '{"a": NaN}')]
    assert [reply.status for reply in wrong] == [400] * 6
    assert all(reply.json["message"].startswith("Error while configuring job: data: must") for reply in wrong)


def test_a_job_sent_back_as_read_keeps_its_schedules(api):
    made = api.create(
        {"repeatInterval": "1 hour"}, {"time": "in 3 hours"}, {"cron": "* * * * 16 40 0", "data": {"a": 1}}
    )
    api.stage.run(1_800)
    read = api("GET", f"/jobs/{made['_id']}", query={"displaySchedules": "true"}).json

    assert api("PUT", f"/jobs/{made['_id']}", {**read, "description": "another"}).status == 200

    after = api("GET", f"/jobs/{made['_id']}", query={"displaySchedules": "true"}).json
    assert after["description"] == "another"
    assert after["schedules"] == read["schedules"]


def test_a_schedule_sent_with_its_id_is_changed_within_its_job(api):
    made = api.create({"repeatInterval": "1 hour"}, {"cron": "* * * * 16 40 0"})
    hourly, daily = made["schedules"]
    sent = [
        {"scheduleId": daily["scheduleId"], "cron": "* * * * 17 40 0"},
        {"repeatInterval": "2 hours", "active": True},
    ]

    assert api("PUT", f"/jobs/{made['_id']}", {"schedules": sent}).status == 200

    first, second = api("GET", f"/jobs/{made['_id']}/schedules").json["results"]
    assert (first["scheduleId"], first["nextRunAt"]) == (daily["scheduleId"], "2027-03-01 17:40:00")
    assert second["scheduleId"] not in {hourly["scheduleId"], daily["scheduleId"]}


def test_one_request_cannot_send_a_schedule_twice_or_change_another_jobs(api):
    made, other = api.create({"repeatInterval": "1 hour"}), api.create({"repeatInterval": "3 hours"}, name="other")
    own, foreign = (each["schedules"][0]["scheduleId"] for each in (made, other))
    twice = [{"scheduleId": own, "active": True}] * 2
    stranger = [{"scheduleId": foreign, "repeatInterval": "2 hours", "active": True}]

    assert api("PUT", f"/jobs/{made['_id']}", {"schedules": twice}).status == 400
    assert api("PUT", f"/jobs/{made['_id']}", {"schedules": stranger}).status == 200

    assert api("GET", f"/jobs/{other['_id']}/schedules").json["results"][0]["scheduleId"] == foreign


def test_a_valid_cron_with_no_run_left_is_not_called_invalid(api):
    made = api.create({"cron": "* * * * 2 30 0"})

    reply = api("PUT", path(made), {"cron": "2028 * * * 2 30 0", "endTime": "2027-02-01"})

    assert reply.status == 400
    assert reply.json["message"] == "Error while configuring job: cron: has no occurrence until 2027-02-01T00:00:00Z"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "at least one field of the schedule is required"),
        (
            {"cron": "* * * * * * 0"},
            "job: cron: the schedule has repeatInterval, and the kind of a schedule cannot be changed",
        ),
        ({"endTime": "2027-02-01"}, "repeatInterval: has no occurrence until 2027-02-01T00:00:00Z"),
        ({"repeatInterval": "0 minutes"}, "repeatInterval: "),
        ({"repeatInterval": "twenty minutes"}, "repeatInterval: "),
        ({"repeatInterval": "5 mins"}, "repeatInterval: "),
        ({"repeatInterval": "1 hour", "time": "now"}, "Extra scheduling parameters passed"),
        ({"active": "maybe"}, 'active: must be true or false, not "maybe"'),
        ({"data": [1]}, "data: must be an object"),
    ],
)
def test_an_invalid_change_is_refused(api, body, why):
    made = api.create({"repeatInterval": "2 hours"})

    with api.native.unchanged():
        reply = api("PUT", path(made), body)

    assert reply.status == 400
    assert why in reply.json["message"]


def test_schedules_are_activated_and_deactivated_one_by_one(api):
    made = api.create({"repeatInterval": "2 hours"})

    off = api("PUT", path(made), {"active": False}).json
    on = api("PUT", path(made), {"active": True}).json

    assert (off["active"], off["nextRunAt"]) == (False, None)
    assert (on["active"], on["nextRunAt"]) == (True, "2027-03-01 14:00:01")


def test_schedules_are_activated_and_deactivated_all_at_once(api):
    made = api.create({"repeatInterval": "2 hours"}, {"repeatAt": "18.40"}, {"active": False, "repeatAt": "19.40"})
    where = f"/jobs/{made['_id']}/schedules"

    def active():
        return [each["active"] for each in api.get(where).json["results"]]

    assert api("POST", f"{where}/activationStatus", {"activationStatus": False}).json == {"success": True}
    assert active() == [False, False, False]
    assert api("POST", f"{where}/activationStatus", {"activationStatus": True}).status == 200
    assert active() == [True, True, True]
    assert api("POST", f"{where}/activationStatus", {}).status == 400


def test_one_schedule_can_be_deleted_and_then_all_of_them(api):
    made = api.create({"repeatInterval": "2 hours"}, {"repeatAt": "18.40"})
    where = f"/jobs/{made['_id']}/schedules"

    assert api("DELETE", path(made)).json == {"success": True}
    assert api.get(path(made)).status == 404
    assert api.get(where).json["total"] == 1
    assert api("DELETE", where).json == {"success": True}
    assert api.get(where).json["total"] == 0


def test_a_schedule_of_another_job_is_404(api):
    one, other = (
        api.create({"repeatInterval": "2 hours"}, name="a"),
        api.create({"repeatInterval": "2 hours"}, name="b"),
    )
    crossed = f"/jobs/{one['_id']}/schedules/{other['schedules'][0]['scheduleId']}"

    for method in ("GET", "DELETE"):
        assert api(method, crossed).status == 404
    assert api("PUT", crossed, {"active": False}).status == 404
    assert api.get(f"{crossed}/runs").status == 404


def test_a_one_time_schedule_activated_late_runs_at_once(api):
    made = api.create({"time": "2027-03-01T12:30:00Z", "active": False})
    api.stage.run(3_600)
    assert api.stage.endpoint.received == []

    assert api("PUT", path(made), {"active": True}).json["active"] is True
    api.stage.run(30)

    assert len(api.stage.endpoint.received) == 1


def states(api, schedule):
    """Returns the run log of a schedule: planned instant and state."""
    return [(line["scheduleTimestamp"], line["runState"]) for line in api.get(f"{schedule}/runs").json["results"]]


def test_an_interval_activated_after_its_planned_start_runs_at_once_in_a_new_rhythm(api):
    made = api.create({"repeatInterval": "2 hours", "active": False})
    api.stage.run(3 * 3_600)
    assert api.stage.endpoint.received == []

    on = api("PUT", path(made), {"active": True}).json
    assert on["nextRunAt"] == api.now(6)
    api.stage.run(60)

    (planned, run) = states(api, path(made))
    assert run == (on["nextRunAt"], "SUCCESS")
    assert planned == (api.get(path(made)).json["nextRunAt"], "SCHEDULED") == ("2027-03-01 17:00:06", "SCHEDULED")
    api.stage.run(2 * 3_600)
    assert [state for _, state in states(api, path(made))] == ["SCHEDULED", "SUCCESS", "SUCCESS"]


SOON = [
    {"time": "now"},
    {"time": "in 40 seconds"},
    {"cron": "* * * * * * 10,50"},
    {"repeatInterval": "10 seconds"},
    {"repeatInterval": "90 seconds"},
    {"repeatAt": "12:01:35"},
]


@pytest.mark.parametrize("when", SOON)
@pytest.mark.parametrize("switched_on_by", [None, "schedule", "all", "job"])
@pytest.mark.parametrize("tick_in_s", [1, 31, 59])
def test_a_schedule_due_before_the_next_tick_runs_on_its_second_and_continues(api, when, switched_on_by, tick_in_s):
    """Nothing runs twice or outside of the rhythm, and each run is counted."""
    on = switched_on_by is None
    made = api.create({**when, "active": on or switched_on_by == "job"}, active=on or switched_on_by != "job")
    if switched_on_by == "schedule":
        api("PUT", path(made), {"active": True})
    elif switched_on_by == "all":
        api("POST", f"/jobs/{made['_id']}/schedules/activationStatus", {"activationStatus": True})
    elif switched_on_by == "job":
        api("PUT", f"/jobs/{made['_id']}", {"active": True})
    began, first = api.stage.clock.now(), api.get(path(made)).json["nextRunAt"]
    api.stage.run(200, tick_in_s=tick_in_s)

    received = api.stage.endpoint.received
    assert received[0].at - received[0].call.planned_at < timedelta(seconds=1)
    assert f"{received[0].call.planned_at:%Y-%m-%d %H:%M:%S}" == first
    planned = [each.call.planned_at for each in received]
    if "repeatInterval" in when:
        step = timedelta(seconds=int(when["repeatInterval"].split()[0]))
        assert {after - before for before, after in pairwise(planned)} == {step}
        assert len(planned) >= (timedelta(seconds=190) - (planned[0] - began)) // step
    assert max(each.at - each.call.planned_at for each in received) < timedelta(seconds=1)
    assert len(set(planned)) == len(planned)


def test_an_interval_activated_before_its_planned_start_keeps_it(api):
    made = api.create({"repeatInterval": "2 hours", "active": False})
    api.stage.run(3_600)

    assert api("PUT", path(made), {"active": True}).json["nextRunAt"] == "2027-03-01 14:00:01"
    api.stage.run(60)

    assert api.stage.endpoint.received == []


@pytest.mark.parametrize("when", [{"time": "2027-03-01T12:30:00Z"}, {"repeatInterval": "20 minutes"}])
def test_a_job_activated_late_runs_at_once(api, when):
    made = api.create(when, active=False)
    api.stage.run(3_600)
    assert api.stage.endpoint.received == []

    api("PUT", f"/jobs/{made['_id']}", {"active": True})
    api.stage.run(30)

    assert len(api.stage.endpoint.received) == 1
    assert states(api, path(made))[-1] == ("2027-03-01 13:00:06", "SUCCESS")


def test_a_cron_activated_late_waits_for_its_next_instant(api):
    made = api.create({"cron": "* * * * * 0 0"}, active=False)
    api.stage.run(2_000)

    api("PUT", f"/jobs/{made['_id']}", {"active": True})
    api.stage.run(60)

    assert api.stage.endpoint.received == []


@pytest.mark.parametrize("when", [{"time": "2027-03-01T12:10:00Z"}, {"repeatInterval": "10 minutes"}])
def test_nothing_runs_after_its_end(api, when):
    made = api.create({**when, "endTime": "2027-03-01T12:30:00Z"}, active=False)
    api.stage.run(3_600)

    api("PUT", f"/jobs/{made['_id']}", {"active": True})
    api.stage.run(60)

    assert api.stage.endpoint.received == []
    assert api.get(path(made)).json["active"] is False


def test_a_finished_one_time_schedule_stays_finished_when_its_job_is_reactivated(api):
    made = api.create({"time": "now"})
    api.stage.run(60)

    for active in (False, True):
        api("PUT", f"/jobs/{made['_id']}", {"active": active})
        api.stage.run(60)

    assert len(api.stage.endpoint.received) == 1


def test_another_tenants_schedules_stay_separate(api):
    api.create({"repeatInterval": "2 hours", "description": "mine"})

    assert api.get("/search/schedules", caller=OTHER, query={"q": "mine"}).json["total"] == 0


# After the end


@pytest.mark.parametrize("of", ["schedule", "job"])
def test_an_ended_schedule_stays_inactive_with_a_new_end_until_it_is_activated(api, of):
    ended = {"endTime": api.now(300)}
    made = api.create({"repeatInterval": "1 minute", "data": {"n": 1}}, {"cron": "* * * * * */2 0"}, name="ends")
    job = f"/jobs/{made['_id']}"
    places = [f"{job}/schedules/{each['scheduleId']}" for each in made["schedules"]]
    for place in places if of == "schedule" else [job]:
        assert api("PUT", place, ended).status == 200
    api.stage.run(600)
    assert [api.get(place).json["active"] for place in places] == [False, False]

    for place in places if of == "schedule" else [job]:
        assert api("PUT", place, {"endTime": None}).status == 200
    calls = len(api.stage.endpoint.received)
    api.stage.run(600)

    seen = [api.get(place).json for place in places]
    assert [(each["active"], each["nextRunAt"], each["data"]) for each in seen] == [
        (False, None, '{"n":1}'),
        (False, None, None),
    ]
    assert len(api.stage.endpoint.received) == calls
    assert [api("PUT", place, {"active": True}).json["active"] for place in places] == [True, True]
    api.stage.run(300)
    assert len(api.stage.endpoint.received) > calls


def test_nothing_is_activated_after_its_end(api):
    made = api.create({"repeatInterval": "1 minute", "endTime": api.now(300)}, name="ends")
    place = f"/jobs/{made['_id']}/schedules/{made['schedules'][0]['scheduleId']}"
    api.stage.run(600)

    with api.native.unchanged():
        refused = [
            api("PUT", place, {"active": True}),
            api("POST", f"/jobs/{made['_id']}/schedules/activationStatus", {"activationStatus": True}),
        ]

    assert [reply.status for reply in refused] == [400, 400]
    assert all("endTime" in reply.json["message"] for reply in refused)
    assert api("PUT", place, {"active": True, "endTime": api.now(600)}).json["active"] is True


def test_only_schedules_that_can_still_run_are_activated(api):
    made = api.create({"repeatInterval": "1 minute", "endTime": api.now(300)}, {"repeatAt": "4.40pm"}, name="ends")
    status = f"/jobs/{made['_id']}/schedules/activationStatus"
    api.stage.run(600)
    assert api("POST", status, {"activationStatus": False}).status == 200

    assert api("POST", status, {"activationStatus": True}).status == 200

    shown = api.get(f"/jobs/{made['_id']}/schedules").json["results"]
    assert [each["active"] for each in shown] == [False, True]


def test_a_deactivation_stays_in_the_action_log_after_the_schedule_resumes(api):
    ending = {"repeatInterval": "10 minutes", "endTime": "2027-03-01T12:20:01Z"}
    made = api.create(ending, {"time": "in 5 minutes"})
    api.stage.run(3_600)

    def deactivations():
        logs = api.get("/actionLogs", query={"jobId": made["_id"]}).json["results"]
        return sorted((line["type"], line["time"]) for line in logs if line["type"].startswith("DEACTIVATION"))

    told = deactivations()
    assert [kind for kind, _ in told] == ["DEACTIVATION_ENDTIME_REACHED", "DEACTIVATION_ON_COMPLETION"]
    for description in ("another", "yet another"):
        assert api("PUT", path(made), {"description": description}).status == 200
    assert api("PUT", path(made), {"endTime": None, "active": True}).status == 200
    assert api("PUT", path(made, 1), {"time": "in 5 minutes", "active": True}).status == 200
    assert deactivations() == told


@pytest.mark.parametrize(("own_s", "jobs_s"), [(300, 900), (900, 300), (-300, 900), (900, -300)])
def test_an_interval_first_runs_at_the_later_of_the_two_starts(api, own_s, jobs_s):
    made = api.create({"repeatInterval": "1 hour", "startTime": api.now(own_s)}, startTime=api.now(jobs_s))

    assert made["schedules"][0]["nextRunAt"] == api.now(900)


def test_a_running_interval_keeps_the_grid_of_its_own_start(api):
    """Made before the later of two starts counted."""
    made = api.create({"repeatInterval": "1 hour", "startTime": api.now(300)}, startTime=api.now(900))
    schedule = made["schedules"][0]
    where = f"/jobs/{made['_id']}/schedules/{schedule['scheduleId']}"
    (stored,) = lookup.find(api.stage.world, TENANT, api.native.get("/v1/jobs").json["items"][0]["id"]).schedules
    old = parse({**stored.timing}, now=stored.created_at)
    packed = json.dumps({**json.loads(stored.packed), "every": json.loads(old.packed)["every"]}, separators=(",", ":"))
    due = api.stage.clock.now().replace(microsecond=0) + timedelta(seconds=3_900)
    sweep = jobs.sweep_text(replace(stored, packed=packed))
    api.stage.edit_schedule(stored, sweep={"S": sweep}, next_run_at={"N": str(int(due.timestamp()))})

    assert api.get(where).json["nextRunAt"] == f"{due:{FORM}}"
    for sent in ({"description": "x"}, {"endTime": "2029-01-01"}, {"data": {"a": 1}}):
        assert api("PUT", where, sent).json["nextRunAt"] == f"{due:{FORM}}", sent


@pytest.mark.parametrize("path", ["/jobs/", "/jobs/{job}/", "/jobs/{job}/schedules/"])
def test_a_trailing_slash_in_a_read_is_accepted(api, path):
    made = api.create({"cron": "* * * * * 0 0"})
    path = path.format(job=made["_id"])

    assert api.get(path).json == api.get(path[:-1]).json
    with api.native.unchanged():
        assert api("DELETE", path).status in {404, 405}
        assert api("PUT", path, {"active": False}).status in {404, 405}


def test_a_trailing_slash_in_a_create_is_accepted(api):
    assert api("POST", "/jobs/", {**JOB, "schedules": []}).status == 201


def test_an_omitted_member_of_ans_config_shows_its_default(api):
    made = api.create(ansConfig={"onSuccess": True})

    assert api.get(f"/jobs/{made['_id']}").json["ansConfig"] == {"onSuccess": True, "onError": False}
