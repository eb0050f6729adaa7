"""Secrets of jobs, encrypted by KMS with the context {tenant, job, field}, without which they cannot be decrypted.

The API may only encrypt, the executor only decrypt.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from sweephand.errors import InvalidRequest, NotFound, Unavailable

PIECE = 4_096
"""The most bytes that KMS encrypts in one call."""
LARGEST = 4 * PIECE
"""The most bytes of a secret: a private key with its certificates. All others are shorter."""
KEPT_S = 300.0
KEPT_VALUES = 512
_UNOPENABLE = frozenset({"InvalidCiphertextException", "IncorrectKeyException", "ValidationException"})


class Kms(Protocol):
    """The methods of boto3's KMS client that are used."""

    def encrypt(self, **arguments: Any) -> dict[str, Any]: ...
    def decrypt(self, **arguments: Any) -> dict[str, Any]: ...


class SecretBox:
    """Encryption and decryption of secrets; safe for threads. Caches plaintexts for five minutes (LRU).

    monotonic: seconds, from sources.Clock.
    """

    def __init__(self, kms: Kms, key_id: str, monotonic: Callable[[], float]) -> None:
        self._kms = kms
        self._key_id = key_id
        self._monotonic = monotonic
        self._opened: OrderedDict[tuple[str, str, str, str], tuple[float, str]] = OrderedDict()
        self._lock = Lock()

    def encrypt(self, tenant: str, job: str, field: str, plaintext: str) -> str:
        """Returns the ciphertext in Base64. A long one has pieces that are separated by spaces.

        Raises InvalidRequest over 16,384 bytes, Unavailable if KMS does not answer.
        """
        # KMS refuses an empty plaintext. NUL cannot be part of a password, so it represents the empty one.
        plain = plaintext.encode() or b"\x00"
        if len(plain) > LARGEST:
            raise InvalidRequest(field, f"must have at most {LARGEST:,} bytes")
        pieces = [plain[start : start + PIECE] for start in range(0, len(plain), PIECE)]
        return " ".join(
            self._seal(piece, _context(tenant, job, _piece(field, number))) for number, piece in enumerate(pieces)
        )

    def _seal(self, plain: bytes, context: dict[str, str]) -> str:
        try:
            answer = self._kms.encrypt(KeyId=self._key_id, Plaintext=plain, EncryptionContext=context)
        except (BotoCoreError, ClientError) as wrong:
            raise Unavailable("the key service does not answer") from wrong
        return base64.b64encode(answer["CiphertextBlob"]).decode()

    def decrypt(self, tenant: str, job: str, field: str, sealed: str) -> str:
        """Returns the plaintext. Raises NotFound for a wrong ciphertext or context, Unavailable if KMS fails."""
        key = (tenant, job, field, sealed)
        kept = self._kept(key)
        if kept is not None:
            return kept
        plain = b"".join(
            self._open(piece, field, _context(tenant, job, _piece(field, number)))
            for number, piece in enumerate(sealed.split(" "))
        )
        return self._keep(key, "" if plain == b"\x00" else plain.decode())

    def _open(self, sealed: str, field: str, context: dict[str, str]) -> bytes:
        try:
            blob = base64.b64decode(sealed, validate=True)
            plain: bytes = self._kms.decrypt(KeyId=self._key_id, CiphertextBlob=blob, EncryptionContext=context)[
                "Plaintext"
            ]
        except ClientError as wrong:
            if wrong.response["Error"]["Code"] in _UNOPENABLE:
                raise NotFound(f"the secret {field} cannot be opened") from wrong
            raise Unavailable("the key service does not answer") from wrong
        except BotoCoreError as wrong:
            raise Unavailable("the key service does not answer") from wrong
        except ValueError as wrong:  # not Base64
            raise NotFound(f"the secret {field} cannot be opened") from wrong
        return plain

    def _kept(self, key: tuple[str, str, str, str]) -> str | None:
        with self._lock:
            found = self._opened.get(key)
            if found is None or found[0] <= self._monotonic():
                self._opened.pop(key, None)
                return None
            self._opened.move_to_end(key)
            return found[1]

    def _keep(self, key: tuple[str, str, str, str], plaintext: str) -> str:
        with self._lock:
            self._opened[key] = (self._monotonic() + KEPT_S, plaintext)
            while len(self._opened) > KEPT_VALUES:
                self._opened.popitem(last=False)
        return plaintext


def _piece(field: str, number: int) -> str:
    """Returns the context's field for a piece, so that no piece can replace another."""
    return f"{field}#{number}" if number else field


def _context(tenant: str, job: str, field: str) -> dict[str, str]:
    return {"tenant": tenant, "job": job, "field": field}
