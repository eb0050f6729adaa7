"""Headers with the service's name: each is read or refused, by every facade."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.actions.run_headers import facts, headers
from sweephand.facades.api import OWN_HEADERS
from tests.contract.azure.api import COLLECTION
from tests.contract.native.api import JOB
from tests.contract.test_one_meter import Meters, apis
from tests.unit.actions.test_http import CALL

__all__ = ["apis"]


@pytest.mark.parametrize("name", ["Sweephand-Reason", "sweephand-tennant", "SWEEPHAND-NOTE"])
def test_an_unknown_header_with_the_services_name_is_refused_and_nothing_is_written(apis: Meters, name: str) -> None:
    asked = {name: "by hand"}
    before = len(apis.native.picture())

    replies = [
        apis.native("POST", "/v1/jobs", JOB, headers=asked),
        apis.native.get("/v1/jobs", headers=asked),
        apis.azure("PUT", COLLECTION, {"location": "x", "properties": {}}, headers=asked),
        apis.sap("POST", "/jobs", {"name": "x", "action": "https://e.org", "schedules": []}, headers=asked),
    ]

    for reply in replies:
        assert reply.status == 400
        assert f"{name.title()} is not a header of this path" in reply.text
    rows = [row for row in apis.native.picture() if "RATE#" not in row]
    assert len(rows) <= before


def test_a_job_can_call_this_api_with_all_headers_of_a_call(apis: Meters) -> None:
    sent = {name.lower() for name in facts(CALL)} | {name.lower() for name in headers("sweephand", CALL)}

    assert sent <= OWN_HEADERS
    calling = dict.fromkeys(sent - {"sweephand-callback-token"}, "1")
    assert apis.native.get("/v1/jobs", headers=calling).status == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/pause", {}),
        ("POST", "/resume", {}),
        ("POST", "/deactivate", {}),
        ("POST", "/activate", {}),
        ("PATCH", "", {"description": "new"}),
        ("PUT", "", {**JOB, "description": "new"}),
        ("POST", "/schedules", {"every": "PT1H"}),
        ("POST", "/schedules/{schedule}/deactivate", {}),
        ("DELETE", "/schedules/{schedule}", None),
    ],
)
def test_the_reason_of_a_change_is_in_the_change_log(apis: Meters, method: str, path: str, body: Any) -> None:
    made = apis.native.create(JOB)
    place = f"/v1/jobs/{made['id']}"
    if path in {"/resume", "/activate"}:
        apis.native("POST", place + {"/resume": "/pause", "/activate": "/deactivate"}[path])

    where = place + path.format(schedule=made["schedules"][0]["id"])
    done = apis.native(method, where, body, headers={"Sweephand-Reason": "the target is being moved"})

    assert done.status < 300, done.text
    newest, *_, created = apis.native.get(f"{place}/changes").json["items"]
    assert (newest["reason"], created["reason"]) == ("the target is being moved", None)


def test_explain_gives_the_reason_of_whoever_deactivated_the_job(apis: Meters) -> None:
    made = apis.native.create(JOB, schedules=[{"every": "PT1M"}])
    place, schedule = f"/v1/jobs/{made['id']}", made["schedules"][0]["id"]
    apis.native("POST", f"{place}/deactivate", headers={"Sweephand-Reason": "holidays"})
    apis.native.stage.run(120)

    at = apis.native.stage.clock.now().replace(second=1, microsecond=0)
    said = apis.native.get(f"{place}/schedules/{schedule}/explain", query={"at": f"{at:%Y-%m-%dT%H:%M:%SZ}"}).json

    assert said["switchedOff"]["note"] == "holidays"


@pytest.mark.parametrize("reason", ["", "x" * 1_001, "a\tb"])
def test_a_reason_that_cannot_be_kept_is_refused(apis: Meters, reason: str) -> None:
    made = apis.native.create(JOB)

    refused = apis.native("POST", f"/v1/jobs/{made['id']}/pause", headers={"Sweephand-Reason": reason})

    assert (refused.status, refused.fields) == (400, ["Sweephand-Reason"])
    assert apis.native.get(f"/v1/jobs/{made['id']}").json["pause"] is None
