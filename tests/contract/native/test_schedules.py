"""Schedules of a job: listed, created, read, replaced, patched, deleted, switched on and off."""

from __future__ import annotations

import pytest

from tests.contract.native import shapes
from tests.contract.native.api import JOB, example
from tests.support.endpoint import BUSY, OK


@pytest.fixture
def made(api):
    return api.create(example())


@pytest.fixture
def place(made):
    return f"/v1/jobs/{made['id']}/schedules"


def test_a_schedule_is_read_as_it_appears_in_its_job(api, made, place):
    for schedule in made["schedules"]:
        read = api.get(f"{place}/{schedule['id']}")

        assert (read.status, read.json, read.headers["etag"]) == (200, schedule, '"1"')
        shapes.check_schedule(read.json)


def test_a_schedule_is_added_with_its_location_and_the_jobs_new_revision(api, made, place):
    api.stage.clock.advance(1)
    reply = api("POST", place, {"name": "hourly", "every": "1 hour", "payload": [1.50]})

    assert reply.status == 201
    assert reply.headers["location"] == f"{place}/{reply.id}"
    assert reply.headers["etag"] == '"2"'
    assert '"payload":[1.5]' in reply.text
    shapes.check_schedule(reply.json)
    read = api.get(f"/v1/jobs/{made['id']}", query="include=schedules").json
    assert [each["name"] for each in read["schedules"]] == ["weekdays", "beat", "once", "hourly"]
    assert read["schedules"][3] == reply.json
    assert read["revision"] == 2


def test_a_schedule_without_a_name_is_named_by_its_id(api, place):
    reply = api("POST", place, {"every": "PT1H"})

    assert reply.json["name"] == reply.id


def test_an_added_schedule_runs(api, place):
    schedule = api("POST", place, {"every": "PT10S"}).json

    api.stage.run(35)

    assert api.get(f"{place}/{schedule['id']}").json["totals"]["succeeded"] == 3


@pytest.mark.parametrize("name", ["beat", "weekdays"])
def test_a_schedule_name_is_unique_in_its_job(api, place, name):
    with api.unchanged():
        reply = api("POST", place, {"name": name, "every": "PT1H"})

    assert (reply.status, reply.fields) == (422, ["name"])


def test_a_replaced_schedule_keeps_its_id_and_name(api, made, place):
    beat = made["schedules"][1]

    reply = api("PUT", f"{place}/{beat['id']}", {"cron": "0 4 * * *"})

    assert reply.revision == 2
    assert {**reply.json, "cron": "", "dstGap": ""}.keys() == made["schedules"][0].keys()
    assert (reply.json["id"], reply.json["name"], reply.json["cron"]) == (beat["id"], "beat", "0 4 * * *")
    assert reply.json["nextRuns"][0] == "2027-03-02T04:00:00Z"
    assert api.get(f"{place}/{beat['id']}").json == reply.json


def test_a_schedule_can_be_patched(api, made, place):
    weekdays = made["schedules"][0]

    reply = api("PATCH", f"{place}/{weekdays['id']}", {"timezone": None, "endTime": None, "payload": None, "count": 3})

    assert reply.json["timezone"] == "UTC"
    assert (reply.json["endTime"], reply.json["payload"], reply.json["count"]) == (None, None, 3)
    assert len(reply.json["nextRuns"]) == 3
    assert api.get(f"{place}/{weekdays['id']}").json == reply.json


def test_a_patch_changes_the_notation(api, made, place):
    weekdays = made["schedules"][0]

    both = api("PATCH", f"{place}/{weekdays['id']}", {"every": "PT1H"})
    reply = api("PATCH", f"{place}/{weekdays['id']}", {"every": "PT1H", "cron": None})

    assert (both.status, both.fields) == (422, ["cron"])
    assert (reply.status, reply.json["every"]) == (200, "PT1H")
    assert "cron" not in reply.json


def test_another_spelling_of_the_same_rule_is_stored(api, made, place):
    beat = f"{place}/{made['schedules'][1]['id']}"

    changed = api("PATCH", beat, {"every": "10 seconds"})

    assert changed.json["every"] == api.get(beat).json["every"] == "10 seconds"


def test_a_schedules_payload_can_be_changed_and_removed(api, made, place):
    weekdays = f"{place}/{made['schedules'][0]['id']}"

    assert api("PATCH", weekdays, {"payload": {"s": 1}}).json["payload"] == {"r": 2, "s": 1}
    assert api("PATCH", weekdays, {"payload": [0]}).json["payload"] == [0]
    assert api("PATCH", weekdays, {"payload": None}).json["payload"] is None
    assert api.get(weekdays).json["payload"] is None


def test_a_schedules_id_cannot_be_changed(api, made, place):
    one, other, _ = made["schedules"]

    with api.unchanged():
        put = api("PUT", f"{place}/{one['id']}", {**one, "id": other["id"]})
        patched = api("PATCH", f"{place}/{one['id']}", {"id": "01a400f6-36fa-71e9-9550-323b38da5e82"})
        created = api("POST", place, {"id": one["id"], "every": "PT1H"})

    assert [(each.status, each.fields) for each in (put, patched)] == [(422, ["id"])] * 2
    assert (created.status, created.code, created.fields) == (422, "UNKNOWN_MEMBER", ["id"])


def test_deleting_a_schedule_keeps_its_job(api, made, place):
    beat = made["schedules"][1]

    assert api("DELETE", f"{place}/{beat['id']}").status == 204

    assert api.get(f"{place}/{beat['id']}").status == 404
    assert api("DELETE", f"{place}/{beat['id']}").status == 404
    assert [each["name"] for each in api.get(place).json["items"]] == ["weekdays", "once"]
    assert api("POST", place, {"name": "beat", "every": "PT1H"}).status == 201


def test_a_schedule_can_be_deactivated_and_activated_again(api, made, place):
    beat = f"{place}/{made['schedules'][1]['id']}"

    off = api("POST", f"{beat}/deactivate")
    with api.unchanged():
        assert api("POST", f"{beat}/deactivate", {}).revision == 2
    on = api("POST", f"{beat}/activate")

    assert (off.json["active"], off.json["state"], off.json["stateReason"]) == (False, "INACTIVE", "BY_USER")
    assert (off.json["nextRunAt"], off.json["nextRuns"]) == (None, [])
    assert (on.json["active"], on.json["state"], on.json["stateReason"], on.revision) == (True, "ACTIVE", None, 3)


def test_a_switch_keeps_the_payload_and_the_policies(api, place):
    schedule = api("POST", place, {"every": "PT1H", "payload": {"a": 1.10}, "policies": {"onCreate": "run_now"}})

    api("POST", f"{place}/{schedule.id}/deactivate")
    api("POST", f"{place}/{schedule.id}/activate")
    read = api.get(f"{place}/{schedule.id}")

    assert '"payload":{"a":1.1}' in read.text
    assert read.json["policies"] == {"onCreate": "run_now"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "", {"every": "PT1H"}),
        ("PUT", "/{id}", {"every": "PT1H"}),
        ("PATCH", "/{id}", {"active": False}),
        ("DELETE", "/{id}", None),
        ("POST", "/{id}/activate", None),
        ("POST", "/{id}/deactivate", None),
    ],
)
def test_if_match_uses_the_jobs_revision(api, made, place, method, path, body):
    path = place + path.format(id=made["schedules"][1]["id"])

    with api.unchanged():
        refused = api(method, path, body, headers={"if-match": '"2"'})
    taken = api(method, path, body, headers={"if-match": '"1"'})

    assert (refused.status, refused.code) == (412, "REVISION_MISMATCH")
    assert taken.status in {200, 201, 204}


def test_a_change_reactivates_a_completed_schedule(api, place):
    schedule = api("POST", place, {"at": "2027-03-01T12:01:00Z"}).json
    api.stage.run(400)
    done = api.get(f"{place}/{schedule['id']}").json

    revived = api("PATCH", f"{place}/{schedule['id']}", {"at": "2027-03-01T13:00:00Z"}).json

    assert (done["state"], done["stateReason"], done["nextRuns"]) == ("COMPLETED", "ONE_TIME_DONE", [])
    assert (revived["state"], revived["stateReason"], revived["nextRuns"]) == ("ACTIVE", None, ["2027-03-01T13:00:00Z"])


def test_totals_and_the_last_run_are_exact_immediately(api):
    made = api.create(
        schedules=[{"name": "a", "every": "PT10S"}, {"name": "b", "every": "PT1H"}],
        action={**JOB["action"], "retry": {"type": "fixed", "maxRetries": 1, "delaySeconds": 1}},
    )
    api.stage.endpoint.script = [OK, BUSY, OK, BUSY, BUSY, OK]

    api.stage.run(45)
    listed = api.get(f"/v1/jobs/{made['id']}/schedules").json["items"]
    single = api.get(f"/v1/jobs/{made['id']}/schedules/{made['schedules'][0]['id']}").json
    job = api.get(f"/v1/jobs/{made['id']}", query="include=schedules").json

    totals = {"succeeded": 3, "failed": 1, "failedAttempts": 3, "skipped": 0, "missed": 0}
    assert {name: single["totals"][name] for name in totals} == totals
    assert single["totals"]["planned"] == single["totals"]["open"] + 4
    assert listed[0] == single == job["schedules"][0]
    assert listed[1]["totals"]["planned"] == 0
    assert job["totals"] == single["totals"]
    last = api.get("/v1/runs", query={"scheduleId": single["id"], "limit": 1}).json["items"][0]
    assert single["lastRun"] == {"id": last["id"], "state": last["state"]} == {"id": last["id"], "state": "SUCCESS"}
    assert listed[1]["lastRun"] is None


IN_A_FORMAT = {"date": "20 Oct 2098 4.30 pm", "format": "D MMM YYYY h.mm a"}


def test_a_formatted_date_is_returned_as_it_was_written(api, place):
    made = api("POST", place, {"time": IN_A_FORMAT})

    assert (made.status, made.json["time"], made.json["nextRunAt"]) == (201, IN_A_FORMAT, "2098-10-20T16:30:00Z")
    assert made.json["type"] == "one-time"
    shapes.check_schedule(made.json)
    with api.unchanged():
        assert api("PUT", f"{place}/{made.id}", made.json).json == made.json


def test_a_patch_can_change_only_the_date_or_the_whole_time(api, place):
    made = api("POST", place, {"time": IN_A_FORMAT})

    later = api("PATCH", f"{place}/{made.id}", {"time": {"date": "21 Oct 2098 4.30 pm"}})
    standard = api("PATCH", f"{place}/{made.id}", {"time": "2098-W01-1"})

    assert (later.json["time"]["format"], later.json["nextRunAt"]) == (IN_A_FORMAT["format"], "2098-10-21T16:30:00Z")
    assert (standard.json["time"], standard.json["nextRunAt"]) == ("2098-W01-1", "2097-12-30T00:00:00Z")


@pytest.mark.parametrize(
    ("timing", "field", "position", "code"),
    [
        ({"time": {**IN_A_FORMAT, "date": "20 Oct 2098"}}, "time.date", 11, "INVALID_FIELD"),
        ({"time": {**IN_A_FORMAT, "format": "D MMM YYYY dddd"}}, "time.format", 11, "INVALID_FIELD"),
        ({"time": "the day after"}, "time", 0, "INVALID_FIELD"),
        ({"time": "2015-01-01"}, "time", None, "INVALID_FIELD"),
        ({"time": [IN_A_FORMAT]}, "time", None, "INVALID_FIELD"),
        ({"repeatAt": "4"}, "repeatAt", 0, "INVALID_FIELD"),
        ({"sapCron": "* * * 10:12 */30 0"}, "sapCron", 18, "INVALID_FIELD"),
        ({"sapCron": "2015 * * fri 12 0 0"}, "sapCron", None, "NEVER_FIRES"),
    ],
)
def test_an_invalid_sap_text_is_refused_with_its_path_and_position(api, place, timing, field, position, code):
    with api.unchanged():
        refused = api("POST", place, timing)

    assert (refused.status, refused.json["code"]) == (422, code)
    (problem,) = refused.json["errors"]
    assert (problem["field"], problem.get("position")) == (field, position)


OVER = [
    ({"sapCron": "2020 * * * 0 0 0"}, "sapCron", "2020-12-31T00:00:00Z"),
    ({"eventBridge": "cron(0 0 1 1 ? 1999)"}, "eventBridge", "1999-01-01T00:00:00Z"),
    ({"rrule": "DTSTART:20200101T090000Z\nFREQ=DAILY;COUNT=3"}, "rrule", "2020-01-03T09:00:00Z"),
    ({"cron": "0 9 * * *", "endTime": "2021-01-01T00:00:00Z"}, "endTime", "2020-12-31T09:00:00Z"),
    (
        {"sapCron": "2020 * * * 0 0 0", "endTime": "2099-01-01T00:00:00Z", "jitterSeconds": 0},
        "sapCron",
        "2020-12-31T00:00:00Z",
    ),
]


@pytest.mark.parametrize(("timing", "field", "last"), OVER)
def test_a_refusal_of_a_finished_rule_names_its_member_and_last_occurrence(api, place, timing, field, last):
    with api.unchanged():
        alone = api("POST", place, timing)
        with_job = api("POST", "/v1/jobs", {**JOB, "name": "over", "schedules": [timing]})

    for refused, where in ((alone, field), (with_job, f"schedules[0].{field}")):
        assert (refused.status, refused.json["code"]) == (422, "NEVER_FIRES")
        (problem,) = refused.json["errors"]
        assert problem["field"] == where
        assert problem["reason"] == f"has no future occurrence; the last was {last}"


def test_a_recurrence_is_returned_as_written_and_merged_by_a_patch(api, place):
    written = {"frequency": "Month", "interval": 2, "schedule": {"monthDays": [1, -1], "hours": [6], "minutes": [0]}}

    made = api("POST", place, {"recurrence": written, "startTime": "2099-01-01T00:00:00Z"}).json
    hour = {"recurrence": {"schedule": {"hours": [7], "minutes": None}}}
    patched = api("PATCH", f"{place}/{made['id']}", hour).json

    shapes.check_schedule(made)
    assert (made["recurrence"], made["monthOverflow"]) == (written, "skip")
    assert made["summary"] == "at 06:00 on day 1 and the last day of the month, every 2 months from 2099-01-01"
    assert patched["recurrence"] == {**written, "schedule": {"monthDays": [1, -1], "hours": [7]}}
    assert patched["nextRuns"][:2] == ["2099-01-01T07:00:00Z", "2099-01-31T07:00:00Z"]


def test_a_preview_shows_how_a_recurrence_treats_missing_days(api, place):
    anchored = {"recurrence": {"frequency": "month"}, "startTime": "2099-01-31T00:00:00Z"}

    shown = [api("POST", place, {**anchored, **more}).json for more in ({}, {"monthOverflow": "skip"})]

    assert [each["monthOverflow"] for each in shown] == ["clamp", "skip"]
    assert [each["nextRuns"][1] for each in shown] == ["2099-02-28T00:00:00Z", "2099-03-31T00:00:00Z"]


def test_a_weekly_recurrence_must_respect_the_shortest_interval_of_its_collection(api):
    api("POST", "/v1/collections", {"name": "rare", "quota": {"minIntervalSeconds": 7 * 86_400}})
    weekly = {"frequency": "week", "schedule": {"weekDays": ["monday"]}}
    twice = {"frequency": "week", "schedule": {"weekDays": ["monday", "tuesday"]}}

    replies = [
        api("POST", "/v1/jobs", {**JOB, "collection": "rare", "schedules": [{"recurrence": each}]})
        for each in (weekly, twice)
    ]

    assert [reply.status for reply in replies] == [201, 409]
    assert replies[1].code == "QUOTA_EXCEEDED"
