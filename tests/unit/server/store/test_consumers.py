"""Consumers: each write meets the lease and the place of the replay that it has read, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from sweephand.base.ids import run_uuid
from sweephand.domain.consumer import Consumer, Dropped, Phase
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.store.consumers import consumers as store
from sweephand.server.store.dynamo.conditional import Cancelled, Refused, Table, Written
from sweephand.server.store.runs import ledger
from tests.support.stage import TENANT, Stage
from tests.unit.server.flow.common import MINUTE, NOON

NAME = "billing"
SOON, LATER = NOON + MINUTE, NOON + 2 * MINUTE


@pytest.fixture
def table(stage: Stage) -> Table:
    return stage.world.table


def take(table: Table, holder: str = "a", until: datetime = SOON, now: datetime = NOON) -> Written | Refused:
    return store.take(table, TENANT, NAME, holder, until, now)


def read(table: Table) -> Consumer:
    there = store.read(table, TENANT, NAME)
    assert there is not None
    return there


def held(table: Table, minute: int = 0, job: str = "job", consumer: str = NAME) -> Run:
    at = NOON + minute * MINUTE
    uuid = run_uuid(TENANT, "schedule", int(at.timestamp() * 1000), "scheduled")
    members = {"reason": Reason.CONSUMER_AWAY, "consumer": consumer}
    run = Run(TENANT, job, "schedule", uuid, Kind.SCHEDULED, State.HELD, at, **members)  # type: ignore[arg-type]
    assert ledger.claim_first(table, run, shards=2, lane=Lane.FAST) == Written()
    return run


def send_on(table: Table, consumer: Consumer, run: Run) -> Written | Cancelled:
    queued = replace(run, state=State.QUEUED, reason=None, wake_at=SOON)
    return store.send_on(table, consumer, queued, shards=2, lane=Lane.FAST)


def drop(table: Table, run: Run, there: Dropped | None = None) -> Written | Cancelled:
    ended = replace(run, state=State.MISSED, finished_at=SOON, wake_at=SOON)
    return store.drop(table, NAME, [ended], there, shards=2, lane=Lane.FAST)


def test_a_lease_is_taken_by_one_who_keeps_it_until_it_is_over(table: Table) -> None:
    assert take(table) == Written()
    assert isinstance(take(table, "b"), Refused)
    assert take(table) == Written(), "its answer was lost"
    assert take(table, "b", LATER, SOON) == Written()


def test_only_its_holder_prolongs_a_lease_and_only_before_it_is_over(table: Table) -> None:
    take(table)

    assert isinstance(store.renew(table, TENANT, NAME, "b", LATER, NOON), Refused)
    assert isinstance(store.renew(table, TENANT, NAME, "a", LATER, SOON), Refused)
    assert store.renew(table, TENANT, NAME, "a", LATER, NOON) == Written()
    assert read(table).lease_until == LATER


def test_a_lease_that_is_taken_begins_away(table: Table) -> None:
    take(table)
    store.start(table, TENANT, NAME, "a", NOON)
    take(table, "b", LATER, SOON)

    assert read(table) == Consumer(TENANT, NAME, "b", LATER, SOON)


def test_only_its_holder_gives_a_lease_back_or_starts_and_starts_once(table: Table) -> None:
    take(table)

    assert isinstance(store.release(table, TENANT, NAME, "b", NOON), Refused)
    assert isinstance(store.start(table, TENANT, NAME, "b", NOON), Refused)
    assert store.start(table, TENANT, NAME, "a", NOON) == Written()
    assert isinstance(store.start(table, TENANT, NAME, "a", NOON), Refused)
    assert store.release(table, TENANT, NAME, "a", NOON) == Written()


STEPS: dict[str, Callable[[Consumer], Consumer]] = {
    "taken again": lambda there: replace(there, taken_at=NOON - timedelta(seconds=1)),
    "not started": lambda there: replace(there, phase=Phase.AWAY),
    "live": lambda there: replace(there, phase=Phase.LIVE),
    "not decided": lambda there: replace(there, decided=False),
    "nothing sent": lambda there: replace(there, current=None),
    "another sent": lambda there: replace(there, current="other"),
}


@pytest.mark.parametrize("other", STEPS)
def test_a_step_of_a_replay_is_made_from_where_it_was_read(table: Table, other: str) -> None:
    first, second = held(table), held(table, 1)
    take(table)
    store.start(table, TENANT, NAME, "a", NOON)
    store.decide(table, read(table))
    send_on(table, read(table), first)
    there = read(table)
    seen = STEPS[other](there)

    assert (there.decided, there.current) == (True, first.id)
    assert isinstance(store.go_live(table, seen), Refused)
    assert isinstance(store.decide(table, seen), Refused)
    refused = send_on(table, seen, second)
    assert isinstance(refused, Cancelled)
    assert set(refused.refused) == {"consumer"}
    assert store.go_live(table, there) == Written()
    assert (read(table).phase, read(table).current) == (Phase.LIVE, None)


def test_before_a_start_nothing_was_decided_or_sent(table: Table) -> None:
    take(table)
    there = read(table)

    for other in (replace(there, decided=True), replace(there, current="x"), replace(there, phase=Phase.STARTING)):
        assert isinstance(store.decide(table, other), Refused)
    assert store.decide(table, there) == Written()


def test_a_run_is_sent_on_dropped_or_stands_for_others_only_while_it_is_held(table: Table) -> None:
    run, other = held(table), held(table, 1)
    take(table)
    drop(table, other)
    (counted,) = store.dropped(table, TENANT, NAME)
    assert send_on(table, read(table), run) == Written()

    again = send_on(table, read(table), run)
    dropped = drop(table, run, counted)
    stands = store.stand_for(table, NAME, replace(run, missed_count=2), counted)

    assert isinstance(again, Cancelled)
    assert set(again.refused) == {"run"}
    assert isinstance(dropped, Cancelled)
    assert isinstance(stands, Cancelled)
    assert list(store.dropped(table, TENANT, NAME)) == [counted]
    assert list(store.held(table, TENANT, NAME)) == []


def test_a_count_of_dropped_runs_grows_only_from_what_was_read(table: Table) -> None:
    first, second, third = (held(table, n) for n in range(3))
    assert drop(table, first) == Written()
    (one,) = store.dropped(table, TENANT, NAME)

    assert isinstance(drop(table, second), Cancelled)
    assert isinstance(drop(table, second, replace(one, count=2)), Cancelled)
    assert drop(table, third, one) == Written()

    (two,) = store.dropped(table, TENANT, NAME)
    assert two == Dropped("job", NOON, NOON + 2 * MINUTE, 2)
    assert isinstance(store.close(table, TENANT, NAME, one), Cancelled)
    assert isinstance(store.stand_for(table, NAME, replace(second, missed_count=2), one), Cancelled)
    assert store.stand_for(table, NAME, replace(second, missed_count=3), two) == Written()
    assert list(store.dropped(table, TENANT, NAME)) == []


def test_a_count_that_is_to_be_told_stays_as_it_is(table: Table) -> None:
    first, second = held(table), held(table, 1)
    drop(table, first)
    (one,) = store.dropped(table, TENANT, NAME)
    assert store.close(table, TENANT, NAME, one) == Written()
    assert isinstance(store.close(table, TENANT, NAME, one), Cancelled), "its answer was lost"
    assert drop(table, second) == Written()

    unpublished, counted = (list(each(table, TENANT, NAME)) for each in (store.unpublished, store.dropped))
    for each in unpublished:
        store.forget(table, TENANT, NAME, each)

    assert (unpublished, [each.count for each in counted]) == ([one], [1])
    assert list(store.unpublished(table, TENANT, NAME)) == []


def test_only_runs_of_the_consumer_that_still_wait_are_held_for_it(table: Table) -> None:
    mine, others = held(table), held(table, 1, consumer="other")

    found = [*store.held(table, TENANT, NAME), *store.held(table, TENANT, "other")]

    assert store.still_held(table, NAME, found) == [mine]
    assert store.still_held(table, "other", found) == [others]


def test_a_wake_goes_in_two_steps_and_not_if_it_was_put_again(table: Table) -> None:
    store.watch(table, TENANT, NAME, SOON, 2)
    assert read(table).watched
    assert store.let_idle(table, TENANT, NAME, NOON) == Written()
    assert isinstance(store.let_idle(table, TENANT, NAME, SOON), Refused)
    assert (read(table).watched, read(table).idle_at) == (False, NOON)

    store.watch(table, TENANT, NAME, LATER, 2)

    assert read(table).idle_at is None
    assert isinstance(store.drop_wake(table, TENANT, NAME, SOON), Refused)
    assert store.drop_wake(table, TENANT, NAME, LATER) == Written()
    assert store.wake_of(table, TENANT, NAME) is None


def test_a_delete_ends_a_lease_only_if_it_may(table: Table) -> None:
    take(table)

    assert isinstance(store.end(table, TENANT, NAME, NOON, even_if_held=False), Refused)
    assert store.end(table, TENANT, NAME, SOON, even_if_held=False) == Written()
    take(table, "b", LATER, SOON)
    assert store.end(table, TENANT, NAME, SOON, even_if_held=True) == Written()
    assert read(table) == Consumer(TENANT, NAME, ends_until=SOON)


def deleted(table: Table) -> Consumer:
    """Returns a consumer that was deleted, and whose wake is to go."""
    take(table)
    store.watch(table, TENANT, NAME, SOON, 2)
    store.end(table, TENANT, NAME, NOON, even_if_held=True)
    store.let_idle(table, TENANT, NAME, NOON)
    return read(table)


MEANWHILE: dict[str, Callable[[Table], object]] = {
    "deleted again": lambda table: store.end(table, TENANT, NAME, SOON, even_if_held=True),
    "its lease was taken": lambda table: take(table, "b"),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE.values(), ids=MEANWHILE)
def test_a_deleted_consumer_goes_or_stays_only_as_it_was_read(
    table: Table, meanwhile: Callable[[Table], object]
) -> None:
    there = deleted(table)
    meanwhile(table)

    refused = store.remove(table, there, SOON)

    assert isinstance(refused, Cancelled)
    assert set(refused.refused) == {"consumer"}
    assert isinstance(store.stay(table, there), Refused)


def test_a_deleted_consumer_stays_if_a_run_is_held_for_it_again(table: Table) -> None:
    there = deleted(table)
    store.watch(table, TENANT, NAME, LATER, 2)

    refused = store.remove(table, there, SOON)

    assert isinstance(refused, Cancelled)
    assert set(refused.refused) == {"consumer", "wake"}
    assert store.stay(table, there) == Written()
    assert read(table) == Consumer(TENANT, NAME, watched=True)


def test_a_deleted_consumer_goes_with_its_wake(table: Table) -> None:
    assert store.remove(table, deleted(table), SOON) == Written()

    assert store.read(table, TENANT, NAME) is None
    assert store.wake_of(table, TENANT, NAME) is None
