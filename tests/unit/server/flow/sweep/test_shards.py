"""More shards in a living stack: every row is read, by every version, whoever wrote it and when."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest

from sweephand.base.ids import shard_of
from sweephand.server.flow.sweep import sweep
from sweephand.server.flow.world import World
from sweephand.server.settings import from_environment
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.table import ShardsItem
from sweephand.server.store.index.shards import Shards
from sweephand.server.store.views import tenants
from sweephand.testing.taps import Act, Passing
from tests.support.stage import TENANT, Stage
from tests.support.stage import stage as new_stage
from tests.support.taps import Crash, crash_before, refused
from tests.unit.server.flow.common import HOUR, NOON, SECOND, exact

FEW, MANY = 1, 7
TWENTY = {"every": "PT20S", "count": 6}


def version(stage: Stage, wanted: int) -> World:
    """Returns the world of another function, which has just started with this number of shards."""
    return replace(stage.world, shards=Shards(stage.world.table, wanted))


def kept(stage: Stage) -> int:
    with stage.untapped():
        item = stage.world.table.get(ShardsItem, keys.STACK_SWEEP, keys.SHARDS)
        return 0 if item is None else item.shards


def shard(stage: Stage, planned: Any) -> int:
    job, schedule = planned.job, planned.schedules[0]
    (item,) = (
        each
        for each in stage.items()
        if (each["pk"]["S"], each["sk"]["S"]) == (keys.job(TENANT, job.id), keys.schedule(schedule.id))
    )
    return int(item["shard"]["N"])


def test_a_new_stack_has_64_shards_or_as_many_as_its_parameter_says() -> None:
    assert from_environment({"TABLE_NAME": "t"}).shards == 64
    assert from_environment({"TABLE_NAME": "t", "SHARDS": "128"}).shards == 128


def test_rows_move_to_their_new_shards_with_their_next_write(stage: Stage) -> None:
    planned = [stage.create({"cron": "* * * * *"}, name=f"job {n}") for n in range(6)]
    wanted = [shard_of(each.schedules[0].id, MANY) for each in planned]
    assert [shard(stage, each) for each in planned] != wanted

    stage.tick(version(stage, MANY))

    assert [shard(stage, each) for each in planned] == wanted
    assert all(stage.stored(each).planned_total == 2 for each in planned)


def test_a_row_that_nobody_writes_stays_where_it_is_and_is_swept(stage: Stage) -> None:
    planned = [stage.create({"cron": "0 13 * * *"}, name=f"job {n}") for n in range(6)]
    stage.tick(version(stage, MANY))
    before = [shard(stage, each) for each in planned]
    stage.pass_time(HOUR.total_seconds() - 60)

    tally = stage.tick(version(stage, MANY))

    assert max(before) < 2
    assert tally.advanced == 6


def raised_before_call(number: int | None, *, back: bool) -> int:
    """Plays a life of two schedules in which a function with more shards works before this call.

    It creates a job and sweeps in the middle of what the former version does. back: whether the former version goes on
    alone after that, as after a rollback; otherwise both versions sweep in turn. Returns the number of calls.
    """
    with new_stage(shards=FEW) as stage:
        former, made, calls = stage.world, [], Counter[str]()

        def both(passing: Passing, act: Act) -> Any:
            calls["all"] += 1
            if calls["all"] == number:
                newer = version(stage, MANY)
                made.append(stage.create(TWENTY, name="of the newer version", world=newer))
                stage.tick(newer)
            return act()

        with stage.taps.faulty(both):
            made += [stage.create(TWENTY, name=f"job {n}") for n in range(2)]
            for tick in range(3):
                stage.world = former if back or number is None or tick % 2 else version(stage, MANY)
                stage.run(60)
        stage.world = former
        stage.run(180)

        met = Counter((each.call.run_id) for each in stage.endpoint.received)
        assert set(met.values()) == {1}, "no occurrence is called twice"
        assert len(met) == 6 * len(made), "none is lost"
        assert all(each.at - each.call.planned_at < SECOND for each in stage.endpoint.received), "none is late"
        for each in made:
            exact(stage, each)
        return calls["all"]


@pytest.mark.parametrize("back", [False, True])
def test_shards_are_raised_between_any_two_calls_and_nothing_is_lost_doubled_or_late(*, back: bool) -> None:
    calls = raised_before_call(None, back=back)

    for number in range(1, calls, 20):
        raised_before_call(number, back=back)


@pytest.mark.long
@pytest.mark.parametrize("back", [False, True])
def test_the_same_before_each_call(*, back: bool) -> None:
    for number in range(1, raised_before_call(None, back=back) + 1):
        raised_before_call(number, back=back)


@pytest.mark.parametrize("call", ["UpdateItem", "TransactWriteItems"])
def test_no_row_is_in_a_shard_that_is_not_kept_yet(stage: Stage, call: str) -> None:
    newer = version(stage, MANY)

    with stage.taps.once(f"dynamodb.{call}", crash_before), pytest.raises(Crash):
        stage.create({"cron": "* * * * *"}, world=newer)

    assert kept(stage) == (2 if call == "UpdateItem" else MANY)
    assert stage.waiting() == {}


def test_two_functions_that_raise_at_once_keep_the_greater_number(stage: Stage) -> None:
    greater, lesser = version(stage, 9), version(stage, MANY)
    raised: list[Shards] = []

    def meanwhile(passing: Passing, act: Act) -> Any:
        if passing.name == "dynamodb.UpdateItem" and not raised:
            raised.append(greater.shards)
            int(greater.shards)
        return act()

    with stage.taps.faulty(meanwhile):
        assert int(lesser.shards) == 9

    assert (kept(stage), int(greater.shards)) == (9, 9)


def test_a_lower_number_is_refused_in_a_sentence_and_nothing_stops(stage: Stage) -> None:
    newer = version(stage, MANY)
    planned = [stage.create({"cron": "* * * * *"}, name=f"job {n}", world=newer) for n in range(6)]
    stage.world = version(stage, FEW)

    tally = stage.tick()
    late = stage.create({"cron": "* * * * *"}, name="late")

    assert tally.advanced == 6
    assert f"Shards cannot be lowered to {FEW}: the stack keeps its {MANY} shards" in stage.journal.at("warning")
    assert kept(stage) == MANY
    assert shard(stage, late) == shard_of(late.schedules[0].id, MANY)
    assert all(stage.stored(each).planned_total == 2 for each in planned)


def test_a_tick_that_cannot_read_the_number_sweeps_the_shards_it_knows(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"}, world=version(stage, MANY))

    def no_list(passing: Passing, act: Act) -> Any:
        unread = passing.operation == "Query" and keys.STACK_SWEEP in str(passing.request["ExpressionAttributeValues"])
        return refused(passing, act) if unread else act()

    older = version(stage, FEW)
    older.shards.read()
    with stage.taps.faulty(no_list):
        stage.tick(older)

    assert stage.stored(planned).planned_total == 2


def test_workers_that_know_different_numbers_leave_no_shard_out(stage: Stage) -> None:
    """The first worker of an older version has more shards than it wants."""
    newer = version(stage, MANY)
    planned = [stage.create({"cron": "* * * * *"}, name=f"job {n}", world=newer) for n in range(12)]
    assert {2, 4, 6} & {shard(stage, each) for each in planned}

    sweep.tick(version(stage, FEW), 0, 2)
    sweep.tick(newer, 1, 2)

    assert all(stage.stored(each).planned_total == 2 for each in planned)


def test_audit_and_health_look_at_every_shard_that_was_ever_used(stage: Stage) -> None:
    planned = [stage.create({"cron": "0 13 * * *"}, name=f"job {n}", world=version(stage, MANY)) for n in range(6)]
    stage.world = version(stage, FEW)
    for each in planned:
        stage.edit_schedule(each, next_run_at=None)

    assert stage.audit().stopped == 6
    assert stage.audit().schedules == 6
    assert tenants.oldest_due(stage.world.table, stage.world.shards.read()) == NOON + HOUR


def test_an_idle_tick_is_a_query_of_each_shard_and_one_of_the_stack() -> None:
    with new_stage(shards=64) as stage:
        stage.tick()  # the first one notes the version of its zone data
        stage.taps.passed.clear()

        stage.tick()

        assert stage.taps.names() == ["dynamodb.Query"] * 65


def test_a_plain_run_never_asks_for_the_number_of_shards(stage: Stage) -> None:
    stage.create({"cron": "* * * * *", "count": 1})
    stage.world = version(stage, 2)
    stage.clock.advance(60)
    stage.taps.passed.clear()

    stage.deliver_all()

    assert len(stage.endpoint.received) == 1
    assert not [each for each in stage.taps.passed if keys.SHARDS in str(each.request)]


def test_one_shard_with_a_burst_has_more_than_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    with new_stage(shards=1) as stage:
        planned = [stage.create({"cron": "* * * * *"}, name=f"job {n}") for n in range(4)]
        both, alone = Barrier(2), sweep._sweep_group

        def together(*given: Any) -> sweep.Tally:
            both.wait(60)  # raises if the other group waits for this one
            return alone(*given)

        monkeypatch.setattr(sweep, "_sweep_group", together)
        monkeypatch.setattr(sweep, "GROUP", 2)
        sweep.tick(stage.world)

        assert all(stage.stored(each).planned_total == 2 for each in planned)
