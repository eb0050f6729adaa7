"""Claims and ends: each clause of their conditions, shown by the case that needs it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.run import AWAITING_RESULT, CLAIMABLE, TERMINAL, Kind, LostCall, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Refused, Table, Written
from sweephand.server.store.dynamo.table import RunItem, StatsItem
from sweephand.server.store.runs import ledger, run_rows
from sweephand.server.store.runs.attempts import attempt_item
from sweephand.server.store.runs.ledger import Lease
from tests.support.stage import Stage
from tests.unit.domain.nouns import JOB_ID, MINUTE, NOW, SCHEDULE_ID, SECOND, TENANT, run

OPEN = sorted(set(State) - TERMINAL - {State.SCHEDULED})
LEASE = Lease("me", NOW, NOW + 25 * SECOND)
HERE: dict[str, Any] = {"shards": 2, "lane": Lane.FAST}


@pytest.fixture
def table(stage: Stage) -> Table:
    return stage.world.table


def stored(table: Table, one: Run) -> Run:
    there = ledger.read(table, TENANT, SCHEDULE_ID, one.uuid)
    assert there is not None
    return there


def put(table: Table, state: State = State.TRIGGERED, **members: Any) -> Run:
    one = run(state, **members)
    table.put(run_rows.item_of(one, **HERE))
    return stored(table, one)


# Claims


def test_the_first_claim_of_an_occurrence_is_its_row(table: Table) -> None:
    mine = run(lease_owner="me", lease_until=NOW + 25 * SECOND, started_at=NOW, first_started_at=NOW)

    assert ledger.claim_first(table, mine, **HERE) == Written()
    assert stored(table, mine) == mine

    second = ledger.claim_first(table, replace(mine, lease_owner="other"), **HERE)
    assert isinstance(second, Refused)
    assert ledger.run_in(second) == mine


@pytest.mark.parametrize("state", sorted(CLAIMABLE))
def test_a_row_that_waits_is_claimed_when_its_time_has_come(table: Table, state: State) -> None:
    waiting = put(table, state, attempt=2, not_before=NOW, first_started_at=NOW - MINUTE, wake_at=NOW)

    assert ledger.claim_again(table, waiting, LEASE, 2) == Written()

    mine = stored(table, waiting)
    assert (mine.state, mine.lease_owner, mine.lease_until, mine.started_at) == (
        State.TRIGGERED,
        "me",
        LEASE.until,
        NOW,
    )
    assert (mine.not_before, mine.reason, mine.first_started_at) == (None, None, NOW - MINUTE)
    assert mine.wake_at == NOW  # a claim leaves the wake row: it goes after the effects


@pytest.mark.parametrize("state", sorted(set(OPEN) - CLAIMABLE - {State.HELD}) + sorted(TERMINAL))
def test_a_row_in_another_state_is_not_claimed(table: Table, state: State) -> None:
    there = put(table, state, lease_owner="other", lease_until=NOW - SECOND)

    assert isinstance(ledger.claim_again(table, there, LEASE, 1), Refused)
    assert stored(table, there) == there


@pytest.mark.parametrize("attempt", [1, 3])
def test_a_row_at_another_attempt_is_not_claimed(table: Table, attempt: int) -> None:
    there = put(table, State.RETRY_WAIT, attempt=2)

    assert isinstance(ledger.claim_again(table, there, LEASE, attempt), Refused)


def test_a_row_is_not_claimed_before_its_time(table: Table) -> None:
    there = put(table, State.RETRY_WAIT, attempt=2, not_before=NOW + timedelta(milliseconds=1))

    assert isinstance(ledger.claim_again(table, there, LEASE, 2), Refused)


def test_a_row_that_is_not_there_is_not_claimed_again(table: Table) -> None:
    assert ledger.claim_again(table, run(State.QUEUED), LEASE, 1) == Refused(None)


def test_a_lease_that_is_over_is_taken_over(table: Table) -> None:
    there = put(table, lease_owner="dead", lease_until=NOW - SECOND, attempt=2, started_at=NOW - MINUTE)

    assert ledger.take_over(table, there, LEASE) == Written()

    mine = stored(table, there)
    assert (mine.lease_owner, mine.lease_until, mine.started_at, mine.attempt) == ("me", LEASE.until, LEASE.taken_at, 2)
    assert mine.lost_calls == (LostCall(2, NOW - MINUTE),)


def test_calls_that_were_lost_come_back_in_their_order(table: Table) -> None:
    there = put(table, lease_owner="dead", lease_until=NOW - SECOND, attempt=10, started_at=NOW - MINUTE)
    earlier = replace(there, attempt=9, started_at=NOW - 2 * MINUTE)
    table.update(*run_rows.key_of(there), [RunItem.lost_calls.add({run_rows.lost_text(LostCall.of(earlier))})])

    ledger.take_over(table, there, LEASE)

    assert stored(table, there).lost_calls == (LostCall(9, NOW - 2 * MINUTE), LostCall(10, NOW - MINUTE))


@pytest.mark.parametrize(
    "moved_on",
    [
        {"lease_owner": "another"},
        {"lease_until": NOW + MINUTE},
        {"attempt": 2},
        {"state": State.RETRY_WAIT, "lease_owner": None, "lease_until": None},
        {"state": State.SUCCESS, "lease_owner": None, "lease_until": None},
        {"state": State.ACK_RECVD},
    ],
)
def test_a_lease_is_taken_over_only_as_it_was_read(table: Table, moved_on: dict[str, Any]) -> None:
    read = run(lease_owner="dead", lease_until=NOW - SECOND)
    put(table, **{"state": State.TRIGGERED, "lease_owner": "dead", "lease_until": NOW - SECOND, **moved_on})

    assert isinstance(ledger.take_over(table, read, LEASE), Refused)


# Ends


@pytest.mark.parametrize("state", OPEN)
def test_a_success_ends_whatever_is_open_with_or_without_the_lease(table: Table, state: State) -> None:
    there = put(table, state, lease_owner="another" if state is State.TRIGGERED else None)
    done = replace(there, state=State.SUCCESS, reason=Reason.LATE, finished_at=NOW, expires_at=NOW + MINUTE)

    assert ledger.succeed(table, done) == Written()

    assert stored(table, there) == replace(done, lease_owner=None, lease_until=None, deadline_at=None)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_finished_run_never_changes(table: Table, state: State) -> None:
    there = put(table, state, lease_owner="me")
    success = replace(there, state=State.SUCCESS, reason=Reason.ON_TIME, http_status=200)
    failure = replace(there, state=State.ERROR, reason=Reason.DNS, http_status=503)

    assert isinstance(ledger.succeed(table, success), Refused)
    for condition in (ledger.NOT_TERMINAL, ledger.own_lease("me"), ledger.lease_as_read(there)):
        assert isinstance(ledger.finish(table, failure, condition, {"failed": 1}, ()), Refused)
    assert stored(table, there) == there
    assert table.get(StatsItem, keys.job(TENANT, JOB_ID), keys.stats(SCHEDULE_ID)) is None


@pytest.mark.parametrize("moved_on", [{"attempt": 3}, {"state": State.QUEUED}])
def test_a_wait_is_ended_only_as_it_was_read(table: Table, moved_on: dict[str, Any]) -> None:
    read = run(State.RETRY_WAIT, attempt=2)
    there = put(table, **{"state": State.RETRY_WAIT, "attempt": 2, **moved_on})
    ended = replace(read, state=State.CANCELLED, reason=Reason.OWNER_GONE, finished_at=NOW)

    assert isinstance(ledger.finish(table, ended, ledger.state_as_read(read), {}, ()), Refused)
    assert stored(table, there) == there


def test_nothing_ends_what_does_not_exist(table: Table) -> None:
    done = run(State.SUCCESS, reason=Reason.ON_TIME)

    assert ledger.succeed(table, done) == Refused(None)
    assert ledger.finish(table, done, ledger.NOT_TERMINAL, {}, ()) == Refused(None)


def test_a_failure_needs_the_lease(table: Table) -> None:
    there = put(table, lease_owner="another", lease_until=NOW + MINUTE)
    failed = replace(there, state=State.ERROR, reason=Reason.DNS, finished_at=NOW, lease_owner=None, lease_until=None)

    refused = ledger.finish(table, failed, ledger.own_lease("me"), {"failed": 1}, ())
    assert isinstance(refused, Refused)
    assert ledger.run_in(refused) == there

    assert ledger.finish(table, failed, ledger.own_lease("another"), {"failed": 1}, ()) == Written()
    assert stored(table, there) == failed


def test_row_counts_and_attempts_are_one_write(table: Table) -> None:
    there = put(table, lease_owner="me", started_at=NOW)
    failed = replace(there, state=State.ERROR, reason=Reason.DNS, finished_at=NOW, lease_owner=None)
    attempt = attempt_item(replace(there, finished_at=NOW), reason=Reason.DNS, answer="answer")

    done = ledger.finish(table, failed, ledger.own_lease("me"), {"failed": 1, "failed_attempts": 1}, [attempt])
    again = ledger.finish(table, failed, ledger.own_lease("me"), {"failed": 1, "failed_attempts": 1}, [attempt])

    assert done == Written()
    assert isinstance(again, Refused)
    stats = table.get(StatsItem, keys.job(TENANT, JOB_ID), keys.stats(SCHEDULE_ID))
    assert stats is not None
    assert (stats.failed, stats.failed_attempts) == (1, 1)


def test_an_end_without_an_attempt_is_a_new_row_or_nothing(table: Table) -> None:
    skipped = run(State.SKIPPED, reason=Reason.PAUSED, finished_at=NOW)

    assert ledger.finish_without_attempt(table, skipped, **HERE, counts={"skipped": 1}) == Written()
    again = ledger.finish_without_attempt(table, skipped, **HERE, counts={"skipped": 1})

    assert isinstance(again, Refused)
    stats = table.get(StatsItem, keys.job(TENANT, JOB_ID), keys.stats(SCHEDULE_ID))
    assert stats is not None
    assert stats.skipped == 1


# Waits


@pytest.mark.parametrize("state", [State.RETRY_WAIT, *sorted(AWAITING_RESULT)])
def test_leaving_a_run_waiting_gives_its_lease_back(table: Table, state: State) -> None:
    there = put(table, lease_owner="me", lease_until=NOW + MINUTE, started_at=NOW)
    waiting = replace(
        there,
        state=state,
        attempt=2,
        not_before=NOW + MINUTE,
        deadline_at=NOW + MINUTE,
        wake_at=NOW + MINUTE,
        lease_owner=None,
        lease_until=None,
    )

    done = ledger.wait(
        table, waiting, **HERE, condition=ledger.own_lease("me"), counts={"failed_attempts": 1}, attempts=()
    )

    assert done == Written()
    assert stored(table, there) == waiting
    lost = ledger.wait(table, waiting, **HERE, condition=ledger.own_lease("me"), counts={}, attempts=())
    assert isinstance(lost, Refused)


@pytest.mark.parametrize("state", OPEN)
def test_a_wake_row_stays_while_its_run_is_open(table: Table, state: State) -> None:
    there = put(table, state, wake_at=NOW)

    assert isinstance(ledger.drop_wake(table, there), Refused)
    assert stored(table, there).wake_at == NOW


def test_a_wake_row_goes_when_its_run_is_over(table: Table) -> None:
    there = put(table, State.SUCCESS, wake_at=NOW)

    assert ledger.drop_wake(table, there) == Written()
    assert stored(table, there).wake_at is None
    raw = table.batch_get([(keys.runs(TENANT, SCHEDULE_ID), keys.run(there.uuid))]).popitem()[1]
    assert not {"shard", "sweep", "next_run_at"} & raw.keys()


def test_the_pointer_to_a_run_asks_for_the_attempt_that_is_next(table: Table) -> None:
    one = run(State.RETRY_WAIT, attempt=3, instant=NOW + timedelta(milliseconds=750), kind=Kind.MANUAL)

    pointer = ledger.pointer_to(one)

    assert (pointer.run, pointer.attempt, pointer.kind, pointer.decided) == (one.uuid, 3, Kind.MANUAL, True)
    assert pointer.instant == NOW
