"""A secret in a usual header or in the query of a URL: sealed, shown as `***`, kept by changes, sent as given."""

from __future__ import annotations

import json

from sweephand.server.facades.sap.routes import SapApi
from tests.contract.calls import event
from tests.contract.native.api import Api

SECRET = "canary-in-a-header"
ACTION = {
    "type": "http",
    "url": f"https://example.org/x?sig={SECRET}&a=1",
    "headers": {"X-Api-Key": SECRET, "X-A": "b"},
}
SHOWN = ("https://example.org/x?sig=***&a=1", {"X-Api-Key": "***", "X-A": "b"})


def shown(action: dict[str, object]) -> tuple[object, object]:
    return action["url"], action["headers"]


def opened(api: Api) -> dict[str, str]:
    """Returns the secrets that the last call was given."""
    return dict(api.stage.endpoint.received[-1].call.secrets)


def run_it(api: Api, job: str) -> None:
    api("POST", f"/v1/jobs/{job}/run")
    api.stage.run(5)


def test_a_sealed_value_appears_in_no_row_or_answer_and_reaches_its_target(api):
    job = api.create(action=ACTION, errorAction=ACTION, hooks={"onSuccess": ACTION})

    assert shown(job["action"]) == shown(job["errorAction"]) == shown(job["hooks"]["onSuccess"]) == SHOWN
    assert SECRET not in json.dumps(api.stage.items())
    run_it(api, job["id"])
    assert opened(api) == {"url.sig": SECRET, "headers.x-api-key": SECRET}


def test_changes_that_omit_a_sealed_value_keep_it(api):
    job = api.create(action=ACTION)
    read = api.get(f"/v1/jobs/{job['id']}").json

    api("PATCH", f"/v1/jobs/{job['id']}", {"description": "other"})
    put = api("PUT", f"/v1/jobs/{job['id']}", {"name": job["name"], "action": {**ACTION, **read["action"]}})

    assert (put.status, shown(put.json["action"])) == (200, SHOWN)
    run_it(api, job["id"])
    assert opened(api) == {"url.sig": SECRET, "headers.x-api-key": SECRET}


def test_another_destination_needs_the_sealed_value_again(api):
    job = api.create(action=ACTION)

    reply = api("PATCH", f"/v1/jobs/{job['id']}", {"action": {"url": "https://elsewhere.org/x?sig=***"}})

    assert reply.status == 422
    assert any("url.sig" in field or "headers.x-api-key" in field for field in reply.fields)


def test_an_edited_rerun_cannot_bring_a_sealed_value(api):
    job = api.create(action=ACTION)
    run_it(api, job["id"])
    (run,) = api.get("/v1/runs", query={"jobId": job["id"]}).json["items"]

    for name in ("X-Api-Key", "Cookie", "Private-Token"):
        reply = api("POST", f"/v1/runs/{run['id']}/rerun", {"headers": {name: SECRET}})
        assert (reply.status, reply.fields) == (422, [f"headers.{name}"])


def test_the_sap_facade_seals_values_in_the_address_of_an_action(api):
    sap = SapApi(api.stage.world, api.facade.guard, api.facade.door)

    def asked(method: str, path: str, body: object = None) -> dict[str, object]:
        headers = {"authorization": api.credentials["acme"], "content-type": "application/json"}
        text = None if body is None else json.dumps(body)
        return sap.handle(event(method, path, "", headers, text), "a-request")

    body = {
        "name": "j",
        "action": ACTION["url"],
        "active": True,
        "httpMethod": "POST",
        "schedules": [{"repeatInterval": "1 minute", "active": True, "data": {}}],
    }
    place = asked("POST", "/scheduler/jobs", body)["headers"]["location"]
    read = json.loads(asked("GET", place)["body"])
    put = asked("PUT", place, {"action": read["action"], "description": "sent back"})

    assert (read["action"], put["statusCode"]) == (SHOWN[0], 200)
    assert SECRET not in json.dumps(api.stage.items())
    api.stage.run(130)
    assert opened(api) == {"url.sig": SECRET}
