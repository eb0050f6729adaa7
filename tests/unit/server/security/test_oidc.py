"""Tokens of other issuers, against an issuer on loopback with real keys."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweephand.base.errors import Unauthenticated
from sweephand.server.security import guard, jwks, oidc
from sweephand.server.security.caller import Caller
from sweephand.testing.sources import VirtualClock
from tests.support import issuer as issuers
from tests.support.examples import scaled
from tests.support.issuer import AUDIENCE, NOW, Issuer, private_key, public_jwk

LOCAL = guard.GuardSettings(private=guard.networks("127.0.0.0/8"), plain_http=True)
ALL_ALGORITHMS = sorted(jwks.ALGORITHMS)


@dataclass
class Service:
    """The service that the issuer protects. said: why keys could not be had. asked: tenants that were looked up."""

    issuer: Issuer
    tokens: oidc.ForeignTokens
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def identify(self, token: str, now: datetime = NOW) -> Caller:
        return self.tokens.identify(token, now)

    def refuses(self, token: str, now: datetime = NOW) -> bool:
        """Checks that it is refused, in the one sentence that every refusal has."""
        with pytest.raises(Unauthenticated, match=f"^{Unauthenticated().reason}$"):
            self.tokens.identify(token, now)
        return True


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuers.issuer() as there:
        yield there


@pytest.fixture
def service(issuer: Issuer) -> Service:
    return serve(issuer)


def serve(issuer: Issuer, listed: str = "", audience: str = AUDIENCE, **parameters: str) -> Service:
    texts = {
        "issuers": listed or f"{issuer.url};audience={audience}",
        "claims": "tenant=tenant,scopes=scope,scopes=scp",
        "scopes": "",
    }
    fetch = jwks.fetcher(guard.Outbound(LOCAL), VirtualClock().monotonic)

    def keys_of(known: oidc.Issuer) -> jwks.Keys:
        return jwks.Keys(jwks.Source(known.url, known.keys_url), fetch, service.said.append)

    def exists(tenant: str) -> bool:
        service.asked.append(tenant)
        return tenant in {"acme", "globex"}

    service = Service(issuer, oidc.ForeignTokens(oidc.trust(**texts | parameters), keys_of, exists))
    return service


# Identity


def test_a_token_of_a_trusted_issuer_names_a_tenant_and_its_scopes(service: Service) -> None:
    caller = service.identify(service.issuer.token(NOW))

    assert caller == Caller("acme", "oidc:alice", frozenset({"jobs:read", "jobs:write"}))
    assert service.issuer.asked == [issuers.DISCOVERY, issuers.KEYS]


@pytest.mark.parametrize("algorithm", ALL_ALGORITHMS)
def test_every_algorithm_of_the_list_is_verified(service: Service, algorithm: str) -> None:
    service.issuer.publish({"k1": private_key(algorithm)})

    assert service.identify(service.issuer.token(NOW, algorithm=algorithm)).tenant == "acme"


@pytest.mark.parametrize("algorithm", ALL_ALGORITHMS)
def test_another_key_under_the_same_name_is_refused(service: Service, algorithm: str) -> None:
    service.issuer.publish({"k1": private_key(algorithm)})

    assert service.refuses(service.issuer.token(NOW, algorithm=algorithm, key=private_key(algorithm, 2)))


@pytest.mark.parametrize(
    ("claims", "parameters", "tenant", "scopes"),
    [
        pytest.param(
            {"scope": "api/jobs:read openid", "client_id": "c1", "aud": None, "token_use": "access", "tenant": "acme"},
            {"audience": "c1", "scopes": "api/*=*"},
            *("acme", {"jobs:read"}),
            id="cognito",
        ),
        pytest.param(
            {"roles": ["Jobs.Read", "Jobs.Write", "Other"], "tid": "acme", "tenant": None, "scope": None},
            {
                "claims": "tenant=tid,scopes=roles,scopes=scp",
                "scopes": "Jobs.Read=jobs:read,Jobs.Write=jobs:write",
            },
            *("acme", {"jobs:read", "jobs:write"}),
            id="entra",
        ),
        pytest.param(
            {"scope": ["app!t1.Read", "uaa.resource"], "ext_attr": {"zdn": "acme"}, "aud": ["app!t1", AUDIENCE]},
            {"claims": "tenant=ext_attr.zdn,scopes=scope", "scopes": "app!t1.Read=jobs:read+runs:write"},
            *("acme", {"jobs:read", "runs:write"}),
            id="xsuaa",
        ),
        pytest.param(
            {"permissions": ["jobs:read"], "https://example.org/tenant": "globex", "sub": "x@clients"},
            {"claims": "tenant=https://example.org/tenant,scopes=permissions"},
            *("globex", {"jobs:read"}),
            id="auth0",
        ),
    ],
)
def test_tokens_of_the_issuers_in_the_guide_are_accepted(
    issuer: Issuer, claims: dict[str, Any], parameters: dict[str, str], tenant: str, scopes: set[str]
) -> None:
    caller = serve(issuer, **parameters).identify(issuer.token(NOW, **claims))

    assert (caller.tenant, caller.scopes) == (tenant, scopes)


def test_a_tenants_scopes_never_include_those_of_the_provider(service: Service) -> None:
    caller = service.identify(service.issuer.token(NOW, scope="jobs:read provider:* provider:admin root"))

    assert caller.scopes == {"jobs:read"}


def test_the_provider_is_who_carries_the_named_value(issuer: Issuer) -> None:
    service = serve(issuer, claims="tenant=tenant,scopes=scope,provider=groups=operators")

    provider = service.identify(issuer.token(NOW, groups=["x", "operators"], scope="provider:*"))
    tenant = service.identify(issuer.token(NOW, groups=["operators-not"], scope="provider:* jobs:read"))

    assert (provider.tenant, provider.scopes) == (None, {"provider:*"})
    assert (tenant.tenant, tenant.scopes) == ("acme", {"jobs:read"})


def test_an_issuer_that_is_bound_to_a_tenant_speaks_for_no_other(issuer: Issuer) -> None:
    claims = "tenant=tenant,scopes=scope,provider=level=provider"
    service = serve(issuer, f"{issuer.url};audience={AUDIENCE};tenant=globex", claims=claims)

    caller = service.identify(issuer.token(NOW, tenant="acme", level="provider", scope="provider:* jobs:read"))

    assert (caller.tenant, caller.scopes) == ("globex", {"jobs:read"})


def test_the_address_of_an_issuers_keys_can_be_set_instead_of_discovered(issuer: Issuer) -> None:
    service = serve(issuer, f"http://old.localhost:8080/uaa;audience={AUDIENCE};keys={issuer.keys_url}")

    caller = service.identify(issuer.token(NOW, iss="http://old.localhost:8080/uaa"))

    assert caller.tenant == "acme"
    assert issuer.asked == [issuers.KEYS]


@pytest.mark.parametrize("tenant", ["nobody", "provider", "", "a b", "acme#x", "é", "a" * 65, 7, None, ["acme"], {}])
def test_an_unknown_tenant_is_refused(service: Service, tenant: object) -> None:
    assert service.refuses(service.issuer.token(NOW, tenant=tenant))


def test_a_new_tenant_is_found_soon_after_it_was_made(issuer: Issuer) -> None:
    service = serve(issuer)
    service.tokens._tenants._find = lambda name: name in made or None
    made: set[str] = set()
    token = issuer.token(NOW, tenant="newcomer")
    service.refuses(token)

    made.add("newcomer")

    assert service.refuses(token, NOW + timedelta(seconds=9))
    assert service.identify(token, NOW + timedelta(seconds=11)).tenant == "newcomer"


def test_a_tenant_is_looked_up_once_a_minute_and_only_for_a_token_that_holds(service: Service) -> None:
    token = service.issuer.token(NOW)

    service.refuses(service.issuer.token(NOW, key=private_key("RS256", 2), tenant="globex"))
    for seconds in (0, 1, 59, 61):
        service.identify(token, NOW + timedelta(seconds=seconds))

    assert service.asked == ["acme", "acme"]


# Tokens of other kinds


def spoiled(token: str, part: int, change: Callable[[Any], Any]) -> str:
    parts = token.split(".")
    members = json.loads(base64.urlsafe_b64decode(parts[part] + "=="))
    parts[part] = base64.urlsafe_b64encode(json.dumps(change(members)).encode()).decode().rstrip("=")
    return ".".join(parts)


AT = int(NOW.timestamp())


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://stranger.example"},
        {"iss": None},
        {"iss": ["http://127.0.0.1"]},
        {"aud": "https://other.example"},
        {"aud": None},
        {"aud": []},
        {"aud": [7, {"x": AUDIENCE}]},
        {"aud": {AUDIENCE: 1}},
        {"aud": AUDIENCE + "/"},
        {"aud": "https://other.example", "client_id": AUDIENCE},
        {"exp": None},
        {"exp": AT - 60},
        {"exp": str(AT + 300)},
        {"exp": True},
        {"exp": float("nan")},
        {"exp": float("inf")},
        {"exp": 10**400},
        {"exp": -1},
        {"nbf": AT + 61},
        {"nbf": "now"},
        {"iat": AT + 61},
        {"iat": []},
        {"sub": None},
        {"sub": 7},
        {"sub": ""},
        {"sub": "a b"},
        {"sub": "é"},
        {"sub": "\ud800"},
        {"sub": "x" * 256},
        {"token_use": "id"},
        {"nonce": "n-0S6_WzA2Mj"},
        {"at_hash": "77QmUPtjPfzWtF2AnpK9RQ"},
        {"c_hash": "LDktKdoQak3Pk0cnXxCltA", "token_use": "access"},
    ],
    ids=str,
)
def test_claims_that_do_not_hold_cost_no_look_up(service: Service, claims: dict[str, Any]) -> None:
    token = service.issuer.token(NOW)

    assert service.refuses(spoiled(token, 1, lambda members: changed(members, claims)))
    assert service.issuer.asked == []
    assert service.asked == []


def changed(members: Mapping[str, Any], claims: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**members, **claims}.items() if value is not None}


@pytest.mark.parametrize("claims", [{"exp": AT - 59}, {"nbf": AT + 60}, {"iat": AT + 60}, {"nbf": None, "iat": None}])
def test_clocks_may_differ_by_a_minute(service: Service, claims: dict[str, Any]) -> None:
    assert service.identify(service.issuer.token(NOW, **claims)).tenant == "acme"


@pytest.mark.parametrize(
    "head",
    [
        {"alg": "none"},
        {"alg": "None"},
        {"alg": "HS256"},
        {"alg": "HS512"},
        {"alg": "ES256K"},
        {"alg": "EdDSA"},
        {"alg": "ES256"},
        {"alg": ["RS256"]},
        {"alg": None},
        {"crit": ["b64"], "b64": False},
        {"crit": []},
        {"typ": "logout+jwt"},
        {"typ": 7},
        {"kid": 7},
        {"kid": ""},
        {"kid": "x" * 257},
        {"kid": "../../etc/passwd\x00"},
        {"kid": "k2"},
        {"kid": "K1"},
    ],
    ids=str,
)
def test_a_head_that_is_not_on_the_list_is_refused(service: Service, head: dict[str, Any]) -> None:
    """Signed with its issuer's key, which is no excuse."""
    assert service.refuses(resigned(service.issuer.token(NOW), head))


@pytest.mark.parametrize("head", [{}, {"typ": None}, {"typ": "at+jwt"}, {"typ": "JWT", "x5t": "abc"}], ids=str)
def test_a_head_may_say_what_it_must_not(service: Service, head: dict[str, Any]) -> None:
    assert service.identify(resigned(service.issuer.token(NOW), head)).tenant == "acme"


def resigned(token: str, head: dict[str, Any]) -> str:
    first = spoiled(token, 0, lambda members: changed(members, head)).rpartition(".")[0]
    signature = jwt.get_algorithm_by_name("RS256").sign(first.encode(), private_key("RS256"))
    return f"{first}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_public_key_is_never_taken_for_a_secret(service: Service, algorithm: str) -> None:
    public = private_key("RS256").public_key()
    forms = [
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        json.dumps(public_jwk(private_key("RS256"), "k1")).encode(),
    ]
    first = spoiled(service.issuer.token(NOW), 0, lambda head: {**head, "alg": algorithm}).rpartition(".")[0]

    for secret in forms:
        digest = hmac.digest(secret, first.encode(), getattr(hashlib, algorithm.replace("HS", "sha")))
        assert service.refuses(f"{first}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}")


@pytest.mark.parametrize("name", ["jku", "x5u", "jwk", "x5c"])
def test_keys_that_a_token_brings_along_are_not_looked_at(service: Service, name: str) -> None:
    mine = private_key("RS256", 2)
    brought = public_jwk(mine, "k1") if name == "jwk" else service.issuer.url + "/mine"

    assert service.refuses(service.issuer.token(NOW, key=mine, head={name: brought}))
    assert "/mine" not in service.issuer.asked


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "a.b.c",
        "a.b",
        "a.b.c.d.e",
        "é.é.é",
        "e30.e30.",
        "e30.e30.e30",
        "W10.W10.W10",
        "bnVsbA.bnVsbA.bnVsbA",
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhY21lIn0.",
        ".".join([base64.urlsafe_b64encode(b"[" * 700).decode().rstrip("=")] * 2) + ".x",
        "e30." + base64.urlsafe_b64encode(b'{"a":' * 1_000).decode().rstrip("=") + ".x",
        "e30." + base64.urlsafe_b64encode(b"9" * 5_000).decode().rstrip("=") + ".x",
        "e30." + base64.urlsafe_b64encode(b'"\xff"').decode().rstrip("=") + ".x",
        "e30." + "A" * 8_000 + ".x",
    ],
)
def test_a_malformed_token_is_refused_by_its_form(service: Service, token: str) -> None:
    assert service.refuses(token)
    assert service.issuer.asked == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["iss", "sub", "aud", "exp", "nbf", "iat", "tenant", "scope", "scp", "client_id", "token_use"])


@settings(max_examples=scaled(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(claims=st.dictionaries(names, json_values, max_size=4), head=st.dictionaries(names, json_values, max_size=2))
def test_a_signed_token_may_say_anything_and_is_taken_or_refused(
    service: Service, claims: dict[str, Any], head: dict[str, Any]
) -> None:
    payload = {**jwt.decode(service.issuer.token(NOW), options={"verify_signature": False}), **claims}
    signed = jwt.PyJWS().encode(
        json.dumps(payload).encode(), private_key("RS256"), algorithm="RS256", headers={"kid": "k1", **head}
    )

    try:
        caller = service.identify(signed)
    except Unauthenticated:
        return
    assert caller.tenant in {"acme", "globex"}
    assert caller.scopes <= oidc.TENANT_SCOPES


# The parameters


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuers": "ftp://x;audience=a"},
        {"issuers": "https://x y;audience=a"},
        {"issuers": "https://x;audience=a;tenant=provider"},
        {"issuers": "https://x;audience=a;tenant=a b"},
        {"issuers": "https://x;audience=a;colour=red"},
        {"issuers": "https://x;audience=a;tenant=a;tenant=b"},
        {"issuers": "https://x"},
        {"issuers": "https://x;audience="},
        {"scopes": "read"},
        {"scopes": "=jobs:read"},
        {"scopes": "read=jobs:reed"},
        {"scopes": "read=*"},
        {"claims": "tenant"},
        {"claims": "tenant=a,tenant=b"},
        {"claims": "tenant=a,colour=red"},
    ],
    ids=str,
)
def test_a_parameter_that_cannot_be_read_is_an_error_with_its_text(wrong: dict[str, str]) -> None:
    texts = {"issuers": "https://x;audience=a", "claims": "tenant=tenant", "scopes": ""}

    with pytest.raises(ValueError) as refused:
        oidc.trust(**{**texts, **wrong})

    assert next(iter(wrong.values())).rpartition(",")[2] in str(refused.value)


@pytest.mark.parametrize("claims", ["", "scopes=scope", "tenant=t,provider=groups", "tenant=t,provider=groups="])
def test_claims_that_lack_the_tenants_or_a_value_of_the_providers_are_an_error(claims: str) -> None:
    with pytest.raises(ValueError, match=r"claim"):
        oidc.trust(issuers="https://x;audience=a", claims=claims, scopes="")


def test_an_audience_of_one_issuer_is_none_of_another(issuer: Issuer) -> None:
    service = serve(issuer, f"{issuer.url};audience=mine;audience=ours,https://other.example;audience={AUDIENCE}")

    assert service.refuses(issuer.token(NOW))
    assert service.refuses(issuer.token(NOW, aud=""))
    assert service.identify(issuer.token(NOW, aud="ours")).tenant == "acme"
