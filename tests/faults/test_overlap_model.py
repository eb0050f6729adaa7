"""Runs of one schedule that exclude each other, under whatever can happen to those who work on them.

A seeded machine over the whole service: deliveries, copies, deaths before and after each call, lost answers, an
executor within another's call, frozen ones, ticks, time, callbacks, cancels, runs by hand, purged queues, edits. After
each step at most one run has the turn; at rest nothing is open, queued or in the slot, and the counts are those of a
fold.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    rule,
)

from sweephand.domain.job import Pause
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import ScheduleState
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.server.flow.runs import results
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.table import RunItem
from sweephand.server.store.runs import run_rows
from sweephand.testing.taps import Act, Passing
from tests.faults.at_calls import KINDS, fits, surviving
from tests.faults.playing import QUEUE, Days, Trouble, play
from tests.support.endpoint import ACCEPTED, BUSY, OK, WRONG
from tests.support.stage import TENANT, Stage, stage

OCCURRENCES = 5
ANSWERS = {"ok": OK, "busy": BUSY, "accepted": ACCEPTED, "wrong": WRONG}
EXCLUDING = ("skip", "queue_one", "replace")


WITHIN = ("second executor", "frozen", "frozen, second executor", "callback", "cancel")
"""Events between a caller and its call: the call is carried out afterwards."""
TROUBLE = st.none() | st.builds(Trouble, st.integers(0, 9), st.sampled_from([*KINDS, *WITHIN]))


class Overlaps(Days):
    planned: Planned

    @initialize(policy=st.sampled_from(EXCLUDING), answer=st.sampled_from(sorted(ANSWERS)))
    def begin(self, policy: str, answer: str) -> None:
        self.context = ExitStack()
        self.scene: Stage = self.context.enter_context(stage(shards=1))
        self.policies = {policy}
        self.scene.endpoint.answer = ANSWERS[answer]
        timing = {"cron": "* * * * *", "count": OCCURRENCES}
        self.planned = self.scene.create(timing, action=self.action(), policies={"overlap": policy})

    def action(self) -> Any:
        outcome = {"on202": "wait", "callbackTimeoutSeconds": 150}
        return self.scene.action(outcome=outcome, retry={"type": "fixed", "delaySeconds": 20, "maxRetries": 2})

    # Steps

    @rule(trouble=TROUBLE)
    def deliver(self, trouble: Trouble | None) -> None:
        self.under(trouble, lambda: self.scene.deliver(most=1))

    @rule(
        kind=st.sampled_from(["crash-before", "crash-after"]), lost=st.booleans(), seconds=st.sampled_from([1, 26, 61])
    )
    def die_at_work(self, kind: str, lost: bool, seconds: int) -> None:
        """Lets an executor die in its call. lost: and its message with it, so that others must look after the run."""
        died = self.under(Trouble(0, kind), lambda: self.scene.deliver(most=1), only="endpoint")
        if died and lost:
            held = [run.uuid for run in self.open_runs() if run.state is State.TRIGGERED]
            messages = self.scene.sqs._queues[QUEUE].messages
            messages[:] = [each for each in messages if not any(uuid in each.body for uuid in held)]
        if died:
            self.scene.pass_time(seconds)

    @rule(trouble=TROUBLE)
    def tick(self, trouble: Trouble | None) -> None:
        self.under(trouble, self.scene.tick)

    @rule(answer=st.sampled_from(sorted(ANSWERS)))
    def answer(self, answer: str) -> None:
        self.scene.endpoint.answer = ANSWERS[answer]

    @rule(success=st.booleans(), trouble=TROUBLE)
    def callback(self, success: bool, trouble: Trouble | None) -> None:
        self.end_one(lambda run: self.report(run, success=success), trouble)

    @rule(trouble=TROUBLE)
    def cancel(self, trouble: Trouble | None) -> None:
        self.end_one(self.cancel_run, trouble)

    @rule(trouble=TROUBLE)
    def run_by_hand(self, trouble: Trouble | None) -> None:
        own = self.planned.schedules[0].id
        self.under(trouble, lambda: manual.run_now(self.scene.world, TENANT, self.planned.job.id, own, None))

    @rule(policy=st.sampled_from(["allow", *EXCLUDING]))
    def edit(self, policy: str) -> None:
        self.policies.add(policy)
        self.scene.change(self.planned, action=self.action(), policies={"overlap": policy})

    @rule(pause=st.booleans())
    def switch(self, pause: bool) -> None:
        self.scene.set_state(self.planned, pause=Pause(self.scene.clock.now()) if pause else None)

    # How it happens

    def under(self, trouble: Trouble | None, step: Callable[[], object], only: str | None = None) -> bool:
        """Runs one call of a function, which may die of it. only: a service whose calls count. False: no trouble."""
        seen = 0

        def fault(passing: Passing, act: Act) -> Any:
            nonlocal seen
            seen += only in {None, passing.service}
            if only not in {None, passing.service} or trouble is None or seen != trouble.call + 1:
                return act()
            if trouble.kind in WITHIN:
                self.meanwhile(trouble.kind)
                return act()
            return KINDS[trouble.kind](passing, act) if fits(trouble.kind, passing) else act()

        with self.scene.taps.faulty(fault):
            surviving(step)
        return trouble is not None and seen > trouble.call

    def meanwhile(self, kind: str) -> None:
        if kind.startswith("frozen"):
            self.scene.clock.advance(60)
        if kind.endswith("second executor"):
            self.scene.deliver(most=1)
        open_runs = self.open_runs()
        if kind in {"callback", "cancel"} and open_runs:
            run = open_runs[0]
            surviving(lambda: self.report(run) if kind == "callback" else self.cancel_run(run))

    def end_one(self, end: Callable[[Run], object], trouble: Trouble | None) -> None:
        open_runs = self.open_runs()
        if open_runs:
            self.under(trouble, lambda: end(open_runs[-1]))

    def report(self, run: Run, *, success: bool = True) -> None:
        owner = self.planned.schedules[0].id
        results.record(self.scene.world, TENANT, owner, run.uuid, success=success, message=None)

    def cancel_run(self, run: Run) -> None:
        results.cancel(self.scene.world, TENANT, self.planned.schedules[0].id, run.uuid)

    # Invariants

    def look(self) -> tuple[list[Run], dict[str, str]]:
        """Reads all rows of the schedule, and its slot: {} where there is none."""
        items = self.scene.items()
        own = keys.runs(TENANT, self.planned.schedules[0].id)
        runs = [
            run_rows.run_of(RunItem.from_raw_data(row)) for row in items if row["pk"]["S"] == own and "state" in row
        ]
        slots = [item for item in items if item["sk"]["S"].startswith("SLOT#")]
        assert len(slots) <= 1
        slot = {name: slots[0][name]["S"] for name in ("active", "queued") if slots and name in slots[0]}
        assert bool(slots) == ("active" in slot), "a slot that nobody holds"
        return sorted((run for run in runs if run.range_count is None), key=lambda run: run.uuid), slot

    def open_runs(self) -> list[Run]:
        return [run for run in self.look()[0] if not run.finished]

    @invariant()
    def at_most_one_has_the_turn(self) -> None:
        if not hasattr(self, "planned"):
            return
        runs, slot = self.look()
        in_slot = [run.uuid for run in runs if run.slotted and not run.finished]
        assert set(in_slot) <= set(slot.values()), "an open run has lost its place"
        queued = [run for run in runs if run.uuid == slot.get("queued") and not run.finished]
        assert all(run.state is State.QUEUED and run.wake_at is not None for run in queued)
        if "allow" not in self.policies:
            begun = [run for run in runs if not run.finished and run.state is not State.QUEUED]
            assert all(run.slotted for run in begun)
            assert len(begun) <= 1, "two at once"

    def teardown(self) -> None:
        try:
            if hasattr(self, "planned"):
                self.come_to_rest()
                self.check()
        finally:
            if hasattr(self, "context"):
                self.context.close()

    def come_to_rest(self) -> None:
        """Comes to rest without special measures: the minute rule, the queue, and the audit for what a purge took."""
        self.scene.endpoint.answer = OK
        self.scene.set_state(self.planned, pause=None)
        for _ in range(8):
            self.scene.run(60 * 12, most=1)
            if self.scene.audit().lost == 0 and not self.scene.waiting():
                break

    def check(self) -> None:
        runs, slot = self.look()
        assert slot == {}, "a slot is held for ever"
        for run in runs:
            assert run.finished, f"open: {run.state}"
            assert run.reason is not None
            assert (run.lease_owner, run.lease_until, run.wake_at) == (None, None, None)
        schedule = self.scene.stored(self.planned)
        assert schedule.state is ScheduleState.COMPLETED
        assert self.scene.waiting() == {}
        scheduled = [run for run in runs if run.kind is Kind.SCHEDULED]
        assert len(scheduled) == schedule.planned_total == OCCURRENCES
        totals, fold = self.scene.totals(self.planned), self.scene.fold(self.planned)
        assert (totals.planned, totals.ended, totals.open) == (fold.rows, fold.ended, 0)
        assert (totals.failed, totals.skipped) == (fold.failed, fold.skipped)
        self.reasons_are_those_of_the_policies({run.reason for run in runs if run.reason})

    def reasons_are_those_of_the_policies(self, reasons: set[Reason]) -> None:
        assert Reason.REPLACED not in reasons or "replace" in self.policies
        assert Reason.OVERLAP not in reasons or not self.policies <= {"allow"}


@pytest.mark.scaled
def test_one_run_is_active_at_a_time_and_every_run_ends_in_every_history() -> None:
    play(Overlaps, examples=200, steps=25, derandomize=True)


@pytest.mark.long
def test_one_run_is_active_at_a_time_and_every_run_ends_in_many_more_histories() -> None:
    play(Overlaps, examples=1_000, steps=40, derandomize=False)
