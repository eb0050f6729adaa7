"""The service's identity towards targets: a JWT (RS256) signed by an asymmetric KMS key, and the key's public half.

The private key never leaves KMS. The token names the sender (iss), the tenant (sub) and the receiver (aud). The purpose
is in other headers, so that one token serves all calls of a tenant to one origin.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from sweephand.base.errors import Unavailable
from sweephand.domain.instants import epoch_s
from sweephand.server.security.token_cache import CachedToken

LIFETIME = timedelta(hours=12)
ALGORITHM = "RS256"


class Kms(Protocol):
    """The methods of boto3's KMS client that are used."""

    def sign(self, **arguments: Any) -> dict[str, Any]: ...
    def get_public_key(self, **arguments: Any) -> dict[str, Any]: ...


class Identity:
    """The signing key: executors sign, the API publishes. kms: makes the client. issuer: the stack's public address."""

    def __init__(self, kms: Callable[[], Kms], key_id: str, issuer: str) -> None:
        self._kms = kms
        self._key_id = key_id
        self._issuer = issuer
        self._published: dict[str, Any] | None = None

    def issue(self, tenant: str, audience: str, now: datetime) -> CachedToken:
        """Returns a token for 12 hours. audience: an origin such as `https://example.org`. Raises Unavailable."""
        issued = epoch_s(now)
        head = {"alg": ALGORITHM, "typ": "JWT", "kid": self._kid}
        claims = {
            "iss": self._issuer,
            "sub": tenant,
            "aud": audience,
            "iat": issued,
            "exp": issued + int(LIFETIME.total_seconds()),
        }
        signed = f"{_json_part(head)}.{_json_part(claims)}"
        try:
            answer = self._kms().sign(
                KeyId=self._key_id,
                Message=signed.encode(),
                MessageType="RAW",
                SigningAlgorithm="RSASSA_PKCS1_V1_5_SHA_256",
            )
        except (BotoCoreError, ClientError) as wrong:
            raise Unavailable("the key service does not answer") from wrong
        return CachedToken(f"{signed}.{_base64url(answer['Signature'])}", now + LIFETIME)

    def key_set(self) -> dict[str, Any]:
        """Returns the public key as a JWK Set (RFC 7517); fetched once per process. Raises Unavailable."""
        if self._published is None:
            try:
                answer = self._kms().get_public_key(KeyId=self._key_id)
            except (BotoCoreError, ClientError) as wrong:
                raise Unavailable("the key service does not answer") from wrong
            self._published = {"keys": [_jwk(answer["PublicKey"], self._kid)]}
        return self._published

    @property
    def _kid(self) -> str:
        return self._key_id.rpartition("/")[2]


def _jwk(der: bytes, kid: str) -> dict[str, str]:
    """Returns a public key as a JWK. der: SubjectPublicKeyInfo of an RSA key, from KMS."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey  # noqa: PLC0415 - API only, at first use
    from cryptography.hazmat.primitives.serialization import load_der_public_key  # noqa: PLC0415

    key = load_der_public_key(der)
    assert isinstance(key, RSAPublicKey)
    numbers = key.public_numbers()
    return {"kty": "RSA", "use": "sig", "alg": ALGORITHM, "kid": kid, "n": _number(numbers.n), "e": _number(numbers.e)}


def _number(value: int) -> str:
    return _base64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _json_part(members: Mapping[str, Any]) -> str:
    return _base64url(json.dumps(members, separators=(",", ":")).encode())


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
