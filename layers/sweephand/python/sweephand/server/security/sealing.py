"""Sealing of secrets to a public key (HPKE, RFC 9180): whoever seals a secret cannot open it again.

A sealed secret opens only for the place that it was sealed for.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from sweephand.base.errors import NotFound

SIZE = 32
"""The bytes of a private key."""
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


def public_half(private: bytes) -> str:
    """Returns the public key of a private one, in Base64."""
    return base64.b64encode(X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()).decode()


def seal(public: str, place: Sequence[str], plain: bytes) -> str:
    """Returns the sealed secret in Base64."""
    key = X25519PublicKey.from_public_bytes(base64.b64decode(public))
    return base64.b64encode(_SUITE.encrypt(plain, key, info=_bound_to(place))).decode()


def unseal(private: bytes, place: Sequence[str], sealed: str) -> bytes:
    """Returns the secret. Raises NotFound if it was not sealed to this key for this place."""
    try:
        blob = base64.b64decode(sealed, validate=True)
        return _SUITE.decrypt(blob, X25519PrivateKey.from_private_bytes(private), info=_bound_to(place))
    except (ValueError, InvalidTag) as wrong:
        raise NotFound("the secret cannot be opened") from wrong


def _bound_to(place: Sequence[str]) -> bytes:
    return json.dumps(place).encode()
