"""The Python SDK: `Sweephand` and `AsyncSweephand`, the clients of a stack. See docs/guide/sdk.md."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sweephand.base.errors import SweephandError
    from sweephand.sdk.aio.client import AsyncSweephand
    from sweephand.sdk.aio.root import AsyncJobScheduler
    from sweephand.sdk.bodies import at, cron, event, every, http, rrule, task
    from sweephand.sdk.errors import ApiError, ConfigError, InvalidArgument, OperationFailed, TransportError
    from sweephand.sdk.records import Dropped, JobData, JobInterval, JobRecord, Result
    from sweephand.sdk.signatures import NotSigned, verify
    from sweephand.sdk.sync.client import Sweephand
    from sweephand.sdk.sync.root import JobScheduler
    from sweephand.sdk.transport.retries import Retries

_PLACES = {
    "ApiError": "sweephand.sdk.errors",
    "AsyncJobScheduler": "sweephand.sdk.aio.root",
    "AsyncSweephand": "sweephand.sdk.aio.client",
    "ConfigError": "sweephand.sdk.errors",
    "Dropped": "sweephand.sdk.records",
    "InvalidArgument": "sweephand.sdk.errors",
    "JobData": "sweephand.sdk.records",
    "JobInterval": "sweephand.sdk.records",
    "JobRecord": "sweephand.sdk.records",
    "JobScheduler": "sweephand.sdk.sync.root",
    "NotSigned": "sweephand.sdk.signatures",
    "OperationFailed": "sweephand.sdk.errors",
    "Result": "sweephand.sdk.records",
    "Retries": "sweephand.sdk.transport.retries",
    "Sweephand": "sweephand.sdk.sync.client",
    "SweephandError": "sweephand.base.errors",
    "TransportError": "sweephand.sdk.errors",
    "verify": "sweephand.sdk.signatures",
    **dict.fromkeys(("at", "cron", "event", "every", "http", "rrule", "task"), "sweephand.sdk.bodies"),
}
"""The public names with their modules, imported on first use. Errors by code are in `sweephand.sdk.api_errors`."""

__all__ = [
    "ApiError",
    "AsyncJobScheduler",
    "AsyncSweephand",
    "ConfigError",
    "Dropped",
    "InvalidArgument",
    "JobData",
    "JobInterval",
    "JobRecord",
    "JobScheduler",
    "NotSigned",
    "OperationFailed",
    "Result",
    "Retries",
    "Sweephand",
    "SweephandError",
    "TransportError",
    "at",
    "cron",
    "event",
    "every",
    "http",
    "rrule",
    "task",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
