"""A stand-in for the asymmetric KMS key of the service's own identity, with a real key in this process."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

KEY_ID = "0a1b2c3d-own-key"


@cache
def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, 2_048)


@dataclass
class OwnKey:
    """A client of KMS with one key. asked: the operations, in order. failure: raised instead of an answer."""

    asked: list[str] = field(default_factory=list)
    failure: Exception | None = None

    def sign(self, **request: Any) -> dict[str, Any]:
        self._ask("Sign", request["KeyId"])
        assert (request["MessageType"], request["SigningAlgorithm"]) == ("RAW", "RSASSA_PKCS1_V1_5_SHA_256")
        return {"Signature": _key().sign(request["Message"], padding.PKCS1v15(), hashes.SHA256())}

    def get_public_key(self, **request: Any) -> dict[str, Any]:
        self._ask("GetPublicKey", request["KeyId"])
        return {"PublicKey": _key().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)}

    def _ask(self, operation: str, key_id: str) -> None:
        assert key_id == KEY_ID
        self.asked.append(operation)
        if self.failure is not None:
            raise self.failure
