"""Access tokens of one hour, signed by the stack's secret, and tokens of result callbacks, which have their own key.

Signing keys are derived (HKDF-SHA256, RFC 5869), one for each purpose, so that no key reveals another one or the
secret. After a rotation, tokens of the former secret are accepted until they expire, for at most one hour from the
rotation. A forger with the former secret chooses `iat` freely, so `iat` cannot be the limit.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from sweephand.base.errors import Unauthenticated
from sweephand.base.records import dataclass

LIFETIME_S = 3_600
LONGEST_WAIT = timedelta(days=8)
"""Longer than any run waits for its result (domain.collection.LONGEST_CALLBACK_S, seven days)."""
LONGEST_HEAD = 1_024
SKEW_S = 60
_PURPOSES = (b"sweephand/kid/1", b"sweephand/access-token/1", b"sweephand/callback/1")
_TOKEN = re.compile(r"([A-Za-z0-9_-]{1,512})\.[A-Za-z0-9_-]{1,3072}\.[A-Za-z0-9_-]{1,128}", re.ASCII)
"""The form of a token. The header is short, so that its JSON, which is read before verification, cannot be deep."""
ALGORITHM = "HS256"
_CALLBACK = re.compile(r"([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{43})", re.ASCII)


@dataclass(frozen=True)
class StackKey:
    """The keys derived from one value of the stack's secret. kid: identifies them without revealing them.

    callback: the key of callback tokens before these had a separate key.
    """

    kid: str
    access: bytes = field(repr=False)
    callback: bytes = field(repr=False)


@dataclass(frozen=True)
class StackKeys:
    """The keys of a stack. audience: the stack's name; tokens of other stacks are refused.

    previous: derived from the secret before the last rotation; its access tokens are accepted before `previous_until`.
    """

    audience: str
    current: StackKey
    previous: StackKey | None = None
    previous_until: datetime | None = None

    def all(self) -> tuple[StackKey, ...]:
        return (self.current,) if self.previous is None else (self.current, self.previous)

    def signing(self, now: datetime) -> tuple[StackKey, ...]:
        """Returns the keys whose access tokens are accepted at `now`."""
        accepted = self.previous_until is not None and now < self.previous_until
        return self.all() if accepted else (self.current,)


@dataclass(frozen=True)
class CallbackKey:
    """The key of callback tokens, independent of the stack's secret, so that executors need not read the secret."""

    secret: bytes = field(repr=False)
    made_at: datetime


@dataclass(frozen=True)
class AccessClaims:
    """The claims of an access token. tenant: None at provider level.

    generation: of the credential; raising it ends all its tokens. former_key: the token was signed by the secret before
    the last rotation.
    """

    tenant: str | None
    credential_id: str
    generation: int
    scopes: frozenset[str]
    former_key: bool = False


def derive_keys(stack: str, secret: str, previous: str | None = None, rotated_at: datetime | None = None) -> StackKeys:
    """Derives the keys of a stack from its secret, and from the one before the last rotation.

    rotated_at: when the secret replaced the previous one. Without it, no token of the previous one is accepted.
    """
    before = None if previous in {None, "", secret} else _derive_key(stack, str(previous))
    until = None if before is None or rotated_at is None else rotated_at + timedelta(seconds=LIFETIME_S)
    return StackKeys(stack, _derive_key(stack, secret), before, until)


def issue(keys: StackKeys, claims: AccessClaims, now: datetime, token_id: str = "") -> str:
    """Returns a JWT (HS256) that is valid for one hour from `now`. token_id: its `jti`, for logs."""
    import jwt  # noqa: PLC0415 - takes some 90 ms with its cryptography; calls with Basic do not need it

    issued = int(now.timestamp())
    members: dict[str, Any] = {
        "aud": keys.audience,
        "sub": claims.credential_id,
        "gen": claims.generation,
        "scope": " ".join(sorted(claims.scopes)),
        "iat": issued,
        "exp": issued + LIFETIME_S,
    }
    if token_id:
        members["jti"] = token_id
    if claims.tenant is not None:
        members["tenant"] = claims.tenant
    return jwt.encode(members, keys.current.access, algorithm=ALGORITHM, headers={"kid": keys.current.kid})


def verify(keys: StackKeys, token: str, now: datetime) -> AccessClaims:
    """Returns the claims of a token that this stack issued and that is valid at `now`. Raises Unauthenticated."""
    form = _TOKEN.fullmatch(token)
    if form is None:
        raise _unknown()
    import jwt  # noqa: PLC0415 - as in issue

    try:
        kid = jwt.get_unverified_header(token).get("kid")
        key = next((key for key in keys.signing(now) if key.kid == kid), None)
        if key is None:
            raise _unknown()
        members = jwt.decode(
            token,
            key.access,
            algorithms=[ALGORITHM],
            audience=keys.audience,
            # Time is an argument here: the library would ask the machine's clock.
            options={
                "require": ["aud", "sub", "gen", "scope", "iat", "exp"],
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
            },
        )
    except jwt.PyJWTError as wrong:
        raise _unknown() from wrong
    return _claims(members, now, former_key=key != keys.current)


def head_of(token: str) -> Mapping[str, Any] | None:
    """Returns the header of a JWT, not verified and without a library; None if it is invalid or too long."""
    first, dot, _ = token.partition(".")
    if not dot or len(first) > LONGEST_HEAD:
        return None
    return json_part(first)


def json_part(part: str) -> Mapping[str, Any] | None:
    """Returns a part of a JWT as an object, not verified; None if it is not an object."""
    try:
        members = json.loads(base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return members if isinstance(members, dict) else None


def names_own_algorithm(token: str) -> bool:
    """Returns True if the token's header names this stack's algorithm. Only then may its keys verify the token."""
    head = head_of(token)
    return head is not None and head.get("alg") == ALGORITHM


def callback_token(key: bytes, tenant: str, run_id: str) -> str:
    """Returns the token with which a run's target reports its result: the same for all attempts, and never stored.

    It names the tenant, because its bearer has no other identity and a run's id does not name the tenant.
    """
    return f"{tenant}.{_callback_mac(key, tenant, run_id)}"


def callback_tenant(keys: Iterable[bytes], run_id: str, token: str) -> str | None:
    """Returns the tenant of the token's run; None for a wrong token, in the same time."""
    form = _CALLBACK.fullmatch(token)
    if not form:
        return None
    matches = [hmac.compare_digest(_callback_mac(key, form[1], run_id), form[2]) for key in keys]
    return form[1] if any(matches) else None


def callback_keys(own: CallbackKey, keys: StackKeys, now: datetime) -> tuple[bytes, ...]:
    """Returns the keys whose callback tokens are accepted at `now`.

    These are the current key and, for as long as a run may wait, the keys that signed callback tokens before it.
    """
    earlier = tuple(key.callback for key in keys.all()) if now < own.made_at + LONGEST_WAIT else ()
    return (own.secret, *earlier)


def hkdf_sha256(secret: bytes, salt: bytes, purpose: bytes, length: int) -> bytes:
    """Derives a key by RFC 5869. length: at most 8,160 bytes."""
    extracted = hmac.digest(salt or bytes(32), secret, hashlib.sha256)
    block, derived = b"", b""
    for number in range(1, -(-length // 32) + 1):
        block = hmac.digest(extracted, block + purpose + bytes([number]), hashlib.sha256)
        derived += block
    return derived[:length]


def _derive_key(stack: str, secret: str) -> StackKey:
    kid, access, callback = (hkdf_sha256(secret.encode(), stack.encode(), purpose, 32) for purpose in _PURPOSES)
    return StackKey(kid[:8].hex(), access, callback)


def _callback_mac(key: bytes, tenant: str, run_id: str) -> str:
    mac = hmac.digest(key, f"{tenant}/{run_id}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(mac).decode().rstrip("=")


def _claims(members: Mapping[str, Any], now: datetime, *, former_key: bool) -> AccessClaims:
    at = now.timestamp()
    tenant, sub, generation = members.get("tenant"), members["sub"], members["gen"]
    issued, expires, scope = members["iat"], members["exp"], members["scope"]
    typed = (
        isinstance(sub, str)
        and isinstance(scope, str)
        and (tenant is None or isinstance(tenant, str))
        and all(isinstance(number, int) for number in (generation, issued, expires))
    )
    if not typed or expires - issued > LIFETIME_S or not issued - SKEW_S <= at < expires:
        raise _unknown()
    return AccessClaims(tenant, sub, generation, frozenset(scope.split()), former_key)


def _unknown() -> Unauthenticated:
    return Unauthenticated("the token is not one of this service, or it has expired: get another by POST /oauth/token")
