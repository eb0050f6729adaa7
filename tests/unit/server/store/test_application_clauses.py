"""The conditions of applications, job sets and reports, clause by clause, and the pages of the catalogue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweephand.domain.application import Application
from sweephand.domain.run import State
from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo.conditional import Cancelled, Refused, Table, Written
from sweephand.server.store.dynamo.expressions import assign
from sweephand.server.store.dynamo.table import RunItem
from sweephand.server.store.index import next_run_index
from sweephand.server.store.job_sets import job_sets
from sweephand.server.store.runs import ledger, run_rows
from sweephand.server.store.tenants import applications, tenants, watches
from tests.support.stage import Stage
from tests.unit.domain.nouns import MINUTE, NOW, TENANT, run

BILLING = Application(TENANT, "billing", None, NOW)
WATCHED = replace(BILLING, watched_since=NOW)


@pytest.fixture
def table(stage: Stage) -> Table:
    return stage.world.table


def test_writes_about_what_was_deleted_create_no_row(stage: Stage, table: Table) -> None:
    before = stage.items()

    assert isinstance(watches.begin(table, BILLING, NOW, NOW, 2), Refused)
    applications.keep_tasks(table, replace(BILLING, tasks=("report",)))
    applications.note_busy(table, BILLING, NOW)
    assert isinstance(tenants.note_watched(table, "globex", "billing", watched=True), Refused)
    job_sets.claim(table, TENANT, "nightly", "somebody")

    assert stage.items() == before


def test_a_set_is_released_only_by_the_owner_that_it_has(stage: Stage, table: Table) -> None:
    job_sets.begin(table, TENANT, "nightly", NOW, None, "stack A")

    assert not job_sets.release(table, TENANT, "nightly", "stack B")
    assert job_sets.release(table, TENANT, "nightly", "stack A")
    assert not job_sets.release(table, TENANT, "nightly", "stack A")


def test_an_application_is_watched_once(table: Table) -> None:
    table.transact([applications.put_op(table, BILLING)])

    assert watches.begin(table, BILLING, NOW, NOW, 2) == Written()
    assert isinstance(watches.begin(table, BILLING, NOW + MINUTE, NOW, 2), Refused)


def test_a_worker_is_seen_once_in_each_watch_and_never_without_one(table: Table) -> None:
    table.transact([applications.put_op(table, BILLING)])

    assert isinstance(watches.see(table, BILLING, NOW), Refused)
    watches.begin(table, BILLING, NOW, NOW, 2)
    assert watches.see(table, BILLING, NOW) == Written()
    assert isinstance(watches.see(table, BILLING, NOW), Refused)


def test_a_watch_goes_on_as_it_was_read(table: Table) -> None:
    table.transact([applications.put_op(table, BILLING)])
    watches.begin(table, BILLING, NOW + MINUTE, NOW, 2)

    assert isinstance(watches.mark_away(table, WATCHED, NOW, 3), Cancelled)
    assert isinstance(watches.count_waiting(table, WATCHED, 3), Refused)
    assert watches.count_waiting(table, replace(WATCHED, watched_since=NOW + MINUTE), 3) == Written()


@pytest.mark.parametrize("moved", [{"attempt": 2}, {"state": State.RETRY_WAIT}])
def test_a_report_is_taken_for_the_attempt_that_was_read(table: Table, moved: dict[str, object]) -> None:
    read = run(State.TRIGGERED, attempt=1)
    item = run_rows.item_of(replace(read, **moved), shards=2, lane=Lane.FAST)
    table.put(item)

    done = table.update(item.pk, item.sk, [assign(RunItem.message, "late")], ledger.reports(read))

    assert isinstance(done, Refused)


def test_pages_of_the_catalogue_follow_one_another(stage: Stage, table: Table) -> None:
    made = [stage.create({"every": "P1D"}).schedules[0].id for _ in range(5)]
    found: list[str] = []

    for shard in range(stage.world.settings.shards):
        after: str | None = ""
        while after is not None and len(found) <= len(made):
            keys, after = next_run_index.catalogue(table, shard, after, 1)
            found += [sk.rpartition("#")[2] for _, sk in keys]

    assert sorted(found) == sorted(made)
