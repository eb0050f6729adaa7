"""A tenant never has more schedules than its quota, and never is refused one that it may have."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from sweephand.base.errors import QuotaExceeded, SweephandError
from sweephand.domain.collection import Usage
from sweephand.server.flow.jobs import change, deletion
from sweephand.server.flow.jobs.change import ScheduleRequest
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.jobs import jobs
from sweephand.server.store.tenants import usage
from sweephand.testing.taps import Act, Passing
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, conflict, crash_after, crash_before
from tests.support.turns import at_once

HOURLY = {"every": "PT1H"}


def allow(stage: Stage, most: int | None) -> None:
    tenancy.change_tenant(stage.world, TENANT, None, Usage(most_schedules=most))


def counted(stage: Stage) -> int:
    return usage.read(stage.world.table, TENANT).schedules


def there(stage: Stage) -> int:
    return sum(row["sk"]["S"].startswith("SCH#") for row in stage.items())


def more(stage: Stage, planned: Planned, number: int) -> Planned:
    wished = [ScheduleRequest(None, stage.schedule(HOURLY)) for _ in range(number)]
    return stage.change_schedules(planned, lambda _: wished)


def test_creates_succeed_up_to_the_quota_and_not_beyond(stage: Stage) -> None:
    allow(stage, 3)
    planned = stage.create(HOURLY, HOURLY)
    before = stage.items()

    with pytest.raises(QuotaExceeded, match="3 schedules at most"):
        stage.create(HOURLY, HOURLY)
    with pytest.raises(QuotaExceeded):
        more(stage, planned, 2)
    assert [item for item in stage.items() if item not in before and item["sk"]["S"] != "LAST"] == []

    more(stage, planned, 1)
    stage.create(name="without any")
    assert counted(stage) == there(stage) == 3


def test_a_deleted_job_makes_room(stage: Stage) -> None:
    allow(stage, 2)
    first, second = stage.create(HOURLY), stage.create(HOURLY)

    stage.delete(first)
    third = stage.create(HOURLY)
    change.change_schedules(
        stage.world, TENANT, third.job.id, lambda found: [ScheduleRequest(found.schedules[0], None, delete=True)], None
    )

    more(stage, second, 1)
    assert counted(stage) == there(stage) == 2


def test_a_lower_quota_keeps_existing_jobs_and_allows_changes(stage: Stage) -> None:
    planned = stage.create(HOURLY, HOURLY, HOURLY)
    allow(stage, 1)

    stage.change(planned, timings=[{"every": "PT2H"}] * 3)
    stage.set_state(planned, active=False)
    stage.change_schedules(planned, lambda found: [ScheduleRequest(found.schedules[0], None, delete=True)])

    assert usage.read(stage.world.table, TENANT) == Usage(2, 1, jobs=1)
    with pytest.raises(QuotaExceeded):
        more(stage, planned, 1)


def test_jobs_are_counted_even_without_a_quota(stage: Stage) -> None:
    allow(stage, 1)
    allow(stage, None)
    planned = stage.create(HOURLY, HOURLY)
    allow(stage, 2)

    with pytest.raises(QuotaExceeded):
        more(stage, planned, 1)


@pytest.mark.parametrize("seed", range(8))
def test_twenty_concurrent_creates_stop_at_the_quota(stage: Stage, seed: int) -> None:
    allow(stage, 7)

    with at_once(stage) as run:
        found = run([lambda n=n: stage.create(HOURLY, name=f"{seed}-{n}") for n in range(20)])

    made = [each for each in found if isinstance(each, Planned)]
    assert len(made) == counted(stage) == there(stage) == 7
    assert {type(each) for each in found} == {Planned, QuotaExceeded}


@pytest.mark.parametrize("fault", [answer_lost, conflict, crash_before, crash_after])
@pytest.mark.parametrize("act", ["create", "more", "delete"])
def test_a_transaction_is_counted_once_after_any_fault(stage: Stage, act: str, fault: Any) -> None:
    allow(stage, 9)
    planned = stage.create(HOURLY, HOURLY)
    acts = {
        "create": lambda: stage.create(HOURLY),
        "more": lambda: more(stage, planned, 3),
        "delete": lambda: stage.delete(planned),
    }

    with stage.taps.once("dynamodb.TransactWriteItems", fault), suppress(Crash, SweephandError):
        acts[act]()

    assert counted(stage) == there(stage)


def test_a_quota_raised_during_a_create_applies_to_it(stage: Stage) -> None:
    allow(stage, 0)

    def raise_it(_passing: Passing, act: Act) -> Any:
        stage.taps.fault = None
        allow(stage, 1)
        return act()

    with stage.taps.once("dynamodb.GetItem", raise_it):
        stage.create(HOURLY)

    assert usage.read(stage.world.table, TENANT) == Usage(1, 1, jobs=1)


@pytest.mark.parametrize("before", [None, 2])
def test_a_job_quota_set_or_lowered_during_a_create_applies(stage: Stage, before: int | None) -> None:
    tenancy.change_tenant(stage.world, TENANT, None, Usage(most_jobs=before))
    stage.create()

    def lower_it(_passing: Passing, act: Act) -> Any:
        stage.taps.fault = None
        tenancy.change_tenant(stage.world, TENANT, None, Usage(most_jobs=1))
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", lower_it), pytest.raises(QuotaExceeded, match="1 jobs at most"):
        stage.create()

    assert usage.read(stage.world.table, TENANT).jobs == 1


@pytest.mark.parametrize("before", [None, 2])
def test_a_schedule_quota_set_or_lowered_during_a_create_applies(stage: Stage, before: int | None) -> None:
    allow(stage, before)
    planned = stage.create(HOURLY)

    def set_it(_passing: Passing, act: Act) -> Any:
        stage.taps.fault = None
        allow(stage, 1)
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", set_it), pytest.raises(QuotaExceeded):
        more(stage, planned, 1)


def test_schedules_written_after_their_job_are_counted_with_it(stage: Stage) -> None:
    """A hundred are too many for one transaction: they are counted by the job's own, and go with the job."""
    allow(stage, 150)
    planned = more(stage, stage.create(HOURLY), 99)
    assert counted(stage) == there(stage) == 100
    assert jobs.read_job(stage.world.table, TENANT, planned.job.id).schedule_count == 100  # type: ignore[union-attr]

    with pytest.raises(QuotaExceeded):
        more(stage, planned, 60)
    deletion.delete_job(stage.world, TENANT, planned.job.id, None)

    assert counted(stage) == 0


def test_a_job_deleted_while_its_schedules_are_written_removes_all_of_them(stage: Stage) -> None:
    planned = stage.create(HOURLY)
    with stage.taps.once("dynamodb.TransactWriteItems", crash_after), suppress(Crash):
        more(stage, planned, 99)

    deletion.delete_job(stage.world, TENANT, planned.job.id, None)

    assert counted(stage) == 0
