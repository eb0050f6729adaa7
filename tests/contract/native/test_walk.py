"""Every route without credentials, with false ones, without the scope; every path with every other method."""

from __future__ import annotations

import base64

import pytest

from sweephand.server.facades.native.routes import ROUTES
from tests.contract.calls import CANARY, basic
from tests.contract.native import everything
from tests.contract.native.api import check_problem
from tests.contract.native.everything import furnish, send, title
from tests.contract.native.test_tenancy import FORM
from tests.template.cloudformation import raw_template

OPEN = {
    "GET /v1/health",
    "GET /v1/openapi.json",
    "POST /oauth/token",
    "GET /.well-known/jwks.json",
    "GET /.well-known/openid-configuration",
    "GET /problems",
    "GET /problems/{problem}",
}
METHODS = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "get ",
    "",
    "X" * 500,
]
CLOSED = [route for route in ROUTES.all if title(route) not in OPEN]
FALSE = {
    "none": None,
    "empty": "",
    "unknown": basic("acme.nobody", f"{CANARY}-x"),
    "unknown tenant": basic("nobody.x", f"{CANARY}-x"),
    "false secret": basic("provider.admin", f"{CANARY}-x"),
    "no colon": "Basic " + base64.b64encode(b"acme").decode(),
    "no base64": "Basic ***",
    "half base64": "Basic YWNtZ",
    "no UTF-8": "Basic " + base64.b64encode(b"\xff\xfe:x").decode(),
    "control character": "Basic " + base64.b64encode(b"acme.x:\x00").decode(),
    "key forging": basic("acme#CRED%23.x", "x"),
    "dots": basic("acme.x.y", "x"),
    "no token": "Bearer",
    "empty token": "Bearer ",
    "false token": "Bearer a.b.c",
    "none token": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhY21lIn0.",
    "digest": 'Digest username="acme"',
    "two": "Basic YTpi, Basic YTpi",
    "blank before": " " + basic("acme.x", "x"),
    "beyond ASCII": "Basic \u00fc\ud83d\ude00",
    "surrogate": "Basic \ud800",
    "long": "Bearer " + "A" * 100_000,
    "long client": basic("a" * 400 + ".x", "x"),
}


@pytest.fixture(scope="module")
def things(shared):
    return furnish(shared, "acme")


@pytest.mark.parametrize("name", FALSE)
def test_every_protected_route_refuses_false_credentials(shared, things, name):
    headers = {} if FALSE[name] is None else {"authorization": FALSE[name]}

    with shared.unchanged():
        for route in CLOSED:
            reply = send(shared, route, things, caller=None, headers=headers)
            assert (reply.status, reply.code) == (401, "UNAUTHENTICATED"), title(route)
            assert reply.headers["www-authenticate"].startswith("Basic ")


def test_only_the_intended_routes_are_public():
    assert {title(route) for route in ROUTES.all if route.scope is None} == OPEN


def test_public_routes_answer_without_credentials_in_their_own_form(shared):
    health, description = (shared.get(path, caller=None) for path in ("/v1/health", "/v1/openapi.json"))
    token = shared("POST", "/oauth/token", caller=None, raw="grant_type=client_credentials", headers=FORM)

    assert (health.status, description.status) == (200, 200)
    assert (token.status, token.json["error"]) == (401, "invalid_client")


@pytest.mark.parametrize(
    "path", ["/v1/nowhere", "/", "", "/v1", "/v1/", "/v2/jobs", "/oauth", "/v1/jobs/", "//v1/jobs"]
)
def test_unknown_paths_and_methods_reveal_nothing_to_strangers(shared, path):
    for method in METHODS:
        assert shared(method, path, caller=None).status == 401
        reply = shared(method, path)
        assert reply.status == 404


def test_the_consoles_address_with_a_trailing_slash_leads_to_the_console(shared):
    reply = shared("GET", "/console/", caller=None, query={"as": "acme"})

    assert (reply.status, reply.headers["location"]) == (302, "/console?as=acme")


def test_a_path_without_its_version_is_refused_with_the_full_path(shared):
    reply = shared.get("/jobs")

    assert (reply.status, reply.code) == (404, "NOT_FOUND")
    assert reply.json["detail"] == "no such path: /jobs; did you mean /v1/jobs?"


PATHS = sorted({route.path for route in ROUTES.all})


@pytest.mark.parametrize("path", PATHS)
def test_an_unsupported_method_is_405_with_the_supported_ones(shared, things, path):
    own = {route.method for route in ROUTES.all if route.path == path}
    own |= {"HEAD"} if "GET" in own else set()
    where = path.format(**things.names)

    with shared.unchanged():
        for method in METHODS:
            if method.upper() not in own:
                stranger, reply = shared(method, where, caller=None), shared(method, where)
                assert stranger.status == 401
                assert reply.status == 405, method
                assert set(reply.headers["allow"].split(", ")) == own


def test_every_route_of_the_code_is_in_the_template(shared):
    events = raw_template()["Resources"]["ApiFunction"]["Properties"]["Events"].values()
    templates = {event["Properties"].get("Path", "$default") for event in events if event["Type"] == "HttpApi"}
    greedy = tuple(path.removesuffix("{proxy+}") for path in templates if path.endswith("{proxy+}"))

    assert {event["Properties"].get("Method", "ANY") for event in events} == {"ANY", "GET", "PUT"}
    for route in ROUTES.all:
        assert route.path in templates or route.path.startswith(greedy), route.path


def test_every_route_of_the_template_leads_to_this_facade(shared):
    for path in ("/v1/health", "/oauth/token"):
        assert shared("OPTIONS", path).status == 405


# Queries and headers of a route


@pytest.mark.parametrize("route", CLOSED, ids=title)
def test_an_unknown_parameter_is_refused(shared, things, route):
    with shared.unchanged():
        for query in ("x=1", "x", "limit=1&x=1"):
            reply = send(shared, route, things, query=query)
            assert (reply.status, reply.code) == (400, "INVALID_QUERY"), query


@pytest.mark.parametrize("route", everything.with_body(), ids=title)
def test_a_body_needs_its_content_type_and_may_be_missing_only_where_it_is_optional(shared, things, route):
    with shared.unchanged():
        for kind in ("", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "json", "\ud800"):
            reply = send(shared, route, things, headers={"content-type": kind}, body={"x": 1})
            assert (reply.status, reply.code) == (415, "NOT_JSON"), kind
        if route.body == "required":
            for kind in ({}, {"content-type": "application/json"}):
                reply = send(shared, route, things, headers=kind, body=None)
                assert (reply.status, reply.code) == (400, "INVALID_JSON")
        if route.method != "PATCH":
            merge = {"content-type": "application/merge-patch+json"}
            assert send(shared, route, things, headers=merge).status == 415


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8", "application/json;x"])
def test_parameters_of_the_content_type_are_ignored(shared, kind):
    preview = {"every": "PT1H"}

    assert shared("POST", "/v1/schedules:preview", preview, headers={"content-type": kind}).status == 200


def test_every_refusal_is_a_problem_document(shared):
    reply = shared.get("/v1/nowhere")

    check_problem(reply, reply.headers["x-request-id"])
    assert reply.headers["content-type"] == "application/problem+json"
