"""Common parts of the tests of hooks, of jobs and of schedules."""

from __future__ import annotations

from contextlib import suppress

import pytest

from sweephand.domain.job import ActionDraft
from sweephand.domain.run import Kind, Run, State
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.testing.taps import Fault
from tests.support.stage import Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before, refused
from tests.unit.server.flow.common import exact

MINUTELY = {"cron": "* * * * *"}
OF_HOOKS = (Kind.ON_SUCCESS, Kind.ON_FAILURE, Kind.ON_MISSED)
OPERATIONS = pytest.mark.parametrize("operation", ["dynamodb.PutItem", "sqs.SendMessageBatch"])
FAULTS = pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused])


def target(stage: Stage, name: str, **fields: object) -> ActionDraft:
    return stage.action(url=f"https://example.org/{name}", **fields)


def called(stage: Stage) -> list[str]:
    return [received.params["url"].rpartition("/")[2] for received in stage.endpoint.received]


def hook_runs(stage: Stage, planned: Planned) -> list[Run]:
    return [run for run in stage.runs(planned) if run.kind in OF_HOOKS]


def runs_once(stage: Stage, planned: Planned, name: str, operation: str, fault: Fault) -> None:
    """Lets the call that begins the hook of the first run, or sends for it, meet a fault; executors may die of it."""
    stage.run(50)
    skip = 1 if operation == "dynamodb.PutItem" else 0

    with stage.taps.once(operation, fault, skip=skip):
        for _ in range(10):
            with suppress(Crash):
                stage.run(30)

    assert [run.state for run in hook_runs(stage, planned)] == [State.SUCCESS]
    assert called(stage) == ["run", name]
    exact(stage, planned)
