"""A request for every route that it would take: what the walks and the hostile tests begin from."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from sweephand.domain.failure import signature_of
from sweephand.domain.run import State
from sweephand.server.facades.http import Route
from sweephand.server.facades.native.routes import ROUTES
from sweephand.server.flow.errors import failures
from sweephand.server.store.dynamo.expressions import assign
from sweephand.server.store.dynamo.table import RunItem
from sweephand.server.store.runs import ledger
from tests.contract.calls import CANARY, Reply
from tests.contract.native.api import JOB, Api, example

UNKNOWN = "01a400f6-36fa-71e9-9550-323b38da5e82"
QUOTA = {"maxSchedules": 500, "maxJobs": 400, "minIntervalSeconds": 60, "runsPerMinute": 300, "maxDescendants": 20}
OTHER = "00000000-0000-7000-8000-000000000001"
"""The members of a body: the tenant's other job."""
NO_RUN = "00000000-0000-7000-8000-000000000000_00000000-0000-8000-8000-000000000000"
MESSAGE = "its message"
"""Stands in a body for the message of the run that a worker holds."""
FORM = {"grant_type": "client_credentials", "scope": "jobs:read", "client_id": "acme.x", "client_secret": "x"}
SCHEDULE = {
    "name": "hourly",
    "active": True,
    "every": "P1M",
    "align": "start",
    "timezone": "Europe/Berlin",
    "dstGap": "skip",
    "dstOverlap": "both",
    "monthOverflow": "next",
    "startTime": "2027-03-02T00:00:00Z",
    "endTime": "2028-05-01T00:00:00Z",
    "count": 7,
    "jitterSeconds": 5,
    "calendars": [],
    "payload": {"a": [1, None]},
    "hooks": {
        "onFailure": {
            "type": "http",
            "url": "https://example.org/own",
            "authentication": {"type": "bearer", "token": f"{CANARY}-token"},
            "payload": {"o": 1},
        }
    },
    "policies": {"misfire": {"type": "all", "ratePerMinute": 5}, "keepAnswer": "all", "onCreate": "run_now"},
}

WITHHELD = {"withheldScopes": ["tasks:write"]}
OAUTH = {
    "type": "oauth2",
    "tokenUrl": "https://example.org/token",
    "clientId": "me",
    "secret": f"{CANARY}-secret",
    "scope": "a b",
}


def job() -> dict[str, Any]:
    """Returns the example with a secret and every member that this version carries out."""
    body = example()
    body["description"] = "text"
    body["startTime"], body["endTime"] = "2027-03-01T00:00:00Z", "2027-12-01T00:00:00Z"
    body["action"]["authentication"] = {"type": "basic", "username": "me", "password": f"{CANARY}-password"}
    body["errorAction"] |= {"authentication": OAUTH, "body": "text"}
    body["hooks"] = {
        "onSuccess": {
            "type": "http",
            "url": "https://example.org/done",
            "authentication": dict(OAUTH),
            "payload": {"d": 1},
        },
        "onMissed": {"type": "event", "detailType": "late"},
    }
    body["schedules"][1] = copy.deepcopy(SCHEDULE)
    return body


PREVIEW = {
    name: value for name, value in SCHEDULE.items() if name not in {"name", "active", "payload", "hooks", "policies"}
}
COLLECTION = {"name": "new", "quota": {"maxJobs": 5, "maxRunsPerJob": None, "minIntervalSeconds": 60}}
CALENDAR = {
    "name": "new",
    "description": "text",
    "timezone": "Europe/Berlin",
    "dates": ["12-25", "2027-03-26"],
    "ranges": [
        {"from": "2027-07-01", "to": "2027-07-14"},
        {"from": "2027-12-24T12:00:00Z", "to": "2028-01-02T00:00:00Z"},
    ],
    "weekly": [{"days": ["SAT", "SUN"]}, {"days": ["FRI"], "from": "16:00", "to": "24:00"}],
}
FLOW_KEY = {
    "name": "new",
    "description": "text",
    "rate": {"limit": 10, "periodSeconds": 60},
    "parallelism": 3,
    "circuit": {"enabled": True, "failures": 7, "probeSeconds": 9},
}
PATCH = {
    "description": "new",
    "action": {"headers": {"X-B": "c"}, "payload": {"s": 2}},
    "policies": {"overlap": "allow"},
}
BODIES: Mapping[str, Any] = {
    "POST /v1/jobs": job(),
    "PUT /v1/jobs": {name: value for name, value in job().items() if name != "name"},
    "PUT /v1/jobs/{job}": {name: value for name, value in job().items() if name != "schedules"},
    "PATCH /v1/jobs/{job}": PATCH,
    "POST /v1/jobs/{job}/run": {"scheduleId": None},
    "POST /v1/jobs/{job}/pause": {"note": "text"},
    "POST /v1/jobs/{job}/schedules": SCHEDULE | {"name": "new"},
    "PUT /v1/jobs/{job}/schedules/{schedule}": SCHEDULE | {"name": "another"},
    "PATCH /v1/jobs/{job}/schedules/{schedule}": {
        "payload": {"s": 1},
        "hooks": {"onMissed": {"type": "event", "detailType": "late"}},
        "policies": {"keepAnswer": "none"},
    },
    "POST /v1/schedules:preview": PREVIEW | {"after": "2027-03-01T00:00:00Z", "limit": 3},
    "POST /v1/messages": {
        "action": {
            "type": "http",
            "url": "https://example.org/mail",
            "authentication": {"type": "bearer", "token": f"{CANARY}-token"},
            "retry": {"type": "fixed"},
        },
        "collection": "default",
        "name": "reminder",
        "resourceId": "customer-4711",
        "tags": ["mail"],
        "payload": {"m": 1},
        "headers": {"X-B": "c"},
        "at": "2027-06-01T09:00:00",
        "timezone": "Europe/Berlin",
        "onPastStart": "run_now",
        "maxLatenessSeconds": 600,
        "policies": {"keepAnswer": "all"},
    },
    "POST /v1/runs/{run}/rerun": {"payload": {"s": 3}, "headers": {"X-B": "d", "X-C": None}},
    "POST /v1/errors:redrive": {"runs": [NO_RUN], "ratePerMinute": 6, "dryRun": False} | {"expectedCount": 0},
    "POST /v1/runs:export": {"format": "csv", "state": "ERROR", "kind": "manual"},
    "POST /v1/errors/{error}/notes": {"text": "text"},
    "POST /v1/errors/{error}/archive": {"reason": "text"},
    "POST /v1/errors/{error}/runs/{failed_run}/archive": {"reason": "text"},
    "PUT /v1/error-redirects/{job}": {"to": OTHER},
    "PUT /v1/runs/{run}/result": {"success": True, "message": "text"},
    "POST /v1/runs/{run}/nack": {"attempt": 1},
    "POST /v1/runs/{run}/claim": {
        "message": MESSAGE,
        "owner": "me",
        "application": "billing",
        "leaseSeconds": 3_600,
        "sentAt": "2027-03-01T00:00:00Z",
    },
    "POST /v1/runs/{run}/heartbeat": {"owner": "me", "leaseSeconds": 3_600},
    "POST /v1/runs/{run}/settle": {"owner": "me", "attempt": 1, "outcome": "success", "message": "text"},
    "PUT /v1/applications/{application}": {"version": "2"},
    "POST /v1/collections": COLLECTION,
    "PUT /v1/collections/{collection}": COLLECTION | {"name": "spare"},
    "PATCH /v1/collections/{collection}": {"quota": {"maxJobs": 7}},
    "PUT /v1/job-sets/{job_set}": {"jobs": [{"key": "new", "was": "old", **job(), "name": "new"}]},
    "PUT /v1/consumers/{consumer}/lease": {"holder": "own", "seconds": 60},
    "POST /v1/consumers/{consumer}/start": {"holder": "own"},
    "POST /v1/calendars": CALENDAR,
    "PUT /v1/calendars/{calendar}": CALENDAR | {"name": "spare"},
    "POST /v1/flow-keys": FLOW_KEY,
    "PUT /v1/flow-keys/{flow_key}": FLOW_KEY | {"name": "spare"},
    "PATCH /v1/flow-keys/{flow_key}": {"rate": {"limit": 5, "periodSeconds": 9}, "circuit": {"enabled": False}},
    "POST /v1/flow-keys/{flow_key}/pause": {"note": "text"},
    "POST /v1/credentials": {"name": "new", "scopes": ["admin"]},
    "POST /v1/credentials/{credential}/rotate": {"overlapSeconds": 60},
    "POST /v1/tenants": {"name": "initech", "description": "text", "quota": QUOTA} | WITHHELD,
    "PATCH /v1/tenants/{tenant}": {"description": "text", "quota": QUOTA} | WITHHELD,
}
"""Bodies by route; one that takes a body and is not here takes {}."""
OF_WORKERS = ("/claim", "/heartbeat", "/settle")


QUERIES: Mapping[str, str] = {
    "GET /v1/errors:summary": "groupBy=job",
    "GET /v1/timeline:changes": "since=1800000000000-1800000000000-0000000000000000",
    "PUT /v1/jobs": "name=by-name",
    "DELETE /v1/jobs": "tag=nothing&dryRun=true",
    **{f"POST /v1/jobs:{verb}": "tag=nothing&dryRun=true" for verb in ("activate", "deactivate", "pause", "resume")},
    "DELETE /v1/consumers/{consumer}/lease": "holder=own",
    "DELETE /v1/job-sets/{job_set}/owner": "owner=own",
    "DELETE /v1/consumers/{consumer}": "force=true",
}
"""Routes that are refused without one."""


def title(route: Route) -> str:
    return f"{route.method} {route.path}"


def body_of(route: Route) -> Any:
    """Returns a fresh copy of a body that the route takes, or None where it reads none."""
    return None if route.body in {"none", "form"} else copy.deepcopy(BODIES.get(title(route), {}))


@dataclass(frozen=True)
class Things:
    """One of each of a tenant: what paths name."""

    names: Mapping[str, str]

    def path(self, route: Route, **other: str) -> str:
        return route.path.format(**{name: quote(value, safe="") for name, value in {**self.names, **other}.items()})


def furnish(api: Api, tenant: str) -> Things:
    """Makes a job with its schedules and secrets, an open run, one that failed, long work, a redirect to another job; a
    spare collection, calendar, flow key and credential.
    """
    made = api.create(job(), caller=tenant)
    run = api("POST", f"/v1/jobs/{made['id']}/run", caller=tenant).json["runId"]
    assert api("POST", "/v1/collections", {"name": "spare"}, caller=tenant).status == 201
    key = api("POST", "/v1/collections/spare/signing-keys", caller=tenant).id
    credential = api("POST", "/v1/credentials", {"scopes": ["admin"]}, caller=tenant).json["clientId"]
    names = {"job": made["id"], "schedule": made["schedules"][1]["id"], "run": run}
    assert api("POST", "/v1/calendars", {"name": "spare"}, caller=tenant).status == 201
    names |= {"calendar": "spare", "version": "1"}
    _, to_repeat = failed(api, tenant, made["id"])
    work = api("POST", "/v1/errors:redrive", {"runs": [to_repeat]}, caller=tenant).json
    names["operation"] = work["operation"]["id"]
    names["leaving"] = f"{tenant}-leaving"  # a tenant without subscriptions
    assert api("POST", "/v1/tenants", {"tenant": names["leaving"]}, caller="provider").status == 201
    for names["application"] in ("invoicing", "reports"):
        place = f"/v1/tenants/{tenant}/subscriptions/{names['application']}"
        assert api("PUT", place, caller="provider").status == 200
    names["error"], names["failed_run"] = failed(api, tenant, made["id"])
    names["other"] = api.create(name="other", schedules=[], caller=tenant)["id"]
    redirect = api("PUT", f"/v1/error-redirects/{made['id']}", {"to": names["other"]}, caller=tenant)
    assert redirect.status == 200
    rate = {"limit": 10, "periodSeconds": 60}
    assert api("POST", "/v1/flow-keys", {"name": "spare", "rate": rate}, caller=tenant).status == 201
    jobs = [{"key": "kept", "name": "kept", **JOB}]
    assert api("PUT", "/v1/job-sets/spare", {"jobs": jobs}, caller=tenant).status == 200
    assert api("PUT", "/v1/consumers/spare/lease", {"holder": "own"}, caller=tenant).status == 200
    assert api("PUT", f"/v1/applications/{names['application']}", caller=tenant).status == 200
    names["claimed"], names["pointer"] = claimed(api, tenant)
    names["message"] = api("POST", "/v1/messages", BODIES["POST /v1/messages"], caller=tenant).json["id"]
    names["waits"] = waiting(api, tenant)
    names |= {"flow_key": "spare", "job_set": "spare", "consumer": "spare", "problem": "not-found"}
    return Things({**names, "collection": "spare", "key": key, "credential": credential, "tenant": tenant})


def claimed(api: Api, tenant: str) -> tuple[str, str]:
    """Returns a run that a worker holds, and its message."""
    url = api("PUT", "/v1/applications/billing", caller=tenant).json["queueUrl"]
    action = {"type": "queue", "application": "billing", "task": "report", "payload": {"month": 7}}
    task = api.create(name="task", action=action, schedules=[], caller=tenant)
    run = api("POST", f"/v1/jobs/{task['id']}/run", caller=tenant).json["runId"]
    (message,) = api.stage.sqs.bodies(url)
    body = {**BODIES["POST /v1/runs/{run}/claim"], "message": message}
    assert api("POST", f"/v1/runs/{run}/claim", body, caller=tenant).json["verdict"] == "run"
    return run, message


def waiting(api: Api, tenant: str) -> str:
    """Returns a run that waits for its result, as its executor would have left it, and is tried again without one."""
    action = {**JOB["action"], "outcome": {"on202": "wait"}, "retry": {"type": "fixed"}}
    policies = {"onNoResult": "retry"}
    waits = api.create(name="waits", action=action, policies=policies, schedules=[], caller=tenant)
    run_id: str = api("POST", f"/v1/jobs/{waits['id']}/run", caller=tenant).json["runId"]
    table = api.stage.world.table
    run = ledger.read(table, tenant, *run_id.split("_"))
    assert run is not None
    table.update(*ledger.key_of(run), [assign(RunItem.state, State.ACK_RECVD.value)], RunItem.pk.exists())
    return run_id


def failed(api: Api, tenant: str, job_id: str) -> tuple[str, str]:
    """Makes a run that failed, as its executor would have recorded it: its group, and its id."""
    run_id = api("POST", f"/v1/jobs/{job_id}/run", caller=tenant).json["runId"]
    assert api("PUT", f"/v1/runs/{run_id}/result", {"success": False}, caller=tenant).status == 200
    run = ledger.read(api.stage.world.table, tenant, *run_id.split("_"))
    assert run is not None
    failures.noted(api.stage.world, run, None)
    return signature_of(run).id, run_id


def send(api: Api, route: Route, things: Things, *, caller: str | None = "", **more: Any) -> Reply:
    """Sends the route's request. caller "": the one who may."""
    if caller == "":
        caller = "provider" if route.scope == "provider:admin" else "acme"
    headers = dict(more.pop("headers", {}))
    if route.body == "form" and "raw" not in more:
        more["raw"] = urlencode(FORM)
        headers.setdefault("content-type", "application/x-www-form-urlencoded")
    other = {"tenant": things.names["leaving"]} if title(route) == "DELETE /v1/tenants/{tenant}" else {}
    if route.path.endswith("/nack"):
        other = {"run": things.names["waits"]}
    if route.path.endswith(OF_WORKERS):
        other = {"run": things.names["claimed"]}
    path = more.pop("path", None) or things.path(route, **other)
    more = {"query": QUERIES.get(title(route), ""), **more}
    body = more.pop("body", body_of(route))
    if isinstance(body, dict) and body.get("to") == OTHER:
        body = {**body, "to": things.names["other"]}
    if isinstance(body, dict) and body.get("message") == MESSAGE:
        body = {**body, "message": things.names["pointer"]}
    return api(route.method, path, body, caller=caller, headers=headers, **more)


def with_body() -> list[Route]:
    return [route for route in ROUTES.all if route.body in {"required", "optional"}]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the places of values in a body: the body itself, each member, each item, at every level."""
    yield path
    if isinstance(value, dict):
        for name, member in value.items():
            yield from places(member, (*path, name))
    elif isinstance(value, list):
        for n, item in enumerate(value):
            yield from places(item, (*path, n))


def replaced(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Returns a copy with `value` at `path`."""
    if not path:
        return value
    body = copy.deepcopy(body)
    there = body
    for step in path[:-1]:
        there = there[step]
    there[path[-1]] = value
    return body


def at(body: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        body = body[step]
    return body
