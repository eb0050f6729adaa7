"""The Python SDK: `Sweephand` and `AsyncSweephand`, the clients of a stack. See docs/guide/sdk.md."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sweephand.errors import SweephandError
    from sweephand.sdk.aio.client import AsyncSweephand
    from sweephand.sdk.bodies import at, cron, event, every, http, rrule
    from sweephand.sdk.errors import ApiError, ConfigError, OperationFailed, TransportError
    from sweephand.sdk.retries import Retries
    from sweephand.sdk.sync.client import Sweephand

_PLACES = {
    "ApiError": "sweephand.sdk.errors",
    "AsyncSweephand": "sweephand.sdk.aio.client",
    "ConfigError": "sweephand.sdk.errors",
    "OperationFailed": "sweephand.sdk.errors",
    "Retries": "sweephand.sdk.retries",
    "Sweephand": "sweephand.sdk.sync.client",
    "SweephandError": "sweephand.errors",
    "TransportError": "sweephand.sdk.errors",
    **dict.fromkeys(("at", "cron", "event", "every", "http", "rrule"), "sweephand.sdk.bodies"),
}
"""The public names, each imported with its first use. Errors by code are in `sweephand.sdk.api_errors`."""

__all__ = [
    "ApiError",
    "AsyncSweephand",
    "ConfigError",
    "OperationFailed",
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
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
