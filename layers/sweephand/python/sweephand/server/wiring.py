"""Creates the collaborators of a function, once per process. Rarely needed modules are imported on first use."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import Loader

from sweephand.base.errors import Unauthenticated, Unavailable
from sweephand.base.lazy import lazy
from sweephand.base.sources import SystemChance, SystemClock
from sweephand.domain.schedule import APPLICATION
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import RunQueue
from sweephand.server.settings import Settings, from_environment
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.telemetry import Telemetry

if TYPE_CHECKING:
    from sweephand.base.sources import Chance, Clock
    from sweephand.domain.run import Outcome
    from sweephand.server.actions.call import Call

with lazy():
    from sweephand.server import actions, parameter_lists, subnets
    from sweephand.server.messaging import event_bus
    from sweephand.server.security import (
        caller,
        guard,
        identity,
        jwks,
        key_service,
        oidc,
        target_roles,
        tasks,
        tokens,
    )
    from sweephand.server.store.index import shards
    from sweephand.server.store.operations import files
    from sweephand.server.store.tenants import callback_keys, credentials, pointer_keys, secret_box, tenants


T = TypeVar("T")


def build(settings: Settings | None = None, *, clock: Clock | None = None, chance: Chance | None = None) -> World:
    """Returns the world of a function from its environment. Tests pass their own clock and chance."""
    settings = settings or from_environment()
    clock = clock or SystemClock()
    chance = chance or SystemChance()
    journal = Telemetry(settings.stack_name)
    table = Table(
        settings.table_name, clock, chance, region=settings.region, throttled=partial(journal.count, "Throttled")
    )
    table.session.register_component("data_loader", ServiceData())
    table.open()
    clients = Clients(table, settings)
    sqs = later(lambda: clients.sqs)
    pointers = later(lambda: pointer_keys.PointerKeys(table, clock, chance))
    key = later(lambda: key_service.KeyService(clients.kms, settings.key_id))
    return World(
        settings=settings,
        clock=clock,
        chance=chance,
        table=table,
        terms=later(lambda: tenants.CollectionTerms(table, clock)),
        queue=RunQueue(
            sqs,
            settings.queue_urls,
            clock,
            key=lambda: pointers.current(),  # noqa: PLW0108 - made on first use
            dead_letter_url=settings.dead_letter_queue_url,
            archive_url=settings.archive_queue_url,
            applications=settings.application_queues,
        ),
        bus=later(lambda: event_bus.EventBus(clients.events, settings.event_bus_name, clock, chance)),
        secrets=later(lambda: secret_box.SecretBox(table, key, clock, chance)),
        files=later(lambda: files.Files(clients.s3, settings.files_bucket)),
        outbound=later(lambda: _outbound(clients, settings, clock)),
        perform=_perform,
        callback_keys=later(lambda: callback_keys.CallbackKeys(table, key, clock, chance)),
        pointer_keys=pointers,
        shards=later(lambda: shards.Shards(table, settings.shards)),
        journal=journal,
    )


def report_subnets(world: World) -> None:
    """Logs which services the functions' subnets do not reach, in one line. Does nothing outside a VPC."""
    settings = world.settings
    if not settings.vpc_subnets or settings.aws_endpoint_url:
        return
    session = world.table.session
    made = {name: session.create_client(name, region_name=settings.region) for name in subnets.SERVICES}
    missing = subnets.unreachable({name: urlsplit(client.meta.endpoint_url).netloc for name, client in made.items()})
    if missing:
        world.journal.error(
            "VpcSubnets do not reach all services that the functions call: they need endpoints or a NAT gateway",
            reason=", ".join(missing),
        )


class Later:
    """A proxy for an object that is created when it is used. A sweeper never needs most of them.

    Safe for threads: the object is created once.
    """

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make
        self._made: object = None
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._object(), name)

    def __int__(self) -> int:
        number: Any = self._object()
        return int(number)

    def _object(self) -> object:
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._make()
        return self._made


def later(make: Callable[[], T]) -> T:
    """Returns a proxy for the object; see Later."""
    proxy: Any = Later(make)
    return proxy  # type: ignore[no-any-return]


class Current:
    """A proxy for an object that is made again for each use, from values that may have changed."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        return getattr(self._make(), name)


def with_lists(clients: Clients, settings: Settings, clock: Clock) -> Callable[[], Settings]:
    """Returns a function that returns the settings with the current lists, and raises Unavailable without them."""
    if not settings.lists_parameter:
        return lambda: settings
    kept = parameter_lists.Lists(lambda: clients.ssm, settings.lists_parameter, clock)
    known = {each.name for each in fields(Settings)}

    def current() -> Settings:
        read: dict[str, Any] = {name: value for name, value in kept.read().items() if name in known}
        return replace(settings, **read)

    return current


def _perform(kind: str, params: Mapping[str, Any], call: Call, outbound: guard.Outbound) -> Outcome:
    return actions.perform(kind, params, call, outbound)


def _outbound(clients: Clients, settings: Settings, clock: Clock) -> guard.Outbound:
    def own() -> identity.Identity:
        return identity.Identity(lambda: clients.kms, settings.identity_key_id, settings.public_base_url)

    return guard.Outbound(
        guard_settings(settings, with_lists(clients, settings, clock)),
        roles=later(lambda: target_roles.TargetRoles(lambda: clients.sts, clients.acting_by, clock)),
        identity=later(own) if settings.identity_key_id else None,
        ecs=clients.ecs if settings.task_cluster else None,
    )


def guard_settings(settings: Settings, current: Callable[[], Settings] | None = None) -> guard.GuardSettings:
    """Returns what jobs may call, by the parameters. Excludes Lambda's own runtime and an emulator's endpoint.

    current: returns the settings with their lists, which are read only for jobs with roles and tasks.
    """
    closed = [url for url in (settings.aws_endpoint_url, settings.runtime_api_url) if url]
    of_aws: Any = Current(lambda: _aws_settings(current())) if current else _aws_settings(settings)
    of_tasks: Any = Current(lambda: _task_settings(current())) if current else _task_settings(settings)
    return guard.GuardSettings(
        private=guard.networks(settings.allowed_private_targets),
        plain_http=settings.plain_http_targets,
        closed_loopback_ports=guard.loopback_ports(closed),
        aws=of_aws,
        tasks=of_tasks if settings.task_cluster else guard.TaskSettings(),
        azure_storage_suffix=settings.azure_suffixes.partition(",")[0],
        azure_service_bus_suffix=settings.azure_suffixes.partition(",")[2],
        identity=bool(settings.identity_key_id),
    )


def _aws_settings(settings: Settings) -> guard.AwsSettings:
    return guard.AwsSettings(
        roles=guard.role_arns(settings.target_role_arns),
        account=settings.account,
        region=settings.region or "",
        stack_name=settings.stack_name,
        bus_name=settings.event_bus_name,
        application_queues=f"{settings.application_queues}-{APPLICATION}",
    )


def _task_settings(settings: Settings) -> guard.TaskSettings:
    return tasks.settings(
        cluster=settings.task_cluster,
        definition_arns=settings.task_definition_arns,
        network=settings.task_network,
        role_arns=settings.task_role_arns,
    )


class ServiceData(Loader):  # type: ignore[misc]  # botocore has no types
    """botocore's own description of the services.

    To check that a service exists, botocore's loader searches its 400 folders twice, for a tenth of a cold start.
    """

    def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002 - of any type
        """Returns every entry that may be a service. Any other name fails a moment later, for lack of a file."""
        return [entry.name for entry in Path(self.BUILTIN_DATA_PATH).iterdir()]


SIGNED_LINKS = {"signature_version": "s3v4"}
REGIONAL = {"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"}
"""The regional address. Without it, signed links lead to a redirect for hours after a bucket was created."""


class Clients:
    """botocore clients, each created on first use, all with the table's session and short time-outs.

    Safe for threads, unlike a session.
    """

    def __init__(self, table: Table, settings: Settings) -> None:
        self._session = table.session
        self._region = settings.region
        self._of_s3 = SIGNED_LINKS if settings.aws_endpoint_url else {**SIGNED_LINKS, "s3": REGIONAL}
        self._made: dict[tuple[str, int], Any] = {}
        self._lock = Lock()

    @property
    def sqs(self) -> Any:
        return self._client("sqs")

    @property
    def ssm(self) -> Any:
        return self._client("ssm")

    @property
    def kms(self) -> Any:
        return self._client("kms")

    @property
    def events(self) -> Any:
        """Returns a client without retries, with a time-out of 2 s: the caller tries four times while a run waits."""
        return self._client("events", attempts=1, read_timeout_s=2)

    @property
    def secrets_manager(self) -> Any:
        return self._client("secretsmanager")

    @property
    def s3(self) -> Any:
        """Returns a client with a long time-out: a call writes a part of a file, and S3 may join parts slowly."""
        return self._client("s3", attempts=2, read_timeout_s=30)

    @property
    def sts(self) -> Any:
        """Returns a client that takes at most 6 s, for which the lease has room in addition to the call itself."""
        return self._client("sts", attempts=2, read_timeout_s=2)

    def ecs(self, limit_s: float) -> Any:
        """Returns a client that retries once within the limit. The token or the ARN prevents a second task."""
        return self._client("ecs", attempts=2, read_timeout_s=max(1, int(limit_s / 2) - 1))

    def acting_by(self, service: str, region: str, timeout_s: int, credentials: Mapping[str, str]) -> Any:
        """Returns a client for a job's own target, without retries: the job's retry policy decides about them."""
        with self._lock:
            return self._make(service, 1, timeout_s, region, credentials)

    def _client(self, service: str, *, attempts: int = 3, read_timeout_s: int = 3) -> Any:
        key = service, read_timeout_s
        with self._lock:
            if key not in self._made:
                self._made[key] = self._make(service, attempts, read_timeout_s)
            return self._made[key]

    def _make(
        self,
        service: str,
        attempts: int,
        read_timeout_s: int,
        region: str | None = None,
        credentials: Mapping[str, str] | None = None,
    ) -> Any:
        from botocore.config import Config  # noqa: PLC0415 - loaded with the session already

        config = Config(
            connect_timeout=1,
            read_timeout=read_timeout_s,
            retries={"total_max_attempts": attempts, "mode": "standard"},
            max_pool_connections=16,
            # The service checks them too, and user input is validated before. This saves a fifteenth of a sweep's CPU.
            parameter_validation=False,
            **(self._of_s3 if service == "s3" else {}),
        )
        region = region or self._region
        return self._session.create_client(service, region_name=region, config=config, **(credentials or {}))


def foreign_tokens(world: World) -> oidc.ForeignTokens:
    """Returns the issuers that the parameters Oidc* trust. Raises ValueError for invalid parameters."""
    settings = world.settings
    trusted = oidc.trust(issuers=settings.oidc_issuers, claims=settings.oidc_claims, scopes=settings.oidc_scopes)
    outbound = guard.Outbound(guard_settings(settings))

    def keys_of(issuer: oidc.Issuer) -> jwks.Keys:
        fetch = jwks.fetcher(outbound, world.clock.monotonic)
        return jwks.Keys(jwks.Source(issuer.url, issuer.keys_url), fetch, say)

    def say(reason: str) -> None:
        world.journal.warning("the keys of an issuer cannot be fetched", reason=reason)

    return oidc.ForeignTokens(trusted, keys_of, lambda name: tenants.read_tenant(world.table, name) is not None)


class StackSecret:
    """The stack's secret and its derived keys. It is fetched again every 5 minutes, because it may have been rotated.

    It uses the wall clock, because the monotonic clock of a frozen function may stand still. Safe for threads.
    """

    KEPT = timedelta(minutes=5)

    def __init__(self, clients: Clients, settings: Settings, clock: Clock) -> None:
        self._clients = clients
        self._settings = settings
        self._clock = clock
        self._known: tuple[str, tokens.StackKeys] | None = None
        self._tried_at: datetime | None = None
        self._lock = Lock()

    def keys(self) -> tokens.StackKeys:
        return self.read()[1]

    def read(self) -> tuple[str, tokens.StackKeys]:
        """Returns the secret and its keys, including those from before the last rotation.

        Raises Unavailable if it cannot be read and none is cached.
        """
        with self._lock:
            now = self._clock.now()
            if self._known is None or self._tried_at is None or not now - self.KEPT <= self._tried_at <= now:
                self._tried_at = now
                self._remember(self._fetch())
            if self._known is None:
                raise Unavailable(UNREADABLE)
            return self._known

    def read_uncached(self) -> tuple[str, tokens.StackKeys]:
        """Reads the current secret and its keys. Raises Unavailable if it cannot be read, even if one is cached."""
        with self._lock:
            fetched = self._fetch()
            if fetched is None:
                raise Unavailable(UNREADABLE)
            self._tried_at = self._clock.now()
            return self._remember(fetched) or fetched

    def _remember(self, fetched: tuple[str, tokens.StackKeys] | None) -> tuple[str, tokens.StackKeys] | None:
        """Returns the cached object if nothing has changed, because it is compared by identity."""
        if fetched is not None and fetched != self._known:
            self._known = fetched
        return self._known

    def _fetch(self) -> tuple[str, tokens.StackKeys] | None:
        current = self._version("AWSCURRENT")
        if current is None:
            return None
        secret, rotated_at = current
        before = self._version("AWSPREVIOUS")
        previous = None if before is None else before[0]
        return secret, tokens.derive_keys(self._settings.stack_name, secret, previous, rotated_at)

    def _version(self, stage: str) -> tuple[str, datetime | None] | None:
        """Returns the secret of this stage, and when that version was created."""
        try:
            answer = self._clients.secrets_manager.get_secret_value(
                SecretId=self._settings.stack_secret_id, VersionStage=stage
            )
        except (ClientError, BotoCoreError):
            return None
        return str(json.loads(answer["SecretString"])["secret"]), answer.get("CreatedDate")


UNREADABLE = "the stack's secret cannot be read"


class Doorkeeper:
    """A factory of doors from the stack's secret. It makes a new door when the secret has changed.

    settings: returns the settings with the current lists.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        clients = Clients(world.table, world.settings)
        self._secret = StackSecret(clients, world.settings, world.clock)
        self.settings = with_lists(clients, world.settings, world.clock)
        self._made: tuple[tuple[str, tokens.StackKeys], caller.Door] | None = None
        # Outlives the doors, because it caches issuers' keys and the times of fetching them.
        self._foreign: tuple[Settings, oidc.ForeignTokens] | None = None

    def door(self) -> caller.Door:
        """Returns the door. Raises Unavailable if the secret cannot be read and none is cached."""
        return self._by(self._secret.read())

    def fresh_door(self) -> caller.Door:
        """Makes a door from the current secret. Raises Unavailable if the secret cannot be read."""
        return self._by(self._secret.read_uncached())

    def _by(self, known: tuple[str, tokens.StackKeys]) -> caller.Door:
        if self._made is None or self._made[0] is not known:
            self._made = known, self._door(*known)
        return self._made[1]

    def _door(self, secret: str, keys: tokens.StackKeys) -> caller.Door:
        settings = self._world.settings
        foreign = self._by_foreign_token if settings.foreign_issuers or settings.oidc_issuers else None
        find = partial(credentials.find_credential, self._world.table)
        return caller.Door(keys, secret, find, foreign, self._world.callback_keys.current, self.fresh_door)

    def _by_foreign_token(self, token: str, now: datetime) -> caller.Caller:
        settings = self.settings()
        if self._foreign is None or self._foreign[0] != settings:
            try:
                self._foreign = settings, foreign_tokens(replace(self._world, settings=settings))
            except ValueError as wrong:
                # The template refuses such parameters. If they occur anyway, the stack's own credentials still work.
                self._world.journal.error("the parameters Oidc* cannot be read", reason=str(wrong))
                raise Unauthenticated from wrong
        return self._foreign[1].identify(token, now)
