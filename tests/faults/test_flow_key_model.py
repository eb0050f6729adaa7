"""Jobs that share a flow key, under whatever can happen to those who work on their runs.

A seeded machine over the whole service: deliveries, copies, deaths before and after each call and in the target's, lost
answers, an executor within another's call, ticks, time, results, cancels, runs by hand, purged queues, pauses, other
limits, targets that fail and come back. Whenever a call begins, no more than so many are under way, as many were begun
as the rate allows, and an open circuit is tried by one call at a time; at rest nobody waits and no place is held.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from sweephand.domain.flow_keys.circuits import READ_EACH_S
from sweephand.domain.flow_keys.flow_keys import TOGETHER, CircuitRule, FlowKey, Rate, Turnstile, holder
from sweephand.domain.instants import EPOCH
from sweephand.domain.run import AWAITING_RESULT, Kind, Outcome, Run, State
from sweephand.server.actions.call import Call
from sweephand.server.flow.flow_keys import flow_key_changes
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.server.flow.runs import results
from sweephand.server.flow.world import FlowMemory
from sweephand.server.store.dynamo.table import RunItem
from sweephand.server.store.flow_keys import circuits
from sweephand.server.store.flow_keys import flow_key_lines as lines
from sweephand.server.store.flow_keys import flow_keys as store
from sweephand.server.store.runs import run_rows
from sweephand.testing.taps import Act, Passing
from tests.faults.at_calls import KINDS, fits, surviving
from tests.faults.playing import QUEUE, Days, Trouble, play
from tests.support.endpoint import ACCEPTED, BUSY, OK, WRONG
from tests.support.stage import TENANT, Stage, stage
from tests.support.taps import Crash

ANSWERS = {"ok": OK, "busy": BUSY, "accepted": ACCEPTED, "wrong": WRONG}
TERMS: dict[str, dict[str, Any]] = {
    "one": {"parallelism": 1},
    "two": {"parallelism": 2},
    "rate": {"rate": Rate(1, 15)},
    "rate and places": {"rate": Rate(2, 20), "parallelism": 2},
    "circuit": {"circuit": CircuitRule(2, 20)},
    "all": {"rate": Rate(1, 5), "parallelism": 1, "circuit": CircuitRule(2, 20)},
}
NONE = {"rate": None, "parallelism": None, "circuit": None}
OCCURRENCES = 3
LATE = {"misfire": {"type": "all", "maxLatenessSeconds": 90}}
"""Policies of one of the jobs: its occurrences that wait for longer end without a call."""
ACT_S = 15
"""How long an executor that died may have left its call under way."""


WITHIN = ("second executor", "result", "cancel")
"""Events between a caller and its call, which is carried out afterwards."""
TROUBLE = st.none() | st.builds(Trouble, st.integers(0, 14), st.sampled_from([*KINDS, *WITHIN]))


@dataclass
class Calls:
    """The calls that the targets see. under_way: of runs whose executor works on them, or died in them: until when.

    begun: since the terms were set. unsure: runs whose own executor met trouble, so that their place may have lapsed
    while their target still works. probes: when the next one might try, as each call that tried a circuit left it.
    placeless: they began while the key had no places to give.
    """

    under_way: dict[str, datetime | None] = field(default_factory=dict)
    begun: list[datetime] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)
    placeless: set[str] = field(default_factory=set)
    probes: set[tuple[str, datetime]] = field(default_factory=set)


class FlowKeys(Days):
    planned: list[Planned]

    @initialize(terms=st.sampled_from(sorted(TERMS)), answer=st.sampled_from(sorted(ANSWERS)))
    def begin(self, terms: str, answer: str) -> None:
        self.context = ExitStack()
        self.scene: Stage = self.context.enter_context(stage(shards=1))
        self.calls = Calls()
        self.dies = self.inside = self.ends = False
        self.wrong: list[AssertionError] = []
        self.outcome: Outcome = ANSWERS[answer]
        self.scene.endpoint.answer = self.called
        self.key = flow_key_changes.create(self.scene.world, FlowKey(TENANT, "k", EPOCH, EPOCH, **TERMS[terms]))
        timing = {"cron": "* * * * *", "count": OCCURRENCES}
        self.planned = [
            self.scene.create(timing, action=self.action(url), policies={"flowKey": "k", **late})
            for url, late in (
                ("https://example.org/a", {}),
                ("https://example.org/a", LATE),
                ("https://example.org/b", {}),
            )
        ]

    def action(self, url: str) -> Any:
        outcome = {"on202": "wait", "callbackTimeoutSeconds": 150}
        retry = {"type": "fixed", "delaySeconds": 20, "maxRetries": 1}
        return self.scene.action(url=url, outcome=outcome, retry=retry)

    # Steps

    @rule(trouble=TROUBLE)
    def deliver(self, trouble: Trouble | None) -> None:
        self.under(trouble, lambda: self.scene.deliver(most=1))

    @rule(seconds=st.sampled_from([1, 11, 26, 61]))
    def die_in_a_call(self, seconds: int) -> None:
        self.dies = True
        self.under(None, lambda: self.scene.deliver(most=1))
        self.dies = False
        self.scene.pass_time(seconds)

    @rule(cancelled=st.booleans())
    def deliver_within_a_call(self, cancelled: bool) -> None:
        """Delivers while a call is under way. cancelled: the run is ended while its call is under way, and others learn
        of it before that is over.
        """
        self.inside, self.ends = True, cancelled
        self.under(None, lambda: self.scene.deliver(most=1))
        self.inside = False

    @rule(trouble=TROUBLE)
    def tick(self, trouble: Trouble | None) -> None:
        self.under(trouble, self.scene.tick)

    @rule(answer=st.sampled_from(sorted(ANSWERS)))
    def answer(self, answer: str) -> None:
        self.outcome = ANSWERS[answer]

    @rule(success=st.booleans(), trouble=TROUBLE)
    def result(self, success: bool, trouble: Trouble | None) -> None:
        self.end_one(lambda run: self.report(run, success=success), trouble)

    @rule(trouble=TROUBLE)
    def cancel(self, trouble: Trouble | None) -> None:
        self.end_one(self.cancel_run, trouble)

    @rule(n=st.integers(0, 2), trouble=TROUBLE)
    def run_by_hand(self, n: int, trouble: Trouble | None) -> None:
        self.under(trouble, lambda: manual.run_now(self.scene.world, TENANT, self.planned[n].job.id, None, None))

    @rule(terms=st.sampled_from(sorted(TERMS)), trouble=TROUBLE)
    def set_terms(self, terms: str, trouble: Trouble | None) -> None:
        self.change(lambda key: replace(key, **{**NONE, **TERMS[terms]}), trouble)

    @rule(pause=st.booleans(), trouble=TROUBLE)
    def pause(self, pause: bool, trouble: Trouble | None) -> None:
        now = self.scene.clock.now()
        self.change(
            lambda key: flow_key_changes.paused(key, now, None) if pause else flow_key_changes.resumed(key), trouble
        )

    # How it happens

    def under(self, trouble: Trouble | None, step: Callable[[], object]) -> None:
        """Runs one call of a function, which may die of it: then the next one is another process."""
        seen = 0

        def fault(passing: Passing, act: Act) -> Any:
            nonlocal seen
            seen += 1
            if trouble is None or seen != trouble.call + 1:
                return act()
            if trouble.kind in WITHIN:
                self.meanwhile(trouble.kind)
                return act()
            if not fits(trouble.kind, passing):
                return act()
            self.calls.unsure |= {run.uuid for run in self.rows() if run.state is State.TRIGGERED}
            return KINDS[trouble.kind](passing, act)

        with self.scene.taps.faulty(fault):
            if not surviving(step):
                self.scene.world = replace(self.scene.world, memory=FlowMemory())

    def meanwhile(self, kind: str) -> None:
        if kind == "second executor":
            self.scene.deliver(most=1)
            return
        open_runs = [run for run in self.rows() if not run.finished]
        if open_runs:
            surviving(lambda: self.report(open_runs[0]) if kind == "result" else self.cancel_run(open_runs[0]))

    def end_one(self, end: Callable[[Run], object], trouble: Trouble | None) -> None:
        open_runs = [run for run in self.rows() if not run.finished]
        if open_runs:
            self.under(trouble, lambda: end(open_runs[-1]))

    def report(self, run: Run, *, success: bool = True) -> None:
        owner = run.schedule_id or run.job_id
        results.record(self.scene.world, TENANT, owner, run.uuid, success=success, message=None)

    def cancel_run(self, run: Run) -> None:
        results.cancel(self.scene.world, TENANT, run.schedule_id or run.job_id, run.uuid)

    def change(self, edit: Callable[[FlowKey], FlowKey], trouble: Trouble | None) -> None:
        self.under(trouble, lambda: flow_key_changes.change(self.scene.world, TENANT, "k", edit, None))
        with self.scene.untapped():
            there = store.find(self.scene.world.table, TENANT, "k")
        assert there is not None
        if there.rate != self.key.rate:
            self.calls.begun = []
        if self.key.parallelism is None:  # what began without a place has none
            begun = self.calls.under_way.keys() | {run.uuid for run in self.rows() if run.state in AWAITING_RESULT}
            self.calls.placeless |= {uuid for uuid in begun if holder(uuid) not in self.turnstile().places}
        self.key = there

    # State that a call of the target must find

    def called(self, call: Call) -> Outcome:
        uuid = call.run_id.partition("_")[2]
        now = self.scene.clock.now()
        try:
            with self.scene.untapped():
                self.check_places(uuid, now)
                self.check_rate(now)
                self.check_circuit(uuid, now)
        except AssertionError as wrong:
            self.wrong.append(wrong)  # an executor survives what a call raises
        self.calls.under_way[uuid] = None
        if self.dies:
            self.dies = False
            self.calls.under_way[uuid] = now + timedelta(seconds=ACT_S)
            raise Crash
        if self.inside:
            self.inside = False
            if self.ends:
                (run,) = [run for run in self.rows() if run.uuid == uuid]
                surviving(lambda: self.cancel_run(run))
            for _ in range(3):
                self.scene.deliver(most=1)
        self.calls.under_way.pop(uuid, None)
        return self.outcome

    def check_places(self, uuid: str, now: datetime) -> None:
        for other, until in list(self.calls.under_way.items()):
            if until is not None and until <= now:
                del self.calls.under_way[other]
        if self.key.parallelism is None:
            return
        turnstile = self.turnstile()
        assert holder(uuid) in turnstile.places, "a call without a place"
        awaited = {run.uuid for run in self.rows() if self.holds_for_its_result(run, now)} - self.calls.unsure
        others = (self.calls.under_way.keys() | awaited) - {uuid} - self.calls.placeless
        held = {other for other in others if holder(other) in turnstile.places}
        assert others == held, "a place was given away while its call was under way"
        assert len(others) < self.key.parallelism or len(turnstile.places) > self.key.parallelism, "too many at once"

    def holds_for_its_result(self, run: Run, now: datetime) -> bool:
        """Keeps the place until the deadline; the run may be ended later, if the message of the deadline was lost."""
        return run.state in AWAITING_RESULT and run.deadline_at is not None and now < run.deadline_at

    def check_rate(self, now: datetime) -> None:
        if self.key.rate is None:
            return
        self.calls.begun.append(now)
        last = len(self.calls.begun) - 1
        for n, before in enumerate(self.calls.begun):
            least = (last - n) * self.key.rate.interval - TOGETHER
            assert now - before >= least, f"{last - n + 1} calls in {now - before}"

    def check_circuit(self, uuid: str, now: datetime) -> None:
        (run,) = [run for run in self.rows() if run.uuid == uuid]
        (url,) = {each.params["url"] for each in self.scene.endpoint.received if each.run_id.endswith(uuid)}
        for target, circuit in circuits.listed(self.scene.world.table, TENANT, "k"):
            mine = circuit.target.endswith(url.rpartition("/")[2]) and run.flow_key == "k"
            if not mine or circuit.opened_at is None or circuit.probe_at is None or self.key.circuit is None:
                continue
            if now - circuit.opened_at <= timedelta(seconds=READ_EACH_S):
                continue
            assert (target, circuit.probe_at) not in self.calls.probes, "two tried an open circuit at once"
            self.calls.probes.add((target, circuit.probe_at))

    # Invariants

    def turnstile(self) -> Turnstile:
        found = store.read_stile(self.scene.world.table, TENANT, "k")
        assert found is not None
        return found

    def rows(self) -> list[Run]:
        rows = [row for row in self.scene.items() if "state" in row and row["sk"]["S"].startswith("RUN#")]
        return sorted((run_rows.run_of(RunItem.from_raw_data(row)) for row in rows), key=lambda run: run.uuid)

    @invariant()
    def every_call_found_what_it_must(self) -> None:
        if hasattr(self, "planned") and self.wrong:
            raise self.wrong[0]

    @invariant()
    def whoever_waits_is_waited_for(self) -> None:
        """Checks that each waiting run is waited for: a run in the line has its entry, and while there is one the key
        wakes.
        """
        if not hasattr(self, "planned"):
            return
        with self.scene.untapped():
            entries = {entry.order for entry in lines.line(self.scene.world.table, self.turnstile(), "", "", 100)}
            woken = self.turnstile().wake_at is not None
        waiting = [run for run in self.rows() if run.in_line and run.state is State.QUEUED]
        assert {lines.order_of(run) for run in waiting} <= entries, "a run waits where nobody looks"
        messages = "".join(self.scene.sqs.bodies(QUEUE))
        assert woken or all(run.uuid in messages for run in waiting), "nobody will look at the line"

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
        self.outcome = OK
        self.change(flow_key_changes.resumed, None)
        self.stuck = {run.uuid for run in self.rows() if run.in_line and run.state is State.QUEUED}
        for _ in range(8):
            self.scene.run(60 * 12, most=1)
            if self.scene.audit().lost == 0 and not self.scene.waiting():
                break

    def check(self) -> None:
        self.every_call_found_what_it_must()
        runs = {run.uuid: run for run in self.rows()}
        for run in runs.values():
            assert run.finished, f"open: {run.state}"
            assert (run.lease_owner, run.lease_until, run.wake_at) == (None, None, None)
        impatient = self.planned[1].job.id
        for run in (runs[uuid] for uuid in self.stuck):
            ends = {State.SUCCESS, State.EXPIRED} if run.job_id == impatient else {State.SUCCESS}
            assert run.state in ends, "who waited was not run"
        single = [run for run in runs.values() if run.kind is Kind.SCHEDULED and run.range_count is None]
        assert len(single) == OCCURRENCES * len(self.planned)
        assert self.scene.waiting() == {}
        turnstile, now = self.turnstile(), self.scene.clock.now()
        assert (turnstile.running(now), turnstile.wake_at) == (0, None), "a place, or the line, is held for ever"
        assert not lines.line(self.scene.world.table, turnstile, "", "", 1)


@pytest.mark.scaled
def test_flow_key_limits_hold_and_every_run_ends_in_every_history() -> None:
    play(FlowKeys, examples=60, steps=20, derandomize=True)


@pytest.mark.long
def test_flow_key_limits_hold_and_every_run_ends_in_many_more_histories() -> None:
    play(FlowKeys, examples=600, steps=35, derandomize=False)
