"""One-time schedules that are of no use any more go after 30 days, as in SAP's service; their jobs stay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweephand.domain.collection import Retention
from sweephand.domain.occurrences.index_row import Waits
from sweephand.domain.schedule import ScheduleState
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.lifecycle import ended_jobs
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.dynamo import keys
from tests.contract.sap.api import TENANT
from tests.contract.sap.test_schedules import path
from tests.support.endpoint import WRONG
from tests.support.taps import Crash, crash_after, crash_before

DAY = 86_400
SOON = {"time": "in 10 minutes"}


def pass_days(api, days):
    """Moves the clock while nothing works, and then does all that is due."""
    api.stage.pass_time(days * DAY)
    api.stage.run(300)


def there(api, made, n=0):
    return api.get(path(made, n)).status == 200


def waiting(api):
    """Rows of the next-run index, of ended schedules too."""
    return [(item["sk"]["S"], item["sweep"]["S"][0]) for item in api.stage.items() if "next_run_at" in item]


def keep_ended_jobs(api, days):
    keep = Retention(ended_job_days=days)
    tenancy.change_collection(api.stage.world, TENANT, "sap", lambda before: replace(before, retention=keep), None)


@pytest.mark.parametrize("fails", [False, True])
def test_a_one_time_schedule_that_ran_is_deleted_thirty_days_later_and_its_job_stays(api, fails):
    made = api.create(SOON, {"repeatInterval": "300 days"})
    if fails:
        api.stage.endpoint.script.append(WRONG)
    api.stage.run(900)
    assert api.get(path(made)).json["active"] is False

    pass_days(api, 29.9)
    before = there(api, made)
    pass_days(api, 0.2)

    assert (before, there(api, made), there(api, made, 1)) == (True, False, True)
    assert api.get(f"/jobs/{made['_id']}").status == 200
    assert [kind for _, kind in waiting(api)] == ["S", *fails * [Waits.ERRORS]]
    first = api.get("/actionLogs", query={"jobId": made["_id"]}).json["results"][0]
    assert (first["type"], first["user"]) == ("SCHEDULE_DELETION", None)


@pytest.mark.parametrize("off_by", ["itself", "job", "change", "all"])
def test_an_inactive_one_time_schedule_is_deleted_thirty_days_after_its_planned_run(api, off_by):
    when = {"time": "in 5 days", "active": off_by != "itself"}
    made = api.create(when, active=off_by != "job")
    if off_by == "change":
        api("PUT", path(made), {"active": False})
    if off_by == "all":
        api("POST", f"/jobs/{made['_id']}/schedules/activationStatus", {"activationStatus": False})

    pass_days(api, 34.9)
    before = there(api, made)
    pass_days(api, 0.2)

    assert (before, there(api, made)) == (True, False)
    assert waiting(api) == []
    assert api.stage.endpoint.received == []


def test_a_schedule_that_is_activated_again_stays(api):
    made = api.create({"time": "in 200 days", "active": False})
    api("PUT", path(made), {"time": "in 5 days"})
    api("PUT", path(made), {"active": True, "time": "in 200 days"})

    pass_days(api, 60)

    assert there(api, made)
    assert [kind for _, kind in waiting(api)] == ["S"]


def test_moving_the_time_later_delays_the_deletion(api):
    made = api.create({"time": "in 5 days", "active": False})
    pass_days(api, 20)
    api("PUT", path(made), {"time": "in 6 days"})

    pass_days(api, 35.9)
    before = there(api, made)
    pass_days(api, 0.3)

    assert (before, there(api, made)) == (True, False)


def test_moving_the_time_earlier_does_not_extend_the_wait(api):
    made = api.create({"time": "in 300 days", "active": False})
    api("PUT", path(made), {"time": "in 5 days"})

    pass_days(api, 35.1)

    assert not there(api, made)


def test_a_change_while_inactive_keeps_the_schedule_for_thirty_more_days(api):
    made = api.create({"time": "in 5 days", "active": False})
    pass_days(api, 30)
    api("PUT", path(made), {"description": "still wanted"})

    pass_days(api, 29.9)
    before = there(api, made)
    pass_days(api, 0.3)

    assert (before, there(api, made)) == (True, False)


def test_recurring_schedules_and_native_schedules_stay(api):
    made = api.create({"repeatAt": "4pm", "active": False}, {"cron": "2027 3 1 * 13 0 0"})
    native = api.native.create(
        schedules=[{"at": "2027-03-01T13:00:00Z"}, {"at": "2027-03-05T13:00:00Z", "active": False}]
    )
    api.stage.run(7_200)

    pass_days(api, 45)

    assert there(api, made)
    assert there(api, made, 1)
    assert len(api.native.get(f"/v1/jobs/{native['id']}", query={"include": "schedules"}).json["schedules"]) == 2


def test_a_collection_that_deletes_ended_jobs_deletes_them_as_a_whole(api):
    made = api.create(SOON)
    keep_ended_jobs(api, 50)
    api.stage.run(900)

    pass_days(api, 40)
    before = there(api, made)
    pass_days(api, 11)

    assert (before, api.get(f"/jobs/{made['_id']}").status) == (True, 404)


def test_a_finished_schedule_is_still_deleted_if_its_collection_stops_deleting_ended_jobs(api):
    made = api.create(SOON)
    for days in (10, 0):
        keep = Retention(ended_job_days=days)
        tenancy.change_collection(
            api.stage.world, TENANT, "sap", lambda old, keep=keep: replace(old, retention=keep), None
        )
        api.stage.run(900)

    pass_days(api, 29.9)
    before = there(api, made)
    pass_days(api, 0.2)

    assert (before, there(api, made)) == (True, False)


@pytest.mark.parametrize("crash", [crash_before, crash_after])
@pytest.mark.parametrize(
    ("call", "off"), [("TransactWriteItems", True), ("TransactWriteItems", False), ("DeleteItem", True)]
)
def test_the_next_check_completes_a_deletion_interrupted_by_a_crash(api, crash, call, off):
    made = api.create({"time": "in 5 days", "active": not off})
    pass_days(api, 5.1)
    api.stage.pass_time(30 * DAY)
    met = []

    def once(passing, act):
        if passing.operation == call and not met:
            met.append(passing)
            return crash(passing, act)
        return act()

    usual, api.stage.taps.fault = api.stage.taps.fault, once
    with pytest.raises(Crash):
        api.stage.run(300)
    api.stage.taps.fault = usual
    api.stage.run(3_000)

    assert not there(api, made)
    assert waiting(api) == []


def off_for_good(api):
    """Returns the job and the schedule as the service reads them, of one that is off."""
    api.create({"time": "in 5 days", "active": False})
    (listed,) = api.native.get("/v1/jobs").json["items"]
    found = lookup.find(api.stage.world, TENANT, listed["id"])
    return found.job, found.schedules[0]


def test_a_row_that_a_concurrent_change_wrote_stays(api):
    """The reader that found the schedule switched on had read it before it went off again."""
    job, schedule = off_for_good(api)

    ended_jobs.check_unused(
        api.stage.world, job, replace(schedule, state=ScheduleState.ACTIVE), Retention(ended_job_days=0)
    )

    assert waiting(api) == [(f"UNUSED#{schedule.id}", "K")]


def test_a_row_deleted_with_its_job_does_not_come_back(api):
    job, schedule = off_for_good(api)
    api.stage.world.table.delete(keys.job(TENANT, job.id), keys.unused(schedule.id))

    ended_jobs.check_unused(api.stage.world, job, schedule, Retention(ended_job_days=0))

    assert waiting(api) == []
