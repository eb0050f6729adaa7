# Generated from aio/pages.py by `make sdk`. Do not edit.
"""Lists, read item by item or page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Generic, TypeVar

from sweephand.sdk.errors import TransportError
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.transport.page import Page
from sweephand.sdk.transport.request import Request

T = TypeVar("T")


class Pages(Generic[T]):
    """A list. Iterating over it yields every item and requests pages as needed; each iteration starts over.

    A page that is short or empty need not be the last one.
    """

    def __init__(
        self,
        caller: Caller,
        request: Request,
        item: Callable[[Any], T],
        *,
        page_size: int | None = None,
        max_items: int | None = None,
        cursor: str | None = None,
    ) -> None:
        self._caller, self._request, self._item = caller, request, item
        self._page_size, self._max_items, self._cursor = page_size, max_items, cursor

    def __iter__(self) -> Iterator[T]:
        """Yields the items, at most `max_items`."""
        left = self._max_items
        if left is not None and left <= 0:
            return
        for page in self.pages():
            for item in page.items:
                yield item
                if left is not None:
                    left -= 1
                    if left <= 0:
                        return

    def pages(self) -> Iterator[Page[T]]:
        """Yields the pages, until one reaches `max_items`. Raises TransportError if the service repeats a cursor.

        With `page_size`, the last page is no longer than needed, so its `next_cursor` continues right after it.
        """
        cursor, seen, left, size = self._cursor, {self._cursor}, self._max_items, self._page_size
        while left is None or left > 0:
            limit = size if size is None or left is None else min(size, left)
            paging = {"limit": limit, "cursor": cursor}
            query = {**self._request.query, **{name: value for name, value in paging.items() if value is not None}}
            json = self._caller.json(replace(self._request, query=query))
            page = Page(json, tuple(map(self._item, json["items"])))
            yield page
            left = None if left is None else left - len(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                raise TransportError(f"{self._request.method} {self._request.path}: the service repeated a cursor")
            seen.add(cursor)

    def first(self) -> T | None:
        """Returns the first item; None if there is none."""
        for item in self:
            return item
        return None
