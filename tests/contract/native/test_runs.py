"""Runs: started by hand, read, listed; occurrences, past and to come."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from sweephand.domain.run import Outcome, Reason, Verdict
from tests.contract.native import shapes
from tests.contract.native.api import JOB
from tests.contract.native.test_lists import joined, pages
from tests.support.endpoint import ACCEPTED, BUSY, OK, WRONG

RETRY = {"type": "fixed", "maxRetries": 1, "delaySeconds": 30}


def job_with(*schedules, **action):
    return {"action": JOB["action"] | action, "schedules": [dict(each) for each in schedules]}


# Run now


def test_a_manual_run_is_shown_at_once_and_then_ends(api):
    made = api.create()

    started = api("POST", f"/v1/jobs/{made['id']}/run")
    place = started.headers["location"]
    before = api.get(place)
    api.stage.deliver_all()
    after = api.get(place)

    assert (started.status, started.json) == (202, {"runId": place.removeprefix("/v1/runs/"), "started": True})
    assert started.json["runId"].startswith(f"{made['id']}_")
    shapes.check_run(before.json)
    assert (before.json["status"], before.json["state"], before.json["kind"]) == ("RUNNING", "QUEUED", "manual")
    assert (before.json["scheduleId"], before.json["jobId"], before.json["latenessMs"]) == (None, made["id"], None)
    assert (after.json["status"], after.json["state"], after.json["reason"]) == ("COMPLETED", "SUCCESS", "ON_TIME")
    assert [each.run_id for each in api.stage.endpoint.received] == [started.json["runId"]]


@pytest.mark.parametrize("body", [None, {"ifActive": "drop"}])
def test_a_circle_of_jobs_that_run_each_other_by_the_api_ends(api, body):
    """Each calls `/run` of the other, as an HTTP action does: with the header that counts."""
    one, other = api.create()["id"], api.create()["id"]
    answers = []

    def calls_back(call):
        target = other if call.job_id == one else one
        headers = {"Sweephand-Hop": str(call.hop)}
        answers.append(api("POST", f"/v1/jobs/{target}/run", body, headers=headers))
        return OK if answers[-1].status == 202 else WRONG

    api.stage.endpoint.answer = calls_back
    assert api("POST", f"/v1/jobs/{one}/run").status == 202
    api.stage.run(300)

    assert [each.call.hop for each in api.stage.endpoint.received] == [1, 2, 3, 4]
    assert [each.status for each in answers] == [202, 202, 202, 409]
    assert answers[-1].code == "STATE_CONFLICT"
    assert "Sweephand-Hop" in answers[-1].json["detail"]


def test_a_run_that_runs_itself_again_by_the_api_comes_to_an_end(api):
    made = api.create()
    answers = []

    def calls_back(call):
        answers.append(api("POST", f"/v1/runs/{first}/rerun", headers={"Sweephand-Hop": str(call.hop)}))
        return OK

    first = api("POST", f"/v1/jobs/{made['id']}/run").json["runId"]
    api.stage.deliver_all()
    api.stage.endpoint.answer = calls_back
    api("POST", f"/v1/runs/{first}/rerun")
    api.stage.run(300)

    assert [each.call.hop for each in api.stage.endpoint.received] == [1, 1, 2, 3, 4]
    assert [each.status for each in answers] == [202, 202, 202, 409]


@pytest.mark.parametrize("value", ["", "x", "-1", "9" * 30, "\u0663", "1, 2"])
def test_an_invalid_number_of_hops_starts_no_chain(api, value):
    made = api.create()

    assert api("POST", f"/v1/jobs/{made['id']}/run", headers={"Sweephand-Hop": value}).status == 202


def test_a_manual_run_of_a_schedule_uses_its_payload(api):
    made = api.create(job_with({"every": "PT1H", "payload": {"of": "schedule"}}, payload={"of": "action"}))
    schedule = made["schedules"][0]

    started = api("POST", f"/v1/jobs/{made['id']}/run", {"scheduleId": schedule["id"]}).json
    api.stage.deliver_all()

    assert started["runId"].startswith(f"{schedule['id']}_")
    assert api.get(f"/v1/runs/{started['runId']}").json["scheduleId"] == schedule["id"]
    assert [each.call.payload for each in api.stage.endpoint.received] == ['{"of":"schedule"}']


def test_a_manual_run_does_not_count_towards_the_schedules_count(api):
    made = api.create(job_with({"every": "PT1H", "count": 1}))
    schedule = made["schedules"][0]

    api("POST", f"/v1/jobs/{made['id']}/run", {"scheduleId": schedule["id"]})
    api.stage.deliver_all()
    read = api.get(f"/v1/jobs/{made['id']}", query="include=schedules").json

    assert read["totals"]["planned"] == 0
    assert len(read["schedules"][0]["nextRuns"]) == 1


def test_a_run_that_ends_before_the_sweep_counts_it_is_counted_as_planned(api):
    made = api.create(schedules=[{"every": "PT30S"}])
    api.stage.clock.advance(31)
    api.stage.deliver_all()

    totals = api.get(f"/v1/jobs/{made['id']}").json["totals"]

    assert (totals["planned"], totals["succeeded"], totals["open"]) == (1, 1, 0)


def test_a_repeated_run_request_with_one_key_starts_one_run(api):
    made, key = api.create(), {"idempotency-key": "k"}
    place = f"/v1/jobs/{made['id']}/run"

    first = api("POST", place, {}, headers=key)
    api.stage.clock.advance(3)
    with api.unchanged():
        again = api("POST", place, {}, headers=key)
        empty = api("POST", place, headers=key)
        other = api("POST", place, {"scheduleId": made["schedules"][0]["id"]}, headers=key)
    without = [api("POST", place).json["runId"] for _ in range(2)]

    assert again.json == empty.json == first.json
    assert (other.status, other.code, other.fields) == (422, "KEY_REUSED", ["Idempotency-Key"])
    assert len({first.json["runId"], *without}) == 3


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"scheduleId": "01a400f6-36fa-71e9-9550-323b38da5e82"}, 404, None),
        ({"scheduleId": "x"}, 422, "scheduleId"),
        ({"scheduleId": ""}, 422, "scheduleId"),
        ({"scheduleId": "x" * 70_000}, 422, "scheduleId"),
        ({"scheduleId": ["01a400f6-36fa-71e9-9550-323b38da5e82"]}, 422, "scheduleId"),
        ({"scheduleId": None, "x": None}, 422, "x"),
        ([], 422, "body"),
        (7, 422, "body"),
    ],
)
def test_an_invalid_run_request_is_refused(api, body, status, field):
    made = api.create()

    with api.unchanged():
        reply = api("POST", f"/v1/jobs/{made['id']}/run", body)

    assert reply.status == status
    assert field is None or reply.fields == [field]


def test_an_inactive_job_can_be_run_manually_or_the_refusal_says_why(api):
    made = api.create(active=False)

    started = api("POST", f"/v1/jobs/{made['id']}/run").json
    api.stage.deliver_all()
    run = api.get(f"/v1/runs/{started['runId']}").json

    assert run["status"] == "COMPLETED"
    assert run["reason"] is not None


# One run


def test_a_run_with_if_active_drop_is_not_started_next_to_an_active_one(api):
    api.stage.endpoint.answer = ACCEPTED
    made = api.create(job_with(outcome={"on202": "wait"}))
    place = f"/v1/jobs/{made['id']}/run"
    first = api("POST", place, {"ifActive": "drop"})
    api.stage.deliver_all()

    second = api("POST", place, {"ifActive": "drop"})

    assert (first.status, first.json["started"]) == (202, True)
    assert (second.status, second.json) == (202, {"runId": first.json["runId"], "started": False})
    assert second.headers["location"] == first.headers["location"]
    assert api("POST", place, {}).json["started"]
    assert api("POST", place, {"ifActive": "wait"}).fields == ["ifActive"]


def test_a_failed_run_shows_all_its_attempts(api):
    made = api.create(job_with({"at": "2027-03-01T12:00:10Z"}, retry=RETRY))
    api.stage.endpoint.script = [
        BUSY,
        Outcome(Verdict.FAILED, Reason.DNS, message="no address", retryable=True),
    ]

    api.stage.run(15)
    (waiting,) = api.get("/v1/runs", query={"jobId": made["id"]}).json["items"]
    api.stage.run(60)
    run = api.get(f"/v1/runs/{waiting['id']}").json

    shapes.check_run(waiting)
    assert (waiting["status"], waiting["state"], waiting["attempt"]) == ("RUNNING", "RETRY_WAIT", 2)
    assert waiting["nextAttemptAt"] is not None
    shapes.check_run(run)
    assert (run["state"], run["reason"], run["attempt"], run["maxAttempts"]) == ("REQUEST_ERROR", "DNS", 2, 2)
    assert (run["plannedAt"], run["nextAttemptAt"], run["httpStatus"]) == ("2027-03-01T12:00:10.000Z", None, None)
    assert [(each["attempt"], each["reason"], each["httpStatus"]) for each in run["attempts"]] == [
        (1, "HTTP_STATUS", 503),
        (2, "DNS", None),
    ]
    assert [each["message"] for each in run["attempts"]] == ["503", "no address"]
    assert 0 <= run["latenessMs"] < 1_000
    assert run["startedAt"] == run["attempts"][0]["startedAt"]
    assert run["expiresAt"] is not None


def test_an_error_action_is_a_separate_run_that_names_its_parent(api):
    made = api.create(
        job_with({"at": "2027-03-01T12:00:10Z"}) | {"errorAction": {"type": "http", "url": "https://x.org/alarm"}}
    )
    api.stage.endpoint.script = [WRONG, OK]

    api.stage.run(60)
    runs = api.get("/v1/runs", query={"jobId": made["id"]}).json["items"]

    by_kind = {each["kind"]: each for each in runs}
    assert by_kind.keys() == {"scheduled", "error_action"}
    assert by_kind["error_action"]["parentRunId"] == by_kind["scheduled"]["id"]
    assert api.get(f"/v1/runs/{by_kind['error_action']['parentRunId']}").json["state"] == "REQUEST_ERROR"
    assert by_kind["error_action"]["state"] == "SUCCESS"


def test_a_run_that_waits_for_its_callback_shows_the_deadline(api):
    made = api.create(
        job_with({"at": "2027-03-01T12:00:10Z"}, outcome={"on202": "wait", "callbackTimeoutSeconds": 600})
    )
    api.stage.endpoint.script = [ACCEPTED]

    api.stage.run(20)
    (run,) = api.get("/v1/runs", query={"jobId": made["id"]}).json["items"]

    assert (run["status"], run["state"]) == ("RUNNING", "ACK_RECVD")
    assert run["callbackDeadlineAt"] == "2027-03-01T12:10:11.000Z"


# The token of a run


def reporting(api):
    """Makes a run that waits for its report: its id, and the token that its target was sent."""
    made = api.create(job_with({"at": "2027-03-01T12:00:10Z"}), policies={"callbackToken": True})
    assert made["policies"]["callbackToken"] is True
    assert made["action"]["outcome"]["on202"] == "wait"
    api.stage.endpoint.script = [lambda call: ACCEPTED if call.on202 == "wait" else OK]
    api.stage.run(20)
    (received,) = api.stage.endpoint.received[-1:]
    return received.run_id, received.call.callback_token


def report(api, run, token, result=None, **more):
    result = result or {"success": True, "message": "done"}
    headers = {"sweephand-callback-token": token}
    return api("PUT", f"/v1/runs/{run}/result", result, caller=None, headers=headers, **more)


def test_the_target_of_a_run_reports_with_the_token_it_was_sent_and_no_other_credential(api):
    run, token = reporting(api)

    reply = report(api, run, token)
    again = report(api, run, token)
    other = report(api, run, token, {"success": False})

    assert (reply.status, reply.json["state"]) == (200, "SUCCESS")
    assert again.status == 200
    assert (other.status, other.code) == (409, "RESULT_CONFLICT")
    assert token not in api.log()
    assert token not in "".join(api.picture())


def test_the_target_of_a_run_sees_little_of_it(api):
    """Neither who runs it again, nor notes, nor what other attempts were answered."""
    run, token = reporting(api)
    report(api, run, token)
    report(api, run, token, {"success": False, "message": "other"})
    by = api("POST", f"/v1/runs/{run}/rerun", {}).json["runId"]

    told = report(api, run, token).json
    known = api.get(f"/v1/runs/{run}").json

    assert (known["rerunBy"], len(known["notes"])) == (by, 1)
    assert (told["id"], told["state"]) == (run, "SUCCESS")
    assert [told[name] for name in ("rerunBy", "rerunOf", "parentRunId", "answer", "message")] == [None] * 5
    assert told["notes"] == []


def test_a_runs_token_is_valid_only_for_its_own_result(api):
    run, token = reporting(api)
    other, _ = reporting(api)

    with api.unchanged():
        assert report(api, other, token).status == 401
        assert report(api, run, token[:-1] + ("A" if token[-1] != "A" else "B")).status == 401
        assert report(api, run, token.replace("acme.", "globex.")).status == 401
        assert report(api, run, token.partition(".")[2]).status == 401
        assert report(api, "x", token).status == 401
        headers = {"sweephand-callback-token": token}
        assert api("GET", f"/v1/runs/{run}", caller=None, headers=headers).status == 401
        assert api("POST", f"/v1/runs/{run}/cancel", caller=None, headers=headers).status == 401
        assert api.get("/v1/jobs", caller=None, headers=headers).status == 401
        bearer = {"authorization": f"Bearer {token}"}
        assert api("PUT", f"/v1/runs/{run}/result", {"success": True}, caller=None, headers=bearer).status == 401


def test_a_caller_with_a_credential_is_authorised_by_it(api):
    run, token = reporting(api)

    headers = {"sweephand-callback-token": token}
    reply = api("PUT", f"/v1/runs/{run}/result", {"success": True}, caller="globex", headers=headers)

    assert reply.status == 404


def test_the_token_of_a_disabled_tenants_run_is_refused(api):
    run, token = reporting(api)
    api("POST", "/v1/tenants/acme/disable", caller="provider")
    api.stage.pass_time(11)

    assert report(api, run, token).status == 403


def test_a_schedule_may_request_a_token_even_if_its_job_does_not(api):
    api.create(job_with({"at": "2027-03-01T12:00:10Z", "policies": {"callbackToken": True}}))
    api.create(job_with({"at": "2027-03-01T12:00:10Z"}))

    api.stage.run(20)

    calls = {received.call.on202: received.call.callback_token for received in api.stage.endpoint.received}
    assert calls["success"] is None
    assert calls["wait"] is not None


@pytest.mark.parametrize(
    "run",
    [
        "x",
        "_",
        "01a400f6-36fa-71e9-9550-323b38da5e82",
        "01a400f6-36fa-71e9-9550-323b38da5e82_",
        "01a400f6-36fa-71e9-9550-323b38da5e82_01a400f6-36fa-81e9-9550-323b38da5e82",
        "-" * 36 + "_" + "-" * 36,
        "x" * 3_000,
        "01a400f6-36fa-71e9-9550-323b38da5e82_01a400f6-36fa-81e9-9550-323b38da5e82%0A",
        "%23%23",
        "\u06f0" * 36 + "_" + "\u06f0" * 36,
    ],
)
def test_an_unknown_run_is_not_found(api, run):
    reply = api.get(f"/v1/runs/{run}")

    assert reply.status == (400 if "%0A" in run else 404)


# Lists of runs


@pytest.fixture
def history(api):
    """Makes a job with two schedules, one of which fails at times, and a manual run; and a second job."""
    other = api.create(job_with({"every": "PT20S"}))
    made = api.create(job_with({"name": "a", "every": "PT20S"}, {"name": "b", "every": "PT40S"}))
    broken = made["schedules"][0]["id"]
    api.stage.endpoint.answer = lambda call: WRONG if call.run_id.startswith(broken) else OK
    api("POST", f"/v1/jobs/{made['id']}/run")
    api.stage.run(100)
    return made, other


def test_runs_are_listed_by_schedule_by_job_and_by_need_for_attention(api, history):
    made, other = history
    broken, sound = (each["id"] for each in made["schedules"])

    of_job = api.get("/v1/runs", query={"jobId": made["id"]}).json["items"]
    of_schedule = api.get("/v1/runs", query={"scheduleId": sound}).json["items"]
    of_both = api.get("/v1/runs", query={"jobId": made["id"], "scheduleId": broken}).json["items"]
    neither = api.get("/v1/runs").json["items"]

    assert [each["kind"] for each in of_job].count("manual") == 1
    assert {each["scheduleId"] for each in of_job} == {None, broken, sound}
    assert {each["scheduleId"] for each in of_schedule} == {sound}
    assert {each["scheduleId"] for each in of_both} == {broken}
    assert len(of_job) == len(of_schedule) + len(of_both) + 1
    assert neither == of_both
    assert {each["state"] for each in neither} == {"REQUEST_ERROR"}
    for items in (of_job, of_schedule, of_both, neither):
        assert [each["plannedAt"] for each in items] == sorted((each["plannedAt"] for each in items), reverse=True)
        for run in items:
            shapes.check_run(run)
            assert run["jobId"] in {made["id"], other["id"]}


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7, 50])
def test_lists_of_runs_can_be_paged_by_cursors(api, history, limit):
    made, _ = history

    for query in (f"jobId={made['id']}", f"scheduleId={made['schedules'][0]['id']}", ""):
        whole = api.get("/v1/runs", query=query).json["items"]
        assert joined(pages(api, "/v1/runs", limit, query)) == whole


def test_runs_are_filtered_by_state_and_kind(api, history):
    made, _ = history
    of_job = api.get("/v1/runs", query={"jobId": made["id"]}).json["items"]

    for query in ({"state": "SUCCESS"}, {"state": "REQUEST_ERROR"}, {"kind": "manual"}, {"kind": "backfill"}):
        ((name, value),) = query.items()
        found = api.get("/v1/runs", query=query | {"jobId": made["id"]}).json["items"]
        assert found == [each for each in of_job if each[name] == value]
    both = api.get("/v1/runs", query={"jobId": made["id"], "state": "SUCCESS", "kind": "scheduled"}).json["items"]
    assert both == [each for each in of_job if (each["state"], each["kind"]) == ("SUCCESS", "scheduled")]


def test_the_attention_list_spans_days(api):
    made = api.create(job_with(*({"at": f"2027-03-0{day}T12:00:00Z"} for day in (2, 3, 5))))
    api.stage.endpoint.answer = WRONG
    for _ in range(5):
        api.stage.run(30)
        api.stage.pass_time(86_400 - 60)
        api.stage.run(30)

    found = joined(pages(api, "/v1/runs", 2))

    assert [each["plannedAt"][:10] for each in found] == ["2027-03-05", "2027-03-03", "2027-03-02"]
    assert {each["jobId"] for each in found} == {made["id"]}


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("jobId=x", 400, "jobId"),
        ("scheduleId=%23", 400, "scheduleId"),
        ("jobId=", 400, "jobId"),
        ("state=SCHEDULED", 400, "state"),
        ("state=success", 400, "state"),
        ("kind=none", 400, "kind"),
        ("jobId=01a400f6-36fa-71e9-9550-323b38da5e82", 404, None),
        ("from=2027-01-01T00:00:01Z&until=2027-01-01T00:00:00Z", 400, "until"),
        ("from=yesterday", 400, "from"),
        ("collection=", 400, "collection"),
        ("jobId=01a400f6-36fa-71e9-9550-323b38da5e82&tag=a", 400, "jobId"),
        ("scheduleId=01a400f6-36fa-71e9-9550-323b38da5e82&collection=default", 400, "scheduleId"),
        ("offset=5", 400, "offset"),
    ],
)
def test_an_invalid_query_for_runs_is_refused(api, query, status, field):
    reply = api.get("/v1/runs", query=query)

    assert reply.status == status
    assert field is None or reply.fields == [field]


# Occurrences


def test_occurrences_include_past_and_future(api):
    made = api.create(job_with({"name": "a", "every": "PT20S"}, {"name": "b", "cron": "* * * * *"}))
    api.stage.endpoint.script = [OK, WRONG]
    api.stage.run(50)

    reply = api.get(f"/v1/jobs/{made['id']}/occurrences", query="from=2020-01-01T00:00:00Z&limit=6")
    ahead = api.get(f"/v1/jobs/{made['id']}/occurrences", query="limit=3").json["items"]

    items = reply.json["items"]
    a, b = (each["id"] for each in made["schedules"])
    assert [(each["plannedAt"][14:19], each["scheduleId"], each["state"], each["reason"]) for each in items] == [
        ("00:21", a, "SUCCESS", "ON_TIME"),
        ("00:41", a, "REQUEST_ERROR", "HTTP_STATUS"),
        ("01:00", b, "SCHEDULED", None),
        ("01:01", a, "SCHEDULED", None),
        ("01:21", a, "SCHEDULED", None),
        ("01:41", a, "SCHEDULED", None),
    ]
    for each in items:
        assert each.keys() == shapes.OCCURRENCE
    shapes.check_page(reply.json, "searchedUntil")
    assert reply.json["searchedUntil"] == items[-1]["plannedAt"]
    assert ahead == items[2:5]
    past = [api.get(f"/v1/runs/{each['runId']}") for each in items[:3]]
    assert [each.status for each in past] == [200, 200, 404]
    api.stage.run(20)
    assert api.get(f"/v1/runs/{items[2]['runId']}").json["state"] == "SUCCESS"


@pytest.mark.parametrize("begin", ["12:00:00", "12:02:30"], ids=["before the line", "within it"])
def test_occurrences_in_a_summary_row_have_its_state(api, begin):
    api("POST", "/v1/collections", {"name": "mini"})
    made = api.create(job_with({"every": "PT20S"}), collection="mini")
    api.stage.run(30)
    api("POST", "/v1/collections/mini/disable")
    api.stage.run(600)
    api("POST", "/v1/collections/mini/enable")
    api.stage.run(120)

    items = api.get(
        f"/v1/jobs/{made['id']}/occurrences", query=f"from=2027-03-01T{begin}Z&until=2027-03-01T12:12:00Z&limit=100"
    ).json["items"]

    by_state = Counter((each["state"], each["reason"]) for each in items)
    assert by_state.keys() <= {("SUCCESS", "ON_TIME"), ("SKIPPED", "DISABLED")}
    assert by_state["SKIPPED", "DISABLED"] > 20
    assert [each["plannedAt"] for each in items] == sorted({each["plannedAt"] for each in items})
    assert {api.get(f"/v1/runs/{each['runId']}").status for each in items} == {200}


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_occurrences_can_be_paged_by_cursors_across_past_and_future(api, limit):
    made = api.create(job_with(*({"name": name, "every": "PT20S"} for name in "abc"), {"at": "2027-03-01T12:01:00Z"}))
    api.stage.run(50)
    place, query = f"/v1/jobs/{made['id']}/occurrences", "from=2027-03-01T11:00:00Z&until=2027-03-01T12:01:21Z"

    whole = api.get(place, query=query).json
    found, cursor = [], ""
    while cursor is not None:
        page = api.get(place, query=f"{query}&limit={limit}{cursor}").json
        found += page["items"]
        cursor = page["nextCursor"] and f"&cursor={page['nextCursor']}"

    assert found == whole["items"]
    assert len(found) == 13
    assert whole["nextCursor"] is None
    assert whole["searchedUntil"] == page["searchedUntil"] == "2027-03-01T12:01:21Z"


def test_occurrences_of_one_schedule_are_listed_until_it_ends(api):
    made = api.create(job_with({"name": "a", "every": "PT1H", "count": 3}, {"name": "b", "every": "PT1H"}))
    place = f"/v1/jobs/{made['id']}/occurrences"

    reply = api.get(place, query={"scheduleId": made["schedules"][0]["id"]}).json

    assert [each["plannedAt"] for each in reply["items"]] == made["schedules"][0]["nextRuns"]
    assert (reply["nextCursor"], reply["searchedUntil"]) == (None, "2199-12-31T23:59:59Z")


def test_no_occurrences_are_shown_before_a_schedule_was_created_or_changed(api):
    made = api.create(job_with({"cron": "* * * * *"}))
    place = f"/v1/jobs/{made['id']}"
    schedule = f"{place}/schedules/{made['schedules'][0]['id']}"
    api.stage.run(130)
    api("PATCH", schedule, {"cron": "*/10 * * * *"})
    api.stage.run(70)

    found = api.get(f"{place}/occurrences", query="from=1970-01-01T00:00:00Z&until=2027-03-01T12:30:00Z").json["items"]

    assert [each["plannedAt"][11:16] for each in found] == ["12:01", "12:02", "12:10", "12:20", "12:30"]
    assert [each["state"] for each in found] == ["SUCCESS"] * 2 + ["SCHEDULED"] * 3


def test_an_occurrence_names_the_time_rule_that_moved_it(api):
    made = api.create(job_with({"cron": "30 2 * * *", "timezone": "Europe/Berlin"}))

    found = api.get(
        f"/v1/jobs/{made['id']}/occurrences", query="from=2027-03-27T00:00:00Z&until=2027-03-29T12:00:00Z"
    ).json["items"]

    assert [(each["plannedAt"], each["movedBy"]) for each in found] == [
        ("2027-03-27T01:30:00Z", None),
        ("2027-03-28T01:00:00Z", {"rule": "dstGap", "localTime": "2027-03-28T02:30:00", "effect": "moved"}),
        ("2027-03-29T00:30:00Z", None),
    ]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=yesterday", "from"),
        ("from=", "from"),
        ("from=1969-12-31T23:59:59Z", "from"),
        ("until=2200-01-01T00:00:00Z", "until"),
        ("until=2027-02-30T00:00:00Z", "until"),
        ("until=2027-02-01T00:00:00Z", "until"),
        ("from=2027-03-01T12:00:00%2B25:00", "from"),
        ("from=2027-03-01T12:00:00 05:00", "from"),
        ("from=۲۰۲۷-03-01T12:00:00Z", "from"),
        (f"from={'9' * 5_000}", "from"),
    ],
)
def test_an_invalid_time_span_is_refused(api, query, field):
    made = api.create()

    reply = api.get(f"/v1/jobs/{made['id']}/occurrences", query=query)

    assert (reply.status, reply.code, reply.fields) == (400, "INVALID_QUERY", [field])


def test_an_unknown_schedule_has_no_occurrences(api):
    made, other = api.create(), api.create()

    for schedule in ("x", "", "x" * 5_000, other["schedules"][0]["id"]):
        reply = api.get(f"/v1/jobs/{made['id']}/occurrences", query={"scheduleId": schedule})
        assert reply.status == 404


def test_an_answer_of_the_target_is_shown_as_a_string(api):
    api.create(job_with({"at": "2027-03-01T12:00:10Z"}))
    api.stage.endpoint.answer = replace(WRONG, answer='<script>"\u0000\ufffd' + "é" * 300)

    api.stage.run(20)
    (run,) = api.get("/v1/runs").json["items"]

    assert run["answer"].startswith('<script>"\u0000\ufffdéé')
    assert len(run["answer"].encode()) <= 200


def test_a_failed_run_names_its_error_group_but_not_to_its_target(api):
    run, token = reporting(api)

    told = report(api, run, token, {"success": False, "message": "row 17 is empty"}).json
    api.stage.run(5)
    known = api.get(f"/v1/runs/{run}").json
    (group,) = api.get("/v1/errors").json["items"]
    by = api("POST", f"/v1/runs/{run}/rerun", {}).json["runId"]

    assert (told["state"], told["errorGroupId"]) == ("ERROR", None)
    assert known["errorGroupId"] == group["id"]
    assert api.get(f"/v1/runs/{by}").json["errorGroupId"] is None
