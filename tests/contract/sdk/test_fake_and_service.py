"""The stack in memory next to the service: the same calls, the same instants, the same refusals."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sweephand.sdk import ApiError, FakeSweephand, at, cron, every, http, rrule
from sweephand.testing.sources import START
from tests.contract.native.api import Api
from tests.contract.sdk.stack import connected

RUN = http.post("https://example.org/run")
BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    "schedule",
    [
        every("PT10M"),
        every("PT7M", start_time=START - timedelta(hours=1)),
        every("PT7M", start_time=START + timedelta(hours=1), end_time=START + timedelta(hours=3)),
        every("PT30M", align="clock"),
        every("PT25M", align="actual_start"),
        every("PT30M", count=3),
        cron("*/20 13-15 * * *", zone=BERLIN),
        cron("17 * * * *", jitter_seconds=600, zone=BERLIN),
        rrule("FREQ=HOURLY;BYMINUTE=5,35"),
        at(START + timedelta(hours=2)),
        at(START - timedelta(seconds=30)),
        {"repeatAt": "4.40pm", "timezone": BERLIN},
        every("PT1H", policies={"onCreate": "run_now"}),
        at(START - timedelta(hours=2), policies={"onPastStart": "run_now"}),
    ],
    ids=str,
)
def test_the_fake_has_the_same_occurrences_as_the_service(api: Api, schedule):
    sh, _ = connected(api)
    fake = FakeSweephand(now=api.stage.clock.now())
    salted = "jitterSeconds" in schedule  # the service's schedule has another id, of which its jitter is made
    jobs = [client.jobs.create("a", RUN, [{"name": "s", **schedule}]) for client in (sh, fake)]

    api.stage.run(6 * 3600)
    fake.advance("6h")

    there, here = (
        sorted(run.planned_at for run in client.runs.list(job_id=job, page_size=200))
        for client, job in zip((sh, fake), jobs, strict=True)
    )
    assert there
    assert (len(here) == len(there)) if salted else (here == there)
    service, memory = (client.jobs.get(job) for client, job in zip((sh, fake), jobs, strict=True))
    assert memory.state == service.state
    assert salted or memory.next_run_at == service.next_run_at
    assert memory.totals.succeeded == service.totals.succeeded


@pytest.mark.parametrize(
    "wrong",
    [
        cron("61 * * * *"),
        every("often"),
        {"evry": "PT1H"},
        {},
        at(START - timedelta(hours=2)),
        cron("0 0 30 2 *"),
        every("PT1H", end_time=START - timedelta(hours=2)),
    ],
    ids=str,
)
def test_the_fake_refuses_with_the_codes_and_paths_of_the_service(api: Api, wrong):
    sh, _ = connected(api)
    fake = FakeSweephand(now=api.stage.clock.now())
    refusals = []

    for client in (sh, fake):
        with pytest.raises(ApiError) as refused:
            client.jobs.create("a", RUN, wrong)
        refusals.append((refused.value.code, refused.value.status, [each.field for each in refused.value.errors]))

    assert refusals[0] == refusals[1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": {"type": "htp"}},
        {"action": {"type": "http"}},
        {"action": http.post("https://example.org/run", paylod=1)},
        {"action": http.post("example.org")},
        {"action": http.post("http://169.254.169.254/")},
        {"action": http.post("https://example.org", retry={"type": "sometimes"})},
        {"action": {"type": "sqs", "queueUrl": "https://example.org"}},
        {"action": {"type": "event", "detailType": 7}},
        {"error_action": {"type": "htp"}},
        {"hooks": {"onSuccess": {"type": "htp"}}},
        {"hooks": {"onFire": RUN}},
        {"policies": {"overlap": "sometimes"}},
        {"policies": {"overlp": "skip"}},
        {"policies": {"misfire": {"type": "no"}}},
        {"schedules": every("PT1H", policies={"overlap": "sometimes"})},
        {"schedules": every("PT1H", policies={"afterEnd": "final"})},
        {"tags": [str(n) for n in range(11)]},
        {"tags": ["a", "a"]},
        {"tags": ["a" * 129]},
        {"resource_id": "r" * 257},
        {"description": "d" * 1_001},
        {"name": " a"},
        {"name": "a" * 129, "tags": [""], "policies": {"overlap": 1}},
    ],
    ids=str,
)
def test_the_fake_refuses_the_same_members_as_the_service(api: Api, wrong):
    sh, _ = connected(api)
    fake = FakeSweephand(now=api.stage.clock.now())
    refusals = []

    for client in (sh, fake):
        with pytest.raises(ApiError) as refused:
            client.jobs.create(**{"name": "a", "action": RUN} | wrong)
        refusals.append((refused.value.code, refused.value.status, refused.value.errors))

    assert refusals[0] == refusals[1]
    assert list(fake.jobs.list()) == []


def test_changes_move_the_next_run_in_the_fake_as_in_the_service(api: Api):
    sh, _ = connected(api)
    fake = FakeSweephand(now=api.stage.clock.now())

    def told(client) -> list[object]:
        job = client.jobs.create("a", RUN, [{"name": "s", **every("PT1H")}], tags=["x"])
        seen = [job.next_run_at]
        advance(client, 1800)
        seen.append(client.jobs.patch(job, tags=["x", "y"]).next_run_at)
        seen.append(client.jobs.patch(job, schedules=[{"name": "s", **every("PT2H")}]).next_run_at)
        seen.append(client.jobs.deactivate(job).next_run_at)
        advance(client, 3 * 3600)
        activated = client.jobs.activate(job)
        seen += [activated.next_run_at, activated.revision, activated.state]
        advance(client, 3 * 3600)
        seen += [run.planned_at for run in client.runs.list(job_id=job, kind="scheduled", state="SUCCESS")]
        return seen

    def advance(client, seconds: float) -> None:
        fake.advance(timedelta(seconds=seconds)) if client is fake else api.stage.run(seconds)

    assert told(fake) == told(sh)
