"""How many calls to AWS the usual requests make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from sweephand.domain.instants import text
from tests.contract.calls import Reply
from tests.contract.native.api import JOB, Api

Request = Callable[[Api, str], Reply]
CALLS: Mapping[str, tuple[Request, Mapping[str, int]]] = {
    "create a job": (
        lambda api, _: api("POST", "/v1/jobs", JOB),
        {"BatchGetItem": 2, "UpdateItem": 1, "TransactWriteItems": 1},
    ),
    "read a job": (lambda api, place: api.get(place), {"GetItem": 1, "BatchGetItem": 2, "Query": 2}),
    "list jobs": (lambda api, _: api.get("/v1/jobs"), {"BatchGetItem": 3, "Query": 3}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_request_makes_few_calls(api: Api, name: str) -> None:
    request, calls = CALLS[name]
    place = f"/v1/jobs/{api.create(JOB).get('id')}"
    request(api, place)
    api.stage.taps.passed.clear()

    assert request(api, place).status < 400
    assert Counter(passing.operation for passing in api.stage.taps.passed) == calls


@pytest.mark.parametrize("schedules", [1, 8])
def test_a_list_of_past_occurrences_makes_few_bounded_queries_for_each_schedule(api: Api, schedules: int) -> None:
    job = api.create(JOB, schedules=[{"every": "PT1M", "name": f"s{n}"} for n in range(schedules)])
    place, began = f"/v1/jobs/{job['id']}", text(api.stage.clock.now())
    api.stage.run(1_500)
    api.stage.taps.passed.clear()

    items = api.get(f"{place}/occurrences", query={"from": began, "limit": "20"}).json["items"]

    of_runs = [each for each in api.stage.taps.passed if each.operation == "Query" and "#SCH#" in str(each.request)]
    assert [each["state"] for each in items] == ["SUCCESS"] * 20
    assert len(of_runs) <= 3 * schedules
    assert all(each.request["Limit"] <= 22 for each in of_runs)
