"""Any history: what is swept, missed and caught up; what runs, fails, waits, is called back, cancelled, lost and found.

Each example is a list of moves with at most one fault in each. In the end the service recovers without help, and the
invariants of every history hold (play.py). test_change_model.py and test_overlap_model.py do the same for changes and
for runs that exclude each other.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweephand.base.errors import Conflict, NotFound
from sweephand.domain.instants import text
from sweephand.domain.run import Outcome, State
from sweephand.domain.schedule import Lane
from sweephand.server.actions.call import Call
from sweephand.server.flow.runs import results
from sweephand.testing.service import URLS
from tests.faults.play import NOON, TENANT, TICK, Play, Scenario, minutes, playing, surviving
from tests.support.endpoint import ACCEPTED, BUSY, OK, WRONG
from tests.support.examples import scaled
from tests.support.taps import Crash

CUTS = ["crash-before", "crash-after", "answer-lost", "throttled", "server-fault", "conflict", "failed-entries"]
OTHERS = ["second-executor", "second-sweeper", "auditor", "index-behind"]


@dataclass(frozen=True)
class Move:
    """seconds: how long, where it takes time. fault: which of its calls meets what, if it has so many."""

    what: str
    seconds: int
    fault: tuple[int, str] | None


def moves(what: list[str], kinds: list[str], most: int) -> st.SearchStrategy[list[Move]]:
    fault = st.none() | st.tuples(st.integers(0, 40), st.sampled_from(kinds))
    return st.lists(st.builds(Move, st.sampled_from(what), st.integers(1, 400), fault), min_size=1, max_size=most)


def faulty(at: Play, move: Move) -> None:
    """Applies the move's fault, counted from its first call. One that it is too short for does not take place."""
    at.calls, at.plan = [], [move.fault] if move.fault else []


# Sweeps, missed occurrences and catching up

UNTIL = 45


def swept(history: list[Move], policy: dict[str, Any]) -> None:
    """Checks that every instant ends in a row of its own or in a line, exactly once, whatever was out and for how
    long.
    """
    with playing(Scenario()) as at:
        timing = {"cron": "* * * * *", "endTime": text(NOON + UNTIL * TICK)}
        job = at.create(timing, policies={"misfire": policy})
        at.expect(job, {}, in_lines=minutes(*range(1, UNTIL + 1)))
        for move in history:
            faulty(at, move)
            match move.what:
                case "all works":
                    at.go(move.seconds)
                case "nothing works":
                    at.outage(move.seconds * 5)
                case "no sweeper":
                    at.go(move.seconds, sweeping=False)
                case "no executor":
                    at.go(move.seconds, executing=False)
                case "sweep":
                    surviving(at.scene.tick)
        at.plan = []


SWEPT = moves(["all works", "nothing works", "no sweeper", "no executor", "sweep"], CUTS, 7)
POLICIES = st.sampled_from([{"type": "sap"}, {"type": "sap", "ratePerMinute": 3}, {"type": "latest"}])


@settings(max_examples=scaled(60), derandomize=True)
@given(SWEPT, POLICIES)
def test_each_instant_has_one_outcome_after_any_outage(history: list[Move], policy: dict[str, Any]) -> None:
    swept(history, policy)


@pytest.mark.long
@settings(max_examples=3_000, derandomize=False)
@given(SWEPT, POLICIES)
def test_each_instant_has_one_outcome_after_any_outage_in_long_histories(
    history: list[Move], policy: dict[str, Any]
) -> None:
    swept(history, policy)


# Runs that fail, wait and end


class Target:
    """Answers by a list, then with success; may take its executor along or hold it beyond its lease."""

    def __init__(self, at: Play, script: list[str]) -> None:
        self._at = at
        self._script = list(script)

    def __call__(self, _call: Call) -> Outcome:
        match self._script.pop(0) if self._script else "succeeds":
            case "fails":
                return BUSY
            case "refuses":
                return WRONG
            case "accepts":
                return ACCEPTED
            case "kills":
                raise Crash
            case "freezes":
                self._at.scene.clock.advance(self._at.scene.world.settings.lease_s + 15)
                self._at.aside(lambda: self._at.scene.deliver(most=1))
        return OK


ANSWERS = st.lists(st.sampled_from(["succeeds", "fails", "refuses", "accepts", "kills", "freezes"]), max_size=8)
RETRIES = st.sampled_from(
    [
        {"type": "none"},
        {"type": "fixed", "delaySeconds": 10, "maxRetries": 3},
        {"type": "fixed", "delaySeconds": 1_000, "maxRetries": 2},
        {"type": "two_level"},
    ]
)
ENDS = frozenset(State)


def executed(history: list[Move], answers: list[str], retry: dict[str, Any], *, error_action: bool) -> None:
    """Runs three occurrences: each has one end, the series is COMPLETED, the counts are those of the rows."""
    with playing(Scenario()) as at:
        at.scene.endpoint.answer = Target(at, answers)
        action = at.scene.action(retry=retry, outcome={"on202": "wait", "callbackTimeoutSeconds": 300})
        more = {"error_action": at.scene.action()} if error_action else {}
        job = at.create({"cron": "* * * * *", "count": 3}, action=action, **more)
        at.expect(job, dict.fromkeys(minutes(1, 2, 3), ENDS))
        for move in history:
            faulty(at, move)
            match move.what:
                case "works":
                    at.go(move.seconds)
                case "copies":
                    for lane in Lane:
                        at.scene.sqs.duplicate(URLS[lane])
                case "calls back" | "reports failure":
                    reported(at, success=move.what == "calls back")
                case "cancels":
                    cancelled(at)
                case "purges":
                    at.purge()
                case "buries":
                    at.bury()
                case "audits":
                    at.audit()
        at.plan = []


def reported(at: Play, *, success: bool) -> None:
    at.faults.add("callback")
    for run in open_runs(at)[:1]:
        with suppress(Conflict, NotFound, Crash):
            owner = run.schedule_id or run.job_id
            results.record(at.scene.world, TENANT, owner, run.uuid, success=success, message=None)


def cancelled(at: Play) -> None:
    for run in open_runs(at)[:1]:
        with suppress(Conflict, NotFound, Crash):
            results.cancel(at.scene.world, TENANT, run.schedule_id or run.job_id, run.uuid)


def open_runs(at: Play) -> list[Any]:
    return [run for run in at.runs() if not run.finished]


EXECUTED = moves(
    ["works", "copies", "calls back", "reports failure", "cancels", "purges", "buries", "audits"], CUTS + OTHERS, 8
)


@settings(max_examples=scaled(100), derandomize=True)
@given(EXECUTED, ANSWERS, RETRIES, st.booleans())
def test_each_run_has_one_outcome_in_every_history(
    history: list[Move], answers: list[str], retry: dict[str, Any], error_action: bool
) -> None:
    executed(history, answers, retry, error_action=error_action)


@pytest.mark.long
@settings(max_examples=5_000, derandomize=False)
@given(EXECUTED, ANSWERS, RETRIES, st.booleans())
def test_each_run_has_one_outcome_in_long_histories(
    history: list[Move], answers: list[str], retry: dict[str, Any], error_action: bool
) -> None:
    executed(history, answers, retry, error_action=error_action)
