# Generated from aio/client.py by `make sdk`. Do not edit.
"""The client of a stack."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sweephand.base.sources import Chance, Clock, SystemChance, SystemClock
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.sync.http import HttpTransport, Transport
from sweephand.sdk.transport.config import access, of_local_stack
from sweephand.sdk.transport.request import Answer, Request
from sweephand.sdk.transport.retries import Retries

if TYPE_CHECKING:
    from sweephand.sdk.sync.resources.applications import Applications
    from sweephand.sdk.sync.resources.calendars import Calendars
    from sweephand.sdk.sync.resources.collections import Collections
    from sweephand.sdk.sync.resources.consumers import Consumers
    from sweephand.sdk.sync.resources.credentials import Credentials
    from sweephand.sdk.sync.resources.error_redirects import ErrorRedirects
    from sweephand.sdk.sync.resources.errors import Errors
    from sweephand.sdk.sync.resources.flow_keys import FlowKeys
    from sweephand.sdk.sync.resources.job_sets import JobSets
    from sweephand.sdk.sync.resources.jobs import Jobs
    from sweephand.sdk.sync.resources.messages import Messages
    from sweephand.sdk.sync.resources.operations import Operations
    from sweephand.sdk.sync.resources.overview import Overview
    from sweephand.sdk.sync.resources.runs import Runs
    from sweephand.sdk.sync.resources.schedules import Schedules
    from sweephand.sdk.sync.resources.service import Service
    from sweephand.sdk.sync.resources.signing_keys import SigningKeys
    from sweephand.sdk.sync.resources.subscriptions import Subscriptions
    from sweephand.sdk.sync.resources.tenants import Tenants


class Sweephand:
    """A client of a stack, with one credential. Close it after use, or use `with`.

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
        transport: Transport | None = None,
        clock: Clock | None = None,
        chance: Chance | None = None,
    ) -> None:
        self._caller = Caller(
            access(url, client_id, secret, os.environ),
            transport or HttpTransport(),
            clock=clock or SystemClock(),
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

    def call(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        """Calls any path of the service, such as one that has no method here. Raises the same errors as any call.

        A POST is tried again only if it was certainly not carried out.
        """
        request = Request(method, path, query=query or {}, body=body, repeatable=method != "POST", acting=True)
        return self._caller.answer(request)

    @property
    def clock(self) -> Clock:
        """The clock that times its waits."""
        return self._caller.clock

    @property
    def clock_ahead_s(self) -> int | None:
        """How many seconds this machine's clock is ahead of the service's, by its latest answer; None before one."""
        return self._caller.clock_ahead_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._caller.close()

    def _resource(self, module: str, name: str) -> Any:
        """Returns a resource. Its module is imported on first use."""
        return getattr(import_module(f"{__package__}.resources.{module}"), name)(self._caller)

    @cached_property
    def calendars(self) -> Calendars:
        resource: Calendars = self._resource("calendars", "Calendars")
        return resource

    @cached_property
    def applications(self) -> Applications:
        resource: Applications = self._resource("applications", "Applications")
        return resource

    @cached_property
    def collections(self) -> Collections:
        resource: Collections = self._resource("collections", "Collections")
        return resource

    @cached_property
    def consumers(self) -> Consumers:
        resource: Consumers = self._resource("consumers", "Consumers")
        return resource

    @cached_property
    def credentials(self) -> Credentials:
        resource: Credentials = self._resource("credentials", "Credentials")
        return resource

    @cached_property
    def error_redirects(self) -> ErrorRedirects:
        resource: ErrorRedirects = self._resource("error_redirects", "ErrorRedirects")
        return resource

    @cached_property
    def errors(self) -> Errors:
        resource: Errors = self._resource("errors", "Errors")
        return resource

    @cached_property
    def flow_keys(self) -> FlowKeys:
        resource: FlowKeys = self._resource("flow_keys", "FlowKeys")
        return resource

    @cached_property
    def job_sets(self) -> JobSets:
        resource: JobSets = self._resource("job_sets", "JobSets")
        return resource

    @cached_property
    def jobs(self) -> Jobs:
        resource: Jobs = self._resource("jobs", "Jobs")
        return resource

    @cached_property
    def operations(self) -> Operations:
        resource: Operations = self._resource("operations", "Operations")
        return resource

    @cached_property
    def overview(self) -> Overview:
        resource: Overview = self._resource("overview", "Overview")
        return resource

    @cached_property
    def messages(self) -> Messages:
        resource: Messages = self._resource("messages", "Messages")
        return resource

    @cached_property
    def runs(self) -> Runs:
        resource: Runs = self._resource("runs", "Runs")
        return resource

    @cached_property
    def schedules(self) -> Schedules:
        resource: Schedules = self._resource("schedules", "Schedules")
        return resource

    @cached_property
    def service(self) -> Service:
        resource: Service = self._resource("service", "Service")
        return resource

    @cached_property
    def signing_keys(self) -> SigningKeys:
        resource: SigningKeys = self._resource("signing_keys", "SigningKeys")
        return resource

    @cached_property
    def subscriptions(self) -> Subscriptions:
        resource: Subscriptions = self._resource("subscriptions", "Subscriptions")
        return resource

    @cached_property
    def tenants(self) -> Tenants:
        resource: Tenants = self._resource("tenants", "Tenants")
        return resource
