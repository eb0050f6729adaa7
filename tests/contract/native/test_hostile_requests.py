"""Paths, headers and events as nobody should send them; faults that nobody foresaw."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweephand.server.facades.native.routes import ROUTES
from tests.contract.calls import CANARY, event
from tests.contract.native.everything import UNKNOWN, furnish, send, title
from tests.support.examples import scaled

NAMED = [route for route in ROUTES.all if "{" in route.path]
ODD_NAMES = {
    "empty": "",
    "dot": ".",
    "dots": "..",
    "key": "%23",
    "keys": f"{UNKNOWN}%23JOB",
    "percent": "%25",
    "twice encoded": "%2523",
    "slash": "a%2Fb",
    "sql": "%27%20OR%201=1--",
    "upper case": UNKNOWN.upper(),
    "braces": f"%7B{UNKNOWN}%7D",
    "no hyphens": UNKNOWN.replace("-", ""),
    "line end": f"{UNKNOWN}%0A",
    "NUL": "%00",
    "no UTF-8": "%FF%FE",
    "surrogate": "%ED%A0%80",
    "raw surrogate": "\ud800",
    "half escape": "%2",
    "raw blank": "a b",
    "umlaut": "%C3%BC",
    "unicode digits": "\u0660" * 8,
    "long": "a" * 9_000,
    "long escapes": "%F0%9F%98%80" * 2_000,
    "semicolon": f"{UNKNOWN};x=1",
    "template": "{job}",
    "colon": f"{UNKNOWN}:run",
}


@pytest.fixture(scope="module")
def things(shared):
    return furnish(shared, "acme")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_every_route_answers_an_invalid_name_as_not_found(shared, things, name):
    with shared.unchanged():
        for route in NAMED:
            named = ("job", "schedule", "run", "collection", "credential", "tenant", "calendar", "version", "flow_key")
            for parameter in named:
                if f"{{{parameter}}}" not in route.path or (route.method, parameter) == ("PUT", "tenant"):
                    continue  # a subscription makes a tenant of each name that one can have: test_subscriptions.py
                names = {**things.names, parameter: ODD_NAMES[name]}
                reply = send(shared, route, things, path=route.path.format(**names))
                assert reply.status in {400, 404, 405}, (title(route), parameter)
                assert reply.status != 405 or name == "empty"


@pytest.mark.parametrize("kind", ["schedule", "run", "credential", "tenant", "collection", "calendar", "flow_key"])
def test_an_id_of_another_type_is_not_found(shared, things, kind):
    with shared.unchanged():
        for route in NAMED:
            if "{job}" in route.path:
                reply = send(shared, route, things, path=things.path(route, job=things.names[kind]))
                assert (reply.status, reply.code) == (404, "NOT_FOUND"), title(route)
        for route in NAMED:
            if "{schedule}" in route.path:
                other = things.names["job" if kind == "schedule" else kind]
                reply = send(shared, route, things, path=things.path(route, schedule=other))
                assert (reply.status, reply.code) == (404, "NOT_FOUND"), title(route)


@pytest.mark.parametrize(
    "path",
    ["/v1/jobs/" + "a/" * 3_000, "/v1/" + "%2F" * 3_000, "/v1/jobs%2F", "/v1//jobs", "/V1/JOBS", "/v1/jobs;x",
     "v1/jobs", "/v1/jobs/%2e%2e/collections", "/v1/schedules%3Apreview/x", "/v1/\U0001f600", "/" * 500],
)  # fmt: skip
def test_a_malformed_path_is_not_found(shared, path):
    for method in ("GET", "POST", "DELETE"):
        assert shared(method, path).status in {400, 404}
        assert shared(method, path, caller=None).status in {400, 401}


def test_an_encoded_path_equals_the_plain_path(shared):
    assert shared.get("/v1/%6aobs").status == 200
    assert shared("POST", "/v1/%6aobs/x").status == 405
    assert shared("POST", "/v1/schedules%3Apreview", {"every": "PT1H"}).status == 200


# Headers


@pytest.mark.parametrize(
    "given",
    ["1", '"1', '1"', '""', '"x"', '"-1"', '"1.0"', '"1", "2"', '"\u0661"', '"9999999999999999"', "*, *", '"1"\x00',
     "\ud800", '"' + "1" * 70_000 + '"', f'"{CANARY}"', "W/1", ""],
)  # fmt: skip
def test_an_if_match_that_is_not_an_etag_is_refused(shared, things, given):
    routes = [route for route in ROUTES.all if "If-Match" in route.headers]
    assert len(routes) > 10

    with shared.unchanged():
        for route in routes:
            reply = send(shared, route, things, headers={"if-match": given})
            assert (reply.status, reply.code, reply.fields) == (400, "INVALID_QUERY", ["If-Match"]), title(route)


@pytest.mark.parametrize(
    "given", ["", " ", "a b", "a\tb", "\u00fc", "x" * 256, "x" * 70_000, "\x00", "\ud800", "a\r\nb"]
)
def test_an_invalid_idempotency_key_is_refused(shared, things, given):
    routes = [route for route in ROUTES.all if "Idempotency-Key" in route.headers]
    assert {title(route) for route in routes} == {
        "POST /v1/jobs",
        "POST /v1/messages",
        *(f"POST /v1/jobs:{verb}" for verb in ("activate", "deactivate", "pause", "resume")),
        "POST /v1/jobs/{job}/run",
        "POST /v1/runs/{run}/rerun",
        "POST /v1/errors:redrive",
        "POST /v1/runs:export",
        "POST /v1/jobs/{job}/schedules",
        "POST /v1/errors/{error}/notes",
        "POST /v1/collections",
        "POST /v1/collections/{collection}/signing-keys",
        "POST /v1/calendars",
        "POST /v1/flow-keys",
        "POST /v1/credentials",
        "POST /v1/credentials/{credential}/rotate",
        "POST /v1/tenants",
    }

    with shared.unchanged():
        for route in routes:
            reply = send(shared, route, things, headers={"idempotency-key": given})
            assert (reply.status, reply.code, reply.fields) == (400, "INVALID_QUERY", ["Idempotency-Key"])


def test_unknown_headers_change_nothing(shared):
    odd = {"x-forwarded-for": "\ud800", "host": "evil", "x-http-method-override": "DELETE", "cookie": "\x00" * 5_000,
           "content-length": "-1", "transfer-encoding": "chunked", "x-amzn-trace-id": CANARY, "accept": "text/html",
           "sweephand-tenant": "acme", "range": "bytes=0-0", "if-none-match": "*", "expect": "x"}  # fmt: skip

    reply = shared.get("/v1/jobs", headers=odd)

    assert (reply.status, reply.json["items"] == shared.get("/v1/jobs").json["items"]) == (200, True)


# Events


@pytest.mark.parametrize(
    "body",
    ["not base64!", "YWJ", "\u00fc", "\ud800", "YWJj\n", "====", "eyJhIjox", "YWJj" + "?" * 100, "A" * 2_000_001],
)
def test_a_body_that_cannot_be_decoded_is_refused(shared, body):
    sent = event(
        "POST", "/v1/jobs", "", {"authorization": shared.credentials["acme"], "content-type": "application/json"}
    )

    with shared.unchanged():
        reply = shared.send(sent | {"body": body, "isBase64Encoded": True})

    assert reply.status in {400, 413}
    assert reply.fields == ["body"]


@pytest.mark.parametrize("gone", ["headers", "rawQueryString", "body", "isBase64Encoded"])
def test_an_event_without_optional_gateway_members_is_answered(shared, gone):
    sent = event("GET", "/v1/health")
    sent.pop(gone, None)

    assert shared.send(sent).status == 200


def test_a_body_is_ignored_where_none_is_read(shared, things):
    for route in ROUTES.all:
        if route.method == "GET" and route.path != "/v1/openapi.json":
            assert send(shared, route, things, raw="{" * 5_000).status == 200


TEXT = st.text(st.characters(codec=None), max_size=30)


@settings(max_examples=scaled(150))
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]) | TEXT,
    path=st.lists(
        st.sampled_from(["v1", "jobs", "runs", UNKNOWN, "schedules", "collections", "%23", ".."]) | TEXT, max_size=6
    ),
    query=TEXT | st.sampled_from(["limit=1", "cursor=x&limit=%00", "a=1&a=1", "%=&&==&", "tag=%"]),
    headers=st.dictionaries(
        st.sampled_from(["content-type", "if-match", "idempotency-key", "sweephand-tenant", "x"]), TEXT, max_size=3
    ),
    body=st.none() | TEXT | st.binary(max_size=50),
    known=st.booleans(),
)
def test_no_request_causes_a_server_error(shared, method, path, query, headers, body, known):
    who = {"authorization": shared.credentials["acme"]} if known else {}

    reply = shared.send(event(method, "/" + "/".join(path), query, headers | who, body))

    assert reply.status < 500


# Faults
