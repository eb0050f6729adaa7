"""Errors of a job that was deleted are closed with the reason, and go with its runs."""

from __future__ import annotations

from datetime import timedelta

from sweephand.domain.failure import Group
from sweephand.server.flow.errors import failures
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.server.store.views import resources as views
from tests.support.endpoint import BUSY, DOWN, OK
from tests.support.stage import TENANT, Stage
from tests.unit.server.flow.common import MINUTE, fixed, once

EACH_MINUTE = {"cron": "* * * * *"}


def groups(stage: Stage) -> list[Group]:
    return list(views.groups(stage.world.table, TENANT))


def failing(stage: Stage) -> Planned:
    """Makes a job with two kinds of errors."""
    stage.endpoint.script = [BUSY, DOWN, BUSY]
    planned = stage.create(EACH_MINUTE)
    stage.run(190)
    assert len(groups(stage)) == 2
    return planned


def open_runs(stage: Stage) -> int:
    return sum(failures.open_runs(stage.world, group).count for group in groups(stage))


def test_all_groups_of_a_deleted_job_are_archived_with_the_reason(stage: Stage) -> None:
    planned = failing(stage)

    stage.delete(planned)
    stage.run(120)

    assert open_runs(stage) == 0
    assert {(group.closed_by, group.closed_reason) for group in groups(stage)} == {(None, failures.DELETED)}
    assert {group.job_name for group in groups(stage)} == {planned.job.name}


def test_groups_of_other_jobs_stay_open(stage: Stage) -> None:
    planned = failing(stage)
    stage.endpoint.script = [BUSY]
    stage.set_state(planned, active=False)
    stage.create(once(5 * MINUTE))
    stage.run(150)

    stage.delete(planned)
    stage.run(120)

    assert open_runs(stage) == 1


def test_a_job_keeps_the_errors_of_its_deleted_schedule(stage: Stage) -> None:
    planned = failing(stage)
    gone = planned.schedules[0].id

    stage.change_schedules(
        planned, lambda there: [ScheduleRequest(lookup.find_schedule(there, gone), None, delete=True)]
    )
    stage.run(120)

    assert open_runs(stage) == 3


def test_a_failure_after_the_delete_opens_no_group(stage: Stage) -> None:
    planned = failing(stage)

    def deleted_meanwhile(_call: object) -> object:
        stage.endpoint.answer = OK
        stage.delete(planned)
        stage.clock.advance(10)
        return BUSY

    stage.endpoint.answer = deleted_meanwhile  # type: ignore[assignment]
    stage.run(300)

    assert open_runs(stage) == 0
    assert {group.closed_reason for group in groups(stage)} == {failures.DELETED}


def test_the_group_expires_with_the_last_of_its_runs(stage: Stage) -> None:
    planned = failing(stage)
    stage.delete(planned)
    stage.run(120)

    stage.pass_time(timedelta(days=16).total_seconds())
    stage.run(120)

    assert groups(stage) == []


def test_errors_that_a_redirect_will_run_again_stay_open(stage: Stage) -> None:
    planned = failing(stage)
    stage.endpoint.script = []
    other = stage.create(once(timedelta(days=9)))
    failures.redirect(stage.world, TENANT, planned.job.id, other.job.id, None)

    stage.delete(planned)
    stage.run(120)

    assert open_runs(stage) == 3


def test_restoring_a_closed_group_opens_its_runs_again(stage: Stage) -> None:
    planned = failing(stage)
    stage.delete(planned)
    stage.run(120)

    for group in groups(stage):
        failures.restore(stage.world, TENANT, group.id, None)

    assert open_runs(stage) == 3


def test_a_job_whose_retries_succeeded_leaves_no_group(stage: Stage) -> None:
    stage.endpoint.script = [BUSY, OK]
    planned = stage.create(once(), action=stage.action(retry=fixed(5)))
    stage.run(120)

    stage.delete(planned)
    stage.run(120)

    assert groups(stage) == []
