"""The real collaborators, made once a function: clients share one session, and connect at their first call."""

from __future__ import annotations

import json
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from sweephand.actions import perform
from sweephand.errors import Unavailable
from sweephand.flow.world import World
from sweephand.messaging.run_queue import RunQueue
from sweephand.security import guard
from sweephand.security.caller import Door
from sweephand.security.secrets import SecretBox
from sweephand.security.tokens import derive_keys
from sweephand.settings import Settings, from_environment
from sweephand.sources import SystemChance, SystemClock
from sweephand.store import tenants
from sweephand.store.conditional import Table
from sweephand.store.standing import Standing
from sweephand.telemetry import Telemetry

if TYPE_CHECKING:
    from sweephand.facades.native.routes import NativeApi
    from sweephand.sources import Chance, Clock


def build(settings: Settings | None = None, *, clock: Clock | None = None, chance: Chance | None = None) -> World:
    """The world of a function, by its environment; tests give their own clock and chance."""
    settings = settings or from_environment()
    clock = clock or SystemClock()
    chance = chance or SystemChance()
    table = Table(settings.table_name, clock, chance, region=settings.region)
    table.open()
    clients = Clients(table, settings)
    return World(
        settings=settings,
        clock=clock,
        chance=chance,
        table=table,
        standing=Standing(table, clock),
        queue=RunQueue(clients.sqs, settings.queue_urls, clock, archive_url=settings.archive_queue_url),
        secrets=SecretBox(LazyKms(clients), settings.key_id, clock.monotonic),
        outbound=guard.Outbound(guard_settings(settings)),
        perform=perform,
        journal=Telemetry(),
    )


def guard_settings(settings: Settings) -> guard.GuardSettings:
    """What jobs may call: by parameter, and never Lambda's own runtime or the endpoint of an embedded AWS."""
    closed = [url for url in (settings.aws_endpoint_url, settings.runtime_api_url) if url]
    return guard.GuardSettings(
        private=guard.networks(settings.allowed_private_targets),
        plain_http=settings.plain_http_targets,
        closed_loopback_ports=guard.loopback_ports(closed),
    )


class LazyKms:
    """The key service's two calls; most jobs have no secret, and then no client is made."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def encrypt(self, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._clients.kms.encrypt(**arguments)
        return answer

    def decrypt(self, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._clients.kms.decrypt(**arguments)
        return answer


class Clients:
    """botocore clients, each made when it is first needed, all with the table's session and short time-outs."""

    def __init__(self, table: Table, settings: Settings) -> None:
        self._session = table.session
        self._region = settings.region

    @cached_property
    def sqs(self) -> Any:
        return self._client("sqs")

    @cached_property
    def kms(self) -> Any:
        return self._client("kms")

    @cached_property
    def secrets_manager(self) -> Any:
        return self._client("secretsmanager")

    def _client(self, service: str) -> Any:
        from botocore.config import Config  # noqa: PLC0415 - loaded with the session already

        config = Config(
            connect_timeout=1,
            read_timeout=3,
            retries={"total_max_attempts": 3, "mode": "standard"},
            max_pool_connections=16,
        )
        return self._session.create_client(service, region_name=self._region, config=config)


def api(settings: Settings | None = None) -> NativeApi:
    """The facade that the environment names."""
    from sweephand.facades.native.routes import NativeApi  # noqa: PLC0415 - of the API function only

    settings = settings or from_environment()
    world = build(settings)
    return NativeApi(world, guard_settings(settings), Doorkeeper(world).door)


class Doorkeeper:
    """Makes the door from the stack's secret, and anew where the secret was rotated:
    it is read again every 5 minutes.
    """

    KEPT_S = 300.0

    def __init__(self, world: World) -> None:
        self._world = world
        self._clients = Clients(world.table, world.settings)
        self._door: Door | None = None
        self._made_at = 0.0

    def door(self) -> Door:
        """Raises Unavailable if the secret cannot be read and none is known."""
        now = self._world.clock.monotonic()
        if self._door is None or now - self._made_at > self.KEPT_S:
            self._made_at = now
            secret, previous = self._secret("AWSCURRENT"), self._secret("AWSPREVIOUS")
            if secret is None and self._door is None:
                raise Unavailable("the stack's secret cannot be read")
            if secret is not None:
                keys = derive_keys(self._world.settings.stack_name, secret, previous)
                self._door = Door(keys, secret, partial(tenants.find_credential, self._world.table))
        assert self._door is not None
        return self._door

    def _secret(self, stage: str) -> str | None:
        try:
            answer = self._clients.secrets_manager.get_secret_value(
                SecretId=self._world.settings.stack_secret_id, VersionStage=stage
            )
        except (ClientError, BotoCoreError):
            return None
        return str(json.loads(answer["SecretString"])["secret"])
