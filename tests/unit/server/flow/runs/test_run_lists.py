"""Reads of lists of runs: bounded whatever a job has grown to."""

from __future__ import annotations

from itertools import islice

import pytest

from sweephand.server.store.views import runs as views
from sweephand.server.store.views.runs import RunMark
from tests.support.stage import TENANT, Stage
from tests.unit.server.flow.common import MINUTE, NOON, once

QUERY = "dynamodb.Query"


def walked(stage: Stage, owners: list[str], limit: int) -> list[str]:
    """Returns run ids, page by page."""
    seen: list[str] = []
    mark: RunMark | None = None
    while page := list(islice(views.merged_runs(stage.world.table, TENANT, owners, mark, limit + 1), limit)):
        seen += [run.id for run in page]
        mark = page[-1].uuid, page[-1].schedule_id or page[-1].job_id
    return seen


@pytest.mark.parametrize("limit", [1, 3, 10, 100])
def test_the_runs_of_a_job_are_one_list_for_every_page_size(stage: Stage, limit: int) -> None:
    planned = stage.create(*[{"every": "PT20S"}] * 3, *[once(MINUTE)] * 3)
    stage.run(150)
    owners = [planned.job.id, *(each.id for each in planned.schedules)]
    whole = [run for each in planned.schedules for run in stage.runs(each)]

    seen = walked(stage, owners, limit)

    assert seen == [run.id for run in sorted(whole, key=lambda run: (run.uuid, run.schedule_id), reverse=True)]
    assert len(seen) > 20


def test_a_job_of_many_schedules_costs_one_small_query_each(stage: Stage) -> None:
    owners = [f"schedule {n}" for n in range(1_000)]
    stage.taps.passed.clear()

    assert list(views.merged_runs(stage.world.table, TENANT, owners, None, 51)) == []

    assert stage.taps.count(QUERY) == 1_000
    assert {passing.request["Limit"] for passing in stage.taps.passed} == {views.LEAST_OF_EACH}


def test_a_page_of_one_busy_schedule_among_many_is_not_read_row_by_row(stage: Stage) -> None:
    planned = stage.create({"every": "PT1S"}, *[once(2 * MINUTE)] * 39)
    stage.run(100)
    owners = [each.id for each in planned.schedules]
    stage.taps.passed.clear()

    page = list(islice(views.merged_runs(stage.world.table, TENANT, owners, None, 51), 51))

    assert len(page) == 51
    assert stage.taps.count(QUERY) <= 40 + 51 // views.LEAST_OF_EACH + 1


def test_a_page_of_a_schedule_reads_only_its_own_rows(stage: Stage) -> None:
    """Also the hundredth."""
    planned = stage.create({"every": "PT1S"})
    stage.run(300)
    whole = [run.id for run in reversed(stage.runs(planned))]
    mark = whole[200].partition("_")[2], planned.schedules[0].id
    stage.taps.passed.clear()

    page = list(islice(views.runs_of(stage.world.table, TENANT, planned.schedules[0].id, mark, 11), 11))

    assert [run.id for run in page] == whole[201:212]
    assert [passing.request["Limit"] for passing in stage.taps.passed] == [12], "with the one it goes on behind"
    assert page[0].planned_at > NOON
