"""Tenants, credentials and tokens: who may call, for whom, and until when."""

from __future__ import annotations

import base64
import json
from functools import partial
from unittest import mock
from urllib.parse import urlencode

import jwt
import pytest
from botocore.exceptions import EndpointConnectionError

from sweephand.domain.instants import text
from sweephand.server.facades.native.api import NativeApi
from sweephand.server.security import guard
from sweephand.server.security.caller import PROVIDER_SCOPES, TENANT_SCOPES, Door
from sweephand.server.security.tokens import derive_keys
from sweephand.server.store.tenants import credentials
from tests.contract.calls import CANARY, basic
from tests.contract.native import shapes
from tests.contract.native.api import JOB, STACK_SECRET
from tests.contract.native.test_lists import joined, pages

FORM = {"content-type": "application/x-www-form-urlencoded"}
GRANT = {"grant_type": "client_credentials"}
NO_QUOTA = {
    "maxSchedules": None,
    "maxJobs": None,
    "minIntervalSeconds": None,
    "runsPerMinute": None,
    "maxDescendants": 100,
}


def token(api, form=None, *, caller="acme", headers=None, raw=None):
    body = urlencode(GRANT | (form or {})) if raw is None else raw
    return api("POST", "/oauth/token", caller=caller, headers=FORM | (headers or {}), raw=body)


def issue(api, scopes=None, **more):
    """Issues a credential, which must succeed: its header Authorization, and its answer."""
    made = api("POST", "/v1/credentials", {} if scopes is None else {"scopes": scopes}, **more)
    assert made.status == 201, made.text
    return basic(made.json["clientId"], made.json["secret"]), made.json


# Tenants


def test_the_provider_can_create_read_and_list_tenants(api):
    made = api("POST", "/v1/tenants", {"name": "initech", "description": "é"}, caller="provider")
    read = api.get(made.headers["location"], caller="provider")

    assert (made.status, made.headers["location"]) == (201, "/v1/tenants/initech")
    assert made.json == read.json
    assert made.json.keys() == shapes.TENANT
    assert (made.json["tenant"], made.json["state"], made.json["description"]) == ("initech", "ACTIVE", "é")
    for limit in (1, 2, 3, 4):
        found = joined(pages(api, "/v1/tenants", limit, caller="provider"))
        assert [each["tenant"] for each in found] == ["acme", "globex", "initech"]


def test_a_new_tenant_works_at_once(api):
    api("POST", "/v1/tenants", {"tenant": "initech"}, caller="provider")
    acting = {"sweephand-tenant": "initech"}
    header, _ = issue(api, caller="provider", headers=acting)

    made = api("POST", "/v1/jobs", JOB, caller=None, headers={"authorization": header})

    assert made.status == 201
    assert api.get(f"/v1/jobs/{made.id}", caller="provider", headers=acting).status == 200
    assert api.get(f"/v1/jobs/{made.id}").status == 404


def test_a_tenant_name_is_unique(api):
    api.stage.clock.advance(1)
    with api.unchanged():
        reply = api("POST", "/v1/tenants", {"name": "acme"}, caller="provider")

    assert (reply.status, reply.code) == (409, "NAME_TAKEN")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "tenant"),
        *(
            ({"name": name}, "name")
            for name in ("", "provider", "Provider", "PROVIDER", "a.b", "a b", "a#b", "-a", "ä", "x" * 65, 7, {}, "a\n")
        ),
        ({"tenant": ".."}, "tenant"),
        ({"tenant": "a", "name": "a"}, "name"),
        ({"name": "a", "description": 7}, "description"),
        ({"name": "a", "description": "x" * 1_001}, "description"),
        ({"name": "a", "state": "ACTIVE"}, "state"),
        ([], "body"),
    ],
)
def test_an_invalid_tenant_is_refused(api, body, field):
    with api.unchanged():
        reply = api("POST", "/v1/tenants", body, caller="provider")

    assert (reply.status, reply.fields) == (422, [field])


@pytest.mark.parametrize("name", ["initech", "x" * 5_000, "%23", "..", "a%20b", "acme%00", "ACME"])
def test_an_unknown_tenant_is_not_found(api, name):
    assert api.get(f"/v1/tenants/{name}", caller="provider").status == (400 if name.endswith("%00") else 404)


def test_a_tenants_quota_of_schedules_is_set_shown_and_enforced(api):
    made = api("POST", "/v1/tenants", {"name": "initech", "quota": {"maxSchedules": 1}}, caller="provider")
    assert (made.json["quota"], made.json["usage"]) == ({**NO_QUOTA, "maxSchedules": 1}, {"schedules": 0, "jobs": 0})
    acting = {"sweephand-tenant": "initech"}
    job = api("POST", "/v1/jobs", JOB, caller="provider", headers=acting)

    refused = api("POST", "/v1/jobs", JOB, caller="provider", headers=acting)
    assert (refused.status, refused.code) == (409, "QUOTA_EXCEEDED")
    added = api("POST", f"/v1/jobs/{job.id}/schedules", {"every": "PT1H"}, caller="provider", headers=acting)
    assert (added.status, added.code) == (409, "QUOTA_EXCEEDED")

    raised = api("PATCH", "/v1/tenants/initech", {"quota": {"maxSchedules": 2}}, caller="provider")
    assert (raised.status, raised.json["quota"]) == (200, {**NO_QUOTA, "maxSchedules": 2})
    assert api("POST", "/v1/jobs", JOB, caller="provider", headers=acting).status == 201
    read = api.get("/v1/tenants/initech", caller="provider").json
    assert read["usage"] == {"schedules": 2, "jobs": 2}
    assert read in api.get("/v1/tenants", caller="provider").json["items"]


def test_every_quota_of_a_tenant_is_enforced_and_null_resets_it(api):
    quota = {"maxSchedules": 9, "maxJobs": 8, "minIntervalSeconds": 60, "runsPerMinute": 500, "maxDescendants": 0}

    made = api("POST", "/v1/tenants", {"name": "initech", "quota": quota}, caller="provider")
    read = api.get("/v1/tenants/initech", caller="provider")
    one_less = api("PATCH", "/v1/tenants/initech", {"quota": {"runsPerMinute": None}}, caller="provider")
    none = api("PATCH", "/v1/tenants/initech", {"quota": None}, caller="provider")

    assert made.json["quota"] == read.json["quota"] == quota
    assert one_less.json["quota"] == {**quota, "runsPerMinute": None}
    assert none.json["quota"] == api.get("/v1/tenants/initech", caller="provider").json["quota"] == NO_QUOTA


def test_a_tenant_cannot_raise_quotas_set_by_its_provider(api):
    quota = {"maxJobs": 1, "minIntervalSeconds": 3_600}
    api("PATCH", "/v1/tenants/acme", {"quota": quota}, caller="provider")
    api("PATCH", "/v1/collections/default", {"quota": {"maxJobs": 100, "minIntervalSeconds": 1}})

    too_often = api("POST", "/v1/jobs", {**JOB, "schedules": [{"every": "PT59M"}]})
    made = api("POST", "/v1/jobs", JOB)
    too_many = api("POST", "/v1/jobs", {**JOB, "schedules": []})

    assert (too_often.status, too_often.code, made.status, too_many.status) == (409, "QUOTA_EXCEEDED", 201, 409)
    assert "allows at most one occurrence every 3,600 seconds" in too_often.json["detail"]
    assert "1 jobs at most" in too_many.json["detail"]


def test_a_patch_of_a_tenant_changes_only_the_sent_members(api):
    api("POST", "/v1/tenants", {"name": "a", "description": "old", "quota": {"maxSchedules": 5}}, caller="provider")

    def patched(body):
        found = api("PATCH", "/v1/tenants/a", body, caller="provider").json
        assert found == api.get("/v1/tenants/a", caller="provider").json
        return found["description"], found["quota"]["maxSchedules"], found["state"]

    assert patched({}) == ("old", 5, "ACTIVE")
    assert patched({"description": "new"}) == ("new", 5, "ACTIVE")
    assert patched({"quota": None, "state": "DISABLED"}) == ("new", None, "ACTIVE")
    assert patched({"description": None, "quota": {"maxSchedules": 0}}) == (None, 0, "ACTIVE")
    whole = api.get("/v1/tenants/a", caller="provider").json
    assert patched(whole) == (None, 0, "ACTIVE")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ({"quota": 7}, "quota"),
        ({"quota": {"maxRunsPerJob": 7}}, "quota.maxRunsPerJob"),
        *(({"quota": {"maxSchedules": most}}, "quota.maxSchedules") for most in (-1, 10_000_001, "7", 1.5, True)),
        *(({"quota": {"maxJobs": most}}, "quota.maxJobs") for most in (-1, 10_000_001, "7", True)),
        *(({"quota": {"minIntervalSeconds": least}}, "quota.minIntervalSeconds") for least in (0, 548 * 86_400 + 1)),
        *(({"quota": {"runsPerMinute": most}}, "quota.runsPerMinute") for most in (0, 1_000_001)),
        *(({"quota": {"maxDescendants": most}}, "quota.maxDescendants") for most in (-1, 10_001)),
        ({"description": "x" * 1_001}, "description"),
        ({"tenant": "globex"}, "tenant"),
        ({"name": "globex"}, "name"),
    ],
)
def test_an_invalid_patch_of_a_tenant_is_refused(api, body, field):
    with api.unchanged():
        reply = api("PATCH", "/v1/tenants/acme", body, caller="provider")

    assert (reply.status, reply.fields) == (422, [field])


def test_only_the_provider_changes_a_tenant(api):
    with api.unchanged():
        assert api("PATCH", "/v1/tenants/acme", {"quota": {"maxSchedules": 9}}).status == 403
        assert api("PATCH", "/v1/tenants/nobody", {}, caller="provider").status == 404


# The provider and its tenants


def test_the_provider_names_the_tenant_it_acts_for(api):
    made = api("POST", "/v1/jobs", JOB, caller="provider", headers={"sweephand-tenant": "acme"})

    assert made.status == 201
    assert api.get(f"/v1/jobs/{made.id}").json["id"] == made.id
    assert api.get(f"/v1/jobs/{made.id}", caller="globex").status == 404


@pytest.mark.parametrize("named", [None, "", "provider", "a#b", "a.b", "x" * 65, "\u0000", "é", "acme, globex"])
def test_a_provider_that_names_no_tenant_is_refused(api, named):
    headers = {} if named is None else {"sweephand-tenant": named}

    with api.unchanged():
        for method, path, body in (("GET", "/v1/jobs", None), ("POST", "/v1/jobs", JOB), ("GET", "/v1/runs", None)):
            reply = api(method, path, body, caller="provider", headers=headers)
            assert (reply.status, reply.fields) == (400, ["Sweephand-Tenant"])


def test_nothing_is_created_for_a_missing_tenant(api):
    acting = {"sweephand-tenant": "nobody"}

    with api.unchanged():
        statuses = [
            api("POST", path, body, caller="provider", headers=acting).status
            for path, body in (("/v1/jobs", JOB), ("/v1/collections", {"name": "c"}), ("/v1/credentials", {}))
        ]

    assert statuses == [404, 404, 404]


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/credentials", "/v1/collections", "/v1/runs"])
def test_a_tenant_can_act_only_for_itself(api, path):
    assert api.get(path, headers={"sweephand-tenant": "acme"}).status == 200
    reply = api.get(path, headers={"sweephand-tenant": "globex"})
    assert (reply.status, reply.code) == (403, "SCOPE_MISSING")


# Credentials


def test_a_secret_is_shown_once_and_only_its_hash_is_stored(api):
    header, made = issue(api, ["jobs:read"])

    listed = api.get("/v1/credentials").json["items"]

    assert made.keys() == shapes.CREDENTIAL | {"secret"}
    assert made["clientId"].startswith("acme.")
    assert len(made["secret"]) >= 43
    assert all(each.keys() == shapes.CREDENTIAL for each in listed)
    assert [each["clientId"] for each in listed].count(made["clientId"]) == 1
    assert made["secret"] not in "".join(api.picture())
    assert made["secret"] not in api.log()
    assert api.get("/v1/jobs", caller=None, headers={"authorization": header}).status == 200


def test_a_credential_has_all_scopes_of_its_level_by_default(api):
    _, tenants = issue(api)
    _, providers = issue(api, caller="provider")

    assert set(tenants["scopes"]) == TENANT_SCOPES
    assert set(providers["scopes"]) == PROVIDER_SCOPES
    assert providers["clientId"].startswith("provider.")


def test_credentials_are_listed_page_by_page(api):
    for _ in range(4):
        api.stage.clock.advance(1)
        issue(api, ["jobs:read"])

    whole = api.get("/v1/credentials").json["items"]

    assert len({each["clientId"] for each in whole}) == 5
    for limit in (1, 2, 4, 5, 6):
        assert joined(pages(api, "/v1/credentials", limit)) == whole


def test_a_deleted_credential_and_its_tokens_are_refused_within_a_minute(api):
    header, made = issue(api)
    by_basic = {"authorization": header}
    bearer = {"authorization": "Bearer " + token(api, caller=None, headers=by_basic).json["access_token"]}
    assert [api.get("/v1/jobs", caller=None, headers=each).status for each in (by_basic, bearer)] == [200, 200]

    deleted = api("DELETE", f"/v1/credentials/{made['clientId']}")
    api.stage.clock.advance(60)

    assert deleted.status == 204
    assert [api.get("/v1/jobs", caller=None, headers=each).status for each in (by_basic, bearer)] == [401, 401]
    assert api("DELETE", f"/v1/credentials/{made['clientId']}").status == 404


def test_a_provider_can_delete_a_tenants_credential_only_in_that_tenants_name(api):
    _, made = issue(api)
    place = f"/v1/credentials/{made['clientId']}"

    with api.unchanged():
        assert api("DELETE", place, caller="provider").status == 404
        assert api("DELETE", place, caller="globex").status == 404
        assert api("DELETE", place, caller="provider", headers={"sweephand-tenant": "globex"}).status == 404
        assert api("DELETE", f"/v1/credentials/globex.{made['clientId'][5:]}", caller="globex").status == 404
    assert api("DELETE", place, caller="provider", headers={"sweephand-tenant": "acme"}).status == 204


@pytest.mark.parametrize("name", ["x", "acme", "acme.", ".x", "acme.x.y", "provider.admin", "acme.%23", "a" * 5_000])
def test_an_unknown_credential_is_not_found(api, name):
    with api.unchanged():
        assert api("DELETE", f"/v1/credentials/{name}").status == 404
        assert api("DELETE", f"/v1/credentials/{name}", caller="provider").status == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"scopes": []}, "scopes"),
        ({"scopes": "jobs:read"}, "scopes"),
        ({"scopes": {}}, "scopes"),
        ({"scopes": ["jobs:read", "provider:admin"]}, "scopes[1]"),
        ({"scopes": ["provider:*"]}, "scopes[0]"),
        ({"scopes": [[]]}, "scopes[0]"),
        ({"scopes": ["jobs:read "]}, "scopes[0]"),
        ({"name": ""}, "name"),
        ({"name": " x"}, "name"),
        ({"name": "x\ny"}, "name"),
        ({"name": "x" * 129}, "name"),
        ({"secret": "x"}, "secret"),
        ({"clientId": "acme.x"}, "clientId"),
        ([], "body"),
    ],
)
def test_an_invalid_credential_is_refused(api, body, field):
    with api.unchanged():
        reply = api("POST", "/v1/credentials", body)

    assert (reply.status, reply.fields) == (422, [field])


# Tokens


def test_a_credential_in_the_header_or_in_the_form_is_exchanged_for_a_token(api):
    header, made = issue(api, ["jobs:read", "runs:write"])
    by_basic = token(api, caller=None, headers={"authorization": header})
    by_form = token(api, {"client_id": made["clientId"], "client_secret": made["secret"]}, caller=None)

    for reply in (by_basic, by_form):
        assert reply.status == 200
        assert reply.headers["cache-control"] == "no-store"
        assert reply.json.keys() == {"access_token", "token_type", "expires_in", "scope", "jti"}
        assert (reply.json["token_type"], reply.json["expires_in"]) == ("bearer", 3_600)
        assert reply.json["scope"] == "jobs:read runs:write"
        bearer = {"authorization": f"Bearer {reply.json['access_token']}"}
        assert api.get("/v1/jobs", caller=None, headers=bearer).status == 200
        assert api("POST", "/v1/jobs", JOB, caller=None, headers=bearer).code == "SCOPE_MISSING"


def test_each_token_has_its_own_id(api):
    issued = [token(api).json for _ in range(3)]

    claims = [jwt.decode(each["access_token"], options={"verify_signature": False}) for each in issued]
    assert [each["jti"] for each in claims] == [each["jti"] for each in issued]
    assert len({each["jti"] for each in issued}) == 3


def test_a_token_may_have_fewer_scopes_than_its_credential(api):
    reply = token(api, {"scope": "jobs:read"})
    bearer = {"authorization": f"Bearer {reply.json['access_token']}"}

    assert reply.json["scope"] == "jobs:read"
    assert api.get("/v1/jobs", caller=None, headers=bearer).status == 200
    assert api("POST", "/v1/jobs", JOB, caller=None, headers=bearer).status == 403


def test_a_token_expires_after_an_hour(api):
    bearer = {"authorization": f"Bearer {token(api).json['access_token']}"}

    api.stage.clock.advance(3_500)
    assert api.get("/v1/jobs", caller=None, headers=bearer).status == 200
    api.stage.clock.advance(200)
    assert api.get("/v1/jobs", caller=None, headers=bearer).status == 401


def test_a_forged_token_or_one_of_another_stack_is_refused(api):
    issued = token(api).json["access_token"]
    head, claims, signature = issued.split(".")
    wider = json.loads(base64.urlsafe_b64decode(claims + "=="))
    forged = base64.urlsafe_b64encode(json.dumps(wider | {"sub": "globex"}).encode()).decode().rstrip("=")
    none = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
    find = partial(credentials.find_credential, api.stage.world.table)
    strange = Door(derive_keys("other", STACK_SECRET), STACK_SECRET, find)
    elsewhere = NativeApi(api.stage.world, guard.GuardSettings(), lambda: strange)

    bad = [
        f"{head}.{forged}.{signature}",
        f"{none}.{claims}.",
        f"{none}.{claims}.{signature}",
        f"{head}.{claims}.{signature[:-2]}AA",
        f"{head}.{claims}",
        issued + ".x",
        "x",
        "." * 3,
        "A" * 8_000,
    ]
    for each in bad:
        assert api.get("/v1/jobs", caller=None, headers={"authorization": f"Bearer {each}"}).status == 401, each
    api.facade = elsewhere
    assert api.get("/v1/jobs", caller=None, headers={"authorization": f"Bearer {issued}"}).status == 401
    assert api.get("/v1/jobs").status == 200


@pytest.mark.parametrize(
    ("form", "headers", "status", "error"),
    [
        ({"client_id": "acme.x", "client_secret": f"{CANARY}-wrong"}, {}, 401, "invalid_client"),
        ({"client_id": "#", "client_secret": ""}, {}, 401, "invalid_client"),
        ({}, {}, 401, "invalid_client"),
        ({}, {"authorization": "Basic !!!"}, 401, "invalid_client"),
        ({}, {"authorization": basic("acme.x", f"{CANARY}-wrong")}, 401, "invalid_client"),
        ({}, {"authorization": "Bearer x"}, 401, "invalid_client"),
        ({"grant_type": "password"}, {}, 400, "unsupported_grant_type"),
        ({"grant_type": ""}, {}, 400, "unsupported_grant_type"),
    ],
)
def test_a_refusal_of_a_token_has_the_form_of_oauth(api, form, headers, status, error):
    with api.unchanged():
        reply = token(api, form, caller=None, headers=headers)

    assert (reply.status, reply.json["error"]) == (status, error)
    assert reply.headers["content-type"] == "application/json"
    assert ("www-authenticate" in reply.headers) == (status == 401)


@pytest.mark.parametrize(
    ("scope", "error"),
    [
        ("provider:*", "invalid_scope"),
        ("provider:admin", "invalid_scope"),
        ("x", "invalid_scope"),
        ("é", "invalid_scope"),
    ],
)
def test_a_scope_that_the_credential_lacks_is_refused(api, scope, error):
    reply = token(api, {"scope": scope})

    assert (reply.status, reply.json["error"]) == (400, error)


@pytest.mark.parametrize(
    ("raw", "headers"),
    [
        ("", {}),
        ("grant_type=client_credentials", {"content-type": "application/json"}),
        ("grant_type=client_credentials&grant_type=client_credentials", {}),
        ("grant_type", {}),
        (b"\xff\xfe", {}),
        ("&".join(f"a{n}=1" for n in range(50)), {}),
        ("grant_type=client_credentials&x=" + "y" * 300_000, {}),
    ],
)
def test_an_invalid_form_is_an_invalid_request(api, raw, headers):
    reply = token(api, raw=raw, headers=headers)

    assert (reply.status, reply.json["error"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("query", "raw"),
    [
        ("grant_type=client_credentials", ""),
        ("grant_type=client_credentials&response_type=token&scope=jobs:read", None),
        ("scope=jobs:read", "grant_type=client_credentials"),
    ],
)
def test_public_parameters_may_be_in_the_query(api, query, raw):
    """Clients that were made for XSUAA send it there."""
    headers = FORM if raw else {}
    reply = api("POST", "/oauth/token", query=query, headers=headers, raw=raw)

    assert reply.status == 200, reply.text
    assert ("jobs:write" in reply.json["scope"]) == ("scope" not in query)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("grant_type=password", "unsupported_grant_type"),
        ("response_type=token", "invalid_request"),
        ("grant_type=client_credentials&client_id=acme.x&client_secret=x", "invalid_request"),
        ("grant_type=client_credentials&client_secret=x", "invalid_request"),
        ("grant_type=client_credentials&scope=x", "invalid_scope"),
    ],
)
def test_a_refusal_of_a_token_requested_in_the_query_has_the_form_of_oauth(api, query, error):
    reply = api("POST", "/oauth/token", query=query)

    assert (reply.status, reply.json["error"]) == (400, error)


def test_a_parameter_in_both_query_and_form_is_an_invalid_request(api):
    reply = api("POST", "/oauth/token", query=urlencode(GRANT), headers=FORM, raw=urlencode(GRANT))

    assert (reply.status, reply.json["error"]) == (400, "invalid_request")


def test_no_refusal_reveals_which_clients_exist(api):
    _, made = issue(api)
    known = {"authorization": basic(made["clientId"], f"{CANARY}-wrong")}
    unknown = {"authorization": basic("nobody.x", f"{CANARY}-wrong")}

    def without_id(headers):
        body = api.get("/v1/jobs", caller=None, headers=headers).json
        return {name: value for name, value in body.items() if name != "requestId"}

    assert without_id(known) == without_id(unknown)


# Health


def test_health_is_public_and_shows_the_lag_of_the_sweep_only_to_the_provider(api):
    """It counts over all tenants."""
    api.create(schedules=[{"every": "PT10S"}])
    api.stage.clock.advance(100)

    open_to_all, own = api.get("/v1/health", caller=None), api.get("/v1/health")
    known = api.get("/v1/health", caller="provider")

    assert open_to_all.json == own.json
    assert own.json.keys() == {"status", "version"}
    assert (known.json["oldestDueAt"], known.json["behindSeconds"]) == ("2027-03-01T12:00:11Z", 89)
    assert api.get("/v1/health", caller=None, headers={"authorization": "Basic x"}).status == 401
    narrow, _ = issue(api, ["runs:write"])
    assert api.get("/v1/health", caller=None, headers={"authorization": narrow}).status == 403


def test_the_provider_sees_the_findings_of_the_last_audit(api):
    assert api.get("/v1/health", caller="provider").json["lastAudit"] is None
    api.create(schedules=[{"every": "PT1H"}])
    api.stage.audit()

    shown = api.get("/v1/health", caller="provider").json["lastAudit"]

    counts = {"stopped": 0, "lost": 0, "expired": 0, "corrected": 0, "unreadable": 0, "waiting": 0}
    assert shown == {"at": "2027-03-01T12:00:00Z", "everything": True, "finished": True, "schedules": 1, **counts}
    assert "lastAudit" not in api.get("/v1/health").json


def test_the_provider_sees_schedules_that_no_audit_has_compared_for_three_days(api):
    def seen():
        health = api.get("/v1/health", caller="provider").json
        return health["unaudited"], health["auditedSince"]

    assert seen() == (0, None)
    api.create(schedules=[{"cron": "0 0 1 1 *"}] * 3)
    api.stage.audit(everything=False)
    began = api.stage.clock.now()
    assert seen() == (0, text(began))

    api.stage.pass_time(3 * 86_400 + 1)
    assert seen() == (3, text(began))
    api.stage.audit(everything=False)
    assert seen() == (0, text(api.stage.clock.now()))


def test_the_provider_sees_the_depth_of_the_run_queues(api):
    empty = {"ready": 0, "delayed": 0, "inFlight": 0}
    assert api.get("/v1/health", caller="provider").json["backlog"] == dict.fromkeys(
        ("fast", "slow", "operations"), empty
    )
    api.create(schedules=[{"every": "PT50S"}])

    shown = api.get("/v1/health", caller="provider").json["backlog"]

    assert shown == {"fast": empty | {"delayed": 4}, "slow": empty, "operations": empty}
    assert "backlog" not in api.get("/v1/health").json


def test_health_reports_an_unreachable_queue(api):
    api.tolerated.add(503)
    away = EndpointConnectionError(endpoint_url="https://sqs")

    with mock.patch.object(api.stage.sqs, "get_queue_attributes", side_effect=away):
        reply = api.get("/v1/health", caller="provider")

    assert (reply.status, reply.code) == (503, "UNAVAILABLE")


def test_an_idle_service_is_healthy(api):
    known = api.get("/v1/health", caller="provider").json

    assert (known["oldestDueAt"], known["behindSeconds"]) == (None, 0)


# Disabled tenants


def test_a_disabled_tenant_is_refused_as_such_and_the_provider_can_still_act(api):
    bearer = {"authorization": f"Bearer {token(api).json['access_token']}"}
    before = api.get("/v1/jobs").status

    off = api("POST", "/v1/tenants/acme/disable", caller="provider")
    api.stage.clock.advance(10)
    with api.unchanged():
        refused = [
            api.get("/v1/jobs"),
            api("POST", "/v1/jobs", JOB),
            api.get("/v1/jobs", caller=None, headers=bearer),
        ]
        denied = token(api)
        other = api.get("/v1/jobs", caller="globex").status
    acting = api.get("/v1/jobs", caller="provider", headers={"sweephand-tenant": "acme"}).status
    on = api("POST", "/v1/tenants/acme/enable", caller="provider")
    api.stage.clock.advance(10)

    assert before == 200
    assert (off.json["state"], api.get("/v1/tenants/acme", caller="provider").json["state"]) == ("DISABLED", "ACTIVE")
    assert {(each.status, each.code) for each in refused} == {(403, "TENANT_DISABLED")}
    assert (denied.status, denied.json["error"]) == (400, "unauthorized_client")
    assert (other, acting) == (200, 200)
    assert (on.json["state"], api.get("/v1/jobs").status) == ("ACTIVE", 200)


def test_switching_a_tenant_twice_changes_nothing(api):
    api("POST", "/v1/tenants/acme/disable", caller="provider")

    with api.unchanged():
        again = api("POST", "/v1/tenants/acme/disable", {}, caller="provider")
        unknown = api("POST", "/v1/tenants/nobody/disable", caller="provider")
        strange = api("POST", "/v1/tenants/a.b/enable", caller="provider")
        member = api("POST", "/v1/tenants/acme/enable", {"x": 1}, caller="provider")

    assert (again.status, again.json["state"]) == (200, "DISABLED")
    assert [each.status for each in (unknown, strange, member)] == [404, 404, 422]


def test_the_list_of_tenants_shows_their_state(api):
    api("POST", "/v1/tenants/acme/disable", caller="provider")

    listed = api.get("/v1/tenants", caller="provider").json["items"]

    assert {each["tenant"]: each["state"] for each in listed} == {"acme": "DISABLED", "globex": "ACTIVE"}
