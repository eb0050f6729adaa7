"""Runs as a file that the service writes: how it is asked for, what the operation tells of it, who gets a link."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sweephand.server.flow.bulk import export_runs
from tests.contract.calls import Reply
from tests.contract.native.api import OTHER, Api
from tests.contract.native.test_export import EVERY_MINUTE, exported, pages

PATH = "/v1/runs:export"


@pytest.fixture
def job(api: Api) -> str:
    """Makes a job with 10 runs."""
    made: str = api.create(schedules=EVERY_MINUTE)["id"]
    api.stage.run(630)
    return made


def begun(api: Api, **members: str) -> Reply:
    reply = api("POST", PATH, members)
    assert reply.status == 202, reply.text
    return reply


def ended(api: Api, reply: Reply, **more: Any) -> dict[str, Any]:
    """Returns the operation, once its pages are done."""
    while api.stage.deliver_all():
        pass
    found: dict[str, Any] = api.get(reply.headers["location"], **more).json
    assert found["state"] == "DONE", found
    return found


def content(api: Api, operation: dict[str, Any]) -> str:
    key = re.fullmatch(r"https://files-of-the-test\.example/(.+)\?.*", operation["result"]["link"]["url"])
    assert key is not None
    return api.stage.bucket.objects[key[1]].decode()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_the_file_equals_its_pages_joined(api: Api, job: str, form: str) -> None:
    reply = begun(api, jobId=job, format=form)
    assert (reply.json["kind"], reply.json["state"], reply.json["result"]) == ("export_runs", "RUNNING", None)
    assert reply.json["request"] == {"jobId": job, "format": form}

    operation = ended(api, reply)

    assert content(api, operation) == "".join(pages(api, f"jobId={job}&format={form}"))
    assert operation["progress"] == {"done": 10, "total": 10, "failed": 0, "waitsFor": None}
    result = operation["result"]
    assert (result["runs"], result["bytes"]) == (10, len(content(api, operation)))
    assert result["nextCursor"] is None
    assert result.keys() == {"runs", "bytes", "link", "fileExpiresAt", "nextCursor"}


def test_the_link_is_shown_only_to_readers_of_the_operation(api: Api, job: str) -> None:
    reply = begun(api, jobId=job)
    operation = ended(api, reply)
    listed = api.get("/v1/operations").json["items"]
    paused = api("POST", f"{reply.headers['location']}/cancel")

    assert operation["result"]["link"]["expiresAt"] < operation["result"]["fileExpiresAt"]
    assert [each["result"]["link"] for each in listed] == [None]
    assert "link" not in paused.json
    assert "example/acme" not in str(api.stage.items()) + str(api.stage.journal.lines)
    assert api.get(reply.headers["location"], caller=OTHER).status == 404
    api.stage.clock.advance(export_runs.FILE_KEPT.total_seconds())
    assert api.get(reply.headers["location"]).json["result"]["link"] is None


def test_a_provider_gets_the_file_of_the_tenant_it_acts_for(api: Api, job: str) -> None:
    acting = {"sweephand-tenant": "acme"}
    reply = api("POST", PATH, {"jobId": job}, caller="provider", headers=acting)

    operation = ended(api, reply, caller="provider", headers=acting)

    assert content(api, operation) == exported(api, f"jobId={job}").text


def test_a_full_file_says_where_the_next_one_begins(api: Api, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_runs, "MOST_RUNS", 4)
    members, files = {"jobId": job, "format": "jsonl"}, []
    while True:
        operation = ended(api, begun(api, **members))
        files.append(content(api, operation))
        cursor = operation["result"]["nextCursor"]
        if cursor is None:
            break
        members["cursor"] = cursor
    page_behind = exported(api, f"jobId={job}&format=jsonl&cursor={members['cursor']}").text

    assert [text.count("\n") for text in files] == [4, 4, 2]
    assert "".join(files) == exported(api, f"jobId={job}&format=jsonl").text
    assert page_behind == files[-1]
    other = api("POST", PATH, {"jobId": job, "cursor": members["cursor"]})
    assert (other.status, other.code) == (400, "INVALID_CURSOR")


def test_a_tenants_file_contains_nothing_of_another_tenant(api: Api, job: str) -> None:
    foreign = api("POST", PATH, {"jobId": job}, caller=OTHER)
    operation = ended(api, api("POST", PATH, {}, caller=OTHER), caller=OTHER)

    assert foreign.status == 404
    assert content(api, operation).count("\n") == 1
    assert f"/{OTHER}/" in operation["result"]["link"]["url"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"format": "xml"}, "format"),
        ({"format": 1}, "format"),
        ({"state": "SCHEDULED"}, "state"),
        ({"kind": "x"}, "kind"),
        ({"jobId": "x"}, "jobId"),
        ({"scheduleId": ["x"]}, "scheduleId"),
        ({"cursor": ""}, "cursor"),
        ({"limit": 5}, "limit"),
    ],
)
def test_an_unreadable_member_is_refused_by_name(api: Api, body: dict[str, Any], field: str) -> None:
    with api.unchanged():
        reply = api("POST", PATH, body)

    assert reply.status == 422
    assert reply.fields == [field]


def test_a_fourth_concurrent_export_is_refused(api: Api, job: str) -> None:
    for _ in range(export_runs.AT_ONCE):
        begun(api, jobId=job)

    with api.unchanged():
        reply = api("POST", PATH, {"jobId": job})

    assert (reply.status, reply.code) == (409, "QUOTA_EXCEEDED")
    assert begun_by_key(api, job, "one") == 409
    assert api("POST", PATH, {}, caller=OTHER).status == 202


def begun_by_key(api: Api, job: str, key: str) -> int:
    return api("POST", PATH, {"jobId": job}, headers={"idempotency-key": key}).status
