"""Texts that try to be keys, log lines or error messages; faults that nobody foresaw."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from tests.contract.calls import CANARY, basic, event
from tests.contract.native import everything
from tests.contract.native.api import JOB
from tests.contract.native.everything import UNKNOWN


@pytest.mark.parametrize("key", ["a#b", "%23", "'--", "../..", "{}", "x" * 255, "IDEM#x", '"quoted"'])
def test_an_unusual_idempotency_key_works_as_a_key(api, key):
    first, again = (api("POST", "/v1/jobs", JOB, headers={"idempotency-key": key}) for _ in range(2))

    assert first.id == again.id


def test_header_names_work_in_any_case(api):
    made = api.create()
    there = f"/v1/jobs/{made['id']}"

    sent = event("DELETE", there, "", {"Authorization": api.credentials["acme"], "IF-MATCH": '"7"'})

    assert api.send(sent).status == 412


def test_a_body_of_bytes_equals_the_same_body_as_a_string(api):
    text = '{"action": {"type": "http", "url": "https://x.org/"}, "name": "\u00fc\U0001f600"}'

    one = api("POST", "/v1/jobs", raw=text.encode())

    assert (one.status, one.json["name"]) == (201, "\u00fc\U0001f600")
    assert api("POST", "/v1/jobs", raw=text).code == "NAME_TAKEN"


def of_globex(api):
    return [each for each in api.picture() if '"pk": {"S": "TENANT#globex' in each]


@pytest.mark.parametrize(
    "name", ["NAME#x", "x#y", "x%23y", "%", "#", "JOB#", "TENANT#globex", "a" * 128, "#" * 128, "\U0001f600" * 128]
)
def test_names_tags_and_resources_cannot_reach_other_keys(api, name):
    foreign = of_globex(api)
    tag, resource = name, name * 2 if len(name) < 128 else name
    made = api.create(JOB, name=name, tags=[tag], resourceId=resource)
    api.create(JOB, name="x", tags=["y"], resourceId="z")

    for query in ({"name": name}, {"tag": tag}, {"resourceId": resource}, {"collection": "default", "name": name}):
        found = api.get("/v1/jobs", query=query).json["items"]
        assert [each["id"] for each in found] == [made["id"]], query
    assert of_globex(api) == foreign
    assert api("DELETE", f"/v1/jobs/{made['id']}").status == 204
    assert [each["name"] for each in api.get("/v1/jobs").json["items"]] == ["x"]


def test_an_unexpected_error_reveals_nothing(api, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError(f"{CANARY} in a message")

    monkeypatch.setattr("sweephand.server.flow.jobs.lookup.find", broken)
    api.tolerated.add(500)

    reply = api.get(f"/v1/jobs/{UNKNOWN}")

    assert (reply.status, reply.code) == (500, "INTERNAL")
    assert "Zero" not in reply.text
    assert "Traceback" not in reply.text
    ((_, message, members),) = [line for line in api.stage.journal.lines if line[0] == "error"]
    assert (message, members["error"]) == ("request failed", "ZeroDivisionError")
    assert members["where"].startswith("test_hostile_texts.py:")


@pytest.mark.parametrize(
    "code", ["ThrottlingException", "InternalServerError", "ProvisionedThroughputExceededException"]
)
def test_a_throttled_table_is_reported_as_unavailable(api, code):
    def refuse(passing, act):
        raise ClientError({"Error": {"Code": code, "Message": CANARY}, "ResponseMetadata": {}}, passing.operation)

    api.tolerated.add(503)
    made = api.create()
    api.get("/v1/jobs")
    api.stage.taps.fault = refuse

    for method, path, body in (
        ("GET", f"/v1/jobs/{made['id']}", None),
        ("POST", "/v1/jobs", JOB),
        ("GET", "/v1/runs", None),
    ):
        reply = api(method, path, body)
        assert (reply.status, reply.code) == (503, "UNAVAILABLE")
        assert int(reply.headers["retry-after"]) >= 1


NEEDLE = "needle"


def test_log_lines_contain_routes_and_no_text_from_the_caller(api):
    secret = basic("acme.x", f"{NEEDLE}-secret")
    made = api.create(everything.job(), name=f"{NEEDLE}-name")
    api("POST", "/v1/jobs", {**JOB, f"{NEEDLE}-member": 1})
    api.get(f"/v1/jobs/{NEEDLE}", headers={"x-canary": NEEDLE})
    api.get("/v1/jobs", query={"name": f"{NEEDLE}-name"}, caller=None, headers={"authorization": secret})

    lines = [members for level, message, members in api.stage.journal.lines if message == "request"]

    assert NEEDLE not in api.log()
    assert len(lines) == api.answers
    who = {"tenant": "acme", "actor": lines[0]["actor"], "claimed": None, "source": "127.0.0.1", "agent": None}
    what = {"request": "request-1", "method": "POST", "route": "/v1/jobs", "status": 201, "took_ms": 0}
    assert lines[0] == who | what
    assert str(lines[0]["actor"]).startswith("acme.")
    assert made["id"] not in api.log()
