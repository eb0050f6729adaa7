"""Tokens of another issuer at the native API: the same rights, the same refusals, and never more than a 401."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from sweephand.server import wiring
from sweephand.server.facades.native.routes import ROUTES
from sweephand.server.flow.world import World
from sweephand.server.security.caller import Door
from sweephand.server.security.tokens import derive_keys
from sweephand.server.settings import Settings
from sweephand.server.store.tenants import credentials as stored
from tests.contract.native.api import JOB, STACK_SECRET, Api
from tests.contract.native.everything import furnish, send, title
from tests.support import issuer as issuers
from tests.support.issuer import AUDIENCE, Issuer, private_key


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with issuers.issuer() as there:
        yield there


@pytest.fixture(scope="module")
def api(shared: Api, issuer: Issuer) -> Api:
    """The shared API with a door that trusts the issuer, wired as the function wires it."""
    world = shared.stage.world
    settings = replace(
        world.settings,
        allowed_private_targets="127.0.0.0/8",
        plain_http_targets=True,
        oidc_issuers=f"{issuer.url};audience={AUDIENCE}",
        oidc_claims="tenant=tenant,scopes=scope,provider=level=provider",
    )
    shared.facade.door = door(world, settings)
    return shared


@pytest.fixture(scope="module")
def things(api: Api) -> dict[str, str]:
    return furnish(api, "acme")


def door(world: World, settings: Settings) -> Callable[[], Door]:
    made = Door(
        derive_keys("test", STACK_SECRET),
        STACK_SECRET,
        lambda tenant, name: stored.find_credential(world.table, tenant, name),
        wiring.foreign_tokens(replace(world, settings=settings)).identify,
    )
    return lambda: made


def bearer(api: Api, issuer: Issuer, **more: object) -> dict[str, str]:
    return {"authorization": "Bearer " + issuer.token(api.stage.clock.now(), **more)}


def test_a_tenant_works_with_tokens_of_its_own_issuer(api: Api, issuer: Issuer) -> None:
    made = api("POST", "/v1/jobs", JOB, caller=None, headers=bearer(api, issuer))

    assert made.status == 201
    assert api.get(f"/v1/jobs/{made.id}", caller="acme").status == 200
    assert api.get(f"/v1/jobs/{made.id}", caller=None, headers=bearer(api, issuer, tenant="globex")).status == 404


def test_a_scope_missing_from_the_token_is_named(api: Api, issuer: Issuer) -> None:
    reply = api("POST", "/v1/jobs", JOB, caller=None, headers=bearer(api, issuer, scope="jobs:read"))

    assert (reply.status, reply.code) == (403, "SCOPE_MISSING")
    assert "jobs:write" in reply.json["detail"]


def test_the_provider_acts_for_any_tenant_and_a_tenant_for_itself(api: Api, issuer: Issuer) -> None:
    alone = bearer(api, issuer, level="provider", scope="provider:*")
    provider = alone | {"sweephand-tenant": "globex"}
    tenant = bearer(api, issuer) | {"sweephand-tenant": "globex"}

    assert api.get("/v1/jobs", caller=None, headers=provider).status == 200
    assert api.get("/v1/tenants", caller=None, headers=alone).status == 200
    assert api.get("/v1/jobs", caller=None, headers=tenant).status == 403


def test_the_stacks_own_credentials_and_tokens_keep_working(api: Api) -> None:
    issued = api("POST", "/oauth/token", raw="grant_type=client_credentials", headers=FORM).json["access_token"]

    assert api.get("/v1/jobs", caller="acme").status == 200
    assert api.get("/v1/jobs", caller=None, headers={"authorization": f"Bearer {issued}"}).status == 200


FORM = {"content-type": "application/x-www-form-urlencoded"}


def test_a_token_of_another_issuer_cannot_be_exchanged(api: Api, issuer: Issuer) -> None:
    reply = api(
        "POST",
        "/oauth/token",
        raw="grant_type=client_credentials",
        caller=None,
        headers=bearer(api, issuer) | FORM,
    )

    assert (reply.status, reply.json["error"]) == (401, "invalid_client")


@pytest.mark.parametrize(
    "wrong",
    [
        {"exp": 1},
        {"aud": "https://other.example"},
        {"iss": "https://stranger.example"},
        {"tenant": "nobody"},
        {"kid": "k9"},
        {"key": private_key("RS256", 2)},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_no_protected_route_accepts_an_invalid_token(
    api: Api, issuer: Issuer, things: dict[str, str], wrong: dict[str, object]
) -> None:
    headers = bearer(api, issuer, **wrong)

    with api.unchanged():
        for route in [route for route in ROUTES.all if route.scope is not None]:
            reply = send(api, route, things, caller=None, headers=headers)
            assert (reply.status, reply.code) == (401, "UNAUTHENTICATED"), title(route)


def test_an_unavailable_issuer_blocks_only_its_own_tokens(api: Api, issuer: Issuer) -> None:
    """A door of its own: the shared one knows the keys already."""
    world = api.stage.world
    away = "https://127.0.0.1:1"
    settings = replace(world.settings, oidc_issuers=f"{away};audience={AUDIENCE}", oidc_claims="tenant=tenant")
    before, api.facade.door = api.facade.door, door(world, settings)
    try:
        reply = api.get("/v1/jobs", caller=None, headers=bearer(api, issuer, iss=away))
        assert api.get("/v1/jobs", caller="acme").status == 200
    finally:
        api.facade.door = before

    assert (reply.status, reply.code) == (401, "UNAUTHENTICATED")
    assert "the keys of an issuer cannot be fetched" in api.stage.journal.at("warning")


def test_a_credential_created_with_an_issuers_token_has_the_scopes_of_that_token(api: Api, issuer: Issuer) -> None:
    """Else whoever leaves the issuer's directory keeps more than the token gave, for good."""
    headers = bearer(api, issuer, scope="admin jobs:read")

    made = api("POST", "/v1/credentials", {}, caller=None, headers=headers)
    refused = api("POST", "/v1/credentials", {"scopes": ["tasks:write"]}, caller=None, headers=headers)

    assert (made.status, made.json["scopes"]) == (201, ["admin", "jobs:read"])
    assert made.json["createdBy"].startswith("acme.oidc:")
    assert (refused.status, refused.code) == (403, "SCOPE_MISSING")


def test_a_token_of_another_issuer_lacks_scopes_withheld_from_its_tenant(api: Api, issuer: Issuer) -> None:
    def withhold(*scopes: str) -> None:
        reply = api("PATCH", "/v1/tenants/acme", {"withheldScopes": list(scopes)}, caller="provider")
        assert reply.status == 200
        api.stage.clock.advance(10)

    withhold("tasks:write", "admin")
    headers = bearer(api, issuer, scope="admin jobs:read tasks:write")
    refused = api("POST", "/v1/credentials", {"scopes": ["tasks:write"]}, caller=None, headers=headers)
    withhold("tasks:write")
    granted = api("POST", "/v1/credentials", {}, caller=None, headers=headers)
    withhold()

    assert (refused.status, refused.code) == (403, "SCOPE_MISSING")
    assert granted.json["scopes"] == ["admin", "jobs:read"]
