"""Calendars over the API."""

from __future__ import annotations

import pytest

from tests.contract.native.api import JOB

HOLIDAYS = {"name": "holidays", "dates": ["12-25", "2027-03-03"], "weekly": [{"days": ["SAT", "SUN"]}]}
DAILY = {"cron": "0 9 * * *", "calendars": [{"name": "holidays"}]}
MEMBERS = {
    *("name", "description", "version", "usedBy", "replanning", "createdAt", "modifiedAt"),
    *("timezone", "dates", "ranges", "weekly"),
}
"""The virtual clock stands on Monday, 2027-03-01."""


@pytest.fixture
def holidays(api):
    assert api("POST", "/v1/calendars", HOLIDAYS).status == 201


def test_a_calendar_can_be_created_read_and_sent_back_unchanged(api):
    made = api("POST", "/v1/calendars", HOLIDAYS)
    read = api.get("/v1/calendars/holidays")

    assert (made.status, made.headers["location"], made.headers["etag"]) == (201, "/v1/calendars/holidays", '"1"')
    assert made.json.keys() == MEMBERS
    assert made.json == read.json
    assert {name: read.json[name] for name in HOLIDAYS} == HOLIDAYS
    with api.unchanged():
        assert api("PUT", "/v1/calendars/holidays", read.json).json == read.json


def test_calendars_are_listed_by_name_page_by_page(api):
    for name in ("b", "a", "c"):
        api("POST", "/v1/calendars", {"name": name})

    first = api.get("/v1/calendars", query={"limit": "2"}).json
    second = api.get("/v1/calendars", query={"limit": "2", "cursor": first["nextCursor"]}).json

    assert [each["name"] for each in first["items"] + second["items"]] == ["a", "b", "c"]
    assert second["nextCursor"] is None
    assert first["items"][0].keys() == MEMBERS - {"timezone", "dates", "ranges", "weekly"}


def test_a_change_creates_a_version_and_must_name_the_current_one(api, holidays):
    put = api("PUT", "/v1/calendars/holidays", {"dates": ["12-26"]}, headers={"if-match": '"1"'})
    stale = api("PUT", "/v1/calendars/holidays", {"dates": []}, headers={"if-match": '"1"'})
    versions = api.get("/v1/calendars/holidays/versions", query={"limit": "1"}).json
    rest = api.get("/v1/calendars/holidays/versions", query={"limit": "1", "cursor": versions["nextCursor"]}).json
    first = api.get("/v1/calendars/holidays/versions/1").json

    assert (put.status, put.json["version"], put.json["dates"], put.json["weekly"]) == (200, 2, ["12-26"], [])
    assert (stale.status, stale.code) == (412, "REVISION_MISMATCH")
    assert [each["version"] for each in versions["items"] + rest["items"]] == [2, 1]
    assert first["dates"] == HOLIDAYS["dates"]
    assert first["actor"].startswith("acme.")


def test_a_calendar_in_use_counts_its_jobs_and_cannot_be_deleted(api, holidays):
    job = api.create(JOB | {"schedules": [DAILY]})
    used = api.get("/v1/calendars/holidays").json["usedBy"]
    refused = api("DELETE", "/v1/calendars/holidays")
    api("DELETE", f"/v1/jobs/{job['id']}")
    deleted = api("DELETE", "/v1/calendars/holidays")

    assert used == 1
    assert (refused.status, refused.code) == (409, "STATE_CONFLICT")
    assert job["id"] in refused.json["detail"]
    assert deleted.status == 204
    assert api.get("/v1/calendars/holidays").status == 404


def test_another_tenants_calendar_is_unknown(api, holidays):
    with api.unchanged():
        assert api.get("/v1/calendars/holidays", caller="globex").status == 404
        assert api("PUT", "/v1/calendars/holidays", {}, caller="globex").status == 404
        assert api("DELETE", "/v1/calendars/holidays", caller="globex").status == 404
        assert api.get("/v1/calendars/holidays/versions/1", caller="globex").status == 404
        assert api.get("/v1/calendars", caller="globex").json["items"] == []
        named = api("POST", "/v1/jobs", JOB | {"schedules": [DAILY]}, caller="globex")
        preview = api("POST", "/v1/schedules:preview", DAILY, caller="globex")
    assert (named.status, named.fields) == (422, ["schedules[0].calendars[0].name"])
    assert (preview.status, preview.fields) == (422, ["calendars[0].name"])


def test_a_schedule_shows_its_calendars_with_their_defaults(api, holidays):
    job = api.create(JOB | {"schedules": [DAILY]})

    (schedule,) = job["schedules"]
    assert schedule["calendars"] == [{"name": "holidays", "mode": "exclude", "roll": "none"}]
    assert schedule["summary"] == "at 09:00, as its calendar allows"
    assert schedule["nextRuns"] == [f"2027-03-{day}T09:00:00Z" for day in ("02", "04", "05", "08", "09")]
    with api.unchanged():
        put = api("PUT", f"/v1/jobs/{job['id']}/schedules/{schedule['id']}", schedule)
    assert put.status == 200
    gone = api("PATCH", f"/v1/jobs/{job['id']}/schedules/{schedule['id']}", {"calendars": None})
    assert gone.json["nextRuns"][1] == "2027-03-03T09:00:00Z"
    assert api.get("/v1/calendars/holidays").json["usedBy"] == 0


def test_occurrences_left_out_by_a_calendar_are_listed_with_a_reason(api, holidays):
    job = api.create(JOB | {"schedules": [DAILY]})
    place = f"/v1/jobs/{job['id']}/occurrences"

    items = api.get(place, query={"until": "2027-03-08T23:00:00Z"}).json["items"]
    first = api.get(place, query={"limit": "2"}).json
    second = api.get(place, query={"limit": "2", "cursor": first["nextCursor"]}).json

    told = [(each["plannedAt"][8:10], each["state"], each["reason"], each["calendar"]) for each in items]
    assert told == [
        ("02", "SCHEDULED", None, None),
        ("03", "SKIPPED", "CALENDAR", "holidays"),
        ("04", "SCHEDULED", None, None),
        ("05", "SCHEDULED", None, None),
        ("06", "SKIPPED", "CALENDAR", "holidays"),
        ("07", "SKIPPED", "CALENDAR", "holidays"),
        ("08", "SCHEDULED", None, None),
    ]
    assert [each["runId"] is None for each in items] == [each["state"] == "SKIPPED" for each in items]
    assert first["items"] + second["items"] == items[:4]


def test_a_preview_shows_skipped_and_moved_instants(api, holidays):
    body = {"after": "2027-03-01T12:00:00Z", "limit": 3}
    left_out = api("POST", "/v1/schedules:preview", DAILY | body).json
    rolled = api("POST", "/v1/schedules:preview", DAILY | body | {
        "cron": "0 9 3,6 3 *", "calendars": [{"name": "holidays", "roll": "next"}]
    }).json  # fmt: skip

    assert left_out["leftOut"] == [{"plannedAt": "2027-03-03T09:00:00Z", "calendar": "holidays"}]
    assert [each["plannedAt"] for each in rolled["items"][:2]] == ["2027-03-04T09:00:00Z", "2027-03-08T09:00:00Z"]
    assert rolled["items"][0]["movedBy"] == {"rule": "calendar", "localTime": "2027-03-03T09:00:00", "effect": "moved"}
    assert rolled["leftOut"] == []


def test_an_explanation_names_the_calendar(api, holidays):
    api("POST", "/v1/calendars", {"name": "free", "dates": ["2027-03-04"]})
    schedule = DAILY | {"calendars": [{"name": "holidays"}, {"name": "free"}]}
    made = api("POST", "/v1/jobs", JOB | {"schedules": [schedule]}).json
    path = f"/v1/jobs/{made['id']}/schedules/{made['schedules'][0]['id']}/explain"

    for day, name in (("03", "holidays"), ("04", "free")):
        at = f"2027-03-{day}T09:00:00Z"
        stored = api.get(path, query={"at": at}).json
        preview = api("POST", "/v1/schedules:preview", schedule | {"explain": at}).json["explained"]
        told = {"code": "LEFT_OUT_BY_CALENDAR", "field": None}
        told["message"] = f"the times of its calendar {name} do not allow it"
        assert stored["reasons"] == preview["reasons"] == [told]


def test_an_instant_is_explained_by_its_calendars(api, holidays):
    def explained(roll, at):
        body = DAILY | {"cron": "0 9 3 * *", "calendars": [{"name": "holidays", "roll": roll}], "explain": at}
        found = api("POST", "/v1/schedules:preview", body).json["explained"]
        return found["occurs"], found["reasons"][0]["code"]

    assert explained("none", "2027-03-03T09:00:00Z") == (False, "LEFT_OUT_BY_CALENDAR")
    assert explained("next", "2027-03-03T09:00:00Z") == (False, "MOVED_BY_CALENDAR")
    assert explained("next", "2027-03-04T09:00:00Z") == (True, "COMES_FROM_CALENDAR")
    assert explained("none", "2027-03-04T09:00:00Z") == (False, "DOES_NOT_MATCH")
    assert explained("none", "2027-05-03T09:00:00Z") == (True, "MATCHES")


def test_a_provider_previews_with_a_calendar_of_the_tenant_it_names(api, holidays):
    named = api("POST", "/v1/schedules:preview", DAILY, caller="provider", headers={"sweephand-tenant": "acme"})
    unnamed = api("POST", "/v1/schedules:preview", DAILY, caller="provider")
    without = api("POST", "/v1/schedules:preview", {"cron": "0 9 * * *"}, caller="provider")

    assert (named.status, without.status) == (200, 200)
    assert 400 <= unnamed.status < 500


def test_an_icalendar_text_is_stored_and_shown_as_members(api):
    event = "BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20271225\r\nEND:VEVENT\r\n"
    body = {"name": "imported", "dates": ["01-01"], "iCalendar": f"BEGIN:VCALENDAR\r\n{event}END:VCALENDAR\r\n"}

    made = api("POST", "/v1/calendars", body)
    refused = api("POST", "/v1/calendars", body | {"name": "other", "iCalendar": "BEGIN:VCALENDAR\r\nx"})

    assert made.json["dates"] == ["01-01", "2027-12-25"]
    assert "iCalendar" not in made.json
    assert (refused.status, refused.fields) == (422, ["iCalendar"])
    assert "line 2" in refused.text


def test_an_icalendar_text_with_too_many_ranges_is_refused_by_name(api):
    event = "BEGIN:VEVENT\r\nDTSTART:20270101T090000Z\r\nDURATION:PT1H\r\nRRULE:FREQ=DAILY;COUNT=600\r\nEND:VEVENT\r\n"
    ranges = [{"from": f"{year}-01-01", "to": f"{year}-01-02"} for year in range(1970, 2199)] * 2
    body = {"name": "imported", "ranges": ranges, "iCalendar": f"BEGIN:VCALENDAR\r\n{event}END:VCALENDAR\r\n"}

    refused = api("POST", "/v1/calendars", body)

    assert (refused.status, refused.fields) == (422, ["iCalendar"])
    assert "makes 1,058 ranges together with the given ones; the maximum is 1,000" in refused.text


def test_an_imported_future_event_does_not_apply_from_today_on(api):
    event = "BEGIN:VEVENT\r\nDTSTART:21000104\r\nRRULE:FREQ=WEEKLY\r\nEND:VEVENT\r\n"

    refused = api("POST", "/v1/calendars", {"name": "x", "iCalendar": f"BEGIN:VCALENDAR\r\n{event}END:VCALENDAR\r\n"})

    assert (refused.status, refused.fields) == (422, ["iCalendar"])
    assert "line 4: needs COUNT or UNTIL" in refused.text


@pytest.mark.parametrize(
    ("calendars", "field"),
    [
        ("holidays", "calendars"),
        ([{"name": "nowhere"}], "calendars[0].name"),
        ([{"name": "holidays"}, {"name": "holidays"}], "calendars[1].name"),
        ([{"name": "holidays", "mode": "both"}], "calendars[0].mode"),
        ([{"name": "holidays", "until": 1}], "calendars[0].until"),
        ([{"mode": "exclude"}], "calendars[0].name"),
        ([{"name": f"c{n}"} for n in range(6)], "calendars"),
        ([7], "calendars[0]"),
    ],
)
def test_an_unknown_calendar_is_refused_by_its_path(api, holidays, calendars, field):
    with api.unchanged():
        job = api("POST", "/v1/jobs", JOB | {"schedules": [DAILY | {"calendars": calendars}]})
        preview = api("POST", "/v1/schedules:preview", DAILY | {"calendars": calendars})

    assert (job.status, job.fields) == (422, [f"schedules[0].{field}"])
    assert (preview.status, preview.fields) == (422, [field])


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        ({"cron": "* * * * *", "calendars": [{"name": "holidays", "roll": "next"}]}, "calendars[0].roll"),
        ({"every": "PT1H", "align": "actual_start", "calendars": [{"name": "holidays"}]}, "calendars"),
        (
            {
                "cron": "0 9 * * *",
                "calendars": [{"name": "holidays", "roll": "next"}, {"name": "b", "roll": "previous"}],
            },
            "calendars[1].roll",
        ),
        ({"cron": "0 9 * * 6", "calendars": [{"name": "holidays"}]}, "calendars"),
    ],
)
def test_calendar_rules_that_a_schedule_cannot_follow_are_refused(api, holidays, schedule, field):
    api("POST", "/v1/calendars", {"name": "b"})

    with api.unchanged():
        refused = api("POST", "/v1/schedules:preview", schedule)

    assert (refused.status, refused.fields) == (422, [field])


def test_a_change_shows_replanning_until_all_schedules_follow(api, holidays):
    job = api.create(JOB | {"schedules": [DAILY]})

    changed = api("PUT", "/v1/calendars/holidays", {"dates": ["2027-03-02"]}).json["replanning"]
    api.stage.run(120)

    there = api.get("/v1/calendars/holidays").json
    (schedule,) = api.get(f"/v1/jobs/{job['id']}", query={"include": "schedules"}).json["schedules"]
    (last, *_) = api.get(f"/v1/jobs/{job['id']}/changes").json["items"]
    assert (changed, there["replanning"]) == (True, False)
    assert schedule["nextRuns"][:2] == ["2027-03-03T09:00:00Z", "2027-03-04T09:00:00Z"]
    assert (last["operation"], last["actor"], last["changes"]) == ("follow_calendar", None, [])


def test_answers_omit_runs_removed_by_a_calendar_while_its_schedules_follow(api, holidays):
    schedule = {"cron": "* * * * *", "calendars": [{"name": "holidays"}]}
    job = api.create(JOB | {"schedules": [schedule, {"every": "PT1M", "align": "epoch"}]})
    (made, plain) = api.get(f"/v1/jobs/{job['id']}/schedules").json["items"]
    begin, end = made["nextRuns"][1], made["nextRuns"][3]
    span = {"from": begin, "until": end, "scheduleId": made["id"]}

    api("PUT", "/v1/calendars/holidays", {"ranges": [{"from": begin, "to": end}]})
    one = api.get(f"/v1/jobs/{job['id']}/schedules/{made['id']}").json
    whole = api.get(f"/v1/jobs/{job['id']}", query={"include": "schedules"}).json
    (listed,) = api.get("/v1/jobs", query={"include": "schedules"}).json["items"]
    occurrences = api.get(f"/v1/jobs/{job['id']}/occurrences", query=span).json["items"]
    asked = api.get(f"/v1/jobs/{job['id']}/schedules/{made['id']}/explain", query={"at": begin}).json
    ahead = api.get(f"/v1/jobs/{job['id']}/schedules/{made['id']}/explain", query={"at": made["nextRuns"][0]}).json
    api.stage.run(300)

    named = [made["nextRuns"][0], end, made["nextRuns"][4]]
    for each in (one, whole["schedules"][0], listed["schedules"][0]):
        assert each["nextRuns"][:3] == named
    assert whole["schedules"][1]["nextRuns"] == plain["nextRuns"]
    assert [each["plannedAt"] for each in occurrences] == [end]
    assert (asked["occurs"], [each["code"] for each in asked["reasons"]]) == (False, ["FOLLOWS_CALENDAR"])
    assert (asked["next"], ahead["occurs"], ahead["next"]) == (end, True, end)
    runs = api.get("/v1/runs", query={"scheduleId": made["id"]}).json["items"]
    assert {named[0], end} <= {run["plannedAt"].replace(".000Z", "Z") for run in runs}
