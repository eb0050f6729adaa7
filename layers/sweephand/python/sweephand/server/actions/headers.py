"""Headers that a caller gives: the permitted names and values. Pure."""

from __future__ import annotations

import re

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.members import fields as read
from sweephand.base.members.fields import below
from sweephand.domain.job import MASK

MAX_HEADERS = 50
MAX_HEADER_BYTES = 8_192
MAX_SECRET = 4_096

_NOT_YOURS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NOT_YOUR_PREFIXES = ("proxy-", "sweephand-", "webhook-")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}", re.ASCII)
_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?", re.ASCII)


AUTHORIZATION = "headers.Authorization"
"""The name of this header's secret among the secrets of an action."""
_SECRET_NAME = re.compile(
    r"""(?:.*[-_])?(?:
        cookie | api[-_]?key | app[-_]?key | subscription[-_]?key | functions?[-_]?key | access[-_]?key | auth[-_]?key
        | (?:auth|access|api|private|session|security|vault|bearer|gitlab|github|deploy|app|secret|webhook)[-_]?token
        | token | secret | password | passwd | credentials? | signature | authorization
    )""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)


def is_secret(name: str) -> bool:
    """Returns whether a header of this name usually carries a secret: `X-Api-Key`, `Cookie`, `Private-Token`."""
    return _SECRET_NAME.fullmatch(name) is not None


def secret_field(name: str) -> str:
    """Returns the name of a secret header's value among the secrets of an action."""
    lower = name.lower()
    return AUTHORIZATION if lower == "authorization" else f"headers.{lower}"


def parse(value: object, field: str) -> tuple[tuple[tuple[str, str], ...], dict[str, str]]:
    """Reads headers in the caller's order and spelling.

    Returns the headers with secret values masked, and the secret values by secret_field. Raises InvalidRequest.
    """
    value = read.an_object(value, field, secret=True)
    if len(value) > MAX_HEADERS:
        raise InvalidRequest(field, f"must have at most {MAX_HEADERS} members, not {len(value):,}")
    headers: list[tuple[str, str]] = []
    seen: set[str] = set()
    secrets: dict[str, str] = {}
    size = 0
    wrong = Mistakes()
    for name, content in value.items():
        path = below(field, name)
        lower = name.lower()
        wrong.of(check_name, name, path)
        content = wrong.of(check_value, content, path) or ""  # noqa: PLW2901 - the same string, known to be one
        if lower in seen:
            wrong.add(InvalidRequest(path, "appears twice (upper and lower case are the same)"))
        seen.add(lower)
        size += len(name) + len(content) + 4
        if is_secret(name) and (content or lower == "authorization"):
            if len(content) > MAX_SECRET:
                wrong.add(InvalidRequest(path, f"must have at most {MAX_SECRET:,} bytes"))
            secrets[secret_field(name)] = content
            content = MASK  # noqa: PLW2901 - from here on the value exists only among the secrets
        headers.append((name, content))
    wrong.check()
    if size > MAX_HEADER_BYTES:
        raise InvalidRequest(field, f"must have at most {MAX_HEADER_BYTES:,} bytes together")
    return tuple(headers), secrets


def check_name(name: str, path: str) -> None:
    """Raises InvalidRequest for an invalid name, or one that the service sets itself."""
    lower = name.lower()
    if not _NAME.fullmatch(name):
        raise InvalidRequest(path, "is not a header name: it has letters, digits and !#$%&'*+-.^_`|~ only")
    if lower in _NOT_YOURS or lower.startswith(_NOT_YOUR_PREFIXES):
        raise InvalidRequest(path, f"{name} is set by the service or the connection; leave it out")


def check_value(content: object, path: str) -> str:
    """Returns the value. Raises InvalidRequest if a header cannot contain it."""
    if not isinstance(content, str):
        raise read.not_a_string(content, path)
    if not _VALUE.fullmatch(content):
        raise InvalidRequest(path, "must be visible ASCII, without spaces at its ends")
    return content
