"""The next-run index: what a shard has waiting, and how its rows move on."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from sweephand.domain.instants import epoch_s
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import Lane, Schedule, ScheduleState
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.table import CatchUpItem
from sweephand.server.store.index import next_run_index
from sweephand.server.store.index.next_run_index import Advance, Advanced, WaitingRow
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import ledger, run_rows
from sweephand.testing.taps import Act, Passing
from tests.support.stage import Stage
from tests.support.taps import answer_lost, refused
from tests.unit.domain.nouns import JOB_ID, MINUTE, NOW, SCHEDULE_ID, SECOND, TENANT, run, schedule

ADVANCE = "dynamodb.BatchExecuteStatement"


@pytest.fixture
def table(stage: Stage) -> Table:
    return stage.world.table


def put(table: Table, **members: Any) -> Schedule:
    """Writes a schedule in shard 0."""
    one = schedule(**{"next_run_at": NOW, **members})
    item = jobs.schedule_item(one, 1)
    table.put(item)
    return one


def row(table: Table) -> WaitingRow:
    (page,) = next_run_index.due(table, 0, None, NOW + MINUTE)
    return page[0]


def stored(table: Table, schedule_id: str = SCHEDULE_ID) -> Schedule:
    there = jobs.read_schedule(table, TENANT, JOB_ID, schedule_id)
    assert there is not None
    return there


def instants(table: Table, since: datetime | None, until: datetime) -> list[datetime]:
    return [each.next_run_at for page in next_run_index.due(table, 0, since, until) for each in page]


def test_both_ends_of_a_look_are_included_and_rows_come_by_their_instant(table: Table) -> None:
    for n in (5, 1, 3, 2, 4):
        put(table, id=f"s{n}", next_run_at=NOW + n * SECOND)

    assert instants(table, NOW + 2 * SECOND, NOW + 4 * SECOND) == [NOW + n * SECOND for n in (2, 3, 4)]
    assert instants(table, None, NOW + SECOND) == [NOW + SECOND]
    assert instants(table, NOW + 6 * SECOND, NOW + MINUTE) == []
    assert next_run_index.oldest(table, 0) == NOW + SECOND
    assert next_run_index.oldest(table, 1) is None


def test_a_look_continues_over_all_its_pages(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_run_index, "PAGE", 2)
    for n in range(5):
        put(table, id=f"s{n}", next_run_at=NOW + n * SECOND)

    pages = list(next_run_index.due(table, 0, None, NOW + MINUTE))

    assert [len(page) for page in pages] == [2, 2, 1]


@pytest.mark.parametrize("page", [1, 2, 3, 4, 5, 500])
def test_fresh_rows_come_before_overdue_ones_and_none_is_left_out(
    table: Table, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(next_run_index, "PAGE", page)
    for n in (-9, -8, -7, 1, 2, 3):
        put(table, id=f"s{n + 9}", next_run_at=NOW + n * SECOND)

    pages = next_run_index.fresh_first(table, 0, NOW, NOW + MINUTE)

    assert [each.next_run_at - NOW for page in pages for each in page] == [n * SECOND for n in (1, 2, 3, -9, -8, -7)]


def test_no_row_is_read_twice_where_more_is_due_than_a_page_holds(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(next_run_index, "PAGE", 2)
    for n in (-9, -8, -7, 1, 2):
        put(table, id=f"s{n + 9}", next_run_at=NOW + n * SECOND)
    own_way, read = table.query, []

    def counted(*given: Any, **named: Any) -> Any:
        items, more = own_way(*given, **named)
        read.extend(item["next_run_at"]["N"] for item in items)
        return items, more

    monkeypatch.setattr(table, "query", counted)
    list(next_run_index.fresh_first(table, 0, NOW + timedelta(milliseconds=500), NOW + MINUTE))

    assert len(read) == len(set(read)) == 5


def test_a_shard_in_which_nothing_is_due_is_asked_once(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(table, "query", lambda *_, **__: asked.append(1) or ([], None))

    assert list(next_run_index.fresh_first(table, 0, NOW, NOW + MINUTE)) == []

    assert len(asked) == 1


def test_a_row_of_the_index_has_all_that_the_sweep_needs(table: Table) -> None:
    one = put(table, generation=3, planned_total=7, misfire="latest")

    found = row(table)

    assert found == WaitingRow(
        keys.job(TENANT, JOB_ID),
        keys.schedule(SCHEDULE_ID),
        NOW,
        jobs.sweep_text(one),
        generation=3,
        planned_total=7,
        shard=0,
    )
    assert (found.tenant, found.owner, found.own_id) == (TENANT, JOB_ID, SCHEDULE_ID)


def test_only_what_waits_is_in_the_index_and_only_what_is_enabled_in_the_catalogue(table: Table) -> None:
    put(table, id="active")
    put(table, id="stopped", next_run_at=None)
    put(table, id="paused", next_run_at=None, state=ScheduleState.PAUSED)
    put(table, id="done", next_run_at=None, state=ScheduleState.COMPLETED)
    put(table, id="ending", state=ScheduleState.ENDING)

    pk = keys.job(TENANT, JOB_ID)
    assert {each.own_id for page in next_run_index.due(table, 0, None, NOW) for each in page} == {"active", "ending"}
    found, more = next_run_index.catalogue(table, 0, "", 100)
    assert (set(found), more) == ({(pk, keys.schedule(sid)) for sid in ("active", "stopped", "ending")}, None)


def test_a_runs_row_names_its_owner_and_itself(table: Table) -> None:
    one = run(wake_at=NOW)
    table.put(run_rows.item_of(one, shards=1, lane=Lane.FAST))

    found = row(table)

    assert (found.tenant, found.owner, found.own_id) == (TENANT, SCHEDULE_ID, one.uuid)
    assert (found.generation, found.planned_total) == (1, 0)


# The advance


def step(there: WaitingRow, **members: Any) -> Advance:
    return Advance(**{"row": there, "next_run_at": NOW + MINUTE, "planned_total": 1, **members})


def test_an_advance_sets_the_next_instant_and_the_count_and_nothing_else(table: Table) -> None:
    before = put(table)

    moved = next_run_index.advance(table, [step(row(table))], 1)

    assert (len(moved.done), moved.left, moved.again) == (1, (), ())
    assert stored(table) == replace(before, next_run_at=NOW + MINUTE, planned_total=1)


def test_the_last_advance_makes_the_row_a_wake(table: Table) -> None:
    before = put(table)

    next_run_index.advance(table, [step(row(table), ending=True, last_at=NOW, planned_total=3)], 1)

    assert stored(table) == replace(
        before, next_run_at=NOW + MINUTE, planned_total=3, state=ScheduleState.ENDING, last_planned_at=NOW
    )
    assert SweepText.read(row(table).sweep).waits is Waits.END


@pytest.mark.parametrize(
    "between",
    [
        {"next_run_at": NOW + SECOND},
        {"generation": 2},
        {"generation": 2, "next_run_at": NOW + MINUTE},
        {"next_run_at": None, "state": ScheduleState.PAUSED},
        {"next_run_at": NOW + 2 * MINUTE, "planned_total": 2},
    ],
)
def test_entries_changed_by_others_are_left(table: Table, between: dict[str, Any]) -> None:
    put(table)
    read = row(table)
    changed = put(table, **between)

    moved = next_run_index.advance(table, [step(read)], 1)

    assert (moved.done, len(moved.left), moved.again) == ((), 1, ())
    assert stored(table) == changed


def test_deleted_entries_are_not_made_again(table: Table) -> None:
    put(table)
    read = row(table)
    table.delete(read.pk, read.sk)

    assert len(next_run_index.advance(table, [step(read)], 1).left) == 1
    assert jobs.read_schedule(table, TENANT, JOB_ID, SCHEDULE_ID) is None


def test_an_advance_that_the_sdk_repeated_is_its_own_success(table: Table, stage: Stage) -> None:
    put(table)

    with stage.taps.once(ADVANCE, answer_lost):
        moved = next_run_index.advance(table, [step(row(table))], 1)

    assert (len(moved.done), moved.left, moved.again) == (1, (), ())


def test_each_answer_is_judged_by_itself(table: Table, stage: Stage) -> None:
    for n in range(4):
        put(table, id=f"s{n}", next_run_at=NOW + n * SECOND)
    (rows,) = next_run_index.due(table, 0, None, NOW + MINUTE)
    put(table, id="s1", next_run_at=NOW + SECOND, generation=2)

    def throttled_third(_passing: Passing, act: Act) -> Any:
        answer = act()
        answer["Responses"][2] = {"Error": {"Code": "ThrottlingError", "Message": ""}}
        answer["Responses"][3] = {"Error": {"Code": "TransactionConflict", "Message": ""}}
        return answer

    with stage.taps.once(ADVANCE, throttled_third):
        moved = next_run_index.advance(table, [step(each) for each in rows], 1)

    assert [each.row.own_id for each in moved.done] == ["s0"]
    assert [each.row.own_id for each in moved.left] == ["s1"]
    assert [each.row.own_id for each in moved.again] == ["s2", "s3"]


def test_a_refused_batch_is_to_be_sent_again(table: Table, stage: Stage) -> None:
    put(table)
    steps = [step(row(table))]

    with stage.taps.once(ADVANCE, refused):
        assert next_run_index.advance(table, steps, 1) == Advanced(again=tuple(steps))


def test_a_batch_holds_25_rows_in_one_call(table: Table, stage: Stage) -> None:
    for n in range(next_run_index.BATCH_MOST):
        put(table, id=f"s{n:02d}")
    (rows,) = next_run_index.due(table, 0, None, NOW)
    stage.taps.passed.clear()

    moved = next_run_index.advance(table, [step(each) for each in rows], 1)

    assert len(moved.done) == 25
    assert stage.taps.names() == [ADVANCE]
    assert {stored(table, each.row.own_id).next_run_at for each in moved.done} == {NOW + MINUTE}


def test_a_run_row_moves_without_a_count(table: Table) -> None:
    one = run(wake_at=NOW)
    table.put(run_rows.item_of(one, shards=1, lane=Lane.FAST))

    moved = next_run_index.advance(table, [Advance(row(table), NOW + MINUTE)], 1)

    assert len(moved.done) == 1
    there = ledger.read(table, TENANT, SCHEDULE_ID, one.uuid)
    assert there == replace(one, wake_at=NOW + MINUTE)


def test_the_earliest_catch_up_is_found(table: Table) -> None:
    assert next_run_index.first_catch_up(table, TENANT, SCHEDULE_ID) is None
    for at in (NOW + MINUTE, NOW):
        pk, sk = keys.runs(TENANT, SCHEDULE_ID), keys.catch_up(epoch_s(at))
        table.put(CatchUpItem(pk=pk, sk=sk, shard=0, next_run_at=1, sweep="C;fast;sap;x"))

    assert next_run_index.first_catch_up(table, TENANT, SCHEDULE_ID) == NOW
