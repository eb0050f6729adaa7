"""The load ahead: runs of each quarter of an hour, by the rules, from the memory of the function."""

from __future__ import annotations

from typing import Any

import pytest

from bench.meter import billed
from sweephand.server.flow.jobs import load_ahead
from sweephand.server.flow.jobs.load_ahead import Loads
from tests.contract.native.api import JOB, OTHER, Api

HOURLY = {"cron": "0 * * * *"}


def create(api: Api, *schedules: dict[str, Any], **members: Any) -> dict[str, Any]:
    return api.create({"action": JOB["action"], "schedules": list(schedules), **members})


def load(api: Api, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = api.get("/v1/load", **more).json
    return found


@pytest.mark.parametrize(
    ("timing", "slots"),
    [
        (HOURLY, [1, 0, 0, 0] * 24),
        ({"cron": "*/5 * * * *"}, [3] * 96),
        ({"cron": "* 13 * * *"}, [0] * 4 + [15] * 4 + [0] * 88),
        ({"every": "PT10S", "align": "clock"}, [90] * 96),
        ({"at": "2027-03-01T12:20:00Z"}, [0, 1] + [0] * 94),
        ({"every": "PT1H", "count": 3}, [0] * 4 + [1, 0, 0, 0] * 3 + [0] * 80),
    ],
    ids=str,
)
def test_the_load_counts_the_planned_runs(api: Api, timing: dict[str, Any], slots: list[int]) -> None:
    create(api, timing)

    found = load(api)

    assert found["slots"] == slots
    assert (found["from"], found["slotSeconds"], found["jobs"]) == ("2027-03-01T12:00:00Z", 900, 1)
    assert (found["jobsLeftOut"], found["ageSeconds"]) == (0, 0)


def test_the_load_is_the_sum_of_all_future_runs(api: Api) -> None:
    for name in ("a", "b", "paused", "off"):
        create(api, HOURLY, {"cron": "30 * * * *"}, name=name)
    there = {each["name"]: each["id"] for each in api.get("/v1/jobs").json["items"]}
    api("POST", f"/v1/jobs/{there['paused']}/pause")
    api("POST", f"/v1/jobs/{there['off']}/deactivate")

    assert load(api)["slots"] == [2, 0, 2, 0] * 24


def test_jobs_of_a_disabled_collection_add_no_load(api: Api) -> None:
    api("POST", "/v1/collections", {"name": "spare"})
    create(api, HOURLY, collection="spare")
    api("POST", "/v1/collections/spare/disable")

    assert sum(load(api)["slots"]) == 0


def test_the_load_is_cached_with_its_age_and_later_only_changes_are_read(api: Api) -> None:
    jobs = [create(api, HOURLY, name=str(n)) for n in range(20)]
    with billed():
        first = load(api)
        create(api, HOURLY, name="new")
        api.stage.clock.advance(899)
        kept = load(api)
        api.stage.clock.advance(1)
        api("DELETE", f"/v1/jobs/{jobs[0]['id']}")
        after = load(api)

    assert kept == first | {"ageSeconds": 899, "readUnits": 0, "askAgainAfterSeconds": 900}
    assert first["readUnits"] > 20, "half a unit for each job and each schedule"
    assert (after["ageSeconds"], after["jobs"], sum(after["slots"])) == (0, 20, 20 * 24)
    assert after["readUnits"] < 8, "the one new job, and the directory"


def test_instants_that_depend_on_more_than_the_rule_are_read_again(api: Api) -> None:
    create(api, {"every": "PT1H", "count": 3})
    before = sum(load(api)["slots"])
    api.stage.run(2 * 3_600 + 1_200)

    assert (before, sum(load(api)["slots"])) == (3, 1)


def test_the_load_of_too_many_jobs_says_how_many_are_left_out(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_ahead, "MOST_JOBS", 2)
    for name in ("a", "b", "c"):
        create(api, HOURLY, name=name)

    found = load(api)

    assert (found["jobs"], found["jobsLeftOut"], sum(found["slots"])) == (2, 1, 48)


def test_a_process_caches_the_loads_of_a_few_tenants(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_ahead, "MOST_KEPT", 1)
    create(api, HOURLY)
    api("POST", "/v1/jobs", {"action": JOB["action"], "schedules": [HOURLY]}, caller=OTHER)

    assert sum(load(api)["slots"]) == sum(load(api, caller=OTHER)["slots"]) == 24
    assert list(api.stage.world.memory.of(Loads)) == [OTHER]


def test_the_load_of_another_tenant_is_not_shown(api: Api) -> None:
    create(api, HOURLY)

    assert (sum(load(api)["slots"]), sum(load(api, caller=OTHER)["slots"])) == (24, 0)


def test_reading_the_load_writes_nothing(api: Api) -> None:
    create(api, HOURLY)

    with api.unchanged():
        load(api)
