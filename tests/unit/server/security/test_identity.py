from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from sweephand.base.errors import Unavailable
from sweephand.domain.run import Reason
from sweephand.server.actions.auth.authenticate import authenticate
from sweephand.server.actions.auth.authentication import Authentication
from sweephand.server.actions.auth.request_auth import Sending
from sweephand.server.security.guard import CallFailed, Deadline, GuardSettings, Outbound, check_url
from sweephand.server.security.identity import Identity
from sweephand.testing.own_key import KEY_ID, OwnKey
from sweephand.testing.sources import START, VirtualClock
from tests.unit.server.actions.test_http import CALL

OWN = Authentication("sweephand")


def identity(key: OwnKey) -> Identity:
    return Identity(lambda: key, f"arn:aws:kms:eu-central-1:1:key/{KEY_ID}".rpartition("/")[2], "https://s.example")


def shown(outbound: Outbound, clock: VirtualClock, url: str = "https://x.org/a", tenant: str = "acme") -> str:
    target = check_url(url, GuardSettings())
    call = CALL.__class__(**{**CALL.__dict__, "tenant": tenant, "clock": clock})
    deadline = Deadline(clock.monotonic() + 5, clock.monotonic)
    proof = authenticate(OWN, Sending("POST", target, [], None), call, outbound, deadline, None)
    assert not proof.kept, "another token would say the same"
    ((name, value),) = proof.headers
    assert name == "Authorization"
    return value.removeprefix("Bearer ")


def claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    read: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return read


def test_one_token_serves_a_tenant_and_an_origin_for_twelve_hours() -> None:
    key, clock = OwnKey(), VirtualClock()
    outbound = Outbound(GuardSettings(), identity=identity(key))

    first = shown(outbound, clock)
    assert shown(outbound, clock, "https://x.org/b?c") == first
    clock.advance(12 * 3_600 - 61)
    assert shown(outbound, clock) == first
    clock.advance(2)
    second = shown(outbound, clock)

    assert second != first
    assert key.asked == ["Sign", "Sign"]
    assert claims(first)["exp"] == int((START + timedelta(hours=12)).timestamp())


def test_a_token_is_never_sent_for_another_tenant_or_to_another_origin() -> None:
    clock = VirtualClock()
    outbound = Outbound(GuardSettings(), identity=identity(OwnKey()))

    tokens = [
        shown(outbound, clock),
        shown(outbound, clock, tenant="globex"),
        shown(outbound, clock, "https://y.org/"),
        shown(outbound, clock, "https://x.org:8443/"),
    ]

    assert [(claims(each)["sub"], claims(each)["aud"]) for each in tokens] == [
        ("acme", "https://x.org"),
        ("globex", "https://x.org"),
        ("acme", "https://y.org"),
        ("acme", "https://x.org:8443"),
    ]


@pytest.mark.parametrize(
    "failure",
    [
        ClientError({"Error": {"Code": "ThrottlingException"}}, "Sign"),
        EndpointConnectionError(endpoint_url="https://k"),
    ],
)
def test_no_token_is_made_without_the_key_service(failure: Exception) -> None:
    key = OwnKey(failure=failure)
    outbound = Outbound(GuardSettings(), identity=identity(key))

    with pytest.raises(Unavailable):
        shown(outbound, VirtualClock())
    with pytest.raises(Unavailable):
        identity(key).key_set()
    key.failure = None
    assert shown(outbound, VirtualClock())


def test_a_stack_that_lost_its_identity_sends_nothing() -> None:
    with pytest.raises(CallFailed) as caught:
        shown(Outbound(GuardSettings()), VirtualClock())

    assert caught.value.reason is Reason.GUARD
    assert "OutboundIdentity" in caught.value.message


def test_the_public_key_is_requested_once() -> None:
    key = OwnKey()
    own = identity(key)

    assert own.key_set() == own.key_set()
    assert key.asked == ["GetPublicKey"]
