"""Events of circuits: that one opened, that it closed, each once; and what that may not cost."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.domain.collection import Events
from sweephand.domain.event import EventType
from sweephand.domain.flow_keys.flow_keys import CircuitRule
from sweephand.domain.instants import text_ms
from sweephand.domain.run import State
from sweephand.server.store.views import resources as views
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import BUSY, OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import refused
from tests.unit.server.flow.flow_keys.test_flow_keys import failures, jobs, key, open_circuit, stands

OPENED, CLOSED = EventType.CIRCUIT_OPENED, EventType.CIRCUIT_CLOSED


def test_an_opening_and_a_closing_are_published_once_each_without_an_address(stage: Stage) -> None:
    open_circuit(stage, 3)
    (circuit,) = views.live(stage.world.table, TENANT, "k").circuits
    assert circuit.opened_at is not None
    told = stage.bus.only(OPENED)
    assert stage.bus.of(CLOSED) == []
    assert (told["flowKey"], told["circuit"], told["failures"]) == ("k", circuit.id, 2)
    assert (told["reason"], told["openedAt"]) == ("HTTP_STATUS", text_ms(circuit.opened_at))

    stage.endpoint.answer = OK
    stage.run(40)

    closed = stage.bus.only(CLOSED)
    assert (closed["circuit"], closed["openedAt"]) == (told["circuit"], told["openedAt"])
    assert closed["id"].partition(":")[2] == told["id"].partition(":")[2]
    assert closed["occurredAt"] > closed["openedAt"]
    assert len(stage.bus.of(OPENED)) == 1
    assert "example.org" not in str([told, closed])


def test_a_second_opening_publishes_another_event(stage: Stage) -> None:
    open_circuit(stage, 1)
    stage.endpoint.answer = WRONG
    stage.run(40)
    stage.endpoint.answer = BUSY
    jobs(stage, 2, {"at": "2027-03-01T12:04:00Z"})
    stage.run(240)

    ids = [each["id"] for each in stage.bus.of(OPENED)]
    assert len(ids) == len(set(ids)) == 2


def test_failures_that_do_not_open_a_circuit_and_a_success_after_them_publish_nothing(stage: Stage) -> None:
    key(stage, circuit=CircuitRule(failures=5))
    stage.endpoint.script = [BUSY, BUSY]
    jobs(stage, 3)

    stage.run(90)

    assert stage.bus.of(OPENED) == stage.bus.of(CLOSED) == []


@pytest.mark.parametrize(("choice", "told"), [(Events.NONE, 0), (Events.FAILURES, 1), (Events.ALL, 1)])
def test_the_collection_of_the_job_decides_about_circuit_events(stage: Stage, choice: Events, told: int) -> None:
    stage.tell(choice)

    open_circuit(stage, 1)

    assert len(stage.bus.of(OPENED)) == told


def test_an_unavailable_bus_loses_no_outcome(stage: Stage) -> None:
    """It is asked when the outcome is written: the lease has nothing to lose any more."""
    order: list[str] = []

    def fault(passing: Passing, act: Act) -> Any:
        if passing.service == "events":
            entries = passing.request["Entries"]
            order.extend(entry["DetailType"] for entry in entries)
            return refused(passing, act)
        if passing.operation in {"TransactWriteItems", "UpdateItem"} and "ERROR" in str(passing.request):
            order.append("outcome")
        return act()

    key(stage, circuit=CircuitRule(failures=1, probe_s=30))
    stage.endpoint.answer = BUSY
    planned = jobs(stage, 1)
    with stage.taps.faulty(fault):
        stage.run(90)

    assert stands(stage, planned) == [State.ERROR]
    assert order.index("outcome") < order.index("circuit.opened")
    (circuit,) = failures(stage)
    assert circuit.opened_at is not None


def test_closing_a_circuit_is_reported_even_if_no_run_can_be_called(stage: Stage) -> None:
    later = open_circuit(stage, 3)
    stage.endpoint.answer = OK
    lost = 0

    def fault(passing: Passing, act: Act) -> Any:
        """Fails in the move that calls all waiting runs anew."""
        nonlocal lost
        if passing.operation == "UpdateItem" and "TURN#" in str(passing.request) and failures_are_gone():
            lost += 1
            if lost == 1:
                return refused(passing, act)
        return act()

    def failures_are_gone() -> bool:
        return not [item for item in stage.items() if item["sk"]["S"].startswith("CIRCUIT#")]

    with stage.taps.faulty(fault):
        stage.run(40)

    assert lost
    assert len(stage.bus.of(CLOSED)) == 1
    stage.run(120)
    assert stands(stage, later) == [State.SUCCESS] * 3
