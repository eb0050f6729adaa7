"""A worker comes at the very moment at which an executor gives up on it, and executors die at each of their calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from sweephand.domain.event import EventType
from sweephand.domain.run import Kind
from sweephand.domain.schedule import Lane
from sweephand.testing.taps import Act, Passing
from tests.contract.native.api import Api
from tests.contract.native.api import api as made
from tests.contract.native.test_workers import Hand, create, register
from tests.support.limits import as_dynamodb
from tests.support.taps import Crash, crash_after, crash_before

ONCE = [{"every": "PT1H", "count": 1}]
POLICIES = {"overlap": "skip", "misfire": {"type": "skip"}}
HOOK = {"onMissed": {"type": "http", "url": "https://example.org/missed"}}
HELD_AT_S, ENDED_AT_S = 3_600 + 60, 3_600 + 120
MOST_CALLS = 60


@dataclass
class Scene:
    api: Api
    hand: Hand
    schedule: str

    def states(self) -> Counter[str]:
        return Counter(run.state.value for run in self.api.stage.runs(self.schedule, Kind.SCHEDULED))

    def executors(self) -> None:
        self.api.stage.deliver(Lane.FAST)

    def during(self, act: Callable[[], object], meanwhile: Callable[[], object], number: int) -> bool:
        """Lets something happen before a call of `act`, by its number. Returns whether there was such a call."""
        numbers, done = count(), []

        def fault(passing: Passing, call: Act) -> Any:
            if not done and passing.service != "endpoint" and next(numbers) == number:
                done.append(True)
                meanwhile()
            return as_dynamodb(passing, call)

        self.api.stage.taps.fault = fault
        try:
            act()
        finally:
            self.api.stage.taps.fault = as_dynamodb
        return bool(done)


def scene(api: Api, seconds: float) -> Scene:
    """Returns the scene at the moment before the executors act."""
    hand = Hand(api, register(api))
    job = create(api, schedules=ONCE, policies=POLICIES, hooks=HOOK)
    api.stage.run(seconds - 3)
    api.stage.clock.advance(6)
    api.stage.tick()
    return Scene(api, hand, job["schedules"][0]["id"])


@pytest.mark.parametrize("seconds", [HELD_AT_S, ENDED_AT_S], ids=["held", "ended"])
@pytest.mark.parametrize("first", ["executors", "worker"])
def test_a_run_is_carried_out_or_ends_but_never_both(seconds, first):
    for number in range(MOST_CALLS):
        with made() as api:
            here = scene(api, seconds)
            tasks: list[Any] = []

            def work(here=here, tasks=tasks):
                tasks.extend(here.hand.work())

            acts = (here.executors, work) if first == "executors" else (work, here.executors)
            reached = here.during(*acts, number)
            for _ in range(4):
                api.stage.run(60)
                work()

            wanted = {"SUCCESS": 1} if tasks else {"MISSED": 1}
            assert (here.states(), len(tasks)) == (wanted, len(tasks[:1])), number
            assert len(api.stage.endpoint.received) == wanted.get("MISSED", 0), number
            shown = api.get(f"/v1/jobs/{api.get('/v1/jobs').json['items'][0]['id']}").json
            assert (shown["state"], shown["totals"]["open"]) == ("COMPLETED", 0), number
        if not reached:
            break
    assert 3 < number < MOST_CALLS - 1


@pytest.mark.parametrize("fault", [crash_before, crash_after])
def test_an_executor_that_dies_while_it_looks_after_a_run_leaves_it_to_another(fault):
    for number in range(MOST_CALLS):
        with made() as api:
            here = scene(api, HELD_AT_S)

            def die(passing: Passing, call: Act, numbers=count(), number=number) -> Any:  # noqa: B008 - of this round
                if next(numbers) == number:
                    return fault(passing, lambda: as_dynamodb(passing, call))
                return as_dynamodb(passing, call)

            api.stage.taps.fault = die
            died = False
            with suppress(Crash):
                died = True
                api.stage.run(59)
                died = False
            api.stage.taps.fault = as_dynamodb
            api.stage.run(240)

            assert here.states() == {"MISSED": 1}, number
            events = api.stage.bus.of(EventType.APPLICATION_AWAY)
            assert len({event["id"] for event in events}) == 1, number
            here.hand.work()
            api.stage.run(60)
            assert len({event["id"] for event in api.stage.bus.of(EventType.APPLICATION_BACK)}) == 1, number
        if not died:
            break
    assert 3 < number < MOST_CALLS - 1
