"""A target's report of its run may repeat secrets that it received: nobody is shown that, now or later.

Each answer is looked through for the canary (see api.py).
"""

from __future__ import annotations

import base64

import pytest

from sweephand.base.errors import Unavailable
from sweephand.domain.collection import Events
from sweephand.domain.run import State
from sweephand.server.flow.runs.results import NOT_KEPT
from tests.contract.calls import CANARY
from tests.support.endpoint import ACCEPTED, OK
from tests.support.taps import Crash

SECRET = f"{CANARY}-of-a-target"
PAIR = base64.b64encode(f"reports:{SECRET}".encode()).decode()
BEARER = {"type": "bearer", "token": SECRET}
BASIC = {"type": "basic", "username": "reports", "password": SECRET}
ECHO = {"success": False, "message": f"upstream refused Bearer {SECRET}, 3 rows"}
WAITS = {"type": "http", "url": "https://e.org/x", "outcome": {"on202": "wait"}}


def waiting(api, action=WAITS, **members):
    """Makes a run that waits for its report."""
    api.stage.endpoint.answer = ACCEPTED
    job = api.create(action=action, schedules=[], **members)
    run = api("POST", f"/v1/jobs/{job['id']}/run").json["runId"]
    api.stage.run(5)
    return job, run


def told_of(api, job, run):
    """Returns everything that shows a run."""
    return "\n".join(
        [
            api.get(f"/v1/runs/{run}").text,
            api.get("/v1/runs", query={"jobId": job["id"]}).text,
            api.get("/v1/runs:export", query={"jobId": job["id"]}).text,
            api.get("/v1/errors").text,
            str(api.stage.bus.told),
            str(api.stage.journal.lines),
        ]
    )


def report(api, run, result, **more):
    return api("PUT", f"/v1/runs/{run}/result", result, **more)


@pytest.mark.parametrize("authentication", [BEARER, BASIC])
def test_a_secret_in_a_report_is_masked_before_anybody_sees_it(api, authentication):
    api.stage.tell(Events.ALL)
    job, run = waiting(api, WAITS | {"authentication": authentication})
    result = {"success": False, "message": f"{SECRET} {PAIR} 3 rows"}

    reply = report(api, run, result)
    before = told_of(api, job, run)
    api.stage.run(5)
    after = told_of(api, job, run)

    assert (reply.status, reply.json["message"]) == (200, None)
    assert CANARY not in before + after
    shown = api.get(f"/v1/runs/{run}").json["message"]
    assert shown == ("*** *** 3 rows" if authentication is BASIC else "*** cmVwb3J0czp***Q= 3 rows")
    assert CANARY not in "".join(api.picture())
    assert api.get("/v1/errors").json["items"][0]["message"].startswith("***")


def test_a_repeated_report_is_recognised_before_and_after_it_is_checked_for_secrets(api):
    _, run = waiting(api, WAITS | {"authentication": BEARER})

    first = report(api, run, ECHO)
    again = report(api, run, ECHO)
    api.stage.run(5)
    last = report(api, run, ECHO)

    assert (first.status, again.status, last.status) == (200, 200, 200)
    assert last.json["message"] == "upstream refused Bearer ***, 3 rows"
    assert last.json["notes"] == []


def test_the_note_of_a_later_report_is_empty_if_it_might_repeat_a_secret(api):
    job, run = waiting(api, WAITS | {"authentication": BEARER})
    report(api, run, {"success": True})

    assert report(api, run, ECHO).code == "RESULT_CONFLICT"

    assert CANARY not in told_of(api, job, run)
    assert api.get(f"/v1/runs/{run}").json["notes"] == [f"result after the end: failure: {NOT_KEPT}"]


def test_a_runs_own_token_is_masked_in_its_report_and_in_the_note_of_a_later_one(api):
    job, run = waiting(api, policies={"callbackToken": True})
    token = api.stage.endpoint.received[-1].call.callback_token
    headers = {"sweephand-callback-token": token}

    reply = report(api, run, {"success": True, "message": f"with {token}"}, caller=None, headers=headers)
    report(api, run, {"success": False, "message": f"with {token}"}, caller=None, headers=headers)

    assert (reply.status, reply.json["message"]) == (200, None), "a run's token gives back no texts"
    assert api.get(f"/v1/runs/{run}").json["message"] == "with ***"
    assert token not in told_of(api, job, run)
    assert api.get(f"/v1/runs/{run}").json["notes"] == ["result after the end: failure: with ***"]


def test_a_report_of_a_job_without_secrets_is_shown_at_once(api):
    _, run = waiting(api)

    assert report(api, run, ECHO | {"message": "3 rows"}).json["message"] == "3 rows"


def test_the_key_of_a_signed_call_is_masked(api):
    key = api("POST", "/v1/collections/default/signing-keys").json["secret"]
    api.stage.pass_time(11)
    _, run = waiting(api)

    assert report(api, run, {"success": True, "message": f"by {key}"}).json["message"] is None
    api.stage.run(5)

    assert api.get(f"/v1/runs/{run}").json["message"] == "by ***"


def test_a_report_whose_job_was_deleted_meanwhile_is_not_kept(api):
    job, run = waiting(api, WAITS | {"authentication": BEARER})
    report(api, run, ECHO)

    assert api("DELETE", f"/v1/jobs/{job['id']}").status == 204
    api.stage.run(600)

    assert CANARY not in "".join(api.picture())


def test_a_schedules_hook_reports_like_its_jobs(api):
    api.stage.endpoint.script = [OK, ACCEPTED]
    hook = WAITS | {"authentication": BEARER}
    plain = {"type": "http", "url": "https://e.org/x"}
    job = api.create(action=plain, schedules=[{"at": "2027-03-01T12:00:10Z", "hooks": {"onSuccess": hook}}])
    api.stage.run(30)
    runs = api.get("/v1/runs", query={"jobId": job["id"]}).json["items"]
    (run,) = [each["id"] for each in runs if each["state"] == State.ACK_RECVD]

    assert report(api, run, ECHO).json["message"] is None
    api.stage.run(5)

    assert api.get(f"/v1/runs/{run}").json["message"] == "upstream refused Bearer ***, 3 rows"
    assert CANARY not in told_of(api, job, run)


@pytest.mark.parametrize("trouble", [Unavailable("kms"), Crash()])
def test_an_interrupted_check_of_a_report_is_repeated(api, monkeypatch, trouble):
    _, run = waiting(api, WAITS | {"authentication": BEARER})
    report(api, run, ECHO)
    world = api.stage.world
    kept = type(world.secrets).decrypt
    asked = []

    def once(*given):
        asked.append(given)
        if len(asked) == 1:
            raise trouble
        return kept(*given)

    monkeypatch.setattr(type(world.secrets), "decrypt", once)
    if isinstance(trouble, Crash):
        with pytest.raises(Crash):
            api.stage.run(5)
    api.stage.run(600)

    assert len(asked) > 1
    assert api.get(f"/v1/runs/{run}").json["message"] == "upstream refused Bearer ***, 3 rows"


def test_a_job_whose_target_gets_no_callback_address_shows_that_its_runs_do_not_wait(api):
    action = {"type": "event", "payload": {"a": 1}}
    hooks = {"onSuccess": {"type": "event"}}

    made = api.create(action=action, hooks=hooks, schedules=[], policies={"callbackToken": True})
    body = api.get(f"/v1/jobs/{made['id']}").json

    assert body["action"]["outcome"]["onAccepted"] == "success"
    assert body["hooks"]["onSuccess"]["outcome"]["onAccepted"] == "success"
    said = action | {"outcome": {"onAccepted": "wait"}}
    assert api.create(action=said, schedules=[])["action"]["outcome"]["onAccepted"] == "wait"
