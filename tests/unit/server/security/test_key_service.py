"""Requests to the key service, and how its errors are told apart."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from sweephand.base.errors import NotFound, Unavailable
from sweephand.server.security.key_service import CALLBACKS, SECRETS, KeyService
from sweephand.testing.memory import Kms

KEY = b"\x00\xff" * 16


class MemoryKms:
    """A KMS client that can fail."""

    def __init__(self) -> None:
        self._kms = Kms()
        self.failure: Exception | None = None

    def encrypt(self, **arguments: Any) -> dict[str, Any]:
        return self._call("Encrypt", arguments)

    def decrypt(self, **arguments: Any) -> dict[str, Any]:
        return self._call("Decrypt", arguments)

    def _call(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if self.failure:
            raise self.failure
        answer: dict[str, Any] = self._kms(operation, arguments)
        return answer


@pytest.fixture
def kms() -> MemoryKms:
    return MemoryKms()


@pytest.fixture
def service(kms: MemoryKms) -> KeyService:
    return KeyService(kms, "key-1")


@pytest.mark.parametrize("context", [("globex", SECRETS), ("acme", CALLBACKS)])
def test_a_key_is_decrypted_only_for_its_tenant_and_purpose(service: KeyService, context: tuple[str, str]) -> None:
    sealed = service.encrypt("acme", SECRETS, KEY)
    assert service.decrypt("acme", SECRETS, sealed) == KEY

    with pytest.raises(NotFound):
        service.decrypt(*context, sealed)


@pytest.mark.parametrize("sealed", ["not base64!", "\u00e4"])
def test_an_invalid_ciphertext_is_not_sent(service: KeyService, sealed: str) -> None:
    with pytest.raises(NotFound):
        service.decrypt("acme", SECRETS, sealed)


@pytest.mark.parametrize(
    "failure",
    [
        ClientError({"Error": {"Code": "ThrottlingException", "Message": "x"}}, "Decrypt"),
        ClientError({"Error": {"Code": "KMSInternalException", "Message": "x"}}, "Decrypt"),
        ClientError({"Error": {"Code": "DisabledException", "Message": "x"}}, "Decrypt"),
        ClientError({"Error": {"Code": "AccessDeniedException", "Message": "x"}}, "Decrypt"),
        EndpointConnectionError(endpoint_url="https://kms"),
    ],
)
def test_an_unavailable_key_service_is_not_reported_as_a_lost_key(
    service: KeyService, kms: MemoryKms, failure: Exception
) -> None:
    sealed = service.encrypt("acme", SECRETS, KEY)
    kms.failure = failure

    with pytest.raises(Unavailable):
        service.decrypt("acme", SECRETS, sealed)
    with pytest.raises(Unavailable):
        service.encrypt("acme", SECRETS, KEY)

    kms.failure = None
    assert service.decrypt("acme", SECRETS, sealed) == KEY
