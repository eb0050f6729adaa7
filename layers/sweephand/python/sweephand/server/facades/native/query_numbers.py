"""Reads whole numbers in a query."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sweephand.base.errors import InvalidRequest

_WHOLE = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)


def number(query: Mapping[str, str], name: str, lowest: int, highest: int) -> int | None:
    """Returns a parameter; None if it is absent. Raises InvalidRequest unless it is a whole number within bounds."""
    given = query.get(name)
    if given is None:
        return None
    if not _WHOLE.fullmatch(given) or not lowest <= int(given) <= highest:
        reason = f"must be a whole number within {lowest}..{highest}, not {given[:20]}"
        raise InvalidRequest(name, reason, code="INVALID_QUERY")
    return int(given)
