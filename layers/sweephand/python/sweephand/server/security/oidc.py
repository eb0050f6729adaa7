"""Tokens of other issuers (OpenID Connect, RFC 9068): the trusted issuers, and the meaning of their claims.

All checks that need no look-up come first, so that tokens of unknown issuers, for other audiences or out of time are
cheap to refuse. Source: decision 0021. Import this module only for the first token of another issuer, because PyJWT
imports cryptography.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import jwt

from sweephand.base.errors import Unauthenticated
from sweephand.base.records import dataclass
from sweephand.server.security.caller import SCOPES, TENANT_SCOPES, Caller, is_tenant_name
from sweephand.server.security.jwks import ALGORITHMS, Keys
from sweephand.server.security.memory import Memory
from sweephand.server.security.tokens import head_of, json_part

LEEWAY_S = 60
LATEST = 10**11
"""The largest valid instant in epoch seconds, in the year 5138."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,1024}\.([A-Za-z0-9_-]{1,7168})\.[A-Za-z0-9_-]{1,1400}", re.ASCII)
"""The form of a token. An RSA signature of 8,192 bits has 1,366 characters."""
_OF_ID_TOKENS = frozenset({"nonce", "at_hash", "c_hash"})
"""Claims that only ID tokens have (OpenID Connect Core, 2 and 3.3.2.11)."""
_KID = re.compile(r"[!-~]{1,256}", re.ASCII)
_SUBJECT = re.compile(r"[!-~]{1,255}", re.ASCII)
_ISSUER = re.compile(r"https?://[!-+\--:<-~]{1,500}", re.ASCII)
_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})


@dataclass(frozen=True)
class Issuer:
    """A trusted issuer. url: as in its tokens, compared exactly. tenant: of all its tokens; None: a claim names it.

    audiences: a token must name one of them. keys_url: the address of its keys; None: its discovery document names it.
    """

    url: str
    audiences: frozenset[str]
    tenant: str | None = None
    keys_url: str | None = None


@dataclass(frozen=True)
class ScopeMap:
    """The scopes of other issuers mapped to ours. prefixes: removed from names that are otherwise ours."""

    exact: Mapping[str, frozenset[str]]
    prefixes: tuple[str, ...]

    def ours(self, theirs: frozenset[str]) -> frozenset[str]:
        scopes = set().union(*(self.exact.get(name, ()) for name in theirs))
        for prefix in self.prefixes:
            scopes |= {name.removeprefix(prefix) for name in theirs if name.startswith(prefix)}
        return frozenset(scopes & SCOPES)


@dataclass(frozen=True)
class Trust:
    """The template's parameters Oidc*. provider: claim and value of tokens that act for the provider, if any."""

    issuers: Mapping[str, Issuer]
    tenant_claim: str
    scope_claims: tuple[str, ...]
    scopes: ScopeMap
    provider: tuple[str, str] | None


def trust(*, issuers: str, claims: str, scopes: str) -> Trust:
    """Reads the parameters, described in docs/guide/identity.md. Raises ValueError with the invalid part."""
    listed = [_issuer(text) for text in _pieces(issuers)]
    named = _named_claims(_pieces(claims))
    provider = named["provider"][0] if named["provider"] else ""
    claim, _, value = provider.partition("=")
    if provider and not (claim and value):
        raise ValueError(f"the provider's claim must have the form provider=claim=value, not provider={provider}")
    return Trust(
        issuers={issuer.url: issuer for issuer in listed},
        tenant_claim=named["tenant"][0],
        scope_claims=tuple(named["scopes"]),
        scopes=_scope_map(_pieces(scopes)),
        provider=(claim, value) if provider else None,
    )


def _named_claims(pieces: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Returns the claims that mean the tenant, scopes and the provider. Raises ValueError for another meaning."""
    named: dict[str, list[str]] = {"tenant": [], "scopes": [], "provider": []}
    for piece in pieces:
        meaning, _, claim = piece.partition("=")
        if meaning not in named or not claim or (meaning != "scopes" and named[meaning]):
            raise ValueError(f"claims must have the form tenant=a,scopes=b,provider=c=value, not {piece}")
        named[meaning].append(claim)
    if not named["tenant"]:
        raise ValueError("the claims must name the tenant's: tenant=claim")
    return named


def _pieces(text: str) -> tuple[str, ...]:
    return tuple(piece.strip() for piece in text.split(",") if piece.strip())


def _issuer(text: str) -> Issuer:
    url, *options = text.split(";")
    audiences = [option for option in options if option.startswith("audience=")]
    others = [option.partition("=")[::2] for option in options if option not in audiences]
    bound = dict(others)
    known = bound.keys() <= {"tenant", "keys"} and len(bound) == len(others)
    if not _ISSUER.fullmatch(url) or not known or not audiences or "audience=" in audiences:
        raise ValueError(f"an issuer must have the form url;audience=name;tenant=name;keys=url, not {text}")
    if "tenant" in bound and not is_tenant_name(bound["tenant"]):
        raise ValueError(f"no tenant can have this name: {text}")
    names = frozenset(option.removeprefix("audience=") for option in audiences)
    return Issuer(url, names, bound.get("tenant"), bound.get("keys"))


def _scope_map(lines: tuple[str, ...]) -> ScopeMap:
    """Reads the scope map. Without lines, names stay unchanged."""
    exact: dict[str, frozenset[str]] = {}
    prefixes = [] if lines else [""]
    for line in lines:
        theirs, _, text = line.rpartition("=")
        if theirs.endswith("*") and text == "*":
            prefixes.append(theirs[:-1])
            continue
        ours = frozenset(text.split("+"))
        if not theirs or not ours <= SCOPES:
            raise ValueError(f"a scope must have the form theirs=ours with a known scope of ours, not {line}")
        exact[theirs] = exact.get(theirs, frozenset()) | ours
    return ScopeMap(exact, tuple(prefixes))


class ForeignTokens:
    """The identification of callers by tokens of trusted issuers, one for a process and all its doors."""

    def __init__(self, trusted: Trust, keys_of: Callable[[Issuer], Keys], tenant_exists: Callable[[str], bool]) -> None:
        self._trust = trusted
        self._keys_of = keys_of
        self._keys: dict[str, Keys] = {}
        self._tenants = Memory[str, bool](lambda name: tenant_exists(name) or None)

    def identify(self, token: str, now: datetime) -> Caller:
        """Identifies the caller. Raises the same Unauthenticated for every invalid token."""
        head, members = _parts(token)
        issuer = self._judged(members, now)
        identity = read_claims(self._trust, issuer, members)
        self._verify(issuer, head, token, now)
        if identity.tenant is not None and not self._tenants.look_up(identity.tenant, now):
            raise Unauthenticated
        return identity

    def _judged(self, members: Mapping[str, Any], now: datetime) -> Issuer:
        """Returns the trusted issuer of a token that is for us and valid now. Raises Unauthenticated."""
        named = members.get("iss")
        issuer = self._trust.issuers.get(named) if isinstance(named, str) else None
        if issuer is None or not _is_for(members, issuer.audiences) or not _holds(members, now):
            raise Unauthenticated
        # If a client also signs users in, its ID tokens have the audience of its access tokens. They prove to that
        # client who signed in, and must not give access.
        if members.get("token_use", "access") != "access" or _OF_ID_TOKENS & members.keys():
            raise Unauthenticated
        return issuer

    def _verify(self, issuer: Issuer, head: Mapping[str, Any], token: str, now: datetime) -> None:
        algorithm, kid = head.get("alg"), head.get("kid")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise Unauthenticated
        if kid is not None and not (isinstance(kid, str) and _KID.fullmatch(kid)):
            raise Unauthenticated
        if issuer.url not in self._keys:
            self._keys[issuer.url] = self._keys_of(issuer)
        key = self._keys[issuer.url].find(kid, algorithm, now)
        if key is None:
            raise Unauthenticated
        try:
            jwt.PyJWS().decode(token, key, algorithms=[algorithm])
        except jwt.PyJWTError as wrong:
            raise Unauthenticated from wrong


def read_claims(trusted: Trust, issuer: Issuer, members: Mapping[str, Any]) -> Caller:
    """Returns the caller that the claims name. An issuer bound to a tenant acts for that tenant alone.

    Raises Unauthenticated if the claims name no subject or no valid tenant.
    """
    subject = members.get("sub")
    if not isinstance(subject, str) or not _SUBJECT.fullmatch(subject):
        raise Unauthenticated
    granted = trusted.scopes.ours(_texts(members, trusted.scope_claims))
    # Differs from every credential's id, which contains no colon.
    name = f"oidc:{subject}"
    if issuer.tenant is None and trusted.provider is not None:
        claim, value = trusted.provider
        if value in _texts(members, (claim,)):
            return Caller(None, name, granted)
    tenant = issuer.tenant or claim_of(members, trusted.tenant_claim)
    if not isinstance(tenant, str) or not is_tenant_name(tenant):
        raise Unauthenticated
    return Caller(tenant, name, granted & TENANT_SCOPES)


def claim_of(members: Mapping[str, Any], name: str) -> Any:
    """Returns a claim by its whole name, which may contain dots (a URL), or by its path, `ext_attr.zdn`; else None."""
    if name in members:
        return members[name]
    node: Any = members
    for part in name.split("."):
        if not isinstance(node, Mapping) or part not in node:
            return None
        node = node[part]
    return node


def _texts(members: Mapping[str, Any], claims: tuple[str, ...]) -> frozenset[str]:
    """Returns the words of these claims, which are strings separated by spaces, or lists."""
    texts: list[str] = []
    for claim in claims:
        value = claim_of(members, claim)
        if isinstance(value, str):
            texts += value.split()
        elif isinstance(value, list):
            texts += [word for word in value if isinstance(word, str)]
    return frozenset(texts)


def _parts(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Returns the header and the claims, not verified."""
    form = _TOKEN.fullmatch(token)
    head = head_of(token) if form else None
    members = json_part(form[1]) if form and head is not None else None
    if head is None or members is None or "crit" in head:
        raise Unauthenticated
    kind = head.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise Unauthenticated
    return head, members


def _is_for(members: Mapping[str, Any], audiences: frozenset[str]) -> bool:
    """Returns True if `aud` or, without it (Cognito's access tokens), `client_id` is one of the audiences."""
    named = members.get("aud", members.get("client_id"))
    named = named if isinstance(named, list) else [named]
    return any(isinstance(name, str) and name in audiences for name in named)


def _holds(members: Mapping[str, Any], now: datetime) -> bool:
    at = now.timestamp()
    expires = _instant(members.get("exp"))
    begins, issued = _instant(members.get("nbf", 0)), _instant(members.get("iat", 0))
    if expires is None or begins is None or issued is None:
        return False
    return max(begins, issued) - LEEWAY_S <= at < expires + LEEWAY_S


def _instant(value: Any) -> float | None:
    """Returns epoch seconds; None for an invalid date. The comparison rejects NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST:
        return None
    return value
