"""The common parts of the models under tests/faults, and the way they are played."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from sweephand.domain.schedule import Lane
from sweephand.testing.service import URLS
from tests.support.examples import scaled
from tests.support.stage import Stage

QUEUE = URLS[Lane.FAST]


@dataclass(frozen=True)
class Trouble:
    """The fault that the call of this number meets. kind: of at_calls.KINDS, or one that the model adds to them."""

    call: int
    kind: str


class Days(RuleBasedStateMachine):
    """The events around runs in every model: time, batches, messages that come twice or never."""

    scene: Stage

    @rule()
    def deliver_a_batch(self) -> None:
        self.scene.deliver(most=10)

    @rule(seconds=st.sampled_from([1, 6, 20, 36, 61]))
    def wait(self, seconds: int) -> None:
        self.scene.pass_time(seconds)

    @rule(minutes=st.integers(1, 2))
    def go_on(self, minutes: int) -> None:
        self.scene.run(60 * minutes, most=1)

    @rule()
    def copy_messages(self) -> None:
        if len(self.scene.sqs.bodies(QUEUE)) < 8:
            self.scene.sqs.duplicate(QUEUE)

    @rule()
    def purge(self) -> None:
        self.scene.sqs.purge(QUEUE)


def play(machine: type[RuleBasedStateMachine], *, examples: int, steps: int, derandomize: bool) -> None:
    """Plays the machine. steps: of an example at most. derandomize: the same histories each time."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=scaled(examples),
            stateful_step_count=steps,
            deadline=None,
            derandomize=derandomize,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
