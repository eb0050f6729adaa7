"""What should have run against the ledger: repaired, reported, and the totals stay exact."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from sweephand.domain.instants import from_ms, text
from sweephand.domain.job import Pause
from sweephand.domain.run import State
from sweephand.domain.schedule import Lane, ScheduleState
from sweephand.errors import Unavailable
from sweephand.flow.plan import Planned
from sweephand.ids import shard_of
from sweephand.store import keys
from sweephand.store.table import StatsItem
from tests.support.endpoint import BUSY, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before, refused
from tests.unit.flow.common import MINUTE, NOON, SECOND, exact, fixed, minutes, once

EACH_MINUTE = {"cron": "* * * * *"}
EACH_FIVE = {"cron": "*/5 * * * *"}


def purge(stage: Stage) -> None:
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])


def in_queue(stage: Stage) -> int:
    return len(stage.sqs.bodies(stage.world.settings.queue_urls[Lane.FAST]))


def stats(stage: Stage, planned: Planned) -> StatsItem | None:
    schedule = planned.schedules[0]
    return stage.world.table.get(StatsItem, keys.job(TENANT, schedule.job_id), keys.stats(schedule.id))


def purged_after(stage: Stage, seconds: float, **members: Any) -> Planned:
    """The queue is purged with two occurrences of a minute job in it; then it runs on."""
    planned = stage.create(EACH_MINUTE, **members)
    stage.run(seconds)
    purge(stage)
    return planned


# Healthy


def test_what_is_healthy_is_left_alone(stage: Stage) -> None:
    planned = stage.create(EACH_FIVE)
    stage.run(3_000)
    before, schedule = in_queue(stage), stage.stored(planned)

    findings = stage.audit()

    assert (findings.schedules, findings.stopped, findings.lost) == (1, 0, 0)
    assert in_queue(stage) == before
    assert stage.stored(planned) == schedule
    assert "AuditFindings" not in stage.journal.counts


def test_an_occurrence_in_the_second_of_the_creation_was_never_planned(stage: Stage) -> None:
    """Created a quarter of a second past noon: noon itself is no occurrence that was lost."""
    stage.create(EACH_MINUTE)
    stage.run(1_500)

    assert stage.audit().lost == 0
    stage.run(60)
    assert stage.endpoint.planned[0] == NOON + MINUTE


def test_what_is_not_yet_old_enough_is_not_missed(stage: Stage) -> None:
    stage.create(EACH_MINUTE)
    stage.run(60)
    purge(stage)

    assert stage.audit().lost == 0


def test_settled_runs_are_counted_once_and_for_all(stage: Stage) -> None:
    stage.endpoint.script = [WRONG]
    planned = stage.create(EACH_MINUTE)
    stage.run(1_800)
    before = stage.totals(planned)

    stage.audit()

    item = stats(stage, planned)
    assert item is not None
    assert item.settled_to is not None
    assert from_ms(item.settled_to) == stage.clock.now() - 10 * MINUTE
    assert item.settled_total == 20
    assert stage.totals(planned) == before


def test_totals_stay_when_old_rows_expire(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    stage.run(1_800)
    before = stage.totals(planned)
    stage.audit()
    item = stats(stage, planned)
    assert item is not None
    for run in stage.runs(planned):
        if run.planned_at <= from_ms(item.settled_to or 0):
            stage.world.table.delete(keys.runs(TENANT, planned.schedules[0].id), keys.run(run.uuid))

    assert stage.totals(planned) == before
    stage.run(900)
    assert stage.audit().lost == 0


def test_audit_after_audit_moves_on_and_counts_no_run_twice(stage: Stage) -> None:
    planned = stage.create(EACH_FIVE, action=stage.action(retry=fixed(60)))
    stage.endpoint.script = [BUSY, BUSY, WRONG]
    for _ in range(6):
        stage.run(1_200)
        stage.audit()

    totals, fold = stage.totals(planned), stage.fold(planned)
    assert (totals.ended, totals.failed) == (fold.ended, fold.failed)


@pytest.mark.parametrize("fault", [answer_lost, refused])
def test_settling_up_is_safe_to_repeat(stage: Stage, fault: Any) -> None:
    planned = stage.create(EACH_MINUTE)
    stage.run(1_800)
    before = stage.totals(planned)

    with suppress(Unavailable), stage.taps.once("dynamodb.UpdateItem", fault):
        stage.audit()
    stage.audit()

    assert stage.totals(planned) == before
    item = stats(stage, planned)
    assert item is not None
    assert item.settled_total == 20


def test_two_auditors_at_once_settle_the_same(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    stage.run(1_800)
    before = stage.totals(planned)

    def other_first(_passing: Any, act: Any) -> Any:
        fault, stage.taps.fault = stage.taps.fault, None
        stage.clock.advance(30)
        stage.audit()
        stage.taps.fault = fault
        return act()

    with stage.taps.once("dynamodb.UpdateItem", other_first):
        stage.audit()

    assert stage.totals(planned) == before


# Lost messages


def test_the_runs_of_a_purged_queue_come_back_under_the_same_ids(stage: Stage) -> None:
    planned = purged_after(stage, 61)
    stage.run(1_200)
    lost = {at for at in minutes(2, 3) if at not in stage.endpoint.planned}
    assert lost

    findings = stage.audit()
    stage.run(10)

    assert findings.lost == len(lost)
    assert stage.journal.counts["AuditFindings"] == len(lost)
    assert set(stage.endpoint.planned) >= lost
    assert len(stage.endpoint.planned) == len(set(stage.endpoint.planned))
    uuids = [run.uuid for run in stage.runs(planned)]
    assert len(uuids) == len(set(uuids))
    stage.run(1_200)
    assert stage.audit().lost == 0
    totals, fold = stage.totals(planned), stage.fold(planned)
    assert totals.ended == fold.ended == len(stage.endpoint.planned)


def test_settled_to_waits_for_what_is_missing(stage: Stage) -> None:
    planned = purged_after(stage, 61)
    stage.run(1_200)

    stage.audit()
    assert stats(stage, planned) is None
    stage.run(10)
    stage.audit()

    item = stats(stage, planned)
    assert item is not None
    assert item.settled_total == stage.totals(planned).ended - sum(
        run.planned_at > stage.clock.now() - 10 * MINUTE for run in stage.runs(planned) if run.finished
    )


def test_a_series_whose_last_messages_were_lost_completes_after_the_audit(stage: Stage) -> None:
    planned = stage.create({"every": "PT10S", "count": 5})
    stage.tick()
    purge(stage)
    stage.run(1_000)
    assert stage.stored(planned).state is ScheduleState.ENDING

    stage.audit()
    stage.run(1_000)

    assert stage.stored(planned).state is ScheduleState.COMPLETED
    exact(stage, planned)


def test_a_one_time_instant_a_moment_past_is_found_too(stage: Stage) -> None:
    planned = stage.create(once(-30 * SECOND))
    stage.tick()
    purge(stage)
    stage.run(1_000)

    stage.audit()
    stage.run(1_000)

    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert stage.endpoint.planned == [NOON - 30 * SECOND]
    exact(stage, planned)


def test_a_run_whose_holder_died_and_whose_message_was_purged_goes_on(stage: Stage) -> None:
    planned = stage.create(EACH_FIVE)
    stage.run(240)
    stage.clock.advance(61)
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.deliver(most=1)
    purge(stage)
    stage.run(700)
    assert stage.runs(planned)[0].state is State.TRIGGERED

    assert stage.audit().lost == 1
    stage.run(10)

    run = stage.runs(planned)[0]
    assert (run.state, run.lost) == (State.SUCCESS, 1)


def test_a_near_retry_whose_message_was_purged_goes_on(stage: Stage) -> None:
    stage.endpoint.script = [BUSY]
    planned = stage.create(EACH_FIVE, action=stage.action(retry=fixed(60)))
    stage.run(320)
    purge(stage)
    stage.run(1_000)

    assert stage.audit().lost == 1
    stage.run(10)

    run = stage.runs(planned)[0]
    assert (run.state, run.attempt) == (State.SUCCESS, 2)


def test_the_audit_only_sends_and_never_settles(stage: Stage) -> None:
    planned = purged_after(stage, 61)
    stage.run(1_200)
    runs = stage.runs(planned)

    stage.audit()

    assert stage.runs(planned) == runs


def test_what_the_audit_sends_late_is_not_judged_late_again(stage: Stage) -> None:
    planned = purged_after(stage, 61, policies={"misfire": {"type": "latest"}})
    stage.run(3_600)

    stage.audit()
    stage.run(10)

    assert {run.state for run in stage.runs(planned)} == {State.SUCCESS}


def test_what_was_lost_in_an_outage_of_the_executors_and_paused_since_is_not_looked_for(stage: Stage) -> None:
    planned = purged_after(stage, 61)
    stage.set_state(planned, pause=Pause(NOON))
    stage.run(3_600)

    findings = stage.audit()

    assert (findings.schedules, findings.lost) == (0, 0)


# Series without a next time


def test_a_series_that_lost_its_next_time_goes_on_without_a_gap(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    stage.run(600)
    stage.edit_schedule(planned, next_run_at=None)
    stage.run(300)
    assert stage.stored(planned).next_run_at is None

    findings = stage.audit()
    stage.run(1_500)

    assert findings.stopped == 1
    assert "a series had lost its next time" in stage.journal.at("error")
    ran = sorted(stage.endpoint.planned)
    assert ran == [NOON + n * MINUTE for n in range(1, len(ran) + 1)]
    assert stage.audit().lost == 0
    totals, fold = stage.totals(planned), stage.fold(planned)
    assert (totals.ended, totals.planned - totals.open) == (fold.ended, fold.ended)
    ahead = stage.stored(planned).next_run_at
    assert ahead is not None
    assert totals.planned == (ahead - NOON) / MINUTE - 1


@pytest.mark.parametrize("after_s", [0, 1_000])
def test_the_count_of_a_series_that_was_mended_is_kept(stage: Stage, after_s: int) -> None:
    planned = stage.create({**EACH_MINUTE, "count": 20})
    stage.run(300)
    stage.edit_schedule(planned, next_run_at=None)
    stage.run(after_s)

    stage.audit()
    stage.run(4_000)
    stage.audit()
    stage.run(1_200)

    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert len(stage.endpoint.planned) == 20
    exact(stage, planned)


def test_a_series_that_lost_its_next_time_behind_its_end_completes(stage: Stage) -> None:
    planned = stage.create({**EACH_MINUTE, "endTime": text(NOON + 4 * MINUTE)})
    stage.run(90)
    stage.edit_schedule(planned, next_run_at=None)
    stage.run(1_200)

    stage.audit()
    stage.run(2_400)

    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert sorted(stage.endpoint.planned) == minutes(1, 2, 3, 4)
    exact(stage, planned)


def test_an_ending_series_that_lost_its_wake_gets_it_back(stage: Stage) -> None:
    planned = stage.create(once())
    stage.tick()
    stage.edit_schedule(planned, next_run_at=None)
    assert stage.stored(planned).state is ScheduleState.ENDING

    assert stage.audit().stopped == 1
    stage.run(1_200)

    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert stage.endpoint.planned == minutes(1)


def test_a_repair_that_comes_too_late_changes_nothing(stage: Stage) -> None:
    """Between the audit's read and its write the schedule was changed: the change wins."""
    planned = stage.create(EACH_MINUTE)
    stage.edit_schedule(planned, next_run_at=None)

    def changed_first(_passing: Any, act: Any) -> Any:
        stage.edit_schedule(planned, next_run_at={"N": "1900000000"})
        return act()

    with stage.taps.once("dynamodb.UpdateItem", changed_first):
        stage.audit()

    assert stage.waiting()[keys.job(TENANT, planned.job.id), keys.schedule(planned.schedules[0].id)] == 1_900_000_000


# Ranges and catch-ups


def test_what_the_policy_left_out_is_never_brought_back(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    stage.run(300)
    stage.pass_time(5_400)
    for _ in range(4):
        stage.run(600)
        stage.audit()

    left_out = [run for run in stage.runs(planned) if run.range_count is not None]
    assert len(left_out) == 1
    (line,) = left_out
    assert line.range_until is not None
    inside = [at for at in stage.endpoint.planned if line.planned_at <= at < line.range_until]
    assert inside == []
    totals, fold = stage.totals(planned), stage.fold(planned)
    assert (totals.ended, totals.open) == (fold.ended, fold.rows - fold.ended + (totals.planned - fold.rows))
    assert totals.missed == fold.left_out


def test_a_catch_up_under_way_is_neither_lost_nor_settled(stage: Stage) -> None:
    """Its occurrences are old and without a row, but each has its turn: nothing is sent twice, all are counted."""
    policies = {"misfire": {"type": "sap", "ratePerMinute": 1}}
    planned = stage.create({**EACH_MINUTE, "endTime": text(NOON + 25 * MINUTE)}, policies=policies)
    stage.run(60)
    stage.pass_time(1_100)
    for _ in range(10):
        stage.run(240)
        stage.audit()
    stage.run(2_400)

    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert sorted(stage.endpoint.planned) == minutes(*range(1, 26))
    exact(stage, planned)


def test_a_lost_message_of_a_catch_up_comes_back(stage: Stage) -> None:
    planned = stage.create({**EACH_MINUTE, "endTime": text(NOON + 30 * MINUTE)})
    stage.run(60)
    stage.pass_time(1_100)
    stage.tick()
    purge(stage)
    stage.run(3_600)

    stage.audit()
    stage.run(2_400)

    assert sorted(stage.endpoint.planned) == minutes(*range(1, 31))
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    exact(stage, planned)


# Its rounds


def test_an_hourly_audit_looks_at_its_24th_and_at_every_series_that_stopped(stage: Stage) -> None:
    planned = [stage.create(EACH_FIVE, name=f"job {n}") for n in range(12)]
    stopped = planned[0]
    stage.edit_schedule(stopped, next_run_at=None)
    seen = []
    for hour in range(24):
        seen.append(stage.audit(everything=False))
        assert seen[-1].stopped == (1 if hour == 0 else 0)
        stage.clock.advance(3_600)

    in_turn = sum(finding.schedules for finding in seen)
    part = shard_of(stopped.schedules[0].id, 24)
    first = int(NOON.timestamp()) // 3_600 % 24
    assert in_turn == 12 + (0 if part == first else 1)


def test_one_schedule_that_cannot_be_read_stops_no_audit(stage: Stage) -> None:
    unreadable = [stage.create(EACH_MINUTE, name=f"job {n}") for n in range(2)]
    fine = purged_after(stage, 61, name="fine")
    stage.run(1_200)
    stage.edit_schedule(unreadable[0], sweep={"S": 'S;fast;sap;{"cron":"gone"}'})
    stage.edit_schedule(unreadable[1], sweep={"S": "gone"})

    findings = stage.audit()

    assert findings.unreadable == 2
    assert findings.lost >= len([at for at in minutes(2, 3) if at not in [run.planned_at for run in stage.runs(fine)]])


def test_a_schedule_that_is_gone_meanwhile_is_passed_over(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)

    def deleted_first(_passing: Any, act: Any) -> Any:
        fault, stage.taps.fault = stage.taps.fault, None
        stage.delete(planned)
        stage.taps.fault = fault
        return act()

    with stage.taps.once("dynamodb.GetItem", deleted_first):
        findings = stage.audit()

    assert (findings.schedules, findings.stopped, findings.lost) == (0, 0, 0)


@pytest.mark.parametrize("fault", [crash_before, crash_after])
def test_an_audit_that_dies_is_made_good_by_the_next(stage: Stage, fault: Any) -> None:
    planned = purged_after(stage, 61)
    stage.run(1_200)
    with stage.taps.once("sqs.SendMessageBatch", fault), pytest.raises(Crash):
        stage.audit()

    stage.audit()
    stage.run(10)

    ran = sorted(stage.endpoint.planned)
    assert ran == [NOON + n * MINUTE for n in range(1, len(ran) + 1)]
    totals = stage.totals(planned)
    assert totals.ended == stage.fold(planned).ended


def test_an_interval_from_the_actual_start_is_not_recomputed(stage: Stage) -> None:
    """Its instants are facts of the row: what a rule would say of them is no finding."""
    stage.create({"every": "PT7M", "align": "actual_start"})
    stage.run(600)
    stage.pass_time(500)
    stage.run(3_600)

    findings = stage.audit()

    assert (findings.lost, findings.stopped) == (0, 0)
