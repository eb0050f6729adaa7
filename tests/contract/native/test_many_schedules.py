"""A job of 1,000 schedules: how many calls its changes and answers make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from sweephand.testing.taps import Act, Passing
from tests.contract.calls import Reply
from tests.contract.native.api import JOB, Api
from tests.support.limits import as_dynamodb
from tests.support.taps import refused

MANY = 1_000
HOURLY = [{"name": f"s{n}", "every": "PT1H"} for n in range(MANY)]
TWO_HOURLY = [{**each, "every": "PT2H"} for each in HOURLY]


@pytest.fixture
def place(api: Api) -> str:
    made = api.create(JOB, schedules=HOURLY[:40])
    where = f"/v1/jobs/{made['id']}"
    assert api("PUT", where, {**JOB, "schedules": HOURLY}).status == 200
    return where


@pytest.mark.extended
def test_changes_and_answers_of_a_thousand_schedules_make_a_bounded_number_of_calls(api: Api, place: str) -> None:
    """Above 200 schedules, no ledger is queried: statistics and last runs are read in batches, as all else is."""
    verbs: dict[str, tuple[Callable[[], Reply], int, int]] = {
        # (request, queries, other calls)
        "put": (lambda: api("PUT", place, {**JOB, "schedules": TWO_HOURLY}), 10, 100),
        "deactivate": (lambda: api("POST", f"{place}/deactivate"), 10, 100),
        "activate": (lambda: api("POST", f"{place}/activate"), 10, 100),
        "whole": (lambda: api.get(place, query={"include": "schedules"}), 10, 30),
        "job": (lambda: api.get(place), 10, 20),
        "refused": (lambda: api("PUT", place, {**JOB, "schedules": [*HOURLY, {"every": "PT1H"}]}), 2, 5),
    }

    for verb, (request, queries, others) in verbs.items():
        api.stage.taps.passed.clear()
        reply = request()
        calls = Counter(passing.name for passing in api.stage.taps.passed)
        assert reply.status == (422 if verb == "refused" else 200), reply.text[:500]
        assert calls.pop("dynamodb.Query") <= queries, verb
        assert sum(calls.values()) <= others, (verb, calls)


def parts_are_throttled(passing: Passing, act: Act) -> Any:
    """Refuses each part of a change for a while, but not the change itself."""
    if passing.operation == "TransactWriteItems" and "'Delete'" in repr(passing.request) and "PART#" in repr(passing):
        return refused(passing, act)
    return as_dynamodb(passing, act)


def test_a_job_says_that_schedules_have_yet_to_follow_its_change(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    made = api.create(JOB, schedules=HOURLY[:1])
    where = f"/v1/jobs/{made['id']}"

    api.tolerated.add(503)
    with monkeypatch.context() as throttled:
        throttled.setattr(api.stage.taps, "fault", parts_are_throttled)
        answered = api("PUT", where, {**JOB, "schedules": TWO_HOURLY[:60]})
    between = api.get(where, query="include=schedules").json
    listed = api.get("/v1/jobs").json["items"][0]
    api.stage.run(120)
    after = api.get(where, query="include=schedules").json

    assert (answered.status, made["pendingChange"]) == (503, False)
    assert (between["pendingChange"], listed["pendingChange"], len(between["schedules"])) == (True, True, 1)
    assert (after["pendingChange"], len(after["schedules"])) == (False, 60)


@pytest.mark.extended
def test_a_page_of_schedules_makes_one_query_for_each(api: Api, place: str) -> None:
    api.stage.taps.passed.clear()

    page = api.get(f"{place}/schedules", query="limit=50").json

    assert len(page["items"]) == 50
    assert Counter(passing.name for passing in api.stage.taps.passed)["dynamodb.Query"] <= 55


@pytest.mark.extended
def test_the_occurrences_ahead_of_a_thousand_schedules_read_no_ledger(api: Api, place: str) -> None:
    api.stage.taps.passed.clear()

    page = api.get(f"{place}/occurrences", query="limit=100").json

    assert len(page["items"]) == 100
    assert len(api.stage.taps.passed) <= 20
