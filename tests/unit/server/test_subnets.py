"""A network of the organisation: a missing endpoint is named, and the guard of outgoing calls holds in it."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import Any

import pytest

from sweephand.base.errors import InvalidRequest
from sweephand.server import subnets
from sweephand.server.flow.tenants import applications
from sweephand.server.security import guard
from sweephand.server.settings import Settings
from sweephand.server.wiring import guard_settings, report_subnets
from tests.support.stage import TENANT, Stage

SUBNETS = "subnet-0a1b2c3d"


@pytest.fixture
def inside(stage: Stage) -> Stage:
    settings = replace(stage.world.settings, vpc_subnets=SUBNETS)
    stage.world = replace(stage.world, settings=settings)
    return stage


@pytest.fixture(autouse=True)
def _named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes each host its own only address."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port, **_: _addresses([host], port))


def _addresses(hosts: list[str], port: int) -> list[Any]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in hosts]


def closed(*hosts: str) -> Any:
    """Makes a network in which no connection to these hosts can be made."""

    class Connection:
        def close(self) -> None:
            pass

    def connect(address: tuple[str, int], timeout: float) -> Connection:
        assert (address[1], timeout) == (443, 2.0)
        if address[0] in hosts:
            raise TimeoutError
        return Connection()

    return connect


def test_the_first_tick_names_the_services_that_the_subnets_do_not_reach_and_goes_on(
    inside: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        socket, "create_connection", closed("sqs.eu-central-1.amazonaws.com", "kms.eu-central-1.amazonaws.com")
    )

    report_subnets(inside.world)

    ((level, message, members),) = inside.journal.lines
    assert (level, members) == ("error", {"reason": "sqs, kms"})
    assert message.startswith("VpcSubnets do not reach all services")


def test_a_service_with_many_addresses_delays_a_cold_start_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    class Silent(socket.socket):
        def connect(self, address: Any) -> None:
            tried.append(address)
            raise TimeoutError

    def lookup(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        return _addresses([host] if host[0].isdigit() else [f"192.0.2.{n}" for n in range(8)], port)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    monkeypatch.setattr(socket, "socket", Silent)

    assert subnets.unreachable({"s3": "s3.eu-central-1.amazonaws.com"}) == ["s3"]
    assert tried == [("192.0.2.0", 443)]


def test_subnets_that_reach_everything_cause_no_line(inside: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", closed())

    report_subnets(inside.world)

    assert inside.journal.lines == []


def test_a_stack_outside_a_network_of_its_own_makes_no_connection(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("connected"))

    report_subnets(stage.world)


@pytest.mark.parametrize(
    "url",
    [
        "https://10.0.3.7/",
        "https://172.16.9.1/",
        "https://169.254.169.253/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[fd00:ec2::254]/",
        "https://sqs.eu-central-1.amazonaws.com/",
        "https://ip-10-0-3-7.eu-central-1.compute.internal/",
    ],
)
def test_jobs_reach_no_private_address_of_the_subnets_nor_the_endpoints_in_them(url: str) -> None:
    """Inside a network, the names of AWS's services lead to the private addresses of their endpoints."""
    settings = guard_settings(Settings("test", "table", vpc_subnets=SUBNETS))

    def lookup(_host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.3.7", port))]

    with pytest.raises((InvalidRequest, guard.CallFailed)):
        guard.resolve(
            guard.check_url(url, settings),
            guard.Outbound(settings, lookup),
            guard.Deadline(5.0, lambda: 0.0),
            with_credentials=False,
        )


@pytest.mark.parametrize(
    ("key_id", "encryption"),
    [("", {"SqsManagedSseEnabled": "true"}), ("1234abcd-12ab", {"KmsMasterKeyId": "1234abcd-12ab"})],
)
def test_queues_of_applications_are_encrypted_like_those_of_the_stack(
    stage: Stage, key_id: str, encryption: dict[str, str]
) -> None:
    world = replace(stage.world, settings=replace(stage.world.settings, queue_key_id=key_id))

    applications.register(world, TENANT, "billing", None)

    (attributes,) = stage.sqs.created.values()
    assert {name: value for name, value in attributes.items() if "Sse" in name or "Kms" in name} == encryption
