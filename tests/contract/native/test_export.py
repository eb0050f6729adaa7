"""Runs as a file: CSV and JSON lines, a page at a time."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.server.facades import http
from sweephand.server.facades.native.runs import export
from tests.contract.calls import Reply
from tests.contract.native.api import OTHER, Api

EVERY_MINUTE = [{"every": "PT1M", "align": "clock"}]


@pytest.fixture
def job(api: Api) -> str:
    """Makes a job with 10 runs: the first fails, the others succeed."""
    made: str = api.create(schedules=EVERY_MINUTE)["id"]
    failed = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=404, answer='=1+1, "quoted"\nline', message="-2")
    api.stage.endpoint.script.append(failed)
    api.stage.run(630)
    return made


def exported(api: Api, query: str, caller: str = "acme") -> Reply:
    reply = api.get("/v1/runs:export", query=query, caller=caller)
    assert reply.status == 200, reply.text
    return reply


def pages(api: Api, query: str) -> list[str]:
    found = []
    while True:
        reply = exported(api, query)
        found.append(reply.text)
        if "link" not in reply.headers:
            return found
        address, _, relation = reply.headers["link"].partition("; ")
        assert relation == 'rel="next"'
        query = address.removeprefix("</v1/runs:export?").removesuffix(">")


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def listed(api: Api, job: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = api.get("/v1/runs", query=f"jobId={job}").json["items"]
    return items


def test_a_csv_file_contains_the_runs_of_the_list(api: Api, job: str) -> None:
    reply = exported(api, f"jobId={job}")

    assert reply.headers["content-type"] == "text/csv; charset=utf-8"
    assert "link" not in reply.headers
    found = rows(reply.text)
    assert len(found) == 10
    for row, run in zip(found, listed(api, job), strict=True):
        same = {name: "" if run[name] is None else str(run[name]) for name in row.keys() & run.keys()}
        assert {name: row[name] for name in same} | {"message": "", "answer": ""} == same | {
            "message": "",
            "answer": "",
        }
    assert reply.text.startswith("id,jobId,scheduleId,kind,status,state,reason,httpStatus,plannedAt,")
    assert reply.text.count("\r\n") == 11


def test_a_csv_cell_is_never_a_formula(api: Api, job: str) -> None:
    (row,) = rows(exported(api, f"jobId={job}&state=REQUEST_ERROR").text)

    assert row["answer"] == '\'=1+1, "quoted"\nline'
    assert row["message"] == "'-2"


def test_json_lines_contain_the_runs_of_the_list(api: Api, job: str) -> None:
    reply = exported(api, f"format=jsonl&jobId={job}")

    assert reply.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in reply.text.splitlines()] == listed(api, job)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_the_pages_joined_are_the_whole_file(api: Api, job: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = exported(api, f"format={form}&jobId={job}").text
    monkeypatch.setattr(export, "PAGE", 3)

    found = pages(api, f"format={form}&jobId={job}")

    assert len(found) == 4
    assert "".join(found) == whole


def test_a_long_export_has_several_pages(api: Api, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = exported(api, f"jobId={job}").text
    monkeypatch.setattr(http, "LARGEST_ANSWER", 2_000)
    monkeypatch.setattr(export, "PAGE", 16)

    found = pages(api, f"jobId={job}")

    assert len(found) > 1
    assert "".join(found) == whole


def test_an_export_without_a_job_contains_the_runs_that_did_not_succeed(api: Api, job: str) -> None:
    assert [row["state"] for row in rows(exported(api, "").text)] == ["REQUEST_ERROR"]


def test_a_tenants_file_contains_nothing_of_another_tenant(api: Api, job: str) -> None:
    assert rows(exported(api, "", caller=OTHER).text) == []
    assert api.get("/v1/runs:export", query=f"jobId={job}", caller=OTHER).status == 404


@pytest.mark.parametrize("query", ["format=xml", "state=LOST", "kind=x", "jobId=x", "cursor=x", "limit=5"])
def test_an_unreadable_query_is_refused(api: Api, job: str, query: str) -> None:
    reply = api.get("/v1/runs:export", query=query)

    assert reply.status == 400
    assert query.partition("=")[0] in reply.text


def test_a_cursor_of_the_list_is_refused_for_the_file(api: Api, job: str) -> None:
    cursor = api.get("/v1/runs", query=f"jobId={job}&limit=1").json["nextCursor"]

    assert api.get("/v1/runs:export", query=f"jobId={job}&cursor={cursor}").json["code"] == "INVALID_CURSOR"
