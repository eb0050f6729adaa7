from __future__ import annotations

from typing import Any

import pytest

from sweephand.base.errors import InvalidRequest, NotFound
from sweephand.domain.run import Kind, State
from sweephand.domain.schedule import Lane
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.server.flow.tenants import tenancy
from sweephand.testing.taps import Act, Passing
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, refused
from tests.unit.server.flow.common import SECOND

YEARLY = {"cron": "0 0 1 1 *"}
TRANSACTION = "dynamodb.TransactWriteItems"


def start(stage: Stage, planned: Planned, key: str | None = None, *, schedule: bool = False, digest: str = "") -> str:
    schedule_id = planned.schedules[0].id if schedule else None
    return manual.run_now(stage.world, TENANT, planned.job.id, schedule_id, Once(key, digest) if key else None).run_id


def test_a_manual_run_can_be_read_and_runs_immediately(stage: Stage) -> None:
    planned = stage.create(YEARLY)

    run_id = start(stage, planned)
    queued = stage.only_run(planned.job.id)
    assert (queued.id, queued.kind, queued.state) == (run_id, Kind.MANUAL, State.QUEUED)
    stage.run(2)

    run = stage.only_run(planned.job.id)
    assert (run.state, run.planned_at, run.wake_at) == (State.SUCCESS, queued.planned_at, None)
    assert stage.endpoint.run_ids == [run_id]
    assert len(stage.waiting()) == 1


def test_a_manual_run_of_a_schedule_is_in_its_ledger_but_not_in_its_count(stage: Stage) -> None:
    planned = stage.create(YEARLY)

    start(stage, planned, schedule=True)
    stage.run(2)

    assert stage.only_run(planned).kind is Kind.MANUAL
    totals = stage.totals(planned)
    assert (totals.planned, totals.ended) == (0, 0)


def test_two_manual_runs_in_the_same_millisecond_are_separate_runs(stage: Stage) -> None:
    planned = stage.create(YEARLY)

    assert start(stage, planned) != start(stage, planned)
    stage.run(2)
    assert len(stage.endpoint.received) == 2


def test_the_same_request_three_seconds_later_finds_its_run(stage: Stage) -> None:
    planned = stage.create(YEARLY)

    first = start(stage, planned, "key")
    stage.run(3)
    again = start(stage, planned, "key")
    stage.run(120)

    assert again == first
    assert len(stage.endpoint.received) == 1


def test_a_key_used_with_another_request_is_refused(stage: Stage) -> None:
    planned = stage.create(YEARLY)
    start(stage, planned, "key", digest="one")

    with pytest.raises(InvalidRequest):
        start(stage, planned, "key", digest="two")


@pytest.mark.parametrize("key", [None, "key"])
def test_a_start_whose_answer_was_lost_makes_one_run(stage: Stage, key: str | None) -> None:
    planned = stage.create(YEARLY)

    with stage.taps.once(TRANSACTION, answer_lost):
        run_id = start(stage, planned, key)
    stage.run(120)

    assert stage.endpoint.run_ids == [run_id]


def test_the_wake_row_completes_a_start_that_died_before_its_message(stage: Stage) -> None:
    planned = stage.create(YEARLY)
    with stage.taps.once(TRANSACTION, crash_after), pytest.raises(Crash):
        start(stage, planned)

    stage.run(120)

    (received,) = stage.endpoint.received
    assert received.at - received.call.planned_at < 62 * SECOND
    assert stage.only_run(planned.job.id).state is State.SUCCESS


def test_an_unavailable_queue_delays_the_run_and_fails_no_request(stage: Stage) -> None:
    planned = stage.create(YEARLY)

    def no_sends(passing: Passing, act: Act) -> Any:
        return refused(passing, act) if passing.service == "sqs" else act()

    with stage.taps.faulty(no_sends):
        run_id = start(stage, planned)
    stage.run(120)

    assert stage.endpoint.run_ids == [run_id]


def test_a_lost_message_of_a_manual_run_is_sent_again_without_duplicating_the_run(stage: Stage) -> None:
    planned = stage.create(YEARLY)
    start(stage, planned)
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])

    stage.run(1_200)

    assert len(stage.endpoint.received) == 1
    assert not [key for key in stage.waiting() if key[1].startswith("RUN#")]


def test_a_stopped_job_can_be_run_by_hand(stage: Stage) -> None:
    planned = stage.create(YEARLY, active=False)

    start(stage, planned)
    stage.run(2)

    assert stage.only_run(planned.job.id).state is State.SUCCESS


def test_a_tenant_cannot_start_jobs_of_another(stage: Stage) -> None:
    tenancy.create_tenant(stage.world, "globex", None)
    planned = stage.create(YEARLY)

    with pytest.raises(NotFound):
        manual.run_now(stage.world, "globex", planned.job.id, None, None)
    with pytest.raises(NotFound):
        manual.run_now(stage.world, TENANT, planned.job.id, "no-such-schedule", None)


def test_deleting_a_job_cancels_its_open_manual_run(stage: Stage) -> None:
    planned = stage.create(YEARLY)
    start(stage, planned)
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])

    stage.delete(planned)
    stage.run(120)

    run = stage.only_run(planned.job.id)
    assert (run.state, run.wake_at) == (State.CANCELLED, None)
    assert stage.endpoint.received == []
