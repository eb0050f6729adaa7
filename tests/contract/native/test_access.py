"""Which scopes a credential may grant, which the provider withholds, how a secret is rotated, and who did it."""

from __future__ import annotations

import pytest

from sweephand.server.security.caller import TENANT_SCOPES
from sweephand.server.store.tenants import credentials
from tests.contract.calls import basic
from tests.contract.native.api import JOB
from tests.contract.native.test_scopes import bearer
from tests.contract.native.test_tenancy import issue, token
from tests.support.ecs import ACTION

NO_TASKS = sorted(TENANT_SCOPES - {"tasks:write"})
TASK = {"action": ACTION}


def wanting(api, headers, body=None):
    return api("POST", "/v1/credentials", body or {}, caller=None, headers=headers)


# A credential grants only what its maker holds


@pytest.mark.parametrize("held", [["admin"], ["admin", "jobs:read"], NO_TASKS, sorted(TENANT_SCOPES)])
@pytest.mark.parametrize("by", ["credential", "token"])
def test_a_credential_grants_only_the_scopes_of_its_maker(api, held, by):
    headers = {"authorization": issue(api, held)[0]} if by == "credential" else bearer(api, "acme", held)

    assert wanting(api, headers).json["scopes"] == sorted(held)
    for scope in sorted(TENANT_SCOPES):
        reply = wanting(api, headers, {"scopes": [scope]})
        assert reply.status == (201 if scope in held else 403), reply.text
    if held != sorted(TENANT_SCOPES):
        with api.unchanged():
            refused = wanting(api, headers, {"scopes": sorted(TENANT_SCOPES)})
        (missing, *_) = sorted(TENANT_SCOPES - set(held))
        assert refused.code == "SCOPE_MISSING"
        assert f'scopes: "{missing}" cannot be granted' in refused.json["detail"]


def test_a_narrowed_token_of_the_provider_stays_narrow(api):
    narrow = bearer(api, "provider", ["admin"])
    acting = narrow | {"sweephand-tenant": "acme"}

    assert wanting(api, acting).json["scopes"] == ["admin"]
    with api.unchanged():
        assert wanting(api, acting, {"scopes": ["jobs:read"]}).status == 403
        for body in ({}, {"scopes": ["provider:*"]}, {"scopes": ["provider:admin"]}):
            assert wanting(api, narrow, body).status == 403
    assert wanting(api, {"authorization": api.credentials["provider"]}).json["scopes"] == [
        "provider:*",
        "provider:admin",
    ]


# Scopes that the provider withholds


def withhold(api, *scopes, tenant="acme"):
    reply = api("PATCH", f"/v1/tenants/{tenant}", {"withheldScopes": list(scopes)}, caller="provider")
    assert (reply.status, reply.json["withheldScopes"]) == (200, sorted(scopes))
    api.stage.clock.advance(10)


@pytest.mark.parametrize("by", ["credential", "token"])
def test_a_withheld_scope_is_missing_for_every_caller_of_its_tenant(api, by):
    headers = {"authorization": api.credentials["acme"]}
    if by == "token":
        headers = {"authorization": "Bearer " + token(api).json["access_token"]}
    assert api("POST", "/v1/jobs", TASK, caller=None, headers=headers).status in {201, 422}
    withhold(api, "tasks:write")

    with api.unchanged():
        task = api("POST", "/v1/jobs", TASK, caller=None, headers=headers)
        grant = wanting(api, headers, {"scopes": ["tasks:write"]})

    assert [(each.status, each.code) for each in (task, grant)] == [(403, "SCOPE_MISSING")] * 2
    assert wanting(api, headers).json["scopes"] == NO_TASKS
    assert token(api).json["scope"].split() == NO_TASKS
    assert api("POST", "/v1/jobs", JOB, caller=None, headers=headers).status == 201


def test_a_scope_withheld_from_one_tenant_stays_with_another(api):
    withhold(api, "tasks:write")

    assert "tasks:write" in token(api, caller="globex").json["scope"]


def test_a_scope_that_is_no_longer_withheld_comes_back(api):
    withhold(api, "tasks:write", "admin")
    assert api.get("/v1/credentials").status == 403
    withhold(api)

    assert token(api).json["scope"].split() == sorted(TENANT_SCOPES)
    assert api.get("/v1/credentials").status == 200


def test_the_provider_grants_no_scope_that_it_withholds(api):
    withhold(api, "tasks:write")
    acting = {"authorization": api.credentials["provider"], "sweephand-tenant": "acme"}

    with api.unchanged():
        refused = wanting(api, acting, {"scopes": ["tasks:write"]})

    assert (refused.status, refused.code) == (409, "STATE_CONFLICT")
    assert "withheldScopes" in refused.json["detail"]
    assert wanting(api, acting).json["scopes"] == NO_TASKS


def test_a_tenant_may_be_created_without_scopes(api):
    body = {"name": "initech", "withheldScopes": ["tasks:write"]}
    made = api("POST", "/v1/tenants", body, caller="provider")

    assert made.json["withheldScopes"] == ["tasks:write"]
    assert api.get("/v1/tenants/initech", caller="provider").json["withheldScopes"] == ["tasks:write"]
    (listed,) = [
        each for each in api.get("/v1/tenants", caller="provider").json["items"] if each["tenant"] == "initech"
    ]
    assert listed["withheldScopes"] == ["tasks:write"]


@pytest.mark.parametrize("scopes", ["tasks:write", ["provider:*"], ["x"], {}, [7], None])
def test_only_a_list_of_a_tenants_scopes_can_be_withheld(api, scopes):
    if scopes is None:
        reply = api("PATCH", "/v1/tenants/acme", {"withheldScopes": None}, caller="provider")
        assert (reply.status, reply.json["withheldScopes"]) == (200, [])
        return
    with api.unchanged():
        reply = api("PATCH", "/v1/tenants/acme", {"withheldScopes": scopes}, caller="provider")

    assert reply.status == 422
    assert reply.fields[0].startswith("withheldScopes")


def test_the_target_of_a_run_can_report_whatever_is_withheld(api):
    job = api.create(JOB | {"policies": {"callbackToken": True}}, schedules=[])
    run = api("POST", f"/v1/jobs/{job['id']}/run").json["runId"]
    api.stage.deliver_all()
    sent = api.stage.endpoint.received[-1].call.callback_token
    withhold(api, *TENANT_SCOPES)

    reply = api(
        "PUT",
        f"/v1/runs/{run}/result",
        {"success": True},
        caller=None,
        headers={"sweephand-callback-token": sent},
    )

    assert reply.status != 403, reply.text


# A secret is rotated


def rotate(api, client_id, overlap_s=None, **more):
    body = {} if overlap_s is None else {"overlapSeconds": overlap_s}
    return api("POST", f"/v1/credentials/{client_id}/rotate", body, **more)


def works(api, header):
    return api.get("/v1/jobs", caller=None, headers={"authorization": header}).status == 200


def by_token(api, header):
    return "Bearer " + token(api, caller=None, headers={"authorization": header}).json["access_token"]


@pytest.mark.parametrize("overlap_s", [1, 600, 3_000])
def test_both_secrets_and_their_tokens_work_until_the_overlap_ends(api, overlap_s):
    old, made = issue(api, ["jobs:read"])
    old_token = by_token(api, old)
    assert works(api, old)

    rotated = rotate(api, made["clientId"], overlap_s)
    new = basic(made["clientId"], rotated.json["secret"])
    later_old_token = by_token(api, old)

    assert rotated.status == 200
    assert rotated.json["clientId"] == made["clientId"]
    assert rotated.json["secret"] != made["secret"]
    assert works(api, old) is works(api, old_token) is True
    api.stage.clock.advance(10)
    assert works(api, new)
    new_token = by_token(api, new)
    api.stage.clock.advance(max(60, overlap_s))
    assert [works(api, each) for each in (old, old_token, later_old_token)] == [False] * 3
    assert [works(api, each) for each in (new, new_token)] == [True] * 2


def test_a_rotation_without_an_overlap_ends_the_secret_within_a_minute(api):
    old, made = issue(api, ["jobs:read"])
    old_token = by_token(api, old)
    assert works(api, old)

    new = basic(made["clientId"], rotate(api, made["clientId"], 0).json["secret"])
    api.stage.clock.advance(60)

    assert [works(api, each) for each in (old, old_token, new)] == [False, False, True]


def test_the_list_shows_a_rotation_and_its_overlap_while_it_lasts(api):
    _, made = issue(api, ["jobs:read"])
    api.stage.clock.advance(5)
    rotated = rotate(api, made["clientId"], 600).json

    def listed():
        return next(each for each in api.get("/v1/credentials").json["items"] if each["clientId"] == made["clientId"])

    assert listed() == {name: value for name, value in rotated.items() if name != "secret"}
    assert (rotated["createdAt"], rotated["rotatedAt"]) == ("2027-03-01T12:00:00.250Z", "2027-03-01T12:00:05.250Z")
    assert rotated["formerSecretUntil"] == "2027-03-01T12:10:05.250Z"
    api.stage.clock.advance(600)
    assert listed() == {
        **{name: value for name, value in rotated.items() if name != "secret"},
        "formerSecretUntil": None,
    }


def test_while_two_secrets_are_valid_a_rotation_must_end_both(api):
    old, made = issue(api, ["jobs:read"])
    middle = basic(made["clientId"], rotate(api, made["clientId"]).json["secret"])

    refused = rotate(api, made["clientId"], 60)
    assert (refused.status, refused.code) == (409, "STATE_CONFLICT")
    assert "overlapSeconds 0" in refused.json["detail"]
    newest = basic(made["clientId"], rotate(api, made["clientId"], 0).json["secret"])
    api.stage.clock.advance(60)

    assert [works(api, each) for each in (old, middle, newest)] == [False, False, True]


def end_former(api, client_id, **more):
    return api("DELETE", f"/v1/credentials/{client_id}/former-secret", **more)


def test_a_former_secret_can_be_ended_early_and_the_current_one_stays(api):
    old, made = issue(api, ["jobs:read"])
    new = basic(made["clientId"], rotate(api, made["clientId"], 600).json["secret"])
    old_token, new_token = by_token(api, old), by_token(api, new)

    assert [end_former(api, made["clientId"]).status for _ in range(2)] == [204, 204]
    api.stage.clock.advance(60)

    assert [works(api, each) for each in (old, old_token)] == [False] * 2
    assert [works(api, each) for each in (new, new_token)] == [True] * 2
    listed = next(each for each in api.get("/v1/credentials").json["items"] if each["clientId"] == made["clientId"])
    assert listed["formerSecretUntil"] is None
    events = told(api, "credential.former-ended")
    assert [(each["clientId"], each["formerSecretUntil"]) for each in events] == [(made["clientId"], None)]
    assert rotate(api, made["clientId"], 600).status == 200


def test_only_the_credentials_own_tenant_can_end_a_former_secret(api):
    old, made = issue(api, ["jobs:read"])
    rotate(api, made["clientId"], 600)

    for caller in ("globex", "provider"):
        assert end_former(api, made["clientId"], caller=caller).status == 404
    assert end_former(api, "acme.nobody").status == 404
    assert end_former(api, made["clientId"], caller=None, headers={"authorization": old}).status == 403
    assert works(api, old)


def test_a_rotation_in_between_ends_the_former_secret_and_keeps_its_own(api, monkeypatch):
    old, made = issue(api, ["jobs:read"])
    middle = basic(made["clientId"], rotate(api, made["clientId"], 600).json["secret"])
    newest = []
    end = credentials.end_former_op

    def after_another(table, credential):
        monkeypatch.setattr(credentials, "end_former_op", end)
        newest.append(basic(made["clientId"], rotate(api, made["clientId"], 0).json["secret"]))
        return end(table, credential)

    monkeypatch.setattr(credentials, "end_former_op", after_another)

    assert end_former(api, made["clientId"]).status == 204

    api.stage.clock.advance(60)
    assert [works(api, each) for each in (old, middle, *newest)] == [False, False, True]
    assert told(api, "credential.former-ended") == []


def test_a_rotation_after_an_overlap_gets_an_overlap_of_its_own(api):
    _, made = issue(api, ["jobs:read"])
    middle = basic(made["clientId"], rotate(api, made["clientId"], 60).json["secret"])
    api.stage.clock.advance(60)

    newest = basic(made["clientId"], rotate(api, made["clientId"], 600).json["secret"])
    api.stage.clock.advance(300)

    assert works(api, middle) is works(api, newest) is True


def test_only_a_caller_with_all_scopes_of_a_credential_can_see_its_secret(api):
    _, made = issue(api, ["jobs:read", "tasks:write"])

    with api.unchanged():
        for held in (["admin"], ["admin", "jobs:read"], NO_TASKS):
            refused = rotate(api, made["clientId"], caller=None, headers=bearer(api, "acme", held))
            assert (refused.status, refused.code) == (403, "SCOPE_MISSING")
    enough = bearer(api, "acme", ["admin", "jobs:read", "tasks:write"])
    assert rotate(api, made["clientId"], caller=None, headers=enough).status == 200


def test_a_tenant_can_rotate_a_credential_with_a_withheld_scope(api):
    _, made = issue(api)
    withhold(api, "tasks:write")

    assert rotate(api, made["clientId"]).status == 200


@pytest.mark.parametrize("overlap", [-1, 2_592_001, 1.5, "60", True])
def test_an_invalid_overlap_is_refused(api, overlap):
    _, made = issue(api, ["jobs:read"])

    with api.unchanged():
        refused = rotate(api, made["clientId"], overlap)

    assert (refused.status, refused.fields) == (422, ["overlapSeconds"])


def test_a_tenant_cannot_rotate_another_tenants_credential_or_the_stacks_own(api):
    _, made = issue(api)

    with api.unchanged():
        assert rotate(api, made["clientId"], caller="globex").status == 404
        assert rotate(api, made["clientId"], caller="provider").status == 404
        assert rotate(api, "provider.admin", caller="provider").status == 404
        assert rotate(api, "acme.nobody").status == 404
    assert rotate(api, made["clientId"], caller="provider", headers={"sweephand-tenant": "acme"}).status == 200


def test_one_of_two_concurrent_rotations_is_refused(api, monkeypatch):
    _, made = issue(api, ["jobs:read"])
    transact, first = api.stage.world.table.transact, []

    def meanwhile(ops):
        monkeypatch.undo()
        first.append(rotate(api, made["clientId"]).json["secret"])
        return transact(ops)

    monkeypatch.setattr(api.stage.world.table, "transact", meanwhile)
    refused = rotate(api, made["clientId"])

    assert (refused.status, refused.code) == (409, "STATE_CONFLICT")
    api.stage.clock.advance(10)
    assert works(api, basic(made["clientId"], first[0]))


# Authors of changes


def told(api, *kinds):
    return [event.detail for event in api.stage.bus.told if event.kind.value in kinds]


def test_credentials_and_their_events_say_who_created_and_rotated_them(api):
    actor = api.get("/v1/credentials").json["items"][0]["clientId"]
    _, made = issue(api, ["jobs:read"])
    rotated = rotate(api, made["clientId"], 60).json
    api("DELETE", f"/v1/credentials/{made['clientId']}")

    assert (made["createdBy"], made["rotatedBy"]) == (actor, None)
    assert (rotated["createdBy"], rotated["rotatedBy"]) == (actor, actor)
    events = told(api, "credential.created", "credential.rotated", "credential.deleted")
    assert [each["id"].partition(":")[0] for each in events] == [
        "credential.created",
        "credential.rotated",
        "credential.deleted",
    ]
    assert {(each["actor"], each["clientId"], each["tenant"], each["collection"]) for each in events} == {
        (actor, made["clientId"], "acme", None)
    }
    assert made["secret"] not in str(events)
    assert rotated["secret"] not in str(events)


def test_events_of_the_providers_own_credentials_name_no_tenant(api):
    _, made = issue(api, caller="provider")

    (event,) = told(api, "credential.created")
    assert (event["tenant"], event["actor"], event["clientId"]) == (None, "provider.admin", made["clientId"])


def test_signing_keys_and_their_events_say_who_created_them(api):
    actor = api.get("/v1/credentials").json["items"][0]["clientId"]
    made = api("POST", "/v1/collections/default/signing-keys").json
    (listed,) = api.get("/v1/collections/default/signing-keys").json["items"]
    api("DELETE", f"/v1/collections/default/signing-keys/{made['id']}")

    assert made["createdBy"] == listed["createdBy"] == actor
    events = told(api, "signing-key.created", "signing-key.deleted")
    assert [(each["actor"], each["signingKey"], each["collection"]) for each in events] == [
        (actor, made["id"], "default")
    ] * 2
    assert made["secret"] not in str(events)


def test_a_collection_says_who_created_it_and_who_changed_it_last(api):
    acme = api.get("/v1/credentials").json["items"][0]["clientId"]
    made = api("POST", "/v1/collections", {"name": "side"}).json
    acting = {"sweephand-tenant": "acme"}
    changed = api("PATCH", "/v1/collections/side", {"events": "all"}, caller="provider", headers=acting).json
    switched = api("POST", "/v1/collections/side/disable").json

    assert [(each["createdBy"], each["modifiedBy"]) for each in (made, changed, switched)] == [
        (acme, None),
        (acme, "provider.admin"),
        (acme, acme),
    ]
    assert api.get("/v1/collections/side").json == switched


def test_a_flow_key_says_who_created_it_and_who_changed_it_last(api):
    acme = api.get("/v1/credentials").json["items"][0]["clientId"]
    made = api("POST", "/v1/flow-keys", {"name": "k"}).json
    same = api("PATCH", "/v1/flow-keys/k", {}, caller="provider", headers={"sweephand-tenant": "acme"}).json
    paused = api("POST", "/v1/flow-keys/k/pause", caller="provider", headers={"sweephand-tenant": "acme"}).json
    resumed = api("POST", "/v1/flow-keys/k/resume").json

    assert [(each["createdBy"], each["modifiedBy"]) for each in (made, same, paused, resumed)] == [
        *((acme, None), (acme, None), (acme, "provider.admin"), (acme, acme))
    ]


def test_each_version_of_a_calendar_says_who_created_it(api):
    acme = api.get("/v1/credentials").json["items"][0]["clientId"]
    api("POST", "/v1/calendars", {"name": "c"})
    acting = {"sweephand-tenant": "acme"}
    api("PUT", "/v1/calendars/c", {"description": "changed"}, caller="provider", headers=acting)

    versions = api.get("/v1/calendars/c/versions").json["items"]

    assert [each["actor"] for each in versions] == ["provider.admin", acme]


def test_a_tenant_says_who_created_and_last_changed_it_and_each_change_publishes_an_event(api):
    by = {"caller": "provider"}
    made = api("POST", "/v1/tenants", {"name": "initech"}, **by).json
    api.stage.clock.advance(1)
    changed = api("PATCH", "/v1/tenants/initech", {"quota": {"maxSchedules": 5}}, **by).json
    api("POST", "/v1/tenants/initech/disable", **by)
    api("POST", "/v1/tenants/initech/disable", **by)
    api("POST", "/v1/tenants/initech/enable", **by)
    api.stage.clock.advance(1)
    subscribed = api("PUT", "/v1/tenants/initech/subscriptions/app", **by).json
    api("PUT", "/v1/tenants/initech/subscriptions/app", **by)
    api("DELETE", "/v1/tenants/initech/subscriptions/app", **by)

    assert (made["createdBy"], made["modifiedBy"], changed["modifiedBy"]) == ("provider.admin", None, "provider.admin")
    assert subscribed["createdBy"] == "provider.admin"
    events = [event for event in api.stage.bus.told if event.kind.value.startswith("tenant.")]
    assert [event.kind.value for event in events] == [
        *("tenant.created", "tenant.changed", "tenant.disabled", "tenant.enabled", "tenant.changed", "tenant.deleted")
    ]
    assert {(event.detail["tenant"], event.detail["actor"]) for event in events} == {("initech", "provider.admin")}
    assert len({event.detail["id"] for event in events}) == len(events)
    assert [event.detail["applications"] for event in events[-2:]] == [["app"], ["app"]]
