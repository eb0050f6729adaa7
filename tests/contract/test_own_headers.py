"""Headers with the service's name: each is read or refused, by every facade."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.domain.event import EventType
from sweephand.server.actions.run_headers import facts, headers
from sweephand.server.facades.api import OWN_HEADERS
from tests.contract.azure.api import COLLECTION
from tests.contract.native.api import JOB
from tests.contract.test_one_meter import Meters, apis
from tests.unit.server.actions.test_http import CALL

__all__ = ["apis"]


@pytest.mark.parametrize("name", ["Sweephand-Reason", "sweephand-tennant", "SWEEPHAND-NOTE"])
def test_an_unknown_header_with_the_services_name_is_refused_and_nothing_is_written(apis: Meters, name: str) -> None:
    asked = {name: "by hand"}
    before = len(apis.native.picture())

    replies = [
        apis.native("POST", "/v1/collections", {"name": "new"}, headers=asked),
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


MOVED = {"Sweephand-Reason": "the target is being moved"}


def test_the_reason_of_a_creation_is_in_the_change_log(apis: Meters) -> None:
    made = apis.native("POST", "/v1/jobs", JOB, headers=MOVED).json

    (created,) = apis.native.get(f"/v1/jobs/{made['id']}/changes").json["items"]
    assert (created["operation"], created["reason"]) == ("create", "the target is being moved")


@pytest.mark.parametrize("keyed", [{}, {"Idempotency-Key": "k"}], ids=["at once", "as an operation"])
@pytest.mark.parametrize("verb", ["pause", "deactivate", "resume", "activate"])
def test_the_reason_of_a_change_of_many_jobs_is_in_each_change_log(
    apis: Meters, verb: str, keyed: dict[str, str]
) -> None:
    places = [f"/v1/jobs/{apis.native.create(JOB, tags=['t'])['id']}" for _ in range(2)]
    for place in places:
        before = {"resume": "pause", "activate": "deactivate"}.get(verb)
        if before is not None:
            apis.native("POST", f"{place}/{before}")

    query = {"tag": "t", "expectedCount": "2"}
    done = apis.native("POST", f"/v1/jobs:{verb}", query=query, headers={**MOVED, **keyed})
    apis.native.stage.run(60)

    assert done.status < 300, done.text
    for place in places:
        newest = apis.native.get(f"{place}/changes").json["items"][0]
        assert (newest["operation"], newest["reason"]) == (verb, "the target is being moved")


def test_the_reason_of_an_applied_list_is_in_the_change_log_of_its_jobs(apis: Meters) -> None:
    apis.native("PUT", "/v1/job-sets/billing", {"jobs": [{**JOB, "key": "a"}]}, headers=MOVED)

    (job,) = apis.native.get("/v1/jobs").json["items"]
    (applied,) = apis.native.get(f"/v1/jobs/{job['id']}/changes").json["items"]
    assert applied["reason"] == "the target is being moved"


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("way", ["job", "jobs", "set", "schedule"])
def test_the_reason_of_a_delete_is_in_the_rows_that_it_ends_and_in_its_event(
    apis: Meters, way: str, many: bool
) -> None:
    native = apis.native
    native("PATCH", "/v1/collections/default", {"events": "all"})
    schedules = [{"every": "PT1S" if many else "PT1H"}]
    native("PUT", "/v1/job-sets/billing", {"jobs": [{**JOB, "key": "a", "tags": ["t"], "schedules": schedules}]})
    (job,) = native.get("/v1/jobs", query={"include": "schedules"}).json["items"]
    run = native("POST", f"/v1/jobs/{job['id']}/run", {"scheduleId": job["schedules"][0]["id"]}).json["runId"]
    native.stage.pass_time(300)  # nothing is sent or called meanwhile

    path, query = {
        "job": (f"/v1/jobs/{job['id']}", {}),
        "jobs": ("/v1/jobs", {"tag": "t", "expectedCount": "1"}),
        "set": ("/v1/job-sets/billing", {}),
        "schedule": (f"/v1/jobs/{job['id']}/schedules/{job['schedules'][0]['id']}", {}),
    }[way]
    done = native("DELETE", path, query=query, headers=MOVED)
    native.stage.run(300)

    assert done.status < 300, done.text
    ended = [native.get(f"/v1/runs/{run}").json]
    ended += native.get("/v1/runs", query={"scheduleId": job["schedules"][0]["id"]}).json["items"] if many else []
    assert len(ended) > many
    for each in ended:
        assert each["state"] == "CANCELLED", each
        assert each["message"].endswith("the target is being moved"), each
    if way != "schedule":
        told = native.stage.bus.only(EventType.JOB_DELETED)
        assert told["reason"] == "the target is being moved"
        assert f"{told['actor']}: {told['reason']}" in ended[0]["message"]


def test_the_reason_of_a_cancelled_run_is_its_message(apis: Meters) -> None:
    made = apis.native.create(JOB)
    run = apis.native("POST", f"/v1/jobs/{made['id']}/run").json["runId"]

    apis.native("POST", f"/v1/runs/{run}/cancel", headers=MOVED)

    message = apis.native.get(f"/v1/runs/{run}").json["message"]
    assert message.startswith("cancelled by ")
    assert message.endswith(": the target is being moved")


def test_explain_gives_the_reason_of_whoever_deactivated_the_job(apis: Meters) -> None:
    made = apis.native.create(JOB, schedules=[{"every": "PT1M"}])
    place, schedule = f"/v1/jobs/{made['id']}", made["schedules"][0]["id"]
    apis.native("POST", f"{place}/deactivate", headers={"Sweephand-Reason": "holidays"})
    apis.native.stage.run(120)

    at = apis.native.stage.clock.now().replace(second=1, microsecond=0)
    said = apis.native.get(f"{place}/schedules/{schedule}/explain", query={"at": f"{at:%Y-%m-%dT%H:%M:%SZ}"}).json

    assert said["switchedOff"]["note"] == "holidays"


@pytest.mark.parametrize("reason", ["", "x" * 501, "a\tb"])
def test_a_reason_that_cannot_be_kept_is_refused(apis: Meters, reason: str) -> None:
    made = apis.native.create(JOB)

    refused = apis.native("POST", f"/v1/jobs/{made['id']}/pause", headers={"Sweephand-Reason": reason})

    assert (refused.status, refused.fields) == (400, ["Sweephand-Reason"])
    assert apis.native.get(f"/v1/jobs/{made['id']}").json["pause"] is None
