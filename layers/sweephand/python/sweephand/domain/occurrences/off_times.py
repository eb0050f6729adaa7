"""Times in which something was off. Occurrences that fell due then never run, however late their messages are. Pure.

A schedule needs this only for occurrences that it had sent ahead when it was switched off. Tenants and collections need
it for such occurrences of all their schedules. All other occurrences of that time were never sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.run import Reason

KEPT = timedelta(days=5)
"""How long a time is kept: longer than messages are valid (domain.runs.admission.MAX_AGE)."""
MOST = 200
"""Times that are kept one by one. Beyond that, the oldest two become one, including the time between them."""
ANY_GENERATION = 0

_LETTERS = {Reason.PAUSED: "P", Reason.DISABLED: "D"}
_REASONS = {letter: reason for reason, letter in _LETTERS.items()}


@dataclass(frozen=True)
class OffTime:
    """A time in which something was off: since < instant <= until, in epoch seconds; until is None while it lasts.

    generation: it applies to occurrences of this plan and earlier ones. ANY_GENERATION: it applies to all plans.
    """

    reason: Reason
    generation: int
    since: int
    until: int | None = None

    def __str__(self) -> str:
        until = "" if self.until is None else str(self.until)
        return f"{_LETTERS[self.reason]}{self.generation}:{self.since}-{until}"

    def covers(self, instant: datetime, generation: int) -> bool:
        """Returns True if an occurrence of this plan fell due in it. While it lasts, the state decides instead."""
        if self.until is None or (self.generation != ANY_GENERATION and generation > self.generation):
            return False
        return self.since < epoch_s(instant) <= self.until


def began(text: str | None, reason: Reason, generation: int, since: datetime) -> str:
    """Adds a time that begins after `since`, and drops old ones."""
    oldest = epoch_s(since - KEPT)
    kept = [each for each in _read(text) if each.since > oldest]
    if len(kept) >= MOST:
        kept = [_joined(kept[0], kept[1]), *kept[2:]]
    return _text([*kept, OffTime(reason, generation, epoch_s(since))])


def _joined(one: OffTime, next_one: OffTime) -> OffTime:
    """Returns one time for two, because an occurrence that fell due while something was off must never run."""
    return replace(next_one, generation=max(one.generation, next_one.generation), since=one.since)


def ended(text: str | None, until: datetime) -> str | None:
    """Ends the time that still lasts."""
    times = [replace(each, until=epoch_s(until)) if each.until is None else each for each in _read(text)]
    return _text(times) if times else None


def ends_ahead(text: str | None, now: datetime) -> datetime | None:
    """Returns the end of a time whose end lies ahead, such as a pause with a set end; None if there is none."""
    ahead = [each.until for each in _read(text) if each.until is not None and each.until > epoch_s(now)]
    return from_s(max(ahead)) if ahead else None


def reason_at(text: str | None, instant: datetime, generation: int) -> Reason | None:
    """Returns why an occurrence of this plan does not run; None if it did not fall due in one of the times.

    Raises ValueError or KeyError for an invalid string.
    """
    return next((each.reason for each in _read(text) if each.covers(instant, generation)), None)


def _read(text: str | None) -> list[OffTime]:
    return [_read_one(each) for each in text.split()] if text else []


def _read_one(text: str) -> OffTime:
    head, times = text.split(":")
    since, until = times.split("-")
    return OffTime(_REASONS[head[0]], int(head[1:]), int(since), int(until) if until else None)


def _text(times: Sequence[OffTime]) -> str:
    return " ".join(map(str, times))
