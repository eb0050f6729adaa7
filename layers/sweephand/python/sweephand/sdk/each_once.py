"""JSON objects without repeated members, of which a parser would keep the last."""

from __future__ import annotations

from collections import Counter
from typing import Any


class Twice(ValueError):
    """A member that an object has twice."""


def each_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object, as the `object_pairs_hook` of a parser. Raises Twice."""
    record = dict(members)
    if len(record) < len(members):
        twice = next(name for name, times in Counter(name for name, _ in members).items() if times > 1)
        raise Twice(f'the member "{twice}" appears twice')
    return record
