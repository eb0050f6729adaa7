"""Pages by offset, and the answers that contain them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from sweephand.base.errors import InvalidRequest
from sweephand.base.records import dataclass

USUAL, MOST = 10, 100
FURTHEST = 1_000_000
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True)
class Page:
    """A page. size: None for everything. asked: whether the caller requested a page."""

    size: int | None
    offset: int
    asked: bool

    def end(self, most: int) -> int:
        return self.offset + (most if self.size is None else self.size)


def page_of(query: Mapping[str, str], *, usual: int | None = USUAL, most: int = MOST) -> Page:
    """Reads the page of a request. usual: the size if none was sent; None: everything. Raises InvalidRequest."""
    size, offset = _number(query, "page_size"), _number(query, "offset")
    if size is not None and not 1 <= size <= most:
        raise InvalidRequest(None, "Invalid Page Size")
    if offset is not None and offset > FURTHEST:
        raise InvalidRequest(None, "Invalid Offset")
    asked = size is not None or offset is not None
    return Page(size or (USUAL if offset is not None else usual), offset or 0, asked)


def _number(query: Mapping[str, str], name: str) -> int | None:
    """Reads a number. SAP's client sends `undefined` for an option without a value."""
    text = query.get(name)
    if text in (None, "", "undefined"):
        return None
    if not _NUMBER.fullmatch(text or ""):
        raise InvalidRequest(None, "Invalid Page Size" if name == "page_size" else "Invalid Offset")
    return int(text or "")


def envelope(path: str, page: Page, total: int, results: Sequence[Any], **kept: str) -> dict[str, Any]:
    """Returns an answer with a page and the addresses of its neighbours, null at the ends.

    kept: query parameters that the addresses repeat.
    """

    def url(offset: int) -> str:
        query = {**kept, "page_size": str(page.size), "offset": str(offset)}
        return f"{path}?{'&'.join(f'{name}={quote(value)}' for name, value in query.items())}"

    before = after = None
    if page.size is not None:
        before = url(max(0, page.offset - page.size)) if page.offset > 0 else None
        after = url(page.offset + page.size) if page.offset + page.size < total else None
    return {"total": total, "results": list(results), "prev_url": before, "next_url": after}
