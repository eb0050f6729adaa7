"""The public keys of an issuer: fetched safely, cached, and fetched again if a token names a new key.

Import this module only for the first token of such an issuer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import jwt
from cryptography.exceptions import UnsupportedAlgorithm

from sweephand.base.errors import InvalidRequest
from sweephand.base.records import dataclass
from sweephand.server.security.guard import CallFailed, Deadline, Outbound, check_url
from sweephand.server.security.outbound import MAX_BODY, exchange

FRESH_FOR = timedelta(hours=1)
KEPT_FOR = timedelta(hours=24)
"""How long a key set is used while its issuer is down, and therefore the longest life of a withdrawn key."""
AGAIN_AFTER = timedelta(seconds=10)
"""The time between attempts while there is no key set."""
AGAIN_WHILE_KEPT = timedelta(minutes=1)
NEW_KEY_AFTER = timedelta(minutes=5)
FETCH_WITHIN_S = 5.0
LEAST_RSA_BITS, MOST_RSA_BITS = 2_048, 8_192

_PUBLIC: Mapping[str, tuple[str, ...]] = {"RSA": ("kty", "n", "e"), "EC": ("kty", "crv", "x", "y")}
"""The members of a key that are read. Private parts that a set publishes are ignored."""
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
ALGORITHMS = frozenset({*_CURVES, "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
"""The accepted algorithms. Never `none` or a symmetric one, with which a public key could be used as a secret."""


class KeysUnavailable(Exception):
    """An issuer's keys cannot be fetched: it does not answer, or its answer is invalid."""


@dataclass(frozen=True)
class Source:
    """The place of an issuer's keys. keys_url: None if its OpenID Connect discovery document names it."""

    issuer: str
    keys_url: str | None


Fetch = Callable[[str], Mapping[str, Any]]
"""Returns the JSON object at a URL. Raises KeysUnavailable."""


def fetcher(outbound: Outbound, monotonic: Callable[[], float]) -> Fetch:
    """Returns a Fetch by https, or by http on this machine: no redirects, at most 64 KB, one deadline."""

    def fetch(url: str) -> Mapping[str, Any]:
        try:
            target = check_url(url, outbound.settings)
            here = target.host == "localhost" or (target.literal is not None and target.literal.is_loopback)
            if target.scheme == "http" and not here:
                raise KeysUnavailable("keys are fetched by https only")
            deadline = Deadline(monotonic() + FETCH_WITHIN_S, monotonic)
            answer = exchange(
                target, "GET", [("Accept", "application/json")], None, outbound, deadline, with_credentials=False
            )
        except InvalidRequest as refused:
            raise KeysUnavailable(f"the address is refused: {refused.reason}") from refused
        except CallFailed as failed:
            raise KeysUnavailable(f"{failed.reason}: {failed.message}") from failed
        if answer.status != 200 or answer.failure is not None:
            raise KeysUnavailable(f"{target.host} answered {answer.status}{' in part' if answer.failure else ''}")
        if len(answer.body) >= MAX_BODY:
            raise KeysUnavailable(f"the answer of {target.host} is too large")
        return _object(answer.body, target.host)

    return fetch


def _object(body: bytes, host: str) -> Mapping[str, Any]:
    try:
        members = json.loads(body)
    except (ValueError, RecursionError) as wrong:
        raise KeysUnavailable(f"the answer of {host} is not JSON") from wrong
    if not isinstance(members, dict):
        raise KeysUnavailable(f"the answer of {host} is not a JSON object")
    return members


class Keys:
    """The keys of one issuer. say: called with the reason after each failed fetch."""

    def __init__(self, source: Source, fetch: Fetch, say: Callable[[str], None]) -> None:
        self._source = source
        self._fetch = fetch
        self._say = say
        self._set: Sequence[Mapping[str, Any]] = ()
        self._fetched_at: datetime | None = None
        self._tried_at: datetime | None = None
        self._made: dict[tuple[str | None, str], jwt.PyJWK] = {}

    def find(self, kid: str | None, algorithm: str, now: datetime) -> jwt.PyJWK | None:
        """Returns the key that a token names or, without a name, the only key that fits. Fetches at most once."""
        age = None if self._fetched_at is None else now - self._fetched_at
        if age is not None and age >= KEPT_FOR:
            self._set, self._fetched_at, age = (), None, None
            self._made.clear()
        if age is None:
            self._refresh(now, AGAIN_AFTER)
        elif age >= FRESH_FOR:
            self._refresh(now, AGAIN_WHILE_KEPT)
        key = self._key(kid, algorithm)
        if key is None and self._refresh(now, NEW_KEY_AFTER):
            key = self._key(kid, algorithm)
        return key

    def _refresh(self, now: datetime, at_most_every: timedelta) -> bool:
        """Fetches the set and returns True if that succeeded. A failure keeps the known set."""
        if self._tried_at is not None and now - self._tried_at < at_most_every:
            return False
        self._tried_at = now
        try:
            fetched = _keys_in(self._fetch(self._keys_url()))
        except KeysUnavailable as unavailable:
            self._say(str(unavailable))
            return False
        self._set, self._fetched_at = fetched, now
        self._made.clear()
        return True

    def _keys_url(self) -> str:
        if self._source.keys_url is not None:
            return self._source.keys_url
        document = self._fetch(self._source.issuer.rstrip("/") + "/.well-known/openid-configuration")
        url = document.get("jwks_uri")
        if document.get("issuer") != self._source.issuer or not isinstance(url, str):
            raise KeysUnavailable("the discovery document belongs to another issuer, or names no keys")
        return url

    def _key(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        made = self._made.get((kid, algorithm))
        if made is not None:
            return made
        fitting = [jwk for jwk in self._set if _fits(jwk, algorithm) and kid in {None, jwk.get("kid")}]
        key = _made(fitting[0], algorithm) if len(fitting) == 1 else None
        if key is not None:
            self._made[kid, algorithm] = key
        return key


def _keys_in(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Returns the keys whose name and type are strings, so that they can be compared."""
    keys = document.get("keys")
    usable = [
        key
        for key in (keys if isinstance(keys, list) else ())
        if isinstance(key, dict) and isinstance(key.get("kid", ""), str) and isinstance(key.get("kty"), str)
    ]
    if not usable:
        raise KeysUnavailable("the key set contains no usable key")
    return usable


def _fits(jwk: Mapping[str, Any], algorithm: str) -> bool:
    """Returns True if the key's members allow it to verify with this algorithm (RFC 7517, 4)."""
    curve = _CURVES.get(algorithm)
    kind = ("RSA", None) if curve is None else ("EC", curve)
    if (jwk["kty"], jwk.get("crv") if curve else None) != kind:
        return False
    uses = jwk.get("key_ops")
    return (
        jwk.get("use", "sig") == "sig"
        and jwk.get("alg", algorithm) == algorithm
        and (uses is None or (isinstance(uses, list) and "verify" in uses))
    )


def _made(jwk: Mapping[str, Any], algorithm: str) -> jwt.PyJWK | None:
    """Returns the key; None if it is invalid or too weak."""
    try:
        key = jwt.PyJWK({name: jwk[name] for name in _PUBLIC[jwk["kty"]]}, algorithm)
    except (KeyError, TypeError, ValueError, UnsupportedAlgorithm, jwt.PyJWTError):
        return None
    if jwk["kty"] == "RSA" and not LEAST_RSA_BITS <= key.key.key_size <= MOST_RSA_BITS:
        return None
    return key
