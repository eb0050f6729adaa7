"""The description of the API, held against the service: what it offers, refuses and promises, and how it is served.

The fixture of conftest.py checks every exchange of these tests, and of all others.
"""

from __future__ import annotations

import copy
import gzip
import json
from typing import Any
from urllib.parse import urlencode

import pytest

from sweephand.server.facades.native.document import FILE
from sweephand.server.facades.native.routes import ROUTES
from tests.contract.calls import event
from tests.contract.native import described, everything
from tools.openapi.document import statuses
from tools.openapi.examples import REQUESTS
from tools.openapi.schemas import SCHEMAS

PATH = "/v1/openapi.json"
WRITES = [route for route in ROUTES.all if route.method != "GET" and route.scope]


def _route(route):
    return f"{route.method} {route.path}"


OWN_TESTS = {"Authentication", "ScheduleDraft", "Recurrence", "Time", "CalendarUses"}
"""Schemas whose members tests of their own go through."""


def _leaves(name: str, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Yields (path, value) for all choices of a request's schema and all ends of its ranges."""
    found: list[tuple[tuple[str, ...], Any]] = []
    if "properties" not in SCHEMAS[name]:  # the kinds of actions: HTTP stands first, the others have tests of their own
        return _leaves(SCHEMAS[name]["oneOf"][0]["$ref"].rpartition("/")[2], path)
    for member, given in SCHEMAS[name]["properties"].items():
        schema = next((each for each in given.get("anyOf", ()) if "$ref" in each), given)
        here = (*path, member)
        if "$ref" in schema:
            inner = schema["$ref"].rpartition("/")[2]
            if inner not in OWN_TESTS and member != "errorAction":
                found += _leaves(inner, here)
        values = [*schema.get("enum", ()), *(schema[end] for end in ("minimum", "maximum") if end in schema)]
        found += [(here, value) for value in values]
    return found


def _with(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Returns a copy in which `value` is at `path`."""
    body = copy.deepcopy(body)
    there = body
    for name in path[:-1]:
        if isinstance(there, dict):
            there.setdefault(name, {})
        there = there[name]
    there[path[-1]] = value
    return body


ONCE = {"at": "2027-04-01T09:00:00Z"}
NIGHTLY = {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}
RETRIED = {**REQUESTS["JobDraft"]["least"]["action"], "retry": {"type": "fixed"}}
DELAYED = {"type": "exponential"}
COMPANY: dict[tuple[str, ...], Any] = {
    **{("retry", name): DELAYED for name in ("maxRetries", "delaySeconds", "maxDelaySeconds")},
    **{("retry", name): DELAYED for name in ("retryOn", "neverOn", "maxAgeSeconds")},
    ("retry", "immediate"): {"type": "two_level", "delayed": 0},
    ("retry", "delayed"): {"type": "two_level", "immediate": 0},
    ("retry", "increaseSeconds"): {"type": "two_level"},
    ("schedules", 0, "policies", "onPastStart"): ONCE,
    ("schedules", 0, "policies", "onEnable"): ONCE,
    ("schedules", 0, "dstGap"): NIGHTLY,
    ("schedules", 0, "dstOverlap"): NIGHTLY,
    ("policies", "onNoResult"): RETRIED,
}
"""Companions of a member that make it act."""


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(pytest.param(path, value, id=f"{'.'.join(path)}={value}") for path, value in _leaves("JobDraft")),
        *(
            pytest.param(("schedules", 0, *path), value, id=f"schedule.{'.'.join(path)}={value}")
            for path, value in _leaves("ScheduleDraft")
            if path != ("policies", "afterEnd")  # of a job as a whole
        ),
    ],
)
def test_values_that_a_schema_allows_are_accepted(shared, path, value):
    body = {**REQUESTS["JobDraft"]["least"], "schedules": [{"every": "PT1H"}]}
    for member, company in COMPANY.items():
        if path[-len(member) :] == member:
            whole = {id(ONCE): path[:2], id(NIGHTLY): path[:2], id(RETRIED): ("action",)}
            body = _with(body, whole.get(id(company), path[:-1]), company)
    if path[-1] == "onNoResult":  # it acts on a run that waits for a result and has an attempt left
        body["action"] = {**body["action"], "retry": {"type": "fixed"}, "outcome": {"on202": "wait"}}
    body = _with(body, path, value)

    reply = shared("POST", "/v1/jobs", body)

    assert reply.status == 201, reply.text


STRANGE = (None, True, -1, "x" * 5_000, [], {"x": 1})


def _places(body: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(body, dict):
        inner = [(*path, name) for name in body] + [(*path, "stranger")]
        return inner + [place for name, each in body.items() for place in _places(each, (*path, name))]
    if isinstance(body, list):
        return [place for n, each in enumerate(body) for place in [(*path, n), *_places(each, (*path, n))]]
    return []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("route", "schema"),
    [
        ("POST /v1/jobs", "JobDraft"),
        ("PUT /v1/jobs/{job}", "JobReplacement"),
        ("PATCH /v1/jobs/{job}", "JobPatch"),
        ("POST /v1/jobs/{job}/schedules", "ScheduleDraft"),
        ("PUT /v1/jobs/{job}/schedules/{schedule}", "ScheduleDraft"),
        ("PATCH /v1/jobs/{job}/schedules/{schedule}", "SchedulePatch"),
        ("POST /v1/schedules:preview", "PreviewRequest"),
        ("POST /v1/jobs/{job}/pause", "PauseRequest"),
        ("POST /v1/collections", "CollectionDraft"),
        ("PATCH /v1/collections/{collection}", "CollectionPatch"),
        ("PATCH /v1/flow-keys/{flow_key}", "FlowKeyPatch"),
        ("POST /v1/credentials", "CredentialDraft"),
    ],
)
def test_values_that_a_schema_forbids_are_refused(shared, route, schema):
    """The client of these tests fails where a body is accepted that the schema does not know."""
    method, path = route.split()
    names = _names(shared)
    refused = 0
    for example in REQUESTS[schema].values():
        for place in _places(example):
            for value in STRANGE:
                reply = shared(method, path.format(**names), _with(example, place, value))
                assert reply.status in {200, 201, 409, 422}, (place, value, reply.text)
                refused += reply.status == 422
    assert refused > 10


def _consumer(api, name: str) -> str:
    """Makes a consumer whose lease the example of a request may prolong."""
    assert api("PUT", f"/v1/consumers/{name}/lease", {"holder": "host-1"}).status == 200
    return name


def _names(api) -> dict[str, str]:
    """Makes something of each kind that a path can name; a run that is open."""
    job = api.create()
    collection = f"c{api.answers}"
    assert api("POST", "/v1/collections", {"name": collection}).status == 201
    assert api("POST", "/v1/calendars", {"name": collection}).status == 201
    assert api("POST", "/v1/calendars", {"name": "holidays"}).status in {201, 409}  # an example names it
    selection = {"runs": [everything.failed(api, "acme", job["id"])[1]]}
    assert api("POST", "/v1/flow-keys", {"name": collection}).status == 201
    return {
        **dict(zip(("error", "failed_run"), everything.failed(api, "acme", job["id"]), strict=True)),
        "operation": api("POST", "/v1/errors:redrive", selection).json["operation"]["id"],
        "calendar": collection,
        "flow_key": collection,
        "job_set": collection,
        "consumer": _consumer(api, collection),
        "version": "1",
        "job": job["id"],
        "schedule": job["schedules"][0]["id"],
        "run": api("POST", f"/v1/jobs/{job['id']}/run").json["runId"],
        "collection": collection,
        "credential": api("POST", "/v1/credentials", {}).json["clientId"],
        "key": api("POST", f"/v1/collections/{collection}/signing-keys").id,
        "tenant": api("POST", "/v1/tenants", {"tenant": f"t{api.answers}"}, caller="provider").json["tenant"],
        "application": "invoicing",
        "message": api("POST", "/v1/messages", everything.BODIES["POST /v1/messages"]).json["id"],
        "problem": "not-found",
    }


def _send(shared, route, **headers):
    body = None if route.body == "none" else next(iter(REQUESTS[route.takes].values()))
    caller = "provider" if route.scope == "provider:admin" else "acme"
    query = urlencode({name: (body or {}).get(name, "x") for name in route.required})
    return shared(route.method, route.path.format(**_names(shared)), body, query=query, caller=caller, headers=headers)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("route", WRITES, ids=_route)
def test_the_described_headers_of_a_change_are_those_it_uses(shared, route):
    # One of another revision, and one that no key can be: who reads them refuses them.
    match = _send(shared, route, **{"if-match": '"999"'})
    key = _send(shared, route, **{"idempotency-key": "not one word"})

    assert (match.status == 412) == ("If-Match" in route.headers), match.text
    read = key.status == 400 and "Idempotency-Key" in key.text and "has no effect" not in key.text
    assert read == ("Idempotency-Key" in route.headers), key.text
    makes = route.method == "POST" and route.status in {201, 202}
    assert not makes or "Idempotency-Key" in route.headers


@pytest.mark.parametrize("route", [route for route in ROUTES.all if route.scope], ids=_route)
def test_a_route_needs_the_scope_that_its_description_states(shared, route):
    security = described.DOCUMENT["paths"][route.path][route.method.lower()]["security"]
    path = route.path.format(**_names(shared))

    nobody = shared(route.method, path, caller=None)

    by_token = [{"runToken": []}] if route.run_token else []
    assert security == [{kind: [scope]} for scope in route.scopes for kind in ("basic", "bearer")] + by_token
    assert (nobody.status, {401, 403} <= {*statuses(route)}) == (401, True)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda answer, body: body.update(stranger=1), id="stranger"),
        pytest.param(lambda answer, body: body.pop("stateReason"), id="missing"),
        pytest.param(lambda answer, body: body["totals"].update(open="1"), id="type"),
        pytest.param(lambda answer, body: body["schedules"][0].update(nextRunAt="tomorrow"), id="inner"),
        pytest.param(lambda answer, body: answer.update(statusCode=418), id="status"),
        pytest.param(lambda answer, body: answer["headers"].update({"x-new": "1"}), id="header"),
        pytest.param(lambda answer, body: answer["headers"].update({"etag": "1"}), id="form of a header"),
        pytest.param(lambda answer, body: answer["headers"].update({"content-type": "text/html"}), id="media type"),
    ],
)
def test_a_false_document_is_detected(shared, spoil):
    job = shared.create()
    request = event("GET", f"/v1/jobs/{job['id']}", "include=schedules", {"authorization": shared.credentials["acme"]})
    answer = shared.facade.handle(request, "x")
    described.check(request, answer)

    body = json.loads(answer["body"])
    answer = {**answer, "headers": dict(answer["headers"])}
    spoil(answer, body)
    answer["body"] = json.dumps(body)

    with pytest.raises(AssertionError):
        described.check(request, answer)


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ("", 400, "invalid_request"),
        ("grant_type=password", 400, "unsupported_grant_type"),
        ("grant_type=client_credentials&scope=nonsense", 400, "invalid_scope"),
        ("grant_type=client_credentials&client_id=acme.x&client_secret=x", 401, "invalid_client"),
    ],
)
def test_the_errors_of_oauth_are_described(shared, form, status, error):
    caller = None if "client_id" in form else "acme"
    headers = {"content-type": "application/x-www-form-urlencoded"}

    reply = shared("POST", "/oauth/token", raw=form, caller=caller, headers=headers)

    assert (reply.status, reply.json["error"]) == (status, error)


def test_the_refusals_of_providers_are_described(shared):
    """Refusals that no tenant meets: a name that is taken, and tenants that are not there."""
    taken = shared("POST", "/v1/tenants", {"tenant": "acme", "description": "another"}, caller="provider")
    stranger = {"caller": "provider", "headers": {"sweephand-tenant": "nobody"}}

    assert (taken.status, taken.code) == (409, "NAME_TAKEN")
    assert shared("POST", "/v1/collections", {"name": "x"}, **stranger).status == 404
    assert shared("POST", "/v1/credentials", {}, **stranger).status == 404
    for path in ("/v1/jobs", "/v1/runs", "/v1/collections", "/v1/credentials"):
        assert shared.get(path, **stranger).status in {200, 404}


# That it is served


def _read(api, method="GET", **headers):
    return api.facade.handle(event(method, PATH, headers=headers), "request")


def test_anybody_can_read_the_document(shared):
    reply = _read(shared)

    assert (reply["statusCode"], reply["headers"]["content-type"]) == (200, "application/json")
    assert reply["body"] == FILE.read_text(encoding="utf-8")
    assert reply["headers"]["cache-control"] == "public, max-age=300"
    assert len(gzip.compress(reply["body"].encode())) < 100_000, "it is sent compressed"


def test_a_client_with_a_current_copy_is_answered_304(shared):
    tag = _read(shared)["headers"]["etag"]

    for given in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        reply = _read(shared, **{"if-none-match": given})
        assert (reply["statusCode"], reply["body"], reply["headers"]["etag"]) == (304, "", tag)
    assert _read(shared, **{"if-none-match": '"other"'})["statusCode"] == 200


def test_a_head_request_for_the_document_gets_only_headers(shared):
    head, get = _read(shared, "HEAD"), _read(shared)

    assert (head["statusCode"], head["body"], head["headers"]) == (200, "", get["headers"])


def test_the_document_accepts_no_parameters_and_no_other_method(shared):
    assert shared.get(PATH, query="x=1").status == 400
    assert shared("POST", PATH).headers["allow"] == "GET, HEAD"
