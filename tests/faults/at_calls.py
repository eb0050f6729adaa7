"""Plain faults at the numbered calls of a step, for models that choose both by themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sweephand.base.errors import SweephandError
from sweephand.testing.taps import Act, Fault, Passing
from tests.support.taps import Crash, answer_lost, conflict, crash_after, crash_before, some_failed
from tests.support.taps import refused as throttled

KINDS: dict[str, Fault] = {
    "crash-before": crash_before,
    "crash-after": crash_after,
    "answer-lost": answer_lost,
    "throttled": throttled,
    "failed-entries": some_failed,
    "conflict": conflict,
}


READS = {"Query", "GetItem", "BatchGetItem"}


def fits(kind: str, passing: Passing) -> bool:
    """Tells whether a call can meet this fault, and whether it makes a difference: a read changes nothing, so to die
    after it, or to be refused, is the same as to die before it. The SDK does not repeat what the target answers.
    """
    match kind:
        case "failed-entries":
            return passing.operation == "SendMessageBatch"
        case "conflict":
            return passing.operation == "TransactWriteItems"
        case "throttled" | "answer-lost":
            return passing.service != "endpoint" and passing.operation not in READS
        case "crash-after":
            return passing.operation not in READS
    return True


@dataclass
class Faults:
    """Lets the numbered calls meet their faults, one after the other. seen: the calls since the last fault."""

    plan: list[tuple[int, str]]
    seen: list[Passing] = field(default_factory=list)

    def __call__(self, passing: Passing, act: Act) -> Any:
        self.seen.append(passing)
        if not self.plan or len(self.seen) <= self.plan[0][0]:
            return act()
        _, kind = self.plan.pop(0)
        self.seen = []
        return KINDS[kind](passing, act)


def surviving(step: Callable[[], object]) -> bool:
    """Runs one call of a function: False if it died or gave up. The caller continues."""
    try:
        step()
    except (Crash, SweephandError):
        return False
    return True
