"""Instants in the formats of the table and the API. In code, an instant is an aware datetime in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FAR = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""Later than every instant that can be planned."""
_SECOND = timedelta(seconds=1)
_MILLISECOND = timedelta(milliseconds=1)


def epoch_s(instant: datetime) -> int:
    """Returns whole seconds since 1970, rounded down."""
    return (instant - EPOCH) // _SECOND


def epoch_ms(instant: datetime) -> int:
    """Returns whole milliseconds since 1970, rounded down."""
    return (instant - EPOCH) // _MILLISECOND


def up_to_second(instant: datetime) -> datetime:
    """Rounds up to a whole second, so that the index never wakes a row early."""
    return from_s(-((EPOCH - instant) // _SECOND))


def from_s(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def from_ms(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def s_if_any(instant: datetime | None) -> int | None:
    return None if instant is None else epoch_s(instant)


def ms_if_any(instant: datetime | None) -> int | None:
    return None if instant is None else epoch_ms(instant)


def from_s_if_any(seconds: int | None) -> datetime | None:
    return None if seconds is None else from_s(seconds)


def from_ms_if_any(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else from_ms(milliseconds)


def text(instant: datetime) -> str:
    """Returns RFC 3339 in UTC with whole seconds: 2027-01-01T09:00:00Z."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def text_ms(instant: datetime) -> str:
    """Returns RFC 3339 in UTC with milliseconds: 2027-01-01T09:00:00.123Z."""
    instant = instant.astimezone(UTC)
    return f"{instant.strftime('%Y-%m-%dT%H:%M:%S')}.{instant.microsecond // 1000:03d}Z"


def stamp(instant: datetime | None) -> str | None:
    """Returns RFC 3339 in UTC with milliseconds; None for None."""
    return None if instant is None else text_ms(instant)
