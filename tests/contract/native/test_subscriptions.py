"""Subscriptions over the API: what the provider says of a tenant's applications, and what the last of them begins."""

from __future__ import annotations

import pytest

from tests.contract.calls import basic
from tests.contract.native.api import JOB

ACME = "/v1/tenants/acme"


def subscribe(api, application="invoicing", tenant="acme"):
    return api("PUT", f"/v1/tenants/{tenant}/subscriptions/{application}", caller="provider")


def unsubscribe(api, application="invoicing"):
    return api("DELETE", f"{ACME}/subscriptions/{application}", caller="provider")


def test_a_subscription_creates_its_tenant_and_a_second_changes_nothing(api):
    first = subscribe(api, tenant="initech")
    api.stage.clock.advance(5)
    second = subscribe(api, tenant="initech")

    assert (first.status, second.status) == (200, 200)
    assert first.json == second.json
    assert first.json.keys() == {"tenant", "application", "createdAt", "createdBy"}
    listed = api.get("/v1/tenants/initech/subscriptions", caller="provider").json
    assert listed == {"items": [first.json], "nextCursor": None}
    assert api.get("/v1/tenants/initech", caller="provider").json["state"] == "ACTIVE"


def test_unsubscribing_starts_an_operation_that_deletes_the_tenant(api):
    api.create()
    for application in ("invoicing", "reports"):
        subscribe(api, application)

    assert unsubscribe(api, "invoicing").status == 204
    assert api.get("/v1/jobs").status == 200
    begun = unsubscribe(api, "reports")
    again = unsubscribe(api, "reports")

    assert (begun.status, again.status) == (202, 202)
    assert begun.json["kind"] == "purge_tenant"
    assert begun.json["request"] == {"tenant": "acme"}
    assert again.headers["location"] == begun.headers["location"]
    tenant = api.get(ACME, caller="provider").json
    assert (tenant["state"], tenant["deletedBy"]) == ("PURGING", begun.id)
    api.stage.clock.advance(11)
    refused = api.get("/v1/jobs")
    assert (refused.status, refused.code) == (403, "TENANT_DISABLED")

    api.stage.run(600)
    done = api.get(begun.headers["location"], caller="provider").json
    assert (done["state"], done["progress"]) == ("DONE", {"done": 1, "total": 1, "failed": 0, "waitsFor": None})
    assert done["result"] == {"tenant": "acme", "jobs": 1}
    assert api.get(ACME, caller="provider").status == 404
    assert unsubscribe(api, "reports").status == 404
    assert [each["tenant"] for each in api.get("/v1/tenants", caller="provider").json["items"]] == ["globex"]


def test_a_tenant_under_deletion_cannot_be_restored(api):
    subscribe(api)
    begun = unsubscribe(api)
    acting = {"sweephand-tenant": "acme"}

    refused = [
        subscribe(api),
        subscribe(api, "other"),
        api("POST", f"{ACME}/enable", caller="provider"),
        api("PATCH", ACME, {"description": "x"}, caller="provider"),
        api("POST", "/v1/collections", {"name": "c"}, caller="provider", headers=acting),
        api("POST", "/v1/calendars", {"name": "c"}, caller="provider", headers=acting),
        api("POST", "/v1/credentials", {}, caller="provider", headers=acting),
        api("POST", f"{begun.headers['location']}/cancel", caller="provider"),
    ]

    assert [(reply.status, reply.code) for reply in refused] == [(409, "STATE_CONFLICT")] * 8
    assert begun.id in refused[0].json["detail"]


def test_while_a_tenant_is_deleted_no_job_and_no_schedule_is_made_for_it(api):
    made = api.create()
    subscribe(api)
    unsubscribe(api)
    acting = {"sweephand-tenant": "acme"}

    for waited_s in (0, 30):
        api.stage.clock.advance(waited_s)
        with api.unchanged():
            refused = [
                api("POST", "/v1/jobs", {**JOB, "name": "late"}, caller="provider", headers=acting),
                api(
                    "POST",
                    f"/v1/jobs/{made['id']}/schedules",
                    {"every": "1 hour"},
                    caller="provider",
                    headers=acting,
                ),
            ]
        assert [(reply.status, reply.code) for reply in refused] == [(409, "STATE_CONFLICT")] * 2


def test_the_operation_of_a_deletion_can_be_paused_and_resumed(api):
    subscribe(api)
    place = unsubscribe(api).headers["location"]
    assert api("POST", f"{place}/pause", caller="provider").json["state"] == "PAUSED"
    api.stage.run(600)
    assert api.get(ACME, caller="provider").json["state"] == "PURGING"

    api("POST", f"{place}/resume", caller="provider")
    api.stage.run(60)

    assert api.get(ACME, caller="provider").status == 404


def test_a_deleted_tenant_can_subscribe_again_as_new(api):
    old = api.create()
    subscribe(api)
    unsubscribe(api)
    api.stage.run(600)

    subscribe(api)
    acting = {"sweephand-tenant": "acme"}
    made = api("POST", "/v1/jobs", JOB, caller="provider", headers=acting)

    assert made.status == 201
    assert api.get(f"/v1/jobs/{old['id']}", caller="provider", headers=acting).status == 404
    assert api.get("/v1/jobs").status == 401, "its old credentials are gone"


def bearer_of(api, tenant):
    form = {"content-type": "application/x-www-form-urlencoded", "authorization": api.credentials[tenant]}
    answer = api("POST", "/oauth/token", raw="grant_type=client_credentials", caller=None, headers=form)
    return {"authorization": f"Bearer {answer.json['access_token']}"}


def every_identity(api, bearer, method="GET", body=None):
    """Yields the answers to the old credential, as it is and for a token, and to the old token."""
    form = {"content-type": "application/x-www-form-urlencoded", "authorization": api.credentials["acme"]}
    return [
        api(method, "/v1/jobs", body).status,
        api(method, "/v1/jobs", body, caller=None, headers=bearer).status,
        api("POST", "/oauth/token", raw="grant_type=client_credentials", caller=None, headers=form).status,
    ]


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made again"])
def test_old_credentials_work_neither_for_a_deleted_tenant_nor_for_its_successor(api, again):
    """Seen by the function that let them in a moment ago, at each second of a minute and a half."""
    subscribe(api)
    bearer = bearer_of(api, "acme")
    assert every_identity(api, bearer) == [200, 200, 200]
    unsubscribe(api)
    seen = []
    for _ in range(90):
        api.stage.run(1)
        gone = api.get(ACME, caller="provider").status == 404
        if gone and again:
            assert subscribe(api).status == 200
        seen.append(every_identity(api, bearer))

    assert [403, 403, 400] in seen, "while it was being deleted"
    assert seen[-75:] == [[401, 401, 401]] * 75
    assert all(each in ([200, 200, 200], [403, 403, 400], [401, 401, 401]) for each in seen)
    assert api.get(ACME, caller="provider").status == (200 if again else 404)


def test_the_credential_of_a_new_tenant_with_an_old_name_works_at_once(api):
    subscribe(api)
    assert api.get("/v1/jobs").status == 200
    unsubscribe(api)
    api.stage.run(20)
    assert api.get("/v1/jobs").status == 401, "which the function keeps in mind for a second"
    api.stage.clock.advance(1)
    subscribe(api)
    made = api("POST", "/v1/credentials", {}, caller="provider", headers={"sweephand-tenant": "acme"}).json
    api.credentials["acme"] = basic(made["clientId"], made["secret"])

    assert [api.get("/v1/jobs").status, api.get("/v1/jobs", caller=None, headers=bearer_of(api, "acme")).status] == [
        200,
        200,
    ]


def test_an_unsubscribed_tenant_is_deleted_by_name(api):
    subscribe(api, tenant="globex")
    kept = api("DELETE", "/v1/tenants/globex", caller="provider")
    begun = api("DELETE", ACME, caller="provider")
    api.stage.run(60)

    assert (kept.status, kept.code) == (409, "STATE_CONFLICT")
    assert "invoicing" in kept.json["detail"]
    assert begun.status == 202
    assert api.get(ACME, caller="provider").status == 404
    assert api("DELETE", ACME, caller="provider").status == 404


@pytest.mark.parametrize(
    ("tenant", "application", "field"),
    [
        ("provider", "a", "tenant"),
        ("a.b", "a", "tenant"),
        ("x" * 65, "a", "tenant"),
        ("acme", "-a", "application"),
        ("acme", "a%20b", "application"),
        ("acme", "x" * 129, "application"),
    ],
)
def test_an_invalid_name_is_refused(api, tenant, application, field):
    with api.unchanged():
        reply = subscribe(api, application, tenant)

    assert (reply.status, reply.code, reply.fields) == (400, "INVALID_QUERY", [field])


def test_a_missing_subscription_is_not_found(api):
    with api.unchanged():
        assert unsubscribe(api, "nothing").status == 404
        assert api.get("/v1/tenants/nobody/subscriptions", caller="provider").status == 404
        assert api("DELETE", "/v1/tenants/nobody", caller="provider").status == 404


def test_only_the_provider_manages_subscriptions(api):
    subscribe(api)
    with api.unchanged():
        for method, place in (("PUT", "/subscriptions/b"), ("DELETE", "/subscriptions/invoicing"), ("DELETE", "")):
            assert api(method, f"{ACME}{place}").status == 403
        assert api.get(f"{ACME}/subscriptions").status == 403
