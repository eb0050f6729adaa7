"""Decides whether a call is tried again, and after how long. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sweephand.base.sources import Chance
from sweephand.sdk.errors import InvalidArgument, TransportError

TEMPORARY = frozenset({429, 502, 503, 504})
REFUSED_UNREAD = frozenset({429})
"""Statuses after which the request was certainly not carried out."""


@dataclass(frozen=True)
class Retries:
    """The limits of a call's tries.

    tries: the most, including the first one. base_s: the longest wait before the second try; it doubles with each try,
    up to longest_s. deadline_s: of the whole call with all tries and waits. timeout_s: of a single try.
    """

    tries: int = 4
    base_s: float = 0.5
    longest_s: float = 20.0
    deadline_s: float = 90.0
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise InvalidArgument("tries", f"must be at least 1, not {self.tries}")

    def wait_s(self, tried: int, asked_s: float | None, chance: Chance) -> float:
        """Returns how long to wait after `tried` tries. asked_s: the service's Retry-After, which takes precedence."""
        if asked_s is not None:
            return asked_s
        return chance.uniform(0, min(self.longest_s, self.base_s * 2 ** (tried - 1)))


def status_allows(status: int, *, repeatable: bool) -> bool:
    """Returns whether a call with this status may be tried again. repeatable: see Request."""
    return status in REFUSED_UNREAD or (repeatable and (status in TEMPORARY or status == 500))


def fault_allows(fault: TransportError, *, repeatable: bool) -> bool:
    """Returns whether a call without an answer may be tried again. repeatable: see Request."""
    return repeatable or not fault.sent


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Returns the wait of a Retry-After, which is a number of seconds or a date; None without a valid one."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    if not text:
        return None
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - few services write a date

    try:
        return max(0.0, (parsedate_to_datetime(text) - now).total_seconds())
    except (ValueError, TypeError):
        return None
