"""An interval whose start has passed runs at once when it is activated.

The clock says noon and a quarter of a second on 1 March 2027.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.sap.api import FORM, JOB

AT_ONCE = "2027-03-01 12:00:01"
HOUR = {"repeatInterval": "1 hour"}
LATE = 3_000


def path(made, n=0):
    return f"/jobs/{made['_id']}/schedules/{made['schedules'][n]['scheduleId']}"


def precise(api, seconds):
    """Returns an instant as `new Date()` is sent: with milliseconds."""
    return f"{api.stage.clock.now() + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


def planned(api):
    return [f"{each.call.planned_at:{FORM}}" for each in api.stage.endpoint.received]


@pytest.mark.parametrize("interval", ["20 minutes", "1 hour", "1 month", "1 year"])
@pytest.mark.parametrize("late_s", [0.2, 1.4, 50, 70, 3_000, 100_000_000])
def test_an_interval_activated_after_its_start_runs_at_once_and_then_at_its_interval(api, interval, late_s):
    made = api.create({"repeatInterval": interval, "startTime": precise(api, -late_s)})

    assert made["schedules"][0]["nextRunAt"] == AT_ONCE
    api.stage.run(90)

    assert planned(api) == [AT_ONCE]
    after = api.get(path(made)).json["nextRunAt"]
    days = {"20 minutes": "2027-03-01 12:20:01", "1 hour": "2027-03-01 13:00:01"}
    assert after == {**days, "1 month": "2027-03-31 12:00:01", "1 year": "2028-02-29 12:00:01"}[interval]


@pytest.mark.parametrize("ahead_s", [-1.4, -0.6, -0.25, -0.1, 0, 0.1, 0.6])
def test_a_start_of_now_runs_at_once_despite_small_clock_differences(api, ahead_s):
    """The request takes a moment after its `new Date()`, or the caller's clock is a little ahead."""
    made = api.create({**HOUR, "startTime": precise(api, ahead_s)})
    api.stage.run(120)

    assert made["schedules"][0]["nextRunAt"] == AT_ONCE
    assert planned(api) == [AT_ONCE]


@pytest.mark.parametrize("tick_in_s", [1, 31, 59])
def test_a_late_started_interval_counts_from_its_first_run(api, tick_in_s):
    api.create({"repeatInterval": "50 seconds", "startTime": api.now(-1_000)})
    api.stage.run(120, tick_in_s=tick_in_s)

    assert planned(api) == [AT_ONCE, "2027-03-01 12:00:51", "2027-03-01 12:01:41"]


def added(api, late):
    made = api.create()
    reply = api("POST", f"/jobs/{made['_id']}/schedules", {**HOUR, **late, "active": True})
    return reply.status, reply.json["nextRunAt"]


def added_to_a_job_that_began(api, late):
    made = api.create(**late)
    reply = api("POST", f"/jobs/{made['_id']}/schedules", {**HOUR, "active": True})
    return reply.status, reply.json["nextRunAt"]


def of_a_job_that_began(api, late):
    return 201, api.create(HOUR, **late)["schedules"][0]["nextRunAt"]


def upserted(api, late):
    reply = api("PUT", f"/jobs/{JOB['name']}", {**JOB, "schedules": [{**HOUR, **late, "active": True}]})
    return reply.status, reply.json["schedules"][0]["nextRunAt"]


def upserted_again(api, late):
    upserted(api, {"startTime": api.now(9_000)})
    return upserted(api, late)


def added_within_its_job(api, late):
    made = api.create()
    reply = api("PUT", f"/jobs/{made['_id']}", {"schedules": [{**HOUR, **late, "active": True}]})
    return reply.status, api.get(f"/jobs/{made['_id']}/schedules").json["results"][0]["nextRunAt"]


@pytest.mark.parametrize(
    "way", [added, added_to_a_job_that_began, of_a_job_that_began, upserted, upserted_again, added_within_its_job]
)
def test_every_way_to_create_a_late_interval_runs_it_at_once(api, way):
    status, next_run = way(api, {"startTime": api.now(-LATE)})
    api.stage.run(60)

    assert (status, next_run) in {(200, AT_ONCE), (201, AT_ONCE)}
    assert planned(api) == [AT_ONCE]


@pytest.mark.parametrize("of", ["schedule", "job"])
@pytest.mark.parametrize("before_s", [9_000, -7_000])
def test_a_start_moved_to_now_or_earlier_runs_at_once(api, of, before_s):
    start = {"startTime": api.now(before_s)}
    made = api.create({**HOUR, **(start if of == "schedule" else {})}, **(start if of == "job" else {}))
    api.stage.run(300)
    ran = len(planned(api))
    where = path(made) if of == "schedule" else f"/jobs/{made['_id']}"

    reply = api("PUT", where, {"startTime": precise(api, -0.3)})
    api.stage.run(60)

    assert reply.status == 200, reply.text
    assert planned(api)[ran:] == ["2027-03-01 12:05:06"]
    assert api.get(path(made)).json["nextRunAt"] == "2027-03-01 13:05:06"
    assert api("PUT", where, {"description": "x"}).status == 200
    api.stage.run(60)
    assert len(planned(api)) == ran + 1


@pytest.mark.parametrize(
    ("schedule", "job"),
    [
        ({"endTime": 0}, {}),
        ({"endTime": -LATE}, {}),
        ({}, {"endTime": 0}),
        ({"startTime": 100}, {}),
        ({}, {"startTime": 100}),
        ({"active": False}, {}),
        ({}, {"active": False}),
    ],
)
def test_a_late_interval_does_not_run_at_once_while_inactive_or_outside_its_window(api, schedule, job):
    def said(members):
        return {name: api.now(value) if value is not False else value for name, value in members.items()}

    api.create({**HOUR, "startTime": api.now(-LATE), **said(schedule)}, **{"startTime": api.now(-LATE), **said(job)})
    api.stage.run(60)

    assert planned(api) == []


@pytest.mark.parametrize("when", [{"cron": "* * * * * 30 0"}, {"repeatAt": "12.30"}])
def test_calendar_schedules_wait_for_their_next_date(api, when):
    made = api.create({**when, "startTime": api.now(-LATE)})
    api.stage.run(60)

    assert made["schedules"][0]["nextRunAt"] == "2027-03-01 12:30:00"
    assert planned(api) == []


def test_an_interval_without_a_start_first_runs_after_one_interval(api):
    made = api.create(HOUR)
    api.stage.run(60)

    assert made["schedules"][0]["nextRunAt"] == "2027-03-01 13:00:01"
    assert planned(api) == []


def test_an_ended_interval_that_missed_a_run_runs_at_once_when_activated(api):
    made = api.create({"repeatInterval": "10 minutes", "endTime": api.now(700)})
    api.stage.run(3_600)
    ran = len(planned(api))

    on = api("PUT", path(made), {"endTime": None, "active": True}).json
    api.stage.run(60)

    assert planned(api)[ran:] == [on["nextRunAt"]]
    assert on["nextRunAt"] == "2027-03-01 13:00:06"
