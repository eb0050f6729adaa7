"""Targets that do not answer, by tenant: the notes that decide which calls wait in the slow queue. Pure.

A note names a target as its user does: a host or, while other addresses of the host answer, a single address; the host
that issues tokens; a function, queue, topic or bus by its ARN. The first answer removes it, and it ends an hour after
the last failure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from sweephand.base.records import dataclass
from sweephand.domain.collection import Silence
from sweephand.domain.run import UNREACHABLE, Outcome, Reason, Verdict

KEPT = timedelta(hours=1)
RENEWED = timedelta(minutes=30)
"""A failure renews a note that ends within this time, so that an outage costs two writes an hour."""
MOST = 30
"""How many notes a tenant has. A new one replaces the one that would end first."""
HANGS_FROM = timedelta(seconds=3)
"""A failure that took this long kept an executor busy, so the next calls wait in the slow queue."""
AT_ONCE = 20
"""How many calls of one silent target an executor of the slow queue makes at once."""
LEAST_WAIT, MOST_WAIT = timedelta(seconds=15), timedelta(minutes=5)


@dataclass(frozen=True)
class SilentTarget:
    """A target that is watched because it does not answer. waiting: 1 while its note stands."""

    noun: ClassVar[str] = "target"
    registered: ClassVar[bool] = False

    tenant: str
    name: str
    watched_since: datetime | None = None
    away_at: datetime | None = None
    waiting: int = 0

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.digest,)

    @property
    def event_key(self) -> str:
        return f"{self.tenant}:{self.digest}"

    @property
    def in_events(self) -> dict[str, Any]:
        return {"host": self.host, "wholeHost": self.name == self.host}

    @property
    def in_lists(self) -> dict[str, Any]:
        return {"name": self.host, "version": None, "waiting": None}

    @property
    def host(self) -> str:
        """Returns the scheme, the host and the port of an address; any other name as it is."""
        scheme, separator, rest = self.name.partition("://")
        if not separator:
            return self.name
        return f"{scheme}://{rest.partition('/')[0]}".lower()

    @property
    def digest(self) -> str:
        """Returns a short name. The address can be long, and nobody needs to see more of it than its host."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:32]


Notes = Mapping[str, Silence]
"""Notes by the host or the address that they are about."""


def did_not_answer(outcome: Outcome) -> Reason | None:
    """Returns why an attempt got no answer; None if it got one or never called."""
    if outcome.verdict is Verdict.SILENT:
        return Reason.NO_ANSWER
    if outcome.reason in UNREACHABLE or outcome.reason is Reason.NO_ANSWER:
        return outcome.reason if outcome.http_status is None else None
    return None


def has_answered(outcome: Outcome) -> bool:
    """Returns whether the target answered. An attempt that failed before its call shows neither."""
    if outcome.http_status is not None or outcome.reason is Reason.TARGET_ERROR:
        return True
    return outcome.verdict in {Verdict.SUCCEEDED, Verdict.ACCEPTED}


def of(notes: Notes, targets: tuple[str, ...], now: datetime) -> str | None:
    """Returns the first of a call's targets that is known not to answer; None if there is none."""
    return next((each for each in targets if each in notes and notes[each].until > now), None)


def hanging(notes: Notes, targets: tuple[str, ...], now: datetime) -> str | None:
    """Returns the first of a call's targets that is known to keep executors busy; None if there is none."""
    return of({name: each for name, each in notes.items() if each.hangs}, targets, now)


def noted(notes: Notes, target: str, reason: str, now: datetime, *, hangs: bool) -> Notes:
    """Returns the notes after a failure, unchanged if they say so already."""
    known = notes.get(target)
    if known is None or known.until <= now:
        known = Silence(now, now, reason)
    elif known.until - now > RENEWED and (known.hangs or not hangs):
        return notes
    kept = sorted(((name, each) for name, each in notes.items() if each.until > now), key=lambda pair: pair[1].until)
    others = dict([(name, each) for name, each in kept if name != target][-(MOST - 1) :])
    return {**others, target: replace(known, until=now + KEPT, hangs=known.hangs or hangs)}


def answered(notes: Notes, targets: tuple[str, ...]) -> Notes:
    """Returns the notes after an answer of a call to these."""
    return {name: each for name, each in notes.items() if name not in targets}


def note(target: str) -> str:
    """Returns the note of a run that began in the slow queue for this reason."""
    return f"{target} did not answer other calls, so this one waited in the slow queue"


def next_try(instant: datetime, now: datetime) -> datetime:
    """Returns when a call is tried again that found too many calls to its silent target: later, the later it is."""
    return now + min(MOST_WAIT, max(LEAST_WAIT, (now - instant) / 4))
