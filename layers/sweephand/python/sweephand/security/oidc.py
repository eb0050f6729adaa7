"""Tokens of other issuers (OpenID Connect, RFC 9068): who is trusted, and what their claims say here.

Everything that can be judged without asking anybody is judged first, so that a token of a stranger, for somebody else
or out of time costs no look-up. Decision 0021. Import at the first token of another issuer only: with PyJWT comes
cryptography.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jwt

from sweephand.errors import Unauthenticated
from sweephand.security.caller import SCOPES, TENANT_SCOPES, Caller, is_tenant_name
from sweephand.security.jwks import ALGORITHMS, Keys
from sweephand.security.memory import Memory
from sweephand.security.tokens import head_of, json_part

LEEWAY_S = 60
LATEST = 10**11
"""Epoch seconds, in the year 5138: what is beyond is no instant."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,1024}\.([A-Za-z0-9_-]{1,7168})\.[A-Za-z0-9_-]{1,1400}", re.ASCII)
"""A signature of RSA with 8,192 bits has 1,366 characters."""
_OF_ID_TOKENS = frozenset({"nonce", "at_hash", "c_hash"})
"""Claims that only ID tokens have (OpenID Connect Core, 2 and 3.3.2.11)."""
_KID = re.compile(r"[!-~]{1,256}", re.ASCII)
_SUBJECT = re.compile(r"[!-~]{1,255}", re.ASCII)
_ISSUER = re.compile(r"https?://[!-+\--:<-~]{1,500}", re.ASCII)
_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})


@dataclass(frozen=True)
class Issuer:
    """url: as tokens name it, compared letter by letter. tenant: the one all its tokens are for; None: a claim says.

    keys_url: where its keys are; None: its discovery document says.
    """

    url: str
    tenant: str | None = None
    keys_url: str | None = None


@dataclass(frozen=True)
class ScopeMap:
    """What a scope of theirs is here. prefixes: what stands before names that are ours already."""

    exact: Mapping[str, frozenset[str]]
    prefixes: tuple[str, ...]

    def ours(self, theirs: frozenset[str]) -> frozenset[str]:
        found = set().union(*(self.exact.get(name, ()) for name in theirs))
        for prefix in self.prefixes:
            found |= {name.removeprefix(prefix) for name in theirs if name.startswith(prefix)}
        return frozenset(found & SCOPES)


@dataclass(frozen=True)
class Trust:
    """The template's parameters Oidc*, read. provider: claim and value of who acts for the provider; None: nobody."""

    issuers: Mapping[str, Issuer]
    audiences: frozenset[str]
    tenant_claim: str
    scope_claims: tuple[str, ...]
    scopes: ScopeMap
    provider: tuple[str, str] | None


def trust(*, issuers: str, audiences: str, tenant_claim: str, scope_claims: str, scopes: str, provider: str) -> Trust:
    """The parameters' texts, as docs/guide/identity.md describes them. Raises ValueError with the culprit."""
    listed = [_issuer(text) for text in _pieces(issuers)]
    claim, _, value = provider.partition("=")
    if provider and not (claim and value):
        raise ValueError(f"the provider's claim is written claim=value: {provider}")
    return Trust(
        issuers={issuer.url: issuer for issuer in listed},
        audiences=frozenset(_pieces(audiences)),
        tenant_claim=tenant_claim,
        scope_claims=_pieces(scope_claims),
        scopes=_scope_map(_pieces(scopes)),
        provider=(claim, value) if provider else None,
    )


def _pieces(text: str) -> tuple[str, ...]:
    return tuple(piece.strip() for piece in text.split(",") if piece.strip())


def _issuer(text: str) -> Issuer:
    url, *options = text.split(";")
    given = dict(option.partition("=")[::2] for option in options)
    if not _ISSUER.fullmatch(url) or not given.keys() <= {"tenant", "keys"} or len(given) < len(options):
        raise ValueError(f"an issuer is written url, url;tenant=name or url;keys=url: {text}")
    if "tenant" in given and not is_tenant_name(given["tenant"]):
        raise ValueError(f"no tenant can have this name: {text}")
    return Issuer(url, given.get("tenant"), given.get("keys"))


def _scope_map(lines: tuple[str, ...]) -> ScopeMap:
    """Without a line, names are taken as they are."""
    exact: dict[str, frozenset[str]] = {}
    prefixes = [] if lines else [""]
    for line in lines:
        theirs, _, text = line.rpartition("=")
        if theirs.endswith("*") and text == "*":
            prefixes.append(theirs[:-1])
            continue
        ours = frozenset(text.split("+"))
        if not theirs or not ours <= SCOPES:
            raise ValueError(f"a scope is written theirs=ours, with ours known here: {line}")
        exact[theirs] = exact.get(theirs, frozenset()) | ours
    return ScopeMap(exact, tuple(prefixes))


class ForeignTokens:
    """Tells who calls by a token of a trusted issuer. Holds for one process, and for all its doors."""

    def __init__(self, trusted: Trust, keys_of: Callable[[Issuer], Keys], tenant_exists: Callable[[str], bool]) -> None:
        self._trust = trusted
        self._keys_of = keys_of
        self._keys: dict[str, Keys] = {}
        self._tenants = Memory[str, bool](lambda name: tenant_exists(name) or None)

    def identify(self, token: str, now: datetime) -> Caller:
        """Raises Unauthenticated, the same for whatever is wrong. Raises nothing else but for what the table does."""
        head, members = _parts(token)
        issuer = self._judged(members, now)
        identity = read_claims(self._trust, issuer, members)
        self._verify(issuer, head, token, now)
        if identity.tenant is not None and not self._tenants.look_up(identity.tenant, now):
            raise _nobody()
        return identity

    def _judged(self, members: Mapping[str, Any], now: datetime) -> Issuer:
        """The trusted issuer that the token names, if it is for us and holds now. Raises Unauthenticated."""
        named = members.get("iss")
        issuer = self._trust.issuers.get(named) if isinstance(named, str) else None
        if issuer is None or not _is_for(members, self._trust.audiences) or not _holds(members, now):
            raise _nobody()
        # Where a client also signs users in, its ID tokens have the audience of its access tokens. They prove to the
        # client who signed in, and are no key to anything.
        if members.get("token_use", "access") != "access" or _OF_ID_TOKENS & members.keys():
            raise _nobody()
        return issuer

    def _verify(self, issuer: Issuer, head: Mapping[str, Any], token: str, now: datetime) -> None:
        algorithm, kid = head.get("alg"), head.get("kid")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise _nobody()
        if kid is not None and not (isinstance(kid, str) and _KID.fullmatch(kid)):
            raise _nobody()
        if issuer.url not in self._keys:
            self._keys[issuer.url] = self._keys_of(issuer)
        key = self._keys[issuer.url].find(kid, algorithm, now)
        if key is None:
            raise _nobody()
        try:
            jwt.PyJWS().decode(token, key, algorithms=[algorithm])
        except jwt.PyJWTError as wrong:
            raise _nobody() from wrong


def read_claims(trusted: Trust, issuer: Issuer, members: Mapping[str, Any]) -> Caller:
    """Whom the claims name. An issuer that is bound to a tenant speaks for no other, nor for the provider.

    Raises Unauthenticated for claims that name nobody, or a tenant that cannot be.
    """
    subject = members.get("sub")
    if not isinstance(subject, str) or not _SUBJECT.fullmatch(subject):
        raise _nobody()
    granted = trusted.scopes.ours(_texts(members, trusted.scope_claims))
    # Told apart from a credential's id, in which no colon can be.
    name = f"oidc:{subject}"
    if issuer.tenant is None and trusted.provider is not None:
        claim, value = trusted.provider
        if value in _texts(members, (claim,)):
            return Caller(None, name, granted)
    tenant = issuer.tenant or claim_of(members, trusted.tenant_claim)
    if not isinstance(tenant, str) or not is_tenant_name(tenant):
        raise _nobody()
    return Caller(tenant, name, granted & TENANT_SCOPES)


def claim_of(members: Mapping[str, Any], name: str) -> Any:
    """A claim by its whole name, which may have dots (a URL), else by its path, `ext_attr.zdn`; None without it."""
    if name in members:
        return members[name]
    node: Any = members
    for part in name.split("."):
        if not isinstance(node, Mapping) or part not in node:
            return None
        node = node[part]
    return node


def _texts(members: Mapping[str, Any], claims: tuple[str, ...]) -> frozenset[str]:
    """The words of these claims: issuers write them as a text with blanks, or as a list."""
    found: list[str] = []
    for claim in claims:
        value = claim_of(members, claim)
        if isinstance(value, str):
            found += value.split()
        elif isinstance(value, list):
            found += [word for word in value if isinstance(word, str)]
    return frozenset(found)


def _parts(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Head and claims, by their form alone."""
    form = _TOKEN.fullmatch(token)
    head = head_of(token) if form else None
    members = json_part(form[1]) if form and head is not None else None
    if head is None or members is None or "crit" in head:
        raise _nobody()
    kind = head.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise _nobody()
    return head, members


def _is_for(members: Mapping[str, Any], audiences: frozenset[str]) -> bool:
    """aud, or where there is none (Cognito's access tokens) the client."""
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
    """Epoch seconds, None for what can be no date; NaN is within no bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST:
        return None
    return value


def _nobody() -> Unauthenticated:
    return Unauthenticated()
