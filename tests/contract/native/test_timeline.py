"""The timeline: lanes of many jobs by their rules and by what did not succeed, and then only what is new."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

import pytest

from bench.meter import billed
from sweephand.server.facades.native.overview import timeline
from tests.contract.native.api import JOB, OTHER, Api
from tests.support.endpoint import OK, WRONG

EVERY_MINUTE = {"name": "minutes", "cron": "* * * * *"}


def job(*schedules: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"action": JOB["action"], "schedules": list(schedules), **members}


def lane(api: Api, query: str = "") -> dict[str, Any]:
    """Returns the only lane."""
    (found,) = api.get("/v1/timeline", query=query).json["items"]
    return found


def instants(shown: dict[str, Any], member: str) -> list[str]:
    """Returns the seconds of a lane as times of the day."""
    begin = datetime.fromisoformat(shown["from"])
    seconds = shown["items"][0][member]["seconds"]
    return [(begin + timedelta(seconds=second)).strftime("%H:%M:%S") for second in seconds]


def test_a_lane_shows_failures_as_marks_and_other_instants_by_rule(api: Api) -> None:
    made = api.create(job(EVERY_MINUTE, name="nightly"))
    api.stage.endpoint.script = [OK, WRONG, OK]
    api.stage.run(190)

    shown = api.get("/v1/timeline").json

    (found,) = shown["items"]
    (mark,) = found["marks"]
    schedule = made["schedules"][0]["id"]
    assert (found["jobId"], found["name"], found["state"], found["sentence"]) == (made["id"], "nightly", "ACTIVE", None)
    assert (mark["plannedAt"], mark["state"], mark["scheduleId"]) == (
        "2027-03-01T12:02:00.000Z",
        "REQUEST_ERROR",
        schedule,
    )
    assert (mark["reason"], mark["count"], mark["until"]) == ("HTTP_STATUS", 1, None)
    assert mark["sentence"] == "404.", "the run's own message"
    assert instants(shown, "noFailure") == ["12:01:00", "12:03:00"]
    assert instants(shown, "planned")[:2] == ["12:04:00", "12:05:00"]
    assert len(found["planned"]["seconds"]) == 48
    assert found["planned"]["leftOut"] == 999, "there are more, up to the end of the window"
    assert found["noFailure"]["leftOut"] == 0
    assert found["nextRunAt"] == "2027-03-01T12:04:00Z"
    assert (found["dueSince"], found["schedulesLeftOut"], found["marksLeftOut"]) == (None, 0, 0)
    assert found["schedules"][0]["summary"] == made["schedules"][0]["summary"]
    assert shown["marksFrom"] == "2027-02-28T12:03:10.000Z", "as far back as the window"


def test_the_past_of_a_lane_is_bounded_and_the_rest_is_counted(api: Api) -> None:
    api.create(job({"every": "PT10S"}))
    api.stage.run(600)

    found = lane(api, "until=2027-03-01T12:10:30Z")

    assert len(found["noFailure"]["seconds"]) == 48
    assert found["noFailure"]["leftOut"] == 11
    assert [len(found["planned"]["seconds"]), found["planned"]["leftOut"]] == [3, 0]


def test_the_remaining_runs_of_a_schedule_with_a_count_are_exact(api: Api) -> None:
    api.create(job({"every": "PT10S", "count": 60}))

    found = lane(api)

    assert (len(found["planned"]["seconds"]), found["planned"]["leftOut"]) == (48, 12)


def test_occurrences_missed_in_an_outage_are_one_mark_with_a_count(api: Api) -> None:
    api.create(job(EVERY_MINUTE | {"policies": {"misfire": {"type": "skip"}}}))
    api.stage.run(70)
    api.stage.clock.advance(1_800)
    api.stage.run(60)

    shown = api.get("/v1/timeline").json

    (found,) = shown["items"]
    band, *sent = found["marks"]
    assert {(each["state"], each["reason"]) for each in found["marks"]} == {("MISSED", "SERVICE_OUTAGE")}
    assert (band["plannedAt"][11:19], band["until"][11:19], band["count"]) == ("12:04:00", "12:29:00", 26)
    assert band["sentence"].startswith("26 occurrences were due during an outage")
    assert [each["plannedAt"][11:19] for each in sent] == ["12:03:00", "12:02:00"], "sent before the outage"
    assert instants(shown, "noFailure") == ["12:01:00", "12:30:00", "12:31:00", "12:32:00"]


def test_a_lane_says_in_words_why_its_job_does_not_run(api: Api) -> None:
    def changed(name: str, path: str, body: Any = None) -> None:
        made = api.create(job(EVERY_MINUTE, name=name))
        assert api("POST", f"/v1/jobs/{made['id']}/{path}", body).status == 200

    changed("paused", "pause", {"note": "stocktaking", "until": "2027-03-02T09:00:00Z"})
    changed("off", "deactivate")
    api.create(job(name="bare"))
    api.create(job({"at": "2027-03-01T12:00:30Z"}, name="once"))
    api.stage.run(60)

    found = {each["name"]: each for each in api.get("/v1/timeline").json["items"]}

    assert found["paused"]["sentence"] == ("Paused since 2027-03-01T12:00:00Z until 2027-03-02T09:00:00Z: stocktaking")
    assert found["off"]["sentence"] == "Switched off: somebody switched it off."
    assert found["bare"]["sentence"] == "It has no schedule, and runs when somebody starts it."
    assert found["once"]["sentence"] == "Over: its only time is over."
    assert [len(found["once"]["noFailure"]["seconds"]), found["once"]["nextRunAt"]] == [1, None]
    assert [name for name, each in found.items() if each["planned"]["seconds"]] == ["paused"]
    assert found["paused"]["nextRunAt"] == "2027-03-02T09:00:00Z"


def test_jobs_of_a_disabled_collection_are_shown_as_held(api: Api) -> None:
    api("POST", "/v1/collections", {"name": "spare"})
    api.create(job(EVERY_MINUTE, collection="spare"))
    api("POST", "/v1/collections/spare/disable")

    found = lane(api)

    assert found["sentence"] == (
        "Held since 2027-03-01T12:00:00Z: the collection spare is disabled, what falls due is skipped."
    )
    assert found["planned"]["seconds"] == []


def test_due_occurrences_that_are_not_yet_sent_are_shown(api: Api) -> None:
    api.create(job(EVERY_MINUTE))
    api.stage.clock.advance(600)

    assert lane(api)["dueSince"] is not None


def test_lanes_can_be_paged_by_cursors_and_filtered(api: Api) -> None:
    ids = [api.create(job(name=f"n{n}", tags=["even"] if n % 2 == 0 else []))["id"] for n in range(5)]

    first = api.get("/v1/timeline", query="limit=3").json
    second = api.get("/v1/timeline", query={"limit": 3, "cursor": first["nextCursor"]}).json
    of_tag = [each["jobId"] for each in api.get("/v1/timeline", query="tag=even").json["items"]]
    named = [each["jobId"] for each in api.get("/v1/timeline", query=f"jobIds={ids[3]},{ids[1]}").json["items"]]

    assert [each["jobId"] for each in first["items"] + second["items"]] == ids
    assert second["nextCursor"] is None
    assert of_tag == ids[::2]
    assert named == [ids[3], ids[1]]


def test_a_page_shows_the_marks_of_its_own_jobs(api: Api) -> None:
    for name in ("a", "b"):
        api.create(job({"at": "2027-03-01T12:00:30Z"}, name=name))
    api.stage.endpoint.script = [WRONG, WRONG]
    api.stage.run(40)

    first = api.get("/v1/timeline", query="limit=1").json
    second = api.get("/v1/timeline", query={"limit": 1, "cursor": first["nextCursor"]}).json

    assert [len(page["items"][0]["marks"]) for page in (first, second)] == [1, 1]
    assert first["items"][0]["marks"][0]["jobId"] == first["items"][0]["jobId"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=2027-03-02T00:00:00Z&until=2027-03-01T00:00:00Z", "until"),
        ("from=2027-03-01T00:00:00Z&until=2027-03-16T00:00:00Z", "until"),
        ("limit=501", "limit"),
        ("jobIds=x", "jobIds"),
        ("jobIds=" + ",".join(["00000000-0000-7000-8000-000000000000"] * 51), "jobIds"),
        ("jobIds=00000000-0000-7000-8000-000000000000&tag=x", "tag"),
    ],
)
def test_an_invalid_timeline_is_refused(shared: Api, query: str, field: str) -> None:
    refused = shared.get("/v1/timeline", query=query)

    assert (refused.status, refused.fields) == (400, [field])


def test_a_window_that_excludes_now_shows_only_past_or_only_future(api: Api) -> None:
    api.create(job(EVERY_MINUTE))
    api.stage.run(300)

    past = lane(api, "from=2027-03-01T12:00:00Z&until=2027-03-01T12:02:00Z")
    ahead = lane(api, "from=2027-03-01T13:00:00Z&until=2027-03-01T13:02:00Z")

    assert (past["noFailure"]["seconds"], past["planned"]["seconds"]) == ([60, 120], [])
    assert (ahead["noFailure"]["seconds"], ahead["planned"]["seconds"]) == ([], [60, 120])


def test_no_occurrences_are_derived_from_todays_rule_before_it_was_set(api: Api) -> None:
    made = api.create(job(EVERY_MINUTE))
    api.stage.run(180)
    schedule = made["schedules"][0]["id"]
    assert api("PATCH", f"/v1/jobs/{made['id']}/schedules/{schedule}", {"cron": "*/2 * * * *"}).status == 200
    api.stage.run(300)

    found = lane(api)

    assert found["noFailure"]["since"] == "2027-03-01T12:03:06Z", "up to then the old plan holds"
    assert len(found["noFailure"]["seconds"]) == 3


# Changes


def changes(api: Api, since: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get("/v1/timeline:changes", query={"since": since}).json
    return found


def test_changes_show_new_marks_and_the_jobs_that_differ(api: Api) -> None:
    made = api.create(job(EVERY_MINUTE))
    api.stage.run(30)
    first = changes(api, api.get("/v1/timeline").json["since"])
    api.stage.endpoint.script = [WRONG]
    api.stage.run(60)
    second = changes(api, first["since"])
    api("PATCH", f"/v1/jobs/{made['id']}", {"name": "other"})
    third = changes(api, second["since"])

    assert (first["marks"], first["jobs"]) == ([], [{"jobId": made["id"], "revision": 1, "state": "ACTIVE"}])
    assert ([each["reason"] for each in second["marks"]], second["jobs"]) == (["HTTP_STATUS"], None)
    assert third["jobs"] == [{"jobId": made["id"], "revision": 2, "state": "ACTIVE"}]
    assert changes(api, third["since"])["jobs"] is None


def test_the_end_of_a_job_is_a_change_without_a_new_revision(api: Api) -> None:
    api.create(job({"at": "2027-03-01T12:01:00Z"}))
    since = changes(api, api.get("/v1/timeline").json["since"])["since"]
    api.stage.run(120)

    assert [each["state"] for each in changes(api, since)["jobs"]] == ["COMPLETED"]


def test_a_run_that_waited_and_succeeded_loses_its_mark(api: Api) -> None:
    retry = {"type": "fixed", "maxRetries": 1, "delaySeconds": 1_200, "retryOn": "any"}
    api.create(job({"at": "2027-03-01T12:01:00Z"}, action=JOB["action"] | {"retry": retry}))
    api.stage.endpoint.script = [WRONG, OK]
    api.stage.run(90)
    waiting = changes(api, api.get("/v1/timeline").json["since"])
    api.stage.run(1_300)
    over = changes(api, waiting["since"])

    (mark,) = waiting["marks"]
    assert mark["state"] == "RETRY_WAIT"
    assert mark["sentence"] == "404. The next attempt is due at 2027-03-01T12:21:01Z."
    assert over["marks"] == []
    assert over["marksFrom"] < mark["plannedAt"], "so the caller drops it"


def test_a_run_that_needs_attention_late_is_found_within_15_minutes(api: Api) -> None:
    api.create(job(EVERY_MINUTE | {"policies": {"misfire": {"type": "skip"}}}))
    api.stage.run(70)
    since = changes(api, api.get("/v1/timeline").json["since"])["since"]
    api.stage.clock.advance(3 * 3600)
    since = changes(api, since)["since"]
    api.stage.run(60)
    soon = changes(api, since)
    api.stage.run(900)
    later = changes(api, soon["since"])

    assert soon["marks"] == [], "the outage began three hours ago"
    assert {each["reason"] for each in later["marks"]} == {"SERVICE_OUTAGE"}


def test_too_many_marks_are_cut_and_the_cut_is_reported(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_NEW", 2)
    api.create(job({"every": "PT10S"}))
    since = changes(api, api.get("/v1/timeline").json["since"])["since"]
    api.stage.endpoint.script = [WRONG] * 9
    api.stage.run(60)

    found = changes(api, since)

    assert len(found["marks"]) == 2
    assert found["marksFrom"] == found["marks"][-1]["plannedAt"] > since


def test_as_many_marks_as_fit_are_not_called_cut(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_MARKS", 1)
    api.create(job({"at": "2027-03-01T12:00:10Z"}))
    api.stage.endpoint.script = [WRONG]
    api.stage.run(60)

    found = api.get("/v1/timeline").json

    assert [len(lane["marks"]) for lane in found["items"]] == [1]
    assert found["marksFrom"] < "2027-03-01T00:00:00Z", "as far back as the window"


@pytest.mark.parametrize("query", ["", "since=x", "since=1-2-0000000000000000"])
def test_changes_without_a_starting_point_are_refused(shared: Api, query: str) -> None:
    refused = shared.get("/v1/timeline:changes", query=query)

    assert (refused.status, refused.fields) == (400, ["since"])


def test_the_jobs_of_a_large_page_are_not_compared(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_KNOWN", 1)
    since = api.get("/v1/timeline").json["since"]
    api.create(job(name="a"))
    first = changes(api, since)["jobs"]
    api.create(job(name="b"))

    assert first is not None
    assert changes(api, since)["jobs"] is None


def test_nothing_of_another_tenant_is_shown(api: Api) -> None:
    api.create(job(EVERY_MINUTE))
    api.stage.endpoint.script = [WRONG]
    api.stage.run(70)
    theirs = api.get("/v1/timeline").json

    shown = api.get("/v1/timeline", caller=OTHER).json
    new = api.get("/v1/timeline:changes", query={"since": theirs["since"]}, caller=OTHER).json
    named = api.get("/v1/timeline", query=f"jobIds={theirs['items'][0]['jobId']}", caller=OTHER).json

    assert theirs["items"][0]["marks"]
    assert (shown["items"], named["items"], new["marks"], new["jobs"]) == ([], [], [], [])


def test_the_stated_price_equals_dynamodbs_bill(api: Api) -> None:
    for n in range(20):
        api.create(job(EVERY_MINUTE, name=str(n)))

    with billed():
        one, some = (api.get("/v1/timeline", query=f"limit={limit}").json for limit in (1, 20))
        unpriced = api.get("/v1/jobs")

    assert some["readUnits"] - one["readUnits"] == 19, "half a unit for each job and each schedule"
    assert some["askAgainAfterSeconds"] == math.ceil(some["readUnits"] * 60 / 40)
    assert unpriced.status == 200
