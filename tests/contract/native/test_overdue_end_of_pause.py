"""A change that comes after the set end of a pause, before the service has carried out that end."""

from __future__ import annotations

import pytest

from tests.contract.native.api import api as made
from tests.unit.flow.common import MINUTE, NOON, minutes

UNTIL = "2027-03-01T12:06:40Z"
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


@pytest.mark.parametrize("change", CHANGES)
def test_an_overdue_end_of_a_pause_comes_before_any_change(change: str) -> None:
    """The pause covers the six instants up to its end; each later one has one row."""
    verb, path, body = CHANGES[change]
    with made() as api:
        policies = {"misfire": {"type": "all", "ratePerMinute": 600}}
        job = api.create(schedules=[{"cron": "* * * * *"}], policies=policies)
        schedule = job["schedules"][0]["id"]
        api.stage.run(10)
        api("POST", f"/v1/jobs/{job['id']}/pause", {"until": UNTIL})
        api.stage.run(190)
        api.stage.pass_time(900)

        assert api(verb, f"/v1/jobs/{job['id']}{path.format(schedule=schedule)}", body).status == 200
        late = minutes(*range(7, 19))
        api.stage.run(600)

        rows = api.stage.runs(schedule)
        [paused] = [row for row in rows if row.planned_at == NOON + MINUTE]
        assert (paused.reason, paused.range_until) == ("PAUSED", NOON + 6 * MINUTE)
        for at in late:
            assert sum(row.planned_at <= at <= (row.range_until or row.planned_at) for row in rows) == 1, at
