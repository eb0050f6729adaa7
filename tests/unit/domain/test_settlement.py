from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.job import ActionSpec
from sweephand.domain.run import Kind, Outcome, Reason, Run, State, Verdict
from sweephand.domain.runs.settlement import EXCERPT_BYTES, FALLBACK, Settlement, excerpt, failure_state, settle
from tests.unit.domain.nouns import MINUTE, NOW, SECOND, run

HELD = run(lease_owner="me", lease_until=NOW + MINUTE, started_at=NOW, first_started_at=NOW)
OK = Outcome(Verdict.SUCCEEDED, http_status=200, answer="fine")
BUSY = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=503, message="busy", retryable=True)
ODD_NOW = NOW + timedelta(milliseconds=1_234)


def action(delay_s: int = 0, retries: int = 3, **outcome: Any) -> ActionSpec:
    retry = {"type": "fixed", "delaySeconds": delay_s, "maxRetries": retries} if retries else {"type": "none"}
    return ActionSpec("http", {"outcome": outcome}, retry)


def after(outcome: Outcome, held: Run = HELD, *, now: datetime = ODD_NOW, **made: Any) -> Settlement:
    return settle(held, outcome, action(**made), now, lambda _low, high: high, 1_800)


def test_a_success_ends_the_run_and_counts_nothing() -> None:
    settled = after(OK)

    assert (settled.run.state, settled.run.reason) == (State.SUCCESS, Reason.ON_TIME)
    assert (settled.run.http_status, settled.run.answer, settled.run.finished_at) == (200, "fine", ODD_NOW)
    assert (settled.counts, settled.message_at) == ({}, None)


def test_a_run_is_late_if_it_began_over_five_seconds_after_its_instant() -> None:
    on_the_edge = replace(HELD, first_started_at=NOW + 5 * SECOND, started_at=NOW + 9 * MINUTE)

    assert after(OK, on_the_edge, now=NOW + 10 * MINUTE).run.reason is Reason.ON_TIME
    late = replace(on_the_edge, first_started_at=NOW + timedelta(milliseconds=5_001))
    assert after(OK, late).run.reason is Reason.LATE


@pytest.mark.parametrize("outcome", [OK, BUSY, Outcome(Verdict.ACCEPTED), Outcome(Verdict.SILENT)])
@pytest.mark.parametrize("retries", [0, 3])
def test_every_outcome_releases_the_lease(outcome: Outcome, retries: int) -> None:
    settled = after(outcome, retries=retries).run

    assert settled.state is not State.TRIGGERED
    assert (settled.lease_owner, settled.lease_until) == (None, None)


@pytest.mark.parametrize(
    ("verdict", "state"), [(Verdict.ACCEPTED, State.ACK_RECVD), (Verdict.SILENT, State.ACK_NOT_RECVD)]
)
def test_a_callback_is_waited_for_until_its_deadline_on_a_whole_second(verdict: Verdict, state: State) -> None:
    settled = after(Outcome(verdict, http_status=202), callbackTimeoutSeconds=120)

    waiting = settled.run
    assert waiting.state is state
    assert waiting.deadline_at == waiting.wake_at == NOW + 122 * SECOND
    assert (waiting.finished_at, settled.message_at) == (None, None)


def test_a_near_deadline_is_sent_as_a_message_and_its_row_replaces_a_lost_one() -> None:
    settled = after(Outcome(Verdict.ACCEPTED, http_status=202), callbackTimeoutSeconds=60)

    assert settled.run.deadline_at == settled.message_at == NOW + 62 * SECOND
    assert settled.run.wake_at == NOW + 62 * SECOND + FALLBACK


def test_a_callback_has_half_an_hour_by_default() -> None:
    assert after(Outcome(Verdict.ACCEPTED)).run.deadline_at == NOW + timedelta(seconds=1_802)


def test_a_failure_with_tries_left_waits_for_the_next_attempt() -> None:
    settled = after(BUSY, delay_s=30)

    assert (settled.run.state, settled.run.reason) == (State.RETRY_WAIT, Reason.HTTP_STATUS)
    assert (settled.run.attempt, settled.run.not_before) == (2, ODD_NOW + 30 * SECOND)
    assert settled.run.wake_at is None
    assert settled.message_at == ODD_NOW + 30 * SECOND
    assert settled.counts == {"failed_attempts": 1}


def test_a_retry_within_15_minutes_is_a_message_and_a_later_one_waits_as_a_row() -> None:
    near, far = after(BUSY, delay_s=900), after(BUSY, delay_s=901)

    assert (near.message_at, near.run.wake_at) == (ODD_NOW + 15 * MINUTE, None)
    assert far.message_at is None


def test_a_row_wakes_on_the_second_at_which_its_retry_is_due() -> None:
    """The index knows whole seconds: rounded down, the pointer would come before the retry may be claimed."""
    far = after(BUSY, delay_s=901).run

    assert far.wake_at == far.not_before == NOW + 903 * SECOND


def test_a_run_with_a_wake_row_still_sends_the_message_of_a_near_retry() -> None:
    """A manual run has a wake row from its beginning: waiting for it would make a retry of 1 s last a minute."""
    manual = replace(HELD, kind=Kind.MANUAL, wake_at=NOW + MINUTE)

    settled = after(BUSY, manual, delay_s=1)

    assert settled.message_at == ODD_NOW + SECOND
    assert settled.run.wake_at == NOW + MINUTE


def test_the_last_failure_ends_the_run() -> None:
    settled = after(BUSY, replace(HELD, attempt=4))

    assert (settled.run.state, settled.run.reason) == (State.ERROR, Reason.HTTP_STATUS)
    assert (settled.run.message, settled.run.finished_at) == ("busy", ODD_NOW)
    assert settled.counts == {"failed_attempts": 1, "failed": 1}
    assert (settled.message_at, settled.run.attempt) == (None, 4)


def test_a_failure_that_exceeds_its_greatest_age_says_so() -> None:
    spec = replace(action(delay_s=60), retry={"type": "fixed", "delaySeconds": 60, "maxAgeSeconds": 30})

    settled = settle(HELD, BUSY, spec, NOW, lambda low, _high: low, 1_800)

    assert (settled.run.state, settled.run.reason) == (State.ERROR, Reason.MAX_AGE)


@pytest.mark.parametrize("kind", sorted(set(Kind) - {Kind.SCHEDULED}))
def test_only_planned_occurrences_are_counted(kind: Kind) -> None:
    assert after(BUSY, replace(HELD, kind=kind)).counts == {}
    assert after(BUSY, replace(HELD, kind=kind), retries=0).counts == {}


@pytest.mark.parametrize(
    ("reason", "status", "state"),
    [
        (Reason.HTTP_STATUS, 400, State.REQUEST_ERROR),
        (Reason.HTTP_STATUS, 499, State.REQUEST_ERROR),
        (Reason.HTTP_STATUS, 500, State.ERROR),
        (Reason.HTTP_STATUS, 302, State.ERROR),
        (Reason.DNS, None, State.REQUEST_ERROR),
        (Reason.TLS, None, State.REQUEST_ERROR),
        (Reason.CONNECT, None, State.REQUEST_ERROR),
        (Reason.GUARD, None, State.REQUEST_ERROR),
        (Reason.BAD_PAYLOAD, None, State.REQUEST_ERROR),
        (Reason.NO_ANSWER, None, State.ERROR),
        (Reason.DEADLINE, None, State.ERROR),
    ],
)
def test_a_refused_or_undelivered_request_is_a_request_error(reason: Reason, status: int | None, state: State) -> None:
    assert failure_state(reason, status) is state


@given(st.text())
def test_the_excerpt_is_the_beginning_and_splits_no_character(answer: str) -> None:
    shown = excerpt(answer)

    if not answer:
        assert shown is None
    else:
        assert shown is not None
        assert answer.startswith(shown)
        assert EXCERPT_BYTES - 4 < len(shown.encode()) <= EXCERPT_BYTES or shown == answer
