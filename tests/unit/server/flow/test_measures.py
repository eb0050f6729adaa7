"""The metrics that the sweeper and the executor write for alarms and dashboard."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sweephand.base.errors import Unavailable
from sweephand.server import wiring
from sweephand.server.flow.runs import results
from sweephand.server.flow.sweep import sweep
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.table import Item
from sweephand.server.store.index import next_run_index
from sweephand.server.store.index.shards import Shards
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import ACCEPTED, BUSY, OK
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, conflict, crash_after, refused
from tests.unit.server.flow.common import HOUR, fixed, once

ROOT = Path(__file__).resolve().parents[4]
LATE = [250]
"""Milliseconds: the virtual clock is a quarter of a second after the full one."""


def written(stage: Stage, name: str) -> list[float | Sequence[float]]:
    return [line[name] for line in stage.journal.measures if name in line]


# The sweeper


def test_a_tick_in_time_writes_nothing(stage: Stage) -> None:
    stage.create({"every": "PT10S"})
    stage.create({"cron": "* * * * *"})

    stage.run(600)

    assert written(stage, "OldestDue") == []
    assert written(stage, "Resent") == []


def test_the_first_tick_after_an_outage_reports_the_longest_wait(stage: Stage) -> None:
    stage.create({"cron": "0 * * * *"})
    stage.pass_time(HOUR.total_seconds() + 90)

    stage.tick()
    stage.tick()

    assert written(stage, "OldestDue") == [90]


def test_the_oldest_of_all_shards_counts(stage: Stage) -> None:
    for n in range(12):
        stage.create({"cron": f"{n} 13 * * *"}, name=f"job {n}")
    stage.pass_time(HOUR.total_seconds() + 60 * 30)

    stage.tick()

    assert written(stage, "OldestDue") == [1_800]


def test_rows_that_a_tick_did_not_reach_count_too(stage: Stage) -> None:
    old = stage.create({"cron": "0 13 * * *"}, name="old")
    stage.pass_time(HOUR.total_seconds() + 1_500)
    fresh = [stage.create({"cron": "26 13 * * *"}, name=f"job {n}") for n in range(30)]
    for each in (old, *fresh):
        stage.edit_schedule(each, shard={"N": "0"})
    stage.world.table.delete(keys.STACK_SWEEP, keys.SHARDS)
    world = replace(stage.world, shards=Shards(stage.world.table, 1))

    def slow(passing: Passing, act: Act) -> Any:
        if passing.name == "dynamodb.BatchExecuteStatement":
            stage.clock.advance(51)
        return act()

    with stage.taps.faulty(slow):
        tally = sweep.tick(world)

    assert tally.cut_short
    assert written(stage, "OldestDue") == [1_500]


def test_a_tick_that_could_not_read_its_rows_counts_what_was_throttled(stage: Stage) -> None:
    stage.create({"cron": "* * * * *"})

    def no_index(passing: Passing, act: Act) -> Any:
        return refused(passing, act) if passing.name == "dynamodb.Query" else act()

    with stage.taps.faulty(no_index):
        tally = stage.tick()

    assert tally.unseen
    assert stage.journal.measures == [{"Throttled": 1}] * 3, "the list of what is disabled, and each of two shards"


def test_a_tick_that_could_not_read_its_rows_fails_so_that_its_event_is_kept(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring, "build", lambda: stage.world)
    sweeper = runpy.run_path(str(ROOT / "functions" / "sweeper" / "app.py"))
    stage.create({"cron": "* * * * *"})

    with stage.taps.once("dynamodb.Query", refused, skip=1), pytest.raises(Unavailable, match="could not be read"):
        sweeper["handler"]({"worker": 0, "workers": 1}, None)
    sweeper["handler"]({"worker": 0, "workers": 1}, None)

    stage.pass_time(60)
    stage.deliver_all()
    assert len(stage.endpoint.received) == 1


def test_a_request_that_the_table_throttled_in_all_attempts_is_counted(stage: Stage) -> None:
    table, row = stage.world.table, Item(pk="a", sk="b")
    requests: Mapping[str, Callable[[], object]] = {
        "dynamodb.GetItem": lambda: table.get(Item, "a", "b"),
        "dynamodb.PutItem": lambda: table.put(row),
        "dynamodb.TransactWriteItems": lambda: table.transact([table.put_op("row", row)]),
        "dynamodb.BatchGetItem": lambda: table.batch_get([("a", "b")]),
    }

    for name, request in requests.items():
        with stage.taps.once(name, refused), pytest.raises(Unavailable):
            request()

    assert stage.journal.measures == [{"Throttled": 1}] * len(requests)


def test_parts_of_a_request_that_were_throttled_are_counted(stage: Stage) -> None:
    table, row = stage.world.table, Item(pk="a", sk="b")

    def throttled(passing: Passing, _act: Act) -> Any:
        reasons = {"CancellationReasons": [{"Code": "ThrottlingError"}]}
        raise ClientError({"Error": {"Code": "TransactionCanceledException"}, **reasons}, passing.operation)  # type: ignore[typeddict-unknown-key]

    def half(_passing: Passing, _act: Act) -> Any:
        return {"Responses": [{}, {"Error": {"Code": "ProvisionedThroughputExceeded"}}]}

    with stage.taps.once("dynamodb.TransactWriteItems", throttled):
        table.transact([table.put_op("row", row)])
    with stage.taps.once("dynamodb.BatchExecuteStatement", half):
        table.statements([{}, {}])

    assert stage.journal.measures == [{"Throttled": 1}] * 2


def test_a_condition_that_failed_and_a_conflict_are_not_counted_as_throttled(stage: Stage) -> None:
    table, row = stage.world.table, Item(pk="a", sk="b")
    absent = Item.pk.does_not_exist()
    table.put(row)

    with stage.taps.once("dynamodb.TransactWriteItems", conflict):
        table.transact([table.put_op("row", row)])
    table.put(row, absent)

    assert stage.journal.measures == []


def test_failed_advances_are_reported_in_the_same_line(stage: Stage) -> None:
    stage.create({"cron": "* * * * *"})

    def no_advance(passing: Passing, act: Act) -> Any:
        return refused(passing, act) if passing.name == "dynamodb.BatchExecuteStatement" else act()

    stage.pass_time(90 + 60)
    with stage.taps.faulty(no_advance):
        stage.tick()

    assert stage.journal.measures[-1] == {"OldestDue": 90, "Resent": 1}
    assert stage.journal.counts["Throttled"] == sweep.ADVANCE_TRIES


def test_finding_the_oldest_row_costs_a_tick_in_time_no_query(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_run_index, "oldest", lambda *_: pytest.fail("asked"))
    stage.create({"cron": "* * * * *"})

    stage.run(120)


# The executor


def test_a_batch_writes_one_line_for_all_its_runs(stage: Stage) -> None:
    for n in range(7):
        stage.create(once(), name=f"job {n}")
    stage.endpoint.script = [OK, BUSY, OK, OK, BUSY, OK, OK]
    stage.run(200)

    (failed,) = written(stage, "Failed")
    (lateness,) = written(stage, "Lateness")

    assert sorted(failed) == [0, 0, 0, 0, 0, 1, 1]
    assert list(lateness) == LATE * 7
    assert len([line for line in stage.journal.measures if "Failed" in line or "Lateness" in line]) == 1


def test_lateness_is_measured_at_the_first_attempt_and_a_run_ends_once(stage: Stage) -> None:
    stage.create(once(), action=stage.action(retry=fixed(30, retries=2)))
    stage.endpoint.script = [BUSY, BUSY, OK]

    stage.run(300)

    assert written(stage, "Lateness") == [LATE]
    assert written(stage, "Failed") == [[0]]


def test_a_run_that_begins_late_reports_its_lateness(stage: Stage) -> None:
    stage.create(once())
    stage.tick()
    stage.pass_time(60 + 42)

    stage.deliver_all()

    assert written(stage, "Lateness") == [[42_250]]


def test_manual_runs_and_error_actions_are_never_late(stage: Stage) -> None:
    stage.create(once(), error_action=stage.action())
    stage.endpoint.script = [BUSY, OK]

    stage.run(300)

    assert len(stage.endpoint.received) == 2
    assert written(stage, "Lateness") == [LATE]
    assert sorted(value for line in written(stage, "Failed") for value in line) == [0, 1]


def test_a_waiting_run_ends_when_its_result_arrives(stage: Stage) -> None:
    planned = stage.create(once(), action=stage.action(outcome={"on202": "wait", "callbackTimeoutSeconds": 600}))
    stage.endpoint.script = [ACCEPTED]
    stage.run(120)
    assert written(stage, "Failed") == []

    run = stage.only_run(planned)
    results.record(stage.world, TENANT, planned.schedules[0].id, run.uuid, success=False, message=None)
    stage.run(60)

    assert written(stage, "Failed") == [[1]]
    assert written(stage, "Lateness") == [LATE]


def test_a_copy_of_a_message_is_not_measured_again(stage: Stage) -> None:
    """A new schedule sends a pointer at once, and the tick after it another."""
    planned = stage.create(once())

    stage.run(200)

    assert stage.only_run(planned).finished
    assert written(stage, "Failed") == [[0]]


def test_a_batch_without_an_attempt_writes_nothing(stage: Stage) -> None:
    planned = stage.create(once())
    stage.tick()
    stage.delete(planned)
    stage.journal.measures.clear()

    stage.run(120)

    assert stage.endpoint.received == []
    assert not written(stage, "Lateness") + written(stage, "Failed")


def test_a_lost_metric_affects_no_run(stage: Stage) -> None:
    """The function dies between the run's end and the line: the copy of the message finds the run settled."""
    planned = stage.create(once())

    stage.tick()
    stage.pass_time(61)
    with stage.taps.once("dynamodb.UpdateItem", crash_after), pytest.raises(Crash):
        stage.deliver()
    stage.run(300)

    assert stage.only_run(planned).finished
    assert len(stage.endpoint.received) == 1
