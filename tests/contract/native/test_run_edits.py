"""A run started by hand may carry a payload and headers of its own: a webhook is one call, not one job."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.native.api import Api
from tests.support.endpoint import BUSY, OK

HOOK = {
    "type": "http",
    "url": "https://example.com/hook",
    "payload": {"from": "job"},
    "headers": {"X-A": "1", "X-B": "2"},
}


def run(api: Api, job: dict[str, Any], body: dict[str, Any], **more: Any) -> Any:
    return api("POST", f"/v1/jobs/{job['id']}/run", body, **more)


def sent(api: Api) -> list[tuple[Any, dict[str, str]]]:
    """Returns the payload and headers of each call, in order."""
    calls = api.stage.endpoint.received
    return [(call.call.payload and json.loads(call.call.payload), call.params.get("headers", {})) for call in calls]


def test_each_message_becomes_one_run_with_its_own_payload_and_headers(api: Api) -> None:
    job = api.create(action=HOOK, schedules=[])

    first = run(api, job, {"payload": {"invoice": 1}, "headers": {"x-a": "one"}})
    second = run(api, job, {"payload": {"invoice": 2}, "headers": {"X-B": None}})
    plain = run(api, job, {})
    api.stage.run(5)

    assert [each.status for each in (first, second, plain)] == [202, 202, 202]
    assert sorted(sent(api), key=str) == [
        ({"from": "job"}, {"X-A": "1", "X-B": "2"}),
        ({"invoice": 1}, {"X-B": "2", "x-a": "one"}),
        ({"invoice": 2}, {"X-A": "1"}),
    ]
    assert api.get(f"/v1/jobs/{job['id']}").json["action"]["payload"] == {"from": "job"}


def test_every_attempt_and_rerun_sends_the_runs_own_payload(api: Api) -> None:
    retry = {"type": "fixed", "maxRetries": 2, "delaySeconds": 1}
    job = api.create(action=HOOK | {"retry": retry}, schedules=[])
    api.stage.endpoint.script = [BUSY, OK]

    started = run(api, job, {"payload": {"invoice": 1}}).json["runId"]
    api.stage.run(10)
    assert api("POST", f"/v1/runs/{started}/rerun").status == 202
    api.stage.run(5)

    assert [payload for payload, _ in sent(api)] == [{"invoice": 1}] * 3


def test_a_body_that_is_a_string_is_sent_unchanged(api: Api) -> None:
    job = api.create(action=HOOK, schedules=[])

    assert run(api, job, {"body": "a=1"}).status == 202
    api.stage.run(5)

    (received,) = api.stage.endpoint.received
    assert (received.call.payload, received.call.payload_is_json) == ("a=1", False)


def test_the_payload_of_a_run_replaces_its_schedules(api: Api) -> None:
    job = api.create(action=HOOK, schedules=[{"cron": "0 0 1 1 *", "payload": {"from": "schedule"}}])
    schedule = job["schedules"][0]["id"]

    run(api, job, {"scheduleId": schedule})
    run(api, job, {"scheduleId": schedule, "payload": {"from": "caller"}})
    api.stage.run(5)

    assert sorted(payload["from"] for payload, _ in sent(api)) == ["caller", "schedule"]


def test_a_run_dropped_because_another_is_active_stores_its_payload_nowhere(api: Api) -> None:
    job = api.create(action=HOOK, schedules=[])
    first = run(api, job, {"payload": {"n": 1}, "ifActive": "drop"}).json
    second = run(api, job, {"payload": {"n": 2}, "ifActive": "drop"}).json
    api.stage.run(5)

    assert (first["started"], second["started"]) == (True, False)
    assert second["runId"] == first["runId"]
    assert [payload for payload, _ in sent(api)] == [{"n": 1}]


def test_the_same_key_sends_once_and_refuses_another_payload(api: Api) -> None:
    job = api.create(action=HOOK, schedules=[])
    key = {"Idempotency-Key": "message-1"}

    first = run(api, job, {"payload": {"n": 1}}, headers=key)
    again = run(api, job, {"payload": {"n": 1}}, headers=key)
    other = run(api, job, {"payload": {"n": 2}}, headers=key)
    api.stage.run(5)

    assert first.json["runId"] == again.json["runId"]
    assert (other.status, other.code) == (422, "KEY_REUSED")
    assert [payload for payload, _ in sent(api)] == [{"n": 1}]


@pytest.mark.parametrize(
    ("action", "body", "field"),
    [
        (HOOK, {"payload": {"n": 1}, "body": "text"}, "body"),
        (HOOK, {"payload": "x" * 65_600}, "payload"),
        (HOOK, {"headers": {"Sweephand-Run-Id": "forged"}}, "headers.Sweephand-Run-Id"),
        (HOOK, {"headers": {"Host": "other.example"}}, "headers.Host"),
        (HOOK, {"headers": ["X-A"]}, "headers"),
        (
            HOOK | {"headers": {"Authorization": "Bearer s3cret"}},
            {"headers": {"authorization": "x"}},
            "headers.authorization",
        ),
        (HOOK | {"method": "GET", "payload": {"a": 1}}, {"body": "text"}, "body"),
        ({"type": "event"}, {"headers": {"X-A": "1"}}, "headers"),
    ],
)
def test_an_edit_that_the_action_cannot_send_is_refused_and_starts_nothing(
    api: Api, action: Any, body: Any, field: str
) -> None:
    job = api.create(action=action, schedules=[])

    refused = run(api, job, body)
    api.stage.run(5)

    assert refused.status == 422
    assert field in refused.fields
    assert api.stage.endpoint.received == []
    assert api.get("/v1/runs", query={"jobId": job["id"]}).json["items"] == []
