"""Kinds of routes: what those that read have in common, those that change, verbs, deletions, and those of one noun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweephand.facades.http import Answer, Operation, Route
from sweephand.facades.native.context import Context

READ, WRITE, RUN, ERRORS = "jobs:read", "jobs:write", "runs:write", "errors:edit"
ADMIN, PROVIDER = "admin", "provider:admin"
MATCH, ONCE, ACTING = ("If-Match",), ("Idempotency-Key",), ("Sweephand-Tenant",)
ERROR = "/v1/errors/{error}"
OF_TENANTS: Mapping[str, Any] = {"scope": PROVIDER, "tenant": False, "headers": ()}
BEGINS = (ERRORS, WRITE, PROVIDER)
"""Who has one of these may begin some long work. The operation itself asks for the scope of its own kind."""
OF_OPERATIONS: Mapping[str, Any] = {"scope": READ, "also": BEGINS, "tenant": False, "headers": ("Sweephand-Tenant",)}
OF_CREDENTIALS: Mapping[str, Any] = {"scope": ADMIN, "tenant": False, "headers": ("Sweephand-Tenant",)}


def get(path: str, operation: Operation, summary: str, *, gives: str, scope: str | None = READ, **more: Any) -> Route:
    return Route("GET", path, operation, scope, summary=summary, gives=gives, **more)


def change(method: str, path: str, operation: Operation, summary: str, *, takes: str, gives: str, **more: Any) -> Route:
    """It needs a body, and may be for one revision only."""
    more = {"scope": WRITE, "headers": MATCH, **more}
    return Route(method, path, operation, body="required", summary=summary, takes=takes, gives=gives, **more)


def verb(path: str, operation: Operation, summary: str, *, gives: str, takes: str = "Nothing", **more: Any) -> Route:
    more = {"scope": WRITE, "headers": MATCH, **more}
    return Route("POST", path, operation, body="optional", summary=summary, takes=takes, gives=gives, **more)


def delete(path: str, operation: Operation, summary: str, **more: Any) -> Route:
    more = {"scope": WRITE, "headers": MATCH, **more}
    return Route("DELETE", path, operation, summary=summary, status=204, **more)


def rare(module: str, name: str) -> Operation:
    """Returns an operation that is loaded with its first request, as few are about calendars, tenants or errors."""

    def operation(ctx: Context) -> Answer:
        from importlib import import_module  # noqa: PLC0415

        work: Operation = getattr(import_module(operation.__module__), name)
        return work(ctx)

    operation.__name__, operation.__module__ = name, f"sweephand.facades.native.{module}"
    return operation


def of_calendars(name: str) -> Operation:
    return rare("shared.calendars", name)


def of_credentials(name: str) -> Operation:
    return rare("tenants.credentials", name)


def of_tenants(name: str) -> Operation:
    return rare("tenants.tenants", name)


def of_operations(name: str) -> Operation:
    return rare("operations.operations", name)


def of_errors(name: str) -> Operation:
    return rare("runs.errors", name)


def error_verb(path: str, name: str, summary: str, takes: str = "Nothing", **more: Any) -> Route:
    more = {"scope": ERRORS, "headers": (), "gives": "ErrorGroup", **more}
    return verb(f"{ERROR}/{path}", of_errors(name), summary, takes=takes, **more)


def of_flow_keys(name: str) -> Operation:
    return rare("shared.flow_keys", name)
