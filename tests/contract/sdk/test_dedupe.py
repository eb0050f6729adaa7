"""Effects of a worker that happen once, through the whole service: contract N49."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from sweephand.sdk.worker import Dedupe, Delay, MemoryMarks, Unsure, Worker
from sweephand.testing.sources import SeededChance
from tests.contract.sdk.hands import Hands, started
from tests.contract.sdk.test_worker import runs

PROCESSES = count(1)


class Death(BaseException):
    """The end of the process, which nothing of it survives."""


class DyingMarks(MemoryMarks):
    """Marks whose process dies before it confirms, once."""

    died = False

    def confirm(self, key, mark) -> None:
        if not self.died:
            self.died = True
            raise Death
        super().confirm(key, mark)


def paying(api, marks, payments: list[str], **more: Any) -> Hands:
    """Returns a worker that pays once for each run. more: of Worker, or at_most_once."""
    dedupe = Dedupe(
        marks, at_most_once=more.pop("at_most_once", False), clock=api.stage.clock, chance=SeededChance(next(PROCESSES))
    )

    def declare(worker: Worker) -> None:
        @worker.every("1h", name="report")
        def report(run) -> None:
            with dedupe(run.id) as first:
                if first:
                    payments.append(run.id)

    return started(api, declare, **more)


def attempt_and_die(api, hands: Hands) -> None:
    """Lets the run come due, and ends the process at the fault: what it held comes back after its lease."""
    settle = hands.attempts._failure

    def dead(_task, _run, error):
        raise error if isinstance(error, Death) else AssertionError(error)

    hands.attempts._failure = dead
    with pytest.raises(Death):
        hands.live(3_700, 10)
    hands.attempts._failure = settle


def test_an_effect_happens_once_although_every_attempt_fails_after_it(api):  # N49
    payments: list[str] = []
    dedupe = Dedupe(MemoryMarks(), clock=api.stage.clock, chance=SeededChance(next(PROCESSES)))

    def declare(worker: Worker) -> None:
        @worker.every("1h", name="report")
        def report(run) -> None:
            with dedupe(run.id) as first:
                if first:
                    payments.append(run.id)
            if run.attempt < 4:
                raise ConnectionError("the rest of the task fails")

    started(api, declare).live(3_700, 10)

    assert [(run["state"], run["attempt"]) for run in runs(api)] == [("SUCCESS", 4)]
    assert len(payments) == 1


def test_at_least_once_repeats_an_effect_if_its_worker_died_before_the_mark(api):  # N49
    payments: list[str] = []
    marks = DyingMarks()
    attempt_and_die(api, paying(api, marks, payments))

    paying(api, marks, payments).live(600, 10)

    [run] = runs(api)
    assert (run["state"], payments) == ("SUCCESS", [run["id"]] * 2)


def test_at_most_once_never_repeats_an_effect_if_its_worker_died_before_the_mark(api):  # N49
    payments: list[str] = []
    marks = DyingMarks()
    attempt_and_die(api, paying(api, marks, payments, at_most_once=True))

    paying(api, marks, payments, at_most_once=True).live(600, 10)

    [run] = runs(api)
    assert payments == [run["id"]]
    assert run["state"] == "ERROR"
    assert "was begun, and it is unknown whether it happened" in str(api.get(f"/v1/runs/{run['id']}").json)


@pytest.mark.parametrize("hook", [None, lambda _error, _run: None])
def test_an_attempt_that_meets_a_claim_is_retried_when_the_claim_expires(api, hook):
    payments: list[str] = []
    at: list[float] = []
    dedupe = Dedupe(MemoryMarks(), clock=api.stage.clock, chance=SeededChance(next(PROCESSES)))

    def declare(worker: Worker) -> None:
        @worker.every("1h", name="report")
        def report(run) -> None:
            at.append(api.stage.clock.now().timestamp())
            with dedupe("invoice/1") as first:
                if first:
                    payments.append(run.id)

    hands = started(api, declare, hook=hook)
    hands.live(3_590, 10)
    dedupe.claim("invoice/1")  # of a process that dies
    hands.live(200)

    assert len(at) == 2
    assert 45 <= at[1] - at[0] <= 65
    assert len(payments) == 1


def test_a_hook_can_still_decide_about_a_claim(api):
    at: list[float] = []
    dedupe = Dedupe(MemoryMarks(), clock=api.stage.clock, chance=SeededChance(next(PROCESSES)), lease_s=3_000)

    def declare(worker: Worker) -> None:
        @worker.every("2h", name="report")
        def report() -> None:
            at.append(api.stage.clock.now().timestamp())
            with dedupe("invoice/1"):
                pass

    hands = started(api, declare, hook=lambda _error, _run: Delay(200))
    hands.live(7_100, 100)
    dedupe.claim("invoice/1")
    hands.live(400, 10)

    assert 195 <= at[1] - at[0] <= 215


def test_a_claim_of_more_than_an_hour_is_checked_each_hour(api):
    at: list[float] = []
    chance = SeededChance(next(PROCESSES))
    dedupe = Dedupe(MemoryMarks(), clock=api.stage.clock, chance=chance, lease_s=9_000)

    def declare(worker: Worker) -> None:
        @worker.every("6h", name="report")
        def report() -> None:
            at.append(api.stage.clock.now().timestamp())
            with dedupe("invoice/1"):
                pass

    hands = started(api, declare)
    hands.live(21_500, 500)
    dedupe.claim("invoice/1")
    hands.live(3_800, 20)

    assert len(at) == 2
    assert 3_595 <= at[1] - at[0] <= 3_640


def test_an_uncertain_effect_ends_the_run_at_once(api):
    dedupe = Dedupe(MemoryMarks(), clock=api.stage.clock, keep=timedelta(days=1), chance=SeededChance(next(PROCESSES)))

    def declare(worker: Worker) -> None:
        @worker.every("1h", name="report")
        def report(run) -> None:
            with dedupe(run.id) as first:
                assert first
                raise Unsure("the bank did not answer")

    started(api, declare).live(3_700, 10)

    assert [(run["state"], run["attempt"]) for run in runs(api)] == [("ERROR", 1)]
