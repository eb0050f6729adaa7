"""The page of Root's JobScheduler by the SDK, against the whole service: its failure modes and advice.

The numbers are those of the contract; R20 to R22 are in test_consumer.py.
"""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from sweephand.sdk import Dropped, event, every
from sweephand.server.store.jobs import jobs
from sweephand.testing.taps import Act, Passing
from tests.contract.calls import WRITES
from tests.contract.native.api import Api
from tests.contract.sdk.stack import connected
from tests.contract.sdk.test_consumer import FIRST, LEASE_S, create, events, running
from tests.support.stage import TENANT
from tests.support.taps import Crash

FEEDS = ("news", "weather")
WEEKS_AWAY = 3


def wanted(*feeds: str) -> list[dict[str, Any]]:
    """Returns the jobs of a program that has a row of its own for each feed."""
    return [
        {"key": feed, "action": event(consumer="billing", payload={"feed": feed}), "schedules": [every("PT5M")]}
        for feed in feeds
    ]


def next_runs(api: Api) -> dict[str, str]:
    listed = api.get("/v1/jobs", query="include=schedules").json["items"]
    return {job["key"]: job["schedules"][0]["nextRunAt"] for job in listed}


def test_the_next_start_repairs_a_crash_between_the_bots_row_and_its_job(api):
    """Failure mode 1: the program knows of a job of which the scheduler does not."""
    with running(api) as program:
        program.scheduler.start(job_set="feeds", jobs=wanted("news"), lease_s=LEASE_S)
        # The program writes the row of `weather`, and dies before it creates the job.
        program.scheduler.close()
        api.stage.run(3_600)

        made = program.scheduler.start(job_set="feeds", jobs=wanted(*FEEDS), lease_s=LEASE_S)
        api.stage.run(600)

        assert made is not None
        assert ([each.key for each in made.created], made.unchanged) == (["weather"], 1)
        program.listen()
        fed = {told["detail"]["payload"]["feed"] for told in events(api)}
        assert fed == {*FEEDS}


def test_an_outage_longer_than_the_retention_deletes_no_job_and_reports_its_losses(api):
    """Failure mode 2: jobs that were due in a long outage go, and nobody hears of it."""
    create(api, "PT12H")
    with running(api) as program:
        for _ in range(WEEKS_AWAY * 14):
            api.stage.pass_time(43_200 - 240)
            api.stage.run(240)

        program.scheduler.start(lease_s=LEASE_S)

        kept = program.times("missed")
        dropped = [told for kind, told in program.got if kind == "dropped"]
        assert len(dropped) == 1
        assert isinstance(dropped[0], Dropped)
        assert dropped[0].first == FIRST
        assert dropped[0].count + len(kept) == WEEKS_AWAY * 14
        assert kept == [kept[0] + n * timedelta(hours=12) for n in range(len(kept))]
        assert timedelta(days=6) < kept[-1] - kept[0] <= timedelta(days=7)
        (job,) = api.get("/v1/jobs").json["items"]
        assert job["state"] == "ACTIVE"


def test_r17_an_event_published_twice_has_one_id(api):
    """The executor dies at each first event of 100 runs, by turns just before and just after the bus took it."""
    api.stage.act_for_real()
    connected(api)[0].jobs.create("beat", event(), every("PT1M"))
    turns, met = itertools.count(), set()

    def dies(passing: Passing, act: Act) -> Any:
        told = passing.operation == "PutEvents" and json.loads(passing.request["Entries"][0]["Detail"])
        if not told or told["id"] in met:
            return act()
        met.add(told["id"])
        if next(turns) % 2:
            act()
        raise Crash

    api.stage.taps.fault = dies
    while len(met) < 100:
        with suppress(Crash):
            api.stage.run(60)
    api.stage.taps.fault = None
    api.stage.run(900)

    told = [(each["detail"]["jobTime"], each["detail"]["id"]) for each in events(api)]
    times = sorted({at for at, _ in told})
    assert len(times) >= 100
    assert len(told) > len(times), "some were put twice"
    assert len({*told}) == len({one for _, one in told}) == len(times)
    begun = datetime.fromisoformat(times[0])
    assert [datetime.fromisoformat(at) for at in times] == [begun + n * timedelta(minutes=1) for n in range(len(times))]


def test_r24_a_clean_restart_writes_nothing(api):
    client, _ = connected(api)
    client.job_sets.put("feeds", jobs=wanted(*FEEDS))
    passed = len(api.stage.taps.passed)

    again = client.job_sets.put("feeds", jobs=wanted(*FEEDS))

    assert again.unchanged == len(FEEDS)
    assert [each.operation for each in api.stage.taps.passed[passed:] if each.operation in WRITES] == []


def test_r25_a_hundred_restarts_change_no_next_run(api):
    client, _ = connected(api)
    client.job_sets.put("feeds", jobs=wanted(*FEEDS))
    before = next_runs(api)

    for _ in range(100):
        api.stage.pass_time(2)
        client.job_sets.put("feeds", jobs=wanted(*FEEDS))

    assert next_runs(api) == before


def test_r28_a_series_that_lost_its_next_run_resumes_within_an_hour(api):
    """A job that runs daily to look after the others is not needed: the audit does it each hour."""
    client, _ = connected(api)
    client.job_sets.put("feeds", jobs=wanted("news"))
    (job,) = api.get("/v1/jobs", query="include=schedules").json["items"]
    (schedule,) = jobs.read_schedules(api.stage.world.table, TENANT, job["id"])
    api.stage.edit_schedule(schedule, next_run_at=None)
    assert api.stage.stored(schedule).next_run_at is None

    api.stage.audit()
    api.stage.run(1_000)

    assert api.stage.stored(schedule).next_run_at is not None
    assert api.get("/v1/runs", query={"jobId": job["id"]}).json["items"] != []
