"""The gate, row by row of its tables (protocols 2 and 5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.collection import Terms
from sweephand.domain.job import ActionSpec, Pause
from sweephand.domain.occurrences.generations import Generation
from sweephand.domain.run import CLAIMABLE, REACTIONS, TERMINAL, Kind, LostCall, Reason, State
from sweephand.domain.runs.admission import (
    FOLLOWS,
    MAX_AGE,
    MAX_LOST_LAST,
    Acknowledge,
    Claim,
    Defer,
    Drop,
    Effects,
    End,
    EndLost,
    EndUnanswered,
    FailAttempt,
    Later,
    RunContext,
    SendPointer,
    TakeOver,
    admit,
    needs_left,
)
from sweephand.domain.schedule import ScheduleState
from sweephand.schedules.timing import parse
from tests.unit.domain.nouns import DAY, HOUR, MINUTE, NOW, SECOND, job, pointer, run, schedule


def context(**members: Any) -> RunContext:
    return RunContext(**{"job": job(), "schedule": schedule(), "run": None, **members})


def gate(at: datetime = NOW, *, message: Any = None, **members: Any) -> Any:
    return admit(message or pointer(), context(**members), at)


# A run whose row does not exist yet


def test_a_due_occurrence_of_an_existing_job_runs() -> None:
    assert gate() == Claim(1)


@pytest.mark.parametrize("gone", [{"job": None}, {"schedule": None}, {"job": None, "schedule": None}])
def test_without_its_job_or_schedule_a_message_is_dropped_and_leaves_no_row(gone: dict[str, Any]) -> None:
    assert isinstance(gate(**gone), Drop)


@pytest.mark.parametrize("kind", [Kind.MANUAL, Kind.ERROR_ACTION, Kind.BACKFILL])
def test_messages_of_other_kinds_without_a_row_have_no_owner(kind: Kind) -> None:
    assert isinstance(gate(message=pointer(kind=kind)), Drop)


def test_a_later_attempt_of_a_deleted_row_has_no_owner() -> None:
    assert isinstance(gate(message=pointer(attempt=2)), Drop)


def test_a_message_before_its_instant_waits_for_it() -> None:
    assert gate(NOW - SECOND) == Later(NOW)
    assert gate(NOW - timedelta(milliseconds=1)) == Later(NOW)
    assert gate(NOW) == Claim(1)


def test_an_instant_up_to_the_end_of_its_generation_runs() -> None:
    changed = schedule(generation=2, ended_at={1: int(NOW.timestamp())})

    assert gate(schedule=changed) == Claim(1)


def test_an_instant_after_the_end_of_its_generation_is_dropped() -> None:
    changed = schedule(generation=2, ended_at={1: int(NOW.timestamp()) - 1})

    assert isinstance(gate(schedule=changed), Drop)


def test_a_plan_that_is_no_longer_listed_is_judged_by_its_own_row() -> None:
    long_after = schedule(generation=40, ended_at={n: int(NOW.timestamp()) + n for n in range(20, 40)})
    left = partial(Generation, 1, long_after.packed, NOW - HOUR)

    assert needs_left(pointer(), context(schedule=long_after), NOW)
    assert gate(schedule=long_after, left=left(NOW)) == Claim(1)
    assert isinstance(gate(schedule=long_after, left=left(NOW - SECOND)), Drop)
    assert isinstance(gate(schedule=long_after, left=None), Drop)


@pytest.mark.parametrize(("after_s", "deferred"), [(6, False), (7, True)])
def test_an_occurrence_after_an_open_change_waits_until_its_schedule_follows(after_s: int, deferred: bool) -> None:
    asked = NOW.replace(microsecond=0) - after_s * SECOND
    changing = job(open_change=7, modified_at=asked)
    unchanged, followed = (schedule(modified_at=asked - n * HOUR) for n in (1, 0))

    assert gate(job=changing, schedule=unchanged) == (Defer(NOW + FOLLOWS) if deferred else Claim(1))
    assert gate(job=changing, schedule=followed) == Claim(1)
    assert gate(job=job(modified_at=asked), schedule=unchanged) == Claim(1)


def test_a_message_of_a_newer_generation_runs() -> None:
    """The row was read strongly: no message is newer. If one were, it is not for the gate to lose it."""
    assert gate(message=pointer(generation=2)) == Claim(1)


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"terms": Terms(enabled=False)}, Reason.DISABLED),
        ({"job": job(active=False)}, Reason.DISABLED),
        ({"schedule": schedule(state=ScheduleState.INACTIVE)}, Reason.DISABLED),
        ({"schedule": schedule(state=ScheduleState.BROKEN)}, Reason.DISABLED),
        ({"job": job(pause=Pause(NOW))}, Reason.PAUSED),
        ({"schedule": schedule(state=ScheduleState.PAUSED)}, Reason.PAUSED),
        ({"job": job(active=False, pause=Pause(NOW))}, Reason.DISABLED),
    ],
)
def test_an_occurrence_that_must_not_run_is_skipped_with_a_reason(members: dict[str, Any], reason: Reason) -> None:
    assert gate(**members) == End(State.SKIPPED, reason)


@pytest.mark.parametrize("state", [ScheduleState.ENDING, ScheduleState.COMPLETED])
def test_the_last_occurrences_of_an_ending_series_run(state: ScheduleState) -> None:
    assert gate(schedule=schedule(state=state)) == Claim(1)


def test_an_occurrence_removed_by_a_change_is_dropped_and_not_skipped() -> None:
    paused = schedule(generation=2, ended_at={1: int(NOW.timestamp()) - 1}, state=ScheduleState.PAUSED)

    assert isinstance(gate(schedule=paused), Drop)


def test_a_message_over_four_days_late_expires_without_acting() -> None:
    decided = pointer(decided=True)

    assert gate(NOW + MAX_AGE, message=decided) == Claim(1)
    assert gate(NOW + MAX_AGE + SECOND, message=decided) == End(State.EXPIRED, Reason.MAX_AGE)


TOO_LATE = End(State.MISSED, Reason.SERVICE_OUTAGE)


def test_a_late_message_is_judged_by_the_misfire_policy() -> None:
    almost = 20 * MINUTE - SECOND

    assert gate(NOW + almost) == Claim(1)
    assert gate(NOW + 20 * MINUTE) == TOO_LATE
    assert gate(NOW + 2 * MINUTE - SECOND, schedule=schedule(misfire="latest")) == Claim(1)
    assert gate(NOW + 2 * MINUTE, schedule=schedule(misfire="latest")) == TOO_LATE


def test_the_last_occurrence_of_a_series_runs_however_late() -> None:
    once = schedule(packed=parse({"at": "2027-03-01T12:00:00Z"}, now=NOW).packed)

    assert gate(NOW + DAY, schedule=once) == Claim(1)


def test_decided_occurrences_are_not_judged_again() -> None:
    assert gate(NOW + DAY, message=pointer(decided=True)) == Claim(1)


@pytest.mark.parametrize("unreadable", [{"packed": "{"}, {"misfire": "unheard"}])
def test_a_late_message_of_a_schedule_that_cannot_be_read_still_runs(unreadable: dict[str, str]) -> None:
    assert gate(NOW + DAY, schedule=schedule(**unreadable)) == Claim(1)


def test_occurrences_left_to_the_catch_up_are_dropped_unless_decided() -> None:
    split = schedule(missed_to=NOW)

    assert isinstance(gate(schedule=split), Drop)
    assert gate(schedule=split, message=pointer(decided=True)) == Claim(1)
    assert gate(schedule=schedule(missed_to=NOW - SECOND)) == Claim(1)


# A run that has a row: neither generation nor state of the schedule count any more


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_finished_run_is_never_claimed_again(state: State) -> None:
    finished = run(state, wake_at=NOW - MINUTE, not_before=NOW - MINUTE)

    assert gate(run=finished) == Effects()
    assert gate(run=finished, job=None, schedule=None) == Effects()


@pytest.mark.parametrize("state", sorted(set(State) - TERMINAL - {State.SCHEDULED}))
def test_an_open_run_whose_schedule_is_gone_is_cancelled(state: State) -> None:
    for gone in ({"job": None}, {"schedule": None}):
        assert gate(run=run(state), **gone) == End(State.CANCELLED, Reason.OWNER_GONE)


def test_an_active_call_of_a_deleted_schedule_is_awaited() -> None:
    for gone in ({"job": None}, {"schedule": None}):
        assert gate(run=run(lease_until=NOW + SECOND), **gone) == Later(NOW + SECOND)
        assert gate(run=run(lease_until=NOW), **gone) == End(State.CANCELLED, Reason.OWNER_GONE)


def test_a_run_of_the_job_itself_needs_no_schedule() -> None:
    manual = run(State.QUEUED, schedule_id=None, kind=Kind.MANUAL)

    assert gate(run=manual, schedule=None, message=pointer(schedule=None, kind=Kind.MANUAL)) == Claim(1)


def test_a_live_lease_is_awaited() -> None:
    assert gate(run=run(lease_until=NOW + SECOND)) == Later(NOW + SECOND)


RETRIED = job(action=ActionSpec("http", {}, {"type": "fixed", "maxRetries": 4, "delaySeconds": 1}))
LOST_FOR_GOOD = FailAttempt(State.UNKNOWN, Reason.EXECUTOR_LOST)


def lost_in(*attempts: int) -> tuple[LostCall, ...]:
    return tuple(LostCall(attempt, NOW + n * SECOND) for n, attempt in enumerate(attempts))


def test_an_expired_lease_is_taken_over_once_if_another_attempt_can_follow() -> None:
    assert gate(run=run(lease_until=NOW), job=RETRIED) == TakeOver()
    assert gate(run=run(lease_until=NOW, lost_calls=lost_in(1)), job=RETRIED) == LOST_FOR_GOOD


def test_the_last_attempt_is_taken_over_as_often_as_its_message_can_arrive() -> None:
    for lost in range(MAX_LOST_LAST):
        assert gate(run=run(lease_until=NOW, lost_calls=lost_in(*[1] * lost))) == TakeOver()
    assert gate(run=run(lease_until=NOW, lost_calls=lost_in(*[1] * MAX_LOST_LAST))) == EndLost()


def test_a_lease_of_another_attempt_that_was_lost_counts_for_that_attempt_only() -> None:
    assert gate(run=run(lease_until=NOW, attempt=3, lost_calls=lost_in(1, 2)), job=RETRIED) == TakeOver()
    assert gate(run=run(lease_until=NOW, attempt=2, lost_calls=lost_in(1, 2)), job=RETRIED) == LOST_FOR_GOOD


@pytest.mark.parametrize("attempt", [1, 4])
def test_a_missing_result_is_a_failed_attempt_if_the_policy_says_so(attempt: int) -> None:
    waits = run(State.ACK_RECVD, attempt=attempt, deadline_at=NOW)
    asks = replace(RETRIED, policies={"onNoResult": "retry"})

    assert gate(run=waits, job=asks) == FailAttempt(State.UNKNOWN, Reason.DEADLINE)
    assert gate(run=waits, job=RETRIED) == EndUnanswered(State.UNKNOWN)
    assert gate(run=replace(waits, attempt=5), job=asks) == EndUnanswered(State.UNKNOWN)
    assert gate(run=replace(waits, task="arn"), job=asks) == EndUnanswered(State.TIMEOUT)


def test_at_most_once_never_takes_over() -> None:
    assert gate(run=run(lease_until=NOW), job=job(policies={"delivery": "at_most_once"})) == EndLost()


@pytest.mark.parametrize("state", sorted(CLAIMABLE))
def test_a_waiting_row_is_claimed_for_its_attempt_when_it_is_due(state: State) -> None:
    third = run(state, attempt=3, not_before=NOW)

    assert gate(run=third, message=pointer(attempt=3)) == Claim(3)
    assert gate(NOW - SECOND, run=third, message=pointer(attempt=3)) == Later(NOW)


def test_a_row_with_work_left_runs_even_if_its_schedule_changed_or_stopped() -> None:
    for now_is in (schedule(generation=9), schedule(state=ScheduleState.PAUSED), schedule(missed_to=NOW + HOUR)):
        assert gate(run=run(State.RETRY_WAIT, attempt=2), message=pointer(attempt=2), schedule=now_is) == Claim(2)
    late = NOW + 9 * DAY
    assert gate(late, run=run(State.RETRY_WAIT, attempt=2), message=pointer(attempt=2)) == Claim(2)


def test_an_old_copy_sends_the_pointer_of_a_retry_that_has_no_wake_row() -> None:
    assert gate(run=run(State.RETRY_WAIT, attempt=2, not_before=NOW + MINUTE)) == SendPointer()


def test_an_old_copy_leaves_a_retry_to_its_wake_row() -> None:
    far = run(State.RETRY_WAIT, attempt=2, not_before=NOW + HOUR, wake_at=NOW + HOUR)

    assert isinstance(gate(run=far), Acknowledge)


def test_an_early_message_of_a_retry_is_left_to_the_pending_wake_row() -> None:
    far = run(State.RETRY_WAIT, attempt=2, not_before=NOW + HOUR, wake_at=NOW + HOUR)

    assert isinstance(gate(run=far, message=pointer(attempt=2)), Acknowledge)


def test_the_wake_rows_own_pointer_waits_where_this_clock_is_behind() -> None:
    """The sweep has moved the wake 15 minutes on: to acknowledge here would put the retry off by as much."""
    spoken = run(State.RETRY_WAIT, attempt=2, not_before=NOW + SECOND, wake_at=NOW + 15 * MINUTE)

    assert gate(run=spoken, message=pointer(attempt=2)) == Later(NOW + SECOND)


@pytest.mark.parametrize("state", [State.ACK_RECVD, State.ACK_NOT_RECVD])
def test_a_run_that_waits_for_its_callback_ends_at_its_deadline(state: State) -> None:
    waiting = run(state, deadline_at=NOW, wake_at=NOW)

    assert gate(run=waiting) == EndUnanswered(State.UNKNOWN)
    assert gate(run=replace(waiting, task="arn:task")) == EndUnanswered(State.TIMEOUT)
    assert isinstance(gate(NOW - SECOND, run=waiting), Acknowledge)


def test_the_deadlines_own_pointer_waits_where_this_clock_is_behind() -> None:
    spoken = run(State.ACK_RECVD, deadline_at=NOW + SECOND, wake_at=NOW + 15 * MINUTE)

    assert gate(run=spoken) == Later(NOW + SECOND)


# Whatever comes


instants = st.integers(-10_000_000, 10_000_000).map(lambda n: NOW + timedelta(milliseconds=n))
maybe_instants = st.none() | instants
runs = st.builds(
    run,
    st.sampled_from(sorted(set(State) - {State.SCHEDULED})),
    attempt=st.integers(1, 3),
    lost_calls=st.lists(st.builds(LostCall, st.integers(1, 3), instants), max_size=2).map(tuple),
    lease_until=maybe_instants,
    not_before=maybe_instants,
    deadline_at=maybe_instants,
    wake_at=maybe_instants,
)
schedules = st.builds(
    schedule,
    state=st.sampled_from(sorted(ScheduleState)),
    generation=st.integers(1, 4),
    ended_at=st.dictionaries(st.integers(1, 4), st.integers(0, 2**33)),
    missed_to=maybe_instants,
)
messages = st.builds(
    pointer, attempt=st.integers(1, 3), generation=st.integers(0, 4), decided=st.booleans(), kind=st.sampled_from(Kind)
)


@given(messages, st.none() | schedules, st.none() | runs, st.booleans(), instants)
def test_nothing_acts_early_twice_or_without_an_owner(
    message: Any, there: Any, row: Any, enabled: Any, now: Any
) -> None:
    answer = admit(message, RunContext(job(), there, row, Terms(enabled=enabled)), now)

    if isinstance(answer, Later):
        assert answer.at > now
    if isinstance(answer, Claim | TakeOver):
        assert there is not None
        assert row is None or not row.finished
    if isinstance(answer, Claim) and row is None:
        assert message.instant <= now
        assert enabled
        assert there.state not in {ScheduleState.PAUSED, ScheduleState.INACTIVE, ScheduleState.BROKEN}
    if isinstance(answer, Claim) and row is not None:
        assert row.state in CLAIMABLE
        assert answer.attempt == row.attempt
        assert row.not_before is None or row.not_before <= now
    if isinstance(answer, TakeOver):
        assert row.lost_in_attempt < MAX_LOST_LAST
        assert row.lease_until is None or row.lease_until <= now
    if row is not None and row.finished:
        assert answer == Effects()


@pytest.mark.parametrize("state", [State.QUEUED, State.RETRY_WAIT])
@pytest.mark.parametrize("kind", sorted(REACTIONS))
def test_a_reaction_whose_action_is_gone_is_cancelled(kind: Kind, state: State) -> None:
    waiting = run(state, kind=kind)

    assert admit(pointer(), RunContext(job(), schedule(), waiting), NOW) == End(State.CANCELLED, Reason.OWNER_GONE)


# After a long time


def test_a_pointer_of_the_audit_does_nothing_after_its_time() -> None:
    audited = pointer(decided=True, not_after=NOW + HOUR)

    assert gate(NOW + HOUR, message=audited) == Claim(1)
    assert isinstance(gate(NOW + HOUR + SECOND, message=audited), Drop)
    for state in CLAIMABLE:
        assert isinstance(gate(NOW + HOUR + SECOND, message=audited, run=run(state)), Drop)
    assert gate(NOW + HOUR + SECOND, message=audited, run=run(State.SUCCESS)) == Effects()


def test_a_run_whose_row_has_expired_is_not_repeated() -> None:
    """Its wake, its effects or its next attempt was sent while the row was there."""
    assert isinstance(gate(message=pointer(decided=True, recorded=True)), Drop)
    assert gate(message=pointer(recorded=True), run=run(State.QUEUED)) == Claim(1)


def test_a_call_that_may_have_succeeded_days_ago_is_not_repeated() -> None:
    lost, days_later = run(lease_until=NOW), NOW + MAX_AGE

    assert gate(days_later, run=lost) == TakeOver()
    assert gate(days_later + SECOND, run=lost) == EndLost()
    assert gate(days_later + SECOND, run=lost, job=RETRIED) == EndLost()


def test_a_result_that_did_not_come_days_ago_is_not_awaited_by_another_attempt() -> None:
    again = replace(RETRIED, policies={"onNoResult": "retry"})
    silent = run(State.ACK_RECVD, deadline_at=NOW)

    assert isinstance(gate(NOW + MAX_AGE, run=silent, job=again), FailAttempt)
    assert gate(NOW + MAX_AGE + SECOND, run=silent, job=again) == EndUnanswered(State.UNKNOWN)
