"""Reads instants in the query of a request."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from sweephand.base.errors import InvalidRequest
from sweephand.base.lazy import lazy
from sweephand.schedules.text.instants import parse_instant
from sweephand.server.facades.native.context import Context

with lazy():
    from sweephand.domain.members import near_names

_FRACTION = re.compile(r"(.{19})\.([0-9]{1,30})(.*)", re.ASCII)


def exact_instant(value: object, field: str) -> datetime:
    """Returns an RFC 3339 instant with milliseconds, so that a run's `plannedAt` can be a bound of a list."""
    found = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return parse_instant(value, field)
    return parse_instant(found[1] + found[3], field) + timedelta(milliseconds=int(found[2][:3].ljust(3, "0")))


def instant(ctx: Context, name: str, read: Callable[[object, str], datetime] = parse_instant) -> datetime | None:
    """Reads an instant of the query. Raises InvalidRequest."""
    given = ctx.query.get(name)
    if given is None:
        return None
    try:
        return read(given, name)
    except InvalidRequest as wrong:
        reason = near_names.with_value(wrong.reason, given)
        raise InvalidRequest(name, reason, position=wrong.position, code="INVALID_QUERY") from wrong
