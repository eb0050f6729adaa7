"""Pages and filters of lists: `$top`, `$skip`, `$filter`, `nextLink`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote

from sweephand.base.members.fields import must_be, number
from sweephand.server.facades.azure.context import Context

PAGE = MOST = 100


def filters_of(ctx: Context, fields: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Returns the value of each field that `$filter` names. fields: the values that each may have."""
    text = ctx.query.get("$filter")
    if text is None:
        return {}
    words = text.split()
    clauses = [words[n : n + 3] for n in range(0, len(words), 4)]
    wanted = dict(_clause(clause, fields) for clause in clauses[: len(fields) + 1])
    joined = len(words) % 4 == 3 and all(word.lower() == "and" for word in words[3::4])
    if "" in wanted.values() or len(wanted) < len(clauses) or not joined:
        forms = " or ".join(f"{field} eq '{'|'.join(values)}'" for field, values in fields.items())
        both = ", or both with and between them" if len(fields) > 1 else ""
        raise must_be("$filter", f"{forms}{both}", text)
    return wanted


def _clause(words: Sequence[str], fields: dict[str, tuple[str, ...]]) -> tuple[str, str]:
    """Returns a field and its value; an empty value if the words are not a clause."""
    if len(words) != 3 or words[1].lower() != "eq":
        return "", ""
    field, value = words[0].lower(), words[2].lower()
    return field, next((each for each in fields.get(field, ()) if value in {each.lower(), f"'{each.lower()}'"}), "")


class Page(NamedTuple):
    """A part of a list. top: the most items that it may have; None without `$top`."""

    top: int | None
    skip: int

    @property
    def end(self) -> int:
        """Returns how many items must be read: without `$top`, one more, which shows whether there is a next page."""
        return self.skip + (PAGE + 1 if self.top is None else self.top)


def page_of(ctx: Context) -> Page:
    """Reads `$top` and `$skip`. Raises InvalidRequest."""
    return Page(_number(ctx, "$top", 1, MOST), _number(ctx, "$skip", 0, 2**31 - 1) or 0)


def _number(ctx: Context, name: str, lowest: int, highest: int) -> int | None:
    text = ctx.query.get(name)
    return None if text is None else number(text, name, lowest, highest)


def page(ctx: Context, items: Iterable[Any]) -> dict[str, Any]:
    """Returns a page of a list: at most `$top` items; without it 100, and a link to the next page if there are more."""
    asked = page_of(ctx)
    listed = list(islice(items, asked.skip, asked.end))
    more = asked.top is None and len(listed) > PAGE
    return {"value": listed[:PAGE], "nextLink": next_link(ctx, skip=asked.skip + PAGE) if more else None}


def next_link(ctx: Context, **changes: object) -> str:
    """Returns the next page's address with all parameters: clients add none. changes: parameters without `$`."""
    base = ctx.world.settings.public_base_url or ctx.request.base_url
    query = {**ctx.query, **{f"${name}": str(value) for name, value in changes.items()}}
    path = "/".join(quote(part, safe="") for part in ctx.request.path)
    asked = "&".join(f"{quote(name, safe='$')}={quote(value, safe='')}" for name, value in query.items())
    return f"{base}/{path}?{asked}"
