"""Hooks of schedules over HTTP: set, shown, changed one by one, their secrets kept or refused."""

from __future__ import annotations

import json

import pytest

from tests.contract.calls import CANARY
from tests.contract.native.api import JOB

SECRET = {"type": "basic", "username": "me", "password": f"{CANARY}-password"}
HOOK = {"type": "http", "url": "https://x.org/hook", "authentication": SECRET, "payload": {"n": 1}}
OTHER = {"type": "event", "detailType": "late"}


@pytest.fixture
def made(api):
    schedules = [{"name": "a", "every": "PT1H", "hooks": {"onSuccess": HOOK}}, {"name": "b", "every": "PT2H"}]
    return api.create(schedules=schedules, hooks={"onSuccess": OTHER})


def place_of(made, n=0):
    return f"/v1/jobs/{made['id']}/schedules/{made['schedules'][n]['id']}"


def test_a_schedules_hooks_are_shown_with_it_and_without_secrets(api, made):
    (first, second) = made["schedules"]
    assert second["hooks"] == {}
    assert first["hooks"].keys() == {"onSuccess"}
    shown = first["hooks"]["onSuccess"]
    assert (shown["url"], shown["payload"], shown["body"]) == ("https://x.org/hook", {"n": 1}, None)
    assert (shown["authentication"]["password"], shown["retry"]["type"]) == ("***", "none")
    listed = api.get(f"/v1/jobs/{made['id']}/schedules").json["items"]

    assert [each["hooks"] for each in listed] == [first["hooks"], {}]
    assert api.get(place_of(made)).json["hooks"] == first["hooks"]
    assert api.get(f"/v1/jobs/{made['id']}", query="include=schedules").json["schedules"][0]["hooks"] == first["hooks"]
    assert CANARY not in "".join(api.picture())


def test_a_schedules_hooks_are_changed_individually_and_keep_their_secrets(api, made):
    place = place_of(made)
    more = api("PATCH", place, {"hooks": {"onSuccess": {"method": "PUT"}, "onMissed": OTHER}}).json["hooks"]
    assert more.keys() == {"onSuccess", "onMissed"}
    assert (more["onSuccess"]["method"], more["onSuccess"]["payload"]) == ("PUT", {"n": 1})

    with api.unchanged():
        for change in (
            {"hooks": {"onSuccess": {"url": "https://y.org/hook"}}},
            {"hooks": {"onSuccess": {"authentication": {"username": "you"}}}},
            {"hooks": {"onFailure": more["onSuccess"]}},
        ):
            moved = api("PATCH", place, change)
            name = next(iter(change["hooks"]))
            assert (moved.status, moved.fields) == (422, [f"hooks.{name}.authentication.password"])
    assert api("PATCH", place, {"hooks": {"onSuccess": None}}).json["hooks"].keys() == {"onMissed"}
    assert api("PATCH", place, {"name": "c"}).json["hooks"].keys() == {"onMissed"}


def test_sending_back_an_answer_changes_nothing(api, made):
    place, whole = place_of(made), f"/v1/jobs/{made['id']}"
    with api.unchanged():
        assert api("PUT", place, api.get(place).json).status == 200
        assert api("PATCH", place, {"hooks": api.get(place).json["hooks"]}).status == 200
        assert api("PUT", whole, api.get(whole, query="include=schedules").json).status == 200
        assert api("POST", f"{place}/activate").status == 200


def test_omitted_hooks_are_removed_and_a_replaced_job_matches_schedules_by_id_or_name(api, made):
    whole = f"/v1/jobs/{made['id']}"
    kept = {"onSuccess": HOOK | {"method": "PUT", "authentication": SECRET | {"password": "***"}}}

    by_name = {**JOB, "schedules": [{"name": "a", "every": "PT1H", "hooks": kept}]}
    reply = api("PUT", whole, by_name)
    assert (reply.status, reply.json["schedules"][0]["hooks"]["onSuccess"]["method"]) == (200, "PUT")
    by_id = {"id": made["schedules"][0]["id"], "name": "z", "every": "PT1H", "hooks": kept}
    assert api("PUT", whole, {**JOB, "schedules": [by_id]}).json["schedules"][0]["hooks"].keys() == {"onSuccess"}
    nobodys = api("PUT", whole, {**JOB, "schedules": [by_id | {"hooks": {}}, {"every": "PT3H", "hooks": kept}]})
    assert (nobodys.status, nobodys.fields) == (422, ["schedules[1].hooks.onSuccess.authentication.password"])
    assert api("PUT", whole, {"action": JOB["action"]}).json["schedules"][0]["hooks"].keys() == {"onSuccess"}

    assert api("PUT", place_of(made), {"every": "PT1H"}).json["hooks"] == {}


@pytest.mark.parametrize(
    ("hooks", "field"),
    [
        ([], "hooks"),
        ({"onError": HOOK}, "hooks.onError"),
        ({"onSuccess": None, "onMissed": 1}, "hooks.onMissed"),
        ({"onSuccess": {"type": "http", "url": "ftp://x.org/"}}, "hooks.onSuccess.url"),
        ({"onSuccess": {**OTHER, "retry": {"type": "often"}}}, "hooks.onSuccess.retry.type"),
    ],
)
def test_an_invalid_hook_is_refused_by_its_path(api, made, hooks, field):
    wanted = {"every": "PT1H", "hooks": hooks}
    with api.unchanged():
        for method, place in (("POST", f"/v1/jobs/{made['id']}/schedules"), ("PUT", place_of(made))):
            reply = api(method, place, wanted)
            assert (reply.status, reply.fields) == (422, [field])
        reply = api("POST", "/v1/jobs", {**JOB, "schedules": [{"every": "PT1H"}, wanted]})
        assert (reply.status, reply.fields) == (422, [f"schedules[1].{field}"])


def test_one_request_may_bring_only_as_many_secrets_as_it_can_seal(api):
    hooks = dict.fromkeys(("onSuccess", "onFailure", "onMissed"), HOOK)
    schedules = [{"every": "PT1H", "hooks": hooks} for _ in range(34)]

    with api.unchanged():
        reply = api("POST", "/v1/jobs", {**JOB, "schedules": schedules})

    assert (reply.status, reply.fields) == (422, ["schedules"])
    assert api("POST", "/v1/jobs", {**JOB, "schedules": schedules[:33]}).status == 201


def test_the_change_log_shows_changed_hooks(api, made):
    place = place_of(made)
    api("PATCH", place, {"hooks": {"onSuccess": {"method": "PUT"}}})
    api("PATCH", place, {"hooks": {"onSuccess": {"authentication": {"password": "new"}}}})

    secret, method, _ = api.get(f"/v1/jobs/{made['id']}/changes", query="include=before").json["items"]

    lines = [[(each["path"], each["old"], each["new"]) for each in entry["changes"]] for entry in (method, secret)]
    assert lines == [[("hooks.onSuccess.method", "POST", "PUT")], [("hooks.secrets", "***", "***")]]
    assert method["before"]["schedules"][0]["hooks"] == made["schedules"][0]["hooks"]
    assert CANARY not in json.dumps([secret, method])


def test_a_hook_or_error_action_cannot_run_its_own_job(api, made):
    itself = {"type": "job", "jobId": made["id"]}
    place = f"/v1/jobs/{made['id']}"
    asked = [
        (place, {"errorAction": itself}, "errorAction.jobId"),
        (place, {"hooks": {"onFailure": itself}}, "hooks.onFailure.jobId"),
        (place_of(made), {"hooks": {"onFailure": itself}}, "hooks.onFailure.jobId"),
    ]

    replies = [api("PATCH", path, body) for path, body, _ in asked]
    added = api("POST", f"{place}/schedules", {"every": "PT1H", "hooks": {"onMissed": itself}})

    assert [(reply.status, reply.fields) for reply in replies] == [(422, [field]) for _, _, field in asked]
    assert (added.status, added.fields) == (422, ["hooks.onMissed.jobId"])
    assert api.get(place).json["revision"] == 1
    assert api("PATCH", place, {"errorAction": {"type": "job", "jobId": api.create()["id"]}}).status == 200
