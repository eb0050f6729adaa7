"""The stack in memory, as a user's test sees it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from sweephand.sdk import (
    AsyncFakeSweephand,
    FakeSweephand,
    InvalidArgument,
    JobInterval,
    JobScheduler,
    at,
    cron,
    every,
    http,
)
from sweephand.sdk.api_errors import (
    CountMismatch,
    InvalidField,
    KeyReused,
    NameTaken,
    NotFound,
    RevisionMismatch,
    UnknownMember,
)
from sweephand.sdk.fake.service import NotFaked

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
RUN = http.post("https://example.org/run", payload={"n": 1})


@pytest.fixture
def fake() -> FakeSweephand:
    return FakeSweephand(now=NOW)


def test_the_runs_of_a_day_start_at_their_instants(fake):
    job = fake.jobs.create("nightly", RUN, cron("30 2 * * *", zone="Europe/Berlin"))

    runs = fake.advance("2d")

    assert [run.planned_at.isoformat() for run in runs] == ["2027-03-02T01:30:00+00:00", "2027-03-03T01:30:00+00:00"]
    assert [run.id for run in fake.runs.list(job_id=job)] == [run.id for run in reversed(runs)]
    assert fake.now == NOW + timedelta(days=2)
    assert fake.jobs.get(job).totals.succeeded == 2


def test_an_occurrence_calls_the_function_with_its_payload_and_its_own_time():
    seen = []
    fake = FakeSweephand(
        now=NOW, on_run=lambda each: seen.append((each.job.name, each.payload, each.run.planned_at, fake.now))
    )
    fake.jobs.create("a", RUN, every("PT1H"))
    fake.jobs.create("b", RUN, [{"every": "PT90M", "payload": "own"}])

    fake.advance(timedelta(hours=2))

    hour = timedelta(hours=1)
    assert seen == [
        ("a", {"n": 1}, NOW + hour, NOW + hour),
        ("b", "own", NOW + 1.5 * hour, NOW + 1.5 * hour),
        ("a", {"n": 1}, NOW + 2 * hour, NOW + 2 * hour),
    ]
    assert [each.job.name for each in fake.occurrences] == ["a", "b", "a"]


def test_a_function_that_raises_fails_the_run_and_nothing_else():
    def broken(each):
        raise ValueError("no such customer")

    fake = FakeSweephand(now=NOW, on_run=broken)
    job = fake.jobs.create("a", RUN, every("PT1H"))

    runs = fake.advance("PT2H")

    assert [(run.state, run.reason, run.message) for run in runs] == [
        ("ERROR", "TARGET_ERROR", "ValueError: no such customer")
    ] * 2
    assert fake.runs.get(runs[0]).attempts[0].state == "ERROR"
    assert [run.id for run in fake.runs.list(state="ERROR", job_id=job)] == [runs[1].id, runs[0].id]


def test_a_function_can_use_the_client_but_not_move_the_clock():
    def chain(each):
        if each.job.name == "first":
            fake.jobs.create("second", RUN, at(fake.now + timedelta(minutes=5)))
        else:
            fake.advance("1h")

    fake = FakeSweephand(now=NOW, on_run=chain)
    fake.jobs.create("first", RUN, at(NOW + timedelta(hours=1)))

    runs = fake.advance("2h")

    assert [run.state for run in runs] == ["SUCCESS", "ERROR"]
    assert "cannot be called from within on_run" in runs[1].message


def test_pausing_and_deactivating_omit_occurrences(fake):
    job = fake.jobs.create("a", RUN, every("PT1H"))

    fake.jobs.pause(job, note="holiday")
    assert fake.advance("5h") == []
    fake.jobs.resume(job)
    assert len(fake.advance("1h")) == 1
    fake.jobs.deactivate(job)
    assert fake.jobs.get(job).next_run_at is None
    assert fake.advance("5h") == []
    fake.jobs.activate(job)
    assert fake.jobs.next(job).next_run_at == NOW + timedelta(hours=12)


def test_a_change_that_keeps_the_timing_keeps_the_rhythm(fake):
    job = fake.jobs.create("a", RUN, [{"name": "s", **every("PT1H")}])
    fake.advance("30m")

    same = fake.jobs.put(job, name="a", action=RUN, schedules=[{"name": "s", **every("PT1H")}])
    changed = fake.jobs.patch(job, description="d")
    moved = fake.jobs.patch(job, schedules=[{"name": "s", **every("PT2H")}])

    assert (same.revision, changed.revision, moved.revision) == (1, 2, 3)
    assert changed.next_run_at == NOW + timedelta(hours=1)
    assert moved.next_run_at == NOW + timedelta(hours=2, minutes=30)


def test_a_count_and_a_one_time_schedule_end_the_job(fake):
    fake.jobs.create("twice", RUN, every("PT1H", count=2))
    fake.jobs.create("once", RUN, at(NOW + timedelta(hours=1)))

    assert len(fake.advance("1d")) == 3
    assert {job.name for job in fake.jobs.list(state="COMPLETED")} == {"twice", "once"}


def test_refusals_equal_those_of_the_service(fake):
    job = fake.jobs.create("a", RUN, every("PT1H"))

    with pytest.raises(NameTaken):
        fake.jobs.create("a", RUN)
    with pytest.raises(InvalidField, match=r"schedules\[0\].cron"):
        fake.jobs.create("b", RUN, cron("61 * * * *"))
    with pytest.raises(UnknownMember, match=r"schedules\[0\].evry"):
        fake.jobs.create("b", RUN, [{"evry": "PT1H"}])
    with pytest.raises(InvalidField, match="more than 60 seconds in the past"):
        fake.jobs.create("b", RUN, at(NOW - timedelta(hours=1)))
    with pytest.raises(RevisionMismatch):
        fake.jobs.patch(job, active=False, if_match=7)
    with pytest.raises(NotFound):
        fake.jobs.get("nothing")
    with pytest.raises(CountMismatch):
        fake.jobs.delete_matching(collection="default", expected_count=3)
    fake.jobs.create("c", RUN, idempotency_key="k")
    with pytest.raises(KeyReused):
        fake.jobs.create("d", RUN, idempotency_key="k")
    assert [each.name for each in fake.jobs.list()] == ["a", "c"]


def test_unknown_requests_raise_an_error(fake):
    with pytest.raises(NotFaked, match="does not answer POST /v1/calendars: use the local stack"):
        fake.calendars.create(name="holidays")
    with pytest.raises(InvalidField, match="are not available in FakeSweephand"):
        fake.jobs.create("a", RUN, cron("0 9 * * *", calendars=[{"name": "holidays"}]))


@pytest.mark.parametrize(("by", "seconds"), [("90s", 90), ("1w", 604_800), ("PT1H", 3600), ("2 days", 172_800)])
def test_the_clock_moves_by_the_given_time(fake, by, seconds):
    fake.advance(by)

    assert fake.now == NOW + timedelta(seconds=seconds)


def test_the_clock_does_not_go_back(fake):
    with pytest.raises(InvalidArgument, match="must not move the clock back"):
        fake.advance(NOW - timedelta(seconds=1))
    with pytest.raises(InvalidArgument, match="now must have a time zone"):
        FakeSweephand(now=NOW.replace(tzinfo=None))


def test_the_scheduler_of_root_runs_on_the_fake(fake):
    scheduler = JobScheduler(fake)
    made = scheduler.create(resource_id="r", start=NOW + timedelta(hours=1), job_interval=JobInterval.DAILY)

    runs = fake.advance("3d")

    assert len(runs) == 3
    assert scheduler.get(made.job_schedule_id) == made
    assert scheduler.delete_by_tag(None) == 1
    assert scheduler.list() == ()


def test_the_fake_has_an_asyncio_client():
    async def main():
        async with AsyncFakeSweephand(now=NOW) as fake:
            job = await fake.jobs.create("a", RUN, every("PT1H"))
            fake.advance("3h")
            return [run.state async for run in fake.runs.list(job_id=job)]

    assert asyncio.run(main()) == ["SUCCESS"] * 3
