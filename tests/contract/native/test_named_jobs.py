"""PUT /v1/jobs?name=: a job is created or replaced by its name."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.server.facades.native.jobs import jobs
from tests.contract.native.api import JOB, Api

HOURLY = {"every": "PT1H", "startTime": "2027-03-01T13:00:00Z"}
DAILY = {"cron": "0 3 * * *"}
BODY = {"action": JOB["action"], "description": "by name", "schedules": [HOURLY, DAILY]}


def put(api: Api, body: Any, query: str = "name=report", **more: Any) -> Any:
    return api("PUT", "/v1/jobs", body, query=query, **more)


def test_a_new_name_creates_the_job(api):
    made = put(api, BODY)

    assert made.status == 201
    assert made.headers["location"] == f"/v1/jobs/{made.json['id']}"
    assert (made.json["name"], made.json["collection"], made.json["revision"]) == ("report", "default", 1)
    assert [each["name"] for each in made.json["schedules"]] == ["schedule-1", "schedule-2"]


def test_the_same_request_again_changes_nothing(api):
    made = put(api, BODY)
    again = put(api, BODY)

    assert again.status == 200
    assert again.json == made.json | {"modifiedAt": again.json["modifiedAt"]}
    assert again.json["revision"] == 1


@pytest.mark.parametrize(
    "schedule",
    [
        HOURLY,
        DAILY,
        {"at": "2027-03-01T13:00:00Z"},
        {"every": "PT1H"},
        {"cron": "*/5 * * * *", "endTime": "2027-03-01T12:30:00Z"},
    ],
)
def test_a_program_that_sends_it_at_each_start_keeps_the_rhythm(api, schedule):
    body = {"action": JOB["action"], "schedules": [schedule]}
    made = put(api, body).json
    api.stage.run(4_000)
    before = api.get(f"/v1/jobs/{made['id']}", query="include=schedules").json
    again = put(api, body)

    assert again.status == 200, again.text
    assert again.json == before


def test_another_body_replaces_all_that_it_leaves_out(api):
    made = put(api, BODY)
    replaced = put(api, {"action": JOB["action"], "schedules": [HOURLY]})

    assert replaced.status == 200
    assert (replaced.json["id"], replaced.json["revision"]) == (made.json["id"], 2)
    assert replaced.json["description"] is None
    assert [each["id"] for each in replaced.json["schedules"]] == [made.json["schedules"][0]["id"]]
    assert put(api, {"action": JOB["action"]}).json["schedules"] == []


def test_the_defaults_of_the_collection_hold_for_both(api):
    api("POST", "/v1/collections", {"name": "reports", "defaults": {"policies": {"overlap": "queue_one"}}})
    made = put(api, BODY, "name=report&collection=reports")
    again = put(api, BODY, "name=report&collection=reports")

    assert made.json["policies"]["overlap"] == again.json["policies"]["overlap"] == "queue_one"
    assert again.json["revision"] == 1


def test_names_of_two_collections_are_two_jobs(api):
    api("POST", "/v1/collections", {"name": "reports"})
    ids = {put(api, BODY, f"name=report&collection={each}").json["id"] for each in ("default", "reports")}

    assert len(ids) == 2


def test_a_change_log_says_who_and_why(api):
    made = put(api, BODY).json
    put(api, {"action": JOB["action"]}, headers={"sweephand-reason": "shorter"})
    changes = api.get(f"/v1/jobs/{made['id']}/changes").json["items"]

    assert [(each["operation"], each["reason"]) for each in changes] == [("replace", "shorter"), ("create", None)]


def test_if_match_holds_for_both(api):
    assert put(api, BODY, headers={"if-match": '"1"'}).status == 412
    assert put(api, BODY).status == 201
    assert put(api, {"action": JOB["action"]}, headers={"if-match": '"1"'}).status == 200
    assert put(api, BODY, headers={"if-match": '"1"'}).status == 412


def test_whoever_is_second_replaces_the_job_of_the_first(api, monkeypatch):
    real, read = jobs.lookup.named, []

    def named(*asked: Any) -> str | None:
        read.append(real(*asked))
        if len(read) == 1:
            put(api, {"action": JOB["action"], "description": "of the first"})  # between the read and the write
        return read[0] if len(read) == 1 else real(*asked)

    monkeypatch.setattr(jobs.lookup, "named", named)
    second = put(api, BODY)

    assert (second.status, second.json["description"], second.json["revision"]) == (200, "by name", 2)
    assert len(api.get("/v1/jobs", query="name=report").json["items"]) == 1


@pytest.mark.parametrize(
    ("query", "body", "status", "field"),
    [
        ("", BODY, 400, "name"),
        ("name=", BODY, 400, "name"),
        ("name=" + "x" * 129, BODY, 400, "name"),
        ("name=%20x", BODY, 422, "name"),
        ("name=report&collection=none", BODY, 422, "collection"),
        ("name=report", {**BODY, "name": "other"}, 422, "name"),
        ("name=report", {**BODY, "collection": 7}, 422, "collection"),
        ("name=report", {"schedules": []}, 422, "action"),
        ("name=report", {**BODY, "schedules": 7}, 422, "schedules"),
        ("name=report", {**BODY, "id": "x"}, 422, "id"),
        ("name=report", [], 422, "body"),
        ("name=report&tag=x", BODY, 400, "tag"),
    ],
)
@pytest.mark.parametrize("exists", [False, True])
def test_wrong_requests_are_refused_before_and_after(api, query, body, status, field, exists):
    if exists:
        put(api, BODY)
    refused = put(api, body, query)

    assert refused.status == status, refused.text
    assert refused.json["errors"][0]["field"] == field


def test_another_tenant_has_names_of_its_own(api):
    assert put(api, BODY).status == 201
    assert put(api, BODY, caller="globex").status == 201
