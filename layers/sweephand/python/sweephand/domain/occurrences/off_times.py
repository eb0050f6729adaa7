"""When something was switched off: what fell due then is not called afterwards, however late its message comes. Pure.

A schedule needs this only for what it had sent ahead when it was switched off, a tenant and a collection for the same
of all their schedules. Everything else of that time was never sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sweephand.domain.instants import epoch_s
from sweephand.domain.run import Reason

KEPT = timedelta(days=5)
"""Longer than a message is acted on (domain.runs.admission.MAX_AGE)."""
MOST = 20
ANY_GENERATION = 0

_LETTERS = {Reason.PAUSED: "P", Reason.DISABLED: "D"}
_REASONS = {letter: reason for reason, letter in _LETTERS.items()}


@dataclass(frozen=True)
class OffTime:
    """The instants with since < instant <= until, in epoch seconds; until None while it lasts.

    generation: the last plan that it ended; what a later one planned is not meant. ANY_GENERATION: all plans are meant.
    """

    reason: Reason
    generation: int
    since: int
    until: int | None = None

    def __str__(self) -> str:
        until = "" if self.until is None else str(self.until)
        return f"{_LETTERS[self.reason]}{self.generation}:{self.since}-{until}"

    def covers(self, instant: datetime, generation: int) -> bool:
        """Did an occurrence of this plan fall due while it was off? Of a time that still lasts, the state says it."""
        if self.until is None or (self.generation != ANY_GENERATION and generation > self.generation):
            return False
        return self.since < epoch_s(instant) <= self.until


def began(text: str | None, reason: Reason, generation: int, since: datetime) -> str:
    """With a time that begins after `since`; the latest of them are kept."""
    oldest = epoch_s(since - KEPT)
    kept = [each for each in _read(text) if each.since > oldest]
    return _text([*kept, OffTime(reason, generation, epoch_s(since))][-MOST:])


def ended(text: str | None, until: datetime) -> str | None:
    """With an end of the one that still lasts."""
    times = [replace(each, until=epoch_s(until)) if each.until is None else each for each in _read(text)]
    return _text(times) if times else None


def reason_at(text: str | None, instant: datetime, generation: int) -> Reason | None:
    """Why an occurrence of this plan is not called; None where it did not fall due in such a time.

    Raises ValueError or KeyError for a text that nobody wrote.
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
