"""The circuit of a target: after many consecutive failures its calls wait, except for single test calls. Pure.

Calls that began before the circuit opened may still be running. The first success closes it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum, StrEnum, auto

from sweephand.base.records import dataclass
from sweephand.domain.flow_keys.flow_keys import CircuitRule
from sweephand.domain.job import ActionSpec
from sweephand.domain.run import UNREACHABLE, Outcome, Reason, Verdict

READ_EACH_S = 5.0
"""How long a process uses a circuit before it reads the circuit again."""
KEPT = timedelta(days=30)
"""A circuit without calls is deleted after this time."""


class CircuitState(StrEnum):
    CLOSED = "CLOSED"
    OPEN = "OPEN"


@dataclass(frozen=True)
class Circuit:
    """The circuit of one target under one flow key.

    failures: consecutive ones. opened_at: None while it is closed. probe_at: while it is open, when the next call may
    test the target. failed_at, reason: of the last failure. id: names the circuit where the address must not appear;
    empty until it is stored.
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
    """Evidence of an attempt about its target."""

    FAILED = auto()
    """The target was unreachable, did not answer, or reported that it is unavailable."""
    ALIVE = auto()
    """The target answered, even if it refused."""
    NONE = auto()
    """The call never reached the target, or the target may still be working."""


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


_NOT_THE_TARGET = frozenset({"type", "method", "dialect", "roleArn", "region", "transportType"})


def target_of(action: ActionSpec) -> str:
    """Returns the address without its query or, for other kinds, the kind and the members that name the target."""
    url = action.params.get("url")
    if isinstance(url, str):
        return url.partition("#")[0].partition("?")[0]
    names = [value for name, value in action.params.items() if isinstance(value, str) and name not in _NOT_THE_TARGET]
    return " ".join([action.kind, *names])
