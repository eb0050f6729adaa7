"""Conditions clause by clause: each item departs in one thing from what its write expects, and the write is refused.

Clauses of the ledger's rows: test_ledger.py; of a schedule as it was read: test_jobs.py; of the sweep: test_waiting.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from sweephand.domain.calendar import Calendar, Version
from sweephand.domain.collection import Collection, Quota, SigningKey, Subscription, Tenant, TenantState
from sweephand.domain.flow_keys.flow_keys import FlowKey
from sweephand.domain.instants import epoch_ms
from sweephand.domain.run import Run, State
from sweephand.domain.runs.overlap import Slot
from sweephand.domain.schedule import Lane
from sweephand.server.store.calendars import calendars
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Refused, Table, Written
from sweephand.server.store.dynamo.expressions import add, assign
from sweephand.server.store.dynamo.table import JobItem, ReleaseItem, RunItem, StatsItem
from sweephand.server.store.flow_keys import flow_keys
from sweephand.server.store.index import suspended
from sweephand.server.store.jobs import change_parts, directory, jobs, ordinals
from sweephand.server.store.jobs.change_parts import Part
from sweephand.server.store.runs import ledger, overlap_slots, run_rows, stats
from sweephand.server.store.runs.overlap_slots import Move
from sweephand.server.store.tenants import counts, tenants
from sweephand.server.store.tenants.counts import Need
from sweephand.testing.taps import Act, Passing
from tests.support.stage import Stage
from tests.unit.domain.nouns import JOB_ID, MINUTE, NOW, SCHEDULE_ID, SECOND, TENANT, job, run, schedule

HERE: dict[str, Any] = {"shards": 2, "lane": Lane.FAST}
USER = job(number=5)


@pytest.fixture
def table(stage: Stage) -> Table:
    return stage.world.table


def before_the(stage: Stage, operation: str, edit: Callable[[], object]) -> Any:
    """Lets somebody else write as the first such call is about to be made."""

    def fault(_passing: Passing, act: Act) -> Any:
        stage.taps.fault = None
        edit()
        return act()

    return stage.taps.once(f"dynamodb.{operation}", fault)


def refused(done: object) -> set[str]:
    assert isinstance(done, Cancelled)
    return set(done.refused)


# Jobs


def test_a_job_is_made_once(table: Table) -> None:
    op = table.put_op("job", jobs.job_item(job()), jobs.ABSENT)

    assert table.transact([op]) == Written()
    assert refused(table.transact([op])) == {"job"}


def test_a_part_of_a_change_is_carried_out_while_that_change_is_open(table: Table) -> None:
    item = jobs.job_item(job(revision=3))
    table.put(item)
    table.update(item.pk, item.sk, [assign(JobItem.open_change, 3)])
    touch = [assign(JobItem.open_change, 3)]

    assert table.update(item.pk, item.sk, touch, jobs.open_change_is(3)) == Written()
    assert isinstance(table.update(item.pk, item.sk, touch, jobs.open_change_is(2)), Refused)


def test_a_part_of_a_change_is_carried_out_once(table: Table) -> None:
    one = job(revision=3)
    table.transact(change_parts.part_ops(table, one, [[]], None))
    part = Part("0000", ())

    assert table.transact([change_parts.done_op(table, one, part)]) == Written()
    assert refused(table.transact([change_parts.done_op(table, one, part)])) == {"part"}


def test_a_block_that_got_a_job_meanwhile_keeps_its_count(stage: Stage, table: Table) -> None:
    gone, new = job(number=7), job(number=7 + directory.STRIPES, id="job-8")
    table.transact(directory.create_ops(table, gone, []))
    table.transact(directory.delete_ops(table, gone))

    with before_the(stage, "DeleteItem", lambda: table.transact(directory.create_ops(table, new, []))):
        directory.drop_if_empty(table, gone)

    assert [item["live"]["N"] for item in stage.items() if "live" in item] == ["1"]


# Tenants and collections


TENANT_HERE = Tenant("globex", TenantState.ACTIVE, None, NOW)
SIDE = Collection(TENANT, "side", created_at=NOW, modified_at=NOW)


def test_a_tenant_and_a_collection_are_made_once(table: Table) -> None:
    for ops in (tenants.tenant_ops(table, TENANT_HERE), tenants.create_collection_ops(table, SIDE)):
        assert table.transact(ops) == Written()
        assert refused(table.transact(ops)) <= {"tenant", "collection"}


def test_a_tenant_that_is_not_there_is_not_switched(stage: Stage, table: Table) -> None:
    before = stage.items()

    assert refused(table.transact(tenants.change_tenant_ops(table, TENANT_HERE))) == {"tenant", "register"}

    assert stage.items() == before


def test_ending_a_tenant_requires_the_tenant_as_it_was_read(table: Table) -> None:
    assert refused(table.transact(tenants.purge_ops(table, TENANT_HERE, "op-1"))) == {"tenant", "register"}
    table.transact(tenants.tenant_ops(table, TENANT_HERE))
    subscribed = replace(TENANT_HERE, applications={"app": Subscription(NOW)})

    assert refused(table.transact(tenants.purge_ops(table, subscribed, "op-1"))) == {"tenant"}
    assert table.transact(tenants.purge_ops(table, TENANT_HERE, "op-1")) == Written()
    assert refused(table.transact(tenants.purge_ops(table, TENANT_HERE, "op-2"))) == {"tenant"}
    assert refused(table.transact(tenants.purge_ops(table, replace(TENANT_HERE, purge="op-0"), "op-2"))) == {"tenant"}
    assert table.transact(tenants.purge_ops(table, replace(TENANT_HERE, purge="op-1"), "op-2")) == Written()


def test_a_tenant_is_forgotten_by_its_own_purge_alone(table: Table) -> None:
    table.transact(tenants.tenant_ops(table, TENANT_HERE))
    table.transact(tenants.purge_ops(table, TENANT_HERE, "op-1"))

    assert refused(table.transact(tenants.forget_tenant_ops(table, "globex", "op-2"))) == {"tenant"}
    assert table.transact(tenants.forget_tenant_ops(table, "globex", "op-1")) == Written()
    assert tenants.read_tenant(table, "globex") is None


def test_a_subscription_is_written_to_the_tenant_as_it_was_read(table: Table) -> None:
    one, two = (replace(TENANT_HERE, applications={name: Subscription(NOW)}) for name in ("one", "two"))
    table.transact(tenants.tenant_ops(table, TENANT_HERE))

    assert table.transact([tenants.subscribe_op(table, TENANT_HERE, one)]) == Written()
    assert refused(table.transact([tenants.subscribe_op(table, TENANT_HERE, two)])) == {"tenant"}
    assert refused(table.transact([tenants.subscribe_op(table, two, TENANT_HERE)])) == {"tenant"}
    assert table.transact([tenants.subscribe_op(table, one, two)]) == Written()
    table.transact(tenants.purge_ops(table, two, "op-1"))
    assert refused(table.transact([tenants.subscribe_op(table, two, one)])) == {"tenant"}
    assert refused(table.transact([tenants.stays_op(table, "globex")])) == {"tenant"}


def test_a_collection_is_changed_as_it_was_read(table: Table) -> None:
    table.transact(tenants.create_collection_ops(table, replace(SIDE, revision=2)))

    assert refused(table.transact([tenants.change_collection_op(table, replace(SIDE, revision=2), 1)])) == {
        "collection"
    }
    assert table.transact([tenants.change_collection_op(table, replace(SIDE, revision=3), 2)]) == Written()


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("quota", [Quota(), Quota(max_jobs=5)])
def test_jobs_are_counted_in_a_collection_that_is_there(stage: Stage, table: Table, step: int, quota: Quota) -> None:
    before = stage.items()
    counted = tenants.counted(replace(SIDE, quota=quota))

    assert refused(table.transact([counts.count_op(table, "collection", counted, 1, Need(step))])) == {"collection"}

    assert stage.items() == before


KEY, OTHER = (SigningKey(name, NOW, f"sealed {name}") for name in ("a", "b"))


@pytest.mark.parametrize("read", [(), (KEY,)])
def test_the_keys_of_a_collection_are_changed_as_they_were_read(table: Table, read: tuple[SigningKey, ...]) -> None:
    table.transact(tenants.create_collection_ops(table, SIDE))
    as_read = replace(SIDE, signing=read)
    if read:
        assert table.transact([tenants.change_signing_op(table, SIDE, read)]) == Written()
    table.transact([tenants.change_signing_op(table, as_read, (*read, OTHER))])

    assert refused(table.transact([tenants.change_signing_op(table, as_read, ())])) == {"collection"}

    there = tenants.read_collection(table, TENANT, "side")
    assert there is not None
    assert there.signing == (*read, OTHER)


def test_a_collection_that_is_not_there_gets_no_keys(stage: Stage, table: Table) -> None:
    before = stage.items()

    assert refused(table.transact([tenants.change_signing_op(table, SIDE, [KEY])])) == {"collection"}

    assert stage.items() == before


def release(table: Table) -> ReleaseItem:
    """Makes a release under way in its second round, after one job."""
    table.transact(suspended.end_ops(table, TENANT, "side", NOW, 2))
    first = suspended.read_release(table, TENANT, "side")
    assert first is not None
    suspended.go_on(table, first, number=2, cursor=("side", "a"), at=NOW)
    second = suspended.read_release(table, TENANT, "side")
    assert second is not None
    return second


@pytest.mark.parametrize("moved", [{"round": {"N": "3"}}, {"until": {"N": "1"}}, {"cursor": {"S": '["side","b"]'}}])
def test_a_release_goes_on_from_where_it_was_read(stage: Stage, table: Table, moved: dict[str, Any]) -> None:
    read = release(table)
    stage.edit_item(read.pk, read.sk, **moved)

    assert isinstance(suspended.go_on(table, read, number=2, cursor=None, at=NOW), Refused)
    suspended.finish(table, TENANT, "side", read)

    assert suspended.read_release(table, TENANT, "side") is not None


def test_a_release_that_has_begun_meanwhile_does_not_begin_again(stage: Stage, table: Table) -> None:
    read = release(table)
    stage.edit_item(read.pk, read.sk, cursor=None)
    first = suspended.read_release(table, TENANT, "side")
    assert first is not None
    stage.edit_item(read.pk, read.sk, cursor={"S": '["side","a"]'})

    assert isinstance(suspended.go_on(table, first, number=2, cursor=None, at=NOW), Refused)


def test_a_collection_disabled_again_meanwhile_stays_in_the_list(stage: Stage, table: Table) -> None:
    read = release(table)
    stage.edit_item(keys.STACK_SWEEP, keys.suspended(TENANT, "side"), until=None)

    suspended.finish(table, TENANT, "side", read)

    assert (TENANT, "side") in suspended.read(table)[0].by_key
    assert suspended.read_release(table, TENANT, "side") is not None


# Calendars and ordinals


CALENDAR = Calendar(TENANT, "closed", NOW, NOW, version=2, reference="b")
FIRST = replace(CALENDAR, version=1, reference="a")
THIRD = replace(CALENDAR, version=3, reference="c")


@pytest.fixture
def calendar(table: Table) -> Calendar:
    """At its second version, which one job names, and whose users are being seen to."""
    table.transact(calendars.create_ops(table, FIRST, None))
    table.transact(calendars.take_ops(table, FIRST, USER))
    table.transact(calendars.change_ops(table, FIRST, CALENDAR, None, 2))
    head = calendars.read(table, TENANT, "closed")
    assert head is not None
    calendars.enforce(table, head)
    (there,) = calendars.with_users(table, [head])
    assert (there.version, there.users, there.replanning) == (2, 1, True)
    return there


def test_a_calendar_is_made_once(table: Table, calendar: Calendar) -> None:
    assert refused(table.transact(calendars.create_ops(table, FIRST, None))) == {"calendar"}


def test_a_calendar_is_changed_as_it_was_read(table: Table, calendar: Calendar) -> None:
    assert refused(table.transact(calendars.change_ops(table, FIRST, replace(THIRD, version=2), None, 2))) == {
        "calendar"
    }
    assert table.transact(calendars.change_ops(table, calendar, THIRD, None, 2)) == Written()


def test_a_calendar_goes_as_it_was_read_and_unused(table: Table, calendar: Calendar) -> None:
    assert refused(table.transact(calendars.delete_ops(table, calendar, NOW))) == {"count"}
    table.transact(calendars.leave_ops(table, "closed", USER))

    assert refused(table.transact(calendars.delete_ops(table, FIRST, NOW))) == {"calendar"}
    assert table.transact(calendars.delete_ops(table, calendar, NOW)) == Written()


def test_a_job_takes_and_keeps_the_version_that_it_was_planned_by(table: Table, calendar: Calendar) -> None:
    part = {calendars.PART + "closed"}

    assert refused(table.transact(calendars.take_ops(table, FIRST, replace(USER, id="job-2")))) == part
    assert refused(table.transact([calendars.keep_op(table, FIRST, USER)])) == part
    assert table.transact([calendars.keep_op(table, calendar, USER)]) == Written()


def of_version_01(stage: Stage, sk: str, users: int) -> None:
    """Makes the row of a calendar or flow key, and its count, as version 0.1 has left them."""
    stage.edit_item(keys.tenant(TENANT), sk, users={"N": str(users)})
    for stripe in range(counts.STRIPES):
        stage.world.table.delete(keys.stripe(TENANT, stripe), sk)


def test_users_that_version_01_has_counted_are_moved_once(stage: Stage, table: Table, calendar: Calendar) -> None:
    table.transact(flow_keys.create_ops(table, FlowKey(TENANT, "k", NOW, NOW), "t0"))
    reads: tuple[tuple[str, Callable[[], Any]], ...] = (
        (keys.calendar("closed"), lambda: calendars.with_users(table, [calendars.read(table, TENANT, "closed")])),
        (keys.flow_key("k"), lambda: flow_keys.with_users(table, [flow_keys.find(table, TENANT, "k")])),
    )
    for sk, read in reads:
        of_version_01(stage, sk, 3)

        with before_the(stage, "TransactWriteItems", read):
            read()

        assert [each.users for each in read()] == [3]


def test_forgetting_creates_no_deleted_row(stage: Stage, table: Table) -> None:
    before = stage.items()

    calendars.forget_version(table, CALENDAR, Version(1, "a", NOW, None, None), NOW)

    assert stage.items() == before


@pytest.mark.parametrize("moved", [{"version": {"N": "3"}}, {"cursor": {"S": "job-2"}}])
@pytest.mark.parametrize("first", [True, False])
def test_a_replan_goes_on_from_where_it_was_read(
    stage: Stage, table: Table, calendar: Calendar, moved: dict[str, Any], first: bool
) -> None:
    """first: it has not begun, so that there is no cursor."""
    key = keys.calendar_rows(TENANT, "closed"), keys.replan("closed")
    if not first:
        stage.edit_item(*key, cursor={"S": "job-0"})
    read = calendars.read_replan(table, TENANT, "closed")
    assert read is not None
    stage.edit_item(*key, **moved)

    assert isinstance(calendars.go_on(table, read, cursor=None, left=False, at=NOW), Refused)
    calendars.finish(table, TENANT, "closed", read)

    assert calendars.read_replan(table, TENANT, "closed") is not None


def test_a_replan_that_another_version_needs_is_not_finished(stage: Stage, table: Table, calendar: Calendar) -> None:
    read = calendars.read_replan(table, TENANT, "closed")
    assert read is not None
    stage.edit_item(keys.tenant(TENANT), keys.calendar("closed"), open_version={"N": "3"})

    calendars.finish(table, TENANT, "closed", read)

    assert calendars.read_replan(table, TENANT, "closed") is not None


def test_two_that_give_a_tenant_its_ordinal_agree_on_the_first(stage: Stage, table: Table) -> None:
    given: list[int] = []

    with before_the(stage, "TransactWriteItems", lambda: given.append(ordinals.give(table, TENANT))):
        mine = ordinals.give(table, TENANT)

    assert [mine, ordinals.read(table, TENANT)] == given * 2


# Slots


SLOT = Slot(TENANT, JOB_ID, SCHEDULE_ID)
QUEUED = run(State.QUEUED, wake_at=NOW)


@pytest.mark.parametrize(
    ("there", "read"),
    [
        (replace(SLOT, active="another"), SLOT),
        (replace(SLOT, active="another"), replace(SLOT, active="me")),
        (replace(SLOT, active="me", queued="another"), replace(SLOT, active="me")),
        (replace(SLOT, active="me", queued="another"), replace(SLOT, active="me", queued="queued")),
    ],
)
def test_a_slot_moves_only_from_what_was_read(table: Table, there: Slot, read: Slot) -> None:
    overlap_slots.move(table, SLOT, there)

    moved = overlap_slots.move(table, read, replace(read, active="next"))

    assert isinstance(moved, Refused)
    assert overlap_slots.read_in(moved, SLOT) == there
    assert isinstance(overlap_slots.move(table, read, SLOT), Refused)


@pytest.mark.parametrize("state", [State.CANCELLED, State.TRIGGERED])
def test_a_turn_passes_to_a_run_that_still_waits(table: Table, state: State) -> None:
    before = replace(SLOT, active="me", queued=QUEUED.uuid)
    overlap_slots.move(table, SLOT, before)
    table.put(run_rows.item_of(replace(QUEUED, state=state), **HERE))

    done = overlap_slots.pass_on(table, before, replace(SLOT, active=QUEUED.uuid), QUEUED, NOW, **HERE)

    assert refused(done) == {"queued"}


@pytest.mark.parametrize("state", [State.CANCELLED, State.TRIGGERED])
def test_a_place_is_given_to_a_run_that_still_waits(table: Table, state: State) -> None:
    before = replace(SLOT, active="me")
    overlap_slots.move(table, SLOT, before)
    table.put(run_rows.item_of(replace(QUEUED, state=state), **HERE))

    done = overlap_slots.queue(table, Move(before, replace(before, queued=QUEUED.uuid), QUEUED, QUEUED), **HERE)

    assert refused(done) == {"run"}


# Statistics


def statistics(table: Table, **counts: int) -> StatsItem:
    key = keys.job(TENANT, JOB_ID), keys.stats(SCHEDULE_ID)
    table.update(*key, [add(getattr(StatsItem, name), count) for name, count in counts.items()])
    return stats.read(table, schedule())


@pytest.mark.parametrize("counted", ["settled_to", "settled_total", "late_ends"])
@pytest.mark.parametrize("first", [{}, {"settled_to": 1_000, "settled_total": 5, "late_ends": 2}])
def test_counts_by_others_are_not_overwritten(table: Table, counted: str, first: dict[str, int]) -> None:
    read = statistics(table, **first) if first else stats.read(table, schedule())
    statistics(table, **{counted: 1})

    assert isinstance(stats.settle(table, read, NOW, ended=1, planned=1), Refused)


@pytest.mark.parametrize("settled_to", [None, NOW - MINUTE])
def test_a_late_end_is_counted_against_what_is_settled_as_it_is_written(
    stage: Stage, table: Table, settled_to: datetime | None
) -> None:
    """The audit settles between the read and the write: the run lies after that, and is counted with it."""
    read = stats.read(table, schedule())
    if settled_to is not None:
        stats.settle(table, read, settled_to, ended=0, planned=0)
    there = run(State.TRIGGERED, lease_owner="me")
    table.put(run_rows.item_of(there, **HERE))
    late = replace(there, state=State.SUCCESS, finished_at=NOW + 40 * 24 * 60 * MINUTE, expires_at=NOW)
    assert late.ends_late

    def settled_meanwhile() -> None:
        stats.settle(table, stats.read(table, schedule()), NOW + SECOND, ended=0, planned=1)

    with before_the(stage, "TransactWriteItems", settled_meanwhile):
        assert ledger.succeed(table, late) == Written()

    after = stats.read(table, schedule())
    assert (after.settled_to, after.settled_total, after.late_ends) == (epoch_ms(NOW + SECOND), 1, 1)


# Notes


def noted(table: Table, one: Run) -> tuple[str, ...]:
    there = ledger.read(table, TENANT, SCHEDULE_ID, one.uuid)
    assert there is not None
    return there.notes


def test_a_run_keeps_its_first_twenty_notes(table: Table) -> None:
    one = run(State.SUCCESS)
    table.put(run_rows.item_of(one, **HERE))

    for n in range(25):
        ledger.note(table, one, f"note {n:02d}")

    assert noted(table, one) == tuple(f"note {n:02d}" for n in range(20))


def test_no_note_is_kept_of_a_run_that_is_gone(table: Table) -> None:
    one = run(State.SUCCESS)

    ledger.note(table, one, "too late")

    assert table.get(RunItem, *run_rows.key_of(one)) is None
