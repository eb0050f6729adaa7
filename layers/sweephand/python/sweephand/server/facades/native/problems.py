"""Problem documents (RFC 9457) with stable codes. Only this module knows the HTTP statuses of the native API."""

from __future__ import annotations

from typing import Any

from sweephand.base.errors import (
    MOST_SHOWN,
    Conflict,
    InvalidRequest,
    RateLimited,
    SweephandError,
    Unauthenticated,
    Unavailable,
)
from sweephand.server.facades.http import Answer

STATUS = {
    "INVALID_JSON": (400, "The body cannot be read"),
    "INVALID_QUERY": (400, "The path, the query or a header cannot be read"),
    "INVALID_CURSOR": (400, "The cursor does not belong to this list"),
    "UNAUTHENTICATED": (401, "No valid identity"),
    "SCOPE_MISSING": (403, "A scope is missing"),
    "TENANT_DISABLED": (403, "The tenant is disabled"),
    "NOT_FOUND": (404, "Not found"),
    "METHOD_NOT_ALLOWED": (405, "The path does not support this method"),
    "NAME_TAKEN": (409, "The name is taken"),
    "QUOTA_EXCEEDED": (409, "A quota is exceeded"),
    "STATE_CONFLICT": (409, "The current state does not allow this"),
    "RESULT_CONFLICT": (409, "Another result is already recorded"),
    "LEASE_LOST": (409, "Another worker may have the run"),
    "TOO_MANY_DELETES": (409, "The plan deletes more jobs than is usual"),
    "CONSUMER_TAKEN": (409, "Another process is this consumer"),
    "LEASE_OVER": (409, "The lease of the consumer is over"),
    "FACADE_LIMIT": (409, "The job's own API could not show the change"),
    "REVISION_MISMATCH": (412, "The revision differs"),
    "COUNT_MISMATCH": (412, "The count differs"),
    "PLAN_STALE": (412, "The plan is out of date"),
    "TOO_LARGE": (413, "The body is too large"),
    "NOT_JSON": (415, "The body is not plain JSON"),
    "INVALID_FIELD": (422, "A field breaks a rule"),
    "UNKNOWN_MEMBER": (422, "A member is unknown"),
    "NEVER_FIRES": (422, "The schedule can never fire"),
    "KEY_REUSED": (422, "The Idempotency-Key belongs to another request"),
    "RATE_LIMITED": (429, "Too many requests"),
    "UNAVAILABLE": (503, "The service cannot do this at the moment"),
    "INTERNAL": (500, "An unexpected error"),
}


def type_of(code: str) -> str:
    """Returns the address of the problem's page, relative to the address of this API."""
    return f"/problems/{code.lower().replace('_', '-')}"


def problem(code: str, detail: str, request_id: str, **members: Any) -> Answer:
    status, title = STATUS[code]
    body = {
        "type": type_of(code),
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        "requestId": request_id,
        **members,
    }
    return Answer(status, body, media_type="application/problem+json")


def of_error(error: SweephandError, request_id: str) -> Answer:
    """Returns the problem for an error. errors[].field is `body` or `path` (with its query) if all of it is wrong."""
    members: dict[str, Any] = {}
    headers: dict[str, str] = {}
    if isinstance(error, InvalidRequest):
        members["errors"] = [_field_problem(each) for each in error.all[:MOST_SHOWN]]
    if isinstance(error, Conflict) and error.current is not None:
        members["current"] = {"state": error.current}
    if isinstance(error, RateLimited | Unavailable):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = 'Basic realm="sweephand", Bearer realm="sweephand"'
    answer = problem(error.code, _detail(error), request_id, **members)
    return Answer(answer.status, answer.body, headers, answer.media_type)


def _field_problem(wrong: InvalidRequest) -> dict[str, Any]:
    position = {} if wrong.position is None else {"position": wrong.position}
    field = wrong.field or ("path" if wrong.code == "INVALID_QUERY" else "body")
    return {"field": field, "reason": wrong.reason, **position}


def _detail(error: SweephandError) -> str:
    """Returns the first mistake and the number of others, which is unknown if an answer cannot show them all."""
    if not isinstance(error, InvalidRequest):
        return error.reason
    first = f"{error.field}: {error.reason}" if error.field else error.reason
    more = len(error.others)
    if more >= MOST_SHOWN:
        return f"{first} (and at least {more} more: errors lists the first {MOST_SHOWN})"
    return f"{first} (and {more} more: see errors)" if more else first
