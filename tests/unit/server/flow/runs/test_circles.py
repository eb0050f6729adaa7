"""Jobs whose reactions run each other: a circle goes round once, and says why it goes on no further."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sweephand.base.errors import InvalidRequest
from sweephand.domain.job import ActionDraft
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.server.actions.job import MOST_HOPS
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import rerun
from tests.support.stage import TENANT, Stage, stage
from tests.unit.server.flow.common import once
from tests.unit.server.flow.runs.test_inner_actions import NOBODY, draft


@pytest.fixture
def there() -> Iterator[Stage]:
    with stage() as made:
        made.act_for_real()
        yield made


FAILS = draft(type="job", jobId=NOBODY)
SUCCEEDS = draft(type="event")


def runs(planned: Planned) -> ActionDraft:
    return draft(type="job", jobId=planned.job.id)


def everything(stage: Stage, *jobs: Planned) -> list[Run]:
    """Returns the runs of the jobs, with and without their schedules."""
    found = [run for each in jobs for run in stage.runs(each.job.id)]
    return found + [run for each in jobs if each.schedules for run in stage.runs(each)]


def stopped(found: list[Run]) -> list[Run]:
    return [run for run in found if run.reason is Reason.GUARD]


def test_two_jobs_that_react_to_each_other_complete_one_round(there: Stage) -> None:
    first = there.create(once(), action=FAILS)
    second = there.create(action=FAILS, error_action=runs(first), hooks={"onFailure": runs(first)})
    there.change(first, action=FAILS, error_action=runs(second), hooks={"onFailure": runs(second)})

    there.run(3600)

    found = everything(there, first, second)
    assert [
        len([run for run in found if run.hop == hop and run.kind in (Kind.SCHEDULED, Kind.MANUAL)]) for hop in range(4)
    ] == [1, 2, 4, 0]
    assert len(found) == 21
    assert len(stopped(found)) == 8
    for run in stopped(found):
        assert (run.job_id, run.state, run.hop) == (first.job.id, State.REQUEST_ERROR, 2)
        assert run.message == "its job already had a run in this chain: a circle of jobs runs only once"


def test_a_repaired_job_runs_again(there: Stage) -> None:
    """One round is not taken for a circle."""
    broken = there.create(once(), action=FAILS)
    repair = there.create(action=SUCCEEDS, hooks={"onSuccess": runs(broken)})
    there.change(broken, action=FAILS, error_action=runs(repair))

    there.run(600)

    found = everything(there, broken, repair)
    assert [run.state for run in found if run.job_id == repair.job.id and run.kind is Kind.MANUAL] == [State.SUCCESS]
    again = [run for run in found if run.job_id == broken.job.id and run.kind is Kind.MANUAL]
    assert [(run.hop, run.reason) for run in again] == [(2, Reason.NO_TARGET)]
    assert [run.kind for run in stopped(found)] == [Kind.ERROR_ACTION]


def test_a_circle_of_actions_and_reactions_stays_small(there: Stage) -> None:
    """The actions alone go on to the end of a chain; the reactions do not double it each time."""
    first = there.create(once(), action=SUCCEEDS)
    second = there.create(action=runs(first), hooks={"onSuccess": runs(first)})
    there.change(first, action=runs(second), hooks={"onSuccess": runs(second)})

    there.run(3600)

    found = everything(there, first, second)
    assert max(run.hop for run in found) == MOST_HOPS
    assert len(found) < 20 * MOST_HOPS


def test_a_rerun_of_a_run_in_a_circle_stays_in_the_circle(there: Stage) -> None:
    first = there.create(once(), action=FAILS)
    second = there.create(action=FAILS, error_action=runs(first))
    there.change(first, action=FAILS, error_action=runs(second))
    there.run(600)
    (last,) = [run for run in there.runs(first.job.id) if run.kind is Kind.MANUAL]
    before = len(everything(there, first, second))

    rerun.rerun(there.world, TENANT, first.job.id, last.uuid)
    there.run(600)

    found = everything(there, first, second)
    assert len(found) == before + 2
    assert len(stopped(found)) == 2


def test_a_reaction_that_runs_its_own_job_is_refused(there: Stage) -> None:
    planned = there.create(once())

    for members in ({"error_action": runs(planned)}, {"hooks": {"onMissed": runs(planned)}}):
        with pytest.raises(InvalidRequest, match="is the job itself") as refused:
            there.change(planned, **members)

        (owner,) = members
        assert refused.value.field == ("errorAction.jobId" if owner == "error_action" else "hooks.onMissed.jobId")
    assert there.job(planned) == planned.job
