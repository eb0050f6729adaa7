"""Executions: retries, counters, the error action, manual runs, history."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from sweephand.domain.run import Outcome, Verdict
from sweephand.server.facades.azure import lists
from tests.contract.azure.api import COLLECTION, EVERY_HOUR, HTTP, JOB, job
from tests.support.endpoint import BUSY, DOWN, OK, WRONG

ERROR = {"type": "Https", "request": {"uri": "https://errors.example/report", "method": "PUT"}}
TWICE = {"retryType": "Fixed", "retryInterval": "PT1M", "retryCount": 2}


def counts(api):
    status = api.properties()["status"]
    return status["executionCount"], status["failureCount"], status["faultedCount"]


def records(api, **more):
    names = ("actionName", "status", "retryCount", "repeatCount")
    return [tuple(each[name] for name in names) for each in api.history(**more)]


def test_a_failure_and_a_retry_are_counted_as_documented(api):
    api.stage.endpoint.script = [BUSY]
    api.job()
    api.stage.run(60)

    assert counts(api) == (1, 1, 0)
    assert api.properties()["state"] == "Completed"
    assert records(api) == [("MainAction", "Completed", 1, 1), ("MainAction", "Failed", 0, 1)]


@pytest.mark.parametrize("answer", [BUSY, WRONG, DOWN])
def test_every_failure_is_retried_four_times_every_30_seconds_by_default(api, answer):
    api.stage.endpoint.answer = answer
    api.job()
    api.stage.run(300)

    at = [received.at for received in api.stage.endpoint.received]
    assert [(after - before).total_seconds() for before, after in pairwise(at)] == [30] * 4
    assert counts(api) == (1, 5, 1)
    assert api.properties()["state"] == "Faulted"


def test_the_retry_policy_none_makes_one_attempt(api):
    api.stage.endpoint.answer = BUSY
    api.job(action={**HTTP, "retryPolicy": {"retryType": "none"}})
    api.stage.run(300)

    assert counts(api) == (1, 1, 1)
    assert api.properties()["action"]["retryPolicy"] == {"retryType": "None"}


def test_the_error_action_runs_once_after_the_last_retry_and_is_not_counted(api):
    api.stage.endpoint.script = [WRONG] * 3
    api.job(action={**HTTP, "retryPolicy": TWICE, "errorAction": ERROR})
    api.stage.run(300)

    urls = [received.params["url"] for received in api.stage.endpoint.received]
    assert urls == ["https://example.org/run"] * 3 + ["https://errors.example/report"]
    assert counts(api) == (1, 3, 1)
    assert records(api) == [
        ("ErrorAction", "Completed", 0, 1),
        ("MainAction", "Failed", 2, 1),
        ("MainAction", "Failed", 1, 1),
        ("MainAction", "Failed", 0, 1),
    ]


def test_an_error_action_without_a_retry_policy_uses_the_main_actions(api):
    api.stage.endpoint.answer = WRONG
    api.job(action={**HTTP, "retryPolicy": TWICE, "errorAction": ERROR})
    api.stage.run(600)

    assert len(api.stage.endpoint.received) == 6
    assert counts(api) == (1, 3, 1)


def test_a_recurring_job_is_never_faulted(api):
    api.stage.endpoint.answer = WRONG
    api.job(
        recurrence={"frequency": "Minute", "count": 2},
        action={**HTTP, "retryPolicy": {"retryType": "None"}},
    )
    api.stage.run(300)

    assert (api.properties()["state"], counts(api)) == ("Completed", (2, 2, 2))


def test_a_manual_run_is_counted_and_leaves_the_plan_unchanged(api):
    before = api.job(recurrence={**EVERY_HOUR, "count": 2}, startTime=api.at(3600))
    started = api.at()

    assert api("POST", f"{JOB}/run").status == 200
    api.stage.run(60)

    after = api.properties()
    assert after["status"]["nextExecutionTime"] == before["status"]["nextExecutionTime"]
    assert after["status"]["lastExecutionTime"][:19] == started[:19]
    assert counts(api) == (1, 0, 0)
    api.stage.run(3 * 3600)
    assert counts(api) == (3, 0, 0)
    assert [number for *_, number in records(api)] == [3, 2, 1]


def test_a_failed_manual_run_counts_its_attempts(api):
    api.stage.endpoint.script = [WRONG] * 3
    api.job(startTime=api.at(86_400), action={**HTTP, "retryPolicy": TWICE})

    api("POST", f"{JOB}/run")
    api.stage.run(300)

    assert counts(api) == (1, 3, 1)
    assert api.properties()["state"] == "Enabled"


def test_a_disabled_job_can_be_run(api):
    api.job(state="Disabled", recurrence=EVERY_HOUR)

    assert api("POST", f"{JOB}/run").status == 200
    api.stage.run(60)

    assert len(api.stage.endpoint.received) == 1
    assert api.properties()["state"] == "Disabled"


def test_a_repeated_run_request_starts_no_second_run(api):
    api.job(startTime=api.at(86_400))
    headers = {"x-ms-client-request-id": "8f6a-1"}

    first = api("POST", f"{JOB}/run", headers=headers)
    second = api("POST", f"{JOB}/run", headers=headers)
    api.stage.run(60)
    assert len(api.stage.endpoint.received) == 1
    api("POST", f"{JOB}/run", headers={"x-ms-client-request-id": "8f6a-2"})
    api.stage.run(60)

    assert (first.status, second.status) == (200, 200)
    assert first.headers["x-ms-client-request-id"] == "8f6a-1"
    assert len(api.stage.endpoint.received) == 2


def test_a_repeated_run_request_is_answered_in_a_disabled_collection_too(api):
    api.job(startTime=api.at(86_400))
    headers = {"x-ms-client-request-id": "8f6a-1"}
    assert api("POST", f"{JOB}/run", headers=headers).status == 200
    assert api("POST", f"{COLLECTION}/disable").status == 200

    again = api("POST", f"{JOB}/run", headers=headers)
    other = api("POST", f"{JOB}/run", headers={"x-ms-client-request-id": "8f6a-2"})

    assert (again.status, other.status) == (200, 409)
    assert other.json["error"]["message"] == "the job collection is disabled: enable it first"


def test_a_history_record_describes_its_attempt_completely(api):
    headers = "content-type: text/plain\r\ndate: today\r\n"
    told = Outcome(Verdict.SUCCEEDED, http_status=200, answer="x" * 3_000, answer_headers=headers)
    api.stage.endpoint.answer = told
    api.stage.endpoint.takes_s = 2
    start = api.at(60)
    api.job(startTime=start)
    api.stage.run(120)

    (record,) = api.get(f"{JOB}/history").json["value"]
    found = record["properties"]
    assert record["id"].startswith(f"{JOB}/history/")
    assert record["name"].startswith("Nightly/Report/")
    assert record["type"] == "Microsoft.Scheduler/jobCollections/jobs/history"
    assert found["expectedExecutionTime"] == start.replace("Z", ".000000Z")
    assert found["startTime"][:19] == start[:19]
    assert found["message"] == (
        "Http Action - Response from host 'example.org': 'OK' Response Headers: "
        "content-type: text/plain\r\ndate: today\r\n Body: " + "x" * 2_048
    )


def test_each_attempt_shows_the_headers_of_its_own_answer(api):
    api.stage.endpoint.script = [
        replace(BUSY, answer_headers="retry-after: 5\r\n"),
        replace(OK, answer_headers="etag: 1\r\n"),
        DOWN,
        OK,
    ]
    api.job(recurrence={"frequency": "Minute", "count": 2}, startTime=api.at(60))
    api.stage.run(300)

    told = [each["message"].partition("Response Headers: ")[2].partition(" Body")[0] for each in api.history()]
    assert told == ["", "", "etag: 1\r\n", "retry-after: 5\r\n"]


def test_history_is_ordered_by_the_start_of_the_attempts(api):
    """A retry after half an hour lies above the executions that began before it."""
    api.stage.endpoint.script = [OK, WRONG, OK, OK]
    policy = {"retryType": "Fixed", "retryInterval": "PT30M", "retryCount": 1}
    error = {**HTTP, "request": {"uri": "https://errors.example/", "method": "PUT"}}
    action = {**HTTP, "retryPolicy": policy, "errorAction": error}
    api.job(recurrence={"frequency": "Minute"}, startTime=api.at(60), action=action)
    api.stage.run(40 * 60)

    found = api.get(f"{JOB}/history").json["value"]
    starts = [each["properties"]["startTime"] for each in found]
    names = [each["name"] for each in found]
    numbers = [each["properties"]["repeatCount"] for each in found]
    assert (starts, names) == (sorted(starts, reverse=True), sorted(names))
    assert numbers.index(2) == numbers.index(32) - 1
    assert len(numbers) == 41
    assert numbers[-3:] == [3, 2, 1]


def test_pages_ordered_by_start_continue_where_the_previous_page_ended(api, monkeypatch):
    monkeypatch.setattr(lists, "PAGE", 7)
    api.stage.endpoint.script = [WRONG, OK, OK, WRONG, WRONG, OK] * 20
    policy = {"retryType": "Fixed", "retryInterval": "PT7M", "retryCount": 2}
    api.job(recurrence={"frequency": "Minute"}, startTime=api.at(60), action={**HTTP, "retryPolicy": policy})
    api.stage.run(40 * 60)
    whole = api.get(f"{JOB}/history", query={"$top": 100}).json["value"]
    starts = [each["properties"]["startTime"] for each in whole]
    assert starts == sorted(starts, reverse=True)
    assert len(whole) > 50

    found, query, version = [], "", "2016-03-01"
    while query is not None:
        page = api.get(f"{JOB}/history", query=query, version=version).json
        found += page["value"]
        query, version = page["nextLink"] and page["nextLink"].partition("?")[2], None

    assert found == whole


def test_a_record_without_an_answer_names_the_host_and_the_reason(api):
    api.stage.endpoint.answer = DOWN
    api.job(action={**HTTP, "retryPolicy": {"retryType": "None"}})
    api.stage.run(30)

    (found,) = api.history()
    assert found["message"] == "Http Action - Request to host 'example.org' failed: connection refused"


def test_history_comes_newest_first_and_can_be_filtered_and_paged(api):
    api.stage.endpoint.script = [OK, WRONG, OK]
    api.job(
        recurrence={"frequency": "Minute", "count": 3},
        startTime=api.at(60),
        action={**HTTP, "retryPolicy": {"retryType": "None"}},
    )
    api.stage.run(300)

    def numbers(**query):
        return [each["repeatCount"] for each in api.history(query=query)]

    names = [each["name"] for each in api.get(f"{JOB}/history").json["value"]]
    assert names == sorted(names)
    assert numbers() == [3, 2, 1]
    assert numbers(**{"$filter": "status eq 'Failed'"}) == [2]
    assert numbers(**{"$filter": "status eq completed", "$skip": 1}) == [1]
    assert numbers(**{"$top": 2}) == [3, 2]
    assert numbers(**{"$filter": "state eq 'Completed'"}) == [3, 2, 1]
    assert numbers(**{"$filter": "state eq 'Enabled'"}) == []
    assert numbers(**{"$filter": "status eq 'Postponed'"}) == []
    assert numbers(**{"$filter": "state eq 'Completed' and status eq 'failed'"}) == [2]
    assert numbers(**{"$filter": "STATUS eq completed  AND  state eq completed"}) == [3, 1]
    assert numbers(**{"$filter": "status eq 'Failed' and state eq 'Enabled'"}) == []


@pytest.mark.parametrize(("state", "shown"), [("Enabled", 1), ("Completed", 0), ("Faulted", 0), ("Disabled", 0)])
def test_history_filtered_by_state_is_complete_for_its_job_alone(api, state, shown):
    api.job(recurrence=EVERY_HOUR)
    api.stage.run(30)

    assert len(api.history(query={"$filter": f"state eq '{state}'"})) == shown


def test_receivers_recognise_the_service_by_its_headers_and_envelope(api):
    api.job(startTime=api.at(60), recurrence=EVERY_HOUR)
    api.stage.run(61)

    (received,) = api.stage.endpoint.received
    call = received.call
    assert (call.job_name, call.collection, call.region) == ("Report", "Nightly", "West US")
    assert received.params["dialect"] == "azure"


def test_no_run_or_retry_starts_after_a_delete(api):
    api.stage.endpoint.answer = WRONG
    api.job()
    api.stage.run(10)
    assert len(api.stage.endpoint.received) == 1

    api("DELETE", JOB)
    api.stage.run(300)

    assert len(api.stage.endpoint.received) == 1


def test_a_put_during_a_pending_retry_keeps_the_counters(api):
    api.stage.endpoint.script = [WRONG]
    api.job(recurrence=EVERY_HOUR)
    api.stage.run(10)

    api("PUT", JOB, job(recurrence=EVERY_HOUR, startTime=api.at(3600)))
    api.stage.run(120)

    assert counts(api) == (1, 1, 0)
    assert api.get(f"{COLLECTION}/jobs").json["value"][0]["properties"]["status"]["executionCount"] == 1
