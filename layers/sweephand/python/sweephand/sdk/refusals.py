"""The errors of answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sweephand.sdk.api_errors import BY_CODE
from sweephand.sdk.errors import ApiError, FieldError

CODES_OF_OTHERS = {413: "TOO_LARGE", 429: "RATE_LIMITED", 500: "INTERNAL"} | dict.fromkeys(
    (502, 503, 504), "UNAVAILABLE"
)
"""The code of an answer that is not a problem document, such as API Gateway's 429, by its status."""


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
) -> ApiError:
    """Returns the error of an answer; its class follows from its code."""
    problem = _problem(content)
    code = problem.get("code") if isinstance(problem.get("code"), str) else None
    known = code or CODES_OF_OTHERS.get(status, "ERROR")
    page = problem.get("type")
    return BY_CODE.get(known, ApiError)(
        method=method,
        path=path,
        status=status,
        code=known,
        detail=str(problem.get("detail") or problem.get("message") or _beginning(content)),
        errors=tuple(_field_errors(problem.get("errors"))),
        request_id=problem.get("requestId") or request_id,
        help=f"{base_url}{page}" if isinstance(page, str) and page.startswith("/") else page,
        retry_after_s=retry_after_s,
        tries=tries,
    )


def _problem(content: bytes) -> Mapping[str, Any]:
    try:
        read = json.loads(content)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _beginning(content: bytes) -> str:
    return content[:200].decode(errors="replace").strip() or "the answer has no text"


def _field_errors(given: Any) -> list[FieldError]:
    rows = given if isinstance(given, list) else []
    return [
        FieldError(str(each.get("field")), str(each.get("reason")), each.get("position"))
        for each in rows
        if isinstance(each, dict)
    ]
