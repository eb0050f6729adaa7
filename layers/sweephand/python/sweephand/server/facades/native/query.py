"""Reads the parameters of a query with the readers of members. A refusal has the code INVALID_QUERY."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta

from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields
from sweephand.schedules.text.instants import parse_instant

Query = Mapping[str, str]
_FRACTION = re.compile(r"(.{19})\.([0-9]{1,30})(.*)", re.ASCII)


@contextmanager
def in_query() -> Iterator[None]:
    """Gives every InvalidRequest from the block the code INVALID_QUERY."""
    try:
        yield
    except InvalidRequest as wrong:
        others = tuple(each.changed(code="INVALID_QUERY") for each in wrong.others)
        raise wrong.changed(code="INVALID_QUERY", others=others) from wrong


def number(query: Query, name: str, lowest: int, highest: int) -> int | None:
    """Returns a parameter that is a whole number within bounds; None if it is absent."""
    text = query.get(name)
    if text is None:
        return None
    with in_query():
        return fields.number(text, name, lowest, highest)


def instant(query: Query, name: str, read: Callable[[object, str], datetime] = parse_instant) -> datetime | None:
    """Returns a parameter that is an instant; None if it is absent."""
    text = query.get(name)
    with in_query():
        return None if text is None else read(text, name)


def exact_instant(value: object, field: str) -> datetime:
    """Returns an RFC 3339 instant with milliseconds, so that a run's `plannedAt` can be a bound of a list."""
    match = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return parse_instant(value, field)
    return parse_instant(match[1] + match[3], field) + timedelta(milliseconds=int(match[2][:3].ljust(3, "0")))
