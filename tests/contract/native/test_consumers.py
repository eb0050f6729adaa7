"""Consumers: their leases and starts over HTTP, and the members of an action that name them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.instants import text
from tests.unit.flow.common import MINUTE, NOON

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


def test_a_consumer_takes_its_lease_starts_is_live_and_gives_it_back(api):
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


def test_two_processes_cannot_be_one_consumer(api):
    take(api)

    second, started = take(api, "b"), start(api, "b")
    given_back = api("DELETE", LEASE, query="holder=b")
    api.stage.pass_time(91)
    later = take(api, "b")

    assert {(each.status, each.code) for each in (second, started, given_back)} == {(409, "CONSUMER_TAKEN")}
    assert "a holds the lease of this consumer until" in second.json["detail"]
    assert (later.status, later.json["holder"], later.json["state"]) == (200, "b", "AWAY")


def test_a_heartbeat_keeps_the_state_and_one_that_comes_late_loses_it(api):
    take(api, seconds=30)
    start(api)
    api.stage.run(20)
    in_time = take(api, seconds=30)
    api.stage.pass_time(31)
    late = take(api, seconds=30)

    assert (in_time.json["state"], late.json["state"]) == ("LIVE", "AWAY")


def test_a_start_without_a_lease_is_refused_and_a_repeated_one_is_not(api):
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


def test_giving_back_what_is_over_or_unknown(api):
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
def test_a_lease_that_cannot_be_read_is_refused(api, body, field):
    refused = api("PUT", LEASE, body)

    assert (refused.status, refused.fields) == (422, [field])
    assert api.get(PLACE).status == 404


def test_a_name_that_no_path_could_have_is_refused(api):
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
def test_an_action_whose_consumer_cannot_be_is_refused(api, members, field):
    refused = api("POST", "/v1/jobs", job(**members))

    assert (refused.status, refused.fields) == (422, [field])


def test_what_a_job_says_of_its_consumer_is_shown(api):
    made = api.create(job(missed={"mode": "latest"}))

    plain = api.create({"action": {"type": "event"}, "name": "plain"})

    assert made["action"]["consumer"] == "billing"
    assert made["action"]["missed"] == {"mode": "latest", "keepSeconds": 604_800, "limit": 100}
    assert (plain["action"]["consumer"], plain["action"]["missed"]) == (None, None)


def test_lists_of_what_waits_show_held_runs_in_order(api):
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


def test_consumers_are_listed_by_name_and_only_to_their_tenant(api):
    for name in ("b", "a", "c"):
        api("PUT", f"/v1/consumers/{name}/lease", {"holder": "x"})

    first = api.get("/v1/consumers", query="limit=2").json
    rest = api.get("/v1/consumers", query={"limit": 2, "cursor": first["nextCursor"]}).json
    foreign = api("GET", "/v1/consumers/a", caller="globex")

    assert [each["name"] for each in (*first["items"], *rest["items"])] == ["a", "b", "c"]
    assert (foreign.status, api("GET", "/v1/consumers", caller="globex").json["items"]) == (404, [])
