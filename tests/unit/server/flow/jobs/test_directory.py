"""Lists and counts follow the jobs: whatever happens at once, twice, half, or with its answer lost."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from sweephand.base.errors import Conflict, NotFound, SweephandError, Unavailable
from sweephand.domain.job import JobState
from sweephand.domain.jobs.job_state import ended_state
from sweephand.domain.schedule import ScheduleState
from sweephand.server.flow.jobs import completion, lookup
from sweephand.server.flow.jobs.change import ScheduleRequest
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.table import JobItem
from sweephand.server.store.jobs import directory, jobs
from sweephand.server.store.jobs.directory import Entry
from sweephand.server.store.tenants import usage
from sweephand.server.store.views import jobs as views
from sweephand.testing.taps import Act, Passing
from tests.support.stage import TENANT, Stage
from tests.support.stage import stage as fresh
from tests.support.taps import Crash, answer_lost, conflict, crash_after, crash_before, refused
from tests.support.turns import at_once
from tests.unit.server.flow.common import MINUTE, once

HOURLY = {"every": "PT1H"}
TRANSACTION = "dynamodb.TransactWriteItems"


def entries(stage: Stage) -> dict[str, Entry]:
    """Returns the directory by job."""
    found = [directory.entry_of(row) for row in stage.items() if "entry" in row]
    assert len({each.job_id for each in found}) == len(found)
    return {each.job_id: each for each in found}


def true(stage: Stage) -> None:
    """Checks that the directory says of every job what the job and its schedules say, and that the counts match."""
    items = stage.items()
    there = {job.id: job for row in items if row["sk"]["S"] == keys.JOB for job in [jobs.job_of(_job(row))]}
    found = entries(stage)
    assert found.keys() == there.keys()
    for job in there.values():
        entry, schedules = found[job.id], jobs.read_schedules(stage.world.table, TENANT, job.id)
        ended = ended_state(schedules)
        assert (entry.name, entry.collection, entry.active) == (job.name, job.collection, job.active)
        assert (entry.number, entry.paused, entry.ended) == (job.number, job.pause is not None, ended)
    counted = Counter(directory.block_of(each.number) for each in found.values())
    switched_on = Counter(directory.block_of(each.number) for each in found.values() if each.active)
    blocks = {block.number: block for block in views.blocks(stage.world.table, TENANT)}
    assert {number: block.live for number, block in blocks.items()} == counted
    assert {number: block.active for number, block in blocks.items() if block.active} == switched_on
    assert views.count(stage.world.table, TENANT, views.ALL) == len(there)
    assert usage.read(stage.world.table, TENANT).schedules == sum(row["sk"]["S"].startswith("SCH#") for row in items)


def _job(row: dict[str, Any]) -> JobItem:
    return JobItem.from_raw_data(row)


def test_the_directory_follows_a_job_through_its_life(stage: Stage) -> None:
    planned = stage.create(HOURLY, name="a")
    for members in ({"pause": None}, {"active": False}, {"active": True}):
        stage.set_state(planned, **members)
        true(stage)
    stage.change(planned, name="b", tags=("t",), active=False)
    true(stage)
    stage.change(planned, name="c", collection="default")
    true(stage)
    stage.delete(planned)
    true(stage)


def test_a_number_is_never_reused(stage: Stage) -> None:
    first = stage.create(HOURLY)
    stage.delete(first)

    assert stage.create(HOURLY).job.number > first.job.number > 0


FAULTS = [crash_before, crash_after, answer_lost, conflict, refused]


def acts(stage: Stage, planned: Planned) -> dict[str, Any]:
    return {
        "create": lambda: stage.create(HOURLY, name="new"),
        "deactivate": lambda: stage.set_state(planned, active=False),
        "rename": lambda: stage.change(planned, name="other"),
        "delete": lambda: stage.delete(planned),
    }


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("act", ["create", "deactivate", "rename", "delete"])
def test_the_counts_are_exact_after_any_fault_of_the_transaction(stage: Stage, act: str, fault: Any) -> None:
    planned = stage.create(HOURLY, name="old")

    with stage.taps.once(TRANSACTION, fault), suppress(Crash, SweephandError):
        acts(stage, planned)[act]()

    true(stage)


@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused], ids=lambda fault: fault.__name__)
def test_a_lost_number_only_leaves_a_gap(stage: Stage, fault: Any) -> None:
    with stage.taps.once("dynamodb.UpdateItem", fault), suppress(Crash, Unavailable):
        stage.create(HOURLY)

    true(stage)
    stage.create(HOURLY)
    true(stage)


def test_a_name_that_is_taken_changes_no_count(stage: Stage) -> None:
    stage.create(HOURLY, name="a")

    with pytest.raises(Conflict):
        stage.create(HOURLY, name="a")

    true(stage)


@pytest.mark.parametrize("fault", [crash_before, crash_after, refused], ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("call", ["dynamodb.GetItem", "dynamodb.DeleteItem"])
def test_a_delete_succeeds_even_if_the_count_of_its_block_fails(stage: Stage, call: str, fault: Any) -> None:
    planned = stage.create(HOURLY)
    after_find = 1 if call == "dynamodb.GetItem" else 0

    with stage.taps.once(call, fault, skip=after_find), suppress(Crash):
        stage.delete(planned)

    with pytest.raises(NotFound):
        lookup.find(stage.world, TENANT, planned.job.id)
    true(stage)


# Many at once


@pytest.mark.parametrize("seed", range(3))
def test_twenty_concurrently_created_jobs_all_exist(stage: Stage, seed: int) -> None:
    stage.world.chance._seed = seed  # type: ignore[attr-defined]
    began = stage.clock.monotonic()

    with at_once(stage) as run:
        made = run([lambda n=n: stage.create(HOURLY, name=f"j{n}") for n in range(20)])

    assert [each for each in made if isinstance(each, Exception)] == []
    assert stage.clock.monotonic() - began < 2.5
    true(stage)


@pytest.mark.parametrize("seed", range(3))
def test_concurrent_changes_are_counted_once(stage: Stage, seed: int) -> None:
    """Two want each job: one creates, deletes, switches, renames it, the other one too."""
    stage.world.chance._seed = seed  # type: ignore[attr-defined]
    there = [stage.create(HOURLY, name=f"old {n}") for n in range(4)]
    works = [lambda n=n: stage.create(HOURLY, name=f"new {n // 2}") for n in range(6)]
    works += [lambda: stage.delete(there[0])] * 2
    works += [lambda: stage.set_state(there[1], active=False), lambda: stage.delete(there[1])]
    works += [lambda: stage.set_state(there[2], active=False)] * 2
    works += [lambda: stage.set_state(there[3], active=False), lambda: stage.change(there[3], name="renamed")]

    with at_once(stage) as run:
        found = run(works)

    assert sum(isinstance(each, Planned) for each in found[:6]) == 3
    assert all(isinstance(each, Conflict | NotFound | Planned | None) for each in found)
    true(stage)


# The end of jobs


def states(stage: Stage) -> list[JobState]:
    return [entry.state for entry in entries(stage).values()]


def test_a_job_is_listed_as_completed_from_the_end_of_its_last_schedule_until_a_new_one(stage: Stage) -> None:
    planned = stage.create(once(MINUTE), once(3 * MINUTE))
    stage.run(100)
    assert states(stage) == [JobState.ACTIVE]

    stage.run(200)
    assert states(stage) == [JobState.COMPLETED]
    true(stage)

    stage.change_schedules(planned, lambda _: [ScheduleRequest(None, stage.schedule(HOURLY))])
    assert states(stage) == [JobState.ACTIVE]
    true(stage)


def test_deleting_its_last_unfinished_schedules_completes_a_job(stage: Stage) -> None:
    planned = stage.create(once(MINUTE), HOURLY)
    stage.run(200)

    stage.change_schedules(planned, lambda there: [ScheduleRequest(there.schedules[1], None, delete=True)])

    assert states(stage) == [JobState.COMPLETED]
    true(stage)


@pytest.mark.repeats
@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused], ids=lambda fault: fault.__name__)
def test_a_job_that_ends_is_marked_after_any_fault(fault: Any) -> None:
    met = True
    nth = 0
    while met:
        with fresh() as stage:
            met = _ends_with_a_fault(stage, fault, nth)
            assert states(stage) == [JobState.COMPLETED], nth
            true(stage)
        nth += 1
    assert nth > 15


def _ends_with_a_fault(stage: Stage, fault: Any, nth: int) -> bool:
    """Runs from the sweep of a one-time job to its end, and tells whether there is an nth call to meet the fault."""
    stage.create(once(MINUTE))
    count = 0

    def at_nth(passing: Passing, act: Act) -> Any:
        nonlocal count
        count += passing.service == "dynamodb"
        return fault(passing, act) if passing.service == "dynamodb" and count == nth + 1 else act()

    with stage.taps.faulty(at_nth), suppress(Crash, Unavailable):
        stage.run(100)
    stage.run(40 * 60)
    return count > nth


@pytest.mark.parametrize("seed", range(3))
def test_two_last_schedules_that_end_concurrently_mark_their_job(stage: Stage, seed: int) -> None:
    """Each of them sees the other one ENDING before its own end."""
    stage.world.chance._seed = seed  # type: ignore[attr-defined]
    planned = _two_that_are_over(stage)

    with at_once(stage) as run:
        run([lambda each=each: completion.complete_if_over(stage.world, each) for each in planned.schedules])

    assert states(stage) == [JobState.COMPLETED]
    true(stage)


@pytest.mark.parametrize("delay", [0, 0.004, 0.008, 0.012, 0.016, 0.02, 0.03])
def test_a_concurrent_delete_and_end_leave_the_job_marked(stage: Stage, delay: float) -> None:
    """The end of the last schedule still sees the one that is being deleted, whose delete still sees the ending one."""
    planned = _two_that_are_over(stage)
    first, second = planned.schedules

    def ends() -> None:
        stage.clock.sleep(delay)
        completion.complete_if_over(stage.world, first)

    def goes() -> None:
        stage.change_schedules(
            planned, lambda there: [ScheduleRequest(lookup.find_schedule(there, second.id), None, delete=True)]
        )

    with at_once(stage) as run:
        assert run([ends, goes])[0] is None

    true(stage)
    assert states(stage) == [JobState.COMPLETED]


def _two_that_are_over(stage: Stage) -> Planned:
    """Makes a job of two schedules that are ENDING with nothing open: nobody has looked yet."""
    made = stage.create(once(MINUTE), once(MINUTE))
    stage.tick()
    for schedule in made.schedules:
        stage.edit_schedule(schedule, planned_total={"N": "0"})
    planned = lookup.find(stage.world, TENANT, made.job.id)
    assert [each.state for each in planned.schedules] == [ScheduleState.ENDING] * 2
    return planned
