"""The target of all jobs of a test: records each call and answers as the test wants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.server.actions.call import Call
from sweephand.testing.sources import VirtualClock
from sweephand.testing.taps import Passing, Taps

OK = Outcome(Verdict.SUCCEEDED, http_status=200, answer="done")
BUSY = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=503, message="503", retryable=True)
WRONG = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=404, message="404")
DOWN = Outcome(Verdict.FAILED, Reason.CONNECT, message="connection refused", retryable=True)
ACCEPTED = Outcome(Verdict.ACCEPTED, http_status=202)

Answer = Outcome | Callable[[Call], Outcome]


@dataclass(frozen=True)
class Received:
    at: datetime
    params: dict[str, Any]
    call: Call

    @property
    def run_id(self) -> str:
        return self.call.run_id


@dataclass
class Endpoint:
    """script: the answers to come, in order; then always `answer`. takes_s: how long each call lasts."""

    clock: VirtualClock
    taps: Taps
    answer: Answer = OK
    script: list[Answer] = field(default_factory=list)
    takes_s: float = 0.0
    received: list[Received] = field(default_factory=list)

    def perform(self, kind: str, params: Any, call: Call, _outbound: object) -> Outcome:
        outcome: Outcome = self.taps(Passing("endpoint", kind, {"call": call}), lambda: self._receive(params, call))
        return outcome

    def _receive(self, params: Any, call: Call) -> Outcome:
        self.received.append(Received(self.clock.now(), dict(params), call))
        if self.takes_s:
            self.clock.advance(self.takes_s)
        answer = self.script.pop(0) if self.script else self.answer
        return answer(call) if callable(answer) else answer

    @property
    def run_ids(self) -> list[str]:
        return [received.run_id for received in self.received]

    @property
    def planned(self) -> list[datetime]:
        """The planned instants of all calls, in their order: within a batch, threads call in any order."""
        return sorted(received.call.planned_at for received in self.received)
