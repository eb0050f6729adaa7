"""Cursors: a position in a list, with a hash of the query it belongs to.

The partition comes from the caller's identity, so a forged cursor leads only to the caller's own data.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Mapping

from sweephand.base.errors import InvalidRequest
from sweephand.server.facades.native.query import number

_CURSOR = re.compile(r"[A-Za-z0-9_-]{1,1024}", re.ASCII)
DEFAULT_LIMIT = 50
LARGEST_LIMIT = 200
LARGEST_OFFSET = 999_999_999


def limit_of(query: Mapping[str, str]) -> int:
    """Reads the size of a page: 1 to 200, 50 by default."""
    limit = number(query, "limit", 1, LARGEST_LIMIT)
    return DEFAULT_LIMIT if limit is None else limit


def offset_of(query: Mapping[str, str]) -> int:
    """Reads how many items to skip; 0 by default."""
    offset = number(query, "offset", 0, LARGEST_OFFSET)
    if offset is None:
        return 0
    if "cursor" in query:
        raise InvalidRequest("offset", "has no effect with `cursor`: give only one of them", code="INVALID_QUERY")
    return offset


def write(place: str, query: Mapping[str, str], mark: tuple[str, ...]) -> str:
    text = json.dumps([_hash(place, query), *mark], separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read(place: str, query: Mapping[str, str], *parts: Callable[[str], bool]) -> tuple[str, ...] | None:
    """Reads the mark of the query's cursor; None without one. parts: checks each part of the mark.

    Raises InvalidRequest(INVALID_CURSOR). A forged mark in the right form is a position in the caller's own list.
    """
    text = query.get("cursor")
    if text is None:
        return None
    wrong = InvalidRequest(
        "cursor",
        "belongs to another list or query: send nextCursor of the previous page with the same query",
        code="INVALID_CURSOR",
    )
    if not _CURSOR.fullmatch(text):
        raise wrong
    try:
        members = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError, RecursionError) as unreadable:
        raise wrong from unreadable
    if not isinstance(members, list) or not all(isinstance(each, str) for each in members):
        raise wrong
    if len(members) != len(parts) + 1 or members[0] != _hash(place, query):
        raise wrong
    if not all(fits(member) for fits, member in zip(parts, members[1:], strict=True)):
        raise wrong
    return tuple(members[1:])


def _hash(place: str, query: Mapping[str, str]) -> str:
    rest = sorted((name, value) for name, value in query.items() if name not in {"cursor", "limit", "offset"})
    return hashlib.sha256(json.dumps([place, rest]).encode()).hexdigest()[:16]
