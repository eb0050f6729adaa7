"""Which requests each scope opens, and which scopes nobody can grant to himself."""

from __future__ import annotations

import pytest

from sweephand.server.flow.operations.verbs import KINDS
from sweephand.server.security.caller import TENANT_SCOPES
from tests.contract.calls import CANARY
from tests.contract.native.everything import body_of, furnish, send, title
from tests.contract.native.test_walk import CLOSED
from tests.support.ecs import ACTION

OPERATIONS = {"jobs:read", *(kind.scope for kind in KINDS.values())}
"""A caller who may begin long work of some kind can find it again and switch it."""
BY_WORKERS = {"claim", "heartbeat", "settle"}
RERUN = "POST /v1/runs/{run}/rerun"


def renamed(route, name):
    """Returns the route's body under a name that is free, where it may have one; a rerun without an edit."""
    body = body_of(route)
    if title(route) == RERUN:
        return {}
    by_name = route.path in {"/v1/collections/{collection}", "/v1/calendars/{calendar}", "/v1/flow-keys/{flow_key}"}
    takes_a_name = body and "name" in body and not by_name
    return body | {"name": name} if takes_a_name else body


def scope_by_the_description(route):
    """Returns the scope that the description of the API names."""
    path, verb = route.path, route.path.rpartition("/")[2]
    if path.startswith("/v1/tenants"):
        return {"provider:admin"}
    if path.startswith("/v1/credentials"):
        return {"admin"}
    if "/signing-keys" in path and route.method != "GET":
        return {"admin"}
    if path == "/v1/schedules:preview":
        return {"jobs:read", "jobs:write"}
    if path.startswith("/v1/operations"):
        return OPERATIONS
    if route.method == "GET" or path == "/v1/runs:export":
        return {"jobs:read"}
    if path.startswith("/v1/error"):
        return {"errors:edit"}
    if path.startswith("/v1/consumers/"):
        return {"jobs:write"} if path.endswith("{consumer}") else {"runs:write"}
    of_nouns = {"messages": {"messages:write", "jobs:write"}, "consumers": {"runs:write"}}
    if (noun := path.split("/")[2]) in of_nouns:
        return of_nouns[noun]
    return {"runs:write"} if verb in {"run", "rerun", "cancel", "result", "nack", *BY_WORKERS} else {"jobs:write"}


def bearer(api, credential, scopes):
    """Returns a token of some of the credential's scopes."""
    door = api.facade.door()
    now = api.stage.world.clock.now()
    token, _ = door.issue(door.identify(api.credentials[credential], now), now, scopes)
    return {"authorization": f"Bearer {token}"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("route", CLOSED, ids=title)
def test_a_route_needs_exactly_its_own_scope(api, route):
    things = furnish(api, "acme")
    needed = scope_by_the_description(route)
    own, others = ("provider", set()) if needed == {"provider:admin"} else ("acme", TENANT_SCOPES - needed)

    with api.unchanged():
        refused = send(api, route, things, caller=None, headers=bearer(api, "acme", others or TENANT_SCOPES))
    assert (refused.status, refused.code) == (403, "SCOPE_MISSING")
    assert set(route.scopes) == needed
    if title(route) == RERUN:
        assert api("PUT", f"/v1/runs/{things.names['run']}/result", {"success": False}).status == 200
    enough = needed
    if needed == OPERATIONS:  # that which is furnished runs again what failed
        enough = {"errors:edit", "jobs:read"} if route.method == "GET" else {"errors:edit"}
    for n, scope in enumerate(sorted(enough)):
        reply = send(
            api, route, things, caller=None, headers=bearer(api, own, [scope]), body=renamed(route, f"new-{n}")
        )
        assert reply.status < 300, reply.text


def test_the_provider_may_do_everything_on_a_tenants_behalf(api):
    things = furnish(api, "acme")
    last = [route for route in CLOSED if route.method == "DELETE"]

    for n, route in enumerate([each for each in CLOSED if each not in last] + last[::-1]):
        headers = {} if route.scope == "provider:admin" else {"sweephand-tenant": "acme"}
        if title(route) == "POST /v1/runs/{run}/cancel":
            continue  # the run has its result by then
        reply = send(api, route, things, caller="provider", headers=headers, body=renamed(route, f"new-{n}"))
        assert reply.status < 300, (title(route), reply.text)


def test_changing_long_work_needs_the_scope_for_errors_too(api):
    things = furnish(api, "acme")
    assert api("PUT", f"/v1/runs/{things.names['run']}/result", {"success": False}).status == 200
    rerun, pause = f"/v1/runs/{things.names['run']}/rerun", f"/v1/operations/{things.names['operation']}/pause"

    with api.unchanged():
        edit = api("POST", rerun, {"payload": 1}, caller=None, headers=bearer(api, "acme", ["runs:write"]))
        switch = api("POST", pause, caller=None, headers=bearer(api, "acme", ["jobs:read"]))
    both = bearer(api, "acme", ["runs:write", "errors:edit"])

    assert {(edit.status, edit.code), (switch.status, switch.code)} == {(403, "SCOPE_MISSING")}
    assert api("POST", rerun, {"payload": 1}, caller=None, headers=both).status == 202


def test_a_caller_sees_only_the_operations_that_it_started(api):
    things = furnish(api, "acme")
    own = {"errors:edit": things.names["operation"]}
    own["jobs:read"] = api("POST", "/v1/runs:export", {}).id
    kept = [f"/v1/operations/{each}" for each in own.values()]

    for scope, seen in (("errors:edit", 1), ("jobs:write", 0), ("jobs:read", 2)):
        headers = bearer(api, "acme", [scope])
        listed = {each["id"] for each in api.get("/v1/operations", caller=None, headers=headers).json["items"]}
        statuses = [api.get(path, caller=None, headers=headers).status for path in kept]

        assert len(listed) == statuses.count(200) == seen
        assert statuses.count(403) == len(kept) - seen
        assert scope not in own or own[scope] in listed


def test_a_caller_who_deletes_a_tenant_sees_that_operation_without_another_scope(api):
    begun = api("POST", "/v1/tenants", {"tenant": "initech"}, caller="provider")
    only = bearer(api, "provider", ["provider:admin"])
    begun = api("DELETE", "/v1/tenants/initech", caller=None, headers=only)
    place = begun.headers["location"]

    assert begun.status == 202
    assert api.get(place, caller=None, headers=only).json["kind"] == "purge_tenant"
    assert [each["id"] for each in api.get("/v1/operations", caller=None, headers=only).json["items"]] == [begun.id]
    assert api("POST", f"{place}/pause", caller=None, headers=only).json["state"] == "PAUSED"
    assert api.get(place, caller=None, headers=bearer(api, "acme", TENANT_SCOPES)).status == 404


def test_a_tenant_cannot_extend_its_own_scopes(api):
    header = bearer(api, "acme", ["admin"])
    with api.unchanged():
        for scope in ("provider:*", "provider:admin"):
            assert api("POST", "/v1/credentials", {"scopes": [scope]}, caller=None, headers=header).status == 422
        assert api("POST", "/v1/tenants", {"name": "x"}, caller=None, headers=header).status == 403


# Tasks are code of the tenant's choice in the stack's own account

WITHOUT = sorted(TENANT_SCOPES - {"tasks:write"})
TASK = {**ACTION, "environment": {"PASSWORD": f"{CANARY}-of-a-task"}}
HTTP = {"type": "http", "url": "https://example.org/run"}


@pytest.fixture
def task(api):
    """A job that runs a task, made by who may."""
    return api.create({"action": {**TASK, "payload": {"n": 1}}, "errorAction": TASK})


def refused_for_its_scope(reply):
    return (reply.status, reply.code, "tasks:write" in reply.text) == (403, "SCOPE_MISSING", True)


@pytest.mark.parametrize("owner", ["action", "errorAction"])
def test_a_job_that_runs_a_task_needs_an_extra_scope(api, owner):
    body = {"action": HTTP, owner: TASK}
    without = bearer(api, "acme", WITHOUT)

    with api.unchanged():
        assert refused_for_its_scope(api("POST", "/v1/jobs", body, caller=None, headers=without))
    allowed = bearer(api, "acme", ["jobs:write", "tasks:write"])
    assert api("POST", "/v1/jobs", body, caller=None, headers=allowed).status == 201


@pytest.mark.parametrize("owner", ["action", "errorAction"])
@pytest.mark.parametrize(
    "change",
    [
        {"command": ["other"], "environment": {"PASSWORD": f"{CANARY}-new"}},
        {"environment": {"PASSWORD": f"{CANARY}-new"}},
        {"environment": {"PASSWORD": None}},
        {"memoryMiB": 4_096},
        {"payload": {"n": 2}},
        {"retry": {"type": "fixed"}},
        {"outcome": {"callbackTimeoutSeconds": 60}},
    ],
    ids=str,
)
def test_changing_a_task_action_needs_the_task_scope(api, task, owner, change):
    place, body = f"/v1/jobs/{task['id']}", {owner: change}

    with api.unchanged():
        refused = api("PATCH", place, body, caller=None, headers=bearer(api, "acme", WITHOUT))
    changed = api("PATCH", place, body, caller=None, headers=bearer(api, "acme", ["jobs:write", "tasks:write"]))

    assert refused_for_its_scope(refused), refused.text
    assert changed.status == 200, changed.text


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("PATCH", {"action": {**TASK, "taskDefinition": "fixed:7"}}),
        ("PATCH", {"errorAction": None}),
        ("PUT", {"action": HTTP}),
    ],
    ids=["another", "none", "http"],
)
def test_replacing_a_task_needs_the_task_scope(api, task, method, body):
    with api.unchanged():
        refused = api(method, f"/v1/jobs/{task['id']}", body, caller=None, headers=bearer(api, "acme", WITHOUT))

    assert refused_for_its_scope(refused), refused.text


def test_other_members_can_be_changed_without_the_task_scope(api, task):
    place, without = f"/v1/jobs/{task['id']}", bearer(api, "acme", ["jobs:read", "jobs:write", "runs:write"])
    read = api("GET", place, caller=None, headers=without)

    assert api("PATCH", place, {"description": "new"}, caller=None, headers=without).status == 200
    assert api("PUT", place, {**read.json, "tags": ["a"]}, caller=None, headers=without).status == 200
    assert api("POST", f"{place}/schedules", {"every": "PT1H"}, caller=None, headers=without).status == 201
    assert api("POST", f"{place}/run", caller=None, headers=without).status == 202
    assert api("DELETE", place, caller=None, headers=without).status == 204


def hooked(owner, **hooks):
    """Returns the members of a job of which it, or its schedule, has these hooks."""
    return {"hooks": hooks} if owner == "job" else {"schedules": [{"name": "a", "every": "PT1H", "hooks": hooks}]}


@pytest.mark.parametrize("owner", ["job", "schedule"])
def test_a_hook_that_runs_a_task_needs_the_task_scope_too(api, owner):
    body = {"action": HTTP, **hooked(owner, onFailure=TASK)}
    without = bearer(api, "acme", WITHOUT)

    with api.unchanged():
        assert refused_for_its_scope(api("POST", "/v1/jobs", body, caller=None, headers=without))
    made = api.create(body)
    place = f"/v1/jobs/{made['id']}"
    with api.unchanged():
        for hooks in ({"onFailure": {**TASK, "memoryMiB": 4_096}}, {}, {"onFailure": HTTP}):
            changed = {"action": HTTP, **hooked(owner, **hooks)}
            assert refused_for_its_scope(api("PUT", place, changed, caller=None, headers=without)), hooks
    patch = api("PATCH", place, {"description": "d"}, caller=None, headers=without)
    assert patch.status == 200, patch.text
    same = api.get(place, query="include=schedules").json
    assert api("PUT", place, same, caller=None, headers=without).status == 200
    allowed = bearer(api, "acme", ["jobs:write", "tasks:write"])
    assert api("PUT", place, {"action": HTTP, **hooked(owner)}, caller=None, headers=allowed).status == 200


def test_changing_a_schedules_hook_that_runs_a_task_needs_the_task_scope(api):
    made = api.create({"action": HTTP, **hooked("schedule", onFailure=TASK)})
    schedules = f"/v1/jobs/{made['id']}/schedules"
    place = f"{schedules}/{made['schedules'][0]['id']}"
    without = bearer(api, "acme", WITHOUT)

    with api.unchanged():
        for method, where, body in (
            ("POST", schedules, {"every": "PT2H", "hooks": {"onMissed": TASK}}),
            ("PUT", place, {"every": "PT1H"}),
            ("PATCH", place, {"hooks": {"onFailure": None}}),
            ("PATCH", place, {"hooks": {"onFailure": {"payload": {"n": 2}}}}),
        ):
            assert refused_for_its_scope(api(method, where, body, caller=None, headers=without)), (method, body)
    assert api("PATCH", place, {"every": "PT3H"}, caller=None, headers=without).status == 200
