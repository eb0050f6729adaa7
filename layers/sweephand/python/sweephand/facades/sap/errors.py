"""Refusals in the form that SAP's clients show: they print `message` and the status, nothing else.

Source: the service's published OpenAPI description, version 2.88.0, and the texts of its documentation.
"""

from __future__ import annotations

from sweephand.errors import InvalidRequest, RateLimited, SweephandError, Unauthenticated, Unavailable
from sweephand.facades.http import Answer

STATUS = {
    "UNAUTHENTICATED": 401,
    "SCOPE_MISSING": 403,
    "TENANT_DISABLED": 403,
    "QUOTA_EXCEEDED": 403,
    "NOT_FOUND": 404,
    "TOO_LARGE": 413,
    "RATE_LIMITED": 429,
    "UNAVAILABLE": 503,
    "INTERNAL": 500,
}
"""Every other code of the domain is a 400: the service knows no 409, 412, 415 and 422."""
TYPES = {
    400: "Bad Request/Invalid Request",
    401: "Authentication Error",
    403: "Forbidden Request",
    404: "Resource Not Found",
    413: "Request Too Large",
    429: "Rate Limit Exceeded",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


CREATING = "Error while creating job: "
ALWAYS_CREATING = frozenset({"calmConfig"})
"""Members whose error messages begin like those of POST everywhere, because the documentation of PUT has them too."""


def refusal(status: int, message: str, **members: object) -> Answer:
    body = {"code": status, "message": message, "type": TYPES[status], "detailedError": message, **members}
    return Answer(status, body)


def of_error(error: SweephandError, prefix: str) -> Answer:
    """Answers an error. prefix: begins the route's messages, `Error while creating job: `; bare without a caller."""
    status = STATUS.get(error.code, 400)
    if isinstance(error, Unauthenticated):
        challenge = {"WWW-Authenticate": 'Basic realm="sweephand", Bearer realm="sweephand"'}
        answer = refusal(401, "Unauthorized")
        return Answer(answer.status, answer.body, challenge)
    message = prefix + error.reason
    if isinstance(error, InvalidRequest):
        message = CREATING + error.reason if error.field in ALWAYS_CREATING else prefix + _of_field(error)
    if isinstance(error, RateLimited | Unavailable):
        # Both, because its shell samples read the body and its client the header.
        answer = refusal(status, message, retryAfter=error.retry_after_s)
        return Answer(answer.status, answer.body, {"Retry-After": str(error.retry_after_s)})
    return refusal(status, message)


NAMES = {"sapCron": "cron", "every": "repeatInterval"}
"""SAP's names for fields of the domain."""


def _of_field(error: InvalidRequest) -> str:
    """Returns the message with the path of the field.

    A cron that cannot be read gets the documented message, with the word that clients look for. A cron that can be
    read, but has no run left, is reported like any other field.
    """
    if not error.field:
        return error.reason
    above, _, name = error.field.rpartition(".")
    name = NAMES.get(name, name)
    if name == "cron" and error.code != "NEVER_FIRES":
        where = f"{above}.{name}: " if above else ""
        return f"Invalid cron specified (xscron: {where}{error.reason})"
    return f"{above}.{name}: {error.reason}" if above else f"{name}: {error.reason}"
