"""The client of a stack."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sweephand.base.sources import Chance, SystemChance
from sweephand.sdk.aio.caller import AsyncCaller
from sweephand.sdk.aio.http import AsyncHttpTransport, AsyncTransport
from sweephand.sdk.transport.clocks import AsyncClock, AsyncSystemClock
from sweephand.sdk.transport.config import access, of_local_stack
from sweephand.sdk.transport.request import Answer, Request
from sweephand.sdk.transport.retries import Retries

if TYPE_CHECKING:
    from sweephand.sdk.aio.resources.applications import AsyncApplications
    from sweephand.sdk.aio.resources.calendars import AsyncCalendars
    from sweephand.sdk.aio.resources.collections import AsyncCollections
    from sweephand.sdk.aio.resources.consumers import AsyncConsumers
    from sweephand.sdk.aio.resources.credentials import AsyncCredentials
    from sweephand.sdk.aio.resources.error_redirects import AsyncErrorRedirects
    from sweephand.sdk.aio.resources.errors import AsyncErrors
    from sweephand.sdk.aio.resources.flow_keys import AsyncFlowKeys
    from sweephand.sdk.aio.resources.job_sets import AsyncJobSets
    from sweephand.sdk.aio.resources.jobs import AsyncJobs
    from sweephand.sdk.aio.resources.messages import AsyncMessages
    from sweephand.sdk.aio.resources.operations import AsyncOperations
    from sweephand.sdk.aio.resources.overview import AsyncOverview
    from sweephand.sdk.aio.resources.runs import AsyncRuns
    from sweephand.sdk.aio.resources.schedules import AsyncSchedules
    from sweephand.sdk.aio.resources.service import AsyncService
    from sweephand.sdk.aio.resources.signing_keys import AsyncSigningKeys
    from sweephand.sdk.aio.resources.subscriptions import AsyncSubscriptions
    from sweephand.sdk.aio.resources.tenants import AsyncTenants


class AsyncSweephand:
    """A client of a stack, with one credential. Close it after use, or use `async with`.

    url: the stack's output ApiUrl; by default the environment variable SWEEPHAND_URL. client_id, secret: the
    credential; by default SWEEPHAND_CLIENT_ID and SWEEPHAND_SECRET. tenant: the tenant for which a provider's
    credential acts. retries: how often and how long a call is tried. transport, clock, chance: for tests; by default
    HTTP, and the clock and randomness of this machine. Raises ConfigError if the address or the credential is missing.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        client_id: str | None = None,
        secret: str | None = None,
        tenant: str | None = None,
        retries: Retries | None = None,
        transport: AsyncTransport | None = None,
        clock: AsyncClock | None = None,
        chance: Chance | None = None,
    ) -> None:
        self._caller = AsyncCaller(
            access(url, client_id, secret, os.environ),
            transport or AsyncHttpTransport(),
            clock=clock or AsyncSystemClock(),
            chance=chance or SystemChance(),
            retries=retries or Retries(),
            tenant=tenant,
        )

    aws_endpoint: str | None = None
    """The AWS of a local stack, where workers and consumers with this client receive messages."""

    @classmethod
    def local(cls, path: str | Path = ".local/stack.json", *, tenant: str | None = None) -> Self:
        """Returns a client of the stack that `sweephand dev` started in this folder. tenant: None for the first one."""
        access = of_local_stack(path, tenant)
        made = cls(access.url, client_id=access.client_id, secret=access.secret)
        made.aws_endpoint = access.aws_endpoint
        return made

    async def call(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        """Calls any path of the service, such as one that has no method here. Raises the same errors as any call.

        A POST is tried again only if it was certainly not carried out.
        """
        request = Request(method, path, query=query or {}, body=body, repeatable=method != "POST", acting=True)
        return await self._caller.answer(request)

    @property
    def clock(self) -> AsyncClock:
        """The clock that times its waits."""
        return self._caller.clock

    @property
    def clock_ahead_s(self) -> int | None:
        """How many seconds this machine's clock is ahead of the service's, by its latest answer; None before one."""
        return self._caller.clock_ahead_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._caller.aclose()

    def _resource(self, module: str, name: str) -> Any:
        """Returns a resource. Its module is imported on first use."""
        return getattr(import_module(f"{__package__}.resources.{module}"), name)(self._caller)

    @cached_property
    def calendars(self) -> AsyncCalendars:
        resource: AsyncCalendars = self._resource("calendars", "AsyncCalendars")
        return resource

    @cached_property
    def applications(self) -> AsyncApplications:
        resource: AsyncApplications = self._resource("applications", "AsyncApplications")
        return resource

    @cached_property
    def collections(self) -> AsyncCollections:
        resource: AsyncCollections = self._resource("collections", "AsyncCollections")
        return resource

    @cached_property
    def consumers(self) -> AsyncConsumers:
        resource: AsyncConsumers = self._resource("consumers", "AsyncConsumers")
        return resource

    @cached_property
    def credentials(self) -> AsyncCredentials:
        resource: AsyncCredentials = self._resource("credentials", "AsyncCredentials")
        return resource

    @cached_property
    def error_redirects(self) -> AsyncErrorRedirects:
        resource: AsyncErrorRedirects = self._resource("error_redirects", "AsyncErrorRedirects")
        return resource

    @cached_property
    def errors(self) -> AsyncErrors:
        resource: AsyncErrors = self._resource("errors", "AsyncErrors")
        return resource

    @cached_property
    def flow_keys(self) -> AsyncFlowKeys:
        resource: AsyncFlowKeys = self._resource("flow_keys", "AsyncFlowKeys")
        return resource

    @cached_property
    def job_sets(self) -> AsyncJobSets:
        resource: AsyncJobSets = self._resource("job_sets", "AsyncJobSets")
        return resource

    @cached_property
    def jobs(self) -> AsyncJobs:
        resource: AsyncJobs = self._resource("jobs", "AsyncJobs")
        return resource

    @cached_property
    def operations(self) -> AsyncOperations:
        resource: AsyncOperations = self._resource("operations", "AsyncOperations")
        return resource

    @cached_property
    def overview(self) -> AsyncOverview:
        resource: AsyncOverview = self._resource("overview", "AsyncOverview")
        return resource

    @cached_property
    def messages(self) -> AsyncMessages:
        resource: AsyncMessages = self._resource("messages", "AsyncMessages")
        return resource

    @cached_property
    def runs(self) -> AsyncRuns:
        resource: AsyncRuns = self._resource("runs", "AsyncRuns")
        return resource

    @cached_property
    def schedules(self) -> AsyncSchedules:
        resource: AsyncSchedules = self._resource("schedules", "AsyncSchedules")
        return resource

    @cached_property
    def service(self) -> AsyncService:
        resource: AsyncService = self._resource("service", "AsyncService")
        return resource

    @cached_property
    def signing_keys(self) -> AsyncSigningKeys:
        resource: AsyncSigningKeys = self._resource("signing_keys", "AsyncSigningKeys")
        return resource

    @cached_property
    def subscriptions(self) -> AsyncSubscriptions:
        resource: AsyncSubscriptions = self._resource("subscriptions", "AsyncSubscriptions")
        return resource

    @cached_property
    def tenants(self) -> AsyncTenants:
        resource: AsyncTenants = self._resource("tenants", "AsyncTenants")
        return resource
