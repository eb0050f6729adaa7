"""How far this machine's clock is from the service's, by the Date header of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger

OFF_S = 5
"""The greatest difference that is not reported. The header has whole seconds, and an answer takes time."""


def ahead_s(headers: Mapping[str, str], now: datetime) -> int | None:
    """Returns how many seconds the clock is ahead of the answer's Date, or less than 0; None without a date."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - most calls need no date

    try:
        theirs = parsedate_to_datetime(headers.get("date", "")).astimezone(UTC)
    except (ValueError, TypeError):
        return None
    return round((now - theirs).total_seconds())


def in_words(seconds: int) -> str:
    """Returns a difference of the clocks as a sentence."""
    return f"this machine is {abs(seconds)} s {'ahead of' if seconds > 0 else 'behind'} the service"


def warn(log: Logger, seconds: int | None) -> None:
    """Logs a warning if this machine's clock is off."""
    if seconds is not None and abs(seconds) > OFF_S:
        log.warning("the clock of %s: set it, such as by NTP", in_words(seconds))
