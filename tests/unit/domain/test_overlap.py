"""Turns: every answer of the contest for a slot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweephand.domain.jobs import policies
from sweephand.domain.run import TERMINAL, Kind, Run, State
from sweephand.domain.runs.admission import Claim, RunContext, admit
from sweephand.domain.runs.overlap import (
    Busy,
    Clear,
    Overlap,
    Queue,
    Replace,
    Slot,
    Take,
    Wait,
    contend,
    unattended,
    without,
)
from tests.unit.domain.nouns import JOB_ID, MINUTE, NOW, SCHEDULE_ID, TENANT, job, pointer, run, schedule

FREE = Slot(TENANT, JOB_ID, SCHEDULE_ID)
ME = run(State.TRIGGERED, uuid="me")
A, B = run(State.ACK_RECVD, uuid="a", instant=NOW - MINUTE), run(State.QUEUED, uuid="b", instant=NOW - MINUTE)
NOT_ALLOW = [policy for policy in Overlap if policy is not Overlap.ALLOW]


def slot(active: str | None = None, queued: str | None = None) -> Slot:
    return Slot(TENANT, JOB_ID, SCHEDULE_ID, active, queued)


def contest(policy: Overlap, there: Slot, *rows: Run, queued_before: bool = False) -> object:
    return contend(policy, ME, there, {row.uuid: row for row in rows}, queued_before=queued_before)


@pytest.mark.parametrize("policy", Overlap)
@pytest.mark.parametrize("queued_before", [True, False])
def test_a_free_slot_or_the_runs_own_slot_is_taken(policy: Overlap, queued_before: bool) -> None:
    for there in (FREE, slot("me"), slot(None, "me")):
        assert contest(policy, there, queued_before=queued_before) == Take(slot("me"))


@pytest.mark.parametrize("policy", NOT_ALLOW)
def test_ended_runs_are_cleared_first(policy: Overlap) -> None:
    for state in TERMINAL:
        ended = run(state, uuid="a")
        assert contest(policy, slot("a"), ended) == Clear("a")
        assert contest(policy, slot("a", "me"), ended, queued_before=True) == Clear("a")
        assert contest(policy, slot("x", "a"), run(State.TRIGGERED, uuid="x"), ended) == Clear("a")
    assert contest(policy, slot("a")) == Clear("a")


def test_a_taken_slot_is_answered_by_the_policy() -> None:
    assert contest(Overlap.SKIP, slot("a"), A) == Busy(A)
    assert contest(Overlap.QUEUE_ONE, slot("a"), A) == Queue(slot("a", "me"), A)
    assert contest(Overlap.QUEUE_ONE, slot("a", "b"), A, B) == Busy(A)
    assert contest(Overlap.REPLACE, slot("a"), A) == Replace(slot("me"), (A,))
    assert contest(Overlap.REPLACE, slot("a", "b"), A, B) == Replace(slot("me"), (A, B))


def test_a_later_run_is_not_replaced_by_an_earlier_one() -> None:
    later = run(State.TRIGGERED, uuid="a", instant=NOW + MINUTE)

    assert contest(Overlap.REPLACE, slot("a"), later) == Busy(later)


@pytest.mark.parametrize("policy", Overlap)
def test_a_queued_run_waits_under_any_policy(policy: Overlap) -> None:
    for queued_before in (True, False):  # a row that was read before it was queued
        assert contest(policy, slot("a", "me"), A, queued_before=queued_before) == Wait(A)


def test_an_end_gives_the_turn_to_the_run_that_waits_or_frees_the_slot() -> None:
    assert without(slot("a", "b"), "a", B) == slot("b")
    assert without(slot("a", "b"), "a", None) == FREE
    assert without(slot("a"), "a", None).empty
    assert without(slot("a", "b"), "b", None) == slot("a")
    assert without(slot("a", "b"), "c", None) == slot("a", "b")


@pytest.mark.parametrize("state", sorted(set(State) - {State.QUEUED}))
def test_only_a_waiting_run_gets_the_turn(state: State) -> None:
    assert without(slot("a", "b"), "a", run(state, uuid="b")) == FREE


def test_a_holder_is_unattended_once_its_lease_deadline_or_retry_has_passed() -> None:
    past, ahead = NOW - MINUTE, NOW + MINUTE
    assert unattended(run(State.TRIGGERED, lease_until=past), NOW)
    assert not unattended(run(State.TRIGGERED, lease_until=ahead), NOW)
    assert unattended(run(State.ACK_RECVD, deadline_at=past), NOW)
    assert not unattended(run(State.ACK_RECVD, deadline_at=ahead), NOW)
    assert unattended(run(State.RETRY_WAIT, not_before=past), NOW)
    assert not unattended(run(State.RETRY_WAIT, not_before=ahead), NOW)
    assert unattended(run(State.QUEUED), NOW)


# Runs that need a turn


SKIPS = job(policies={"overlap": "skip"})


def test_an_occurrence_needs_the_slot_if_its_job_or_schedule_says_so() -> None:
    allows = schedule(policies={"overlap": "allow"})
    replaces = schedule(policies={"overlap": "replace"})

    assert admit(pointer(), RunContext(SKIPS, schedule(), None), NOW) == Claim(1, contested=True)
    assert admit(pointer(), RunContext(SKIPS, allows, None), NOW) == Claim(1)
    assert admit(pointer(), RunContext(job(), replaces, None), NOW) == Claim(1, contested=True)


@pytest.mark.parametrize(
    ("there", "asks"),
    [
        (run(State.QUEUED, kind=Kind.MANUAL), True),
        (run(State.QUEUED, kind=Kind.BACKFILL), True),
        (run(State.QUEUED, kind=Kind.ERROR_ACTION), False),
        (run(State.RETRY_WAIT, attempt=2), False),
    ],
)
def test_a_row_needs_the_slot_before_its_first_attempt_unless_it_is_an_error_action(there: Run, asks: bool) -> None:
    message = pointer(attempt=there.attempt)
    alarmed = replace(SKIPS, error_action=SKIPS.action)

    assert admit(message, RunContext(alarmed, schedule(), there), NOW) == Claim(there.attempt, contested=asks)


def test_a_queued_run_needs_the_slot_under_any_policy() -> None:
    queued = run(State.QUEUED, slotted=True)

    assert admit(pointer(), RunContext(job(), schedule(), queued), NOW) == Claim(1, contested=True)


def test_a_run_of_the_job_itself_needs_no_slot() -> None:
    own = run(State.QUEUED, kind=Kind.MANUAL, schedule_id=None)

    assert admit(pointer(schedule=None), RunContext(SKIPS, None, own), NOW) == Claim(1)


def test_the_api_knows_every_policy() -> None:
    assert policies.SCHEMA["overlap"]["enum"] == [policy.value for policy in Overlap]
