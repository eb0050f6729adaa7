from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from sweephand.errors import InvalidRequest, NotFound, Unavailable
from sweephand.security.secrets import KEPT_S, KEPT_VALUES, LARGEST, SecretBox


class Clockwork:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class CountingKms:
    """A KMS client that counts and can fail."""

    def __init__(self, kms: Any) -> None:
        self._kms = kms
        self.calls: list[str] = []
        self.failure: Exception | None = None

    def encrypt(self, **arguments: Any) -> dict[str, Any]:
        return self._call("encrypt", arguments)

    def decrypt(self, **arguments: Any) -> dict[str, Any]:
        return self._call("decrypt", arguments)

    def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(name)
        if self.failure:
            raise self.failure
        answer: dict[str, Any] = getattr(self._kms, name)(**arguments)
        return answer


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingKms]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        yield CountingKms(boto3.client("kms", region_name="us-east-1"))


@pytest.fixture
def clock() -> Clockwork:
    return Clockwork()


@pytest.fixture
def box(kms: CountingKms, clock: Clockwork) -> SecretBox:
    key_id = kms._kms.create_key()["KeyMetadata"]["KeyId"]
    return SecretBox(kms, key_id, clock)


@pytest.mark.parametrize("plaintext", ["p", "", "\u20ac\U0001f600", "\u20ac" * 3_000, "x" * LARGEST])
def test_a_sealed_secret_opens_again(box: SecretBox, plaintext: str) -> None:
    sealed = box.encrypt("acme", "j", "action.authentication.password", plaintext)

    assert sealed.isascii()
    assert plaintext == "" or plaintext not in sealed or len(plaintext) == 1
    assert box.decrypt("acme", "j", "action.authentication.password", sealed) == plaintext


@pytest.mark.parametrize("where", [("globex", "j", "f"), ("acme", "k", "f"), ("acme", "j", "g")])
def test_it_opens_only_for_its_tenant_job_and_field(box: SecretBox, where: tuple[str, str, str]) -> None:
    sealed = box.encrypt("acme", "j", "f", "s3cret")
    assert box.decrypt("acme", "j", "f", sealed) == "s3cret"

    with pytest.raises(NotFound):
        box.decrypt(*where, sealed)


def test_the_pieces_of_a_long_secret_open_in_their_order_only(box: SecretBox, kms: CountingKms) -> None:
    sealed = box.encrypt("acme", "j", "f", "x" * LARGEST)
    pieces = sealed.split(" ")
    assert kms.calls == ["encrypt"] * 4

    for wrong in ([pieces[1], pieces[0], *pieces[2:]], pieces[1:], [pieces[0], pieces[0]]):
        with pytest.raises(NotFound):
            box.decrypt("acme", "j", "f", " ".join(wrong))


@pytest.mark.parametrize("sealed", ["not base64!", "\u00e4", "AAAA"])
def test_an_invalid_ciphertext_does_not_open(box: SecretBox, sealed: str) -> None:
    with pytest.raises(NotFound):
        box.decrypt("acme", "j", "f", sealed)


def test_an_opened_value_is_kept_for_five_minutes(box: SecretBox, kms: CountingKms, clock: Clockwork) -> None:
    sealed = box.encrypt("acme", "j", "f", "s3cret")
    for seconds in (0.0, KEPT_S - 1):
        clock.seconds = seconds
        assert box.decrypt("acme", "j", "f", sealed) == "s3cret"
    assert kms.calls == ["encrypt", "decrypt"]

    clock.seconds = KEPT_S
    assert box.decrypt("acme", "j", "f", sealed) == "s3cret"

    assert kms.calls == ["encrypt", "decrypt", "decrypt"]


def test_the_number_of_cached_values_is_limited_and_the_least_used_go_first(box: SecretBox, kms: CountingKms) -> None:
    sealed = box.encrypt("acme", "j", "f", "s3cret")
    others = [("acme", "j", "f", box.encrypt("acme", "j", "f", str(number))) for number in range(KEPT_VALUES)]
    box.decrypt("acme", "j", "f", sealed)
    for other in others[:-1]:
        box.decrypt(*other)
    box.decrypt("acme", "j", "f", sealed)
    box.decrypt(*others[-1])

    kms.calls.clear()
    box.decrypt("acme", "j", "f", sealed)
    box.decrypt(*others[0])

    assert kms.calls == ["decrypt"]
    assert len(box._opened) == KEPT_VALUES


def test_a_secret_that_kms_would_not_take_is_refused_before(box: SecretBox, kms: CountingKms) -> None:
    with pytest.raises(InvalidRequest) as caught:
        box.encrypt("acme", "j", "action.f", "\u20ac" * LARGEST)

    assert caught.value.field == "action.f"
    assert kms.calls == []


@pytest.mark.parametrize(
    "failure",
    [
        ClientError({"Error": {"Code": "ThrottlingException", "Message": "x"}}, "Decrypt"),
        ClientError({"Error": {"Code": "KMSInternalException", "Message": "x"}}, "Decrypt"),
        ClientError({"Error": {"Code": "DisabledException", "Message": "x"}}, "Decrypt"),
        EndpointConnectionError(endpoint_url="https://kms"),
    ],
)
def test_an_unavailable_key_service_is_not_reported_as_a_lost_secret(
    box: SecretBox, kms: CountingKms, failure: Exception
) -> None:
    sealed = box.encrypt("acme", "j", "f", "s3cret")
    kms.failure = failure

    with pytest.raises(Unavailable):
        box.decrypt("acme", "j", "f", sealed)
    with pytest.raises(Unavailable):
        box.encrypt("acme", "j", "f", "s3cret")

    kms.failure = None
    assert box.decrypt("acme", "j", "f", sealed) == "s3cret"
