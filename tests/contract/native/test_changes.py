"""The change log over HTTP: who, when, what became what."""

from __future__ import annotations

import pytest

from tests.contract.calls import CANARY
from tests.contract.native.api import JOB


def changes(api, made, query=""):
    reply = api.get(f"/v1/jobs/{made['id']}/changes", query=query)
    assert reply.status == 200, reply.text
    return reply.json["items"]


def lines(entry):
    return [(each["scheduleId"], each["path"], each["old"], each["new"]) for each in entry["changes"]]


def test_each_change_shows_who_made_it_how_and_each_old_and_new_value(api):
    made = api.create(schedules=[{"name": "hourly", "cron": "0 * * * *"}])
    (schedule,) = made["schedules"]
    place = f"/v1/jobs/{made['id']}"
    api("PATCH", place, {"description": "for finance", "action": {"url": "https://example.org/other"}})
    api("PATCH", f"{place}/schedules/{schedule['id']}", {"cron": "30 * * * *"})
    api("POST", f"{place}/pause", {"note": "holidays", "until": "2098-01-01T00:00:00Z"})
    api("POST", f"{place}/resume")

    resumed, paused, timed, patched, created = changes(api, made)

    assert [each["operation"] for each in (created, patched, timed, paused, resumed)] == [
        *("create", "patch", "patch_schedule", "pause", "resume"),
    ]
    assert [each["revision"] for each in (created, patched, timed, paused, resumed)] == [1, 2, 3, 4, 5]
    assert {each["actor"].split(".")[0] for each in changes(api, made)} == {"acme"}
    assert lines(created) == []
    assert lines(patched) == [
        (None, "action.url", made["action"]["url"], "https://example.org/other"),
        (None, "description", None, "for finance"),
    ]
    assert lines(timed) == [(schedule["id"], "cron", "0 * * * *", "30 * * * *")]
    ((_, path, old, pause),) = lines(paused)
    assert (path, old, pause["note"], pause["until"]) == ("pause", None, "holidays", "2098-01-01T00:00:00Z")
    assert lines(resumed) == [(None, "pause", pause, None)]


def test_a_provider_is_named_as_provider(api):
    made = api.create()
    headers = {"Sweephand-Tenant": "acme"}
    api("POST", f"/v1/jobs/{made['id']}/deactivate", caller="provider", headers=headers)

    assert changes(api, made)[0]["actor"].startswith("provider.")


def test_the_earlier_job_is_included_on_request(api):
    made = api.create(
        schedules=[{"name": "a", "cron": "0 * * * *", "payload": {"n": 1}}, {"name": "b", "every": "P1D"}]
    )
    place = f"/v1/jobs/{made['id']}"
    read = api.get(place, query="include=schedules").json
    wanted = {**JOB, "name": "other", "schedules": [{"name": "b", "every": "P1D"}, {"name": "c", "every": "P2D"}]}
    assert api("PUT", place, wanted).status == 200

    entry, created = changes(api, made, "include=before")

    assert created["before"] is None
    assert entry["before"]["name"] == read["name"]
    assert entry["before"]["action"] == read["action"]
    ((_, _, nothing, new), (gone, _, old, none)) = [line for line in lines(entry) if line[1] is None]
    assert (gone, none, nothing, new["name"]) == (read["schedules"][0]["id"], None, None, "c")
    assert (old["name"], old["payload"]) == ("a", {"n": 1})
    assert [each["name"] for each in entry["before"]["schedules"]] == ["a"]


def test_payloads_are_logged_as_they_were_and_long_ones_are_cut(api):
    made = api.create(action={"type": "http", "url": "https://example.org/", "payload": {"n": 1.10}})
    place = f"/v1/jobs/{made['id']}"
    api("PATCH", place, {"action": {"payload": {"n": 1.2}}})
    api("PATCH", place, {"action": {"payload": {"text": "x" * 5_000}}})

    long, short, _ = changes(api, made)

    assert [(each["path"], each["cut"]) for each in long["changes"]] == [("action.payload", True)]
    assert len(long["changes"][0]["new"]) == 4_000
    assert lines(short) == [(None, "action.payload", {"n": 1.1}, {"n": 1.2})]


def test_secrets_are_masked_in_the_log_and_a_new_secret_is_mentioned(api):
    authentication = {"type": "basic", "username": "me", "password": f"{CANARY} 1"}
    made = api.create(action={"type": "http", "url": "https://example.org/", "authentication": authentication})
    place = f"/v1/jobs/{made['id']}"
    api("PATCH", place, {"action": {"authentication": {"password": f"{CANARY} 2"}}})

    entry = changes(api, made, "include=before")[0]

    assert lines(entry) == [(None, "secrets", "***", "***")]
    assert entry["before"]["action"]["authentication"] == {**authentication, "password": "***"}


def test_the_log_is_read_page_by_page(api):
    made = api.create()
    for n in range(4):
        api("PATCH", f"/v1/jobs/{made['id']}", {"description": str(n)})

    seen, cursor = [], None
    while True:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = api.get(f"/v1/jobs/{made['id']}/changes", query=query).json
        seen += [each["revision"] for each in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break

    assert seen == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("query", "field"), [("include=after", "include"), ("limit=0", "limit"), ("cursor=x", "cursor"), ("x=1", "x")]
)
def test_an_invalid_query_is_refused(api, query, field):
    made = api.create()

    refused = api.get(f"/v1/jobs/{made['id']}/changes", query=query)

    assert (refused.status, refused.fields) == (400, [field])


def test_another_tenants_log_is_not_found(api):
    made = api.create()

    assert api.get(f"/v1/jobs/{made['id']}/changes", caller="globex").status == 404
