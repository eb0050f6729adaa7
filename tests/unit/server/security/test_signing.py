from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from sweephand.server.security import signing

NOW = datetime(2027, 3, 1, 12, 0, 0, 900_000, tzinfo=UTC)
SECRET = signing.new_secret(bytes(range(32)))
OTHER = signing.new_secret(bytes(32))
RECEIVER = Path(__file__).resolve().parents[4] / "examples" / "verify_signature" / "receiver.py"


@pytest.fixture(scope="module")
def receiver() -> ModuleType:
    """The receiver of the guide, which shares no code with the service."""
    spec = importlib.util.spec_from_file_location("receiver", RECEIVER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def signed(*secrets: str, body: bytes = b'{"a":1}', at: datetime = NOW) -> dict[str, str]:
    return {"webhook-id": "s_r", **dict(signing.headers(secrets, "s_r", at, body))}


def accepts(
    receiver: ModuleType, headers: Mapping[str, str], body: bytes = b'{"a":1}', secret: str = SECRET, later_s: float = 0
) -> bool:
    verdict: bool = receiver.verified(secret, headers, body, (NOW + timedelta(seconds=later_s)).timestamp())
    return verdict


def test_the_example_of_the_standard() -> None:
    body = b'{"email":"test@example.com","username":"test_user"}'
    at = datetime.fromtimestamp(1_649_367_553, UTC)

    made = signing.headers(["whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"], "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", at, body)

    assert made == (
        ("webhook-timestamp", "1649367553"),
        ("webhook-signature", "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="),
    )


def test_a_receiver_takes_what_was_signed_by_its_secret(receiver: ModuleType) -> None:
    assert accepts(receiver, signed(SECRET))
    assert accepts(receiver, signed(SECRET, body=b""), b"")


def test_during_a_rotation_receivers_of_either_secret_take_it(receiver: ModuleType) -> None:
    both = signed(OTHER, SECRET)

    assert accepts(receiver, both, secret=SECRET)
    assert accepts(receiver, both, secret=OTHER)


def test_nothing_else_is_taken(receiver: ModuleType) -> None:
    good = signed(SECRET)

    assert not accepts(receiver, signed(OTHER))
    assert not accepts(receiver, good, b'{"a":2}')
    assert not accepts(receiver, {**good, "webhook-id": "s_x"})
    assert not accepts(receiver, {**good, "webhook-timestamp": str(int(good["webhook-timestamp"]) + 1)})
    assert not accepts(receiver, good, later_s=302)
    assert not accepts(receiver, signed())
    assert not accepts(receiver, {**good, "webhook-timestamp": "\u00b2"})
    assert not accepts(receiver, {**good, "webhook-timestamp": "9" * 5_000})


def test_a_secret_has_the_form_that_receivers_know() -> None:
    assert SECRET == "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
