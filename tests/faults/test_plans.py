"""The fault plans that each decision of the service needs, each as one test. Plans of single calls are crash points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any

import pytest

from sweephand.domain.instants import text
from sweephand.domain.message import decode
from sweephand.domain.run import Kind, Outcome, State
from sweephand.domain.schedule import Lane, ScheduleState
from sweephand.server.flow.jobs import completion
from sweephand.server.flow.jobs.change import ScheduleRequest
from sweephand.server.flow.runs import results
from sweephand.server.flow.sweep import sweep
from sweephand.server.store.index import next_run_index
from sweephand.server.store.index.next_run_index import Advanced, WaitingRow
from sweephand.server.store.jobs import directory
from sweephand.server.store.jobs.directory import BlockItem, DirectoryItem
from sweephand.server.store.views import jobs as views
from sweephand.testing.service import URLS
from sweephand.testing.sources import START
from sweephand.testing.taps import Act, Passing
from tests.support import many_jobs
from tests.support.endpoint import ACCEPTED, BUSY, OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, crash_after, crash_before

NOON = START.replace(microsecond=0)
MINUTE = timedelta(minutes=1)
MINUTELY = {"cron": "* * * * *"}


def one(minute: int = 1) -> dict[str, object]:
    return {"at": text(NOON + minute * MINUTE)}


def surviving(step: Any) -> None:
    try:
        step()
    except Crash:
        return


# Between the terminal write and the effects


def error_action_job(stage: Stage) -> Any:
    """Makes a job whose action fails and whose error action succeeds."""
    stage.endpoint.script = [WRONG]
    return stage.create(one(), action=stage.action(), error_action=stage.action(url="https://example.org/alarm"))


def test_the_message_repairs_a_crash_between_end_and_effects(stage: Stage) -> None:
    planned = error_action_job(stage)
    stage.tick()
    stage.clock.advance(60)

    with stage.taps.once("dynamodb.TransactWriteItems", crash_after):
        surviving(lambda: stage.deliver(most=1))
    stage.run(1_200)

    assert [run.state for run in stage.runs(planned, Kind.SCHEDULED)] == [State.REQUEST_ERROR]
    assert [run.state for run in stage.runs(planned, Kind.ERROR_ACTION)] == [State.SUCCESS]
    assert stage.totals(planned).failed == 1


@pytest.mark.parametrize("purged", [False, True])
def test_the_wake_repairs_a_crash_between_result_and_effects(stage: Stage, purged: bool) -> None:
    """Whoever ends a run from outside sets its wake in the same write: the effects survive even a purge."""
    stage.endpoint.script = [ACCEPTED]
    action = stage.action(outcome={"on202": "wait", "callbackTimeoutSeconds": 600})
    planned = stage.create(one(), action=action, error_action=stage.action())
    stage.run(70)
    run = stage.only_run(planned)

    with stage.taps.once("dynamodb.TransactWriteItems", crash_after), pytest.raises(Crash):
        results.record(stage.world, TENANT, planned.schedules[0].id, run.uuid, success=False, message=None)
    if purged:
        stage.sqs.purge(URLS[Lane.FAST])
    stage.run(1_200)

    assert [run.state for run in stage.runs(planned, Kind.SCHEDULED)] == [State.ERROR]
    assert [run.state for run in stage.runs(planned, Kind.ERROR_ACTION)] == [State.SUCCESS]
    assert stage.stored(planned).state is ScheduleState.FAULTED


# Retries


@pytest.mark.parametrize("executors", [1, 3])
def test_24_attempts_go_through_the_queue_whichever_executor_receives_them(stage: Stage, executors: int) -> None:
    """Five immediate retries, then three rounds of a pause and five more: no executor need remember anything."""
    stage.endpoint.answer = BUSY
    planned = stage.create(one(), action=stage.action(retry={"type": "two_level"}))
    stage.tick()

    for _ in range(400):
        for _ in range(executors):
            stage.deliver(most=1)
        stage.clock.advance(1)
    stage.run(1_200)

    run = stage.only_run(planned)
    assert (run.state, run.attempt) == (State.ERROR, 24)
    assert sorted(received.call.attempt for received in stage.endpoint.received) == list(range(1, 25))
    assert stage.totals(planned).failed_attempts == 24


def test_a_retry_in_16_days_survives_15_days_of_retention(stage: Stage) -> None:
    stage.endpoint.script = [BUSY]
    retry = {"type": "fixed", "delaySeconds": 16 * 86_400, "maxRetries": 1}
    planned = stage.create(one(), action=stage.action(retry=retry))
    stage.run(120)

    (row,) = [item for item in stage.items() if item["sk"]["S"].startswith("RUN#") and "#A#" not in item["sk"]["S"]]
    assert "expires_at" not in row
    stage.pass_time(16 * 86_400 - 300)
    stage.run(1_200)

    run = stage.only_run(planned)
    assert (run.state, run.attempt) == (State.SUCCESS, 2)
    assert run.expires_at is not None
    assert run.finished_at is not None
    assert run.expires_at >= run.finished_at + timedelta(days=15) - timedelta(seconds=1)


# Names, changes, deletes within the window


def test_a_name_deleted_and_created_again_within_the_window_runs_under_new_ids(stage: Stage) -> None:
    first = stage.create(one(), name="job")
    stage.clock.advance(30)
    stage.delete(first)
    second = stage.create(one(), name="job")

    stage.run(300)

    assert stage.runs(first.schedules[0]) == []
    assert [run.state for run in stage.runs(second)] == [State.SUCCESS]
    assert len(stage.endpoint.received) == 1


def test_a_delete_between_the_checks_of_two_copies_leaves_one_outcome(stage: Stage) -> None:
    """The first copy is past its gate as the job goes; the second finds no schedule."""
    planned = stage.create(one())
    stage.tick()
    stage.sqs.duplicate(URLS[Lane.FAST])
    stage.clock.advance(60)

    def deleted(_passing: Passing, act: Act) -> Any:
        fault, stage.taps.fault = stage.taps.fault, None
        stage.delete(planned)
        stage.deliver(most=1)
        stage.taps.fault = fault
        return act()

    with stage.taps.once("dynamodb.PutItem", deleted):
        stage.deliver(most=1)
    stage.run(300)

    assert len(stage.endpoint.received) == 1
    assert [run.state for run in stage.runs(planned.schedules[0])] == [State.SUCCESS]


@pytest.mark.parametrize("seconds", [59, 61])
def test_an_edit_a_second_before_or_after_an_instant_runs_it_once(stage: Stage, seconds: int) -> None:
    planned = stage.create({**MINUTELY, "endTime": text(NOON + 4 * MINUTE)})
    stage.run(seconds - 0.25)

    stage.change(planned, timings=[{"cron": "*/2 * * * *", "endTime": text(NOON + 4 * MINUTE)}])
    stage.run(1_300)

    ran = [run.planned_at for run in stage.runs(planned, Kind.SCHEDULED)]
    assert ran == [NOON + n * MINUTE for n in (1, 2, 4)]
    assert stage.stored(planned).planned_total == 3


def test_changing_a_rule_and_back_within_the_window_keeps_the_original_plan(stage: Stage) -> None:
    timing = {**MINUTELY, "endTime": text(NOON + 3 * MINUTE)}
    planned = stage.create(timing)
    stage.run(65)

    stage.change(planned, timings=[{"cron": "*/3 * * * *", "endTime": text(NOON + 3 * MINUTE)}])
    stage.change(planned, timings=[timing])
    stage.run(1_300)

    assert [run.planned_at for run in stage.runs(planned, Kind.SCHEDULED)] == [NOON + n * MINUTE for n in (1, 2, 3)]
    assert len(stage.endpoint.received) == stage.stored(planned).planned_total == 3


# Executors and their leases


def test_a_copy_received_during_the_lease_continues_when_the_holder_dies(stage: Stage) -> None:
    planned = stage.create(one())
    stage.tick()
    stage.sqs.duplicate(URLS[Lane.FAST])
    stage.clock.advance(60)

    def copy_comes_then_the_holder_dies(_passing: Passing, _act: Act) -> Any:
        fault, stage.taps.fault = stage.taps.fault, None
        stage.deliver(most=1)
        stage.taps.fault = fault
        raise Crash

    with stage.taps.once("endpoint.http", copy_comes_then_the_holder_dies):
        surviving(lambda: stage.deliver(most=1))
    stage.run(stage.world.settings.lease_s + 20)

    run = stage.only_run(planned)
    assert (run.state, run.lost) == (State.SUCCESS, 1)
    assert len(stage.endpoint.received) == 1


def test_a_success_after_a_lease_takeover_ends_the_run_once(stage: Stage) -> None:
    """The first holder freezes in its call; another takes over and is in its own call as the first one reports."""
    planned = stage.create(one())
    stage.tick()
    stage.clock.advance(60)
    calls = 0
    ended = []

    def frozen(_call: Any) -> Outcome:
        nonlocal calls
        calls += 1
        if calls == 1:
            stage.clock.advance(stage.world.settings.lease_s + 15)
            stage.deliver(most=1)
            ended.append(stage.only_run(planned))
            stage.clock.advance(1)
        return OK

    stage.endpoint.answer = frozen
    stage.deliver(most=1)
    stage.run(600)

    run = stage.only_run(planned)
    assert (calls, run.state, run.lost) == (2, State.SUCCESS, 1)
    assert [replace(run, notes=())] == ended
    assert stage.totals(planned).ended == 1


# Many at once


def test_twenty_last_runs_that_settle_concurrently_complete_the_series_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that had read the series before its end also writes again once all is over: the order of threads is luck."""
    planned = stage.create({"every": "PT1S", "count": 20})
    seen: list[tuple[Any, ...]] = []
    complete = completion.complete_if_over

    def recorded(*read: Any) -> bool:
        seen.append(read)
        return complete(*read)

    monkeypatch.setattr(completion, "complete_if_over", recorded)
    stage.tick()
    stage.clock.advance(30)
    while stage.deliver():
        pass
    assert seen
    for read in seen:
        assert complete(*read)

    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert [message for _, message, _ in stage.journal.lines].count("completed") == 1


def test_the_wake_completes_a_series_whose_last_run_lost_its_effects(stage: Stage) -> None:
    """Its executor died after the end was written, and its message was purged."""
    planned = stage.create({"at": text(NOON + timedelta(seconds=60))})
    stage.tick()
    stage.clock.advance(60)
    with stage.taps.once("dynamodb.GetItem", crash_before), pytest.raises(Crash):
        stage.deliver(most=1)
    assert stage.only_run(planned).state is State.SUCCESS
    for lane in Lane:
        stage.sqs.purge(stage.world.settings.queue_urls[lane])
    assert stage.stored(planned).state is ScheduleState.ENDING

    stage.run(1_200)

    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert len(stage.endpoint.received) == 1


OVERDUE = 100_000


def test_fresh_rows_are_sent_before_100_000_overdue_ones(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """One shard, more overdue rows than one tick can do: the fresh ones are on their second, the tick ends in time."""
    planned = stage.create({"at": text(NOON + timedelta(seconds=90))})
    row = waiting_row(stage, planned)
    order: list[str] = []

    old = WaitingRow(row.pk, row.sk, START - timedelta(days=1), row.sweep, row.generation, row.planned_total)

    def page(_table: Any, _shard: int, since: Any, _until: Any, begin: int | None) -> tuple[list[WaitingRow], Any]:
        if since is not None:
            return [row], None
        rest = OVERDUE - (begin or 0)
        return [old] * min(next_run_index.PAGE, rest), (
            begin or 0
        ) + next_run_index.PAGE if rest > next_run_index.PAGE else None

    def advance(_table: Any, steps: Sequence[Any], _shards: Any) -> Advanced:
        order.extend("fresh" if step.row is row else "overdue" for step in steps)
        stage.clock.advance(0.05)
        return Advanced(done=tuple(steps))

    monkeypatch.setattr(next_run_index, "_page", page)
    monkeypatch.setattr(next_run_index, "advance", advance)
    tally = sweep.tick(stage.world)

    assert order[0] == "fresh"
    assert tally.cut_short
    assert 1 < tally.rows < OVERDUE
    assert stage.clock.monotonic() < sweep.TICK_DEADLINE_S + 1


def waiting_row(stage: Stage, planned: Any) -> WaitingRow:
    shards = range(stage.world.settings.shards)
    pages = [
        page for shard in shards for page in next_run_index.due(stage.world.table, shard, None, START + MINUTE * 60)
    ]
    return next(row for page in pages for row in page if row.own_id == planned.schedules[0].id)


# Queues


def test_purged_messages_are_sent_again_under_the_same_ids(stage: Stage) -> None:
    planned = stage.create({**MINUTELY, "count": 3})
    stage.run(20)
    url = stage.world.settings.queue_urls[Lane.FAST]
    purged = {decode(body).run for body in stage.sqs.bodies(url)}
    assert purged
    stage.sqs.purge(url)
    stage.run(15 * 60)

    stage.audit()
    stage.run(1_200)

    ran = {run.uuid for run in stage.runs(planned, Kind.SCHEDULED)}
    assert purged <= ran
    assert len(ran) == 3
    assert stage.stored(planned).state is ScheduleState.COMPLETED


# Creates


def test_a_refused_create_of_41_schedules_leaves_nothing_and_a_crashed_one_arms_nothing(stage: Stage) -> None:
    before = all_but_numbers(stage)
    with pytest.raises(Exception, match="at most 40"):
        stage.create(*[one()] * 41)
    assert all_but_numbers(stage) == before

    with stage.taps.once("dynamodb.TransactWriteItems", crash_before):
        surviving(lambda: stage.create(*[one()] * 40))

    assert all_but_numbers(stage) == before
    stage.run(120)
    assert stage.endpoint.received == []


def all_but_numbers(stage: Stage) -> list[dict[str, Any]]:
    """Returns everything but numbers. A number that was given to a job and not used leaves a gap, and nothing else."""
    return [item for item in stage.items() if item["sk"]["S"] != "LAST"]


def test_a_schedule_deleted_while_its_message_is_in_flight_does_not_run(stage: Stage) -> None:
    planned = stage.create(one(), one(2))
    gone = planned.schedules[0]
    stage.tick()

    stage.change_schedules(
        planned,
        lambda there: [ScheduleRequest(each, None, delete=True) for each in there.schedules if each.id == gone.id],
    )
    stage.run(300)

    assert [received.call.schedule_id for received in stage.endpoint.received] == [planned.schedules[1].id]


# Lists


def test_a_page_at_offset_9_900_reads_its_own_block_of_the_directory(stage: Stage) -> None:
    """A page of 10,000 jobs: the counts of the blocks, then its own block in four partitions, whatever the offset."""
    for row in many_jobs.rows(TENANT, 10_000, 1):
        if isinstance(row, DirectoryItem | BlockItem):
            stage.world.table.put(row)
    stage.taps.passed.clear()

    page = list(islice(views.listed(stage.world.table, TENANT, views.ALL, None, 100, skip=9_900), 100))

    assert [row.number for row in page] == list(range(9_901, 10_001))
    assert stage.taps.names() == ["dynamodb.Query"] * len(stage.taps.passed)
    assert len(stage.taps.passed) <= directory.SPREAD + 4 + 1, "the last job of the page begins the next block"
