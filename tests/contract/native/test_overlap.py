"""The policy `overlap`: accepted, shown, sent back, and what runs then look like."""

from __future__ import annotations

import pytest

from tests.contract.native import shapes
from tests.contract.native.api import JOB
from tests.support.endpoint import ACCEPTED

POLICIES = ("allow", "skip", "queue_one", "replace")
EACH_MINUTE = {"name": "each", "cron": "* * * * *"}


def body(job=None, schedule=None):
    action = JOB["action"] | {"outcome": {"on202": "wait"}}
    policies = {} if job is None else {"policies": {"overlap": job}}
    own = {} if schedule is None else {"policies": {"overlap": schedule}}
    return {"action": action, "schedules": [EACH_MINUTE | own]} | policies


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_shows_its_overlap_policy_and_can_be_sent_back(api, policy):
    made = api.create(body(policy))
    place = f"/v1/jobs/{made['id']}"

    read = api.get(place, query="include=schedules")
    again = api("PUT", place, read.json)

    assert read.json["policies"]["overlap"] == policy
    assert (again.status, again.revision) == (200, 1)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_schedule_shows_its_own_overlap_policy_and_can_be_sent_back(api, policy):
    made = api.create(body("skip", policy))
    place = f"/v1/jobs/{made['id']}/schedules/{made['schedules'][0]['id']}"

    read = api.get(place)
    again = api("PUT", place, read.json)

    assert read.json["policies"] == {"overlap": policy}
    assert (again.status, again.revision) == (200, 1)


def test_a_patch_changes_the_policy_and_null_resets_it(api):
    made = api.create(body("skip"))
    place = f"/v1/jobs/{made['id']}"

    changed = api("PATCH", place, {"policies": {"overlap": "replace"}})
    back = api("PATCH", place, {"policies": {"overlap": None}})

    assert (changed.revision, changed.json["policies"]["overlap"]) == (2, "replace")
    assert (back.revision, back.json["policies"]["overlap"]) == (3, "allow")


@pytest.mark.parametrize("wrong", ["queue", "SKIP", "", 1, True, ["skip"], {}])
def test_an_unknown_policy_is_refused_by_its_path_and_changes_nothing(api, wrong):
    made = api.create(body())

    of_job = api("PATCH", f"/v1/jobs/{made['id']}", {"policies": {"overlap": wrong}})
    of_schedule = api("POST", f"/v1/jobs/{made['id']}/schedules", {"every": "PT1H", "policies": {"overlap": wrong}})

    for refused in (of_job, of_schedule):
        assert refused.status == 422
        assert refused.json["errors"][0]["field"] == "policies.overlap"
    assert api.get(f"/v1/jobs/{made['id']}").json["revision"] == 1


def test_the_ledger_names_the_run_that_was_active(api):
    api.stage.endpoint.answer = ACCEPTED
    made = api.create(body("skip"))

    api.stage.run(125)

    second, first = api.get("/v1/runs", query=f"jobId={made['id']}").json["items"]
    for run in (first, second):
        shapes.check_run(run)
    assert (first["status"], first["state"]) == ("RUNNING", "ACK_RECVD")
    assert (second["status"], second["state"], second["reason"]) == ("COMPLETED", "SKIPPED", "OVERLAP")
    assert second["message"] == f"the run {first['id']} was active"
    assert api.get(f"/v1/jobs/{made['id']}").json["totals"]["skipped"] == 1


def test_a_queued_run_can_be_read_and_cancelled(api):
    api.stage.endpoint.answer = ACCEPTED
    made = api.create(body("queue_one"))
    api.stage.run(125)

    queued, _ = api.get("/v1/runs", query=f"jobId={made['id']}").json["items"]
    cancelled = api("POST", f"/v1/runs/{queued['id']}/cancel")

    assert (queued["status"], queued["state"], queued["startedAt"]) == ("RUNNING", "QUEUED", None)
    assert (cancelled.json["state"], cancelled.json["reason"]) == ("CANCELLED", "BY_USER")


def test_a_replaced_run_no_longer_accepts_a_result(api):
    api.stage.endpoint.answer = ACCEPTED
    made = api.create(body("replace"))
    api.stage.run(125)

    new, old = api.get("/v1/runs", query=f"jobId={made['id']}").json["items"]
    late = api("PUT", f"/v1/runs/{old['id']}/result", {"success": True})

    assert (old["state"], old["reason"], new["state"]) == ("CANCELLED", "REPLACED", "ACK_RECVD")
    assert old["message"] == f"replaced by the run {new['id']}"
    assert (late.status, late.json["code"]) == (409, "RESULT_CONFLICT")
