"""The directory's rows: what they hold, how large they are, and what a change makes certain of a job's end."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bench.meter import size
from sweephand.domain.job import JobState, Pause
from sweephand.domain.schedule import ScheduleState
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled
from sweephand.server.store.jobs import directory
from sweephand.server.store.jobs.directory import Block, Entry
from sweephand.server.store.views import jobs as views
from tests.support.stage import TENANT, Stage
from tests.unit.domain.nouns import NOW, job, schedule

ACTIVE, ENDING, COMPLETED = ScheduleState.ACTIVE, ScheduleState.ENDING, ScheduleState.COMPLETED
FAULTED = ScheduleState.FAULTED
OVER_AS = {JobState.COMPLETED: COMPLETED, JobState.FAULTED: FAULTED}


def lean(stage: Stage, number: int = 1) -> dict[str, Any]:
    """Returns the directory's row of a number, as the table has it."""
    (row,) = stage.world.table.batch_get([directory.row_key(TENANT, number)]).values()
    return row


def entry(stage: Stage, number: int = 1) -> Entry:
    return directory.entry_of(lean(stage, number))


def test_every_job_of_a_tenant_has_a_number_of_its_own(stage: Stage) -> None:
    table = stage.world.table

    assert [directory.next_number(table, TENANT) for _ in range(3)] == [1, 2, 3]
    assert directory.next_number(table, "globex") == 1


@pytest.mark.parametrize("number", [1, 999, 1_000, 123_456_789])
@pytest.mark.parametrize("name", ["nightly", 'ü #%\\"\x00', "x" * 128])
@pytest.mark.parametrize("state", JobState)
def test_a_lean_row_returns_what_was_written(stage: Stage, number: int, name: str, state: JobState) -> None:
    paused = Pause(NOW) if state is JobState.PAUSED else None
    one = job(number=number, name=name, active=state is not JobState.INACTIVE, pause=paused, facade="sap")
    schedules = [schedule(state=OVER_AS.get(state, ACTIVE))]

    stage.world.table.transact(directory.create_ops(stage.world.table, one, schedules))

    found = entry(stage, number)
    assert (found.number, found.job_id, found.name, found.collection) == (number, one.id, name, "default")
    assert (found.state, found.facade) == (state, "sap")
    assert views.blocks(stage.world.table, TENANT) == [Block(number // 1_000, "sap", 1, int(one.active))]


def test_a_row_that_does_not_say_whether_its_job_has_tags_is_looked_up(stage: Stage) -> None:
    for name, tags in (("tagged", ("a",)), ("plain", ())):
        planned = stage.create({"every": "PT1H"}, name=name, tags=tags)
        packed = json.loads(lean(stage, planned.job.number)["entry"]["S"])
        pk, sk = directory.row_key(TENANT, planned.job.number)
        assert packed.pop() == len(tags)
        stage.edit_item(pk, sk, entry={"S": json.dumps(packed)})
        assert entry(stage, planned.job.number).tagged is None

    rows = list(views.listed(stage.world.table, TENANT, views.by_tag(""), None, 10))

    assert [row.entry.name for row in rows if row.entry is not None] == ["plain"]
    assert views.count(stage.world.table, TENANT, views.by_tag("")) == 1
    assert len(list(views.listed(stage.world.table, TENANT, views.ALL, None, 10))) == 2


def test_a_lean_row_is_lean(stage: Stage) -> None:
    planned = stage.create({"every": "PT1H"}, name="a name of forty characters, as many have")

    assert size(lean(stage, planned.job.number)) <= 200


def test_lean_rows_follow_name_tags_and_resource_and_go_with_the_job(stage: Stage) -> None:
    table = stage.world.table
    before = job(number=7, name="one", tags=("a", "b"), resource_id="r")
    after = replace(before, name="two", tags=("b", "c"), resource_id=None, active=False, revision=2)
    table.transact(directory.create_ops(table, before, []))

    table.transact(directory.change_ops(table, before, after, [], []))

    listed = {(row["pk"]["S"], row["sk"]["S"]) for row in stage.items() if "number" in row}
    by_number = keys.job_entry(7)
    assert listed == {
        (keys.names(TENANT, "default"), keys.name("two")),
        (keys.tag(TENANT, "b"), by_number),
        (keys.tag(TENANT, "c"), by_number),
    }
    assert (entry(stage, 7).name, entry(stage, 7).active) == ("two", False)
    assert views.blocks(table, TENANT) == [Block(0, "native", 1, 0)]

    table.transact(directory.delete_ops(table, after))
    directory.drop_if_empty(table, after)

    assert not [row for row in stage.items() if "number" in row or "entry" in row or "live" in row]


def test_a_name_that_is_taken_refuses_the_whole(stage: Stage) -> None:
    table = stage.world.table
    table.transact(directory.create_ops(table, job(number=1), []))

    done = table.transact(directory.create_ops(table, job(number=2, id="job-2"), []))

    assert isinstance(done, Cancelled)
    assert done.refused.keys() == {"name"}
    assert views.blocks(table, TENANT) == [Block(0, "native", 1, 1)]


def test_the_count_of_a_block_that_still_has_jobs_stays(stage: Stage) -> None:
    table = stage.world.table
    for number in (1, 2):
        table.transact(directory.create_ops(table, job(number=number, name=f"j{number}"), []))
    table.transact(directory.delete_ops(table, job(number=1, name="j1")))

    directory.drop_if_empty(table, job(number=1))

    assert views.blocks(table, TENANT) == [Block(0, "native", 1, 1)]


# The end of jobs


def of(**states: ScheduleState) -> list[Any]:
    """Schedules by id; a name with `_new` is of a new generation."""
    return [
        schedule(id=name.removesuffix("_new"), state=state, generation=2 if name.endswith("_new") else 1)
        for name, state in states.items()
    ]


STAYS = "stays"


@pytest.mark.parametrize("marked", [None, JobState.COMPLETED])
@pytest.mark.parametrize(
    ("were", "are", "ended"),
    [
        ([], [], None),
        (of(a=COMPLETED), of(a=COMPLETED), JobState.COMPLETED),
        (of(a=FAULTED), of(a=FAULTED), JobState.FAULTED),
        (of(a=COMPLETED), of(a_new=ACTIVE), None),
        (of(a=COMPLETED), of(a=COMPLETED, b=ACTIVE), None),
        (of(a=COMPLETED, b=ACTIVE), of(a=COMPLETED), JobState.COMPLETED),
        (of(a=FAULTED, b=COMPLETED), of(b=COMPLETED), JobState.COMPLETED),
        (of(a=COMPLETED), [], None),
        (of(a=ENDING), of(a=ENDING), STAYS),
        (of(a=ACTIVE), of(a=ACTIVE), STAYS),
        (of(a=ENDING), of(a_new=ACTIVE), None),
        (of(a=ENDING, b=COMPLETED), of(a=ENDING, b_new=ACTIVE), None),
        (of(a=ENDING, b=ACTIVE), of(a=ENDING), STAYS),
        (of(a=ACTIVE), of(a_new=COMPLETED), JobState.COMPLETED),
    ],
)
def test_a_change_says_how_a_job_ends_where_it_is_certain(
    stage: Stage, were: list[Any], are: list[Any], ended: Any, marked: JobState | None
) -> None:
    table = stage.world.table
    one = job(number=1)
    table.transact(directory.create_ops(table, one, of(a=ACTIVE)))
    if marked is not None:
        directory.mark_ended(table, one, marked)

    table.transact(directory.change_ops(table, one, replace(one, revision=2), were, are))

    assert entry(stage).ended is (marked if ended == STAYS else ended)


def test_only_who_has_seen_the_last_change_may_mark_a_job(stage: Stage) -> None:
    table = stage.world.table
    one = job(number=1)
    table.transact(directory.create_ops(table, one, of(a=ACTIVE)))
    table.transact(directory.change_ops(table, one, replace(one, revision=2), of(a=ACTIVE), of(a=ACTIVE)))

    assert not directory.mark_ended(table, one, JobState.COMPLETED)
    assert entry(stage).state is JobState.ACTIVE
    assert directory.mark_ended(table, replace(one, revision=2), JobState.COMPLETED)
    assert entry(stage).state is JobState.COMPLETED
