"""Things that need somebody: each with its reason in words and the next step, and the lag of due rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.server.actions.call import Call
from sweephand.server.facades.native.overview import attention
from sweephand.server.flow.operations import verbs
from sweephand.server.store.flow_keys import circuits
from tests.contract.native.api import JOB, OTHER, TENANT, Api
from tests.support.endpoint import DOWN, OK, WRONG

MINUTES = {"name": "minutes", "cron": "* * * * *"}


def job(*schedules: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"action": JOB["action"], "schedules": list(schedules), **members}


def needs(api: Api, caller: str = TENANT) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get("/v1/attention", caller=caller).json["items"]
    return found


def test_nothing_needs_attention_while_all_is_well(api: Api) -> None:
    api.create(job(MINUTES))
    api.stage.run(190)

    found = api.get("/v1/attention").json

    assert (found["items"], found["itemsLeftOut"], found["oldestDueAt"], found["behindSeconds"]) == ([], 0, None, 0)


def test_failed_runs_need_attention_until_they_are_archived(api: Api) -> None:
    made = api.create(job(MINUTES, name="nightly"))
    api.stage.endpoint.script = [WRONG, WRONG]
    api.stage.run(150)

    (item,) = needs(api)
    shown = api.get(item["nextStep"]["href"]).json
    assert api("POST", f"/v1/errors/{item['id']}/archive").status == 200

    assert (item["kind"], item["name"], item["jobId"], item["count"]) == ("errors", "nightly", made["id"], 2)
    assert item["sentence"] == "nightly failed 2 times: the target answered with status 404."
    assert (item["reason"], item["nextStep"]["verb"], shown["id"]) == ("HTTP_STATUS", "redrive", item["id"])
    assert needs(api) == []


def test_a_failure_without_an_answer_is_described_in_the_words_of_the_last_run(api: Api) -> None:
    api.create(job(MINUTES, name="nightly"))
    api.stage.endpoint.script = [replace(DOWN, message=f"no connection to 10.0.0.{n}:443: refused") for n in (1, 2)]
    api.stage.run(150)

    (item,) = needs(api)
    group = api.get(item["nextStep"]["href"]).json

    assert item["sentence"] == "nightly failed 2 times: no connection to 10.0.0.2:443: refused."
    assert group["message"] == "no connection to #.#.#.#:#: refused"
    assert group["lastMessage"] == "no connection to 10.0.0.2:443: refused"


def test_errors_that_were_run_again_need_no_attention(api: Api) -> None:
    api.create(job({"at": "2027-03-01T12:01:00Z"}))
    api.stage.endpoint.script = [WRONG]
    api.stage.run(90)
    (failed,) = api.get("/v1/runs").json["items"]
    assert [each["kind"] for each in needs(api)] == ["errors", "jobs"]
    api("POST", f"/v1/runs/{failed['id']}/rerun")
    api.stage.run(5)

    assert "errors" not in [each["kind"] for each in needs(api)]


def test_stopped_long_work_needs_attention(api: Api) -> None:
    begun = api("POST", "/v1/runs:export", {"format": "csv"}).json
    operation = verbs.find(api.stage.world, TENANT, begun["id"])
    verbs.give_up(api.stage.world, operation, "the disk is full")

    (item,) = needs(api)

    assert (item["kind"], item["id"]) == ("operation", begun["id"])
    assert item["sentence"] == "The operation export runs stopped: the disk is full."
    assert item["nextStep"]["href"] == f"/v1/operations/{begun['id']}"


def test_paused_flow_keys_and_flow_keys_with_missing_targets_need_attention(api: Api) -> None:
    for name in ("paused", "gone", "well"):
        assert api("POST", "/v1/flow-keys", {"name": name, "circuit": {"failures": 3}}).status == 201
    api("POST", "/v1/flow-keys/paused/pause", {"note": "stocktaking"})
    table, now = api.stage.world.table, api.stage.clock.now()
    circuits.count_failure(table, TENANT, "well", "https://x.org", "CONNECT", now)
    circuits.count_failure(table, TENANT, "gone", "https://x.org", "CONNECT", now)
    circuits.open_circuit(table, TENANT, "gone", "https://x.org", now, now + timedelta(seconds=9))

    circuit, paused = needs(api)

    assert (circuit["kind"], circuit["id"], circuit["count"], circuit["reason"]) == ("circuit", "gone", 1, "CONNECT")
    assert circuit["sentence"].startswith("1 target under the flow key gone cannot be reached")
    assert (paused["kind"], paused["nextStep"]["verb"]) == ("flowKey", "resume")
    assert paused["sentence"] == "The flow key paused is paused, and the runs of its jobs wait: stocktaking"


def test_an_absent_consumer_needs_attention_once_events_wait(api: Api) -> None:
    api("POST", "/v1/jobs", {"action": {"type": "event", "consumer": "billing"}, "schedules": [MINUTES]})
    before = needs(api)
    api.stage.run(130)
    (item,) = needs(api)
    api("PUT", "/v1/consumers/billing/lease", {"holder": "a"})
    api("POST", "/v1/consumers/billing/start", {"holder": "a"})

    assert before == []
    assert (item["kind"], item["count"], item["since"]) == ("consumer", 2, "2027-03-01T12:01:00.000Z")
    assert item["sentence"] == "The consumer billing is away, and 2 of its events wait."
    assert needs(api) == []


def test_a_disabled_collection_with_jobs_needs_attention(api: Api) -> None:
    for name in ("spare", "empty"):
        api("POST", "/v1/collections", {"name": name})
    api.create(job(collection="spare"))
    for name in ("spare", "empty"):
        api("POST", f"/v1/collections/{name}/disable")

    (item,) = needs(api)

    assert (item["kind"], item["id"], item["nextStep"]["verb"]) == ("collection", "spare", "enable")


def test_paused_jobs_and_jobs_whose_last_run_failed_are_counted(api: Api) -> None:
    for name in ("a", "b"):
        made = api.create(job(MINUTES, name=name))
        api("POST", f"/v1/jobs/{made['id']}/pause")
    api.create(job({"at": "2027-03-01T12:01:00Z"}))
    api.stage.endpoint.script = [WRONG]
    api.stage.run(90)

    found = {each["id"]: each["sentence"] for each in needs(api) if each["kind"] == "jobs"}

    assert found == {"FAULTED": "1 job is over, because the last run failed.", "PAUSED": "2 jobs are paused."}


def test_the_oldest_due_run_is_the_tenants_own(api: Api) -> None:
    api.create(job(MINUTES))
    api.stage.clock.advance(300)

    own, others = (api.get("/v1/attention", caller=caller).json for caller in (TENANT, OTHER))

    assert (own["oldestDueAt"], own["behindSeconds"]) == ("2027-03-01T12:01:00Z", 240)
    assert (others["oldestDueAt"], others["behindSeconds"]) == (None, 0)


def test_items_beyond_the_page_are_counted(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "MOST", 1)
    for name in ("a", "b"):
        api("POST", "/v1/flow-keys", {"name": name, "rate": {"limit": 1, "periodSeconds": 1}})
        api("POST", f"/v1/flow-keys/{name}/pause")

    found = api.get("/v1/attention").json

    assert (len(found["items"]), found["itemsLeftOut"]) == (1, 1)


def test_another_tenants_trouble_is_not_shown(api: Api) -> None:
    api.create(job(MINUTES))
    api.stage.endpoint.script = [WRONG]
    api.stage.run(70)

    assert needs(api)
    assert needs(api, OTHER) == []


def test_a_host_that_does_not_answer_is_one_item_however_many_jobs_call_it(api: Api) -> None:
    api.stage.endpoint.answer = lambda _call: DOWN
    for n in range(3):
        url = f"https://gone.example.org/{n}"
        api.create(name=f"job-{n}", action={"type": "http", "url": url, "retry": {"type": "none"}}, schedules=[MINUTES])
    api.stage.run(61)

    [item] = api.get("/v1/attention").json["items"]

    assert (item["kind"], item["id"], item["count"], item["nextStep"]["verb"]) == (
        "target",
        "gone.example.org",
        3,
        "look",
    )
    assert item["sentence"].startswith("gone.example.org does not answer: 3 runs of 3 jobs failed since 2027-03-01T")


def test_an_issuer_of_tokens_that_does_not_answer_is_named_instead_of_the_targets(api: Api) -> None:
    message = "the token endpoint: no answer within 15 s"

    def hangs(call: Call) -> Outcome:
        api.stage.clock.advance(15)
        return Outcome(Verdict.FAILED, Reason.NO_ANSWER, message=message, apart=True, issuer=True)

    api.stage.endpoint.answer = hangs
    token = {"type": "oauth2", "tokenUrl": "https://login.example/token", "clientId": "me", "secret": "s"}
    for n in range(2):
        url = f"https://works.example.org/{n}"
        api.create(action={"type": "http", "url": url, "authentication": token}, schedules=[MINUTES])
    api.stage.run(90)

    items = api.get("/v1/attention").json["items"]

    assert [item["id"] for item in items if item["kind"] == "target"] == ["https://login.example"]
    assert [item["sentence"].endswith(f"{message}.") for item in items if item["kind"] == "errors"] == [True, True]


def test_a_target_that_hangs_needs_attention_until_it_answers_even_if_no_run_has_failed_for_good(api: Api) -> None:
    def hangs(call: Call) -> Outcome:
        api.stage.clock.advance(15)
        return Outcome(Verdict.FAILED, Reason.NO_ANSWER, message="no answer within 15 s", retryable=True)

    action = {**JOB["action"], "url": "https://dead.example/a", "retry": {"type": "fixed", "delaySeconds": 600}}
    made = api.create({"action": action, "schedules": [MINUTES]})
    api.stage.endpoint.answer = hangs
    api.stage.run(120)

    (item,) = needs(api)
    schedule = made["schedules"][0]["id"]
    api.stage.pass_time(70)
    due = "2027-03-01T12:03:00Z"
    explained = api.get(f"/v1/jobs/{made['id']}/schedules/{schedule}/explain", query={"at": due}).json
    api.stage.endpoint.answer = OK
    api.stage.run(120)

    assert (item["kind"], item["id"], item["reason"]) == ("target", "https://dead.example", "NO_ANSWER")
    assert item["sentence"].startswith("https://dead.example has not answered since 2027-03-01T12:01:15Z")
    assert explained["state"] == "SCHEDULED"
    assert "waits in the slow queue, because https://dead.example has not answered" in str(explained["reasons"])
    assert needs(api) == []
