"""How many calls to AWS the usual requests make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import pytest

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
