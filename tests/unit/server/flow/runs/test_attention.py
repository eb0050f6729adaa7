"""The list of what did not succeed or waits, over all jobs of a tenant."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

import pytest

from sweephand.domain.instants import text
from sweephand.domain.run import Run, State
from sweephand.server.store.views import runs as views
from sweephand.server.store.views.runs import RunMark
from tests.support.endpoint import WRONG
from tests.support.stage import TENANT, Stage
from tests.unit.server.flow.common import MINUTE, NOON

MANY = 25


@pytest.mark.parametrize("limit", [1, 7, 24, 25])
def test_runs_of_one_instant_are_listed_once_for_every_page_size(stage: Stage, limit: int) -> None:
    stage.endpoint.answer = WRONG
    jobs = [stage.create({"at": text(NOON + MINUTE)}, name=f"job {n}") for n in range(MANY)]
    stage.run(70)

    seen: list[str] = []
    mark: RunMark | None = None
    while page := list(islice(attention(stage, mark, limit), limit)):
        seen += [run.id for run in page]
        mark = page[-1].uuid, page[-1].schedule_id or page[-1].job_id

    assert len(seen) == MANY
    assert set(seen) == {stage.only_run(job).id for job in jobs}
    assert seen == sorted(seen, key=lambda run_id: run_id.partition("_")[2], reverse=True)


def test_runs_that_have_since_succeeded_are_not_listed(stage: Stage) -> None:
    stage.endpoint.script = [WRONG]
    action = stage.action(retry={"type": "fixed", "maxRetries": 1, "delaySeconds": 30, "retryOn": "any"})
    job = stage.create({"at": text(NOON + MINUTE)}, action=action)

    stage.run(70)
    waiting = list(attention(stage, None, 10))
    stage.run(60)

    assert [run.state for run in waiting] == [State.RETRY_WAIT]
    assert stage.only_run(job).state is State.SUCCESS
    assert list(attention(stage, None, 10)) == []


def attention(stage: Stage, mark: RunMark | None, page: int) -> Iterator[Run]:
    now = stage.clock.now()
    found = views.attention(stage.world.table, TENANT, (now - timedelta(days=2)).date(), now, mark, page)
    return (each for each in found if isinstance(each, Run))
