"""Each kind of bad input, what it gets, and that it leaves everything as it was."""

from __future__ import annotations

import json

import pytest

from tests.contract.azure.api import COLLECTION, COLLECTIONS, EVERY_HOUR, HTTP, JOB, job
from tests.contract.azure.test_actions import BASIC, BUS, OAUTH, QUEUE, http

NEW, FREE, FULL, ENDED = (f"{COLLECTIONS}/{name}" for name in ("new", "free", "full", "ended"))
FOREIGN = {"type": "Http", "request": {"uri": "https://evil.example/", "method": "GET"}}


def without(proof, *names):
    return {name: value for name, value in proof.items() if name not in names}


def keeping(action):
    """Returns a change of the job `Report` that sends no secret."""
    return ("PATCH", JOB, {"body": {"properties": {"action": action}}})


def put(body, path=f"{COLLECTION}/jobs/other"):
    return ("PUT", path, {"body": body})


def query(**members):
    return ("GET", f"{COLLECTION}/jobs", {"query": {f"${name}": value for name, value in members.items()}})


INPUTS = {
    # input: request, status, code, beginning of the message
    "no api-version": (("GET", COLLECTION, {"version": None}), 400, "MissingApiVersionParameter", "the parameter api-"),
    "unknown api-version": (
        ("GET", COLLECTION, {"version": "2014-04-01"}),
        400,
        "InvalidApiVersionParameter",
        "the api-version 2014-04-01",
    ),
    "filter of another field": (query(filter="name eq 'x'"), 400, "BadRequest", "$filter"),
    "filter of an unknown state": (query(filter="state eq 'Running'"), 400, "BadRequest", "$filter"),
    "filter without a value": (query(filter="state eq"), 400, "BadRequest", "$filter"),
    "filter with or": (query(filter="state eq 'Enabled' or state eq 'Disabled'"), 400, "BadRequest", "$filter"),
    "filter with one field twice": (
        query(filter="state eq 'Enabled' and state eq Enabled"),
        400,
        "BadRequest",
        "$filter",
    ),
    "filter that ends with and": (query(filter="state eq 'Enabled' and"), 400, "BadRequest", "$filter"),
    "filter with an open quote": (query(filter="state eq 'Enabled"), 400, "BadRequest", "$filter"),
    "filter of many clauses": (query(filter=" and ".join(["state eq Enabled"] * 200)), 400, "BadRequest", "$filter"),
    "filter by another operator": (query(filter="state ne 'Enabled'"), 400, "BadRequest", "$filter"),
    "top 0": (query(top=0), 400, "BadRequest", "$top"),
    "top 101": (query(top=101), 400, "BadRequest", "$top"),
    "skip below 0": (query(skip=-1), 400, "BadRequest", "$skip"),
    "no JSON": (("PUT", NEW, {"raw": "{"}), 400, "BadRequest", ""),
    "no object": (("PUT", NEW, {"raw": "[]"}), 400, "BadRequest", ""),
    "no body": (("PUT", NEW, {}), 400, "BadRequest", "a JSON body"),
    "properties no object": (put({"properties": 5}), 400, "BadRequest", "properties"),
    "over 64 KiB": (put(job(body="x" * 65_536)), 413, "RequestEntityTooLarge", ""),
    "doubles that differ": (
        ("PUT", NEW, {"raw": '{"location": "a", "Location": "b"}'}),
        400,
        "BadRequest",
        "location",
    ),
    "doubles of which one is a boolean": (
        (*put(None)[:2], {"raw": json.dumps(job(recurrence={"frequency": "Day", "count": 1, "Count": True}))}),
        400,
        "BadRequest",
        "properties.recurrence.count",
    ),
    "a parameter twice in two cases": (
        ("GET", f"{COLLECTION}/jobs", {"query": "$top=1&$TOP=2"}),
        400,
        "BadRequest",
        "$top",
    ),
    "an authentication without its type": (
        put(job(action=http(authentication=without(BASIC, "type")))),
        400,
        "BadRequest",
        "properties.action.request.authentication.type",
    ),
    "a key twice that differs": (("PUT", NEW, {"raw": '{"location": "a", "location": "b"}'}), 400, "BadRequest", ""),
    "a uri of 2,049 characters": (
        put(job(action=http(uri="https://example.org/".ljust(2_049, "x")))),
        400,
        "BadRequest",
        "properties.action.request.uri",
    ),
    "51 headers": (
        put(job(action=http(headers={f"X-{n}": "1" for n in range(51)}))),
        400,
        "BadRequest",
        "properties.action.request.headers",
    ),
    "4,097 characters of headers": (
        put(job(action=http(headers={"X": "x" * 4_096}))),
        400,
        "BadRequest",
        "properties.action.request.headers",
    ),
    "a body of 8,193 characters": (
        put(job(action=http(body="x" * 8_193))),
        400,
        "BadRequest",
        "properties.action.request.body",
    ),
    "a start 19 months ahead": (put(job(startTime="2028-10-01")), 400, "BadRequest", "properties.startTime"),
    "an interval beyond the maximum": (
        put(job(recurrence={"frequency": "Hour", "interval": 1_001})),
        400,
        "BadRequest",
        "properties.recurrence.interval",
    ),
    "a job of 16,385 bytes": (
        put(job(action={"type": "ServiceBusQueue", "serviceBusQueueMessage": {**BUS, "message": "x" * 16_384}})),
        400,
        "BadRequest",
        "properties",
    ),
    "unknown type": (put(job(action={"type": "Smtp"})), 400, "BadRequest", "properties.action.type"),
    "unknown state": (put(job(state="Paused")), 400, "BadRequest", "properties.state"),
    "missing action": (put({"properties": {}}), 400, "BadRequest", "properties.action"),
    "missing element": (
        put(job(action={"type": "StorageQueue", "queueMessage": without(QUEUE, "message")})),
        400,
        "BadRequest",
        "properties.action.queueMessage.message",
    ),
    "job in a collection that is not there": (put(job(), f"{NEW}/jobs/j"), 404, "ResourceNotFound", "the job coll"),
    "quota": (put(job(), f"{FULL}/jobs/j"), 409, "ConflictError", "the collection full has 1 job"),
    "plan": (put(job(action=http(authentication=BASIC)), f"{FREE}/jobs/j"), 409, "ConflictError", "properties.action"),
    "a second Free collection": (
        put({"location": "x", "properties": {"sku": {"name": "Free"}}}, NEW),
        409,
        "ConflictError",
        "the subscription",
    ),
    "final state": (put(job(), f"{ENDED}/jobs/j"), 409, "ConflictError", "the job is Completed"),
    "run in a final state": (
        ("POST", f"{ENDED}/jobs/j/run", {}),
        409,
        "ConflictError",
        "the job is Completed, which is final",
    ),
    "absent password with another host": (
        keeping(http(uri="https://evil.example/", authentication=without(BASIC, "password"))),
        400,
        "BadRequest",
        "properties.action.request.authentication.password",
    ),
    "absent password with another user": (
        keeping({"request": {"authentication": {"username": "jim"}}}),
        400,
        "BadRequest",
        "properties.action.request.authentication.password",
    ),
    "another audience without the secret": (
        put(job(action=http(authentication=without({**OAUTH, "audience": "b"}, "secret"))), f"{COLLECTION}/jobs/oauth"),
        400,
        "BadRequest",
        "properties.action.request.authentication.secret",
    ),
    "another account without the token": (
        (
            "PATCH",
            f"{COLLECTION}/jobs/queue",
            {"body": {"properties": {"action": {"queueMessage": {"storageAccount": "another"}}}}},
        ),
        400,
        "BadRequest",
        "properties.action.queueMessage.sasToken",
    ),
    "another key name without the key": (
        (
            "PATCH",
            f"{COLLECTION}/jobs/bus",
            {"body": {"properties": {"action": {"serviceBusQueueMessage": {"authentication": {"sasKeyName": "x"}}}}}},
        ),
        400,
        "BadRequest",
        "properties.action.serviceBusQueueMessage.authentication.sasKey",
    ),
    "another tenant's names": (("GET", JOB, {"caller": "globex"}), 404, "ResourceNotFound", ""),
    "the provider without a tenant": (("GET", JOB, {"caller": "provider"}), 400, "BadRequest", ""),
    "Https with an http address": (
        put(job(action={**http(uri="http://example.org/"), "type": "Https"})),
        400,
        "BadRequest",
        "properties.action.request.uri",
    ),
    "a name with a slash": (("GET", f"{COLLECTION}/jobs/a%2Fb", {}), 404, "ResourceNotFound", ""),
}


@pytest.fixture(scope="module")
def shared():
    from tests.contract.azure.api import azure  # noqa: PLC0415 - one stage for all rows

    with azure() as api:
        api.job(startTime=api.at(86_400), action=http(authentication=BASIC))
        api.job(f"{COLLECTION}/jobs/oauth", startTime=api.at(86_400), action=http(authentication=OAUTH))
        queue = {"type": "StorageQueue", "queueMessage": QUEUE}
        api.job(f"{COLLECTION}/jobs/queue", startTime=api.at(86_400), action=queue)
        bus = {"type": "ServiceBusQueue", "serviceBusQueueMessage": BUS}
        api.job(f"{COLLECTION}/jobs/bus", startTime=api.at(86_400), action=bus)
        api.collection(FREE, sku={"name": "Free"})
        api.collection(FULL, quota={"maxJobCount": 1})
        api.job(f"{FULL}/jobs/there", startTime=api.at(86_400), recurrence=EVERY_HOUR)
        api.job(f"{ENDED}/jobs/j", action=HTTP)
        api.stage.run(10)
        yield api


@pytest.mark.parametrize(("request_", "status", "code", "says"), INPUTS.values(), ids=INPUTS)
def test_bad_input_gets_a_defined_error_and_changes_nothing(shared, request_, status, code, says):
    method, path, more = request_

    with shared.native.unchanged():
        reply = shared(method, path, more.get("body"), **{name: each for name, each in more.items() if name != "body"})

    assert (reply.status, reply.json["error"]["code"]) == (status, code), reply.text
    assert reply.json["error"]["message"].startswith(says), reply.text
    assert json.loads(reply.text).keys() == {"error"}
    assert "evil" not in str(shared.get(JOB).json)
