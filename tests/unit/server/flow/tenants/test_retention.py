"""Retention: runs, and jobs that have ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sweephand.base.errors import NotFound, SweephandError
from sweephand.domain.collection import Retention
from sweephand.domain.run import Reason, State
from sweephand.domain.schedule import ScheduleState
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.runs import results
from sweephand.server.flow.tenants import tenancy
from tests.support.endpoint import BUSY, OK
from tests.support.stage import TENANT, Stage
from tests.support.stage import stage as a_stage
from tests.support.taps import Crash, crash_after, crash_before
from tests.unit.server.flow.common import DAY, fixed, once

DEFAULT = "default"


def keep(stage: Stage, **days: int) -> None:
    wanted = Retention(**days)
    tenancy.change_collection(stage.world, TENANT, DEFAULT, lambda before: replace(before, retention=wanted), None)


def is_there(stage: Stage, planned: Planned) -> bool:
    try:
        lookup.find(stage.world, TENANT, planned.job.id)
    except NotFound:
        return False
    return True


def pass_days(stage: Stage, days: float) -> None:
    """Lets time go by, and then a tick finds what is due."""
    stage.pass_time(days * 86_400)
    stage.run(300)


# Runs


@pytest.mark.parametrize(("days", "kept"), [(None, 15), (30, 30), (3_650, 3_650)])
def test_a_run_is_kept_as_long_as_its_collection_says(stage: Stage, days: int | None, kept: int) -> None:
    if days is not None:
        keep(stage, run_days=days)
    planned = stage.create(once(), name="succeeds")
    stage.run(120)

    run = stage.only_run(planned)
    assert run.state is State.SUCCESS
    assert run.finished_at is not None
    assert run.expires_at == run.finished_at.replace(microsecond=0) + kept * DAY


def test_the_retention_applies_to_every_kind_of_end(stage: Stage) -> None:
    keep(stage, run_days=40)
    stage.endpoint.answer = lambda _: BUSY
    failed = stage.create(once(), name="fails")
    waiting = stage.create(once(), name="waits", action=stage.action(retry=fixed(3_600)))
    stage.run(120)
    results.cancel(stage.world, TENANT, waiting.schedules[0].id, stage.only_run(waiting).uuid)
    paused = stage.create(once(DAY), {"cron": "30 * * * *"}, name="off")
    stage.set_state(paused, active=False)
    stage.run(3_600)
    stage.set_state(paused, active=True)

    for owner in (failed, waiting, paused.schedules[1]):
        run = stage.runs(owner)[0]
        assert run.finished_at is not None
        assert run.expires_at is not None
        assert timedelta(days=40) - timedelta(seconds=1) <= run.expires_at - run.finished_at <= timedelta(days=40)


def test_writing_an_outcome_does_not_read_the_retention(stage: Stage) -> None:
    stage.create({"cron": "*/10 * * * *"})
    stage.run(590)
    passed = len(stage.taps.passed)

    def slow(call: Any) -> Any:
        stage.clock.advance(8)
        return OK

    stage.endpoint.answer = slow
    stage.run(30)

    reads = [call.request for call in stage.taps.passed[passed:] if call.operation == "BatchGetItem"]
    assert sum("TENANT" in str(each) and "COL#" in str(each) for each in reads) == 1


def test_a_retry_after_the_retention_still_takes_place_and_is_kept_from_its_end(stage: Stage) -> None:
    answers = iter([BUSY, OK])
    stage.endpoint.answer = lambda _: next(answers)
    planned = stage.create(once(), action=stage.action(retry=fixed(16 * 86_400, retries=1)))
    stage.run(120)
    waiting = stage.only_run(planned)

    pass_days(stage, 16)
    run = stage.only_run(planned)

    assert (waiting.state, waiting.expires_at) == (State.RETRY_WAIT, None)
    assert (run.state, run.attempt) == (State.SUCCESS, 2)
    assert run.finished_at is not None
    assert run.expires_at == run.finished_at.replace(microsecond=0) + 15 * DAY
    assert stage.stored(planned).state is ScheduleState.COMPLETED


@pytest.mark.parametrize("days", [15, 3_650])
@pytest.mark.parametrize("retry", [fixed(20, retries=2), fixed(16 * 86_400, retries=2)], ids=["soon", "in 16 days"])
def test_an_attempt_is_kept_with_its_run_and_not_for_long_without_it(
    stage: Stage, days: int, retry: dict[str, Any]
) -> None:
    keep(stage, run_days=days)
    stage.endpoint.answer = lambda _: BUSY
    planned = stage.create(once(), action=stage.action(retry=retry))
    stage.run(180)
    for _ in range(2):
        stage.pass_time(retry["delaySeconds"])
        stage.run(180)

    run = stage.only_run(planned)
    attempts = [item for item in stage.items() if "#A#" in item["sk"]["S"]]
    assert (run.state, run.attempt, len(attempts)) == (State.ERROR, 3, 3)
    assert run.expires_at is not None
    for item in attempts:
        beyond = int(item["expires_at"]["N"]) - run.expires_at.timestamp()
        assert 0 <= beyond < 16 * 86_400


# Ended jobs


def test_an_ended_job_is_deleted_after_its_days(stage: Stage) -> None:
    planned = stage.create(once())
    stage.run(300)
    completed = stage.stored(planned)

    pass_days(stage, 59.9)
    before = is_there(stage, planned)
    pass_days(stage, 0.2)

    assert completed.state is ScheduleState.COMPLETED
    assert completed.completed_at is not None
    assert (before, is_there(stage, planned)) == (True, False)
    assert stage.job_counts() == {DEFAULT: 0}
    stage.run(1_200)
    assert [key for key in stage.waiting() if planned.job.id in key[0]] == []


def test_a_job_of_two_schedules_is_deleted_when_both_have_ended(stage: Stage) -> None:
    planned = stage.create(once(), once(10 * DAY))
    stage.run(300)
    stage.pass_time(9 * 86_400)
    stage.run(2 * 86_400)

    pass_days(stage, 49.5)
    first_is_old = is_there(stage, planned)
    pass_days(stage, 11)

    assert first_is_old
    assert not is_there(stage, planned)


def test_a_job_that_continues_is_not_deleted(stage: Stage) -> None:
    planned = stage.create(once(), {"cron": "0 0 1 1 *"})
    stage.run(300)

    pass_days(stage, 61)

    assert is_there(stage, planned)
    first = stage.stored(planned.schedules[0])
    assert first.state is ScheduleState.COMPLETED


def test_the_setting_of_the_collection_at_that_time_decides(stage: Stage) -> None:
    for_ever, longer = stage.create(once(), name="a"), stage.create(once(), name="b")
    stage.run(300)
    keep(stage, ended_job_days=0)
    pass_days(stage, 61)
    assert is_there(stage, for_ever)
    assert is_there(stage, longer)

    keep(stage, ended_job_days=90)
    third = stage.create(once(timedelta(days=61, minutes=10)), name="c")
    stage.run(1_200)
    assert stage.stored(third).state is ScheduleState.COMPLETED
    pass_days(stage, 89)
    assert is_there(stage, third)
    pass_days(stage, 2)
    assert not is_there(stage, third)


def test_a_job_of_a_collection_that_keeps_everything_leaves_the_index(stage: Stage) -> None:
    keep(stage, ended_job_days=0)
    planned = stage.create(once())
    stage.run(300)

    pass_days(stage, 3_000)

    assert is_there(stage, planned)


def test_an_ended_job_that_is_brought_back_stays(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *", "count": 1})
    stage.run(1_000)
    assert stage.stored(planned).state is ScheduleState.COMPLETED

    stage.change(planned, timings=[{"cron": "0 12 1 3 *"}])
    pass_days(stage, 61)

    assert is_there(stage, planned)
    assert stage.stored(planned).state is ScheduleState.ACTIVE


@pytest.mark.parametrize("fault", [crash_before, crash_after], ids=["before", "after"])
def test_the_end_of_an_ended_job_survives_a_crash_at_each_call(fault: Any) -> None:
    at = 0
    while True:
        with a_stage(shards=1) as stage:
            planned = stage.create(once())
            stage.run(300)
            stage.pass_time(60 * 86_400 + 60)
            seen = _with_crash(stage, fault, at)
            for _ in range(8):
                stage.run(600)
            assert not is_there(stage, planned), f"call {at}"
            assert stage.job_counts() == {DEFAULT: 0}
            at += 1
            if at >= seen:
                return


def _with_crash(stage: Stage, fault: Any, at: int) -> int:
    seen = 0

    def only(passing: Any, act: Any) -> Any:
        nonlocal seen
        seen += 1
        return fault(passing, act) if seen == at + 1 else act()

    with stage.taps.faulty(only):
        for step in (stage.tick, stage.deliver_all):
            try:
                step()
            except (Crash, SweephandError):
                continue
    return seen


def test_the_runs_of_a_disabled_collection_say_why_they_were_skipped(stage: Stage) -> None:
    keep(stage, run_days=20)
    planned = stage.create({"cron": "* * * * *"})
    stage.run(1)
    tenancy.change_collection(
        stage.world, TENANT, DEFAULT, lambda before: tenancy.enabled(before, on=False), if_match=None
    )
    stage.run(120)

    run = stage.runs(planned)[0]
    assert run.reason is Reason.DISABLED
    assert run.finished_at is not None
    assert run.expires_at == run.finished_at.replace(microsecond=0) + 20 * DAY
