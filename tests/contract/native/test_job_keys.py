"""Chains in a job set: an action names another job of the same list by its key."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from tests.contract.native.api import Api
from tests.contract.native.test_job_sets import SET, apply, job, outline, read_job
from tests.support.taps import Crash


def starts(key: str, other: str, **members: Any) -> dict[str, Any]:
    """Returns the entry of a job that starts another one of the list."""
    return {"key": key, "action": {"type": "job", "jobKey": other}, **members}


def started_by(api: Api, key: str, path: str = "action") -> str:
    """Returns the key of the job that an action of a job starts."""
    action: Any = read_job(api, key)
    for name in path.split("."):
        action = action[name]
    return api.get(f"/v1/jobs/{action['jobId']}").json["key"]


def whole(api: Api, *pairs: tuple[str, str]) -> bool:
    return all(started_by(api, key) == other for key, other in pairs)


def test_a_job_refers_to_another_of_its_list_by_key_in_any_order(api):
    reply = apply(api, starts("a", "b"), starts("b", "c"), job("c"))

    assert reply.status == 200
    assert [each["key"] for each in reply.json["created"]] == ["c", "b", "a"]
    assert whole(api, ("a", "b"), ("b", "c"))
    with api.unchanged():
        assert outline(apply(api, starts("a", "b"), starts("b", "c"), job("c"))) == {"unchanged": 3}


def test_error_actions_and_hooks_refer_to_jobs_by_key_too(api):
    by_key = {"type": "job", "jobKey": "alarm"}

    apply(api, job("a", errorAction=by_key, hooks={"onSuccess": by_key}), job("alarm"))

    assert started_by(api, "a", "errorAction") == started_by(api, "a", "hooks.onSuccess") == "alarm"


def test_a_chain_of_jobs_named_by_key_runs(api):
    apply(api, starts("a", "b"), job("b"))

    api.stage.act_for_real()
    api("POST", f"/v1/jobs/{read_job(api, 'a')['id']}/run")
    api.stage.run(60)

    (run,) = api.get("/v1/runs", query={"jobId": read_job(api, "b")["id"]}).json["items"]
    assert run["kind"] == "manual"


def test_jobs_may_refer_to_each_other_and_to_themselves(api):
    """A circle goes round once when it runs, as with ids."""
    entries = (starts("a", "b"), starts("b", "a"), starts("self", "self"))

    assert apply(api, *entries).status == 200

    assert whole(api, ("a", "b"), ("b", "a"), ("self", "self"))
    with api.unchanged():
        assert outline(apply(api, *entries)) == {"unchanged": 3}


def test_replacing_a_key_by_another_or_by_the_id_is_a_change(api):
    apply(api, starts("a", "b"), job("b"), job("c"))

    assert outline(apply(api, starts("a", "c"), job("b"), job("c"))) == {"updated": ["a"], "unchanged": 2}
    assert started_by(api, "a") == "c"
    by_id = {"key": "a", "action": {"type": "job", "jobId": read_job(api, "b")["id"]}}
    assert outline(apply(api, by_id, job("b"), job("c"))) == {"updated": ["a"], "unchanged": 2}


def test_a_job_that_keeps_its_id_under_a_new_key_is_referred_to_by_that_key(api):
    apply(api, starts("a", "b"), job("b"))
    before = read_job(api, "b")["id"]

    apply(api, starts("a", "c"), job("c", was="b"))

    assert read_job(api, "a")["action"]["jobId"] == read_job(api, "c")["id"] == before


def test_recreating_a_job_under_a_new_id_updates_the_jobs_that_refer_to_it(api):
    apply(api, starts("a", "b"), job("b"))
    first = read_job(api, "b")["id"]
    api("DELETE", f"/v1/jobs/{first}")

    reply = apply(api, starts("a", "b"), job("b"))

    assert outline(reply) == {"repaired": ["b"], "updated": ["a"], "unchanged": 0}
    assert read_job(api, "b")["id"] != first
    assert whole(api, ("a", "b"))


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize(
    ("entry", "place", "advice"),
    [
        (job("a", wass="b"), "jobs[0].wass", "did you mean `was`?"),
        (job("a", colour="red"), "jobs[0].colour", "endTime, errorAction, hooks, key, name, policies, resourceId, "),
        (
            {"key": "a", "action": {"type": "job", "jobKey": "a", "colour": "red"}},
            "jobs[0].action.colour",
            "known are body, jobId, jobKey, payload, retry, type",
        ),
        (
            job("a", hooks={"onSuccess": {"type": "job", "jobkeys": "a"}}),
            "jobs[0].hooks.onSuccess.jobkeys",
            "did you mean `jobKey`?",
        ),
        (job("a", policies={"colour": 1}), "jobs[0].policies.colour", "known are "),
    ],
)
def test_the_hint_for_an_unknown_member_lists_the_members_of_an_entry(api, entry, place, advice, made):
    if made:
        apply(api, job("a"))

    reply = apply(api, entry)

    assert reply.status == 422
    assert {each["field"]: advice in each["reason"] for each in reply.json["errors"]}[place], reply.json


@pytest.mark.parametrize(
    ("entry", "field", "says"),
    [
        (starts("a", "gone"), "jobs[1].action.jobKey", 'no job of this list has the key "gone"'),
        (job("a", errorAction={"type": "job", "jobKey": "x"}), "jobs[1].errorAction.jobKey", "no job of this list"),
        (job("a", hooks={"onSuccess": {"type": "job", "jobKey": "x"}}), "jobs[1].hooks.onSuccess.jobKey", "no job"),
        (starts("a", ""), "jobs[1].action.jobKey", "1 to 128"),
        ({"key": "a", "action": {"type": "job", "jobKey": 7}}, "jobs[1].action.jobKey", "must be"),
        (
            {"key": "a", "action": {"type": "job", "jobKey": "b", "jobId": "01a400f6-36fa-7318-b8e2-7777ae068e18"}},
            "jobs[1].action.jobKey",
            "excludes jobId",
        ),
        ({"key": "a", "action": {"type": "event", "jobKey": "b"}}, "jobs[1].action.jobKey", ""),
        ({"key": "a", "action": {"type": "job"}}, "jobs[1].action.jobId", "required"),
    ],
)
def test_an_invalid_reference_changes_nothing(api, entry, field, says):
    with api.unchanged():
        reply = apply(api, job("b"), entry)

    assert (reply.status, reply.fields) == (422, [field])
    assert says in str(reply.json)


def test_a_key_is_refused_outside_a_list(api):
    apply(api, job("b"))

    reply = api("POST", "/v1/jobs", {"action": {"type": "job", "jobKey": "b"}})

    assert reply.status == 422
    assert "action.jobKey" in reply.fields


def test_the_token_of_a_plan_with_new_jobs_applies_it(api):
    entries = (starts("a", "b"), job("b"))
    planned = apply(api, *entries, plan="true")

    assert apply(api, *entries, plan="true").json["token"] == planned.json["token"]
    reply = apply(api, *entries, token=planned.json["token"])

    assert reply.status == 200
    assert whole(api, ("a", "b"))


def test_a_set_applied_in_several_requests_resolves_keys_in_each(api, monkeypatch):
    monkeypatch.setattr("sweephand.server.facades.native.jobs.job_sets.APPLIED_S", -1.0)
    entries = (starts("a", "b"), starts("b", "c"), starts("c", "a"), starts("d", "a"))
    reply, requests = apply(api, *entries), 1
    while reply.status == 202:
        reply, requests = apply(api, *entries, token=reply.json["token"]), requests + 1
        assert requests < 20

    assert whole(api, ("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"))
    assert outline(apply(api, *entries)) == {"unchanged": 4}


def test_a_job_is_not_created_if_the_new_job_it_refers_to_is_refused(api):
    api("PATCH", "/v1/collections/default", {"quota": {"maxJobs": 2}})
    apply(api, job("old"))

    reply = apply(api, job("old"), job("free"), job("b"), starts("a", "b"))

    assert outline(reply) == {"created": ["free"], "unchanged": 1}
    assert {each["key"]: each["reason"].partition(":")[0] for each in reply.json["failed"]}["a"] == (
        'it refers to the job "b", which was refused'
    )


@pytest.mark.sampled(7)
@pytest.mark.parametrize("calls", range(1, 40, 2))
@pytest.mark.parametrize("after", [False, True])
def test_the_next_request_repairs_whatever_a_crashed_one_leaves(api, calls, after):
    entries = (starts("a", "b"), starts("b", "a"), starts("c", "d"), job("d"))
    left = [calls]

    def dies(_passing, act):
        left[0] -= 1
        if left[0] != 0:
            return act()
        if after:
            act()
        raise Crash

    api.stage.taps.fault = dies
    with suppress(Crash):
        apply(api, *entries)
    api.stage.taps.fault = None

    reply = apply(api, *entries)

    assert reply.status == 200
    assert whole(api, ("a", "b"), ("b", "a"), ("c", "d"))
    assert len(api.get("/v1/jobs").json["items"]) == len(api.get(SET).json["jobs"]) == 4
    assert outline(apply(api, *entries)) == {"unchanged": 4}
