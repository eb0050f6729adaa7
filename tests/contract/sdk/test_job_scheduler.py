"""Root's JobScheduler through the whole service. Names of checks: contract of Root, R01 to R36."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sweephand.sdk import (
    AsyncJobScheduler,
    InvalidArgument,
    JobInterval,
    JobRecord,
    JobScheduler,
    TransportError,
)
from sweephand.sdk.api_errors import NotFound
from sweephand.server.flow.bulk import delete_jobs
from sweephand.server.flow.bulk.some_jobs import Done
from tests.contract.native.api import Api
from tests.contract.sdk.stack import connected, connected_async

START = datetime(2027, 3, 2, 8, 30, tzinfo=UTC)
DAILY = JobInterval.DAILY


@pytest.fixture
def scheduler(api: Api) -> JobScheduler:
    return JobScheduler(connected(api)[0])


@pytest.mark.parametrize("interval", JobInterval)
def test_a_created_job_can_be_read(scheduler, interval):
    end = None if interval is JobInterval.ONE_TIME else datetime(2029, 1, 1, tzinfo=UTC)

    made = scheduler.create(resource_id="r-1", tag="t", start=START, end=end, job_interval=interval)

    assert made == JobRecord(made.job_schedule_id, "r-1", START, interval, "t", end)
    assert scheduler.get(made.job_schedule_id) == made
    assert scheduler.list() == (made,)


def test_the_list_is_empty_before_the_first_job(scheduler):
    assert scheduler.list() == ()
    assert scheduler.delete_by_tag("t") == 0


@pytest.mark.parametrize("interval", [0, 6, -1])
def test_an_interval_outside_one_to_five_is_refused(scheduler, interval):
    with pytest.raises(
        InvalidArgument, match=f"job_interval must be 1 to 5, one of JobInterval, not {interval}"
    ) as refused:
        scheduler.create(resource_id="r", start=START, job_interval=interval)

    assert refused.value.root_code == 300
    assert scheduler.list() == ()


def test_an_instant_without_a_zone_is_refused(scheduler):
    with pytest.raises(InvalidArgument, match="start must have a time zone"):
        scheduler.create(resource_id="r", start=START.replace(tzinfo=None), job_interval=DAILY)
    with pytest.raises(InvalidArgument, match="start must be a datetime, not '2027-03-01T12:00:00Z'"):
        scheduler.create(resource_id="r", start="2027-03-01T12:00:00Z", job_interval=DAILY)


def test_getting_an_absent_job_gives_none_deleting_it_succeeds_and_editing_it_fails(scheduler):
    made = scheduler.create(resource_id="r", start=START, job_interval=DAILY)

    scheduler.delete(made.job_schedule_id)
    scheduler.delete(made.job_schedule_id)

    assert scheduler.get(made.job_schedule_id) is None
    with pytest.raises(NotFound):
        scheduler.edit(made)


def test_an_edit_replaces_the_whole_record(scheduler):
    made = scheduler.create(resource_id="r", tag="t", start=START, job_interval=DAILY)
    wanted = replace(
        made, resource_id="other", tag=None, start=START + timedelta(days=1), job_interval=JobInterval.ONE_TIME
    )

    scheduler.edit(wanted)

    assert scheduler.get(made.job_schedule_id) == wanted


def test_jobs_can_be_listed_and_deleted_by_resource_and_by_tag_including_no_tag(scheduler):
    """R02, R03, R04."""
    a = scheduler.create(resource_id="r-1", tag="x", start=START, job_interval=DAILY)
    b = scheduler.create(resource_id="r-1", start=START, job_interval=DAILY)
    c = scheduler.create(resource_id="r-2", start=START, job_interval=DAILY)

    assert scheduler.list_by_resource_id("r-1") == (a, b)
    assert scheduler.list_by_tag("x") == (a,)
    assert scheduler.list_by_tag(None) == (b, c)
    assert scheduler.delete_by_tag(None) == 2
    assert scheduler.list() == (a,)
    assert scheduler.delete_by_resource_id("r-1") == 1
    assert scheduler.list() == ()


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_string_selects_nothing(scheduler, empty):
    """An empty filter would let through the jobs without a tag, or all of them."""
    made = scheduler.create(resource_id="r", start=START, job_interval=DAILY)

    for call in (scheduler.delete_by_resource_id, scheduler.list_by_resource_id):
        with pytest.raises(InvalidArgument, match="resource_id must be a string that is not empty"):
            call(empty)
    if empty is not None:
        for call in (scheduler.delete_by_tag, scheduler.list_by_tag):
            with pytest.raises(InvalidArgument, match="tag must be a string that is not empty, or None"):
                call(empty)
    assert scheduler.list() == (made,)


@pytest.mark.extended
def test_more_than_a_hundred_jobs_are_deleted_before_the_call_returns(scheduler):
    for _ in range(103):
        scheduler.create(resource_id="r", start=START, job_interval=DAILY)

    assert len(scheduler.list()) == 103
    assert scheduler.delete_by_resource_id("r") == 103
    assert scheduler.list() == ()


def test_other_callers_jobs_are_neither_listed_nor_deleted(api):
    sh, _ = connected(api)
    scheduler = JobScheduler(sh)
    own = sh.jobs.create("mine", {"type": "event"}, resource_id="r")
    made = scheduler.create(resource_id="r", start=START, job_interval=DAILY)

    assert scheduler.list() == (made,)
    assert scheduler.get(own.id) is None
    assert scheduler.delete_by_resource_id("r") == 1
    assert sh.jobs.get(own).id == own.id


def test_other_callers_jobs_can_be_neither_edited_nor_deleted(api):
    sh, _ = connected(api)
    scheduler = JobScheduler(sh)
    made = scheduler.create(resource_id="r", start=START, job_interval=DAILY)
    own = sh.jobs.create("mine", {"type": "event"}, resource_id="r")

    with pytest.raises(NotFound, match=f"the collection root has no job {own.id}"):
        scheduler.edit(replace(made, job_schedule_id=own.id))
    scheduler.delete(own.id)

    there = sh.jobs.get(own)
    assert (there.collection, there.revision) == (own.collection, own.revision)


@pytest.mark.parametrize("count", [2, 103])
def test_a_bulk_delete_whose_answer_is_lost_raises_and_is_not_repeated(api, count):
    sh, gateway = connected(api)
    scheduler = JobScheduler(sh)
    for _ in range(count):
        scheduler.create(resource_id="r", start=START, job_interval=DAILY)
    real = gateway.send

    def send(method, url, *more):
        gateway.lost = int(method == "DELETE" and "expectedCount" in url)
        return real(method, url, *more)

    gateway.send = send
    with pytest.raises(TransportError, match="the answer is lost"):
        scheduler.delete_by_resource_id("r")

    assert gateway.sent[-2:] == ["DELETE /v1/jobs"] * 2
    assert "DELETE /v1/jobs" not in gateway.sent[:-2]


def test_only_deleted_jobs_are_counted(api, monkeypatch):
    """A job that is changed after the count stays."""
    sh, _ = connected(api)
    scheduler = JobScheduler(sh)
    _, second = (scheduler.create(resource_id="r", start=START, job_interval=DAILY) for _ in range(2))
    real = delete_jobs._delete
    monkeypatch.setattr(
        delete_jobs,
        "_delete",
        lambda world, by, job: Done.KEPT if job.id == second.job_schedule_id else real(world, by, job),
    )

    assert scheduler.delete_by_resource_id("r") == 1
    assert scheduler.list() == (second,)


def test_a_job_puts_roots_event_on_the_bus_at_its_time(api):
    """R14, R17: never early, with Root's names."""
    api.stage.act_for_real()
    scheduler = JobScheduler(connected(api)[0])
    start = datetime(2027, 3, 1, 12, 5, tzinfo=UTC)
    made = scheduler.create(resource_id="r-1", tag="t", start=start, job_interval=DAILY)

    api.stage.run(24 * 3600 + 600)

    details = [json.loads(each["Detail"]) for each in api.stage.bus.of_jobs]
    assert [each["jobTime"] for each in details] == ["2027-03-01T12:05:00Z", "2027-03-02T12:05:00Z"]
    early = [
        each for each in details if datetime.fromisoformat(each["firedAt"]) < datetime.fromisoformat(each["jobTime"])
    ]
    assert not early
    assert {(each["jobScheduleId"], each["resourceId"], each["tag"]) for each in details} == {
        (made.job_schedule_id, "r-1", "t")
    }
    assert len({each["id"] for each in details}) == 2


def test_a_month_without_the_day_runs_the_job_on_its_last_day(api):
    """R12: clamped, and counted from `start`."""
    sh, _ = connected(api)
    scheduler = JobScheduler(sh)
    start = datetime(2027, 3, 31, 9, tzinfo=UTC)

    made = scheduler.create(resource_id="r", start=start, job_interval=JobInterval.MONTHLY)

    (schedule,) = sh.jobs.get(made.job_schedule_id, include="schedules").schedules
    planned = [
        each.planned_at.date().isoformat()
        for each in sh.schedules.preview(
            every=schedule.every, start_time=start, month_overflow=schedule.month_overflow, limit=4
        ).items
    ]
    assert planned == ["2027-03-31", "2027-04-30", "2027-05-31", "2027-06-30"]


def test_thirty_days_of_downtime_keep_the_rhythm_of_a_daily_job(api):
    """R22: Root's arithmetic stops a daily job after one missed day."""
    sh, _ = connected(api)
    scheduler = JobScheduler(sh)
    start = datetime(2027, 3, 1, 13, tzinfo=UTC)
    made = scheduler.create(resource_id="r", start=start, job_interval=DAILY)

    api.stage.pass_time(30 * 86_400)
    api.stage.run(3600 * 3)

    runs = list(sh.runs.list(job_id=made.job_schedule_id))
    assert sum(run.range.count if run.range else 1 for run in runs) == 31
    assert sh.jobs.get(made.job_schedule_id).next_run_at == datetime(2027, 4, 1, 13, tzinfo=UTC)


def test_the_try_variants_return_the_error(api):
    """R31."""
    sh, _ = connected(api)
    scheduler = JobScheduler(sh)

    made = scheduler.try_create(resource_id="r", start=START, job_interval=DAILY)
    refused = scheduler.try_create(resource_id="r", start=START, job_interval=0)
    gone = scheduler.try_edit(replace(made.value, job_schedule_id="01a400f6-36fa-79cf-849d-104ac41dfdcc"))

    assert made.ok
    assert scheduler.try_get(made.value.job_schedule_id).value == made.value
    assert (refused.ok, refused.error.root_code) == (False, 300)
    assert gone.error.root_code == 2
    assert scheduler.try_list().value == scheduler.try_list_by_tag(None).value == (made.value,)
    assert scheduler.try_list_by_resource_id("r").value == (made.value,)
    assert scheduler.try_delete_by_tag("none").value == 0
    assert scheduler.try_delete_by_resource_id("r").value == 1
    assert scheduler.try_delete(made.value.job_schedule_id).ok


@pytest.mark.parametrize("nothing", [None, "", 7, {}])
def test_the_try_variants_raise_for_no_argument(scheduler, nothing):
    """R31. Root demands a string as the resource of a job."""
    made = scheduler.create(resource_id="r", start=START, job_interval=DAILY)
    once = {"start": START, "job_interval": DAILY}

    results = [
        scheduler.try_get(nothing),
        scheduler.try_delete(nothing),
        scheduler.try_edit(nothing),
        scheduler.try_edit(replace(made, resource_id=nothing)),
        scheduler.try_create(resource_id=nothing, **once),
        scheduler.try_create(resource_id="r", **once | {"start": nothing}),
        scheduler.try_create(resource_id="r", **once | {"job_interval": nothing}),
        scheduler.try_list_by_resource_id(nothing),
        scheduler.try_delete_by_resource_id(nothing),
    ]

    assert [(each.ok, each.value, each.error.root_code) for each in results] == [(False, None, 300)] * len(results)
    assert scheduler.list() == (made,)


def test_a_lost_answer_creates_no_second_job(api):
    """R32."""
    sh, gateway = connected(api)
    scheduler = JobScheduler(sh)
    scheduler.create(resource_id="first", start=START, job_interval=DAILY)
    gateway.lost = 3

    made = scheduler.create(resource_id="r", start=START, job_interval=DAILY)

    assert scheduler.list_by_resource_id("r") == (made,)


def test_the_asyncio_class_has_the_same_methods(api):
    async def main():
        async with connected_async(api) as sh:
            scheduler = AsyncJobScheduler(sh)
            made = await scheduler.create(resource_id="r", start=START, job_interval=DAILY)
            listed = await scheduler.list_by_tag(None)
            refused = await scheduler.try_create(resource_id="r", start=START, job_interval=0)
            return made, listed, refused, await scheduler.delete_by_tag(None)

    made, listed, refused, deleted = asyncio.run(main())

    assert listed == (made,)
    assert (refused.ok, deleted) == (False, 1)
