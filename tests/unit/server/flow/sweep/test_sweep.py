"""The tick: send, then advance; whatever is cut off or comes twice in between."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from threading import Barrier, Thread, get_ident
from typing import Any

import pytest

from sweephand.domain.message import decode
from sweephand.domain.run import Reason, State
from sweephand.domain.schedule import Lane, ScheduleState, StateReason
from sweephand.server.flow.sweep import sweep
from sweephand.server.store.dynamo import keys
from sweephand.server.store.index.shards import Shards
from sweephand.testing.taps import Act, Passing
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before, refused, some_failed
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, exact, once

ADVANCE = "dynamodb.BatchExecuteStatement"
SEND = "sqs.SendMessageBatch"


def sent(stage: Stage, lane: Lane = Lane.FAST) -> list[str]:
    """Returns the run ids of the messages in the queue."""
    return [decode(body).run for body in stage.sqs.bodies(stage.world.settings.queue_urls[lane])]


def unsent(stage: Stage) -> None:
    """Forgets what the API itself sent ahead."""
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])


def test_a_tick_sends_what_is_due_within_the_look_ahead_and_advances_past_it(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"})
    unsent(stage)

    tally = stage.tick()

    assert (tally.rows, tally.sent, tally.advanced, tally.resent) == (1, 2, 1, 0)
    schedule = stage.stored(planned)
    assert schedule.next_run_at == NOON + 3 * MINUTE
    assert (schedule.planned_total, schedule.state) == (2, ScheduleState.ACTIVE)
    bodies = [decode(body) for body in stage.sqs.bodies(stage.world.settings.queue_urls[Lane.FAST])]
    assert [pointer.instant for pointer in bodies] == [NOON + MINUTE, NOON + 2 * MINUTE]
    assert {(pointer.generation, pointer.attempt, pointer.decided) for pointer in bodies} == {(1, 1, False)}


def test_one_vanished_tick_makes_no_run_late(stage: Stage) -> None:
    stage.create({"every": "PT20S"})
    stage.run(179)
    for _ in range(61):  # the tick within vanishes
        stage.clock.advance(1)
        stage.deliver_all()
    stage._next_tick = stage.clock.now()

    stage.run(60)

    assert len(stage.endpoint.received) == 14
    assert all(received.at - received.call.planned_at < SECOND for received in stage.endpoint.received)


def test_no_row_advances_before_it_is_sent(stage: Stage) -> None:
    """Send, then advance: the other order loses an occurrence at a crash."""
    stage.create({"cron": "* * * * *"})
    stage.taps.passed.clear()

    stage.tick()

    names = stage.taps.names()
    assert names.index(SEND) < names.index(ADVANCE)
    assert names.count(ADVANCE) == 1


@pytest.mark.parametrize("fault", [crash_before, crash_after])
@pytest.mark.parametrize("call", [SEND, ADVANCE])
def test_an_interrupted_sweeper_repeats_messages_and_loses_none(stage: Stage, call: str, fault: Any) -> None:
    planned = stage.create({"cron": "* * * * *", "count": 4})
    unsent(stage)

    with stage.taps.once(call, fault), pytest.raises(Crash):
        stage.tick()
    stage.run(1_300)

    assert len(stage.endpoint.received) == 4
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    exact(stage, planned)


@pytest.mark.parametrize("call", [SEND, ADVANCE])
def test_a_lost_answer_changes_nothing(stage: Stage, call: str) -> None:
    planned = stage.create({"cron": "* * * * *", "count": 4})
    unsent(stage)

    with stage.taps.once(call, answer_lost):
        tally = stage.tick()
    assert (tally.advanced, tally.left, tally.resent) == (1, 0, 0)
    stage.run(1_300)

    assert len(stage.endpoint.received) == 4
    exact(stage, planned)


@pytest.mark.parametrize("call", [SEND, ADVANCE])
def test_a_refused_advance_is_retried_within_the_tick(stage: Stage, call: str) -> None:
    planned = stage.create({"cron": "* * * * *"})
    unsent(stage)

    with stage.taps.once(call, refused):
        tally = stage.tick()

    assert (tally.sent, tally.advanced, tally.resent) == (2, 1, 0)
    assert len(sent(stage)) == 2
    assert stage.stored(planned).planned_total == 2


def test_a_refusal_that_lasts_is_left_to_the_next_tick_and_counted(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *", "count": 4})
    unsent(stage)

    def no_advance(passing: Passing, act: Act) -> Any:
        return refused(passing, act) if passing.name == ADVANCE else act()

    with stage.taps.faulty(no_advance):
        tally = stage.tick()
    assert (tally.advanced, tally.resent) == (0, 1)
    assert stage.journal.counts["Resent"] == 1
    stage.run(1_300)

    assert len(stage.endpoint.received) == 4
    exact(stage, planned)


def test_only_the_messages_that_the_queue_refused_are_sent_again(stage: Stage) -> None:
    planned = stage.create({"every": "PT10S"})
    unsent(stage)

    with stage.taps.once(SEND, some_failed):
        tally = stage.tick()

    assert tally.resent == 0
    assert max(Counter(sent(stage)).values()) == 1
    assert len(sent(stage)) == stage.stored(planned).planned_total == 14


def test_a_row_whose_message_was_not_sent_is_not_advanced_and_delays_no_other(stage: Stage) -> None:
    stuck = stage.create({"cron": "* * * * *"}, name="stuck")
    fine = stage.create({"cron": "* * * * *"}, name="fine")
    unsent(stage)

    def refuse_one(passing: Passing, act: Act) -> Any:
        if passing.name != SEND:
            return act()
        mine = [entry for entry in passing.request["Entries"] if stuck.job.id in entry["MessageBody"]]
        others = [entry for entry in passing.request["Entries"] if stuck.job.id not in entry["MessageBody"]]
        passing.request["Entries"][:] = others
        answer = act() if others else {}
        return {**answer, "Failed": [{"Id": entry["Id"]} for entry in mine]}

    with stage.taps.faulty(refuse_one):
        tally = stage.tick()

    assert (tally.advanced, tally.resent) == (1, 1)
    assert stage.stored(stuck).next_run_at == NOON + MINUTE
    assert stage.stored(fine).next_run_at == NOON + 3 * MINUTE
    stage.tick()
    assert stage.stored(stuck).next_run_at == NOON + 3 * MINUTE
    assert stage.stored(stuck).planned_total == 2


# Two sweepers


def test_two_sweepers_in_one_minute_act_as_one(stage: Stage) -> None:
    planned = [stage.create({"every": "PT30S", "count": 6}, name=f"job {n}") for n in range(5)]
    world = in_one_shard(stage, *planned)
    together = Barrier(2)
    met: set[int] = set()

    def both_have_read(passing: Passing, act: Act) -> Any:
        if passing.name == SEND and get_ident() not in met:
            met.add(get_ident())
            together.wait(60)
        return act()

    with stage.taps.faulty(both_have_read):
        sweepers = [Thread(target=sweep.tick, args=(world,)) for _ in range(2)]
        for sweeper in sweepers:
            sweeper.start()
        for sweeper in sweepers:
            sweeper.join()
    assert len(met) == 2
    stage.run(1_300)

    assert len(stage.endpoint.received) == 30
    for each in planned:
        assert stage.stored(each).state is ScheduleState.COMPLETED
        exact(stage, each)


def test_the_second_of_two_sweepers_counts_the_same_advance_as_a_success(stage: Stage) -> None:
    """The first has brought the row where the second brings it: the same step, whoever made it."""
    stage.create({"cron": "* * * * *"})

    def other_first(_passing: Passing, act: Act) -> Any:
        act()
        return act()

    with stage.taps.once(ADVANCE, other_first):
        tally = stage.tick()

    assert (tally.advanced, tally.left) == (1, 0)


def test_a_sweeper_with_an_old_row_keeps_the_advance_of_another(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"})

    def moved_on(_passing: Passing, act: Act) -> Any:
        fault, stage.taps.fault = stage.taps.fault, None
        stage.clock.advance(120)
        stage.tick()
        stage.taps.fault = fault
        return act()

    with stage.taps.once(ADVANCE, moved_on):
        tally = stage.tick()

    assert tally.left == 1
    assert stage.stored(planned).next_run_at == NOON + 5 * MINUTE
    assert stage.stored(planned).planned_total == 4


def test_a_lagging_index_costs_a_few_messages_and_no_run(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *", "count": 4})
    seen: list[Any] = []

    def stale(passing: Passing, act: Act) -> Any:
        if passing.name != "dynamodb.Query" or passing.request.get("IndexName") != "next-run":
            return act()
        seen.append(act())
        return seen[max(0, len(seen) - 5)]

    with stage.taps.faulty(stale):
        stage.run(300)
    stage.run(1_200)

    assert len(stage.endpoint.received) == 4
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    exact(stage, planned)


# Order and bounds


def test_fresh_rows_come_before_overdue_ones(stage: Stage) -> None:
    old = stage.create({"cron": "0 * * * *"}, name="old")
    stage.tick()
    stage.pass_time(3_600 + 300)
    fresh = stage.create({"cron": "6 * * * *"}, name="fresh")
    unsent(stage)

    sweep.tick(in_one_shard(stage, old, fresh))

    order = [decode(body).job for body in stage.sqs.bodies(stage.world.settings.queue_urls[Lane.FAST])]
    assert order == [fresh.job.id, old.job.id]


def in_one_shard(stage: Stage, *planned: Any) -> Any:
    """Puts all rows in one shard, whatever their ids say: their order within a shard is what counts."""
    for each in planned:
        stage.edit_schedule(each, shard={"N": "0"})
    stage.world.table.delete(keys.STACK_SWEEP, keys.SHARDS)
    return replace(stage.world, shards=Shards(stage.world.table, 1))


def test_a_tick_stops_at_its_deadline_and_the_next_one_continues(stage: Stage) -> None:
    planned = [stage.create({"cron": "0 * * * *"}, name=f"job {n}") for n in range(sweep.GROUP + 3)]
    world = in_one_shard(stage, *planned)
    stage.pass_time(3_600)
    unsent(stage)

    def slow(passing: Passing, act: Act) -> Any:
        if passing.name == ADVANCE:
            stage.clock.advance(51)
        return act()

    with stage.taps.faulty(slow):
        tally = stage.tick(world)
    assert tally.cut_short
    assert len(sent(stage)) == sweep.GROUP

    sweep.tick(world)
    assert len(set(sent(stage))) == sweep.GROUP + 3
    assert len(sent(stage)) == sweep.GROUP + 3


def test_rows_are_sent_in_batches_of_10_and_advanced_in_batches_of_25(stage: Stage) -> None:
    planned = [stage.create({"cron": "* * * * *"}, name=f"job {n}") for n in range(26)]
    world = in_one_shard(stage, *planned)
    unsent(stage)
    stage.taps.passed.clear()

    sweep.tick(world)

    assert stage.taps.count(ADVANCE) == 2
    assert stage.taps.count(SEND) == 6
    assert len(sent(stage)) == 52


def test_a_table_that_does_not_answer_cuts_a_shard_short_and_spares_the_others(stage: Stage) -> None:
    stage.create({"cron": "* * * * *"})

    def no_index(passing: Passing, act: Act) -> Any:
        down = passing.request.get("ExpressionAttributeValues", {}).get(":0") == {"N": "0"}
        return refused(passing, act) if passing.name == "dynamodb.Query" and down else act()

    with stage.taps.faulty(no_index):
        tally = stage.tick()

    assert tally.cut_short
    assert "shard cut short" in stage.journal.at("warning")


def test_shards_are_swept_concurrently(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = [stage.create({"cron": "* * * * *"}, name=f"job {n}") for n in range(8)]
    both, alone = Barrier(2), sweep._sweep_group

    def together(*given: Any) -> sweep.Tally:
        both.wait(60)  # raises if the other shard waits for this one
        return alone(*given)

    monkeypatch.setattr(sweep, "_sweep_group", together)
    sweep.tick(stage.world)

    assert all(stage.stored(each).planned_total == 2 for each in planned)


def test_each_worker_sweeps_its_share_of_the_shards(stage: Stage) -> None:
    planned = [stage.create({"cron": "* * * * *"}, name=f"job {n}") for n in range(8)]

    first = sweep.tick(stage.world, 0, 2)
    second = sweep.tick(stage.world, 1, 2)

    assert first.advanced + second.advanced == 8
    assert first.advanced
    assert second.advanced
    assert all(stage.stored(each).planned_total == 2 for each in planned)


def test_a_schedule_of_every_second_is_swept_completely(stage: Stage) -> None:
    """Its occurrences go from the first second after the anchor to the last of the fourth look-ahead, none left out,
    none twice.
    """
    planned = stage.create({"every": "PT1S"})
    unsent(stage)

    for _ in range(4):
        stage.tick()
        stage.clock.advance(60)

    bodies = stage.sqs.bodies(stage.world.settings.queue_urls[Lane.FAST])
    instants = [decode(body).instant for body in bodies]
    assert instants == [instants[0] + n * SECOND for n in range(len(instants))]
    assert len(instants) == stage.stored(planned).planned_total == 329


# A schedule that cannot be read any more


def unreadable(stage: Stage, planned: Any) -> None:
    stage.edit_schedule(planned, sweep={"S": 'S;fast;sap;{"cron":"gone"}'})


def test_an_unreadable_schedule_is_marked_broken_with_a_line_in_the_ledger(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"})
    unsent(stage)
    unreadable(stage, planned)

    stage.tick()

    schedule = stage.stored(planned)
    assert (schedule.state, schedule.state_reason) == (ScheduleState.BROKEN, StateReason.UNREADABLE)
    assert (schedule.next_run_at, stage.waiting()) == (None, {})
    run = stage.only_run(planned)
    assert (run.state, run.reason, run.planned_at) == (State.ERROR, Reason.BAD_PAYLOAD, NOON + MINUTE)
    assert stage.journal.counts["Broken"] == 1
    assert "a schedule cannot be read" in stage.journal.at("error")
    exact(stage, planned)


def test_an_unreadable_schedule_delays_no_other(stage: Stage) -> None:
    broken = stage.create({"cron": "* * * * *"}, name="broken")
    fine = stage.create({"cron": "* * * * *"}, name="fine")
    world = in_one_shard(stage, broken, fine)
    unreadable(stage, broken)

    sweep.tick(world)

    assert stage.stored(fine).planned_total == 2


@pytest.mark.parametrize("call", ["dynamodb.TransactWriteItems", "dynamodb.UpdateItem"])
@pytest.mark.parametrize("fault", [crash_before, crash_after])
def test_a_crash_while_marking_a_broken_schedule_is_repaired(stage: Stage, call: str, fault: Any) -> None:
    planned = stage.create({"cron": "* * * * *"})
    unsent(stage)
    unreadable(stage, planned)
    with stage.taps.once(call, fault), pytest.raises(Crash):
        stage.tick()

    stage.tick()

    assert stage.stored(planned).state is ScheduleState.BROKEN
    assert len(stage.runs(planned)) == 1
    assert stage.totals(planned).failed == 1
    exact(stage, planned)


def test_a_broken_schedule_that_cannot_be_marked_now_delays_no_other(stage: Stage) -> None:
    broken = stage.create({"cron": "* * * * *"}, name="broken")
    fine = stage.create({"cron": "* * * * *"}, name="fine")
    world = in_one_shard(stage, broken, fine)
    unreadable(stage, broken)

    def no_transaction(passing: Passing, act: Act) -> Any:
        return refused(passing, act) if passing.operation == "TransactWriteItems" else act()

    with stage.taps.faulty(no_transaction):
        sweep.tick(world)

    assert stage.stored(fine).planned_total == 2
    sweep.tick(world)
    assert stage.stored(broken).state is ScheduleState.BROKEN


def test_a_row_of_a_later_version_is_left_alone(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"})
    schedule = planned.schedules[0]
    stage.edit_schedule(planned, sweep={"S": "Z;fast;;later"})

    stage.tick()

    assert "a row of a later version is left alone" in stage.journal.at("warning")
    assert stage.waiting()[keys.job(TENANT, schedule.job_id), keys.schedule(schedule.id)] == int(
        (NOON + MINUTE).timestamp()
    )


# Wake rows


def test_a_wake_row_sends_every_15_minutes_until_its_run_has_ended(stage: Stage) -> None:
    planned = stage.create(once())
    stage.run(50)
    unsent(stage)  # the only message is lost
    (moment,) = stage.waiting().values()
    assert timedelta(seconds=moment) - timedelta(seconds=NOON.timestamp()) <= 20 * MINUTE

    stage.run(3_600)

    spoken = [line for _, message, line in stage.journal.lines if message == "tick" and line["sent"]]
    assert len(spoken) >= 4
    assert stage.stored(planned).state is ScheduleState.ENDING
    stage.audit()
    stage.run(1_000)
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    exact(stage, planned)
