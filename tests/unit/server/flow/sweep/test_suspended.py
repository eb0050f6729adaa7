"""Disabled collections and tenants: what is held, what enabling makes of it, and every way to be cut off between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from sweephand.base.errors import SweephandError
from sweephand.domain.collection import Collection
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.schedule import Lane, ScheduleState
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.series import holding
from sweephand.server.flow.sweep import sweep
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.dynamo import keys
from sweephand.server.store.index import suspended
from sweephand.testing.sources import START
from sweephand.testing.taps import Act, Fault, Passing
from tests.support.stage import TENANT, Stage
from tests.support.stage import stage as a_stage
from tests.support.taps import Crash, answer_lost, conflict, crash_after, crash_before, refused
from tests.unit.server.flow.common import once

MINUTELY = {"cron": "* * * * *"}
NOON = START.replace(microsecond=0)
DEFAULT = "default"


def switch(stage: Stage, *, on: bool, collection: str = DEFAULT) -> None:
    tenancy.change_collection(
        stage.world, TENANT, collection, lambda before: tenancy.enabled(before, on=on), if_match=None
    )


def disabled(stage: Stage, *timings: dict[str, object], minutes: float = 10) -> Planned:
    """Makes a job whose collection was disabled before it was made, held for so long."""
    switch(stage, on=False)
    planned = stage.create(*(timings or (MINUTELY,)))
    stage.run(minutes * 60)
    return planned


def lines(stage: Stage, planned: Planned) -> list[Run]:
    return [run for run in stage.runs(planned) if run.range_count is not None]


def list_of_disabled(stage: Stage) -> set[str]:
    listed = {item["sk"]["S"] for item in stage.items() if item["pk"]["S"] == keys.STACK_SWEEP}
    return {sk for sk in listed if not sk.startswith((keys.SHARDS, keys.LOOK))}


def check_whole(stage: Stage, planned: Planned, since: datetime, until: datetime) -> None:
    """Checks that every minute is in one row or in one line, never in both, and that the totals match the rows."""
    runs = [run for run in stage.runs(planned) if run.range_count is None]
    told = [run.planned_at for run in runs]
    for line in lines(stage, planned):
        assert (line.state, line.reason) == (State.SKIPPED, Reason.DISABLED)
        assert line.range_until is not None
        within = [line.planned_at + timedelta(minutes=n) for n in range(10_000)]
        left_out = [at for at in within if at <= line.range_until and at not in told]
        assert len(left_out) == line.range_count
        told += left_out
    wanted = [since + timedelta(minutes=n) for n in range(1, 10_000)]
    assert sorted(told) == [at for at in wanted if at <= until]
    totals, fold = stage.totals(planned), stage.fold(planned)
    unsent_from = stage.stored(planned).unsent_from
    ahead = [at for at in wanted if unsent_from is not None and until < at < unsent_from]
    assert (totals.planned - len(ahead), totals.ended) == (fold.rows, fold.ended)


def test_a_disabled_collection_sends_nothing_and_its_rows_keep_their_instants(stage: Stage) -> None:
    planned = disabled(stage)

    there = stage.stored(planned)
    assert stage.runs(planned) == []
    assert there.held_from == NOON + timedelta(minutes=1)
    assert there.next_run_at is not None
    assert timedelta(minutes=50) < there.next_run_at - NOON < timedelta(hours=2, minutes=1)
    assert (there.state, there.planned_total, there.generation) == (ScheduleState.ACTIVE, 0, 1)


def test_enabling_leaves_one_line_and_the_series_continues_immediately(stage: Stage) -> None:
    planned = disabled(stage, minutes=10.5)

    switch(stage, on=True)
    stage.run(5 * 60)

    (line,) = lines(stage, planned)
    assert (line.planned_at, line.range_until, line.range_count) == (
        NOON + timedelta(minutes=1),
        NOON + timedelta(minutes=10),
        10,
    )
    assert [run.state for run in stage.runs(planned)[1:]] == [State.SUCCESS] * 5
    check_whole(stage, planned, NOON, NOON + timedelta(minutes=15))


def test_a_job_made_after_enabling_runs_even_for_an_earlier_instant(stage: Stage) -> None:
    switch(stage, on=False)
    stage.run(600)
    switch(stage, on=True)
    planned = stage.create(once(timedelta(seconds=590)))

    stage.tick()
    stage.run(200)

    run = stage.only_run(planned)
    assert (run.state, run.range_count) == (State.SUCCESS, None)
    assert stage.stored(planned).state is ScheduleState.COMPLETED


def test_the_note_of_enabling_is_deleted_once_all_schedules_continue(stage: Stage) -> None:
    disabled(stage)

    switch(stage, on=True)
    there = list_of_disabled(stage)
    stage.run(5 * 60)

    assert there == {"acme#default"}
    assert list_of_disabled(stage) == set()
    assert all("RELEASE" not in key for pair in stage.waiting() for key in pair)


def test_a_message_in_the_queue_counts_as_its_own_run(stage: Stage) -> None:
    planned = stage.create(MINUTELY)
    stage.run(1)
    switch(stage, on=False)
    stage.run(600)
    switch(stage, on=True)
    stage.run(300)

    runs = [run for run in stage.runs(planned) if run.range_count is None]
    assert {run.reason for run in runs[:2]} == {Reason.DISABLED}
    check_whole(stage, planned, NOON, NOON + timedelta(seconds=901))


def test_the_line_begins_after_the_sent_occurrences_even_if_the_row_did_not_advance(stage: Stage) -> None:
    """A sweeper died between sending and advancing, just before all was disabled."""
    planned = stage.create(MINUTELY)
    with stage.taps.once("dynamodb.BatchExecuteStatement", crash_before), suppress(Crash):
        stage.tick()
    switch(stage, on=False)
    stage.run(600)
    switch(stage, on=True)
    stage.run(120)

    (line,) = lines(stage, planned)
    ran = [run.planned_at for run in stage.runs(planned) if run.range_count is None]
    assert line.range_until is not None
    assert len([at for at in ran if at < line.planned_at]) >= 2
    assert not [at for at in ran if line.planned_at <= at <= line.range_until]
    check_whole(stage, planned, NOON, ran[-1])


def test_rows_held_together_are_spread_over_time(stage: Stage) -> None:
    for n in range(20):
        stage.create(MINUTELY, name=f"job {n}")
    switch(stage, on=False)
    stage.run(120)

    instants = sorted(stage.waiting().values())
    assert len(set(instants)) > 15
    assert instants[-1] - instants[0] > 1_200


def test_a_disabled_schedule_costs_one_write_an_hour(stage: Stage) -> None:
    disabled(stage, minutes=1)

    before = stage.taps.count("dynamodb.BatchExecuteStatement")
    stage.run(10 * 3_600)

    assert 8 <= stage.taps.count("dynamodb.BatchExecuteStatement") - before <= 10


def test_fresh_rows_of_other_collections_are_sent_before_held_rows_are_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "ASIDE_MOST", 3)
    monkeypatch.setattr(sweep, "GROUP", 2)
    with a_stage(shards=1) as stage:
        switch(stage, on=False)
        for n in range(12):
            stage.create(MINUTELY, name=f"held {n}")
        tenancy.create_collection(stage.world, Collection(TENANT, "other"))
        stage.create({"cron": "1 * * * *"}, name="fresh", collection="other")
        stage.clock.advance(60)
        passed = len(stage.taps.passed)

        stage.tick()

        calls = stage.taps.passed[passed:]
        sends = [n for n, call in enumerate(calls) if call.operation == "SendMessageBatch"]
        moves = [n for n, call in enumerate(calls) if "sweep" in str(call.request.get("Statements", ""))]
        held = [text for text in _texts(stage) if text.waits is Waits.HELD]
        assert len(sends) == 1
        assert sends[0] < min(moves)
        assert len(held) == 3


def _texts(stage: Stage) -> list[SweepText]:
    return [SweepText.read(item["sweep"]["S"]) for item in stage.items() if "sweep" in item]


def test_a_row_without_a_packed_collection_is_left_to_the_gate(stage: Stage) -> None:
    planned = stage.create(MINUTELY)
    text = SweepText.read(next(iter(item["sweep"]["S"] for item in stage.items() if "sweep" in item)))
    stage.edit_schedule(planned, sweep={"S": str(replace(text, collection=None))})
    switch(stage, on=False)
    stage.run(300)

    runs = stage.runs(planned)
    assert len(runs) == 5
    assert {run.reason for run in runs} == {Reason.DISABLED}
    assert all(run.range_count is None for run in runs)


def test_a_one_time_schedule_due_while_disabled_has_ended(stage: Stage) -> None:
    planned = disabled(stage, once())

    switch(stage, on=True)
    stage.run(300)

    (line,) = stage.runs(planned)
    assert (line.planned_at, line.range_count, line.reason) == (NOON + timedelta(minutes=1), 1, Reason.DISABLED)
    assert stage.stored(planned).state is ScheduleState.COMPLETED


def test_a_series_whose_end_passed_while_disabled_is_completed(stage: Stage) -> None:
    end = (NOON + timedelta(minutes=5)).isoformat()
    planned = disabled(stage, MINUTELY | {"endTime": end})

    switch(stage, on=True)
    stage.run(300)

    (line,) = stage.runs(planned)
    assert (line.range_count, line.reason) == (5, Reason.DISABLED)
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert stage.totals(planned).planned == 0


def test_omitted_occurrences_do_not_use_up_the_count(stage: Stage) -> None:
    planned = disabled(stage, MINUTELY | {"count": 3}, minutes=10.5)

    switch(stage, on=True)
    stage.run(600)

    assert [run.state for run in stage.runs(planned)[1:]] == [State.SUCCESS] * 3
    assert stage.stored(planned).state is ScheduleState.COMPLETED


def test_enabling_and_disabling_repeatedly_loses_no_occurrence(stage: Stage) -> None:
    planned = disabled(stage, minutes=10.5)
    for on in (True, True, False, True, False):
        switch(stage, on=on)
    stage.run(600)
    assert [run for run in stage.runs(planned) if run.state is State.SUCCESS] == []

    switch(stage, on=True)
    stage.run(330)

    check_whole(stage, planned, NOON, NOON + timedelta(minutes=26))


def test_the_second_round_releases_rows_held_by_a_tick_with_an_old_list(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = disabled(stage, minutes=10.2)
    old = suspended.read(stage.world.table)
    switch(stage, on=True)
    stage.deliver_all()
    with monkeypatch.context() as patched:
        patched.setattr(sweep.suspended, "read", lambda _: old)
        stage.tick()
    assert stage.stored(planned).held_from == NOON + timedelta(minutes=11)

    stage.run(330)

    assert stage.stored(planned).held_from is None
    check_whole(stage, planned, NOON, NOON + timedelta(minutes=15))
    assert lines(stage, planned)[-1].range_until == NOON + timedelta(minutes=10)


def test_everything_is_sent_to_the_gate_without_the_list(stage: Stage) -> None:
    planned = stage.create(MINUTELY)
    held = stage.create(MINUTELY)
    switch(stage, on=False)
    stage.run(1)
    stage.clock.advance(59)
    with stage.taps.faulty(_no_list):
        stage.tick()

    assert "cannot read the number of shards, and which tenants and collections are disabled" in stage.journal.at(
        "warning"
    )
    assert stage.stored(held).held_from is not None
    stage.deliver_all()
    assert all(run.reason is Reason.DISABLED for run in stage.runs(planned))


def _no_list(passing: Passing, act: Act) -> Any:
    if passing.operation == "Query" and keys.STACK_SWEEP in str(passing.request["ExpressionAttributeValues"]):
        return refused(passing, act)
    return act()


def test_a_held_row_that_is_not_listed_continues_on_its_own(stage: Stage) -> None:
    planned = disabled(stage)
    for sk in list_of_disabled(stage):
        stage.world.table.delete(keys.STACK_SWEEP, sk)
    stage.edit_item(keys.tenant(TENANT), keys.collection(DEFAULT), state={"S": "ENABLED"})

    stage.run(2 * 3_600)

    assert stage.stored(planned).held_from is None
    check_whole(stage, planned, NOON, NOON + timedelta(minutes=130))


# Changes while it is held


def test_a_job_moved_to_an_enabled_collection_continues_there(stage: Stage) -> None:
    planned = disabled(stage, minutes=10.5)
    tenancy.create_collection(stage.world, Collection(TENANT, "other"))

    stage.change(planned, collection="other")
    stage.run(300)

    there = stage.stored(planned)
    assert (there.collection, there.held_from) == ("other", None)
    assert len([run for run in stage.runs(planned) if run.state is State.SUCCESS]) == 5
    check_whole(stage, planned, NOON, NOON + timedelta(seconds=930))


def test_a_job_moved_to_a_disabled_collection_is_held_there(stage: Stage) -> None:
    planned = stage.create(MINUTELY)
    tenancy.create_collection(stage.world, Collection(TENANT, "other"))
    switch(stage, on=False, collection="other")

    stage.change(planned, collection="other")
    stage.run(600)

    assert stage.stored(planned).held_from is not None
    assert [run for run in stage.runs(planned) if run.state is State.SUCCESS] == []


@pytest.mark.parametrize("timing", [MINUTELY, {"cron": "*/2 * * * *"}], ids=["same", "other"])
def test_a_held_schedule_can_be_changed_paused_and_resumed(stage: Stage, timing: dict[str, object]) -> None:
    planned = disabled(stage, minutes=10.5)

    changed = stage.change(planned, timings=[timing])
    stage.set_state(changed, active=False)
    stage.set_state(changed, active=True)
    stage.run(600)
    switch(stage, on=True)
    stage.run(300)

    there = stage.stored(planned)
    runs = [run for run in stage.runs(planned) if run.range_count is None]
    assert (there.held_from, there.state) == (None, ScheduleState.ACTIVE)
    assert [run for run in runs if run.state is State.SUCCESS]
    totals, fold = stage.totals(planned), stage.fold(planned)
    assert totals.ended == fold.ended == fold.rows
    assert totals.open <= 2
    instants = [run.planned_at for run in runs]
    for line in lines(stage, planned):
        assert not [at for at in instants if line.planned_at <= at <= (line.range_until or at)]


def test_a_held_job_can_be_deleted(stage: Stage) -> None:
    planned = disabled(stage)

    stage.delete(planned)
    switch(stage, on=True)
    stage.run(600)

    assert stage.waiting() == {}


def test_the_audit_accepts_held_schedules(stage: Stage) -> None:
    planned = disabled(stage, minutes=90)

    held = stage.audit()
    switch(stage, on=True)
    stage.run(1_200)
    gone_on = stage.audit()

    assert (held.stopped, held.lost, gone_on.stopped, gone_on.lost) == (0, 0, 0, 0)
    check_whole(stage, planned, NOON, NOON + timedelta(minutes=110))


@pytest.mark.parametrize("page", [1, 2, 5])
def test_an_interrupted_release_continues_where_it_stopped(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """A stretch that takes too long leaves the rest to the next message; if that is lost, to the row."""
    monkeypatch.setattr(holding, "PAGE", page)
    monkeypatch.setattr(holding, "STRETCH_S", -1.0)
    for name in ("b", "c"):
        tenancy.create_collection(stage.world, Collection(TENANT, name))
    tenancy.switch_tenant(stage.world, TENANT, on=False)
    jobs = [
        stage.create(MINUTELY, name=f"{collection}{n}", collection=collection)
        for collection in (DEFAULT, "b", "c")
        for n in range(4)
    ]
    stage.run(330)

    with stage.taps.once("sqs.SendMessageBatch", refused, skip=2):
        tenancy.switch_tenant(stage.world, TENANT, on=True)
        stage.run(100)
    stage.run(300)

    assert [stage.stored(job).held_from for job in jobs] == [None] * len(jobs)
    assert [len(lines(stage, job)) for job in jobs] == [1] * len(jobs)
    assert list_of_disabled(stage) == set()


# Tenants


def test_enabling_a_tenant_releases_all_its_collections_except_disabled_ones(stage: Stage) -> None:
    tenancy.create_collection(stage.world, Collection(TENANT, "other"))
    first = stage.create(MINUTELY, name="first")
    second = stage.create(MINUTELY, name="second", collection="other")
    tenancy.switch_tenant(stage.world, TENANT, on=False)
    switch(stage, on=False, collection="other")
    stage.run(600)
    held = [stage.stored(each).held_from for each in (first, second)]

    tenancy.switch_tenant(stage.world, TENANT, on=True)
    stage.run(300)
    meanwhile = stage.stored(second).held_from
    switch(stage, on=True, collection="other")
    stage.run(330)

    assert held == [NOON + timedelta(minutes=1)] * 2
    assert meanwhile == NOON + timedelta(minutes=1)
    check_whole(stage, first, NOON, NOON + timedelta(seconds=1_230))
    check_whole(stage, second, NOON, NOON + timedelta(seconds=1_230))
    assert list_of_disabled(stage) == set()


def test_the_register_has_the_same_state_as_the_tenant(stage: Stage) -> None:
    tenancy.switch_tenant(stage.world, TENANT, on=False)

    states = {item["state"]["S"] for item in stage.items() if item["pk"]["S"] == keys.STACK_TENANTS}
    assert states == {"DISABLED"}


# Faults


FAULTS = [crash_before, crash_after, answer_lost, refused, conflict]


@pytest.mark.sampled(3)
@pytest.mark.repeats
@pytest.mark.parametrize("fault", FAULTS, ids=[each.__name__ for each in FAULTS])
def test_enabling_survives_a_fault_at_each_of_its_calls(fault: Fault) -> None:
    at = calls = 0
    while at == 0 or at < calls:
        with a_stage(shards=1) as stage:
            planned = disabled(stage, minutes=3.5)
            calls = _enabled_with(stage, fault, at)
            stage.run(240, most=1)
            assert stage.stored(planned).held_from is None, f"call {at}"
            until = stage.clock.now().replace(microsecond=0)
            check_whole(stage, planned, NOON, until)
            assert list_of_disabled(stage) == set(), f"call {at}"
        at += 1
    assert calls > 20


@pytest.mark.sampled(4)
@pytest.mark.repeats
@pytest.mark.parametrize("fault", FAULTS, ids=[each.__name__ for each in FAULTS])
@pytest.mark.parametrize("sent", [False, True], ids=["held", "sent before"])
def test_runs_after_enabling_survive_a_fault_at_each_call(fault: Fault, *, sent: bool) -> None:
    at = calls = 0
    while at == 0 or at < calls:
        with a_stage(shards=1) as stage:
            if not sent:
                switch(stage, on=False)
            planned = stage.create(once(), policies=ON_ENABLE)
            stage.tick()
            switch(stage, on=False)
            stage.clock.advance(90)
            calls = _enabled_with(stage, fault, at, lambda: stage.deliver_all(most=1), stage.tick)
            stage.run(2_400, most=1)
            assert stage.only_run(planned).state is State.SUCCESS, f"call {at}"
            assert stage.stored(planned).state is ScheduleState.COMPLETED, f"call {at}"
            assert stage.totals(planned).planned == 1
            assert stage.audit().lost == 0
        at += 1
    assert calls > 20


def _enabled_with(stage: Stage, fault: Fault, at: int, *before: Callable[[], object]) -> int:
    """Enables it, with both rounds and the ticks between; the call of this number meets the fault. Returns how many.
    before: steps while it is still disabled.

    The user asks until it is done; everything else goes its ordinary way.
    """
    seen = 0

    def only(passing: Passing, act: Act) -> Any:
        nonlocal seen
        seen += 1
        fits = fault is not conflict or passing.operation == "TransactWriteItems"
        fits = fits and (fault not in {answer_lost, refused} or passing.service != "endpoint")
        return fault(passing, act) if seen == at + 1 and fits else act()

    def second_round() -> None:
        stage.clock.advance(120)
        stage.tick()

    with stage.taps.faulty(only):
        for step in (*before, lambda: switch(stage, on=True), lambda: stage.deliver_all(most=1), second_round):
            for _ in range(3):
                try:
                    step()
                except (Crash, SweephandError):
                    continue
                break
        stage.clock.advance(120)
        for _ in range(2):
            try:
                stage.deliver_all(most=1)
            except (Crash, SweephandError):
                continue
    return seen


# A one-time run that fell due while it was disabled, with the policy `onEnable: run_now`

ON_ENABLE = {"onEnable": "run_now"}
FELL_DUE = NOON + timedelta(minutes=1)


def check_ran_once(stage: Stage, planned: Planned) -> None:
    run = stage.only_run(planned)
    assert (run.planned_at, run.state) == (FELL_DUE, State.SUCCESS)
    assert len(stage.endpoint.received) == 1
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    totals = stage.totals(planned)
    assert (totals.planned, totals.ended, totals.skipped) == (1, 1, 0)


@pytest.mark.parametrize(
    "disabled_after_s", [0, 10, 59], ids=["before it was made", "while it waits", "a moment before"]
)
def test_a_one_time_run_due_while_disabled_runs_immediately_after_enabling(
    stage: Stage, disabled_after_s: float
) -> None:
    if disabled_after_s == 0:
        switch(stage, on=False)
    planned = stage.create(once(), policies=ON_ENABLE)
    stage.run(disabled_after_s)
    switch(stage, on=False)
    stage.run(1_800)
    assert stage.runs(planned) == []
    assert stage.audit().lost == 0

    enabled_at = stage.clock.now()
    switch(stage, on=True)
    stage.run(5)

    check_ran_once(stage, planned)
    assert stage.only_run(planned).started_at - enabled_at < timedelta(seconds=3)
    stage.run(7_200)
    check_ran_once(stage, planned)
    assert stage.audit().lost == 0


def test_a_run_whose_message_arrives_after_enabling_is_not_omitted(stage: Stage) -> None:
    planned = stage.create(once(), policies=ON_ENABLE)
    stage.run(30)
    switch(stage, on=False)
    stage.clock.advance(40)
    switch(stage, on=True)

    stage.run(5)

    check_ran_once(stage, planned)


def test_a_run_that_is_put_back_while_a_tick_advances_its_row_is_not_lost(stage: Stage) -> None:
    planned = stage.create(once(), policies=ON_ENABLE)
    switch(stage, on=False)
    stage.clock.advance(61)
    stage.deliver_all()

    assert stage.stored(planned).held_from == FELL_DUE
    assert stage.stored(planned).planned_total == 0
    assert stage.runs(planned) == []


def test_a_run_disabled_again_before_it_began_waits_again(stage: Stage) -> None:
    switch(stage, on=False)
    planned = stage.create(once(), policies=ON_ENABLE)
    stage.run(600)

    switch(stage, on=True)
    stage.deliver(Lane.FAST)
    switch(stage, on=False)
    stage.run(600)
    assert stage.runs(planned) == []
    assert stage.stored(planned).state is ScheduleState.ACTIVE
    switch(stage, on=True)
    stage.run(5)

    check_ran_once(stage, planned)


def test_a_held_run_that_is_deactivated_and_activated_runs_once_enabled(stage: Stage) -> None:
    switch(stage, on=False)
    planned = stage.create(once(), policies=ON_ENABLE | {"onPastStart": "run_now"})
    stage.run(600)

    stage.set_state(planned, active=False)
    stage.run(60)
    stage.set_state(planned, active=True)
    stage.run(60)
    assert stage.endpoint.received == []
    switch(stage, on=True)
    stage.run(10)

    assert len(stage.endpoint.received) == 1
    assert stage.stored(planned).state is ScheduleState.COMPLETED


def test_a_deleted_job_does_not_run_when_its_collection_is_enabled(stage: Stage) -> None:
    switch(stage, on=False)
    planned = stage.create(once(), policies=ON_ENABLE)
    stage.run(600)

    stage.delete(planned)
    switch(stage, on=True)
    stage.run(600)

    assert stage.endpoint.received == []
    assert stage.waiting() == {}


def test_a_job_that_is_off_does_not_run_when_its_collection_is_enabled(stage: Stage) -> None:
    switch(stage, on=False)
    planned = stage.create(once(), policies=ON_ENABLE)
    stage.run(600)

    stage.set_state(planned, active=False)
    switch(stage, on=True)
    stage.run(600)

    assert stage.endpoint.received == []


def test_enabling_a_tenant_runs_its_held_run(stage: Stage) -> None:
    tenancy.switch_tenant(stage.world, TENANT, on=False)
    planned = stage.create(once(), policies=ON_ENABLE)
    stage.run(600)

    tenancy.switch_tenant(stage.world, TENANT, on=True)
    stage.run(5)

    check_ran_once(stage, planned)


def test_recurring_schedules_omit_occurrences_due_while_disabled_under_every_policy(stage: Stage) -> None:
    switch(stage, on=False)
    planned = stage.create(MINUTELY, policies=ON_ENABLE)
    stage.run(630)

    switch(stage, on=True)
    stage.run(300)

    check_whole(stage, planned, NOON, NOON + timedelta(minutes=15))
    assert len(lines(stage, planned)) == 1
