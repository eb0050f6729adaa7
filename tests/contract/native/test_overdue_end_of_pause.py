"""A change or a delete that comes after the set end of a pause, before the service has carried out that end."""

from __future__ import annotations

import pytest

from tests.contract.native.api import Api
from tests.contract.native.api import api as made
from tests.support.stage import TENANT
from tests.unit.server.flow.common import MINUTE, NOON, minutes

UNTIL = "2027-03-01T12:06:40Z"
LATE = minutes(*range(7, 19))
CHANGES = {
    "another end": ("PATCH", "", {"endTime": "2027-03-01T12:43:50Z"}),
    "another policy": ("PATCH", "", {"policies": {"misfire": {"type": "all", "ratePerMinute": 500}}}),
    "a text": ("PATCH", "", {"description": "new"}),
    "another rule": ("PATCH", "/schedules/{schedule}", {"cron": "*/2 * * * *"}),
    "resume": ("POST", "/resume", {}),
    "another pause": ("POST", "/pause", {"until": "2027-03-01T13:00:00Z"}),
    "deactivate": ("POST", "/deactivate", {}),
    "deactivate a schedule": ("POST", "/schedules/{schedule}/deactivate", {}),
}
DELETES = {
    "the job": ("/v1/jobs/{job}", {}, {}),
    "the job at its revision": ("/v1/jobs/{job}", {}, {"if-match": '"2"'}),
    "its schedule": ("/v1/jobs/{job}/schedules/{schedule}", {}, {}),
    "all jobs of its name": ("/v1/jobs", {"search": "report", "expectedCount": "1"}, {}),
}


def paused(api: Api) -> tuple[str, str]:
    """Makes a job whose pause should have ended twelve minutes ago. Returns its id and its schedule's."""
    policies = {"misfire": {"type": "all", "ratePerMinute": 600}}
    api("POST", "/v1/collections", {"name": "customer"})
    rules = [{"cron": "* * * * *"}]
    job = api.create(name="report", schedules=rules, policies=policies, collection="customer")
    api.stage.run(10)
    api("POST", f"/v1/jobs/{job['id']}/pause", {"until": UNTIL})
    api.stage.run(190)
    api.stage.pass_time(900)
    return job["id"], job["schedules"][0]["id"]


def check_each_has_one_row(api: Api, schedule: str) -> None:
    """Checks that the pause covers the six instants up to its end, and that each later one has one row."""
    rows = api.stage.runs(schedule)
    [paused] = [row for row in rows if row.planned_at == NOON + MINUTE]
    assert (paused.reason, paused.range_until) == ("PAUSED", NOON + 6 * MINUTE)
    for at in LATE:
        own = [row for row in rows if row.range_until is None and row.planned_at == at]
        ranges = [row for row in rows if row.range_until is not None and row.planned_at <= at <= row.range_until]
        assert len(own or ranges) == 1, at


@pytest.mark.parametrize("change", CHANGES)
def test_an_overdue_end_of_a_pause_comes_before_any_change(change: str) -> None:
    verb, path, body = CHANGES[change]
    with made() as api:
        job, schedule = paused(api)

        assert api(verb, f"/v1/jobs/{job}{path.format(schedule=schedule)}", body).status == 200
        api.stage.run(600)

        check_each_has_one_row(api, schedule)


def test_an_overdue_end_of_a_pause_is_carried_out_although_the_change_is_refused() -> None:
    """It was asked for when the pause began. The log names nobody for it."""
    with made() as api:
        job, schedule = paused(api)

        refused = api("POST", f"/v1/jobs/{job}/schedules", {"at": UNTIL})
        assert (refused.status, refused.json["errors"][0]["field"]) == (422, "at")
        assert api.get(f"/v1/jobs/{job}").json["pause"] is None
        api.stage.run(600)

        check_each_has_one_row(api, schedule)
        last = api.get(f"/v1/jobs/{job}/changes").json["items"][0]
        assert (last["operation"], last["actor"]) == ("resume", None)


@pytest.mark.parametrize("delete", DELETES)
def test_an_overdue_end_of_a_pause_comes_before_a_delete(delete: str) -> None:
    """Later instants that had not begun have a row that says so."""
    path, query, headers = DELETES[delete]
    with made() as api:
        job, schedule = paused(api)

        place = path.format(job=job, schedule=schedule)
        assert api("DELETE", place, query=query, headers=headers).status in {200, 204}
        api.stage.run(600)

        check_each_has_one_row(api, schedule)
        late = [row for row in api.stage.runs(schedule) if row.planned_at in LATE]
        assert {row.reason for row in late} == {"OWNER_GONE"}


@pytest.mark.parametrize(("place", "caller"), [("/v1/collections/customer", TENANT), ("/v1/tenants/acme", "provider")])
def test_what_was_due_after_an_overdue_end_of_a_pause_is_skipped_once_it_is_disabled(place: str, caller: str) -> None:
    with made() as api:
        _, schedule = paused(api)

        assert api("POST", f"{place}/disable", caller=caller).status == 200
        api.stage.run(400)
        assert api("POST", f"{place}/enable", caller=caller).status == 200
        api.stage.run(400)

        check_each_has_one_row(api, schedule)
        [held] = [row for row in api.stage.runs(schedule) if row.reason == "DISABLED" and row.range_until is not None]
        assert held.planned_at == LATE[0]
