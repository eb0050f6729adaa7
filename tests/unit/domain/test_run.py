from __future__ import annotations

from datetime import timedelta

from sweephand.domain.run import (
    AWAITING_RESULT,
    CLAIMABLE,
    FAILED,
    TERMINAL,
    UNREACHABLE,
    Reason,
    State,
    Status,
    success_reason,
)
from tests.unit.domain.nouns import NOW, SECOND, run


def test_every_state_has_one_phase() -> None:
    phases = {state: state.status for state in State}

    assert phases[State.SCHEDULED] is Status.SCHEDULED
    assert {state for state, phase in phases.items() if phase is Status.COMPLETED} == TERMINAL
    assert {state for state, phase in phases.items() if phase is Status.RUNNING} == {
        *(State.TRIGGERED, State.ACK_RECVD, State.ACK_NOT_RECVD, State.RETRY_WAIT, State.HELD, State.QUEUED)
    }


def test_the_sets_of_states_do_not_contradict_each_other() -> None:
    assert FAILED < TERMINAL
    assert not (CLAIMABLE | AWAITING_RESULT) & TERMINAL
    assert not CLAIMABLE & AWAITING_RESULT
    assert State.TRIGGERED not in CLAIMABLE


def test_a_run_is_unreachable_if_no_connection_was_made() -> None:
    assert {Reason.DNS, Reason.TLS, Reason.CONNECT} == UNREACHABLE


def test_lateness_counts_from_the_planned_instant_to_the_first_start() -> None:
    assert run().lateness_ms is None
    assert run(first_started_at=NOW + timedelta(milliseconds=412), started_at=NOW + 9 * SECOND).lateness_ms == 412
    assert run(started_at=NOW - SECOND).lateness_ms == 0


def test_a_run_that_never_started_is_not_called_late() -> None:
    assert success_reason(run()) is Reason.ON_TIME


def test_the_native_id_names_its_ledger_partition() -> None:
    assert run().id == f"schedule-1_{run().uuid}"
    assert run(schedule_id=None).id == f"job-1_{run().uuid}"
