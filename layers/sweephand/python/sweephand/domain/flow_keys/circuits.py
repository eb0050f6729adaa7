"""The circuit of a target: after many failures in a row its calls wait, but for one now and then that tries it. Pure.

Calls that begin before they have heard of an opening may still be under way after it; the first success closes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, StrEnum, auto

from sweephand.domain.flow_keys.flow_keys import CircuitRule
from sweephand.domain.run import UNREACHABLE, Outcome, Reason, Verdict

READ_EACH_S = 5.0
"""How long a process goes by what it has read of a circuit."""
KEPT = timedelta(days=30)
"""A circuit of which nothing is heard for so long is forgotten."""


class CircuitState(StrEnum):
    CLOSED = "CLOSED"
    OPEN = "OPEN"


@dataclass(frozen=True)
class Circuit:
    """Of one target under one key. failures: in a row. opened_at: None while it is closed. probe_at: when the next call
    may try an open one. failed_at, reason: of the last failure. id: names it where an address must not stand; "" until
    it is in the table.
    """

    target: str
    failures: int = 0
    opened_at: datetime | None = None
    probe_at: datetime | None = None
    failed_at: datetime | None = None
    reason: str | None = None
    id: str = ""

    @property
    def state(self) -> CircuitState:
        return CircuitState.CLOSED if self.opened_at is None else CircuitState.OPEN


class Sign(Enum):
    """What an attempt says of its target."""

    FAILED = auto()
    """It was not there, did not answer, or said that it cannot now."""
    ALIVE = auto()
    """It answered, be it with a refusal."""
    NONE = auto()
    """The call never reached it, or it may still be at work."""


def sign_of(outcome: Outcome) -> Sign:
    match outcome.verdict:
        case Verdict.SUCCEEDED | Verdict.ACCEPTED:
            return Sign.ALIVE
        case Verdict.SILENT:
            return Sign.NONE
        case Verdict.FAILED:
            if outcome.retryable or outcome.reason in UNREACHABLE or outcome.reason is Reason.NO_ANSWER:
                return Sign.FAILED
            return Sign.ALIVE if outcome.http_status is not None else Sign.NONE


def opens(failures: int, rule: CircuitRule) -> bool:
    return failures >= rule.failures


def next_probe(rule: CircuitRule, now: datetime) -> datetime:
    return now + timedelta(seconds=rule.probe_s)
