"""No member that the native API has set on a job of this facade is lost by a request that does not speak of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.contract.native.filled import PROOFS, differences, settable
from tests.contract.native.test_every_member import filling, furnish, read
from tests.contract.sap.api import Sap

MODES = {
    "sapCron": {"cron": "* * 1 * 2 30 0"},
    "time": {"time": "2027-04-01T09:00:00Z"},
    "every": {"repeatInterval": "1 month"},
    "repeatAt": {"repeatAt": "4.40pm"},
}
"""Members by the native notation: what makes such a schedule here."""
OF_CALENDAR_DAYS = {"dstGap", "dstOverlap", "monthOverflow", "calendars"}
"""Members that do not act on steps of elapsed time."""
OWN = {"name", "collection", "startTime", "endTime", "align", *MODES}
"""Members that this facade keeps to itself: it says them in its own words, or has one value for all jobs."""


def made(sap: Sap, turn: int, kind: str = "http") -> tuple[dict[str, Any], str]:
    """Makes a job of this facade that has every member. Returns its answer and its native id."""
    job = sap.create(*({**mode, "active": False} for mode in MODES.values()))
    (row,) = sap.native.get("/v1/jobs", query="collection=sap").json["items"]
    place = f"/v1/jobs/{row['id']}"
    fill = filling(sap.native, turn)
    members = {name: value for name, value in fill.job().items() if name not in {*OWN, "schedules"}}
    if kind == "http":
        members["action"] = members["errorAction"]
    members["policies"].pop("onNoResult", None)
    reply = sap.native("PATCH", place, _in_place_of(read(sap.native, row["id"]), members))
    assert reply.status == 200, reply.text
    for schedule in read(sap.native, row["id"])["schedules"]:
        (notation,) = MODES.keys() & schedule.keys()
        wanted = fill.schedule(notation)
        changed = {name: value for name, value in wanted.items() if name not in OWN - {"name"}}
        if notation == "every":
            changed = {name: value for name, value in changed.items() if name not in OF_CALENDAR_DAYS}
        changed["policies"].pop("onNoResult", None)
        reply = sap.native("PATCH", f"{place}/schedules/{schedule['id']}", changed)
        assert reply.status == 200, reply.text
        shown = reply.json
        assert not [*differences(changed, shown)]
    return job, row["id"]


def _in_place_of(there: Mapping[str, Any], members: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a merge patch that leaves nothing of the stored action."""
    return {**members, "action": {**dict.fromkeys(there["action"]), **members["action"]}}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("turn", range(len(PROOFS)))
def test_every_verb_keeps_omitted_members(api: Sap, turn: int) -> None:
    furnish(api.native)
    job, native = made(api, turn)
    place = f"/jobs/{job['_id']}"
    before = settable(read(api.native, native))
    (one, *_) = api.get(f"{place}/schedules").json["results"]
    where = f"{place}/schedules/{one['scheduleId']}"
    asked = api.get(place, query="displaySchedules=true").json

    for method, path, body in (
        ("PUT", place, {"description": before["description"]}),
        ("PUT", place, {"active": False, "name": job["name"]}),
        ("PUT", place, {"schedules": asked["schedules"]}),
        ("PUT", place, asked),
        ("PUT", where, {"description": "by its facade"}),
        ("PUT", where, {"active": False}),
        ("POST", f"{place}/schedules/activationStatus", {"activationStatus": False}),
    ):
        reply = api(method, path, body)
        assert reply.status == 200, reply.text
        assert settable(read(api.native, native)) == before, (method, path, body)


def test_sent_members_change_and_the_rest_of_the_action_is_kept(api: Sap) -> None:
    furnish(api.native)
    job, native = made(api, PROOFS.index("none"))
    before = settable(read(api.native, native))

    assert api("PUT", f"/jobs/{job['_id']}", {"httpMethod": "PUT", "user": "joe", "password": "canary"}).status == 200

    after = settable(read(api.native, native))
    joe = {"type": "basic", "username": "joe", "password": "***"}
    assert after["action"] == {**before["action"], "method": "PUT", "authentication": joe}
    assert {**after, "action": before["action"]} == before


def test_a_job_whose_action_is_no_longer_http_is_still_shown_and_changed(api: Sap) -> None:
    job = api.create({"repeatInterval": "1 hour"})
    place = f"/jobs/{job['_id']}"
    (row,) = api.native.get("/v1/jobs").json["items"]
    there = read(api.native, row["id"])
    event = {**dict.fromkeys(there["action"]), "type": "event", "detailType": "due"}
    assert api.native("PATCH", f"/v1/jobs/{row['id']}", {"action": event}).status == 200

    shown = api.get(place).json
    kept = api("PUT", place, {"description": "kept"})

    assert (shown["action"], shown["httpMethod"], shown["user"]) == ("", "", None)
    assert kept.status == 200
    action = read(api.native, row["id"])["action"]
    assert (action["type"], action["detailType"]) == ("event", "due")
    assert api("PUT", place, {"action": "https://example.org/again"}).status == 200
    assert api.get(place).json["action"] == "https://example.org/again"
    assert api.get(place).json["httpMethod"] == "POST"
