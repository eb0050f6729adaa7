"""A tenant that is made under the name of a deleted one sees nothing of it: in no list, in no file, by no id."""

from __future__ import annotations

import pytest

from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.server.facades.sap.routes import SapApi
from tests.contract.calls import basic, event
from tests.contract.native.api import Api
from tests.support.endpoint import OK

FAILED = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=500, answer="of the former tenant")
ACTING = {"sweephand-tenant": "acme"}
LISTS = ("/v1/runs", "/v1/runs?state=ERROR", "/v1/runs?state=SUCCESS", "/v1/errors", "/v1/errors?state=ARCHIVED")


def job_of(api: Api, *, waits: bool = False) -> dict[str, object]:
    at = api.stage.clock.now().replace(microsecond=0).isoformat()
    return api.create(
        action={"type": "http", "url": "https://example.org/x"},
        schedules=[{"at": at}],
        policies={"callbackToken": True} if waits else {},
    )


def history(api: Api) -> list[dict[str, object]]:
    """Runs of the tenant that failed, succeeded and wait; all that its owner could ask for by id."""
    api.stage.endpoint.script = [lambda _: FAILED, lambda _: OK, lambda _: Outcome(Verdict.ACCEPTED)]
    for n in range(3):
        job_of(api, waits=n == 2)
        api.stage.run(5)
    received = api.stage.endpoint.received[-3:]
    found = [api.get(f"/v1/runs/{each.run_id}").json for each in received]
    assert {run["state"] for run in found} == {"ERROR", "SUCCESS", "ACK_RECVD"}
    return [{**run, "token": each.call.callback_token} for run, each in zip(found, received, strict=True)]


def end_and_begin_again(api: Api) -> None:
    """Deletes the tenant, and creates it again as soon as its name is free."""
    api("DELETE", "/v1/tenants/acme", caller="provider")
    while api.get("/v1/tenants/acme", caller="provider").status != 404:
        api.stage.clock.advance(1)
        api.stage.deliver_all()
    assert api("POST", "/v1/tenants", {"tenant": "acme"}, caller="provider").status == 201
    made = api("POST", "/v1/credentials", {}, caller="provider", headers=ACTING).json
    api.credentials["acme"] = basic(made["clientId"], made["secret"])


def answers(api: Api, run: dict[str, object]) -> dict[str, int]:
    """Returns the answers by what is asked about the run: the status, of the tenant and of the provider for it."""
    path = f"/v1/runs/{run['id']}"
    asked = {
        "read": ("GET", path, None),
        "cancel": ("POST", f"{path}/cancel", None),
        "rerun": ("POST", f"{path}/rerun", {}),
        "result": ("PUT", f"{path}/result", {"success": True}),
        "redrive": ("POST", "/v1/errors:redrive", {"runs": [run["id"]], "dryRun": True}),
    }
    found = {}
    for name, (method, place, body) in asked.items():
        own = api(method, place, body)
        for_it = api(method, place, body, caller="provider", headers=ACTING)
        assert own.status == for_it.status, name
        found[name] = own.status
    return found


@pytest.mark.parametrize("seconds", [0, 1, 29, 31, 100])
def test_no_list_shows_anything_of_the_former_tenant(api, seconds):
    history(api)
    end_and_begin_again(api)

    api.stage.run(seconds)

    for path in LISTS:
        assert api.get(path.partition("?")[0], query=path.partition("?")[2]).json["items"] == [], path


def test_a_schedule_id_of_the_former_tenant_lists_no_runs(api):
    runs = history(api)
    end_and_begin_again(api)

    for run in runs:
        assert api.get("/v1/runs", query={"scheduleId": run["scheduleId"]}).json["items"] == []
        assert api.get("/v1/runs", query={"jobId": run["jobId"]}).status == 404


def test_no_id_of_the_former_tenant_finds_anything(api):
    runs = history(api)
    end_and_begin_again(api)

    for run in runs:
        found = answers(api, run)
        assert {name: found[name] for name in ("read", "cancel", "rerun", "result")} == dict.fromkeys(
            ("read", "cancel", "rerun", "result"), 404
        )


def test_the_token_of_a_former_tenants_run_is_refused(api):
    (waiting,) = [run for run in history(api) if run["state"] == "ACK_RECVD"]
    end_and_begin_again(api)

    headers = {"sweephand-callback-token": waiting["token"]}
    reply = api("PUT", f"/v1/runs/{waiting['id']}/result", {"success": True}, caller=None, headers=headers)

    assert reply.status == 404


def test_runs_of_jobs_deleted_long_before_stay_hidden(api):
    runs = history(api)
    for run in runs:
        assert api("DELETE", f"/v1/jobs/{run['jobId']}").status == 204
    api.stage.run(200)
    end_and_begin_again(api)
    api.stage.run(200)

    assert [api.get(f"/v1/runs/{run['id']}").status for run in runs] == [404] * 3


def test_an_error_group_of_the_former_tenant_is_unknown(api):
    history(api)
    (group,) = api.get("/v1/errors").json["items"]
    end_and_begin_again(api)

    assert api.get(f"/v1/errors/{group['id']}").status == 404
    assert api.get(f"/v1/errors/{group['id']}/runs").status == 404


def test_a_late_failure_of_the_former_tenant_is_no_error_of_the_new_one(api):
    job_of(api)

    def fails_late(_call: object) -> Outcome:
        end_and_begin_again(api)
        return FAILED

    api.stage.endpoint.script = [fails_late]
    api.stage.deliver_all()
    api.stage.run(300)

    assert api.get("/v1/errors").json["items"] == []
    assert api.get("/v1/runs").json["items"] == []


def test_the_new_tenant_sees_its_own_runs_at_once(api):
    history(api)
    end_and_begin_again(api)

    mine = history(api)

    assert [api.get(f"/v1/runs/{run['id']}").status for run in mine] == [200] * 3
    listed = {run["id"] for run in api.get("/v1/runs").json["items"]}
    assert listed == {run["id"] for run in mine if run["state"] != "SUCCESS"}


def test_the_sap_facade_does_not_show_the_former_tenants_jobs_and_runs(api):
    sap = SapApi(api.stage.world, api.facade.guard, api.facade.door)

    def asked(method: str, path: str, body: str | None = None) -> dict[str, object]:
        headers = {"authorization": api.credentials["acme"], "content-type": "application/json"}
        return sap.handle(event(method, path, "", headers, body), "a-request")

    body = (
        '{"name": "j", "action": "https://example.org/x", "active": true, "httpMethod": "POST", '
        '"schedules": [{"repeatInterval": "1 minute", "active": true, "data": {}}]}'
    )
    place = asked("POST", "/scheduler/jobs", body)["headers"]["location"]
    api.stage.run(130)
    run = api.stage.endpoint.received[-1]
    owner, uuid = run.run_id.split("_")
    end_and_begin_again(api)

    for path in (place, f"{place}/schedules/{owner}/runs", f"{place}/schedules/{owner}/runs/{uuid}"):
        assert asked("GET", path)["statusCode"] == 404, path


def test_lists_of_a_tenant_with_a_new_name_are_complete(api):
    """Not even a run that was planned before its tenant was made."""
    api.stage.endpoint.script = [lambda _: FAILED]
    past = (api.stage.clock.now().replace(microsecond=0)).isoformat()
    api.create(schedules=[{"at": past}], policies={"onPastStart": "run_now"})
    api.stage.run(5)

    assert len(api.get("/v1/runs").json["items"]) == 1
