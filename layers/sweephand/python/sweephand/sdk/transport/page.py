"""A page of a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Page(Generic[T]):
    """A page of a list.

    next_cursor: the argument `cursor=` for the next page; None at the end. total: None unless it was requested.
    """

    def __init__(self, json: Mapping[str, Any], items: tuple[T, ...]) -> None:
        self._json, self.items = json, items

    @property
    def next_cursor(self) -> str | None:
        cursor: str | None = self._json.get("nextCursor")
        return cursor

    @property
    def total(self) -> int | None:
        total_: int | None = self._json.get("total")
        return total_

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON of the page."""
        return dict(self._json)
