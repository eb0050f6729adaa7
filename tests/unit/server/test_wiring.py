"""The memory of the real collaborators; their behaviour is tested in their own tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from sweephand.base.errors import Unauthenticated, Unavailable
from sweephand.server.security.tokens import AccessClaims, issue, verify
from sweephand.server.settings import Settings
from sweephand.server.wiring import StackSecret, guard_settings, with_lists
from sweephand.testing.sources import VirtualClock


@dataclass
class SecretsManager:
    """versions: stage -> secret. A stage that is missing is refused. made_at: of each version."""

    versions: dict[str, str] = field(default_factory=dict)
    made_at: datetime | None = None
    asked: list[str] = field(default_factory=list)

    def get_secret_value(self, *, SecretId: str, VersionStage: str) -> dict[str, Any]:  # noqa: N803 - AWS's names
        self.asked.append(VersionStage)
        if VersionStage not in self.versions:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetSecretValue")
        said = {"SecretString": json.dumps({"clientId": SecretId, "secret": self.versions[VersionStage]})}
        return said if self.made_at is None else {**said, "CreatedDate": self.made_at}

    def rotate(self, secret: str, at: datetime) -> None:
        self.versions = {"AWSCURRENT": secret, "AWSPREVIOUS": self.versions["AWSCURRENT"]}
        self.made_at = at


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


def test_the_secret_is_read_every_five_minutes(
    secret: StackSecret, manager: SecretsManager, clock: VirtualClock
) -> None:
    for _ in range(3):
        assert secret.read()[0] == "first"
        clock.advance(150)

    assert manager.asked == ["AWSCURRENT", "AWSPREVIOUS"]
    clock.advance(1)
    secret.read()
    assert manager.asked == ["AWSCURRENT", "AWSPREVIOUS"] * 2


CLAIMS = AccessClaims("acme", "x7", 1, frozenset({"jobs:read"}))


def test_a_token_of_before_a_rotation_holds_for_an_hour_after_it(
    secret: StackSecret, manager: SecretsManager, clock: VirtualClock
) -> None:
    clock.advance(200)
    token = issue(secret.keys(), CLAIMS, clock.now())
    manager.rotate("second", clock.now() + timedelta(seconds=-100))
    clock.advance(301)

    assert verify(secret.keys(), token, clock.now()).former_key
    assert verify(secret.keys(), issue(secret.keys(), CLAIMS, clock.now()), clock.now()) == CLAIMS
    clock.advance(3_600 - 401)
    with pytest.raises(Unauthenticated):
        verify(secret.keys(), token, clock.now())


def test_a_caller_that_insists_on_a_fresh_value_sees_a_rotation_at_once(
    secret: StackSecret, manager: SecretsManager, clock: VirtualClock
) -> None:
    assert secret.read()[0] == "first"
    manager.rotate("second", clock.now())

    assert secret.read()[0] == "first"
    assert secret.read_uncached()[0] == "second"
    assert secret.read()[0] == "second"


def test_a_caller_that_insists_on_a_fresh_value_is_refused_if_it_cannot_be_read(
    secret: StackSecret, manager: SecretsManager
) -> None:
    secret.read()
    manager.versions.clear()

    with pytest.raises(Unavailable):
        secret.read_uncached()


def test_the_secret_is_read_after_five_minutes_of_the_wall_clock_even_if_the_other_clock_stood_still(
    secret: StackSecret, manager: SecretsManager, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret.read()
    monkeypatch.setattr(clock, "monotonic", lambda: 0.0)
    manager.rotate("second", clock.now())
    clock.advance(301)

    assert secret.read()[0] == "second"


def test_an_unreadable_secret_keeps_its_last_value(
    secret: StackSecret, manager: SecretsManager, clock: VirtualClock
) -> None:
    before = secret.read()
    manager.versions.clear()
    clock.advance(301)

    assert secret.read() is before


def test_a_secret_that_was_never_read_is_unavailable(secret: StackSecret, manager: SecretsManager) -> None:
    manager.versions.clear()

    with pytest.raises(Unavailable):
        secret.keys()


class Ssm:
    """A parameter of Systems Manager. value: None while it cannot be read."""

    def __init__(self, value: str | None) -> None:
        self.value = value
        self.asked = 0

    def get_parameter(self, *, Name: str) -> dict[str, Any]:  # noqa: N803 - AWS's name
        assert Name == "lists"
        self.asked += 1
        if self.value is None:
            raise ClientError({"Error": {"Code": "ThrottlingException"}}, "GetParameter")
        return {"Parameter": {"Value": self.value}}


ROLE = "arn:aws:iam::111122223333:role/jobs"


def settings_with(ssm: Ssm, clock: VirtualClock) -> Callable[[], Settings]:
    clients = cast("Any", SimpleNamespace(ssm=ssm))
    return with_lists(clients, Settings("test", "table", lists_parameter="lists", task_cluster="jobs"), clock)


def test_lists_are_read_when_a_job_first_needs_one_and_every_five_minutes_after_that(clock: VirtualClock) -> None:
    ssm = Ssm(f"target_role_arns {ROLE}\ntask_role_arns \nof_a_later_version x\n")
    current = settings_with(ssm, clock)
    guarded = guard_settings(Settings("test", "table", task_cluster="jobs"), current)
    assert ssm.asked == 0

    found = [guarded.aws.roles for _ in range(3)]
    ssm.value = ""
    clock.advance(301)

    assert found == [frozenset({ROLE})] * 3
    assert (ssm.asked, guarded.tasks.roles) == (1, frozenset())


def test_lists_that_cannot_be_read_again_stay_in_force(clock: VirtualClock) -> None:
    ssm = Ssm(f"target_role_arns {ROLE}")
    current = settings_with(ssm, clock)
    current()

    ssm.value = None
    clock.advance(3_600)

    assert (current().target_role_arns, ssm.asked) == (ROLE, 2)


def test_lists_that_were_never_read_make_a_job_wait_instead_of_refusing_it(clock: VirtualClock) -> None:
    current = settings_with(Ssm(None), clock)

    with pytest.raises(Unavailable, match="lists"):
        current()
