from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sweephand.server.security.target_roles import KEPT_CLIENTS, RoleNotAssumedError, TargetRoles
from sweephand.testing.sources import VirtualClock

ROLE = "arn:aws:iam::111122223333:role/jobs"


class Sts:
    """Gives credentials that last an hour, and keeps what it was asked for."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.asked: list[dict[str, Any]] = []
        self.refuses: str | None = None

    def assume_role(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request)
        if self.refuses is not None:
            raise ClientError({"Error": {"Code": self.refuses, "Message": "no"}}, "AssumeRole")
        number = len(self.asked)
        return {
            "Credentials": {
                "AccessKeyId": f"key-{number}",
                "SecretAccessKey": f"secret-{number}",
                "SessionToken": f"token-{number}",
                "Expiration": self.clock.now() + timedelta(seconds=request["DurationSeconds"]),
            }
        }


class Acting:
    """TargetRoles whose clients are what they were made with."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.sts = Sts(self.clock)
        self.made: list[tuple[str, str, int, Mapping[str, str]]] = []
        self.roles = TargetRoles(lambda: self.sts, self._make, self.clock)

    def _make(self, service: str, region: str, timeout_s: int, credentials: Mapping[str, str]) -> Any:
        self.made.append((service, region, timeout_s, credentials))
        return self.made[-1]

    def client(self, service: str = "sqs", region: str = "eu-west-1", role: str = ROLE, tenant: str = "acme") -> Any:
        return self.roles.client(service, region, role, tenant, 15)


def test_a_role_is_assumed_for_the_tenant_as_external_id() -> None:
    acting = Acting()

    service, region, timeout_s, credentials = acting.client()

    assert acting.sts.asked == [
        {"RoleArn": ROLE, "RoleSessionName": "sweephand-acme", "ExternalId": "acme", "DurationSeconds": 3_600}
    ]
    assert (service, region, timeout_s) == ("sqs", "eu-west-1", 15)
    assert credentials == {
        "aws_access_key_id": "key-1",
        "aws_secret_access_key": "secret-1",
        "aws_session_token": "token-1",
    }


def test_credentials_and_clients_are_kept_until_shortly_before_they_run_out() -> None:
    acting = Acting()
    first = acting.client()

    acting.clock.advance(3_539)
    kept = acting.client()
    acting.clock.advance(1)
    renewed = acting.client()

    assert kept is first
    assert renewed[3]["aws_access_key_id"] == "key-2"
    assert len(acting.sts.asked) == len(acting.made) == 2


def test_each_service_and_region_has_a_client_of_its_own_by_the_same_credentials() -> None:
    acting = Acting()

    clients = [acting.client(), acting.client("sns"), acting.client(region="us-east-1")]

    assert len(acting.sts.asked) == 1
    assert [(service, region) for service, region, *_ in clients] == [
        ("sqs", "eu-west-1"),
        ("sns", "eu-west-1"),
        ("sqs", "us-east-1"),
    ]


def test_no_tenant_acts_by_what_another_one_was_given() -> None:
    acting = Acting()

    mine, theirs = acting.client(), acting.client(tenant="globex")

    assert mine[3] != theirs[3]
    assert [request["ExternalId"] for request in acting.sts.asked] == ["acme", "globex"]


def test_a_refusal_is_not_kept() -> None:
    acting = Acting()
    acting.sts.refuses = "AccessDenied"
    with pytest.raises(RoleNotAssumedError) as refused:
        acting.client()
    acting.sts.refuses = None

    assert isinstance(refused.value.cause, ClientError)
    assert acting.client()


def test_the_longest_tenant_name_still_makes_a_session_name() -> None:
    acting = Acting()

    acting.client(tenant="t" * 64)

    (request,) = acting.sts.asked
    assert len(request["RoleSessionName"]) == 64
    assert request["ExternalId"] == "t" * 64


def test_the_clients_that_were_not_used_for_longest_go() -> None:
    acting = Acting()
    acting.client(region="eu-west-1")
    for number in range(KEPT_CLIENTS - 1):
        acting.client(region=f"region-{number}")
    acting.client(region="eu-west-1")
    acting.client(region="one-more")

    acting.client(region="eu-west-1")
    assert len(acting.made) == KEPT_CLIENTS + 1

    acting.client(region="region-0")
    assert len(acting.made) == KEPT_CLIENTS + 2
