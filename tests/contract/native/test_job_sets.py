"""Job sets: the whole list of the jobs that a client wants, and the changes that it takes."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from datetime import timedelta
from itertools import count
from typing import Any
from urllib.parse import quote

import pytest

from sweephand.base.errors import Conflict, Unavailable
from sweephand.server.facades.native.jobs import job_sets, set_figures, set_plans
from sweephand.server.flow.job_sets import apply as sets
from sweephand.server.store.job_sets import job_sets as rows
from tests.contract.calls import WRITES
from tests.contract.native.api import JOB
from tests.support.taps import Crash

SET = "/v1/job-sets/billing"


def job(key: str, **members: Any) -> dict[str, Any]:
    return {"key": key, **JOB, **members}


def apply(api, *jobs, **query):
    return api("PUT", SET, {"jobs": list(jobs)}, query=query)


def keys(reply, name):
    return [each["key"] for each in reply.json[name]]


def outline(reply):
    """Returns the keys of each list of an answer, and how many jobs stayed."""
    lists = {name: keys(reply, name) for name in ("created", "updated", "repaired", "deleted") if reply.json[name]}
    return {**lists, "unchanged": reply.json["unchanged"]}


def read_job(api, key):
    (entry,) = [each for each in api.get(SET).json["jobs"] if each["key"] == key]
    return api.get(f"/v1/jobs/{entry['jobId']}", query={"include": "schedules"}).json


def test_a_list_creates_updates_and_deletes_jobs_and_keeps_the_rest(api):
    outside = api.create(name="made elsewhere")["id"]
    first = apply(api, job("a", name="a"), job("b", name="b"), job("c", name="c"))

    second = apply(api, job("a", name="a"), job("b", name="b", description="new"), job("d", name="d"))

    assert (first.status, outline(first)) == (200, {"created": ["a", "b", "c"], "unchanged": 0})
    assert outline(second) == {"created": ["d"], "updated": ["b"], "deleted": ["c"], "unchanged": 1}
    assert read_job(api, "b")["description"] == "new"
    shown = read_job(api, "a")
    assert (shown["jobSet"], shown["key"]) == ("billing", "a")
    assert {each["name"] for each in api.get("/v1/jobs").json["items"]} == {"a", "b", "d", "made elsewhere"}
    assert api.get(f"/v1/jobs/{outside}").json["jobSet"] is None


@pytest.mark.parametrize("jobs", [[], [job("b")], [job("a"), job("b")]])
def test_a_set_that_belongs_to_one_owner_is_not_changed_for_another(api, jobs):
    assert apply(api, job("a"), owner="stack A").status == 200
    before = api.picture()

    reply = apply(api, *jobs, owner="stack B", allowDeletes="5")

    assert reply.status == 409
    assert "belongs to stack A, not to stack B" in reply.json["detail"]
    assert api.picture() == before
    assert apply(api, *jobs, owner="stack A", allowDeletes="5").status == 200


def test_a_set_is_released_by_its_owner_alone_and_keeps_its_jobs(api):
    apply(api, job("a"), owner="stack A")
    before = [row["id"] for row in api.get("/v1/jobs").json["items"]]

    refused = api("DELETE", "/v1/job-sets/billing/owner", query={"owner": "stack B"})
    released = [api("DELETE", "/v1/job-sets/billing/owner", query={"owner": "stack A"}) for _ in range(2)]

    assert (refused.status, "belongs to stack A, not to stack B" in refused.text) == (409, True)
    assert [reply.status for reply in released] == [204, 204]
    assert api.get("/v1/job-sets/billing").json["owner"] is None
    assert [row["id"] for row in api.get("/v1/jobs").json["items"]] == before
    assert apply(api, job("a"), owner="stack B").status == 200


def test_a_release_names_the_owner_and_a_set_that_exists(api):
    unnamed = api("DELETE", "/v1/job-sets/billing/owner")
    unknown = api("DELETE", "/v1/job-sets/billing/owner", query={"owner": "stack A"})

    assert (unnamed.status, unnamed.fields) == (400, ["owner"])
    assert unknown.status == 404


@pytest.mark.parametrize("name", ["my billing", "-billing", "b" * 129])
def test_an_invalid_set_name_is_refused_with_the_rule(api, name):
    path = f"/v1/job-sets/{quote(name)}"
    reply = api("PUT", path, {"jobs": []})

    assert (reply.status, reply.fields) == (422, ["set"])
    assert "must " in reply.json["detail"]
    assert api.get(path).status == api("DELETE", path).status == 404


def test_repeating_the_same_list_is_one_request_without_a_write(api):
    jobs = [job(f"k{n}", schedules=[{"every": "PT5M"}]) for n in range(40)]
    apply(api, *jobs)
    before = read_job(api, "k7")

    api.stage.clock.advance(100)
    with api.unchanged():
        again = apply(api, *jobs)

    assert outline(again) == {"unchanged": 40}
    assert read_job(api, "k7")["schedules"][0]["nextRunAt"] == before["schedules"][0]["nextRunAt"]


def test_a_changed_job_keeps_its_id_and_its_schedules_with_their_rhythm(api):
    apply(api, job("a", schedules=[{"every": "PT7M"}, {"cron": "0 3 * * *"}]))
    before = read_job(api, "a")

    api.stage.clock.advance(100)
    apply(api, job("a", description="new", schedules=[{"every": "PT7M"}, {"cron": "0 4 * * *"}]))

    after = read_job(api, "a")
    assert (after["id"], after["description"], after["name"]) == (before["id"], "new", before["name"])
    assert [each["id"] for each in after["schedules"]] == [each["id"] for each in before["schedules"]]
    assert after["schedules"][0]["nextRunAt"] == before["schedules"][0]["nextRunAt"]
    assert after["schedules"][1]["cron"] == "0 4 * * *"


def test_the_order_of_members_and_null_members_are_no_change(api):
    apply(api, job("a", tags=["x"], description=None))

    with api.unchanged():
        again = apply(api, {"tags": ["x"], **JOB, "key": "a"})

    assert outline(again) == {"unchanged": 1}


def test_another_spelling_of_a_member_is_written_once(api):
    apply(api, job("a", schedules=[{"name": "s", "every": "PT5M"}]))
    spelt = job("a", schedules=[{"name": "s", "every": "PT300S"}], active=True)

    first = apply(api, spelt)
    with api.unchanged():
        again = apply(api, spelt)

    assert outline(again) == {"unchanged": 1}
    assert first.json["unchanged"] + len(first.json["updated"]) == 1


def test_a_job_keeps_its_history_under_a_new_key(api):
    apply(api, job("old"), job("b"))
    before = read_job(api, "old")

    renamed = apply(api, job("new", was="old"), job("b"))
    with api.unchanged():
        again = apply(api, job("new", was="old"), job("b"))

    assert outline(renamed) == {"updated": ["new"], "unchanged": 1}
    assert renamed.json["updated"][0]["was"] == "old"
    assert outline(again) == {"unchanged": 2}
    after = read_job(api, "new")
    assert (after["id"], after["key"], after["schedules"][0]["id"]) == (
        before["id"],
        "new",
        before["schedules"][0]["id"],
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "jobs"),
        ({"jobs": None}, "jobs"),
        ({"jobs": {}}, "jobs"),
        ({"jobs": [], "set": "x"}, "set"),
        ({"jobs": [3]}, "jobs[0]"),
        ({"jobs": [JOB]}, "jobs[0].key"),
        ({"jobs": [{**JOB, "key": ""}]}, "jobs[0].key"),
        ({"jobs": [{**JOB, "key": "x" * 129}]}, "jobs[0].key"),
        ({"jobs": [job("new"), job("a"), job("a")]}, "jobs[2].key"),
        ({"jobs": [job("new"), job("x", colour="red")]}, "jobs[1].colour"),
        ({"jobs": [job("new"), job("x", schedules=[{"cron": "61 * * * *"}])]}, "jobs[1].schedules[0].cron"),
        ({"jobs": [job("new"), job("x", schedules=[{"at": "2020-01-01T00:00:00Z"}])]}, "jobs[1].schedules[0].at"),
        ({"jobs": [job("new"), job("x", collection="nowhere")]}, "jobs[1].collection"),
        ({"jobs": [job("new", name="n"), job("x", name="n")]}, "jobs[1].name"),
        ({"jobs": [job("new"), job("b", was="new")]}, "jobs[1].was"),
        ({"jobs": [job("new", was="a"), job("b", was="a")]}, "jobs[1].was"),
        ({"jobs": [job(f"k{n}") for n in range(1_001)]}, "jobs"),
    ],
)
def test_an_invalid_list_changes_nothing(api, body, field):
    apply(api, job("a"))

    with api.unchanged():
        reply = api("PUT", SET, body)

    assert (reply.status, reply.fields) == (422, [field]), reply.text


def test_a_name_used_by_another_job_is_refused_before_any_write(api):
    api.create(name="taken")

    with api.unchanged():
        reply = apply(api, job("a"), job("b", name="taken"))

    assert (reply.status, reply.code) == (409, "NAME_TAKEN")
    assert '"b"' in reply.json["detail"]


def test_a_name_can_move_from_a_deleted_job_to_a_new_one(api):
    apply(api, job("a", name="nightly"))

    reply = apply(api, job("b", name="nightly"))

    assert outline(reply) == {"created": ["b"], "deleted": ["a"], "unchanged": 0}


def test_a_list_can_keep_the_jobs_that_it_omits(api):
    apply(api, job("a"), job("b"))

    reply = apply(api, job("a", description="new"), job("c"), prune="false")
    with api.unchanged():
        again = apply(api, job("b"), prune="false")

    assert outline(reply) == {"created": ["c"], "updated": ["a"], "unchanged": 0}
    assert (again.status, outline(again)) == (200, {"unchanged": 1})
    assert keys_of(api.get(SET).json["jobs"]) == ["a", "b", "c"]


def test_a_concurrent_list_does_not_count_the_jobs_that_another_keeps(api, monkeypatch):
    apply(api, job("a"))
    create, more = sets.creation.create_job, [job("z")]

    def meanwhile(*arguments, **members):
        if more:
            apply(api, more.pop(), prune="false")
        return create(*arguments, **members)

    monkeypatch.setattr(sets.creation, "create_job", meanwhile)
    reply = apply(api, job("b"), prune="false")

    assert (reply.status, reply.json["remaining"]) == (200, 0)
    assert keys_of(api.get(SET).json["jobs"]) == ["a", "b", "z"]


def test_more_deletions_than_usual_must_state_their_number(api):
    jobs = [job(f"k{n:02}") for n in range(12)]
    apply(api, *jobs)

    with api.unchanged():
        refused = apply(api, *jobs[:1])
        wrong = apply(api, *jobs[:1], allowDeletes=10)
    few = apply(api, *jobs[:11])
    meant = apply(api, allowDeletes=11)

    assert (refused.status, refused.code, wrong.code) == (409, "TOO_MANY_DELETES", "TOO_MANY_DELETES")
    assert "allowDeletes=11" in refused.json["detail"]
    assert keys_of(refused.json["plan"]["deleted"]) == [f"k{n:02}" for n in range(1, 12)]
    assert outline(few) == {"deleted": ["k11"], "unchanged": 11}
    assert (meant.status, len(meant.json["deleted"])) == (200, 11)
    assert api.get("/v1/jobs").json["items"] == []


def keys_of(entries):
    return [each["key"] for each in entries]


def test_a_deleted_job_shows_how_many_runs_are_lost(api):
    apply(api, job("a", schedules=[{"every": "PT1M"}]))
    api.stage.run(200)

    reply = apply(api, plan="true")

    (lost,) = reply.json["deleted"]
    assert (lost["runs"] >= 3, lost["openRuns"]) == (True, lost["runs"] - 3)


def test_a_plan_writes_nothing_and_its_token_applies_it(api):
    apply(api, job("a"), job("b"))
    wanted = job("a", description="new"), job("c")

    with api.unchanged():
        planned = apply(api, *wanted, plan="true")
    applied = apply(api, *wanted, token=planned.json["token"])

    assert (
        outline(planned)
        == outline(applied)
        == {
            "created": ["c"],
            "updated": ["a"],
            "deleted": ["b"],
            "unchanged": 0,
        }
    )
    assert (applied.status, applied.json["token"]) == (200, None)


@pytest.mark.parametrize("verb", ["PATCH", "DELETE"])
def test_a_plan_is_stale_after_somebody_changes_a_job(api, verb):
    apply(api, job("a"), job("b"))
    token = apply(api, job("a"), job("b"), job("c"), plan="true").json["token"]
    body = {"description": "by hand"} if verb == "PATCH" else None
    api(verb, f"/v1/jobs/{read_job(api, 'a')['id']}", body)

    with api.unchanged():
        stale = apply(api, job("a"), job("b"), job("c"), token=token)
    applied = apply(api, job("a"), job("b"), job("c"), token=stale.json["plan"]["token"])

    assert (stale.status, stale.code) == (412, "PLAN_STALE")
    assert keys_of(stale.json["plan"]["repaired"]) == ["a"]
    assert outline(applied) == {"created": ["c"], "repaired": ["a"], "unchanged": 1}


def test_a_token_is_valid_only_for_its_list(api):
    token = apply(api, job("a"), plan="true").json["token"]

    with api.unchanged():
        assert apply(api, job("a", description="other"), token=token).code == "PLAN_STALE"


def test_changes_by_others_are_shown_and_repaired(api):
    apply(api, job("a", description="mine"), job("b"), job("c"), job("d"))
    ids = {key: read_job(api, key)["id"] for key in "abcd"}
    api("PATCH", f"/v1/jobs/{ids['a']}", {"description": "by hand"})
    api("POST", f"/v1/jobs/{ids['b']}/deactivate")
    api("DELETE", f"/v1/jobs/{ids['c']}")
    api("POST", f"/v1/jobs/{ids['d']}/pause", {})

    shown = {each["key"]: each for each in api.get(SET).json["jobs"]}
    repaired = apply(api, job("a", description="mine"), job("b"), job("c"), job("d"))
    with api.unchanged():
        again = apply(api, job("a", description="mine"), job("b"), job("c"), job("d"))

    assert {key: each["state"] for key, each in shown.items()} == {
        "a": "changed",
        "b": "changed",
        "c": "deleted",
        "d": "applied",
    }
    (change,) = shown["a"]["changes"]
    assert (change["operation"], change["changes"][0]["path"]) == ("patch", "description")
    assert (change["changes"][0]["old"], change["changes"][0]["new"]) == ("mine", "by hand")
    assert outline(repaired) == {"repaired": ["a", "b", "c"], "unchanged": 1}
    assert outline(again) == {"unchanged": 4}
    assert (read_job(api, "a")["description"], read_job(api, "b")["active"]) == ("mine", True)
    assert read_job(api, "a")["id"] == ids["a"]
    assert read_job(api, "c")["id"] != ids["c"]
    assert read_job(api, "d")["state"] == "PAUSED", "a pause is not part of the list"


def test_a_schedule_changed_outside_the_set_is_repaired(api):
    apply(api, job("a", schedules=[{"name": "s", "cron": "0 3 * * *"}]))
    there = read_job(api, "a")
    api("PATCH", f"/v1/jobs/{there['id']}/schedules/{there['schedules'][0]['id']}", {"cron": "0 5 * * *"})

    reply = apply(api, job("a", schedules=[{"name": "s", "cron": "0 3 * * *"}]))

    assert outline(reply) == {"repaired": ["a"], "unchanged": 0}
    assert read_job(api, "a")["schedules"][0]["cron"] == "0 3 * * *"


@pytest.mark.parametrize(("at_drift", "runs"), [("keep_next", 0), ("run_now", 1)])
def test_a_repaired_job_runs_at_once_if_the_caller_asks_for_it(api, at_drift, runs):
    apply(api, job("a"), job("b"))
    there = read_job(api, "a")["id"]
    api("PATCH", f"/v1/jobs/{there}", {"description": "by hand"})

    apply(api, job("a"), job("b"), onDrift=at_drift)

    assert len(api.get("/v1/runs", query={"jobId": there}).json["items"]) == runs


def test_a_set_can_be_listed_read_and_deleted(api):
    assert api.get(SET).status == 404
    assert api("DELETE", SET).status == 404
    apply(api, job("a"), job("b"))

    listed = api.get("/v1/job-sets").json["items"]
    planned = api("DELETE", SET, query={"plan": "true"})
    deleted = api("DELETE", SET, query={"token": planned.json["token"]})

    assert [each["name"] for each in listed] == ["billing"]
    assert keys_of(deleted.json["deleted"]) == ["a", "b"]
    assert (api.get(SET).status, api.get("/v1/job-sets").json["items"]) == (404, [])


def test_a_repeated_delete_gets_the_first_answer_for_a_day(api):
    never = api("DELETE", SET)
    apply(api, job("a"))

    first, second = api("DELETE", SET), api("DELETE", SET)
    planned = api("DELETE", SET, query={"plan": "true"})
    foreign, other = api("DELETE", SET, caller="globex"), api("DELETE", "/v1/job-sets/billin")
    read = api.get(SET)
    again = apply(api, job("a"))
    third = api("DELETE", SET)
    api.stage.pass_time(86_401)
    late = api("DELETE", SET)

    assert [each.status for each in (first, second, planned, again, third)] == [200] * 5
    assert [keys_of(each.json["deleted"]) for each in (first, second, planned, third)] == [["a"], [], [], ["a"]]
    assert {each.status for each in (never, foreign, other, read, late)} == {404}


def test_repeating_a_delete_that_crashed_before_forgetting_the_set_is_answered(api, monkeypatch):
    apply(api, job("a"))
    delete_set = rows.delete_set

    def die(*arguments):
        delete_set(*arguments)
        raise Unavailable("the answer was lost")

    with monkeypatch.context() as dying:
        dying.setattr(rows, "delete_set", die)
        api.tolerated.add(503)
        died = api("DELETE", SET)
    repeated = api("DELETE", SET)

    assert (died.status, repeated.status, api.get("/v1/job-sets").json["items"]) == (503, 200, [])


def test_two_sets_with_the_same_keys_stay_separate(api):
    apply(api, job("a"))

    other = api("PUT", "/v1/job-sets/reports", {"jobs": [job("a")]})
    emptied = apply(api)

    assert (outline(other), outline(emptied)) == (
        {"created": ["a"], "unchanged": 0},
        {"deleted": ["a"], "unchanged": 0},
    )
    assert len(api.get("/v1/jobs").json["items"]) == 1


def test_another_tenants_set_is_unknown_and_unchanged(api):
    apply(api, job("a"))

    own = api("PUT", SET, {"jobs": []}, caller="globex")

    assert api.get(SET, caller="globex").status == 404
    assert api("DELETE", SET, caller="globex").status == 404
    assert (own.status, outline(own)) == (200, {"unchanged": 0})
    assert keys_of(api.get(SET).json["jobs"]) == ["a"]


def test_a_job_deleted_after_its_end_is_not_created_again(api):
    once = job("a", schedules=[{"at": "2027-03-01T12:05:00Z"}], collection="short")
    api("POST", "/v1/collections", {"name": "short", "retention": {"runDays": 30, "endedJobDays": 1}})
    apply(api, once)
    api.stage.run(3 * 86_400)
    assert api.get("/v1/jobs").json["items"] == []

    with api.unchanged():
        again = apply(api, once)

    assert outline(again) == {"unchanged": 1}


def test_secrets_are_never_shown_and_stay_with_an_unchanged_job(api):
    secret = {"type": "http", "url": "https://example.org/run"}
    secret |= {"authentication": {"type": "basic", "username": "me", "password": "canary-1"}}
    wanted = {"key": "a", "action": secret, "schedules": JOB["schedules"]}
    apply(api, wanted)

    with api.unchanged():
        again = apply(api, wanted)
    changed = apply(api, {**wanted, "description": "new"})

    assert (outline(again), outline(changed)) == ({"unchanged": 1}, {"updated": ["a"], "unchanged": 0})


def test_changes_beyond_the_time_of_one_request_wait_for_the_next(api, monkeypatch):
    apply(api, job("gone"))
    monkeypatch.setattr(job_sets, "APPLIED_S", -1.0)
    jobs = [job("a"), job("b")]

    first = apply(api, *jobs)
    second = apply(api, *jobs, token=first.json["token"])
    third = apply(api, *jobs)

    assert (first.status, first.json["remaining"], outline(first)) == (202, 2, {"deleted": ["gone"], "unchanged": 0})
    assert (second.status, second.json["remaining"], outline(second)) == (202, 1, {"created": ["a"], "unchanged": 0})
    assert (third.status, third.json["remaining"], outline(third)) == (200, 0, {"created": ["b"], "unchanged": 1})


def test_the_second_request_of_a_long_delete_forgets_the_set(api, monkeypatch):
    apply(api, job("a"), job("b"))
    monkeypatch.setattr(job_sets, "APPLIED_S", -1.0)

    first, second = api("DELETE", SET), api("DELETE", SET)

    assert [each.status for each in (first, second)] == [202, 200]
    assert api.get(SET).status == 404


def test_a_refusal_after_partial_changes_says_which_job_and_why(api):
    api("POST", "/v1/collections", {"name": "small", "quota": {"maxJobs": 1}})
    jobs = [job(key, collection="small") for key in "ab"]

    first = apply(api, *jobs)
    second = apply(api, *jobs)

    assert (first.status, outline(first)) == (200, {"created": ["a"], "unchanged": 0})
    assert [(each["key"], each["code"]) for each in first.json["failed"]] == [("b", "QUOTA_EXCEEDED")]
    assert (second.status, second.code) == (409, "QUOTA_EXCEEDED"), "nothing was changed"


@pytest.mark.parametrize(
    "query",
    [{"plan": "yes"}, {"allowDeletes": "x"}, {"onDrift": "never"}, {"prune": "no"}, {"token": ""}, {"force": "1"}],
)
def test_an_invalid_parameter_is_refused(api, query):
    with api.unchanged():
        reply = apply(api, job("a"), **query)

    assert (reply.status, reply.fields) == (400, [*query])


def test_a_list_may_be_larger_than_other_bodies_but_a_job_may_not(api):
    large = {**JOB["action"], "payload": "x" * 60_000}
    jobs = [job(f"k{n}", action=large) for n in range(6)]
    too_large = job("x", description="y" * 262_144)

    with api.unchanged():
        refused = apply(api, *jobs, too_large)

    assert refused.fields == ["jobs[6]"]
    assert outline(apply(api, *jobs))["unchanged"] == 0
    assert api("POST", "/v1/jobs", raw="x" * 300_000).status == 413


def test_an_entry_refuses_members_without_effect(api):
    retry = {**JOB["action"], "retry": {"type": "none", "maxRetries": 5}}

    with api.unchanged():
        reply = apply(api, job("a"), job("b", action=retry))

    assert (reply.status, reply.fields) == (422, ["jobs[1].action.retry.maxRetries"])


@pytest.mark.parametrize(
    ("members", "field"),
    [({"schedules": [{"cron": "61 * * * *"}]}, "schedules[0].cron"), ({"collection": "nowhere"}, "collection")],
)
def test_an_impossible_change_prevents_all_other_changes(api, members, field):
    apply(api, job("a"), job("b"), job("c"))

    with api.unchanged():
        reply = apply(api, job("a", description="new"), job("b", **members))

    assert (reply.status, reply.fields) == (422, [f"jobs[1].{field}"])


def test_deleting_a_job_removes_its_entry_from_the_set(api):
    apply(api, job("a"), job("b"))
    api("DELETE", f"/v1/jobs/{read_job(api, 'a')['id']}")

    reply = apply(api, job("b"))

    assert outline(reply) == {"deleted": ["a"], "unchanged": 1}
    assert keys_of(api.get(SET).json["jobs"]) == ["b"]


def test_a_set_filled_during_its_delete_stays_in_the_list(api, monkeypatch):
    apply(api, job("a"))
    delete_set = rows.delete_set

    def filled_first(*where):
        apply(api, job("b"))
        return delete_set(*where)

    monkeypatch.setattr(rows, "delete_set", filled_first)
    api("DELETE", SET)

    assert keys_of(api.get(SET).json["jobs"]) == ["b"]


@contextmanager
def met_before(api, call, meet):
    """Lets something else happen before one of the calls that write a set or its jobs."""
    usual, writes = api.stage.taps.fault, count(1)

    def fault(passing, act):
        counts = passing.operation == "TransactWriteItems" or "'SET#billing'" in str(passing.request.get("Key"))
        if counts and passing.operation != "GetItem" and next(writes) == call:
            api.stage.taps.fault = usual
            meet()
        return usual(passing, act)

    api.stage.taps.fault = fault
    yield
    api.stage.taps.fault = usual


@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_a_set_that_is_deleted_while_it_is_applied_is_listed_as_long_as_it_has_jobs(api, call, crashes):
    """The writes of an apply: the set, two jobs, the set. Another request deletes the set before one of them."""
    api.tolerated.add(503)
    deletes = []

    def meet():
        deletes.append(api("DELETE", SET).status)
        if crashes:
            raise Crash

    with met_before(api, call, meet), pytest.raises(Crash) if crashes else nullcontext():
        assert apply(api, job("a"), job("b")).status in {200, 202}
    jobs, listed = api.get("/v1/jobs").json["items"], api.get("/v1/job-sets").json["items"]
    first, again = api("DELETE", SET).status, api("DELETE", SET).status
    api.stage.pass_time(61)
    last = api("DELETE", SET).status

    assert listed or not jobs
    assert deletes == [404 if call == 1 else 503]
    assert {first, again} <= ({404} if not listed else {200, 503} if crashes else {200})
    assert last == (404 if not listed else 200)
    assert (api.get("/v1/job-sets").json["items"], api.get("/v1/jobs").json["items"]) == ([], [])


def test_a_list_writes_its_set_twice_however_many_jobs_it_has(api):
    api.stage.taps.passed.clear()

    apply(api, *(job(f"j{n}") for n in range(5)))

    writes = [each for each in api.stage.taps.passed if each.operation in WRITES]
    assert sum("'SET#billing'" in str(each.request.get("Key")) for each in writes) == 2
    assert "'SET#billing'" not in str([each for each in writes if each.operation == "TransactWriteItems"])


def test_a_set_whose_last_list_crashed_can_be_deleted_after_its_next_one(api):
    def die():
        raise Crash

    with met_before(api, 3, die), pytest.raises(Crash):
        apply(api, job("a"))
    api.stage.pass_time(61)
    apply(api, job("b"))

    assert api("DELETE", SET).status == 200
    assert api.get("/v1/job-sets").json["items"] == []


def test_a_new_set_is_not_listed_if_all_its_jobs_are_refused(api, monkeypatch):
    def refused(*_):
        raise Conflict("no room", code="QUOTA_EXCEEDED")

    monkeypatch.setattr(sets, "apply_change", refused)

    assert apply(api, job("a")).status == 409
    assert (api.get("/v1/job-sets").json["items"], api.get(SET).status) == ([], 404)


def test_a_plan_reads_resources_shared_by_its_jobs_once(api):
    def reads(count):
        before = len(api.stage.taps.passed)
        apply(api, *(job(f"k{n}") for n in range(count)), plan="true")
        return len(api.stage.taps.passed) - before

    reads(1)

    assert reads(30) == reads(2)


def without(entry, *names):
    return {name: member for name, member in entry.items() if name not in names}


def test_an_entry_without_schedules_removes_its_jobs_schedules(api):
    bare = without(job("a"), "schedules")
    apply(api, job("a"))

    apply(api, bare)
    dropped = read_job(api, "a")
    api("POST", f"/v1/jobs/{dropped['id']}/schedules", {"cron": "* * * * *"})
    repaired = apply(api, bare)

    assert dropped["schedules"] == []
    assert outline(repaired) == {"repaired": ["a"], "unchanged": 0}
    assert read_job(api, "a")["schedules"] == []


def test_an_entry_without_a_name_is_named_after_its_set_and_key(api):
    apply(api, job("a", name="n"), job("b"), job("k" * 125))
    api("PATCH", f"/v1/jobs/{read_job(api, 'b')['id']}", {"name": "by hand"})

    apply(api, job("a"), job("b"), job("k" * 125))

    names = {read_job(api, key)["name"] for key in ("a", "b", "k" * 125)}
    assert names == {"billing/a", "billing/b", "k" * 125}
    apply(api, {**job("c"), "was": "b"}, job("a"))
    assert read_job(api, "c")["name"] == "billing/c"


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"state": "PAUSED"}, "state"),
        ({"jobSet": "other"}, "jobSet"),
        ({"revision": 7}, "revision"),
        ({"schedules": [{"every": "PT5M", "state": "PAUSED"}]}, "schedules[0].state"),
        ({"schedules": [3]}, "schedules[0]"),
    ],
)
def test_a_changed_entry_gets_the_same_defaults_as_a_new_one(api, members, field):
    apply(api, job("a"))

    with api.unchanged():
        changed = apply(api, job("a", **members))
        new = api("PUT", "/v1/job-sets/other", {"jobs": [job("a", **members)]})

    assert (changed.status, changed.fields) == (new.status, new.fields) == (422, [f"jobs[0].{field}"])


def test_a_refused_change_does_not_stop_later_ones(api):
    api("POST", "/v1/collections", {"name": "small", "quota": {"maxJobs": 1}})
    api.create(name="full", collection="small")
    jobs = [job("a", collection="small"), job("b"), job("c")]

    first = apply(api, *jobs)
    second = apply(api, *jobs)

    assert (first.status, outline(first)) == (200, {"created": ["b", "c"], "unchanged": 0})
    assert [(each["key"], each["code"]) for each in first.json["failed"]] == [("a", "QUOTA_EXCEEDED")]
    assert (second.status, second.code) == (409, "QUOTA_EXCEEDED"), "no change was made"


@pytest.mark.parametrize("state", ["deleted", "paused", "inactive"])
def test_a_repaired_job_runs_at_once_only_if_it_is_active(api, state):
    wanted = job("a", active=state != "inactive")
    apply(api, wanted)
    there = f"/v1/jobs/{read_job(api, 'a')['id']}"
    if state == "deleted":
        api("DELETE", there)
    else:
        api("PATCH", there, {"description": "by hand"})
    if state == "paused":
        api("POST", f"{there}/pause", {})

    reply = apply(api, wanted, onDrift="run_now")

    assert outline(reply) == {"repaired": ["a"], "unchanged": 0}
    assert api.get("/v1/runs", query={"jobId": read_job(api, "a")["id"]}).json["items"] == []


def test_a_run_that_a_repair_could_not_start_is_reported(api, monkeypatch):
    apply(api, job("a"), job("b"))
    for key in "ab":
        api("PATCH", f"/v1/jobs/{read_job(api, key)['id']}", {"description": "by hand"})
    run_now = sets.run_now

    def refused_once(world, tenant, job):
        monkeypatch.setattr(sets, "run_now", run_now)
        raise Unavailable("the table is busy")

    monkeypatch.setattr(sets, "run_now", refused_once)
    reply = apply(api, job("a"), job("b"), onDrift="run_now")

    (failed,) = reply.json["failed"]
    assert (reply.status, outline(reply)) == (200, {"repaired": ["a", "b"], "unchanged": 0})
    assert (failed["key"], "its run did not start" in failed["reason"]) == ("a", True)
    runs = [api.get("/v1/runs", query={"jobId": read_job(api, key)["id"]}).json["items"] for key in "ab"]
    assert [len(each) for each in runs] == [0, 1]


ONCE = {"schedules": [{"at": "2027-03-01T12:05:00Z"}]}
FINAL = {**ONCE, "policies": {"afterEnd": "final"}}


@pytest.mark.parametrize(
    ("members", "verb", "body"),
    [
        (ONCE, "DELETE", None),
        (ONCE, "PATCH", {"schedules": [{"name": "schedule-1", "at": "2027-03-01T12:30:00Z"}]}),
        (FINAL, "DELETE", None),
        (FINAL, "PATCH", {"description": "by hand"}),
    ],
)
def test_a_past_one_time_schedule_is_not_repaired_and_stops_nothing(api, members, verb, body):
    apply(api, job("once", **members), job("b"))
    api(verb, f"/v1/jobs/{read_job(api, 'once')['id']}", body)
    api.stage.run(3_600)
    wanted = job("once", **members), job("b"), job("c")

    planned = apply(api, *wanted, plan="true")
    applied = apply(api, *wanted, token=planned.json["token"])
    with api.unchanged():
        again = apply(api, *wanted)

    assert outline(planned) == outline(applied) == {"created": ["c"], "unchanged": 2}
    assert outline(again) == {"unchanged": 3}


def test_a_job_is_repaired_without_its_finished_schedules(api):
    wanted = job("a", schedules=[*ONCE["schedules"], {"cron": "0 3 * * *"}])
    apply(api, wanted)
    api("DELETE", f"/v1/jobs/{read_job(api, 'a')['id']}")
    api.stage.run(3_600)

    repaired, again = apply(api, wanted), apply(api, wanted)

    assert (outline(repaired), outline(again)) == ({"repaired": ["a"], "unchanged": 0}, {"unchanged": 1})
    assert [each["cron"] for each in read_job(api, "a")["schedules"]] == ["0 3 * * *"]


def test_a_repair_with_another_mistake_is_refused(api):
    wanted = job("a", **ONCE, collection="slow")
    api("POST", "/v1/collections", {"name": "slow"})
    apply(api, wanted)
    api("DELETE", f"/v1/jobs/{read_job(api, 'a')['id']}")
    api("DELETE", "/v1/collections/slow")
    api.stage.run(3_600)

    with api.unchanged():
        reply = apply(api, wanted, plan="true")

    assert (reply.status, reply.fields) == (422, ["jobs[0].collection"])


def test_a_plan_does_not_promise_to_change_a_final_job(api):
    apply(api, job("once", **FINAL))
    api.stage.run(3_600)

    with api.unchanged():
        planned = apply(api, job("once", **FINAL, description="new"), plan="true")
        applied = apply(api, job("once", **FINAL, description="new"))

    assert (planned.status, planned.code) == (applied.status, applied.code) == (409, "STATE_CONFLICT")


def test_names_move_within_a_list_in_the_order_in_which_they_become_free(api):
    apply(api, job("a", name="x"), job("b", name="y"), job("c", name="z"))

    moved = apply(api, job("a", name="y"), job("b", name="z"), job("c"), job("d", name="x"))

    assert (moved.status, moved.json["failed"]) == (200, [])
    assert [read_job(api, key)["name"] for key in "abd"] == ["y", "z", "x"]


def test_names_changed_outside_the_set_are_repaired(api):
    jobs = [job("a", name="x"), job("b", name="y")]
    apply(api, *jobs)
    api("PATCH", f"/v1/jobs/{read_job(api, 'a')['id']}", {"name": "other"})
    api("PATCH", f"/v1/jobs/{read_job(api, 'b')['id']}", {"name": "x"})

    repaired = apply(api, *jobs)

    assert (sorted(keys(repaired, "repaired")), repaired.json["failed"]) == (["a", "b"], [])
    assert [read_job(api, key)["name"] for key in "ab"] == ["x", "y"]


def test_a_swap_of_names_is_refused_as_such(api):
    apply(api, job("a", name="x"), job("b", name="y"))

    with api.unchanged():
        reply = apply(api, job("a", name="y"), job("b", name="x"))

    assert (reply.status, reply.code) == (409, "NAME_TAKEN")
    assert 'the jobs "a", "b" exchange their names' in reply.json["detail"]


@pytest.mark.parametrize("entry", [job("b", name="n"), job("a", name="n", description="other")])
def test_two_concurrent_requests_with_the_same_list_do_not_conflict_over_names(api, monkeypatch, entry):
    check = sets.check

    def applied_first(*where):
        monkeypatch.setattr(sets, "check", check)
        apply(api, job("b", name="n"))
        return check(*where)

    monkeypatch.setattr(sets, "check", applied_first)
    reply = apply(api, entry)

    if entry["key"] == "b":
        assert (reply.status, outline(reply)) == (200, {"unchanged": 1})
    else:
        assert (reply.status, reply.code) == (409, "NAME_TAKEN")


def test_the_token_of_an_applied_plan_finds_nothing_left_to_do(api):
    wanted = job("a"), job("b")
    token = apply(api, *wanted, plan="true").json["token"]
    apply(api, *wanted, token=token)

    with api.unchanged():
        again = apply(api, *wanted, token=token)

    assert (again.status, outline(again)) == (200, {"unchanged": 2})


def test_an_unfinished_list_and_the_next_plan_share_a_token_even_after_a_refusal(api, monkeypatch):
    api("POST", "/v1/collections", {"name": "small", "quota": {"maxJobs": 1}})
    api.create(name="full", collection="small")
    jobs = [job("a", collection="small"), job("b"), job("c")]
    monkeypatch.setattr(job_sets, "APPLIED_S", -1.0)

    first = apply(api, *jobs)
    planned = apply(api, *jobs, plan="true")
    second = apply(api, *jobs, token=first.json["token"])

    assert (first.status, first.json["remaining"], keys_of(first.json["failed"])) == (202, 1, ["a"])
    assert first.json["token"] == planned.json["token"]
    assert (second.status, outline(second)) == (200, {"created": ["c"], "unchanged": 1})


@pytest.fixture
def meanwhile(api, monkeypatch):
    """Does something by hand before the first change that an apply makes."""

    def before_the_first(act):
        change = sets.apply_change

        def changed(*args):
            monkeypatch.setattr(sets, "apply_change", change)
            act()
            return change(*args)

        monkeypatch.setattr(sets, "apply_change", changed)

    return before_the_first


def test_a_job_changed_meanwhile_is_planned_again_for_a_caller_without_a_token(api, meanwhile):
    apply(api, job("a"))
    there = read_job(api, "a")["id"]
    meanwhile(lambda: api("PATCH", f"/v1/jobs/{there}", {"tags": ["by hand"]}))

    reply = apply(api, job("a", description="new"))

    assert (reply.status, outline(reply)) == (200, {"repaired": ["a"], "unchanged": 0})
    assert (read_job(api, "a")["description"], read_job(api, "a")["tags"]) == ("new", [])


def test_a_job_changed_meanwhile_makes_a_token_stale_and_the_answer_shows_the_new_plan(api, meanwhile):
    apply(api, job("a"))
    there = read_job(api, "a")["id"]
    token = apply(api, job("a", description="new"), plan="true").json["token"]
    meanwhile(lambda: api("PATCH", f"/v1/jobs/{there}", {"tags": ["by hand"]}))

    reply = apply(api, job("a", description="new"), token=token)

    assert (reply.status, reply.code) == (412, "PLAN_STALE")
    assert keys_of(reply.json["plan"]["repaired"]) == ["a"]
    assert read_job(api, "a")["tags"] == ["by hand"]


def test_a_job_that_others_delete_meanwhile_counts_as_deleted(api, meanwhile):
    apply(api, job("a"), job("b"))
    there = read_job(api, "a")["id"]
    meanwhile(lambda: api("DELETE", f"/v1/jobs/{there}"))

    reply = apply(api, job("b"))

    assert (reply.status, outline(reply)) == (200, {"deleted": ["a"], "unchanged": 1})
    assert keys_of(api.get(SET).json["jobs"]) == ["b"]


def test_a_job_that_the_same_list_creates_meanwhile_counts_as_unchanged(api, meanwhile):
    meanwhile(lambda: apply(api, job("a")))

    reply = apply(api, job("a"))

    assert (reply.status, outline(reply)) == (200, {"unchanged": 1})


# Figures


def test_a_set_shows_the_lateness_and_duration_of_its_latest_runs(api):
    api.stage.endpoint.takes_s = 2
    minutely = {"schedules": [{"every": "PT1M"}]}
    apply(api, job("a", **minutely), job("b", **minutely))
    api.create(name="of no set", **minutely)
    api.stage.run(600)

    plain = api.get(SET).json
    found = api.get(SET, query={"include": "figures", "limitSeconds": 1}).json["figures"]

    assert "figures" not in plain
    assert found["runs"] in {18, 20}, "of both jobs, and of no other"
    assert (found["complete"], found["failed"], found["retried"]) == (True, 0, 0)
    assert 0 <= found["latenessSeconds"]["p50"] <= found["latenessSeconds"]["p99"] < 5
    assert found["criticalSeconds"]["p50"] >= 2
    assert (found["limitSeconds"], found["breachInSeconds"]) == (1, 0)


def test_figures_cover_runs_since_an_instant_up_to_a_maximum(api, monkeypatch):
    apply(api, job("a", schedules=[{"every": "PT1M"}]))
    api.stage.run(600)
    since = api.stage.clock.now() - timedelta(minutes=3)

    few = api.get(SET, query={"include": "figures", "from": since.isoformat()}).json["figures"]
    monkeypatch.setattr(set_figures, "MOST_RUNS", 4)
    bounded = api.get(SET, query={"include": "figures"}).json["figures"]

    assert few["runs"] in {2, 3}
    assert (bounded["runs"], bounded["complete"]) == (4, False)


def test_figures_of_a_set_without_runs_are_empty(api):
    apply(api, job("a"))

    found = api.get(SET, query={"include": "figures", "limitSeconds": 60}).json["figures"]

    none = {"p50": None, "p99": None}
    assert (found["runs"], found["latenessSeconds"], found["criticalSeconds"]) == (0, none, none)
    assert found["breachInSeconds"] is None


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"include": "runs"}, "include"),
        ({"include": "figures", "limitSeconds": "0"}, "limitSeconds"),
        ({"include": "figures", "limitSeconds": "86401"}, "limitSeconds"),
        ({"include": "figures", "limitSeconds": "1.5"}, "limitSeconds"),
        ({"include": "figures", "from": "yesterday"}, "from"),
        ({"limitSeconds": "60"}, "limitSeconds"),
        ({"from": "2027-01-01T00:00:00Z"}, "from"),
    ],
)
def test_an_invalid_parameter_of_figures_is_refused(api, query, field):
    apply(api, job("a"))

    reply = api.get(SET, query=query)

    assert (reply.status, reply.fields) == (400, [field])


# Plans as they are shown


DAILY = {"name": "daily", "cron": "0 3 * * *", "timezone": "Europe/Berlin"}
HOURLY = {"name": "hourly", "cron": "0 * * * *"}
BEFORE = {"name": "a", "description": "old", "tags": ["x"], "schedules": [DAILY, HOURLY]}
CALL = {"type": "http", "url": "https://example.org/"}
CHANGED = {
    "a member": {"description": "new"},
    "members of its action": {"action": {**CALL, "method": "PUT", "headers": {"x-one": "1"}}},
    "its payload": {"action": {**CALL, "payload": {"n": 1}}},
    "a reaction": {"errorAction": CALL},
    "a hook": {"hooks": {"onSuccess": CALL}},
    "a rule": {"schedules": [{**DAILY, "cron": "0 4 * * *"}, HOURLY]},
    "the rule that comes next": {"schedules": [DAILY, {**HOURLY, "cron": "30 * * * *"}]},
    "a schedule less": {"schedules": [DAILY]},
    "a schedule more": {"schedules": [DAILY, HOURLY, {"name": "once", "at": "2027-03-01T12:10:00Z"}]},
    "a payload of a schedule": {"schedules": [{**DAILY, "payload": {"n": 2}}, HOURLY]},
    "a hook of a schedule": {"schedules": [{**DAILY, "hooks": {"onFailure": CALL}}, HOURLY]},
    "switched off": {"active": False},
    "its end": {"endTime": "2027-03-01T12:30:00Z"},
    "its tags and its policies": {"tags": ["y"], "policies": {"overlap": "skip"}},
}


def lines_of_the_log(api, job_id, schedules):
    """Returns the lines of the last entry of the change log, as a plan shows them."""
    names = {each["id"]: each["name"] for each in schedules}
    for line in api.get(f"/v1/jobs/{job_id}/changes").json["items"][0]["changes"]:
        path, old, new = line["path"], line["old"], line["new"]
        if path is None:
            gone_or_new = old or new
            names[gone_or_new.pop("id")] = gone_or_new["name"]
        yield {**line, "scheduleId": names.get(line["scheduleId"])}


@pytest.mark.parametrize("members", CHANGED.values(), ids=CHANGED)
def test_a_plan_lists_changed_members_and_the_next_run_as_they_turn_out_when_applied(api, members):
    apply(api, job("a", **BEFORE))
    there = read_job(api, "a")

    with api.unchanged():
        (planned,) = apply(api, job("a", **{**BEFORE, **members}), plan="true").json["updated"]
    apply(api, job("a", **{**BEFORE, **members}))

    logged = [
        {"schedule" if name == "scheduleId" else name: value for name, value in line.items()}
        for line in lines_of_the_log(api, there["id"], there["schedules"])
    ]
    assert planned["changes"] == logged != []
    assert planned["nextRunAtBefore"] == there["nextRunAt"]
    assert planned["nextRunAt"] == read_job(api, "a")["nextRunAt"]


def test_a_plan_says_when_new_and_deleted_jobs_run(api):
    apply(api, job("old", schedules=[DAILY]))

    planned = apply(api, job("new", schedules=[HOURLY]), job("never", schedules=[]), plan="true").json

    (deleted,) = planned["deleted"]
    times = {each["key"]: (each["nextRunAtBefore"], each["nextRunAt"]) for each in (*planned["created"], deleted)}
    assert times == {
        "new": (None, "2027-03-01T13:00:00Z"),
        "never": (None, None),
        "old": ("2027-03-02T02:00:00Z", None),
    }
    assert [each["changes"] for each in (*planned["created"], deleted)] == [[], [], []]


def test_a_plan_shows_a_limited_number_of_members_and_a_result_shows_none(api, monkeypatch):
    monkeypatch.setattr(set_plans, "MOST_LINES", 3)
    jobs = [job(key, schedules=[HOURLY]) for key in "abc"]
    apply(api, *jobs)
    changed = [{**each, "description": "new", "tags": ["x"]} for each in jobs]

    planned = apply(api, *changed, plan="true").json["updated"]
    done = apply(api, *changed).json["updated"]

    assert [each["changes"] and len(each["changes"]) for each in planned] == [2, None, None]
    assert {each["nextRunAt"] for each in planned} == {"2027-03-01T13:00:00Z"}
    assert {*done[0]} == {"key", "jobId", "name"}


def test_a_plan_names_rewritten_secrets_and_shortens_long_values(api):
    signed = {**CALL, "authentication": {"type": "basic", "username": "me", "password": "canary-1"}}
    apply(api, job("a", action=CALL, errorAction=signed))
    other = {**signed, "authentication": {**signed["authentication"], "password": "canary-2"}}

    plan = apply(api, job("a", action=CALL, errorAction=other), plan="true")
    (long,) = apply(api, job("a", action=CALL, errorAction=signed, description="x" * 500), plan="true").json["updated"]
    (new,) = apply(api, job("a", action=signed, hooks={"onSuccess": signed}), plan="true").json["updated"]

    secret = {"schedule": None, "path": "errorAction.authentication.password", "old": "***", "new": "***", "cut": False}
    assert plan.json["updated"][0]["changes"] == [secret]
    assert "canary" not in plan.text
    line, also = long["changes"]
    assert (line["path"], len(line["new"]), line["cut"], also) == ("description", 400, True, secret)
    paths = [each["path"] for each in new["changes"]]
    at = "action.authentication"
    assert paths == [f"{at}.type", f"{at}.username", f"{at}.password", "errorAction", "hooks.onSuccess"]
