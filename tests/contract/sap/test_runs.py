"""Runs: the log, its pages, and what asynchronous jobs report."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.server.actions import run_headers
from sweephand.server.facades.sap import runs
from tests.contract.sap.api import OTHER
from tests.support.endpoint import ACCEPTED, DOWN


def path(made):
    return f"/jobs/{made['_id']}/schedules/{made['schedules'][0]['scheduleId']}"


def test_a_planned_run_already_appears_in_the_log(api):
    made = api.create({"repeatInterval": "10 minutes"})

    (line,) = api.get(f"{path(made)}/runs").json["results"]

    assert line == {
        "runId": line["runId"],
        "runText": "",
        "httpStatus": None,
        "executionTimestamp": None,
        "scheduleTimestamp": "2027-03-01 12:10:01",
        "completionTimestamp": None,
        "runStatus": "SCHEDULED",
        "runState": "SCHEDULED",
    }
    assert api.get(f"{path(made)}/runs/{line['runId']}").json == line
    api.stage.run(660)
    assert api.get(f"{path(made)}/runs/{line['runId']}").json["runState"] == "SUCCESS"


def test_a_successful_run_appears_in_the_log(api):
    made = api.create({"repeatInterval": "10 minutes"})
    api.stage.run(660)

    planned, line = api.get(f"{path(made)}/runs").json["results"]

    assert planned["runStatus"] == "SCHEDULED"
    assert (line["runStatus"], line["runState"], line["httpStatus"]) == ("COMPLETED", "SUCCESS", 200)
    assert line["scheduleTimestamp"] == line["executionTimestamp"] == "2027-03-01 12:10:01"
    assert line["completionTimestamp"]


def test_a_run_stays_in_the_log_for_15_days_even_if_the_table_deletes_it_later(api):
    made = api.create({"repeatInterval": "8 days"})
    for _ in range(2):
        api.stage.run(120)
        api.stage.pass_time(8 * 86_400)
    api.stage.run(120)
    older = "ffffffff-ffff-8fff-bfff-ffffffffffff"
    log = f"{path(made)}/runs"
    first = api.get(log).json["results"][-1]["runId"]

    def told():
        lists = [api.get(log).json, api.get(log, query=f"next={older}").json]
        return [[line["runId"] for line in each["results"]].count(first) for each in lists], [
            api.get(f"{log}/{first}").status,
            sum(line["runState"] == "SUCCESS" for line in api.get(log).json["results"]),
            api.get(log).json["total"] - len(api.get(log).json["results"]),
        ]

    api.stage.clock.advance(7 * 86_400 - 600)
    before = told()
    api.stage.clock.advance(600)

    assert before == ([1, 1], [200, 2, 0])
    assert told() == ([0, 0], [404, 1, 0])


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=404), "REQUEST_ERROR"),
        (Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=503), "ERROR"),
        (Outcome(Verdict.FAILED, Reason.DNS, message="no address"), "REQUEST_ERROR"),
        (Outcome(Verdict.FAILED, Reason.TLS, message="bad certificate"), "REQUEST_ERROR"),
        (Outcome(Verdict.ACCEPTED, http_status=202), "ACK_RECVD"),
        (Outcome(Verdict.SILENT, message="no answer within 15 s"), "ACK_NOT_RECVD"),
    ],
)
def test_outcomes_are_translated_to_saps_states(api, outcome, state):
    made = api.create({"repeatInterval": "10 minutes"})
    api.stage.endpoint.script.append(outcome)
    api.stage.run(660)

    line = api.get(f"{path(made)}/runs").json["results"][1]

    waits = state.startswith("ACK")
    assert (line["runStatus"], line["runState"]) == ("RUNNING" if waits else "COMPLETED", state)
    assert (line["completionTimestamp"] is None) is waits
    assert line["runText"] == (outcome.message or line["runText"])


@pytest.mark.parametrize(
    ("status", "answer", "shown"),
    [
        (500, '{"error": "disk full"}', '{"error": "disk full"}'),
        (404, "x" * 5_000, "x" * 200),
        (500, None, "the target answered with status 500"),
    ],
)
def test_a_failed_run_shows_its_targets_answer(api, status, answer, shown):
    made = api.create({"repeatInterval": "10 minutes"})
    message = f"the target answered with status {status}"
    refused = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=status, message=message, answer=answer)
    api.stage.endpoint.script.append(refused)
    api.stage.run(660)

    line = api.get(f"{path(made)}/runs").json["results"][1]

    assert (line["httpStatus"], line["runText"]) == (status, shown)


@pytest.mark.parametrize(("success", "state"), [(True, "SUCCESS"), (False, "ERROR")])
def test_an_asynchronous_run_ends_with_its_reported_result(api, success, state):
    made = api.create({"repeatInterval": "10 minutes"})
    api.stage.endpoint.script.append(Outcome(Verdict.ACCEPTED, http_status=202))
    api.stage.run(660)
    run = f"{path(made)}/runs/{api.get(f'{path(made)}/runs').json['results'][1]['runId']}"

    reported = api("PUT", run, {"success": success, "message": "4711 rows"})

    line = api.get(run).json
    assert (reported.status, reported.json) == (200, {"success": True})
    assert (line["runStatus"], line["runState"], line["runText"]) == ("COMPLETED", state, "4711 rows")
    assert api("PUT", run, {"success": success, "message": "4711 rows"}).status == 200
    for message in ({}, {"message": "again"}):
        assert api("PUT", run, {"success": success, **message}).status == 200, "the same value, told otherwise"
        assert api("PUT", run, {"success": not success, **message}).status == 400
    assert api.get(run).json == line


@pytest.mark.parametrize(("status", "success"), [(200, True), (500, False), (404, False), (None, False)])
def test_a_report_equal_to_the_answer_changes_nothing(api, status, success):
    made = api.create({"repeatInterval": "10 minutes"})
    verdict = Verdict.SUCCEEDED if success else Verdict.FAILED
    reason = None if success else Reason.HTTP_STATUS if status else Reason.CONNECT
    api.stage.endpoint.script.append(Outcome(verdict, reason, http_status=status))
    api.stage.run(660)
    run = f"{path(made)}/runs/{api.get(f'{path(made)}/runs').json['results'][1]['runId']}"
    line = api.get(run).json

    assert api("PUT", run, {"success": success, "message": "told once more"}).status == 200
    assert api("PUT", run, {"success": not success}).status == 400
    assert api.get(run).json == line
    assert line["runState"] == ("SUCCESS" if success else "ERROR" if status == 500 else "REQUEST_ERROR")


@pytest.mark.parametrize("length", [1_001, 10_001, 90_000])
def test_the_beginning_of_a_long_message_is_kept(api, length):
    made = api.create({"repeatInterval": "10 minutes"})
    api.stage.endpoint.script.append(Outcome(Verdict.ACCEPTED, http_status=202))
    api.stage.run(660)
    run = f"{path(made)}/runs/{api.get(f'{path(made)}/runs').json['results'][1]['runId']}"

    assert api("PUT", run, {"success": False, "message": "begin " + "x" * length}).status == 200

    line = api.get(run).json
    assert (line["runState"], line["runText"]) == ("ERROR", "begin " + "x" * 994)


def test_a_run_without_a_report_becomes_unknown_after_the_global_timeout(api):
    made = api.create({"repeatInterval": "1 hour"})
    assert api("PUT", "/globalParameters", {"ASYNC_EXEC_TIMEOUT": "600"}).status == 200
    api.stage.endpoint.script.append(Outcome(Verdict.ACCEPTED, http_status=202))
    api.stage.run(3_700)

    def states():
        return [line["runState"] for line in api.get(f"{path(made)}/runs").json["results"]]

    assert states()[1] == "ACK_RECVD"
    api.stage.run(700)
    assert states()[1] == "UNKNOWN"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "success: is required"),
        ({"success": "x"}, "success: must be"),
    ],
)
def test_an_invalid_report_is_refused(api, body, why):
    made = api.create({"repeatInterval": "10 minutes"})
    api.stage.endpoint.script.append(Outcome(Verdict.ACCEPTED, http_status=202))
    api.stage.run(660)
    run = f"{path(made)}/runs/{api.get(f'{path(made)}/runs').json['results'][1]['runId']}"

    reply = api("PUT", run, body)

    assert reply.status == 400
    assert why in reply.json["message"]
    assert api("PUT", run, {"success": True}, caller=OTHER).status == 404
    assert api("PUT", f"{path(made)}/runs/00000000-0000-7000-8000-000000000000", {"success": True}).status == 404


def test_the_log_comes_newest_first_in_pages_or_next_to_a_run(api):
    made = api.create({"repeatInterval": "1 minute"})
    api.stage.run(620)
    where = f"{path(made)}/runs"

    whole = api.get(where).json
    times = [line["scheduleTimestamp"] for line in whole["results"]]
    assert times == sorted(times, reverse=True)
    assert whole["total"] == len(times) == 11
    page = api.get(where, query={"page_size": 3, "offset": 3}).json
    assert page["results"] == whole["results"][3:6]
    assert page["next_url"] == f"/scheduler{where}?page_size=3&offset=6"
    at = whole["results"][5]["runId"]
    older = api.get(where, query={"page_size": 3, "next": at}).json
    newer = api.get(where, query={"page_size": 3, "prev": at}).json
    assert older["results"] == whole["results"][6:9]
    assert newer["results"] == whole["results"][2:5]
    assert older["total"] == newer["total"] == page["total"] == whole["total"]
    assert api.get(where, query={"next": "x"}).status == 400


def test_a_schedule_includes_its_log_on_request(api):
    made = api.create({"repeatInterval": "1 minute"})
    api.stage.run(130)

    without, shown = api.get(path(made)).json, api.get(path(made), query={"displayLogs": "true"}).json

    assert "logs" not in without
    assert [line["runState"] for line in shown["logs"]] == ["SCHEDULED", "SUCCESS", "SUCCESS"]
    planned, ran = ([*json.loads(line["runText"])] for line in shown["logs"][:2])
    assert [step["type"] for step in planned] == ["SCHEDULED"]
    assert shown["logs"][0]["statusMessage"] == "The job has been scheduled for a future run"
    assert [(step["type"], step["code"]) for step in ran] == [
        ("SCHEDULED", None),
        ("TRIGGERED", None),
        ("SUCCESS", 200),
    ]
    assert all(step.keys() == {"time", "type", "text", "code"} and step["text"] for step in planned + ran)
    assert api.get(path(made), query={"displayLogs": "perhaps"}).status == 400


@pytest.mark.parametrize(
    ("report", "state", "said"),
    [
        ({"success": True, "message": "4711 rows"}, "SUCCESS", "4711 rows"),
        ({"success": False}, "ERROR", ""),
        (None, "UNKNOWN", "no result was reported within ASYNC_EXEC_TIMEOUT; the endpoint had answered: taken"),
    ],
)
def test_the_log_has_a_step_for_each_state_and_notes_a_missing_report(api, report, state, said):
    api.stage.endpoint.script[:] = [replace(ACCEPTED, answer="taken")]
    made = api.create({"time": "now"})
    api.stage.run(20)
    waiting = api.get(path(made), query={"displayLogs": "true"}).json["logs"][0]
    if report:
        assert api("PUT", f"{path(made)}/runs/{waiting['runId']}", report).status == 200
    api.stage.run(2_000)

    line = api.get(path(made), query={"displayLogs": "true"}).json["logs"][0]

    assert [step["type"] for step in json.loads(waiting["runText"])] == ["SCHEDULED", "TRIGGERED", "ACK_RECVD"]
    steps = json.loads(line["runText"])
    assert [step["type"] for step in steps] == ["SCHEDULED", "TRIGGERED", "ACK_RECVD", state]
    assert steps[-1]["time"] == line["completionTimestamp"]
    assert line["statusMessage"] == steps[-1]["text"]
    if said:
        assert api.get(f"{path(made)}/runs").json["results"][0]["runText"] == line["statusMessage"] == said


def test_a_finished_one_time_job_is_deactivated_and_says_so(api):
    made = api.create({"time": "now"})
    api.stage.run(60)

    logs = api.get("/actionLogs", query={"jobId": made["_id"]}).json

    assert "DEACTIVATION_ON_COMPLETION" in [line["type"] for line in logs["results"]]
    assert logs["results"][-1]["type"] in {"JOB_CREATION", "SCHEDULE_CREATION"}
    assert api.get(path(made)).json["active"] is False
    assert api.get(f"/jobs/{made['_id']}").json["active"] is True


def test_a_schedule_has_an_action_log(api):
    made = api.create({"repeatInterval": "1 hour"}, {"repeatInterval": "2 hours"})
    schedule = made["schedules"][0]["scheduleId"]
    api("PUT", path(made), {"active": False})

    logs = api.get("/actionLogs", query={"jobId": made["_id"], "scheduleId": schedule}).json

    assert [line["type"] for line in logs["results"]] == ["SCHEDULE_UPDATE", "SCHEDULE_CREATION"]
    assert api.get("/actionLogs").status == 400
    assert api.get("/actionLogs", query={"jobId": made["_id"], "scheduleId": "x"}).status == 404


def test_a_schedule_whose_target_is_unreachable_for_ten_days_is_deactivated(api):
    api.stage.endpoint.answer = DOWN
    made = api.create({"cron": "* * * * 12 5 0"})
    for _ in range(11):
        api.stage.run(420)
        api.stage.pass_time(86_400 - 420)

    logs = api.get("/actionLogs", query={"jobId": made["_id"]}).json

    assert logs["results"][0]["type"] == "DEACTIVATION_ENDPOINT_UNREACHABLE"
    assert logs["results"][0]["scheduleId"] == made["schedules"][0]["scheduleId"]
    assert logs["results"][0]["user"] is None
    assert api.get(path(made)).json["active"] is False
    assert api.get(f"/jobs/{made['_id']}").json["active"] is True
    assert api("PUT", path(made), {"active": True}).json["active"] is True


def test_a_target_receives_its_run_in_saps_headers(api):
    made = api.create({"repeatInterval": "10 minutes", "data": {"a": 1}})
    api.stage.run(660)
    (received,) = api.stage.endpoint.received

    told = run_headers.headers(received.params["dialect"], received.call)

    assert told == {
        "x-sap-job-id": str(made["_id"]),
        "x-sap-job-schedule-id": made["schedules"][0]["scheduleId"],
        "x-sap-job-run-id": api.get(f"{path(made)}/runs").json["results"][1]["runId"],
        "x-sap-scheduler-host": "https://sweephand.example",
        "x-sap-run-at": "2027-03-01 12:10:01",
    }
    assert received.call.payload == '{"a":1}'


def test_a_long_log_is_counted_up_to_a_thousand_and_can_be_paged_beyond(api, monkeypatch):
    monkeypatch.setattr(runs, "COUNTED", 8)
    made = api.create({"repeatInterval": "1 minute"})
    api.stage.run(20 * 60)
    where = f"{path(made)}/runs"

    whole = api.get(where).json
    pages, query = [], "page_size=5"
    while query:
        page = api.get(where, query=query).json
        pages += page["results"]
        query = (page["next_url"] or "?").partition("?")[2]
    behind = api.get(where, query={"page_size": 5, "offset": 40}).json

    assert len(whole["results"]) == whole["total"] == 20
    assert pages == whole["results"]
    assert api.get(where, query={"page_size": 5}).json["total"] == 8
    assert (behind["results"], behind["next_url"], behind["total"]) == ([], None, 20)


def test_walking_the_log_run_by_run_meets_each_once(api):
    made = api.create({"repeatInterval": "1 minute"})
    api.stage.run(12 * 60)
    where = f"{path(made)}/runs"
    whole = api.get(where).json["results"]

    back, query = [], "page_size=5"
    while query:
        page = api.get(where, query=query).json
        back += page["results"]
        query = f"page_size=5&next={page['results'][-1]['runId']}" if page["next_url"] else None
    forth, query = whole[-1:], f"page_size=5&prev={whole[-1]['runId']}"
    while query:
        page = api.get(where, query=query).json
        forth = page["results"] + forth
        query = (page["prev_url"] or "?").partition("?")[2]

    assert back == forth == whole
    assert api.get(where, query={"prev": whole[0]["runId"]}).json["results"] == []


def test_skipped_runs_are_missing_from_the_log_and_its_total(api):
    made = api.create({"repeatInterval": "1 minute"})
    api.stage.run(130)
    api("PUT", path(made), {"active": False})
    api.stage.run(600)
    api("PUT", path(made), {"active": True})
    api.stage.run(130)

    log = api.get(f"{path(made)}/runs").json
    assert {line["runState"] for line in log["results"]} == {"SUCCESS", "SCHEDULED"}
    assert log["total"] == len(log["results"])


def test_a_result_for_a_run_that_has_not_begun_is_refused_with_that_reason(api):
    made = api.create({"repeatInterval": "1 hour"})
    (planned,) = api.get(f"{path(made)}/runs").json["results"]

    reply = api("PUT", f"{path(made)}/runs/{planned['runId']}", {"success": True})

    assert (reply.status, reply.json["message"]) == (400, "Error while configuring job: the run has not begun")


@pytest.mark.parametrize(
    ("message", "kept"),
    [({"rows": 4711}, '{"rows":4711}'), (4711, "4711"), ([1, "two"], '[1,"two"]'), (True, "true"), ("text", "text")],
)
def test_a_message_that_is_not_a_string_does_not_discard_the_report(api, message, kept):
    api.stage.endpoint.script[:] = [ACCEPTED]
    made = api.create({"time": "now"})
    api.stage.run(20)
    run = api.get(f"{path(made)}/runs").json["results"][0]["runId"]

    replies = [api("PUT", f"{path(made)}/runs/{run}", {"success": True, "message": message}) for _ in range(2)]

    assert [reply.status for reply in replies] == [200, 200]
    line = api.get(f"{path(made)}/runs/{run}").json
    assert (line["runState"], line["runText"]) == ("SUCCESS", kept)
