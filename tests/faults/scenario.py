"""One small history of the service, and what must be true of it whatever was cut off on the way.

Two occurrences: the first fails once and succeeds at its retry, the second succeeds. One caller, one sweeper, one
executor, a message at a time, so that the calls come in the same order each time and a plan names them by number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sweephand.domain.run import Kind, State
from sweephand.domain.schedule import ScheduleState
from sweephand.errors import SweephandError
from sweephand.flow.idempotency import Once
from sweephand.flow.plan import Planned
from tests.support.endpoint import BUSY, OK
from tests.support.sources import START
from tests.support.stage import Stage, stage
from tests.support.taps import Act, Crash, Fault, Passing, answer_lost, conflict, crash_after, crash_before, some_failed
from tests.support.taps import refused as throttled

OCCURRENCES = 2
NOON = START.replace(microsecond=0)

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
    """Whether a call can meet this fault, and whether it makes a difference: a read leaves nothing behind, so to die
    after it, or to be refused, is to die before it. What the target answers is not the SDK's to repeat.
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


Plan = tuple[tuple[int, str], ...]
"""Which call meets which fault; calls are counted from the last fault on. ((7, "crash-after"),) replays."""


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
    """One call of a function: False if it died or gave up. What called it goes on."""
    try:
        step()
    except (Crash, SweephandError):
        return False
    return True


@dataclass
class Outcome:
    """calls: those after the last fault of the plan; met: all faults took place."""

    calls: list[Passing]
    met: bool


def play(plan: Plan) -> Outcome:
    """The history under these faults, recovery by ordinary ticks and redelivery, then the invariants."""
    with stage(shards=1) as scene:
        faults = Faults(list(plan))
        with scene.taps.faulty(faults):
            planned = _history(scene)
        calls = faults.seen
        _recover(scene)
        _check(scene, planned)
        return Outcome(calls, met=not faults.plan)


def _history(scene: Stage) -> Planned:
    failing = NOON + timedelta(minutes=1)
    scene.endpoint.answer = lambda call: BUSY if (call.planned_at, call.attempt) == (failing, 1) else OK
    made: list[Planned] = []
    once = Once("the caller's key", "the body")

    def create() -> None:
        retry = {"type": "fixed", "delaySeconds": 20, "maxRetries": 3}
        timing = {"cron": "* * * * *", "count": OCCURRENCES}
        made.append(scene.create(timing, action=scene.action(retry=retry), once=once))

    while not surviving(create):  # a caller with an Idempotency-Key asks again
        scene.clock.advance(1)
    for _ in range(4):
        surviving(scene.tick)
        for _ in range(30):
            surviving(lambda: _work(scene))
            scene.clock.advance(2)
    return made[0]


def _work(scene: Stage) -> None:
    """All that is visible now, each message by an executor of its own."""
    while scene.deliver(most=1):
        pass


def _recover(scene: Stage) -> None:
    """Nothing special: the minute rule and the queue."""
    for _ in range(40):
        scene.run(60, most=1)
        if not scene.waiting():
            return


def _check(scene: Stage, planned: Planned) -> None:
    runs = scene.runs(planned, Kind.SCHEDULED)
    wanted = [NOON + timedelta(minutes=n + 1) for n in range(OCCURRENCES)]
    assert [run.planned_at for run in runs] == wanted, "lost, doubled, or of no plan"
    assert [run.id for run in runs] == sorted({received.run_id for received in scene.endpoint.received})
    for run in runs:
        assert run.finished, f"open: {run.state}"
        assert (run.owner, run.lease_until, run.wake_at) == (None, None, None)
        assert run.state is State.SUCCESS or run.lost, f"{run.state} {run.reason}"
    schedule = scene.stored(planned)
    assert schedule.state is ScheduleState.COMPLETED
    assert scene.waiting() == {}, "something waits for nothing"
    totals, fold = scene.totals(planned), scene.fold(planned)
    assert (totals.planned, totals.ended, totals.open) == (OCCURRENCES, fold.ended, 0)
    assert (totals.failed, totals.skipped) == (fold.failed, fold.skipped)
    assert totals.failed_attempts in {1, 1 + fold.failed}
    early = [received for received in scene.endpoint.received if received.at < received.call.planned_at]
    assert not early
