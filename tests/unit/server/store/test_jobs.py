from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.instants import from_ms, from_s
from sweephand.domain.job import ActionSpec, Job, Pause
from sweephand.domain.schedule import LIVE, OVER, Lane, Schedule, ScheduleState
from sweephand.server.store.dynamo.conditional import Refused, Written
from sweephand.server.store.dynamo.table import JobItem, ScheduleItem
from sweephand.server.store.jobs import jobs
from tests.support.stage import Stage
from tests.unit.domain.nouns import NOW, PACKED, SECOND, TENANT, schedule

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
MS = st.integers(0, 7_000_000_000_000).map(from_ms)
WHOLE = st.integers(0, 7_000_000_000).map(from_s)
JSON: Any = st.dictionaries(TEXT, st.none() | st.booleans() | st.integers() | TEXT | st.lists(TEXT), max_size=3)
ACTIONS = st.builds(ActionSpec, st.just("http"), JSON, JSON, st.none() | st.integers(1, 99))


@given(
    st.builds(
        Job,
        tenant=TEXT,
        id=TEXT,
        collection=TEXT,
        name=TEXT,
        action=ACTIONS,
        created_at=MS,
        modified_at=MS,
        description=st.none() | TEXT,
        active=st.booleans(),
        start_at=st.none() | WHOLE,
        end_at=st.none() | WHOLE,
        resource_id=st.none() | TEXT,
        tags=st.lists(TEXT, max_size=3).map(tuple),
        error_action=st.none() | ACTIONS,
        policies=JSON,
        secret_version=st.none() | st.integers(1, 99),
        revision=st.integers(1, 99),
        pause=st.none() | st.builds(Pause, MS, st.none() | TEXT, st.none() | WHOLE),
        state_reason=st.none() | TEXT,
        schedule_ids=st.lists(TEXT, max_size=3).map(tuple),
        many_schedules=st.booleans(),
        number=st.integers(0, 10**11),
    )
)
def test_a_job_comes_back_from_its_row_as_it_was(one: Job) -> None:
    # A row counts its schedules only where it does not name them.
    one = replace(one, schedule_count=len(one.schedule_ids))

    assert jobs.job_of(JobItem.from_raw_data(jobs.job_item(one).serialize())) == one


def _possible(one: Schedule) -> Schedule:
    """Tells whether the row is possible. Only one that waits for its occurrence can be held; a completed one waits for
    none.
    """
    if one.state is not ScheduleState.ACTIVE:
        one = replace(one, held_from=None)
    if one.state in OVER:
        return replace(one, next_run_at=None)
    return replace(one, completed_at=None)


@given(
    st.builds(
        Schedule,
        tenant=TEXT,
        job_id=TEXT,
        id=TEXT,
        name=TEXT,
        timing=JSON,
        packed=TEXT,
        lane=st.sampled_from(Lane),
        created_at=MS,
        modified_at=MS,
        active=st.booleans(),
        state=st.sampled_from(ScheduleState),
        state_reason=st.none() | TEXT,
        misfire=st.sampled_from(["sap", "latest", "sap/6"]),
        generation=st.integers(1, 99),
        ended_at=st.dictionaries(st.integers(1, 99), st.integers(0, 2**33), max_size=3),
        planned_total=st.integers(0, 2**31),
        last_planned_at=st.none() | WHOLE,
        payload_version=st.none() | st.integers(1, 99),
        policies=JSON,
        next_run_at=st.none() | WHOLE,
        missed_from=st.none() | WHOLE,
        left_out_to=st.none() | WHOLE,
        missed_to=st.none() | WHOLE,
        collection=st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        held_from=st.none() | WHOLE,
        completed_at=st.none() | WHOLE,
    ).map(_possible)
)
def test_a_schedule_comes_back_from_its_row_as_it_was(one: Schedule) -> None:
    raw = jobs.schedule_item(one, 16).serialize()

    assert jobs.schedule_of(ScheduleItem.from_raw_data(raw)) == one
    assert ("schedule_id" in raw) is (one.state in LIVE)
    assert ("next_run_at" in raw) is (one.next_run_at is not None)
    assert "shard" in raw


def test_a_row_of_an_old_version_is_read_with_its_defaults() -> None:
    """Attributes that came later are absent from what was written before."""
    raw = jobs.schedule_item(schedule(), 16).serialize()
    later = {
        "policies",
        "missed_from",
        "missed_to",
        "left_out_to",
        "payload_version",
        "last_planned_at",
        "ended_at",
        "state_reason",
    }

    old = jobs.schedule_of(ScheduleItem.from_raw_data({name: raw[name] for name in raw.keys() - later}))

    assert old == schedule()


def changed(stage: Stage, read: Schedule, there: Schedule) -> Written | Refused:
    """Changes the row on the condition of what was read, where `there` is the stored row."""
    table = stage.world.table
    item = jobs.schedule_item(there, 2)
    table.put(item)
    actions = jobs.schedule_update_actions(replace(read, generation=read.generation + 1), 2)
    return table.update(item.pk, item.sk, actions, jobs.as_read(read))


@pytest.mark.parametrize("next_run_at", [None, NOW])
def test_a_change_goes_through_where_nothing_came_between(stage: Stage, next_run_at: Any) -> None:
    read = schedule(next_run_at=next_run_at)

    assert changed(stage, read, read) == Written()
    there = jobs.read_schedule(stage.world.table, TENANT, read.job_id, read.id)
    assert there == replace(read, generation=2)


@pytest.mark.parametrize("next_run_at", [None, NOW])
@pytest.mark.parametrize("between", [{"generation": 2}, {"next_run_at": NOW + SECOND}])
def test_a_sweep_or_a_change_between_refuses_it(stage: Stage, next_run_at: Any, between: dict[str, Any]) -> None:
    read = schedule(next_run_at=next_run_at)

    assert isinstance(changed(stage, read, replace(read, **between)), Refused)


def test_a_series_that_ended_between_refuses_it(stage: Stage) -> None:
    read = schedule(next_run_at=NOW)

    assert isinstance(changed(stage, read, replace(read, next_run_at=None)), Refused)


def test_a_change_writes_every_attribute_that_a_plan_can_touch(stage: Stage) -> None:
    """An attribute forgotten here would keep its old value in the table."""
    before = schedule(next_run_at=NOW)
    after = replace(
        before,
        name="other",
        timing={"at": "x"},
        packed=PACKED + " ",
        lane=Lane.SLOW,
        modified_at=NOW + SECOND,
        active=False,
        state=ScheduleState.ENDING,
        state_reason="BY_USER",
        misfire="latest",
        generation=2,
        ended_at={1: 5},
        planned_total=7,
        last_planned_at=NOW,
        payload_version=3,
        policies={"p": 1},
        next_run_at=NOW + SECOND,
    )
    item = jobs.schedule_item(before, 2)
    stage.world.table.put(item)

    stage.world.table.update(item.pk, item.sk, jobs.schedule_update_actions(after, 2))

    assert jobs.read_schedule(stage.world.table, TENANT, after.job_id, after.id) == after


def test_a_description_touches_nothing_that_the_sweeper_reads(stage: Stage) -> None:
    before = schedule(next_run_at=NOW, planned_total=4)
    item = jobs.schedule_item(before, 2)
    stage.world.table.put(item)
    wished = replace(before, name="other", payload_version=3, packed="x", generation=9, next_run_at=None)

    stage.world.table.update(item.pk, item.sk, jobs.description_actions(wished))

    there = jobs.read_schedule(stage.world.table, TENANT, before.job_id, before.id)
    assert there == replace(before, name="other", payload_version=3)


def test_a_job_without_schedules_of_its_own_has_none(stage: Stage) -> None:
    assert jobs.read_schedules(stage.world.table, TENANT, "nobody") == []
    assert jobs.read_job(stage.world.table, TENANT, "nobody") is None
    assert jobs.read_payloads(stage.world.table, TENANT, "nobody", {"action": 1}) == {}
    assert jobs.read_secrets(stage.world.table, TENANT, "nobody", 1) == {}
