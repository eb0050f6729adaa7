"""Encryption by the stack's KMS key, in a context without which nothing can be decrypted.

The permissions of functions name the purpose, so that a right to one kind of key is no right to another.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from sweephand.base.errors import NotFound, Unavailable

SECRETS = "secrets"
"""The purpose of private keys that open the secrets of a tenant's jobs."""
CALLBACKS = "callbacks"
"""The purpose of the key that signs callback tokens."""
_UNOPENABLE = frozenset({"InvalidCiphertextException", "IncorrectKeyException", "ValidationException"})


class Kms(Protocol):
    """The methods of boto3's KMS client that are used."""

    def encrypt(self, **arguments: Any) -> dict[str, Any]: ...
    def decrypt(self, **arguments: Any) -> dict[str, Any]: ...


class KeyService:
    """Encryption and decryption of keys, with one request to KMS each."""

    def __init__(self, kms: Kms, key_id: str) -> None:
        self._kms = kms
        self._key_id = key_id

    def encrypt(self, tenant: str, purpose: str, plain: bytes) -> str:
        """Returns the ciphertext in Base64. Raises Unavailable if KMS does not answer."""
        try:
            answer = self._kms.encrypt(KeyId=self._key_id, Plaintext=plain, EncryptionContext=context(tenant, purpose))
        except (BotoCoreError, ClientError) as wrong:
            raise Unavailable("the key service does not answer") from wrong
        return base64.b64encode(answer["CiphertextBlob"]).decode()

    def decrypt(self, tenant: str, purpose: str, sealed: str) -> bytes:
        """Returns the plaintext. Raises NotFound for a wrong ciphertext or context, Unavailable if KMS fails."""
        try:
            blob = base64.b64decode(sealed, validate=True)
            answer = self._kms.decrypt(
                KeyId=self._key_id, CiphertextBlob=blob, EncryptionContext=context(tenant, purpose)
            )
        except ValueError as wrong:  # not Base64
            raise NotFound("the key cannot be decrypted") from wrong
        except ClientError as wrong:
            if wrong.response["Error"]["Code"] in _UNOPENABLE:
                raise NotFound("the key cannot be decrypted") from wrong
            raise Unavailable("the key service does not answer") from wrong
        except BotoCoreError as wrong:
            raise Unavailable("the key service does not answer") from wrong
        plain: bytes = answer["Plaintext"]
        return plain


def context(tenant: str, purpose: str) -> Mapping[str, str]:
    return {"tenant": tenant, "purpose": purpose}
