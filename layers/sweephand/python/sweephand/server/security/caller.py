"""The door: identifies callers by a credential, by a token that was issued for one, or by another issuer's token.

The form is checked before anything is looked up, and results are cached for a short time. Every refusal has the same
message, so that nobody learns which ids exist.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sweephand.base.errors import HOW_TO_IDENTIFY, Forbidden, InvalidRequest, Unauthenticated
from sweephand.base.records import dataclass
from sweephand.server.security import tokens
from sweephand.server.security.memory import KNOWN_FOR, UNKNOWN_FOR, Memory
from sweephand.server.security.tokens import AccessClaims, CallbackKey, StackKeys

if TYPE_CHECKING:
    from sweephand.base.sources import Chance

PROVIDER = "provider"
"""Replaces the tenant in a client id of the provider. No tenant may have this name."""
PROVIDER_ALL = "provider:*"
TENANT_SCOPES = frozenset(
    {"jobs:read", "jobs:write", "messages:write", "runs:write", "tasks:write", "errors:edit", "admin"}
)
PROVIDER_SCOPES = frozenset({PROVIDER_ALL, "provider:admin"})
SCOPES = TENANT_SCOPES | PROVIDER_SCOPES
FIRST_ID = "admin"
RUN_TARGET = "target"
"""Replaces a credential's id for callers with the token of a run."""

_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_CLIENT_ID = re.compile(rf"({_TENANT.pattern})\.([A-Za-z0-9]{{1,32}})", re.ASCII)
_SECRET = re.compile(r"[!-~]{1,256}", re.ASCII)
_BASIC = re.compile(r"[Bb][Aa][Ss][Ii][Cc] ([A-Za-z0-9+/]{1,600}={0,2})", re.ASCII)
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] ([A-Za-z0-9_.~+/-]{1,8192}=*)", re.ASCII)
_LONGEST_HEADER = 8_300
LONGEST_CLAIM = 300
"""The most characters of an issuer and a subject in a log line."""


@dataclass(frozen=True)
class ClientSecret:
    """A client's id and secret. tenant: None at provider level. id: the part of the client id after the dot."""

    tenant: str | None
    id: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class BearerToken:
    token: str = field(repr=False)


@dataclass(frozen=True)
class Credential:
    """A stored credential. secret_hash: SHA-256 in hex; 256 random bits need neither salt nor a slow hash.

    since: when it was created; None for the stack's own. former_hash: hash of the secret before the last rotation. That
    secret and the tokens issued for it are accepted before `former_until`.
    """

    tenant: str | None
    id: str
    secret_hash: str
    scopes: frozenset[str]
    generation: int = 1
    since: datetime | None = field(default=None, compare=False)
    former_hash: str | None = None
    former_until: datetime | None = None

    @property
    def client_id(self) -> str:
        return f"{self.tenant or PROVIDER}.{self.id}"

    def has_former(self, now: datetime) -> bool:
        """Returns True if the secret before the last rotation is accepted too."""
        return self.former_hash is not None and self.former_until is not None and now < self.former_until

    def generation_of(self, hashed: str, now: datetime) -> int | None:
        """Returns the generation whose secret has this hash; None if no accepted secret has it."""
        newest = hmac.compare_digest(self.secret_hash, hashed)
        former = hmac.compare_digest(self.former_hash or "", hashed) and self.has_former(now)
        return self.generation if newest else self.generation - 1 if former else None

    def accepts(self, generation: int, now: datetime) -> bool:
        """Returns True if tokens of this generation are accepted."""
        return generation == self.generation or (generation == self.generation - 1 and self.has_former(now))


@dataclass(frozen=True)
class Caller:
    """A verified identity. tenant: None at provider level, where each request names the tenant that it acts for.

    since: when its credential was created; None for a token of another issuer. former_key: whether its token was signed
    with the stack's secret before the last rotation.
    """

    tenant: str | None
    credential_id: str
    scopes: frozenset[str]
    generation: int = 1
    since: datetime | None = field(default=None, compare=False)
    former_key: bool = False

    @property
    def client_id(self) -> str:
        """Returns its name in change logs, events and log lines."""
        return f"{self.tenant or PROVIDER}.{self.credential_id}"

    @property
    def provider(self) -> bool:
        return self.tenant is None

    def allows(self, scope: str) -> bool:
        return scope in self.scopes or (self.provider and PROVIDER_ALL in self.scopes)

    def require(self, scope: str) -> None:
        """Raises Forbidden without this scope."""
        if not self.allows(scope):
            raise Forbidden(f"this needs the scope {scope}, which this credential or token does not have")

    def acting_for(self, named: str | None) -> str:
        """Returns the tenant whose data this request may access. named: the header Sweephand-Tenant.

        Raises Forbidden if a tenant names another one, InvalidRequest if a provider names none.
        """
        if self.tenant is not None:
            if named not in {None, self.tenant}:
                raise Forbidden("a tenant acts only for itself")
            return self.tenant
        if named is None or not is_tenant_name(named):
            raise InvalidRequest(
                "Sweephand-Tenant",
                "this header must name the tenant that the provider acts for, such as Sweephand-Tenant: acme",
                code="INVALID_QUERY",
            )
        return named


AT_ONCE = timedelta(0)
FindCredential = Callable[[str | None, str], Credential | None]
"""(tenant or None at provider level, id) -> the stored credential."""
ByForeignToken = Callable[[str, datetime], Caller]
"""Returns the caller that another issuer's token names, given the token and now.

Raises Unauthenticated. See oidc.py.
"""


class Door:
    """The identification of callers, one for a process. Its caches delay changes, by 60 s at most."""

    def __init__(
        self,
        keys: StackKeys,
        first_secret: str,
        find_credential: FindCredential,
        by_foreign_token: ByForeignToken | None = None,
        callback_key: Callable[[], CallbackKey] | None = None,
        fresh_door: Callable[[], Door] | None = None,
    ) -> None:
        """Creates a door. first_secret: of provider.admin, whose credential is the stack's own and not in the table.

        by_foreign_token: None if no other issuer is trusted. callback_key: None if no run reports. fresh_door: makes a
        door from the stack's current secret; None if the secret never changes.
        """
        self._keys = keys
        self._callback_key = callback_key
        self._fresh_door = fresh_door
        self._first = Credential(None, FIRST_ID, hash_secret(first_secret), frozenset({PROVIDER_ALL}))
        self._stored = Memory[tuple[str | None, str], Credential](lambda key: find_credential(*key))
        self._by_foreign_token = by_foreign_token

    def identify(self, authorization: str | None, now: datetime) -> Caller:
        """Identifies the caller by the header `Authorization`. Raises Unauthenticated."""
        return self._identified(authorization, now, KNOWN_FOR)

    def identify_uncached(self, authorization: str | None, now: datetime) -> Caller:
        """Identifies the caller by its current credential and the stack's current secret, without caches.

        Requests that give or take access use it, so that revoked credentials cannot create new ones. Raises
        Unauthenticated, even for a token that was signed with the secret before the last rotation.
        """
        door = self if self._fresh_door is None else self._fresh_door()
        caller = door._identified(authorization, now, AT_ONCE)  # noqa: SLF001 - a door like this one
        if caller.former_key:
            raise Unauthenticated("this token was signed before the stack's secret was replaced: get a new token")
        return caller

    def _identified(self, authorization: str | None, now: datetime, known_for: timedelta) -> Caller:
        match parse_authorization(authorization):
            case ClientSecret() as presented:
                return self.by_secret(presented, now, known_for)
            case BearerToken(token):
                return self._by_token(token, now, known_for)

    def by_secret(self, secret: ClientSecret, now: datetime, known_for: timedelta = KNOWN_FOR) -> Caller:
        hashed = hash_secret(secret.secret)
        credential = self._credential(
            secret.tenant, secret.id, now, known_for, lambda stored: stored.generation_of(hashed, now) is not None
        )
        generation = credential.generation_of(hashed, now) or credential.generation
        return Caller(credential.tenant, credential.id, credential.scopes, generation, credential.since)

    def by_run_token(self, token: str, run_id: str, now: datetime) -> Caller:
        """Identifies the target of a run by the token that was sent to it. Raises Unauthenticated."""
        if self._callback_key is None:
            raise Unauthenticated
        accepted = tokens.callback_keys(self._callback_key(), self._keys, now)
        tenant = tokens.callback_tenant(accepted, run_id, token)
        if tenant is None:
            raise Unauthenticated("the token in Sweephand-Callback-Token is not the one that was sent for this run")
        return Caller(tenant, RUN_TARGET, frozenset({"runs:write"}))

    def issue(
        self, caller: Caller, now: datetime, wanted: Iterable[str] = (), token_id: str = ""
    ) -> tuple[str, frozenset[str]]:
        """Returns a token for one hour, and its scopes: those wanted, else all of the caller's. token_id: its `jti`.

        Raises InvalidRequest for a scope that does not exist, Forbidden for one that the caller lacks.
        """
        scopes = frozenset(wanted) or caller.scopes
        for scope in scopes:
            if scope not in SCOPES:
                raise InvalidRequest("scope", "is not a scope")
            caller.require(scope)
        claims = AccessClaims(caller.tenant, caller.credential_id, caller.generation, scopes)
        return tokens.issue(self._keys, claims, now, token_id), scopes

    def _by_token(self, token: str, now: datetime, known_for: timedelta) -> Caller:
        if self._by_foreign_token is not None and not tokens.names_own_algorithm(token):
            return self._by_foreign_token(token, now)
        claims = tokens.verify(self._keys, token, now)
        credential = self._credential(
            claims.tenant, claims.credential_id, now, known_for, lambda stored: stored.accepts(claims.generation, now)
        )
        # A scope that was removed from the credential is removed from its tokens too.
        present = Caller(credential.tenant, credential.id, credential.scopes)
        scopes = frozenset(scope for scope in claims.scopes if present.allows(scope))
        caller = Caller(credential.tenant, credential.id, scopes, claims.generation, credential.since)
        return replace(caller, former_key=claims.former_key)

    def _credential(
        self, tenant: str | None, name: str, now: datetime, known_for: timedelta, fits: Callable[[Credential], bool]
    ) -> Credential:
        """Returns the stored credential that fits. One that does not fit is read again, at most every 10 s."""
        if tenant is None and name == FIRST_ID:
            credential: Credential | None = self._first
        else:
            credential = self._stored.look_up((tenant, name), now, known_for)
            if credential is not None and not fits(credential):
                credential = self._stored.look_up((tenant, name), now, UNKNOWN_FOR)
        if credential is None or not fits(credential):
            raise Unauthenticated
        return credential


def parse_authorization(header: str | None) -> ClientSecret | BearerToken:
    """Reads the header without verifying it. Raises Unauthenticated for any other form."""
    if header is None:
        raise Unauthenticated(f"the header Authorization is missing: {HOW_TO_IDENTIFY}")
    if len(header) > _LONGEST_HEADER:
        raise _unread()
    bearer = _BEARER.fullmatch(header)
    if bearer:
        return BearerToken(bearer[1])
    basic = _BASIC.fullmatch(header)
    if not basic:
        raise _unread()
    try:
        client_id, colon, secret = base64.b64decode(basic[1], validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as wrong:
        raise _unread() from wrong
    if not colon:
        raise _unread()
    return client_secret(client_id, secret)


def client_secret(client_id: str, secret: str) -> ClientSecret:
    """Reads a client's id and secret from Basic or the form of /oauth/token. Raises Unauthenticated."""
    parts = client_id_parts(client_id)
    if parts is None or not _SECRET.fullmatch(secret):
        raise Unauthenticated
    return ClientSecret(*parts, secret)


def claimed_identity(authorization: str | None) -> str | None:
    """Returns the identity that the header claims, for logs: a client id, or issuer and subject of a foreign token.

    The identity is not verified. It contains no secret, because it must have the form of a client id or of claims.
    """
    try:
        presented = parse_authorization(authorization)
    except Unauthenticated:
        return None
    if isinstance(presented, ClientSecret):
        return f"{presented.tenant or PROVIDER}.{presented.id}"
    claims = tokens.json_part(presented.token.split(".")[1]) if presented.token.count(".") == 2 else None
    if claims is None:
        return None
    issuer, subject = claims.get("iss"), claims.get("sub")
    if issuer is None:
        named = f"{claims.get('tenant') or PROVIDER}.{subject}"
        return named if client_id_parts(named) else None
    return f"{issuer} {subject}"[:LONGEST_CLAIM] if isinstance(issuer, str) and isinstance(subject, str) else None


def client_id_parts(text: str) -> tuple[str | None, str] | None:
    """Returns the tenant (None at provider level) and the credential's id; None if it is not a client id."""
    parts = _CLIENT_ID.fullmatch(text)
    return (None if parts[1] == PROVIDER else parts[1], parts[2]) if parts else None


def is_credential_id(text: str) -> bool:
    return client_id_parts(f"{PROVIDER}.{text}") is not None


def is_tenant_name(text: str) -> bool:
    return text != PROVIDER and _TENANT.fullmatch(text) is not None


def is_free_name(text: str) -> bool:
    """Returns True if a new tenant may have this name: never `provider`, in upper or lower case."""
    return is_tenant_name(text) and text.lower() != PROVIDER


def new_credential(tenant: str | None, scopes: Iterable[str], chance: Chance) -> tuple[Credential, str]:
    """Returns a new credential and its secret of 256 bits. The secret is shown once; only its hash is stored."""
    secret = base64.urlsafe_b64encode(chance.token(32)).decode().rstrip("=")
    name = base64.b32encode(chance.token(10)).decode().lower()
    return Credential(tenant, name, hash_secret(secret), frozenset(scopes)), secret


def new_secret(credential: Credential, former_until: datetime | None, chance: Chance) -> tuple[Credential, str]:
    """Returns the credential with another secret, and that secret.

    The current secret and its tokens are accepted before `former_until`; None ends them at once.
    """
    fresh, secret = new_credential(credential.tenant, credential.scopes, chance)
    renewed = replace(
        credential,
        secret_hash=fresh.secret_hash,
        generation=credential.generation + 1,
        former_hash=None if former_until is None else credential.secret_hash,
        former_until=former_until,
    )
    return renewed, secret


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _unread() -> Unauthenticated:
    return Unauthenticated(f"the header Authorization cannot be read: {HOW_TO_IDENTIFY}")
