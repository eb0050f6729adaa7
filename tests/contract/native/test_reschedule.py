"""A report that says when its job runs again: one-time jobs that follow each other, and timeouts that are set anew."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.instants import text
from tests.contract.native.test_reports import WAITS, report, waiting
from tests.support.endpoint import ACCEPTED, OK
from tests.support.taps import Crash, answer_lost, crash_after, crash_before

AGAIN = {"success": True, "reschedule": {"afterSeconds": 300}}


def runs_of(api, job) -> list[Any]:
    """Returns the runs of a job, the latest planned first."""
    return api.get("/v1/runs", query={"jobId": job["id"]}).json["items"]


def calls(api) -> int:
    return len(api.stage.endpoint.received)


@pytest.mark.parametrize("after_s", [1, 60, 300, 4_000])
def test_a_report_can_name_the_second_of_the_next_run(api, after_s):
    job, run = waiting(api)
    asked_at = api.stage.clock.now()

    reply = report(api, run, {"success": True, "reschedule": {"afterSeconds": after_s}})
    waits = runs_of(api, job)[0]
    api.stage.run(after_s - 1)
    before = calls(api)
    api.stage.run(6)

    assert (reply.status, reply.json["state"]) == (200, "SUCCESS")
    assert (waits["state"], waits["kind"], waits["parentRunId"]) == ("QUEUED", "manual", run)
    assert (before, calls(api)) == (1, 2)
    due = asked_at + timedelta(seconds=after_s)
    begun = api.stage.endpoint.received[1].at
    assert timedelta(0) <= begun - due < timedelta(seconds=5)


def test_a_chain_continues_as_long_as_its_target_requests_it(api):
    job, run = waiting(api)

    for _ in range(3):
        assert report(api, run, AGAIN).status == 200
        api.stage.run(310)
        run = runs_of(api, job)[0]["id"]
    report(api, run, {"success": False, "message": "enough"})
    api.stage.run(4_000)

    assert [each["state"] for each in runs_of(api, job)] == ["ERROR", "SUCCESS", "SUCCESS", "SUCCESS"]
    assert calls(api) == 4


def test_a_report_can_give_an_instant_and_a_payload_for_the_next_run(api):
    job, run = waiting(api)
    at = text(api.stage.clock.now() + timedelta(hours=2))

    report(api, run, {"success": True, "reschedule": {"at": at, "payload": {"page": 2}}})
    planned = runs_of(api, job)[0]["plannedAt"]
    api.stage.run(7_210)

    assert planned == at.replace("Z", ".000Z")
    assert json.loads(api.stage.endpoint.received[1].call.payload) == {"page": 2}


@pytest.mark.parametrize("ended_s", [0, 5, 400])
def test_a_repeated_report_starts_no_further_run(api, ended_s):
    job, run = waiting(api)

    first = report(api, run, AGAIN)
    api.stage.run(ended_s)
    again = report(api, run, AGAIN)
    api.stage.run(1_000)

    assert (first.status, again.status) == (200, 200)
    assert len(runs_of(api, job)) == 2


def test_a_report_with_another_time_is_a_different_report(api):
    _, run = waiting(api)
    report(api, run, AGAIN)

    other = report(api, run, {"success": True, "reschedule": {"afterSeconds": 301}})
    without = report(api, run, {"success": True})

    assert [(each.status, each.code) for each in (other, without)] == [(409, "RESULT_CONFLICT")] * 2


@pytest.mark.parametrize("operation", ["TransactWriteItems", "SendMessageBatch"])
@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost], ids=lambda each: each.__name__)
def test_the_end_and_the_next_run_are_written_together_or_not_at_all(api, fault, operation):
    """Whatever becomes of the write or of the messages, a report that is sent again makes it whole."""
    job, run = waiting(api)
    api.stage.taps.fault = lambda passing, act: fault(passing, act) if passing.operation == operation else act()
    with suppress(Crash, Exception):
        report(api, run, {"success": True, "reschedule": {"afterSeconds": 60}})
    api.stage.taps.fault = None
    states = [each["state"] for each in runs_of(api, job)]

    assert states in (["ACK_RECVD"], ["QUEUED", "SUCCESS"])
    report(api, run, {"success": True, "reschedule": {"afterSeconds": 60}})
    api.stage.run(200)
    assert len(runs_of(api, job)) == 2
    assert calls(api) == 2


def test_a_failed_run_can_request_a_next_run_too(api):
    job, run = waiting(api)

    report(api, run, {"success": False, "message": "not yet", "reschedule": {"afterSeconds": 60}})
    api.stage.endpoint.answer = OK
    api.stage.run(70)

    assert {each["state"] for each in runs_of(api, job)} <= {"ERROR", "ACK_RECVD", "SUCCESS"}
    assert len(runs_of(api, job)) == 2


def test_the_next_run_is_removed_by_a_cancel_or_with_its_job(api):
    kept, first = waiting(api)
    gone, second = waiting(api)
    report(api, first, AGAIN)
    report(api, second, AGAIN)

    assert api("POST", f"/v1/runs/{runs_of(api, kept)[0]['id']}/cancel").status == 200
    assert api("DELETE", f"/v1/jobs/{gone['id']}").status == 204
    api.stage.run(1_000)

    assert calls(api) == 2
    assert runs_of(api, kept)[0]["state"] == "CANCELLED"


@pytest.mark.parametrize(
    ("reschedule", "field"),
    [
        ({}, "reschedule"),
        ({"at": "2099-01-01T00:00:00Z", "afterSeconds": 5}, "reschedule"),
        ({"afterSeconds": 0}, "reschedule.afterSeconds"),
        ({"afterSeconds": 548 * 86_400 + 1}, "reschedule.afterSeconds"),
        ({"at": "2020-01-01T00:00:00Z"}, "reschedule.at"),
        ({"at": "2199-01-01T00:00:00Z"}, "reschedule.at"),
        ({"at": "soon"}, "reschedule.at"),
        ({"afterSeconds": 5, "every": "PT1M"}, "reschedule.every"),
        ({"afterSeconds": 5, "payload": "x" * 70_000}, "reschedule.payload"),
        ({"afterSeconds": 5, "headers": {"X": "\n"}}, "reschedule.headers.X"),
        ("tomorrow", "reschedule"),
    ],
)
def test_an_invalid_time_or_member_is_refused_and_the_run_stays_open(api, reschedule, field):
    job, run = waiting(api)

    with api.unchanged():
        reply = report(api, run, {"success": True, "reschedule": reschedule})

    assert (reply.status, reply.fields) == (422, [field])
    assert [each["state"] for each in runs_of(api, job)] == ["ACK_RECVD"]


def test_the_next_run_of_a_scheduled_job_belongs_to_its_schedule(api):
    api.stage.endpoint.answer = ACCEPTED
    job = api.create(action=WAITS, schedules=[{"at": text(api.stage.clock.now() + timedelta(seconds=60))}])
    api.stage.run(70)
    (first,) = runs_of(api, job)

    report(api, first["id"], AGAIN)
    api.stage.run(310)

    assert [each["scheduleId"] for each in runs_of(api, job)] == [first["scheduleId"]] * 2
    assert calls(api) == 2


def test_a_report_may_state_that_there_is_no_next_run(api):
    job, run = waiting(api)

    assert report(api, run, {"success": True, "reschedule": None}).status == 200
    assert len(runs_of(api, job)) == 1
