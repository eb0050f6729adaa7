"""How answers describe the time ahead between the sweeps, and a body that a gateway has spoiled."""

from __future__ import annotations

from tests.contract.native.api import Api


def test_an_occurrence_sent_by_the_api_is_not_shown_as_ahead_or_counted_as_left(api: Api) -> None:
    made = api.create(schedules=[{"every": "PT2S", "count": 2}])
    first, second = made["schedules"][0]["nextRuns"]

    api.stage.clock.advance(3)
    read = api.get(f"/v1/jobs/{made['id']}", query={"include": "schedules"}).json

    assert first < second
    assert read["nextRunAt"] == second
    assert read["schedules"][0]["nextRuns"] == [second]


def test_a_body_that_a_gateway_cannot_decode_is_refused(api: Api) -> None:
    reply = api("POST", "/v1/jobs", raw='{"name": "\ufffd"}')

    assert (reply.status, reply.code) == (400, "INVALID_JSON")
    assert [error["position"] for error in reply.json["errors"]] == [10]
