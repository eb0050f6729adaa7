"""Acknowledged events (R16): a run waits for its acknowledgement, and is redelivered under the same id without one."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from tests.support.taps import Crash, answer_lost, crash_after, crash_before, refused
from tests.unit.server.flow.common import fixed

ACKNOWLEDGED = {
    "type": "event",
    "outcome": {"onAccepted": "wait", "callbackTimeoutSeconds": 600},
    "retry": fixed(30, retries=2),
}
WAITS = {"onNoResult": "retry"}


@pytest.fixture(autouse=True)
def _for_real(api):
    api.stage.act_for_real()


def begun(api, **policies: Any) -> str:
    """Returns the id of a run whose event is on the bus."""
    job = api.create(action=ACKNOWLEDGED, schedules=[], policies={**WAITS, **policies})
    run: str = api("POST", f"/v1/jobs/{job['id']}/run").json["runId"]
    api.stage.run(5)
    return run


def events(api) -> list[tuple[str, int]]:
    """Returns the id and the attempt of each event that was put on the bus."""
    details = [json.loads(each["Detail"]) for each in api.stage.bus.of_jobs]
    return [(each["id"], each["attempt"]) for each in details]


def nack(api, run: str, attempt: int = 1, **more: Any):
    return api("POST", f"/v1/runs/{run}/nack", {"attempt": attempt}, **more)


def ack(api, run: str, *, success: bool = True):
    return api("PUT", f"/v1/runs/{run}/result", {"success": success})


def state(api, run: str) -> tuple[str, int]:
    shown = api.get(f"/v1/runs/{run}").json
    return shown["state"], shown["attempt"]


def test_an_unacknowledged_event_is_redelivered_under_the_same_id(api):
    run = begun(api)

    api.stage.run(640)
    again = events(api)
    acknowledged = ack(api, run)
    api.stage.run(2_000)

    assert again == [(run, 1), (run, 2)]
    assert (acknowledged.status, state(api, run)) == (200, ("SUCCESS", 2))
    assert events(api) == again


def test_a_nack_redelivers_without_waiting_for_the_deadline(api):
    run = begun(api)

    reply = nack(api, run)
    api.stage.run(40)

    assert reply.status == 200
    assert events(api) == [(run, 1), (run, 2)]
    assert state(api, run) == ("ACK_RECVD", 2)


def test_a_repeated_nack_uses_no_second_attempt(api):
    run = begun(api)

    replies = [nack(api, run), nack(api, run)]
    api.stage.run(5)
    replies.append(nack(api, run))
    api.stage.run(40)
    replies.append(nack(api, run))
    api.stage.run(100)

    assert [each.status for each in replies] == [200] * 4
    assert events(api) == [(run, 1), (run, 2)]


def test_a_nack_of_the_last_attempt_ends_the_run(api):
    run = begun(api)

    for attempt in (1, 2, 3):
        assert nack(api, run, attempt).status == 200
        api.stage.run(40)

    assert [each for _, each in events(api)] == [1, 2, 3]
    assert state(api, run) == ("UNKNOWN", 3)
    assert nack(api, run, 3).status == 409


def test_a_repeated_acknowledgement_is_accepted_and_a_different_one_refused(api):
    run = begun(api)
    first = ack(api, run)

    again, other, late_nack = ack(api, run), ack(api, run, success=False), nack(api, run)
    unknown = ack(api, f"{run[:-1]}{'0' if run[-1] != '0' else '1'}")
    nothing = nack(api, f"{run[:-1]}{'0' if run[-1] != '0' else '1'}")

    assert (first.status, again.status) == (200, 200)
    assert (other.status, late_nack.status, late_nack.code) == (409, 409, "RESULT_CONFLICT")
    assert (unknown.status, nothing.status) == (404, 404)


@pytest.mark.parametrize(
    ("policies", "attempt", "words"),
    [({"onNoResult": "end"}, 1, "set `onNoResult`: `retry`"), ({}, 2, "attempt 2 does not wait for a result")],
)
def test_a_nack_that_would_not_cause_a_redelivery_is_refused(api, policies, attempt, words):
    run = begun(api, **policies)

    reply = nack(api, run, attempt)

    assert (reply.status, words in reply.json["detail"]) == (409, True)
    assert state(api, run) == ("ACK_RECVD", 1)


@pytest.mark.parametrize("body", [{}, {"attempt": 0}, {"attempt": "1"}, {"attempt": 1, "more": 1}])
def test_an_unreadable_nack_is_refused(api, body):
    run = begun(api)

    assert api("POST", f"/v1/runs/{run}/nack", body).status == 422


@pytest.mark.parametrize("operation", ["UpdateItem", "SendMessageBatch"])
@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused], ids=lambda each: each.__name__)
def test_a_nack_redelivers_the_run_once_in_every_history(api, fault, operation):
    run = begun(api)
    api.tolerated.add(503)
    api.stage.taps.fault = lambda passing, act: fault(passing, act) if passing.operation == operation else act()
    with suppress(Crash):
        nack(api, run)
    api.stage.taps.fault = None

    nack(api, run)
    api.stage.run(1_300)

    assert [each for _, each in events(api)][:2] == [1, 2]
    assert [each for _, each in events(api)].count(2) == 1
