"""Refusals in the form of Azure Resource Manager: `{"error": {"code", "message"}}`."""

from __future__ import annotations

from sweephand.base.errors import InvalidRequest, RateLimited, SweephandError, Unauthenticated, Unavailable
from sweephand.server.facades.http import Answer

STATUS = {
    "UNAUTHENTICATED": (401, "AuthenticationFailed"),
    "SCOPE_MISSING": (403, "AuthorizationFailed"),
    "TENANT_DISABLED": (403, "AuthorizationFailed"),
    "NOT_FOUND": (404, "ResourceNotFound"),
    "NAME_TAKEN": (409, "ConflictError"),
    "QUOTA_EXCEEDED": (409, "ConflictError"),
    "STATE_CONFLICT": (409, "ConflictError"),
    "TOO_LARGE": (413, "RequestEntityTooLarge"),
    "RATE_LIMITED": (429, "TooManyRequests"),
    "UNAVAILABLE": (503, "ServiceUnavailable"),
    "MissingApiVersionParameter": (400, "MissingApiVersionParameter"),
    "InvalidApiVersionParameter": (400, "InvalidApiVersionParameter"),
}
"""Every other code is a 400 BadRequest."""


def refusal(status: int, code: str, message: str, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {"error": {"code": code, "message": message}}, named)


def of_error(error: SweephandError) -> Answer:
    status, code = STATUS.get(error.code, (400, "BadRequest"))
    if isinstance(error, Unauthenticated):
        return refusal(status, code, error.reason, WWW_Authenticate='Bearer realm="sweephand", Basic realm="sweephand"')
    if isinstance(error, RateLimited | Unavailable):
        return refusal(status, code, error.reason, Retry_After=str(error.retry_after_s))
    field = error.field if isinstance(error, InvalidRequest) else None
    return refusal(status, code, f"{field}: {error.reason}" if field else error.reason)
