"""Dates as SAP's clients write them, and as the service shows them: in UTC, without a zone."""

from __future__ import annotations

from datetime import UTC, datetime

from sweephand.domain.instants import epoch_s, from_s
from sweephand.schedules.text import dates
from sweephand.schedules.zones.localtime import zone


def read(value: object, field: str, now: datetime) -> datetime:
    """Returns the whole second of a startTime or endTime. Raises InvalidRequest.

    value: a string of ISO 8601 or RFC 2822, or {"date", "format"}; without a zone it is UTC.
    """
    return from_s(dates.read_whole_second(value, field, epoch_s(now), zone("UTC")))


def shown(instant: datetime | None) -> str | None:
    """Returns `YYYY-MM-DD HH:mm:ss`."""
    return None if instant is None else f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
