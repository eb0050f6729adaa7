"""Makes errors from answers that refuse a request."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from sweephand.sdk.api_errors import BY_CODE
from sweephand.sdk.errors import ApiError, FieldError

CODES_OF_OTHERS = {413: "TOO_LARGE", 429: "RATE_LIMITED", 500: "INTERNAL"} | dict.fromkeys(
    (502, 503, 504), "UNAVAILABLE"
)
"""The code of an answer that is not a problem document, such as API Gateway's 429, by its status."""

DETAILS = ("detail", "message", "error_description")
"""The members that give the cause: in a problem document, in API Gateway's answers, and in OAuth's."""


def api_error(
    method: str,
    path: str,
    status: int,
    content: bytes,
    *,
    base_url: str = "",
    request_id: str | None = None,
    retry_after_s: float | None = None,
    tries: int = 1,
    parameters: Collection[str] = (),
) -> ApiError:
    """Returns the error for an answer; its code decides the class. parameters: of the query, by the API's names."""
    problem = _problem(content)
    code = problem.get("code") if isinstance(problem.get("code"), str) else None
    known = code or CODES_OF_OTHERS.get(status, "ERROR")
    page = problem.get("type")
    return BY_CODE.get(known, ApiError)(
        method=method,
        path=path,
        status=status,
        code=known,
        detail=str(next(filter(None, map(problem.get, DETAILS)), None) or _beginning(content)),
        errors=tuple(_field_errors(problem.get("errors"))),
        request_id=problem.get("requestId") or request_id,
        help=f"{base_url}{page}" if isinstance(page, str) and page.startswith("/") else page,
        retry_after_s=retry_after_s,
        tries=tries,
        problem=problem,
        parameters=parameters,
    )


def of_something_else(status: int, content: bytes) -> bool:
    """Returns whether something other than the service answered: a redirect, no JSON object, or an unknown 404.

    Temporary answers from what is in front of the service, such as API Gateway's 429 and 503, count as the service's.
    """
    if status in CODES_OF_OTHERS:
        return False
    problem = _problem(content)
    return status < 400 or not problem or (status == 404 and not problem.keys() & {"code", "error"})


def _problem(content: bytes) -> Mapping[str, Any]:
    try:
        read = json.loads(content)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _beginning(content: bytes) -> str:
    text = content[:200].decode(errors="replace").strip()
    if text.startswith("<"):
        return "the answer is a page from something in front of the service, not JSON"
    return text or "the answer has no text"


def _field_errors(value: Any) -> list[FieldError]:
    rows = value if isinstance(value, list) else []
    return [
        FieldError(str(each.get("field")), str(each.get("reason")), each.get("position"))
        for each in rows
        if isinstance(each, dict)
    ]
