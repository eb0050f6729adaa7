"""Revoked credentials end, and create nothing that outlives them: secrets, credentials, tenants."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from sweephand.server import wiring
from sweephand.server.facades.native.api import NativeApi
from sweephand.server.facades.native.routes import ROUTES
from tests.contract.calls import basic
from tests.contract.native.api import STACK_SECRET
from tests.contract.native.everything import furnish, send, title
from tests.contract.native.test_scopes import renamed
from tests.contract.native.test_tenancy import issue, token
from tests.support.acting import GUARD

STACK = "test"
GIVING = [route for route in ROUTES.all if route.gives_access]


@dataclass
class SecretsManager:
    """Two versions at most, as Secrets Manager keeps them."""

    clock: object
    versions: dict = field(default_factory=dict)

    def put(self, secret):
        self.versions = {"AWSCURRENT": (secret, self.clock.now()), "AWSPREVIOUS": self.versions.get("AWSCURRENT")}

    def get_secret_value(self, *, SecretId, VersionStage):  # noqa: N803 - AWS's names
        if self.versions.get(VersionStage) is None:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetSecretValue")
        secret, made_at = self.versions[VersionStage]
        return {"SecretString": json.dumps({"clientId": SecretId, "secret": secret}), "CreatedDate": made_at}


@pytest.fixture
def manager(api, monkeypatch):
    """The API with the real doorkeeper, whose secret stands in this manager."""
    manager = SecretsManager(api.stage.clock)
    manager.put(STACK_SECRET)
    monkeypatch.setattr(wiring, "Clients", lambda *_: SimpleNamespace(secrets_manager=manager))
    api.facade = NativeApi(api.stage.world, GUARD, wiring.Doorkeeper(api.stage.world).door)
    return manager


def rotate(api, manager):
    manager.put("canary-new-secret-0123456789abcdef")
    api.credentials["provider"] = basic("provider.admin", "canary-new-secret-0123456789abcdef")


def forged(api, secret=STACK_SECRET, *, dated_back_s=0, lives_s=3_600, **claims):
    """Makes a token of the provider from the stack's secret alone, as a thief of it would."""

    def expand(purpose):
        extracted = hmac.digest(STACK.encode(), secret.encode(), hashlib.sha256)
        return hmac.digest(extracted, purpose + b"\x01", hashlib.sha256)

    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    issued = int(api.stage.clock.now().timestamp()) - dated_back_s
    members = {"aud": STACK, "sub": "admin", "gen": 1, "scope": "provider:*", "iat": issued, "exp": issued + lives_s}
    head = {"alg": "HS256", "typ": "JWT", "kid": expand(b"sweephand/kid/1")[:8].hex()}
    signed = part(head) + b"." + part(members | claims)
    signature = hmac.digest(expand(b"sweephand/access-token/1"), signed, hashlib.sha256)
    made = signed + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")
    return {"authorization": f"Bearer {made.decode()}"}


# The stack's secret


@pytest.mark.parametrize("dated_back_s", [0, 1, 3_599, 3_600, 7_200, 10**8])
@pytest.mark.parametrize("lives_s", [3_600, 7_200, 10**9])
def test_a_leaked_stack_secret_forges_nothing_an_hour_after_one_rotation(api, manager, dated_back_s, lives_s):
    assert api.get("/v1/tenants", caller="provider").status == 200
    rotate(api, manager)
    api.stage.clock.advance(3_600)

    stolen = forged(api, dated_back_s=dated_back_s, lives_s=lives_s)

    with api.unchanged():
        assert api.get("/v1/tenants", caller=None, headers=stolen).status == 401
        assert api("POST", "/v1/credentials", {}, caller=None, headers=stolen).status == 401
    assert api.get("/v1/tenants", caller="provider").status == 200


@pytest.mark.sampled(5)
@pytest.mark.parametrize("since_s", [0, 299, 301, 3_599])
@pytest.mark.parametrize("route", GIVING, ids=title)
def test_a_leaked_stack_secret_creates_nothing_permanent_after_the_rotation(api, manager, route, since_s):
    """Also in a function that has not noticed the rotation yet, and within the hour in which former tokens hold."""
    things = furnish(api, "acme")
    assert api.get("/v1/tenants", caller="provider").status == 200
    rotate(api, manager)
    api.stage.clock.advance(since_s)
    headers = {} if route.scope == "provider:admin" else {"sweephand-tenant": "acme"}

    with api.unchanged():
        by_token = send(api, route, things, caller=None, headers=forged(api) | headers, body=renamed(route, "new"))
        old = {"authorization": basic("provider.admin", STACK_SECRET)}
        by_secret = send(api, route, things, caller=None, headers=old | headers, body=renamed(route, "new"))

    assert (by_token.status, by_secret.status) == (401, 401)


def test_a_token_from_before_the_rotation_reads_and_runs_until_its_hour_ends(api, manager):
    issued = {"authorization": "Bearer " + token(api).json["access_token"]}
    rotate(api, manager)
    api.stage.clock.advance(3_590)

    assert api.get("/v1/jobs", caller=None, headers=issued).status == 200
    refused = api("POST", "/v1/credentials", {}, caller=None, headers=issued)
    assert (refused.status, refused.code) == (401, "UNAUTHENTICATED")
    assert "get a new token" in refused.text


def test_nothing_permanent_is_created_while_the_secret_cannot_be_read(api, manager):
    assert api.get("/v1/jobs").status == 200
    manager.versions.clear()
    api.tolerated.add(503)

    with api.unchanged():
        assert api("POST", "/v1/credentials", {}).status == 503
    assert api.get("/v1/jobs").status == 200


# Credentials


def test_routes_that_give_access_are_those_of_credentials_keys_and_tenants():
    assert {title(route) for route in GIVING} == {
        title(route)
        for route in ROUTES.all
        if route.method != "GET"
        and (route.path.startswith(("/v1/credentials", "/v1/tenants")) or "/signing-keys" in route.path)
    }


@pytest.mark.sampled(3)
@pytest.mark.parametrize("route", GIVING, ids=title)
@pytest.mark.parametrize("by", ["secret", "token"])
def test_a_credential_deleted_a_moment_ago_creates_no_access(api, route, by):
    things = furnish(api, "acme")
    whose = "provider" if route.scope == "provider:admin" else "acme"
    header, made = issue(api, caller=whose)
    headers = {"authorization": header}
    if by == "token":
        headers = {"authorization": "Bearer " + token(api, caller=None, headers=headers).json["access_token"]}
    assert api.get("/v1/credentials", caller=None, headers=headers).status == 200
    assert api("DELETE", f"/v1/credentials/{made['clientId']}", caller=whose).status == 204

    with api.unchanged():
        refused = send(api, route, things, caller=None, headers=headers, body=renamed(route, "new"))

    assert (refused.status, refused.code) == (401, "UNAUTHENTICATED")


@pytest.mark.parametrize("route", [each for each in GIVING if each.scope == "admin"], ids=title)
def test_a_caller_whose_tenant_was_disabled_a_moment_ago_creates_no_access(api, route):
    things = furnish(api, "acme")
    assert api.get("/v1/jobs").status == 200
    assert api("POST", "/v1/tenants/acme/disable", caller="provider").status == 200

    with api.unchanged():
        refused = send(api, route, things, caller="acme", body=renamed(route, "new"))

    assert (refused.status, refused.code) == (403, "TENANT_DISABLED")
