"""Decides when a schedule is switched off because its target was unreachable for ten days. Pure.

A target is *out of reach* if an attempt got no connection: no address, refused, no TLS, no connection in time. Any
answer, also an error, is a contact and ends the streak; so is silence over an open connection. Attempts that made no
call do not count. Source: decision 0040.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.domain.job import ActionSpec
from sweephand.domain.run import UNREACHABLE, Outcome, Reason, Run, State

LIMIT = timedelta(days=10)
UNSENT = frozenset({Reason.GUARD, Reason.BAD_PAYLOAD, Reason.DEADLINE})
"""Reasons of attempts that failed before a call."""
DIGEST_CHARACTERS = 16


class OnUnreachable(StrEnum):
    """The policy `onUnreachable`."""

    DEACTIVATE = "deactivate"
    CONTINUE = "continue"


@dataclass(frozen=True)
class Streak:
    """Consecutive failures of one target, stored in the schedule's row as `<epoch ms>,<digest>`.

    since: the end of the first failure. target: a digest of the action, so that a new action starts a new streak.
    """

    since: datetime
    target: str

    def __str__(self) -> str:
        return f"{epoch_ms(self.since)},{self.target}"

    @classmethod
    def read(cls, text: str) -> Streak:
        since, target = text.split(",")
        return cls(from_ms(int(since)), target)


def target_of(action: ActionSpec) -> str:
    """Returns a digest of the action's kind and parameters, without payload and secrets."""
    said = json.dumps([action.kind, action.params], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:DIGEST_CHARACTERS]


def follow(stored: str | None, action: ActionSpec, outcome: Outcome, now: datetime) -> str | None:
    """Returns the stored form of the streak after an attempt, None without one. now: the attempt's end."""
    if outcome.reason in UNSENT:
        return stored
    if outcome.reason not in UNREACHABLE:
        return None
    target = target_of(action)
    if stored is not None and Streak.read(stored).target == target:
        return stored
    return str(Streak(now, target))


def is_out_of_reach(run: Run) -> bool:
    """Returns True if its last attempt got no connection. With MAX_AGE, the missing status shows it."""
    return run.reason in UNREACHABLE or (run.reason is Reason.MAX_AGE and run.http_status is None)


def was_contact(run: Run, stored: str) -> bool:
    """Returns True if the target answered the last attempt after the streak began. A reported result does not count."""
    if run.finished_at is None or run.result_digest is not None or run.finished_at <= Streak.read(stored).since:
        return False
    return run.state is State.SUCCESS or run.http_status is not None or run.reason is Reason.NO_ANSWER


def is_due(stored: str | None, action: ActionSpec, failed_at: datetime) -> bool:
    """Returns True if this streak of failures has lasted for ten days of 24 hours."""
    if stored is None:
        return False
    streak = Streak.read(stored)
    return streak.target == target_of(action) and failed_at - streak.since >= LIMIT
