"""What the real collaborators remember; what they do is tested where they stand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from sweephand.errors import Unavailable
from sweephand.security.tokens import callback_tenant, callback_token
from sweephand.settings import Settings
from sweephand.wiring import StackSecret
from tests.support.sources import VirtualClock


@dataclass
class SecretsManager:
    """versions: stage -> secret. A stage that is missing is refused."""

    versions: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def get_secret_value(self, *, SecretId: str, VersionStage: str) -> dict[str, Any]:  # noqa: N803 - AWS's names
        self.asked.append(VersionStage)
        if VersionStage not in self.versions:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetSecretValue")
        return {"SecretString": json.dumps({"clientId": SecretId, "secret": self.versions[VersionStage]})}


@pytest.fixture
def manager() -> SecretsManager:
    return SecretsManager({"AWSCURRENT": "first"})


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def secret(manager: SecretsManager, clock: VirtualClock) -> StackSecret:
    clients = cast("Any", SimpleNamespace(secrets_manager=manager))
    return StackSecret(clients, Settings("test", "table", stack_secret_id="s"), clock)


def test_it_is_asked_for_every_five_minutes(secret: StackSecret, manager: SecretsManager, clock: VirtualClock) -> None:
    for _ in range(3):
        assert secret.read()[0] == "first"
        clock.advance(150)

    assert manager.asked == ["AWSCURRENT", "AWSPREVIOUS"]
    clock.advance(1)
    secret.read()
    assert manager.asked == ["AWSCURRENT", "AWSPREVIOUS"] * 2


def test_what_was_sent_before_a_rotation_holds_after_it(
    secret: StackSecret, manager: SecretsManager, clock: VirtualClock
) -> None:
    token = callback_token(secret.keys(), "acme", "run")

    manager.versions = {"AWSCURRENT": "second", "AWSPREVIOUS": "first"}
    clock.advance(301)

    assert callback_token(secret.keys(), "acme", "run") != token
    assert callback_tenant(secret.keys(), "run", token) == "acme"


def test_one_that_cannot_be_read_is_the_one_that_was(
    secret: StackSecret, manager: SecretsManager, clock: VirtualClock
) -> None:
    before = secret.read()
    manager.versions.clear()
    clock.advance(301)

    assert secret.read() is before


def test_one_that_was_never_read_is_not_made_up(secret: StackSecret, manager: SecretsManager) -> None:
    manager.versions.clear()

    with pytest.raises(Unavailable):
        secret.keys()
