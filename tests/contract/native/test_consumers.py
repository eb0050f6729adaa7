"""Consumers: their leases and starts over HTTP, and the members of an action that name them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.instants import text
from sweephand.domain.schedule import Lane
from sweephand.server.flow.consumers import deletion
from sweephand.testing.service import URLS
from tests.unit.server.flow.common import MINUTE, NOON

PLACE = "/v1/consumers/billing"
LEASE, START = f"{PLACE}/lease", f"{PLACE}/start"
EACH_MINUTE = {"cron": "* * * * *"}


@pytest.fixture(autouse=True)
def _for_real(api):
    api.stage.act_for_real()


def job(**members: Any) -> dict[str, Any]:
    return {"action": {"type": "event", "consumer": "billing", **members}, "schedules": [EACH_MINUTE]}


def take(api, holder="a", **members):
    return api("PUT", LEASE, {"holder": holder, **members})


def start(api, holder="a"):
    return api("POST", START, {"holder": holder})


def test_a_consumer_takes_its_lease_starts_goes_live_and_returns_the_lease(api):
    api("POST", "/v1/jobs", job())
    api.stage.run(130)
    away = api.get(PLACE).json
    now = api.stage.clock.now()

    taken = take(api, seconds=60)
    starting = start(api)
    api.stage.run(10)
    live = api.get(PLACE).json
    released = api("DELETE", LEASE, query="holder=a")

    assert away == {
        "name": "billing",
        "state": "AWAY",
        "holder": None,
        "leaseUntil": None,
        "held": 2,
        "oldestHeldAt": text(NOON + MINUTE),
    }
    until = (now + timedelta(seconds=60)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert (taken.status, taken.json["state"], taken.json["leaseUntil"]) == (200, "AWAY", until)
    assert (starting.json["state"], live["state"], live["held"], live["holder"]) == ("STARTING", "LIVE", 0, "a")
    assert (released.status, api.get(PLACE).json["state"]) == (204, "AWAY")


def test_two_processes_cannot_hold_one_consumer(api):
    take(api)

    second, started = take(api, "b"), start(api, "b")
    given_back = api("DELETE", LEASE, query="holder=b")
    api.stage.pass_time(91)
    later = take(api, "b")

    assert {(each.status, each.code) for each in (second, started, given_back)} == {(409, "CONSUMER_TAKEN")}
    assert "a holds the lease of this consumer until" in second.json["detail"]
    assert (later.status, later.json["holder"], later.json["state"]) == (200, "b", "AWAY")


def test_a_heartbeat_keeps_the_state_and_a_late_one_loses_it(api):
    take(api, seconds=30)
    start(api)
    api.stage.run(20)
    in_time = take(api, seconds=30)
    api.stage.pass_time(31)
    late = take(api, seconds=30)

    assert (in_time.json["state"], late.json["state"]) == ("LIVE", "AWAY")


def test_a_start_without_a_lease_is_refused_and_a_repeated_start_is_accepted(api):
    unknown = start(api)
    take(api)
    first, second = start(api), start(api)
    api.stage.run(5)
    third = start(api)
    api.stage.pass_time(100)
    over = start(api)

    assert (unknown.status, unknown.code) == (404, "NOT_FOUND")
    assert [each.json["state"] for each in (first, second, third)] == ["STARTING", "STARTING", "LIVE"]
    assert (over.status, over.code) == (409, "LEASE_OVER")


def test_returning_an_expired_or_unknown_lease_is_answered(api):
    unknown = api("DELETE", LEASE, query="holder=a")
    take(api)
    twice = [api("DELETE", LEASE, query="holder=a").status for _ in range(2)]
    unnamed = api("DELETE", LEASE)

    assert (unknown.status, twice, unnamed.status, unnamed.fields) == (404, [204, 204], 400, ["holder"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "holder"),
        ({"holder": ""}, "holder"),
        ({"holder": 7}, "holder"),
        ({"holder": "a", "seconds": 9}, "seconds"),
        ({"holder": "a", "seconds": 901}, "seconds"),
        ({"holder": "a", "seconds": "90"}, "seconds"),
        ({"holder": "a", "second": 90}, "second"),
    ],
)
def test_an_unreadable_lease_is_refused(api, body, field):
    refused = api("PUT", LEASE, body)

    assert (refused.status, refused.fields) == (422, [field])
    assert api.get(PLACE).status == 404


def test_a_name_that_cannot_stand_in_a_path_is_refused(api):
    assert api("PUT", "/v1/consumers/-x/lease", {"holder": "a"}).status == 422
    assert api("GET", "/v1/consumers/-x").status == 404


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"consumer": "-x"}, "action.consumer"),
        ({"consumer": "a b"}, "action.consumer"),
        ({"consumer": ""}, "action.consumer"),
        ({"consumer": "x" * 129}, "action.consumer"),
        ({"consumer": None, "missed": {"limit": 5}}, "action.missed"),
        ({"missed": {"mode": "some"}}, "action.missed.mode"),
        ({"missed": {"limit": 0}}, "action.missed.limit"),
        ({"missed": {"limit": 1_001}}, "action.missed.limit"),
        ({"missed": {"keepSeconds": 0}}, "action.missed.keepSeconds"),
        ({"missed": {"keepSeconds": 7_776_001}}, "action.missed.keepSeconds"),
        ({"missed": {"keep": 1}}, "action.missed.keep"),
        ({"missed": "each"}, "action.missed"),
        ({"detailType": "x" * 122}, "action.detailType"),
    ],
)
def test_an_action_with_an_invalid_consumer_is_refused(api, members, field):
    refused = api("POST", "/v1/jobs", job(**members))

    assert (refused.status, refused.fields) == (422, [field])


def test_a_job_shows_the_members_of_its_consumer(api):
    made = api.create(job(missed={"mode": "latest"}))

    plain = api.create({"action": {"type": "event"}, "name": "plain"})

    assert made["action"]["consumer"] == "billing"
    assert made["action"]["missed"] == {"mode": "latest", "keepSeconds": 604_800, "limit": 100}
    assert (plain["action"]["consumer"], plain["action"]["missed"]) == (None, None)


def test_lists_of_waiting_runs_show_held_runs_in_order(api):
    made = api.create(job())
    api.stage.run(190)

    waits = api.get("/v1/runs").json["items"]
    held = api.get("/v1/runs", query="state=HELD").json["items"]
    first = api.get("/v1/runs", query="state=HELD&limit=2").json
    rest = api.get("/v1/runs", query={"state": "HELD", "limit": 2, "cursor": first["nextCursor"]}).json["items"]
    of_job = api.get("/v1/runs", query={"jobId": made["id"], "state": "HELD"}).json["items"]
    others = api.get("/v1/runs", query="state=ERROR").json["items"]

    minutes = [text(NOON + n * MINUTE) for n in (3, 2, 1)]
    for found in (waits, held, [*first["items"], *rest], of_job):
        assert [each["plannedAt"][:19] for each in found] == [each[:19] for each in minutes]
    assert {each["reason"] for each in held} == {"CONSUMER_AWAY"}
    assert others == []


def test_consumers_are_listed_by_name_and_only_for_their_own_tenant(api):
    for name in ("b", "a", "c"):
        api("PUT", f"/v1/consumers/{name}/lease", {"holder": "x"})

    first = api.get("/v1/consumers", query="limit=2").json
    rest = api.get("/v1/consumers", query={"limit": 2, "cursor": first["nextCursor"]}).json
    foreign = api("GET", "/v1/consumers/a", caller="globex")

    assert [each["name"] for each in (*first["items"], *rest["items"])] == ["a", "b", "c"]
    assert (foreign.status, api("GET", "/v1/consumers", caller="globex").json["items"]) == (404, [])


def delete(api, query="", caller="acme"):
    return api("DELETE", PLACE, query=query, caller=caller)


def test_an_unused_consumer_can_be_deleted_repeatedly(api):
    take(api)
    api("DELETE", LEASE, query="holder=a")
    foreign = delete(api, caller="globex")

    first, second = delete(api), delete(api)
    gone = api.get(PLACE), api("POST", START, {"holder": "a"}), api("DELETE", LEASE, query="holder=a")
    listed = api.get("/v1/consumers").json["items"]
    api.stage.run(2_000)
    later = delete(api)

    assert (foreign.status, foreign.code) == (404, "NOT_FOUND")
    assert [first.status, second.status] == [204, 204]
    assert ([each.status for each in gone], listed) == ([404, 404, 404], [])
    assert later.status == 404
    assert api.stage.waiting() == {}


def test_a_consumer_with_a_lease_is_deleted_only_by_force(api):
    take(api)

    with api.unchanged():
        refused = delete(api)
        unread = delete(api, "force=maybe")
    forced = delete(api, "force=true")
    api.stage.run(5)

    assert (refused.status, refused.code) == (409, "CONSUMER_TAKEN")
    assert (unread.status, unread.fields) == (400, ["force"])
    assert (forced.status, api.get(PLACE).status, start(api).status) == (204, 404, 404)
    assert (take(api, "b").status, api.get(PLACE).json["holder"]) == (200, "b")


def test_a_consumer_that_jobs_use_is_kept_and_the_refusal_names_the_first_of_them(api):
    ids = [api.create(job(), name=f"job-{n}")["id"] for n in range(7)]
    api.create({"action": {"type": "event", "consumer": "other"}}, name="other")
    api.stage.run(70)

    with api.unchanged():
        many = delete(api)
    for each in ids[1:]:
        api("DELETE", f"/v1/jobs/{each}")
    one = delete(api)
    api("DELETE", f"/v1/jobs/{ids[0]}")

    assert (many.status, many.code) == (409, "STATE_CONFLICT")
    assert f"7 jobs name the consumer billing: {', '.join(ids[:5])}, ..." in many.json["detail"]
    assert "send force=true" in many.json["detail"]
    assert f"1 job names the consumer billing: {ids[0]}. " in one.json["detail"]
    assert delete(api).status == 204


def test_deleting_a_consumer_with_too_many_jobs_to_check_needs_force(api, monkeypatch):
    monkeypatch.setattr(deletion, "MOST_JOBS", 2)
    take(api)
    api("DELETE", LEASE, query="holder=a")
    for n in range(3):
        api.create(name=f"job-{n}", schedules=[])

    refused, forced = delete(api), delete(api, "force=true")

    assert (refused.status, "more than 2 jobs" in refused.json["detail"], forced.status) == (409, True, 204)


def test_runs_held_for_a_deleted_consumer_end_and_one_event_reports_them(api):
    """Two messages that carry out the delete at once may publish the event twice, with the same content and id."""
    made = api.create(job())
    api.stage.run(190)

    first, second = delete(api, "force=true"), delete(api, "force=true")
    api.stage.run(20)

    ended = api.get("/v1/runs", query={"jobId": made["id"], "state": "MISSED"}).json["items"]
    assert (first.status, second.status) == (204, 204)
    assert {(each["reason"], each["message"]) for each in ended} == {
        ("CONSUMER_AWAY", "the consumer billing was deleted")
    }
    (told,) = {entry["Detail"]: json.loads(entry["Detail"]) for entry in api.stage.bus.of_jobs}.values()
    assert (len(ended), told["count"], told["consumer"], told["jobId"]) == (3, 3, "billing", made["id"])
    assert (told["from"], told["until"]) == (text(NOON + MINUTE), text(NOON + 3 * MINUTE))


def test_a_job_that_names_a_deleted_consumer_recreates_it_for_later_runs(api):
    made = api.create(job())
    api.stage.run(130)
    delete(api, "force=true")
    api.stage.run(10)
    between = api.get(PLACE).status

    api.stage.run(60)
    back = api.get(PLACE).json
    take(api, seconds=900)
    start(api)
    api.stage.run(2_000)

    runs = api.get("/v1/runs", query={"jobId": made["id"], "limit": 100}).json["items"]
    assert (between, back["held"], back["oldestHeldAt"]) == (404, 1, text(NOON + 3 * MINUTE))
    assert [each["state"] for each in runs[-3:]] == ["SUCCESS", "MISSED", "MISSED"]
    assert [each["state"] for each in runs[:10]] == ["HELD"] * 10  # its lease is over, and nothing was lost
    assert api.get(PLACE).json["state"] == "AWAY"


def test_a_lease_taken_during_the_delete_gets_no_earlier_runs(api):
    made = api.create(job())
    api.stage.run(130)

    delete(api, "force=true")
    take(api, seconds=900)
    start(api)
    api.stage.run(60)

    states = [each["state"] for each in api.get("/v1/runs", query={"jobId": made["id"]}).json["items"]]
    kinds = list({entry["Detail"]: entry["DetailType"] for entry in api.stage.bus.of_jobs}.values())
    assert states == ["SUCCESS", "MISSED", "MISSED"]
    assert kinds == ["job.missed.dropped", "job"]


def test_a_delete_whose_message_is_lost_continues_by_its_wake(api):
    api.create({"action": {"type": "event", "consumer": "billing"}, "schedules": [{"at": text(NOON + MINUTE)}]})
    api.stage.run(70)

    delete(api, "force=true")
    api.stage.sqs.purge(URLS[Lane.FAST])
    api.stage.run(4_000)

    assert api.get("/v1/runs", query="state=HELD").json["items"] == []
    assert len(api.stage.bus.of_jobs) == 1
    assert (delete(api).status, api.stage.waiting()) == (404, {})
