"""Reports of how a run ended: by the worker that claimed the attempt, or by the target of a run that has a result."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.server.store.runs import ledger
from tests.contract.calls import Reply
from tests.contract.native.api import JOB, Api
from tests.contract.native.test_runs import report, reporting
from tests.contract.native.test_workers import REPORT, Hand, create, due, register
from tests.support.endpoint import ACCEPTED, BUSY, OK
from tests.support.stage import TENANT

RETRY = {"type": "fixed", "maxRetries": 3, "delaySeconds": 60}
OUTCOMES = ["success", "failure", "bad_payload", "discarded", "unknown_task"]
VERBS = ["settle", "heartbeat", "nack", "result"]


@pytest.fixture
def hand(api: Api) -> Hand:
    return Hand(api, register(api))


def called(api: Api, *answers: Any, **policies: Any) -> str:
    """Makes a job that calls its target, starts it by hand and returns the id of its run."""
    api.stage.endpoint.script = list(answers)
    action = {**JOB["action"], "retry": RETRY, "outcome": {"on202": "wait", "callbackTimeoutSeconds": 30}}
    job = api.create(action=action, policies=policies, schedules=[])
    run: str = api("POST", f"/v1/jobs/{job['id']}/run").json["runId"]
    return run


def sent(
    api: Api, verb: str, run: str, *, owner: str = "stranger", attempt: int = 1, outcome: str = "success"
) -> Reply:
    bodies = {
        "settle": {"owner": owner, "attempt": attempt, "outcome": outcome},
        "heartbeat": {"owner": owner},
        "nack": {"attempt": attempt},
        "result": {"success": outcome == "success"},
    }
    return api("PUT" if verb == "result" else "POST", f"/v1/runs/{run}/{verb}", bodies[verb])


def state(api: Api, run: str) -> tuple[str, int, str | None]:
    shown = api.get(f"/v1/runs/{run}").json
    return shown["state"], shown["attempt"], shown["reportedBy"]


def refused(api: Api, reply: Reply, run: str) -> None:
    """Checks that the refusal names the state of the run."""
    assert reply.status == 409, reply.text
    assert api.get(f"/v1/runs/{run}").json["state"] in reply.json["detail"]


# Calls


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("verb", ["settle", "heartbeat"])
@pytest.mark.parametrize("answer", [OK, BUSY, ACCEPTED], ids=["ended", "to be tried again", "waiting for its result"])
def test_no_worker_reports_for_a_call(api, verb, answer, outcome):
    run = called(api, answer)
    api.stage.run(2)

    with api.unchanged():
        reply = sent(api, verb, run, outcome=outcome)

    refused(api, reply, run)


@pytest.mark.parametrize("verb", ["settle", "heartbeat", "nack"])
def test_nobody_but_its_executor_ends_a_call_in_flight(api, verb):
    replies = []

    def calls_back(_call: object) -> Any:
        with api.unchanged():
            replies.append(sent(api, verb, run))
        return OK

    run = called(api, calls_back)
    api.stage.run(2)

    assert [reply.status for reply in replies] == [409]
    assert "TRIGGERED" in replies[0].json["detail"]
    assert state(api, run) == ("SUCCESS", 1, None)


@pytest.mark.parametrize("outcome", ["success", "failure"])
@pytest.mark.parametrize("verb", ["settle", "nack", "result"])
def test_nothing_is_reported_for_an_attempt_that_failed_by_its_answer(api, verb, outcome):
    run = called(api, BUSY, OK)
    api.stage.run(2)
    assert state(api, run)[:2] == ("RETRY_WAIT", 2)

    with api.unchanged():
        replies = [sent(api, verb, run, attempt=attempt, outcome=outcome) for attempt in (2, 3)]

    for reply in replies:
        refused(api, reply, run)
        assert "attempt 2 of 4" in reply.json["detail"]
    api.stage.run(100)
    assert state(api, run) == ("SUCCESS", 2, None)


def test_a_result_is_refused_if_the_attempt_fails_while_it_is_written(api):
    run = called(api, ACCEPTED)
    api.stage.run(2)
    assert state(api, run)[0] == "ACK_RECVD"

    def fails_meanwhile(passing, act):
        if passing.operation in {"UpdateItem", "TransactWriteItems"} and "result_digest" in str(passing.request):
            api.stage.taps.fault = None
            row = ledger.read(api.stage.world.table, TENANT, *run.split("_"))
            pk, sk = ledger.key_of(row)
            api.stage.edit_item(pk, sk, state={"S": "RETRY_WAIT"}, reason={"S": "HTTP_STATUS"}, attempt={"N": "2"})
        return act()

    api.stage.taps.fault = fails_meanwhile

    refused(api, sent(api, "result", run), run)
    assert state(api, run) == ("RETRY_WAIT", 2, None)


def test_a_late_result_ends_a_run_that_would_repeat_an_unanswered_attempt(api):
    run = called(api, ACCEPTED, onNoResult="retry")
    api.stage.run(35)
    assert state(api, run)[:2] == ("RETRY_WAIT", 2)

    reply = sent(api, "result", run)

    assert (reply.status, reply.json["state"], reply.json["attempt"]) == (200, "SUCCESS", 1)
    assert [each["attempt"] for each in api.get(f"/v1/runs/{run}").json["attempts"]] == [1]
    api.stage.run(200)
    assert len(api.stage.endpoint.received) == 1


def test_a_run_names_who_reported_its_result(api):
    by_target, token = reporting(api)
    by_client = called(api, ACCEPTED)
    api.stage.run(2)

    report(api, by_target, token)
    sent(api, "result", by_client)

    assert state(api, by_target)[2] == "acme.target"
    assert state(api, by_client)[2] not in {None, "acme.target"}


# Workers


def claimed(api: Api, hand: Hand, **more: Any) -> tuple[str, Any]:
    """Lets a worker claim a run. Returns the run's id, and the message."""
    create(api, REPORT | {"retry": RETRY}, **more)
    due(api)
    [message] = hand.receive()
    return hand.claim(message, leaseSeconds=10).json["task"]["runId"], message


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize(("owner", "attempt"), [("stranger", 1), ("stranger", 7), ("", 2), ("", 7)])
def test_a_worker_reports_only_the_attempt_that_it_has_claimed(api, hand, owner, attempt, outcome):
    run, message = claimed(api, hand)
    mine = f"hand/{message.receipt}"

    with api.unchanged():
        reply = sent(api, "settle", run, owner=owner or mine, attempt=attempt, outcome=outcome)

    refused(api, reply, run)
    assert "attempt 1 of 4, which is held until" in reply.json["detail"]
    assert sent(api, "settle", run, owner=mine, outcome="success").status == 200
    assert state(api, run) == ("SUCCESS", 1, mine)


@pytest.mark.parametrize("verb", ["heartbeat", "nack", "result"])
def test_a_strangers_other_verbs_change_nothing_of_a_claimed_run(api, hand, verb):
    run, _ = claimed(api, hand)

    with api.unchanged():
        reply = sent(api, verb, run)

    refused(api, reply, run)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_run_that_no_worker_has_claimed_is_reported_by_nobody(api, hand, verb, outcome):
    job = create(api, schedules=[])["id"]
    run = api("POST", f"/v1/jobs/{job}/run").json["runId"]
    [message] = hand.receive()

    with api.unchanged():
        reply = sent(api, verb, run, owner=f"hand/{message.receipt}", outcome=outcome)

    refused(api, reply, run)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_attempt_that_is_over_is_reported_by_nobody(api, hand, outcome):
    run, message = claimed(api, hand)
    mine = f"hand/{message.receipt}"
    assert sent(api, "settle", run, owner=mine, outcome="failure").status == 200
    waits = sent(api, "settle", run, owner=mine, outcome="success")
    refused(api, waits, run)
    hand.delete(message)
    api.stage.run(61)
    [second] = hand.receive()
    assert hand.claim(second).json["task"]["attempt"] == 2

    with api.unchanged():
        older = sent(api, "settle", run, owner=mine, attempt=1, outcome=outcome)
        newer = sent(api, "settle", run, owner=mine, attempt=2, outcome=outcome)
        crossed = sent(api, "settle", run, owner=f"hand/{second.receipt}", attempt=1, outcome=outcome)

    for reply in (older, newer, crossed):
        refused(api, reply, run)


def test_of_two_workers_that_had_the_attempt_both_may_report_and_a_third_may_not(api, hand):
    run, first = claimed(api, hand)
    api.stage.run(61)
    [second] = hand.receive()
    assert hand.claim(second).json["verdict"] == "run"

    with api.unchanged():
        refused(api, sent(api, "settle", run), run)
    assert sent(api, "settle", run, owner=f"hand/{first.receipt}").json["state"] == "SUCCESS"
    assert sent(api, "settle", run, owner=f"hand/{second.receipt}").status == 200
    with api.unchanged():
        refused(api, sent(api, "settle", run), run)
        refused(api, sent(api, "settle", run, outcome="failure"), run)


def test_a_worker_still_settles_a_run_whose_job_has_become_a_call(api, hand):
    run, message = claimed(api, hand)
    job = api.get(f"/v1/runs/{run}").json["jobId"]
    assert api("PUT", f"/v1/jobs/{job}", {"name": "x", "action": JOB["action"], "schedules": []}).status == 200

    assert hand.report({"runId": run, "attempt": 1}, message).json["state"] == "SUCCESS"
