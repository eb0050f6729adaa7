"""An answer reads a limited number of runs, however many there are since the last audit, and says so."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.server.store.dynamo import keys
from sweephand.server.store.jobs import jobs
from sweephand.server.store.views import totals
from tests.contract.native.api import JOB, Api
from tests.support.stage import TENANT

MOST = 20


@pytest.fixture
def job(api: Api, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A job that has run each second for 90 seconds; an answer counts 20 of these runs."""
    monkeypatch.setattr(totals, "MOST_COUNTED", MOST)
    made: dict[str, Any] = api.create(JOB, schedules=[{"every": "PT1S"}])
    api.stage.run(90)
    return made


def rows_read(api: Api, *, after: int = 0) -> int:
    """Returns how many rows the queries of ledgers may read at most."""
    ledgers = [
        each for each in api.stage.taps.passed[after:] if "#SCH#" in str(each.request) and "Limit" in each.request
    ]
    return sum(each.request["Limit"] for each in ledgers)


@pytest.mark.parametrize("part", ["", "/schedules", "?include=schedules"])
def test_an_answer_reads_a_limited_number_of_runs(api: Api, job: dict[str, Any], part: str) -> None:
    path, _, query = f"/v1/jobs/{job['id']}{part}".partition("?")
    api.stage.taps.passed.clear()

    answer = api.get(path, query=query).json

    assert 0 < rows_read(api) <= MOST
    shown = answer["totals"] if "totals" in answer else answer["items"][0]["totals"]
    assert shown["exact"] is False
    assert shown["succeeded"] + shown["open"] == shown["planned"] > 4 * MOST


def test_estimated_totals_are_those_that_an_audit_settles(api: Api, job: dict[str, Any]) -> None:
    path = f"/v1/jobs/{job['id']}"
    before = api.get(path).json["totals"]
    api("POST", f"{path}/deactivate")
    api.stage.run(900)

    api.stage.audit()

    after = api.get(path).json["totals"]
    assert after["exact"]
    assert before["succeeded"] <= after["succeeded"] <= before["succeeded"] + 10, "those under way when it was read"


def test_a_run_that_is_open_among_the_newest_counts_as_open(api: Api, job: dict[str, Any]) -> None:
    table, stage = api.stage.world.table, api.stage
    (schedule,) = jobs.read_schedules(table, TENANT, job["id"])
    (known,) = totals.ledgers_of(table, [schedule], stage.clock.now())
    assert known.last is not None

    stage.edit_item(keys.runs(TENANT, schedule.id), keys.run(known.last.uuid), state={"S": "TRIGGERED"})

    (now,) = totals.ledgers_of(table, [schedule], stage.clock.now())
    assert (now.totals.open, now.last and now.last.uuid) == (known.totals.open + 1, known.last.uuid)
