"""Somebody else changes an item between the read and the write that follows from it: the write gives way.

Each case changes one attribute alone, so that it is one clause of the condition that notices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sweephand.domain.instants import epoch_ms
from sweephand.domain.job import Pause
from sweephand.domain.message import occurrence
from sweephand.domain.occurrences.index_row import SweepText
from sweephand.domain.run import Reason, State
from sweephand.domain.schedule import Lane, ScheduleState
from sweephand.server.flow.deletes import clean_up
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.server.flow.runs import settle
from sweephand.server.flow.series import catch_up, holding
from sweephand.server.store.dynamo import keys
from sweephand.server.store.index import next_run_index
from sweephand.server.store.index.next_run_index import WaitingRow
from sweephand.testing.taps import Act, Passing
from tests.faults import sites
from tests.support.stage import TENANT, Stage
from tests.unit.server.flow.common import HOUR, MINUTE, NOON, once

EACH_MINUTE = {"cron": "* * * * *"}
LATEST = {"misfire": {"type": "latest"}}


@contextmanager
def meanwhile(stage: Stage, site: str, edit: Callable[[], object]) -> Iterator[None]:
    """Edits as the call at `site` is about to be made for the first time."""
    met = False

    def fault(_passing: Passing, act: Act) -> Any:
        nonlocal met
        if not met and str(sites.of_this_call().site) == site:
            met = True
            edit()
        return act()

    with stage.taps.faulty(fault):
        yield
    assert met, f"no call at {site}"


def number(value: int) -> dict[str, str]:
    return {"N": str(value)}


def raw(stage: Stage, planned: Planned) -> dict[str, Any]:
    """Returns the row of the job's first schedule."""
    sk = keys.schedule(planned.schedules[0].id)
    return next(item for item in stage.items() if item["sk"]["S"] == sk)


def item(stage: Stage, pk: str, sk: str) -> dict[str, Any] | None:
    return next((each for each in stage.items() if (each["pk"]["S"], each["sk"]["S"]) == (pk, sk)), None)


def due(stage: Stage) -> list[WaitingRow]:
    """Returns the rows that a sweep would find, however far ahead."""
    with stage.untapped():
        pages = [
            page
            for shard in range(stage.world.settings.shards)
            for page in next_run_index.due(stage.world.table, shard, None, NOON + HOUR)
        ]
    return [row for page in pages for row in page]


def moved(stage: Stage, planned: Planned, attribute: str) -> Callable[[], None]:
    """Raises that attribute by one when asked for it."""

    def edit() -> None:
        value = int(raw(stage, planned)[attribute]["N"])
        stage.edit_schedule(planned, **{attribute: number(value + 1)})

    return edit


# The sweep


def test_an_unreadable_row_that_changed_meanwhile_stays_in_service(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    stage.edit_schedule(planned, sweep={"S": 'S;fast;sap;{"cron":"gone"}'})

    with meanwhile(stage, "server/flow/sweep/broken_rows.take_out update", moved(stage, planned, "next_run_at")):
        stage.tick()

    assert raw(stage, planned)["state"]["S"] == ScheduleState.ACTIVE


@pytest.mark.parametrize("attribute", ["next_run_at", "generation"])
def test_a_schedule_that_changed_meanwhile_is_not_split(stage: Stage, attribute: str) -> None:
    planned = stage.create(EACH_MINUTE, policies=LATEST)
    stage.pass_time(1_800)

    with meanwhile(stage, "server/flow/series/catch_up.split transact", moved(stage, planned, attribute)):
        stage.tick()

    assert stage.stored(planned).missed_to is None
    assert stage.runs(planned) == []


@pytest.mark.parametrize("attribute", ["next_run_at", "sweep"])
@pytest.mark.parametrize("rate", [1, 6_000])
def test_a_catch_up_that_advanced_meanwhile_is_neither_moved_nor_removed(
    stage: Stage, attribute: str, rate: int
) -> None:
    """rate: one of its occurrences a minute goes out, or all: then its row would go too."""
    planned = stage.create(EACH_MINUTE, policies={"misfire": {"type": "all", "ratePerMinute": rate}})
    stage.pass_time(900)
    stage.tick()
    (read,) = [row for row in due(stage) if row.sk.startswith("CATCHUP#")]
    row = item(stage, read.pk, read.sk)
    later = {"next_run_at": number(int(row["next_run_at"]["N"]) + 1), "sweep": {"S": row["sweep"]["S"] + " "}}
    stage.edit_item(read.pk, read.sk, **{attribute: later[attribute]})

    catch_up.send_stretch(stage.world, read, SweepText.read(read.sweep), stage.clock.now())

    assert item(stage, read.pk, read.sk) == {**row, attribute: later[attribute]}
    assert stage.stored(planned).missed_to is not None


@pytest.mark.parametrize("attribute", ["next_run_at", "generation"])
def test_a_held_schedule_that_changed_meanwhile_is_not_released(stage: Stage, attribute: str) -> None:
    planned = stage.create(EACH_MINUTE)
    read = holding.row_of(stage.stored(planned))
    moved(stage, planned, attribute)()

    assert holding.release(stage.world, read, NOON + 10 * MINUTE) is None

    assert stage.runs(planned) == []


# The end


@pytest.mark.parametrize("attribute", ["state", "planned_total"])
def test_a_series_that_advances_meanwhile_is_not_completed(stage: Stage, attribute: str) -> None:
    planned = stage.create(once())
    stage.tick()
    stage.clock.advance(60)

    def edit() -> None:
        if attribute == "state":
            stage.edit_schedule(planned, state={"S": ScheduleState.ACTIVE.value})
        else:
            moved(stage, planned, "planned_total")()

    with meanwhile(stage, "server/flow/jobs/completion.complete_if_over update", edit):
        stage.deliver(most=1)

    left = {"state": ScheduleState.ACTIVE, "planned_total": ScheduleState.ENDING}
    assert stage.stored(planned).state is left[attribute]


@pytest.mark.parametrize("what", ["a run that is held", "more rows than one look takes"])
def test_a_clean_up_that_others_finished_meanwhile_leaves_no_row(
    stage: Stage, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean_up, "MOST_ROWS", 0 if what.startswith("more") else 10)
    planned = stage.create(once())
    stage.run(61)
    run = stage.only_run(planned)
    if what.endswith("held"):
        lease = {"lease_until": number(epoch_ms(stage.clock.now() + 10 * MINUTE)), "owner": {"S": "an executor"}}
        pk = keys.runs(TENANT, planned.schedules[0].id)
        stage.edit_item(pk, keys.run(run.uuid), state={"S": State.TRIGGERED.value}, **lease)
    stage.delete(planned)
    site = "server/flow/deletes/clean_up._end_and_clear update" + (" 2" if what.startswith("more") else "")
    (key,) = [(each["pk"]["S"], each["sk"]["S"]) for each in stage.items() if each["sk"]["S"].startswith("CLEAN#")]

    def others() -> None:
        with stage.untapped():
            stage.world.table.delete(*key)

    with meanwhile(stage, site, others):
        stage.run(90)

    assert item(stage, *key) is None


# Changes


def test_a_rename_is_applied_to_the_row_that_was_read(stage: Stage) -> None:
    """A change that leaves the series alone is compared with the row: if another by now, it is compared anew."""
    planned = stage.create(EACH_MINUTE)

    def request(there: Planned) -> list[ScheduleRequest]:
        (schedule,) = there.schedules
        return [ScheduleRequest(schedule, stage.schedule(EACH_MINUTE, "another name"))]

    with meanwhile(stage, "server/flow/jobs/change._commit transact", moved(stage, planned, "generation")):
        stage.change_schedules(planned, request)

    assert stage.taps.count("dynamodb.TransactWriteItems") == len(["create", "refused", "change"])
    assert stage.stored(planned).name == "another name"


# The audit


def test_a_count_that_moves_meanwhile_is_not_corrected(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    stage.run(1_200)
    stage.edit_schedule(planned, planned_total=number(99))

    def edit() -> None:
        stage.edit_schedule(planned, planned_total=number(100))

    with meanwhile(stage, "server/flow/audit/reconcile._correct update", edit):
        assert stage.audit().corrected == 0

    assert stage.stored(planned).planned_total == 100


def test_a_run_counted_meanwhile_by_another_audit_is_counted_once(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE, policies=LATEST)
    stage.run(300)
    stage.pass_time(3_600)
    stage.run(1_300)
    (line,) = [run for run in stage.runs(planned) if run.range_count is not None]
    schedule = stage.stored(planned)
    pointer = occurrence(TENANT, schedule.job_id, schedule.id, line.planned_at, 1)
    settle.end_unacted(stage.world, Lane.FAST, pointer, None, State.SKIPPED, Reason.BY_HAND)
    missed = stage.totals(planned).missed

    with meanwhile(stage, "server/flow/audit/reconcile._recount transact", stage.audit):
        stage.audit()

    assert stage.totals(planned).missed == missed - 1


@pytest.mark.parametrize("attribute", ["generation", "state"])
def test_a_schedule_that_advances_meanwhile_stays_in_the_catalogue(stage: Stage, attribute: str) -> None:
    planned = stage.create(EACH_MINUTE)
    stage.run(150)
    stage.set_state(planned, pause=Pause(NOON))
    stage.run(3_600)

    def edit() -> None:
        if attribute == "state":
            stage.edit_schedule(planned, state={"S": ScheduleState.ACTIVE.value})
        else:
            moved(stage, planned, "generation")()

    with meanwhile(stage, "server/flow/audit/reconcile._settle update", edit):
        stage.audit()

    assert "schedule_id" in raw(stage, planned)
