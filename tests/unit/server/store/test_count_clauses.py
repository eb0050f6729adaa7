"""The clauses under which counts are added to, leased, voided and ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Table
from sweephand.server.store.dynamo.expressions import Action, assign
from sweephand.server.store.dynamo.table import CountItem, LeasingItem
from sweephand.server.store.tenants import counts
from sweephand.server.store.tenants.counts import Counted, Need
from tests.support.stage import Stage
from tests.unit.domain.nouns import TENANT

COUNTED = Counted(TENANT, "PLANTS", revision=2, most={"jobs": 5_000, "schedules": 9_000})
LEASES = {"jobs": [7] * counts.STRIPES, "schedules": [7] * counts.STRIPES}


@pytest.fixture
def table(stage: Stage) -> Table:
    return stage.world.table


def key(stripe: int = 0) -> tuple[str, str]:
    return keys.stripe(TENANT, stripe), COUNTED.row


def write(table: Table, *actions: Action, stripe: int = 0) -> None:
    table.carry_out(table.update_op("count", *key(stripe), actions, None))


def leasing_row(table: Table) -> LeasingItem:
    row = LeasingItem(pk=keys.tenant(TENANT), sk=COUNTED.row, revision=2, leases=3)
    table.transact([table.put_op("leasing", row)])
    return row


@pytest.mark.parametrize("changed", ["revision", "leases"])
def test_a_lease_is_refused_if_the_quota_or_another_lease_came_first(table: Table, changed: str) -> None:
    leasing, rows = leasing_row(table), counts.read(table, COUNTED)
    action = assign(getattr(LeasingItem, changed), 9)
    table.carry_out(table.update_op("leasing", leasing.pk, leasing.sk, [action], None))

    assert not counts._leased(table, COUNTED, leasing, 0, rows, LEASES)


@pytest.mark.parametrize("changed", ["revision", "jobs_left", "schedules_left"])
def test_a_lease_is_refused_if_its_row_was_changed_meanwhile(table: Table, changed: str) -> None:
    leasing, rows = leasing_row(table), counts.read(table, COUNTED)
    write(table, assign(getattr(CountItem, changed), 1), stripe=3)

    assert not counts._leased(table, COUNTED, leasing, 0, rows, LEASES)


def test_a_lease_is_written_if_nothing_came_first(table: Table) -> None:
    leasing, rows = leasing_row(table), counts.read(table, COUNTED)

    assert counts._leased(table, COUNTED, leasing, 0, rows, LEASES)
    assert [COUNTED.left(row, "jobs") for row in counts.read(table, COUNTED)] == LEASES["jobs"]


def test_a_lease_of_an_earlier_quota_admits_nothing(table: Table) -> None:
    lease = (assign(CountItem.jobs_left, 7), assign(CountItem.schedules_left, 7))
    write(table, *lease, assign(CountItem.revision, 1))

    refused = table.transact([counts.count_op(table, "count", COUNTED, 0, Need(jobs=1))])
    write(table, assign(CountItem.revision, 2))
    added = table.transact([counts.count_op(table, "count", COUNTED, 0, Need(jobs=1))])

    assert isinstance(refused, Cancelled)
    assert not isinstance(added, Cancelled)


def test_rows_end_only_as_they_were_read(table: Table) -> None:
    table.transact(counts.begin_ops(table, COUNTED))
    ops = counts.end_ops(table, COUNTED)
    write(table, assign(CountItem.jobs, 1), stripe=5)

    assert isinstance(table.transact(ops), Cancelled)


def test_the_end_of_leases_makes_no_row_of_a_count_that_was_deleted(stage: Stage, table: Table) -> None:
    before = stage.items()

    counts.void(table, replace(COUNTED, lasts=True))

    assert stage.items() == before


def test_the_end_of_leases_spares_those_of_this_quota_and_of_later_ones(stage: Stage, table: Table) -> None:
    for stripe in range(counts.STRIPES):
        write(table, assign(CountItem.jobs_left, 7), assign(CountItem.revision, 2 + stripe % 2), stripe=stripe)
    before = stage.items()

    counts.void(table, COUNTED)

    assert stage.items() == before
