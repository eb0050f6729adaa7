"""Why an instant is an occurrence of a stored schedule or none. It is noon of 2027-03-01."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from sweephand.schedules.explain.explain_instant import REASON_CODES
from tests.contract.native.api import Api

MEMBERS = {"at", "localTime", "occurs", "reasons", "movedBy", "previous", "next"}
OUTCOME = {"state", "reason", "runId", "range", "switchedOff"}
DAILY = {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}


def place_of(api: Api, **schedule: Any) -> str:
    made = api.create(schedules=[schedule])
    return f"/v1/jobs/{made['id']}/schedules/{made['schedules'][0]['id']}"


def explain(api: Api, place: str, at: str) -> dict[str, Any]:
    found = api.get(f"{place}/explain", query={"at": at})
    assert found.status == 200
    assert found.json.keys() == MEMBERS | OUTCOME
    body: dict[str, Any] = found.json
    assert body["runId"] is None or api.get(f"/v1/runs/{body['runId']}").status == 200
    return body


def codes(body: dict[str, Any]) -> list[str]:
    found = [each["code"] for each in body["reasons"]]
    assert set(found) <= REASON_CODES.keys()
    return found


def test_an_occurrence_is_named_with_its_run_as_soon_as_it_has_one(api: Api) -> None:
    place = place_of(api, every="PT10S")
    (soon, *_) = api.get(place).json["nextRuns"]
    before = explain(api, place, soon)

    api.stage.run(15)
    after = explain(api, place, soon)

    assert (before["occurs"], codes(before)) == (True, ["MATCHES"])
    assert (before["state"], before["reason"], before["runId"]) == ("SCHEDULED", None, None)
    assert (after["occurs"], codes(after)) == (True, ["IN_LEDGER", "MATCHES"])
    assert (after["state"], after["reason"]) == ("SUCCESS", "ON_TIME")
    assert api.get(f"/v1/runs/{after['runId']}").json["plannedAt"] == soon.replace("Z", ".000Z")


def test_the_current_instant_is_explained_by_default(api: Api) -> None:
    body = api.get(f"{place_of(api, cron='0 9 * * *')}/explain").json

    assert body["at"] == "2027-03-01T12:00:00Z"
    assert (body["occurs"], body["runId"]) == (False, None)
    assert (body["previous"], body["next"]) == ("2027-03-01T09:00:00Z", "2027-03-02T09:00:00Z")


def test_each_cron_field_that_does_not_match_is_named(api: Api) -> None:
    body = explain(api, place_of(api, cron="30 2 * 6 1-5", timezone="Europe/Berlin"), "2027-03-06T03:30:00")

    assert (body["at"], body["localTime"]) == ("2027-03-06T02:30:00Z", "2027-03-06T03:30:00+01:00")
    assert [(each["code"], each["field"]) for each in body["reasons"]] == [
        ("DOES_NOT_MATCH", "hour"),
        ("DOES_NOT_MATCH", "month"),
        ("DOES_NOT_MATCH", "weekday"),
    ]
    assert [each["message"] for each in body["reasons"]] == [
        "hour: 3 is not 2",
        "month: March is not June",
        "weekday: Saturday is not Monday to Friday",
    ]


def test_a_wall_time_in_a_gap_is_explained_by_its_replacement(api: Api) -> None:
    body = explain(api, place_of(api, **DAILY), "2027-03-28T02:30:00")

    assert (body["at"], body["occurs"], codes(body)) == ("2027-03-28T01:00:00Z", True, ["IN_GAP", "MOVED_BY_GAP"])
    assert body["movedBy"] == {"rule": "dstGap", "localTime": "2027-03-28T02:30:00", "effect": "moved"}
    skipped = explain(api, place_of(api, **DAILY, dstGap="skip"), "2027-03-28T02:30:00")
    assert (skipped["occurs"], codes(skipped), skipped["runId"]) == (False, ["IN_GAP", "LEFT_OUT_BY_GAP"], None)


def test_the_other_copy_of_a_repeated_time_is_named(api: Api) -> None:
    place = place_of(api, **DAILY)

    first = explain(api, place, "2027-10-31T02:30:00")
    second = explain(api, place, "2027-10-31T01:30:00Z")

    assert (first["at"], first["occurs"]) == ("2027-10-31T00:30:00Z", True)
    assert codes(first) == ["COMES_TWICE", "CHOSEN_BY_OVERLAP"]
    assert (second["occurs"], codes(second)) == (False, ["OTHER_COPY"])


def test_the_window_and_jitter_are_named_as_reasons(api: Api) -> None:
    place = place_of(api, **DAILY, startTime="2027-04-01T00:00:00Z", endTime="2027-05-01T00:00:00Z", jitterSeconds=600)

    assert codes(explain(api, place, "2027-03-31T02:30:00")) == ["BEFORE_START"]
    assert codes(explain(api, place, "2027-05-02T02:31:00")) == ["AFTER_END", "DOES_NOT_MATCH"]
    planned = explain(api, place, "2027-04-03T02:30:00")
    assert codes(planned) == ["PUT_OFF_BY_JITTER"]
    put_off = explain(api, place, planned["next"])
    assert (put_off["occurs"], codes(put_off)) == (True, ["PUT_OFF_BY_JITTER", "MATCHES"])


def test_the_remaining_count_is_shown(api: Api) -> None:
    place = place_of(api, every="PT10S", count=4)
    first, _, third, fourth = api.get(place).json["nextRuns"]
    fifth = f"{datetime.fromisoformat(fourth) + timedelta(seconds=10):%Y-%m-%dT%H:%M:%SZ}"

    assert [explain(api, place, at)["occurs"] for at in (first, fourth, fifth)] == [True, True, False]
    assert codes(explain(api, place, fifth)) == ["COUNT_REACHED"]

    api.stage.run(15)

    assert [explain(api, place, at)["occurs"] for at in (third, fourth, fifth)] == [True, True, False]
    api.stage.run(60)
    assert (
        codes(explain(api, place, f"{api.stage.clock.now() + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"))[0]
        == "NOT_ACTIVE"
    )


def test_a_disabled_schedule_does_not_run_and_its_earlier_runs_come_from_the_ledger(api: Api) -> None:
    place = place_of(api, **DAILY)
    ahead, behind = "2027-03-02T02:30:00", "2027-02-01T02:30:00"

    before = explain(api, place, behind)
    assert (before["occurs"], codes(before), before["runId"]) == (False, ["CHANGED_SINCE"], None)
    api("POST", f"{place}/deactivate")
    off = explain(api, place, ahead)

    assert (off["occurs"], codes(off), off["runId"]) == (False, ["NOT_ACTIVE", "MATCHES"], None)
    api("POST", f"{place}/activate")
    assert explain(api, place, ahead)["occurs"] is True


@pytest.mark.parametrize("at", ["", "now", "2027-02-30T00:00:00Z", "2027-01-01", "1969-12-31T23:59:59Z", "1" * 2_000])
def test_an_invalid_instant_is_refused(api: Api, at: str) -> None:
    refused = api.get(f"{place_of(api, **DAILY)}/explain", query={"at": at})

    assert (refused.status, refused.code, refused.fields) == (400, "INVALID_QUERY", ["at"])


def test_another_tenants_schedule_and_an_unknown_one_are_not_found(api: Api) -> None:
    place = place_of(api, **DAILY)
    job, _, schedule = place.rpartition("/")
    other = schedule[:-1] + ("0" if schedule[-1] != "0" else "1")

    assert api.get(f"{job}/{other}/explain").status == 404
    assert api.get(f"{place}/explain", caller="globex").status == 404
