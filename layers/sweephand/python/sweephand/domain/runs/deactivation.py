"""A schedule whose target cannot be reached for ten days on end is switched off. Pure.

*Out of reach* is an attempt that got no connection: no address, refused, no TLS, no connection in time. Whatever the
target answered, also an error, and also silence over a connection that stood, is a contact and ends the streak. What
never left the service says nothing of the target. Source: decision 0040.
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
"""Failures of attempts that made no call."""
DIGEST_CHARACTERS = 16


class OnUnreachable(StrEnum):
    """The policy `onUnreachable`."""

    DEACTIVATE = "deactivate"
    CONTINUE = "continue"


@dataclass(frozen=True)
class Streak:
    """Failures on end of one target, as a schedule's row keeps them: `<epoch ms>,<digest>`.

    since: the end of the first of them. target: which action failed, so that another one begins anew.
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
    """The same for the same action: its kind and all that it says beside payload and secrets."""
    said = json.dumps([action.kind, action.params], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:DIGEST_CHARACTERS]


def follow(stored: str | None, action: ActionSpec, outcome: Outcome, now: datetime) -> str | None:
    """The streak after an attempt, as it is stored; None: there is none. now: the attempt's end."""
    if outcome.reason in UNSENT:
        return stored
    if outcome.reason not in UNREACHABLE:
        return None
    target = target_of(action)
    if stored is not None and Streak.read(stored).target == target:
        return stored
    return str(Streak(now, target))


def is_out_of_reach(run: Run) -> bool:
    """Did its last attempt get no connection? One that was given up for its age says so by having no answer."""
    return run.reason in UNREACHABLE or (run.reason is Reason.MAX_AGE and run.http_status is None)


def was_contact(run: Run, stored: str) -> bool:
    """Did the target answer the run's last attempt, after the streak began? A reported result is no answer to it."""
    if run.finished_at is None or run.result_digest is not None or run.finished_at <= Streak.read(stored).since:
        return False
    return run.state is State.SUCCESS or run.http_status is not None or run.reason is Reason.NO_ANSWER


def is_due(stored: str | None, action: ActionSpec, failed_at: datetime) -> bool:
    """Has this streak of failures lasted for ten days of 24 hours?"""
    if stored is None:
        return False
    streak = Streak.read(stored)
    return streak.target == target_of(action) and failed_at - streak.since >= LIMIT
