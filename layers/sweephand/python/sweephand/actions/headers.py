"""Headers that a caller gives: which names are free, what a value may hold. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sweephand.domain.fields import below
from sweephand.errors import InvalidRequest

MAX_HEADERS = 50
MAX_HEADER_BYTES = 8_192
MAX_SECRET = 4_096
MASK = "***"

_NOT_YOURS = frozenset(
    {
        *("connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    }
)
_NOT_YOUR_PREFIXES = ("proxy-", "sweephand-", "webhook-")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}", re.ASCII)
_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?", re.ASCII)


def parse(value: object, field: str) -> tuple[tuple[tuple[str, str], ...], str | None]:
    """The headers in the caller's order and spelling with Authorization masked, and its value."""
    if not isinstance(value, Mapping):
        raise InvalidRequest(field, "must be an object")
    if len(value) > MAX_HEADERS:
        raise InvalidRequest(field, f"must have at most {MAX_HEADERS} members")
    headers: list[tuple[str, str]] = []
    seen: set[str] = set()
    secret, size = None, 0
    for name, content in value.items():
        path = below(field, name)
        lower = name.lower()
        check_name(name, path)
        content = check_value(content, path)  # noqa: PLW2901 - the same text, known to be one
        if lower in seen:
            raise InvalidRequest(path, "appears twice (upper and lower case are the same)")
        seen.add(lower)
        size += len(name) + len(content) + 4
        if lower == "authorization":
            if len(content) > MAX_SECRET:
                raise InvalidRequest(path, f"must have at most {MAX_SECRET:,} bytes")
            secret = content
            content = MASK  # noqa: PLW2901 - from here on the value exists only among the secrets
        headers.append((name, content))
    if size > MAX_HEADER_BYTES:
        raise InvalidRequest(field, f"must have at most {MAX_HEADER_BYTES:,} bytes together")
    return tuple(headers), secret


def check_name(name: str, path: str) -> None:
    lower = name.lower()
    if not _NAME.fullmatch(name):
        raise InvalidRequest(path, "is not a header name")
    if lower in _NOT_YOURS or lower.startswith(_NOT_YOUR_PREFIXES):
        raise InvalidRequest(path, "is set by the service or the connection")


def check_value(content: object, path: str) -> str:
    if not isinstance(content, str):
        raise InvalidRequest(path, "must be a text")
    if not _VALUE.fullmatch(content):
        raise InvalidRequest(path, "must be visible ASCII, without blanks at its ends")
    return content
