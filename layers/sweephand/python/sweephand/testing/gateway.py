"""Requests as API Gateway hands them to the API's functions."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes


def _as_gateway(path: str) -> str:
    """Decodes a path as an HTTP API does, except `%25`: `a%2Fb` arrives as `a/b`, `a%252Fb` as it is.

    So what is read once more is decoded once, and no name can hold a slash. Source: captures of live gateways, which
    the embedded emulator follows too (its `decode_http_api_path`).
    """
    return re.sub(
        r"(?:%(?!25)[0-9A-Fa-f]{2})+", lambda match: unquote_to_bytes(match[0]).decode("utf-8", "replace"), path
    )


def event(
    method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: str | bytes | None = None
) -> dict[str, Any]:
    """Builds API Gateway's payload 2.0; a body of bytes is base64-encoded. path: as the caller writes it."""
    path = _as_gateway(path)
    built: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "ANY /v1/{proxy+}",
        "rawPath": path,
        "rawQueryString": query,
        "headers": dict(headers or {}),
        "requestContext": {
            "domainName": "sweephand.example",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1"},
            "stage": "$default",
        },
        "isBase64Encoded": isinstance(body, bytes),
    }
    if body is not None:
        built["body"] = base64.b64encode(body).decode() if isinstance(body, bytes) else body
    return built
