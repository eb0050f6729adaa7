"""Explanations agree with the ledger: after pauses, switches, outages and changes, and before the end of a pause."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.contract.native.api import Api
from tests.contract.native.test_explain import codes, explain

JOB = {"action": {"type": "http", "url": "https://example.org/run"}}


def made(api: Api, **timing: Any) -> tuple[str, str]:
    """Returns the place of a job, and that of its schedule."""
    job = api.create(schedules=[timing])
    return f"/v1/jobs/{job['id']}", f"/v1/jobs/{job['id']}/schedules/{job['schedules'][0]['id']}"


def do(api: Api, place: str, body: Any = None, method: str = "POST") -> Any:
    reply = api(method, place, body)
    assert reply.status < 300, reply.text
    return reply.json


def rows(api: Api, place: str, **query: str) -> list[Any]:
    found: list[Any] = api.get("/v1/runs", query={"jobId": place.rpartition("/")[2], **query}).json["items"]
    return found


def instants(api: Api, first: str, last: str, step_s: int = 1) -> list[str]:
    at, end = datetime.fromisoformat(first), datetime.fromisoformat(last)
    return [
        f"{at + timedelta(seconds=n):%Y-%m-%dT%H:%M:%SZ}" for n in range(0, int((end - at).total_seconds()) + 1, step_s)
    ]


SWITCHES: dict[str, tuple[str, Any, str, Any, str, str]] = {
    "pause": ("{job}/pause", {"note": "holiday"}, "{job}/resume", None, "PAUSED", "holiday"),
    "job": ("{job}/deactivate", None, "{job}/activate", None, "DISABLED", ""),
    "schedule": ("{schedule}/deactivate", None, "{schedule}/activate", None, "DISABLED", ""),
}


@pytest.mark.parametrize("which", SWITCHES)
def test_every_instant_of_a_time_switched_off_is_explained_by_its_row(api: Api, which: str) -> None:
    job, schedule = made(api, every="PT5S")
    off, body, on, body_on, reason, note = SWITCHES[which]
    api.stage.run(30)
    do(api, off.format(job=job, schedule=schedule), body)
    switched_at = api.stage.clock.now()
    api.stage.run(60)
    do(api, on.format(job=job, schedule=schedule), body_on)
    api.stage.run(60)

    (row,) = (each for each in rows(api, job) if each["range"] is not None)
    covered = instants(api, row["plannedAt"], row["range"]["until"], 5)

    assert len(covered) == row["range"]["count"] > 5
    for at in covered:
        body = explain(api, schedule, at)
        assert (body["occurs"], body["state"], body["reason"]) == (False, "SKIPPED", reason)
        assert body["runId"] == row["id"]
        assert body["range"] == {"from": row["plannedAt"], **row["range"]}
        assert codes(body)[0] == "IN_LEDGER"
        assert body["switchedOff"]["by"] is not None
        assert body["switchedOff"]["since"][:19] == f"{switched_at:%Y-%m-%dT%H:%M:%S}"
        assert body["switchedOff"]["note"] == (note or None)
        assert body["switchedOff"]["by"] in body["reasons"][0]["message"]
        assert note in body["reasons"][0]["message"]
    between = explain(api, schedule, instants(api, covered[2], covered[3])[2])
    assert (between["occurs"], between["state"], between["runId"]) == (False, None, None)


def test_each_instant_of_a_pause_is_listed_from_within_it(api: Api) -> None:
    job, _ = made(api, every="PT20S")
    api.stage.run(30)
    do(api, f"{job}/pause")
    api.stage.run(90)
    do(api, f"{job}/resume")
    api.stage.run(30)
    (row,) = (each for each in rows(api, job) if each["range"] is not None)
    covered = instants(api, row["plannedAt"], row["range"]["until"], 20)
    window = {"from": covered[1], "until": covered[-1]}

    listed = api.get(f"{job}/occurrences", query=window).json["items"]
    exported = api.get("/v1/runs:export", query={"jobId": job.rpartition("/")[2], "format": "jsonl", **window}).text

    assert [each["plannedAt"] for each in listed] == covered[1:]
    assert {(each["state"], each["reason"], each["runId"]) for each in listed} == {("SKIPPED", "PAUSED", row["id"])}
    assert rows(api, job, **window) == [row]
    assert row["id"] in exported
    everything = api.get("/v1/runs", query=window).json["items"]
    assert row["id"] in {each["id"] for each in everything}


def test_a_row_is_found_after_a_month_of_pause_with_many_runs_by_hand(api: Api) -> None:
    job, schedule = made(api, cron="0 9 * * *")
    owner = schedule.rpartition("/")[2]
    api.stage.run(60)
    do(api, f"{job}/pause", {"note": "the move"})
    for _ in range(30):
        api.stage.pass_time(86_400)
        for _ in range(5):
            do(api, f"{job}/run", {"scheduleId": owner})
        api.stage.run(5)
    do(api, f"{job}/resume")
    api.stage.run(5)

    body = explain(api, schedule, "2027-03-23T09:00:00Z")
    listed = api.get(f"{job}/occurrences", query={"from": "2027-03-23T00:00:00Z", "until": "2027-03-24T23:00:00Z"})
    found = rows(api, job, **{"from": "2027-03-23T00:00:00Z", "until": "2027-03-23T23:00:00Z"})

    assert (body["state"], body["reason"]) == ("SKIPPED", "PAUSED")
    assert body["switchedOff"]["note"] == "the move"
    assert [each["plannedAt"] for each in listed.json["items"]] == ["2027-03-23T09:00:00Z", "2027-03-24T09:00:00Z"]
    assert body["runId"] in {each["id"] for each in found}


@pytest.mark.parametrize("policy", ["skip", "latest", "all", "sap"])
def test_an_outage_is_explained_by_its_rows(api: Api, policy: str) -> None:
    job = api.create(schedules=[{"every": "PT40S", "policies": {"misfire": {"type": policy}}}])
    place, schedule = f"/v1/jobs/{job['id']}", f"/v1/jobs/{job['id']}/schedules/{job['schedules'][0]['id']}"
    api.stage.run(60)
    api.stage.pass_time(1_800)
    api.stage.run(300)

    listed = api.get(f"{place}/occurrences", query={"from": "2027-03-01T12:00:00Z", "until": "2027-03-01T12:35:00Z"})

    items = listed.json["items"]
    assert len(items) > 45
    for each in items:
        body = explain(api, schedule, each["plannedAt"])
        assert (body["state"], body["reason"], body["runId"]) == (each["state"], each["reason"], each["runId"])
        assert body["occurs"] is (each["state"] not in {"MISSED", "EXPIRED"})


def test_the_set_end_of_a_pause_is_known_everywhere(api: Api) -> None:
    job, schedule = made(api, cron="0 9 * * *")
    do(api, f"{job}/pause", {"note": "holiday", "until": "2027-03-05T00:00:00Z"})

    shown, own = api.get(job).json, api.get(schedule).json
    listed = api.get("/v1/jobs", query={"sort": "nextRunAt", "include": "schedules"}).json["items"][0]
    ahead = api.get(f"{job}/occurrences", query={"limit": 5}).json["items"]
    within, first = explain(api, schedule, "2027-03-04T09:00:00Z"), explain(api, schedule, "2027-03-05T09:00:00Z")

    for each in (shown, own, listed, listed["schedules"][0], api.get(f"{job}/next").json):
        assert each["nextRunAt"] == "2027-03-05T09:00:00Z"
    assert shown["pause"]["until"] == "2027-03-05T00:00:00Z"
    assert (shown["state"], own["state"]) == ("PAUSED", "PAUSED")
    assert own["nextRuns"][0] == "2027-03-05T09:00:00Z"
    assert [(each["plannedAt"][8:10], each["state"], each["reason"]) for each in ahead] == [
        *((day, "SKIPPED", "PAUSED") for day in ("02", "03", "04")),
        *((day, "SCHEDULED", None) for day in ("05", "06")),
    ]
    assert (within["occurs"], within["state"], within["reason"]) == (False, "SKIPPED", "PAUSED")
    assert within["switchedOff"]["until"] == "2027-03-05T00:00:00.000Z"
    assert within["switchedOff"]["note"] == "holiday"
    assert "holiday" in within["reasons"][0]["message"]
    assert (first["occurs"], first["state"], codes(first)) == (True, "SCHEDULED", ["MATCHES"])


def test_a_disabled_collection_outlasts_the_set_end_of_a_pause(api: Api) -> None:
    api("POST", "/v1/collections", {"name": "customer"})
    job = api.create(schedules=[{"cron": "0 9 * * *"}], collection="customer")
    place, schedule = f"/v1/jobs/{job['id']}", f"/v1/jobs/{job['id']}/schedules/{job['schedules'][0]['id']}"
    do(api, f"{place}/pause", {"until": "2027-03-03T00:00:00Z"})
    do(api, "/v1/collections/customer/disable")

    ahead = api.get(f"{place}/occurrences", query={"limit": 3}).json["items"]

    assert api.get(place).json["nextRunAt"] is None
    assert [(each["state"], each["reason"]) for each in ahead] == [
        ("SKIPPED", "PAUSED"),
        ("SKIPPED", "DISABLED"),
        ("SKIPPED", "DISABLED"),
    ]
    for each in ahead:
        body = explain(api, schedule, each["plannedAt"])
        assert (body["occurs"], body["state"], body["reason"]) == (False, each["state"], each["reason"])


def test_an_instant_before_a_change_is_explained_by_the_rule_of_that_time(api: Api) -> None:
    _, schedule = made(api, cron="*/10 * * * *", timezone="UTC")
    api.stage.run(1_300)
    do(api, schedule, {"cron": "*/7 * * * *"}, "PATCH")
    api.stage.run(1_300)

    of_both = [explain(api, schedule, f"2027-03-01T12:{minute}:00Z") for minute in ("10", "14", "20", "28", "30")]

    assert [(each["occurs"], each["state"], codes(each)) for each in of_both] == [
        (True, "SUCCESS", ["IN_LEDGER", "PLANNED_BEFORE"]),
        (False, None, ["CHANGED_SINCE", "DOES_NOT_MATCH"]),
        (True, "SUCCESS", ["IN_LEDGER", "PLANNED_BEFORE"]),
        (True, "SUCCESS", ["IN_LEDGER", "MATCHES"]),
        (False, None, ["DOES_NOT_MATCH"]),
    ]


def test_a_due_occurrence_without_a_row_is_said_to_be_due(api: Api) -> None:
    _, schedule = made(api, cron="*/10 * * * *")
    api.stage.pass_time(605)

    body = explain(api, schedule, "2027-03-01T12:10:00Z")

    assert (body["occurs"], body["state"], codes(body)) == (True, "SCHEDULED", ["MATCHES", "NO_ROW"])


def test_an_expired_row_is_said_to_have_expired(api: Api) -> None:
    _, schedule = made(api, cron="0 9 * * *")
    api.stage.run(86_400)
    api.stage.pass_time(20 * 86_400)

    body = explain(api, schedule, "2027-03-02T09:00:00Z")

    assert (body["occurs"], body["state"], codes(body)) == (True, None, ["MATCHES", "NO_ROW"])


def test_explaining_an_old_instant_reads_a_bounded_part_of_the_ledger(api: Api) -> None:
    job, schedule = made(api, every="PT1S")
    api.stage.run(20)
    do(api, f"{job}/pause")
    api.stage.run(3_600)
    do(api, f"{job}/resume")
    api.stage.run(30)
    api.stage.taps.passed.clear()

    body = api.get(f"{schedule}/explain", query={"at": "2027-03-01T12:50:00Z"}).json

    assert body["range"]["count"] > 3_000
    queries = [each.request for each in api.stage.taps.passed if each.operation == "Query"]
    of_ledger = [each for each in queries if "RUN#" in str(each["ExpressionAttributeValues"])]
    assert [each.get("Limit") for each in of_ledger if each.get("ScanIndexForward") is False] == [10, 100]
    assert len(of_ledger) == 3
    assert len(queries) <= 5


@pytest.mark.parametrize("days", [3, 20])
def test_lists_of_all_jobs_and_the_timeline_show_a_row_that_began_days_before(api: Api, days: int) -> None:
    job, _ = made(api, cron="0 * * * *")
    api.create(schedules=[{"every": "PT6H"}], name="another")
    do(api, f"{job}/pause")
    api.stage.pass_time(days * 86_400)
    do(api, f"{job}/resume")
    api.stage.run(60)
    now = api.stage.clock.now()
    window = {"from": f"{now - timedelta(hours=5):%Y-%m-%dT%H:%M:%SZ}", "until": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
    (row,) = (each for each in rows(api, job) if each["range"] is not None)

    everything = api.get("/v1/runs", query=window).json
    skipped = api.get("/v1/runs", query={**window, "state": "SKIPPED", "collection": "default"}).json
    merged = api.get("/v1/runs", query={**window, "collection": "default"}).json["items"]
    first = api.get("/v1/runs", query={**window, "collection": "default", "limit": 1}).json
    exported = api.get("/v1/runs:export", query={**window, "format": "jsonl"}).text
    timeline = api.get("/v1/timeline", query=window).json["items"]

    assert [each["id"] for each in everything["items"]] == [row["id"]]
    assert [each["id"] for each in skipped["items"]] == [row["id"]]
    assert merged[-1] == row
    assert row["id"] in exported
    marks = {each["jobId"]: [mark["runId"] for mark in each["marks"]] for each in timeline}
    assert marks[job.rpartition("/")[2]] == [row["id"]]
    found, cursor = first["items"], first["nextCursor"]
    while cursor:
        page = api.get("/v1/runs", query={**window, "collection": "default", "limit": 1, "cursor": cursor}).json
        found, cursor = found + page["items"], page["nextCursor"]
    assert found == merged
