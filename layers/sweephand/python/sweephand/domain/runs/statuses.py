"""HTTP statuses in the forms that users write: `2xx`, `204`, `200-299`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FORM = re.compile(r"([1-5])xx|([1-5][0-9][0-9])(?:-([1-5][0-9][0-9]))?", re.ASCII)


def bounds(text: str) -> tuple[int, int] | None:
    """Returns the lowest and the highest status of an item; None if it has none of the forms."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    if match[1]:
        return int(match[1]) * 100, int(match[1]) * 100 + 99
    return int(match[2]), int(match[3] or match[2])


def holds(items: Iterable[str], status: int) -> bool:
    """Returns True if the status is among the items. Ignores items that are not statuses."""
    return any(found is not None and found[0] <= status <= found[1] for found in map(bounds, items))
