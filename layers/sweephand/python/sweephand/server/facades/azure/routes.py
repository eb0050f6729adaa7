"""The routes of Azure Scheduler in Azure Resource Manager, each with the scope that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweephand.base.errors import SweephandError
from sweephand.server.facades.api import Api, Visit
from sweephand.server.facades.azure import collections, history, jobs, provider
from sweephand.server.facades.azure.context import REQUEST_ID, Context
from sweephand.server.facades.azure.errors import of_error, refusal
from sweephand.server.facades.http import Answer, Operation, Request, Route, Routes
from sweephand.server.flow.tenants import tenancy

READ, WRITE, RUN = "jobs:read", "jobs:write", "runs:write"
SUBSCRIPTION = "/subscriptions/{subscription}"
PROVIDER = f"{SUBSCRIPTION}/providers/{provider.NAMESPACE}"
COLLECTIONS = f"{SUBSCRIPTION}/resourceGroups/{{group}}/providers/{provider.NAMESPACE}/jobCollections"
COLLECTION = f"{COLLECTIONS}/{{collection}}"
JOBS, JOB = f"{COLLECTION}/jobs", f"{COLLECTION}/jobs/{{job}}"
TENANT_HEADER = "sweephand-tenant"

TABLE: list[tuple[str, str, Operation, str]] = [
    ("GET", f"{PROVIDER}/jobCollections", collections.list_of_subscription, READ),
    ("GET", COLLECTIONS, collections.list_of_group, READ),
    ("PUT", COLLECTION, collections.put, WRITE),
    ("GET", COLLECTION, collections.read, READ),
    ("PATCH", COLLECTION, collections.patch, WRITE),
    ("DELETE", COLLECTION, collections.delete, WRITE),
    ("POST", f"{COLLECTION}/enable", collections.enable, WRITE),
    ("POST", f"{COLLECTION}/disable", collections.disable, WRITE),
    ("GET", JOBS, jobs.list_all, READ),
    ("POST", JOBS, jobs.post, WRITE),
    ("PUT", JOB, jobs.put, WRITE),
    ("GET", JOB, jobs.read, READ),
    ("PATCH", JOB, jobs.patch, WRITE),
    ("DELETE", JOB, jobs.delete, WRITE),
    ("POST", f"{JOB}/run", jobs.run, RUN),
    ("GET", f"{JOB}/history", history.list_all, READ),
    ("POST", f"{PROVIDER}/register", provider.read, WRITE),
    ("GET", PROVIDER, provider.read, READ),
    ("GET", f"/providers/{provider.NAMESPACE}/operations", provider.operations, READ),
]
"""Method, path, operation and scope."""
ANY_VERSION = frozenset({provider.read, provider.operations})


class _Routes(Routes):
    any_case = True


class AzureApi(Api):
    """The API under `/subscriptions`. It ignores parameters and members that it does not know, as the service did."""

    routes = _Routes([Route(method, path, operation, scope) for method, path, operation, scope in TABLE])

    def handle(self, event: Mapping[str, Any], request_id: str) -> dict[str, Any]:
        """Answers an event, with the headers that Azure's answers have."""
        answer = super().handle(event, request_id)
        headers = {**answer["headers"], "x-ms-request-id": request_id, "cache-control": "no-cache"}
        if headers["content-type"] == "application/json":
            headers["content-type"] = "application/json; charset=utf-8"
        request_name = {name.lower(): value for name, value in event.get("headers", {}).items()}.get(REQUEST_ID, "")
        if request_name.isascii() and request_name.isprintable() and 0 < len(request_name) <= 200:
            headers[REQUEST_ID] = request_name
        return {**answer, "headers": headers}

    def operate(self, visit: Visit) -> Answer:
        """Returns the route's answer. A caller of the provider names the tenant that it acts for."""
        assert visit.caller is not None
        tenant = visit.caller.acting_for(visit.request.headers.get(TENANT_HEADER))
        if visit.caller.provider:
            tenancy.require_tenant(self.world, tenant)
        context = Context(self.world, self.guard, self.door, *visit[:3], visit.caller, tenant)
        if visit.route.operation not in ANY_VERSION:
            context.check_version()
        context.check_names()
        return visit.route.operation(context)

    def refusal(self, error: SweephandError, _request_id: str, _route: Route | None) -> Answer:
        return of_error(error)

    def no_such_path(self, _request: Request) -> str:
        return "no such resource"

    def no_such_method(self, _request: Request, _taken: str) -> Answer:
        return refusal(405, "MethodNotAllowed", "the resource has no such operation")

    def unexpected(self, _request_id: str) -> Answer:
        return refusal(500, "InternalServerError", "the request could not be processed")
